//! The work of a callback: the numbers of an event's instances, and what they tell the queues.
//!
//! It may run in any thread and any context, so it uses only atomic numbers and never waits for the queues: if
//! another thread holds them, the message is dropped and counted as lost.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use gyan_results::{EventCount, MessageSource, Messages, Traffic};

use super::clocks::{SourceClock, clock_of};
use super::meaning::{Reading, What};
use crate::calls::containment::contain;
use crate::mpi::tool::{Instance, Listener};
use crate::observe::queues::{Peer, Queues, Stream};
use crate::sys::clock;
use crate::sys::locks::{held, lock_soon};

/// Callbacks so far, and the ticks that some of them took.
static CALLBACKS: AtomicU64 = AtomicU64::new(0);
static MEASURED: AtomicU64 = AtomicU64::new(0);
static MEASURED_TICKS: AtomicU64 = AtomicU64::new(0);
/// One in this many callbacks is measured.
const MEASURED_EVERY: u64 = 64;

/// What events said about messages; none before there is such an event.
static HEARD: Mutex<Option<Box<Heard>>> = Mutex::new(None);
/// Messages that were dropped because another thread held the queues.
static LOST: AtomicU64 = AtomicU64::new(0);

/// The instances of one event, for one object if it binds to one. Lives as long as the process.
pub(super) struct Instances {
    meaning: Option<Reading>,
    /// The handle of the communicator; 0 for an event that binds to nothing.
    pub(super) comm: AtomicUsize,
    number: AtomicU64,
    lost: AtomicU64,
    /// The index of its source plus 1; 0 before the first instance.
    pub(super) source: AtomicUsize,
    /// When the first, the last and the latest instance occurred, on the clock of the source since it was
    /// compared, or on gyan's.
    first: AtomicI64,
    last: AtomicI64,
    previous: AtomicI64,
    /// The longest time between two consecutive ones.
    gap: AtomicI64,
    /// Whether the library may still call back.
    pub(super) is_listening: AtomicBool,
}

const NEVER: i64 = i64::MIN;

