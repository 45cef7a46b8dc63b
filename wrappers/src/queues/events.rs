//! Events of `MPI_T`: which there are, how often each occurs and when, and what those of the receive
//! queues tell about messages (MPI 4.1, 15.3.8).
//!
//! What there is, is asked for; nothing is known beforehand but what the events of receive queues mean
//! ([`MEANINGS`]). A callback comes from any thread and any context, so it works with atomic numbers
//! alone, and never waits for the queues: when another thread is at them, the message is lost, and counted
//! as that.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use gyan_results::{EventCount, MessageSource, Messages, Traffic};
use wildmatch::WildMatch;

use super::{Queues, Stream};
use crate::abi::{Bind, Library};
use crate::clock;
use crate::mpit::{Element, EventFunctions, EventType, Instance, Listener, Mpit, Registration, Source};
use crate::number::Real;
use crate::quirks;

/// What the events of receive queues mean: libraries name them as they like.
struct Meaning {
    /// Pattern of the name.
    name: &'static str,
    what: What,
    /// The elements that are the rank of the sender in the communicator and the tag.
    source: usize,
    tag: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    /// A message came that no receive waited for.
    Came,
    /// Such a message was received.
    Went,
}

/// The events that Open MPI has from version 6 on are of its life (`mpi.initialization`,
/// `mpi.communicator_created` and others): they are counted, and tell nothing of messages.
const MEANINGS: &[Meaning] = &[
    // MPICH, ch4, configured with --enable-mpit-events: source and tag, bound to nothing, so for all
    // communicators alike.
    Meaning { name: "unexp_message_enqueued", what: What::Came, source: 0, tag: 1 },
    Meaning { name: "unexp_message_dequeued", what: What::Went, source: 0, tag: 1 },
];

/// The clock of each source that has one; of those beyond, gyan's is used.
static SOURCES: [SourceClock; 32] = [const { SourceClock::new() }; 32];

/// Callbacks so far, and of some of them the ticks that they took.
static CALLBACKS: AtomicU64 = AtomicU64::new(0);
static MEASURED: AtomicU64 = AtomicU64::new(0);
static MEASURED_TICKS: AtomicU64 = AtomicU64::new(0);
/// Of so many callbacks one is measured.
const MEASURED_EVERY: u64 = 64;

/// What was told of messages; none before there is an event for it.
static QUEUES: Mutex<Option<Queues>> = Mutex::new(None);
/// Messages that were not taken in, because a thread was at the queues.
static LOST: AtomicU64 = AtomicU64::new(0);

/// How a source's clock goes beside gyan's.
struct SourceClock {
    is_good: AtomicBool,
    /// One moment on both.
    time: AtomicI64,
    ticks: AtomicU64,
    /// The time behind which it begins again.
    max: AtomicI64,
    /// gyan's ticks in one of its.
    ticks_per_tick: Real,
}

impl SourceClock {
    const fn new() -> SourceClock {
        SourceClock {
            is_good: AtomicBool::new(false),
            time: AtomicI64::new(0),
            ticks: AtomicU64::new(0),
            max: AtomicI64::new(0),
            ticks_per_tick: Real::new(0.0),
        }
    }

    /// Compares it with gyan's; not when it cannot be asked for the time.
    fn compare(&self, events: &EventFunctions, index: usize, source: &Source) {
        let before = clock::now();
        let Some(time) = events.source_time(index) else { return };
        let after = clock::now();
        if source.ticks_per_second <= 0 {
            return;
        }
        self.time.store(time, Ordering::Relaxed);
        self.ticks.store(before + after.wrapping_sub(before) / 2, Ordering::Relaxed);
        self.max.store(source.max_ticks, Ordering::Relaxed);
        self.ticks_per_tick.set(clock::ticks(1.0 / source.ticks_per_second as f64));
        // What a callback that sees it reads was stored before.
        self.is_good.store(true, Ordering::Release);
    }

    /// How far its clock has gone since it was compared; at most once around.
    fn since(&self, time: i64) -> i64 {
        let since = time.wrapping_sub(self.time.load(Ordering::Relaxed));
        let max = self.max.load(Ordering::Relaxed);
        // A moment that is before by less than half a turn is one from before.
        if max > 0 && since < 0 && since < -(max / 2) {
            return since.wrapping_add(max).wrapping_add(1);
        }
        since
    }
}

