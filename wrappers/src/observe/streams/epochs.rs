//! For which ranks do ranks wait in the epochs of a window that only some of them take part in (MPI 4.1, 12.5.2)? Where an
//! epoch begins or ends, one rank signals the other: the target that it has posted, and the origin that it has completed. A signal is
//! a message without data: both ranks number it alike on the window, so it is in a stream, with the window in place of the
//! communicator.
//!
//! `MPI_Win_start` need not wait until the targets have posted: the library may wait in `MPI_Win_complete` instead. So a post is
//! received in both. Of the two, the one that ended before the target posted did not wait, as the reduction finds out.

use std::mem;

use gyan_results::{MessageDirection, Signal};

use super::counts::{self, PassedKey};
use super::{CallTimes, Ends, Exchanged, Streams, second_thread_comes, with_streams};
use crate::calls::budget::budget;
use crate::calls::ledger::Ledger;

/// Ranks of larger groups are not asked for.
pub(crate) const RANKS_AT_MOST: usize = super::STREAMS_AT_MOST;

/// What a call does, and the ranks in `MPI_COMM_WORLD` of the group that it names.
pub(crate) enum EpochStep {
    Posted(Vec<u32>),
    Started(Vec<u32>),
    Completed,
    Waited,
}

/// The ranks on the other side of the epochs of a window that have begun.
#[derive(Default)]
pub(super) struct OpenEpochs {
    origins: Vec<u32>,
    targets: Vec<u32>,
}

/// A call has succeeded. `win`: as its communicator is found; `ledger`: of the thread.
#[cold]
pub(crate) fn changed(win: usize, step: EpochStep, called: CallTimes, ledger: &'static Ledger) {
    if !counts::is_alone(ledger) {
        return second_thread_comes();
    }
    if with_streams(|streams| streams.epoch_changes(win, step, called)) == Some(true) {
        budget().spend_on_timing(budget().timed_ticks());
    }
}

impl Streams {
    /// Returns whether a signal is timed.
    pub(super) fn epoch_changes(&mut self, win: usize, step: EpochStep, called: CallTimes) -> bool {
        use MessageDirection::{Received, Sent};

        if self.communicator(win).is_none() {
            return false;
        }
        let open = self.epochs.entry(win).or_default();
        let (ranks, signals): (Vec<u32>, &[(MessageDirection, i32)]) = match step {
            EpochStep::Posted(origins) => {
                open.origins.clone_from(&origins);
                (origins, &[(Sent, Signal::POST_IN_START), (Sent, Signal::POST_IN_COMPLETE)])
            }
            EpochStep::Started(targets) => {
                open.targets.clone_from(&targets);
                (targets, &[(Received, Signal::POST_IN_START)])
            }
            EpochStep::Completed => (
                mem::take(&mut open.targets),
                &[(Received, Signal::POST_IN_COMPLETE), (Sent, Signal::COMPLETE)],
            ),
            EpochStep::Waited => (mem::take(&mut open.origins), &[(Received, Signal::COMPLETE)]),
        };
        let mut is_timed = false;
        for (rank, (direction, tag)) in
            ranks.iter().flat_map(|rank| signals.iter().map(move |signal| (*rank, *signal)))
        {
            let passed = PassedKey { comm: win, peer: rank.cast_signed(), tag };
            // One that is not in MPI_COMM_WORLD is none of those that are compared.
            let peer = (rank != u32::MAX).then_some(rank);
            is_timed |= self.takes(Exchanged { direction, peer, passed }, Ends::Here, called);
        }
        is_timed
    }
}
