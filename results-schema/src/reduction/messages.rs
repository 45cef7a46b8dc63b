//! What callbacks of the library told, over ranks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::absence::{Absence, Row, Rows};
use super::wire::{Numbers, all_numbers};
use crate::{
    EventCount, EventSummary, MessageMetric, MessageSource, Messages, MessagesSummary, Metric,
    MetricSummary, Number, PairSummary, PeerQueues, Statistics, Traffic, add_histogram,
};

/// Pairs of ranks that are kept: of a million ranks the worst, whatever the order of the merge.
const PAIRS_AT_MOST: usize = 64;

/// What was told, by who told it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Sources(BTreeMap<MessageSource, MessagesReduction>);

#[derive(Clone, Debug, Deserialize, Serialize)]
struct MessagesReduction {
    #[serde(skip)]
    ranks: u64,
    metrics: Rows<MetricReduction, (Metric, Traffic)>,
    /// The worst, in their order.
    #[serde(skip)]
    pairs: Vec<PairSummary>,
    #[serde(skip)]
    pairs_seen: u64,
    #[serde(skip)]
    without_peer: u64,
    #[serde(skip)]
    lost: u64,
}

#[derive(Clone, Debug, Default)]
struct MetricReduction {
    n: Statistics,
    sum: Statistics,
    max: Statistics,
    histogram: Vec<u64>,
    absence: Absence,
}

all_numbers!(MetricReduction);

impl Sources {
    pub(super) fn of(messages: &[Messages], rank: u32) -> Sources {
        let sources = messages.iter();
        Sources(sources.map(|one| (one.source, MessagesReduction::of(one, rank))).collect())
    }

    pub(super) fn merge(&mut self, other: &Sources) {
        for (&source, messages) in &other.0 {
            match self.0.get_mut(&source) {
                Some(own) => own.merge(messages),
                None => {
                    self.0.insert(source, messages.clone());
                }
            }
        }
    }

    pub(super) fn numbers(&mut self, numbers: &mut Numbers) {
        for messages in self.0.values_mut() {
            numbers.count(&mut messages.ranks);
            messages.metrics.numbers(numbers);
            numbers.json(&mut messages.pairs, |own, other| add_pairs(own, &other));
            numbers.count(&mut messages.pairs_seen);
            numbers.count(&mut messages.without_peer);
            numbers.count(&mut messages.lost);
        }
    }

    pub(super) fn finish(self) -> Vec<MessagesSummary> {
        self.0.into_iter().map(|(source, messages)| messages.finish(source)).collect()
    }
}

impl MessagesReduction {
    fn of(messages: &Messages, rank: u32) -> MessagesReduction {
        let peers = messages.peers.iter().cloned();
        let mut metrics = Rows::default();
        metrics.set(
            rank,
            &messages.metrics,
            |key: &(Metric, Traffic), metric| key.cmp(&(metric.metric, metric.traffic)),
            |metric| (metric.metric, metric.traffic),
            |row: &mut MetricReduction, metric| row.set(metric, rank),
        );
        MessagesReduction {
            ranks: 1,
            metrics,
            pairs: worst(peers.map(|queues| PairSummary { rank, queues }).collect()),
            pairs_seen: messages.peers.len() as u64,
            without_peer: messages.without_peer,
            lost: messages.lost,
        }
    }

    fn merge(&mut self, other: &MessagesReduction) {
        self.ranks = self.ranks.saturating_add(other.ranks);
        self.metrics.merge(&other.metrics);
        add_pairs(&mut self.pairs, &other.pairs);
        self.pairs_seen = self.pairs_seen.saturating_add(other.pairs_seen);
        self.without_peer = self.without_peer.saturating_add(other.without_peer);
        self.lost = self.lost.saturating_add(other.lost);
    }

    fn finish(self, source: MessageSource) -> MessagesSummary {
        let ranks = self.ranks;
        let metrics = self.metrics.finish();
        MessagesSummary {
            source,
            ranks,
            metrics: metrics.filter_map(|(key, metric)| metric.finish(key, ranks)).collect(),
            pairs: self.pairs,
            pairs_seen: self.pairs_seen,
            without_peer: self.without_peer,
            lost: self.lost,
        }
    }
}

fn add_pairs(pairs: &mut Vec<PairSummary>, others: &[PairSummary]) {
    pairs.extend_from_slice(others);
    *pairs = worst(std::mem::take(pairs));
}

/// The first of the pairs in the order in which they matter. Each is there once, so it is no matter
/// whether some were left out before.
fn worst(mut pairs: Vec<PairSummary>) -> Vec<PairSummary> {
    pairs.sort_by_key(|PairSummary { rank, queues }| {
        let PeerQueues { peer, unexpected, unexpected_max, posted, .. } = queues;
        (Reverse((*unexpected, *unexpected_max, *posted)), *rank, *peer)
    });
    pairs.truncate(PAIRS_AT_MOST);
    pairs
}

