//! Programs that hang: `gyan now` says what every rank does, and why the job does not go on.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use gyan_results::{Doing, HangCause, HangKind, JobNow};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::common::{
    INTELMPI, MPICH, MPICH5, MPIS, Mpi, OPENMPI, OPENMPI5, all_mpis, comes_true, gyan, in_pairs,
    line_of, profiles, root, run,
};
use crate::matrix;
use crate::survival::live::Waiting;

pub(crate) const RANKS: usize = 4;

/// A case of `tests/programs/stuck.c`.
struct Case {
    what: &'static str,
    kind: HangKind,
    /// The ranks that are named as the cause; none where that depends on how far the library lets them go.
    ranks: &'static [u32],
    /// What the sentence names: a function, and the comment at the line that calls it.
    names: &'static [(&'static str, &'static str)],
}

const RECEIVE: (&str, &str) = ("MPI_Recv", "receive");
const BARRIER: (&str, &str) = ("MPI_Barrier", "barrier");

const CASES: &[Case] = &[
    Case { what: "cycle", kind: HangKind::Deadlock, ranks: &[0, 1], names: &[RECEIVE] },
    Case { what: "barrier", kind: HangKind::Deadlock, ranks: &[1, 3], names: &[RECEIVE, BARRIER] },
    Case { what: "threads", kind: HangKind::Deadlock, ranks: &[0, 1], names: &[RECEIVE] },
    Case {
        what: "requests",
        kind: HangKind::Deadlock,
        ranks: &[0, 1],
        names: &[("MPI_Wait", "wait")],
    },
    Case { what: "tag", kind: HangKind::Deadlock, ranks: &[1, 3], names: &[RECEIVE] },
    Case {
        what: "collectives",
        kind: HangKind::Mismatch,
        ranks: &[2],
        names: &[("MPI_Allreduce", "allreduce"), BARRIER],
    },
    Case { what: "root", kind: HangKind::Mismatch, ranks: &[], names: &[("MPI_Bcast", "bcast")] },
    Case { what: "any", kind: HangKind::Deadlock, ranks: &[0, 1], names: &[RECEIVE] },
    Case {
        what: "waitall",
        kind: HangKind::Deadlock,
        ranks: &[0, 2],
        names: &[("MPI_Waitall", "waitall"), RECEIVE],
    },
    Case {
        what: "split",
        kind: HangKind::Deadlock,
        ranks: &[0, 1],
        names: &[("MPI_Barrier", "half"), RECEIVE],
    },
    Case { what: "finalize", kind: HangKind::Finalized, ranks: &[3], names: &[BARRIER] },
    Case { what: "straggler", kind: HangKind::Straggler, ranks: &[3], names: &[] },
    Case { what: "sender", kind: HangKind::Straggler, ranks: &[3], names: &[] },
];

/// With the lines of its calls.
pub(crate) fn program_of(mpi: Mpi) -> String {
    mpi.compiled("stuck", &["-g"]).display().to_string()
}

/// A case of it that has been started.
fn launched(mpi: Mpi, what: &str) -> Waiting {
    Waiting::launch(&mpi.mpirun(RANKS), &[program_of(mpi), what.to_owned()], &[])
}

/// What `gyan now` finds out, once there is something to say.
pub(crate) fn looked(waiting: &Waiting) -> Option<JobNow> {
    let outcome = run(gyan().args(["now", "--format", "json"]).arg(waiting.directory()));
    let now = (outcome.code == 0).then(|| serde_json::from_str::<JobNow>(&outcome.stdout).unwrap());
    // Before a rank has left MPI_Init, their stacks are all that is known.
    let is_seen = |now: &JobNow| now.ranks.iter().any(|of| !matches!(of.doing, Doing::NotSeen(_)));
    now.filter(is_seen)
}

fn cause_of(waiting: &Waiting, what: &str) -> HangCause {
    let mut cause = None;
    let mut is_said = || {
        cause = looked(waiting).and_then(|now| now.cause);
        cause.is_some()
    };
    // Where ranks leave no processor free, the keeper looks seldom.
    let found = (0..3).any(|_| comes_true(&mut is_said));
    assert!(found, "{what}: {:?}", looked(waiting));
    cause.unwrap()
}

