//! How a program scales: a row for each number at each size, with the value of the law there.

use gyan_results::Scaling;

use crate::document::data::{Data, TakeRow, word};
use crate::document::value::row;
use crate::document::{Column, Kind, column, required};

const COLUMNS: [Column; 13] = [
    required("kind", Kind::Text),
    required("name", Kind::Text),
    required("unit", Kind::Text),
    // The number of ranks, or the value of the setting.
    required("size", Kind::Double),
    required("ranks", Kind::Integer),
    required("hosts", Kind::Integer),
    required("runs", Kind::Integer),
    required("min", Kind::Double),
    required("avg", Kind::Double),
    required("max", Kind::Double),
    // Relative to the average, from the fitted law.
    column("law", Kind::Double),
    column("law_low", Kind::Double),
    column("law_high", Kind::Double),
];

pub(crate) fn scaling(of: &Scaling) -> Data<'_> {
    let rows = move |take: &mut TakeRow| {
        for row in &of.rows {
            for point in &row.points {
                let is_this = |size: f64| size.total_cmp(&point.size).is_eq();
                let Some(size) = of.sizes.iter().find(|size| is_this(size.size)) else { continue };
                let law = row.average.curve.iter().find(|at| is_this(at.size));
                let mut cells = row![word(row.kind)?, &row.name, word(row.unit)?, point.size];
                cells.extend(row![u64::from(size.ranks), size.hosts, size.runs.len()]);
                cells.extend(row![point.min, point.avg, point.max]);
                cells.extend(row![
                    law.map(|law| law.value),
                    law.map(|law| law.low),
                    law.map(|law| law.high)
                ]);
                take(&cells)?;
            }
        }
        Ok(())
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}
