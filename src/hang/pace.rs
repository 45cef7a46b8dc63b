//! How fast do the ranks go? From two records of each rank, over the time between them as the rank itself says it: when
//! somebody looked has nothing to do with it.

use std::collections::BTreeMap;

use crate::input::directory::RankProgress;

/// Over less time than this, a few calls would look like many a second.
const LEAST_S: f64 = 0.5;

/// How fast a rank went between two of its records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    /// The seconds between the two.
    pub(crate) over_s: f64,
    pub(crate) calls_per_s: f64,
    pub(crate) bytes_per_s: f64,
    /// Seconds in MPI per second; none where it is not known. The difference of two estimates may be anything.
    pub(crate) in_mpi: Option<f64>,
    /// The standard error of that, or more; none where it is not known.
    pub(crate) in_mpi_error: Option<f64>,
    /// How many threads call MPI.
    pub(crate) threads: u64,
}

impl Pace {
    /// Whether the time in MPI is known well enough to say that it is more or less than that of another rank.
    pub(crate) fn is_clear(&self) -> bool {
        self.in_mpi.zip(self.in_mpi_error).is_some_and(|(in_mpi, error)| {
            error == 0.0 || in_mpi <= self.threads as f64 && error <= 0.5 * in_mpi
        })
    }
}

/// What is known of how fast the ranks go, from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct PaceKeeper(BTreeMap<u32, RankPace>);

/// How fast a rank goes.
#[derive(Clone, Debug)]
pub(crate) struct RankPace {
    /// The record that the latest is compared with.
    base: Option<RankProgress>,
    pub(crate) latest: RankProgress,
    /// Whether the last look found a record that the one before did not.
    pub(crate) is_new: bool,
}

impl RankPace {
    /// None while there is only one record.
    pub(crate) fn pace(&self) -> Option<Pace> {
        let (base, latest) = (self.base.as_ref()?, &self.latest);
        let over_s = latest.elapsed_s - base.elapsed_s;
        if over_s < LEAST_S {
            return None;
        }
        let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / over_s;
        let both = |of: fn(&RankProgress) -> Option<f64>| of(latest).zip(of(base));
        let in_mpi = both(|of| of.in_mpi_s).map(|(now, before)| (now - before) / over_s);
        let error = both(|of| of.in_mpi_error_s).map(|(now, before)| now.hypot(before) / over_s);
        Some(Pace {
            over_s,
            calls_per_s: per_s(latest.calls, base.calls),
            bytes_per_s: per_s(latest.bytes, base.bytes),
            in_mpi,
            in_mpi_error: error,
            threads: latest.threads.max(1),
        })
    }

    /// With what another look found.
    fn with(self, found: RankProgress) -> RankPace {
        let RankPace { base, latest, .. } = self;
        if found.process != latest.process {
            return RankPace { base: None, latest: found, is_new: true };
        }
        if found.elapsed_s <= latest.elapsed_s {
            return RankPace { base, latest, is_new: false };
        }
        let is_apart = found.elapsed_s - latest.elapsed_s >= LEAST_S;
        let base = base.filter(|_| !is_apart).or(Some(latest));
        RankPace { base, latest: found, is_new: true }
    }
}

impl PaceKeeper {
    pub(crate) fn look(&mut self, found: Vec<RankProgress>) {
        for rank in self.0.values_mut() {
            rank.is_new = false;
        }
        for found in found {
            let rank = found.rank;
            let known = self.0.remove(&rank).map(|known| known.with(found.clone()));
            let new = RankPace { base: None, latest: found, is_new: true };
            self.0.insert(rank, known.unwrap_or(new));
        }
    }

    /// Of a rank, if anything is known of it.
    pub(crate) fn of(&self, rank: u32) -> Option<&RankPace> {
        self.0.get(&rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(elapsed_s: f64, calls: u64, in_mpi_s: f64) -> RankProgress {
        RankProgress {
            rank: 3,
            process: ("n1".into(), 7, "2026-01-01T00:00:00Z".into()),
            elapsed_s,
            calls,
            bytes: calls * 8,
            in_mpi_s: Some(in_mpi_s),
            in_mpi_error_s: Some(0.0),
            threads: 1,
        }
    }

    fn after(records: &[RankProgress]) -> RankPace {
        let mut keeper = PaceKeeper::default();
        for record in records {
            keeper.look(vec![record.clone()]);
        }
        keeper.of(3).unwrap().clone()
    }

    #[test]
    fn a_rate_is_over_the_time_between_the_records() {
        let first = record(10.0, 100, 1.0);
        assert_eq!(after(std::slice::from_ref(&first)).pace(), None);
        let of = after(&[first, record(14.0, 300, 2.0)]);
        let pace = of.pace().unwrap();
        assert_eq!((pace.over_s, pace.calls_per_s, pace.bytes_per_s), (4.0, 50.0, 400.0));
        assert_eq!(pace.in_mpi, Some(0.25));
        assert!(of.is_new);
    }

    #[test]
    fn a_look_that_finds_the_same_record_changes_no_rate_and_says_so() {
        let records = [record(10.0, 100, 1.0), record(14.0, 300, 2.0)];
        let before = after(&records);
        let again = after(&[&records[..], &records[1..]].concat());
        assert_eq!(again.pace(), before.pace());
        assert!(before.is_new && !again.is_new);
    }

    #[test]
    fn a_rank_that_is_not_found_any_more_has_nothing_new() {
        let mut keeper = PaceKeeper::default();
        keeper.look(vec![record(10.0, 100, 1.0)]);
        keeper.look(Vec::new());
        assert!(!keeper.of(3).unwrap().is_new);
    }

    #[test]
    fn records_that_are_close_to_each_other_make_no_rate_of_their_own() {
        let close = [record(10.0, 100, 1.0), record(10.001, 200, 1.0)];
        assert_eq!(after(&close).pace(), None);
        let of = after(&[&close[..], &[record(12.001, 300, 1.5)]].concat());
        assert_eq!(of.pace().map(|pace| pace.calls_per_s), Some(50.0));
        let of = after(&[&close[..], &[record(12.0, 300, 1.5), record(12.25, 301, 1.5)]].concat());
        assert!((of.pace().unwrap().over_s - 2.249).abs() < 1e-9);
    }

    #[test]
    fn another_process_of_the_rank_begins_anew() {
        let mut other = record(20.0, 5, 0.1);
        other.process.1 = 8;
        assert_eq!(after(&[record(10.0, 100, 1.0), other]).pace(), None);
    }

    #[test]
    fn estimates_that_differ_by_less_than_their_errors_are_not_clear() {
        let of = |in_mpi_s, error_s| {
            let mut records = [record(10.0, 0, 1.0), record(12.0, 9, in_mpi_s)];
            for record in &mut records {
                record.in_mpi_error_s = error_s;
            }
            after(&records).pace().unwrap()
        };
        assert!(of(2.0, Some(0.1)).is_clear());
        assert!(of(1.0, Some(0.0)).is_clear());
        assert!(!of(2.0, Some(0.5)).is_clear());
        assert!(!of(0.9, Some(0.01)).is_clear());
        assert!(!of(2.0, None).is_clear());
        assert_eq!(of(2.0, Some(0.0)).in_mpi, Some(0.5));
    }
}
