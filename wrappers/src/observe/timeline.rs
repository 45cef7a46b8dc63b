//! What did the program call last, and when? Every call leaves an event in a ring in memory, if that is wanted; the oldest ones are
//! overwritten ([`TimelineEvent`]).
//!
//! Then no call takes the path of the entrances in assembly, so all of them come through here. What a call says is kept as it was
//! passed: nothing is looked up but the number of its communicator, which is stored with that, and of the place that it came from.
//! What the numbers mean is found out at the end, or when a communicator is met first.

use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use gyan_results::{
    TIMELINE_SCHEMA, TimelineClock, TimelineCommunicator, TimelineEvent, TimelineHeader,
    TimelineKind, TimelinePeer,
};

use super::communicators::{self, Communicator, TIMELINE_NOTE};
use super::iterations;
use super::objects;
use super::recording;
use super::streams::{self, CallTimes};
use crate::calls::addresses::{self, Map};
use crate::calls::containment::contain;
use crate::mpi::abi::inquiry;
use crate::mpi::functions::{Function, functions};
use crate::mpi::handles::{ArgumentPosition, Arguments, Kind, Language};
use crate::sys::alloc;
use crate::sys::cells::Gauge;
use crate::sys::clock;
use crate::sys::locks::held;
use crate::sys::lookup::{position, spread};
use crate::sys::ring::Rings;

/// Further communicators have no number.
const COMMUNICATORS_AT_MOST: usize = 4096;
const NO_NUMBER: u16 = u16::MAX;
/// A power of two. A place for which there is none among so many in a row has no number.
const SITES: usize = 1 << 12;
const LOOKS_AT_MOST: usize = 64;
/// Requests of one call that need no memory.
const FEW: usize = 32;

static EVENTS: Rings = Rings::new();
/// The return addresses of calls, by their hash; 0 for none.
static CALLERS: [AtomicUsize; SITES] = [const { AtomicUsize::new(0) }; SITES];
static COMMUNICATORS: Mutex<Vec<TimelineCommunicator>> = Mutex::new(Vec::new());
/// The ticks that an event takes.
static EVENT: Gauge = Gauge::new(0.0);
/// The low half of `MPI_REQUEST_NULL` in C.
static NULL_REQUEST: AtomicU32 = AtomicU32::new(0);

/// Where the arguments of a function are that its events have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TimelineArguments {
    /// The rank that it sends to, or else receives from or accesses, or its root; and the tag.
    peer: Option<ArgumentPosition>,
    tag: Option<ArgumentPosition>,
    /// The rank that it receives from, if it sends as well, and the tag.
    source: Option<ArgumentPosition>,
    source_tag: Option<ArgumentPosition>,
    comm: Option<ArgumentPosition>,
    win: Option<ArgumentPosition>,
    /// One request or several, and how many.
    requests: Option<ArgumentPosition>,
    count: Option<ArgumentPosition>,
    status: Option<ArgumentPosition>,
    statuses: Option<ArgumentPosition>,
    role: RequestRole,
    /// Whether a collective operation on a communicator has ended with the call.
    is_collective: bool,
}

/// What a function does with its requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RequestRole {
    None,
    Makes,
    Starts,
    /// `all`: every one of them.
    Completes {
        all: bool,
    },
}

