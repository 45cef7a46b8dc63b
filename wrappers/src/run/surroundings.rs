//! Which host is this, how much of it may the rank use, and what has it used?
//!
//! The host is examined when the run begins; the components that the MPI library has loaded are read again when
//! it ends. What the rank used takes one system call and one file, and is read for every profile, so that a
//! rank which is killed for its memory use leaves how much it had.

use std::path::Path;
use std::time::Instant;

use gyan_results::{Counters, CountsInMpi, HostCounters, Machine, Resources};

use crate::delivery::job;
use crate::delivery::keeper::{ENERGY_APART, EnergyMemory};
use crate::mpi::libraries::transports;
use crate::observe::phases::CounterReading;
use crate::sys::clock;
use crate::sys::counters::{self, Total};
use crate::sys::energy::EnergyMeter;
use crate::sys::network_counters::NetworkMeter;
use crate::sys::resources::{Allowed, Usage};
use crate::sys::topology;

pub(super) struct Surroundings {
    /// Only on the first rank of the host, unless the user disabled it.
    machine: Option<Machine>,
    /// Only where the machine is described, and never for the record of a site, which has no place for it.
    host_meter: Option<HostMeter>,
    allowed: Allowed,
}

/// What the host counts from the moment at which this is made.
struct HostMeter {
    began: Instant,
    energy: EnergyMeter,
    /// Of counters that go around: what the keeper saw of them.
    memory: Option<EnergyMemory>,
    network: NetworkMeter,
}

impl HostMeter {
    fn begin(root: &Path) -> HostMeter {
        let energy = EnergyMeter::begin(root);
        let memory = if energy.wraps() { EnergyMemory::begin(&energy).ok() } else { None };
        HostMeter { began: Instant::now(), energy, memory, network: NetworkMeter::begin(root) }
    }

    /// The energy that the host has taken, without the network. `has_keeper`: whether there is one, who sees counters that go
    /// around.
    fn energy(&mut self, has_keeper: bool) -> HostCounters {
        let elapsed = self.began.elapsed();
        let caught_up =
            self.memory.as_ref().is_some_and(|memory| memory.catch_up(&mut self.energy).is_ok());
        self.energy.read();
        let is_known = !self.energy.wraps() || has_keeper && caught_up || elapsed < ENERGY_APART;
        let (energy, no_energy) = if is_known {
            (self.energy.energy(), self.energy.why_none.clone())
        } else {
            let unseen = "without a keeper nobody saw whether the counters went around";
            (Vec::new(), Some(unseen.to_owned()))
        };
        let counted_s = elapsed.as_secs_f64();
        HostCounters { counted_s, energy, no_energy, ..HostCounters::default() }
    }

    fn counted(&mut self, has_keeper: bool) -> HostCounters {
        HostCounters { network: self.network.counts(), ..self.energy(has_keeper) }
    }
}

impl Surroundings {
    /// `start`: what the process had used before MPI was initialised. `wants_machine`: whether the user wants
    /// the host in the profile. `counts`: whether it has a place for what that counts.
    pub(super) fn new(start: Usage, wants_machine: bool, counts: bool) -> Surroundings {
        let describes_machine = wants_machine && job::speaks_for_node();
        let root = Path::new("/");
        let mut surroundings = Surroundings {
            machine: describes_machine.then(|| topology::machine(root)),
            host_meter: (describes_machine && counts).then(|| HostMeter::begin(root)),
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

    /// The memory in which the keeper is to note how far counters of energy come, if they can go around.
    pub(super) fn energy_memory(&self) -> Option<EnergyMemory> {
        self.host_meter.as_ref()?.memory.as_ref()?.try_clone().ok()
    }

    /// What the host counted so far. `has_keeper`: whether there is one, who sees counters that go around.
    pub(super) fn host_counters(&mut self, has_keeper: bool) -> Option<HostCounters> {
        self.host_meter.as_mut().map(|meter| meter.counted(has_keeper))
    }

    /// What the processor and the host have counted so far; none where nothing is. `has_keeper`: as for the whole run.
    pub(super) fn counter_reading(&mut self, has_keeper: bool) -> Option<CounterReading> {
        let counts = counters::counts();
        let energy_j =
            self.host_meter.as_mut().and_then(|meter| meter.energy(has_keeper).energy_j());
        (counts.is_some() || energy_j.is_some()).then_some(CounterReading { counts, energy_j })
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
