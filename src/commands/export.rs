//! `gyan export`: what each rank read, as a long table for other programs.

use std::io::{self, BufWriter, IsTerminal, Write};

use gyan_results::RankProfile;
use tempfile::NamedTempFile;

use crate::cli::{ExportFormat, ExportOptions};
use crate::commands::pack::{may_write, put, temporary_beside};
use crate::error::Error;
use crate::input::source::{LINES_AT_MOST, Source};
use crate::render::{LongCsv, LongJson, LongParquet, LongWriter};
use crate::view::long::{CALLS, LongTable, VARIABLES};
use crate::view::printable;
use crate::{DONE, INCOMPLETE};

pub(crate) fn export(options: &ExportOptions) -> Result<u8, Error> {
    let source = Source::open(&options.directory)?;
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
        if options.format == ExportFormat::Parquet && io::stdout().is_terminal() {
            let remedy = "name a file with -o";
            return Err(Error::new("gyan export", "Parquet is nothing for a terminal", remedy));
        }
        let exported = write(&source, table, options.format, io::stdout());
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
    let mut temporary: NamedTempFile = temporary_beside(file).map_err(failed)?;
    let (profiles, bad) =
        write(&source, table, options.format, temporary.as_file_mut()).map_err(failed)?;
    put(temporary, file, options.force).map_err(failed)?;
    let code = done(&source, &bad);
    anstream::println!("{profiles} profiles exported to {}", file.display());
    Ok(code)
}

/// How many profiles were exported, and what is wrong with the others.
fn write(
    source: &Source,
    table: &LongTable,
    format: ExportFormat,
    out: impl Write + Send,
) -> io::Result<(u64, Vec<String>)> {
    let out = BufWriter::new(out);
    let mut writer: Box<dyn LongWriter> = match format {
        ExportFormat::Csv => Box::new(LongCsv::new(out, table.columns)?),
        ExportFormat::Jsonl => Box::new(LongJson::new(out, table.columns)),
        ExportFormat::Parquet => Box::new(LongParquet::new(out, table.columns)?),
    };
    let (mut profiles, mut bad) = (0, Vec::new());
    source.in_order(|name, profile| match profile {
        Ok(profile) => {
            profiles += 1;
            rows(&profile, table, &mut *writer)
        }
        Err(why) => {
            bad.push(format!("{}: {why}", source.place(name)));
            Ok(())
        }
    })?;
    writer.finish()?;
    Ok((profiles, bad))
}

fn rows(profile: &RankProfile, table: &LongTable, writer: &mut dyn LongWriter) -> io::Result<()> {
    let mut result = Ok(());
    (table.rows)(profile, &mut |row| {
        if result.is_ok() {
            result = writer.row(row);
        }
    });
    result
}

/// Says what is missing, on stderr.
fn done(source: &Source, bad: &[String]) -> u8 {
    for line in bad.iter().take(LINES_AT_MOST) {
        anstream::eprintln!("gyan: {}", printable(line));
    }
    if bad.len() > LINES_AT_MOST {
        let more = bad.len() - LINES_AT_MOST;
        anstream::eprintln!("gyan: {}: {more} more are damaged", source.path().display());
    }
    if source.warn() && bad.is_empty() { DONE } else { INCOMPLETE }
}