impl TimelineArguments {
    /// The arguments of a row with these names and types. `meets`: ranks wait for each other on its communicator, in it or in what
    /// it starts.
    pub(crate) const fn new(
        function: &str,
        names: &[&str],
        types: &[&str],
        makes_request: bool,
        meets: bool,
    ) -> TimelineArguments {
        let dest = typed(names, types, "dest", "Int");
        let source = typed(names, types, "source", "Int");
        let root = typed(names, types, "root", "Int");
        let target = typed(names, types, "target_rank", "Int");
        let tag = typed(names, types, "tag", "Int");
        let peer = ArgumentPosition::first(
            ArgumentPosition::first(dest, source),
            ArgumentPosition::first(root, target),
        );
        let sends_too = dest.is_some() && source.is_some();
        let requests = ArgumentPosition::first(
            ArgumentPosition::named(names, "request"),
            ArgumentPosition::named(names, "array_of_requests"),
        );
        let role = match function.as_bytes() {
            _ if requests.is_none() => RequestRole::None,
            _ if makes_request => RequestRole::Makes,
            [b'M', b'P', b'I', b'_', b'S', b't', b'a', b'r', b't', ..] => RequestRole::Starts,
            b"MPI_Wait" | b"MPI_Waitall" => RequestRole::Completes { all: true },
            [b'M', b'P', b'I', b'_', b'W', b'a', b'i', b't', ..]
            | [b'M', b'P', b'I', b'_', b'T', b'e', b's', b't', ..] => {
                RequestRole::Completes { all: false }
            }
            _ => RequestRole::None,
        };
        TimelineArguments {
            peer,
            tag: ArgumentPosition::first(typed(names, types, "sendtag", "Int"), tag),
            source: if sends_too { source } else { None },
            source_tag: typed(names, types, "recvtag", "Int"),
            comm: typed(names, types, "comm", "Comm"),
            win: typed(names, types, "win", "Win"),
            requests,
            count: ArgumentPosition::first(
                ArgumentPosition::named(names, "count"),
                ArgumentPosition::named(names, "incount"),
            ),
            status: ArgumentPosition::named(names, "status"),
            statuses: ArgumentPosition::named(names, "array_of_statuses"),
            role,
            is_collective: meets && requests.is_none(),
        }
    }
}

/// The position of the argument with this name, if it has this type.
const fn typed(
    names: &[&str],
    types: &[&str],
    name: &str,
    wanted: &str,
) -> Option<ArgumentPosition> {
    let Some(mut left) = position(names, name) else { return None };
    let mut rest = types;
    while let [first, others @ ..] = rest {
        if left == 0 {
            return if position(&[*first], wanted).is_some() {
                ArgumentPosition::named(names, name)
            } else {
                None
            };
        }
        left -= 1;
        rest = others;
    }
    None
}

/// From now on calls are recorded in this memory, of so many rings.
///
/// # Safety
///
/// That of [`Rings::begin`].
pub(crate) unsafe fn begin(memory: *mut u8, bytes: usize, rings: usize, null_request: u32) {
    addresses::prepare();
    NULL_REQUEST.store(null_request, Ordering::Relaxed);
    // SAFETY: the caller's.
    unsafe { EVENTS.begin(memory, bytes, rings) };
    measure();
}

/// Learns what the event of a call costs, by calls that were not made and are forgotten.
fn measure() {
    const CALLS_MEASURED: u32 = 64;
    const SEND: TimelineArguments =
        TimelineArguments::new("", &["dest", "tag"], &["Int", "Int"], false, false);
    // SAFETY: the program passes nothing, but these are two integers.
    let arguments = unsafe { Arguments::new(Language::C, &[0, 0]) };
    let called = CallTimes { function: Function(0), caller: 0, begun: 0, ended: 1 };
    let call = CallRecord {
        at: &SEND,
        arguments: &arguments,
        called,
        succeeded: true,
        bytes: 0,
        is_alone: true,
        thread: 0,
        before: None,
    };
    let ticks = clock::least_of(CALLS_MEASURED, || std::hint::black_box(&call).leave_events());
    EVENT.set(ticks + 2.0 * clock::reading());
    EVENTS.forget();
}

/// The ticks that all events took so far, with the readings of the clock.
pub(crate) fn ticks() -> f64 {
    EVENT.get() * EVENTS.events() as f64
}

/// Whether calls are recorded now.
#[inline]
pub(crate) fn is_on() -> bool {
    recording::is_on()
}

