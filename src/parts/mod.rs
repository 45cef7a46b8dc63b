//! The parts of the report of a run. A part is a row of [`PARTS`], and its file has all of it: the option that asks for
//! it, what is said where it is missing, its tables and charts for people, its rows and its document for programs.
//! Text, Markdown, CSV, JSON, the page and `gyan export` walk this list, so its order is that of the help, of the page
//! and of the tables: that in which one would explain a run.

mod cost;
mod coverage;
mod environment;
mod findings;
mod functions;
pub(crate) mod headings;
mod histogram;
mod hosts;
mod input;
mod machine;
mod matrix;
mod now;
mod openmp;
mod page;
mod peers;
mod phases;
mod queues;
mod rank;
mod ranks;
mod recorded;
mod report;
mod run;
mod series;
mod sites;
mod sizes;
mod tables;
mod time;
mod timeline;
mod variables;
mod waiting;
mod watch;

use crate::document::data::Row;
use crate::document::page::PageBlock;
use crate::document::{Column, Data, Presentation, Value};
use crate::error::Error;

#[cfg(test)]
pub(crate) use findings::{actor, in_short};
pub(crate) use input::ReportInput;
pub(crate) use now::{cause, groups};
pub(crate) use page::{page_of_first_screen, page_of_run};
pub(crate) use ranks::OfRanks;
pub(crate) use recorded::TIMELINE_TABLE;
pub(crate) use report::{first_screen, show as report, whole};
pub(crate) use tables::{CALLS, RankTable, TABLES, VARIABLES};
pub(crate) use timeline::iterations_kept;
pub(crate) use variables::explained;

pub(crate) const PARTS: &[Part] = &[
    report::REPORT,
    now::NOW,
    run::RUN,
    findings::FINDINGS,
    findings::EFFICIENCIES,
    time::TIME,
    functions::FUNCTIONS,
    histogram::HISTOGRAM,
    sites::SITES,
    phases::PHASES,
    openmp::OPENMP,
    waiting::WAITING,
    waiting::PATH,
    timeline::TIMELINE,
    sizes::SIZES,
    peers::PEERS,
    queues::QUEUES,
    series::SERIES,
    variables::VARIABLES,
    coverage::COVERAGE,
    cost::COST,
    machine::MACHINE,
    environment::ENVIRONMENT,
];

/// Makes a part in every format, or says why there is nothing to show.
type MakePresentation = for<'r> fn(&'r ReportInput<'_>) -> Result<Presentation<'r>, Error>;
/// Makes a block of the page, or says why it is not there.
type MakeBlock = for<'r> fn(&'r ReportInput<'_>) -> Result<PageBlock<'r>, Value<'r>>;
/// Makes the rows of a table, if there is anything to know.
type MakeRows = for<'r> fn(&'r ReportInput<'_>) -> Option<Data<'r>>;

/// A part of the report. Whatever it lacks is none.
pub(crate) struct Part {
    pub(crate) option: Option<PartOption>,
    pub(crate) table: Option<SummaryTable>,
    /// Its block on the page.
    pub(crate) block: Option<MakeBlock>,
}

/// The option of `gyan report` that shows a part instead of the whole.
pub(crate) struct PartOption {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) takes: Takes,
    /// An option that it cannot stand beside.
    pub(crate) conflicts_with: Option<&'static str>,
    pub(crate) show: MakePresentation,
}

impl PartOption {
    /// One that takes nothing, and is not about some variables and functions only.
    const fn new(name: &'static str, help: &'static str, show: MakePresentation) -> PartOption {
        PartOption { name, help, takes: Takes::Nothing, conflicts_with: Some("vars"), show }
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Takes {
    Nothing,
    /// A pattern of names.
    Glob,
    /// The same; without one, all of them.
    MaybeGlob,
}

/// A table of `gyan export` that is about the run, not about single ranks.
pub(crate) struct SummaryTable {
    pub(crate) name: &'static str,
    /// What there is a row for.
    pub(crate) about: &'static str,
    pub(crate) columns: &'static [Column],
    pub(crate) rows: MakeRows,
}

impl SummaryTable {
    /// The table of rows `R`, which `rows` makes.
    const fn new<R: Row>(name: &'static str, about: &'static str, rows: MakeRows) -> SummaryTable {
        SummaryTable { name, about, columns: R::COLUMNS, rows }
    }
}

pub(crate) fn options() -> impl Iterator<Item = &'static PartOption> {
    PARTS.iter().filter_map(|part| part.option.as_ref())
}
