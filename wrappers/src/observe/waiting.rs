//! How long do calls of collectives take, and when do they begin? The same calls are timed on every rank. Where each rank waits for
//! all others, the shortest time of a call over all ranks is about what it costs once all have come; the rest is waiting.
//! Where it waits for some of them, it waits until these have begun the call.
//!
//! An operation that a call only starts is waited for in the call that completes its request ([`pending`]): from when that begins,
//! until those have started the operation whose data it needs.
//!
//! Which calls are timed follows from their number on the communicator, not from each rank's budget. Timing
//! becomes rarer as the number of calls grows, so that the total cost stays small (see [`Waiting`]).
//! Communicators with the same members are told apart by the order of their first such calls. It is the same on all ranks,
//! because ranks may not call collectives on two communicators in orders that could make them wait for each other (MPI 4.1,
//! 6.14). That holds for a single thread, and not for operations that are only started, which may be in any order on different
//! communicators.
//!
//! A window counts as a communicator of its own, on which `MPI_Win_fence` is called (MPI 4.1, 12.5.1).

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use gyan_results::{CallStarts, DURATIONS_AT_MOST, ObjectsLeftOut, Waiting, WaitsFor};

use super::communicators::{self, Communicator, NOTES};
use super::pending::{self, PendingOperation};
use super::streams::CallTimes;
use crate::calls::budget::budget;
use crate::calls::containment::contain;
use crate::calls::ledger;
use crate::mpi::abi::inquiry;
use crate::mpi::functions::{Function, collective};
use crate::mpi::handles::{Kind, Passed};
use crate::sys::alloc;
use crate::sys::cells::Counter;
use crate::sys::clock;
use crate::sys::locks::held;

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
/// The place of the only function whose ranks are those of a window.
const ON_WINDOW: usize = ORDINAL - 1;
const _: () = assert!(collective::ROWS.len() <= ON_WINDOW);
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
    /// How many communicators with the same members have been seen, and how many windows.
    groups: BTreeMap<(u64, bool), u32>,
}

/// What a tally counts.
#[derive(Clone, Debug)]
struct TallyKey {
    function: Function,
    members: u64,
    ordinal: u32,
    size: u32,
    /// This rank in the communicator, if that is known and needed: a fence need not wait where no epoch ends, so it tells nothing
    /// about clocks.
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
    /// When the call began that completed the operation, if this one only started it.
    waits: u64,
    root: c_int,
}

/// The root of a function that has none.
pub(crate) const NO_ROOT: c_int = -1;

/// What a call says of the operation beside its communicator.
#[derive(Clone, Copy)]
pub(crate) struct AsCalled {
    pub(crate) root: c_int,
    /// Where its request is, if it only starts it.
    pub(crate) request: Option<Passed>,
}

/// An operation that a call has started, and that is timed.
#[derive(Clone, Copy)]
pub(super) struct PendingCollective {
    tally: &'static WaitingTally,
    call: u64,
    start: CallStart,
}

/// A call that is due for timing.
pub(crate) enum Due {
    Chosen {
        tally: &'static WaitingTally,
        call: u64,
        called: AsCalled,
    },
    /// On a communicator of which nothing is known. If it is no valid one, the call tells the program; gyan asks afterwards.
    FirstOf {
        alone: bool,
        function: Function,
        /// As [`communicators::by_handle`] finds it.
        comm: usize,
        called: AsCalled,
    },
}

/// From now on calls are timed, if wanted.
pub(crate) fn begin(on: bool) {
    for tally in TALLIES.iter().take(FIRST).skip(1) {
        tally.get_or_init(|| WaitingTally::new(u64::MAX));
    }
    ON.store(on, Ordering::Relaxed);
}