impl Instances {
    pub(super) fn new(meaning: Option<Reading>) -> Instances {
        Instances {
            meaning,
            comm: AtomicUsize::new(0),
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

    /// Resets it for another object.
    pub(super) fn clear(&self) {
        self.number.store(0, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        self.first.store(i64::MAX, Ordering::Relaxed);
        for time in [&self.last, &self.previous, &self.gap] {
            time.store(NEVER, Ordering::Relaxed);
        }
    }

    fn clock(&self) -> Option<&'static SourceClock> {
        let index = self.source.load(Ordering::Relaxed).checked_sub(1)?;
        clock_of(index)
    }

    /// When an instance occurred: on the clock of `first` and `last`, and on gyan's.
    fn moment(&self, instance: &Instance) -> (i64, u64) {
        if self.source.load(Ordering::Relaxed) == 0
            && let Some(source) = instance.source()
        {
            self.source.store(source + 1, Ordering::Relaxed);
        }
        let Some(clock) = self.clock() else {
            let now = clock::now();
            return (now.cast_signed(), now);
        };
        let since = match instance.time() {
            Some(time) => clock.since(time, clock::now),
            None => clock.passed(clock::now()),
        };
        (since, clock.on_gyans(since))
    }

    /// A message entered or left the queue.
    fn tell(&self, reading: Reading, instance: &Instance, now: u64) {
        let told = reading.elements.and_then(|(source, tag)| {
            let source = i32::try_from(instance.read(source)?).ok()?;
            Some((source, i32::try_from(instance.read(tag)?).ok()?))
        });
        let Ok(mut heard) = HEARD.try_lock() else {
            LOST.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let Some(heard) = heard.as_mut() else { return };
        let comm = self.comm.load(Ordering::Relaxed);
        let peer = told.map_or(Peer::Unknown, |(source, _)| heard.peer(comm, source));
        // If the library does not say which message left, all form one stream, and the first that came is
        // assumed to have left.
        let (source, tag) = told.unwrap_or((0, 0));
        let stream = Stream { comm, source, tag };
        let queues = &mut heard.queues;
        // Messages of collectives cannot be told from the program's.
        let traffic = Traffic::Program;
        match reading.what {
            What::Came => queues.came(stream, peer, traffic, now),
            What::Went => queues.went(stream, peer, traffic, now),
        }
    }

    /// As the profile has it. The run began at `begun` on gyan's clock.
    pub(super) fn counted(
        &self,
        begun: u64,
        name: String,
        source: String,
        object: Option<String>,
    ) -> EventCount {
        let clock = self.clock();
        let length_s = |time: i64| match clock {
            Some(clock) => clock.seconds(time),
            None => clock::seconds(time as f64),
        };
        let moment_s = |time: i64| match clock {
            Some(clock) => {
                let compared = clock.compared().wrapping_sub(begun).cast_signed();
                clock::seconds(compared as f64) + length_s(time)
            }
            None => length_s(time.wrapping_sub(begun.cast_signed())),
        };
        let told = |time: &AtomicI64| {
            Some(time.load(Ordering::Relaxed)).filter(|&time| time != NEVER && time != i64::MAX)
        };
        EventCount {
            name,
            event_source: source,
            object,
            n: self.number.load(Ordering::Relaxed),
            dropped: self.lost.load(Ordering::Relaxed),
            first_s: told(&self.first).map(moment_s),
            last_s: told(&self.last).map(moment_s),
            gap_max_s: told(&self.gap).map(length_s),
        }
    }
}

impl Listener for Instances {
    fn happened(&self, instance: &Instance) {
        contain("counting an event of MPI_T", || self.count(instance));
    }

    fn lost(&self, number: u64) {
        self.lost.fetch_add(number, Ordering::Relaxed);
    }

    fn is_free(&self) {
        // Whoever sees this also sees everything that callbacks wrote.
        self.is_listening.store(false, Ordering::Release);
    }
}

impl Instances {
    fn count(&self, instance: &Instance) {
        let is_measured = CALLBACKS.fetch_add(1, Ordering::Relaxed).is_multiple_of(MEASURED_EVERY);
        let begun = if is_measured { clock::now() } else { 0 };
        let (time, now) = self.moment(instance);
        self.number.fetch_add(1, Ordering::Relaxed);
        self.first.fetch_min(time, Ordering::Relaxed);
        self.last.fetch_max(time, Ordering::Relaxed);
        let previous = self.previous.swap(time, Ordering::Relaxed);
        // Another thread may report a later instance first.
        if previous != NEVER && time >= previous {
            self.gap.fetch_max(time.saturating_sub(previous), Ordering::Relaxed);
        }
        if let Some(reading) = self.meaning {
            self.tell(reading, instance, now);
        }
        if is_measured {
            MEASURED.fetch_add(1, Ordering::Relaxed);
            MEASURED_TICKS.fetch_add(clock::now().wrapping_sub(begun), Ordering::Relaxed);
        }
    }
}

/// The handle that stands for any communicator, for events that do not tell it.
pub(super) const ANY_COMM: usize = 0;

/// The data on messages.
struct Heard {
    queues: Queues,
    /// By communicator handle: the ranks in `MPI_COMM_WORLD` of its (remote) group, `u32::MAX` for those that
    /// are not in there; empty if they are the same.
    ranks: Vec<(usize, Vec<u32>)>,
}

impl Heard {
    fn peer(&self, comm: usize, source: i32) -> Peer {
        let known = self.ranks.iter().find(|(known, _)| *known == comm);
        let (Some((_, ranks)), Ok(source)) = (known, u32::try_from(source)) else {
            return Peer::Unknown;
        };
        if ranks.is_empty() {
            return Peer::Rank(source);
        }
        let rank = ranks.get(source as usize).filter(|rank| **rank != u32::MAX);
        rank.map_or(Peer::Unknown, |rank| Peer::Rank(*rank))
    }
}

fn with_heard<T>(work: impl FnOnce(&mut Heard) -> T) -> Option<T> {
    lock_soon(&HEARD)?.as_deref_mut().map(work)
}

/// Starts recording messages.
pub(super) fn begin_queues() {
    let heard = Heard { queues: Queues::new(), ranks: vec![(ANY_COMM, Vec::new())] };
    *held(&HEARD) = Some(Box::new(heard));
}

/// A communicator was created, whose (remote) group has these ranks in `MPI_COMM_WORLD`; empty if they are the
/// same, none if they are not known.
pub(super) fn comm_comes(comm: usize, ranks: Option<Vec<u32>>) {
    with_heard(|heard| {
        heard.ranks.retain(|(known, _)| *known != comm);
        if ranks.as_ref().is_none_or(|ranks| !ranks.is_empty()) {
            // A rank no longer identifies the process.
            heard.ranks.retain(|(known, _)| *known != ANY_COMM);
        }
        heard.ranks.extend(ranks.map(|ranks| (comm, ranks)));
    });
}

pub(super) fn comm_goes(comm: usize) {
    with_heard(|heard| heard.ranks.retain(|(known, _)| *known != comm));
}

/// The results on messages.
pub(super) fn messages() -> Option<Messages> {
    with_heard(|heard| {
        heard.queues.lose(LOST.swap(0, Ordering::Relaxed));
        heard.queues.described(MessageSource::MpiTEvents)
    })
}

/// Ticks that all callbacks took: their number times the average of those that were measured.
pub(super) fn measured_ticks() -> u64 {
    let measured = MEASURED.load(Ordering::Relaxed);
    let mean = MEASURED_TICKS.load(Ordering::Relaxed) as f64 / measured.max(1) as f64;
    clock::whole(mean * CALLBACKS.load(Ordering::Relaxed) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_that_of_its_communicator() {
        let ranks = vec![(ANY_COMM, Vec::new()), (7, vec![4, u32::MAX])];
        let heard = Heard { queues: Queues::new(), ranks };
        assert_eq!(heard.peer(ANY_COMM, 3), Peer::Rank(3));
        let of_seven = [0, 1, 2, -1].map(|source| heard.peer(7, source));
        assert_eq!(of_seven, [Peer::Rank(4), Peer::Unknown, Peer::Unknown, Peer::Unknown]);
        assert_eq!(heard.peer(8, 0), Peer::Unknown);
    }
}
