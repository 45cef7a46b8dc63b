//! If the profiles cannot be written, the application does not notice.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use gyan_results::{Ending, Summary};
use tempfile::TempDir;

use crate::common::{
    MPIS, Mpi, Profiled, counts, libgyan, only_warning, profiles, ranks_that_left, root, run,
};
use crate::faults::inject;

/// From the table of faults.
const GROUP: &str = "surroundings";
const ONE_LINE: &str = "the same exit code and output as without gyan, and one line";

/// The number of ranks, the program with its arguments, and settings.
type Program<'a> = (usize, &'a [&'a str], &'a [(&'a str, &'a str)]);

/// Runs a program with its profiles in `output`, or in `temporary` where they cannot be written.
fn with_output(mpi: Mpi, program: Program, output: &Path, temporary: &TempDir) -> Profiled {
    let [output, temporary] = [output, temporary.path()].map(|path| path.to_str().unwrap());
    let places = [("GYAN_OUTPUT", output), ("TMPDIR", temporary)];
    Profiled::run(mpi, program.0, program.1, &[&places[..], program.2].concat())
}

/// The only line of gyan's says this, and where the profiles are instead.
fn one_line_says(run: &Profiled, reason: &str, ranks: usize) {
    let [line] = run.outcome.notices()[..] else { panic!("not one line") };
    assert!(line.contains(reason) && line.contains("set GYAN_OUTPUT"), "{line}");
    are_elsewhere(line, ranks);
}

/// The profiles that are elsewhere according to a line.
fn are_elsewhere(line: &str, ranks: usize) {
    let (_, directory) = line.rsplit_once(" are in ").unwrap_or_else(|| panic!("{line}"));
    profiles(Path::new(directory), ranks);
}

fn one_line_and_unharmed(mpi: Mpi, output: &Path, reason: &str) {
    let fault = inject(GROUP, &format!("the run directory: {reason}"), ONE_LINE);
    let temporary = TempDir::new().unwrap();
    let run = with_output(mpi, (2, &["exit_code", "0"], &[]), output, &temporary).ends_as_without();
    one_line_says(&run, reason, 2);
    fault.survived();
}

#[test]
fn an_output_directory_that_cannot_be_made() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("a-file");
    File::create(&file).unwrap();
    for mpi in MPIS {
        one_line_and_unharmed(mpi, &file.join("profile"), "Not a directory");
        one_line_and_unharmed(mpi, Path::new("/proc/profile"), "No such file or directory");
    }
}

/// A small separate file system, for as long as this lives.
struct Disk(TempDir);

impl Disk {
    /// None if file systems cannot be mounted.
    fn new(options: &str) -> Option<Disk> {
        let directory = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(directory.path());
        if run(&mut mount).code == 0 {
            return Some(Disk(directory));
        }
        assert!(std::env::var_os("CI").is_none(), "no tmpfs can be mounted");
        eprintln!("skipped: no tmpfs can be mounted here");
        None
    }

    /// Leaves room for only `left` bytes.
    fn fill(&self, left: usize) {
        let filler = self.0.path().join("filler");
        assert!(fs::write(&filler, vec![0; 1 << 20]).is_err());
        let size = fs::metadata(&filler).unwrap().len();
        File::options().write(true).open(&filler).unwrap().set_len(size - left as u64).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run(Command::new("umount").arg(self.0.path()));
    }
}

#[test]
fn a_full_disk() {
    let Some(disk) = Disk::new("size=64k") else { return };
    let output = disk.0.path().join("profile");
    fs::create_dir(&output).unwrap();
    disk.fill(0);
    for mpi in MPIS {
        one_line_and_unharmed(mpi, &output, "No space left on device");
        assert!(ranks_that_left(&output).is_empty());
        assert_eq!(fs::read_dir(&output).unwrap().count(), 0, "half a file was left");
    }
}

