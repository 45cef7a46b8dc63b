//! When do messages begin and end? The messages from one rank to another one, on one communicator and with one tag, are
//! numbered alike on both, and the same ones are timed, as those of collective operations are ([`waiting`](super::waiting)). So how
//! long each of the two waits for the other one is known afterwards, without asking each other.
//!
//! Messages are received in the order in which they were sent (MPI 4.1, 3.5), and receives are numbered in the order in which
//! they are posted. A receive from any rank, or with any tag, has no number: then the two ranks count differently, and
//! the reduction leaves their stream out. Communicators have a number that follows from that of their parent, and from how many
//! the parent had before, as all its ranks make them together.
//!
//! Only calls whose messages are timed leave the fast path ([`counts`]), and those that complete requests while a message that is
//! timed is under way. Once a second thread sends or receives, nothing is compared: the order of their calls is not known.

#![forbid(unsafe_code)]

mod counts;

use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gyan_results::{
    MessageDirection, MessagePlace, MessageStream, MessageTime, MessageTimes, ObjectsLeftOut,
    STREAM_TIMES_AT_MOST, Waiting,
};

use self::counts::{PassedKey, StreamCount};
pub(crate) use self::counts::{Untimed, at_hand, is_on, untimed, untimed_among};
use super::communicators;
use super::waiting::set;
use crate::calls::addresses::Map;
use crate::calls::budget::budget;
use crate::calls::containment::contain;
use crate::calls::gate::{self, CompletionsFor};
use crate::calls::ledger::{self, Ledger};
use crate::calls::requests::position;
use crate::calls::scripts;
use crate::calls::sites::Places;
use crate::calls::stacks;
use crate::mpi::functions::Function;
use crate::mpi::handles::{Arguments, Language, Passed};
use crate::sys::alloc;
use crate::sys::clock;
use crate::sys::fixed_map::FixedMap;
use crate::sys::lookup::hash;

/// How many streams a rank follows.
const STREAMS_AT_MOST: usize = 1024;
/// How many messages are timed, of all streams together; each stream has at least so many.
const TIMES_AT_MOST: usize = 4096;
const TIMES_AT_LEAST: usize = 8;
/// How many operations that are timed may not have ended at a time.
const PENDING_AT_MOST: usize = 4096;
/// How many of them may have the same request.
const ALIKE_AT_MOST: u32 = 256;
/// How many calls of the program are told apart.
const CALLS_AT_MOST: usize = 1024;
/// How many communicators are known at a time.
const COMMUNICATORS_AT_MOST: usize = 1 << 14;

/// How many requests that are not timed may complete while one that is timed does not: one that never completes must not
/// have every completion examined.
const PATIENCE: u32 = 4096;

static STREAMS: Mutex<Option<Streams>> = Mutex::new(None);

/// The positions of the arguments of a function that sends or receives a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MessageArguments {
    /// The rank and the tag of what is sent, and of what is received.
    sent: Option<(usize, usize)>,
    received: Option<(usize, usize)>,
    comm: usize,
    /// The request, if it only starts the message.
    request: Option<usize>,
}

impl MessageArguments {
    /// None for any other function, and for those that prepare an operation that is started by another call.
    pub(crate) const fn new(function: &str, names: &[&str]) -> Option<MessageArguments> {
        let name = match function.as_bytes().split_last_chunk() {
            Some((name, b"_c")) => name,
            _ => function.as_bytes(),
        };
        let is_message = matches!(
            name,
            b"MPI_Send"
                | b"MPI_Ssend"
                | b"MPI_Bsend"
                | b"MPI_Rsend"
                | b"MPI_Isend"
                | b"MPI_Issend"
                | b"MPI_Ibsend"
                | b"MPI_Irsend"
                | b"MPI_Recv"
                | b"MPI_Irecv"
                | b"MPI_Sendrecv"
                | b"MPI_Sendrecv_replace"
        );
        if !is_message {
            return None;
        }
        let tag = position(names, "tag");
        let sent = both(position(names, "dest"), first(position(names, "sendtag"), tag));
        let received = both(position(names, "source"), first(position(names, "recvtag"), tag));
        match position(names, "comm") {
            Some(comm) => {
                let request = position(names, "request");
                Some(MessageArguments { sent, received, comm, request })
            }
            None => None,
        }
    }
}

