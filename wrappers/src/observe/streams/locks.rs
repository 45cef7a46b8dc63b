//! When does this rank ask for locks of windows, have them and give them back (MPI 4.1, 12.5.3)? Who held the lock meanwhile is known
//! once the epochs of all ranks are together, so no epoch may be missing between others: the first ones are kept, up to a number.
//! After that calls take the fast path again.
//!
//! A flush that completes accesses at the target shows that this rank has the lock, if its only open epoch is this one; from then on it
//! does not wait for it, and further flushes take the fast path.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use gyan_results::{LockCall, LockEpoch, LockTimes, WindowLocks};

use super::{CallTimes, Streams, counts, second_thread_comes, with_streams};
use crate::calls::budget::budget;
use crate::calls::ledger::Ledger;
use crate::mpi::functions::Function;
use crate::mpi::functions::one_sided::{
    MPI_Accumulate, MPI_Accumulate_c, MPI_Compare_and_swap, MPI_Fetch_and_op, MPI_Get,
    MPI_Get_accumulate, MPI_Get_accumulate_c, MPI_Get_c, MPI_Put, MPI_Put_c, MPI_Raccumulate,
    MPI_Raccumulate_c, MPI_Rget, MPI_Rget_accumulate, MPI_Rget_accumulate_c, MPI_Rget_c, MPI_Rput,
    MPI_Rput_c, MPI_Win_flush, MPI_Win_flush_all, MPI_Win_flush_local, MPI_Win_flush_local_all,
};
use crate::sys::alloc;
use crate::sys::clock;

/// How many epochs are kept.
const EPOCHS_AT_MOST: usize = 512;
/// How many may be open at a time.
const OPEN_AT_MOST: usize = 512;
/// How many flushes of an epoch are looked at.
const FLUSHES_AT_MOST: u32 = 16;

/// Whether epochs with locks are followed, and whether flushes in them.
static ON: AtomicBool = AtomicBool::new(false);
static WITH_FLUSHES: AtomicBool = AtomicBool::new(false);

/// The functions that access a window.
const ACCESSES: [Function; 18] = [
    MPI_Accumulate,
    MPI_Accumulate_c,
    MPI_Compare_and_swap,
    MPI_Fetch_and_op,
    MPI_Get,
    MPI_Get_c,
    MPI_Get_accumulate,
    MPI_Get_accumulate_c,
    MPI_Put,
    MPI_Put_c,
    MPI_Raccumulate,
    MPI_Raccumulate_c,
    MPI_Rget,
    MPI_Rget_c,
    MPI_Rget_accumulate,
    MPI_Rget_accumulate_c,
    MPI_Rput,
    MPI_Rput_c,
];

/// What a call does with a lock. `target`: the rank in the window, none for all of them.
#[derive(Clone, Copy)]
pub(crate) enum LockStep {
    Lock {
        target: Option<u32>,
        is_exclusive: bool,
    },
    /// `is_remote`: it completes accesses to this one target there.
    Flush {
        target: Option<u32>,
        is_remote: bool,
    },
    Unlock {
        target: Option<u32>,
    },
}

/// The locks that this rank has asked for.
#[derive(Default)]
pub(super) struct FollowedLocks {
    /// By window and target.
    open: BTreeMap<(usize, Option<u32>), OpenLock>,
    /// By the number of the window.
    kept: BTreeMap<u64, Vec<LockTicks>>,
    /// How many epochs these are, with those that are open.
    number: usize,
    /// When the first epoch began that is not kept, in ticks.
    missing_since: Option<u64>,
}

/// An epoch that has not ended.
struct OpenLock {
    window: u64,
    epoch: LockTicks,
    /// The accesses before it.
    accesses: u64,
    /// Whether no other epoch was open at a time.
    is_alone: bool,
    flushes: u32,
}

/// A call, in ticks; the number of the call, 0 if it is not known.
#[derive(Clone, Copy, Default)]
struct LockCallTicks {
    begun: u64,
    ended: u64,
    called_in: u32,
}

/// An epoch, as [`LockEpoch`] has it, in ticks.
#[derive(Clone, Copy)]
struct LockTicks {
    target: Option<u32>,
    is_exclusive: bool,
    lock: LockCallTicks,
    flush: Option<LockCallTicks>,
    is_held_after_flush: bool,
    unlock: LockCallTicks,
}

/// Whether a call of a function that locks, flushes or unlocks leaves the fast path.
#[inline]
pub(crate) fn follows(function: Function) -> bool {
    let is_flush = [MPI_Win_flush, MPI_Win_flush_all, MPI_Win_flush_local, MPI_Win_flush_local_all]
        .contains(&function);
    let follows = if is_flush { &WITH_FLUSHES } else { &ON };
    follows.load(Ordering::Relaxed)
}

pub(super) fn begin(on: bool) {
    ON.store(on, Ordering::Relaxed);
    WITH_FLUSHES.store(false, Ordering::Relaxed);
}

pub(super) fn end() {
    begin(false);
}

