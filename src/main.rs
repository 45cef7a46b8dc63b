//! `gyan`: runs programs under libgyan.so, reduces the profiles of their ranks, and reports.
//!
//! The command knows no MPI. It meets the library in the files of a run directory alone.

#![forbid(unsafe_code)]

mod cli;
mod directory;
mod error;
mod launcher;
mod reduce;
mod render;
mod report;
mod run;
mod view;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};
use crate::error::Error;

/// Everything was done.
const DONE: u8 = 0;
/// Everything was done, but data is incomplete.
const INCOMPLETE: u8 = 1;
/// Wrong usage, or input or output failed.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Report(options) => report::report(&options),
        Command::Reduce(options) => reduce::reduce(&options),
        Command::Completions { shell } => {
            let mut command = Cli::command();
            clap_complete::generate(shell, &mut command, "gyan", &mut std::io::stdout());
            Ok(DONE)
        }
        Command::Man { directory } => clap_mangen::generate_to(Cli::command(), &directory)
            .map(|()| DONE)
            .map_err(|error| Error::io(&directory, &error, "choose a directory that exists")),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            anstream::eprintln!("gyan: {error}");
            ExitCode::from(FAILED)
        }
    }
}
