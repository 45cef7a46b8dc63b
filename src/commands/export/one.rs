//! The tables of one run whose profiles are there.

use std::io;

use super::tables::{self, ExportTable};
use super::{Head, Writers, done, said, to_place};
use crate::DONE;
use crate::cli::ExportOptions;
use crate::document::data::Row;
use crate::document::plural;
use crate::error::Error;
use crate::format::TableFormat;
use crate::input::source::Source;
use crate::parts::{RankTable, ReportInput};
use crate::timeline::Timelines;

pub(super) fn export(
    source: &Source,
    options: &ExportOptions,
    format: TableFormat,
) -> Result<u8, Error> {
    let tables = tables::asked(&ExportTable::all(), options)?;
    source.warn_of_few();
    let mut bad = Vec::new();
    let has = |is: fn(&ExportTable) -> bool| tables.iter().any(is);
    let summary = has(|table| matches!(table, ExportTable::Run(_))).then(|| source.summarize());
    let summary = summary.transpose()?;
    let input = summary
        .as_ref()
        .map(|summary| ReportInput::new(summary, source.path()).with_source(source));
    let timelines = has(|table| matches!(table, ExportTable::Timeline))
        .then(|| Timelines::open(source.path(), &mut bad));
    let timelines = timelines.transpose()?;
    let heads: Vec<Head> = tables.iter().map(|table| Head::new(*table, &[])).collect();
    let run = OneRun { source, input: input.as_ref(), timelines: timelines.as_ref() };
    let written = to_place(options, format, &heads, |writers| {
        run.write(tables.iter().copied().zip(writers).collect(), &mut bad)
    })?;
    let Some(profiles) = written else { return Ok(DONE) };
    let code = done(source, &bad);
    said(options, || match profiles {
        0 => format!("{} table{} of the run", tables.len(), plural(tables.len() as u64)),
        profiles => format!("{profiles} profiles"),
    })?;
    Ok(code)
}

/// What tables are made of, as far as one is asked for that needs it.
struct OneRun<'a> {
    source: &'a Source,
    input: Option<&'a ReportInput<'a>>,
    timelines: Option<&'a Timelines>,
}

impl OneRun<'_> {
    /// Says how many profiles were exported. `bad`: what is wrong with others.
    fn write(&self, writers: Writers, bad: &mut Vec<String>) -> io::Result<u64> {
        let mut of_ranks = Vec::new();
        for (table, mut writer) in writers {
            match (table, self.input, self.timelines) {
                (ExportTable::Ranks(table), ..) => {
                    of_ranks.push((table, writer));
                    continue;
                }
                (ExportTable::Run(table), Some(input), _) => {
                    if let Some(data) = (table.rows)(input) {
                        (data.rows)(&mut |row| writer.row(row))?;
                    }
                }
                (ExportTable::Timeline, _, Some(timelines)) => {
                    timelines.each_call(&mut |call| call.write(&mut |row| writer.row(row)))?;
                }
                (ExportTable::Run(_) | ExportTable::Timeline, ..) => {}
            }
            writer.finish()?;
        }
        let mut profiles = 0;
        if of_ranks.is_empty() {
            return Ok(profiles);
        }
        let left_out = RankTable::left_out(of_ranks.iter().map(|(table, _)| *table));
        self.source.in_order(&left_out, |name, profile| match profile {
            Ok(profile) => {
                profiles += 1;
                let mut tables = of_ranks.iter_mut();
                tables.try_for_each(|(table, writer)| {
                    table.rows(&profile, &mut |row| writer.row(row))
                })
            }
            Err(why) => {
                bad.push(format!("{}: {why}", self.source.place(name)));
                Ok(())
            }
        })?;
        of_ranks.into_iter().try_for_each(|(_, writer)| writer.finish())?;
        Ok(profiles)
    }
}
