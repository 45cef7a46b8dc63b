//! Waiting in collectives equals what a program finds that records when each rank called and returned, however busy the machine
//! is.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::process::Command;

use gyan_results::{
    CommunicatorWaiting, LastRank, RankProfile, Reduction, Summary, Waiting, WaitingSummary,
    WaitsFor, rank_file_name,
};

use super::waits::{self, InjectedWait};
use crate::common::{
    MPICH, MPIS, Mpi, OPENMPI, Outcome, Profiled, each_library, lives, profiles, report, root,
    truth,
};
use crate::matrix::{self, Column};

const RANKS: usize = 4;
/// Between the program's reading of the clock and gyan's there are a few hundred instructions, on each rank.
/// A busy machine does something else there in some of the calls, but an error of gyan would be in all of them.
const BETWEEN_NS: f64 = 20_000.0;
const UNDISTURBED: f64 = 0.5;
/// The precision of recorded durations.
const ROUNDING: f64 = 0.01;
/// Other work of gyan at a call is not part of the time that gyan records, but of the program's.
const NOTHING_ELSE: [(&str, &str); 2] = [("GYAN_LIVE", "off"), ("GYAN_SAMPLE", "none")];

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

/// A call as all ranks saw it, in ns.
#[derive(Debug, Default)]
struct Seen {
    time: f64,
    /// How long ranks were there before the last one came.
    waiting: f64,
    /// How much longer that one took to return, which the program does not cause.
    late_return: f64,
    /// The one that came last, when all others were there for longer than it was.
    last: Option<u32>,
}

fn seen(of: &BTreeMap<u32, Times>, call: usize) -> Seen {
    let times = || of.values().map(|times| times[call]);
    let came = |(_, times): &(&u32, &Times)| times[call].0;
    let (last, times_of_last) = of.iter().max_by(|a, b| came(a).total_cmp(&came(b))).unwrap();
    let (came, returned) = times_of_last[call];
    let others = of.iter().filter(|(rank, _)| *rank != last).map(|(_, times)| times[call].0);
    let is_clear = others.fold(f64::INFINITY, |least, begun| least.min(came - begun))
        > returned - came + BETWEEN_NS;
    Seen {
        time: times().map(|(begun, ended)| ended - begun).sum(),
        waiting: times().map(|(begun, _)| came - begun).sum(),
        late_return: times().map(|(_, ended)| (returned - ended).max(0.0)).sum(),
        last: is_clear.then_some(*last),
    }
}

pub(crate) fn summary(profiles: &[RankProfile]) -> Summary {
    let mut reduction = Reduction::default();
    for profile in profiles {
        reduction.add(&rank_file_name(profile.rank), profile);
    }
    reduction.finish().unwrap()
}

/// The data in the summary, by function and communicator.
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

/// How long each rank took for each call, in ns, where every one was timed.
fn timed(profiles: &[RankProfile], on: &CommunicatorWaiting, function: &str) -> Vec<Vec<f64>> {
    let is_it = |row: &&Waiting| {
        row.function.trim_end_matches("_c") == function
            && (row.members.as_str(), row.ordinal) == (on.members.as_str(), on.ordinal)
    };
    let rows = profiles.iter().filter_map(|profile| profile.waiting.iter().find(is_it));
    rows.map(|row| row.durations().map(|ns| ns.unwrap() as f64).collect()).collect()
}

