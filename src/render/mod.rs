//! One exporter a file. They lay out; what is shown and how a number reads is decided in `view`.

mod csv;
mod long;
mod markdown;
mod parquet;
mod queues;
mod series;
mod table;

pub(crate) use csv::{csv, environment_csv, histogram_csv, phases_csv};
pub(crate) use long::{LongCsv, LongJson, LongWriter};
pub(crate) use markdown::markdown;
pub(crate) use parquet::LongParquet;
pub(crate) use queues::queues_csv;
pub(crate) use series::{series_csv, series_json};
pub(crate) use table::table;
