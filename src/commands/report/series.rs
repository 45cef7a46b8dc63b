//! `gyan report --series`: how sampled variables changed over the run, from the profiles of the ranks. A
//! summary does not hold that: it takes one line for each rank.

use std::io::{self, IsTerminal};

use gyan_results::Summary;
use wildmatch::WildMatch;

use super::Format;
use crate::error::Error;
use crate::input::source::Source;
use crate::{output, parts, print, render};

/// Number of parts of a line when there is no terminal width to fill.
const WIDTH: usize = 60;
/// Characters next to the bars in a terminal.
const BESIDE: usize = 40;

pub(super) fn show(
    source: &Source,
    summary: &Summary,
    glob: &str,
    format: Format,
    all: bool,
) -> Result<(), Error> {
    if source.is_empty() {
        return Err(Error::new(
            source.path().display(),
            "holds a summary and no rank profiles",
            "only the profiles of the ranks have a series",
        ));
    }
    source.warn_of_few();
    let pattern = WildMatch::new(glob);
    let elapsed_s = summary.job.elapsed_s;
    let width = width();
    // Condensed to what is shown before the next profile is read: a series can be long.
    let ranks = source.of_each(&summary.job.id, |profile| {
        let series = profile.series?;
        let names: Vec<String> = series.columns.iter().map(|column| column.name.clone()).collect();
        let matching = series.columns.iter().filter(|column| pattern.matches(&column.name));
        let of = |column| parts::Course::of(profile.rank, &series, column, elapsed_s, width);
        Some((names, matching.filter_map(of).collect::<Vec<_>>()))
    });
    if ranks.iter().all(Option::is_none) {
        return Err(Error::new(
            source.path().display(),
            "the run kept no series",
            "run it with gyan run --series 100ms, or set GYAN_SERIES=100ms",
        ));
    }
    let (names, courses): (Vec<_>, Vec<_>) = ranks.into_iter().flatten().unzip();
    let courses: Vec<parts::Course> = courses.into_iter().flatten().collect();
    if courses.is_empty() {
        let mut names: Vec<String> = names.into_iter().flatten().collect();
        names.sort();
        names.dedup();
        let remedy = if names.is_empty() {
            "no variable was sampled; --sample NAME of gyan run adds one".to_owned()
        } else {
            format!("the run has {}", names.join(", "))
        };
        return Err(Error::new(format!("--series {glob}"), "no sampled variable matches", remedy));
    }
    let view = parts::series(summary, courses, width, all);
    let data = parts::series::rows::series(source.one_by_one(&summary.job.id), &pattern);
    if matches!(format, Format::Json) {
        return output::print(|out| {
            render::all_rows(data, |columns| Ok(render::Json::array(out, columns)))
        });
    }
    print::report(format, &view, data, &())
}

fn width() -> usize {
    let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map_or(WIDTH, |(width, _)| usize::from(width.0).saturating_sub(BESIDE).clamp(20, 160))
}
