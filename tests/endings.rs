//! How programs end, and that they end with gyan as they do without: the same exit code, the same output,
//! but for one line of gyan's.

use std::path::Path;

use gyan_results::Ending;

use crate::common::{MPICH, Mpi, OPENMPI, Profiled, counts, lives, profiles};

const MPIS: [Mpi; 2] = [OPENMPI, MPICH];
const RANKS: usize = 2;

/// What a program that ends in one way leaves.
struct Way {
    arguments: &'static [&'static str],
    /// How the ranks end that leave a profile. Those that are killed leave their live files.
    how: (Ending, i32),
    /// The least of them that leave a profile. Launchers kill the others.
    ranks: usize,
}

const fn way(arguments: &'static [&'static str], how: (Ending, i32), ranks: usize) -> Way {
    Way { arguments, how, ranks }
}

const FINALIZE: (Ending, i32) = (Ending::Finalize, 0);
const KILLED: (Ending, i32) = (Ending::Killed, 0);
/// Enough that what is known is written down at each of the few calls.
const AT_ONCE: [(&str, &str); 1] = [("GYAN_BUDGET", "100%")];

const WAYS: [Way; 17] = [
    way(&["finalize"], FINALIZE, 2),
    way(&["abort", "3"], (Ending::Abort, 3), 1),
    way(&["exit", "4"], (Ending::Exit, 4), 1),
    way(&["exit", "0"], (Ending::Exit, 0), 1),
    way(&["return", "5"], (Ending::Exit, 5), 1),
    way(&["_exit", "6"], KILLED, 0),
    // abort(), a fault, and what schedulers send.
    way(&["signal", "6"], KILLED, 0),
    way(&["signal", "11"], KILLED, 0),
    way(&["signal", "15"], KILLED, 0),
    way(&["signal", "9"], KILLED, 0),
    way(&["handled", "15"], KILLED, 0),
    way(&["handled", "2"], KILLED, 0),
    way(&["atexit"], FINALIZE, 2),
    way(&["atexit-late"], FINALIZE, 2),
    way(&["twice"], FINALIZE, 2),
    way(&["fork"], FINALIZE, 2),
    way(&["fork-exec"], FINALIZE, 2),
];

/// What the program wrote, without the launcher's words, which have process numbers in them.
fn written(run: &Profiled) -> Vec<&str> {
    let lines = run.outcome.stdout.lines();
    let mut lines: Vec<&str> =
        lines.filter(|line| line.starts_with("rank ") || *line == "handled").collect();
    lines.sort_unstable();
    lines
}

/// Which rank ends first, and so what the launcher makes of it, may be chance: MPICH's gives the code of
/// the rank that left or that of the one which it killed then. Without gyan it has to come about too.
fn assert_ends_as_without(with: &Profiled, mpi: Mpi, file: &Path, arguments: &[&str]) {
    const TRIES: usize = 20;
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let without = Profiled::run_file(mpi, RANKS, file, arguments, &[]);
        let (code, lines) = (without.outcome.code, written(&without));
        if (code, &lines) == (with.outcome.code, &written(with)) {
            return;
        }
        seen.push(format!("{code} {lines:?}"));
    }
    let what = format!("{} {arguments:?}", mpi.name);
    let Profiled { outcome, .. } = with;
    panic!(
        "{what}: {} {:?}, without gyan {seen:?}\n{}",
        outcome.code,
        written(with),
        outcome.stderr
    );
}

#[test]
fn a_program_ends_as_without_gyan_and_what_is_known_then_is_kept() {
    for mpi in MPIS {
        let file = mpi.program("endings");
        for Way { arguments, how, ranks } in WAYS {
            let what = format!("{} {arguments:?}", mpi.name);
            let with = Profiled::preloaded(mpi, RANKS, &file, arguments, &AT_ONCE);
            assert_ends_as_without(&with, mpi, &file, arguments);
            assert!(written(&with).len() >= RANKS, "{what}");
            assert!(with.outcome.notices().len() <= 1, "{what} {}", with.outcome.stderr);
            let (profiles, lives) = (with.profiles(), lives(&with.directory));
            assert!(profiles.len() >= ranks, "{what}: {} profiles", profiles.len());
            assert_eq!(profiles.len() + lives.len(), RANKS, "{what}: nothing is lost");
            for profile in &profiles {
                let end = (profile.end.how, profile.end.code);
                assert_eq!(end, how, "{what} rank {}", profile.rank);
                assert_eq!(counts(profile)["MPI_Barrier"], 1, "{what} rank {}", profile.rank);
            }
            for profile in profiles.iter().chain(&lives) {
                // All that the program did before is there.
                let function = if profile.rank == 0 { "MPI_Recv" } else { "MPI_Send" };
                assert_eq!(counts(profile)[function], 5, "{what} rank {}", profile.rank);
            }
        }
    }
}

/// The library's own error message, and the code that comes of it.
#[test]
fn an_error_inside_mpi_ends_the_program_as_without_gyan() {
    for mpi in MPIS {
        let file = mpi.program("endings");
        let with = Profiled::preloaded(mpi, RANKS, &file, &["fatal"], &[]);
        assert_ends_as_without(&with, mpi, &file, &["fatal"]);
        assert_ne!(with.outcome.code, 0, "{mpi:?}");
        for profile in profiles(&with.directory) {
            assert_eq!(profile.end.how, Ending::Exit, "{mpi:?} rank {}", profile.rank);
        }
    }
}

#[test]
fn the_report_says_how_ranks_ended() {
    for (arguments, expected) in [
        (["abort", "3"], "ended by MPI_Abort with code 3: rank 1"),
        (["exit", "4"], "ended without MPI_Finalize, exit code 4: rank"),
        (["signal", "9"], "killed, or crashed, without MPI_Finalize: rank 0-1; known until"),
    ] {
        let run = Profiled::run(OPENMPI, RANKS, &["endings", arguments[0], arguments[1]], &[]);
        let report =
            crate::common::run(crate::common::gyan().arg("report").arg(&run.directory)).stdout;
        assert!(report.contains(expected), "{arguments:?}\n{report}");
    }
}
