//! One exporter a file. They lay out; what is shown and how a number reads is decided in `view`.

mod csv;
mod markdown;
mod table;

pub(crate) use csv::{csv, environment_csv};
pub(crate) use markdown::markdown;
pub(crate) use table::table;
