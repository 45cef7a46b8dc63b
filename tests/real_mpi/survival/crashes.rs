//! Programs that crash: `gyan now` says in which function and line, and they end as without gyan.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::{
    INTELMPI, MPICH, MPICH5, MPIS, Mpi, OPENMPI, OPENMPI5, Profiled, comes_true, command, gyan,
    in_some_try, libgyan, line_of, run,
};

/// A case of `tests/programs/crash.c`: the signal, and the functions, the innermost first, each with the comment at its line; empty
/// where that depends on the compiler.
struct Crash {
    what: &'static str,
    signal: &'static str,
    functions: &'static [(&'static str, &'static str)],
}

const CASES: &[Crash] = &[
    Crash { what: "segv", signal: "SIGSEGV", functions: &[("wrong", "segv"), ("main", "main")] },
    Crash { what: "abort", signal: "SIGABRT", functions: &[("wrong", "abort"), ("main", "main")] },
    Crash { what: "fpe", signal: "SIGFPE", functions: &[("wrong", "fpe"), ("main", "main")] },
    Crash { what: "call", signal: "SIGSEGV", functions: &[("wrong", "call"), ("main", "main")] },
    Crash { what: "in-libc", signal: "SIGSEGV", functions: &[("wrong", "in-libc")] },
    Crash { what: "overflow", signal: "SIGSEGV", functions: &[("deeper", "")] },
    Crash {
        what: "thread",
        signal: "SIGSEGV",
        functions: &[("wrong", "segv"), ("in_thread", "in_thread")],
    },
];

/// `gyan now` comes to say this of a run. Returns all that it says, in one line.
pub(crate) fn now_says(directory: &Path, parts: &[&str]) -> String {
    let mut said = String::new();
    let is_said = comes_true(|| {
        let now = run(gyan().arg("now").arg(directory)).stdout;
        said = now.split_whitespace().collect::<Vec<&str>>().join(" ");
        parts.iter().all(|part| said.contains(part))
    });
    assert!(is_said, "{parts:?}\n{said}");
    said
}

fn crashes(mpi: Mpi, cases: &[Crash]) {
    let program = mpi.compiled("crash", &["-g"]);
    for Crash { what, signal, functions } in cases {
        let with = Profiled::preloaded(mpi, 2, &program, &[what], &[]);
        // Which rank gives mpirun its code is a race in Hydra, without gyan, too: the one that crashed, or one that it ends then.
        let codes = [with.outcome.code, with.without().code];
        let is_race = ![OPENMPI, OPENMPI5].contains(&mpi) && codes.contains(&15);
        assert!(codes[0] == codes[1] || is_race, "{mpi:?} {codes:?}");
        let at = |(function, comment): &(&str, &str)| {
            let line = (!comment.is_empty()).then(|| line_of("crash.c", comment).to_string());
            format!("{function} at crash.c:{}", line.unwrap_or_default())
        };
        let functions: Vec<String> = functions.iter().map(at).collect();
        let expected = functions.join(", called by ");
        now_says(&with.directory, &[&format!("rank 1 ended by {signal} ("), &expected]);
    }
}

#[test]
fn where_a_rank_crashed_is_said_with_open_mpi_4() {
    crashes(OPENMPI, CASES);
}

#[test]
fn where_a_rank_crashed_is_said_with_mpich_4() {
    crashes(MPICH, CASES);
}

#[test]
fn where_a_rank_crashed_is_said_with_the_other_mpis() {
    for mpi in [OPENMPI5, MPICH5, INTELMPI] {
        crashes(mpi, &CASES[..2]);
    }
}

/// A program's own handler is called as without gyan, and nothing is noted before it.
#[test]
fn a_handler_of_the_program_stays_alone() {
    for mpi in MPIS {
        let program = mpi.compiled("crash", &["-g"]);
        // By `_exit` in the handler; with Hydra now and then that of the other rank, which loses its connection.
        let is_left_alone = in_some_try(4, || {
            let run = Profiled::preloaded(mpi, 2, &program, &["handler"], &[]);
            assert_eq!(run.outcome.code, 40 + 11);
        });
        assert!(is_left_alone.is_some(), "{mpi:?}");
    }
}

/// The process ends as without gyan. Whether the system tells the signal depends on its age, and on who waits for the process.
#[test]
fn without_the_handlers_a_crash_is_said_without_its_place() {
    let program = OPENMPI.compiled("crash", &["-g"]);
    let off = [("GYAN_CRASHES", "off")];
    let crashed = Profiled::preloaded(OPENMPI, 2, &program, &["abort"], &off);
    let said = now_says(&crashed.directory, &["rank 1 ended"]);
    assert!(!said.contains(&format!("crash.c:{}", line_of("crash.c", "abort"))), "{said}");
}

/// A control group with a limit of memory, for the processes of one test.
struct LimitedMemory(PathBuf);

impl LimitedMemory {
    /// None where this user may not make one.
    fn of_bytes(bytes: u64) -> Option<LimitedMemory> {
        let name = format!("gyan-test-{}", std::process::id());
        let versions = [("memory", "memory.limit_in_bytes"), ("", "memory.max")];
        versions.into_iter().find_map(|(hierarchy, limit)| {
            let group = PathBuf::from("/sys/fs/cgroup").join(hierarchy).join(&name);
            fs::create_dir(&group).ok()?;
            let made = LimitedMemory(group);
            fs::write(made.0.join(limit), bytes.to_string()).ok()?;
            // Where there is swap space.
            for (file, limit) in [("memory.memsw.limit_in_bytes", bytes), ("memory.swap.max", 0)] {
                _ = fs::write(made.0.join(file), limit.to_string());
            }
            Some(made)
        })
    }
}

impl Drop for LimitedMemory {
    fn drop(&mut self) {
        // The keeper may still be there.
        comes_true(|| fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_rank_that_the_system_kills_for_lack_of_memory_is_told_from_others() {
    let Some(group) = LimitedMemory::of_bytes(1 << 30) else {
        eprintln!("skipped: no control group with a limit of memory can be made here");
        return;
    };
    let program = OPENMPI.compiled("crash", &["-g"]).display().to_string();
    let here = TempDir::new().unwrap();
    let directory = here.path().join("profile");
    let enter = ["sh", "-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""].map(str::to_owned);
    let settings = [
        "env".to_owned(),
        format!("LD_PRELOAD={}", libgyan().display()),
        format!("GYAN_OUTPUT={}", directory.display()),
    ];
    let words = [
        &enter[..],
        &[group.0.display().to_string()],
        &OPENMPI.mpirun(2),
        &settings,
        &[program, "memory".to_owned()],
    ];
    let outcome = run(command(&words.concat()).current_dir(&here));
    assert_ne!(outcome.code, 0, "{}", outcome.stderr);
    let why = "rank 1 ended by SIGKILL (the system killed it for lack of memory)";
    now_says(&directory, &[why]);
}
