//! One row for each bar of a histogram.

use crate::document::data::{Data, TakeRow};
use crate::document::value::cells;
use crate::document::{Column, Kind, column, required};
use crate::parts::histogram::Histogram;

const COLUMNS: [Column; 7] = [
    required("kind", Kind::Text),
    required("name", Kind::Text),
    column("object", Kind::Text),
    required("from", Kind::Double),
    required("below", Kind::Double),
    required("count", Kind::Integer),
    column("bytes", Kind::Integer),
];

pub(crate) fn histograms(histograms: &[Histogram]) -> Data<'_> {
    let rows = move |take: &mut TakeRow| {
        histograms.iter().try_for_each(|histogram| {
            let (name, object) = (&histogram.name, histogram.object.as_ref());
            let mut bars = histogram.bars.iter();
            bars.try_for_each(|bar| {
                let (from, below) = (bar.from, bar.below);
                take(&cells![histogram.kind, name, object, from, below, bar.count, bar.bytes])
            })
        })
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}
