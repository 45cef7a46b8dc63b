//! Waiting in synchronising collectives is what a program sees itself that writes down when each rank called and
//! returned: however busy the machine is.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use gyan_results::{CommunicatorWaiting, RankProfile, Reduction, Summary, Waiting, rank_file_name};

use crate::common::{
    BED, MPICH, MPIS, Mpi, OPENMPI, Outcome, Profiled, gyan, lives, root, run, truth,
};
use crate::matrix::{self, Column};

const RANKS: usize = 4;
/// What lies between the clock that a program reads and gyan's is a few hundred instructions, on each rank.
const BETWEEN_NS: f64 = 50_000.0;
/// How exactly durations are written down.
const ROUNDING: f64 = 0.01;

/// When a rank called and when it returned, in ns.
type Times = Vec<(f64, f64)>;
/// The calls of all ranks, by function and communicator.
type Calls = BTreeMap<(String, String), BTreeMap<u32, Times>>;

fn calls(directory: &Path, ranks: usize) -> Calls {
    let mut calls = Calls::new();
    for rank in 0..u32::try_from(ranks).unwrap() {
        for words in truth(directory, rank) {
            let [function, communicator, begun, ended] = words.as_slice() else {
                panic!("{words:?}")
            };
            let of = calls.entry((function.clone(), communicator.clone())).or_default();
            let number = |word: &String| word.parse::<f64>().unwrap();
            of.entry(rank).or_default().push((number(begun), number(ended)));
        }
    }
    calls
}

/// What the program saw of one function on one communicator, in seconds.
#[derive(Debug, Default)]
struct Seen {
    calls: u64,
    time: f64,
    /// How long ranks were there before the last one came.
    waiting: f64,
    /// How much longer that one took to return, which it had no part in when it was the machine.
    late_return: f64,
    /// By rank: what of that was before it came last.
    last: BTreeMap<u32, f64>,
}

fn seen(of: &BTreeMap<u32, Times>) -> Seen {
    let mut seen = Seen::default();
    let number = of.values().next().unwrap().len();
    assert!(of.values().all(|times| times.len() == number));
    for call in 0..number {
        let at = |times: &Times| times[call];
        let came = |(_, times): &(&u32, &Times)| at(times).0;
        let (last, times) = of.iter().max_by(|a, b| came(a).total_cmp(&came(b))).unwrap();
        let (came, returned) = at(times);
        let mut waiting = 0.0;
        for (begun, ended) in of.values().map(at) {
            seen.calls += 1;
            seen.time += (ended - begun) * 1e-9;
            waiting += (came - begun) * 1e-9;
            seen.late_return += (returned - ended).max(0.0) * 1e-9;
        }
        seen.waiting += waiting;
        *seen.last.entry(*last).or_default() += waiting;
    }
    seen
}

fn summary(profiles: &[RankProfile]) -> Summary {
    let mut reduction = Reduction::default();
    for profile in profiles {
        reduction.add(&rank_file_name(profile.rank), profile);
    }
    reduction.finish().unwrap()
}

/// What the summary has, by function and communicator.
fn found(summary: &Summary) -> BTreeMap<(String, String), &CommunicatorWaiting> {
    let mut found = BTreeMap::new();
    for of in &summary.waiting {
        let total: f64 = of.communicators.iter().map(|on| on.waiting_s).sum();
        assert!((total - of.waiting_s).abs() <= 1e-9 * total, "{of:?}");
        assert!(of.waiting_s >= 0.0 && of.time_s >= of.waiting_s, "{of:?}");
        for on in &of.communicators {
            assert!(on.waiting_s >= 0.0 && on.time_s >= on.waiting_s, "{on:?}");
            // mpi4py calls the function for large counts where there is one.
            let function = of.function.trim_end_matches("_c").to_owned();
            let before = found.insert((function, on.communicator.clone()), on);
            assert!(before.is_none(), "{on:?}");
        }
    }
    found
}

/// Whether what gyan found is what the program saw: also of what ranks did whom the machine left no time.
fn is_as_seen(what: &str, profiles: &[RankProfile], calls: &Calls) {
    let summary = summary(profiles);
    let found = found(&summary);
    assert_eq!(found.keys().collect::<Vec<_>>(), calls.keys().collect::<Vec<_>>(), "{what}");
    for (key, on) in found {
        let seen = seen(&calls[&key]);
        let what = format!("{what} {key:?}\n{seen:?}\n{on:?}");
        assert_eq!((on.calls, on.waiting_error_s), (seen.calls, Some(0.0)), "{what}");
        let slack = seen.calls as f64 * BETWEEN_NS * 1e-9;
        // Inside what the program measures, call by call.
        assert!(on.time_s <= seen.time * (1.0 + ROUNDING), "{what}");
        assert!(on.time_s >= seen.time * (1.0 - ROUNDING) - slack, "{what}");
        let lower = 0.95 * seen.waiting - seen.late_return - slack;
        assert!(on.waiting_s >= lower, "{what}");
        // The rank that others saw coming last is the one that they waited for.
        let (last, most) = seen.last.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        if most - seen.late_return - slack > 0.6 * on.waiting_s {
            assert_eq!(on.last[0].rank, *last, "{what}");
        }
    }
}

