//! How long do calls of synchronising collectives take? The same calls are timed on every rank. The shortest
//! time of a call over all ranks is about what it costs once all have come; the rest is waiting.
//!
//! Which calls are timed follows from their number on the communicator, not from each rank's budget. Timing
//! becomes rarer as the number of calls grows, so that the total cost stays small (see [`Waiting`]).
//! Communicators with the same members are told apart by the order of their first such calls, which is the same
//! on all ranks, because no rank leaves such a call before all have come. That holds for a single thread.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gyan_results::{DURATIONS_AT_MOST, ObjectsLeftOut, Waiting};

use super::communicators::{self, Communicator, NOTES};
use crate::calls::budget::budget;
use crate::calls::containment::contain;
use crate::calls::ledger;
use crate::mpi::abi::inquiry;
use crate::mpi::functions::{Function, collective};
use crate::sys::alloc;
use crate::sys::cells::Counter;
use crate::sys::clock;

/// Most functions on communicators whose calls are followed.
const TALLIES_AT_MOST: usize = 64;
/// How many communicators with the same members are kept apart; the last one stands for all further ones, whose
/// calls are numbered as if they were on one communicator.
const ALIKE_AT_MOST: u32 = 8;
/// How many lists of members are known at a time.
const GROUPS_AT_MOST: usize = 4096;
/// Durations in a profile: two characters each.
const WRITTEN_AT_MOST: usize = 2048;

/// What is stored with a communicator: for each function the number of its tally, and its ordinal plus 1.
const ORDINAL: usize = NOTES - 1;
/// Special tally numbers, whose calls are never timed: for communicators on which no rank waits, and those for
/// which there is no room; then the first ordinary number. No tally has number 0.
const IGNORED: u16 = 1;
const NO_ROOM: u16 = 2;
const FIRST: usize = 3;

static ON: AtomicBool = AtomicBool::new(false);

static TALLIES: [OnceLock<WaitingTally>; FIRST + TALLIES_AT_MOST] =
    [const { OnceLock::new() }; FIRST + TALLIES_AT_MOST];
static KNOWN: Mutex<WaitingGroups> =
    Mutex::new(WaitingGroups { keys: Vec::new(), groups: BTreeMap::new() });

/// Calls on communicators whose ranks are not known.
static WITHOUT_RANKS: Counter = Counter::new(0);

struct WaitingGroups {
    keys: Vec<TallyKey>,
    /// How many communicators with the same members have been seen.
    groups: BTreeMap<u64, u32>,
}

/// What a tally counts.
#[derive(Clone, Debug)]
struct TallyKey {
    function: Function,
    members: u64,
    ordinal: u32,
    size: u32,
    name: String,
}

/// The calls of one function on one communicator.
pub(crate) struct WaitingTally {
    calls: Counter,
    /// The number of the next call that is timed; the largest of all for none.
    next: Counter,
    timed: Mutex<TimedCalls>,
}

#[derive(Clone, Default)]
struct TimedCalls {
    level: u32,
    /// Ticks; 0 if not known, or not yet.
    ticks: Vec<f32>,
}

/// A call that is due for timing.
pub(crate) enum Due {
    Chosen {
        tally: &'static WaitingTally,
        call: u64,
    },
    /// On a communicator of which nothing is known. If it is no valid one, the call tells the program; gyan asks afterwards.
    FirstOf {
        alone: bool,
        function: Function,
        comm: usize,
    },
}

/// From now on calls are timed, if wanted.
pub(crate) fn begin(on: bool) {
    for tally in TALLIES.iter().take(FIRST).skip(1) {
        tally.get_or_init(|| WaitingTally::new(u64::MAX));
    }
    ON.store(on, Ordering::Relaxed);
}

/// The program calls `function` on a communicator: none when that call is not timed. `alone`: no other thread
/// calls MPI.
#[inline]
pub(crate) fn due(alone: bool, function: Function, comm: usize) -> Option<Due> {
    if !ON.load(Ordering::Relaxed) {
        return None;
    }
    if communicators::is_new(comm) {
        return Some(Due::FirstOf { alone, function, comm });
    }
    chosen(alone, function, comm)
}