/// Whether calls are recorded in some part of the run.
pub(crate) fn has_begun() -> bool {
    EVENTS.is_on()
}

/// The requests of a call that may complete them, as they were before it.
pub(crate) struct RequestsBefore {
    few: [u32; FEW],
    /// If there are more than that.
    many: Vec<u32>,
    count: usize,
}

impl RequestsBefore {
    /// None for a function that completes none.
    #[inline]
    pub(crate) fn of(at: &TimelineArguments, arguments: Arguments) -> Option<RequestsBefore> {
        match at.role {
            RequestRole::Completes { .. } => RequestsBefore::read(at, arguments),
            _ => None,
        }
    }

    #[inline(never)]
    fn read(at: &TimelineArguments, arguments: Arguments) -> Option<RequestsBefore> {
        let count = at.number(arguments);
        let mut before = RequestsBefore { few: [0; FEW], many: Vec::new(), count };
        let places = if count <= FEW {
            &mut before.few[..]
        } else if alloc::is_short() {
            return None;
        } else {
            before.many.resize(count, 0);
            &mut before.many[..]
        };
        for (number, place) in places.iter_mut().take(count).enumerate() {
            *place = at.request(arguments, number);
        }
        Some(before)
    }

    fn all(&self) -> impl Iterator<Item = u32> {
        let places = if self.many.is_empty() { &self.few[..] } else { &self.many };
        places.iter().take(self.count).copied()
    }
}

/// A call of the program that has ended.
pub(crate) struct CallRecord<'a> {
    pub(crate) at: &'a TimelineArguments,
    pub(crate) arguments: &'a Arguments<'a>,
    pub(crate) called: CallTimes,
    pub(crate) succeeded: bool,
    /// What it handed to MPI.
    pub(crate) bytes: u64,
    /// No other thread calls MPI.
    pub(crate) is_alone: bool,
    pub(crate) thread: u8,
    pub(crate) before: Option<&'a RequestsBefore>,
}

impl TimelineArguments {
    /// How many requests there are.
    fn number(&self, arguments: Arguments) -> usize {
        self.count.map_or(1, |count| arguments.at(count).number())
    }

    /// The low half of a request.
    #[allow(clippy::cast_possible_truncation)]
    fn request(&self, arguments: Arguments, number: usize) -> u32 {
        self.requests.and_then(|requests| arguments.at(requests).request(number)).unwrap_or(0)
            as u32
    }
}

