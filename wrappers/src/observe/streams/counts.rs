//! How many messages are in each stream? A call looks that up by its communicator, rank and tag, without a lock, and counts its
//! message there. Only one that is timed takes another path than the fast one.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use gyan_results::MessageDirection;

use super::{MessageArguments, MessageForm};
use crate::calls::ledger::Ledger;
use crate::mpi::handles::{ArgumentPosition, Arguments};
use crate::observe::communicators;
use crate::sys::cells::Counter;
use crate::sys::lookup::spread;

const PLACE_BITS: u32 = 11;
const PLACES: usize = 1 << PLACE_BITS;
/// How many places are searched for a stream, beginning with its own.
const PROBES: usize = 64;

/// The messages of one stream, or of one that nothing is known of; only one thread counts.
pub(crate) struct StreamCount {
    /// The handle of its communicator; 0 while the place is free.
    comm: AtomicUsize,
    peer_and_tag: AtomicU64,
    messages: Counter,
    /// The number of the next message that is timed.
    next: Counter,
}

/// For each direction.
static COUNTS: [[StreamCount; PLACES]; 2] = [const { [const { StreamCount::new() }; PLACES] }; 2];
/// Those of calls for which there is no room.
static WITHOUT_ROOM: [StreamCount; 2] = [const { StreamCount::new() }; 2];

static ON: AtomicBool = AtomicBool::new(false);
static IS_FULL: AtomicBool = AtomicBool::new(false);
/// Whether there are persistent operations.
static HAS_PREPARED: AtomicBool = AtomicBool::new(false);
/// Whether receives from any rank or with any tag are numbered.
static NUMBERS_ANY: AtomicBool = AtomicBool::new(false);
/// How many messages were received so.
static FROM_ANY: Counter = Counter::new(0);
/// Counts the calls that start operations, of no stream.
static STARTS: StreamCount = StreamCount::new();
/// The communicator of a place that is not free, and stands for no stream any more: no library has such a handle.
const NO_STREAM: usize = usize::MAX;
/// The ledger of the thread that sends and receives, by its address; 0 before it does.
static OWNER: AtomicUsize = AtomicUsize::new(0);

/// What tells a stream from the others of its direction, as the program passes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PassedKey {
    pub(super) comm: usize,
    /// Of the communicator; negative for any rank or none.
    pub(super) peer: i32,
    /// Negative for any.
    pub(super) tag: i32,
}

impl PassedKey {
    #[allow(clippy::cast_sign_loss)]
    #[inline(always)]
    fn peer_and_tag(self) -> u64 {
        u64::from(self.peer as u32) | u64::from(self.tag as u32) << 32
    }

    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    fn place(self) -> usize {
        (spread(self.comm ^ self.peer_and_tag() as usize) >> (u64::BITS - PLACE_BITS)) as usize
    }
}

impl StreamCount {
    pub(super) const fn new() -> StreamCount {
        StreamCount {
            comm: AtomicUsize::new(0),
            peer_and_tag: AtomicU64::new(0),
            messages: Counter::new(0),
            next: Counter::new(0),
        }
    }

    #[inline(always)]
    fn is_of(&self, key: PassedKey) -> bool {
        self.comm.load(Ordering::Relaxed) == key.comm
            && self.peer_and_tag.load(Ordering::Relaxed) == key.peer_and_tag()
    }

    #[inline]
    pub(super) fn messages(&self) -> u64 {
        self.messages.get()
    }

    /// Whether the next message is timed.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.messages.get() == self.next.get()
    }

    /// Counts a message; returns its number.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.messages.next()
    }

    /// Counts a message of a persistent operation that has been started.
    #[inline]
    pub(crate) fn count_started(&'static self) {
        if self.count() == self.next.get() {
            super::missed(self);
        }
    }

    /// The message that was counted last is counted later.
    pub(super) fn take_back(&self) {
        self.messages.set(self.messages.get().saturating_sub(1));
    }

    /// A number of it above 0.
    pub(crate) fn number(&'static self) -> u64 {
        let places = COUNTS.iter().flatten();
        let at = places.enumerate().find(|(_, count)| ptr::eq(*count, self));
        at.map_or(0, |(at, _)| at as u64 + 1)
    }

    /// That with this number.
    #[inline]
    pub(crate) fn numbered(number: u64) -> Option<&'static StreamCount> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        COUNTS.get(at / PLACES)?.get(at % PLACES)
    }

    pub(super) fn times_next(&self, number: u64) {
        self.next.set(number);
    }

    /// The handle of its communicator.
    pub(super) fn comm(&self) -> usize {
        self.comm.load(Ordering::Relaxed)
    }

    /// The place is of no stream from now on, and not free: persistent operations still have it.
    pub(super) fn is_kept(&self) {
        self.ends();
        self.comm.store(NO_STREAM, Ordering::Relaxed);
        self.times_next(u64::MAX);
    }

    /// The place is free from now on.
    pub(super) fn ends(&self) {
        self.comm.store(0, Ordering::Relaxed);
        self.messages.set(0);
        self.next.set(0);
    }
}

