//! Rows as JSON objects with the keys in the order of the columns: one per line, or an array of them.

use std::io::{self, Write};
use std::mem;

use gyan_results::json_line;
use serde::{Serialize, Serializer};

use super::Rows;
use super::text::text;
use crate::document::{Column, Value};

/// The text before the first row, between two rows, and after the last.
type Brackets = [&'static str; 3];

const LINES: Brackets = ["", "\n", "\n"];
const ARRAY: Brackets = ["[\n", ",\n", "\n]\n"];

pub(crate) struct Json<W> {
    out: W,
    columns: Vec<Column>,
    frame: Brackets,
    is_first: bool,
}

impl<W: Write> Json<W> {
    pub(crate) fn lines(out: W, columns: &[Column]) -> Json<W> {
        Json { out, columns: columns.to_vec(), frame: LINES, is_first: true }
    }

    pub(crate) fn array(out: W, columns: &[Column]) -> Json<W> {
        Json { out, columns: columns.to_vec(), frame: ARRAY, is_first: true }
    }
}

impl<W: Write> Rows for Json<W> {
    fn row(&mut self, cells: &[Value]) -> io::Result<()> {
        let [begin, between, _] = self.frame;
        let before = if mem::take(&mut self.is_first) { begin } else { between };
        write!(self.out, "{before}{}", json_line(&JsonRow { columns: &self.columns, cells })?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let [begin, _, end] = self.frame;
        // A table without rows is `[ ]`, or nothing.
        let end =
            if self.is_first { format!("{begin}{}", end.trim_start()) } else { end.to_owned() };
        write!(self.out, "{end}")?;
        self.out.flush()
    }
}

struct JsonRow<'a> {
    columns: &'a [Column],
    cells: &'a [Value<'a>],
}

impl Serialize for JsonRow<'_> {
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
            // JSON has escapes for terminal control characters.
            Value::Text(text) => serializer.serialize_str(text),
            Value::Amount(amount) => amount.number.serialize(serializer),
            Value::Rank(rank) => rank.serialize(serializer),
            other => serializer.serialize_str(&text(other)),
        }
    }
}
