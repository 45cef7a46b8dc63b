//! The rules, one row each.

mod calls;
mod collectives;
mod messages;
mod numbers;
mod placement;
mod program;
mod settings;

use gyan_results::{Actor, Advice, Evidence};

use super::account::Stake;
use super::run::RunFacts;
use crate::words::double;

pub(super) use messages::eager;

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

/// The rules about the load of the machine.
pub(super) const LOAD: [&str; 3] =
    [placement::BOUND_TOGETHER.id, placement::OVERSUBSCRIBED.id, placement::OTHER_LOAD.id];

/// In the order in which they claim seconds: what is known best, and what is most particular, comes first. This is also
/// their order in docs/findings.md.
pub(crate) const RULES: &[Rule] = &[
    placement::BOUND_TOGETHER,
    placement::OVERSUBSCRIBED,
    placement::OTHER_LOAD,
    placement::SLOW_START,
    program::ASKS_FOR_RANK,
    program::INDEPENDENT_IO,
    collectives::IMBALANCE,
    program::POLLING,
    messages::FIRST_CONTACT,
    calls::OUTLIER,
    calls::THREADS,
    calls::MADE_AGAIN,
    calls::LONG_LOCKS,
    calls::TINY_ACCESSES,
    calls::NO_OVERLAP,
    placement::COPIED_TWICE,
    messages::FLOODED,
    messages::LONG_SEARCHES,
    messages::EAGER_LIMIT,
    messages::LATE_SENDERS,
    messages::LATE_RECEIVERS,
    messages::SMALL_MESSAGES,
    collectives::WAITING,
    collectives::BARRIER,
    calls::TINY_COLLECTIVES,
    collectives::ALGORITHM,
    collectives::COMMUNICATION,
    messages::MEMORY,
    program::LEAK,
    settings::WITHOUT_DYNAMIC_RULES,
    settings::IGNORED,
    settings::INERT,
    numbers::NOTHING_IN_MPI,
    numbers::INCOMPLETE,
    numbers::TOO_SHORT,
    numbers::OVER_BUDGET,
    numbers::NO_VARIABLES,
];

/// Functions that send a message and may wait until that is possible.
pub(super) const SENDS: &[&str] = &[
    "MPI_Send",
    "MPI_Ssend",
    "MPI_Rsend",
    "MPI_Bsend",
    "MPI_Isend",
    "MPI_Issend",
    "MPI_Irsend",
    "MPI_Ibsend",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
    "MPI_Start",
    "MPI_Startall",
];

/// Functions that end when a message has come.
pub(super) const RECEIVES: &[&str] = &[
    "MPI_Recv",
    "MPI_Mrecv",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
    "MPI_Probe",
    "MPI_Mprobe",
    "MPI_Irecv",
    "MPI_Imrecv",
];

/// Functions that end when requests are complete.
pub(super) const WAITS: &[&str] = &["MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"];

/// Functions that test whether something has happened.
pub(crate) const POLLS: &[&str] =
    &["MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Iprobe", "MPI_Improbe"];

/// Blocking collective functions that move data.
const COLLECTIVES: &[&str] = &[
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Allreduce",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Bcast",
    "MPI_Exscan",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Reduce",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Scan",
    "MPI_Scatter",
    "MPI_Scatterv",
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