/// The call if it is chosen for timing, which counts it; its communicator is a valid one.
fn chosen(alone: bool, function: Function, comm: usize) -> Option<Due> {
    let Some(communicator) = communicators::by_word(comm) else {
        WITHOUT_RANKS.add_shared(1);
        return None;
    };
    let tally = match tally(communicator, function) {
        Some(tally) => tally,
        None => first_call(communicator, function, comm)?,
    };
    let call = tally.count(alone);
    if call == tally.next.get() { tally.draw(call) } else { None }
}

/// Forwards a call with `next`, and times it if it is due. Code that most calls do not need is in separate
/// functions, so that no registers must be saved for it.
#[inline]
pub(crate) fn around(
    alone: bool,
    function: Function,
    comm: usize,
    next: impl FnOnce() -> c_int,
) -> c_int {
    if !ON.load(Ordering::Relaxed) {
        return next();
    }
    let of_late = communicators::of_late(comm);
    let Some(tally) = of_late.and_then(|communicator| tally(communicator, function)) else {
        return out_of_line(move || due(alone, function, comm), next);
    };
    let call = tally.count(alone);
    if call != tally.next.get() {
        return next();
    }
    out_of_line(move || tally.draw(call), next)
}

#[cold]
#[inline(never)]
fn out_of_line(due: impl FnOnce() -> Option<Due>, next: impl FnOnce() -> c_int) -> c_int {
    let Some(due) = due() else { return next() };
    let begun = clock::now();
    let result = next();
    due.took(clock::now().saturating_sub(begun), result == 0);
    result
}

/// The tally stored with a communicator.
#[inline]
fn tally(communicator: &Communicator, function: Function) -> Option<&'static WaitingTally> {
    TALLIES.get(usize::from(communicator.note(place(function))))?.get()
}

/// The slot for a function's tally: all such functions are in one chapter.
#[inline]
fn place(function: Function) -> usize {
    function.0.wrapping_sub(collective::MPI_Allgather.0)
}

/// The first call on a communicator.
#[cold]
#[inline(never)]
fn first_call(
    communicator: &Communicator,
    function: Function,
    comm: usize,
) -> Option<&'static WaitingTally> {
    let number = contain("following a communicator", || numbered(communicator, function, comm));
    let number = number.unwrap_or(IGNORED);
    communicator.set_note(place(function), number);
    TALLIES.get(usize::from(number))?.get()
}

/// The number of the tally, created if necessary.
fn numbered(communicator: &Communicator, function: Function, comm: usize) -> u16 {
    // No rank waits for others, or there are two groups.
    if communicator.size() < 2 || communicator.is_inter() {
        return IGNORED;
    }
    // The library may be asked for them, with no lock held.
    let members = communicator.members();
    let mut known = known();
    let ordinal = match communicator.note(ORDINAL) {
        0 => {
            if known.groups.len() >= GROUPS_AT_MOST && !known.groups.contains_key(&members) {
                return NO_ROOM;
            }
            let came = known.groups.entry(members).or_default();
            let ordinal = (*came).min(ALIKE_AT_MOST - 1);
            *came += 1;
            communicator.set_note(ORDINAL, u16::try_from(ordinal + 1).unwrap_or(NO_ROOM));
            ordinal
        }
        ordinal => u32::from(ordinal) - 1,
    };
    let is_it =
        |key: &TallyKey| (key.function, key.members, key.ordinal) == (function, members, ordinal);
    if let Some(at) = known.keys.iter().position(is_it) {
        return u16::try_from(FIRST + at).unwrap_or(NO_ROOM);
    }
    let number = FIRST + known.keys.len();
    let Some(place) = TALLIES.get(number) else { return NO_ROOM };
    if alloc::is_short() || place.set(WaitingTally::new(0)).is_err() {
        return NO_ROOM;
    }
    let size = communicator.size();
    known.keys.push(TallyKey { function, members, ordinal, size, name: name(comm, size, ordinal) });
    u16::try_from(number).unwrap_or(NO_ROOM)
}

