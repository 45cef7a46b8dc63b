//! `gyan export`: what each rank did, as long tables for other programs; for a summary, which has no single
//! ranks, what they did together.

mod of_summary;
mod one;
mod runs;
mod tables;

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::cli::ExportOptions;
use crate::document::Column;
use crate::error::Error;
use crate::format::ExportFormat as Format;
use crate::input::source::Source;
use crate::output::{may_write, put, readable_beside};
use crate::render::{Csv, Json, Parquet, Rows};
use crate::{DONE, INCOMPLETE, output, say};
use tables::ExportTable;

pub(crate) fn export(options: &ExportOptions) -> Result<u8, Error> {
    if options.schema {
        return tables::describe(options);
    }
    if options.runs {
        return runs::export(options);
    }
    let source = Source::open_all(&options.directories)?;
    if source.is_empty() {
        of_summary::export(&source, options)
    } else {
        one::export(&source, options)
    }
}

/// What a writer needs to know about a table.
struct Head {
    name: &'static str,
    about: &'static str,
    columns: Vec<Column>,
}

impl Head {
    /// `before`: columns before those of the table.
    fn new(table: ExportTable, before: &[Column]) -> Head {
        let columns = [before, &table.columns()].concat();
        Head { name: table.name(), about: table.about(), columns }
    }
}

/// A directory gets all tables when none is named.
fn directory(options: &ExportOptions) -> Option<&Path> {
    options.output.as_deref().filter(|output| is_directory(output))
}

/// Says where `what` was exported to, unless that is standard output.
fn said(options: &ExportOptions, what: impl FnOnce() -> String) -> Result<(), Error> {
    let Some(output) = &options.output else { return Ok(()) };
    output::say(format_args!("{} exported to {}", what(), output.display()))
}

/// A directory that exists, or one to create because the name ends with a slash.
fn is_directory(output: &Path) -> bool {
    output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The tables of `all` that `names` asks for, each once. `by_default`: those for users who name none.
fn chosen<T>(
    all: Vec<T>,
    names: &[String],
    options: &ExportOptions,
    name: impl Fn(&T) -> &'static str,
    by_default: impl Fn(&T) -> bool,
    unknown: impl Fn(&str) -> Error,
) -> Result<Vec<T>, Error> {
    if let Some(wanted) = names.iter().find(|wanted| all.iter().all(|of| name(of) != **wanted)) {
        return Err(unknown(wanted));
    }
    let is_chosen = |of: &T| match names {
        [] => by_default(of),
        names => names.iter().any(|wanted| wanted == name(of)),
    };
    let tables: Vec<T> = all.into_iter().filter(is_chosen).collect();
    if tables.len() > 1 && directory(options).is_none() {
        let remedy = "name a directory with -o, such as -o tables/";
        return Err(Error::new("gyan export", "several tables are several files", remedy));
    }
    Ok(tables)
}

/// Has `write` write the rows of tables to where the user wants them. Returns what `write` returns, or none
/// when the reader of standard output has left.
fn to_place<T>(
    options: &ExportOptions,
    heads: &[Head],
    write: impl FnOnce(Vec<Box<dyn Rows + '_>>) -> io::Result<T>,
) -> Result<Option<T>, Error> {
    let format = options.format.clone().ok_or_else(no_format)??;
    let Some(output) = &options.output else {
        return to_standard_output(heads, format, write);
    };
    let failed = |error: io::Error| Error::io(output, &error, "name another file with -o");
    let directory = directory(options);
    let place = |head: &Head| match directory {
        Some(directory) => directory.join(format!("{}.{}", head.name, format.ending())),
        None => output.clone(),
    };
    let files: Vec<PathBuf> = heads.iter().map(place).collect();
    for file in &files {
        may_write(file, options.force)?;
    }
    if let Some(directory) = directory {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let temporaries = files.iter().map(|file| readable_beside(file));
    let temporaries: Vec<NamedTempFile> = temporaries.collect::<io::Result<_>>().map_err(failed)?;
    let with_files = heads.iter().zip(&temporaries);
    let writers = with_files.map(|(head, file)| writer(head, format, file.as_file()));
    let writers = writers.collect::<io::Result<_>>().map_err(failed)?;
    let written = write(writers).map_err(failed)?;
    for (temporary, file) in temporaries.into_iter().zip(&files) {
        put(temporary, file, options.force).map_err(failed)?;
    }
    Ok(Some(written))
}

fn no_format() -> Error {
    Error::new("gyan export", "no format", "name one with --format")
}

fn to_standard_output<T>(
    heads: &[Head],
    format: Format,
    write: impl FnOnce(Vec<Box<dyn Rows + '_>>) -> io::Result<T>,
) -> Result<Option<T>, Error> {
    if format == Format::Parquet && io::stdout().is_terminal() {
        let remedy = "name a file with -o";
        return Err(Error::new("gyan export", "Parquet is not for a terminal", remedy));
    }
    let out = io::stdout();
    let writers = heads.iter().map(|head| writer(head, format, &out));
    match writers.collect::<io::Result<_>>().and_then(write) {
        // The reader of a pipe may have seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
        Err(error) => Err(Error::new("standard output", crate::error::reason(&error), "make room")),
        Ok(written) => Ok(Some(written)),
    }
}

type Writers<'w> = Vec<(ExportTable, Box<dyn Rows + 'w>)>;

fn writer<'w>(
    Head { name, about, columns }: &Head,
    format: Format,
    out: impl Write + Send + 'w,
) -> io::Result<Box<dyn Rows + 'w>> {
    let out = BufWriter::new(out);
    Ok(match format {
        Format::Csv => Box::new(Csv::new(out, columns)?),
        Format::Jsonl => Box::new(Json::lines(out, columns)),
        Format::Parquet => Box::new(Parquet::new(out, [name, about], columns)?),
    })
}

/// Says what is missing, on stderr.
fn done(source: &Source, bad: &[String]) -> u8 {
    say::warn_of(bad, |more| format!("{}: {more} more are damaged", source.path().display()));
    if source.warn() && bad.is_empty() { DONE } else { INCOMPLETE }
}
