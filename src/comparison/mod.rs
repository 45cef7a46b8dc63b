//! How do runs differ, how do they grow, and how much of that is noise? Decides from summaries only: where they
//! come from and how the answer is shown are up to other rooms.

#![forbid(unsafe_code)]

pub(crate) mod change_points;
pub(crate) mod check;
pub(crate) mod difference;
mod growth;
pub(crate) mod judge;
mod resources;
pub(crate) mod scaling;
mod variables;

use std::path::Path;

use gyan_results::Summary;

/// The file of the program, without its directory.
pub(crate) fn program(summary: &Summary) -> String {
    let program = summary.job.command.first().map(Path::new).and_then(Path::file_name);
    program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Each of the values once, in the order in which they come first.
pub(crate) fn each_once<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}