#[test]
fn a_disk_that_gets_full_while_the_profile_is_written() {
    let Some(disk) = Disk::new("size=64k") else { return };
    let output = disk.0.path().join("profile");
    fs::create_dir(&output).unwrap();
    // There is room for a page, for the beginning of a profile.
    disk.fill(4096);
    for mpi in MPIS {
        let fault = inject(
            GROUP,
            "a disk that gets full while the profile is written",
            "the application goes on, one line, no half a file",
        );
        let temporary = TempDir::new().unwrap();
        let program = (1, &["exit_code"][..], &[("GYAN_CVARS_RECORD", "all")][..]);
        let run = with_output(mpi, program, &output, &temporary).succeeded();
        assert_eq!(run.outcome.stdout, "out\n");
        one_line_says(&run, "No space left on device", 1);
        assert!(ranks_that_left(&output).is_empty());
        assert_eq!(fs::read_dir(&output).unwrap().count(), 0, "half a file was left");
        fault.survived();
    }
}

/// The profile requested before stays, and is complete.
#[test]
fn a_disk_that_gets_full_while_the_program_runs() {
    let Some(disk) = Disk::new("size=256k") else { return };
    for mpi in MPIS {
        let fault = inject(
            GROUP,
            "a disk that gets full while the program runs",
            "the application goes on, one line, an earlier profile stays",
        );
        let output = disk.0.path().join(format!("profile-{}", mpi.name));
        let filler = disk.0.path().join("filler");
        let temporary = TempDir::new().unwrap();
        let program = ["filling", filler.to_str().unwrap()];
        let run = with_output(mpi, (1, &program, &[]), &output, &temporary).succeeded();
        assert_eq!(run.outcome.stdout, "full\n");
        one_line_says(&run, "No space left on device", 1);
        let profile = &profiles(&output, 1)[0];
        let end = (profile.end.how, counts(profile)["MPI_Barrier"]);
        assert_eq!(end, (Ending::Running, 1), "{mpi:?}");
        fault.survived();
        fs::remove_file(filler).unwrap();
    }
}

#[test]
fn a_disk_on_which_no_directory_can_be_made() {
    let Some(disk) = Disk::new("nr_inodes=1") else { return };
    for mpi in MPIS {
        one_line_and_unharmed(mpi, &disk.0.path().join("profile"), "No space left on device");
    }
}

#[test]
fn a_file_system_that_is_read_only() {
    let Some(disk) = Disk::new("size=64k,ro") else { return };
    for mpi in MPIS {
        one_line_and_unharmed(mpi, &disk.0.path().join("profile"), "Read-only file system");
        one_line_and_unharmed(mpi, disk.0.path(), "Read-only file system");
    }
}

#[test]
fn a_link_in_the_place_of_a_profile_is_neither_followed_nor_replaced() {
    for mpi in MPIS {
        let fault = inject(
            GROUP,
            "a link in the place of a profile",
            "it is not followed, and the profile lies beside it",
        );
        let directory = TempDir::new().unwrap();
        let output = directory.path().join("profile");
        fs::create_dir(&output).unwrap();
        let precious = directory.path().join("precious");
        fs::write(&precious, "mine").unwrap();
        std::os::unix::fs::symlink(&precious, output.join("rank-000000.json")).unwrap();
        let run = with_output(mpi, (2, &["exit_code"], &[]), &output, &directory).succeeded();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
        assert_eq!(fs::read_link(output.join("rank-000000.json")).unwrap(), precious);
        crate::common::profiles(&output.join("again-2"), 1);
        assert!(
            run.outcome.stderr.contains("rank-000000.json: is not one of gyan's files and stays")
        );
        fault.survived();
    }
}

