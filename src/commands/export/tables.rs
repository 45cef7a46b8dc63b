//! Which tables can be exported, and what each of them is.

use gyan_results::{Fidelity, write_json};
use serde::Serialize;

use super::runs;
use crate::DONE;
use crate::cli::ExportOptions;
use crate::document::Column;
use crate::document::data::Row;
use crate::error::Error;
use crate::input::source::Source;
use crate::output;
use crate::parts::{
    CALLS, PARTS, RankTable, ReportInput, SummaryTable, TABLES, TIMELINE_TABLE, VARIABLES,
};
use crate::timeline::TimelineCall;

/// A table that a run can have.
#[derive(Clone, Copy)]
pub(super) enum ExportTable {
    /// What single ranks did, from their profiles.
    Ranks(&'static RankTable),
    /// What they did together, from the summary.
    Run(&'static SummaryTable),
    /// The calls that were recorded.
    Timeline,
}

impl ExportTable {
    /// All that a directory of profiles can have.
    pub(super) fn all() -> Vec<ExportTable> {
        let ranks = TABLES.iter().map(ExportTable::Ranks);
        ranks.chain([ExportTable::Timeline]).chain(ExportTable::of_run()).collect()
    }

    /// Those of a summary.
    pub(super) fn of_run() -> impl Iterator<Item = ExportTable> {
        PARTS.iter().filter_map(|part| part.table.as_ref()).map(ExportTable::Run)
    }

    fn of_source(source: &Source) -> Result<Vec<ExportTable>, Error> {
        if !source.is_empty() {
            return Ok(ExportTable::all());
        }
        let summary = source.summarize()?;
        let input = ReportInput::new(&summary, source.path());
        let has = |table: &ExportTable| match table {
            ExportTable::Run(table) => (table.rows)(&input).is_some(),
            ExportTable::Ranks(_) | ExportTable::Timeline => false,
        };
        Ok(ExportTable::of_run().filter(has).collect())
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            ExportTable::Ranks(table) => table.name,
            ExportTable::Run(table) => table.name,
            ExportTable::Timeline => TIMELINE_TABLE[0],
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            ExportTable::Ranks(table) => table.about,
            ExportTable::Run(table) => table.about,
            ExportTable::Timeline => TIMELINE_TABLE[1],
        }
    }

    pub(super) fn columns(self) -> Vec<Column> {
        match self {
            ExportTable::Ranks(table) => table.columns(),
            ExportTable::Run(table) => table.columns.to_vec(),
            ExportTable::Timeline => TimelineCall::COLUMNS.to_vec(),
        }
    }
}

/// The tables of `all` that the user has named. When none is: into a directory those of single ranks, otherwise the variables.
pub(super) fn asked(
    all: &[ExportTable],
    options: &ExportOptions,
) -> Result<Vec<ExportTable>, Error> {
    let calls = [CALLS.to_owned()];
    let names = if options.calls { &calls } else { options.table.as_slice() };
    let unknown = |name: &str| {
        let names: Vec<&str> = all.iter().map(|table| table.name()).collect();
        let remedy = format!("choose one of {}", names.join(", "));
        Error::new(format!("--table {name}"), "is not a table", remedy)
    };
    let to_directory = super::directory(options).is_some();
    let by_default = |table: &ExportTable| match table {
        ExportTable::Ranks(table) => to_directory || table.name == VARIABLES,
        ExportTable::Run(_) | ExportTable::Timeline => false,
    };
    super::chosen(all.to_vec(), names, options, |table| table.name(), by_default, unknown)
}

/// Prints which tables there are and what their columns are, as JSON.
pub(super) fn describe(options: &ExportOptions) -> Result<u8, Error> {
    let (runs, tables, before) = if options.runs {
        (runs::places(options)?, runs::tables(), Some(runs::RUN))
    } else {
        let source = Source::open_all(&options.directories)?;
        (options.directories.clone(), ExportTable::of_source(&source)?, None)
    };
    let tables = tables.iter().map(|table| {
        let columns = before.into_iter().chain(table.columns());
        TableDescription {
            name: table.name(),
            row: table.about(),
            columns: columns.map(ColumnDescription::new).collect(),
        }
    });
    let runs = runs.iter().map(|place| place.display().to_string()).collect();
    let schema = ExportSchema { runs, tables: tables.collect() };
    output::print(|out| write_json(out, &schema))?;
    Ok(DONE)
}

#[derive(Serialize)]
struct ExportSchema {
    runs: Vec<String>,
    tables: Vec<TableDescription>,
}

#[derive(Serialize)]
struct TableDescription {
    name: &'static str,
    row: &'static str,
    columns: Vec<ColumnDescription>,
}

#[derive(Serialize)]
struct ColumnDescription {
    name: &'static str,
    r#type: &'static str,
    null: bool,
    unit: Option<&'static str>,
    fidelity: Option<Fidelity>,
    about: &'static str,
}

impl ColumnDescription {
    fn new(column: Column) -> ColumnDescription {
        ColumnDescription {
            name: column.name,
            r#type: column.kind.name(),
            null: !column.required,
            unit: column.unit(),
            fidelity: column.fidelity,
            about: column.about,
        }
    }
}
