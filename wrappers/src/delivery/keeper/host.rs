//! What the host counts while its ranks run, which the keeper reads so that no rank has to: the counters of energy go around
//! within minutes.

#![forbid(unsafe_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use gyan_results::HostCounters;

use crate::sys::energy::EnergyMeter;
use crate::sys::network_counters::NetworkMeter;

/// Between two readings of counters that go around: the smallest range in use, of 65 kJ, lasts this long at 2 kW.
pub(super) const APART: Duration = Duration::from_secs(30);

/// Counts from the moment at which it is made.
pub(super) struct HostMeter {
    began: Instant,
    energy: EnergyMeter,
    network: NetworkMeter,
}

impl HostMeter {
    pub(super) fn begin(root: &Path) -> HostMeter {
        let (energy, network) = (EnergyMeter::begin(root), NetworkMeter::begin(root));
        HostMeter { began: Instant::now(), energy, network }
    }

    /// Whether [`read`](HostMeter::read) has to be called every [`APART`].
    pub(super) fn wraps(&self) -> bool {
        self.energy.wraps()
    }

    /// Reads the counters that go around.
    pub(super) fn read(&mut self) {
        self.energy.read();
    }

    /// What was counted so far.
    pub(super) fn counted(&mut self) -> HostCounters {
        self.read();
        HostCounters {
            counted_s: self.began.elapsed().as_secs_f64(),
            energy: self.energy.energy(),
            no_energy: self.energy.why_none.clone(),
            network: self.network.counts(),
        }
    }
}