/// All cases with one MPI. How far others let ranks go is another matter only where the library does more than to wait.
fn says_why(mpi: Mpi) {
    let of_library = ["collectives", "root", "cycle", "waitall", "finalize", "sender"];
    // MPICH 5 lets ranks go as far as MPICH 4 does.
    let of_library = &of_library[..if mpi == MPICH5 && !all_mpis() { 2 } else { 6 }];
    let is_whole = mpi == OPENMPI || (MPIS.contains(&mpi) && all_mpis());
    let is_one = |case: &&Case| is_whole || of_library.contains(&case.what);
    CASES.iter().filter(is_one).for_each(|case| says_why_of(mpi, case));
}

fn says_why_of(mpi: Mpi, Case { what, kind, ranks, names }: &Case) {
    // Intel MPI broadcasts through shared memory: with different roots, the program ends.
    if *what == "root" && mpi == INTELMPI {
        return;
    }
    let waiting = launched(mpi, what);
    let cause = cause_of(&waiting, what);
    // In shared memory, Intel MPI may take the one operation for the other: then only the rank is left that has one more.
    if *what == "collectives" && mpi == INTELMPI && cause.kind == HangKind::Finalized {
        assert_eq!(cause.ranks, [0, 1, 3], "{cause:?}");
        return;
    }
    assert_eq!(cause.kind, *kind, "{mpi:?} {what}: {cause:?}");
    assert!(ranks.is_empty() || cause.ranks == *ranks, "{mpi:?} {what}: {cause:?}");
    for (function, comment) in *names {
        let expected = format!("{function} at stuck.c:{}", line_of("stuck.c", comment));
        let sentence = cause.sentence.replace(" with root 0", "").replace(" with root 1", "");
        assert!(sentence.contains(&expected), "{mpi:?} {what}: {expected}: {cause:?}");
    }
    // The report says it above everything else; ranks may have been seen since that were not before.
    is_said_first(&waiting.directory(), 400, || {
        let cause = looked(&waiting).and_then(|now| now.cause);
        cause.filter(|of| of.kind == *kind).map(|of| of.sentence)
    });
}

/// The report comes to say it within its first characters; ranks that are being ended may still be seen before.
fn is_said_first(directory: &Path, within: usize, sentence: impl Fn() -> Option<String>) {
    let mut report = String::new();
    let is_said = comes_true(|| {
        report = crate::common::report(directory, &[]).stdout;
        let flat = report.split_whitespace().collect::<Vec<&str>>().join(" ");
        sentence().and_then(|said| flat.find(&said)).is_some_and(|at| at < within)
    });
    assert!(is_said, "{:?}\n{report}", sentence());
}

#[test]
fn why_a_job_hangs_is_said_with_open_mpi_4() {
    says_why(OPENMPI);
}

#[test]
fn why_a_job_hangs_is_said_with_open_mpi_5() {
    says_why(OPENMPI5);
}

#[test]
#[ignore = "four ranks that spin fill the machine: scripts/test runs it alone"]
fn why_a_job_hangs_is_said_with_mpich_4() {
    says_why(MPICH);
}

#[test]
#[ignore = "four ranks that spin fill the machine: scripts/test runs it alone"]
fn why_a_job_hangs_is_said_with_mpich_5() {
    says_why(MPICH5);
}

#[test]
#[ignore = "four ranks that spin fill the machine: scripts/test runs it alone"]
fn why_a_job_hangs_is_said_with_intel_mpi() {
    says_why(INTELMPI);
}

/// Other libraries end the program with an error, or go on.
#[test]
fn different_amounts_in_a_collective_operation_are_said() {
    let what = "amounts";
    for mpi in [OPENMPI, OPENMPI5] {
        let waiting = launched(mpi, what);
        let cause = cause_of(&waiting, what);
        assert_eq!((cause.kind, &cause.ranks[..]), (HangKind::Amounts, &[2][..]), "{cause:?}");
        let line = line_of("stuck.c", what);
        let expected = format!(
            "Different amounts in MPI_Bcast on MPI_COMM_WORLD: rank 2 has 524,288 B at stuck.c:{line}; \
             ranks 1, 3 have 1,048,576 B at stuck.c:{line}"
        );
        assert_eq!(cause.sentence, expected, "{mpi:?}");
    }
}

