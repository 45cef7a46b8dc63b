//! What does a site keep of its jobs, and where? Makes rows of records, and keeps them in a data set of Parquet files.
//!
//! Does not ask questions of the data set: that is up to `DuckDB` and the like, and to `gyan archive report`.

#![forbid(unsafe_code)]

pub(crate) mod data_set;
#[cfg(test)]
mod fuzzed;
pub(crate) mod ingest;
mod s3;
pub(crate) mod spool;
pub(crate) mod store;
pub(crate) mod tables;
