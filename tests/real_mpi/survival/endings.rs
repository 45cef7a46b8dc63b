//! Programs end with gyan as they do without: the same exit code and the same output, except for one line of
//! gyan's.

use std::path::Path;

use gyan_results::{Ending, RankProfile};

use crate::common::{
    MPICH, MPIS, Mpi, NOBODY_IS_LEFT, OPENMPI, Outcome, Profiled, counts, in_some_try, lives,
    profiles, ranks_that_left,
};
use crate::faults::inject;
use crate::survival::live::says_killed;

const RANKS: usize = 2;

/// From the table of faults.
const GROUP: &str = "endings";
const AS_WITHOUT: &str = "the exit code and the program's output are as without gyan";
const AND_COUNTED: &str = "as without gyan, and every call is counted";

/// What a program that ends in one way leaves.
struct Way {
    arguments: &'static [&'static str],
    /// How the ranks that leave a profile end. Those that are killed leave their live files.
    how: (Ending, i32),
    /// The least number that leave a profile. Launchers kill the others.
    ranks: usize,
}

const fn way(arguments: &'static [&'static str], how: (Ending, i32), ranks: usize) -> Way {
    Way { arguments, how, ranks }
}

const FINALIZE: (Ending, i32) = (Ending::Finalize, 0);
const KILLED: (Ending, i32) = (Ending::Killed, 0);
/// How long Open MPI 4 waits for the remaining ranks when one ends with a code other than 0, even if none is
/// left. The default is two seconds.
const A_SECOND_IS_LEFT: (&str, &str) = ("OMPI_MCA_odls_base_sigkill_timeout", "1");
/// Large enough that a snapshot is taken at each of the few calls.
const AT_ONCE: [(&str, &str); 1] = [("GYAN_BUDGET", "100%")];

const WAYS: [Way; 22] = [
    way(&["finalize"], FINALIZE, 2),
    way(&["abort", "3"], (Ending::Abort, 3), 1),
    way(&["handler", "3"], (Ending::Abort, 3), 1),
    way(&["exit", "4"], (Ending::Exit, 4), 1),
    way(&["exit", "0"], (Ending::Exit, 0), 1),
    way(&["return", "5"], (Ending::Exit, 5), 1),
    way(&["_exit", "6"], KILLED, 0),
    // abort(), a fault, and what schedulers send.
    way(&["signal", "6"], KILLED, 0),
    way(&["signal", "11"], KILLED, 0),
    way(&["signal", "15"], KILLED, 0),
    way(&["signal", "2"], KILLED, 0),
    way(&["signal", "9"], KILLED, 0),
    way(&["all", "9"], KILLED, 0),
    way(&["all", "15"], KILLED, 0),
    way(&["handled", "15"], KILLED, 0),
    way(&["handled", "2"], KILLED, 0),
    way(&["atexit"], FINALIZE, 2),
    way(&["atexit-late"], FINALIZE, 2),
    way(&["twice"], FINALIZE, 2),
    way(&["fork"], FINALIZE, 2),
    way(&["fork-exec"], FINALIZE, 2),
    way(&["reaper"], FINALIZE, 2),
];

/// How a run ended: its code, and the lines of the program without the launcher's, which contain process ids.
fn end_of(outcome: &Outcome) -> (i32, Vec<String>) {
    let own = ["rank ", "handled", "5 before", "cancelled", "not cancelled", "worked: ", "goes on"];
    let lines = outcome.stdout.lines();
    let lines = lines.filter(|line| own.iter().any(|start| line.starts_with(start)));
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.sort_unstable();
    (outcome.code, lines)
}

