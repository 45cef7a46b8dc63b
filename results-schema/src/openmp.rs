//! What the OpenMP runtime of a rank told of its parallel regions: on one rank and over ranks.

use crate::addresses::LoadedObject;
use crate::data::{Data, Serialize, derive};
use crate::merge::{Later, Lowest, SumOfErrors, reduced};
use crate::sites::CodeAddress;
use crate::statistics::{Statistic, Statistics};

/// What an OpenMP runtime told through OMPT (OpenMP 5.0, 4.2), from `MPI_Init` to `MPI_Finalize`.
///
/// Only the outermost parallel regions count as regions: what runs in a team inside of one is work of the thread that
/// started it.
#[derive(Data!, Serialize, Default)]
pub struct OpenMp {
    /// The runtime, as it names itself.
    pub runtime: String,
    /// Threads of the largest team; 1 if no region was parallel.
    pub threads: u64,
    /// Seconds from `MPI_Init` to `MPI_Finalize`, without the start of gyan.
    pub elapsed_s: f64,
    /// Seconds of those that the first thread was neither in a parallel region nor in MPI.
    pub serial_s: f64,
    /// Seconds of those that the first thread was in MPI, outside of all parallel regions.
    pub serial_in_mpi_s: f64,
    /// The parallel regions by place, the one with the most time first. Those beyond the places that are kept apart are one
    /// without a place.
    pub regions: Vec<OpenMpRegion>,
    /// The addresses that regions name by their place in this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<CodeAddress>,
    /// The loaded objects that contain the addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_map: Vec<LoadedObject>,
}

/// The parallel regions that one place in the program starts.
///
/// Where not every entry was timed, the seconds are an estimate from those that were.
#[derive(Data!, Serialize, Default)]
pub struct OpenMpRegion {
    /// The address from which the program starts the region, in the function that contains it; none for the regions beyond those
    /// that are kept apart.
    pub place: Option<usize>,
    /// How often it was entered.
    pub entries: u64,
    /// How many of the entries were timed.
    pub timed: u64,
    /// Threads of its largest team.
    pub threads: u64,
    /// Wall seconds from its begin to its end, summed over the entries.
    pub time_s: f64,
    /// The standard error of `time_s`: 0 where all entries were timed, none where the timed ones cannot tell, and
    /// it is the least that they took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_error_s: Option<f64>,
    /// Seconds of its threads outside of barriers and MPI.
    pub work_s: f64,
    /// Seconds of the thread with the most work of each entry, summed over the entries.
    pub most_work_s: f64,
    /// Seconds that its threads waited at barriers, that at its end included.
    pub barrier_s: f64,
    /// Seconds of its threads in MPI.
    pub in_mpi_s: f64,
}

impl OpenMp {
    /// Seconds that its threads had: those of `elapsed_s`, of each thread of the largest team.
    pub fn capacity_s(&self) -> f64 {
        self.threads as f64 * self.elapsed_s
    }

    /// Seconds of its threads outside of MPI, and not idle.
    pub fn useful_s(&self) -> f64 {
        self.serial_s + self.sum(|region| region.work_s)
    }

    /// Seconds that its threads lost to MPI: in it, or idle while the first thread was in it outside of all regions.
    pub fn lost_to_mpi_s(&self) -> f64 {
        self.threads as f64 * self.serial_in_mpi_s + self.sum(|region| region.in_mpi_s)
    }

    /// Seconds that its threads were idle while the first thread did work outside of all regions.
    pub fn lost_to_serial_s(&self) -> f64 {
        (self.threads.max(1) - 1) as f64 * self.serial_s
    }

    /// Seconds that its threads had less work than the one with the most, in parallel regions.
    pub fn lost_to_imbalance_s(&self) -> f64 {
        self.sum(OpenMpRegion::lost_to_imbalance_s)
    }

    fn sum(&self, seconds: impl Fn(&OpenMpRegion) -> f64) -> f64 {
        // An empty sum of doubles is -0.
        self.regions.iter().map(seconds).sum::<f64>() + 0.0
    }
}

impl OpenMpRegion {
    /// Seconds that its threads had less work than the one with the most of each entry.
    pub fn lost_to_imbalance_s(&self) -> f64 {
        if self.threads < 2 {
            // Its work is an estimate where the time in MPI is.
            return 0.0;
        }
        (self.most_work_s * self.threads as f64 - self.work_s).max(0.0)
    }
}

