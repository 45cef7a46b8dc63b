//! Everything known about queues, one row per number.

use std::io;

use gyan_results::{EventSummary, MessagesSummary, PairSummary, QueueRow, Statistic, Summary};
use serde::Serialize;

use crate::document::data::word;
use crate::document::data::{Row, columns};
use crate::document::{Data, TakeRow, Value};
use crate::parts::ReportInput;
use crate::symbols::stacks::{Site, Watched};

/// The data of the queue tables, in the form of the JSON.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Queues<'a> {
    pub(crate) metrics: &'a [QueueRow],
    pub(crate) messages: &'a [MessagesSummary],
    pub(crate) events: &'a [EventSummary],
    pub(crate) watches: &'a [Watched<'a>],
}

impl<'r> Queues<'r> {
    pub(super) fn new(of: &'r ReportInput) -> Queues<'r> {
        let Summary { messages, events, .. } = of.summary;
        Queues { metrics: of.queues(), messages, events, watches: of.watched().0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.watches.is_empty() && self.events.is_empty()
    }
}

/// What a row is about. Fields that do not apply are empty.
#[derive(Clone, Copy, Default)]
pub(super) struct QueueNumber<'a> {
    kind: &'a str,
    name: Option<&'a str>,
    source: Option<&'a str>,
    fidelity: Option<&'a str>,
    traffic: Option<&'a str>,
    object: Option<&'a str>,
    rank: Option<u32>,
    peer: Option<u32>,
    unit: Option<&'a str>,
}

pub(super) fn rows(queues: Queues<'_>) -> Data<'_> {
    Data::from_each(QueueNumberRow::COLUMNS, move |take| {
        for row in queues.metrics {
            metric(row, take)?;
        }
        for messages in queues.messages {
            let source = word(messages.source)?;
            messages.pairs.iter().try_for_each(|one| pair(&source, one, take))?;
        }
        for event in queues.events {
            let about = QueueNumber {
                kind: "event",
                name: Some(&event.name),
                source: Some(&event.event_source),
                object: event.object.as_deref(),
                ..QueueNumber::default()
            };
            statistic(about, "number", &event.n, take)?;
            number(about, "dropped", event.dropped, take)?;
        }
        for watched in queues.watches {
            let about = QueueNumber {
                kind: "watch",
                name: Some(watched.variable),
                ..QueueNumber::default()
            };
            number(about, "threshold", watched.threshold, take)?;
            statistic(about, "receives", watched.receives, take)?;
            statistic(about, "hits", watched.hits, take)?;
            watched.sites.iter().try_for_each(|one| site(one, take))?;
        }
        Ok(())
    })
}

fn number<'a>(
    about: QueueNumber<'a>,
    measure: &'a str,
    value: impl Into<Value<'a>>,
    take: &mut TakeRow,
) -> io::Result<()> {
    (about, measure, value.into()).write(take)
}

/// A measure of a queue.
pub(super) type QueueNumberRow<'a> = (QueueNumber<'a>, &'a str, Value<'a>);

columns! { (of, measure, value) in QueueNumberRow<'_>;
    // `metric`, `pair` of ranks, `event`, `watch`, or `call site` of watched receives.
    required(kind: Text) => of.kind,
    column(name: Text) => of.name,
    column(source: Text) => of.source,
    column(fidelity: Text) => of.fidelity,
    column(traffic: Text) => of.traffic,
    column(object: Text) => of.object,
    // The rank that has the number; empty for all of them.
    column(rank: Integer) => of.rank.map(Value::Rank),
    // The rank that sends; empty for any.
    column(peer: Integer) => of.peer.map(Value::Rank),
    required(measure: Text) => *measure,
    column(unit: Text) => of.unit,
    required(value: Number) => value.clone(),
}

/// The sum over the ranks, and the largest.
fn statistic(
    about: QueueNumber,
    measure: &str,
    statistic: &Statistic,
    take: &mut TakeRow,
) -> io::Result<()> {
    number(about, measure, statistic.sum, take)?;
    number(QueueNumber { rank: Some(statistic.max_rank), ..about }, "most", statistic.max, take)
}

fn metric(row: &QueueRow, take: &mut TakeRow) -> io::Result<()> {
    let (quantity, fidelity) = (word(row.quantity)?, word(row.fidelity)?);
    let traffic = row.traffic.map(word).transpose()?;
    let (unit, source) = (word(row.unit)?, word(row.source)?);
    let about = QueueNumber {
        kind: "metric",
        name: Some(&quantity),
        source: Some(&source),
        fidelity: Some(&fidelity),
        traffic: traffic.as_deref(),
        object: row.object.as_deref(),
        ..QueueNumber::default()
    };
    let unit = Some(unit.as_str());
    let most_unit = unit.filter(|_| row.total.is_some());
    for (measure, unit, value, rank) in [
        ("number", None, row.number, None),
        ("of", None, row.of, None),
        ("total", unit, row.total, None),
        ("most", most_unit, row.most.map(|most| most.value), row.most.map(|most| most.rank)),
        ("mean", unit, row.mean, None),
        ("max", unit, row.max.map(|max| max.value), row.max.map(|max| max.rank)),
    ] {
        if let Some(value) = value {
            number(QueueNumber { rank, unit, ..about }, measure, value, take)?;
        }
    }
    Ok(())
}

fn pair(source: &str, pair: &PairSummary, take: &mut TakeRow) -> io::Result<()> {
    let queues = &pair.queues;
    let about = QueueNumber {
        kind: "pair",
        source: Some(source),
        fidelity: Some("exact"),
        rank: Some(pair.rank),
        peer: queues.peer,
        ..QueueNumber::default()
    };
    for (measure, unit, value) in [
        ("unexpected", "messages", Value::from(queues.unexpected)),
        ("unexpected_max", "messages", queues.unexpected_max.into()),
        ("unexpected_mean", "messages", queues.unexpected_mean.into()),
        ("unexpected_time", "seconds", queues.unexpected_time_s.into()),
        ("unexpected_time_max", "seconds", queues.unexpected_time_max_s.into()),
        ("posted", "receives", queues.posted.into()),
        ("posted_max", "receives", queues.posted_max.into()),
        ("posted_mean", "receives", queues.posted_mean.into()),
    ] {
        number(QueueNumber { unit: Some(unit), ..about }, measure, value, take)?;
    }
    Ok(())
}

/// The place in the program is the object.
fn site(site: &Site, take: &mut TakeRow) -> io::Result<()> {
    let place = site.caller.place();
    let (name, object) = (Some(site.function), Some(place.as_str()));
    let about = QueueNumber { kind: "call site", name, object, ..QueueNumber::default() };
    statistic(about, "hits", site.hits, take)?;
    number(about, "mean", site.sum as f64 / site.hits.sum.as_f64().max(1.0), take)?;
    number(QueueNumber { rank: Some(site.worst_rank), ..about }, "max", site.worst.value, take)
}
