//! A phase of the program: on one rank and over ranks.

use crate::data::{Data, Serialize, apply, datum, derive};
use crate::merge::{Each, Later, reduced};
use crate::statistics::Statistics;
use crate::{
    Call, CallSummary, Class, Counts, PvarSummary, Samples, SamplesSummary, Statistic, Values,
};

/// What happened while the program was in one phase.
#[derive(Data!, Serialize)]
pub struct Phase {
    /// Its name: that given to `gyan_phase_begin`, after those of the phases around it (`step/exchange`), or
    /// `level N` of `MPI_Pcontrol`; empty for time outside all phases, and `off` for time between
    /// `MPI_Pcontrol(0)` and `MPI_Pcontrol(1)`, which is nowhere else in the profile.
    pub name: String,
    /// How often it began.
    pub entries: u64,
    /// Seconds in it, without the phases inside it.
    pub time_s: f64,
    /// The functions that were called in it, without the phases inside it.
    pub calls: Vec<Call>,
    /// How many stretches of time it consists of: one starts when the phase begins, and after each phase inside
    /// it.
    pub stretches: u64,
    /// How many of those had the variables read at both ends; for the others the budget did not allow it, and
    /// `delta` does not include them.
    pub stretches_read: u64,
    /// The variables that changed or were sampled in it.
    pub pvars: Vec<PhasePvar>,
    /// What was counted in it; none where nothing can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<PhaseCounters>,
}

/// What the processor and the host counted in a phase, in those stretches at both ends of which the counters were read.
#[apply(datum!)]
#[derive(Copy, Default)]
pub struct PhaseCounters {
    /// Seconds of these stretches.
    pub time_s: f64,
    /// What the processor counted in user mode, in MPI too, on the thread that initialised MPI.
    pub counts: Option<Counts>,
    /// The joules that the host took meanwhile; only of the first rank on each host.
    pub energy_j: Option<f64>,
}

/// A variable in one phase.
#[derive(Data!, Serialize)]
pub struct PhasePvar {
    /// Its name.
    pub name: String,
    /// Its class according to the library.
    pub class: Class,
    /// The class that it behaves as, if the library is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaves_as: Option<Class>,
    /// The object that it is bound to.
    pub object: Option<String>,
    /// How much a variable that accumulates grew in the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Values>,
    /// Its readings in the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

impl PhasePvar {
    /// As [`Pvar::identity`](crate::Pvar::identity).
    pub fn identity(&self) -> (&str, Class, Option<&str>) {
        (&self.name, self.class, self.object.as_deref())
    }

    /// Adds what the same variable did after MPI was initialised again. False when it is not the same variable.
    pub fn continued(&mut self, later: &PhasePvar) -> bool {
        if self.identity() != later.identity() {
            return false;
        }
        let PhasePvar { name: _, class: _, behaves_as: _, object: _, delta, samples } = later;
        match (&self.delta, delta) {
            (Some(own), Some(later)) => self.delta = own.plus(later),
            (None, later) => self.delta.clone_from(later),
            (Some(_), None) => {}
        }
        match (&mut self.samples, samples) {
            (Some(own), Some(later)) => own.extend(later),
            (own @ None, later) => own.clone_from(later),
            (Some(_), None) => {}
        }
        true
    }
}

reduced! {
    /// One phase of the program; a rank that was never in it counts as 0.
    Phase => PhaseReduction => PhaseSummary by (
        /// Its name; empty for time outside all phases, `off` for time with gyan switched off.
        name: String,
    ) {
        /// How often it began.
        entries: Statistic = Each,
        /// Seconds in it, without the phases inside it.
        time_s: Statistic = Each,
        /// Seconds of those in MPI functions that were timed.
        + in_mpi_s: Option<Statistic> = Option<Each>,
        /// Seconds outside MPI; none where threads of a rank may have been in MPI at the same time.
        + useful_s: Option<Statistic> = Option<Each>,
        /// One row for each function that a rank called in it.
        calls: Vec<CallSummary> = Later,
        /// How many stretches of time it consists of, on all ranks.
        stretches: u64 = u64,
        /// How many of those had the variables read at both ends.
        stretches_read: u64 = u64,
        /// One row for each variable, object, element and measure, over the ranks that read it in this
        /// phase; without differences that are 0 on every rank.
        pvars: Vec<PvarSummary> = Later,
        /// One row for each variable and object that a rank sampled in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        + samples: Vec<SamplesSummary> = Later,
        /// Seconds of it at both ends of which counters were read.
        + counted_s: Option<Statistic> = Option<Statistics> => |phase| {
            phase.counters.map(|counters| counters.time_s)
        },
        /// Instructions per cycle, in MPI too, on the thread that initialised MPI.
        + ipc: Option<Statistic> = Option<Statistics> => |phase| {
            phase.counts().and_then(|counts| counts.ipc())
        },
        /// Cache misses of the last level per 1000 instructions, likewise.
        + misses_per_1000: Option<Statistic> = Option<Statistics> => |phase| {
            phase.counts().and_then(|counts| counts.misses_per_1000())
        },
        /// The joules that the host took meanwhile, of the first rank on each host; estimated from the time in which they were
        /// counted.
        + energy_j: Option<Statistic> = Option<Statistics> => |phase| phase.energy_j(),
    } without (counters)
}

impl Phase {
    fn counts(&self) -> Option<Counts> {
        self.counters?.counts
    }

    /// The joules of its host in all of its time.
    fn energy_j(&self) -> Option<f64> {
        let PhaseCounters { time_s: counted_s, counts: _, energy_j } = self.counters?;
        energy_j.filter(|_| counted_s > 0.0).map(|energy_j| energy_j * self.time_s / counted_s)
    }
}
