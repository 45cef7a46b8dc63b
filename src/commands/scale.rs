//! `gyan scale`: how the numbers of a program grow over runs of several sizes.

use std::io::Write;

use gyan_results::{Scaling, write_json};
use wildmatch::WildMatch;

use crate::cli::ScaleOptions;
use crate::comparison::scaling::{Question, scaling};
use crate::error::Error;
use crate::format::ReportFormat as Format;
use crate::input::runs;
use crate::output::{may_be_page, print, to_file};
use crate::view::page::Page;
use crate::view::{self, data};
use crate::{DONE, INCOMPLETE, render, say};

pub(crate) fn scale(options: &ScaleOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
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
    match (&options.page.output, format) {
        (Some(file), _) => {
            to_file(file, options.page.force, |page| {
                render::html(page, &page_of(&scaling, options), "")
            })?;
            anstream::println!("{}", file.display());
        }
        (None, format) => show(&scaling, options, format)?,
    }
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
    may_be_page("gyan scale", options.page.output.as_deref(), is_page, options.page.force)
}

fn show(scaling: &Scaling, options: &ScaleOptions, format: Format) -> Result<(), Error> {
    let view = view::scaling(scaling, !options.vars.is_empty(), options.all);
    print(|mut out: &mut dyn Write| match format {
        Format::Table => render::table(out, &view),
        Format::Markdown => render::markdown(out, &view),
        Format::Csv => {
            render::all_rows(data::scaling(scaling), |columns| render::Csv::new(out, columns))
        }
        Format::Json => write_json(out, scaling),
        Format::Html => render::html(&mut out, &page_of(scaling, options), ""),
    })
}

fn page_of<'a>(scaling: &'a Scaling, options: &ScaleOptions) -> Page<'a> {
    view::page_of_scaling(scaling, !options.vars.is_empty())
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
