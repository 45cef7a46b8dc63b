//! When do messages begin and end? The messages from one rank to another one, on one communicator and with one tag, are
//! numbered alike on both, and the same ones are timed, as those of collective operations are ([`waiting`](super::waiting)). So how
//! long each of the two waits for the other one is known afterwards, without asking each other.
//!
//! Messages are received in the order in which they were sent (MPI 4.1, 3.5), and receives are numbered in the order in which
//! they are posted. One from any rank, or with any tag, is numbered once its status says which message came, if it ends in the
//! call that posts it. Another one has no number: then the two ranks count differently, and the reduction leaves their stream out.
//! Communicators have a number that follows from that of their parent, and from how many the parent had before, as all its ranks
//! make them together; so have windows. Signals of one-sided synchronisation are messages without data ([`epochs`]); locks of windows are followed apart
//! from them ([`locks`]).
//!
//! Only calls whose messages are timed leave the fast path ([`counts`]), and those that complete requests while a message that is
//! timed is under way. Once a second thread sends or receives, nothing is compared: the order of their calls is not known.

mod counts;
pub(crate) mod epochs;
pub(crate) mod locks;

use std::collections::BTreeMap;
use std::ptr;
use std::sync::Mutex;

use gyan_results::{
    MessageDirection, MessagePlace, MessageStream, MessageTime, MessageTimes, ObjectsLeftOut,
    STREAM_TIMES_AT_MOST, TimelineMessages, Waiting,
};

use self::counts::PassedKey;
pub(crate) use self::counts::{
    StreamCount, Untimed, at_hand, has_prepared, is_on, numbers_any, untimed, untimed_among,
};
use self::epochs::OpenEpochs;
use self::locks::FollowedLocks;
use super::communicators;
use super::pending;
use super::waiting::set;
use crate::calls::addresses::Map;
use crate::calls::budget::budget;
use crate::calls::containment::contain;
use crate::calls::ledger::{self, Ledger};
use crate::calls::scripts;
use crate::calls::sites::Places;
use crate::calls::stacks;
use crate::mpi::abi::inquiry;
use crate::mpi::functions::Function;
use crate::mpi::handles::{ArgumentPosition, Arguments, Language, Passed};
use crate::sys::alloc;
use crate::sys::clock;
use crate::sys::locks::held;
use crate::sys::lookup::hash;

/// How many streams a rank follows.
const STREAMS_AT_MOST: usize = 1024;
/// How many messages are timed, of all streams together; each stream has at least so many.
const TIMES_AT_MOST: usize = 4096;
const TIMES_AT_LEAST: usize = 8;
/// How many calls of the program are told apart.
const CALLS_AT_MOST: usize = 1024;
/// How many communicators are known at a time.
const COMMUNICATORS_AT_MOST: usize = 1 << 14;

/// So many messages from any rank or with any tag are numbered whatever that costs; then as long as it takes no more than this
/// part of the time.
const FROM_ANY_AT_FIRST: u64 = 1 << 14;
const FROM_ANY_SHARE: f64 = 0.005;

static STREAMS: Mutex<Option<Streams>> = Mutex::new(None);

/// The positions of the arguments of a function that sends or receives a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MessageArguments {
    /// The rank and the tag of what is sent, and of what is received.
    sent: Option<(ArgumentPosition, ArgumentPosition)>,
    received: Option<(ArgumentPosition, ArgumentPosition)>,
    /// Where a request says it there is none.
    comm: Option<ArgumentPosition>,
    /// The request, if it only starts the message, or those that are started.
    request: Option<ArgumentPosition>,
    status: Option<ArgumentPosition>,
    /// Where the call says whether it has received a message.
    flag: Option<ArgumentPosition>,
    form: MessageForm,
}

/// What a function does with a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum MessageForm {
    /// Sends or receives it, or starts to.
    Exchanges,
    /// Receives it if it has come.
    Tries,
    /// Waits for it, and leaves it for the next call that receives it.
    Probes,
    /// Prepares a persistent operation.
    Prepares,
    /// Starts one of them, or as many as the first argument says.
    Starts,
}

impl MessageArguments {
    /// None for any other function.
    pub(crate) const fn new(function: &str, names: &[&str]) -> Option<MessageArguments> {
        let name = match function.as_bytes().split_last_chunk() {
            Some((name, b"_c")) => name,
            _ => function.as_bytes(),
        };
        let Some(form) = MessageForm::in_function(name) else { return None };
        let request = ArgumentPosition::first(
            ArgumentPosition::named(names, "request"),
            ArgumentPosition::named(names, "array_of_requests"),
        );
        let tag = ArgumentPosition::named(names, "tag");
        let sent = both(
            ArgumentPosition::named(names, "dest"),
            ArgumentPosition::first(ArgumentPosition::named(names, "sendtag"), tag),
        );
        let received = both(
            ArgumentPosition::named(names, "source"),
            ArgumentPosition::first(ArgumentPosition::named(names, "recvtag"), tag),
        );
        let [status, flag] =
            [ArgumentPosition::named(names, "status"), ArgumentPosition::named(names, "flag")];
        let comm = ArgumentPosition::named(names, "comm");
        Some(MessageArguments { sent, received, comm, request, status, flag, form })
    }

