//! How long do calls of collectives take, and when do they begin? The same calls are timed on every rank. Where each rank waits for
//! all others, the shortest time of a call over all ranks is about what it costs once all have come; the rest is waiting.
//! Where it waits for some of them, it waits until these have begun the call.
//!
//! Which calls are timed follows from their number on the communicator, not from each rank's budget. Timing
//! becomes rarer as the number of calls grows, so that the total cost stays small (see [`Waiting`]).
//! Communicators with the same members are told apart by the order of their first such calls. It is the same on all ranks,
//! because ranks may not call collectives on two communicators in orders that could make them wait for each other (MPI 4.1,
//! 6.14). That holds for a single thread.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gyan_results::{CallStarts, DURATIONS_AT_MOST, ObjectsLeftOut, Waiting, WaitsFor};

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
    /// This rank in the communicator, if that is known.
    rank: Option<u32>,
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
    /// No more are kept.
    at_most: usize,
    /// Ticks; 0 if not known, or not yet.
    ticks: Vec<f32>,
    /// When those of `starts_level` began: at most `starts_at_most`, without which none is kept.
    starts: Vec<CallStart>,
    starts_level: u32,
    starts_at_most: usize,
}

/// When a call began, in ticks, 0 if that is not known, and its root.
#[derive(Clone, Copy, Default)]
struct CallStart {
    begun: u64,
    root: c_int,
}

/// The root of a function that has none.
pub(crate) const NO_ROOT: c_int = -1;

