//! The rules, one row each.

/// The names of functions.
macro_rules! functions {
    ($($name:ident)+) => { &[$(stringify!($name)),+] };
}

mod calls;
mod collectives;
mod counters;
mod messages;
mod network;
mod numbers;
mod openmp;
mod partners;
mod placement;
mod program;
mod settings;

use gyan_results::{Actor, Advice, Evidence};

use super::account::Stake;
use super::run::RunFacts;
use crate::words::double;

pub(super) use messages::eager;
pub(super) use partners::compared;

/// Something that an MPI expert looks for. What it means, when it is wrong and what to do is its page in docs/findings.
pub(crate) struct Rule {
    /// Never changes its meaning.
    pub(crate) id: &'static str,
    pub(crate) acts: Actor,
    /// The number that changes when its advice is right.
    pub(crate) witness: &'static str,
    pub(super) look: fn(&RunFacts) -> Vec<RuleMatch>,
}

/// What a rule has found.
#[derive(Default)]
pub(super) struct RuleMatch {
    pub(super) title: String,
    /// Seconds of all ranks together, and whose they are; none when that has no meaning.
    pub(super) at_stake: Option<Stake>,
    pub(super) evidence: Vec<Evidence>,
    pub(super) advice: Vec<Advice>,
    pub(super) functions: Vec<String>,
    pub(super) ranks: Vec<u32>,
}

/// Makes [`RULES`] of a row each: `id: acts, witness, look;`.
macro_rules! rules {
    ($($id:literal: $acts:ident, $witness:literal, $look:expr;)+) => {
        &[$(Rule { id: $id, acts: Actor::$acts, witness: $witness, look: $look }),+]
    };
}

/// The rules about the load of the machine.
pub(super) const LOAD: [&str; 3] = ["bound-together", "oversubscribed", "other-load"];

/// In the order in which they claim seconds: what is known best, and what is most particular, comes first. This is also
/// their order in docs/findings.md.
pub(crate) const RULES: &[Rule] = rules! {
    "bound-together": Run,
        "the processors of each rank (gyan report --machine) and the time for which they wanted one",
        placement::bound_together;
    "oversubscribed": Run, "the time for which ranks wanted a processor (gyan report --machine)",
        placement::oversubscribed;
    "other-load": System, "the time for which ranks wanted a processor (gyan report --machine)",
        placement::other_load;
    "idle-processors": Run, "the processors that a rank used (gyan report --machine)",
        placement::idle_processors;
    "slow-start": Run, "the time in MPI_Init", placement::slow_start;
    "asks-for-rank": Program, "the number of calls", program::asks_for_rank;
    "independent-io": Program, "the time in functions of MPI_File", program::independent_io;
    "imbalance": Program, "the load balance", collectives::imbalance;
    "serial-code": Program, "the OpenMP efficiency (gyan report --openmp)", openmp::serial_code;
    "openmp-imbalance": Program, "the load balance of the threads (gyan report --openmp)",
        openmp::imbalance;
    "short-regions": Program, "the OpenMP efficiency, and the number of entries (gyan report --openmp)",
        openmp::short_regions;
    "polling": Program, "the number of these calls", program::polling;
    "first-contact": Run, "the longest call", messages::first_contact;
    "outlier": Program, "the longest call", calls::outlier;
    "thread-contention": Program,
        "how long several threads are in MPI at once, and the mean time of a call",
        calls::threads;
    "made-again": Program, "the number of calls that make objects, and the time in them",
        calls::made_again;
    "long-locks": Program, "the time in MPI_Win_lock and MPI_Win_unlock", calls::long_locks;
    "tiny-accesses": Program, "the number of accesses, and the time in them", calls::tiny_accesses;
    "no-overlap": Program, "the time in waits", calls::no_overlap;
    "copied-twice": System, "the time in sends and receives", placement::copied_twice;
    "flooded": Program, "the longest queue of unexpected messages", messages::flooded;
    "long-searches": Program, "match attempts for each receive", messages::long_searches;
    "eager-limit": Run, "the time in sends; bytes in the queue of unexpected messages grow",
        messages::eager_limit;
    "wrong-order": Program, "the waiting while a message is there", partners::wrong_order;
    "late-senders": Program, "the waiting of receives, or the load balance",
        partners::late_senders;
    "late-receivers": Program, "the waiting of sends", partners::late_receivers;
    "unexpected-messages": Program, "the number of unexpected messages", messages::unexpected;
    "small-messages": Program, "the number of messages", messages::small_messages;
    "waiting": Program, "the waiting in that function; a barrier before it would take it over",
        collectives::waiting;
    "late-root": Program, "the waiting in that function", collectives::late_root;
    "early-root": Program, "the waiting in that function", collectives::early_root;
    "barrier": Program, "the number of calls, and the time of the run", collectives::barrier;
    "tiny-collectives": Program, "the number of collectives, and the time in them",
        calls::tiny_collectives;
    "algorithm": Run,
        "the time of the function; the number of messages and of bytes that a rank sends for it",
        collectives::algorithm;
    "threads-wait-for-mpi": Program, "the MPI efficiency of the threads (gyan report --openmp)",
        openmp::threads_wait_for_mpi;
    "communication": Program, "the communication efficiency", collectives::communication;
    "memory": Program, "the ratio of the largest to the average", messages::memory;
    "memory-bound": Program, "the instructions per cycle outside MPI (gyan report --machine)",
        counters::memory_bound;
    "different-clocks": System, "the cycles a second of each rank (gyan report --machine)",
        counters::different_clocks;
    "network-retries": System, "the retries of the network (gyan report --machine), and the time in MPI",
        network::retries_of_network;
    "leak": Program, "objects made, minus objects freed", program::leak;
    "without-dynamic-rules": Run, "the time of the function; the number of messages that it sends",
        settings::without_dynamic_rules;
    "setting-ignored": Run, "the value of the variable", settings::ignored;
    "inert-setting": Run, "nothing moves", settings::inert;
    "nothing-in-mpi": Measurement, "the time in MPI", numbers::nothing_in_mpi;
    "incomplete": Measurement, "the number of profiles", numbers::incomplete;
    "too-short": Measurement, "the time of the run", numbers::too_short;
    "over-budget": Measurement, "the cost of gyan", numbers::over_budget;
    "no-variables": Measurement, "the number of variables that are not zero", numbers::no_variables;
};

