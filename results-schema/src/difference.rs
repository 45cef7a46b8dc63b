//! What `gyan diff` finds between runs: schema `gyan.diff/1`.
//!
//! Each side is one run, or several of the same thing. Numbers are those of an average rank unless they say
//! otherwise, and over several runs their means. `change` is always the number of B minus that of A.

use crate::data::{Data, Serialize, derive};
use crate::{Actor, Tool};

/// The differences from one side to the other.
#[derive(Data!, Serialize)]
pub struct Difference {
    /// [`DIFF_SCHEMA`](crate::DIFF_SCHEMA).
    pub schema: String,
    /// What wrote this.
    pub tool: Tool,
    /// The answer in a sentence.
    pub answer: String,
    /// The runs before.
    pub a: Side,
    /// The runs after.
    pub b: Side,
    /// What cannot be compared, or not well, a sentence each.
    pub remarks: Vec<String>,
    /// What differs in how the programs were run.
    pub setup: Vec<SetupDifference>,
    /// The run time; none when a run does not know it for each rank.
    pub run_time: Option<Change>,
    /// Where the run time changed: the functions of MPI, those with the most seconds first, then the time
    /// outside them. They add up to the change of `run_time`.
    pub parts: Vec<PartDifference>,
    /// The phases of either side, those with the most seconds first.
    pub phases: Vec<PhaseDifference>,
    /// All other numbers that differ, by group.
    pub numbers: Vec<NumberDifference>,
    /// Findings that only one side has, or that both have.
    pub findings: Vec<FindingDifference>,
}

/// The runs of a side.
#[derive(Data!, Serialize, Default, Eq)]
pub struct Side {
    /// Where they are.
    pub runs: Vec<String>,
    /// The runs in which ranks are missing, or did not end as they should.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
}

/// A fact of the set-up that differs between the sides, or among the runs of a side.
#[derive(Data!, Serialize, Eq)]
pub struct SetupDifference {
    /// What: `MPI library`, `setting btl_vader_eager_limit`.
    pub what: String,
    /// Its values in the runs of A, each once; empty for not known, or not set.
    pub a: Vec<String>,
    /// Its values in the runs of B.
    pub b: Vec<String>,
}

/// A number on one side.
#[derive(Data!, Serialize)]
pub struct SideNumber {
    /// The mean over the runs.
    pub mean: f64,
    /// Its standard error as an estimate within the runs: 0 for counts, none when it is not known. It does not
    /// include differences from run to run.
    pub error: Option<f64>,
    /// The number in each run, in order.
    pub runs: Vec<f64>,
}

/// How a number changed, and what can be said of that.
#[derive(Data!, Serialize, Default)]
pub struct Change {
    /// On side A; none when A does not have it.
    pub a: Option<SideNumber>,
    /// On side B; none when B does not have it.
    pub b: Option<SideNumber>,
    /// The mean of B minus that of A; a side without the number counts as 0.
    pub change: f64,
    /// The standard error of that as an estimate within the runs.
    pub error: Option<f64>,
    /// How far the runs of B are from those of A, with several runs on both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<Shift>,
    /// The probability that runs of the same thing differ this much (Mann-Whitney U, two-sided); none when there are too few
    /// runs to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The probability that any row of the table does (Holm).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_adjusted: Option<f64>,
    /// With the verdict `unproven`: the number of runs on each side that it takes to judge this row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<usize>,
    /// The verdict.
    pub verdict: ChangeVerdict,
}

/// The shift of Hodges and Lehmann: the median of all differences between a run of B and a run of A.
#[derive(Data!, Serialize, Copy)]
pub struct Shift {
    /// The median.
    pub estimate: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// The confidence level of the interval: 0.95 or more if there are enough runs.
    pub confidence: f64,
}

/// The verdict on a change.
#[derive(Data!, Serialize, Copy, Default, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// There is none.
    #[default]
    Same,
    /// It is not larger than the error of the estimates.
    WithinError,
    /// The runs could have shown a difference, and do not.
    WithinNoise,
    /// Not judged: so few runs could not have shown a difference.
    Unproven,
    /// Not judged: the number of a side is only a lower bound, or is made of one.
    LowerBound,
    /// A count that is the same in each run of a side but differs between the sides, or a significant
    /// difference.
    Changed,
}

/// The kind of a part of the run time.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// The calls of a function of MPI.
    Function,
    /// Everything outside calls whose time is known.
    Outside,
}