/// What a run that was ended left of it.
fn stall_in(here: &TempDir) -> JobNow {
    serde_json::from_slice(&fs::read(here.path().join("out/stall.json")).unwrap()).unwrap()
}

/// `gyan run --stall 5s --stall-kill` of the program, in a directory with its file `go`.
fn stalls(mpi: Mpi, here: &TempDir, what: &str) -> Command {
    let mut command = gyan();
    command.args(["run", "--stall", "5s", "--stall-kill", "--output", "out", "--"]);
    command.args(mpi.mpirun(RANKS)).args([program_of(mpi), what.to_owned()]);
    command.current_dir(here);
    command
}

#[test]
fn a_job_that_stands_still_is_ended_if_that_is_asked_for() {
    let cases = [(OPENMPI, "barrier"), (MPICH, "cycle"), (OPENMPI, "deaf"), (MPICH, "deaf")];
    in_pairs(&cases, |(mpi, what)| {
        let here = TempDir::new().unwrap();
        let outcome = run(&mut stalls(*mpi, &here, what));
        assert_eq!(outcome.code, 124, "{mpi:?} {what}: {}", outcome.stderr);
        let said = outcome.stderr.matches("the job has not gone on for").count();
        assert_eq!(said, 1, "{mpi:?} {what}: {}", outcome.stderr);
        let stall = stall_in(&here);
        let cause = stall.cause.unwrap();
        assert_eq!(cause.kind, HangKind::Deadlock, "{mpi:?} {what}");
        assert!(outcome.stderr.contains(&cause.sentence), "{mpi:?} {what}: {}", outcome.stderr);
        is_said_first(&here.path().join("out"), 200, || Some("Deadlock: rank ".into()));
    });
}

/// Started with what it says on stderr in a file.
fn spawned(command: &mut Command, stderr: &Path) -> Child {
    let root = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    command.envs(root.map(|name| (name, "1"))).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(stderr).unwrap()).spawn().unwrap()
}

#[test]
fn of_a_job_that_cannot_be_seen_that_is_said_once_and_nothing_is_ended() {
    let here = TempDir::new().unwrap();
    let stderr = here.path().join("stderr");
    let mut command = stalls(OPENMPI, &here, "cycle");
    let mut child = spawned(command.env("GYAN_KEEPER", "off"), &stderr);
    let said =
        "--stall cannot tell whether the job goes on: no rank is known to have left MPI_Init";
    let is_said = comes_true(|| fs::read_to_string(&stderr).unwrap().contains(said));
    let ended = child.try_wait().unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(comes_true(|| child.try_wait().unwrap().is_some()));
    let stderr = fs::read_to_string(&stderr).unwrap();
    assert!(is_said && ended.is_none(), "{stderr}");
    assert_eq!(stderr.matches(said).count(), 1, "{stderr}");
}

/// `gyan run` with these options of `tests/programs/starting.c`, in a directory for its file `go`; and what its ranks do until then.
fn starts(mpi: Mpi, here: &TempDir, options: &[&str]) -> (Command, String) {
    let mut command = gyan();
    command.arg("run").args(options).args(["--no-report", "--output", "out", "--"]);
    command.args(mpi.mpirun(RANKS)).arg(mpi.compiled("starting", &["-g"]));
    command.current_dir(here);
    let [init, reads] = ["init", "reads"].map(|comment| line_of("starting.c", comment));
    let doing = format!(
        "ranks 0-1, 3 are in MPI_Init at starting.c:{init}; rank 2 has not called MPI_Init: it is in read_input at \
         starting.c:{reads}"
    );
    (command, doing)
}