/// On what ranks wait in `MPI_Win_fence`; on nothing if no epoch ends there, which all of them or none say with `assert` (MPI 4.1,
/// 12.5.5).
#[inline]
pub(crate) fn on_window(win: usize, assert: c_int) -> Option<usize> {
    let no_precede = inquiry()?.abi.mode_noprecede;
    (assert & no_precede == 0).then(|| communicators::window(win))
}

/// The program calls `function` on a communicator: none when that call is not timed. `alone`: no other thread
/// calls MPI.
#[inline]
pub(crate) fn due(alone: bool, function: Function, comm: usize, called: AsCalled) -> Option<Due> {
    if !ON.load(Ordering::Relaxed) {
        return None;
    }
    if communicators::is_new(comm) {
        return Some(Due::FirstOf { alone, function, comm, called });
    }
    chosen(alone, function, comm, called)
}

/// The call if it is chosen for timing, which counts it; its communicator is a valid one.
fn chosen(alone: bool, function: Function, comm: usize, called: AsCalled) -> Option<Due> {
    let Some(communicator) = communicators::by_handle(comm) else {
        WITHOUT_RANKS.add_shared(1);
        return None;
    };
    let tally = match tally(communicator, function) {
        Some(tally) => tally,
        None => first_call(communicator, function, comm)?,
    };
    let call = tally.count(alone);
    if call == tally.next.get() { tally.draw(call, called) } else { None }
}

/// Whether the next call on a communicator is due for timing, or nothing is known of it.
#[inline]
pub(crate) fn is_due(function: Function, comm: usize) -> bool {
    if !ON.load(Ordering::Relaxed) {
        return false;
    }
    let of_late = communicators::of_late(comm);
    match of_late.and_then(|communicator| tally(communicator, function)) {
        Some(tally) => tally.is_due(),
        None => is_due_of_others(function, comm),
    }
}

/// The same for a communicator that was not used just before.
#[cold]
#[inline(never)]
fn is_due_of_others(function: Function, comm: usize) -> bool {
    if communicators::is_new(comm) {
        return true;
    }
    communicators::by_handle(comm)
        .is_some_and(|communicator| tally(communicator, function).is_none_or(WaitingTally::is_due))
}

/// Whether the next call of the only thread that calls MPI is due for timing. If it is not, the call is counted.
#[inline]
pub(crate) fn is_due_or_counted(function: Function, comm: usize) -> bool {
    if !ON.load(Ordering::Relaxed) {
        return false;
    }
    let of_late = communicators::of_late(comm);
    let Some(tally) = of_late.and_then(|communicator| tally(communicator, function)) else {
        return is_due_or_counted_of_others(function, comm);
    };
    let is_due = tally.is_due();
    if !is_due {
        tally.count(true);
    }
    is_due
}

/// The same for a communicator that was not used just before.
#[cold]
#[inline(never)]
fn is_due_or_counted_of_others(function: Function, comm: usize) -> bool {
    let is_due = is_due_of_others(function, comm);
    if !is_due {
        // Which is none, and has counted the call.
        _ = due(true, function, comm, AsCalled { root: NO_ROOT, request: None });
    }
    is_due
}

