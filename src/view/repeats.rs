//! Runs of the same program, one after the other.

use gyan_results::Summary;

use super::headings;
use super::value::{Value, row, seconds};
use super::{Section, View, numbers, plural, texts};
use crate::comparison::statistics;

/// Runs that differ in nothing that gyan set.
pub(crate) struct Repeats<'a> {
    /// Empty when there are no other settings.
    pub(crate) name: &'a str,
    pub(crate) summaries: &'a [Summary],
}

/// How long they took.
pub(crate) fn repeats<'a>(repeats: &[Repeats<'a>]) -> View<'a> {
    let first = repeats.iter().find_map(|repeats| repeats.summaries.first());
    let number: usize = repeats.iter().map(|repeats| repeats.summaries.len()).sum();
    let rows = repeats.iter().filter_map(|of| {
        let times: Vec<f64> = of.summaries.iter().map(|summary| summary.job.elapsed_s).collect();
        let median = statistics::median(&times)?;
        let (least, most) = times.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), time| {
            (least.min(*time), most.max(*time))
        });
        Some(row![of.name, times.len(), seconds(median), seconds(least), seconds(most)])
    });
    let mut columns = texts(["SETTING"]);
    columns.extend(numbers(["RUNS", "MEDIAN", "SHORTEST", "LONGEST"]));
    let title = format!("{number} run{}", plural(number as u64));
    let subtitle: Vec<Value> = first.map(headings::title).into_iter().collect();
    let section = Section { title: "".into(), columns, rows: rows.collect(), notes: Vec::new() };
    View { title: title.into(), subtitle, sections: vec![section] }
}
