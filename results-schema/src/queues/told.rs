//! The queues as callbacks of the library told of them: every message is in these numbers.

use super::{Fidelity, OnRank, Quantity, QueueRow};
use crate::{MessagesSummary, Metric, MetricSummary, Traffic};

pub(super) fn rows(messages: &MessagesSummary) -> Vec<QueueRow> {
    [Traffic::Program, Traffic::Collectives]
        .into_iter()
        .flat_map(|traffic| of_traffic(messages, traffic))
        .collect()
}

fn of_traffic(messages: &MessagesSummary, traffic: Traffic) -> Vec<QueueRow> {
    let find =
        |metric| messages.metrics.iter().find(|row| (row.metric, row.traffic) == (metric, traffic));
    let row = |quantity, metric: &MetricSummary| QueueRow {
        traffic: Some(traffic),
        number: Some(metric.n.sum.as_f64()),
        ..QueueRow::new(quantity, messages.source.into(), metric.metric.name(), Fidelity::Exact)
    };
    // A sum of lengths says nothing.
    let length = |quantity, metric| {
        let found = find(metric)?;
        Some(QueueRow {
            mean: Some(found.mean),
            max: Some(OnRank::max_of(&found.max)),
            ..row(quantity, found)
        })
    };
    let time = |quantity, metric| {
        let found = find(metric)?;
        Some(QueueRow {
            total: Some(found.sum.sum.as_f64()),
            most: Some(OnRank::max_of(&found.sum)),
            mean: Some(found.mean),
            max: Some(OnRank::max_of(&found.max)),
            ..row(quantity, found)
        })
    };
    let attempts = |quantity, metric| {
        let found = find(metric)?;
        Some(QueueRow { most: Some(OnRank::max_of(&found.n)), ..row(quantity, found) })
    };
    let matched = |metric| find(metric).map(|metric| metric.n.sum.as_f64());
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