const fn first(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    if one.is_some() { one } else { other }
}

const fn both(one: Option<usize>, other: Option<usize>) -> Option<(usize, usize)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one, other)),
        _ => None,
    }
}

/// A call that has ended, in ticks; where it came from, or 0.
#[derive(Clone, Copy)]
pub(crate) struct CallTimes {
    pub(crate) function: Function,
    pub(crate) caller: usize,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
}

/// A function, and where it was called.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct CalledAt {
    function: usize,
    address: usize,
}

impl CallTimes {
    /// In Python the line that calls it.
    fn at(self) -> CalledAt {
        let address = scripts::address().unwrap_or_else(|| stacks::place_of(self.caller));
        CalledAt { function: self.function.0, address }
    }
}

/// What is followed.
struct Streams {
    numbers: BTreeMap<StreamKey, usize>,
    tallies: Vec<StreamTally>,
    /// By the address of the count.
    claims: BTreeMap<usize, Claim>,
    /// By request. MPICH has one for all sends that have ended already, so there may be several of a request, numbered from 0.
    pending: FixedMap<(Language, usize, u32), PendingMessage>,
    /// How many other requests have completed since one of those did.
    others_completed: u32,
    /// The calls of messages that are timed, and their numbers from 1.
    calls: Vec<CalledAt>,
    call_numbers: BTreeMap<CalledAt, u32>,
    communicators: BTreeMap<usize, KnownCommunicator>,
    /// Most messages of a stream that are timed.
    at_most: usize,
    /// How many are.
    timed: usize,
    /// Messages that were sent and are in no stream, on communicators that have ended.
    sent_in_none: u64,
    /// Whether a second thread sends or receives.
    has_threads: bool,
}

/// The count that belongs to a stream, and the index of its tally. None for messages that are in no stream.
struct Claim {
    count: &'static StreamCount,
    stream: Option<usize>,
    /// They are sent to another rank.
    is_sent: bool,
}

#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct StreamKey {
    direction: MessageDirection,
    peer: u32,
    communicator: u64,
    tag: i32,
}

/// A communicator, as its ranks know it.
struct KnownCommunicator {
    /// The same on each of them.
    number: u64,
    /// How many were made from it.
    children: u32,
}

/// The messages of one stream.
#[derive(Default)]
struct StreamTally {
    /// None once its communicator has ended.
    count: Option<&'static StreamCount>,
    /// How many there were then.
    ended_with: u64,
    level: u32,
    times: Vec<MessageTicks>,
}

/// Of one message, in ticks; zeros if that is not known.
#[derive(Clone, Copy, Default)]
struct MessageTicks {
    begun: u64,
    waits: u64,
    ended: u64,
    /// The numbers of the calls in which it began and was waited for; 0 if they are not known.
    begun_in: u32,
    waits_in: u32,
}

/// A message that was begun, and is timed.
#[derive(Clone, Copy)]
struct PendingMessage {
    stream: usize,
    number: u64,
    begun: u64,
    begun_in: u32,
}

const WORLD: u64 = 1;

/// From now on messages are timed, if wanted.
pub(crate) fn begin(on: bool) {
    let mut streams = streams();
    // Those of an earlier run.
    for claim in streams.take().iter().flat_map(|earlier| earlier.claims.values()) {
        claim.count.ends();
    }
    *streams = on.then(|| Streams {
        numbers: BTreeMap::new(),
        tallies: Vec::new(),
        claims: BTreeMap::new(),
        pending: FixedMap::new(PENDING_AT_MOST),
        others_completed: 0,
        calls: Vec::new(),
        call_numbers: BTreeMap::new(),
        communicators: BTreeMap::new(),
        at_most: STREAM_TIMES_AT_MOST,
        timed: 0,
        sent_in_none: 0,
        has_threads: false,
    });
    counts::begin(on);
}

fn streams() -> MutexGuard<'static, Option<Streams>> {
    STREAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with what is followed, if anything is.
fn with_streams<T>(work: impl FnOnce(&mut Streams) -> T) -> Option<T> {
    contain("timing a message", || streams().as_mut().map(work))?
}

