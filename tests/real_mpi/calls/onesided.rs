//! How long ranks wait for each other in one-sided synchronisation equals what a program finds from its own clock
//! (tests/programs/onesided.c).

use gyan_results::Signal;

use super::waiting::summary;
use super::waits::{self, InjectedWait};
use crate::common::{MPIS, Mpi, Profiled, each_library};

/// Calls of `MPI_Win_fence` in which an epoch may end, on both windows, and those that assert that none does.
const FENCES: [u64; 2] = [32, 16];
/// The rank that comes late, in both orders.
const LATE: u32 = 1;
/// Of the program's sums, so much may be different: the two read their clocks one after the other.
const OFF: f64 = 0.05;
const OFF_S: f64 = 0.01;

fn is_near(found_s: f64, truth_s: f64) -> bool {
    (found_s - truth_s).abs() <= OFF * truth_s + OFF_S
}

/// What is injected and found: of the fences, and of the signals.
fn checked(mpi: Mpi, ranks: u32, program: &[&str]) -> [Vec<InjectedWait>; 2] {
    let compiled = mpi.compiled("onesided", &["-g"]);
    let run = Profiled::preloaded(mpi, ranks as usize, &compiled, program, &[]);
    let what = format!("{mpi:?} {program:?} {}", run.outcome.stderr);
    assert_eq!(run.outcome.code, 0, "{what}");
    let summary = summary(&run.profiles());
    let lines: Vec<Vec<&str>> =
        run.outcome.stdout.lines().map(|line| line.split(' ').collect()).collect();
    let said = |words: &[&str]| {
        let line = lines.iter().find(|line| line.starts_with(words)).unwrap();
        line.last().unwrap().parse::<f64>().unwrap()
    };
    let row = |pattern: &str, place: &str, injected_s, found_s| InjectedWait {
        pattern: pattern.into(),
        mpi: mpi.name.into(),
        injected_s,
        found_s,
        late_rank: LATE,
        place: place.into(),
    };
    let fence = summary.waiting.iter().find(|of| of.function == "MPI_Win_fence").unwrap();
    let of_each = |calls: u64| calls * u64::from(ranks);
    assert_eq!([fence.calls, fence.calls_not_compared], FENCES.map(of_each), "{what} {fence:?}");
    assert_eq!(fence.communicators.len(), 2, "{what} {fence:?}");
    assert_eq!(fence.last[0].rank, LATE, "{what} {fence:?}");
    let fences = vec![row("late to a fence", "MPI_Win_fence", said(&["fence"]), fence.waiting_s)];
    let found = summary.message_waiting.unwrap();
    assert_eq!((found.messages, found.paired), (0, 0), "{what} {found:?}");
    let (mut signals, mut total_s) = (Vec::new(), 0.0);
    let (rank, others) = if program.is_empty() { (0, 1..ranks) } else { (ranks - 1, 0..ranks - 1) };
    for (word, signal, pattern, place) in [
        ("post", Signal::Post, "late post", "MPI_Win_start`, `MPI_Win_complete"),
        ("complete", Signal::Complete, "late complete", "MPI_Win_wait"),
    ] {
        for other in others.clone() {
            let truth_s = said(&[word, &rank.to_string(), &other.to_string()]);
            let is_it = |pair: &&gyan_results::PairWaiting| {
                (pair.rank, pair.late_rank, pair.signal) == (rank, other, Some(signal))
            };
            let pair = found.pairs.iter().find(is_it);
            let waiting_s = pair.map_or(0.0, |pair| pair.waiting_s);
            assert!(is_near(waiting_s, truth_s), "{what} {word} {other} {truth_s} {found:?}");
            total_s += truth_s;
            if other == LATE {
                let pair = pair.unwrap();
                assert!(
                    pair.waits.call.is_some() && pair.late_call.call.is_some(),
                    "{what} {pair:?}"
                );
                assert!(place.contains(&pair.waits.function), "{what} {pair:?}");
                signals.push(row(pattern, place, truth_s, waiting_s));
            }
        }
    }
    // What the other ranks wait for this one is in the sum of gyan only.
    assert!(
        found.signals_s.unwrap() >= (1.0 - OFF) * total_s - OFF_S,
        "{what} {total_s} {found:?}"
    );
    assert_eq!(found.signals_error_s, Some(0.0), "{what}");
    [fences, signals]
}

#[test]
fn waiting_in_one_sided_synchronisation_is_that_of_its_definition() {
    for mpi in each_library() {
        let [_, signals] = checked(mpi, 3, &[]);
        waits::keep("onesided", mpi.name, &signals);
    }
    for mpi in MPIS {
        checked(mpi, 3, &["reverse"]);
    }
}

/// The shortest call of a fence is what it costs only if nothing else uses its processor.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn ranks_wait_in_a_fence_for_the_one_that_comes_late() {
    for mpi in each_library() {
        let [fences, _] = checked(mpi, 2, &[]);
        let [fence] = &fences[..] else { panic!("{fences:?}") };
        assert!((fence.found_s - fence.injected_s).abs() < 0.15 * fence.injected_s, "{fence:?}");
        waits::keep("fences", mpi.name, &fences);
    }
}
