//! `gyan export`: what each rank read, as a long table for other programs.

use std::io::{self, BufWriter, IsTerminal, Write};

use crate::cli::ExportOptions;
use crate::error::Error;
use crate::format::ExportFormat as Format;
use crate::input::source::Source;
use crate::output::{may_write, put, temporary_beside};
use crate::render::{Csv, Json, Parquet, Rows};
use crate::view::data::{CALLS, LongTable, VARIABLES};
use crate::{DONE, INCOMPLETE, say};

pub(crate) fn export(options: &ExportOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
    let source = Source::open_all(&options.directories)?;
    if source.is_empty() {
        return Err(Error::new(
            source.path().display(),
            "holds no rank profiles (rank-NNNNNN.json)",
            "name the run directory of a program that ran under gyan, or a pack of it",
        ));
    }
    source.warn_of_few();
    let table = if options.calls { &CALLS } else { &VARIABLES };
    let Some(file) = &options.output else {
        if format == Format::Parquet && io::stdout().is_terminal() {
            let remedy = "name a file with -o";
            return Err(Error::new("gyan export", "Parquet is nothing for a terminal", remedy));
        }
        let exported = write(&source, table, format, io::stdout());
        return match exported {
            // The reader of a pipe may have seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(DONE),
            Err(error) => {
                Err(Error::new("standard output", crate::error::reason(&error), "make room"))
            }
            Ok((_, bad)) => Ok(done(&source, &bad)),
        };
    };
    may_write(file, options.force)?;
    let failed = |error: io::Error| Error::io(file, &error, "name another file with -o");
    let mut temporary = temporary_beside(file).map_err(failed)?;
    let (profiles, bad) = write(&source, table, format, temporary.as_file_mut()).map_err(failed)?;
    put(temporary, file, options.force).map_err(failed)?;
    let code = done(&source, &bad);
    anstream::println!("{profiles} profiles exported to {}", file.display());
    Ok(code)
}

/// How many profiles were exported, and what is wrong with the others.
fn write(
    source: &Source,
    table: &LongTable,
    format: Format,
    out: impl Write + Send,
) -> io::Result<(u64, Vec<String>)> {
    let out = BufWriter::new(out);
    let mut writer: Box<dyn Rows> = match format {
        Format::Csv => Box::new(Csv::new(out, table.columns)?),
        Format::Jsonl => Box::new(Json::lines(out, table.columns)),
        Format::Parquet => Box::new(Parquet::new(out, table.columns)?),
    };
    let (mut profiles, mut bad) = (0, Vec::new());
    source.in_order(|name, profile| match profile {
        Ok(profile) => {
            profiles += 1;
            (table.rows)(&profile, &mut |row| writer.row(row))
        }
        Err(why) => {
            bad.push(format!("{}: {why}", source.place(name)));
            Ok(())
        }
    })?;
    writer.finish()?;
    Ok((profiles, bad))
}

/// Says what is missing, on stderr.
fn done(source: &Source, bad: &[String]) -> u8 {
    say::warn_of(bad, |more| format!("{}: {more} more are damaged", source.path().display()));
    if source.warn() && bad.is_empty() { DONE } else { INCOMPLETE }
}
