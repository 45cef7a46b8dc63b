//! libgyan.so: what runs inside the application.
//!
//! Loaded into every process of a job, it does nothing until the first call of an MPI
//! initialisation that passes through it. From there on it counts the MPI calls, reads the
//! performance variables of the MPI library at the start and at the end, and writes the profile
//! of its rank. The application never notices: see ARCHITECTURE.md for what each module may not do.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::exit,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::todo,
    clippy::unimplemented
)]
// In unit tests the entry points are not exported, so what they reach looks unused; and what is for
// Fortran alone is, in a program that contains its MPI.
#![cfg_attr(any(test, feature = "static"), allow(dead_code))]

mod abi;
mod advice;
mod allocation;
mod boundary;
mod bytes;
mod clock;
mod config;
mod cvar_settings;
mod cvars;
mod enable;
mod exclusions;
mod export;
#[cfg(test)]
mod fuzzed;
mod governor;
mod guard;
mod job;
mod jumps;
mod lifecycle;
mod listing;
mod live;
mod loaded;
mod locks;
mod memory;
mod mpit;
mod next;
mod notice;
mod number;
mod objects;
mod output;
mod phases;
mod queues;
mod quirks;
mod reduce;
mod references;
mod run;
mod sampler;
mod selection;
mod stopwatch;
mod store;
mod survivor;
mod table;
mod thread;
mod timing;
mod unwinding;
mod watcher;
mod writing;
