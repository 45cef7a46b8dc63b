//! Programs that hang: `gyan now` says what every rank does, and why the job does not go on.

use std::collections::BTreeSet;
use std::fs;

use gyan_results::{Doing, HangCause, HangKind, JobNow};

use crate::common::{BED, MPICH, Mpi, OPENMPI, OPENMPI5, comes_true, gyan, root, run};
use crate::survival::live::Waiting;

const RANKS: usize = 4;

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
    // The line of a call in several threads is often missing.
    Case { what: "threads", kind: HangKind::Deadlock, ranks: &[0, 1], names: &[] },
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
fn program_of(mpi: Mpi) -> String {
    mpi.compiled("stuck", &["-g"]).display().to_string()
}

/// What `gyan now` finds out, once there is something to say.
fn looked(waiting: &Waiting) -> Option<JobNow> {
    let outcome = run(gyan().args(["now", "--format", "json"]).arg(waiting.directory()));
    (outcome.code == 0).then(|| serde_json::from_str(&outcome.stdout).unwrap())
}

fn cause_of(waiting: &Waiting, what: &str) -> HangCause {
    let mut cause = None;
    let found = comes_true(|| {
        cause = looked(waiting).and_then(|now| now.cause);
        cause.is_some()
    });
    assert!(found, "{what}: {:?}", looked(waiting));
    cause.unwrap()
}

/// The line of `stuck.c` that ends with this comment.
fn line_of(comment: &str) -> usize {
    let text = fs::read_to_string(root().join("tests/programs/stuck.c")).unwrap();
    let comment = format!("/* {comment} */");
    1 + text.lines().position(|line| line.ends_with(&comment)).unwrap()
}

fn says_why(mpi: Mpi) {
    for Case { what, kind, ranks, names } in CASES {
        // Intel MPI broadcasts through shared memory: with different roots, the program ends.
        if *what == "root" && mpi == BED[5] {
            continue;
        }
        let program = [program_of(mpi), (*what).to_owned()];
        let waiting = Waiting::launch(&mpi.mpirun(RANKS), &program, &[]);
        let cause = cause_of(&waiting, what);
        assert_eq!(cause.kind, *kind, "{mpi:?} {what}: {cause:?}");
        assert!(ranks.is_empty() || cause.ranks == *ranks, "{mpi:?} {what}: {cause:?}");
        for (function, comment) in *names {
            let expected = format!("{function} at stuck.c:{}", line_of(comment));
            let sentence = cause.sentence.replace(" with root 0", "").replace(" with root 1", "");
            assert!(sentence.contains(&expected), "{mpi:?} {what}: {expected}: {cause:?}");
        }
        // The report says it above everything else.
        let report = run(gyan().arg("report").arg(waiting.directory())).stdout;
        let flat = report.split_whitespace().collect::<Vec<&str>>().join(" ");
        let said = flat.find(&cause.sentence).unwrap_or_else(|| panic!("{what}\n{report}"));
        assert!(said < 400, "{what}\n{report}");
    }
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
fn why_a_job_hangs_is_said_with_mpich_4() {
    says_why(MPICH);
}

#[test]
fn why_a_job_hangs_is_said_with_mpich_5() {
    says_why(BED[3]);
}

#[test]
fn why_a_job_hangs_is_said_with_intel_mpi() {
    says_why(BED[5]);
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
    for mpi in [OPENMPI, OPENMPI5, MPICH] {
        let program = mpi.fortran_program("stuck.f90", &["-g"]).display().to_string();
        is_a_cycle(mpi, &[program], "MPI_Recv at stuck.f90:9 for a message with tag 5");
    }
}

#[test]
fn why_a_program_in_python_hangs_is_said() {
    for mpi in [OPENMPI, MPICH] {
        let script = root().join("tests/programs/stuck.py").display().to_string();
        let program = ["python-mpi4py".to_owned(), script];
        is_a_cycle(mpi, &program, "MPI_Mprobe at stuck.py:9 for a message with tag 5");
    }
}

#[test]
fn a_program_that_goes_on_is_not_said_to_hang() {
    for mpi in [OPENMPI, MPICH] {
        let program = [program_of(mpi), "healthy".to_owned()];
        let mut waiting = Waiting::launch(&mpi.mpirun(RANKS), &program, &[]);
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
        fs::write(waiting.here.path().join("go"), "").unwrap();
        assert_eq!(waiting.end(), 0, "{mpi:?}");
    }
}
