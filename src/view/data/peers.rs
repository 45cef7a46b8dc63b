//! One row for each pair of ranks.

use gyan_results::{Summary, TrafficKind};

use super::{Data, TakeRow};
use crate::view::value::{Value, cells};
use crate::view::{Column, Kind, column, required};

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
            let matrix = traffic.matrix.iter().flat_map(|row| {
                row.to.iter().map(|&(to, number, bytes)| (row.rank, to, number, bytes))
            });
            // Of a large job these are all that there is.
            let heaviest = traffic.heaviest.iter().filter(|_| traffic.matrix.is_empty());
            let heaviest = heaviest.map(|pair| (pair.from, Some(pair.to), pair.number, pair.bytes));
            for (from, to, number, bytes) in matrix.chain(heaviest) {
                take(&cells![kind, Value::Rank(from), to.map(Value::Rank), number, bytes])?;
            }
        }
        Ok(())
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}
