//! Rows as JSON objects with the keys in the order of the columns: one a line, or an array of them.

use std::io::{self, Write};

use gyan_results::json_line;
use serde::{Serialize, Serializer};

use super::Rows;
use super::text::text;
use crate::view::{Column, Value};

/// JSON Lines.
pub(crate) struct JsonLines<W> {
    out: W,
    columns: &'static [Column],
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(out: W, columns: &'static [Column]) -> JsonLines<W> {
        JsonLines { out, columns }
    }
}

impl<W: Write> Rows for JsonLines<W> {
    fn row(&mut self, cells: &[Value]) -> io::Result<()> {
        writeln!(self.out, "{}", json_line(&Row { columns: self.columns, cells })?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// One array, with a line for each row.
pub(crate) struct JsonArray<W> {
    out: W,
    columns: &'static [Column],
    before: &'static str,
}

impl<W: Write> JsonArray<W> {
    pub(crate) fn new(out: W, columns: &'static [Column]) -> JsonArray<W> {
        JsonArray { out, columns, before: "[\n" }
    }
}

impl<W: Write> Rows for JsonArray<W> {
    fn row(&mut self, cells: &[Value]) -> io::Result<()> {
        write!(self.out, "{}{}", self.before, json_line(&Row { columns: self.columns, cells })?)?;
        self.before = ",\n";
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let begin = if self.before == "[\n" { "[" } else { "" };
        writeln!(self.out, "{begin}\n]")
    }
}

struct Row<'a> {
    columns: &'static [Column],
    cells: &'a [Value<'a>],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cells = self.cells.iter().map(Cell);
        serializer.collect_map(self.columns.iter().map(|column| column.name).zip(cells))
    }
}

struct Cell<'a>(&'a Value<'a>);

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Nothing => serializer.serialize_none(),
            // JSON has escapes for what a terminal would obey.
            Value::Text(text) => serializer.serialize_str(text),
            Value::Amount(amount) => amount.number.serialize(serializer),
            Value::Rank(rank) => rank.serialize(serializer),
            other => serializer.serialize_str(&text(other)),
        }
    }
}
