//! PERUSE 2.0: an MPI library that has it calls back when it activates, matches, transfers and completes
//! requests, and when messages wait. gyan measures what the example profiler of the specification measures
//! (9.2), for every communicator.
//!
//! A callback runs inside the library, in some cases while that holds a communicator's lock. So it allocates
//! nothing and calls no MPI (5.1.2), and the one lock that it takes is never held by code that does.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::Mutex;

use gyan_results::{MessageSource, Messages, Metric, Traffic};

use super::{Peer, Queues, Stream};
use crate::calls::budget;
use crate::calls::containment::contain;
use crate::mpi::abi::Library;
use crate::sys::clock;
use crate::sys::fixed_map::FixedMap;
use crate::sys::foreign::foreign;
use crate::sys::locks::{held, lock_soon};
use crate::sys::weak_symbols;

/// Requests that are followed at a time.
const REQUESTS_AT_MOST: usize = 8 * 1024;
/// One in this many callbacks is measured.
const MEASURED_EVERY: u64 = 64;
/// `PERUSE_SUCCESS` and `MPI_SUCCESS`.
const SUCCESS: c_int = 0;
/// `PERUSE_RECV`.
const RECEIVE: c_int = 1;

macro_rules! events {
    ($($event:ident = [$($name:literal),+];)*) => {
        /// What happens to a request or a message.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[repr(usize)]
        enum Event { $($event),* }

        /// The events with their names; the first name is that of the specification.
        const EVENTS: &[(Event, &[&CStr])] = &[$((Event::$event, &[$($name),+])),*];
    };
}

events! {
    Activate = [c"PERUSE_COMM_REQ_ACTIVATE"];
    MatchUnexpected = [c"PERUSE_COMM_REQ_MATCH_UNEX"];
    Posted = [c"PERUSE_COMM_REQ_INSERT_IN_POSTED_Q"];
    Unposted = [c"PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q"];
    TransferBegins = [c"PERUSE_COMM_REQ_XFER_BEGIN"];
    TransferEnds = [c"PERUSE_COMM_REQ_XFER_END"];
    Complete = [c"PERUSE_COMM_REQ_COMPLETE"];
    Notify = [c"PERUSE_COMM_REQ_NOTIFY"];
    Came = [c"PERUSE_COMM_MSG_INSERT_IN_UNEX_Q"];
    Went = [c"PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q"];
    SearchPostedBegins = [c"PERUSE_COMM_SEARCH_POSTED_Q_BEGIN"];
    SearchPostedEnds = [c"PERUSE_COMM_SEARCH_POSTED_Q_END"];
    SearchUnexpectedBegins = [
        c"PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN", c"PERUSE_COMM_SEARCH_UNEX_Q_BEGIN"
    ];
    SearchUnexpectedEnds = [c"PERUSE_COMM_SEARCH_UNEX_Q_END"];
}

/// `peruse_comm_spec_t` of a library whose handles are pointers.
#[repr(C)]
struct Spec {
    comm: *mut c_void,
    buf: *mut c_void,
    count: c_int,
    datatype: *mut c_void,
    peer: c_int,
    tag: c_int,
    operation: c_int,
}

type PeruseCallback =
    unsafe extern "C-unwind" fn(EventHandle, isize, *const Spec, *mut c_void) -> c_int;
/// `peruse_event_h`.
type EventHandle = *mut c_void;

foreign! {
    /// As in PERUSE 2.0, 5.2, with handles as words.
    struct PeruseFunctions: every [unsafe extern "C"] {
        init() = c"PERUSE_Init";
        query_event(*const c_char, *mut c_int) = c"PERUSE_Query_event";
        register(c_int, usize, PeruseCallback, *mut c_void, *mut EventHandle)
            = c"PERUSE_Event_comm_register";
        activate(EventHandle) = c"PERUSE_Event_activate";
        deactivate(EventHandle) = c"PERUSE_Event_deactivate";
    }
}

/// The callbacks that are registered.
pub(crate) struct Peruse {
    functions: PeruseFunctions,
    /// The events that the library has, with its numbers for them.
    supported: Vec<(Event, c_int)>,
    comms: Vec<Registered>,
    skipped: Vec<String>,
}

/// The callbacks for one communicator.
struct Registered {
    comm: usize,
    slot: usize,
    handles: Vec<EventHandle>,
}

// SAFETY: handles are used by those who hold the run, one at a time; PERUSE knows no threads (5.3).
unsafe impl Send for Peruse {}