reduced! {
    /// What the OpenMP runtimes told, over the ranks that have one that does.
    OpenMp => OpenMpReduction => OpenMpSummary by () {
        /// The runtime of the lowest of these ranks, as it names itself.
        runtime: String = Lowest<String>,
        /// Threads of the largest team; 1 if no region was parallel.
        threads: Statistic = Statistics,
        /// Seconds from `MPI_Init` to `MPI_Finalize`, without the start of gyan.
        elapsed_s: Statistic = Statistics,
        /// Seconds that the threads of a rank had: those of `elapsed_s`, of each thread of its largest team.
        + capacity_s: Statistic = Statistics => |of| of.capacity_s(),
        /// Seconds of its threads outside of MPI, and not idle.
        + useful_s: Statistic = Statistics => |of| of.useful_s(),
        /// Seconds that its threads lost to MPI: in it, or idle while the first thread was in it outside of all regions.
        + lost_to_mpi_s: Statistic = Statistics => |of| of.lost_to_mpi_s(),
        /// Seconds that its threads were idle while the first thread did work outside of all regions.
        + lost_to_serial_s: Statistic = Statistics => |of| of.lost_to_serial_s(),
        /// Seconds that its threads had less work than the one with the most, in parallel regions.
        + lost_to_imbalance_s: Statistic = Statistics => |of| of.lost_to_imbalance_s(),
        /// Seconds that the first thread was neither in a parallel region nor in MPI.
        serial_s: Statistic = Statistics,
        /// Seconds that the first thread was in MPI, outside of all parallel regions.
        serial_in_mpi_s: Statistic = Statistics,
        /// The parallel regions by place, the one with the most time on all ranks first.
        regions: Vec<OpenMpRegionSummary> = Later,
        /// The addresses that regions name by their place in this list.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        addresses: Vec<CodeAddress> = Later,
        /// The objects that contain the addresses.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        load_map: Vec<LoadedObject> = Later,
    } without ()
}

reduced! {
    /// The parallel regions that one place starts, over the ranks that entered one there.
    OpenMpRegion => OpenMpRegionReduction => OpenMpRegionSummary by (
        /// The address from which the program starts the region; none for regions beyond those that are kept apart.
        place: Option<usize>,
    ) {
        /// How often it was entered.
        entries: Statistic = Statistics,
        /// How many of the entries were timed, on all ranks.
        timed: u64 = u64,
        /// Threads of its largest team.
        threads: Statistic = Statistics,
        /// Wall seconds from its begin to its end, summed over the entries of a rank.
        time_s: Statistic = Statistics,
        /// The standard error of the sum of `time_s`; none when a rank cannot tell its own.
        time_error_s: Option<f64> = SumOfErrors,
        /// Seconds of its threads outside of barriers and MPI.
        work_s: Statistic = Statistics,
        /// Seconds of the thread with the most work of each entry, summed over the entries of a rank.
        most_work_s: Statistic = Statistics,
        /// Seconds that its threads waited at barriers, that at its end included.
        barrier_s: Statistic = Statistics,
        /// Seconds of its threads in MPI.
        in_mpi_s: Statistic = Statistics,
        /// Seconds that its threads had less work than the one with the most of each entry.
        + lost_to_imbalance_s: Statistic = Statistics => |of| of.lost_to_imbalance_s(),
        /// Seconds that its threads had: those of `time_s`, of each thread of its largest team.
        + threads_s: Statistic = Statistics => |of| of.threads as f64 * of.time_s,
    } without ()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_had_is_useful_or_lost() {
        let region = OpenMpRegion {
            threads: 4,
            time_s: 3.0,
            work_s: 8.0,
            most_work_s: 3.0,
            barrier_s: 2.0,
            in_mpi_s: 2.0,
            ..OpenMpRegion::default()
        };
        let of = OpenMp {
            threads: 4,
            elapsed_s: 10.0,
            serial_s: 5.0,
            serial_in_mpi_s: 2.0,
            regions: vec![region],
            ..OpenMp::default()
        };
        assert_eq!((of.capacity_s(), of.useful_s()), (40.0, 13.0));
        let lost = (of.lost_to_mpi_s(), of.lost_to_serial_s(), of.lost_to_imbalance_s());
        assert_eq!(lost, (10.0, 15.0, 4.0));
    }

    #[test]
    fn one_thread_is_not_uneven() {
        let of = |threads| OpenMpRegion {
            threads,
            work_s: 2.0,
            most_work_s: 2.1,
            ..OpenMpRegion::default()
        };
        assert_eq!(of(1).lost_to_imbalance_s().to_bits(), 0.0f64.to_bits());
        assert!(of(2).lost_to_imbalance_s() > 2.1);
    }

    #[test]
    fn a_rank_without_regions_has_serial_time_alone() {
        let of = OpenMp { threads: 1, elapsed_s: 2.0, serial_s: 2.0, ..OpenMp::default() };
        assert_eq!((of.capacity_s(), of.useful_s(), of.lost_to_serial_s()), (2.0, 2.0, 0.0));
        assert_eq!(of.lost_to_imbalance_s().to_bits(), 0.0f64.to_bits());
    }
}
