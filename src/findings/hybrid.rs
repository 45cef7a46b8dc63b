//! How well the time of the threads of OpenMP was used: the efficiencies of MPI and of OpenMP, computed only from a summary.
//!
//! POP's hierarchy has MPI first and OpenMP in what MPI leaves, so that their product is the parallel efficiency. OpenMP's is
//! split as TALP does it (DLB 3.5, "TALP Performance metrics"): what serial code costs, then what imbalance costs, then the rest.
//! Other than in TALP, threads that are idle while the first one is in MPI are lost to MPI.

use gyan_results::{HybridEfficiencies, OpenMpSummary, Summary};

/// Regions of which nobody knows how wrong their times are may have this part of the threads' time; with more, nothing is said.
const UNKNOWN_AT_MOST: f64 = 0.01;

/// What became of the time of all threads, in seconds of threads. The parts add up to the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThreadSeconds {
    pub(super) capacity: f64,
    pub(super) useful: f64,
    /// Idle while the first thread works outside of all regions.
    pub(super) serial: f64,
    /// Less work than the thread with the most.
    pub(super) imbalance: f64,
    /// Lost in regions otherwise.
    pub(super) scheduling: f64,
}

/// None when not every rank tells, or no region was parallel.
pub(super) fn thread_seconds(summary: &Summary) -> Option<ThreadSeconds> {
    let of = summary.openmp.as_ref().filter(|of| do_all_tell(summary, of) && is_parallel(of))?;
    // A rank that ends early waits for the last one.
    let capacity = of.threads.sum.as_f64() * of.elapsed_s.max.as_f64();
    if capacity <= 0.0 {
        return None;
    }
    let own = of.capacity_s.sum.as_f64();
    let useful = of.useful_s.sum.as_f64().clamp(0.0, own);
    let idle = (own - useful - of.lost_to_mpi_s.sum.as_f64()).max(0.0);
    let serial = of.lost_to_serial_s.sum.as_f64().min(idle);
    let imbalance = of.lost_to_imbalance_s.sum.as_f64().min(idle - serial);
    let scheduling = idle - serial - imbalance;
    Some(ThreadSeconds { capacity, useful, serial, imbalance, scheduling })
}

fn do_all_tell(summary: &Summary, of: &OpenMpSummary) -> bool {
    of.elapsed_s.ranks == u64::from(summary.ranks.reduced)
}

fn is_parallel(of: &OpenMpSummary) -> bool {
    of.threads.max.as_f64() >= 2.0
}

/// Why there are no efficiencies of the threads, of a summary with regions and none.
pub(crate) fn why_unknown(summary: &Summary) -> &'static str {
    let Some(of) = &summary.openmp else { return "not known: no OpenMP runtime tells anything" };
    if !do_all_tell(summary, of) {
        "not known: the OpenMP runtime of some ranks tells nothing"
    } else if !is_parallel(of) {
        "not known: every region had one thread"
    } else if summary.in_mpi.as_ref().is_none_or(|of| of.time_error_s.is_none()) {
        "not known: too few calls of MPI were timed, a larger --budget times more"
    } else {
        "not known: too few entries of the regions were timed, a larger --budget times more"
    }
}

/// None also when too few regions were timed.
pub(super) fn hybrid(summary: &Summary) -> Option<HybridEfficiencies> {
    let of = summary.openmp.as_ref()?;
    let ThreadSeconds { capacity, useful, serial, imbalance, scheduling } =
        thread_seconds(summary)?;
    let error = error_s(of, capacity)?;
    let left = useful + serial + imbalance + scheduling;
    let part = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
    Some(HybridEfficiencies {
        threads: whole(of.threads.sum.as_f64()),
        parallel: useful / capacity,
        parallel_error: Some(error / capacity).filter(|error| *error > 0.0),
        mpi: left / capacity,
        openmp: part(useful, left),
        serialisation: part(left - serial, left),
        load_balance: part(left - serial - imbalance, left - serial),
        scheduling: part(useful, useful + scheduling),
    })
}

/// The standard error of the useful seconds; none when too much is in regions that cannot tell theirs.
fn error_s(of: &OpenMpSummary, capacity: f64) -> Option<f64> {
    let (mut variance, mut unknown) = (0.0, 0.0);
    for region in &of.regions {
        let (time_s, work_s) = (region.time_s.sum.as_f64(), region.work_s.sum.as_f64());
        match region.time_error_s {
            Some(error) if time_s > 0.0 => variance += (work_s * error / time_s).powi(2),
            Some(_) => {}
            None => unknown += region.threads_s.sum.as_f64(),
        }
    }
    (unknown <= UNKNOWN_AT_MOST * capacity).then(|| f64::sqrt(variance))
}

// A number of threads is far below 2^53, and not negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> u64 {
    number as u64
}