/// A communicator was made by all ranks of its parent together; as a program passes them. `child` may be none for this rank.
pub(crate) fn child_comes(parent: usize, child: Option<usize>) {
    if !is_on() {
        return;
    }
    let [parent, child] = [Some(parent), child].map(|word| word.map(communicators::handle));
    with_streams(|streams| {
        let Some(parent) = parent.and_then(|parent| streams.communicator(parent)) else { return };
        parent.children += 1;
        let (high, low) = ((parent.number >> 32) as u32, (parent.number & 0xffff_ffff) as u32);
        let number = hash([high, low, parent.children].into_iter());
        if let Some(child) = child
            && streams.communicators.len() < COMMUNICATORS_AT_MOST
            && !alloc::is_short()
        {
            let known = KnownCommunicator { number, children: 0 };
            streams.communicators.insert(child, known);
        }
    });
}

/// A communicator ends, or its handle belongs to another one from now on.
pub(crate) fn communicator_goes(word: usize) {
    if is_on() {
        let handle = communicators::handle(word);
        with_streams(|streams| streams.communicator_ends(handle));
    }
}

/// A request is about to be freed.
pub(crate) fn request_goes(request: Passed) {
    if is_on()
        && let Some(handle) = request.request(0)
    {
        with_streams(|streams| {
            streams.take_pending(request.language, handle);
            streams.watch();
        });
    }
}

/// The program has sent or received a message, or has started to, with these arguments, and the call has succeeded. `ledger`: of the
/// thread.
#[cold]
#[inline(never)]
pub(crate) fn exchanged(
    at: MessageArguments,
    arguments: Arguments,
    called: CallTimes,
    ledger: &'static Ledger,
) {
    if !counts::is_alone(ledger) {
        return second_thread_comes();
    }
    let Some(comm) = arguments.at(at.comm).comm().map(communicators::handle) else { return };
    let of_direction = |place: Option<(usize, usize)>, direction| {
        let (peer, tag) = place?;
        let [peer, tag] = [peer, tag].map(|place| arguments.at(place).integer());
        let passed = PassedKey { comm, peer: peer?, tag: tag? };
        // The library may be asked, with no lock held. Those that stand for no rank, any rank or any tag are negative.
        let peer = u32::try_from(passed.peer).ok().filter(|_| passed.tag >= 0);
        let peer = peer.and_then(|peer| communicators::by_word(comm)?.rank_in_world(peer));
        Some(Exchanged { direction, peer, passed })
    };
    let both = [
        of_direction(at.sent, MessageDirection::Sent),
        of_direction(at.received, MessageDirection::Received),
    ];
    let request = at.request.and_then(|request| {
        let passed = arguments.at(request);
        Some((passed.language, passed.request(0)?))
    });
    let ends = match at.request {
        Some(_) => Ends::InAnother(request),
        None => Ends::Here,
    };
    count(both, ends, called);
}

/// A message, as the program passes it.
#[derive(Clone, Copy)]
pub(crate) struct Exchanged {
    direction: MessageDirection,
    /// The rank in `MPI_COMM_WORLD`, if that is known.
    peer: Option<u32>,
    passed: PassedKey,
}

/// The messages of a call on a simulated communicator, whose ranks are those of the world, as direction, rank and tag: on the fast
/// path if that takes them.
#[cfg(test)]
pub(crate) fn simulate(
    comm: usize,
    messages: [Option<(MessageDirection, i32, i32)>; 2],
    ends: Ends,
    called: CallTimes,
) {
    let both = messages.map(|message| {
        let (direction, peer, tag) = message?;
        let passed = PassedKey { comm, peer, tag };
        Some(Exchanged { direction, peer: u32::try_from(peer).ok(), passed })
    });
    let untimed = |message: &Exchanged| counts::untimed_in(message.direction, message.passed);
    let counts: Option<Vec<_>> = both.iter().flatten().map(untimed).collect();
    match counts {
        Some(counts) => counts.into_iter().for_each(|count| _ = count.count()),
        None => count(both, ends, called),
    }
}

/// Where a message ends.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    Here,
    /// In the call that completes this request.
    InAnother(Option<(Language, usize)>),
}

