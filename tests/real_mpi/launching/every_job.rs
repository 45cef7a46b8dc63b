//! What a site loads gyan into every job with: who gets it, and who is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gyan_results::{Diagnosis, JobRecord, RECORD_BYTES, Verdict};
use tempfile::TempDir;

use super::slurm::Slurm;
use crate::common::{
    Mpi, Outcome, comes_true, command, gyan, keepers_of, libgyan, root, run, run_within, succeed,
};

/// A site: its library, its settings, and the files of packaging/site with the paths of these.
struct Site {
    directory: TempDir,
    library: PathBuf,
    settings: PathBuf,
}

/// Prints what a program got.
const SHOW: &str = "echo \"$LD_PRELOAD|$GYAN_SITE\"";

impl Site {
    fn new() -> Site {
        let directory = TempDir::new().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("lib")).unwrap();
        fs::copy(libgyan(), at("lib/libgyan.so")).unwrap();
        fs::create_dir(at("spool")).unwrap();
        fs::set_permissions(at("spool"), fs::Permissions::from_mode(0o3733)).unwrap();
        let spool = at("spool").display().to_string();
        let settings = format!("spool = '{spool}'\ncluster = 'tests'\nat_least = '0s'\n");
        fs::write(at("site.toml"), settings).unwrap();
        let copy = ["cp", "-r", "packaging/site/."].map(str::to_owned);
        succeed(command(&copy).arg(at("site")).current_dir(root()));
        let site = Site { library: at("lib/libgyan.so"), settings: at("site.toml"), directory };
        site.name_paths_in("environment.sh");
        site.name_paths_in("pbs/gyan_hook.py");
        site
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join("site").join(name)
    }

    /// The records in the spool once nobody writes there any more.
    fn records(&self) -> Vec<JobRecord> {
        let spool = self.directory.path().join("spool");
        assert!(comes_true(|| keepers_of(&spool).is_empty()), "a keeper does not end");
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            assert!(bytes.len() <= RECORD_BYTES, "{}", bytes.len());
            JobRecord::from_bytes(&bytes).unwrap()
        };
        fs::read_dir(&spool).unwrap().map(read).collect()
    }

    /// As the staff of a site does.
    fn name_paths_in(&self, file: &str) {
        let file = self.file(file);
        let text = fs::read_to_string(&file).unwrap();
        let named = text
            .replace("/opt/gyan/lib/libgyan.so", &self.library.display().to_string())
            .replace("/etc/gyan/site.toml", &self.settings.display().to_string());
        assert_ne!(text, named, "{}", file.display());
        fs::write(file, named).unwrap();
    }

    /// What [`SHOW`] prints in a task that has gyan.
    fn loaded(&self) -> String {
        format!("{}|{}", self.library.display(), self.settings.display())
    }

    /// Another library of a user, and a libgyan.so of their own.
    fn others(&self) -> [String; 2] {
        let own = self.directory.path().join("own");
        fs::create_dir_all(&own).unwrap();
        let paths = [own.join("libother.so"), own.join("libgyan.so")];
        paths.map(|path| {
            fs::copy(libgyan(), &path).unwrap();
            path.display().to_string()
        })
    }

    /// A line of slurm.conf that loads the plugin with these words.
    fn with_plugin(&self, words: &str) -> String {
        let plugin = self.file("slurm/gyan_spank.so");
        if !plugin.exists() {
            succeed(command(&["make", "-s", "-C"]).arg(self.file("slurm")));
        }
        let plugstack = self.file("slurm/plugstack.conf");
        let (library, settings) = (self.library.display(), self.settings.display());
        let line =
            format!("optional {} library={library} site={settings} {words}\n", plugin.display());
        fs::write(&plugstack, line).unwrap();
        format!("PlugStackConfig={}\n", plugstack.display())
    }
}

/// What a task prints that is started with these words and settings; nothing else is said.
fn shown(slurm: &Slurm, words: &[&str], settings: &[(&str, &str)]) -> String {
    let words = [&["srun", "-Q", "-n", "1"], words].concat();
    let outcome = succeed(slurm.command(&words).envs(settings.iter().copied()));
    assert_eq!(outcome.stderr, "", "{words:?}");
    outcome.stdout.trim().to_owned()
}

