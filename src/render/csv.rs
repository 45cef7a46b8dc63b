//! One line for each row, with a header: numbers are text there, so integers of 64 bits are exact.

use std::io::{self, Write};

use csv::Writer;

use super::Rows;
use super::text::text;
use crate::document::{Column, Value};

pub(crate) struct Csv<W: Write>(Writer<W>);

impl<W: Write> Csv<W> {
    pub(crate) fn new(out: W, columns: &[Column]) -> io::Result<Csv<W>> {
        let mut writer = Writer::from_writer(out);
        writer.write_record(columns.iter().map(|column| column.name)).map_err(io_error)?;
        Ok(Csv(writer))
    }
}

impl<W: Write> Rows for Csv<W> {
    fn row(&mut self, row: &[Value]) -> io::Result<()> {
        for cell in row {
            match cell {
                Value::Nothing => self.0.write_field(""),
                Value::Amount(amount) => self.0.write_field(amount.number.to_string()),
                // CSV has no escapes for control characters, so they are removed from text.
                other => self.0.write_field(text(other)),
            }
            .map_err(io_error)?;
        }
        self.0.write_record(None::<&[u8]>).map_err(io_error)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

/// The underlying error: a closed pipe must be told from a full disk.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