impl MetricReduction {
    fn set(&mut self, metric: &MessageMetric, rank: u32) {
        self.n = Statistics::of(Number::Integer(metric.n.into()), rank);
        self.sum = Statistics::of(Number::Double(metric.sum), rank);
        self.max = Statistics::of(Number::Double(metric.max), rank);
        self.histogram.clone_from(&metric.histogram);
        self.absence = Absence::default();
    }

    fn finish(self, (metric, traffic): (Metric, Traffic), ranks: u64) -> Option<MetricSummary> {
        let absent = ranks.saturating_sub(self.n.ranks());
        let n = self.absence.finish(self.n, absent)?;
        let sum = self.sum.finish()?;
        Some(MetricSummary {
            metric,
            traffic,
            mean: sum.sum.as_f64() / n.sum.as_f64().max(1.0),
            n,
            sum,
            max: self.max.finish()?,
            histogram: self.histogram,
        })
    }
}

impl Row for MetricReduction {
    fn merge(&mut self, other: &MetricReduction) {
        self.n.merge(&other.n);
        self.sum.merge(&other.sum);
        self.max.merge(&other.max);
        add_histogram(&mut self.histogram, &other.histogram);
        self.absence.merge(other.absence);
    }

    fn absent_on(&mut self, lowest: u32) {
        self.absence.on(lowest);
    }

    fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.statistics(&mut self.n);
        numbers.statistics(&mut self.sum);
        numbers.statistics(&mut self.max);
        numbers.histogram(&mut self.histogram);
        self.absence.numbers(numbers);
    }
}

type EventKey = (String, String, Option<String>);

/// The events of the ranks that counted any.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Events {
    #[serde(skip)]
    ranks: u64,
    rows: Option<Rows<EventReduction, EventKey>>,
}

#[derive(Clone, Debug, Default)]
struct EventReduction {
    n: Statistics,
    dropped: u64,
    first_s: Option<f64>,
    last_s: Option<f64>,
    gap_max_s: Option<f64>,
    absence: Absence,
}

all_numbers!(EventReduction);

impl Events {
    pub(super) fn of(events: &[EventCount], rank: u32) -> Events {
        if events.is_empty() {
            return Events::default();
        }
        let mut rows = Rows::default();
        rows.set(
            rank,
            events,
            |(name, source, object): &EventKey, event| {
                let order = name.cmp(&event.name).then_with(|| source.cmp(&event.event_source));
                order.then_with(|| object.cmp(&event.object))
            },
            |event| (event.name.clone(), event.event_source.clone(), event.object.clone()),
            |row: &mut EventReduction, event| row.set(event, rank),
        );
        Events { ranks: 1, rows: Some(rows) }
    }

    pub(super) fn merge(&mut self, other: &Events) {
        self.ranks = self.ranks.saturating_add(other.ranks);
        match (&mut self.rows, &other.rows) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
    }

    pub(super) fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.count(&mut self.ranks);
        if let Some(rows) = &mut self.rows {
            rows.numbers(numbers);
        }
    }

    pub(super) fn finish(self) -> Vec<EventSummary> {
        let rows = self.rows.into_iter().flat_map(Rows::finish);
        rows.filter_map(|((name, event_source, object), event)| {
            let absent = self.ranks.saturating_sub(event.n.ranks());
            Some(EventSummary {
                name,
                event_source,
                object,
                n: event.absence.finish(event.n, absent)?,
                dropped: event.dropped,
                first_s: event.first_s,
                last_s: event.last_s,
                gap_max_s: event.gap_max_s,
            })
        })
        .collect()
    }
}

impl EventReduction {
    fn set(&mut self, event: &EventCount, rank: u32) {
        self.n = Statistics::of(Number::Integer(event.n.into()), rank);
        self.dropped = event.dropped;
        self.first_s = event.first_s;
        self.last_s = event.last_s;
        self.gap_max_s = event.gap_max_s;
        self.absence = Absence::default();
    }
}

impl Row for EventReduction {
    fn merge(&mut self, other: &EventReduction) {
        self.n.merge(&other.n);
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.first_s = either(self.first_s, other.first_s, f64::min);
        self.last_s = either(self.last_s, other.last_s, f64::max);
        self.gap_max_s = either(self.gap_max_s, other.gap_max_s, f64::max);
        self.absence.merge(other.absence);
    }

    fn absent_on(&mut self, lowest: u32) {
        self.absence.on(lowest);
    }

    fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.statistics(&mut self.n);
        numbers.count(&mut self.dropped);
        numbers.optional(&mut self.first_s, f64::min);
        numbers.optional(&mut self.last_s, f64::max);
        numbers.optional(&mut self.gap_max_s, f64::max);
        self.absence.numbers(numbers);
    }
}

fn either(one: Option<f64>, other: Option<f64>, of_both: fn(f64, f64) -> f64) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(of_both(one, other)),
        (one, other) => one.or(other),
    }
}
