//! The profiles of all ranks of a job reduced to one: schema `gyan.summary/1`.

use crate::data::{Data, Serialize, apply, datum, derive};
use crate::{
    BadEnding, CallSummary, Clock, CoverageSummary, CriticalPath, CvarSetting, Efficiencies,
    EventSummary, Finding, HostCountersSummary, HostDifference, HostSummary, InMpiSummary, Job,
    Knob, MachineSummary, MessageWaitingSummary, MessagesSummary, Mpi, ObjectsMadeSummary,
    OpenMpSummary, OverheadSummary, PhaseSummary, PlacementSummary, PvarSummary, ResourcesSummary,
    SamplesSummary, SitesSummary, Statistic, Tool, TrafficSummary, WaitingSummary, WatchSummary,
    only_starts,
};

/// How far a number of a [record](crate::JobRecord) can be off, twice: it has five digits.
const ROUNDED: f64 = 1e-4;

/// What the ranks of one job saw, as minimum, average and maximum.
#[apply(datum!)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`](crate::SUMMARY_SCHEMA).
    pub schema: String,
    /// What wrote this summary.
    pub tool: Tool,
    /// The job according to its lowest rank; `elapsed_s` is the longest of all ranks.
    pub job: Job,
    /// The MPI library according to the lowest rank.
    pub mpi: Mpi,
    /// Hosts of the ranks, sorted.
    pub hosts: Vec<String>,
    /// Which ranks are included and which are not.
    pub ranks: Ranks,
    /// How the ranks themselves reduced their profiles; none when `gyan` did.
    pub reduced_in_mpi: Option<ReducedInMpi>,
    /// Seconds from `MPI_Init` to the end; none in summaries of early versions of gyan that did not time calls.
    pub elapsed_s: Option<Statistic>,
    /// Seconds of those without the start of gyan. The run is as long as the slowest rank: the others wait after
    /// `MPI_Finalize` until it ends.
    pub run_s: Option<Statistic>,
    /// Seconds of `run_s` in which no thread of a rank was in MPI; none when that is not known of each rank. At most, where
    /// `in_mpi.time_error_s` is none.
    pub useful_s: Option<Statistic>,
    /// Seconds of `run_s` in which a rank was not in MPI, or waited there for other ranks, as far as gyan knows: what it would
    /// have taken on a network that moves data at once. None where `useful_s` is, or when nothing is known of waiting.
    pub ideal_s: Option<Statistic>,
    /// The standard error of the waiting in the maximum of `ideal_s`.
    pub ideal_error_s: Option<f64>,
    /// The time in MPI functions, over the ranks that timed calls.
    pub in_mpi: Option<InMpiSummary>,
    /// How well the time of the ranks was used. Not in files of a run: `gyan report` works it out.
    pub efficiencies: Option<Efficiencies>,
    /// What is worth knowing, by the seconds at stake. Not in files of a run: `gyan report` finds it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Who sends how much to whom: messages, then accesses to memory, if there were any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<TrafficSummary>,
    /// The ranks of each host, in the order of their names; none when there is only one host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_host: Vec<HostSummary>,
    /// The numbers in which hosts differ more than the ranks on a host do, or one rank from all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_differences: Vec<HostDifference>,
    /// Control variables and their values according to rank 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cvars: Vec<CvarSetting>,
    /// The values of the control variables that findings rest on, set or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knobs: Vec<Knob>,
    /// How many objects of MPI the ranks made and freed, one row for each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects_made: Vec<ObjectsMadeSummary>,
    /// One row for each variable, class, object, element and measure.
    pub pvars: Vec<PvarSummary>,
    /// One row for each MPI function that a rank called.
    pub calls: Vec<CallSummary>,
    /// One row for each variable and object that a rank sampled while the program ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<SamplesSummary>,
    /// The phases of the program, in the order in which they first occurred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSummary>,
    /// The receives that were watched; one row for each variable and threshold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<WatchSummary>,
    /// The hosts; one row for those that are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineSummary>,
    /// How the ranks of each host share its processors; one row for hosts that agree in this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<PlacementSummary>,
    /// What the counters of each host counted while the ranks ran: energy and network; hosts without any are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_counters: Vec<HostCountersSummary>,
    /// What the ranks used.
    pub resources: Option<ResourcesSummary>,
    /// Where in the program the timed calls came from; none when no rank recorded it.
    pub sites: Option<SitesSummary>,
    /// What the OpenMP runtimes told; none where no rank has one that does.
    pub openmp: Option<OpenMpSummary>,
    /// Waiting and transfer in collectives; one row for each function, the longest waiting first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingSummary>,
    /// How long ranks waited for each other in messages; none when no rank timed any.
    pub message_waiting: Option<MessageWaitingSummary>,
    /// Which ranks the critical path is on; none where too little is known of when ranks waited.
    pub critical_path: Option<CriticalPath>,
    /// What each source reported about messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessagesSummary>,
    /// One row for each event of `MPI_T` and communicator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventSummary>,
    /// What the library exports and which of it was not read.
    pub coverage: CoverageSummary,
    /// The clock of the rank on which a reading takes longest.
    pub clock: Option<Clock>,
    /// What gyan itself cost.
    pub overhead: OverheadSummary,
    /// The warnings of all ranks.
    pub warnings: Vec<Warning>,
}