/// Checks that gyan found what the program saw, and that the summary follows from it.
fn is_as_seen(what: &str, profiles: &[RankProfile], calls: &Calls) {
    let summary = summary(profiles);
    let found = found(&summary);
    assert_eq!(found.keys().collect::<Vec<_>>(), calls.keys().collect::<Vec<_>>(), "{what}");
    let (mut all, mut undisturbed) = (0_u32, 0_u32);
    for (key, on) in found {
        let of = &calls[&key];
        let number = of.values().next().unwrap().len();
        let what = format!("{what} {key:?} {on:?}");
        assert_eq!(
            (on.calls, on.waiting_error_s),
            ((number * of.len()) as u64, Some(0.0)),
            "{what}"
        );
        let timed = timed(profiles, on, &key.0);
        assert!(timed.len() == of.len() && timed.iter().all(|of| of.len() == number), "{what}");
        let (mut time_s, mut waiting_s, mut cost_ns) = (0.0, 0.0, 0.0);
        let mut waited_for: BTreeMap<u32, f64> = BTreeMap::new();
        for call in 0..number {
            let durations = || timed.iter().map(|of| of[call]);
            let time: f64 = durations().sum();
            let shortest = durations().fold(f64::INFINITY, f64::min);
            let at = durations().position(|duration| duration <= shortest).unwrap();
            let last = *of.keys().nth(at).unwrap();
            let waiting = time - shortest * of.len() as f64;
            (time_s, waiting_s) = (time_s + time * 1e-9, waiting_s + waiting * 1e-9);
            cost_ns += shortest;
            *waited_for.entry(last).or_default() += waiting * 1e-9;
            let seen = seen(of, call);
            // Inside what the program measures.
            let what = format!("call {call} of {what} {seen:?}");
            assert!(time <= seen.time * (1.0 + ROUNDING) + 1.0, "{what}");
            let slack = of.len() as f64 * BETWEEN_NS;
            let is_time = time >= seen.time * (1.0 - ROUNDING) - slack;
            let is_waiting = waiting >= 0.95 * seen.waiting - seen.late_return - slack;
            all += 1;
            let is_last = seen.last.is_none_or(|rank| rank == last);
            undisturbed += u32::from(is_time && is_waiting && is_last);
        }
        let is = |one: f64, other: f64| (one - other).abs() <= 1e-9 * other.max(1e-6);
        assert!(is(on.time_s, time_s) && is(on.waiting_s, waiting_s), "{what}");
        let most = waited_for.values().copied().fold(0.0, f64::max);
        // Durations are rounded: of ranks that share a processor they may all be alike.
        let share = if waiting_s > 0.0 { most / waiting_s } else { 0.0 };
        assert!(is(on.last[0].waiting_share, share), "{what}");
        assert!(is(waited_for[&on.last[0].rank], most), "{what}");
        // If two ranks are alike, either may be named.
        let of_rank = |times: &Vec<f64>| (times.iter().sum::<f64>() - cost_ns) * 1e-9;
        let of_ranks: BTreeMap<u32, f64> =
            of.keys().copied().zip(timed.iter().map(of_rank)).collect();
        let least = of_ranks.values().copied().fold(f64::INFINITY, f64::min);
        let most = of_ranks.values().copied().fold(0.0, f64::max);
        let said = on.of_ranks.unwrap();
        assert!(is(said.min_s, least) && is(said.max_s, most), "{what} {of_ranks:?}");
        assert!(is(said.avg_s, waiting_s / of.len() as f64), "{what}");
        assert!(
            is(of_ranks[&said.min_rank], least) && is(of_ranks[&said.max_rank], most),
            "{what}"
        );
    }
    assert!(
        f64::from(undisturbed) >= UNDISTURBED * f64::from(all),
        "{what}: {undisturbed} of {all}"
    );
}

