//! `gyan report --format html`: the run as one page, which can be read like a run directory; or a fragment of it.

use std::io::{self, Write};
use std::path::Path;

use gyan_results::Summary;

use crate::cli::ReportOptions;
use crate::error::Error;
use crate::input::page::element;
use crate::input::source::Source;
use crate::output::{self, may_be_page, write_page};
use crate::parts::{ReportInput, page_of_first_screen, page_of_run};
use crate::{print, render};

/// Refuses options that do not fit together, before any work is done.
pub(super) fn check(options: &ReportOptions, is_page: bool) -> Result<(), Error> {
    if is_page && names_a_part(options) {
        return Err(Error::new(
            "--format html",
            "the page has every part of the report",
            "leave out the option that names one; --fragment=PART is an element with a part of the page",
        ));
    }
    may_be_page("gyan report", &options.page, is_page)
}

pub(super) fn names_a_part(options: &ReportOptions) -> bool {
    options.vars.is_some() || options.part.is_some()
}

/// To a file, or to standard output. A fragment that names no part is the first screen.
pub(super) fn write(
    source: &Source,
    summary: &Summary,
    options: &ReportOptions,
) -> Result<(), Error> {
    let input = ReportInput::new(summary, source.path()).with_source(source);
    match options.page.fragment.as_deref() {
        None => write_page(&options.page, |out| made(out, source, summary)),
        Some("") => print::page(&options.page, page_of_first_screen(&input)),
        Some(_) => print::page(&options.page, page_of_run(&input, &[])),
    }
}

pub(crate) fn to_file(
    source: &Source,
    summary: &Summary,
    file: &Path,
    force: bool,
) -> Result<(), Error> {
    output::to_file(file, force, |out| made(out, source, summary))
}

fn made(out: &mut (impl Write + ?Sized), source: &Source, summary: &Summary) -> io::Result<()> {
    let input = ReportInput::new(summary, source.path()).with_source(source);
    let (element, left_out) = element(summary)?;
    render::html(out, &page_of_run(&input, &left_out), &element)
}