/// The results so far; none before anybody asked for them.
static TOLD: Mutex<Option<Box<PeruseState>>> = Mutex::new(None);

struct PeruseState {
    queues: Queues,
    requests: FixedMap<usize, FollowedRequest>,
    comms: Vec<Comm>,
    any_source: c_int,
    any_tag: c_int,
    callbacks: u64,
    /// Ticks that one takes.
    cost: f64,
}

/// A communicator, by its slot.
#[derive(Default)]
struct Comm {
    in_use: bool,
    /// The ranks of its (remote) group in `MPI_COMM_WORLD`; empty if they are the same, none if they are not
    /// known.
    ranks: Option<Vec<u32>>,
    /// When the current search of each queue began; 0 for none. Searches hold the communicator's lock.
    search_posted: u64,
    search_unexpected: u64,
}

/// The times of the events of a request; 0 for not yet.
struct FollowedRequest {
    /// 0 for a probe that waited among the posted receives and may become a receive.
    activated: u64,
    /// The library reported that its message was found, or that it was posted.
    found: bool,
    posted: u64,
    /// The sender of the posted receive.
    peer: Peer,
    transfer_began: u64,
    completed: u64,
}

impl Peruse {
    /// Initialises PERUSE; none when the library lacks it.
    pub(crate) fn begin(library: &Library) -> Option<Peruse> {
        let mut peruse = Peruse {
            functions: PeruseFunctions::find(|name| library.function(name))?,
            supported: Vec::new(),
            comms: Vec::new(),
            skipped: Vec::new(),
        };
        if weak_symbols::is_needed(c"PERUSE_Event_comm_register") {
            // A library may keep one callback for an event, whatever the specification says.
            peruse.skipped.push("PERUSE is not used: the program uses it itself".into());
            return Some(peruse);
        }
        // SAFETY: between MPI_Init and MPI_Finalize.
        let code = unsafe { (peruse.functions.init)() };
        if code != SUCCESS {
            peruse.skipped.push(format!("PERUSE_Init failed ({code})"));
            return Some(peruse);
        }
        let query = peruse.functions.query_event;
        for (event, names) in EVENTS {
            let number = names.iter().find_map(|name| {
                let mut number: c_int = -1;
                // SAFETY: the name is a C string, and the number can be written.
                let code = unsafe { query(name.as_ptr(), &raw mut number) };
                (code == SUCCESS).then_some(number)
            });
            match (number, names.first()) {
                (Some(number), _) => peruse.supported.push((*event, number)),
                (None, Some(name)) => peruse
                    .skipped
                    .push(format!("PERUSE: this MPI has no {}", name.to_string_lossy())),
                (None, None) => {}
            }
        }
        with_told(|told| {
            let (any_source, any_tag) = (library.abi.any_source, library.abi.any_tag);
            _ = told.get_or_insert_with(|| Box::new(PeruseState::new(any_source, any_tag)));
        });
        Some(peruse)
    }

    /// A communicator was created, whose (remote) group has these ranks in `MPI_COMM_WORLD`; empty if they are
    /// the same, none if they are not known.
    pub(crate) fn comm_comes(&mut self, comm: usize, ranks: Option<Vec<u32>>) {
        if self.supported.is_empty() {
            return;
        }
        let Some(slot) = with_told(|told| Some(told.as_mut()?.comm_comes(ranks))) else { return };
        let mut handles = Vec::new();
        for (event, number) in &self.supported {
            let mut handle: EventHandle = ptr::null_mut();
            // SAFETY: the communicator is alive and the event one of the library's; the callback needs
            // nothing but the number that it is given.
            let code = unsafe {
                (self.functions.register)(
                    *number,
                    comm,
                    callback,
                    parameter(slot, *event),
                    &raw mut handle,
                )
            };
            if code != SUCCESS {
                self.skipped.push(format!("PERUSE_Event_comm_register failed ({code})"));
                continue;
            }
            handles.push(handle);
        }
        for handle in &handles {
            // SAFETY: the handle was registered just now.
            unsafe { (self.functions.activate)(*handle) };
        }
        self.comms.push(Registered { comm, slot, handles });
    }

    /// A communicator is about to be freed.
    pub(crate) fn comm_goes(&mut self, comm: usize) {
        if let Some(at) = self.comms.iter().position(|known| known.comm == comm) {
            let registered = self.comms.swap_remove(at);
            self.deactivate(&registered);
        }
    }

    /// There are no more callbacks.
    pub(crate) fn end(&mut self) {
        for registered in mem::take(&mut self.comms) {
            self.deactivate(&registered);
        }
    }