#[test]
#[ignore = "four ranks that spin fill the machine: scripts/test runs it alone"]
fn a_job_that_does_not_leave_mpi_init_is_ended_and_it_is_said_who_keeps_it_there() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        let (mut command, doing) = starts(mpi, &here, &["--stall", "5s", "--stall-kill"]);
        let outcome = run(&mut command);
        assert_eq!(outcome.code, 124, "{mpi:?}: {}", outcome.stderr);
        let is_said = |said: &str| outcome.stderr.matches(said).count() == 1;
        assert!(is_said("no rank is known to have left MPI_Init"), "{mpi:?}: {}", outcome.stderr);
        let why = format!("s: no rank has left MPI_Init; {doing}\n");
        assert!(is_said(&why), "{mpi:?}: {}", outcome.stderr);
        let stall = stall_in(&here);
        let groups: Vec<&[u32]> = stall.groups.iter().map(|group| &group.ranks[..]).collect();
        assert_eq!((stall.size, groups), (4, vec![&[0, 1, 3][..], &[2]]), "{mpi:?}");
    }
}

#[test]
fn what_ranks_do_before_they_have_left_mpi_init_is_only_said_if_that_takes_long() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        let stderr = here.path().join("stderr");
        let (mut command, doing) = starts(mpi, &here, &["--stall", "10m"]);
        let mut child = spawned(&mut command, &stderr);
        let mut now = None;
        let is_seen = comes_true(|| {
            let mut command = gyan();
            let outcome = run(command.args(["now", "out", "--format", "json"]).current_dir(&here));
            now = (outcome.code == 0).then(|| serde_json::from_str::<JobNow>(&outcome.stdout));
            let Some(Ok(now)) = &now else { return false };
            let groups: Vec<&str> = now.groups.iter().map(|group| &*group.sentence).collect();
            groups.join("; ") == doing
        });
        fs::write(here.path().join("go"), "").unwrap();
        let mut status = None;
        assert!(comes_true(|| {
            status = child.try_wait().unwrap();
            status.is_some()
        }));
        let stderr = fs::read_to_string(&stderr).unwrap();
        assert!(is_seen, "{mpi:?}: {doing}: {now:?}\n{stderr}");
        assert_eq!(status.unwrap().code(), Some(0), "{mpi:?}: {stderr}");
        assert!(!stderr.contains("MPI_Init"), "{mpi:?}: {stderr}");
        profiles(&here.path().join("out"), RANKS);
    }
}

/// Ranks 0 and 1 wait for each other at that line.
fn is_a_cycle(mpi: Mpi, program: &[String], expected: &str) {
    let waiting = Waiting::launch(&mpi.mpirun(3), program, &[]);
    let HangCause { kind, ranks, sentence } = cause_of(&waiting, &program.join(" "));
    assert_eq!((kind, ranks), (HangKind::Deadlock, vec![0, 1]), "{mpi:?}: {sentence}");
    assert_eq!(sentence.matches(expected).count(), 2, "{mpi:?}: {sentence}");
}

#[test]
fn why_a_program_in_fortran_hangs_is_said() {
    for mpi in MPIS {
        let program = mpi.fortran_program("stuck.f90", &["-g"]).display().to_string();
        is_a_cycle(mpi, &[program], "MPI_Recv at stuck.f90:9 for a message with tag 5");
    }
}

#[test]
fn why_a_program_in_python_hangs_is_said() {
    for mpi in matrix::two_with_python() {
        let script = root().join("tests/programs/stuck.py").display().to_string();
        let program = ["python-mpi4py".to_owned(), script];
        is_a_cycle(mpi, &program, "MPI_Mprobe at stuck.py:9 for a message with tag 5");
    }
}

#[test]
fn a_program_that_goes_on_is_not_said_to_hang() {
    for mpi in MPIS {
        let mut waiting = launched(mpi, "healthy");
        assert!(comes_true(|| looked(&waiting).is_some_and(|now| now.ranks.len() == RANKS)));
        let looks = (0..20).filter_map(|_| looked(&waiting));
        let doing: BTreeSet<bool> = looks
            .flat_map(|now| {
                assert_eq!(now.cause, None, "{mpi:?}");
                now.ranks
            })
            .map(|rank| rank.doing == Doing::Moves)
            .collect();
        assert!(!doing.is_empty(), "{mpi:?}");
        waiting.goes_on();
    }
}
