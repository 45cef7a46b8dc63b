//! `gyan export`: what each rank did, as long tables for other programs.

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::cli::ExportOptions;
use crate::error::Error;
use crate::format::ExportFormat as Format;
use crate::input::source::Source;
use crate::output::{may_write, put, temporary_beside};
use crate::render::{Csv, Json, Parquet, Rows};
use crate::view::data::{CALLS, TABLES, Table, VARIABLES};
use crate::{DONE, INCOMPLETE, say};

pub(crate) fn export(options: &ExportOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
    let directory = options.output.as_deref().filter(|output| is_directory(output));
    let tables = tables(options, directory.is_some())?;
    let source = Source::open_all(&options.directories)?;
    if source.is_empty() {
        return Err(Error::new(
            source.path().display(),
            "holds no rank profiles (rank-NNNNNN.json)",
            "name the run directory of a program that ran under gyan, or a pack of it",
        ));
    }
    source.warn_of_few();
    match (&options.output, directory) {
        (None, _) => to_standard_output(&source, &tables, format),
        (Some(_), Some(directory)) => {
            let place =
                |table: &Table| directory.join(format!("{}.{}", table.name, format.ending()));
            let files: Vec<PathBuf> = tables.iter().map(|table| place(table)).collect();
            to_files(&source, &tables, &files, options, directory)
        }
        (Some(file), None) => to_files(&source, &tables, std::slice::from_ref(file), options, file),
    }
}

/// What is there, or is to be made because its name ends like that of one.
fn is_directory(output: &Path) -> bool {
    output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The tables that are asked for: into a directory all of them, else the variables, when none is named.
fn tables(options: &ExportOptions, to_directory: bool) -> Result<Vec<&'static Table>, Error> {
    let find = |name: &str| {
        TABLES.iter().find(|table| table.name == name).ok_or_else(|| {
            let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
            let remedy = format!("choose one of {}", names.join(", "));
            Error::new(format!("--table {name}"), "is no table", remedy)
        })
    };
    if options.calls {
        return Ok(vec![find(CALLS)?]);
    }
    match options.table.as_slice() {
        [] if to_directory => Ok(TABLES.iter().collect()),
        [] => Ok(vec![find(VARIABLES)?]),
        names => {
            let mut tables: Vec<&Table> = Vec::new();
            for name in names {
                let table = find(name)?;
                if tables.iter().all(|other| other.name != table.name) {
                    tables.push(table);
                }
            }
            if tables.len() > 1 && !to_directory {
                let remedy = "name a directory with -o, such as -o tables/";
                return Err(Error::new("gyan export", "several tables are several files", remedy));
            }
            Ok(tables)
        }
    }
}

fn to_standard_output(
    source: &Source,
    tables: &[&'static Table],
    format: Format,
) -> Result<u8, Error> {
    if format == Format::Parquet && io::stdout().is_terminal() {
        let remedy = "name a file with -o";
        return Err(Error::new("gyan export", "Parquet is nothing for a terminal", remedy));
    }
    let out = io::stdout();
    let writers = tables.iter().map(|table| Ok((*table, writer(table, format, &out)?)));
    match writers.collect::<io::Result<_>>().and_then(|writers| write(source, writers)) {
        // The reader of a pipe may have seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(DONE),
        Err(error) => Err(Error::new("standard output", crate::error::reason(&error), "make room")),
        Ok((_, bad)) => Ok(done(source, &bad)),
    }
}

/// Writes each table to its file. `output`: what the user named.
fn to_files(
    source: &Source,
    tables: &[&'static Table],
    files: &[PathBuf],
    options: &ExportOptions,
    output: &Path,
) -> Result<u8, Error> {
    let format = options.format.clone()?;
    let failed = |error: io::Error| Error::io(output, &error, "name another file with -o");
    for file in files {
        may_write(file, options.force)?;
    }
    if is_directory(output) {
        fs::create_dir_all(output).map_err(failed)?;
    }
    let temporary = |file: &PathBuf| temporary_beside(file);
    let temporaries: Vec<NamedTempFile> =
        files.iter().map(temporary).collect::<io::Result<_>>().map_err(failed)?;
    let with_files = tables.iter().zip(&temporaries);
    let writers =
        with_files.map(|(table, file)| Ok((*table, writer(table, format, file.as_file())?)));
    let writers = writers.collect::<io::Result<_>>().map_err(failed)?;
    let (profiles, bad) = write(source, writers).map_err(failed)?;
    for (temporary, file) in temporaries.into_iter().zip(files) {
        put(temporary, file, options.force).map_err(failed)?;
    }
    let code = done(source, &bad);
    anstream::println!("{profiles} profiles exported to {}", output.display());
    Ok(code)
}

type Writers<'w> = Vec<(&'static Table, Box<dyn Rows + 'w>)>;

fn writer<'w>(
    table: &Table,
    format: Format,
    out: impl Write + Send + 'w,
) -> io::Result<Box<dyn Rows + 'w>> {
    let (out, columns) = (BufWriter::new(out), table.columns());
    Ok(match format {
        Format::Csv => Box::new(Csv::new(out, &columns)?),
        Format::Jsonl => Box::new(Json::lines(out, &columns)),
        Format::Parquet => Box::new(Parquet::new(out, [table.name, table.about], &columns)?),
    })
}

/// How many profiles were exported, and what is wrong with the others.
fn write(source: &Source, mut writers: Writers) -> io::Result<(u64, Vec<String>)> {
    let (mut profiles, mut bad) = (0, Vec::new());
    source.in_order(|name, profile| match profile {
        Ok(profile) => {
            profiles += 1;
            let mut tables = writers.iter_mut();
            tables.try_for_each(|(table, writer)| table.rows(&profile, &mut |row| writer.row(row)))
        }
        Err(why) => {
            bad.push(format!("{}: {why}", source.place(name)));
            Ok(())
        }
    })?;
    writers.into_iter().try_for_each(|(_, writer)| writer.finish())?;
    Ok((profiles, bad))
}

/// Says what is missing, on stderr.
fn done(source: &Source, bad: &[String]) -> u8 {
    say::warn_of(bad, |more| format!("{}: {more} more are damaged", source.path().display()));
    if source.warn() && bad.is_empty() { DONE } else { INCOMPLETE }
}
