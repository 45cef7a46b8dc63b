//! What callbacks of the library reported, over ranks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::absence::{Absence, Row, Rows};
use super::merge::{Merge, merge_fields};
use crate::{
    EventCount, EventSummary, MessageMetric, MessageSource, Messages, MessagesSummary, Metric,
    MetricSummary, Number, PairSummary, PeerQueues, Statistics, Traffic, collected, sort_by,
};

/// Most pairs of ranks that are kept: of a million ranks the worst, whatever the order of the merge.
const PAIRS_AT_MOST: usize = 64;

/// What each source reported.
pub(super) type Sources = BTreeMap<MessageSource, MessagesReduction>;

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct MessagesReduction {
    ranks: u64,
    metrics: Rows<MetricReduction, (Metric, Traffic)>,
    pairs: WorstPairs,
    pairs_seen: u64,
    without_peer: u64,
    lost: u64,
}

/// The most important first, each with the rank that receives.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct WorstPairs(Vec<(u32, PeerQueues)>);

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct MetricReduction {
    n: Statistics,
    sum: Statistics,
    max: Statistics,
    histogram: Vec<u64>,
    absence: Absence,
}

merge_fields! {
    MessagesReduction { ranks, metrics, pairs, pairs_seen, without_peer, lost }
    MetricReduction { n, sum, max, histogram, absence }
}

impl MessagesReduction {
    #[inline]
    pub(super) fn of_rank(messages: &[Messages], rank: u32) -> Sources {
        collected(messages.iter().map(|one| (one.source, MessagesReduction::of(one, rank))))
    }

    #[inline]
    fn of(messages: &Messages, rank: u32) -> MessagesReduction {
        let Messages { source: _, metrics, peers, without_peer, lost } = messages;
        let mut rows = Rows::default();
        rows.set(
            rank,
            metrics,
            |key: &(Metric, Traffic), metric| key.cmp(&(metric.metric, metric.traffic)),
            |metric| (metric.metric, metric.traffic),
            |row: &mut MetricReduction, metric| row.set(metric, rank),
        );
        let mut pairs = WorstPairs::default();
        pairs.add(peers.iter().map(|queues| (rank, queues.clone())));
        MessagesReduction {
            ranks: 1,
            metrics: rows,
            pairs,
            pairs_seen: peers.len() as u64,
            without_peer: *without_peer,
            lost: *lost,
        }
    }

    #[inline]
    pub(super) fn finish(self, source: MessageSource) -> MessagesSummary {
        let MessagesReduction { ranks, metrics, pairs, pairs_seen, without_peer, lost } = self;
        let metrics = metrics.finish().filter_map(|(key, metric)| metric.finish(key, ranks));
        let pairs = pairs.0.into_iter();
        MessagesSummary {
            source,
            ranks,
            metrics: metrics.collect(),
            pairs: pairs.map(|(rank, queues)| PairSummary { rank, queues }).collect(),
            pairs_seen,
            without_peer,
            lost,
        }
    }
}

impl WorstPairs {
    /// Each pair comes once, so it does not matter if some were dropped before.
    fn add(&mut self, pairs: impl Iterator<Item = (u32, PeerQueues)>) {
        self.0.extend(pairs);
        let key = |(rank, queues): &(u32, PeerQueues)| {
            let PeerQueues { peer, unexpected, unexpected_max, posted, .. } = queues;
            (Reverse((*unexpected, *unexpected_max, *posted)), *rank, *peer)
        };
        sort_by(&mut self.0, |one, other| key(one).cmp(&key(other)));
        self.0.truncate(PAIRS_AT_MOST);
    }
}

impl Merge for WorstPairs {
    fn absorb(&mut self, other: &WorstPairs) {
        self.add(other.0.iter().cloned());
    }
}

impl MetricReduction {
    fn set(&mut self, metric: &MessageMetric, rank: u32) {
        let MessageMetric { metric: _, traffic: _, n, sum, max, histogram } = metric;
        *self = MetricReduction {
            n: Statistics::of(Number::Integer((*n).into()), rank),
            sum: Statistics::of(Number::Double(*sum), rank),
            max: Statistics::of(Number::Double(*max), rank),
            histogram: histogram.clone(),
            absence: Absence::default(),
        };
    }

    #[inline]
    fn finish(self, (metric, traffic): (Metric, Traffic), ranks: u64) -> Option<MetricSummary> {
        let MetricReduction { n, sum, max, histogram, absence } = self;
        let n = absence.finish(n, ranks.saturating_sub(n.ranks()))?;
        let sum = sum.finish()?;
        Some(MetricSummary {
            metric,
            traffic,
            mean: sum.sum.as_f64() / n.sum.as_f64().max(1.0),
            n,
            sum,
            max: max.finish()?,
            histogram,
        })
    }
}

impl Row for MetricReduction {
    fn absent_on(&mut self, lowest: u32) {
        self.absence.on(lowest);
    }
}

type EventKey = (String, String, Option<String>);

/// The events of the ranks that counted any.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Events {
    ranks: u64,
    rows: Option<Rows<EventReduction, EventKey>>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct EventReduction {
    n: Statistics,
    dropped: u64,
    first_s: Option<f64>,
    last_s: Option<f64>,
    gap_max_s: Option<f64>,
    absence: Absence,
}

merge_fields! { Events { ranks, rows } }

impl Events {
    #[inline]
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

    #[inline]
    pub(super) fn finish(self) -> Vec<EventSummary> {
        let Events { ranks, rows } = self;
        let rows = rows.into_iter().flat_map(Rows::finish);
        rows.filter_map(|(key, event)| event.finish(key, ranks)).collect()
    }
}

impl EventReduction {
    fn set(&mut self, event: &EventCount, rank: u32) {
        let EventCount {
            name: _,
            event_source: _,
            object: _,
            n,
            dropped,
            first_s,
            last_s,
            gap_max_s,
        } = *event;
        *self = EventReduction {
            n: Statistics::of(Number::Integer(n.into()), rank),
            dropped,
            first_s,
            last_s,
            gap_max_s,
            absence: Absence::default(),
        };
    }

    #[inline]
    fn finish(self, (name, event_source, object): EventKey, ranks: u64) -> Option<EventSummary> {
        let EventReduction { n, dropped, first_s, last_s, gap_max_s, absence } = self;
        let n = absence.finish(n, ranks.saturating_sub(n.ranks()))?;
        Some(EventSummary { name, event_source, object, n, dropped, first_s, last_s, gap_max_s })
    }
}

impl Merge for EventReduction {
    fn absorb(&mut self, other: &EventReduction) {
        let EventReduction { n, dropped, first_s, last_s, gap_max_s, absence } = other;
        self.n.absorb(n);
        self.dropped.absorb(dropped);
        self.first_s = either(self.first_s, *first_s, f64::min);
        self.last_s = either(self.last_s, *last_s, f64::max);
        self.gap_max_s = either(self.gap_max_s, *gap_max_s, f64::max);
        self.absence.absorb(absence);
    }
}

impl Row for EventReduction {
    fn absent_on(&mut self, lowest: u32) {
        self.absence.on(lowest);
    }
}

fn either(one: Option<f64>, other: Option<f64>, of_both: fn(f64, f64) -> f64) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(of_both(one, other)),
        (one, other) => one.or(other),
    }
}