impl Summary {
    /// Seconds that each rank took, without the start of gyan where that is known; none where the ranks have no times.
    pub fn rank_times_s(&self) -> Option<&Statistic> {
        self.run_s.as_ref().or(self.elapsed_s.as_ref())
    }

    /// Joules that the hosts took while the ranks ran; none unless each host counts them.
    pub fn energy_j(&self) -> Option<f64> {
        self.of_energies(|_| Some(1.0))
    }

    /// About how many of these joules they took while their ranks were in MPI: each host counts by the share of the time
    /// that its ranks spent there.
    pub fn energy_in_mpi_j(&self) -> Option<f64> {
        self.of_energies(|of| of.in_mpi_share)
    }

    fn of_energies(&self, part: impl Fn(&HostCountersSummary) -> Option<f64>) -> Option<f64> {
        let of = |of: &HostCountersSummary| Some(part(of)? * of.counters.energy_j()?);
        let is_complete = !self.hosts.is_empty() && self.host_counters.len() == self.hosts.len();
        is_complete.then(|| self.host_counters.iter().map(of).sum()).flatten()
    }

    /// Seconds that the run took: those of its slowest rank, without the start of gyan where that is known.
    pub fn run_time_s(&self) -> f64 {
        self.run_s.as_ref().map_or(self.job.known_s(), |run| run.max.as_f64())
    }

    /// How long ranks wait for each other within calls of a function; none for one that only starts the operation, for which they
    /// wait in others.
    pub fn waiting_in(&self, function: &str) -> Option<&WaitingSummary> {
        let mut waiting = self.waiting.iter();
        waiting.find(|of| of.function == function && !only_starts(&of.function))
    }

    /// Seconds of all ranks in which at least one thread of a rank was in MPI; none when several threads were and that is
    /// not known. It is less than `in_mpi.time_s` where threads were there together.
    pub fn wall_in_mpi_s(&self) -> Option<f64> {
        if let (Some(run), Some(useful)) = (&self.run_s, &self.useful_s) {
            return Some((run.sum.as_f64() - useful.sum.as_f64()).max(0.0));
        }
        let in_mpi = self.in_mpi.as_ref().filter(|of| of.share.max.as_f64() <= 1.0)?;
        Some(in_mpi.time_s.sum.as_f64())
    }

    /// Whether several threads of a rank were in MPI at once, whose times are summed up.
    pub fn has_thread_seconds(&self) -> bool {
        let run_s = self.run_s.as_ref().map_or(0.0, |run| run.sum.as_f64());
        let wall_s = self.wall_in_mpi_s();
        self.in_mpi.as_ref().is_some_and(|in_mpi| {
            // Of a record the wall time is the difference of two rounded numbers.
            let most_s = |wall_s| 1.001 * wall_s + ROUNDED * run_s;
            wall_s.is_none_or(|wall_s| in_mpi.time_s.sum.as_f64() > most_s(wall_s))
        })
    }

