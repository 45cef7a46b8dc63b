//! Live files: what does a killed process leave, and what is made of it?

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Stdio};

use gyan_results::{Ending, Number};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::common::{
    MPIS, Mpi, OPENMPI, Profiled, call, comes_true, command, counts, keepers_of, known_live,
    known_of_each, libgyan, live_files, lives, profiles, pvar, report, reported_summary, run,
};
use crate::faults::inject;

/// Large enough that a snapshot is taken at each of the few calls.
pub(crate) const AT_ONCE: (&str, &str) = ("GYAN_BUDGET", "100%");

/// A program that runs until it is told to end, by a file `go`.
pub(crate) struct Waiting {
    launcher: Child,
    pub(crate) here: TempDir,
}

impl Waiting {
    /// Starts `tests/programs/waits.c` on two ranks, and waits until both wait.
    pub(super) fn start(mpi: Mpi, settings: &[(&str, &str)]) -> Waiting {
        let program = mpi.program("waits").display().to_string();
        let waiting = Waiting::launch(&mpi.mpirun(2), &[program], settings);
        for rank in 0..2 {
            assert!(comes_true(|| waiting.pid(rank).is_some()), "{mpi:?}: rank {rank} never waits");
        }
        waiting
    }

    /// Starts a program under a launcher.
    pub(crate) fn launch(
        mpirun: &[String],
        program: &[String],
        settings: &[(&str, &str)],
    ) -> Waiting {
        let here = TempDir::new().unwrap();
        let mut command = command(&[mpirun, program].concat());
        command.current_dir(&here).env("LD_PRELOAD", libgyan()).env("GYAN_OUTPUT", "profile");
        command.envs(settings.iter().copied()).env("GYAN_NOTICES", "warnings");
        let root = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
        command.envs(root.map(|name| (name, "1")));
        let launcher = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(here.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        Waiting { launcher, here }
    }

    /// The process id of a rank, which it writes when it begins to wait.
    fn pid(&self, rank: u32) -> Option<i32> {
        let text = fs::read_to_string(self.here.path().join(format!("waits.{rank}"))).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    }

    pub(crate) fn directory(&self) -> std::path::PathBuf {
        self.here.path().join("profile")
    }

    /// What the launcher and the ranks said on stderr.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.here.path().join("stderr")).unwrap()
    }

    /// Lets the program go on, which ends well.
    pub(crate) fn goes_on(&mut self) {
        fs::write(self.here.path().join("go"), "").unwrap();
        assert_eq!(self.end(), 0, "{}", self.stderr());
    }

    /// The same once these ranks are killed.
    fn killed(mut self, ranks: &[u32]) -> Waiting {
        self.kill(ranks);
        self.end();
        self
    }

