//! The numbers that change when a problem is gone.

use gyan_results::{CallSummary, HybridEfficiencies, Measure, Metric, Quantity, Summary, Traffic};

/// A number of a run. Counts are the same in every run and on every machine; times are only written down.
pub(super) struct Witness {
    pub(super) name: &'static str,
    pub(super) of: fn(&Summary) -> Option<f64>,
    pub(super) is: Is,
}

/// Its values before and after.
pub(super) enum Is {
    /// Between these numbers, before and after.
    Counted([f64; 2], [f64; 2]),
    /// Seconds: nothing is asserted.
    Seconds,
    /// Anything else that is not asserted.
    Ratio,
}

impl Witness {
    /// What the table shows; none if nothing should change.
    pub(super) fn compared(&self, runs: [&Summary; 2], what: &str) -> Option<[String; 2]> {
        if self.name.is_empty() {
            return None;
        }
        let values = runs.map(|summary| (self.of)(summary).unwrap_or(0.0));
        match self.is {
            Is::Counted(before, after) => {
                for (value, [least, most]) in values.into_iter().zip([before, after]) {
                    assert!((least..=most).contains(&value), "{} of {what}: {values:?}", self.name);
                }
                Some(values.map(|value| format!("{value}")))
            }
            Is::Seconds => Some(values.map(|value| format!("{value:.3} s"))),
            Is::Ratio => Some(values.map(|value| format!("{value:.2}"))),
        }
    }
}

/// Only the finding changes.
pub(super) const NONE: Witness = Witness { name: "", of: |_| None, is: Is::Ratio };

fn call<'a>(summary: &'a Summary, name: &str) -> Option<&'a CallSummary> {
    summary.calls.iter().find(|call| call.name == name)
}

/// How well the time of the threads of OpenMP was used.
pub(super) fn hybrid(summary: &Summary) -> Option<HybridEfficiencies> {
    summary.efficiencies.as_ref()?.hybrid
}

/// How often a function was called on all ranks.
pub(super) fn calls(summary: &Summary, name: &str) -> Option<f64> {
    Some(call(summary, name)?.count.sum.as_f64())
}

/// How long all ranks were in a function.
pub(super) fn time(summary: &Summary, name: &str) -> Option<f64> {
    Some(call(summary, name)?.time_s.as_ref()?.sum.as_f64())
}

/// Its longest call.
pub(super) fn longest(summary: &Summary, name: &str) -> Option<f64> {
    Some(call(summary, name)?.time_max_s.as_ref()?.max.as_f64())
}

/// The greatest length of a queue.
pub(super) fn most(summary: &Summary, quantity: Quantity) -> Option<f64> {
    let rows = summary.queues();
    let of = rows.iter().filter(|row| row.quantity == quantity).filter_map(|row| row.max);
    of.map(|most| most.value).reduce(f64::max)
}

/// How often something happened to messages.
pub(super) fn number(summary: &Summary, quantity: Quantity) -> Option<f64> {
    let rows = summary.queues();
    let of = rows.iter().filter(|row| row.quantity == quantity);
    of.filter_map(|row| row.number).reduce(|all, one| all + one)
}

/// The messages of collective operations, according to PERUSE.
pub(super) fn messages_of_collectives(summary: &Summary) -> Option<f64> {
    let rows = summary.messages.iter().flat_map(|of| &of.metrics);
    let mut came = rows
        .filter(|row| (row.metric, row.traffic) == (Metric::TSearchPostedQ, Traffic::Collectives));
    Some(came.next()?.n.sum.as_f64())
}

/// The largest reading of a variable on any rank.
pub(super) fn sampled(summary: &Summary, name: &str) -> Option<f64> {
    let mut rows = summary.pvars.iter();
    let row = rows.find(|pvar| pvar.name == name && pvar.measure == Measure::SampledMax)?;
    Some(row.statistic.max.as_f64())
}

/// How long ranks were ready to run and had no processor.
pub(super) fn wait_for_processors(summary: &Summary) -> Option<f64> {
    Some(summary.resources.as_ref()?.processor_wait_s.as_ref()?.sum.as_f64())
}

/// How long they waited for the last rank in a collective function.
pub(super) fn waiting(summary: &Summary, function: &str) -> Option<f64> {
    Some(summary.waiting.iter().find(|of| of.function == function)?.waiting_s)
}

/// The share of the run that all ranks spent in MPI.
pub(super) fn share_of_mpi(summary: &Summary) -> Option<f64> {
    Some(summary.in_mpi.as_ref()?.share.avg)
}
