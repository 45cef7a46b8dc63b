//! What is shown: which rows, in which order, as typed values. Pure: data in, values out. The renderers decide
//! how a value reads and where it stands.

pub(crate) mod badge;
pub(crate) mod data;
pub(crate) mod limits;
pub(crate) mod page;
pub(crate) mod statistic;
pub(crate) mod value;

use gyan_results::{CheckResult, Fidelity};

pub(crate) use data::{Data, Document, Presentation, TakeRow};
pub(crate) use value::Value;

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether every row has a value.
    pub(crate) required: bool,
    /// How well its numbers are known; none for text, and where that depends on the row.
    pub(crate) fidelity: Option<Fidelity>,
    /// Its meaning, for readers of a file.
    pub(crate) about: &'static str,
}

impl Column {
    pub(crate) const fn about(self, about: &'static str) -> Column {
        Column { about, ..self }
    }

    pub(crate) const fn known(self, fidelity: Fidelity) -> Column {
        Column { fidelity: Some(fidelity), ..self }
    }

    /// The unit of its numbers, which its name ends with: `s`, `ns`, `h`, `bytes` or `share`; none for a number of things.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        let is_text = matches!(self.kind, Kind::Text | Kind::Place | Kind::Prose);
        let last = self.name.rsplit('_').next();
        UNITS.into_iter().find(|unit| !is_text && Some(*unit) == last)
    }
}

/// The units that the name of a column can end with.
const UNITS: [&str; 5] = ["s", "ns", "h", "bytes", "share"];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Text,
    /// Places in the code, which get lines of their own where the table is too wide with them.
    Place,
    /// Sentences, which may continue on the next line.
    Prose,
    Integer,
    /// Milliseconds since 1970, UTC.
    Time,
    Double,
    /// Integers or doubles, depending on the row: how to keep both depends on the format.
    Number,
    /// The same of less interest: the column is left out where the table would be too wide.
    Spare,
}

impl Kind {
    /// What a reader of a long table is told.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Text | Kind::Place | Kind::Prose => "text",
            Kind::Integer => "integer",
            Kind::Time => "time",
            Kind::Double => "double",
            Kind::Number | Kind::Spare => "number",
        }
    }
}

/// Test cases, for a CI server.
pub(crate) struct Suite<'a> {
    pub(crate) name: &'static str,
    pub(crate) cases: Vec<Case<'a>>,
}

pub(crate) struct Case<'a> {
    pub(crate) name: Value<'a>,
    pub(crate) result: CheckResult,
    /// The verdict in a sentence.
    pub(crate) said: Value<'a>,
}

impl<'a> Section<'a> {
    /// Remarks under a heading.
    pub(crate) fn of_notes(title: impl Into<Value<'a>>, notes: Vec<Value<'a>>) -> Section<'a> {
        Section { title: title.into(), columns: Vec::new(), rows: Vec::new(), notes }
    }
}

pub(crate) const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, required: false, fidelity: None, about: "" }
}

pub(crate) const fn required(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, required: true, fidelity: None, about: "" }
}

pub(crate) fn texts<const N: usize>(names: [&'static str; N]) -> Vec<Column> {
    names.map(|name| column(name, Kind::Text)).into()
}

pub(crate) fn numbers<const N: usize>(names: [&'static str; N]) -> Vec<Column> {
    names.map(|name| column(name, Kind::Number)).into()
}

/// Columns of numbers that a narrow table does without.
pub(crate) fn spare<const N: usize>(names: [&'static str; N]) -> Vec<Column> {
    names.map(|name| column(name, Kind::Spare)).into()
}

/// Cuts a text that is too long, and ends it with dots.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit - 3).chain("...".chars()).collect()
}

pub(crate) fn plural(n: u64) -> &'static str {
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
