//! Runs of the same program, one after the other.

use gyan_results::Summary;

use crate::document::value::{Value, row, seconds};
use crate::document::{Section, View, numbers, plural, texts};
use crate::parts::headings;
use crate::statistics;

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
    let is_one = matches!(repeats, [of] if of.name.is_empty());
    let rows = repeats.iter().filter_map(|of| {
        let times: Vec<f64> = of.summaries.iter().map(|summary| summary.job.elapsed_s).collect();
        let median = statistics::median(&times)?;
        let (least, most) = times.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), time| {
            (least.min(*time), most.max(*time))
        });
        let cells = row![of.name, times.len(), seconds(median), seconds(least), seconds(most)];
        Some(if is_one { cells.into_iter().skip(1).collect() } else { cells })
    });
    let mut columns = if is_one { Vec::new() } else { texts(["SETTING"]) };
    columns.extend(numbers(["RUNS", "MEDIAN", "SHORTEST", "LONGEST"]));
    let title = format!("{number} run{}", plural(number as u64));
    let subtitle: Vec<Value> = first.map(headings::without_time).into_iter().collect();
    let section = Section { title: "".into(), columns, rows: rows.collect(), notes: Vec::new() };
    View { title: title.into(), subtitle, sections: vec![section] }
}