/// Forwards a call with `next`, and times it if it is due. `comm`: on what ranks wait for each other, if they do. Code that most
/// calls do not need is in separate functions, so that no registers must be saved for it.
#[inline]
pub(crate) fn around(
    alone: bool,
    function: Function,
    comm: impl FnOnce() -> Option<usize>,
    called: AsCalled,
    next: impl FnOnce() -> c_int,
) -> c_int {
    if !ON.load(Ordering::Relaxed) {
        return next();
    }
    let Some(comm) = comm() else { return next() };
    let of_late = communicators::of_late(comm);
    let Some(tally) = of_late.and_then(|communicator| tally(communicator, function)) else {
        return out_of_line(move || due(alone, function, comm, called), next);
    };
    let call = tally.count(alone);
    if call != tally.next.get() {
        return next();
    }
    out_of_line(move || tally.draw(call, called), next)
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

/// The slot for a function's tally: all such functions but one are in one chapter.
#[inline]
fn place(function: Function) -> usize {
    function.0.wrapping_sub(collective::MPI_Allgather.0).min(ON_WINDOW)
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
    let window = communicators::window_behind(comm);
    let alike = (members, window.is_some());
    let mut known = held(&KNOWN);
    let ordinal = match communicator.note(ORDINAL) {
        0 => {
            if known.groups.len() >= GROUPS_AT_MOST && !known.groups.contains_key(&alike) {
                return NO_ROOM;
            }
            let came = known.groups.entry(alike).or_default();
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
    let rank = if window.is_some() { None } else { own_rank(comm) };
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
    let window = communicators::window_behind(comm);
    let noun = if window.is_some() { Kind::Win } else { Kind::Comm }.noun();
    if ordinal + 1 == ALIKE_AT_MOST {
        return format!("further {noun}s of {size} ranks");
    }
    let name = inquiry().and_then(|mpi| match window {
        Some(window) => mpi.win_name(window),
        None => mpi.comm_name(comm),
    });
    name.unwrap_or_else(|| format!("{noun} of {size} ranks"))
}

impl TallyKey {
    fn function(&self) -> &'static str {
        ledger::row(self.function).map_or("", |row| row.name)
    }

    fn tally(&self) -> WaitingTally {
        let function = self.function();
        let starts_at_most = self.rank.map_or(0, |_| CallStarts::at_most(self.size, function));
        // Where it says nothing without its start, a time is not kept either.
        let needs_starts = WaitsFor::is_known_by_starts(function);
        let at_most = if needs_starts { starts_at_most } else { DURATIONS_AT_MOST };
        let timed = TimedCalls { at_most, starts_at_most, ..TimedCalls::default() };
        let next = if at_most > 0 { 0 } else { u64::MAX };
        WaitingTally { next: Counter::new(next), timed: Mutex::new(timed), ..WaitingTally::new(0) }
    }

    /// The calls of its tally, in the form of the profile. `clock`: the number of the host's.
    fn described(&self, calls: u64, timed: &TimedCalls, clock: Option<&str>) -> Waiting {
        Waiting {
            function: self.function().into(),
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

    /// Whether the next call is timed.
    #[inline]
    fn is_due(&self) -> bool {
        self.calls.get() == self.next.get()
    }

    /// Counts one more call; returns its number.
    #[inline]
    fn count(&self, alone: bool) -> u64 {
        if alone { self.calls.next() } else { self.calls.next_shared() }
    }

    fn timed(&self) -> MutexGuard<'_, TimedCalls> {
        held(&self.timed)
    }

    /// A call that was drawn began then, and took this many ticks.
    fn took(&self, call: u64, start: CallStart, ticks: u64) {
        contain("timing a collective", || self.timed().took(call, start, ticks));
        let budget = budget();
        budget.spend_on_timing(budget.timed_ticks());
    }

    /// The call is the next one due for timing, unless it is now left out.
    #[cold]
    #[inline(never)]
    fn draw(&'static self, call: u64, called: AsCalled) -> Option<Due> {
        contain("choosing a call", || {
            let mut timed = self.timed();
            let is_due = timed.draw(call);
            self.next.set(Waiting::timed_call(timed.level, (call >> timed.level) + 1));
            is_due.then_some(Due::Chosen { tally: self, call, called })
        })?
    }
}

impl Due {
    /// The call began then, and took this many ticks.
    #[cold]
    #[inline(never)]
    pub(crate) fn took(self, begun: u64, ticks: u64, succeeded: bool) {
        let due = match self {
            Due::FirstOf { alone, function, comm, called } if succeeded => {
                chosen(alone, function, comm, called)
            }
            Due::FirstOf { .. } => None,
            Due::Chosen { .. } => Some(self),
        };
        let Some(Due::Chosen { tally, call, called: AsCalled { root, request } }) = due else {
            return;
        };
        let start = CallStart { begun, waits: 0, root };
        let Some(at) = request else { return tally.took(call, start, ticks) };
        if succeeded && let Some(request) = at.request(0) {
            let started = PendingCollective { tally, call, start };
            pending::keep((at.language, request), PendingOperation::Collective(started));
        }
    }
}

impl PendingCollective {
    /// Its request has completed in this call.
    pub(super) fn completed(self, called: CallTimes) {
        let CallTimes { begun, ended, .. } = called;
        let start = CallStart { waits: begun, ..self.start };
        // No ticks are those of a call that was left out.
        self.tally.took(self.call, start, ended.saturating_sub(begun).max(1));
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
        let on_host = |ticks: u64| (ticks > 0).then(|| clock::on_host(ticks));
        let begun = || self.starts.iter().map(|start| on_host(start.begun));
        let only_start = self.starts.iter().any(|start| start.waits > 0);
        let waits = self.starts.iter().map(|start| on_host(start.waits));
        CallStarts {
            rank,
            clock: clock.to_owned(),
            level: self.starts_level,
            roots,
            begun: CallStarts::written(begun()),
            waits: if only_start {
                CallStarts::written_waits(begun(), waits)
            } else {
                String::new()
            },
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
    let known = held(&KNOWN);
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
    use crate::calls::gate;
    use crate::mpi::functions::collective::MPI_Ibcast;
    use crate::mpi::functions::point_to_point::{MPI_Test, MPI_Waitall};
    use crate::mpi::handles::Language;
    use crate::sys::fork::in_a_copy;

    fn timed_calls() -> TimedCalls {
        TimedCalls { at_most: DURATIONS_AT_MOST, starts_at_most: 64, ..TimedCalls::default() }
    }

    /// A tally after this many calls, each of which takes its number plus 1, and how many were drawn.
    fn run(calls: u64) -> (TimedCalls, u64) {
        let (mut timed, mut next, mut drawn) = (timed_calls(), 0, 0);
        for call in 0..calls {
            if call == next {
                if timed.draw(call) {
                    timed.took(
                        call,
                        CallStart { begun: call + 1, ..CallStart::default() },
                        call + 1,
                    );
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

    #[test]
    fn what_a_call_starts_is_timed_in_the_one_that_completes_its_request() {
        const COMM: usize = 0x4400_0000;
        let lines = in_a_copy(|out| {
            pending::begin(true);
            begin(true);
            communicators::simulate_world(COMM);
            communicators::made_up(COMM, 2, &[]);
            let starts = |request: c_int, begun: u64| {
                let word = (&raw const request).addr();
                let request = Some(Passed { language: Language::Fortran, word });
                let due = due(true, MPI_Ibcast, COMM, AsCalled { root: 1, request });
                due.unwrap().took(begun, 10, true);
            };
            let completed = |request, function, begun, ended| {
                let called = CallTimes { function, caller: 0, begun, ended };
                pending::completed(Language::Fortran, request, false, called);
            };
            starts(5, 100);
            starts(6, 200);
            writeln!(out, "{} {}", is_due(MPI_Ibcast, COMM), gate::watches_completions())?;
            completed(6, MPI_Waitall, 300, 350);
            // A test finds it, and has not waited.
            completed(5, MPI_Test, 460, 460);
            // It has completed already.
            completed(6, MPI_Waitall, 500, 550);
            writeln!(out, "{}", gate::watches_completions())?;
            let timed = TALLIES[FIRST].get().unwrap().timed();
            for (start, ticks) in timed.starts.iter().zip(&timed.ticks) {
                writeln!(out, "{} {} {} {ticks}", start.root, start.begun, start.waits)?;
            }
            Ok(())
        });
        assert_eq!(lines, "true true\nfalse\n1 100 460 1\n1 200 300 50\n");
    }
}