    fn deactivate(&self, registered: &Registered) {
        for handle in &registered.handles {
            // SAFETY: the communicator that the handle was registered for is still alive.
            unsafe { (self.functions.deactivate)(*handle) };
        }
        with_told(|told| {
            if let Some(comm) = told.as_mut().and_then(|told| told.comms.get_mut(registered.slot)) {
                comm.in_use = false;
            }
        });
    }

    pub(crate) fn messages(&self) -> Option<Messages> {
        if self.supported.is_empty() {
            return None;
        }
        Some(lock_soon(&TOLD)?.as_ref()?.queues.described(MessageSource::Peruse))
    }

    /// What is missing, in sentences.
    pub(crate) fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Ticks in callbacks.
    pub(crate) fn cost_ticks() -> u64 {
        let told = lock_soon(&TOLD);
        let told = told.as_ref().and_then(|told| told.as_ref());
        told.map_or(0, |told| clock::whole(told.cost * told.callbacks as f64))
    }
}

fn with_told<T>(work: impl FnOnce(&mut Option<Box<PeruseState>>) -> T) -> T {
    work(&mut held(&TOLD))
}

/// The event and communicator, in the form passed to a callback: a number instead of an address, so that
/// nothing can dangle.
fn parameter(slot: usize, event: Event) -> *mut c_void {
    ptr::without_provenance_mut(slot * EVENTS.len() + event as usize)
}

unsafe extern "C-unwind" fn callback(
    _event: EventHandle,
    id: isize,
    spec: *const Spec,
    parameter: *mut c_void,
) -> c_int {
    let now = clock::now();
    // SAFETY: the library passes a description that is valid during the call (5.1.2), or none.
    let Some(spec) = (unsafe { spec.as_ref() }) else { return SUCCESS };
    let (slot, event) = (parameter.addr() / EVENTS.len(), parameter.addr() % EVENTS.len());
    if let Some((event, _)) = EVENTS.get(event) {
        contain("taking in an event of PERUSE", || {
            with_told(|told| {
                if let Some(told) = told {
                    told.add(*event, slot, id.cast_unsigned(), spec, now);
                }
            });
        });
    }
    // Any other return value would end the program.
    SUCCESS
}

impl PeruseState {
    fn new(any_source: c_int, any_tag: c_int) -> PeruseState {
        PeruseState {
            queues: Queues::new(),
            requests: FixedMap::new(REQUESTS_AT_MOST),
            comms: Vec::new(),
            any_source,
            any_tag,
            callbacks: 0,
            cost: 0.0,
        }
    }

    /// The slot for a new communicator.
    fn comm_comes(&mut self, ranks: Option<Vec<u32>>) -> usize {
        let comm = Comm { in_use: true, ranks, ..Comm::default() };
        let free = self.comms.iter().position(|known| !known.in_use);
        if let Some((at, slot)) = free.and_then(|at| Some((at, self.comms.get_mut(at)?))) {
            *slot = comm;
            return at;
        }
        self.comms.push(comm);
        self.comms.len() - 1
    }

    fn add(&mut self, event: Event, slot: usize, id: usize, spec: &Spec, now: u64) {
        // Messages internal to the library have tags that no program can use.
        let is_of_program = spec.tag >= 0 || spec.tag == self.any_tag;
        let traffic = if is_of_program { Traffic::Program } else { Traffic::Collectives };
        self.callbacks += 1;
        match event {
            Event::Came | Event::Went => {
                let stream = Stream { comm: slot, source: spec.peer, tag: spec.tag };
                let peer = self.peer(slot, spec.peer);
                if event == Event::Came {
                    self.queues.came(stream, peer, traffic, now);
                } else {
                    self.queues.went(stream, peer, traffic, now);
                }
            }
            Event::SearchPostedBegins
            | Event::SearchPostedEnds
            | Event::SearchUnexpectedBegins
            | Event::SearchUnexpectedEnds => self.search(event, slot, traffic, now),
            _ => self.request(event, slot, id, spec, traffic, now),
        }
        if self.callbacks.is_multiple_of(MEASURED_EVERY) {
            let ticks = clock::now().saturating_sub(now) as f64;
            self.cost = budget::learned(self.cost, ticks);
        }
    }

