//! The tables of many runs in one: a column in front says of which run a row is.

use std::io;
use std::path::{Path, PathBuf};

use gyan_results::RankProfile;
use rayon::prelude::*;

use super::tables::{self, ExportTable};
use super::{Head, Writers, said, to_place};
use crate::cli::ExportOptions;
use crate::document::data::TakeRow;
use crate::document::{Column, Kind, Value, required};
use crate::error::Error;
use crate::format::TableFormat;
use crate::input::runs;
use crate::input::source::Source;
use crate::parts::{RankTable, ReportInput};
use crate::render::text;
use crate::{DONE, INCOMPLETE, say};

/// The column that tables of many runs have in front of all others.
pub(super) const RUN: Column = required("run", Kind::Text).about("where the run is");
/// So many runs are read at the same time, and are in memory at once.
const AT_ONCE: usize = 64;
/// The profiles of a run with more are read when it is its turn.
const SMALL: usize = 64;

/// The tables that many runs can have.
pub(super) fn tables() -> Vec<ExportTable> {
    let of_runs = |table: &ExportTable| !matches!(table, ExportTable::Timeline);
    ExportTable::all().into_iter().filter(of_runs).collect()
}

/// Where the runs are.
pub(super) fn places(options: &ExportOptions) -> Result<Vec<PathBuf>, Error> {
    let mut places = Vec::new();
    for path in &options.directories {
        places.extend(runs::runs_in(path)?);
    }
    Ok(places)
}

pub(super) fn export(options: &ExportOptions, format: TableFormat) -> Result<u8, Error> {
    let tables = tables::asked(&tables(), options)?;
    let places = places(options)?;
    let heads: Vec<Head> = tables.iter().map(|table| Head::new(*table, &[RUN])).collect();
    let written = to_place(options, format, &heads, |writers| {
        write(&places, tables.iter().copied().zip(writers).collect())
    })?;
    let Some(bad) = written else { return Ok(DONE) };
    said(options, || format!("{} runs", places.len()))?;
    let code = if bad.is_empty() { DONE } else { INCOMPLETE };
    say::warn_of(bad, |more| format!("{more} more runs or profiles are left out"));
    Ok(code)
}

/// Returns what is wrong with runs and profiles.
fn write(places: &[PathBuf], mut writers: Writers) -> io::Result<Vec<String>> {
    let tables: Vec<ExportTable> = writers.iter().map(|(table, _)| *table).collect();
    let mut bad = Vec::new();
    for places in places.chunks(AT_ONCE) {
        let read = places.par_iter().map(|place| ReadRun::read(place, &tables));
        let read: Vec<Result<ReadRun, Error>> = read.collect();
        for (place, run) in places.iter().zip(read) {
            let name = place.display().to_string();
            match run {
                Ok(run) => run.write(&name, &mut writers, &mut bad)?,
                Err(error) => bad.push(error.to_string()),
            }
        }
    }
    writers.into_iter().try_for_each(|(_, writer)| writer.finish())?;
    Ok(bad)
}

struct ReadRun {
    source: Source,
    /// None where they are too many to be kept.
    profiles: Option<Vec<(String, Result<RankProfile, String>)>>,
    /// The rows of each table; none of those of ranks.
    rows: Vec<Vec<Vec<Value<'static>>>>,
}

impl ReadRun {
    fn read(place: &Path, tables: &[ExportTable]) -> Result<ReadRun, Error> {
        let source = Source::open(place)?;
        let is_of_ranks = |table: &ExportTable| matches!(table, ExportTable::Ranks(_));
        if tables.iter().any(is_of_ranks) && source.is_empty() {
            let why = "is a summary, which has no rows of single ranks";
            return Err(Error::new(place.display(), why, "name the run directory"));
        }
        let mut rows = vec![Vec::new(); tables.len()];
        if !tables.iter().all(is_of_ranks) {
            let summary = source.summarize()?;
            let input = ReportInput::new(&summary, place).with_source(&source);
            for (table, rows) in tables.iter().zip(&mut rows) {
                let ExportTable::Run(table) = table else { continue };
                let Some(data) = (table.rows)(&input) else { continue };
                let mut take = |row: &[Value]| {
                    rows.push(row.iter().map(kept).collect());
                    Ok(())
                };
                (data.rows)(&mut take)
                    .map_err(|error| Error::io(place, &error, "read it alone"))?;
            }
        }
        let is_small = source.len() <= SMALL && tables.iter().any(is_of_ranks);
        let profiles = is_small.then(|| source.all(&left_out(tables.iter())));
        Ok(ReadRun { source, profiles, rows })
    }

    fn write(self, run: &str, writers: &mut Writers, bad: &mut Vec<String>) -> io::Result<()> {
        let ReadRun { source, profiles, rows } = self;
        let before = Value::from(run);
        let left_out = left_out(writers.iter().map(|(table, _)| table));
        for ((_, writer), rows) in writers.iter_mut().zip(rows) {
            rows.iter().try_for_each(|row| behind(&before, row, &mut |row| writer.row(row)))?;
        }
        let mut take = |name: &str, profile: Result<RankProfile, String>| match profile {
            Ok(profile) => writers.iter_mut().try_for_each(|(table, writer)| {
                let ExportTable::Ranks(table) = table else { return Ok(()) };
                table.rows(&profile, &mut |row| behind(&before, row, &mut |row| writer.row(row)))
            }),
            Err(why) => {
                bad.push(format!("{}: {why}", source.place(name)));
                Ok(())
            }
        };
        match profiles {
            Some(profiles) => profiles.into_iter().try_for_each(|(name, of)| take(&name, of)),
            None => source.in_order(&left_out, take),
        }
    }
}

/// The fields of profiles that none of the tables asks for.
fn left_out<'t>(tables: impl Iterator<Item = &'t ExportTable>) -> Vec<&'static str> {
    RankTable::left_out(tables.filter_map(|table| match table {
        ExportTable::Ranks(table) => Some(*table),
        _ => None,
    }))
}

/// Hands on a row with a cell in front.
fn behind(before: &Value, row: &[Value], take: &mut TakeRow) -> io::Result<()> {
    let mut whole = Vec::with_capacity(row.len() + 1);
    whole.push(before.clone());
    whole.extend_from_slice(row);
    take(&whole)
}

/// The cell by itself.
fn kept(cell: &Value) -> Value<'static> {
    match cell {
        Value::Nothing => Value::Nothing,
        Value::Text(text) => Value::Text(text.clone().into_owned().into()),
        Value::Amount(amount) => Value::Amount(*amount),
        Value::Rank(rank) => Value::Rank(*rank),
        other => text(other).into(),
    }
}
