//! What is known of calls: which functions are wrapped, how often and how long they are called, from which language.

mod bench;
mod budget;
mod counts;
mod coverage;
mod efficiencies;
mod hpcc;
mod languages;
mod native;
mod pairs;
mod phases;
mod sessions;
mod sites;
mod traffic;
mod waiting;
pub(crate) mod waits;
