//! One row for each pair of ranks.

use gyan_results::{Summary, TrafficKind};

use crate::document::data::{Data, TakeRow};
use crate::document::value::{Value, cells};
use crate::document::{Column, Kind, column, required};

const COLUMNS: [Column; 5] = [
    required("kind", Kind::Text),
    required("from", Kind::Integer),
    // Nothing for all others.
    column("to", Kind::Integer),
    required("number", Kind::Integer),
    required("bytes", Kind::Integer),
];

pub(crate) fn peers(summary: &Summary) -> Data<'_> {
    let rows = move |take: &mut TakeRow| {
        for traffic in &summary.peers {
            let kind = match traffic.kind {
                TrafficKind::Messages => "messages",
                TrafficKind::Accesses => "accesses",
            };
            for (from, to, number, bytes) in traffic.pairs() {
                take(&cells![kind, Value::Rank(from), to.map(Value::Rank), number, bytes])?;
            }
        }
        Ok(())
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}
