//! What gyan cost, and the clock by which it is known: on one rank and over ranks.

use crate::data::{Data, Serialize, derive};
use crate::merge::{Lowest, reduced};
use crate::ranges::Ranges;
use crate::statistics::{Statistic, Statistics};

/// The clock that gyan reads the time from.
#[derive(Data!, Serialize)]
pub struct Clock {
    /// `tsc` (the processor's counter, where it is invariant) or `clock_gettime`.
    pub source: String,
    /// What one reading costs, in seconds.
    pub read_s: f64,
    /// Whether that is so slow that fewer calls are timed.
    pub slow: bool,
}

/// The time that gyan spent in this process.
#[derive(Data!, Serialize, Default)]
pub struct Overhead {
    /// Seconds in `MPI_T_init_thread` of the library.
    pub mpit_init_s: f64,
    /// Seconds that gyan added to `MPI_Init`, `mpit_init_s` excluded.
    pub init_s: f64,
    /// Seconds that gyan spent reading variables in between: at calls, when objects came and went,
    /// and between phases; and writing to the live file.
    #[serde(default)]
    pub sampling_s: f64,
    /// Seconds that gyan spent counting and timing calls, summed over all threads: their numbers times the cost
    /// of each, measured at the start.
    #[serde(default)]
    pub wrappers_s: f64,
    /// Seconds that gyan spent in callbacks of the library, summed over all threads: their number times the
    /// measured cost of some of them.
    #[serde(default)]
    pub events_s: f64,
    /// Seconds that gyan spent recording the events of a timeline, summed over all threads: their number times the
    /// measured cost of some of them. The budget does not limit them, as every call was asked for.
    #[serde(default)]
    pub timeline_s: f64,
    /// Seconds that gyan added to the end, up to the last write of this profile.
    pub finalize_s: f64,
    /// `(init_s + sampling_s + wrappers_s + events_s + timeline_s + finalize_s) / elapsed_s`.
    pub share: f64,
    /// `(sampling_s + wrappers_s + events_s) / elapsed_s`: the cost that the budget limits.
    #[serde(default)]
    pub running_share: f64,
    /// The share that `GYAN_BUDGET` allows; none for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
}

impl Overhead {
    /// Seconds that the run took longer to begin because of gyan. In MPI libraries that would do the work of
    /// `mpit_init_s` themselves, `MPI_Init` is shorter for it.
    pub fn start_s(&self) -> f64 {
        self.mpit_init_s + self.init_s
    }

    /// Whether gyan cost more than it was allowed to.
    pub fn is_over_budget(&self) -> bool {
        self.budget.is_some_and(|budget| self.running_share > budget)
    }
}

reduced! {
    /// What gyan cost on the ranks.
    Overhead => OverheadReduction => OverheadSummary by () {
        /// Seconds in `MPI_T_init_thread` of the library.
        mpit_init_s: Statistic = Statistics,
        /// Seconds added to `MPI_Init`.
        init_s: Statistic = Statistics,
        /// Seconds spent reading variables in between.
        sampling_s: Statistic = Statistics,
        /// Seconds spent counting and timing calls; none when no rank reports it.
        wrappers_s: Option<Statistic> = Option<Statistics> => |of| Some(of.wrappers_s),
        /// Seconds in callbacks of the library, over the ranks that report it.
        events_s: Option<Statistic> = Option<Statistics> => |of| Some(of.events_s),
        /// Seconds spent recording the events of a timeline, over the ranks that did.
        timeline_s: Option<Statistic> = Option<Statistics> => |of| {
            (of.timeline_s > 0.0).then_some(of.timeline_s)
        },
        /// Seconds added to the end.
        finalize_s: Statistic = Statistics,
        /// Share of the run.
        share: Statistic = Statistics,
        /// Share of the run that gyan chose to take between the start and the end, which the budget limits; none
        /// when no rank reports it.
        running_share: Option<Statistic> = Option<Statistics> => |of| Some(of.running_share),
        /// The share that the budget allows, according to the lowest rank; none for no limit.
        budget: Option<f64> = Lowest<Option<f64>>,
        /// The ranks on which gyan cost more than that.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        + over_budget: Vec<u32> = Ranges => |of| of.is_over_budget(),
    } without ()
}

impl OverheadSummary {
    /// The largest of the ranks' seconds of counting and timing calls, if that by itself exceeds the budget of a run of so many
    /// seconds: no budget can leave counting out.
    pub fn counting_beyond_budget_s(&self, elapsed_s: f64) -> Option<f64> {
        let counting_s = self.wrappers_s.as_ref()?.max.as_f64();
        (counting_s > self.budget? * elapsed_s).then_some(counting_s)
    }
}

impl OverheadReduction {
    /// For a rank of a gyan that did not time calls, and reported neither the cost of that nor a budget.
    pub(crate) fn forget_running(&mut self) {
        (self.wrappers_s, self.events_s, self.running_share) = Default::default();
    }
}