/// What the plugin and the task prolog have in common.
fn tasks_have_it_and_others_are_left_alone(site: &Site, slurm: &Slurm) {
    let task = ["sh", "-c", SHOW];
    let [other, own] = site.others();
    assert_eq!(shown(slurm, &task, &[]), site.loaded());
    let in_front = format!("{}:{other}|{}", site.library.display(), site.settings.display());
    assert_eq!(shown(slurm, &task, &[("LD_PRELOAD", &other)]), in_front);
    assert_eq!(shown(slurm, &task, &[("LD_PRELOAD", &own)]), format!("{own}|"));
    let own_run = format!("{}|off", site.library.display());
    assert_eq!(shown(slurm, &task, &[("GYAN_SITE", "off")]), own_run);
    for off in ["off", "OFF", "0", "no", "false"] {
        assert_eq!(shown(slurm, &task, &[("GYAN", off)]), "|", "{off}");
    }
    fs::write(site.file("show"), format!("{SHOW}\n")).unwrap();
    let pty = format!("srun -Q -n 1 --pty sh {}", site.file("show").display());
    // With a terminal, as a user has one.
    let outcome = succeed(&mut slurm.command(&["script", "-qec", &pty, "/dev/null"]));
    assert!(outcome.stdout.contains('|') && !outcome.stdout.contains("gyan"), "{}", outcome.stdout);
    let script = format!("{SHOW}\nsrun -Q -n 1 sh -c '{SHOW}'\n");
    assert_eq!(in_batch(site, slurm, &script, &[]), format!("|\n{}\n", site.loaded()));
    fs::rename(&site.settings, site.settings.with_extension("off")).unwrap();
    assert_eq!(shown(slurm, &task, &[]), "|");
    fs::rename(site.settings.with_extension("off"), &site.settings).unwrap();
    fs::rename(&site.library, site.library.with_extension("off")).unwrap();
    assert_eq!(shown(slurm, &task, &[]), "|");
    fs::rename(site.library.with_extension("off"), &site.library).unwrap();
}

/// The output of a batch job.
fn in_batch(site: &Site, slurm: &Slurm, script: &str, options: &[&str]) -> String {
    let (file, out) = (site.file("script"), site.file("out"));
    fs::write(&file, format!("#!/bin/sh\n{script}")).unwrap();
    let words = [&["sbatch", "--parsable", "-n", "1"], options].concat();
    let mut sbatch = slurm.command(&words);
    let job = succeed(sbatch.arg("-o").arg(&out).arg(&file)).stdout;
    assert_eq!(slurm.end_of_job(job.trim()), "COMPLETED");
    fs::read_to_string(out).unwrap()
}

/// Programs that end by themselves, with their arguments.
const PROGRAMS: [&[&str]; 3] = [&["exit_code"], &["receives"], &["pipeline", "20", "1000"]];

/// Runs one of them as a job of two ranks, from a directory of its own.
fn job(slurm: &Slurm, mpi: Mpi, words: &[&str], settings: &[(&str, &str)]) -> Outcome {
    let here = TempDir::new().unwrap();
    let program = mpi.program(words[0]).display().to_string();
    let srun = ["srun", "-Q", "--mpi=pmi2", "-n", "2", &program];
    let mut srun = slurm.command(&[&srun, &words[1..]].concat());
    srun.current_dir(&here).envs(settings.iter().copied());
    let outcome = succeed(&mut srun);
    let left = fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name());
    let left = left.filter(|name| !name.as_encoded_bytes().starts_with(b"truth."));
    assert_eq!(left.count(), 0, "{words:?}");
    outcome
}

/// Runs `number` jobs, four at a time, and looks at what they print and leave in the spool.
fn each_job_leaves_a_record(site: &Site, slurm: &Slurm, number: usize) {
    let mpi = Mpi::named("mpich4");
    let bare = PROGRAMS.map(|words| job(slurm, mpi, words, &[("GYAN", "off")]));
    assert_eq!(site.records().len(), 0);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(which) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|which| *which < number)
                {
                    let which = which % PROGRAMS.len();
                    let with = job(slurm, mpi, PROGRAMS[which], &[]);
                    assert_eq!(
                        with.stdout_of_ranks(),
                        bare[which].stdout_of_ranks(),
                        "{:?}",
                        PROGRAMS[which]
                    );
                    assert_eq!(with.stderr, bare[which].stderr, "{:?}", PROGRAMS[which]);
                }
            });
        }
    });
    let records = site.records();
    let mut of_program = BTreeMap::<&str, usize>::new();
    for record in &records {
        *of_program.entry(&record.program).or_default() += 1;
        assert_eq!((record.summary.ranks.reduced, &*record.cluster), (2, "tests"));
    }
    let expected = PROGRAMS.map(|words| (words[0], number / PROGRAMS.len()));
    assert_eq!(of_program, expected.into_iter().collect());
    let jobs: BTreeSet<&str> = records.iter().map(|record| &*record.job).collect();
    assert_eq!(jobs.len(), number);
}

#[test]
#[ignore = "fills the machine for minutes: scripts/test runs it alone"]
fn each_of_300_jobs_under_slurm_leaves_one_record() {
    let site = Site::new();
    let slurm = Slurm::start_with(&site.with_plugin(""));
    each_job_leaves_a_record(&site, &slurm, 300);
}

