//! What does a site keep of its jobs, and where? Makes rows of records, keeps them in a data set of Parquet files, and says what
//! the jobs have in common.
//!
//! Does not answer other questions about the data set: that is up to query engines.

#![forbid(unsafe_code)]

pub(crate) mod data_set;
pub(crate) mod days;
#[cfg(test)]
mod fuzzed;
pub(crate) mod ingest;
pub(crate) mod job;
pub(crate) mod report;
mod s3;
pub(crate) mod scan;
pub(crate) mod spool;
pub(crate) mod store;
pub(crate) mod tables;
