//! Real MPI programs under real MPIs: one behaviour a program, its expectation in its header.

mod common;

mod bad_input;
mod bad_surroundings;
mod counts;
mod environment;
mod fortran;
mod harmless;
mod hpcc;
mod install;
mod launching;
mod native;
mod readings;
mod reports;
mod schemas;
mod selection;
mod varlist;
