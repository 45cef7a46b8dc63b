//! How long ranks wait for each other in messages equals what a program finds from its own clock (tests/programs/pairs.c).

use gyan_results::{MessageDirection, MessageWaitingSummary, PairWaiting};

use super::waiting::summary;
use super::waits::{self, InjectedWait};
use crate::common::{BED, MPICH, Mpi, OPENMPI, Profiled, gyan, line_of, run};

const RANKS: usize = 3;
const ON: (&str, &str) = ("GYAN_WAITING_MESSAGES", "on");
/// Messages of `pairs.c`.
const MESSAGES: u64 = 7 * 100;

/// Of the program's sums, so much may be different: the two read their clocks one after the other.
const OFF: f64 = 0.05;
const OFF_S: f64 = 0.01;

type Truth = (u32, u32, MessageDirection, f64);

/// What the program saw, and what gyan found, which is the same.
fn checked(run: &Profiled, what: &str) -> (Vec<Truth>, MessageWaitingSummary) {
    assert_eq!(run.outcome.code, 0, "{what} {}", run.outcome.stderr);
    let found = summary(&run.profiles()).message_waiting.unwrap();
    assert_eq!(
        (found.messages, found.paired, found.compared),
        (MESSAGES, MESSAGES, MESSAGES),
        "{what}"
    );
    let truth: Vec<Truth> = run
        .outcome
        .stdout
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [rank, late_rank, late, seconds] = words[..] else { panic!("{what} {line}") };
            let late = match late {
                "send" => MessageDirection::Sent,
                _ => MessageDirection::Received,
            };
            let seconds = seconds.parse().unwrap();
            (rank.parse().unwrap(), late_rank.parse().unwrap(), late, seconds)
        })
        .collect();
    let mut total = 0.0;
    for &(rank, late_rank, late, seconds) in &truth {
        let is_it =
            |pair: &&PairWaiting| (pair.rank, pair.late_rank, pair.late) == (rank, late_rank, late);
        let waiting_s = found.pairs.iter().find(is_it).map_or(0.0, |pair| pair.waiting_s);
        let off_s = (waiting_s - seconds).abs();
        assert!(
            off_s <= OFF * seconds + OFF_S,
            "{what} rank {rank} for {late_rank} {late:?}: {waiting_s} instead of {seconds}: {found:?}"
        );
        total += seconds;
    }
    let all_s = found.late_senders_s + found.late_receivers_s;
    assert!((all_s - total).abs() <= OFF * total + 4.0 * OFF_S, "{what} {all_s} {total}");
    assert_eq!((found.late_senders_error_s, found.late_receivers_error_s), (Some(0.0), Some(0.0)));
    (truth, found)
}

/// Whom the others waited for, and where, is known whatever else the machine did: 20 ms in each of 20 calls.
fn is_late(found: &MessageWaitingSummary, waiting: u32, late: u32, what: &str) {
    let of = |direction| {
        let is_it = |pair: &&PairWaiting| {
            (pair.rank, pair.late_rank, pair.late) == (waiting, late, direction)
        };
        found.pairs.iter().find(is_it).unwrap_or_else(|| panic!("{what} {found:?}"))
    };
    let (sender, receiver) = (of(MessageDirection::Sent), of(MessageDirection::Received));
    assert!(sender.waiting_s >= 3.0 * 20.0 * 0.02 && receiver.waiting_s >= 20.0 * 0.02, "{what}");
    assert_eq!(receiver.late_call.function, "MPI_Recv", "{what}");
    assert!(sender.waits.call.is_some() && receiver.late_call.call.is_some(), "{what} {found:?}");
}

fn with_lines(mpi: Mpi) -> Profiled {
    Profiled::preloaded(mpi, RANKS, &mpi.compiled("pairs", &["-g"]), &[], &[ON])
}

fn pairs_are_found(mpi: Mpi) {
    let run = with_lines(mpi);
    let what = format!("{mpi:?}");
    let (truth, found) = checked(&run, &what);
    is_late(&found, 0, 1, &what);
    let row = |(pattern, late): (&str, MessageDirection)| {
        let injected = truth.iter().find(|of| (of.0, of.1, of.2) == (0, 1, late)).unwrap();
        let pair = found.pairs.iter().find(|pair| pair.rank == 0 && pair.late == late).unwrap();
        InjectedWait {
            pattern: pattern.into(),
            mpi: mpi.name.into(),
            injected_s: injected.3,
            found_s: pair.waiting_s,
            late_rank: pair.late_rank,
            place: pair.waits.function.clone(),
        }
    };
    let patterns =
        [("late sender", MessageDirection::Sent), ("late receiver", MessageDirection::Received)];
    waits::keep("pairs", mpi.name, &patterns.map(row));
}

#[test]
fn waiting_in_messages_is_that_of_its_definition() {
    for mpi in BED {
        pairs_are_found(mpi);
    }
}

#[test]
fn ranks_are_those_of_the_world_whatever_the_communicator() {
    for mpi in [OPENMPI, MPICH] {
        let run = Profiled::run(mpi, RANKS, &["pairs", "reverse"], &[ON]);
        let what = format!("{mpi:?} in reverse order");
        is_late(&checked(&run, &what).1, 2, 1, &what);
    }
}

#[test]
fn the_report_names_both_lines_and_nothing_is_timed_unasked() {
    let profiled = with_lines(OPENMPI);
    let text = run(gyan().arg("report").arg(&profiled.directory).arg("--waiting")).stdout;
    let [waits, late] = ["waits", "late"].map(|comment| line_of("pairs.c", comment));
    for place in [format!("MPI_Ssend at pairs.c:{waits}"), format!("MPI_Recv at pairs.c:{late}")] {
        assert!(text.contains(&place), "{place}\n{text}");
    }
    let off = Profiled::run(MPICH, RANKS, &["pairs"], &[]);
    assert!(off.profiles().iter().all(|profile| profile.message_times.is_none()));
}
