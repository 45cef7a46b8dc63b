//! What is known of queues, one line for each number: for a spreadsheet or a script.

use std::io::{self, Write};

use csv::Writer;
use gyan_results::{PairSummary, QueueRow, Statistic};
use serde::Serialize;

use super::csv::io_error;
use crate::commands::report::Queues;
use crate::symbols::stacks::Site;
use crate::view::printable;

/// A line. What does not apply is empty.
#[derive(Clone, Copy, Default, Serialize)]
struct Record<'a> {
    /// `metric`, `pair` of ranks, `event`, `watch`, or `call site` of watched receives.
    kind: &'a str,
    name: &'a str,
    source: &'a str,
    fidelity: &'a str,
    traffic: &'a str,
    object: &'a str,
    /// The rank that has the number; empty for all of them.
    rank: Option<u32>,
    /// The rank that sends; empty for any.
    peer: Option<u32>,
    measure: &'a str,
    unit: &'a str,
    value: f64,
}

pub(crate) fn queues_csv(out: &mut impl Write, queues: &Queues) -> io::Result<()> {
    let mut lines = Lines(Writer::from_writer(out));
    for row in queues.metrics {
        lines.metric(row)?;
    }
    for messages in queues.messages {
        let source = name_of(messages.source)?;
        for pair in &messages.pairs {
            lines.pair(&source, pair)?;
        }
    }
    for event in queues.events {
        let record = Record {
            kind: "event",
            name: &event.name,
            source: &event.event_source,
            object: event.object.as_deref().unwrap_or_default(),
            ..Record::default()
        };
        lines.statistic(record, "number", &event.n)?;
        lines.number(Record { measure: "dropped", ..record }, event.dropped as f64)?;
    }
    for watched in queues.watches {
        let record = Record { kind: "watch", name: watched.variable, ..Record::default() };
        lines.number(Record { measure: "threshold", ..record }, watched.threshold as f64)?;
        lines.statistic(record, "receives", watched.receives)?;
        lines.statistic(record, "hits", watched.hits)?;
        for site in &watched.sites {
            lines.site(site)?;
        }
    }
    lines.0.flush()
}

/// As it is in JSON.
fn name_of(value: impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_value(value)?.as_str().unwrap_or_default().to_owned())
}

struct Lines<W: Write>(Writer<W>);

impl<W: Write> Lines<W> {
    fn number(&mut self, record: Record, value: f64) -> io::Result<()> {
        let (name, source, object) =
            (printable(record.name), printable(record.source), printable(record.object));
        let record = Record { value, name: &name, source: &source, object: &object, ..record };
        self.0.serialize(record).map_err(io_error)
    }

    /// The sum over the ranks, and the largest.
    fn statistic(
        &mut self,
        record: Record,
        measure: &str,
        statistic: &Statistic,
    ) -> io::Result<()> {
        self.number(Record { measure, ..record }, statistic.sum.as_f64())?;
        let most = Record { measure: "most", rank: Some(statistic.max_rank), ..record };
        self.number(most, statistic.max.as_f64())
    }

    fn metric(&mut self, row: &QueueRow) -> io::Result<()> {
        let (quantity, fidelity) = (name_of(row.quantity)?, name_of(row.fidelity)?);
        let traffic = row.traffic.map(name_of).transpose()?.unwrap_or_default();
        let (unit, kind) = (name_of(row.unit)?, name_of(row.source)?);
        let record = Record {
            kind: "metric",
            name: &quantity,
            source: &kind,
            fidelity: &fidelity,
            traffic: &traffic,
            object: row.object.as_deref().unwrap_or_default(),
            ..Record::default()
        };
        let most_unit = if row.total.is_some() { unit.as_str() } else { "" };
        for (measure, unit, value, rank) in [
            ("number", "", row.number, None),
            ("of", "", row.of, None),
            ("total", &unit, row.total, None),
            ("most", most_unit, row.most.map(|most| most.value), row.most.map(|most| most.rank)),
            ("mean", &unit, row.mean, None),
            ("max", &unit, row.max.map(|max| max.value), row.max.map(|max| max.rank)),
        ] {
            if let Some(value) = value {
                self.number(Record { rank, measure, unit, ..record }, value)?;
            }
        }
        Ok(())
    }

    fn pair(&mut self, source: &str, pair: &PairSummary) -> io::Result<()> {
        let queues = &pair.queues;
        let record = Record {
            kind: "pair",
            source,
            fidelity: "exact",
            rank: Some(pair.rank),
            peer: queues.peer,
            ..Record::default()
        };
        for (measure, unit, value) in [
            ("unexpected", "messages", queues.unexpected as f64),
            ("unexpected_max", "messages", queues.unexpected_max as f64),
            ("unexpected_mean", "messages", queues.unexpected_mean),
            ("unexpected_time", "seconds", queues.unexpected_time_s),
            ("unexpected_time_max", "seconds", queues.unexpected_time_max_s),
            ("posted", "receives", queues.posted as f64),
            ("posted_max", "receives", queues.posted_max as f64),
            ("posted_mean", "receives", queues.posted_mean),
        ] {
            self.number(Record { measure, unit, ..record }, value)?;
        }
        Ok(())
    }

    /// The place in the program is the object.
    fn site(&mut self, site: &Site) -> io::Result<()> {
        let place = site.caller.place();
        let record =
            Record { kind: "call site", name: site.function, object: &place, ..Record::default() };
        self.statistic(record, "hits", site.hits)?;
        let hits = site.hits.sum.as_f64();
        self.number(Record { measure: "mean", ..record }, site.sum as f64 / hits.max(1.0))?;
        let worst = Record { measure: "max", rank: Some(site.worst_rank), ..record };
        self.number(worst, site.worst.value as f64)
    }
}
