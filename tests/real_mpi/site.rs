//! A site that has all jobs recorded: each leaves one record in its spool, and nothing else changes for anybody.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use gyan_results::{Ending, JobRecord, Number, RECORD_BYTES};
use tempfile::TempDir;

use crate::common::{
    MPICH, MPIS, Mpi, OPENMPI, Outcome, call, comes_true, command, each_library, gyan, keepers_of,
    libgyan, profiles, run, truth,
};
use crate::survival::frozen::Disk;

/// A site with a spool, and a user with a home.
struct Site {
    here: TempDir,
    spool: PathBuf,
}

impl Site {
    /// With these lines in its file, beside those that have no default.
    fn new(lines: &str) -> Site {
        let here = TempDir::new().unwrap();
        let spool = here.path().join("spool");
        fs::create_dir(&spool).unwrap();
        fs::set_permissions(&spool, fs::Permissions::from_mode(0o3733)).unwrap();
        Site::with_spool(here, spool, lines)
    }

    fn with_spool(here: TempDir, spool: PathBuf, lines: &str) -> Site {
        for directory in ["home", "tmp"] {
            fs::create_dir(here.path().join(directory)).unwrap();
        }
        let text = format!("spool = '{}'\ncluster = 'tests'\n{lines}\n", spool.display());
        fs::write(here.path().join("site.toml"), text).unwrap();
        Site { here, spool }
    }

    fn file(&self) -> PathBuf {
        self.here.path().join("site.toml")
    }

    fn home(&self) -> PathBuf {
        self.here.path().join("home")
    }

    /// What the user starts, with what the site sets for it.
    fn command(&self, words: &[String]) -> Command {
        let mut command = command(words);
        command.current_dir(self.home()).env("TMPDIR", self.here.path().join("tmp"));
        command.env("LD_PRELOAD", libgyan()).env("GYAN_SITE", self.file());
        command
    }

    /// Runs a program of the tests.
    fn run(&self, mpi: Mpi, ranks: usize, program: &[&str], more: &[(&str, &str)]) -> Outcome {
        let words = mpi.launch(ranks, program[0], &program[1..]);
        run(self.command(&words).envs(more.iter().copied()))
    }

    /// The records in the spool once nobody writes there any more. All are as they should be.
    fn records(&self) -> Vec<JobRecord> {
        assert!(comes_true(|| keepers_of(&self.spool).is_empty()), "a keeper does not end");
        let entries = fs::read_dir(&self.spool).into_iter().flatten().map(Result::unwrap);
        let read = |entry: fs::DirEntry| {
            let (name, file) =
                (entry.file_name().into_string().unwrap(), entry.metadata().unwrap());
            assert!(name.starts_with(&format!("{}-", file.uid())), "{name}");
            assert!(name.ends_with(".gyan-record"), "{name}");
            assert_eq!(file.permissions().mode() & 0o7777, 0o640);
            let bytes = fs::read(entry.path()).unwrap();
            assert!(bytes.len() <= RECORD_BYTES);
            JobRecord::from_bytes(&bytes).unwrap()
        };
        entries.map(read).collect()
    }

    /// The only record.
    fn record(&self, what: &str) -> JobRecord {
        let records = self.records();
        let [record] = &records[..] else { panic!("{what}: {} records", records.len()) };
        record.clone()
    }

    /// What is in the user's directories, except for what the tests' programs write there.
    fn left_behind(&self) -> Vec<String> {
        let entries =
            ["home", "tmp"].map(|name| fs::read_dir(self.here.path().join(name)).unwrap());
        let names = entries.into_iter().flatten().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        names.filter(|name| !name.starts_with("truth.")).collect()
    }
}

/// What the ranks wrote down that they called, all together.
fn called(directory: &Path, ranks: u32) -> BTreeMap<String, u64> {
    let mut called = BTreeMap::new();
    for line in (0..ranks).flat_map(|rank| truth(directory, rank)) {
        let [function, number] = &line[..] else { panic!("{line:?}") };
        *called.entry(function.clone()).or_default() += number.parse::<u64>().unwrap();
    }
    called.retain(|_, number| *number > 0);
    called
}

