//! The time in MPI functions and the time that gyan took, over ranks.

use serde::{Deserialize, Serialize};

use super::merge::{Lowest, merge_fields};
use super::ranks::RankSet;
use crate::{InMpi, InMpiSummary, Number, Overhead, OverheadSummary, Statistics};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct InMpiReduction {
    time_s: Statistics,
    /// The sum of the standard errors. NaN, which stays NaN in every sum, when a rank does not know its own.
    time_error: f64,
    share: Statistics,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct OverheadReduction {
    mpit_init_s: Statistics,
    init_s: Statistics,
    sampling_s: Statistics,
    finalize_s: Statistics,
    share: Statistics,
    /// Only ranks that report these.
    wrappers_s: Statistics,
    events_s: Statistics,
    running_share: Statistics,
    budget: Lowest<Option<f64>>,
    over_budget: RankSet,
}

merge_fields! {
    InMpiReduction { time_s, time_error, share }
    OverheadReduction {
        mpit_init_s, init_s, sampling_s, finalize_s, share, wrappers_s, events_s, running_share,
        budget, over_budget,
    }
}

impl InMpiReduction {
    pub(super) fn of(in_mpi: &InMpi, rank: u32) -> InMpiReduction {
        let InMpi { time_s, time_error_s, share, threads: _, wall_s: _ } = *in_mpi;
        InMpiReduction {
            time_s: Statistics::of(Number::Double(time_s), rank),
            time_error: time_error_s.unwrap_or(f64::NAN),
            share: Statistics::of(Number::Double(share), rank),
        }
    }

    pub(super) fn finish(self) -> Option<InMpiSummary> {
        let InMpiReduction { time_s, time_error, share } = self;
        Some(InMpiSummary {
            time_s: time_s.finish()?,
            time_error_s: Some(time_error).filter(|error| error.is_finite()),
            share: share.finish()?,
        })
    }
}

impl OverheadReduction {
    /// `timed`: whether the rank ran with a gyan that timed calls. Earlier versions reported neither the cost
    /// of that nor a budget.
    pub(super) fn of(overhead: &Overhead, timed: bool, rank: u32) -> OverheadReduction {
        let of = |value: f64| Statistics::of(Number::Double(value), rank);
        let told = |value: f64| if timed { of(value) } else { Statistics::default() };
        let is_over = overhead.is_over_budget();
        let Overhead {
            mpit_init_s,
            init_s,
            sampling_s,
            wrappers_s,
            events_s,
            finalize_s,
            share,
            running_share,
            budget,
        } = *overhead;
        OverheadReduction {
            mpit_init_s: of(mpit_init_s),
            init_s: of(init_s),
            sampling_s: of(sampling_s),
            finalize_s: of(finalize_s),
            share: of(share),
            wrappers_s: told(wrappers_s),
            events_s: told(events_s),
            running_share: told(running_share),
            budget: Lowest { rank, said: budget },
            over_budget: if is_over { RankSet::of(rank) } else { RankSet::default() },
        }
    }

    pub(super) fn finish(self) -> Option<OverheadSummary> {
        let OverheadReduction {
            mpit_init_s,
            init_s,
            sampling_s,
            finalize_s,
            share,
            wrappers_s,
            events_s,
            running_share,
            budget,
            over_budget,
        } = self;
        Some(OverheadSummary {
            mpit_init_s: mpit_init_s.finish()?,
            init_s: init_s.finish()?,
            sampling_s: sampling_s.finish()?,
            wrappers_s: wrappers_s.finish(),
            events_s: events_s.finish(),
            finalize_s: finalize_s.finish()?,
            share: share.finish()?,
            running_share: running_share.finish(),
            budget: budget.said,
            over_budget: over_budget.iter().collect(),
        })
    }
}
