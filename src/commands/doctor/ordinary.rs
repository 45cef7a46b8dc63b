//! Are commands that have nothing to do with MPI the same with libgyan.so loaded into them? Harmless ones of a fixed
//! list run with it and without it, until it is 500 runs of each.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use gyan_results::Check;

use super::{obstacle, ok};
use crate::launch::launcher::find_executable;
use crate::launch::preload::preload;

const WHAT: &str = "commands";
const RUNS: usize = 500;

/// Commands that say what they are.
const TOLD: [&str; 72] = [
    "awk",
    "base64",
    "basename",
    "bash",
    "bc",
    "cat",
    "chmod",
    "cksum",
    "cmp",
    "comm",
    "cp",
    "csplit",
    "cut",
    "date",
    "dd",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "env",
    "expand",
    "expr",
    "factor",
    "file",
    "find",
    "fmt",
    "fold",
    "gawk",
    "gcc",
    "git",
    "grep",
    "gzip",
    "head",
    "id",
    "join",
    "ln",
    "ls",
    "make",
    "md5sum",
    "mkdir",
    "mv",
    "nice",
    "nl",
    "od",
    "paste",
    "perl",
    "pr",
    "printf",
    "python3",
    "readlink",
    "rm",
    "rsync",
    "sed",
    "seq",
    "sha256sum",
    "sleep",
    "sort",
    "split",
    "stat",
    "tac",
    "tail",
    "tar",
    "tee",
    "touch",
    "tr",
    "uname",
    "uniq",
    "wc",
    "xargs",
    "xz",
    "zstd",
];

/// Commands that do something, a line each: words, separated by blanks.
const DONE: [&str; 40] = [
    "true",
    "false",
    "echo a b",
    "printf %s\\n%d\\n a 7",
    "pwd",
    "id -u",
    "whoami",
    "hostname",
    "uname -a",
    "basename /a/b.c .c",
    "dirname /a/b/c",
    "seq 1 3 100",
    "factor 9999999967",
    "expr 6 * 7",
    "test 1 -eq 2",
    "ls /",
    "ls -ld /",
    "ls /nonexistent",
    "cat /etc/hostname",
    "cat /nonexistent",
    "wc -l /etc/passwd",
    "head -n 3 /etc/passwd",
    "tail -n 3 /etc/passwd",
    "sort -r /etc/passwd",
    "cut -d : -f 1 /etc/passwd",
    "grep -c : /etc/passwd",
    "grep nonexistent /etc/passwd",
    "sed -n 1,3p /etc/passwd",
    "awk -F: {print$1} /etc/passwd",
    "md5sum /etc/passwd",
    "sha256sum /etc/passwd /nonexistent",
    "find /etc/passwd -type f",
    "stat -c %n:%s /etc/passwd",
    "sh -c exit\t7",
    "sh -c kill\t-TERM\t$$",
    "sh -c echo\ta|tr\ta\tb;echo\tc>&2;exit\t3",
    "bash -c for\ti\tin\t1\t2;do\t(echo\t$i)&wait;done",
    "python3 -c import\tos,subprocess;print(subprocess.run(['ls','/']).returncode,len(os.listdir('/etc')))",
    "perl -e print\tjoin(',',1..9);exit\t4",
    "xargs -n 1 echo",
];

/// Whether they are the same, and how much longer they take.
pub(super) fn check(library: &Path, site: &Path) -> Check {
    let lines = lines();
    if lines.is_empty() {
        let remedy = "see that PATH leads to the commands of the system";
        return obstacle(WHAT, "none of the list is on PATH".into(), remedy);
    }
    let mut times = [Duration::ZERO; 2];
    let mut runs = 0;
    for words in lines.iter().cycle().take(RUNS) {
        let run_loaded = || run(words, Some((library, site)));
        // Whichever is the second finds the files in memory.
        let (bare, loaded) = if runs % 2 == 0 {
            let bare = run(words, None);
            (bare, run_loaded())
        } else {
            let loaded = run_loaded();
            (run(words, None), loaded)
        };
        let (Some(bare), Some(loaded)) = (bare, loaded) else { continue };
        // Some commands, such as those with a time in their output, are never twice the same.
        let differs = || run(words, None).is_some_and(|again| again.output == bare.output);
        if bare.output != loaded.output && differs() {
            let finding = format!(
                "{} is not the same with libgyan.so: {}",
                words.join(" "),
                difference(&bare, &loaded)
            );
            return obstacle(
                WHAT,
                finding,
                "do not load it into every job, and report it as an error of gyan",
            );
        }
        times = [times[0] + bare.took, times[1] + loaded.took];
        runs += 1;
    }
    let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(runs.max(1));
    let finding = format!(
        "{runs} runs of {} commands have the same stdout, stderr and exit code with libgyan.so; on average a command takes \
         {:.2} ms without it, and {:.2} ms with it",
        lines.len(),
        each(times[0]),
        each(times[1])
    );
    ok(WHAT, finding)
}

/// Those that are there.
fn lines() -> Vec<Vec<String>> {
    let told = TOLD
        .iter()
        .flat_map(|name| ["--version", "--help"].map(|word| vec![(*name).into(), word.into()]));
    let done =
        DONE.iter().map(|line| line.split(' ').map(|word| word.replace('\t', " ")).collect());
    let lines = told.chain(done);
    lines.filter(|words: &Vec<String>| find_executable(words[0].as_ref()).is_some()).collect()
}

struct Ran {
    output: Output,
    took: Duration,
}

/// Runs a command, with a library and the settings of a site, or without.
fn run(words: &[String], gyan: Option<(&Path, &Path)>) -> Option<Ran> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    // The pager and the browser of help texts.
    command.env("PAGER", "cat").env("MANPAGER", "cat");
    match gyan {
        Some((library, site)) => command.env("LD_PRELOAD", preload(library)).env("GYAN_SITE", site),
        None => command.env_remove("LD_PRELOAD").env_remove("GYAN_SITE"),
    };
    let begun = Instant::now();
    let output = command.output().ok()?;
    Some(Ran { output, took: begun.elapsed() })
}

fn difference(bare: &Ran, loaded: &Ran) -> String {
    let (bare, loaded) = (&bare.output, &loaded.output);
    if bare.status != loaded.status {
        return format!("{} instead of {}", loaded.status, bare.status);
    }
    let name = if bare.stdout == loaded.stdout { "stderr" } else { "stdout" };
    let said = if name == "stderr" { &loaded.stderr } else { &loaded.stdout };
    let said = String::from_utf8_lossy(said);
    format!("{name} differs ({})", said.lines().next().unwrap_or("nothing is printed"))
}
