//! libgyan.so: what runs inside the application.
//!
//! Loaded into every process of a job, it reads one environment variable (`gyan doctor`), and does nothing else
//! until MPI is initialised through it. From then on it counts the MPI calls, reads the performance variables
//! of the MPI library at the start and at the end, and writes the profile of its rank. The application never
//! notices: see ARCHITECTURE.md for what each module may not do.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::exit,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::todo,
    clippy::unimplemented,
    // Modules that need it say so where they are declared.
    unsafe_code
)]
// What an entry point does on the fast path is part of it.
#![allow(clippy::inline_always)]
// In unit tests the entry points are not exported, so everything they use looks unused; in a program that
// contains its MPI, code that only Fortran needs is unused.
#![cfg_attr(any(test, feature = "static"), allow(dead_code))]

mod calls;
mod config;
mod delivery;
#[allow(unsafe_code)]
mod entry;
#[cfg(test)]
mod fuzzed;
mod mpi;
mod observe;
mod run;
#[allow(unsafe_code)]
mod sys;
#[cfg(test)]
#[path = "../../tests/truth/mod.rs"]
mod truth;