/// What makes no sense the unit tests of the settings say.
#[test]
fn a_setting_that_makes_no_sense_is_one_line_and_a_warning_and_as_if_it_were_not_set() {
    let wrong = [
        ("GYAN_ELEMENTS", "many"),
        ("GYAN_BUDGET", "plenty"),
        ("GYAN_SERIES", "often"),
        ("GYAN_SERIES_BYTES", "few"),
        ("GYAN_WATCH", "umq>many"),
    ];
    for mpi in MPIS {
        let settings = [&wrong[..], &[("GYAN_NOTICES", "warnings")]].concat();
        let run = Profiled::run(mpi, 2, &["exit_code"], &settings).succeeded();
        let notices = run.outcome.notices();
        assert_eq!(notices.len(), wrong.len());
        let said = "gyan: GYAN_ELEMENTS=many: is not a number of elements; ignored";
        assert!(notices.contains(&said), "{notices:?}");
        for profile in run.profiles() {
            for (name, value) in wrong {
                let what = format!("{name}={value}: ");
                only_warning(&profile, &what);
                assert!(notices.iter().any(|line| line.contains(&what)), "{what}");
            }
            assert_eq!(profile.overhead.budget, Some(0.005));
            assert!(profile.watch.is_none() && profile.series.is_none());
        }
    }
}

/// The clocks of the hosts of a run differ by minutes: it began when rank 0 says, and took as long as its ranks did.
#[test]
fn clocks_that_differ_between_ranks() {
    let but_on = root().join("tests/programs/but_on").display().to_string();
    for mpi in MPIS {
        let clocks = mpi.preloadable("backwards", &[]);
        let preload = format!("LD_PRELOAD={}:{}", libgyan().display(), clocks.display());
        let program = mpi.program("receives").display().to_string();
        let ahead = ["1", "TEST_CLOCK=-600", &but_on, "2", "TEST_CLOCK=900"];
        let words = [&ahead[..], &["env", &preload, &program]].concat();
        let before = SystemTime::now();
        let run = Profiled::run_file(mpi, 3, Path::new(&but_on), &words, &[]).succeeded();
        let profiles = run.profiles();
        let started = |rank: usize| humantime::parse_rfc3339(&profiles[rank].job.started).unwrap();
        assert!(started(1) < before && before < started(2), "{mpi:?}: the clocks are right");
        let report = crate::common::report(&run.directory, &["--format", "json"]);
        assert_eq!((report.code, report.stderr.as_str()), (0, ""));
        let summary: Summary = serde_json::from_str(&report.stdout).unwrap();
        assert_eq!(summary.job.started, profiles[0].job.started, "{mpi:?}");
        let longest = profiles.iter().map(|profile| profile.job.elapsed_s).fold(0.0, f64::max);
        assert!((summary.job.elapsed_s - longest).abs() < 1e-9, "{mpi:?}");
        // Longer than a test may take.
        assert!(longest < 600.0, "{mpi:?}: {longest} s are between the clocks");
    }
}

/// The time of day is set back while the program runs, or, which no system does, the monotonic clock.
#[test]
fn clocks_that_go_backwards() {
    for mpi in MPIS {
        let clocks = mpi.preloadable("backwards", &[]);
        for which in ["real", "all"] {
            let what = "the application goes on, and its profile can be read";
            let fault = inject(GROUP, &format!("clocks that go backwards: {which}"), what);
            let program = mpi.program("exit_code").display().to_string();
            // The launcher keeps its clocks.
            let words = [&*format!("TEST_CLOCK={which}"), &program];
            let run = Profiled::with_libraries(mpi, 1, &[&libgyan(), &clocks], &words, &[]);
            let run = run.succeeded();
            assert_eq!(run.outcome.stdout, "out\n");
            let profile = &run.profiles()[0];
            let says =
                profile.warnings.iter().any(|warning| warning.contains("the clock went back"));
            assert_eq!((profile.job.elapsed_s > 0.0, says), (which == "real", which == "all"));
            let report = crate::common::report(&run.directory, &[]);
            assert_eq!((report.code, report.stderr.as_str()), (0, ""));
            fault.survived();
        }
    }
}
