//! `gyan report`: the numbers of a run directory, in one of several forms.

use std::io::{self, Write};

use gyan_results::Summary;
use wildmatch::WildMatch;

use crate::cli::{Format, ReportOptions};
use crate::error::Error;
use crate::{DONE, INCOMPLETE, directory, render, view};

pub(crate) fn report(options: &ReportOptions) -> Result<u8, Error> {
    let mut summary = directory::summarize(&options.directory)?;
    let complete = directory::warn_of_gaps(&options.directory, &summary);
    if let Some(glob) = &options.vars {
        keep(&mut summary, glob)?;
    }
    let mut out = anstream::stdout().lock();
    let printed = if options.environment {
        let view = view::environment(&summary);
        match options.format {
            Format::Table => render::table(&mut out, &view),
            Format::Markdown => render::markdown(&mut out, &view),
            Format::Csv => render::environment_csv(&mut out, &summary.cvars),
            Format::Json => serde_json::to_writer_pretty(&mut out, &summary.cvars)
                .map_err(io::Error::from)
                .and_then(|()| writeln!(out)),
        }
    } else {
        print(&mut out, &summary, options.format, options.all)
    };
    match printed.and_then(|()| out.flush()) {
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
        Format::Table => render::table(out, &view::report(summary, all)),
        Format::Markdown => render::markdown(out, &view::report(summary, all)),
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