#[test]
fn a_job_leaves_one_record_with_its_exact_counts_and_nothing_else() {
    const RANKS: u32 = 3;
    for mpi in each_library() {
        let site = Site::new("at_least = '0s'");
        let words = mpi.launch(RANKS as usize, "receives", &[]);
        let bare = run(command(&words).current_dir(site.home()));
        let with = site.run(mpi, RANKS as usize, &["receives"], &[]);
        assert_eq!((with.code, &with.stderr), (bare.code, &bare.stderr), "{mpi:?}");
        assert_eq!(with.stdout_of_ranks(), bare.stdout_of_ranks(), "{mpi:?}");
        let record = site.record(mpi.name);
        assert_eq!((&*record.cluster, &*record.program), ("tests", "receives"), "{mpi:?}");
        let summary = record.summary;
        assert_eq!((summary.ranks.reduced, summary.ranks.expected), (RANKS, RANKS), "{mpi:?}");
        assert!(summary.job.command.is_empty() && summary.sites.is_none(), "{mpi:?}");
        for (function, number) in called(&site.home(), RANKS) {
            let found = summary.calls.iter().find(|call| call.name == function);
            let found = found.unwrap_or_else(|| panic!("{mpi:?}: no {function}"));
            assert_eq!(found.count.sum, Number::from(number), "{mpi:?} {function}");
        }
        assert_eq!(site.left_behind(), Vec::<String>::new(), "{mpi:?}");
    }
}

#[test]
fn a_job_that_the_site_does_not_want_leaves_nothing() {
    let user = rustix::process::getuid().as_raw();
    // Before it knows its MPI.
    for (mpi, number) in [(MPICH, 8), (OPENMPI, 1)] {
        let bare = run(&mut command(&mpi.launch(2, "exit_code", &["0"])));
        let cases = [
            ("", None),
            ("at_least = '0s'\none_in = 4000000000", None),
            ("at_least = '0s'\nleave_out_programs = ['exit_*']", None),
            (&*format!("at_least = '0s'\nleave_out_users = [{user}]"), None),
            ("at_least = '0s'\nno such line", None),
            ("at_least = '0s'\nno_such_setting = 1", None),
            ("at_least = '0s'", Some(("GYAN", "off"))),
            ("at_least = '0s'", Some(("GYAN_SITE", "/no/such/file"))),
        ];
        for (lines, more) in cases.into_iter().take(number) {
            let site = Site::new(lines);
            let with = site.run(mpi, 2, &["exit_code", "0"], more.as_slice());
            assert_eq!((with.code, &with.stderr), (bare.code, &bare.stderr), "{mpi:?} {lines}");
            assert_eq!(with.stdout_of_ranks(), bare.stdout_of_ranks(), "{mpi:?} {lines}");
            assert!(site.records().is_empty(), "{mpi:?} {lines} {more:?}");
            assert_eq!(site.left_behind(), Vec::<String>::new(), "{mpi:?} {lines}");
        }
    }
}

#[test]
fn a_user_who_profiles_gets_an_ordinary_run_and_the_site_nothing() {
    for mpi in MPIS {
        let site = Site::new("at_least = '0s'");
        let gyan = gyan().get_program().to_str().unwrap().to_owned();
        let front = [&gyan, "run", "-o", "profile", "--"].map(str::to_owned);
        let line = [&front[..], &mpi.launch(2, "receives", &[])].concat();
        // What gyan sets comes after what the site has set, which is another file.
        let other = site.here.path().join("libgyan.so");
        fs::hard_link(libgyan(), &other)
            .or_else(|_| fs::copy(libgyan(), &other).map(drop))
            .unwrap();
        let outcome = run(site.command(&line).env("LD_PRELOAD", &other));
        assert_eq!(outcome.code, 0, "{mpi:?}: {}", outcome.stderr);
        for profile in profiles(&site.home().join("profile"), 2) {
            let truth = truth(&site.home(), profile.rank);
            let [function, number] = &truth[0][..] else { panic!("{truth:?}") };
            assert_eq!(call(&profile, function).count.to_string(), *number, "{mpi:?}");
        }
        assert!(site.records().is_empty(), "{mpi:?}");
    }
}

