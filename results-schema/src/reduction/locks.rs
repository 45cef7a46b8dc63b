//! Who held the lock of a window while another rank wanted it (MPI 4.1, 12.5.3; the pattern "lock contention" of Scalasca)?
//!
//! MPI does not tell who holds a lock, and a library may acquire it in `MPI_Win_lock`, in the first access, in a flush or in
//! `MPI_Win_unlock`. But a rank gives it back between the beginning and the end of its `MPI_Win_unlock`, and has it at the end of a
//! flush that completed accesses. Two epochs of which one is exclusive do not overlap, so these times say which of the two was first.
//!
//! A rank waits in a call that may acquire the lock, until the epochs before its own have ended: in turn for each of them, from when that
//! one began. If all that is known of the order of two epochs is that both ranks were in `MPI_Win_unlock`, the one that returned from
//! it first was first.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::starts::Clocks;
use crate::merge::Merge;
use crate::{LockCall, LockEpoch, LockTimes};

/// What ranks know of locks.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Locks {
    /// By window and rank.
    epochs: BTreeMap<(String, u32), Vec<LockEpoch>>,
    ranks: BTreeMap<u32, RankClock>,
}

/// The clock of a rank, and since when epochs of it are missing.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct RankClock {
    clock: String,
    missing_since_ns: Option<u64>,
}

/// What follows from them.
#[derive(Debug, Default)]
pub(super) struct LocksCompared {
    pub(super) epochs: u64,
    /// How long the calls of these took in which ranks may have waited.
    pub(super) calls_ns: u64,
    pub(super) waits: Vec<LockWait>,
}

/// How long a rank waited in a call for another one that had the lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct LockWait {
    pub(super) rank: u32,
    pub(super) late_rank: u32,
    pub(super) ns: u64,
    /// How far that may be wrong because of clocks.
    pub(super) error_ns: u64,
    /// The calls in which the rank waits, and in which the other one gives the lock back.
    pub(super) calls: (u32, u32),
}

impl Merge for Locks {
    fn absorb(&mut self, other: &Locks) {
        for (key, epochs) in &other.epochs {
            self.epochs.entry(key.clone()).or_insert_with(|| epochs.clone());
        }
        for (rank, clock) in &other.ranks {
            self.ranks.entry(*rank).or_insert_with(|| clock.clone());
        }
    }
}

impl Locks {
    pub(super) fn of_rank(times: &LockTimes, clock: &str, rank: u32) -> Locks {
        let LockTimes { windows, missing_since_ns } = times;
        let mut locks = Locks::default();
        for of in windows {
            locks.epochs.insert((of.window.clone(), rank), of.epochs().collect());
        }
        let clock = RankClock { clock: clock.into(), missing_since_ns: *missing_since_ns };
        locks.ranks.insert(rank, clock);
        locks
    }

    /// `size`: of the job. Nothing is compared unless all its ranks say what they locked: the holder of a lock may be any of them.
    pub(super) fn finish(self, clocks: &Clocks, size: u32) -> LocksCompared {
        let mut compared = LocksCompared::default();
        if self.ranks.len() < size as usize {
            return compared;
        }
        let mut windows: BTreeMap<String, Vec<(u32, Vec<LockEpoch>)>> = BTreeMap::new();
        for ((window, rank), epochs) in self.epochs {
            windows.entry(window).or_default().push((rank, epochs));
        }
        for ranks in windows.into_values() {
            if let Some((held, known_until)) = held_on_one_clock(&ranks, &self.ranks, clocks) {
                compared.add(&held, known_until);
            }
        }
        compared
    }
}