pub(crate) fn count(both: [Option<Exchanged>; 2], ends: Ends, called: CallTimes) {
    let timed = with_streams(|streams| {
        let mut timed = false;
        for message in both.into_iter().flatten() {
            timed |= streams.takes(message, ends, called);
        }
        streams.watch();
        timed
    });
    if timed == Some(true) {
        budget().spend_on_timing(budget().timed_ticks());
    }
}

/// Another thread than the first one sends or receives.
#[cold]
#[inline(never)]
fn second_thread_comes() {
    counts::end();
    with_streams(|streams| {
        streams.has_threads = true;
        streams.pending.clear();
        streams.watch();
    });
}

/// A request has completed in this call.
pub(crate) fn completed(language: Language, request: usize, called: CallTimes) {
    with_streams(|streams| {
        let Some(message) = streams.take_pending(language, request) else {
            streams.others_completed += 1;
            if streams.others_completed > PATIENCE {
                streams.pending.clear();
                streams.watch();
            }
            return;
        };
        streams.watch();
        let PendingMessage { stream, number, begun, begun_in } = message;
        let waits_in = streams.call_number(called.at());
        let CallTimes { begun: waits, ended, .. } = called;
        let times = MessageTicks { begun, waits, ended, begun_in, waits_in };
        if let Some(tally) = streams.tallies.get_mut(stream) {
            let before = tally.times.len();
            set(&mut tally.times, tally.level, number, times);
            streams.timed += tally.times.len() - before;
        }
        streams.thin();
    });
}

impl Streams {
    /// Keeps a message until its request completes; without room it is not known.
    fn keep_pending(&mut self, (language, request): (Language, usize), message: PendingMessage) {
        let mut free = (0..ALIKE_AT_MOST).map(|number| (language, request, number));
        let free = free.find(|key| self.pending.get(key).is_none());
        _ = free.is_some_and(|key| self.pending.put(key, message));
    }

    /// The message of a request, which is completed or freed; the latest one of several.
    fn take_pending(&mut self, language: Language, request: usize) -> Option<PendingMessage> {
        let keys = (0..ALIKE_AT_MOST).map(|number| (language, request, number));
        let known = keys.take_while(|key| self.pending.get(key).is_some());
        let last = known.last()?;
        self.pending.take(&last)
    }

    /// Has completions examined as long as there are messages to wait for.
    fn watch(&mut self) {
        self.others_completed = 0;
        gate::watch_completions(CompletionsFor::Messages, !self.pending.is_empty());
    }

    /// The handle of a communicator no longer belongs to it.
    fn communicator_ends(&mut self, handle: usize) {
        self.communicators.remove(&handle);
        let (tallies, sent_in_none) = (&mut self.tallies, &mut self.sent_in_none);
        self.claims.retain(|_, claim| {
            let is_over = claim.count.comm() == handle;
            if is_over {
                let messages = claim.count.messages();
                match claim.stream.and_then(|stream| tallies.get_mut(stream)) {
                    Some(tally) => (tally.count, tally.ended_with) = (None, messages),
                    None if claim.is_sent => *sent_in_none += messages,
                    None => {}
                }
                claim.count.ends();
            }
            !is_over
        });
    }

    /// A communicator that all its ranks know by the same number.
    fn communicator(&mut self, handle: usize) -> Option<&mut KnownCommunicator> {
        if communicators::world() == Some(handle) {
            let world = KnownCommunicator { number: WORLD, children: 0 };
            return Some(self.communicators.entry(handle).or_insert(world));
        }
        self.communicators.get_mut(&handle)
    }

    /// The number of a call; 0 for those beyond the room.
    fn call_number(&mut self, at: CalledAt) -> u32 {
        if let Some(number) = self.call_numbers.get(&at) {
            return *number;
        }
        if self.calls.len() >= CALLS_AT_MOST || alloc::is_short() {
            return 0;
        }
        self.calls.push(at);
        let number = u32::try_from(self.calls.len()).unwrap_or(0);
        self.call_numbers.insert(at, number);
        number
    }

    /// Counts a message; returns whether it is timed.
    fn takes(&mut self, message: Exchanged, ends: Ends, called: CallTimes) -> bool {
        let Exchanged { direction, passed, .. } = message;
        let claimed = counts::find(direction, passed).or_else(|| self.claim(message));
        let Some(count) = claimed else {
            counts::is_full();
            self.sent_in_none += u64::from(direction == MessageDirection::Sent);
            return false;
        };
        let claim = self.claims.get(&ptr::from_ref(count).addr());
        if let Some(stream) = claim.and_then(|claim| claim.stream) {
            return self.took(stream, ends, called);
        }
        count.count();
        false
    }