fn name(comm: usize, size: u32, ordinal: u32) -> String {
    if ordinal + 1 == ALIKE_AT_MOST {
        return format!("further communicators of {size} ranks");
    }
    let name = inquiry().and_then(|mpi| mpi.comm_name(comm));
    name.unwrap_or_else(|| format!("communicator of {size} ranks"))
}

fn known() -> MutexGuard<'static, WaitingGroups> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WaitingTally {
    fn new(next: u64) -> WaitingTally {
        WaitingTally { calls: Counter::new(0), next: Counter::new(next), timed: Mutex::default() }
    }

    /// Counts one more call; returns its number.
    #[inline]
    fn count(&self, alone: bool) -> u64 {
        if alone { self.calls.next() } else { self.calls.next_shared() }
    }

    fn timed(&self) -> MutexGuard<'_, TimedCalls> {
        self.timed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call is the next one due for timing, unless it is now left out.
    #[cold]
    #[inline(never)]
    fn draw(&'static self, call: u64) -> Option<Due> {
        contain("choosing a call", || {
            let mut timed = self.timed();
            let is_due = timed.draw(call);
            self.next.set(Waiting::timed_call(timed.level, (call >> timed.level) + 1));
            is_due.then_some(Due::Chosen { tally: self, call })
        })?
    }
}

impl Due {
    /// The call took this many ticks.
    #[cold]
    #[inline(never)]
    pub(crate) fn took(self, ticks: u64, succeeded: bool) {
        let due = match self {
            Due::FirstOf { alone, function, comm } if succeeded => chosen(alone, function, comm),
            Due::FirstOf { .. } => None,
            Due::Chosen { .. } => Some(self),
        };
        let Some(Due::Chosen { tally, call }) = due else { return };
        contain("timing a collective", || tally.timed().took(call, ticks));
        let budget = budget();
        budget.spend_on_timing(budget.timed_ticks());
    }
}

impl TimedCalls {
    /// Whether to time this call, which is the next one at the level. If so, there is room for it.
    fn draw(&mut self, call: u64) -> bool {
        while call >> self.level >= DURATIONS_AT_MOST as u64 {
            self.thin();
        }
        Waiting::timed_call(self.level, call >> self.level) == call
    }

    fn thin(&mut self) {
        Waiting::thin(&mut self.ticks, self.level);
        self.level += 1;
    }

    fn took(&mut self, call: u64, ticks: u64) {
        let Ok(at) = usize::try_from(call >> self.level) else { return };
        // Another thread may have drawn many in the meantime.
        if at >= DURATIONS_AT_MOST || Waiting::timed_call(self.level, at as u64) != call {
            return;
        }
        if self.ticks.len() <= at {
            self.ticks.resize(at + 1, 0.0);
        }
        if let Some(place) = self.ticks.get_mut(at) {
            *place = ticks as f32;
        }
    }

    /// In the form of the profile.
    fn written(&self) -> String {
        let ns_per_tick = clock::ns_per_tick();
        let ns =
            |ticks: &f32| (*ticks > 0.0).then(|| clock::whole(f64::from(*ticks) * ns_per_tick));
        Waiting::written(self.ticks.iter().map(ns))
    }
}