/// The epochs of a window, in the order in which they ended, all on the clock of its first rank, and from when on others may have begun.
/// None if clocks cannot be compared.
fn held_on_one_clock(
    ranks: &[(u32, Vec<LockEpoch>)],
    of_ranks: &BTreeMap<u32, RankClock>,
    clocks: &Clocks,
) -> Option<(Vec<Held>, i128)> {
    let on = &of_ranks.get(&ranks.first()?.0)?.clock;
    let mut known_until = i128::MAX;
    for RankClock { clock, missing_since_ns } in of_ranks.values() {
        if let Some(since) = missing_since_ns {
            let (offset_ns, error_ns) = clocks.between(clock, on)?;
            let since = i128::from(*since) + offset_ns - i128::from(error_ns);
            known_until = known_until.min(since);
        }
    }
    let mut held: Vec<Held> = Vec::new();
    for (rank, epochs) in ranks {
        let RankClock { clock, .. } = of_ranks.get(rank)?;
        let (offset_ns, error_ns) = clocks.between(clock, on)?;
        held.extend(epochs.iter().map(|epoch| Held::new(*rank, epoch, offset_ns, error_ns)));
    }
    held.sort_by_key(|of| (of.unlock.ended, of.rank));
    Some((held, known_until))
}

/// A call, in ns on the clock of all.
#[derive(Clone, Copy, Debug)]
struct CallSpan {
    begun: i128,
    ended: i128,
    called_in: u32,
}

/// An epoch, on the clock of all.
#[derive(Debug)]
struct Held {
    rank: u32,
    target: Option<u32>,
    is_exclusive: bool,
    lock: CallSpan,
    flush: Option<CallSpan>,
    is_held_after_flush: bool,
    unlock: CallSpan,
    /// How far its times may be wrong.
    error_ns: u64,
}

impl Held {
    fn new(rank: u32, epoch: &LockEpoch, offset_ns: i128, error_ns: u64) -> Held {
        let span = |LockCall { begun_ns, ended_ns, called_in }| CallSpan {
            begun: i128::from(begun_ns) + offset_ns,
            ended: i128::from(ended_ns) + offset_ns,
            called_in,
        };
        let LockEpoch { target, is_exclusive, lock, flush, is_held_after_flush, unlock } = *epoch;
        let [lock, unlock] = [lock, unlock].map(span);
        let flush = flush.map(span);
        Held { rank, target, is_exclusive, lock, flush, is_held_after_flush, unlock, error_ns }
    }

    /// The calls that may wait for the lock: none after that in which it was acquired at the latest.
    fn may_wait(&self) -> impl Iterator<Item = CallSpan> {
        let unlock = if self.has_flush_with_lock() { None } else { Some(self.unlock) };
        [Some(self.lock), self.flush, unlock].into_iter().flatten()
    }

    fn has_flush_with_lock(&self) -> bool {
        self.is_held_after_flush && self.flush.is_some()
    }

    /// When it had the lock at the latest.
    fn acquired(&self) -> i128 {
        self.flush
            .filter(|_| self.is_held_after_flush)
            .map_or(self.unlock.ended, |flush| flush.ended)
    }

    /// Whether the two cannot have the lock at the same time.
    fn excludes(&self, other: &Held) -> bool {
        let is_same =
            self.target.is_none() || other.target.is_none() || self.target == other.target;
        self.rank != other.rank && is_same && (self.is_exclusive || other.is_exclusive)
    }

    fn error_with(&self, other: &Held) -> u64 {
        self.error_ns.saturating_add(other.error_ns)
    }

    /// Whether it had the lock before another one that it excludes; none if that is not known.
    fn comes_before(&self, other: &Held) -> Option<bool> {
        let error_ns = i128::from(self.error_with(other));
        let [is_possible, is_reverse_possible] = [
            self.unlock.begun <= other.acquired() + error_ns,
            other.unlock.begun <= self.acquired() + error_ns,
        ];
        if is_possible != is_reverse_possible {
            return Some(is_possible);
        }
        if !is_possible {
            return None;
        }
        let waits = |of: &Held, other| of.waits_before_unlock(other).is_some();
        let by_calls = waits(self, other).cmp(&waits(other, self));
        let by_flushes = other.has_flush_with_lock().cmp(&self.has_flush_with_lock());
        let later_ns = self.unlock.ended - other.unlock.ended;
        match by_calls.then(by_flushes) {
            Ordering::Equal if error_ns > 0 && later_ns.abs() <= error_ns => None,
            Ordering::Equal => Some((later_ns, self.rank) < (0, other.rank)),
            order => Some(order == Ordering::Less),
        }
    }

