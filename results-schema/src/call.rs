//! The calls of a function, and the time of a rank in MPI: on one rank and over ranks.

use crate::data::{apply, datum};
use crate::merge::{Each, SumOfErrors, reduced};
use crate::statistics::{Statistic, Statistics};

/// How often a function of MPI was called, and how long that took.
///
/// The count is exact. The times are an unbiased estimate from the calls that were timed; when all
/// were, they are exact too and their standard error is 0.
#[apply(datum!)]
#[derive(Default)]
pub struct Call {
    /// Its name in C.
    pub name: String,
    /// The exact number of calls by the program; calls that MPI makes internally do not count.
    pub count: u64,
    /// Bytes that the calls handed to MPI: sent, contributed to a collective operation, or requested from a
    /// window or a file. None when that is not counted, as for receives.
    pub bytes: Option<u64>,
    /// How many calls were timed.
    #[serde(default)]
    pub timed: u64,
    /// Seconds in all calls; none when none was timed.
    pub time_s: Option<f64>,
    /// The standard error of `time_s`; none when the calls that were timed cannot tell it: then `time_s` is a
    /// lower bound. It is also a lower bound when the error exceeds half of it; the error is then half of the
    /// longest time that the calls can have taken in addition.
    pub time_error_s: Option<f64>,
    /// Seconds of the longest call that was timed.
    pub time_max_s: Option<f64>,
    /// How many calls took less than 1 ns, [1, 2), [2, 4), [4, 8), ... ns: an estimate like the time, up to the
    /// last that is not 0. For the whole run, not for a phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_histogram: Vec<u64>,
    /// How many calls moved 0 bytes, 1, [2, 4), [4, 8), ... bytes, up to the last that is not 0; exact. Only
    /// calls that succeeded are included; the last of 48 bars has all from 2^46 bytes up. For the whole run,
    /// not for a phase, and empty when bytes are not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_histogram: Vec<u64>,
    /// The bytes of the calls in each of those bars.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_histogram_bytes: Vec<u64>,
}

reduced! {
    /// How often a function was called and how long that took; a rank that never called it counts as 0.
    Call => CallReduction => CallSummary by (
        /// Name of the function.
        name: String,
    ) {
        /// The number of calls.
        count: Statistic = Each,
        /// The bytes that they handed to MPI; none for a function whose bytes are not counted.
        bytes: Option<Statistic> = Option<Each>,
        /// How many calls were timed, on all ranks.
        #[serde(default)]
        timed: u64 = u64,
        /// Seconds in all calls, over the ranks that know it; none when no rank does.
        time_s: Option<Statistic> = Option<Each>,
        /// The standard error of the sum over the ranks; none when a rank has none.
        time_error_s: Option<f64> = SumOfErrors => |call| call.time_s.map(|_| call.time_error_s),
        /// Seconds of the longest call, over the ranks that timed one.
        time_max_s: Option<Statistic> = Option<Statistics>,
        /// How many calls on all ranks took less than 1 ns, [1, 2), [2, 4), [4, 8), ... ns.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        time_histogram: Vec<u64> = Vec<u64>,
        /// How many calls on all ranks moved 0 bytes, 1, [2, 4), [4, 8), ... bytes; exact.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        size_histogram: Vec<u64> = Vec<u64>,
        /// The bytes of the calls in each of those bars.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        size_histogram_bytes: Vec<u64> = Vec<u64>,
    } without ()
}

/// The time that a rank spent inside MPI functions: an estimate from the calls that were timed.
#[apply(datum!)]
#[derive(Copy)]
pub struct InMpi {
    /// Seconds, summed over all threads.
    pub time_s: f64,
    /// The standard error of that; none when it is a lower bound.
    pub time_error_s: Option<f64>,
    /// The part of `job.elapsed_s` in which at least one thread is inside; `time_s / job.elapsed_s`, which can be above 1,
    /// where that is not known.
    pub share: f64,
    /// How many threads called MPI, up to the number that gyan tells apart; 0 in profiles of early versions of gyan that
    /// did not say so.
    #[serde(default)]
    pub threads: u64,
    /// Seconds in which at least one of several threads was inside; none for one thread, for which it is `time_s`, and
    /// where it is not known.
    pub wall_s: Option<f64>,
}

impl InMpi {
    /// Seconds in which at least one thread of the rank was in MPI; none if that is not known.
    pub fn wall(&self) -> Option<f64> {
        // Earlier versions of gyan did not say how many threads there were.
        if self.threads > 1 || self.share > 1.0 { self.wall_s } else { Some(self.time_s) }
    }
}

reduced! {
    /// The time in MPI functions on the ranks: an estimate from the calls that were timed.
    InMpi => InMpiReduction => InMpiSummary by () {
        /// Seconds, summed over all threads of a rank.
        time_s: Statistic = Statistics,
        /// The standard error of the sum over the ranks: the sum of theirs, as they are not independent. None when a rank does
        /// not know its own; the sum is then a lower bound.
        time_error_s: Option<f64> = SumOfErrors,
        /// The share of the run in which at least one thread is in MPI; above 1 where several threads call MPI at once and that
        /// is not known.
        share: Statistic = Statistics,
    } without (threads, wall_s)
}
