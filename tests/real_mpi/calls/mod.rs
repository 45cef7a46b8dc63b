//! What is known of calls: which functions are wrapped, how often and how long they are called, from which language.

mod bench;
mod budget;
mod counts;
mod coverage;
mod critical_path;
mod efficiencies;
mod hpcc;
mod languages;
mod locks;
mod native;
mod onesided;
mod pairs;
mod phases;
mod regions;
mod sessions;
mod sites;
mod traffic;
pub(crate) mod waiting;
pub(crate) mod waits;
