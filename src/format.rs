//! Which formats does a subcommand have? Any other is refused with a list of those.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, ValueEnum};

use crate::error::Error;

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Aligned columns
    Table,
    /// Tables for a document
    Markdown,
    /// One line for each number, with all there is
    Csv,
    /// All that is known, by a schema
    Json,
    /// One page to look at, with charts
    Html,
}

/// How a listing of a library is printed.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ListFormat {
    /// Aligned columns
    Table,
    /// Tables for a document
    Markdown,
    /// All that is known, by a schema
    Json,
}

/// How a verdict is printed.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Aligned columns
    Table,
    /// Tables for a pull request or the summary of a job
    Markdown,
    /// Test cases, for a CI server
    Junit,
    /// All that was judged, by a schema
    Json,
}

/// How what ranks did is written for other programs.
#[derive(Clone, Copy, Eq, PartialEq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Tables: columns, compressed
    Parquet,
    /// Tables: one line for each row, with a header
    Csv,
    /// Tables: one JSON object for each row
    Jsonl,
    /// Calls: for Hatchet, Thicket and Caliper (.cali)
    Caliper,
    /// Calls: for Cube and pycubexr (.cubex)
    Cube,
    /// Calls: stacks for a flame graph, in microseconds of all ranks
    Collapsed,
    /// Calls: stacks of all ranks and of each, for speedscope
    Speedscope,
    /// Several runs: for Extra-P, as JSON Lines
    Extrap,
}

/// How long tables are written.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum TableFormat {
    Parquet,
    Csv,
    Jsonl,
}

impl ExportFormat {
    /// None for what are no tables.
    pub(crate) fn of_tables(self) -> Option<TableFormat> {
        match self {
            ExportFormat::Parquet => Some(TableFormat::Parquet),
            ExportFormat::Csv => Some(TableFormat::Csv),
            ExportFormat::Jsonl => Some(TableFormat::Jsonl),
            ExportFormat::Caliper
            | ExportFormat::Cube
            | ExportFormat::Collapsed
            | ExportFormat::Speedscope
            | ExportFormat::Extrap => None,
        }
    }
}

impl TableFormat {
    /// The file name extension.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            TableFormat::Parquet => "parquet",
            TableFormat::Csv => "csv",
            TableFormat::Jsonl => "jsonl",
        }
    }
}

/// The requested format, or why it is refused: clap's own message would take five lines.
pub(crate) type Asked<F> = Result<F, Error>;

/// Takes the formats of one subcommand.
#[derive(Clone)]
pub(crate) struct OneOf<F>(PhantomData<F>);

impl<F: ValueEnum + 'static> OneOf<F> {
    pub(crate) fn new() -> OneOf<F> {
        OneOf(PhantomData)
    }

    fn names() -> impl Iterator<Item = PossibleValue> {
        F::value_variants().iter().filter_map(ValueEnum::to_possible_value)
    }
}

impl<F: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for OneOf<F> {
    type Value = Asked<F>;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Asked<F>, clap::Error> {
        let asked = value.to_string_lossy();
        Ok(F::from_str(&asked, false).map_err(|_| {
            let names: Vec<String> = Self::names().map(|name| name.get_name().to_owned()).collect();
            let (last, others) =
                names.split_last().map_or(("", &[][..]), |(last, rest)| (last, rest));
            let names = format!("{} or {last}", others.join(", "));
            let why = format!("gyan {} prints {names}", command.get_name());
            Error::new(format!("--format {asked}"), why, "choose one of these")
        }))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::names()))
    }
}
