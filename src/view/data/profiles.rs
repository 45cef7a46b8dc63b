//! What ranks read and called as long tables: one row for each rank, variable, object and element, or
//! for each rank and function.

use std::collections::BTreeMap;
use std::io;

use gyan_results::{Element, Pvar, RankProfile, Readings};

use super::{TakeRow, classes, element};
use crate::view::value::{Value, cells};
use crate::view::{Column, Kind, column, required};

/// A long table: its columns, and the rows of a profile.
pub(crate) struct LongTable {
    pub(crate) columns: &'static [Column],
    pub(crate) rows: fn(&RankProfile, &mut TakeRow) -> io::Result<()>,
}

/// The performance variables.
pub(crate) const VARIABLES: LongTable = LongTable {
    columns: &[
        required("job", Kind::Text),
        required("rank", Kind::Integer),
        required("variable", Kind::Text),
        required("class", Kind::Text),
        required("behaves_as", Kind::Text),
        column("object", Kind::Text),
        required("element", Kind::Text),
        column("start", Kind::Number),
        column("end", Kind::Number),
        column("delta", Kind::Number),
        column("samples", Kind::Integer),
        column("sampled_min", Kind::Number),
        column("sampled_mean", Kind::Double),
        column("sampled_max", Kind::Number),
    ],
    rows: variables,
};

/// The functions that were called.
pub(crate) const CALLS: LongTable = LongTable {
    columns: &[
        required("job", Kind::Text),
        required("rank", Kind::Integer),
        required("function", Kind::Text),
        required("count", Kind::Integer),
        column("bytes", Kind::Integer),
        column("time_s", Kind::Double),
        column("time_error_s", Kind::Double),
    ],
    rows: calls,
};

fn variables(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    for pvar in &profile.pvars {
        let samples = pvar.samples.as_ref().map(|samples| samples.n);
        for (of, readings) in elements(pvar) {
            let Readings { delta, start, end, sampled_min, sampled_mean, sampled_max } = readings;
            let [class, behaves_as] = classes(pvar.class, pvar.behaves_as);
            take(&cells![
                &profile.job.id,
                Value::Rank(profile.rank),
                &pvar.name,
                class,
                behaves_as,
                pvar.object.as_ref(),
                element(of),
                start,
                end,
                delta,
                samples,
                sampled_min,
                sampled_mean,
                sampled_max,
            ])?;
        }
    }
    Ok(())
}

/// What is known of each element; a variable of which no number is known has one row all the same.
fn elements(pvar: &Pvar) -> BTreeMap<Element, Readings> {
    let mut elements = pvar.elements();
    if elements.is_empty() {
        elements.insert(Element::Scalar, Readings::default());
    }
    elements
}

fn calls(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    profile.calls.iter().try_for_each(|call| {
        take(&cells![
            &profile.job.id,
            Value::Rank(profile.rank),
            &call.name,
            call.count,
            call.bytes,
            call.time_s,
            call.time_error_s,
        ])
    })
}

#[cfg(test)]
mod tests {
    use gyan_results::Number;

    use super::*;

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/results-schema/examples/rank.json");
        let profile = gyan_results::read_rank(path.as_ref()).unwrap();
        for table in [VARIABLES, CALLS] {
            let mut rows = 0;
            (table.rows)(&profile, &mut |row| {
                rows += 1;
                assert_eq!(row.len(), table.columns.len());
                for (cell, column) in row.iter().zip(table.columns) {
                    let fits = match cell {
                        Value::Nothing => !column.required,
                        Value::Text(_) => column.kind == Kind::Text,
                        Value::Rank(_) => column.kind == Kind::Integer,
                        Value::Amount(amount) => match amount.number {
                            Number::Integer(_) => column.kind != Kind::Text,
                            Number::Double(_) => {
                                matches!(column.kind, Kind::Double | Kind::Number)
                            }
                        },
                        _ => false,
                    };
                    assert!(fits, "{}: {cell:?}", column.name);
                }
                Ok(())
            })
            .unwrap();
            assert!(rows >= 3);
        }
    }
}