impl CallRecord<'_> {
    /// Leaves the events of the call.
    #[inline]
    pub(crate) fn keep(&self) {
        if recording::takes(self.called.begun, self.called.ended) {
            self.leave_events();
        }
    }

    #[inline(never)]
    fn leave_events(&self) {
        let CallRecord { at, arguments, called, .. } = self;
        #[allow(clippy::cast_possible_truncation)]
        let kind = TimelineKind::Call(called.function.0 as u16);
        let mut event = TimelineEvent {
            took: called.ended.saturating_sub(called.begun),
            thread: self.thread,
            site: site(called.caller),
            ..TimelineEvent::new(kind, called.begun)
        };
        if !self.succeeded {
            // What it says is not certain, and the library must not be asked.
            return EVENTS.push(self.is_alone, event.packed());
        }
        event.bytes = self.bytes;
        event.communicator = self.communicator();
        let status = at.status.filter(|_| event.communicator != 0);
        let came = status.and_then(|status| arguments.at(status).source_and_tag());
        let receives_only = at.source.is_none();
        (event.peer, event.tag) = self.peer(at.peer, at.tag, came.filter(|_| receives_only));
        if at.role == RequestRole::Makes {
            event.request = at.request(**arguments, 0);
        }
        EVENTS.push(self.is_alone, event.packed());
        if !receives_only {
            self.receives_too(event, came);
        }
        match at.role {
            RequestRole::Starts => {
                for number in 0..at.number(**arguments) {
                    self.about(TimelineKind::Starts, at.request(**arguments, number), None);
                }
            }
            RequestRole::Completes { all } => self.completes(all),
            _ => {}
        }
        if at.is_collective && iterations::are_between_calls() && event.communicator != 0 {
            self.ends_iteration(event.communicator);
        }
    }

    /// Leaves the event of the message that a call receives which sends one as well.
    #[inline(never)]
    fn receives_too(&self, sent: TimelineEvent, came: Option<(c_int, c_int)>) {
        let TimelineArguments { source, source_tag, tag, .. } = *self.at;
        let (peer, tag) = self.peer(source, source_tag.or(tag), came);
        let kind = TimelineKind::Receives;
        let received = TimelineEvent { kind, peer, tag, took: 0, bytes: 0, ..sent };
        EVENTS.push(self.is_alone, received.packed());
    }

    /// The call may end an iteration: one of a collective operation, on the communicator with this number.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(never)]
    fn ends_iteration(&self, communicator: u16) {
        let CallTimes { function, ended, .. } = self.called;
        let known = self.met_on().filter(|(communicator, _)| !communicator.is_inter());
        let ranks = known.map(|(communicator, _)| communicator.size());
        iterations::operation_ended(&EVENTS, function.0 as u16, communicator, ranks, ended);
    }

    /// Leaves an event about one of the requests.
    #[inline(never)]
    fn about(&self, kind: TimelineKind, request: u32, came: Option<(c_int, c_int)>) {
        let (peer, tag) = self.peer(None, None, came);
        let event = TimelineEvent {
            request,
            peer,
            tag,
            thread: self.thread,
            ..TimelineEvent::new(kind, self.called.ended)
        };
        EVENTS.push(self.is_alone, event.packed());
    }

    /// Leaves an event for each request that the call has completed.
    fn completes(&self, all: bool) {
        let CallRecord { at, arguments, before, .. } = self;
        let is_fortran = arguments.language() == Language::Fortran;
        let is_pointer = || inquiry().is_some_and(|mpi| mpi.abi.handle_bytes != size_of::<u32>());
        let null = match NULL_REQUEST.load(Ordering::Relaxed) {
            _ if is_fortran && is_pointer() => 0,
            null => null,
        };
        let requests = before.iter().flat_map(|before| before.all()).enumerate();
        for (number, request) in requests.filter(|(_, request)| *request != null) {
            // The request of a persistent operation stays.
            if !all && at.request(**arguments, number) == request {
                continue;
            }
            // Of several statuses only the first has an address that does not depend on the library.
            let status = at.status.or(at.statuses.filter(|_| number == 0));
            let came = status.and_then(|status| arguments.at(status).source_and_tag());
            self.about(TimelineKind::Completes, request, came);
        }
    }

    /// The rank and the tag of a message, from the status of a receive or as they were passed.
    #[inline(always)]
    fn peer(
        &self,
        peer: Option<ArgumentPosition>,
        tag: Option<ArgumentPosition>,
        came: Option<(c_int, c_int)>,
    ) -> (TimelinePeer, i32) {
        let passed = |place: Option<ArgumentPosition>| self.arguments.at(place?).integer();
        let none = (TimelinePeer::None, TimelineEvent::NO_TAG);
        let Some(abi) = inquiry().map(|mpi| mpi.abi) else { return none };
        let (peer, tag) = match came {
            Some((source, tag)) => (Some(source), Some(tag)),
            None => (passed(peer), passed(tag)),
        };
        let peer = peer.map_or(TimelinePeer::None, |peer| match u32::try_from(peer) {
            Ok(rank) => TimelinePeer::Rank(rank),
            Err(_) if peer == abi.any_source => TimelinePeer::Any,
            Err(_) if peer == abi.proc_null => TimelinePeer::Null,
            Err(_) => TimelinePeer::None,
        });
        let tag = tag.map(|tag| if tag == abi.any_tag { -1 } else { tag });
        (peer, tag.unwrap_or(TimelineEvent::NO_TAG))
    }

    /// Its communicator or window, and the handle of that.
    #[inline(always)]
    fn met_on(&self) -> Option<(&'static Communicator, usize)> {
        let CallRecord { at, arguments, .. } = self;
        let (kind, passed) = match (at.comm, at.win) {
            (Some(comm), _) => (Kind::Comm, arguments.at(comm).comm()?),
            (None, Some(win)) => (Kind::Win, arguments.at(win).win()?),
            (None, None) => return None,
        };
        let handle = match kind {
            Kind::Win => communicators::window(passed),
            Kind::Comm | Kind::File => communicators::handle(passed),
        };
        let known = communicators::of_late(handle).or_else(|| {
            // Some functions accept the handle that stands for none, about which the library must not be asked.
            let is_null = objects::is_null(kind, communicators::handle(passed));
            if is_null { None } else { communicators::by_handle(handle) }
        });
        Some((known?, handle))
    }

    /// The number of its communicator or window.
    #[inline]
    fn communicator(&self) -> u16 {
        let Some((communicator, handle)) = self.met_on() else { return 0 };
        match communicator.note(TIMELINE_NOTE) {
            0 => comes(communicator, handle),
            NO_NUMBER => 0,
            number => number,
        }
    }
}