    /// The call before `MPI_Win_unlock`, if any, that did not end before the other one gave the lock back.
    fn waits_before_unlock(&self, other: &Held) -> Option<CallSpan> {
        let gives_back = other.unlock.begun;
        let mut calls = [Some(self.lock), self.flush].into_iter().flatten();
        calls.find(|call| call.begun < gives_back && gives_back <= call.ended)
    }

    /// When it had the lock at the latest, if it had that after the other one.
    fn acquired_after(&self, other: &Held) -> i128 {
        self.waits_before_unlock(other).map_or(self.acquired(), |call| call.ended)
    }
}

impl LocksCompared {
    /// `held`: the epochs of a window, in the order in which they ended; those that ended later than `known_until` may have waited for
    /// some that are not known.
    fn add(&mut self, held: &[Held], known_until: i128) {
        // When the first of an epoch and those after it begins to give its lock back.
        let mut given_back_from: Vec<i128> = held.iter().map(|of| of.unlock.begun).collect();
        for at in (1..given_back_from.len()).rev() {
            given_back_from[at - 1] = given_back_from[at - 1].min(given_back_from[at]);
        }
        for own in held.iter().filter(|of| of.unlock.ended < known_until) {
            let of_call = |call: CallSpan| {
                let from = held.partition_point(|of| of.unlock.ended <= call.begun);
                let others = held.iter().zip(&given_back_from).skip(from);
                // One that gave it back after the call had ended is not what the call waited for.
                let others = others.take_while(|(_, given_back)| **given_back <= call.ended);
                waits_in(own, call, others.map(|(other, _)| other))
            };
            let waits: Option<Vec<Vec<LockWait>>> = own.may_wait().map(of_call).collect();
            let Some(waits) = waits else { continue };
            self.epochs += 1;
            let took: i128 = own.may_wait().map(|call| call.ended - call.begun).sum();
            self.calls_ns = self.calls_ns.saturating_add(u64::try_from(took).unwrap_or(0));
            self.waits.extend(waits.into_iter().flatten());
        }
    }
}

/// How long a rank waits in a call of its epoch for others, which are in the order in which they ended. None if it is not known who was
/// first.
fn waits_in<'a>(
    own: &Held,
    call: CallSpan,
    others: impl Iterator<Item = &'a Held>,
) -> Option<Vec<LockWait>> {
    // Those that had the lock before, in that order.
    let mut before: Vec<&Held> = Vec::new();
    for other in others.filter(|other| own.excludes(other) && other.unlock.begun <= call.ended) {
        if other.comes_before(own)? {
            let is_earlier =
                |of: &&Held| !other.excludes(of) || other.comes_before(of) != Some(true);
            let at = before.iter().rposition(is_earlier).map_or(0, |at| at + 1);
            before.insert(at, other);
        }
    }
    let mut waits = Vec::new();
    let mut from = call.begun;
    for (at, other) in before.iter().enumerate() {
        // It gave the lock back before the call ended: when that was is not known if it returned later.
        let is_over = other.unlock.ended <= call.ended;
        let until = if is_over { other.unlock.ended } else { other.unlock.begun };
        let next = before.get(at + 1).filter(|next| next.excludes(other));
        let until = next.map_or(until, |next| until.min(next.acquired_after(other)));
        from = from.max(other.lock.begun);
        if let Ok(ns) = u64::try_from(until - from)
            && ns > 0
        {
            let error_ns = own.error_with(other);
            let calls = (call.called_in, other.unlock.called_in);
            let (rank, late_rank) = (own.rank, other.rank);
            waits.push(LockWait { rank, late_rank, ns, error_ns, calls });
            from = until;
        }
    }
    Some(waits)
}

#[cfg(test)]
mod tests;
