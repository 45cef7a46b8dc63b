//! The rules, one row each, in the file of its function.

/// The names of functions.
macro_rules! functions {
    ($($name:ident)+) => { &[$(stringify!($name)),+] };
}

/// Makes the rules of a file of a row each: `place id: acts, witness, look;`.
macro_rules! rules {
    ($($place:literal $id:literal: $acts:ident, $witness:literal, $look:expr;)+) => {
        &[$(Rule {
            place: $place,
            id: $id,
            acts: gyan_results::Actor::$acts,
            witness: $witness,
            look: $look,
        }),+]
    };
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

use std::sync::LazyLock;

use gyan_results::{Actor, Advice, Evidence};

use super::account::Stake;
use super::run::RunFacts;
use crate::words::double;

pub(super) use messages::eager;
pub(super) use partners::compared;

/// Something that an MPI expert looks for. What it means, when it is wrong and what to do is its page in docs/findings.
pub(crate) struct Rule {
    /// Where it stands among those that claim seconds: what is known best, and what is most particular, comes first.
    /// Between two rules there is room for more.
    pub(super) place: u32,
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

/// The rules about the load of the machine.
pub(super) const LOAD: [&str; 3] = ["bound-together", "oversubscribed", "other-load"];

/// In the order in which they claim seconds. This is also their order in docs/findings.md.
pub(crate) static RULES: LazyLock<Vec<&Rule>> = LazyLock::new(|| {
    let files = [
        calls::RULES,
        collectives::RULES,
        counters::RULES,
        messages::RULES,
        network::RULES,
        numbers::RULES,
        openmp::RULES,
        partners::RULES,
        placement::RULES,
        program::RULES,
        settings::RULES,
    ];
    let mut rules: Vec<&Rule> = files.into_iter().flatten().collect();
    rules.sort_by_key(|rule| rule.place);
    rules
});

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