    /// Takes a place for the messages of a new stream, or for those that are in none; none if there is no room.
    fn claim(&mut self, message: Exchanged) -> Option<&'static StreamCount> {
        let Exchanged { direction, peer, passed } = message;
        let stream = self.tallies.len();
        if stream.max(self.claims.len()) >= STREAMS_AT_MOST || alloc::is_short() {
            return None;
        }
        let communicator = self.communicator(passed.comm).map(|known| known.number);
        let key = peer.zip(communicator).map(|(peer, communicator)| StreamKey {
            direction,
            peer,
            communicator,
            tag: passed.tag,
        });
        let key = key.filter(|key| !self.numbers.contains_key(key));
        let count = counts::claim(direction, passed)?;
        if let Some(key) = key {
            self.tallies.push(StreamTally { count: Some(count), ..StreamTally::default() });
            self.numbers.insert(key, stream);
        } else {
            count.times_next(u64::MAX);
        }
        let is_sent = direction == MessageDirection::Sent && passed.peer >= 0;
        let claim = Claim { count, stream: key.map(|_| stream), is_sent };
        self.claims.insert(ptr::from_ref(count).addr(), claim);
        Some(count)
    }

    /// Counts a message of a stream; returns whether it is timed.
    fn took(&mut self, stream: usize, ends: Ends, called: CallTimes) -> bool {
        let at_most = self.at_most;
        let Some(tally) = self.tallies.get_mut(stream) else { return false };
        let before = tally.times.len();
        let Some(number) = tally.draw(at_most) else {
            self.timed -= before - tally.times.len();
            return false;
        };
        let CallTimes { begun, ended, .. } = called;
        let begun_in = self.call_number(called.at());
        match ends {
            Ends::Here => {
                let waits_in = begun_in;
                let times = MessageTicks { begun, waits: begun, ended, begun_in, waits_in };
                if let Some(tally) = self.tallies.get_mut(stream) {
                    set(&mut tally.times, tally.level, number, times);
                }
            }
            Ends::InAnother(Some(request)) => {
                self.keep_pending(request, PendingMessage { stream, number, begun, begun_in });
            }
            Ends::InAnother(None) => {}
        }
        let now = self.tallies.get(stream).map_or(before, |tally| tally.times.len());
        self.timed = (self.timed + now).saturating_sub(before);
        self.thin();
        true
    }

    /// How many messages were sent that are in no stream.
    fn sent_in_none(&self) -> u64 {
        let in_none = self.claims.values().filter(|claim| claim.is_sent && claim.stream.is_none());
        let here: u64 = in_none.map(|claim| claim.count.messages()).sum();
        self.sent_in_none + here + counts::sent_without_room()
    }

    /// If too many are timed, each stream keeps half as many.
    fn thin(&mut self) {
        while self.timed > TIMES_AT_MOST && self.at_most > TIMES_AT_LEAST {
            self.at_most /= 2;
            for tally in &mut self.tallies {
                tally.thin_to(self.at_most);
            }
            self.timed = self.tallies.iter().map(|tally| tally.times.len()).sum();
        }
    }
}

impl StreamTally {
    fn messages(&self) -> u64 {
        self.count.map_or(self.ended_with, StreamCount::messages)
    }

    /// Counts a message; returns its number if it is timed.
    fn draw(&mut self, at_most: usize) -> Option<u64> {
        let count = self.count?;
        let number = count.count();
        self.thin_to(at_most);
        let [timed, next] =
            [0, 1].map(|more| Waiting::timed_call(self.level, (number >> self.level) + more));
        count.times_next(if timed > number { timed } else { next });
        (timed == number).then_some(number)
    }

    fn thin_to(&mut self, at_most: usize) {
        while self.messages().saturating_sub(1) >> self.level >= at_most as u64 {
            Waiting::thin(&mut self.times, self.level);
            self.level += 1;
        }
    }