/// A call has succeeded. `win`: as its communicator is found; `ledger`: of the thread.
#[cold]
pub(crate) fn changed(win: usize, step: LockStep, called: CallTimes, ledger: &'static Ledger) {
    if !counts::is_alone(ledger) {
        return second_thread_comes();
    }
    let accesses = || ACCESSES.iter().map(|function| ledger.calls(*function)).sum();
    if with_streams(|streams| streams.lock_changes(win, step, called, accesses)) == Some(true) {
        budget().spend_on_timing(budget().timed_ticks());
    }
}

impl Streams {
    /// Returns whether the call is kept. `accesses`: how many accesses to windows there were.
    pub(super) fn lock_changes(
        &mut self,
        win: usize,
        step: LockStep,
        called: CallTimes,
        accesses: impl FnOnce() -> u64,
    ) -> bool {
        let Some(window) = self.communicator(win).map(|known| known.number) else { return false };
        let called_in = self.call_number(called.at());
        let call = LockCallTicks { begun: called.begun, ended: called.ended, called_in };
        let is_kept = match step {
            LockStep::Lock { target, is_exclusive } => {
                let epoch = LockTicks {
                    target,
                    is_exclusive,
                    lock: call,
                    flush: None,
                    is_held_after_flush: false,
                    unlock: LockCallTicks::default(),
                };
                self.locks.opens((win, target), window, epoch, accesses)
            }
            LockStep::Flush { target, is_remote } => {
                self.locks.flushes((win, target), call, is_remote, accesses)
            }
            LockStep::Unlock { target } => self.locks.ends((win, target), call),
        };
        let locks = &self.locks;
        WITH_FLUSHES.store(locks.open.values().any(OpenLock::wants_flush), Ordering::Relaxed);
        // Once epochs are missing, only those that are open matter.
        ON.store(locks.missing_since.is_none() || !locks.open.is_empty(), Ordering::Relaxed);
        is_kept
    }
}

impl OpenLock {
    fn wants_flush(&self) -> bool {
        !self.epoch.is_held_after_flush && self.flushes < FLUSHES_AT_MOST
    }
}

impl FollowedLocks {
    fn opens(
        &mut self,
        key: (usize, Option<u32>),
        window: u64,
        epoch: LockTicks,
        accesses: impl FnOnce() -> u64,
    ) -> bool {
        let is_full = self.number >= EPOCHS_AT_MOST || self.open.len() >= OPEN_AT_MOST;
        if self.missing_since.is_some() || is_full || alloc::is_short() {
            self.missing_since.get_or_insert(epoch.lock.begun);
            return false;
        }
        self.number += 1;
        self.open.values_mut().for_each(|other| other.is_alone = false);
        let is_alone = self.open.is_empty();
        let open = OpenLock { window, epoch, accesses: accesses(), is_alone, flushes: 0 };
        self.open.insert(key, open);
        true
    }

    fn flushes(
        &mut self,
        (win, target): (usize, Option<u32>),
        call: LockCallTicks,
        is_remote: bool,
        accesses: impl FnOnce() -> u64,
    ) -> bool {
        // A flush of all targets may wait for each lock, one of a target for its own or for that of all.
        let accesses = accesses();
        let mut is_kept = false;
        let of_window = self.open.iter_mut().filter(|((of, _), _)| *of == win);
        for ((_, locked), open) in of_window {
            if target.is_some() && locked.is_some() && target != *locked {
                continue;
            }
            open.flushes += 1;
            if open.epoch.is_held_after_flush {
                continue;
            }
            let has_accesses = open.is_alone && accesses > open.accesses;
            open.epoch.is_held_after_flush = is_remote && locked.is_some() && has_accesses;
            let took = |of: &LockCallTicks| of.ended.saturating_sub(of.begun);
            let is_longest = open.epoch.flush.as_ref().is_none_or(|of| took(of) < took(&call));
            if open.epoch.is_held_after_flush || is_longest {
                open.epoch.flush = Some(call);
                is_kept = true;
            }
        }
        is_kept
    }

    fn ends(&mut self, key: (usize, Option<u32>), call: LockCallTicks) -> bool {
        let Some(OpenLock { window, mut epoch, .. }) = self.open.remove(&key) else { return false };
        epoch.unlock = call;
        self.kept.entry(window).or_default().push(epoch);
        true
    }

    /// Open epochs end with their window.
    pub(super) fn window_goes(&mut self, win: usize) {
        self.open.retain(|(of, _), _| *of != win);
    }

    /// The data for the profile of one of `size` ranks.
    pub(super) fn described(&self, size: u32) -> LockTimes {
        let mut epochs: Vec<(u64, &LockTicks)> = self
            .kept
            .iter()
            .flat_map(|(window, epochs)| epochs.iter().map(|epoch| (*window, epoch)))
            .collect();
        // Those that began first, so that none is missing before another one.
        epochs.sort_by_key(|(_, epoch)| epoch.lock.begun);
        let cut = epochs.get(LockTimes::at_most(size)).map(|(_, epoch)| epoch.lock.begun);
        epochs.truncate(LockTimes::at_most(size));
        epochs.sort_by_key(|(_, epoch)| epoch.unlock.ended);
        let mut windows: BTreeMap<u64, Vec<LockEpoch>> = BTreeMap::new();
        for (window, epoch) in epochs {
            windows.entry(window).or_default().push(epoch.on_host());
        }
        let window = |(window, epochs): (u64, Vec<LockEpoch>)| WindowLocks {
            window: format!("{window:016x}"),
            epochs: WindowLocks::written(&epochs),
        };
        let windows = windows.into_iter().map(window).collect();
        let since = [cut, self.missing_since].into_iter().flatten().min();
        LockTimes { windows, missing_since_ns: since.map(clock::on_host) }
    }
}