/// A communicator or window is met for the first time: its number, or 0 if there is no room.
#[cold]
#[inline(never)]
fn comes(communicator: &Communicator, handle: usize) -> u16 {
    let number = contain("following a communicator", || {
        // The library may be asked, with no lock held.
        let mpi = inquiry()?;
        let window = communicators::window_behind(handle);
        let name = window.map_or_else(|| mpi.comm_name(handle), |window| mpi.win_name(window));
        let rank = || u32::try_from(mpi.rank(handle)?).ok();
        let known = TimelineCommunicator {
            name: name.unwrap_or_default(),
            number: (!communicator.is_inter()).then(|| streams::number_of(handle)).flatten(),
            size: communicator.size(),
            rank: if window.is_none() { rank() } else { None },
        };
        let mut all = held(&COMMUNICATORS);
        if all.len() >= COMMUNICATORS_AT_MOST || alloc::is_short() {
            return None;
        }
        all.push(known);
        u16::try_from(all.len()).ok()
    });
    let number = number.flatten();
    communicator.set_note(TIMELINE_NOTE, number.unwrap_or(NO_NUMBER));
    number.unwrap_or(0)
}

/// The number of the place that a call returns to; 0 if that is not known, or there is no room.
#[inline]
#[allow(clippy::cast_possible_truncation)]
fn site(caller: usize) -> u16 {
    if caller == 0 {
        return 0;
    }
    let begin = (spread(caller) >> (u64::BITS - SITES.ilog2())) as usize;
    for look in 0..LOOKS_AT_MOST {
        let at = (begin + look) % SITES;
        let Some(place) = CALLERS.get(at) else { break };
        let known = place.load(Ordering::Relaxed);
        let is_it = known == caller
            || known == 0
                && match place.compare_exchange(0, caller, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => true,
                    Err(other) => other == caller,
                };
        if is_it {
            return at as u16 + 1;
        }
    }
    0
}