/// A run of `file` with gyan that ends as one without does. The launcher's exit code may be random: MPICH's returns
/// the code of the rank that left or of one that it then killed, and sometimes 1 for a rank that left without
/// `MPI_Finalize`. So each is repeated until an end occurs both ways.
fn as_without(
    mpi: Mpi,
    ranks: usize,
    file: &Path,
    arguments: &[&str],
    settings: &[(&str, &str)],
) -> Profiled {
    const TRIES: usize = 10;
    let (mut runs, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..TRIES {
        runs.push(Profiled::preloaded(mpi, ranks, file, arguments, settings));
        ends.push(end_of(&runs[0].without()));
        if let Some(at) = runs.iter().position(|run| ends.contains(&end_of(&run.outcome))) {
            return runs.swap_remove(at);
        }
    }
    panic!("without gyan {ends:?}");
}

/// The same on all ranks.
fn preloaded(mpi: Mpi, file: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> Profiled {
    as_without(mpi, RANKS, file, arguments, &[settings, &[A_SECOND_IS_LEFT]].concat())
}

/// The same on one rank.
fn alone(mpi: Mpi, file: &Path, arguments: &[&str]) -> Profiled {
    as_without(mpi, 1, file, arguments, &[NOBODY_IS_LEFT])
}

/// Each rank leaves a profile, at least `least` of them do, or a live file: both hold everything that the
/// program did before. Returns the profiles.
fn profiles_of_what_is_left(run: &Profiled, least: usize, what: &str) -> Vec<RankProfile> {
    let written = ranks_that_left(&run.directory).len();
    assert!((least..=RANKS).contains(&written), "{what}: {written} profiles");
    let profiles = profiles(&run.directory, written);
    for known in profiles.iter().chain(&lives(&run.directory, RANKS - written)) {
        let function = if known.rank == 0 { "MPI_Recv" } else { "MPI_Send" };
        assert_eq!(counts(known)[function], 5, "{what} rank {}", known.rank);
    }
    profiles
}

#[test]
fn a_program_ends_as_without_gyan_and_what_is_known_then_is_kept() {
    for mpi in MPIS {
        let file = mpi.program("endings");
        for Way { arguments, how, ranks } in WAYS {
            let what = format!("{} {arguments:?}", mpi.name);
            let fault = inject(GROUP, &format!("`{}`", arguments.join(" ")), AS_WITHOUT);
            // A rank whose first record took long, as others had the processor, has no budget for one at its last call.
            let is_as_without = in_some_try(3, || {
                let with = preloaded(mpi, &file, arguments, &AT_ONCE);
                assert!(end_of(&with.outcome).1.len() >= RANKS, "{what}");
                assert!(with.outcome.notices().len() <= 1, "{what} {}", with.outcome.stderr);
                for profile in &profiles_of_what_is_left(&with, ranks, &what) {
                    let end = (profile.end.how, profile.end.code);
                    assert_eq!(end, how, "{what} rank {}", profile.rank);
                    assert_eq!(counts(profile)["MPI_Barrier"], 1, "{what} rank {}", profile.rank);
                }
            });
            assert!(is_as_without.is_some(), "{what}");
            fault.survived();
        }
    }
}

/// The library's own error message, and the resulting code.
#[test]
fn an_error_inside_mpi_ends_the_program_as_without_gyan() {
    for mpi in MPIS {
        let fault = inject(GROUP, "`fatal`", AS_WITHOUT);
        let file = mpi.program("endings");
        let with = preloaded(mpi, &file, &["fatal"], &AT_ONCE);
        assert_ne!(with.outcome.code, 0, "{mpi:?}");
        for profile in profiles_of_what_is_left(&with, 0, &format!("{mpi:?}")) {
            assert_eq!(profile.end.how, Ending::Exit, "{mpi:?} rank {}", profile.rank);
        }
        fault.survived();
    }
}

#[test]
fn the_report_says_how_ranks_ended() {
    for (arguments, expected) in [
        (["abort", "3"], "ended by MPI_Abort with code 3: rank 1"),
        (["exit", "4"], "ended without MPI_Finalize, exit code 4: rank"),
        (["signal", "9"], "known until"),
    ] {
        let run = Profiled::run(OPENMPI, RANKS, &["endings", arguments[0], arguments[1]], &[]);
        let report = crate::common::report(&run.directory, &[]).stdout;
        assert!(report.contains(expected), "{arguments:?}\n{report}");
        assert!(arguments[0] != "signal" || says_killed(&report), "{report}");
    }
}

/// What a launcher does with a job that takes too long, and a program of which each rank is killed.
#[test]
fn a_rank_that_hangs_is_killed_as_without_gyan() {
    let seconds = "2";
    for mpi in MPIS {
        let fault =
            inject(GROUP, "`hang`, killed by the launcher and by `timeout -s KILL`", AS_WITHOUT);
        let file = mpi.program("endings");
        let limit = [("MPIEXEC_TIMEOUT", seconds)];
        let with = preloaded(mpi, &file, &["hang"], &limit);
        assert_ne!(with.outcome.code, 0, "{mpi:?}");
        let file = file.display().to_string();
        let words = ["-s", "KILL", seconds, &file, "hang"];
        let timeout = Path::new("timeout");
        let with = preloaded(mpi, timeout, &words, &[]);
        assert_ne!(with.outcome.code, 0, "{mpi:?}");
        fault.survived();
    }
}

/// C++ exceptions that an error handler throws through MPI and gyan.
#[test]
fn calls_that_are_thrown_out_of_and_those_after_them_are_counted() {
    for mpi in MPIS {
        let fault = inject(GROUP, "exceptions of C++ through MPI and gyan", AND_COUNTED);
        let file = mpi.cxx_program("thrown");
        let with = preloaded(mpi, &file, &[], &[]);
        assert_eq!(with.outcome.stdout.matches("caught 20").count(), RANKS, "{mpi:?}");
        for profile in with.profiles() {
            let counts = counts(&profile);
            assert_eq!((counts["MPI_Send"], counts["MPI_Comm_size"]), (20, 20), "{mpi:?}");
        }
        fault.survived();
    }
}

#[test]
fn calls_that_are_left_by_longjmp_and_those_after_them_are_counted() {
    for mpi in MPIS {
        for (level, calls) in [("0", 20), ("3", 40)] {
            // MPICH's lock stays held then, which it finds at the second error.
            let mpi_ends_it = mpi == MPICH && level == "3";
            let (name, what) = if mpi_ends_it {
                ("`longjmp` out of calls where MPI itself ends the program for it", AS_WITHOUT)
            } else {
                ("`longjmp` out of calls", AND_COUNTED)
            };
            let fault = inject(GROUP, name, what);
            let file = mpi.program("jumps");
            let arguments = [level, "0"];
            let with = preloaded(mpi, &file, &arguments, &[]);
            if mpi_ends_it {
                assert_eq!(with.outcome.code, 1, "no longer so: {}", with.outcome.stderr);
                fault.survived();
                continue;
            }
            assert_eq!(with.outcome.code, 0, "{mpi:?}: {}", with.outcome.stderr);
            for profile in with.profiles() {
                let counts = counts(&profile);
                let found = ["MPI_Send", "MPI_Comm_size", "MPI_Barrier"].map(|name| counts[name]);
                assert_eq!(found, [calls, calls, 2], "{mpi:?} level {level}");
                assert_eq!(profile.warnings, [""; 0], "{mpi:?} level {level}");
            }
            fault.survived();
        }
    }
}

/// When MPI makes many calls itself, gyan rarely checks whether one of them was left.
#[test]
fn calls_after_a_longjmp_that_may_be_missing_are_reported() {
    for mpi in MPIS {
        let fault = inject(
            GROUP,
            "`longjmp` after many calls that MPI made itself",
            "the profile says how many calls may be missing",
        );
        let with = Profiled::run(mpi, RANKS, &["jumps", "0", "500"], &[]).succeeded();
        for profile in with.profiles() {
            let [warning] = &profile.warnings[..] else { panic!("{:?}", profile.warnings) };
            let (left, rest) =
                warning.split_once(" calls of MPI were left by longjmp; of the ").unwrap();
            let doubtful: u64 = rest.split_once(' ').unwrap().0.parse().unwrap();
            assert_eq!(left, "1");
            let counts = counts(&profile);
            let of = |name| counts.get(name).copied().unwrap_or(0);
            // Twenty each, and the barrier at the end.
            let counted = of("MPI_Send") + of("MPI_Comm_size") + of("MPI_Barrier") - 1;
            assert!(counted < 41 && counted + doubtful >= 41, "{counted}, {warning}");
        }
        fault.survived();
    }
}

#[test]
fn a_thread_is_cancelled_in_a_receive_as_without_gyan() {
    for mpi in MPIS {
        let file = mpi.program("cancelled");
        for kind in ["deferred", "asynchronous"] {
            let what = format!("`pthread_cancel` in a receive, {kind}");
            let fault = inject(GROUP, &what, AS_WITHOUT);
            let with = alone(mpi, &file, &[kind]);
            let profile = &with.profiles()[0];
            assert_eq!(profile.end.how, Ending::Exit);
            assert!(counts(profile)["MPI_Recv"] >= 5, "{mpi:?} {kind}");
            assert_eq!(counts(profile)["MPI_Isend"], 5, "{mpi:?} {kind}");
            fault.survived();
        }
    }
}

#[test]
fn a_thread_that_is_to_be_cancelled_is_not_while_gyan_writes() {
    for mpi in MPIS {
        let ways: [(&[&str], _, _, _); 2] = [
            (&["cancelled_in_gyan"], 0, "returned 1, cancelled\n", Ending::Finalize),
            (&["cancelled_in_gyan", "exit"], 3, "", Ending::Exit),
        ];
        for (program, code, stdout, how) in ways {
            let fault = inject(GROUP, "`pthread_cancel` before gyan writes a file", AS_WITHOUT);
            let run = Profiled::run(mpi, 1, program, &[]);
            assert_eq!(run.outcome.code, code, "{mpi:?}: {}", run.outcome.stderr);
            assert!(run.outcome.stdout.starts_with(stdout), "{mpi:?}: {}", run.outcome.stdout);
            let [profile] = &run.profiles()[..] else { panic!("{mpi:?}: no profile") };
            assert_eq!(profile.end.how, how);
            fault.survived();
        }
    }
}

/// A part of a program with its MPI is unloaded. gyan keeps the MPI loaded.
#[test]
fn a_program_goes_on_when_its_mpi_is_unloaded() {
    for mpi in MPIS {
        let part = mpi.compiled("unloading", &["-shared", "-fPIC", "-DPART"]);
        let file = mpi.compiled("unloading", &["-Wl,--as-needed"]);
        for (finalize, how) in [("1", Ending::Finalize), ("0", Ending::Exit)] {
            let fault = inject(GROUP, "`dlclose` of the MPI", AS_WITHOUT);
            let arguments = [&part.display().to_string(), "1", finalize];
            let with = alone(mpi, &file, &arguments);
            assert_eq!(end_of(&with.outcome).1, ["goes on", "worked: 0"], "{mpi:?}");
            let profile = &with.profiles()[0];
            assert_eq!((profile.end.how, counts(profile)["MPI_Allreduce"]), (how, 1), "{mpi:?}");
            fault.survived();
        }
    }
}