    /// Converts a rank in a communicator to that in `MPI_COMM_WORLD`.
    fn peer(&self, slot: usize, rank: c_int) -> Peer {
        if rank == self.any_source {
            return Peer::Any;
        }
        let ranks = self.comms.get(slot).and_then(|comm| comm.ranks.as_deref());
        let (Some(ranks), Ok(rank)) = (ranks, u32::try_from(rank)) else { return Peer::Unknown };
        if ranks.is_empty() {
            return Peer::Rank(rank);
        }
        let other = ranks.get(rank as usize).filter(|other| **other != u32::MAX);
        other.map_or(Peer::Unknown, |other| Peer::Rank(*other))
    }

    fn search(&mut self, event: Event, slot: usize, traffic: Traffic, now: u64) {
        let Some(comm) = self.comms.get_mut(slot) else { return };
        let since = match event {
            Event::SearchPostedBegins | Event::SearchPostedEnds => &mut comm.search_posted,
            _ => &mut comm.search_unexpected,
        };
        let metric = match event {
            Event::SearchPostedEnds => Metric::TSearchPostedQ,
            Event::SearchUnexpectedEnds => Metric::TSearchUnexQ,
            // A search whose end was not reported is left out.
            _ => return *since = now,
        };
        let since = mem::take(since);
        if since != 0 {
            self.queues.time(metric, traffic, now.saturating_sub(since));
        }
    }

    fn request(
        &mut self,
        event: Event,
        slot: usize,
        id: usize,
        spec: &Spec,
        traffic: Traffic,
        now: u64,
    ) {
        let peer = self.peer(slot, spec.peer);
        let queues = &mut self.queues;
        let known = self.requests.get(&id);
        let request = match (event, known) {
            // A probe that waited became this: its message was never in the queue.
            (Event::Activate, Some(FollowedRequest { activated: 0, .. })) => {
                FollowedRequest::new(now, true)
            }
            (Event::Activate, _) => FollowedRequest::new(now, false),
            // The library reports neither the activation nor the posting of a probe.
            (Event::Unposted, None) => FollowedRequest::new(0, true),
            (_, None) => return,
            (_, Some(request)) => {
                request.goes_on(event, traffic, peer, now, queues);
                let begins = matches!(event, Event::TransferBegins | Event::Complete);
                // A probe took its message out of the queue, which is not reported.
                if begins && !mem::replace(&mut request.found, true) && spec.operation == RECEIVE {
                    let stream = Stream { comm: slot, source: spec.peer, tag: spec.tag };
                    queues.went(stream, peer, traffic, now);
                }
                // A freed request may be reported before it has its message.
                if event == Event::Notify && request.posted == 0 {
                    self.requests.take(&id);
                }
                return;
            }
        };
        if !self.requests.put(id, request) {
            queues.lose(1);
        }
    }
}

impl FollowedRequest {
    fn new(activated: u64, found: bool) -> FollowedRequest {
        FollowedRequest {
            activated,
            found,
            posted: 0,
            peer: Peer::Unknown,
            transfer_began: 0,
            completed: 0,
        }
    }

