//! The rules, one row each.

mod collectives;
mod messages;
mod numbers;
mod placement;
mod program;
mod settings;

use gyan_results::{Actor, Advice, Evidence};

use super::run::{Run, Time};

pub(super) use messages::eager;

/// Something that an MPI expert looks for.
pub(crate) struct Rule {
    /// Never changes its meaning.
    pub(crate) id: &'static str,
    /// What it is about, in a few words.
    pub(crate) name: &'static str,
    pub(crate) acts: Actor,
    /// The data that it looks at.
    pub(crate) needs: &'static str,
    /// When it fires, with its thresholds.
    pub(crate) when: &'static str,
    /// What it means, and what is at stake.
    pub(crate) means: &'static str,
    /// When it is wrong.
    pub(crate) wrong_when: &'static str,
    /// The number that changes when its advice is right.
    pub(crate) witness: &'static str,
    /// Where it comes from.
    pub(crate) source: &'static str,
    /// Rules that explain the same time better: when one of them has at least half of what is at stake here,
    /// this one stays silent.
    pub(crate) yields_to: &'static [&'static str],
    /// What to do about it.
    pub(crate) todo: &'static str,
    pub(super) look: fn(&Run) -> Vec<Found>,
}

/// What a rule has found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) title: String,
    /// Seconds of all ranks together; none when that has no meaning.
    pub(super) at_stake: Option<Time>,
    pub(super) evidence: Vec<Evidence>,
    pub(super) advice: Vec<Advice>,
    pub(super) functions: Vec<String>,
    pub(super) ranks: Vec<u32>,
}

/// The rule for other work on the processors of the ranks.
pub(super) const OTHER_LOAD: &str = placement::OTHER_LOAD.id;

/// The rule for senders that wait for their receivers.
pub(super) const SENDS_HELD_UP: &str = messages::EAGER_LIMIT.id;

/// In the order in which they are listed in docs/findings.md.
pub(crate) const RULES: &[Rule] = &[
    placement::OVERSUBSCRIBED,
    placement::BOUND_TOGETHER,
    placement::OTHER_LOAD,
    placement::COPIED_TWICE,
    placement::SLOW_START,
    collectives::IMBALANCE,
    collectives::COMMUNICATION,
    collectives::WAITING,
    collectives::ALGORITHM,
    collectives::BARRIER,
    messages::EAGER_LIMIT,
    messages::FLOODED,
    messages::LATE_SENDERS,
    messages::LATE_RECEIVERS,
    messages::LONG_SEARCHES,
    messages::SMALL_MESSAGES,
    messages::FIRST_CONTACT,
    messages::MEMORY,
    program::POLLING,
    program::ASKS_FOR_RANK,
    program::LEAK,
    program::INDEPENDENT_IO,
    settings::WITHOUT_DYNAMIC_RULES,
    settings::IGNORED,
    settings::INERT,
    numbers::NOTHING_IN_MPI,
    numbers::TOO_SHORT,
    numbers::INCOMPLETE,
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

/// `s` where there is not exactly one.
fn plural(number: f64) -> &'static str {
    if number > 0.99 && number < 1.01 { "" } else { "s" }
}
