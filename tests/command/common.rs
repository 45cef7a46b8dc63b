//! Code that the tests of the command share with those with real MPIs, and the command that cargo has just
//! built.

use std::process::Command;

#[path = "../common/processes.rs"]
mod processes;
#[path = "../common/reports.rs"]
mod reports;

pub(crate) use processes::{
    Outcome, command, python_with, quiet, root, run, run_within, succeed, target,
};
pub(crate) use reports::{report, reported_summary};

pub(crate) fn gyan() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gyan"))
}

/// Expects one line on stderr that contains each of `parts`.
pub(crate) fn one_line(outcome: &Outcome, code: i32, parts: &[&str]) {
    assert_eq!(outcome.code, code, "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    for part in parts {
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
}
