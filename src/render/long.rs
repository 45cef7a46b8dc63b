//! Long tables as CSV and as JSON Lines: numbers are text there, so integers of 64 bits are exact.

use std::io::{self, Write};

use csv::Writer;
use gyan_results::json_line;
use serde::{Serialize, Serializer};

use super::csv::io_error;
use crate::view::long::{Cell, Column};
use crate::view::printable;

/// Takes the rows of a long table, in their order.
pub(crate) trait LongWriter {
    fn row(&mut self, row: &[Cell]) -> io::Result<()>;

    /// Writes what has to be behind the last row.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

pub(crate) struct LongCsv<W: Write>(Writer<W>);

impl<W: Write> LongCsv<W> {
    pub(crate) fn new(out: W, columns: &[Column]) -> io::Result<LongCsv<W>> {
        let mut writer = Writer::from_writer(out);
        writer.write_record(columns.iter().map(|column| column.name)).map_err(io_error)?;
        Ok(LongCsv(writer))
    }
}

impl<W: Write> LongWriter for LongCsv<W> {
    fn row(&mut self, row: &[Cell]) -> io::Result<()> {
        for cell in row {
            match cell {
                Cell::Nothing => self.0.write_field(""),
                Cell::Text(text) => self.0.write_field(printable(text).as_ref()),
                Cell::Number(number) => self.0.write_field(number.to_string()),
            }
            .map_err(io_error)?;
        }
        self.0.write_record(None::<&[u8]>).map_err(io_error)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

pub(crate) struct LongJson<W> {
    out: W,
    columns: &'static [Column],
}

impl<W: Write> LongJson<W> {
    pub(crate) fn new(out: W, columns: &'static [Column]) -> LongJson<W> {
        LongJson { out, columns }
    }
}

impl<W: Write> LongWriter for LongJson<W> {
    fn row(&mut self, row: &[Cell]) -> io::Result<()> {
        let row = Row { columns: self.columns, cells: row };
        writeln!(self.out, "{}", json_line(&row)?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// An object with the keys in the order of the columns.
struct Row<'a> {
    columns: &'static [Column],
    cells: &'a [Cell<'a>],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.columns.iter().map(|column| column.name).zip(self.cells))
    }
}
