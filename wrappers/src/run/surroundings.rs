//! Which host is this, how much of it may the rank use, and what has it used?
//!
//! The host is examined when the run begins; the components that the MPI library has loaded are read again when
//! it ends. What the rank used takes one system call and one file, and is read for every profile, so that a
//! rank which is killed for its memory use leaves how much it had.

use std::path::Path;

use gyan_results::{Counters, CountsInMpi, Machine, Resources};

use crate::delivery::job;
use crate::mpi::libraries::transports;
use crate::sys::clock;
use crate::sys::counters::{self, Total};
use crate::sys::resources::{Allowed, Usage};
use crate::sys::topology;

pub(super) struct Surroundings {
    /// Only on the first rank of the host, unless the user disabled it.
    machine: Option<Machine>,
    allowed: Allowed,
}

impl Surroundings {
    /// `start`: what the process had used before MPI was initialised. `wants_machine`: whether the user wants
    /// the host in the profile.
    pub(super) fn new(start: Usage, wants_machine: bool) -> Surroundings {
        let mut surroundings = Surroundings {
            machine: (wants_machine && job::speaks_for_node())
                .then(|| topology::machine(Path::new("/"))),
            allowed: Allowed::new(start),
        };
        surroundings.look_at_transports();
        surroundings
    }

    /// Some components are only loaded when needed, such as those for windows.
    pub(super) fn look_at_transports(&mut self) {
        if let Some(machine) = &mut self.machine {
            machine.transports.extend(transports::loaded());
            machine.transports.sort();
            machine.transports.dedup();
        }
    }

    pub(super) fn describes_machine(&self) -> bool {
        self.machine.is_some()
    }

    pub(super) fn machine(&self) -> Option<Machine> {
        self.machine.clone()
    }

    /// `in_mpi_s`: seconds in MPI since it was initialised.
    pub(super) fn resources(&self, in_mpi_s: f64) -> Resources {
        let (counters, counters_absent) = match counters::total() {
            Some(Ok(total)) => (Some(counted(total, in_mpi_s)), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        Resources { counters, counters_absent, ..self.allowed.resources() }
    }
}

/// Of the calls only those that were timed were counted, and they stand for the others by the time that these take.
fn counted(total: Total, in_mpi_s: f64) -> Counters {
    let in_mpi = counters::in_calls().map(|(counts, ticks)| {
        let read_s = clock::seconds(ticks as f64);
        let all_s = in_mpi_s.max(read_s);
        CountsInMpi { counts: counts.scaled(all_s / read_s), read_share: read_s / all_s }
    });
    Counters {
        total: total.counts,
        in_mpi,
        processor_s: total.processor_s(),
        counted_share: total.counted_share(),
    }
}
