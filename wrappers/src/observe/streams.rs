//! When do messages begin and end? The messages from one rank to another one, on one communicator and with one tag, are
//! numbered alike on both, and the same ones are timed, as those of collective operations are ([`waiting`](super::waiting)). So how
//! long each of the two waits for the other one is known afterwards, without asking each other.
//!
//! Messages are received in the order in which they were sent (MPI 4.1, 3.5), and receives are numbered in the order in which
//! they are posted. A receive from any rank, or with any tag, has no number: then the two ranks count differently, and
//! the reduction leaves their stream out. Communicators have a number that follows from that of their parent, and from how many
//! the parent had before, as all its ranks make them together.
//!
//! While this is on, no call takes the fast path. Once a second thread sends or receives, nothing is compared: the order of
//! their calls is not known.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gyan_results::{
    MessageDirection, MessagePlace, MessageStream, MessageTime, MessageTimes, ObjectsLeftOut,
    STREAM_TIMES_AT_MOST, Waiting,
};

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
/// How many calls of the program are told apart.
const CALLS_AT_MOST: usize = 1024;
/// How many communicators are known at a time.
const COMMUNICATORS_AT_MOST: usize = 1 << 14;

static ON: AtomicBool = AtomicBool::new(false);
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
    pending: FixedMap<(Language, usize), PendingMessage>,
    /// The calls of messages that are timed, and their numbers from 1.
    calls: Vec<CalledAt>,
    call_numbers: BTreeMap<CalledAt, u32>,
    communicators: BTreeMap<usize, KnownCommunicator>,
    /// Most messages of a stream that are timed.
    at_most: usize,
    /// How many are.
    timed: usize,
    /// Messages that were sent and are in no stream.
    sent_in_none: u64,
    /// The ledger of the thread that sends and receives, by its address; 0 before it does.
    thread: usize,
    /// How many messages threads sent and received after a second one did.
    of_threads: u64,
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
    messages: u64,
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
    *streams() = on.then(|| Streams {
        numbers: BTreeMap::new(),
        tallies: Vec::new(),
        pending: FixedMap::new(PENDING_AT_MOST),
        calls: Vec::new(),
        call_numbers: BTreeMap::new(),
        communicators: BTreeMap::new(),
        at_most: STREAM_TIMES_AT_MOST,
        timed: 0,
        sent_in_none: 0,
        thread: 0,
        of_threads: 0,
    });
    ON.store(on, Ordering::Relaxed);
    gate::watch_completions(CompletionsFor::Messages, on);
}

#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The time for [`CallTimes`]; 0 while nothing is timed.
#[inline]
pub(crate) fn now() -> u64 {
    if is_on() { clock::now() } else { 0 }
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
        with_streams(|streams| streams.communicators.remove(&handle));
    }
}

