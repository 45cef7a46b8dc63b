//! How a program scales: a row for each number at each size, with the value of the law there.

use gyan_results::{Predicted, ScalePoint, ScaleRow, ScaleSize, Scaling};

use crate::document::data::{Data, columns, word};

pub(crate) fn scaling(of: &Scaling) -> Data<'_> {
    let points = of.rows.iter().flat_map(|row| row.points.iter().map(move |point| (row, point)));
    Data::new(points.filter_map(|(row, point)| {
        let is_this = |size: f64| size.total_cmp(&point.size).is_eq();
        let size = of.sizes.iter().find(|size| is_this(size.size))?;
        let law = row.average.curve.iter().find(|at| is_this(at.size));
        Some((row, point, size, law))
    }))
}

columns! { (row, point, size, law) in (&ScaleRow, &ScalePoint, &ScaleSize, Option<&Predicted>);
    required(kind: Text) => word(row.kind)?,
    required(name: Text) => &row.name,
    required(unit: Text) => word(row.unit)?,
    // The number of ranks, or the value of the setting.
    required(size: Double) => point.size,
    required(ranks: Integer) => u64::from(size.ranks),
    required(hosts: Integer) => size.hosts,
    required(runs: Integer) => size.runs.len(),
    required(min: Double) => point.min,
    required(avg: Double) => point.avg,
    required(max: Double) => point.max,
    // Relative to the average, from the fitted law.
    column(law: Double) => law.map(|law| law.value),
    column(law_low: Double) => law.map(|law| law.low),
    column(law_high: Double) => law.map(|law| law.high),
}
