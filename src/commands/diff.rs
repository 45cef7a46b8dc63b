//! `gyan diff`: what changed from some runs to others.

use std::path::PathBuf;

use crate::answers;
use crate::cli::DiffOptions;
use crate::comparison::difference::{self, difference};
use crate::document::{Document, Presentation};
use crate::error::Error;
use crate::findings::{self, CallPlaces};
use crate::format::ReportFormat as Format;
use crate::input::runs::{self, Run};
use crate::output::may_be_page;
use crate::{DONE, INCOMPLETE, print, render};

pub(crate) fn diff(options: &DiffOptions) -> Result<u8, Error> {
    let format = options.page.format.clone()?;
    let is_page = matches!(format, Format::Html);
    may_be_page("gyan diff", &options.page, is_page)?;
    let (a, b) = sides(options)?;
    let (a, b) = (runs::open(a)?, runs::open(b)?);
    let mut difference = difference(&of_side(&a), &of_side(&b));
    difference.answer = render::text(&answers::answer(&difference));
    let page = || answers::page_of_comparison(&difference);
    print::answer(format, &options.page, page, || Presentation {
        view: answers::comparison(&difference, options.all),
        rows: answers::comparison_rows(&difference),
        document: Document::new(&difference),
    })?;
    let is_whole = a.iter().chain(&b).all(|run| run.is_complete);
    Ok(if is_whole { DONE } else { INCOMPLETE })
}

/// The runs of each side: what is before and after `--`, or one each.
fn sides(options: &DiffOptions) -> Result<(&[PathBuf], &[PathBuf]), Error> {
    match (options.a.as_slice(), options.b.as_slice()) {
        ([a, b], []) => Ok((std::slice::from_ref(a), std::slice::from_ref(b))),
        (a @ [_, ..], b @ [_, ..]) => Ok((a, b)),
        (a, _) => Err(Error::new(
            "gyan diff",
            format!(
                "{} run{}, and nothing says which of them are side B",
                a.len(),
                if a.len() == 1 { "" } else { "s" }
            ),
            "name two runs, or put -- between those of both sides: gyan diff A1 A2 -- B1 B2",
        )),
    }
}

fn of_side(runs: &[Run]) -> Vec<difference::ComparedRun<'_>> {
    runs.iter().map(with_findings).collect()
}

fn with_findings(run: &Run) -> difference::ComparedRun<'_> {
    let Run { path, summary, is_complete } = run;
    let findings = findings::find(summary, &summary.queues(), &CallPlaces::default()).findings;
    let name = path.display().to_string();
    difference::ComparedRun { name, summary, findings, is_complete: *is_complete }
}
