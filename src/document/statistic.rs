//! The columns and the cells of a number over the ranks.

use gyan_results::{Class, Datatype, PvarSummary, Statistic, Unit};

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

/// Seconds for a timer whose type is a double (MPI 4.1, 15.3.7).
pub(crate) fn unit(pvar: &PvarSummary) -> Unit {
    let timer = pvar.effective_class() == Class::Timer && pvar.datatype == Datatype::Double;
    if timer { Unit::Seconds } else { Unit::Count }
}
