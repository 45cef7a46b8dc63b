//! libgyan.so: what runs inside the application.
//!
//! Loaded into every process of a job, it asks for one variable of the environment (`gyan doctor`), and does nothing
//! else until the first call of an MPI initialisation that passes through it. From there on it counts the MPI calls, reads the
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

mod calls;
mod config;
mod entry;
#[cfg(test)]
mod fuzzed;
mod mpi;
mod observe;
mod profile;
mod run;
mod sys;
#[cfg(test)]
mod wings;