    /// In the form of the profile, with at most so many times.
    fn described(&self, key: &StreamKey, at_most: usize) -> MessageStream {
        let (mut times, mut level) = (self.times.clone(), self.level);
        while times.len() > at_most {
            Waiting::thin(&mut times, level);
            level += 1;
        }
        let time = |of: &MessageTicks| MessageTime {
            begun_ns: clock::on_host(of.begun),
            waits_ns: clock::on_host(of.waits),
            ended_ns: clock::on_host(of.ended),
            begun_in: of.begun_in,
            waits_in: of.waits_in,
        };
        let known = times.iter().map(|of| (of.ended > 0).then(|| time(of)));
        MessageStream {
            direction: key.direction,
            peer: key.peer,
            tag: key.tag,
            communicator: format!("{:016x}", key.communicator),
            messages: self.messages(),
            level,
            times: MessageStream::written(known),
        }
    }
}

/// Messages that are not compared, because several threads sent and received.
pub(crate) fn left_out() -> Option<ObjectsLeftOut> {
    let streams = streams();
    let streams = streams.as_ref().filter(|streams| streams.has_threads)?;
    let counted: u64 = streams.claims.values().map(|claim| claim.count.messages()).sum();
    Some(ObjectsLeftOut {
        what: "message".into(),
        // With the one that was not counted any more.
        number: counted + 1,
        reason: "not compared between its ranks, nor are those after: several threads of the rank sent or received".into(),
    })
}