impl LockTicks {
    fn on_host(&self) -> LockEpoch {
        let LockTicks { target, is_exclusive, lock, flush, is_held_after_flush, unlock } = *self;
        let call = |of: LockCallTicks| LockCall {
            begun_ns: clock::on_host(of.begun),
            ended_ns: clock::on_host(of.ended),
            called_in: of.called_in,
        };
        LockEpoch {
            target,
            is_exclusive,
            lock: call(lock),
            flush: flush.map(call),
            is_held_after_flush,
            unlock: call(unlock),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIN: usize = 7;
    const WINDOW: u64 = 70;

    fn call(begun: u64, ended: u64) -> LockCallTicks {
        LockCallTicks { begun, ended, called_in: 1 }
    }

    fn opens(locks: &mut FollowedLocks, target: Option<u32>, at: u64, accesses: u64) -> bool {
        let unlock = LockCallTicks::default();
        let epoch = LockTicks {
            target,
            is_exclusive: true,
            lock: call(at, at + 1),
            flush: None,
            is_held_after_flush: false,
            unlock,
        };
        locks.opens((WIN, target), WINDOW, epoch, || accesses)
    }

    /// When the flush of the epoch that ended last began, and whether the lock was held after it.
    fn last_flush(locks: &FollowedLocks) -> Option<(u64, bool)> {
        let epoch = locks.kept[&WINDOW].last().unwrap();
        epoch.flush.map(|flush| (flush.begun, epoch.is_held_after_flush))
    }

    #[test]
    fn a_flush_after_accesses_shows_that_the_rank_has_the_lock() {
        let target = Some(3);
        let mut locks = FollowedLocks::default();
        assert!(opens(&mut locks, target, 10, 5));
        // Nothing was accessed since; the longest such flush is kept.
        assert!(locks.flushes((WIN, target), call(20, 25), true, || 5));
        assert!(!locks.flushes((WIN, target), call(30, 31), true, || 5));
        // Of another target, or on this rank only.
        assert!(!locks.flushes((WIN, Some(4)), call(32, 39), true, || 6));
        assert!(!locks.flushes((WIN, target), call(40, 41), false, || 6));
        assert!(locks.open[&(WIN, target)].wants_flush());
        assert!(locks.flushes((WIN, target), call(50, 51), true, || 6));
        assert!(!locks.open[&(WIN, target)].wants_flush());
        assert!(!locks.flushes((WIN, target), call(60, 90), true, || 7));
        assert!(locks.ends((WIN, target), call(100, 110)));
        assert_eq!(last_flush(&locks), Some((50, true)));
        // An end without a beginning.
        assert!(!locks.ends((WIN, target), call(120, 121)));
    }

    #[test]
    fn which_of_two_open_epochs_had_the_accesses_is_not_known() {
        let mut locks = FollowedLocks::default();
        assert!(opens(&mut locks, Some(1), 10, 0));
        assert!(opens(&mut locks, Some(2), 20, 0));
        assert!(locks.flushes((WIN, Some(1)), call(30, 31), true, || 1));
        assert!(locks.ends((WIN, Some(1)), call(40, 41)));
        assert_eq!(last_flush(&locks), Some((30, false)));
        // Nor which target of several.
        assert!(locks.ends((WIN, Some(2)), call(50, 51)));
        assert!(opens(&mut locks, None, 60, 1));
        assert!(locks.flushes((WIN, Some(1)), call(70, 71), true, || 2));
        assert!(locks.ends((WIN, None), call(80, 81)));
        assert_eq!(last_flush(&locks), Some((70, false)));
    }

    #[test]
    fn the_first_epochs_are_kept_and_from_when_on_others_are_missing() {
        let mut locks = FollowedLocks::default();
        for number in 0..EPOCHS_AT_MOST as u64 {
            assert!(opens(&mut locks, Some(0), 10 * number, 0));
            assert!(locks.ends((WIN, Some(0)), call(10 * number + 5, 10 * number + 6)));
        }
        assert_eq!(locks.missing_since, None);
        assert!(!opens(&mut locks, Some(0), 100_000, 0));
        assert!(!locks.ends((WIN, Some(0)), call(100_005, 100_006)));
        assert_eq!(locks.missing_since, Some(100_000));
        // A job of many ranks has room for fewer.
        let described = locks.described(1 << 14);
        assert_eq!(described.windows[0].epochs().count(), LockTimes::at_most(1 << 14));
        assert!(described.missing_since_ns.is_some());
    }
}