    /// The status, if the function has one.
    pub(crate) const fn status(&self) -> Option<ArgumentPosition> {
        self.status
    }

    /// Whether it does nothing but receive a message, or wait for one, with a status.
    pub(crate) const fn only_receives(&self) -> bool {
        self.sent.is_none() && self.received.is_some() && self.status.is_some()
    }

    pub(crate) const fn is_start(&self) -> bool {
        matches!(self.form, MessageForm::Starts)
    }

    /// Whether the call receives a message only if it has come.
    pub(crate) const fn is_try(&self) -> bool {
        matches!(self.form, MessageForm::Tries)
    }

    /// Whether a successful call has received a message, if it only tries to.
    pub(crate) fn has_message(&self, arguments: Arguments) -> bool {
        !self.is_try() || self.flag.is_some_and(|flag| arguments.at(flag).is_set())
    }

    /// The persistent operations that a call starts: where their requests are, and how many.
    pub(crate) fn started(&self, arguments: Arguments) -> Option<(Passed, usize)> {
        let at = self.request.filter(|_| self.is_start())?;
        let number = if usize::from(at) == 0 { 1 } else { arguments.at(0_usize).number() };
        Some((arguments.at(at), number))
    }

    /// Whether a call receives from any rank or with any tag, so that only its status says which message came.
    #[inline]
    pub(crate) fn is_from_any(&self, arguments: Arguments) -> bool {
        let (Some((peer, tag)), Some(mpi)) = (self.received, inquiry()) else { return false };
        arguments.at(peer).integer() == Some(mpi.abi.any_source)
            || arguments.at(tag).integer() == Some(mpi.abi.any_tag)
    }
}

impl MessageForm {
    const fn in_function(name: &[u8]) -> Option<MessageForm> {
        match name {
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
            | b"MPI_Mprobe"
            | b"MPI_Sendrecv"
            | b"MPI_Sendrecv_replace"
            | b"MPI_Isendrecv"
            | b"MPI_Isendrecv_replace" => Some(MessageForm::Exchanges),
            b"MPI_Improbe" => Some(MessageForm::Tries),
            b"MPI_Probe" => Some(MessageForm::Probes),
            b"MPI_Send_init" | b"MPI_Ssend_init" | b"MPI_Bsend_init" | b"MPI_Rsend_init"
            | b"MPI_Recv_init" => Some(MessageForm::Prepares),
            b"MPI_Start" | b"MPI_Startall" => Some(MessageForm::Starts),
            _ => None,
        }
    }
}