    /// An event of this request occurs.
    fn goes_on(
        &mut self,
        event: Event,
        traffic: Traffic,
        peer: Peer,
        now: u64,
        queues: &mut Queues,
    ) {
        let since_activated = now.saturating_sub(self.activated);
        match event {
            _ if self.activated == 0 => {}
            Event::MatchUnexpected => {
                self.found = true;
                queues.time(Metric::TReqActivateToMatch, traffic, since_activated);
            }
            Event::Posted => {
                self.found = true;
                self.posted = now;
                self.peer = peer;
                queues.posted(peer, traffic);
            }
            Event::Unposted if self.posted != 0 => {
                let ticks = now.saturating_sub(mem::take(&mut self.posted));
                queues.unposted(self.peer, traffic, ticks);
            }
            Event::TransferBegins => {
                self.transfer_began = now;
                queues.time(Metric::TReqActivateToXferBegin, traffic, since_activated);
            }
            Event::TransferEnds if self.transfer_began != 0 => {
                let ticks = now.saturating_sub(mem::take(&mut self.transfer_began));
                queues.time(Metric::TXferBeginToEnd, traffic, ticks);
            }
            Event::Complete => self.completed = now,
            Event::Notify => {
                if self.completed != 0 {
                    let ticks = now.saturating_sub(self.completed);
                    queues.time(Metric::TCompleteToNotify, traffic, ticks);
                }
                queues.time(Metric::TActivateToNotify, traffic, since_activated);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(peer: c_int, tag: c_int) -> Spec {
        Spec {
            comm: ptr::null_mut(),
            buf: ptr::null_mut(),
            count: 0,
            datatype: ptr::null_mut(),
            peer,
            tag,
            operation: 1,
        }
    }

    fn n(messages: &Messages, metric: Metric, traffic: Traffic) -> u64 {
        let mut rows = messages.metrics.iter();
        let row = rows.find(|row| row.metric == metric && row.traffic == traffic);
        row.map_or(0, |row| row.n)
    }

    #[test]
    fn a_request_is_followed_from_its_activation_to_the_notice_of_its_end() {
        let mut told = PeruseState::new(-1, -1);
        // The ranks 0, 1 of this communicator are 4, 7.
        let slot = told.comm_comes(Some(vec![4, 7]));
        let receive = spec(1, -1);
        for (now, event) in [
            (10, Event::Activate),
            (11, Event::SearchUnexpectedBegins),
            (12, Event::SearchUnexpectedEnds),
            (13, Event::Posted),
            (20, Event::Unposted),
            (21, Event::TransferBegins),
            (25, Event::TransferEnds),
            (26, Event::Complete),
            (30, Event::Notify),
            // For a request that is no longer known.
            (31, Event::Complete),
            (32, Event::SearchUnexpectedEnds),
        ] {
            told.add(event, slot, 0x100, &receive, now);
        }
        told.add(Event::Came, slot, 0, &spec(0, -20), 40);
        let messages = told.queues.described(MessageSource::Peruse);
        let of_program = |metric| n(&messages, metric, Traffic::Program);
        for metric in [
            Metric::TReqActivateToXferBegin,
            Metric::TXferBeginToEnd,
            Metric::TCompleteToNotify,
            Metric::TActivateToNotify,
            Metric::NPostedQLen,
            Metric::TInPostedQ,
            Metric::TSearchUnexQ,
        ] {
            assert_eq!(of_program(metric), 1, "{metric:?}");
        }
        assert_eq!(of_program(Metric::TReqActivateToMatch), 0);
        assert_eq!(n(&messages, Metric::NUnexQLen, Traffic::Collectives), 1);
        // The other message is a collective's.
        let peers: Vec<Option<u32>> = messages.peers.iter().map(|peer| peer.peer).collect();
        assert_eq!(peers, [Some(7)]);
    }

    #[test]
    fn messages_that_probes_take_leave_the_queue_when_they_are_received() {
        let mut told = PeruseState::new(-1, -1);
        let slot = told.comm_comes(Some(Vec::new()));
        let message = spec(1, 5);
        for now in [10, 11, 12] {
            told.add(Event::Came, slot, 0, &message, now);
        }
        // Found by a matched probe: nothing reports that it left.
        told.add(Event::Activate, slot, 0x100, &message, 20);
        told.add(Event::TransferBegins, slot, 0x100, &message, 21);
        told.add(Event::Complete, slot, 0x100, &message, 22);
        // The probe waited, and got the message at once.
        told.add(Event::Unposted, slot, 0x200, &message, 30);
        told.add(Event::Activate, slot, 0x200, &message, 31);
        told.add(Event::Complete, slot, 0x200, &message, 32);
        // A send is not a receive.
        let send = Spec { operation: 0, ..spec(1, 5) };
        told.add(Event::Activate, slot, 0x300, &send, 40);
        told.add(Event::TransferBegins, slot, 0x300, &send, 41);
        // Freed before it has its message.
        told.add(Event::Activate, slot, 0x400, &message, 50);
        told.add(Event::Posted, slot, 0x400, &message, 51);
        told.add(Event::Notify, slot, 0x400, &message, 52);
        told.add(Event::Unposted, slot, 0x400, &message, 53);
        let messages = told.queues.described(MessageSource::Peruse);
        assert_eq!(n(&messages, Metric::TInUnexQ, Traffic::Program), 1);
        assert_eq!(n(&messages, Metric::TInPostedQ, Traffic::Program), 1);
        assert_eq!((told.queues.unexpected[0], told.queues.posted[0]), (2, 0));
    }

    #[test]
    fn a_slot_is_used_again_when_its_communicator_is_gone() {
        let mut told = PeruseState::new(-1, -1);
        assert_eq!((told.comm_comes(Some(Vec::new())), told.comm_comes(None)), (0, 1));
        assert_eq!((told.peer(0, 9), told.peer(1, 9)), (Peer::Rank(9), Peer::Unknown));
        told.comms[0].in_use = false;
        assert_eq!(told.comm_comes(Some(vec![5, u32::MAX])), 0);
        let peers = [0, 1, 2, -1].map(|rank| told.peer(0, rank));
        assert_eq!(peers, [Peer::Rank(5), Peer::Unknown, Peer::Unknown, Peer::Any]);
    }
}
