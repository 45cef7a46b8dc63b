//! A run in the formats of other tools. A format is a file here and a row of [`TREE_FORMATS`]; what they all walk is `tree`.

mod caliper;
mod collapsed;
mod cube;
mod extrap;
mod speedscope;
mod tree;

use std::io::{self, BufWriter, Write};

use self::extrap::SIZES_AT_LEAST;
use self::tree::CallTree;
use super::{is_directory, said};
use crate::cli::ExportOptions;
use crate::comparison::scaling::measured;
use crate::error::Error;
use crate::format::ExportFormat;
use crate::input::runs;
use crate::input::source::Source;
use crate::output::{may_write, print, to_file};
use crate::{DONE, INCOMPLETE, say};

/// A format that shows the calls of one job.
struct TreeFormat {
    format: ExportFormat,
    is_text: bool,
    write: fn(&CallTree, &mut dyn Write) -> io::Result<()>,
}

const TREE_FORMATS: [TreeFormat; 4] = [
    TreeFormat { format: ExportFormat::Caliper, is_text: true, write: caliper::write },
    TreeFormat { format: ExportFormat::Cube, is_text: false, write: cube::write },
    TreeFormat { format: ExportFormat::Collapsed, is_text: true, write: collapsed::write },
    TreeFormat { format: ExportFormat::Speedscope, is_text: true, write: speedscope::write },
];

/// Writes what the user asked for in a format that is not for tables.
pub(super) fn export(format: ExportFormat, options: &ExportOptions) -> Result<u8, Error> {
    if !options.table.is_empty() || options.calls {
        let remedy = "ask for parquet, csv or jsonl, or for no table";
        return Err(Error::new("--table", "is not for a format without tables", remedy));
    }
    if options.runs {
        let remedy = if format == ExportFormat::Extrap {
            "leave it out"
        } else {
            "ask for parquet, csv or jsonl"
        };
        return Err(Error::new("--runs", "is for tables", remedy));
    }
    if let Some(place) = options.output.as_deref().filter(|place| is_directory(place)) {
        let what = format!("-o {}", place.display());
        return Err(Error::new(what, "is a directory, and this is one file", "name a file"));
    }
    if let Some(file) = &options.output {
        may_write(file, options.force)?;
    }
    match TREE_FORMATS.iter().find(|row| row.format == format) {
        Some(format) => export_tree(format, options),
        None => export_runs(options),
    }
}

fn export_tree(format: &TreeFormat, options: &ExportOptions) -> Result<u8, Error> {
    if !format.is_text && options.output.is_none() {
        let what = "an archive is not for standard output";
        return Err(Error::new("gyan export", what, "name a file with -o"));
    }
    let source = Source::open_all(&options.directories)?;
    if source.is_empty() {
        let why = "is a summary, which has no single ranks";
        return Err(Error::new(source.path().display(), why, "name the run directory or its pack"));
    }
    source.warn_of_few();
    let summary = source.summarize()?;
    let is_complete = source.warn_of_gaps(&summary);
    let (tree, remarks) = tree::read(&source, &summary);
    say::warn_of(&remarks, |more| format!("{more} more files have no names"));
    write_whole(options, |out| (format.write)(&tree, out))?;
    said(options, || format!("the calls of {} ranks", tree.ranks.len()))?;
    Ok(if is_complete { DONE } else { INCOMPLETE })
}

/// As the root of a tree; the command may not have been recorded.
fn program_name(name: String) -> String {
    if name.is_empty() { "program".to_owned() } else { name }
}

/// Of several runs, how their numbers grow.
fn export_runs(options: &ExportOptions) -> Result<u8, Error> {
    let runs = runs::open(&options.directories)?;
    let by = options.by.as_deref();
    let (program, sizes, left_out) = measured(&runs, by);
    let used = runs.len() - left_out.len();
    let is_whole = left_out.is_empty() && runs.iter().all(|run| run.is_complete);
    say::warn_of(left_out, |more| format!("{more} more runs are left out"));
    let number = sizes.len();
    if number < SIZES_AT_LEAST {
        say::warn(format!(
            "Extra-P makes models of {SIZES_AT_LEAST} sizes or more, and the runs have {number}"
        ));
    }
    write_whole(options, |out| {
        extrap::write(&program_name(program), by.unwrap_or("p"), &sizes, out)
    })?;
    said(options, || format!("the numbers of {used} runs"))?;
    Ok(if is_whole { DONE } else { INCOMPLETE })
}

/// To the file that the user named, or to standard output.
fn write_whole(
    options: &ExportOptions,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let write = |out: &mut dyn Write| {
        let mut out = BufWriter::new(out);
        write(&mut out).and_then(|()| out.flush())
    };
    match &options.output {
        Some(file) => to_file(file, options.force, write),
        None => print(write),
    }
}
