//! `gyan report`: the numbers of a run directory, in one of several forms.

use std::io::{self, Write};

use gyan_results::Summary;
use wildmatch::WildMatch;

use crate::cli::{Format, ReportOptions};
use crate::error::Error;
use crate::view::View;
use crate::{DONE, INCOMPLETE, directory, render};

pub(crate) fn report(options: &ReportOptions) -> Result<u8, Error> {
    let mut summary = directory::summarize(&options.directory)?;
    let complete = directory::warn_of_gaps(&options.directory, &summary);
    if let Some(glob) = &options.vars {
        keep(&mut summary, glob)?;
    }
    let mut out = anstream::stdout().lock();
    match print(&mut out, &summary, options.format, options.all).and_then(|()| out.flush()) {
        // The reader of a pipe may have seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new("standard output", crate::error::reason(&error), "make room"))
        }
        _ => Ok(if complete { DONE } else { INCOMPLETE }),
    }
}

/// Prints a summary.
pub(crate) fn print(
    out: &mut impl Write,
    summary: &Summary,
    format: Format,
    all: bool,
) -> io::Result<()> {
    match format {
        Format::Table => render::table(out, &View::of(summary, all)),
        Format::Markdown => render::markdown(out, &View::of(summary, all)),
        Format::Csv => render::csv(out, summary),
        Format::Json => gyan_results::write_summary(out, summary),
    }
}

/// Keeps what matches; that nothing does is an error, because it is a spelling mistake.
fn keep(summary: &mut Summary, glob: &str) -> Result<(), Error> {
    let pattern = WildMatch::new(glob);
    summary.pvars.retain(|pvar| pattern.matches(&pvar.name));
    summary.calls.retain(|call| pattern.matches(&call.name));
    summary
        .coverage
        .skipped
        .retain(|skipped| skipped.name.as_deref().is_some_and(|name| pattern.matches(name)));
    if summary.pvars.is_empty() && summary.calls.is_empty() && summary.coverage.skipped.is_empty() {
        return Err(Error::new(
            format!("--vars {glob}"),
            "no variable or function matches",
            "leave it out to see all of them",
        ));
    }
    Ok(())
}
