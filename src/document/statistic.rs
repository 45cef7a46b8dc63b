//! The columns and the cells of a number over the ranks.

use gyan_results::{Statistic, Unit};

use crate::document::value::{Amount, InUnit};
use crate::document::{Column, numbers, texts};

/// Columns of text, and after them those of a [`Statistic`].
pub(crate) fn columns<const N: usize>(first: [&'static str; N]) -> Vec<Column> {
    let mut columns = texts(first);
    columns.extend(numbers(["MIN (RANK)", "AVERAGE", "MAX (RANK)", "STD DEV"]));
    columns
}

pub(crate) fn statistic_cells(statistic: &Statistic, unit: Unit) -> [Amount; 4] {
    let [min, max] = unit.extremes(statistic);
    [min, unit.double(statistic.avg), max, unit.double(statistic.stddev)]
}