const fn both(
    one: Option<ArgumentPosition>,
    other: Option<ArgumentPosition>,
) -> Option<(ArgumentPosition, ArgumentPosition)> {
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
    fn took(self) -> u64 {
        self.ended.saturating_sub(self.begun)
    }

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
    /// The stream of the persistent operation that was prepared last.
    prepared: Option<&'static StreamCount>,
    /// The call that has waited for the next message of a stream, and the number of that.
    probed: Option<(usize, u64, CallTimes)>,
    /// When messages began to be timed, in ticks.
    since: u64,
    /// The calls of messages that are timed, and their numbers from 1.
    calls: Vec<CalledAt>,
    call_numbers: BTreeMap<CalledAt, u32>,
    communicators: BTreeMap<usize, KnownCommunicator>,
    /// By window.
    epochs: BTreeMap<usize, OpenEpochs>,
    locks: FollowedLocks,
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
    /// There are persistent operations of it.
    is_prepared: bool,
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
    /// None once its communicator has ended, or its messages are not numbered any more.
    count: Option<&'static StreamCount>,
    /// How many there were then.
    ended_with: u64,
    /// There may have been more.
    is_partial: bool,
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
pub(super) struct PendingMessage {
    stream: usize,
    number: u64,
    begun: u64,
    begun_in: u32,
}

impl PendingMessage {
    /// Whether the same call began both.
    pub(super) fn is_begun_with(&self, other: &PendingMessage) -> bool {
        self.begun == other.begun
    }
}

const WORLD: u64 = 1;

/// From now on messages are timed, if wanted.
pub(crate) fn begin(on: bool) {
    let mut streams = held(&STREAMS);
    // Those of an earlier run.
    for claim in streams.take().iter().flat_map(|earlier| earlier.claims.values()) {
        claim.count.ends();
    }
    *streams = on.then(|| Streams {
        numbers: BTreeMap::new(),
        tallies: Vec::new(),
        claims: BTreeMap::new(),
        prepared: None,
        probed: None,
        since: clock::now(),
        calls: Vec::new(),
        call_numbers: BTreeMap::new(),
        communicators: BTreeMap::new(),
        epochs: BTreeMap::new(),
        locks: FollowedLocks::default(),
        at_most: STREAM_TIMES_AT_MOST,
        timed: 0,
        sent_in_none: 0,
        has_threads: false,
    });
    counts::begin(on);
    locks::begin(on);
}

/// Does something with what is followed, if anything is.
fn with_streams<T>(work: impl FnOnce(&mut Streams) -> T) -> Option<T> {
    contain("timing a message", || held(&STREAMS).as_mut().map(work))?
}

/// The number of a communicator or window that its ranks agree on, as the profile has it; as [`communicators::by_handle`] finds it.
pub(crate) fn number_of(handle: usize) -> Option<String> {
    let number = with_streams(|streams| Some(streams.communicator(handle)?.number))??;
    Some(format!("{number:016x}"))
}

/// How many messages there were of each stream; none if that is not known.
pub(crate) fn totals() -> Vec<TimelineMessages> {
    let streams = held(&STREAMS);
    let Some(streams) = streams.as_ref().filter(|streams| !streams.has_threads) else {
        return Vec::new();
    };
    let total = |(key, stream): (&StreamKey, &usize)| {
        let tally = streams.tallies.get(*stream)?;
        Some(TimelineMessages {
            direction: key.direction,
            peer: key.peer,
            tag: key.tag,
            communicator: format!("{:016x}", key.communicator),
            messages: (!tally.is_partial).then(|| tally.messages()),
        })
    };
    streams.numbers.iter().filter_map(total).collect()
}

/// A communicator or window was made by all ranks of its parent together; as [`communicators::by_handle`] finds them. `child` may be
/// none for this rank.
pub(crate) fn child_comes(parent: usize, child: Option<usize>) {
    if !is_on() {
        return;
    }
    with_streams(|streams| {
        let Some(parent) = streams.communicator(parent) else { return };
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
pub(crate) fn communicator_goes(handle: usize) {
    if is_on() {
        with_streams(|streams| streams.communicator_ends(handle));
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
    if !at.has_message(arguments) {
        return;
    }
    let comm = at.comm.and_then(|comm| arguments.at(comm).comm());
    let Some(comm) = comm.map(communicators::handle) else { return };
    // On a communicator of which nothing is known a message has no number, whoever sent it.
    let is_numbered = || with_streams(|streams| streams.communicator(comm).is_some()) == Some(true);
    let from_any = at.is_from_any(arguments) && counts::numbers_any() && is_numbered();
    let came = at.status.filter(|_| from_any);
    let came = came.and_then(|status| arguments.at(status).source_and_tag());
    let of_direction = |place: Option<(ArgumentPosition, ArgumentPosition)>, direction| {
        let (peer, tag) = place?;
        let [peer, tag] = [peer, tag].map(|place| arguments.at(place).integer());
        let came = came.filter(|_| direction == MessageDirection::Received);
        let (peer, tag) = came.or(peer.zip(tag))?;
        let passed = PassedKey { comm, peer, tag };
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
    match at.form {
        MessageForm::Probes => _ = with_streams(|streams| streams.probes(both, called)),
        MessageForm::Prepares => prepare(both),
        _ => {
            let ends = match at.request {
                Some(_) => Ends::InAnother(request),
                None => Ends::Here,
            };
            count_messages(both, ends, called);
        }
    }
    if came.is_some() {
        came_from_any();
    }
}

/// A persistent operation is prepared.
fn prepare(both: [Option<Exchanged>; 2]) {
    with_streams(|streams| {
        let Some(message) = both.into_iter().flatten().next() else { return };
        let Some(count) = streams.count_of_stream(message) else { return };
        if let Some(claim) = streams.claims.get_mut(&ptr::from_ref(count).addr())
            && claim.stream.is_some()
        {
            claim.is_prepared = true;
            streams.prepared = Some(count);
            counts::prepared_comes();
        }
    });
}

/// The stream of the persistent operation that was prepared last, as a number above 0; 0 if it is in none.
pub(crate) fn take_prepared() -> u64 {
    if !has_prepared() {
        return 0;
    }
    let prepared = with_streams(|streams| streams.prepared.take()).flatten();
    prepared.map_or(0, StreamCount::number)
}

/// A persistent operation with this request was started, whose message is timed. It is counted later.
pub(crate) fn started(
    count: &'static StreamCount,
    (language, request): (Language, usize),
    called: CallTimes,
    ledger: &'static Ledger,
) {
    if !counts::is_alone(ledger) {
        return second_thread_comes();
    }
    with_streams(|streams| {
        if let Some(stream) = streams.stream_with(count) {
            streams.took(stream, Ends::InAnother(Some((language, request))), called);
            count.take_back();
        }
    });
}

/// The message that was counted last was to be timed, and was not: another one of its call was started before it.
#[cold]
fn missed(count: &'static StreamCount) {
    with_streams(|streams| {
        let at_most = streams.at_most;
        let stream = streams.stream_with(count);
        if let Some(tally) = stream.and_then(|stream| streams.tallies.get_mut(stream)) {
            tally.plan(count.messages().saturating_sub(1), at_most);
        }
    });
}

/// Whether a message is counted that has come from any rank or with any tag: it is not timed, and its stream is known.
#[inline]
pub(crate) fn counts_from_any(at: MessageArguments, arguments: Arguments) -> bool {
    let known = || {
        let came = arguments.at(at.status?).source_and_tag()?;
        counts::untimed_from(arguments.at(at.comm?).comm()?, came)
    };
    let Some(count) = known() else { return false };
    if at.form != MessageForm::Probes {
        count.count();
    }
    came_from_any();
    true
}

/// A message has come from any rank or with any tag. If they take too much, those that are received have no number any more.
#[inline]
fn came_from_any() {
    let before = counts::from_any_comes();
    if before >= FROM_ANY_AT_FIRST && before.is_multiple_of(FROM_ANY_AT_FIRST / 16) {
        examine_cost(before);
    }
}

#[cold]
#[inline(never)]
fn examine_cost(messages: u64) {
    let cost = budget().timed_ticks() * messages as f64;
    with_streams(|streams| {
        if cost > FROM_ANY_SHARE * clock::now().saturating_sub(streams.since) as f64 {
            streams.receives_end();
        }
    });
}

/// A message, as the program passes it.
#[derive(Clone, Copy)]
pub(crate) struct Exchanged {
    direction: MessageDirection,
    /// The rank in `MPI_COMM_WORLD`, if that is known.
    peer: Option<u32>,
    passed: PassedKey,
}

impl Exchanged {
    /// Whether it counts as a message that is sent to another rank: signals do not.
    fn is_sent(&self) -> bool {
        let PassedKey { comm, peer, .. } = self.passed;
        let is_message = peer >= 0 && communicators::window_behind(comm).is_none();
        is_message && self.direction == MessageDirection::Sent
    }
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
        None => count_messages(both, ends, called),
    }
}

/// Where a message ends.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    Here,
    /// In the call that completes this request.
    InAnother(Option<(Language, usize)>),
}

pub(crate) fn count_messages(both: [Option<Exchanged>; 2], ends: Ends, called: CallTimes) {
    let timed = with_streams(|streams| {
        let mut timed = false;
        for message in both.into_iter().flatten() {
            timed |= streams.takes(message, ends, called);
        }
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
    locks::end();
    with_streams(|streams| {
        streams.has_threads = true;
    });
}

/// A message ends in this call.
pub(super) fn completed(message: PendingMessage, called: CallTimes) {
    with_streams(|streams| {
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
    /// The handle of a communicator no longer belongs to it.
    fn communicator_ends(&mut self, handle: usize) {
        self.communicators.remove(&handle);
        self.epochs.remove(&handle);
        self.locks.window_goes(handle);
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
                if claim.is_prepared {
                    claim.count.is_kept();
                } else {
                    claim.count.ends();
                }
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
        let Some(count) = self.count_of_stream(message) else {
            counts::is_full();
            self.sent_in_none += u64::from(message.is_sent());
            return false;
        };
        if let Some(stream) = self.stream_with(count) {
            return self.took(stream, ends, called);
        }
        count.count();
        false
    }

    /// A call has waited for the next message of a stream, which another call will receive.
    fn probes(&mut self, both: [Option<Exchanged>; 2], called: CallTimes) {
        for message in both.into_iter().flatten() {
            let Some(count) = self.count_of_stream(message) else { continue };
            let Some(stream) = self.stream_with(count) else { continue };
            let number = count.messages();
            let longer = self.probed.filter(|(of, next, probe)| {
                (*of, *next) == (stream, number) && probe.took() > called.took()
            });
            if count.is_due() && longer.is_none() {
                self.probed = Some((stream, number, called));
            }
        }
    }

    /// Messages that are received have no number any more.
    fn receives_end(&mut self) {
        counts::from_any_ends();
        let tallies = &mut self.tallies;
        for claim in self.claims.values_mut().filter(|claim| !claim.is_sent) {
            if let Some(tally) = claim.stream.take().and_then(|stream| tallies.get_mut(stream)) {
                (tally.ended_with, tally.is_partial) = (claim.count.messages(), true);
                tally.count = None;
            }
            claim.count.times_next(u64::MAX);
        }
    }

    /// The count of the messages that a message is one of; none if there is no room.
    fn count_of_stream(&mut self, message: Exchanged) -> Option<&'static StreamCount> {
        counts::find(message.direction, message.passed).or_else(|| self.claim(message))
    }

    /// The index of the tally with this count; none for messages that are in no stream.
    fn stream_with(&self, count: &'static StreamCount) -> Option<usize> {
        self.claims.get(&ptr::from_ref(count).addr())?.stream
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
        let is_numbered = direction == MessageDirection::Sent || counts::numbers_any();
        let key = key.filter(|key| is_numbered && !self.numbers.contains_key(key));
        let count = counts::claim(direction, passed)?;
        if let Some(key) = key {
            self.tallies.push(StreamTally { count: Some(count), ..StreamTally::default() });
            self.numbers.insert(key, stream);
        } else {
            count.times_next(u64::MAX);
        }
        let is_sent = message.is_sent();
        let claim = Claim { count, stream: key.map(|_| stream), is_sent, is_prepared: false };
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
        // The call before this one has waited for the message.
        let probe = self.probed.take_if(|(of, next, _)| (*of, *next) == (stream, number));
        let (ends, called) = match probe {
            Some((_, _, probe)) if probe.took() > called.took() => (Ends::Here, probe),
            _ => (ends, called),
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
                let message = PendingMessage { stream, number, begun, begun_in };
                pending::keep_message(request, message);
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
        let number = self.count?.count();
        self.plan(number, at_most).then_some(number)
    }

    /// The next message that is timed comes after this one; returns whether this one is.
    fn plan(&mut self, number: u64, at_most: usize) -> bool {
        self.thin_to(at_most);
        let [timed, next] =
            [0, 1].map(|more| Waiting::timed_call(self.level, (number >> self.level) + more));
        if let Some(count) = self.count {
            count.times_next(if timed > number { timed } else { next });
        }
        timed == number
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
            is_partial: self.is_partial,
            level,
            times: MessageStream::written(known),
        }
    }
}

/// Messages that are not compared, because several threads sent and received.
pub(crate) fn left_out() -> Option<ObjectsLeftOut> {
    let streams = held(&STREAMS);
    let streams = streams.as_ref().filter(|streams| streams.has_threads)?;
    let is_message = |count: &&StreamCount| communicators::window_behind(count.comm()).is_none();
    let counts = streams.claims.values().map(|claim| claim.count);
    let counted: u64 = counts.filter(is_message).map(StreamCount::messages).sum();
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
    let streams = held(&STREAMS);
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
    let described = |(key, stream): (&StreamKey, &usize)| {
        let tally = tallies.get(*stream).filter(|tally| tally.messages() > 0)?;
        Some(tally.described(key, at_most))
    };
    let streams_described = numbers.iter().filter_map(described).collect();
    let locks = streams.locks.described(size);
    let mut place = |at: &CalledAt| MessagePlace {
        function: ledger::row(Function(at.function)).map_or("", |row| row.name).into(),
        call: (at.address != 0).then(|| places.at(at.address)),
    };
    let calls = calls.iter().map(&mut place).collect();
    let (addresses, load_map) = places.into_used();
    Some(MessageTimes {
        clock,
        streams: streams_described,
        sent_in_none,
        locks,
        calls,
        addresses,
        load_map,
    })
}

#[cfg(test)]
mod tests {
    use super::epochs::EpochStep;
    use super::*;
    use crate::calls::gate;
    use crate::mpi::functions::point_to_point::{
        MPI_Irecv, MPI_Isend, MPI_Recv, MPI_Send, MPI_Waitall,
    };
    use crate::sys::fork::in_a_copy;

    #[test]
    fn arguments_are_found_by_their_names() {
        let names = ["buf", "count", "datatype", "dest", "tag", "comm", "request"];
        let at = |function| MessageArguments::new(function, &names);
        let [dest, tag, comm, request] = [3, 4, 5, 6].map(ArgumentPosition::new);
        let expected = MessageArguments {
            sent: dest.zip(tag),
            received: None,
            comm,
            request,
            status: None,
            flag: None,
            form: MessageForm::Exchanges,
        };
        assert_eq!(at("MPI_Isend"), Some(expected));
        assert_eq!(at("MPI_Isend_c"), Some(expected));
        let prepares = MessageArguments { form: MessageForm::Prepares, ..expected };
        assert_eq!(at("MPI_Send_init"), Some(prepares));
        assert_eq!(at("MPI_Psend_init"), None);
        let names =
            ["sendbuf", "dest", "sendtag", "recvbuf", "source", "recvtag", "comm", "status"];
        let [dest, sent_tag, source, tag, comm, status] =
            [1, 2, 4, 5, 6, 7].map(ArgumentPosition::new);
        let expected = MessageArguments {
            sent: dest.zip(sent_tag),
            received: source.zip(tag),
            comm,
            request: None,
            status,
            flag: None,
            form: MessageForm::Exchanges,
        };
        assert_eq!(MessageArguments::new("MPI_Sendrecv", &names), Some(expected));
    }

    const WORLD_HANDLE: usize = 0x4400_0000;

    fn follow() {
        pending::begin(true);
        begin(true);
    }

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
        let at = MessageArguments::new("MPI_Send", &["dest", "tag", "comm"]).unwrap();
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
            follow();
            let sent = message(WORLD_HANDLE, MessageDirection::Sent, 2);
            count_messages(sent, Ends::Here, called(MPI_Send, 10, 20));
            count_messages(sent, Ends::Here, called(MPI_Send, 30, 90));
            let request = (Language::C, 0x77);
            let received = message(WORLD_HANDLE, MessageDirection::Received, 1);
            count_messages(received, Ends::InAnother(Some(request)), called(MPI_Irecv, 100, 101));
            let is_watched = gate::watches_completions();
            pending::completed(Language::C, 0x76, false, called(MPI_Waitall, 200, 300));
            pending::completed(Language::C, 0x77, false, called(MPI_Waitall, 400, 500));
            pending::completed(Language::C, 0x77, false, called(MPI_Waitall, 600, 700));
            writeln!(out, "{is_watched} {}", gate::watches_completions())?;
            // Two sends have one request, which the library has for all that have ended.
            for _ in 0..2 {
                let (sent, request) =
                    (message(WORLD_HANDLE, MessageDirection::Sent, 3), Some((Language::C, 0x99)));
                count_messages(sent, Ends::InAnother(request), called(MPI_Isend, 710, 711));
            }
            for _ in 0..3 {
                pending::completed(Language::C, 0x99, false, called(MPI_Waitall, 720, 730));
            }
            // On a communicator that nothing is known of, and to no rank.
            for (comm, peer) in [(0x9999, 2), (WORLD_HANDLE, -1)] {
                let sent = message(comm, MessageDirection::Sent, peer);
                count_messages(sent, Ends::Here, called(MPI_Send, 800, 801));
            }
            let streams = held(&STREAMS);
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

    /// What is known of each stream: direction, peer, messages, whether that is all, and times.
    fn known(out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let streams = held(&STREAMS);
        let streams = streams.as_ref().unwrap();
        for (key, stream) in &streams.numbers {
            let tally = &streams.tallies[*stream];
            let times = tally.times.iter().map(|of| (of.begun, of.waits, of.ended));
            let (messages, times): (u64, Vec<_>) = (tally.messages(), times.collect());
            let of = if tally.is_partial { "at least " } else { "" };
            writeln!(out, "{:?} {} {of}{messages} {times:?}", key.direction, key.peer)?;
        }
        Ok(())
    }

    #[test]
    fn one_request_may_stand_for_a_message_that_is_sent_and_one_that_is_received() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            follow();
            let [sent, _] = message(WORLD_HANDLE, MessageDirection::Sent, 2);
            let [received, _] = message(WORLD_HANDLE, MessageDirection::Received, 1);
            let request = Some((Language::C, 0x77));
            for begun in [10, 20] {
                let this_call = called(MPI_Irecv, begun, begun + 1);
                count_messages([sent, received], Ends::InAnother(request), this_call);
            }
            for begun in [30, 40, 50] {
                let this_call = called(MPI_Waitall, begun, begun + 5);
                pending::completed(Language::C, 0x77, false, this_call);
            }
            writeln!(out, "{}", gate::watches_completions())?;
            known(out)
        });
        // The later one of two alike is completed first.
        let times = "[(10, 40, 45), (20, 30, 35)]";
        assert_eq!(lines, format!("false\nSent 2 2 {times}\nReceived 1 2 {times}\n"));
    }

    #[test]
    fn a_persistent_operation_has_a_message_each_time_that_it_is_started() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            follow();
            let ledger = ledger::new_ledger();
            prepare(message(WORLD_HANDLE, MessageDirection::Received, 1));
            let stream = StreamCount::numbered(take_prepared()).unwrap();
            writeln!(
                out,
                "{:?} {}",
                StreamCount::numbered(take_prepared()).is_some(),
                has_prepared()
            )?;
            let start = |begun| {
                if stream.is_due() {
                    started(
                        stream,
                        (Language::C, 0x77),
                        called(MPI_Irecv, begun, begun + 1),
                        ledger,
                    );
                }
                stream.count_started();
            };
            start(10);
            pending::completed(Language::C, 0x77, true, called(MPI_Waitall, 20, 30));
            // No longer pending.
            pending::completed(Language::C, 0x77, true, called(MPI_Waitall, 40, 50));
            start(60);
            pending::completed(Language::C, 0x77, true, called(MPI_Waitall, 70, 80));
            // A call that starts two of the stream times the first one.
            let number = stream.messages();
            started(stream, (Language::C, 0x77), called(MPI_Irecv, 90, 91), ledger);
            stream.count_started();
            stream.count_started();
            writeln!(out, "{} {}", stream.messages() - number, stream.is_due())?;
            // Its communicator ends before it does.
            communicator_goes(WORLD_HANDLE);
            start(95);
            writeln!(out, "{}", stream.is_due())?;
            known(out)
        });
        let expected = "false true\n2 true\nfalse\nReceived 1 4 [(10, 20, 30), (60, 70, 80)]\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_rank_waits_for_a_message_where_it_is_probed() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            follow();
            let received = message(WORLD_HANDLE, MessageDirection::Received, 1);
            let probes = |from, to| {
                with_streams(|streams| streams.probes(received, called(MPI_Recv, from, to)));
            };
            let takes = |from, to| count_messages(received, Ends::Here, called(MPI_Recv, from, to));
            probes(10, 50);
            probes(50, 51);
            takes(60, 61);
            // Not for the message after that.
            takes(70, 75);
            probes(80, 81);
            takes(90, 99);
            known(out)
        });
        assert_eq!(lines, "Received 1 3 [(10, 10, 50), (70, 70, 75), (90, 90, 99)]\n");
    }

    #[test]
    fn messages_from_any_rank_have_no_number_any_more_if_that_takes_too_much() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            follow();
            let sent = message(WORLD_HANDLE, MessageDirection::Sent, 2);
            count_messages(sent, Ends::Here, called(MPI_Send, 10, 20));
            let received = message(WORLD_HANDLE, MessageDirection::Received, 1);
            count_messages(received, Ends::Here, called(MPI_Recv, 30, 40));
            with_streams(Streams::receives_end);
            for (peer, direction) in [
                (1, MessageDirection::Received),
                (3, MessageDirection::Received),
                (2, MessageDirection::Sent),
            ] {
                let more = message(WORLD_HANDLE, direction, peer);
                count_messages(more, Ends::Here, called(MPI_Recv, 50, 60));
            }
            known(out)
        });
        let expected = "Sent 2 2 [(10, 10, 20), (50, 50, 60)]\n\
                        Received 1 at least 1 [(30, 30, 40)]\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_message_that_is_not_timed_takes_the_fast_path_and_is_counted() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            follow();
            let sent = message(WORLD_HANDLE, MessageDirection::Sent, 2);
            let mut fast = 0;
            for _ in 0..10_000 {
                if passes(2) {
                    fast += 1;
                } else {
                    count_messages(sent, Ends::Here, called(MPI_Send, 10, 20));
                }
            }
            let messages = held(&STREAMS).as_ref().unwrap().tallies[0].messages();
            // The first 256, and about half as many for each doubling.
            writeln!(out, "{messages} {}", (8_500..9_200).contains(&fast))?;
            // To no rank: the first one asks.
            writeln!(out, "{}", passes(usize::MAX))?;
            count_messages(
                message(WORLD_HANDLE, MessageDirection::Sent, -1),
                Ends::Here,
                called(MPI_Send, 10, 20),
            );
            writeln!(out, "{}", passes(usize::MAX))?;
            // The communicator ends: its messages are known, and the place is free.
            communicator_goes(WORLD_HANDLE);
            let streams = held(&STREAMS);
            let streams = streams.as_ref().unwrap();
            writeln!(out, "{} {}", streams.tallies[0].messages(), streams.claims.len())
        });
        assert_eq!(lines, "10000 true\nfalse\ntrue\n10000 0\n");
    }

    #[test]
    fn a_request_that_never_completes_is_given_up() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            follow();
            let received = message(WORLD_HANDLE, MessageDirection::Received, 1);
            let request = Some((Language::C, 0x77));
            count_messages(received, Ends::InAnother(request), called(MPI_Irecv, 100, 101));
            for _ in 0..pending::PATIENCE {
                pending::completed(Language::C, 0x76, false, called(MPI_Waitall, 200, 300));
            }
            writeln!(out, "{}", gate::watches_completions())?;
            pending::completed(Language::C, 0x76, false, called(MPI_Waitall, 200, 300));
            writeln!(out, "{}", gate::watches_completions())
        });
        assert_eq!(lines, "true\nfalse\n");
    }

    #[test]
    fn without_room_messages_take_the_fast_path() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            follow();
            for peer in 0..=i32::try_from(STREAMS_AT_MOST).unwrap() {
                let sent = message(WORLD_HANDLE, MessageDirection::Sent, peer);
                count_messages(sent, Ends::Here, called(MPI_Send, 10, 20));
            }
            writeln!(out, "{}", passes(5000))?;
            let streams = held(&STREAMS);
            writeln!(out, "{}", streams.as_ref().unwrap().sent_in_none())
        });
        // The one that found no room, and that on the fast path.
        assert_eq!(lines, "true\n2\n");
    }

    #[test]
    fn nothing_is_compared_once_a_second_thread_sends() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            follow();
            let [first, second] = [ledger::new_ledger(), ledger::new_ledger()];
            writeln!(out, "{} {}", counts::is_alone(first), counts::is_alone(first))?;
            writeln!(out, "{} {}", described(2).is_some(), left_out().is_some())?;
            writeln!(out, "{}", counts::is_alone(second))?;
            let sent = message(WORLD_HANDLE, MessageDirection::Sent, 2);
            count_messages(sent, Ends::Here, called(MPI_Send, 10, 20));
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
            follow();
            // The second one is none for this rank.
            child_comes(WORLD_HANDLE, Some(5));
            child_comes(WORLD_HANDLE, None);
            child_comes(WORLD_HANDLE, Some(6));
            child_comes(5, Some(7));
            child_comes(99, Some(8));
            let number = |handle| {
                let mut streams = held(&STREAMS);
                streams.as_mut().unwrap().communicator(handle).map(|known| known.number)
            };
            let numbers = [WORLD_HANDLE, 5, 6, 7].map(|handle| number(handle).unwrap());
            let different: std::collections::BTreeSet<u64> = numbers.into();
            communicator_goes(6);
            writeln!(out, "{} {:?} {:?}", different.len(), number(8), number(6))
        });
        assert_eq!(lines, "4 None None\n");
    }

    #[test]
    fn the_epochs_of_a_window_are_signals_between_its_ranks() {
        let lines = in_a_copy(|out| {
            communicators::simulate_world(WORLD_HANDLE);
            begin(true);
            let win = communicators::window(5);
            child_comes(WORLD_HANDLE, Some(win));
            let ledger = ledger::new_ledger();
            let changed = |win: usize, step: EpochStep, begun: u64, ended: u64| {
                epochs::changed(win, step, called(MPI_Send, begun, ended), ledger);
            };
            // An origin, twice, and an epoch of a window that is not known.
            for (at, start_ended, end) in [(100, 150, 170), (200, 201, 290)] {
                changed(win, EpochStep::Started(vec![1, 2]), at, start_ended);
                changed(win, EpochStep::Completed, start_ended + 9, end);
                changed(communicators::window(6), EpochStep::Started(vec![1]), at, start_ended);
            }
            // A target that waits, and a call that ends nothing.
            changed(win, EpochStep::Posted(vec![3]), 300, 301);
            changed(win, EpochStep::Waited, 310, 390);
            changed(win, EpochStep::Waited, 400, 410);
            changed(win, EpochStep::Completed, 420, 430);
            {
                let streams = held(&STREAMS);
                let streams = streams.as_ref().unwrap();
                for (key, stream) in &streams.numbers {
                    let times = streams.tallies[*stream].times.iter();
                    let times: Vec<_> = times.map(|of| (of.begun, of.waits, of.ended)).collect();
                    writeln!(out, "{:?} {} {} {times:?}", key.direction, key.peer, key.tag)?;
                }
                writeln!(out, "{} {}", streams.sent_in_none(), streams.tallies.len())?;
            }
            communicator_goes(win);
            changed(win, EpochStep::Started(vec![1]), 500, 501);
            writeln!(out, "{}", held(&STREAMS).as_ref().unwrap().epochs.len())
        });
        let expected = "Sent 1 -3 [(159, 159, 170), (210, 210, 290)]\n\
                        Sent 2 -3 [(159, 159, 170), (210, 210, 290)]\n\
                        Sent 3 -2 [(300, 300, 301)]\n\
                        Sent 3 -1 [(300, 300, 301)]\n\
                        Received 1 -2 [(159, 159, 170), (210, 210, 290)]\n\
                        Received 1 -1 [(100, 100, 150), (200, 200, 201)]\n\
                        Received 2 -2 [(159, 159, 170), (210, 210, 290)]\n\
                        Received 2 -1 [(100, 100, 150), (200, 200, 201)]\n\
                        Received 3 -3 [(310, 310, 390)]\n0 9\n0\n";
        assert_eq!(lines, expected);
    }
}