/// From now on messages are counted, if wanted. Those of earlier runs are gone.
pub(super) fn begin(on: bool) {
    ON.store(on, Ordering::Relaxed);
    OWNER.store(0, Ordering::Relaxed);
    IS_FULL.store(false, Ordering::Relaxed);
    HAS_PREPARED.store(false, Ordering::Relaxed);
    NUMBERS_ANY.store(on, Ordering::Relaxed);
    FROM_ANY.set(0);
    WITHOUT_ROOM.iter().for_each(StreamCount::ends);
}

pub(super) fn end() {
    ON.store(false, Ordering::Relaxed);
}

#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// There is no room for further streams.
pub(super) fn is_full() {
    IS_FULL.store(true, Ordering::Relaxed);
}

/// There are persistent operations from now on.
pub(super) fn prepared_comes() {
    HAS_PREPARED.store(true, Ordering::Relaxed);
}

/// Whether messages of persistent operations are counted.
#[inline]
pub(crate) fn has_prepared() -> bool {
    HAS_PREPARED.load(Ordering::Relaxed) && is_on()
}

/// A message has come from any rank or with any tag; returns how many came before.
#[inline]
pub(super) fn from_any_comes() -> u64 {
    FROM_ANY.next()
}

/// Receives from any rank have no number any more.
pub(super) fn from_any_ends() {
    NUMBERS_ANY.store(false, Ordering::Relaxed);
}

/// Whether receives from any rank or with any tag are numbered.
#[inline]
pub(crate) fn numbers_any() -> bool {
    NUMBERS_ANY.load(Ordering::Relaxed) && is_on()
}

/// How many messages were sent for which there was no room.
pub(super) fn sent_without_room() -> u64 {
    WITHOUT_ROOM.first().map_or(0, StreamCount::messages)
}

/// What there is of a direction.
#[inline(always)]
fn in_direction<T>([sent, received]: &[T; 2], direction: MessageDirection) -> &T {
    if direction == MessageDirection::Sent { sent } else { received }
}

fn counts(direction: MessageDirection) -> &'static [StreamCount; PLACES] {
    in_direction(&COUNTS, direction)
}

fn places(
    direction: MessageDirection,
    key: PassedKey,
) -> impl Iterator<Item = &'static StreamCount> {
    let counts = counts(direction);
    (key.place()..).take(PROBES).filter_map(|place| counts.get(place % PLACES))
}

pub(super) fn find(direction: MessageDirection, key: PassedKey) -> Option<&'static StreamCount> {
    places(direction, key).find(|count| count.is_of(key))
}

/// Takes a place for a new stream.
pub(super) fn claim(direction: MessageDirection, key: PassedKey) -> Option<&'static StreamCount> {
    let free = places(direction, key).find(|count| count.comm() == 0)?;
    free.peer_and_tag.store(key.peer_and_tag(), Ordering::Relaxed);
    free.comm.store(key.comm, Ordering::Relaxed);
    Some(free)
}

/// The count of a message from a rank that its status names, unless it is timed or its stream is new.
#[inline]
pub(super) fn untimed_from(comm: usize, (peer, tag): (i32, i32)) -> Option<&'static StreamCount> {
    let key = PassedKey { comm: communicators::handle(comm), peer, tag };
    find(MessageDirection::Received, key).filter(|count| !count.is_due())
}

/// The count of a message that is not timed; none for one that is, or whose stream is new.
#[inline(always)]
pub(super) fn untimed_in(
    direction: MessageDirection,
    key: PassedKey,
) -> Option<&'static StreamCount> {
    first_place(direction, key).or_else(|| further(direction, key))
}

/// The same if it is at the place that is looked at first.
#[inline(always)]
fn first_place(direction: MessageDirection, key: PassedKey) -> Option<&'static StreamCount> {
    counts(direction).get(key.place()).filter(|count| count.is_of(key) && !count.is_due())
}

/// The same at the places that are not looked at first.
#[cold]
#[inline(never)]
fn further(direction: MessageDirection, key: PassedKey) -> Option<&'static StreamCount> {
    match find(direction, key) {
        Some(count) => Some(count).filter(|count| !count.is_due()),
        None => IS_FULL.load(Ordering::Relaxed).then(|| in_direction(&WITHOUT_ROOM, direction)),
    }
}

/// The counts of a call whose messages are not timed: of what it sends and of what it receives.
#[derive(Clone, Copy)]
pub(crate) struct Untimed {
    sent: Option<&'static StreamCount>,
    received: Option<&'static StreamCount>,
}

impl Untimed {
    /// Of a call that sends and receives nothing, or while messages are not counted.
    pub(crate) const NOTHING: Untimed = Untimed { sent: None, received: None };

    /// Of a call that starts operations, whose messages are counted once it has succeeded.
    #[inline]
    pub(crate) fn started() -> Untimed {
        Untimed { sent: has_prepared().then_some(&STARTS), received: None }
    }
}

