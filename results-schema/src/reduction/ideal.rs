//! How long would the ranks have taken on a network that moves data at once? As long as they were in their own code, or waited in MPI
//! for other ranks: that they would have done there, too (POP's ideal network, by waits that were measured instead of a
//! simulation).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::path::PathCalls;
use crate::merge::Merge;
use crate::{Number, Statistic, Statistics};

/// By rank, of those that know it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct RunsOfRanks(BTreeMap<u32, RunOfRank>);

/// How long a rank took, and how long of that no thread of it was in MPI.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct RunOfRank {
    run_s: f64,
    useful_s: f64,
}

impl RunsOfRanks {
    /// Makes this what one rank says.
    pub(super) fn set(&mut self, run_s: f64, useful_s: Option<f64>, rank: u32) {
        self.0.clear();
        self.0.extend(useful_s.map(|useful_s| (rank, RunOfRank { run_s, useful_s })));
    }

    /// Seconds over the ranks, and the error of the largest. None unless each of `ranks` is known, or if nothing
    /// is known of waiting.
    pub(super) fn finish(&self, waited: &WaitsOfRanks, ranks: u64) -> Option<(Statistic, f64)> {
        if waited.of_ranks.is_empty() || self.0.len() as u64 != ranks {
            return None;
        }
        let mut statistics = Statistics::default();
        for (rank, RunOfRank { run_s, useful_s }) in &self.0 {
            let waited_s = waited.of_ranks.get(rank).map_or(0.0, |of| of.seconds);
            // A rank waits no longer than it is in MPI.
            let ideal_s = (useful_s + waited_s).min(*run_s).max(*useful_s);
            statistics.add(Number::Double(ideal_s), *rank);
        }
        let statistic = statistics.finish()?;
        let of_largest = waited.of_ranks.get(&statistic.max_rank);
        let error_s = of_largest.map_or(0.0, |of| of.variance.sqrt());
        Some((statistic, error_s))
    }
}

impl Merge for RunsOfRanks {
    fn absorb(&mut self, other: &RunsOfRanks) {
        self.0.extend(&other.0);
    }
}

/// Seconds that each rank waited for other ones, and when.
#[derive(Debug, Default)]
pub(super) struct WaitsOfRanks {
    of_ranks: BTreeMap<u32, WaitOfRank>,
    pub(super) path: PathCalls,
}

#[derive(Debug, Default)]
struct WaitOfRank {
    seconds: f64,
    variance: f64,
}

impl WaitsOfRanks {
    /// A rank waited so long more. `error_s`: none if a single call stands for all; then it may be all of it.
    pub(super) fn add(&mut self, rank: u32, seconds: f64, error_s: Option<f64>) {
        let of = self.of_ranks.entry(rank).or_default();
        of.seconds += seconds;
        let error_s = error_s.unwrap_or(seconds);
        of.variance += error_s * error_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of the run and outside of MPI by rank, in this order of merging.
    fn runs(order: &[usize], known: &[(f64, Option<f64>)]) -> RunsOfRanks {
        let mut merged = RunsOfRanks::default();
        for at in order {
            let mut of_rank = RunsOfRanks::default();
            let (run_s, useful_s) = known[*at];
            of_rank.set(run_s, useful_s, u32::try_from(*at).unwrap());
            merged.absorb(&of_rank);
        }
        merged
    }

    fn waits(of: &[(u32, f64, Option<f64>)]) -> WaitsOfRanks {
        let mut waits = WaitsOfRanks::default();
        for (rank, seconds, error_s) in of {
            waits.add(*rank, *seconds, *error_s);
        }
        waits
    }

    #[test]
    fn a_rank_takes_what_it_works_and_waits_in_any_order_of_merging() {
        // Rank 0 works 4 s, waits 5 s and moves data for 1 s; rank 1 works 7 s and moves data for 3 s; rank 2 waits for
        // longer than it was in MPI, by an estimate.
        let known = [(10.0, Some(4.0)), (10.0, Some(7.0)), (8.0, Some(6.0))];
        let waited = waits(&[(0, 2.0, Some(0.3)), (2, 2.5, Some(1.0)), (0, 3.0, Some(0.4))]);
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let (ideal, error) = runs(&order, &known).finish(&waited, 3).unwrap();
            assert_eq!((ideal.max.as_f64(), ideal.max_rank), (9.0, 0));
            assert_eq!((ideal.min.as_f64(), ideal.min_rank), (7.0, 1));
            assert_eq!((ideal.sum.as_f64(), ideal.ranks), (24.0, 3));
            assert!((error - 0.5).abs() < 1e-12);
        }
    }

    #[test]
    fn it_is_not_known_without_each_rank_or_any_waiting() {
        let known = [(10.0, Some(4.0)), (10.0, None)];
        let waited = waits(&[(0, 1.0, None)]);
        assert!(runs(&[0, 1], &known).finish(&waited, 2).is_none());
        let (ideal, error) = runs(&[0], &known).finish(&waited, 1).unwrap();
        assert_eq!((ideal.max.as_f64(), error), (5.0, 1.0));
        assert!(runs(&[0], &known).finish(&WaitsOfRanks::default(), 1).is_none());
    }
}
