//! Waiting that programs injected and measured with their own clocks, and what gyan found of it: for the table in docs/developers/waiting.md.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::common::target;

/// A row of the table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct InjectedWait {
    pub(crate) pattern: String,
    pub(crate) mpi: String,
    /// By the program's clock.
    pub(crate) injected_s: f64,
    pub(crate) found_s: f64,
    /// The rank that was found to be late.
    pub(crate) late_rank: u32,
    /// Where the other one waited, if that is known.
    pub(crate) place: String,
}

/// Keeps the rows of one test and MPI.
pub(crate) fn keep(test: &str, mpi: &str, rows: &[InjectedWait]) {
    fs::create_dir_all(directory()).unwrap();
    fs::write(directory().join(format!("{test}-{mpi}.json")), serde_json::to_vec(rows).unwrap())
        .unwrap();
}

/// Those of a test with all of these MPIs.
pub(crate) fn kept(of: &str, mpis: &[&str]) -> Vec<InjectedWait> {
    let read = |mpi: &&str| -> Vec<InjectedWait> {
        let file = directory().join(format!("{of}-{mpi}.json"));
        let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        serde_json::from_slice(&text).unwrap()
    };
    mpis.iter().flat_map(read).collect()
}

fn directory() -> PathBuf {
    target().join("injected-waits")
}
