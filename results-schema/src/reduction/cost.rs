//! The time in MPI functions and the time that gyan took, over ranks.

use super::ranks::RankSet;
use super::wire::{Numbers, all_numbers};
use crate::{InMpi, InMpiSummary, Number, Overhead, OverheadSummary, Statistics};

#[derive(Clone, Debug, Default)]
pub(super) struct InMpiReduction {
    time_s: Statistics,
    /// The sum of the squared standard errors.
    time_variance: f64,
    share: Statistics,
}

all_numbers!(InMpiReduction);
all_numbers!(OverheadReduction);

impl InMpiReduction {
    pub(super) fn of(in_mpi: &InMpi, rank: u32) -> InMpiReduction {
        InMpiReduction {
            time_s: Statistics::of(Number::Double(in_mpi.time_s), rank),
            time_variance: in_mpi.time_error_s * in_mpi.time_error_s,
            share: Statistics::of(Number::Double(in_mpi.share), rank),
        }
    }

    pub(super) fn merge(&mut self, other: &InMpiReduction) {
        self.time_s.merge(&other.time_s);
        self.time_variance += other.time_variance;
        self.share.merge(&other.share);
    }

    pub(super) fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.statistics(&mut self.time_s);
        numbers.word(&mut self.time_variance, |one, other| one + other);
        numbers.statistics(&mut self.share);
    }

    pub(super) fn finish(self) -> Option<InMpiSummary> {
        Some(InMpiSummary {
            time_s: self.time_s.finish()?,
            time_error_s: self.time_variance.sqrt(),
            share: self.share.finish()?,
        })
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct OverheadReduction {
    mpit_init_s: Statistics,
    init_s: Statistics,
    sampling_s: Statistics,
    finalize_s: Statistics,
    share: Statistics,
    /// Of ranks that tell these.
    wrappers_s: Statistics,
    events_s: Statistics,
    running_share: Statistics,
    /// Of the lowest rank.
    budget: (u32, Option<f64>),
    over_budget: RankSet,
}

impl OverheadReduction {
    /// `timed`: whether the rank was of a gyan that timed calls; before, it told neither what that
    /// cost nor a budget.
    pub(super) fn of(overhead: &Overhead, timed: bool, rank: u32) -> OverheadReduction {
        let of = |value: f64| Statistics::of(Number::Double(value), rank);
        let told = |value: f64| if timed { of(value) } else { Statistics::default() };
        OverheadReduction {
            mpit_init_s: of(overhead.mpit_init_s),
            init_s: of(overhead.init_s),
            sampling_s: of(overhead.sampling_s),
            finalize_s: of(overhead.finalize_s),
            share: of(overhead.share),
            wrappers_s: told(overhead.wrappers_s),
            events_s: told(overhead.events_s),
            running_share: told(overhead.running_share),
            budget: (rank, overhead.budget),
            over_budget: overhead
                .is_over_budget()
                .then_some(rank)
                .map(RankSet::of)
                .unwrap_or_default(),
        }
    }

    pub(super) fn merge(&mut self, other: &OverheadReduction) {
        for (own, other) in [
            (&mut self.mpit_init_s, &other.mpit_init_s),
            (&mut self.init_s, &other.init_s),
            (&mut self.sampling_s, &other.sampling_s),
            (&mut self.finalize_s, &other.finalize_s),
            (&mut self.share, &other.share),
            (&mut self.wrappers_s, &other.wrappers_s),
            (&mut self.events_s, &other.events_s),
            (&mut self.running_share, &other.running_share),
        ] {
            own.merge(other);
        }
        if other.budget.0 < self.budget.0 {
            self.budget = other.budget;
        }
        self.over_budget.merge(&other.over_budget);
    }

    pub(super) fn numbers(&mut self, numbers: &mut Numbers) {
        for statistics in [
            &mut self.mpit_init_s,
            &mut self.init_s,
            &mut self.sampling_s,
            &mut self.finalize_s,
            &mut self.share,
            &mut self.wrappers_s,
            &mut self.events_s,
            &mut self.running_share,
        ] {
            numbers.statistics(statistics);
        }
        numbers.json(&mut self.budget, |own, other| {
            if other.0 < own.0 {
                *own = other;
            }
        });
        numbers.json(&mut self.over_budget, |own, other| own.merge(&other));
    }

    pub(super) fn finish(self) -> Option<OverheadSummary> {
        Some(OverheadSummary {
            mpit_init_s: self.mpit_init_s.finish()?,
            init_s: self.init_s.finish()?,
            sampling_s: self.sampling_s.finish()?,
            wrappers_s: self.wrappers_s.finish(),
            events_s: self.events_s.finish(),
            finalize_s: self.finalize_s.finish()?,
            share: self.share.finish()?,
            running_share: self.running_share.finish(),
            budget: self.budget.1,
            over_budget: self.over_budget.iter().collect(),
        })
    }
}
