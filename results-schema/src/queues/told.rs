//! The queues as callbacks of the library told of them: every message is in these numbers.

use super::{Fidelity, OnRank, Quantity, QueueRow};
use crate::{MessageSource, MessagesSummary, Metric, MetricSummary, Traffic};

/// `missing`: what the run could not be told, in sentences.
#[inline]
pub(super) fn rows(messages: &MessagesSummary, missing: &[String]) -> Vec<QueueRow> {
    // PERUSE tells of both queues, so what it measured nothing of did not happen. Events need not.
    let all_told = messages.source == MessageSource::Peruse
        && !missing.iter().any(|sentence| sentence.starts_with("PERUSE"));
    let program = of_traffic(messages, Traffic::Program, all_told);
    program.into_iter().chain(of_traffic(messages, Traffic::Collectives, false)).collect()
}

/// `all_told`: what is not there is 0.
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
    // A sum of lengths says nothing.
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
    // A source that tells of one queue alone does not know how many messages there were.
    let of = unexpected.zip(posted).map(|(unexpected, posted)| unexpected + posted);
    // One by one they are in the row of the time in the queue.
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
