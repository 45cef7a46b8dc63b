//! What the tests of the command share with those with real MPIs, and the command as cargo has just built it.

use std::process::Command;

#[path = "../common/processes.rs"]
mod processes;

pub(crate) use processes::{Outcome, command, root, run, run_within, target};

pub(crate) fn gyan() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gyan"))
}
