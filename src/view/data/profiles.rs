//! What ranks read and called as long tables: one row for each rank, variable, object and element, or
//! for each rank and function.

use std::collections::BTreeMap;
use std::io;

use gyan_results::{Element, Number, Pvar, RankProfile, Values};

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

/// The numbers of one element, in the order of the columns.
#[derive(Default)]
struct Numbers {
    start: Option<Number>,
    end: Option<Number>,
    delta: Option<Number>,
    sampled: [Option<Number>; 3],
}

fn variables(profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
    for pvar in &profile.pvars {
        let samples = pvar.samples.as_ref().map(|samples| samples.n);
        for (of, Numbers { start, end, delta, sampled: [min, mean, max] }) in elements(pvar) {
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
                min,
                mean,
                max,
            ])?;
        }
    }
    Ok(())
}

/// Where the numbers of a reading go.
type Field = fn(&mut Numbers) -> &mut Option<Number>;

/// What is known of each element; a variable of which no number is known has one row all the same.
fn elements(pvar: &Pvar) -> BTreeMap<Element, Numbers> {
    let mut elements: BTreeMap<Element, Numbers> = BTreeMap::new();
    let readings: [(&Option<Values>, Field); 3] = [
        (&pvar.start, |numbers| &mut numbers.start),
        (&pvar.end, |numbers| &mut numbers.end),
        (&pvar.delta, |numbers| &mut numbers.delta),
    ];
    for (values, field) in readings {
        for (element, number) in values.iter().flat_map(of_values) {
            *field(elements.entry(element).or_default()) = Some(number);
        }
    }
    if let Some(samples) = &pvar.samples {
        let sum = samples.sum.as_ref();
        let sampled = [
            (&samples.min, sum.map(|sum| sum.min)),
            (&samples.mean, sum.map(|sum| sum.mean)),
            (&samples.max, sum.map(|sum| sum.max)),
        ];
        for (at, (numbers, sum)) in sampled.into_iter().enumerate() {
            let of_sum = sum.map(|sum| (Element::Sum, sum));
            for (element, number) in of_elements(numbers).chain(of_sum) {
                let numbers = elements.entry(element).or_default();
                numbers.sampled.iter_mut().skip(at).take(1).for_each(|cell| *cell = Some(number));
            }
        }
    }
    if elements.is_empty() {
        elements.insert(Element::Scalar, Numbers::default());
    }
    elements
}

fn of_values(values: &Values) -> Vec<(Element, Number)> {
    match values {
        Values::Elements(elements) => of_elements(elements).collect(),
        Values::Digest(digest) => {
            vec![(Element::Sum, digest.sum), (Element::Min, digest.min), (Element::Max, digest.max)]
        }
        Values::Text(_) => Vec::new(),
    }
}

fn of_elements(elements: &[Number]) -> impl Iterator<Item = (Element, Number)> {
    let scalar = elements.len() == 1;
    let element = move |index| if scalar { Element::Scalar } else { Element::Index(index) };
    elements.iter().enumerate().map(move |(index, &number)| (element(index), number))
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