/// The instances of one event, of one object where it binds to one. Lives as long as the process.
struct Instances {
    meaning: Option<Reading>,
    /// The handle of the communicator; 0 for an event that binds to nothing.
    comm: AtomicUsize,
    /// Whether the ranks in it are those in `MPI_COMM_WORLD`.
    ranks_are_of_world: AtomicBool,
    number: AtomicU64,
    lost: AtomicU64,
    /// The index of its source and 1; 0 while there was no instance.
    source: AtomicUsize,
    /// When the first, the last and the latest instance occurred, on the clock of the source since it was
    /// compared, or on gyan's.
    first: AtomicI64,
    last: AtomicI64,
    previous: AtomicI64,
    /// The longest time between two that came after each other.
    gap: AtomicI64,
    /// Whether the library may still call back.
    is_listening: AtomicBool,
}

/// How an event of a receive queue is read.
#[derive(Clone, Copy)]
struct Reading {
    what: What,
    /// Sender and tag; none when reading them kills.
    elements: Option<(Element, Element)>,
}

const NEVER: i64 = i64::MIN;

impl Instances {
    fn new(meaning: Option<Reading>) -> Instances {
        Instances {
            meaning,
            comm: AtomicUsize::new(0),
            ranks_are_of_world: AtomicBool::new(false),
            number: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            source: AtomicUsize::new(0),
            first: AtomicI64::new(i64::MAX),
            last: AtomicI64::new(NEVER),
            previous: AtomicI64::new(NEVER),
            gap: AtomicI64::new(NEVER),
            is_listening: AtomicBool::new(false),
        }
    }

    /// Makes it ready for another object.
    fn clear(&self) {
        self.number.store(0, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        self.first.store(i64::MAX, Ordering::Relaxed);
        for time in [&self.last, &self.previous, &self.gap] {
            time.store(NEVER, Ordering::Relaxed);
        }
    }

    fn clock(&self) -> Option<&'static SourceClock> {
        let index = self.source.load(Ordering::Relaxed).checked_sub(1)?;
        SOURCES.get(index).filter(|clock| clock.is_good.load(Ordering::Acquire))
    }

    /// When an instance occurred: on the clock that `first` and `last` are of, and on gyan's.
    fn moment(&self, instance: &Instance) -> (i64, u64) {
        if self.source.load(Ordering::Relaxed) == 0
            && let Some(source) = instance.source()
        {
            self.source.store(source + 1, Ordering::Relaxed);
        }
        let by_source = self.clock().and_then(|clock| Some((clock, instance.time()?)));
        let Some((clock, time)) = by_source else {
            let now = clock::now();
            return (now.cast_signed(), now);
        };
        let since = clock.since(time);
        #[allow(clippy::cast_possible_truncation, reason = "what is beyond is no time")]
        let ticks = (since as f64 * clock.ticks_per_tick.get()) as i64;
        (since, clock.ticks.load(Ordering::Relaxed).wrapping_add_signed(ticks))
    }

    /// A message came or went.
    fn tell(&self, reading: Reading, instance: &Instance, now: u64) {
        let told = reading.elements.and_then(|(source, tag)| {
            let source = i32::try_from(instance.read(source)?).ok()?;
            Some((source, i32::try_from(instance.read(tag)?).ok()?))
        });
        let Ok(mut queues) = QUEUES.try_lock() else {
            LOST.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let Some(queues) = queues.as_mut() else { return };
        // Where the library does not say which message left, all are one stream: the first that came is
        // taken for it.
        let (source, tag) = told.unwrap_or((0, 0));
        let stream = Stream { comm: self.comm.load(Ordering::Relaxed), source, tag };
        let known = self.ranks_are_of_world.load(Ordering::Relaxed) && told.is_some();
        let peer = u32::try_from(source).ok().filter(|_| known);
        match reading.what {
            What::Came => queues.came(stream, peer, Traffic::Program, now),
            What::Went => queues.went(stream, peer, Traffic::Program, now),
        }
    }

    /// As the profile has it.
    fn counted(&self, begun: u64, names: EventNames) -> EventCount {
        let number = self.number.load(Ordering::Relaxed);
        let clock = self.clock();
        let seconds = |time: &AtomicI64| {
            let time = time.load(Ordering::Relaxed) as f64;
            clock.map_or(time, |clock| time * clock.ticks_per_tick.get())
        };
        // Of gyan's clock they are moments, of a source's times since it was compared.
        let offset = match clock {
            Some(clock) => clock.ticks.load(Ordering::Relaxed).wrapping_sub(begun).cast_signed() as f64,
            None => -(begun as f64),
        };
        let at = |time: &AtomicI64| clock::seconds(seconds(time) + offset);
        EventCount {
            name: names.name,
            event_source: names.source,
            object: names.object,
            n: number,
            dropped: self.lost.load(Ordering::Relaxed),
            first_s: (number > 0).then(|| at(&self.first)),
            last_s: (number > 0).then(|| at(&self.last)),
            gap_max_s: (self.gap.load(Ordering::Relaxed) != NEVER)
                .then(|| clock::seconds(seconds(&self.gap))),
        }
    }
}