#[test]
fn a_spool_that_is_missing_full_or_frozen_costs_a_job_nothing() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        let missing = here.path().join("spool");
        let site = Site::with_spool(here, missing, "at_least = '0s'");
        let outcome = site.run(mpi, 2, &["receives"], &[]);
        assert_eq!((outcome.code, outcome.notices().len()), (0, 0), "{mpi:?}: missing");
        assert!(site.records().is_empty() && !site.spool.exists(), "{mpi:?}");
        assert_eq!(site.left_behind(), Vec::<String>::new(), "{mpi:?}: missing");
        let Some(disk) = Disk::new() else { continue };
        let spool = disk.root().join("spool");
        fs::create_dir(&spool).unwrap();
        let site = Site::with_spool(TempDir::new().unwrap(), spool, "at_least = '0s'");
        disk.freeze("-f");
        let outcome = site.run(mpi, 2, &["receives"], &[]);
        assert_eq!((outcome.code, outcome.notices().len()), (0, 0), "{mpi:?}: frozen");
        disk.freeze("-u");
        site.record("after it was thawed");
        disk.fill();
        let outcome = site.run(mpi, 2, &["receives"], &[]);
        assert_eq!((outcome.code, outcome.notices().len()), (0, 0), "{mpi:?}: full");
        site.record("only the earlier one");
        assert_eq!(site.left_behind(), Vec::<String>::new(), "{mpi:?}");
    }
}

#[test]
fn a_job_that_ends_early_leaves_what_its_first_host_knows() {
    for mpi in MPIS {
        for (how, ending) in [
            (&["abort", "3"][..], Ending::Abort),
            // Both do so: a launcher may kill the other one before it does.
            (&["exit", "4"], Ending::Exit),
            (&["signal", "9"], Ending::Killed),
        ] {
            let site = Site::new("at_least = '0s'");
            let program = [&["endings"], how].concat();
            let outcome = site.run(mpi, 2, &program, &[]);
            assert!(outcome.notices().is_empty(), "{mpi:?} {how:?}: {}", outcome.stderr);
            let ranks = site.record(&format!("{mpi:?} {how:?}")).summary.ranks;
            assert_eq!((ranks.expected, ranks.reduced), (2, 2), "{mpi:?} {how:?}");
            let may_be = |rank| rank == 1 || ending == Ending::Exit;
            let found = ranks.ended_badly.iter().any(|end| may_be(end.rank) && end.how == ending);
            assert!(found, "{mpi:?} {how:?}: {:?}", ranks.ended_badly);
            assert_eq!(site.left_behind(), Vec::<String>::new(), "{mpi:?} {how:?}");
        }
    }
}

/// Slurm has tests of its own; of the others gyan reads only these variables.
#[test]
fn a_record_names_the_job_of_the_batch_system_and_what_the_site_asks_for() {
    let mpi = MPIS[1];
    for (variables, job) in [
        (&[("PBS_JOBID", "17[3].head")][..], "17[3].head"),
        (&[("LSB_JOBID", "18"), ("LSB_JOBINDEX", "2")], "18[2]"),
        (&[("LSB_JOBID", "18"), ("LSB_JOBINDEX", "0")], "18"),
    ] {
        let site = Site::new("at_least = '0s'\nrecord_command = true\nfunctions_of_sites = true");
        let outcome = site.run(mpi, 2, &["receives"], variables);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let record = site.record(job);
        assert_eq!((&*record.job, record.step), (job, None));
        assert_eq!(record.user, rustix::process::getuid().as_raw());
        assert!(record.summary.job.command[0].ends_with("/receives"));
    }
}
