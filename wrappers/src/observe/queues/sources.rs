//! All sources of callbacks, as one.

use gyan_results::{EventCount, Messages};

use super::events::Events;
use super::peruse::Peruse;
use crate::config::EventsFrom;
use crate::mpi::abi::{Library, inquiry};
use crate::mpi::tool::Mpit;

/// The sources that were asked to call back.
pub(crate) struct Callbacks {
    peruse: Option<Peruse>,
    events: Option<Events>,
    lacking: Vec<String>,
    world: Option<usize>,
}

/// The results so far.
#[derive(Default)]
pub(crate) struct CallbackResults {
    pub(crate) messages: Vec<Messages>,
    pub(crate) events: Vec<EventCount>,
    /// What else is missing, in sentences.
    pub(crate) missing: Vec<String>,
    /// Ticks in callbacks.
    pub(crate) ticks: u64,
}

impl Callbacks {
    /// Registers with the sources that the user wants; the run began at `begun`.
    pub(crate) fn begin(
        wanted: EventsFrom,
        mpit: &Mpit,
        library: &Library,
        begun: u64,
    ) -> Callbacks {
        let peruse = wanted.peruse.then(|| Peruse::begin(library)).flatten();
        let events = wanted.mpi_t.then(|| Events::begin(mpit, library, begun)).flatten();
        let mut lacking = Vec::new();
        if wanted.peruse && peruse.is_none() {
            lacking.push(
                "GYAN_EVENTS: this MPI has no PERUSE (Open MPI configured with --enable-peruse has)",
            );
        }
        if wanted.mpi_t && events.is_none() {
            lacking.push(
                "GYAN_EVENTS: this MPI has no events of MPI_T (MPICH configured with \
                 --enable-mpit-events and Open MPI from version 6 on have)",
            );
        }
        // If both are asked for, one is enough.
        if peruse.is_some() || events.is_some() {
            lacking.clear();
        }
        Callbacks {
            peruse,
            events,
            lacking: lacking.into_iter().map(String::from).collect(),
            world: library.handle(library.abi.comm_world),
        }
    }

    /// Sentences about things that the user asked for and the library lacks entirely.
    pub(crate) fn lacking(&self) -> &[String] {
        &self.lacking
    }

    /// A communicator was created, `MPI_COMM_WORLD` included.
    pub(crate) fn comm_comes(&mut self, mpit: &Mpit, handle: usize, name: &str) {
        if let Some(peruse) = &mut self.peruse {
            let ranks = match self.world {
                Some(world) if world != handle => {
                    inquiry().and_then(|mpi| mpi.ranks_in(world, handle))
                }
                _ => Some(Vec::new()),
            };
            peruse.comm_comes(handle, ranks);
        }
        if let Some(events) = &mut self.events {
            events.comm_comes(mpit, handle, name);
        }
    }

    /// A communicator has this name now.
    pub(crate) fn comm_is_called(&mut self, handle: usize, name: &str) {
        if let Some(events) = &mut self.events {
            events.comm_is_called(handle, name);
        }
    }

    /// A communicator is about to be freed.
    pub(crate) fn comm_goes(&mut self, mpit: &Mpit, handle: usize) {
        if let Some(peruse) = &mut self.peruse {
            peruse.comm_goes(handle);
        }
        if let Some(events) = &mut self.events {
            events.comm_goes(mpit, handle);
        }
    }

    /// There are no more callbacks.
    pub(crate) fn end(&mut self, mpit: &Mpit) {
        if let Some(peruse) = &mut self.peruse {
            peruse.end();
        }
        if let Some(events) = &mut self.events {
            events.end(mpit);
        }
    }

    pub(crate) fn told(&self) -> CallbackResults {
        let mut told = CallbackResults::default();
        if let Some(peruse) = &self.peruse {
            told.messages.extend(peruse.messages());
            told.missing.extend_from_slice(peruse.skipped());
            told.ticks += Peruse::cost_ticks();
        }
        if let Some(events) = &self.events {
            told.messages.extend(events.messages());
            told.events = events.counts();
            told.missing.extend(events.skipped());
            told.ticks += events.cost_ticks();
        }
        told
    }
}
