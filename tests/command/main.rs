//! Tests of the command with fixtures, without an MPI.

mod browser;
mod common;
#[path = "../common/faults.rs"]
mod faults;
#[path = "../common/schemas.rs"]
mod schemas;

mod archive;
mod archive_report;
mod bad_input;
mod check;
mod differences;
mod examples;
mod export;
mod golden;
mod history;
mod hosts;
mod kept;
mod machine;
mod manual;
mod manual_lists;
mod now;
mod packs;
mod pages;
mod promises;
mod reports;
mod scaling;
mod stacks;
mod surroundings;
mod writers;