/// The data for the profile of one of `size` ranks; none if nothing was followed, or several threads send and receive.
pub(crate) fn described(size: u32) -> Option<MessageTimes> {
    let clock = clock::of_host()?.to_owned();
    let streams = streams();
    let streams = streams.as_ref().filter(|streams| !streams.has_threads)?;
    let Streams { numbers, tallies, calls, .. } = streams;
    let sent_in_none = streams.sent_in_none();
    let room = MessageTimes::at_most(size);
    let mut at_most = STREAM_TIMES_AT_MOST;
    let number = |at_most: usize| -> usize {
        tallies.iter().map(|tally| tally.times.len().min(at_most)).sum()
    };
    while number(at_most) > room && at_most > 1 {
        at_most /= 2;
    }
    let mut places = Places::new(Map::now());
    let described =
        |(key, stream): (&StreamKey, &usize)| Some(tallies.get(*stream)?.described(key, at_most));
    let streams = numbers.iter().filter_map(described).collect();
    let mut place = |at: &CalledAt| MessagePlace {
        function: ledger::row(Function(at.function)).map_or("", |row| row.name).into(),
        call: (at.address != 0).then(|| places.at(at.address)),
    };
    let calls = calls.iter().map(&mut place).collect();
    let (addresses, load_map) = places.into_used();
    Some(MessageTimes { clock, streams, sent_in_none, calls, addresses, load_map })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::functions::point_to_point::{MPI_Irecv, MPI_Isend, MPI_Send, MPI_Waitall};
    use crate::sys::fork::in_a_copy;

    #[test]
    fn arguments_are_found_by_their_names() {
        let names = ["buf", "count", "datatype", "dest", "tag", "comm", "request"];
        let at = |function| MessageArguments::new(function, &names);
        let expected =
            MessageArguments { sent: Some((3, 4)), received: None, comm: 5, request: Some(6) };
        assert_eq!(at("MPI_Isend"), Some(expected));
        assert_eq!(at("MPI_Isend_c"), Some(expected));
        assert_eq!(at("MPI_Send_init"), None);
        let names =
            ["sendbuf", "dest", "sendtag", "recvbuf", "source", "recvtag", "comm", "status"];
        let expected =
            MessageArguments { sent: Some((1, 2)), received: Some((4, 5)), comm: 6, request: None };
        assert_eq!(MessageArguments::new("MPI_Sendrecv", &names), Some(expected));
    }

    const WORLD_HANDLE: usize = 0x4400_0000;

    fn called(function: Function, begun: u64, ended: u64) -> CallTimes {
        CallTimes { function, caller: 0x1000, begun, ended }
    }

    /// A message to or from a rank with tag 7.
    fn message(comm: usize, direction: MessageDirection, peer: i32) -> [Option<Exchanged>; 2] {
        let passed = PassedKey { comm, peer, tag: 7 };
        [Some(Exchanged { direction, peer: u32::try_from(peer).ok(), passed }), None]
    }

    /// A call on the fast path, if the message takes it.
    fn passes(peer: usize) -> bool {
        let at = MessageArguments { sent: Some((0, 1)), received: None, comm: 2, request: None };
        let words = [peer, 7, WORLD_HANDLE];
        let counts = untimed(at, |place| words[place]);
        counts.inspect(|counts| counts.count()).is_some()
    }

    #[test]
    fn of_many_messages_the_same_are_timed_as_of_collectives() {
        for messages in [1_u64, 200, 257, 5000] {
            let count: &'static StreamCount = Box::leak(Box::new(StreamCount::new()));
            let mut tally = StreamTally { count: Some(count), ..StreamTally::default() };
            let mut numbers = Vec::new();
            for number in 0..messages {
                // Those that are not timed take the fast path.
                if !count.is_due() {
                    count.count();
                } else if tally.draw(STREAM_TIMES_AT_MOST) == Some(number) {
                    let (begun, ended) = (number + 1, number + 2);
                    let times =
                        MessageTicks { begun, waits: begun, ended, ..MessageTicks::default() };
                    set(&mut tally.times, tally.level, number, times);
                    numbers.push(number);
                }
            }
            assert!(tally.times.len() <= STREAM_TIMES_AT_MOST);
            let expected: Vec<u64> = (0..messages)
                .map(|block| Waiting::timed_call(tally.level, block))
                .take_while(|number| *number < messages)
                .collect();
            let known = tally.times.iter().filter(|times| times.ended > 0);
            let known: Vec<u64> = known.map(|times| times.begun - 1).collect();
            assert_eq!(known, expected, "{messages}");
            tally.thin_to(10);
            assert!(tally.times.len() <= 10);
        }
    }

    #[test]
    fn a_message_ends_where_its_request_completes() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            begin(true);
            let sent = message(WORLD_HANDLE, MessageDirection::Sent, 2);
            count(sent, Ends::Here, called(MPI_Send, 10, 20));
            count(sent, Ends::Here, called(MPI_Send, 30, 90));
            let request = (Language::C, 0x77);
            let received = message(WORLD_HANDLE, MessageDirection::Received, 1);
            count(received, Ends::InAnother(Some(request)), called(MPI_Irecv, 100, 101));
            let is_watched = gate::watches_completions();
            completed(Language::C, 0x76, called(MPI_Waitall, 200, 300));
            completed(Language::C, 0x77, called(MPI_Waitall, 400, 500));
            completed(Language::C, 0x77, called(MPI_Waitall, 600, 700));
            writeln!(out, "{is_watched} {}", gate::watches_completions())?;
            // Two sends have one request, which the library has for all that have ended.
            for _ in 0..2 {
                let (sent, request) =
                    (message(WORLD_HANDLE, MessageDirection::Sent, 3), Some((Language::C, 0x99)));
                count(sent, Ends::InAnother(request), called(MPI_Isend, 710, 711));
            }
            for _ in 0..3 {
                completed(Language::C, 0x99, called(MPI_Waitall, 720, 730));
            }
            // On a communicator that nothing is known of, and to no rank.
            for (comm, peer) in [(0x9999, 2), (WORLD_HANDLE, -1)] {
                let sent = message(comm, MessageDirection::Sent, peer);
                count(sent, Ends::Here, called(MPI_Send, 800, 801));
            }
            let streams = streams();
            let streams = streams.as_ref().unwrap();
            for (key, stream) in &streams.numbers {
                let tally = &streams.tallies[*stream];
                let times = tally.times.iter().map(|of| (of.begun, of.waits, of.ended));
                let times: Vec<_> = times.collect();
                writeln!(out, "{:?} {} {} {times:?}", key.direction, key.peer, tally.messages())?;
            }
            writeln!(out, "{}", streams.sent_in_none())
        });
        let expected = "true false\nSent 2 2 [(10, 10, 20), (30, 30, 90)]\n\
                        Sent 3 2 [(710, 720, 730), (710, 720, 730)]\n\
                        Received 1 1 [(100, 400, 500)]\n1\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_message_that_is_not_timed_takes_the_fast_path_and_is_counted() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            begin(true);
            let sent = message(WORLD_HANDLE, MessageDirection::Sent, 2);
            let mut fast = 0;
            for _ in 0..10_000 {
                if passes(2) {
                    fast += 1;
                } else {
                    count(sent, Ends::Here, called(MPI_Send, 10, 20));
                }
            }
            let messages = streams().as_ref().unwrap().tallies[0].messages();
            // The first 256, and about half as many for each doubling.
            writeln!(out, "{messages} {}", (8_500..9_200).contains(&fast))?;
            // To no rank: the first one asks.
            writeln!(out, "{}", passes(usize::MAX))?;
            count(
                message(WORLD_HANDLE, MessageDirection::Sent, -1),
                Ends::Here,
                called(MPI_Send, 10, 20),
            );
            writeln!(out, "{}", passes(usize::MAX))?;
            // The communicator ends: its messages are known, and the place is free.
            communicator_goes(WORLD_HANDLE);
            let streams = streams();
            let streams = streams.as_ref().unwrap();
            writeln!(out, "{} {}", streams.tallies[0].messages(), streams.claims.len())
        });
        assert_eq!(lines, "10000 true\nfalse\ntrue\n10000 0\n");
    }

    #[test]
    fn a_request_that_never_completes_is_given_up() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            begin(true);
            let received = message(WORLD_HANDLE, MessageDirection::Received, 1);
            let request = Some((Language::C, 0x77));
            count(received, Ends::InAnother(request), called(MPI_Irecv, 100, 101));
            for _ in 0..PATIENCE {
                completed(Language::C, 0x76, called(MPI_Waitall, 200, 300));
            }
            writeln!(out, "{}", gate::watches_completions())?;
            completed(Language::C, 0x76, called(MPI_Waitall, 200, 300));
            writeln!(out, "{}", gate::watches_completions())
        });
        assert_eq!(lines, "true\nfalse\n");
    }

    #[test]
    fn without_room_messages_take_the_fast_path() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            begin(true);
            for peer in 0..=i32::try_from(STREAMS_AT_MOST).unwrap() {
                let sent = message(WORLD_HANDLE, MessageDirection::Sent, peer);
                count(sent, Ends::Here, called(MPI_Send, 10, 20));
            }
            writeln!(out, "{}", passes(5000))?;
            let streams = streams();
            writeln!(out, "{}", streams.as_ref().unwrap().sent_in_none())
        });
        // The one that found no room, and that on the fast path.
        assert_eq!(lines, "true\n2\n");
    }

    #[test]
    fn nothing_is_compared_once_a_second_thread_sends() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            begin(true);
            let [first, second] = [ledger::new_ledger(), ledger::new_ledger()];
            writeln!(out, "{} {}", counts::is_alone(first), counts::is_alone(first))?;
            writeln!(out, "{} {}", described(2).is_some(), left_out().is_some())?;
            writeln!(out, "{}", counts::is_alone(second))?;
            let sent = message(WORLD_HANDLE, MessageDirection::Sent, 2);
            count(sent, Ends::Here, called(MPI_Send, 10, 20));
            second_thread_comes();
            writeln!(out, "{} {}", described(2).is_some(), left_out().unwrap().number)?;
            writeln!(out, "{}", is_on())
        });
        assert_eq!(lines, "true true\ntrue false\nfalse\nfalse 2\nfalse\n");
    }

    #[test]
    fn communicators_have_the_same_number_on_each_rank_and_no_two_have_one() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            begin(true);
            // The second one is none for this rank.
            child_comes(WORLD_HANDLE, Some(5));
            child_comes(WORLD_HANDLE, None);
            child_comes(WORLD_HANDLE, Some(6));
            child_comes(5, Some(7));
            child_comes(99, Some(8));
            let number = |handle| {
                let mut streams = streams();
                streams.as_mut().unwrap().communicator(handle).map(|known| known.number)
            };
            let numbers = [WORLD_HANDLE, 5, 6, 7].map(|handle| number(handle).unwrap());
            let different: std::collections::BTreeSet<u64> = numbers.into();
            communicator_goes(6);
            writeln!(out, "{} {:?} {:?}", different.len(), number(8), number(6))
        });
        assert_eq!(lines, "4 None None\n");
    }
}