/// Functions that send a message and may wait until that is possible.
pub(in crate::findings) const SENDS: &[&str] = functions![
    MPI_Send MPI_Ssend MPI_Rsend MPI_Bsend MPI_Isend MPI_Issend MPI_Irsend MPI_Ibsend MPI_Sendrecv
    MPI_Sendrecv_replace MPI_Start MPI_Startall
];

/// Functions that end when a message has come.
pub(in crate::findings) const RECEIVES: &[&str] = functions![
    MPI_Recv MPI_Mrecv MPI_Sendrecv MPI_Sendrecv_replace MPI_Probe MPI_Mprobe MPI_Irecv MPI_Imrecv
];

/// Functions that end when requests are complete.
pub(in crate::findings) const WAITS: &[&str] =
    &["MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"];

/// Functions that test whether something has happened.
pub(crate) const POLLS: &[&str] =
    &["MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Iprobe", "MPI_Improbe"];

/// Blocking collective functions that move data.
const COLLECTIVES: &[&str] = functions![
    MPI_Allgather MPI_Allgatherv MPI_Allreduce MPI_Alltoall MPI_Alltoallv MPI_Alltoallw MPI_Bcast
    MPI_Exscan MPI_Gather MPI_Gatherv MPI_Reduce MPI_Reduce_scatter MPI_Reduce_scatter_block
    MPI_Scan MPI_Scatter MPI_Scatterv
];

/// A percentage for a sentence: `47 %`.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if (0.0..0.05).contains(&percent) {
        "less than 0.1 %".to_owned()
    } else if percent < 9.5 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// With two digits, for a sentence.
fn rounded(number: f64) -> String {
    let mut unit = 1.0;
    while number >= 100.0 * unit {
        unit *= 10.0;
    }
    double((number / unit).round() * unit)
}

/// `s` where there is not exactly one.
fn plural(number: f64) -> &'static str {
    if number > 0.99 && number < 1.01 { "" } else { "s" }
}