/// The counts for a call, unless one of its messages is timed. `word`: an argument as the program passes it in C.
#[inline(always)]
pub(crate) fn untimed(at: MessageArguments, word: impl Fn(usize) -> usize) -> Option<Untimed> {
    if !is_on() {
        return Some(Untimed::NOTHING);
    }
    looked_up(at, word, untimed_in)
}

/// The same if they are at the places that are looked at first. None while messages are not counted.
#[inline(always)]
pub(crate) fn at_hand(at: MessageArguments, word: impl Fn(usize) -> usize) -> Option<Untimed> {
    looked_up(at, word, first_place)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
#[inline(always)]
fn looked_up(
    at: MessageArguments,
    word: impl Fn(usize) -> usize,
    look_up: impl Fn(MessageDirection, PassedKey) -> Option<&'static StreamCount>,
) -> Option<Untimed> {
    if matches!(at.form, MessageForm::Prepares | MessageForm::Tries) {
        return None;
    }
    let comm = communicators::handle(at.comm.map_or(0, |comm| word(comm.into())));
    // The upper half of a word is not part of an int.
    let count = |direction, place: Option<(ArgumentPosition, ArgumentPosition)>| match place {
        None => Some(None),
        Some((peer, tag)) => {
            let (peer, tag) = (word(peer.into()) as i32, word(tag.into()) as i32);
            let key = PassedKey { comm, peer, tag };
            look_up(direction, key).map(Some)
        }
    };
    let sent = count(MessageDirection::Sent, at.sent)?;
    let received = count(MessageDirection::Received, at.received)?;
    match at.form {
        MessageForm::Probes => Some(Untimed::NOTHING),
        _ => Some(Untimed { sent, received }),
    }
}

/// The same of a call on another path. Without its communicator, nothing is counted.
#[allow(clippy::cast_sign_loss)]
pub(crate) fn untimed_among(at: MessageArguments, arguments: Arguments) -> Option<Untimed> {
    let place_of_comm = at.comm.map(usize::from);
    let comm = place_of_comm.and_then(|place| arguments.at(place).comm());
    let Some(comm) = comm else { return Some(Untimed::NOTHING) };
    let word = |place: usize| match place {
        _ if Some(place) == place_of_comm => comm,
        _ => arguments.at(place).integer().unwrap_or(-1) as usize,
    };
    untimed(at, word)
}

impl Untimed {
    /// Counts the messages, for the only thread that calls MPI.
    #[inline(always)]
    pub(crate) fn count(self) {
        if let Some(count) = self.sent {
            count.count();
        }
        if let Some(count) = self.received {
            count.count();
        }
    }

    /// The same for the thread with this ledger.
    #[inline]
    pub(crate) fn count_in(self, ledger: &Ledger) {
        if self.sent.is_none() && self.received.is_none() {
            return;
        }
        if OWNER.load(Ordering::Relaxed) == ptr::from_ref(ledger).addr() {
            self.count();
        } else if is_on() {
            super::second_thread_comes();
        }
    }
}

/// Whether the thread with this ledger is the only one that sends and receives so far. The first one is.
pub(super) fn is_alone(ledger: &Ledger) -> bool {
    let thread = ptr::from_ref(ledger).addr();
    match OWNER.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => true,
        Err(owner) => owner == thread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(peer: i32, tag: i32) -> PassedKey {
        PassedKey { comm: 0x4c00_0000, peer, tag }
    }

    #[test]
    fn a_stream_is_found_by_direction_communicator_peer_and_tag() {
        let [sent, received] = [MessageDirection::Sent, MessageDirection::Received];
        for (peer, tag) in [(0, 0), (1, 0), (0, 1), (-1, 7)] {
            let count = claim(sent, key(peer, tag)).unwrap();
            count.times_next(u64::try_from(tag + 5).unwrap());
        }
        let other = PassedKey { comm: 0x8400_0000, ..key(1, 0) };
        assert!(untimed_in(sent, other).is_none() && untimed_in(received, key(1, 0)).is_none());
        let count = untimed_in(sent, key(0, 1)).unwrap();
        assert!(find(sent, key(0, 1)).is_some_and(|found| ptr::eq(found, count)));
        for _ in 0..6 {
            assert!(untimed_in(sent, key(0, 1)).is_some());
            count.count();
        }
        assert!(untimed_in(sent, key(0, 1)).is_none(), "the next one is timed");
        count.ends();
        assert!(find(sent, key(0, 1)).is_none() && find(sent, key(-1, 7)).is_some());
    }

    #[test]
    fn each_stream_has_its_place_however_many_there_are() {
        let received = MessageDirection::Received;
        let keys = || (0..32).flat_map(|peer| (100..132).map(move |tag| key(peer, tag)));
        for key in keys() {
            claim(received, key).unwrap().times_next(u64::MAX);
        }
        let first = keys().filter(|key| counts(received)[key.place()].is_of(*key)).count();
        assert!(first > 600, "of 1024 so many are found at once: {first}");
        for key in keys() {
            untimed_in(received, key).unwrap().count();
        }
        assert!(keys().all(|key| find(received, key).unwrap().messages() == 1));
    }
}
