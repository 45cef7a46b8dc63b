//! How does a view look? One file per format. Rounding, units, alignment and the taming of control characters
//! happen here; the choice and order of rows does not.

mod badge;
mod cells;
mod csv;
mod html;
mod json;
mod junit;
mod markdown;
mod parquet;
mod plot;
mod prose;
mod table;
mod text;

use std::io;

use crate::document::data::Data;
use crate::document::{Column, Value};

pub(crate) use badge::{badge_json, badge_svg};
pub(crate) use csv::Csv;
pub(crate) use html::{fragment, html};
pub(crate) use json::Json;
pub(crate) use junit::junit;
pub(crate) use markdown::markdown;
pub(crate) use parquet::Parquet;
pub(crate) use prose::prose;
pub(crate) use table::table;
#[cfg(test)]
pub(crate) use table::wrapped;
pub(crate) use text::text;

/// Takes the rows of a long table, in order.
pub(crate) trait Rows {
    fn row(&mut self, row: &[Value]) -> io::Result<()>;

    /// Writes whatever must follow the last row.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Writes a whole long table.
pub(crate) fn all_rows<R: Rows>(
    data: Data,
    begin: impl FnOnce(&'static [Column]) -> io::Result<R>,
) -> io::Result<()> {
    let mut writer = Box::new(begin(data.columns)?);
    (data.rows)(&mut |row| writer.row(row))?;
    writer.finish()
}
