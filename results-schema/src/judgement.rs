//! Whether a program got worse: the verdict of `gyan check` on runs against baselines. Schema `gyan.check/1`.

use strum::VariantArray;

use crate::data::{Data, Serialize, apply, datum, derive};
use crate::{Number, Shift, Tool};

/// Runs of a program, judged by rules against earlier runs of it.
#[derive(Data!, Serialize)]
pub struct Judgement {
    /// [`CHECK_SCHEMA`](crate::CHECK_SCHEMA).
    pub schema: String,
    /// What wrote it.
    pub tool: Tool,
    /// Whether the result is `passed`.
    pub passed: bool,
    /// `failed` when a row failed. `not_judged` when nothing could be judged, or no time although times were asked for: by
    /// rules that name them, or with several runs on both sides. Otherwise `passed`.
    pub result: CheckResult,
    /// The runs that are judged, as they were named on the command line.
    pub runs: Vec<String>,
    /// The runs that they are compared with.
    pub baselines: Vec<String>,
    /// How the runs differ from the baselines, if that makes numbers incomparable or less meaningful.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The functions whose calls are not judged, because the rules leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Each number and finding that was judged, by rule.
    pub rows: Vec<JudgedRow>,
}

impl Judgement {
    /// The rows of a rule, or of those with a result.
    pub fn of(&self, rule: CheckRule) -> impl Iterator<Item = &JudgedRow> {
        self.rows.iter().filter(move |row| row.rule == rule)
    }

    /// The rows that failed.
    pub fn failed(&self) -> impl Iterator<Item = &JudgedRow> {
        self.rows.iter().filter(|row| row.result == CheckResult::Failed)
    }
}

/// One number or finding, judged.
#[apply(datum!)]
pub struct JudgedRow {
    /// The rule that judged it.
    pub rule: CheckRule,
    /// The function, what was counted, which time, or the id of a finding.
    pub what: String,
    /// The result.
    pub result: CheckResult,
    /// What the numbers are in: `s`, `bytes`, or empty.
    pub unit: String,
    /// The number of the baselines: the largest count, the median of times, how many baselines have the finding.
    pub baseline: Option<Number>,
    /// The number of the runs: the smallest count, the median of times, how many runs have the finding.
    pub now: Option<Number>,
    /// The most that it may be; a time above it fails only when noise does not explain it.
    pub at_most: Option<Number>,
    /// For a time: the probability that noise alone makes any of the times this much longer (Mann-Whitney U, one-sided, and
    /// Holm). None when there are too few runs to tell.
    pub p: Option<f64>,
    /// For a time: how far the new runs are from the baselines, with several runs on both sides.
    pub shift: Option<Shift>,
    /// A remark: the title of a finding, or why it was not judged.
    pub remark: Option<String>,
}

/// What is judged.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CheckRule {
    /// Whether every rank is there, and called `MPI_Finalize`.
    Ended,
    /// Calls of a function: exact.
    Calls,
    /// Bytes that the calls of a function handed to MPI: exact.
    Bytes,
    /// Messages and accesses to the memory of other ranks, and their bytes: exact.
    Messages,
    /// Findings that no baseline has.
    Findings,
    /// Times, which differ from run to run.
    Times,
}

impl CheckRule {
    /// All of them, in the order of the rows.
    pub const ALL: [CheckRule; CheckRule::VARIANTS.len()] =
        *CheckRule::VARIANTS.first_chunk().unwrap();

    /// The name in files and rules.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The result of judging something.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CheckResult {
    /// It is not worse than the rules allow.
    Passed,
    /// It is.
    Failed,
    /// Nothing can be said.
    NotJudged,
}
