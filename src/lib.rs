//! `gyan`: runs programs under libgyan.so, reduces the profiles of their ranks, and reports.
//!
//! The command does not link MPI. It shares with libgyan.so only the files of a run directory, and one symbol
//! that a separate process opens (`commands/varlist/library.rs`).
//!
//! | room | the question it answers |
//! | :-- | :-- |
//! | `commands` | What does each subcommand do? |
//! | `input` | Where do profiles come from? |
//! | `launch` | How does libgyan.so get into the ranks of a command line? |
//! | `comparison` | How do runs differ, and how do they grow? |
//! | `findings` | What costs time, why, and what is to be done about it? |
//! | `tuning` | Which settings make a program faster, and how sure is that? |
//! | `statistics` | What follows from a few numbers that differ from run to run? |
//! | `words` | How do numbers, and names from elsewhere, read? |
//! | `symbols` | Which functions and lines do addresses belong to? |
//! | `timeline` | What did every rank do when? |
//! | `manual` | What does the manual say of it? |
//! | `document` | What is anything shown made of? |
//! | `parts` | What does the report of a run show, in which order? |
//! | `answers` | What do the other subcommands show? |
//! | `render` | How does that read in each format? |
//! | `archive` | What does a site keep of its jobs, and where? |

#![deny(unsafe_code)]
// What is printed goes through `output::print` and `say`, which know what to do when it cannot be written.
#![deny(clippy::print_stdout, clippy::print_stderr)]
// Items are public for the fuzzers and for the tests that know the truth only; errors describe themselves.
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate)]

mod answers;
mod archive;
mod cli;
mod commands;
mod comparison;
mod document;
mod error;
mod findings;
mod format;
mod hang;
pub mod input;
mod launch;
mod manual;
mod output;
mod parts;
mod print;
mod render;
mod say;
pub mod shown;
mod stacks;
// Numbers that tie are equal.
#[allow(clippy::float_cmp)]
mod statistics;
mod symbols;
mod timeline;
mod tuning;
mod words;

#[cfg(test)]
extern crate self as gyan_command;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, SubCommand};
use crate::commands::{
    check, diff, doctor, explain, export, help, now, open, pack, reduce, report, run, scale, tune,
    varlist, watch,
};
pub use crate::error::Error;
use crate::launch::launcher;

/// Everything was done.
const DONE: u8 = 0;
/// Everything was done, but data is incomplete, or something is in the way.
const INCOMPLETE: u8 = 1;
/// `gyan check`: a rule failed.
const WORSE: u8 = 1;
/// `gyan check`: nothing failed, but what it was to judge could not be judged.
const NOT_JUDGED: u8 = 2;
/// `gyan run --stall-kill` ended the program, as timeout(1) says it.
const STALLED: u8 = 124;
/// Wrong usage, or input or output failed.
const FAILED: u8 = 2;

/// Does what the command line says.
pub fn main() -> ExitCode {
    // Launchers give their ranks stand-ins for a terminal.
    if launcher::rank().is_some() {
        anstream::ColorChoice::Never.write_global();
    }
    let result = match Cli::parse().command {
        SubCommand::Run(options) => run::run(&options),
        SubCommand::Tune(options) => tune::tune(&options),
        SubCommand::Report(options) => report::report(&options),
        SubCommand::Open(options) => open::open(&options),
        SubCommand::Explain(options) => explain::explain(&options),
        SubCommand::Check(options) => check::check(&options),
        SubCommand::Diff(options) => diff::diff(&options),
        SubCommand::Reduce(options) => reduce::reduce(&options),
        SubCommand::Scale(options) => scale::scale(&options),
        SubCommand::Export(options) => export::export(&options),
        SubCommand::Timeline(options) => commands::timeline::timeline(&options),
        SubCommand::Pack(options) => pack::pack(&options),
        SubCommand::Unpack(options) => pack::unpack(&options),
        SubCommand::Archive(options) => commands::archive::archive(&options.command),
        SubCommand::Varlist(options) => varlist::varlist(&options),
        SubCommand::Doctor(options) => doctor::doctor(&options),
        SubCommand::Now(options) => now::now(&options),
        SubCommand::Watch(options) => watch::watch(&options),
        SubCommand::Help(options) => help::help(&options),
        SubCommand::ListLibrary(options) => varlist::list_library(&options),
        SubCommand::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "gyan", &mut text);
            output::print(|out| out.write_all(&text)).map(|()| DONE)
        }
        SubCommand::Man { directory } => {
            manual::man::write(Cli::command(), &directory).map(|()| DONE)
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if !error.is_said() {
                say::warn(&error);
            }
            ExitCode::from(FAILED)
        }
    }
}