/// What `gyan doctor --site` finds, and its exit code.
fn doctor(site: &Site) -> (i32, Diagnosis) {
    let mut doctor = gyan();
    doctor.args(["doctor", "--json", "--site"]).arg(&site.settings);
    let mpi = Mpi::named("mpich4");
    doctor.arg("--").args(mpi.mpirun(2)).arg(mpi.program("exit_code"));
    doctor.env("GYAN_LIBRARY", &site.library).current_dir(site.directory.path());
    let outcome = run_within(&mut doctor, std::time::Duration::from_secs(600));
    let diagnosis = serde_json::from_str(&outcome.stdout);
    (outcome.code, diagnosis.unwrap_or_else(|error| panic!("{error}: {}", outcome.stderr)))
}

/// What it finds of one thing, with the verdict.
fn found<'a>(diagnosis: &'a Diagnosis, what: &str) -> Vec<(Verdict, &'a str)> {
    let checks = diagnosis.checks.iter().filter(|check| check.what == what);
    checks.map(|check| (check.verdict, &*check.finding)).collect()
}

#[test]
fn the_doctor_shows_that_a_site_works_and_what_is_in_the_way() {
    let site = Site::new();
    // The directory of a test is its user's only.
    fs::set_permissions(&site.directory, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, good) = doctor(&site);
    assert_eq!(code, 0, "{:?}", good.checks);
    for what in ["site file", "spool", "written to", "for all users", "record", "commands"] {
        assert!(matches!(found(&good, what)[..], [(Verdict::Ok, _)]), "{what}: {:?}", good.checks);
    }
    assert!(found(&good, "record")[0].1.contains("of a run of exit_code"));
    assert!(found(&good, "commands")[0].1.starts_with("500 runs of "));
    // The try leaves nothing in the site's spool.
    assert_eq!(site.records().len(), 0);
    fs::set_permissions(&site.library, fs::Permissions::from_mode(0o646)).unwrap();
    let spool = site.directory.path().join("spool");
    fs::set_permissions(&spool, fs::Permissions::from_mode(0o1777)).unwrap();
    let (code, bad) = doctor(&site);
    assert_eq!(code, 1);
    assert!(found(&bad, "for all users")[0].1.contains("every user may write"));
    assert!(found(&bad, "spool")[0].1.contains("users can list the jobs of others"));
    fs::write(&site.settings, "spol = '/s'\none_in = 0\ncluster = 'x'\n").unwrap();
    let (code, bad) = doctor(&site);
    assert_eq!(code, 1);
    let mistakes: Vec<&str> =
        found(&bad, "site file").iter().map(|(_, finding)| *finding).collect();
    assert_eq!(mistakes.len(), 3, "{mistakes:?}");
    assert!(
        mistakes[0].contains("one_in")
            && mistakes[1].contains("spol")
            && mistakes[2].contains("spool: is missing")
    );
}

#[test]
fn the_plugin_of_slurm_loads_gyan_into_tasks_as_it_is_told_and_leaves_others_alone() {
    let site = Site::new();
    let slurm = Slurm::start_with(&site.with_plugin(""));
    each_job_leaves_a_record(&site, &slurm, 6);
    tasks_have_it_and_others_are_left_alone(&site, &slurm);
    let task = ["sh", "-c", SHOW];
    assert_eq!(shown(&slurm, &[&["--gyan=off"], &task[..]].concat(), &[]), "|");
    let script = format!("srun -Q -n 1 sh -c '{SHOW}'\n");
    assert_eq!(in_batch(&site, &slurm, &script, &["--gyan=off"]), "|\n");
    let wrong = run(&mut slurm.command(&["srun", "--gyan=of", "true"]));
    assert_ne!(wrong.code, 0);
    assert!(wrong.stderr.contains("--gyan: of: is neither on nor off"), "{}", wrong.stderr);
    // The daemon of an mpirun.
    let orted = site.file("orted").display().to_string();
    fs::copy("/bin/sh", &orted).unwrap();
    assert_eq!(shown(&slurm, &[&orted, "-c", SHOW], &[]), "|");
    // Or it is for who asks, or for a partition: Slurm looks at the line for each step.
    site.with_plugin("default=off unknown=word");
    assert_eq!(shown(&slurm, &task, &[]), "|");
    assert_eq!(shown(&slurm, &[&["--gyan=on"], &task[..]].concat(), &[]), site.loaded());
    site.with_plugin("partitions=short,all");
    assert_eq!(shown(&slurm, &task, &[]), site.loaded());
    site.with_plugin("partitions=small,al");
    assert_eq!(shown(&slurm, &task, &[]), "|");
}

