//! Real MPI programs under real MPIs: one behaviour a program, its expectation in its header.

mod common;

mod bad_input;
mod bad_surroundings;
mod bench;
mod budget;
mod counts;
mod coverage;
mod doctor;
mod enabling;
mod endings;
mod environment;
mod events;
mod fakempi;
mod harmless;
mod hpcc;
mod install;
mod languages;
mod launchers;
mod launching;
mod matrix;
mod native;
mod objects;
mod peruse;
mod phases;
mod readings;
mod reports;
mod sampling;
mod schemas;
mod selection;
mod sessions;
mod slurm;
mod stacks;
mod varlist;
mod watcher;
mod whole_matrix;
