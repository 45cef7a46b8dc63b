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
use crate::boundary;
use crate::clock;
use crate::mpit::{
    Element, EventFunctions, EventType, Instance, Listener, Mpit, Registration, Source,
};
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
    /// Seconds in one of its ticks.
    tick_s: Real,
}

impl SourceClock {
    const fn new() -> SourceClock {
        SourceClock {
            is_good: AtomicBool::new(false),
            time: AtomicI64::new(0),
            ticks: AtomicU64::new(0),
            max: AtomicI64::new(0),
            tick_s: Real::new(0.0),
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
        let middle = before.wrapping_add(after.wrapping_sub(before) / 2);
        self.ticks.store(middle, Ordering::Relaxed);
        self.max.store(source.max_ticks, Ordering::Relaxed);
        self.tick_s.set(1.0 / source.ticks_per_second as f64);
        // What a callback that sees it reads was stored before.
        self.is_good.store(true, Ordering::Release);
    }

    /// How far its clock has gone since it was compared, for what is on gyan's `now` or a little before.
    fn since(&self, time: i64, now: impl FnOnce() -> u64) -> i64 {
        let since = time.wrapping_sub(self.time.load(Ordering::Relaxed));
        let max = self.max.load(Ordering::Relaxed);
        // It would take centuries.
        if max <= 0 || max > i64::MAX / 2 {
            return since;
        }
        // How often it began again can only be told by another clock.
        let passed = now().wrapping_sub(self.ticks.load(Ordering::Relaxed)).cast_signed();
        let passed = clock::seconds(passed as f64) / self.tick_s.get();
        let turns = (passed - since as f64) / (max as f64 + 1.0);
        #[allow(clippy::cast_possible_truncation, reason = "what is beyond is no time")]
        let turns = turns.round() as i64;
        since.wrapping_add(turns.wrapping_mul(max + 1))
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
        let since = clock.since(time, clock::now);
        #[allow(clippy::cast_possible_truncation, reason = "what is beyond is no time")]
        let ticks = clock::ticks(since as f64 * clock.tick_s.get()) as i64;
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
        let is_known = told.is_some() && self.ranks_are_of_world.load(Ordering::Relaxed);
        let peer = u32::try_from(source).ok().filter(|_| is_known);
        // Messages of collectives cannot be told from the program's.
        let traffic = Traffic::Program;
        match (reading.what, peer) {
            (What::Came, Some(_)) => queues.came(stream, peer, traffic, now),
            (What::Went, Some(_)) => queues.went(stream, peer, traffic, now),
            (What::Came, None) => queues.came_from_somewhere(stream, traffic, now),
            (What::Went, None) => queues.went_from_somewhere(stream, traffic, now),
        }
    }

    /// As the profile has it. The run began at `begun` on gyan's clock.
    fn counted(
        &self,
        begun: u64,
        name: String,
        source: String,
        object: Option<String>,
    ) -> EventCount {
        let clock = self.clock();
        let length_s = |time: i64| match clock {
            Some(clock) => time as f64 * clock.tick_s.get(),
            None => clock::seconds(time as f64),
        };
        let moment_s = |time: i64| match clock {
            Some(clock) => {
                let compared =
                    clock.ticks.load(Ordering::Relaxed).wrapping_sub(begun).cast_signed();
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
        boundary::contain("counting an event of MPI_T", || self.count(instance));
    }

    fn lost(&self, number: u64) {
        self.lost.fetch_add(number, Ordering::Relaxed);
    }

    fn is_free(&self) {
        // What a callback still wrote is there for who sees this.
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
        // What another thread told of first may be later.
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

/// The events that are being counted.
pub(crate) struct Events {
    functions: &'static EventFunctions,
    /// When the run began, on gyan's clock.
    begun: u64,
    world: Option<usize>,
    types: Vec<EventType>,
    meanings: Vec<Option<Reading>>,
    sources: Vec<Source>,
    listening: Vec<Listening>,
    /// Counts of communicators that are gone, one row for each name.
    finished: Vec<EventCount>,
    /// What is not in use any more, by event type, for the next communicator.
    unused: Vec<(usize, &'static Instances)>,
    /// The communicators that came, by handle.
    comms: Vec<(usize, String)>,
    skipped: Vec<String>,
    /// What had been measured before.
    cost_before: u64,
}

struct Listening {
    of: usize,
    /// The handle and the name of the communicator.
    comm: Option<(usize, String)>,
    registration: Registration,
    instances: &'static Instances,
}

impl Events {
    /// Begins to count every event that binds to nothing. The run began at `begun` on gyan's clock. None
    /// when the library has no events.
    pub(crate) fn begin(_: &Mpit, library: &Library, begun: u64) -> Option<Events> {
        let functions = EventFunctions::of(library)?;
        let number = functions.number_of_events().unwrap_or(0);
        if number == 0 {
            return None;
        }
        let mut events = Events {
            functions,
            begun,
            world: library.handle(library.abi.comm_world),
            types: Vec::new(),
            meanings: Vec::new(),
            sources: Vec::new(),
            listening: Vec::new(),
            finished: Vec::new(),
            unused: Vec::new(),
            comms: Vec::new(),
            skipped: Vec::new(),
            cost_before: measured_ticks(),
        };
        if let Some(reason) =
            quirks::reason_to_skip_events(library.implementation, library.abi.name)
        {
            events.skip(format!("{number} events: {reason}"));
            return Some(events);
        }
        events.look_at_sources();
        for index in 0..number {
            match functions.event_type(library, index) {
                Ok(of) => events.types.push(of),
                Err(failure) => events.skip(format!("event {index}: {failure}")),
            }
        }
        events.understand(library);
        events.start(None);
        Some(events)
    }

    fn look_at_sources(&mut self) {
        for index in 0..self.functions.number_of_sources().unwrap_or(0) {
            match self.functions.source(index) {
                Ok(source) => {
                    if let Some(clock) = SOURCES.get(index) {
                        clock.compare(self.functions, index, &source);
                    }
                    self.sources.push(source);
                }
                Err(failure) => {
                    self.skip(format!("source {index} of events: {failure}"));
                    // Its place is kept: callbacks tell of sources by index.
                    self.sources.push(Source::default());
                }
            }
        }
    }

    /// What each event type tells of the receive queues.
    fn understand(&mut self, library: &Library) {
        let meanings: Vec<Option<&Meaning>> = self.types.iter().map(meaning).collect();
        // When it cannot be read which message left, it is no use to know which one came.
        let unreadable = self.types.iter().zip(&meanings).find_map(|(of, meaning)| {
            meaning
                .and(quirks::reason_not_to_read_event(library.implementation, &of.name))
                .map(|why| (of, why))
        });
        let note = unreadable.map(|(of, why)| {
            format!(
                "event {}: {why}: messages are taken to leave the queue in the order in which they came, \
                 so that the mean of T_IN_UNEX_Q is right, its maximum and histogram are estimates, and no \
                 peer is known",
                of.name
            )
        });
        let readable = note.is_none();
        self.meanings = self
            .types
            .iter()
            .zip(meanings)
            .map(|(of, meaning)| {
                let meaning = meaning?;
                let element = |index: usize| {
                    let datatype = (*of.elements.get(index)?)?;
                    Some(Element { index: i32::try_from(index).ok()?, datatype })
                };
                let elements = element(meaning.source).zip(element(meaning.tag));
                Some(Reading { what: meaning.what, elements: elements.filter(|_| readable) })
            })
            .collect();
        self.skipped.extend(note);
        if self.meanings.iter().any(Option::is_some) {
            let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
            *queues = Some(Queues::new());
        }
    }

    /// A communicator has come, `MPI_COMM_WORLD` among them: events that bind to communicators are counted
    /// for it.
    pub(crate) fn comm_comes(&mut self, _: &Mpit, handle: usize, name: &str) {
        if self.comms.iter().any(|(known, _)| *known == handle) {
            return;
        }
        self.comms.push((handle, name.to_owned()));
        if Some(handle) != self.world {
            // An event that binds to nothing does not tell the communicator that a rank is of.
            for listening in self.listening.iter().filter(|listening| listening.comm.is_none()) {
                listening.instances.ranks_are_of_world.store(false, Ordering::Relaxed);
            }
        }
        self.start(Some(&(handle, name.to_owned())));
    }

    /// A communicator has this name now.
    pub(crate) fn comm_is_called(&mut self, handle: usize, name: &str) {
        let of_listening = self.listening.iter_mut().filter_map(|one| one.comm.as_mut());
        for (_, known) in of_listening.chain(&mut self.comms).filter(|(known, _)| *known == handle)
        {
            name.clone_into(known);
        }
    }

    /// A communicator is about to go.
    pub(crate) fn comm_goes(&mut self, _: &Mpit, handle: usize) {
        self.comms.retain(|(known, _)| *known != handle);
        let is_going =
            |one: &Listening| one.comm.as_ref().is_some_and(|(known, _)| *known == handle);
        let (going, staying) = std::mem::take(&mut self.listening).into_iter().partition(is_going);
        self.listening = staying;
        self.stop(going);
    }

    /// The end: nobody is called back any more. What was counted stays.
    pub(crate) fn end(&mut self, _: &Mpit) {
        if let Ok(number) = self.functions.number_of_events()
            && number > self.types.len()
            && !self.types.is_empty()
        {
            let later = number - self.types.len();
            self.skip(format!("{later} events that came while the program ran are not counted"));
        }
        let all = std::mem::take(&mut self.listening);
        self.stop(all);
    }

    /// What was counted, a row for each event and communicator.
    pub(crate) fn counts(&self) -> Vec<EventCount> {
        let mut rows = self.finished.clone();
        for listening in &self.listening {
            add(&mut rows, self.counted(listening));
        }
        rows.sort_by(|one, other| (&one.name, &one.object).cmp(&(&other.name, &other.object)));
        rows
    }

    /// What the events of receive queues told; none when the library has none.
    pub(crate) fn messages(&self) -> Option<Messages> {
        if self.meanings.iter().all(Option::is_none) {
            return None;
        }
        let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
        let queues = queues.as_mut()?;
        queues.lose(LOST.swap(0, Ordering::Relaxed));
        Some(queues.described(MessageSource::MpiTEvents))
    }

    /// What is missing, a sentence for each.
    pub(crate) fn skipped(&self) -> Vec<String> {
        self.skipped.clone()
    }

    /// Ticks that the callbacks took, over all threads: their number times what those that were measured
    /// took.
    pub(crate) fn cost_ticks(&self) -> u64 {
        measured_ticks().saturating_sub(self.cost_before)
    }

    /// Registers every event type that binds to this communicator, or to nothing.
    fn start(&mut self, comm: Option<&(usize, String)>) {
        for of in 0..self.types.len() {
            let Some(kind) = self.types.get(of).cloned() else { continue };
            match (kind.bind, comm) {
                (Some(Bind::NoObject), None) | (Some(Bind::Comm), Some(_)) => {
                    self.listen(of, &kind, comm.cloned());
                }
                (Some(Bind::NoObject | Bind::Comm), _) | (_, Some(_)) => {}
                (bind, None) => {
                    let what = bind.and_then(Bind::name).unwrap_or("an unknown kind of object");
                    self.skip(format!(
                        "event {}: binds to {what}: only those of communicators and of \
                                       no object are counted",
                        kind.name
                    ));
                }
            }
        }
    }

    fn listen(&mut self, of: usize, kind: &EventType, comm: Option<(usize, String)>) {
        let instances = self.instances(of);
        let handle = comm.as_ref().map(|(handle, _)| *handle);
        instances.comm.store(handle.unwrap_or(0), Ordering::Relaxed);
        let is_of_world = handle.is_none_or(|handle| Some(handle) == self.world);
        instances.ranks_are_of_world.store(is_of_world, Ordering::Relaxed);
        instances.is_listening.store(true, Ordering::Relaxed);
        match self.functions.register(kind.index, handle, instances) {
            Ok(registration) => {
                let refused: Vec<&str> = registration.refused().collect();
                if !refused.is_empty() {
                    self.skip(format!(
                        "event {}: the library takes no callback for {}: instances that ask for it are \
                         dropped",
                        kind.name,
                        refused.join(", ")
                    ));
                }
                self.listening.push(Listening { of, comm, registration, instances });
            }
            Err(failure) => {
                let name = comm.map(|(_, name)| format!(" of {name}")).unwrap_or_default();
                self.skip(format!("event {}{name}: {failure}", kind.name));
            }
        }
    }

    /// Numbers for the instances of an event: some that are not in use, or new ones, for ever.
    fn instances(&mut self, of: usize) -> &'static Instances {
        let is_unused = |(known, instances): &(usize, &'static Instances)| {
            *known == of && !instances.is_listening.load(Ordering::Acquire)
        };
        match self.unused.iter().position(is_unused) {
            Some(at) => {
                let (_, instances) = self.unused.swap_remove(at);
                instances.clear();
                instances
            }
            None => Box::leak(Box::new(Instances::new(self.meanings.get(of).copied().flatten()))),
        }
    }

    fn stop(&mut self, going: Vec<Listening>) {
        for listening in going {
            let Listening { of, comm, registration, instances } = listening;
            self.functions.free(registration, instances);
            let row = self.row(of, comm, instances);
            add(&mut self.finished, row);
            self.unused.push((of, instances));
        }
    }

    fn counted(&self, listening: &Listening) -> EventCount {
        self.row(listening.of, listening.comm.clone(), listening.instances)
    }

    fn row(&self, of: usize, comm: Option<(usize, String)>, instances: &Instances) -> EventCount {
        let name = self.types.get(of).map(|of| of.name.clone()).unwrap_or_default();
        // Only an instance tells its source; with one source there is no doubt.
        let source = match (self.sources.as_slice(), instances.source.load(Ordering::Relaxed)) {
            ([only], 0) => Some(only),
            (all, source) => source.checked_sub(1).and_then(|index| all.get(index)),
        };
        let source = source.map(|source| source.name.clone()).unwrap_or_default();
        instances.counted(self.begun, name, source, comm.map(|(_, name)| name))
    }

    /// Notes what is missing, once.
    fn skip(&mut self, what: String) {
        if !self.skipped.contains(&what) {
            self.skipped.push(what);
        }
    }
}

fn meaning(of: &EventType) -> Option<&'static Meaning> {
    MEANINGS.iter().find(|meaning| WildMatch::new(meaning.name).matches(&of.name))
}

fn measured_ticks() -> u64 {
    let measured = MEASURED.load(Ordering::Relaxed);
    let mean = MEASURED_TICKS.load(Ordering::Relaxed) as f64 / measured.max(1) as f64;
    clock::whole(mean * CALLBACKS.load(Ordering::Relaxed) as f64)
}

/// Adds a row to that with its name, of communicators that have the same, or puts it there.
fn add(rows: &mut Vec<EventCount>, row: EventCount) {
    let is_same =
        |known: &&mut EventCount| (&known.name, &known.object) == (&row.name, &row.object);
    let Some(known) = rows.iter_mut().find(is_same) else {
        rows.push(row);
        return;
    };
    let either =
        |one: Option<f64>, other: Option<f64>, of_both: fn(f64, f64) -> f64| match (one, other) {
            (Some(one), Some(other)) => Some(of_both(one, other)),
            (one, other) => one.or(other),
        };
    known.n += row.n;
    known.dropped += row.dropped;
    known.first_s = either(known.first_s, row.first_s, f64::min);
    known.last_s = either(known.last_s, row.last_s, f64::max);
    known.gap_max_s = either(known.gap_max_s, row.gap_max_s, f64::max);
    if known.event_source.is_empty() {
        known.event_source = row.event_source;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_begins_again_is_followed_for_as_many_turns_as_another_tells() {
        let source = SourceClock::new();
        source.time.store(9990, Ordering::Relaxed);
        source.ticks.store(1000, Ordering::Relaxed);
        source.tick_s.set(0.001);
        // Without an end.
        source.max.store(i64::MAX, Ordering::Relaxed);
        assert_eq!(source.since(9995, || panic!("not needed")), 5);
        assert_eq!(source.since(9890, || panic!("not needed")), -100);
        source.max.store(9999, Ordering::Relaxed);
        let after = |seconds: f64| move || 1000 + clock::whole(clock::ticks(seconds));
        assert_eq!(source.since(9995, after(0.005)), 5);
        assert_eq!(source.since(9980, after(0.0)), -10);
        assert_eq!(source.since(14, after(0.024)), 24);
        assert_eq!(source.since(14, after(30.02)), 30_024);
    }

    #[test]
    fn communicators_of_one_name_have_one_row() {
        let row = |object: &str, n, first_s, gap_max_s| EventCount {
            name: "event".into(),
            event_source: String::new(),
            object: Some(object.into()),
            n,
            dropped: 1,
            first_s,
            last_s: first_s,
            gap_max_s,
        };
        let mut rows = Vec::new();
        add(&mut rows, row("a", 2, Some(3.0), None));
        add(&mut rows, row("b", 1, None, None));
        add(&mut rows, row("a", 5, Some(1.0), Some(0.5)));
        let [a, b] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((a.n, a.dropped, a.first_s, a.last_s), (7, 2, Some(1.0), Some(3.0)));
        assert_eq!((a.gap_max_s, b.n), (Some(0.5), 1));
    }
}