/// A call that is due for timing.
pub(crate) enum Due {
    Chosen {
        tally: &'static WaitingTally,
        call: u64,
        root: c_int,
    },
    /// On a communicator of which nothing is known. If it is no valid one, the call tells the program; gyan asks afterwards.
    FirstOf {
        alone: bool,
        function: Function,
        comm: usize,
        root: c_int,
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
pub(crate) fn due(alone: bool, function: Function, comm: usize, root: c_int) -> Option<Due> {
    if !ON.load(Ordering::Relaxed) {
        return None;
    }
    if communicators::is_new(comm) {
        return Some(Due::FirstOf { alone, function, comm, root });
    }
    chosen(alone, function, comm, root)
}

/// The call if it is chosen for timing, which counts it; its communicator is a valid one.
fn chosen(alone: bool, function: Function, comm: usize, root: c_int) -> Option<Due> {
    let Some(communicator) = communicators::by_word(comm) else {
        WITHOUT_RANKS.add_shared(1);
        return None;
    };
    let tally = match tally(communicator, function) {
        Some(tally) => tally,
        None => first_call(communicator, function, comm)?,
    };
    let call = tally.count(alone);
    if call == tally.next.get() { tally.draw(call, root) } else { None }
}

/// Forwards a call with `next`, and times it if it is due. Code that most calls do not need is in separate
/// functions, so that no registers must be saved for it.
#[inline]
pub(crate) fn around(
    alone: bool,
    function: Function,
    comm: usize,
    root: c_int,
    next: impl FnOnce() -> c_int,
) -> c_int {
    if !ON.load(Ordering::Relaxed) {
        return next();
    }
    let of_late = communicators::of_late(comm);
    let Some(tally) = of_late.and_then(|communicator| tally(communicator, function)) else {
        return out_of_line(move || due(alone, function, comm, root), next);
    };
    let call = tally.count(alone);
    if call != tally.next.get() {
        return next();
    }
    out_of_line(move || tally.draw(call, root), next)
}

#[cold]
#[inline(never)]
fn out_of_line(due: impl FnOnce() -> Option<Due>, next: impl FnOnce() -> c_int) -> c_int {
    let Some(due) = due() else { return next() };
    let begun = clock::now();
    let result = next();
    due.took(begun, clock::now().saturating_sub(begun), result == 0);
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
    let size = communicator.size();
    let name = name(comm, size, ordinal);
    let rank = own_rank(comm);
    let key = TallyKey { function, members, ordinal, size, rank, name };
    if alloc::is_short() || place.set(key.tally()).is_err() {
        return NO_ROOM;
    }
    known.keys.push(key);
    u16::try_from(number).unwrap_or(NO_ROOM)
}

#[cfg(not(test))]
fn own_rank(comm: usize) -> Option<u32> {
    u32::try_from(inquiry()?.rank(comm)?).ok()
}

/// The rank in a communicator of a simulated run, in which no library can be asked.
#[cfg(test)]
static SIMULATED_RANK: Counter = Counter::new(0);

/// The next new communicator has this as its rank.
#[cfg(test)]
pub(crate) fn simulate_rank(rank: u32) {
    SIMULATED_RANK.set(rank.into());
}

#[cfg(test)]
fn own_rank(_: usize) -> Option<u32> {
    u32::try_from(SIMULATED_RANK.get()).ok()
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

impl TallyKey {
    fn waits_for(&self) -> WaitsFor {
        WaitsFor::in_function(ledger::row(self.function).map_or("", |row| row.name))
    }

    fn tally(&self) -> WaitingTally {
        let waits_for = self.waits_for();
        let starts_at_most = self.rank.map_or(0, |_| CallStarts::at_most(self.size, waits_for));
        let at_most = match waits_for {
            WaitsFor::All => DURATIONS_AT_MOST,
            // A time says nothing without its start.
            _ => starts_at_most,
        };
        let timed = TimedCalls { at_most, starts_at_most, ..TimedCalls::default() };
        let next = if at_most > 0 { 0 } else { u64::MAX };
        WaitingTally { next: Counter::new(next), timed: Mutex::new(timed), ..WaitingTally::new(0) }
    }

    /// The calls of its tally, in the form of the profile. `clock`: the number of the host's.
    fn described(&self, calls: u64, timed: &TimedCalls, clock: Option<&str>) -> Waiting {
        Waiting {
            function: ledger::row(self.function).map_or("", |row| row.name).into(),
            communicator: self.name.clone(),
            members: format!("{:016x}", self.members),
            ordinal: self.ordinal,
            size: self.size,
            calls,
            level: timed.level,
            times_ns: timed.written(),
            starts: self.rank.zip(clock).map(|(rank, clock)| timed.starts(rank, clock)),
        }
    }
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
    fn draw(&'static self, call: u64, root: c_int) -> Option<Due> {
        contain("choosing a call", || {
            let mut timed = self.timed();
            let is_due = timed.draw(call);
            self.next.set(Waiting::timed_call(timed.level, (call >> timed.level) + 1));
            is_due.then_some(Due::Chosen { tally: self, call, root })
        })?
    }
}

impl Due {
    /// The call began then, and took this many ticks.
    #[cold]
    #[inline(never)]
    pub(crate) fn took(self, begun: u64, ticks: u64, succeeded: bool) {
        let due = match self {
            Due::FirstOf { alone, function, comm, root } if succeeded => {
                chosen(alone, function, comm, root)
            }
            Due::FirstOf { .. } => None,
            Due::Chosen { .. } => Some(self),
        };
        let Some(Due::Chosen { tally, call, root }) = due else { return };
        let start = CallStart { begun, root };
        contain("timing a collective", || tally.timed().took(call, start, ticks));
        let budget = budget();
        budget.spend_on_timing(budget.timed_ticks());
    }
}

impl TimedCalls {
    /// Whether to time this call, which is the next one at the level. If so, there is room for it.
    fn draw(&mut self, call: u64) -> bool {
        while call >> self.level >= self.at_most as u64 {
            self.thin();
        }
        Waiting::timed_call(self.level, call >> self.level) == call
    }

    fn thin(&mut self) {
        Waiting::thin(&mut self.ticks, self.level);
        self.level += 1;
        self.thin_starts(self.level);
    }

    fn thin_starts(&mut self, level: u32) {
        while self.starts_level < level {
            Waiting::thin(&mut self.starts, self.starts_level);
            self.starts_level += 1;
        }
    }

    fn took(&mut self, call: u64, start: CallStart, ticks: u64) {
        if self.starts_at_most > 0 {
            while call >> self.starts_level >= self.starts_at_most as u64 {
                self.thin_starts(self.starts_level + 1);
            }
            set(&mut self.starts, self.starts_level, call, start);
        }
        // Another thread may have drawn many in the meantime.
        if call >> self.level < self.at_most as u64 {
            set(&mut self.ticks, self.level, call, ticks as f32);
        }
    }

    /// When calls began, in the form of the profile.
    fn starts(&self, rank: u32, clock: &str) -> CallStarts {
        let mut roots: Vec<(u32, u32)> = Vec::new();
        for start in &self.starts {
            let Ok(root) = u32::try_from(start.root) else { break };
            match roots.last_mut() {
                Some((calls, same)) if *same == root => *calls += 1,
                _ => roots.push((1, root)),
            }
        }
        let begun = |start: &CallStart| (start.begun > 0).then(|| clock::on_host(start.begun));
        CallStarts {
            rank,
            clock: clock.to_owned(),
            level: self.starts_level,
            roots,
            begun: CallStarts::written(self.starts.iter().map(begun)),
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

/// Sets what is known of a call, if it is one of those of the level.
pub(super) fn set<T: Clone + Default>(calls: &mut Vec<T>, level: u32, call: u64, known: T) {
    let block = call >> level;
    let Ok(at) = usize::try_from(block) else { return };
    if Waiting::timed_call(level, block) != call {
        return;
    }
    if calls.len() <= at {
        calls.resize(at + 1, T::default());
    }
    if let Some(place) = calls.get_mut(at) {
        *place = known;
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
    let clock = clock::of_host();
    let described =
        |(key, calls, timed): &(&TallyKey, u64, TimedCalls)| key.described(*calls, timed, clock);
    tallies.iter().map(described).collect()
}

/// The calls that are not included, and why.
pub(crate) fn left_out() -> Vec<ObjectsLeftOut> {
    let not = "of a collective";
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

    fn timed_calls() -> TimedCalls {
        TimedCalls { at_most: DURATIONS_AT_MOST, starts_at_most: 64, ..TimedCalls::default() }
    }

    /// A tally after this many calls, each of which takes its number plus 1, and how many were drawn.
    fn run(calls: u64) -> (TimedCalls, u64) {
        let (mut timed, mut next, mut drawn) = (timed_calls(), 0, 0);
        for call in 0..calls {
            if call == next {
                if timed.draw(call) {
                    timed.took(call, CallStart { begun: call + 1, root: 0 }, call + 1);
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
            assert!(timed.starts.len() <= 64 && timed.starts.len() as u64 >= calls.min(32));
            for (block, start) in timed.starts.iter().enumerate() {
                let call = Waiting::timed_call(timed.starts_level, block as u64);
                assert!(start.begun == call + 1 || start.begun == 0, "{calls}: {block}");
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
        let mut timed = timed_calls();
        assert!(timed.draw(0) && timed.draw(1) && timed.draw(2));
        timed.took(2, CallStart::default(), 70);
        assert_eq!(timed.ticks, [0.0, 0.0, 70.0]);
        for call in 3..1024 {
            assert!(timed.draw(call));
        }
        let drawn = timed.draw(1024);
        assert_eq!((timed.level, drawn), (1, Waiting::timed_call(1, 512) == 1024));
        // Drawn before, and not part of the next level.
        let gone = (0..4).find(|call| Waiting::timed_call(1, call >> 1) != *call).unwrap();
        let before = timed.ticks.clone();
        timed.took(gone, CallStart::default(), 99);
        timed.took(u64::MAX, CallStart::default(), 99);
        assert_eq!(timed.ticks, before);
    }
}
