//! How a number over the ranks reads: its cells, its columns and its unit.

use gyan_results::{Class, Datatype, Number, PvarSummary, Statistic};

use super::numbers::{double_text, integer_text, seconds, share};
use super::{Align, Column};

const STATISTIC_COLUMNS: [Column; 4] = [
    Column { title: "MIN (RANK)", align: Align::Right },
    Column { title: "AVERAGE", align: Align::Right },
    Column { title: "MAX (RANK)", align: Align::Right },
    Column { title: "STD DEV", align: Align::Right },
];

/// Columns of text, and those of a [`Statistic`] behind.
pub(super) fn columns(first: impl IntoIterator<Item = &'static str>) -> Vec<Column> {
    let first = first.into_iter().map(|title| Column { title, align: Align::Left });
    first.chain(STATISTIC_COLUMNS).collect()
}

pub(super) fn statistic_cells(statistic: &Statistic, unit: Unit) -> [String; 4] {
    let [min, max] = extreme_cells(statistic, unit);
    [min, unit.mean(statistic.avg), max, unit.mean(statistic.stddev)]
}

/// Minimum and maximum, each with its rank.
pub(super) fn extreme_cells(statistic: &Statistic, unit: Unit) -> [String; 2] {
    [
        format!("{} ({})", unit.number(statistic.min), statistic.min_rank),
        format!("{} ({})", unit.number(statistic.max), statistic.max_rank),
    ]
}

/// What a number is in.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Seconds,
    /// A number of things, or whatever unit the library's description gives.
    Count,
    /// Of the whole, as a percentage.
    Share,
}

/// Seconds for a timer whose type is a double (MPI 4.1, 15.3.7).
pub(super) fn unit(pvar: &PvarSummary) -> Unit {
    let timer = pvar.effective_class() == Class::Timer && pvar.datatype == Datatype::Double;
    if timer { Unit::Seconds } else { Unit::Count }
}

impl Unit {
    pub(super) fn number(self, number: Number) -> String {
        match (self, number) {
            (Unit::Count, Number::Integer(integer)) => integer_text(integer),
            (unit, number) => unit.mean(number.as_f64()),
        }
    }

    pub(super) fn mean(self, mean: f64) -> String {
        match self {
            Unit::Seconds => seconds(mean),
            Unit::Count => double_text(mean),
            Unit::Share => share(mean),
        }
    }
}
