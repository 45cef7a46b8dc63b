//! The queues as reported by callbacks of the library: these numbers include every message.

use super::{OnRank, Quantity, QueueRow};
use crate::{Fidelity, MessageSource, MessagesSummary, Metric, MetricSummary, Traffic};

/// `missing`: what the library could not report, in sentences.
#[inline]
pub(super) fn rows(messages: &MessagesSummary, missing: &[String]) -> Vec<QueueRow> {
    // PERUSE reports on both queues, so anything that it did not measure did not happen. Events need not report
    // all.
    let all_told = messages.source == MessageSource::Peruse
        && !missing.iter().any(|sentence| sentence.starts_with("PERUSE"));
    let program = of_traffic(messages, Traffic::Program, all_told);
    program.into_iter().chain(of_traffic(messages, Traffic::Collectives, false)).collect()
}

/// `all_told`: missing numbers mean 0.
#[inline]
fn of_traffic(messages: &MessagesSummary, traffic: Traffic, all_told: bool) -> Vec<QueueRow> {
    let find =
        |metric| messages.metrics.iter().find(|row| (row.metric, row.traffic) == (metric, traffic));
    let row = |quantity, metric: &MetricSummary| QueueRow {
        traffic: Some(traffic),
        number: Some(metric.n.sum.as_f64()),
        ..QueueRow::new(quantity, messages.source.into(), metric.metric.name(), Fidelity::Exact)
    };
    let nothing = |quantity, metric: Metric| {
        let row = QueueRow::new(quantity, messages.source.into(), metric.name(), Fidelity::Exact);
        all_told.then_some(QueueRow { traffic: Some(traffic), number: Some(0.0), ..row })
    };
    // A sum of lengths is meaningless.
    let length = |quantity, metric| {
        let Some(found) = find(metric) else { return nothing(quantity, metric) };
        Some(QueueRow {
            mean: Some(found.mean),
            max: Some(OnRank::max_of(&found.max)),
            ..row(quantity, found)
        })
    };
    let time = |quantity, metric| {
        let Some(found) = find(metric) else { return nothing(quantity, metric) };
        Some(QueueRow {
            total: Some(found.sum.sum.as_f64()),
            most: Some(OnRank::max_of(&found.sum)),
            mean: Some(found.mean),
            max: Some(OnRank::max_of(&found.max)),
            ..row(quantity, found)
        })
    };
    let attempts = |quantity, metric| {
        let Some(found) = find(metric) else { return nothing(quantity, metric) };
        Some(QueueRow { most: Some(OnRank::max_of(&found.n)), ..row(quantity, found) })
    };
    let matched = |metric| {
        find(metric).map(|metric| metric.n.sum.as_f64()).or_else(|| all_told.then_some(0.0))
    };
    let (unexpected, posted) = (matched(Metric::TInUnexQ), matched(Metric::TInPostedQ));
    // A source that reports only one queue does not know how many messages there were.
    let of = unexpected.zip(posted).map(|(unexpected, posted)| unexpected + posted);
    // The single times are in the row of the time in the queue.
    let receivers = time(Quantity::LateReceivers, Metric::TInUnexQ).map(|row| QueueRow {
        of,
        mean: None,
        max: None,
        ..row
    });
    let senders = time(Quantity::LateSenders, Metric::TInPostedQ).map(|row| QueueRow { of, ..row });
    [
        length(Quantity::UnexpectedLength, Metric::NUnexQLen),
        length(Quantity::PostedLength, Metric::NPostedQLen),
        time(Quantity::UnexpectedTime, Metric::TInUnexQ),
        attempts(Quantity::PostedMatchAttempts, Metric::TSearchPostedQ),
        attempts(Quantity::UnexpectedMatchAttempts, Metric::TSearchUnexQ),
        time(Quantity::PostedSearchTime, Metric::TSearchPostedQ),
        time(Quantity::UnexpectedSearchTime, Metric::TSearchUnexQ),
        receivers,
        senders,
    ]
    .into_iter()
    .flatten()
    .collect()
}
