//! How long ranks wait for each other to give locks of windows back equals what a program finds from its own clock, and from the order in
//! which they had them (tests/programs/locks.c).

use gyan_results::{MessageWaitingSummary, PairWaiting, Signal};

use super::waiting::summary;
use super::waits::{self, InjectedWait};
use crate::common::{MPIS, Mpi, Profiled, each_library};

const RANKS: u32 = 3;
/// The rank that keeps the lock, and the one that waits for it.
const LATE: u32 = 1;
const WAITS: u32 = 2;
/// Of the program's sums, so much may be different: the two read their clocks one after the other, and the system may let others run
/// in between.
const OFF: f64 = 0.05;
const OFF_S: f64 = 0.05;
/// Calls of `MPI_Win_lock`: one of each rank at first, and 40 of each that contends.
const EPOCHS: u64 = RANKS as u64 + 40 * (RANKS as u64 - 1);

fn found(mpi: Mpi, program: &[&str]) -> (MessageWaitingSummary, String) {
    let compiled = mpi.compiled("locks", &["-g"]);
    let run = Profiled::preloaded(mpi, RANKS as usize, &compiled, program, &[]).succeeded();
    let summary = summary(&run.profiles());
    (summary.message_waiting.unwrap(), run.outcome.stdout.clone())
}

fn waits_for_locks(of: &MessageWaitingSummary) -> Vec<&PairWaiting> {
    of.pairs.iter().filter(|pair| pair.signal == Some(Signal::Unlock)).collect()
}

/// What the program says of the pair that is told apart, and what is found of it, which is the same.
fn checked(mpi: Mpi, program: &[&str]) -> (f64, MessageWaitingSummary) {
    let (found, stdout) = found(mpi, program);
    let what = format!("{mpi:?} {program:?} {stdout} {found:?}");
    assert_eq!(found.lock_epochs_compared, Some(EPOCHS), "{what}");
    assert_eq!(found.messages, 0, "{what}");
    let pairs = waits_for_locks(&found);
    let mut injected_s = None;
    for line in stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, rank, late_rank, truth_s, unseen_s] = words[..] else { panic!("{what}") };
        let (rank, late_rank): (u32, u32) = (rank.parse().unwrap(), late_rank.parse().unwrap());
        let [truth_s, unseen_s]: [f64; 2] = [truth_s, unseen_s].map(|s| s.parse().unwrap());
        let pair = pairs.iter().find(|of| (of.rank, of.late_rank) == (rank, late_rank));
        let off_s = (pair.map_or(0.0, |pair| pair.waiting_s) - truth_s).abs();
        assert!(off_s <= OFF * truth_s + OFF_S + unseen_s, "{rank} {late_rank} {what}");
        if (rank, late_rank) == (WAITS, LATE) {
            injected_s = Some(truth_s);
        }
    }
    (injected_s.unwrap(), found)
}

#[test]
fn waiting_for_locks_is_that_of_the_order_in_which_ranks_had_them() {
    for mpi in each_library() {
        let (injected_s, found) = checked(mpi, &[]);
        // The program itself sees to it that the late rank has the lock first.
        assert!(injected_s > 0.0, "{mpi:?} {found:?}");
        let pairs = waits_for_locks(&found);
        let pair = pairs.iter().find(|of| (of.rank, of.late_rank) == (WAITS, LATE)).unwrap();
        assert!(pair.waits.call.is_some() && pair.late_call.call.is_some(), "{mpi:?} {pair:?}");
        assert_eq!(pair.late_call.function, "MPI_Win_unlock", "{mpi:?} {pair:?}");
        assert_eq!(found.signals_error_s, Some(0.0), "{mpi:?} {found:?}");
        let row = InjectedWait {
            pattern: "lock contention".into(),
            mpi: mpi.name.into(),
            injected_s,
            found_s: pair.waiting_s,
            late_rank: LATE,
            place: "MPI_Win_lock`, `MPI_Win_flush".into(),
        };
        waits::keep("locks", mpi.name, &[row]);
    }
}

/// Where nobody flushes, the lock may be acquired anywhere.
#[test]
fn who_has_a_lock_is_known_without_flushes() {
    for mpi in each_library() {
        checked(mpi, &["unlock"]);
    }
}

#[test]
fn ranks_that_lock_different_windows_wait_for_nobody() {
    for mpi in MPIS {
        let (found, stdout) = found(mpi, &["apart"]);
        assert_eq!(found.lock_epochs_compared, Some(EPOCHS), "{mpi:?} {stdout} {found:?}");
        assert_eq!(waits_for_locks(&found), Vec::<&PairWaiting>::new(), "{mpi:?}");
    }
}
