//! What is shown: which rows, in which order, as typed values. Pure: data in, values out. The renderers decide
//! how a value reads and where it stands.

mod comparison;
pub(crate) mod data;
mod difference;
mod doctor;
mod environment;
mod findings;
mod headings;
mod histogram;
mod judgement;
mod limits;
mod machine;
pub(crate) mod page;
mod peers;
mod queues;
mod repeats;
mod report;
mod scaling;
mod series;
mod sites;
mod statistic;
mod tuning;
pub(crate) mod value;
mod variables;
mod waiting;
mod watch;

pub(crate) use comparison::{answer, comparison, page_of_comparison};
pub(crate) use difference::{changed, difference};
pub(crate) use doctor::doctor;
pub(crate) use environment::environment;
pub(crate) use findings::{actor, findings, in_short};
pub(crate) use headings::{phase_name, short_library};
pub(crate) use histogram::{Histogram, histogram, histograms, sizes};
pub(crate) use judgement::{Case, Suite, judgement, suites};
pub(crate) use machine::machine;
pub(crate) use peers::peers;
pub(crate) use queues::queues;
pub(crate) use repeats::{Repeats, repeats};
pub(crate) use report::page::{More, OfRanks, page_of_run};
pub(crate) use report::{Known, Part, explained, phases, report};
pub(crate) use scaling::{page_of_scaling, scaling};
pub(crate) use series::{Course, series};
pub(crate) use sites::{places_in_words, sites};
pub(crate) use tuning::{tuning, tuning_page};
pub(crate) use value::Value;
pub(crate) use variables::{Choice, level, variables};
pub(crate) use waiting::waiting;

/// Something to read.
pub(crate) struct View<'a> {
    pub(crate) title: Value<'a>,
    pub(crate) subtitle: Vec<Value<'a>>,
    pub(crate) sections: Vec<Section<'a>>,
}

/// A table with a heading and remarks below it. Absent parts are empty.
pub(crate) struct Section<'a> {
    pub(crate) title: Value<'a>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Value<'a>>>,
    pub(crate) notes: Vec<Value<'a>>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether every row has a value.
    pub(crate) required: bool,
    /// Its meaning, for readers of a file.
    pub(crate) about: &'static str,
}

impl Column {
    const fn about(self, about: &'static str) -> Column {
        Column { about, ..self }
    }
}

/// The kind of cells in a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Text,
    /// Places in the code, which get lines of their own where the table is too wide with them.
    Place,
    /// Sentences, which may continue on the next line.
    Prose,
    Integer,
    Double,
    /// Integers or doubles, depending on the row: how to keep both depends on the format.
    Number,
}

impl<'a> Section<'a> {
    /// Remarks under a heading.
    fn of_notes(title: impl Into<Value<'a>>, notes: Vec<Value<'a>>) -> Section<'a> {
        Section { title: title.into(), columns: Vec::new(), rows: Vec::new(), notes }
    }
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, required: false, about: "" }
}

const fn required(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, required: true, about: "" }
}

fn texts<const N: usize>(names: [&'static str; N]) -> Vec<Column> {
    names.map(|name| column(name, Kind::Text)).into()
}

fn numbers<const N: usize>(names: [&'static str; N]) -> Vec<Column> {
    names.map(|name| column(name, Kind::Number)).into()
}

/// Cuts a text that is too long, and ends it with dots.
fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit - 3).chain("...".chars()).collect()
}

fn plural(n: u64) -> &'static str {
    if n == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_line_is_cut() {
        assert_eq!(cut("abcdef", 5), "ab...");
        assert_eq!(cut("äöüßx", 5), "äöüßx");
    }
}