/// A request is about to be freed.
pub(crate) fn request_goes(request: Passed) {
    if is_on()
        && let Some(handle) = request.request(0)
    {
        with_streams(|streams| streams.pending.take(&(request.language, handle)));
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
    let thread = ptr::from_ref(ledger).addr();
    if with_streams(|streams| streams.is_of_another(thread)) != Some(false) {
        return;
    }
    let Some(comm) = arguments.at(at.comm).comm() else { return };
    let of_direction = |place: Option<(usize, usize)>, direction| {
        let (peer, tag) = place?;
        // Those that stand for no rank, any rank or any tag are negative.
        let peer = u32::try_from(arguments.at(peer).integer()?).ok()?;
        let tag = arguments.at(tag).integer().filter(|tag| *tag >= 0)?;
        // The library may be asked, with no lock held.
        let peer = communicators::by_word(comm).and_then(|comm| comm.rank_in_world(peer));
        Some((direction, peer, tag))
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
    count(communicators::handle(comm), both, ends, called);
}

/// The direction of a message, the rank in `MPI_COMM_WORLD` if that is known, and the tag.
pub(crate) type Exchanged = (MessageDirection, Option<u32>, i32);

/// Where a message ends.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    Here,
    /// In the call that completes this request.
    InAnother(Option<(Language, usize)>),
}

pub(crate) fn count(handle: usize, both: [Option<Exchanged>; 2], ends: Ends, called: CallTimes) {
    let timed = with_streams(|streams| {
        let mut timed = false;
        for (direction, peer, tag) in both.into_iter().flatten() {
            let communicator = streams.communicator(handle).map(|known| known.number);
            let key = peer.zip(communicator).map(|(peer, communicator)| StreamKey {
                direction,
                peer,
                communicator,
                tag,
            });
            match key.and_then(|key| streams.stream(key)) {
                Some(stream) => timed |= streams.took(stream, ends, called),
                None if direction == MessageDirection::Sent => streams.sent_in_none += 1,
                None => {}
            }
        }
        timed
    });
    if timed == Some(true) {
        budget().spend_on_timing(budget().timed_ticks());
    }
}

/// A request has completed in this call.
pub(crate) fn completed(language: Language, request: usize, called: CallTimes) {
    with_streams(|streams| {
        let Some(message) = streams.pending.take(&(language, request)) else { return };
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
    /// Whether a second thread sends and receives messages.
    fn is_of_another(&mut self, thread: usize) -> bool {
        if self.thread == 0 {
            self.thread = thread;
        }
        let is_another = self.thread != thread || self.of_threads > 0;
        self.of_threads += u64::from(is_another);
        is_another
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

    /// The stream's index in `tallies`.
    fn stream(&mut self, key: StreamKey) -> Option<usize> {
        if let Some(stream) = self.numbers.get(&key) {
            return Some(*stream);
        }
        let stream = self.tallies.len();
        if stream >= STREAMS_AT_MOST || alloc::is_short() {
            return None;
        }
        self.tallies.push(StreamTally::default());
        self.numbers.insert(key, stream);
        Some(stream)
    }

    /// Counts a message; returns whether it is timed.
    fn took(&mut self, stream: usize, ends: Ends, called: CallTimes) -> bool {
        let at_most = self.at_most;
        let Some(tally) = self.tallies.get_mut(stream) else { return false };
        let before = tally.times.len();
        let Some(number) = tally.count(at_most) else {
            self.timed -= before - tally.times.len();
            return false;
        };
        let CallTimes { begun, ended, .. } = called;
        let begun_in = self.call_number(called.at());
        let Some(tally) = self.tallies.get_mut(stream) else { return false };
        match ends {
            Ends::Here => {
                let waits_in = begun_in;
                let times = MessageTicks { begun, waits: begun, ended, begun_in, waits_in };
                set(&mut tally.times, tally.level, number, times);
            }
            Ends::InAnother(Some(request)) => {
                let message = PendingMessage { stream, number, begun, begun_in };
                // Without room it is not known.
                _ = self.pending.put(request, message);
            }
            Ends::InAnother(None) => {}
        }
        self.timed = (self.timed + tally.times.len()).saturating_sub(before);
        self.thin();
        true
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
    /// Counts a message; returns its number if it is timed.
    fn count(&mut self, at_most: usize) -> Option<u64> {
        let number = self.messages;
        self.messages += 1;
        self.thin_to(at_most);
        (Waiting::timed_call(self.level, number >> self.level) == number).then_some(number)
    }

    fn thin_to(&mut self, at_most: usize) {
        while self.messages.saturating_sub(1) >> self.level >= at_most as u64 {
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
            messages: self.messages,
            level,
            times: MessageStream::written(known),
        }
    }
}

/// Messages that are not compared, because several threads sent and received.
pub(crate) fn left_out() -> Option<ObjectsLeftOut> {
    let number = streams().as_ref()?.of_threads;
    (number > 0).then(|| ObjectsLeftOut {
        what: "message".into(),
        number,
        reason: "not compared between its ranks, nor are the others: several threads of the rank sent or received".into(),
    })
}

/// The data for the profile of one of `size` ranks; none if nothing was followed, or several threads send and receive.
pub(crate) fn described(size: u32) -> Option<MessageTimes> {
    let clock = clock::of_host()?.to_owned();
    let streams = streams();
    let streams = streams.as_ref().filter(|streams| streams.of_threads == 0)?;
    let Streams { numbers, tallies, calls, sent_in_none, .. } = streams;
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
    let sent_in_none = *sent_in_none;
    Some(MessageTimes { clock, streams, sent_in_none, calls, addresses, load_map })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::functions::point_to_point::{MPI_Irecv, MPI_Send, MPI_Waitall};
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
    fn message(direction: MessageDirection, peer: u32) -> [Option<Exchanged>; 2] {
        [Some((direction, Some(peer), 7)), None]
    }

    #[test]
    fn of_many_messages_the_same_are_timed_as_of_collectives() {
        for messages in [1_u64, 200, 257, 5000] {
            let mut tally = StreamTally::default();
            let mut numbers = Vec::new();
            for number in 0..messages {
                if tally.count(STREAM_TIMES_AT_MOST) == Some(number) {
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
            let sent = message(MessageDirection::Sent, 2);
            count(WORLD_HANDLE, sent, Ends::Here, called(MPI_Send, 10, 20));
            count(WORLD_HANDLE, sent, Ends::Here, called(MPI_Send, 30, 90));
            let request = (Language::C, 0x77);
            let received = message(MessageDirection::Received, 1);
            count(
                WORLD_HANDLE,
                received,
                Ends::InAnother(Some(request)),
                called(MPI_Irecv, 100, 101),
            );
            completed(Language::C, 0x76, called(MPI_Waitall, 200, 300));
            completed(Language::C, 0x77, called(MPI_Waitall, 400, 500));
            completed(Language::C, 0x77, called(MPI_Waitall, 600, 700));
            // On a communicator that nothing is known of.
            count(0x9999, sent, Ends::Here, called(MPI_Send, 800, 801));
            let streams = streams();
            let streams = streams.as_ref().unwrap();
            for (key, stream) in &streams.numbers {
                let tally = &streams.tallies[*stream];
                let times = tally.times.iter().map(|of| (of.begun, of.waits, of.ended));
                let times: Vec<_> = times.collect();
                writeln!(out, "{:?} {} {} {times:?}", key.direction, key.peer, tally.messages)?;
            }
            writeln!(out, "{}", streams.sent_in_none)
        });
        let expected = "Sent 2 2 [(10, 10, 20), (30, 30, 90)]\nReceived 1 1 [(100, 400, 500)]\n1\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn nothing_is_compared_once_a_second_thread_sends() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            begin(true);
            let is_another =
                |thread| with_streams(|streams| streams.is_of_another(thread)).unwrap();
            writeln!(out, "{:?}", [1, 1].map(is_another))?;
            writeln!(out, "{} {}", described(2).is_some(), left_out().is_some())?;
            writeln!(out, "{:?}", [2, 1].map(is_another))?;
            writeln!(out, "{} {}", described(2).is_some(), left_out().unwrap().number)
        });
        assert_eq!(lines, "[false, false]\ntrue false\n[true, true]\nfalse 2\n");
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
