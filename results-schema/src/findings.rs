//! The conclusions from a run: efficiencies, and findings with what is at stake and what to do.

use crate::Fidelity;
use crate::data::{Data, Serialize, apply, datum, derive};

/// How well the time of the ranks was used (POP, Performance Optimisation and Productivity, "Standard Metrics").
///
/// With the time T of an average rank and the time U that a rank spends outside MPI: the load balance is mean U / max U, the
/// communication efficiency max U / T, and the parallel efficiency their product, mean U / T.
#[apply(datum!)]
pub struct Efficiencies {
    /// 1 when each rank has the same work.
    pub load_balance: f64,
    /// 1 when the rank with the most work spends no time in MPI.
    pub communication: f64,
    /// What `communication` is made of; none when too little is known of how long ranks wait for each other.
    pub split: Option<CommunicationSplit>,
    /// The part of the time of all ranks that is spent outside MPI.
    pub parallel: f64,
    /// The standard error of `parallel`, if the time in MPI is an estimate.
    pub parallel_error: Option<f64>,
    /// The rank with the most time outside MPI.
    pub busiest_rank: u32,
    /// The same of each phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseEfficiencies>,
    /// Those of the threads of OpenMP; none when not every rank has a runtime that tells, when no region was parallel, or when
    /// too few regions were timed.
    pub hybrid: Option<HybridEfficiencies>,
}

/// How well the time of all threads was used: their capacity is the time of the run, times the threads of each rank's largest team.
///
/// The hierarchy is POP's for MPI and OpenMP: `parallel` is `mpi` x `openmp`, and `openmp` is `serialisation` x `load_balance` x
/// `scheduling`, as TALP of DLB 3.5 splits it. Threads that are idle while the first one is in MPI are lost to MPI.
#[derive(Data!, Serialize, Copy)]
pub struct HybridEfficiencies {
    /// Threads of the largest team of each rank, added up over the ranks.
    pub threads: u64,
    /// The part of the capacity that is outside MPI and not idle.
    pub parallel: f64,
    /// The standard error of `parallel`, if not every region was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_error: Option<f64>,
    /// The part of the capacity that is not lost to MPI: in it, idle while the first thread is in it, or after the end of the rank.
    pub mpi: f64,
    /// The part of what MPI leaves that is not idle.
    pub openmp: f64,
    /// 1 when no thread is idle while the first one works outside of all parallel regions.
    pub serialisation: f64,
    /// 1 when all threads of a region have the same work.
    pub load_balance: f64,
    /// 1 when nothing else is lost in regions: starting them, handing out work, other barriers, teams that leave threads out.
    pub scheduling: f64,
}

impl HybridEfficiencies {
    /// The parts of the capacity that are lost: to serial code, to imbalance, to scheduling, and to MPI.
    pub fn lost(&self) -> [f64; 4] {
        let HybridEfficiencies { mpi, serialisation, load_balance, scheduling, .. } = *self;
        let in_regions = mpi * serialisation;
        [
            mpi * (1.0 - serialisation),
            in_regions * (1.0 - load_balance),
            in_regions * load_balance * (1.0 - scheduling),
            1.0 - mpi,
        ]
    }
}

/// The two factors of the communication efficiency. On a network that moves data at once the run would take as long as the rank that
/// is longest outside MPI or waiting for other ranks: `ideal_s.max` of the summary.
#[derive(Data!, Serialize, Copy)]
pub struct CommunicationSplit {
    /// 1 when no rank with the most work has to wait for others: the largest time outside MPI divided by that of the run on such
    /// a network.
    pub serialisation: f64,
    /// 1 when moving data takes no time: the time of the run on such a network divided by that of the run.
    pub transfer: f64,
    /// The standard error of `transfer`, if it is an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_error: Option<f64>,
    /// Whether ranks may have waited longer than is known: then `serialisation` is at most this, and `transfer` at least.
    pub is_bound: bool,
    /// The part of the time in MPI that is in functions of which it is not known how long ranks waited in them.
    pub unknown_share: f64,
}

/// The efficiencies in one phase.
#[derive(Data!, Serialize)]
pub struct PhaseEfficiencies {
    /// Its name; empty for the time outside all phases.
    pub phase: String,
    /// As of the run.
    pub load_balance: f64,
    /// The part of the time of all ranks in the phase that is spent outside MPI. Phases of ranks neither begin nor end
    /// together, so there is no communication efficiency.
    pub parallel: f64,
}

/// A remark that an MPI expert would make about a run.
#[derive(Data!, Serialize)]
pub struct Finding {
    /// The rule that found it, such as `oversubscribed`; never changes its meaning.
    pub id: String,
    /// In one line.
    pub title: String,
    /// The most seconds, of all ranks together, that it is about and no other finding; none if it is about the measurement.
    pub at_stake_s: Option<f64>,
    /// The same as a part of the time of all ranks.
    pub at_stake_share: Option<f64>,
    /// Who can act on it.
    pub acts: Actor,
    /// The numbers that it rests on.
    pub evidence: Vec<Evidence>,
    /// What to do, the best first.
    pub advice: Vec<Advice>,
    /// The number that changes when the advice is right.
    pub witness: String,
    /// The functions that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    /// The ranks that it is about, unless it is about all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u32>,
    /// What is also true, and mostly about the same seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_true: Vec<AlsoTrue>,
    /// Whether ranks lacked processors for so much of the run that its times say little.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub under_load: bool,
}

/// What another rule found, in seconds that are a finding's already.
#[derive(Data!, Serialize)]
pub struct AlsoTrue {
    /// The rule.
    pub id: String,
    /// In one line.
    pub title: String,
    /// The most seconds, of all ranks together, that it is about.
    pub seconds: f64,
}

/// Who can act on a finding.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// Whoever writes the program.
    Program,
    /// Whoever starts the run.
    Run,
    /// Whoever runs the machine.
    System,
    /// Whoever reads the numbers: it is about them.
    Measurement,
}

/// A number that a finding rests on.
#[derive(Data!, Serialize)]
pub struct Evidence {
    /// Of what.
    pub what: String,
    /// The number.
    pub value: f64,
    /// What it is in: `s`, `bytes`, or empty for a number or a ratio.
    pub unit: String,
    /// How well it is known.
    pub known: Fidelity,
    /// Its standard error, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// The command that shows it, without the run.
    pub shown_by: String,
}

/// What to do about a finding.
#[derive(Data!, Serialize, Eq)]
pub struct Advice {
    /// In words.
    pub text: String,
    /// The command that tries it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Advice {
    /// The control variables that its command sets, with their values.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut words = self.command.iter().flat_map(|command| command.split(' '));
        std::iter::from_fn(move || {
            words.by_ref().find(|word| *word == "--set")?;
            words.next()?.split_once('=')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_a_command_are_known() {
        let command = "gyan run --set a=1 --set b=x=y -- ...".to_owned();
        let advice = Advice { text: String::new(), command: Some(command) };
        assert_eq!(advice.settings().collect::<Vec<_>>(), [("a", "1"), ("b", "x=y")]);
        let advice = Advice { text: String::new(), command: None };
        assert_eq!(advice.settings().count(), 0);
    }
}