/// Addresses in objects that the program has unloaded are replaced, as others may be loaded there.
pub(crate) fn replace_addresses(by: impl Fn(usize) -> usize) {
    for place in CALLERS.iter().filter(|place| place.load(Ordering::Relaxed) != 0) {
        place.store(by(place.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}

/// The program goes from one phase to another one, by their numbers.
pub(crate) fn phase_changes(from: usize, to: usize, now: u64, is_alone: bool, thread: u8) {
    iterations::phase_changes(to);
    if !is_on() {
        return;
    }
    let mut event = TimelineEvent { thread, ..TimelineEvent::new(TimelineKind::Phase, now) };
    event.request = u32::try_from(from).unwrap_or(u32::MAX);
    event.site = u16::try_from(to).unwrap_or(u16::MAX);
    EVENTS.push(is_alone, event.packed());
}

/// A pass begins through the phase inside of which calls are recorded.
pub(crate) fn pass_begins(now: u64) {
    iterations::pass_begins(&EVENTS, now);
}

/// The pass has ended.
pub(crate) fn pass_ends(now: u64) {
    iterations::pass_ends(&EVENTS, now);
}

/// What the events mean, as far as this module knows it; none while nothing is recorded.
pub(crate) fn described() -> Option<TimelineHeader> {
    if !has_begun() {
        return None;
    }
    let mut map = Map::now();
    let sites = CALLERS.iter().enumerate().filter_map(|(at, caller)| {
        let caller = caller.load(Ordering::Relaxed);
        let number = u16::try_from(at + 1).ok().filter(|_| caller != 0)?;
        Some((number, map.address(caller)))
    });
    let sites = sites.collect();
    Some(TimelineHeader {
        schema: TIMELINE_SCHEMA.into(),
        clock: TimelineClock { now_ticks: clock::now(), ..clock::for_timeline() },
        selection: recording::asked(),
        recorded: EVENTS.events(),
        functions: functions().map(|(_, row)| row.name.to_owned()).collect(),
        communicators: held(&COMMUNICATORS).clone(),
        sites,
        load_map: map.used(),
        messages: streams::totals(),
        ..TimelineHeader::default()
    })
}

/// The number of a function fits into an event.
const _: () = assert!(crate::mpi::functions::LEN < TimelineEvent::FUNCTIONS_AT_MOST as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_by_their_names_and_types() {
        let names = ["sendbuf", "dest", "sendtag", "source", "recvtag", "comm", "status"];
        let types = ["Pointer", "Int", "Int", "Int", "Int", "Comm", "Pointer"];
        let at = TimelineArguments::new("MPI_Sendrecv", &names, &types, false, false);
        let place = ArgumentPosition::new;
        let found = [at.peer, at.tag, at.source, at.source_tag, at.comm, at.status];
        assert_eq!((found, at.role), ([1, 2, 3, 4, 5, 6].map(place), RequestRole::None));
        let at = TimelineArguments::new("MPI_Comm_free", &["comm"], &["Pointer"], false, false);
        assert_eq!(at.comm, None);
        let names = ["count", "array_of_requests", "array_of_statuses"];
        let of = |function| {
            TimelineArguments::new(function, &names, &["Int", "Pointer", "Pointer"], false, false)
        };
        assert_eq!(of("MPI_Waitall").role, RequestRole::Completes { all: true });
        assert_eq!(of("MPI_Testall").role, RequestRole::Completes { all: false });
        assert_eq!((of("MPI_Waitall").requests, of("MPI_Waitall").count), (place(1), place(0)));
        let names = ["buf", "root", "comm", "request"];
        let types = ["Pointer", "Int", "Comm", "Pointer"];
        let at = TimelineArguments::new("MPI_Ibcast", &names, &types, true, true);
        assert_eq!((at.peer, at.role, at.is_collective), (place(1), RequestRole::Makes, false));
    }

    #[test]
    fn each_place_has_a_number_of_its_own_as_long_as_there_is_room() {
        let numbers: std::collections::BTreeSet<u16> =
            (1..1000_usize).map(|place| site(0x40_0000 + 5 * place)).collect();
        assert_eq!(numbers.len(), 999);
        assert!(!numbers.contains(&0));
        assert_eq!(site(0x40_0000 + 5), site(0x40_0000 + 5));
        assert_eq!(site(0), 0);
        // The functions of the test are in one process.
        for place in &CALLERS {
            place.store(0, Ordering::Relaxed);
        }
    }
}
