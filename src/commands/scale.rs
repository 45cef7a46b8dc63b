//! `gyan scale`: how the numbers of a program grow over runs of several sizes.

use gyan_results::Scaling;
use wildmatch::WildMatch;

use crate::answers;
use crate::cli::ScaleOptions;
use crate::comparison::scaling::{Question, scaling};
use crate::document::{Document, Presentation};
use crate::error::Error;
use crate::format::ReportFormat as Format;
use crate::input::runs;
use crate::output::may_be_page;
use crate::{DONE, INCOMPLETE, print, say};

pub(crate) fn scale(options: &ScaleOptions) -> Result<u8, Error> {
    let format = options.page.format.clone()?;
    check(options, format)?;
    let runs = runs::open(&options.runs)?;
    let by = options.by.as_deref();
    let question = Question { by, is_weak: options.weak, target: options.target };
    let (mut scaling, left_out) = scaling(&runs, &question)?;
    let is_whole = left_out.is_empty() && runs.iter().all(|run| run.is_complete);
    let more = |more| format!("{more} more runs are left out");
    say::warn_of(left_out, more);
    if !options.vars.is_empty() {
        keep(&mut scaling, &options.vars)?;
    }
    let has_names = !options.vars.is_empty();
    let page = || answers::page_of_scaling(&scaling, has_names);
    print::answer(format, &options.page, page, || Presentation {
        view: answers::scaling(&scaling, has_names, options.all),
        rows: answers::scaling_rows(&scaling),
        document: Document::new(&scaling),
    })?;
    Ok(if is_whole { DONE } else { INCOMPLETE })
}

/// Refuses options that do not fit together, before any run is read.
fn check(options: &ScaleOptions, format: Format) -> Result<(), Error> {
    if let Some(target) = options.target
        && (target <= 0.0 || !target.is_finite())
    {
        let remedy = "name the size to predict";
        return Err(Error::new(format!("--target {target}"), "sizes must be above 0", remedy));
    }
    let is_page = matches!(format, Format::Html);
    may_be_page("gyan scale", &options.page, is_page)
}

/// Keeps what matches; it is an error when nothing does, since that is a spelling mistake.
fn keep(scaling: &mut Scaling, globs: &[String]) -> Result<(), Error> {
    let patterns: Vec<WildMatch> = globs.iter().map(|glob| WildMatch::new(glob)).collect();
    scaling.rows.retain(|row| patterns.iter().any(|pattern| pattern.matches(&row.name)));
    if scaling.rows.is_empty() {
        let what = format!("--vars {}", globs.join(","));
        let remedy = "gyan scale --all shows the names";
        return Err(Error::new(what, "no function and no variable matches", remedy));
    }
    Ok(())
}
