//! Events of `MPI_T`: which exist, how often and when each occurs, and what those of the receive queues tell
//! about messages (MPI 4.1, 15.3.8).
//!
//! The library is asked which events it has; only the meaning of the events of receive queues is known
//! beforehand ([`meaning`]). The data of a callback ([`instances`]) lives as long as the process: a library may
//! call back while a registration is being freed.

mod clocks;
mod instances;
mod meaning;

use std::sync::atomic::Ordering;

use gyan_results::{EventCount, Messages, sort_by};

use crate::mpi::abi::{Bind, Library, inquiry};
use crate::mpi::libraries::quirks;
use crate::mpi::tool::{EventFunctions, EventType, Mpit, Registration, SourceInfo};
use instances::{Instances, measured_ticks};
use meaning::Reading;

pub(crate) struct Events {
    functions: &'static EventFunctions,
    /// When the run began, on gyan's clock.
    begun: u64,
    world: Option<usize>,
    types: Vec<EventType>,
    meanings: Vec<Option<Reading>>,
    sources: Vec<SourceInfo>,
    listening: Vec<Listening>,
    /// Counts of freed communicators, one row for each name.
    finished: Vec<EventCount>,
    /// Data that is no longer in use, by event type, for the next communicator.
    unused: Vec<(usize, &'static Instances)>,
    /// The communicators that were created, by handle.
    comms: Vec<(usize, String)>,
    skipped: Vec<String>,
    /// The measurements from before.
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
    /// Starts counting every event that binds to nothing. The run began at `begun` on gyan's clock. None when
    /// the library has no events.
    pub(crate) fn begin(_: &Mpit, library: &Library, begun: u64) -> Option<Events> {
        let functions = EventFunctions::once(library)?;
        let number = functions.told.event_get_num().unwrap_or(0);
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
        let (meanings, sentence) = meaning::understood(&events.types, library.implementation);
        if meanings.iter().any(Option::is_some) {
            instances::begin_queues();
        }
        events.meanings = meanings;
        events.skipped.extend(sentence);
        events.start(None);
        Some(events)
    }

    fn look_at_sources(&mut self) {
        for index in 0..self.functions.told.source_get_num().unwrap_or(0) {
            match self.functions.told.source(index) {
                Ok(source) => {
                    clocks::compare(self.functions, index, &source);
                    self.sources.push(source);
                }
                Err(failure) => {
                    self.skip(format!("source {index} of events: {failure}"));
                    // Its place is kept: callbacks tell of sources by index.
                    self.sources.push(SourceInfo::default());
                }
            }
        }
    }

    /// A communicator was created, `MPI_COMM_WORLD` included: events that bind to communicators are counted for
    /// it.
    pub(crate) fn comm_comes(&mut self, _: &Mpit, handle: usize, name: &str) {
        if self.comms.iter().any(|(known, _)| *known == handle) {
            return;
        }
        self.comms.push((handle, name.to_owned()));
        if self.meanings.iter().any(Option::is_some) {
            let ranks = match self.world {
                Some(world) if world != handle => {
                    inquiry().and_then(|mpi| mpi.ranks_in(world, handle))
                }
                _ => Some(Vec::new()),
            };
            instances::comm_comes(handle, ranks);
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

    /// A communicator is about to be freed.
    pub(crate) fn comm_goes(&mut self, _: &Mpit, handle: usize) {
        self.comms.retain(|(known, _)| *known != handle);
        let is_going =
            |one: &Listening| one.comm.as_ref().is_some_and(|(known, _)| *known == handle);
        let (going, staying) = std::mem::take(&mut self.listening).into_iter().partition(is_going);
        self.listening = staying;
        self.stop(going);
        instances::comm_goes(handle);
    }

    /// The end: there are no more callbacks. The counts stay.
    pub(crate) fn end(&mut self, _: &Mpit) {
        if let Ok(number) = self.functions.told.event_get_num()
            && number > self.types.len()
            && !self.types.is_empty()
        {
            let later = number - self.types.len();
            self.skip(format!(
                "{later} events that appeared while the program ran are not \
                counted"
            ));
        }
        let all = std::mem::take(&mut self.listening);
        self.stop(all);
    }

    /// The counts, a row for each event and communicator.
    pub(crate) fn counts(&self) -> Vec<EventCount> {
        let mut rows = self.finished.clone();
        for listening in &self.listening {
            add(&mut rows, self.counted(listening));
        }
        sort_by(&mut rows, |one, other| {
            (&one.name, &one.object).cmp(&(&other.name, &other.object))
        });
        rows
    }

    /// The results of the events of receive queues; none when the library has none.
    pub(crate) fn messages(&self) -> Option<Messages> {
        if self.meanings.iter().all(Option::is_none) { None } else { instances::messages() }
    }

    /// What is missing, a sentence for each.
    pub(crate) fn skipped(&self) -> Vec<String> {
        self.skipped.clone()
    }

    /// Ticks that the callbacks took, over all threads: their number times the average of those that were
    /// measured.
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
        instances.comm.store(handle.unwrap_or(instances::ANY_COMM), Ordering::Relaxed);
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

    /// Counters for the instances of an event: unused ones, or new ones, which are never freed.
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
        // Only an instance tells its source; with a single source there is no doubt.
        let source = match (self.sources.as_slice(), instances.source.load(Ordering::Relaxed)) {
            ([only], 0) => Some(only),
            (all, source) => source.checked_sub(1).and_then(|index| all.get(index)),
        };
        let source = source.map(|source| source.name.clone()).unwrap_or_default();
        instances.counted(self.begun, name, source, comm.map(|(_, name)| name))
    }

    /// Records what is missing, once.
    fn skip(&mut self, what: String) {
        if !self.skipped.contains(&what) {
            self.skipped.push(what);
        }
    }
}

/// Adds a row to the one of the same name, for communicators with equal names, or inserts it.
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