    /// The function that was called most often on all ranks together.
    pub fn most_called(&self) -> Option<&CallSummary> {
        self.calls.iter().max_by(|one, other| one.count.sum.compare(other.count.sum))
    }
}

/// Which ranks a summary holds.
#[derive(Data!, Serialize, Default)]
pub struct Ranks {
    /// Size of `MPI_COMM_WORLD`.
    pub expected: u32,
    /// Number of profiles reduced.
    pub reduced: u32,
    /// Ranks without a profile.
    pub missing: Vec<u32>,
    /// Ranks that did not end with `MPI_Finalize`.
    pub ended_badly: Vec<BadEnding>,
    /// Files that could not be used.
    pub left_out: Vec<LeftOut>,
}

impl Ranks {
    /// Whether every rank is included and nothing was left out.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.left_out.is_empty()
    }
}

/// The reduction by the ranks themselves, inside MPI (`GYAN_REDUCE`).
#[derive(Data!, Serialize)]
pub struct ReducedInMpi {
    /// Seconds that it took on rank 0, including the wait for the others.
    pub time_s: f64,
    /// Seconds of that until all ranks were there.
    pub wait_s: f64,
    /// The ranks that wrote their profiles anyway.
    pub profiles: Vec<u32>,
}

/// A file of the run directory that is not part of the summary.
#[derive(Data!, Serialize, Eq, Ord, PartialOrd)]
pub struct LeftOut {
    /// Its name.
    pub file: String,
    /// Why it was left out.
    pub reason: String,
}

/// A warning and how many ranks gave it.
#[derive(Data!, Serialize, Eq)]
pub struct Warning {
    /// The warning.
    pub text: String,
    /// Number of ranks that gave it.
    pub ranks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Number;

    /// Else nothing is found in records of jobs that spend little of their time in MPI.
    #[test]
    fn numbers_of_five_digits_are_no_threads() {
        let example = include_str!("../examples/summary.json");
        let mut summary: Summary = serde_json::from_str(example).unwrap();
        let time = summary.elapsed_s.clone().unwrap();
        let sum = |seconds| Statistic { sum: Number::Double(seconds), ..time.clone() };
        // Of 10,001.4, 9,901.2 and 100.2.
        (summary.run_s, summary.useful_s) = (Some(sum(10_001.0)), Some(sum(9901.2)));
        summary.in_mpi.as_mut().unwrap().time_s = sum(100.2);
        assert!(!summary.has_thread_seconds());
        summary.in_mpi.as_mut().unwrap().time_s = sum(103.0);
        assert!(summary.has_thread_seconds());
    }

    /// The example without the fields that came with times, samples and phases.
    #[test]
    fn a_summary_of_before_calls_were_timed_is_read() {
        let mut value: serde_json::Value =
            serde_json::from_str(include_str!("../examples/summary.json")).unwrap();
        let whole: Summary = serde_json::from_value(value.clone()).unwrap();
        assert!(whole.elapsed_s.is_some() && !whole.phases.is_empty());
        let remove = |value: &mut serde_json::Value, keys: &[&str]| {
            let object = value.as_object_mut().unwrap();
            for key in keys {
                object.remove(*key);
            }
        };
        remove(&mut value, &["elapsed_s", "in_mpi", "samples", "phases", "clock"]);
        let overhead =
            ["wrappers_s", "events_s", "timeline_s", "running_share", "budget", "over_budget"];
        remove(&mut value["overhead"], &overhead);
        let times = ["timed", "time_s", "time_error_s", "time_max_s", "time_histogram"];
        for call in value["calls"].as_array_mut().unwrap() {
            remove(call, &times);
        }
        let old: Summary = serde_json::from_value(value).unwrap();
        assert!(old.elapsed_s.is_none() && old.phases.is_empty() && old.in_mpi.is_none());
        assert!(old.calls.iter().all(|call| call.time_s.is_none()));
    }
}