fn check(mpi: Mpi, run: &Profiled, what: impl Debug) -> Vec<RankProfile> {
    let what = format!("{mpi:?} {what:?}");
    assert_eq!(run.outcome.code, 0, "{what} {}", run.outcome.stderr);
    let profiles = run.profiles();
    is_as_seen(&what, &profiles, &calls(run.place(), RANKS));
    profiles
}

#[test]
fn others_wait_for_the_rank_that_comes_late_as_long_as_they_see_it_themselves() {
    for mpi in BED {
        let profiles = check(mpi, &Profiled::run(mpi, RANKS, &["waiting"], &[]), "in C");
        let summary = summary(&profiles);
        // Neither groups of two sides nor one rank wait for each other.
        let barrier = summary.waiting.iter().find(|of| of.function == "MPI_Barrier").unwrap();
        assert_eq!(barrier.calls_not_compared, 2 * 30 * RANKS as u64, "{mpi:?}");
    }
}

#[test]
fn fortran_and_python_are_seen_too() {
    for (column, binding) in [(Column::MpifH, &["-DMPIF_H"][..]), (Column::UseMpiF08, &[])] {
        for mpi in matrix::with(column) {
            let program = mpi.fortran_program("waiting.F90", binding);
            check(mpi, &Profiled::preloaded(mpi, RANKS, &program, &[], &[]), column);
        }
    }
    let program = root().join("tests/programs/waiting.py").display().to_string();
    for mpi in matrix::with(Column::Mpi4py) {
        let python = Path::new("python-mpi4py");
        check(mpi, &Profiled::preloaded(mpi, RANKS, python, &[&program], &[]), "mpi4py");
    }
}

/// Fewer are kept of many, the same on every rank, and the rest is estimated.
#[test]
fn of_many_calls_every_rank_keeps_the_same_ones() {
    for mpi in MPIS {
        let run = Profiled::run(mpi, 2, &["waiting", "5000", "0"], &[]);
        assert_eq!(run.outcome.code, 0, "{mpi:?} {}", run.outcome.stderr);
        let profiles = run.profiles();
        let rows = |profile: &RankProfile| {
            let row = |row: &Waiting| {
                assert!(row.durations().all(|ns| ns.is_some()), "{mpi:?} {row:?}");
                let key = (row.function.clone(), row.members.clone(), row.ordinal);
                (key, (row.calls, row.level, row.times_ns.len()))
            };
            profile.waiting.iter().map(row).collect::<BTreeMap<_, _>>()
        };
        let all: Vec<_> = profiles.iter().map(rows).collect();
        for (key, row) in all.iter().flatten() {
            let same = |rows: &BTreeMap<_, _>| rows.get(key).is_none_or(|other| other == row);
            assert!(all.iter().all(same), "{mpi:?} {key:?}");
            assert!(row.0 == 5000 && row.1 >= 3, "{mpi:?} {row:?}");
        }
        let bytes = serde_json::to_vec(&profiles[0].waiting).unwrap().len();
        assert!(bytes < 7000, "{mpi:?}: {bytes}");
        let summary = summary(&profiles);
        for on in found(&summary).into_values() {
            assert!(on.compared >= 100 && on.waiting_error_s.is_some_and(|error| error > 0.0));
            assert_eq!(on.calls, 5000 * u64::from(on.size), "{mpi:?} {on:?}");
        }
    }
}

#[test]
fn a_rank_that_is_killed_leaves_what_the_others_waited_for() {
    for mpi in MPIS {
        let settings = [("GYAN_BUDGET", "none")];
        let run = Profiled::run(mpi, RANKS, &["waiting", "30", "0.02", "kill"], &settings);
        assert_ne!(run.outcome.code, 0, "{mpi:?}");
        let profiles = lives(&run.directory, RANKS);
        let summary = summary(&profiles);
        let seen = calls(run.place(), RANKS);
        let found = found(&summary);
        let world = ("MPI_Allreduce".to_owned(), "MPI_COMM_WORLD".to_owned());
        assert_eq!(found[&world].calls, self::seen(&seen[&world]).calls, "{mpi:?}");
        assert!(found[&world].waiting_s > 0.0 && !summary.waiting[0].ranks_missing, "{mpi:?}");
    }
}

fn report(directory: &Path, options: &[&str]) -> Outcome {
    run(gyan().arg("report").arg(directory).args(options).current_dir(root()))
}

#[test]
fn the_report_says_for_whom_others_wait_and_off_is_off() {
    let run = Profiled::run(OPENMPI, RANKS, &["waiting"], &[]);
    let text = report(&run.directory, &[]).stdout;
    assert!(text.contains("is waiting for rank"), "{text}");
    let text = report(&run.directory, &["--waiting"]).stdout;
    assert!(text.contains("twin") && text.contains("MPI_Alltoallv"), "{text}");
    let off = Profiled::run(MPICH, RANKS, &["waiting"], &[("GYAN_WAITING", "off")]);
    assert!(off.profiles().iter().all(|profile| profile.waiting.is_empty()));
    let outcome = report(&off.directory, &["--waiting"]);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("nothing is known of waiting"), "{}", outcome.stderr);
}
