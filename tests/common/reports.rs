//! What does the command say of a run? With the command of the tests that include this.

use std::path::Path;

use gyan_results::Summary;

use super::{Outcome, gyan, root, run, succeed};

/// `gyan report` of a run directory, in the project's folder.
pub(crate) fn report(directory: impl AsRef<Path>, options: &[&str]) -> Outcome {
    run(gyan().arg("report").arg(directory.as_ref()).args(options).current_dir(root()))
}

/// The summary of a run directory that `gyan report` prints as JSON.
pub(crate) fn reported_summary(directory: impl AsRef<Path>) -> Summary {
    let mut command = gyan();
    command.args(["report", "--format", "json"]).arg(directory.as_ref()).current_dir(root());
    serde_json::from_str(&succeed(&mut command).stdout).unwrap()
}