fn check(mpi: Mpi, run: &Profiled, what: impl Debug) -> Vec<RankProfile> {
    let what = format!("{mpi:?} {what:?}");
    assert_eq!(run.outcome.code, 0, "{what} {}", run.outcome.stderr);
    let profiles = run.profiles();
    is_as_seen(&what, &profiles, &calls(run.place(), RANKS));
    profiles
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn others_wait_for_the_rank_that_comes_late_as_long_as_they_see_it_themselves() {
    for mpi in each_library() {
        let profiles = check(mpi, &Profiled::run(mpi, RANKS, &["delays"], &NOTHING_ELSE), "in C");
        let summary = summary(&profiles);
        // Neither the two sides of an intercommunicator nor a single rank wait for each other.
        let barrier = summary.waiting.iter().find(|of| of.function == "MPI_Barrier").unwrap();
        assert_eq!(barrier.calls_not_compared, 2 * 30 * RANKS as u64, "{mpi:?}");
    }
}

/// The ranks that come late in `tests/programs/rooted.c`: on `MPI_COMM_WORLD`, and of 3 ranks in reverse order.
const LATE: [LateRank; 5] = [
    ("late root", "MPI_Bcast", [1, 1]),
    ("late root", "MPI_Scatter", [1, 1]),
    ("early root", "MPI_Reduce", [0, 0]),
    ("early root", "MPI_Gather", [0, 0]),
    ("late rank before", "MPI_Scan", [0, 2]),
];
/// The same with `nonblocking`.
const LATE_TO_START: [LateRank; 7] = [
    ("late root", "MPI_Ibcast", [1, 1]),
    ("late root", "MPI_Iscatter", [1, 1]),
    ("early root", "MPI_Ireduce", [0, 0]),
    ("early root", "MPI_Igather", [0, 0]),
    ("late rank before", "MPI_Iscan", [0, 2]),
    ("late rank", "MPI_Iallreduce", [0, 0]),
    ("late rank", "MPI_Ibarrier", [0, 0]),
];

/// Seconds that ranks wait at least: with two of the nonblocking ones they work for 10 of the 50 ms.
const INJECTED_S: f64 = 0.375;

/// The pattern, the function, and who is late.
type LateRank = (&'static str, &'static str, [u32; 2]);

/// The program says how long ranks waited, from its own clock.
fn late_ranks_are_found(
    what: &str,
    outcome: &Outcome,
    profiles: &[RankProfile],
    late: &[LateRank],
    order: usize,
) -> Vec<(f64, WaitingSummary)> {
    assert_eq!(outcome.code, 0, "{what} {}", outcome.stderr);
    let summary = summary(profiles);
    let found = |&(_, function, late): &LateRank| {
        let mut words = outcome.stdout.lines().filter_map(|line| line.split_once(' '));
        let (_, said) = words.find(|(name, _)| *name == function).unwrap();
        let truth_s: f64 = said.trim().parse().unwrap();
        let of = summary.waiting.iter().find(|of| of.function == function).unwrap();
        let what = format!("{what} {truth_s} {of:?}");
        assert!(truth_s > INJECTED_S, "{what}");
        assert!((of.waiting_s - truth_s).abs() < 0.15 * truth_s, "{what}");
        // Where each waits for all others, ranks that the system does not let run can delay them for longer.
        let is_it = |last: &&LastRank| last.rank == late[order];
        let late = of.last.iter().find(is_it).unwrap_or_else(|| panic!("{what}"));
        assert!(late.waiting_share * of.waiting_s > INJECTED_S, "{what}");
        if WaitsFor::in_function(function) != WaitsFor::All {
            assert_eq!(of.last[0].rank, late.rank, "{what}");
        }
        (truth_s, of.clone())
    };
    late.iter().map(found).collect()
}

/// Keeps for the table of docs/developers/waiting.md what was found on two ranks.
fn rooted_is_found(mpi: Mpi, name: &str, arguments: &[&str], late: &[LateRank]) {
    let run = Profiled::run(mpi, 2, &[&["rooted"], arguments].concat(), &NOTHING_ELSE);
    let found = late_ranks_are_found(&format!("{mpi:?}"), &run.outcome, &run.profiles(), late, 0);
    let row = |(&(pattern, function, late_rank), (injected_s, of)): (
        &LateRank,
        &(f64, WaitingSummary),
    )| {
        InjectedWait {
            pattern: pattern.into(),
            mpi: mpi.name.into(),
            injected_s: *injected_s,
            found_s: of.waiting_s,
            late_rank: late_rank[0],
            place: function.into(),
        }
    };
    let rows: Vec<InjectedWait> = late.iter().zip(&found).map(row).collect();
    waits::keep(name, mpi.name, &rows);
}

#[test]
fn ranks_wait_for_a_late_root_and_the_root_for_a_late_rank() {
    for mpi in each_library() {
        rooted_is_found(mpi, "rooted", &[], &LATE);
    }
    let run = Profiled::run(OPENMPI, 3, &["rooted", "reverse"], &NOTHING_ELSE);
    late_ranks_are_found("in reverse order", &run.outcome, &run.profiles(), &LATE, 1);
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn ranks_wait_in_the_call_that_completes_what_others_start_late() {
    for mpi in each_library() {
        rooted_is_found(mpi, "rooted-nonblocking", &["nonblocking"], &LATE_TO_START);
    }
    let program = ["rooted", "nonblocking", "reverse"];
    let run = Profiled::run(OPENMPI, 3, &program, &NOTHING_ELSE);
    late_ranks_are_found("in reverse order", &run.outcome, &run.profiles(), &LATE_TO_START, 1);
}

/// In a namespace of times (`time_namespaces(7)`), as on another host.
#[test]
fn ranks_whose_clocks_differ_by_hours_are_compared() {
    const LATER: [&str; 5] = ["unshare", "--time", "--monotonic", "5000", "--fork"];
    let can = Command::new(LATER[0]).args(&LATER[1..]).arg("true").status();
    if !can.is_ok_and(|status| status.success()) {
        return;
    }
    for mpi in MPIS {
        let program = mpi.program("rooted");
        let text = program.display().to_string();
        let mut second = vec![":", "-n", "1"];
        second.extend(LATER);
        second.push(&text);
        let run = Profiled::preloaded(mpi, 1, &program, &second, &NOTHING_ELSE);
        let profiles = profiles(&run.directory, 2);
        let clock = |profile: &RankProfile| {
            profile.waiting.iter().find_map(|row| row.starts.as_ref()).map(|of| of.clock.clone())
        };
        assert_ne!(clock(&profiles[0]), clock(&profiles[1]), "{mpi:?}");
        late_ranks_are_found(&format!("{mpi:?} clocks"), &run.outcome, &profiles, &LATE, 0);
    }
}

#[test]
fn fortran_and_python_are_seen_too() {
    for (column, binding) in [(Column::MpifH, &["-DMPIF_H"][..]), (Column::UseMpiF08, &[])] {
        for mpi in matrix::with(column) {
            let program = mpi.fortran_program("delays.F90", binding);
            check(mpi, &Profiled::preloaded(mpi, RANKS, &program, &[], &NOTHING_ELSE), column);
        }
    }
    let program = root().join("tests/programs/delays.py").display().to_string();
    for mpi in matrix::two_with_python() {
        let python = Path::new("python-mpi4py");
        check(mpi, &Profiled::preloaded(mpi, RANKS, python, &[&program], &NOTHING_ELSE), "mpi4py");
    }
}

/// Of many calls only some are kept, the same on every rank, and the rest is estimated.
#[test]
fn of_many_calls_every_rank_keeps_the_same_ones() {
    for mpi in MPIS {
        let run = Profiled::run(mpi, 2, &["delays", "5000", "0"], &[]).succeeded();
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
        assert!(bytes < 8500, "{mpi:?}: {bytes}");
        let summary = summary(&profiles);
        for ((function, _), on) in found(&summary) {
            // Where the time of a function is a lower bound, the waiting in it is one, too.
            let call = summary.calls.iter().find(|call| call.name == function).unwrap();
            let of = summary.waiting.iter().find(|of| of.function == function).unwrap();
            let is_bound = call.time_error_s.is_none() || of.calls_not_compared > 0;
            let is_told = on.waiting_error_s.map_or(is_bound, |error| error > 0.0);
            assert!(on.compared >= 100 && is_told, "{mpi:?} {on:?}");
            assert_eq!(on.calls, 5000 * u64::from(on.size), "{mpi:?} {on:?}");
        }
    }
}

#[test]
fn a_rank_that_is_killed_leaves_what_the_others_waited_for() {
    for mpi in MPIS {
        // With so large a budget each call that is timed leaves what is known by then.
        let settings = [("GYAN_BUDGET", "100%")];
        let run = Profiled::run(mpi, RANKS, &["delays", "30", "0.02", "kill"], &settings);
        assert_ne!(run.outcome.code, 0, "{mpi:?}");
        let profiles = lives(&run.directory, RANKS);
        let summary = summary(&profiles);
        let found = found(&summary);
        let world = ("MPI_Allreduce".to_owned(), "MPI_COMM_WORLD".to_owned());
        assert_eq!(found[&world].calls, 30 * RANKS as u64, "{mpi:?}");
        // Some ranks may still be in the last barrier when the rank is killed.
        let of = summary.waiting.iter().find(|of| of.function == "MPI_Allreduce").unwrap();
        assert!(found[&world].waiting_s > 0.0 && !of.ranks_missing, "{mpi:?}: {of:?}");
    }
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn the_report_says_for_whom_others_wait_and_off_is_off() {
    let run = Profiled::run(OPENMPI, RANKS, &["delays", "30", "0.05"], &[]);
    let text = report(&run.directory, &["--all"]).stdout;
    // For rank 3, or on a busy machine for several.
    assert!(text.contains("is waiting for "), "{text}");
    let text = report(&run.directory, &["--waiting"]).stdout;
    assert!(text.contains("twin") && text.contains("MPI_Alltoall"), "{text}");
    let off = Profiled::run(MPICH, RANKS, &["delays"], &[("GYAN_WAITING", "off")]);
    assert!(off.profiles().iter().all(|profile| profile.waiting.is_empty()));
    let outcome = report(&off.directory, &["--waiting"]);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no collective was compared"), "{}", outcome.stderr);
}
