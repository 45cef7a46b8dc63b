//! What callbacks of the library reported, over ranks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::absence::{Row, Rows};
use crate::data::derive;
use crate::merge::{Merge, MergeFields, Takes};
use crate::messages::{EventReduction, MetricReduction};
use crate::{
    EventCount, EventSummary, MessageSource, Messages, MessagesSummary, Metric, MetricSummary,
    PairSummary, PeerQueues, Traffic, collected, sort_by,
};

/// Most pairs of ranks that are kept: of a million ranks the worst, whatever the order of the merge.
const PAIRS_AT_MOST: usize = 64;

pub(super) type Sources = BTreeMap<MessageSource, MessagesReduction>;

#[derive(MergeFields!, Clone, Debug, Deserialize, Serialize)]
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
        let metrics = metrics.finish(ranks).filter_map(|((metric, traffic), row, absent)| {
            let row = row.finish(metric, traffic, absent)?;
            let mean = row.sum.sum.as_f64() / row.n.sum.as_f64().max(1.0);
            Some(MetricSummary { mean, ..row })
        });
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

impl Row for MetricReduction {}

type EventKey = (String, String, Option<String>);

/// The events of the ranks that counted any.
#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Events {
    ranks: u64,
    rows: Option<Rows<EventReduction, EventKey>>,
}

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
        let rows = rows.into_iter().flat_map(|rows| rows.finish(ranks));
        rows.filter_map(|((name, source, object), row, absent)| {
            row.finish(name, source, object, absent)
        })
        .collect()
    }
}

impl Row for EventReduction {}
