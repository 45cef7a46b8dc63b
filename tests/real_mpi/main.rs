//! Real MPI programs under real MPIs: one behaviour per program, with the expectation in its header.

#[path = "../common/mod.rs"]
mod common;
mod fakempi;
#[path = "../common/faults.rs"]
mod faults;
mod matrix;
#[path = "../common/schemas.rs"]
mod schemas;

mod calls;
mod checks;
mod cluster;
mod findings;
mod hang;
mod hybrid;
mod launching;
mod manual;
mod metrics;
mod queues;
mod site;
mod survival;
mod tables;
mod timeline;
mod tuning;
mod variables;
mod watch;