    fn kill(&self, ranks: &[u32]) {
        // A launcher that sees the first die would end the others in its own way.
        let launcher = Pid::from_child(&self.launcher);
        kill_process(launcher, Signal::STOP).unwrap();
        for &rank in ranks {
            let pid = Pid::from_raw(self.pid(rank).unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        }
        kill_process(launcher, Signal::CONT).unwrap();
    }

    /// The launcher ends when its ranks have ended.
    pub(crate) fn end(&mut self) -> i32 {
        let mut status = None;
        let ended = comes_true(|| {
            status = self.launcher.try_wait().unwrap();
            status.is_some()
        });
        assert!(ended, "the launcher does not end");
        status.unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind.
        fs::write(self.here.path().join("go"), "").unwrap();
        if self.launcher.try_wait().unwrap().is_none() {
            // It ends its ranks, which may hang.
            let _ = kill_process(Pid::from_child(&self.launcher), Signal::TERM);
            comes_true(|| self.launcher.try_wait().unwrap().is_some());
            let _ = self.launcher.kill();
            let _ = self.launcher.wait();
            // Intel MPI's mpirun is a script, whose ranks go on without it.
            for rank in known_live(&self.directory(), &[]) {
                let is_its = fs::read_link(format!("/proc/{}/cwd", rank.pid))
                    .is_ok_and(|directory| directory == self.here.path());
                let pid = i32::try_from(rank.pid).ok().and_then(Pid::from_raw);
                if let Some(pid) = pid.filter(|_| is_its) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
        }
    }
}

/// Whether a report names ranks that were killed; by which signal, not every system tells.
pub(crate) fn says_killed(report: &str) -> bool {
    ["ended by SIG", "killed, or crashed, without MPI_Finalize: rank"]
        .iter()
        .any(|words| report.contains(words))
}

#[test]
fn a_report_of_a_run_that_goes_on_is_one_of_what_is_known_by_then() {
    for mpi in MPIS {
        let mut waiting = Waiting::start(mpi, &[AT_ONCE]);
        lives_while_it_runs(&waiting, 2);
        let text = report(waiting.directory(), &[]).stdout;
        let expected = "running: rank 0-1; numbers known until";
        assert!(text.contains(expected), "{mpi:?}\n{text}");
        waiting.goes_on();
        profiles(&waiting.directory(), 2);
        lives(&waiting.directory(), 0);
        assert!(!report(waiting.directory(), &[]).stdout.contains("known until"), "{mpi:?}");
    }
}

#[test]
fn a_rank_that_is_killed_and_those_that_go_with_it_are_known_until_then() {
    for mpi in MPIS {
        let waiting = Waiting::start(mpi, &[AT_ONCE]).killed(&[1]);
        // The launcher may end the other rank with a signal that it can report.
        known_of_each(&waiting.directory(), 2);
        let summary = reported_summary(waiting.directory());
        let ranks = &summary.ranks;
        assert_eq!((ranks.expected, ranks.reduced), (2, 2), "{mpi:?}");
        let killed = ranks.ended_badly.iter().find(|ending| ending.rank == 1).unwrap();
        assert_eq!(killed.how, Ending::Killed, "{mpi:?}");
        assert!(killed.elapsed_s > 0.0, "{mpi:?}");
        let sent = summary.calls.iter().find(|call| call.name == "MPI_Send").unwrap();
        assert_eq!(sent.count.max, Number::Integer(7), "{mpi:?}");
    }
}

/// Samples are known up to the last one.
#[test]
fn the_largest_sample_of_a_queue_outlives_the_process() {
    let waiting = Waiting::start(OPENMPI, &[AT_ONCE]).killed(&[0, 1]);
    let name = "pml_ob1_unexpected_msgq_length";
    let first = &lives(&waiting.directory(), 2)[0];
    let queue = pvar(first, name);
    // Rank 0 has received none of the 7 messages when it samples at its first receive.
    let largest = queue.samples.as_ref().unwrap().sum.unwrap().max;
    assert_eq!(largest, Number::Integer(7));
    assert_eq!(counts(first)["MPI_Recv"], 6, "the call of the last sample is not over");
    assert!(call(first, "MPI_Recv").time_s.is_some());
    let sites = first.sites.iter().flat_map(|sites| &sites.sites);
    let receives = sites.filter(|site| site.function == "MPI_Recv").map(|site| site.calls);
    assert_eq!(receives.sum::<u64>(), 6, "where they were called");
    // Also variables that are not sampled.
    assert!(first.pvars.iter().all(|pvar| pvar.end.is_some()), "{:?}", first.pvars);
}

#[test]
fn a_live_file_is_where_the_user_wants_it_or_nowhere() {
    let elsewhere = TempDir::new().unwrap();
    let place = elsewhere.path().join("lives").display().to_string();
    let mut waiting = Waiting::start(OPENMPI, &[AT_ONCE, ("GYAN_LIVE", &place)]);
    // Not a directory that is being made, which has another name until it is complete.
    let in_place = || {
        let all = fs::read_dir(&place).into_iter().flatten().map(|entry| entry.unwrap());
        all.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')).map(|e| e.path())
    };
    assert!(comes_true(|| in_place().next().is_some()));
    let directories: Vec<_> = in_place().collect();
    let [directory] = &directories[..] else { panic!("{directories:?}") };
    lives(directory, 2);
    assert!(report(directory, &[]).stdout.contains("known until"));
    waiting.goes_on();
    profiles(&waiting.directory(), 2);
    assert!(!directory.exists());

    let waiting = Waiting::start(OPENMPI, &[AT_ONCE, ("GYAN_LIVE", "off")]);
    assert!(!waiting.directory().exists());
}

#[test]
fn a_live_file_that_is_damaged_is_one_line_and_the_others_are_reported() {
    let waiting = Waiting::start(OPENMPI, &[AT_ONCE]).killed(&[0, 1]);
    let directory = waiting.directory();
    lives(&directory, 2);
    let [path] = &live_files(&directory)[..] else { panic!("not one live file") };
    let whole = fs::read(path).unwrap();
    let cut = whole.len() as u64 - 2;
    // Of the whole file, and of one rank.
    for (name, what, ranks, damage) in [
        (
            "of a newer version",
            "has schema gyan.live/2",
            None,
            &(|| write_at(path, 21, b"2")) as &dyn Fn(),
        ),
        ("with another index", "its first line is not what was written", None, &|| {
            write_at(path, 30, &[7; 8]);
        }),
        ("that is cut short", "what it holds of rank 1 is not what was written", Some(1), &|| {
            open(path).set_len(cut).unwrap();
        }),
    ] {
        fs::write(path, &whole).unwrap();
        let name = format!("a live file {name}");
        let fault = inject("files", &name, "a clear line, and the other ranks are reduced");
        damage();
        let outcome = report(&directory, &[]);
        assert_eq!(outcome.code, ranks.map_or(2, |_| 1), "{what}: {}", outcome.stderr);
        let name = path.file_name().unwrap().to_str().unwrap();
        let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains(name)).collect();
        assert!(lines.len() == 1 && lines[0].contains(what), "{}", outcome.stderr);
        if ranks.is_some() {
            assert!(outcome.stdout.contains("INCOMPLETE: 1 of 2 ranks"), "{}", outcome.stdout);
        }
        fault.survived();
    }
}

/// Only the keeper has the file, and it rewrites it.
#[test]
fn a_live_file_that_somebody_cuts_short_harms_nobody() {
    for mpi in MPIS {
        let mut waiting = Waiting::start(mpi, &[AT_ONCE]);
        let name = "a live file that is cut short while the program runs";
        let fault = inject("surroundings", name, "the application goes on, and it is whole again");
        lives_while_it_runs(&waiting, 2);
        open(&live_files(&waiting.directory())[0]).set_len(0).unwrap();
        lives_while_it_runs(&waiting, 2);
        waiting.goes_on();
        let profiles = profiles(&waiting.directory(), 2);
        assert_eq!(counts(&profiles[0])["MPI_Barrier"], 2, "{mpi:?}");
        fault.survived();
    }
}

/// Killing a keeper loses only what was known before: at its end a rank starts another.
#[test]
fn a_keeper_that_is_killed_costs_no_profile() {
    for mpi in MPIS {
        let mut waiting = Waiting::start(mpi, &[AT_ONCE]);
        let fault = inject("surroundings", "a keeper that is killed", "the profiles are written");
        let [keeper] = keepers_of(&waiting.directory())[..] else { panic!("not one keeper") };
        // SCHED_BATCH: as it wakes, a rank that runs keeps its processor. Field 41 (proc(5)); the name is the second.
        let stat = fs::read_to_string(format!("/proc/{keeper}/stat")).unwrap();
        let policy = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(41 - 3);
        assert_eq!(policy, Some("3"));
        kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
        waiting.goes_on();
        profiles(&waiting.directory(), 2);
        lives(&waiting.directory(), 0);
        fault.survived();
    }
}

/// Without a keeper, a rank that is killed leaves nothing, and the others write their profiles.
#[test]
fn without_a_keeper_ranks_write_their_profiles_themselves() {
    for mpi in MPIS {
        let settings = [("GYAN_KEEPER", "off"), AT_ONCE];
        Profiled::run(mpi, 2, &["endings", "finalize"], &settings).succeeded().profiles();
        let mut waiting = Waiting::start(mpi, &settings);
        assert!(keepers_of(&waiting.directory()).is_empty());
        waiting.kill(&[0, 1]);
        waiting.end();
        assert!(!waiting.directory().exists(), "{mpi:?}");
    }
}

fn lives_while_it_runs(waiting: &Waiting, expected: usize) {
    let known = || known_live(&waiting.directory(), &[]).len();
    assert!(comes_true(|| known() == expected), "{} ranks", known());
}

fn open(path: &Path) -> fs::File {
    OpenOptions::new().write(true).open(path).unwrap()
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) {
    open(path).write_all_at(bytes, at).unwrap();
}

/// Files of an earlier, killed job are replaced, and not mixed with new ones.
#[test]
fn a_run_after_one_that_was_killed_is_reported_alone() {
    let killed = Waiting::start(OPENMPI, &[AT_ONCE]).killed(&[0, 1]);
    let again = |words: &[&str]| {
        let mut command = command(&OPENMPI.launch(2, "endings", words));
        command.current_dir(&killed.here).env("LD_PRELOAD", libgyan());
        run(command.env("GYAN_OUTPUT", "profile").env(AT_ONCE.0, AT_ONCE.1))
    };
    let outcome = again(&["signal", "9"]);
    lives(&killed.directory(), 2);
    let text = report(killed.directory(), &[]).stdout;
    assert!(text.contains("endings signal 9: 2 ranks"), "{outcome:?}\n{text}");
    let outcome = again(&["finalize"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    profiles(&killed.directory(), 2);
    lives(&killed.directory(), 0);
    let text = report(killed.directory(), &[]).stdout;
    assert!(text.contains("endings finalize: 2 ranks") && !text.contains("known until"), "{text}");
}

/// `gyan run` reports what is left of a program that was killed.
#[test]
fn the_command_reports_a_program_that_was_killed() {
    let words = OPENMPI.launch(2, "endings", &["signal", "9"]);
    let run = Profiled::by_command(&[], 2, &words, &[AT_ONCE]);
    assert_eq!(run.outcome.code, 137);
    assert!(says_killed(&run.outcome.stderr));
    lives(&run.directory, 2);
}