/// A part of the run time, in seconds.
#[derive(Data!, Serialize)]
pub struct PartDifference {
    /// The function's name; empty for the time outside.
    pub name: String,
    /// Its kind.
    pub kind: PartKind,
    /// The seconds.
    #[serde(flatten)]
    pub time: Change,
    /// How the change comes about; none for the time outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
}

/// A change of seconds, split into a change of how often and a change of how long: exact, and the same in both
/// directions.
#[derive(Data!, Serialize, Copy)]
pub struct Split {
    /// How often on side A.
    pub number_a: f64,
    /// How often on side B.
    pub number_b: f64,
    /// Seconds of one on side A; where there are none, those of side B.
    pub each_a_s: f64,
    /// Seconds of one on side B; where there are none, those of side A.
    pub each_b_s: f64,
    /// The change of the number times the mean of the seconds of one.
    pub by_number_s: f64,
    /// The mean of the numbers times the change of the seconds of one.
    pub by_each_s: f64,
}

/// A phase of the program.
#[derive(Data!, Serialize)]
pub struct PhaseDifference {
    /// Its name; empty for the time outside all phases.
    pub name: String,
    /// Seconds in it, without the phases inside it.
    #[serde(flatten)]
    pub time: Change,
    /// Split into how often it began, and how long it took each time.
    pub split: Split,
    /// The functions in it: as for the run, adding up to the change of the phase.
    pub parts: Vec<PartDifference>,
}

/// What a number is about.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum NumberGroup {
    /// How often a function is called.
    Calls,
    /// The bytes that a function moves.
    Bytes,
    /// How many calls of a function move a given number of bytes.
    Sizes,
    /// Who sends how much to whom.
    Peers,
    /// Waiting in collectives and in messages.
    Waiting,
    /// How long one rank waits for another one in messages.
    WaitingPairs,
    /// The queues of messages.
    Queues,
    /// Performance variables of the MPI library.
    Variables,
    /// What the processes used of the machine.
    Resources,
}

/// How a number comes about, which decides what can be said about a change.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum NumberKind {
    /// Counted, and the same whenever a program does the same.
    Count,
    /// Estimated from some of the calls, with a standard error.
    Estimate,
    /// Different from run to run.
    Measurement,
}

/// A number that is not part of the run time.
#[derive(Data!, Serialize)]
pub struct NumberDifference {
    /// What it is about.
    pub group: NumberGroup,
    /// Of what.
    pub name: String,
    /// For a number of calls of a size: the least bytes of such a call; they move less than twice as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_bytes: Option<u64>,
    /// What it is in: `s`, `bytes`, or empty for a number.
    pub unit: String,
    /// How it comes about.
    pub kind: NumberKind,
    /// The number.
    #[serde(flatten)]
    pub number: Change,
}

/// A finding on both sides.
#[derive(Data!, Serialize)]
pub struct FindingDifference {
    /// The rule that found it.
    pub id: String,
    /// In one line, as B has it, or else A.
    pub title: String,
    /// Who can act on it.
    pub acts: Actor,
    /// In how many runs of A it is.
    pub a_runs: usize,
    /// In how many runs of B it is.
    pub b_runs: usize,
    /// The part of the run at stake, on average over the runs of A that have it.
    pub a_share: Option<f64>,
    /// The part of the run at stake, on average over the runs of B that have it.
    pub b_share: Option<f64>,
}

impl Change {
    /// The means of A and of B; 0 for a side without the number.
    pub fn means(&self) -> [f64; 2] {
        [&self.a, &self.b].map(|side| side.as_ref().map_or(0.0, |of| of.mean))
    }

    /// The larger of both sides.
    pub fn larger(&self) -> f64 {
        let [a, b] = self.means().map(f64::abs);
        a.max(b)
    }

    /// The change as a fraction of the larger side, between -1 and 1; 0 when there is none.
    pub fn relative(&self) -> f64 {
        if self.change == 0.0 { 0.0 } else { self.change / self.larger() }
    }

    /// Whether it is more than an error or noise, as far as that is known: what is not judged must at least differ in each run
    /// of a side from each run of the other.
    pub fn may_be_real(&self) -> bool {
        match self.verdict {
            ChangeVerdict::Changed => true,
            ChangeVerdict::Unproven | ChangeVerdict::LowerBound => !self.overlaps(),
            _ => false,
        }
    }

    fn overlaps(&self) -> bool {
        let (Some(a), Some(b)) = (&self.a, &self.b) else { return false };
        let least = |of: &SideNumber| of.runs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = |of: &SideNumber| of.runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        least(a).max(least(b)) <= most(a).min(most(b))
    }
}