#[test]
fn the_task_prolog_loads_gyan_into_tasks_and_leaves_others_alone() {
    let site = Site::new();
    let prolog = site.file("slurm/task-prolog");
    let slurm = Slurm::start_with(&format!("TaskProlog={}\n", prolog.display()));
    each_job_leaves_a_record(&site, &slurm, 6);
    tasks_have_it_and_others_are_left_alone(&site, &slurm);
}

#[test]
fn the_job_starter_of_lsf_becomes_the_command() {
    let site = Site::new();
    let starter = site.file("lsf/job-starter");
    let shown = |settings: &[(&str, &str)]| {
        let mut starter = command(&[&starter]);
        starter.args(["sh", "-c", &format!("{SHOW}; exit 7")]).envs(settings.iter().copied());
        let outcome = run(&mut starter);
        assert_eq!((outcome.code, &*outcome.stderr), (7, ""));
        outcome.stdout.trim().to_owned()
    };
    assert_eq!(shown(&[]), site.loaded());
    assert_eq!(shown(&[("GYAN", "off")]), "|");
    assert_eq!(shown(&[("LSB_INTERACTIVE", "Y")]), "|");
    fs::remove_file(site.file("environment.sh")).unwrap();
    assert_eq!(shown(&[]), "|");
}

/// PBS, as far as the hook sees it: an event, of which the environment is printed when it is accepted.
const PBS: &str = r#"
import os
LOG_DEBUG = 0
def logmsg(level, text): print("logged", text)
class Event:
    def __init__(self):
        self.env = None if "BROKEN" in os.environ else dict(os.environ)
        self.job = type("Job", (), {"interactive": "INTERACTIVE" in os.environ})
    def accept(self):
        env = self.env or {}
        print(env.get("LD_PRELOAD", "") + "|" + env.get("GYAN_SITE", ""))
EVENT = Event()
def event(): return EVENT
"#;

#[test]
fn the_hook_of_pbs_changes_the_environment_of_a_program() {
    let site = Site::new();
    fs::write(site.file("pbs/pbs.py"), PBS).unwrap();
    let [other, own] = site.others();
    let shown = |settings: &[(&str, &str)]| {
        let mut hook = command(&["python3"]);
        hook.arg(site.file("pbs/gyan_hook.py")).envs(settings.iter().copied());
        succeed(&mut hook).stdout
    };
    let loaded = site.loaded();
    assert_eq!(shown(&[]), format!("{loaded}\n"));
    assert_eq!(shown(&[("GYAN", "Off")]), "|\n");
    assert_eq!(shown(&[("INTERACTIVE", "1")]), "|\n");
    let in_front = format!("{}:{other}|{}\n", site.library.display(), site.settings.display());
    assert_eq!(shown(&[("LD_PRELOAD", &other)]), in_front);
    assert_eq!(shown(&[("LD_PRELOAD", &own)]), format!("{own}|\n"));
    let broken = shown(&[("BROKEN", "1")]);
    assert!(
        broken.starts_with("logged gyan: not loaded: ") && broken.ends_with("\n|\n"),
        "{broken}"
    );
    fs::remove_file(&site.settings).unwrap();
    assert_eq!(shown(&[]), "|\n");
}

#[test]
fn the_site_module_loads_gyan_into_the_shell_and_out_of_it() {
    const LMOD: &str = "/usr/share/lmod/lmod/init/bash";
    assert!(Path::new(LMOD).exists(), "{LMOD}: not there; scripts/packages lmod");
    // Lmod reads both kinds.
    for (kind, file) in [("lua", "1.0.lua"), ("tcl", "1.0")] {
        let site = Site::new();
        let modules = site.directory.path().join("share/gyan/site/modulefiles");
        fs::create_dir_all(modules.join("gyan-site")).unwrap();
        site.name_settings_in_module(kind, &modules.join("gyan-site").join(file));
        let script = format!(
            "source {LMOD}\nmodule use {}\nmodule load gyan-site\n{SHOW}\nmodule unload gyan-site\n{SHOW}\n\
             rm {}\nmodule load gyan-site\n{SHOW}\n",
            modules.display(),
            site.settings.display()
        );
        let outcome = succeed(&mut command(&["bash", "-c", &script]));
        assert_eq!(outcome.stderr, "", "{kind}");
        assert_eq!(outcome.stdout, format!("{}\n|\n|\n", site.loaded()), "{kind}");
    }
}

impl Site {
    /// The module file of a kind, installed as `module`.
    fn name_settings_in_module(&self, kind: &str, module: &Path) {
        let text = fs::read_to_string(self.file(&format!("modulefiles/gyan-site.{kind}"))).unwrap();
        let settings = self.settings.display().to_string();
        fs::write(module, text.replace("/etc/gyan/site.toml", &settings)).unwrap();
    }
}