/// The data for the profile: no more durations than it has room for, so functions with the most durations lose
/// some.
pub(crate) fn described() -> Vec<Waiting> {
    let known = known();
    let tallies = known.keys.iter().zip(TALLIES.iter().skip(FIRST)).filter_map(|(key, tally)| {
        let tally = tally.get()?;
        Some((key, tally.calls.get(), tally.timed().clone()))
    });
    let mut tallies: Vec<(&TallyKey, u64, TimedCalls)> = tallies.collect();
    while tallies.iter().map(|(_, _, timed)| timed.ticks.len()).sum::<usize>() > WRITTEN_AT_MOST {
        let most = tallies.iter_mut().rev().max_by_key(|(_, _, timed)| timed.ticks.len());
        if let Some((_, _, timed)) = most {
            timed.thin();
        }
    }
    let described = tallies.into_iter().map(|(key, calls, timed)| Waiting {
        function: ledger::row(key.function).map_or("", |row| row.name).into(),
        communicator: key.name.clone(),
        members: format!("{:016x}", key.members),
        ordinal: key.ordinal,
        size: key.size,
        calls,
        level: timed.level,
        times_ns: timed.written(),
    });
    described.collect()
}

/// The calls that are not included, and why.
pub(crate) fn left_out() -> Vec<ObjectsLeftOut> {
    let not = "of a synchronising collective";
    let without_room = TALLIES.get(usize::from(NO_ROOM)).and_then(OnceLock::get);
    let reasons = [
        (
            without_room.map_or(0, |tally| tally.calls.get()),
            "on more communicators than there is room for",
        ),
        (WITHOUT_RANKS.get(), "on communicators whose ranks in MPI_COMM_WORLD are not known"),
    ];
    let left_out = reasons.map(|(number, why)| ObjectsLeftOut {
        what: format!("call {not}"),
        number,
        reason: format!("not divided into waiting and transfer: {why}"),
    });
    left_out.into_iter().filter(|of| of.number > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tally after this many calls, each of which takes its number plus 1, and how many were drawn.
    fn run(calls: u64) -> (TimedCalls, u64) {
        let (mut timed, mut next, mut drawn) = (TimedCalls::default(), 0, 0);
        for call in 0..calls {
            if call == next {
                if timed.draw(call) {
                    timed.took(call, call + 1);
                    drawn += 1;
                }
                next = Waiting::timed_call(timed.level, (call >> timed.level) + 1);
            }
        }
        (timed, drawn)
    }

    #[test]
    fn every_call_is_timed_until_there_are_too_many_and_then_the_same_of_each_part() {
        for calls in [0, 1, 1023, 1024, 1025, 1500, 2048, 2049, 5000, 100_000, 1_000_000] {
            let (timed, drawn) = run(calls);
            assert!(timed.ticks.len() <= DURATIONS_AT_MOST);
            if calls <= 1024 {
                assert_eq!((timed.level, timed.ticks.len() as u64), (0, calls));
            } else {
                assert!(timed.ticks.len() >= DURATIONS_AT_MOST / 2, "{calls}");
                let doublings = (calls as f64 / 1024.0).log2().ceil();
                assert!(drawn as f64 <= 1024.0 + 520.0 * doublings, "{calls}: {drawn}");
            }
            for (block, ticks) in timed.ticks.iter().enumerate() {
                let call = Waiting::timed_call(timed.level, block as u64);
                #[allow(clippy::float_cmp)]
                let is_it = *ticks == (call + 1) as f32;
                assert!(is_it, "{calls}: {block} is call {call}");
            }
        }
    }

    #[test]
    fn what_was_left_out_or_has_not_come_back_is_not_known() {
        let mut timed = TimedCalls::default();
        assert!(timed.draw(0) && timed.draw(1) && timed.draw(2));
        timed.took(2, 70);
        assert_eq!(timed.ticks, [0.0, 0.0, 70.0]);
        for call in 3..1024 {
            assert!(timed.draw(call));
        }
        let drawn = timed.draw(1024);
        assert_eq!((timed.level, drawn), (1, Waiting::timed_call(1, 512) == 1024));
        // Drawn before, and not part of the next level.
        let gone = (0..4).find(|call| Waiting::timed_call(1, call >> 1) != *call).unwrap();
        let before = timed.ticks.clone();
        timed.took(gone, 99);
        timed.took(u64::MAX, 99);
        assert_eq!(timed.ticks, before);
    }
}
