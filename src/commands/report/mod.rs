//! `gyan report`: the numbers of a run directory or a pack, in one of several forms.

pub(crate) mod page;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gyan_results::{Summary, Tuning};
use wildmatch::WildMatch;

use crate::cli::ReportOptions;
use crate::commands::tune;
use crate::error::Error;
use crate::format::{ListFormat, ReportFormat as Format};
use crate::input::source::Source;
use crate::input::{packed, page as from_page};
use crate::launch::keepers;
use crate::parts::{self, ReportInput};
use crate::{DONE, INCOMPLETE, print, render};

pub(crate) fn report(options: &ReportOptions) -> Result<u8, Error> {
    let format = options.page.format.clone()?;
    let is_page = matches!(format, Format::Html);
    page::check(options, is_page)?;
    let part = options.part.as_ref();
    let (directories, glob) = directories_and_glob(options)?;
    if let [directory] = &directories[..]
        && let Some(tuning) = tune::found(directory)?
    {
        return of_tune(directory, &tuning, options, format);
    }
    for directory in &directories {
        keepers::write_now(directory);
    }
    let source = Source::open_all(&directories)?;
    let mut summary = source.summarize()?;
    let complete = source.warn_of_gaps(&summary);
    if let Some(glob) = &options.vars {
        keep(&mut summary, glob)?;
    }
    if is_page {
        page::write(&source, &summary, options)?;
    } else {
        let mut input = ReportInput::new(&summary, source.path()).with_source(&source);
        (input.all, input.glob) = (options.all, glob);
        input.is_selection = options.vars.is_some();
        let shown =
            part.map_or_else(|| Ok(parts::report(&input)), |part| (part.option.show)(&input))?;
        print::report(format, shown)?;
    }
    Ok(if complete { DONE } else { INCOMPLETE })
}

/// What a tune found, shown again.
fn of_tune(
    directory: &Path,
    tuning: &Tuning,
    options: &ReportOptions,
    format: Format,
) -> Result<u8, Error> {
    let (shown, files) = (directory.display().to_string(), tune::files_in(directory));
    let format = match format {
        Format::Html => {
            let page = crate::answers::tuning_page(tuning, &shown, &files);
            print::page(&options.page, page)?;
            return Ok(tune::code(tuning));
        }
        Format::Table => Some(ListFormat::Table),
        Format::Markdown => Some(ListFormat::Markdown),
        Format::Json => Some(ListFormat::Json),
        Format::Csv => None,
    };
    let Some(format) = format.filter(|_| !page::names_a_part(options)) else {
        return Err(Error::new(
            &shown,
            "is the directory of a tune, which has neither parts nor rows",
            format!("name one of its runs, in {}", tune::runs(directory).display()),
        ));
    };
    print::listing(format, &crate::answers::tuning(tuning, &shown, &files), tuning)?;
    Ok(tune::code(tuning))
}

/// How a run is printed that has just ended.
pub(crate) fn first_screen(
    out: &mut impl Write,
    summary: &Summary,
    directory: &Path,
) -> io::Result<()> {
    render::table(out, &parts::first_screen(&ReportInput::new(summary, directory)))
}

/// The run directories, and what the option of a part takes: in `--phase DIR` the directory stands where a name could.
fn directories_and_glob(options: &ReportOptions) -> Result<(Vec<PathBuf>, Option<&str>), Error> {
    let glob = options.part.as_ref().and_then(|part| part.glob.as_deref());
    match glob {
        _ if !options.directories.is_empty() => Ok((options.directories.clone(), glob)),
        Some(name) if is_run(Path::new(name)) => Ok((vec![name.into()], Some(""))),
        name => Err(Error::new(
            format!("--phase {}", name.unwrap_or_default()),
            "no run directory",
            "name one: gyan report --phase NAME DIR",
        )),
    }
}

fn is_run(path: &Path) -> bool {
    path.is_dir() || packed::is_named_so(path) || from_page::is_page(path)
}

/// Keeps what matches; it is an error when nothing does, since that is a spelling mistake.
fn keep(summary: &mut Summary, glob: &str) -> Result<(), Error> {
    let pattern = WildMatch::new(glob);
    summary.pvars.retain(|pvar| pattern.matches(&pvar.name));
    summary.calls.retain(|call| pattern.matches(&call.name));
    summary.samples.retain(|samples| pattern.matches(&samples.name));
    if let Some(sites) = &mut summary.sites {
        sites.sites.retain(|site| pattern.matches(&site.function));
    }
    for phase in &mut summary.phases {
        phase.pvars.retain(|pvar| pattern.matches(&pvar.name));
        phase.calls.retain(|call| pattern.matches(&call.name));
        phase.samples.retain(|samples| pattern.matches(&samples.name));
    }
    summary
        .coverage
        .skipped
        .retain(|skipped| skipped.name.as_deref().is_some_and(|name| pattern.matches(name)));
    let nothing = summary.pvars.is_empty()
        && summary.calls.is_empty()
        && summary.samples.is_empty()
        && summary.coverage.skipped.is_empty();
    if nothing {
        return Err(Error::new(
            format!("--vars {glob}"),
            "no variable or function matches",
            "leave it out to see all of them",
        ));
    }
    Ok(())
}
