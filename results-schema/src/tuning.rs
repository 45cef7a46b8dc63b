//! What `gyan tune` found: schema `gyan.tune/1`.

use crate::data::{Data, Serialize, apply, datum, derive};
use crate::{Figure, Tool};

/// Which settings were tried for a program, what each did, and which is worth keeping.
#[derive(Data!, Serialize)]
pub struct Tuning {
    /// [`TUNE_SCHEMA`](crate::TUNE_SCHEMA).
    pub schema: String,
    /// What wrote this.
    pub tool: Tool,
    /// The program with its launcher.
    pub command: Vec<String>,
    /// The MPI library, as it names itself.
    pub library: String,
    /// Size of `MPI_COMM_WORLD`.
    pub ranks: u32,
    /// What is to improve.
    pub metric: TuneMetric,
    /// The metric in each run with the default settings, in the order of the runs.
    pub default: Vec<f64>,
    /// The median of `default`; none without a run.
    pub default_median: Option<f64>,
    /// How far runs with the same settings differ: half of the range of the middle half of `default`, as a part of the
    /// median. None with fewer than four runs.
    pub noise: Option<f64>,
    /// Each setting that was to be tried, in the order in which they were named or nominated.
    pub trials: Vec<Trial>,
    /// Which of `trials` is worth keeping; none when nothing beats the default, or when this is not known yet.
    pub winner: Option<usize>,
    /// How the tune ended.
    pub end: TuneEnd,
    /// Remarks on the whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What is to improve.
#[derive(Data!, Serialize)]
pub struct TuneMetric {
    /// In a few words, or the pattern whose first group is the number in the output of the program.
    pub name: String,
    /// Its unit: `s`, or empty.
    pub unit: String,
    /// Whether a larger number is better.
    pub higher_is_better: bool,
    /// Which number of a run's profiles this is; none when it is read from the program's output.
    pub figure: Option<Figure>,
}

/// How a tune ended.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum TuneEnd {
    /// Everything was tried, or none of the settings could be.
    Decided,
    /// Stopped by a signal; the same command goes on.
    Interrupted,
    /// The budget was used up; the same command with a larger one goes on.
    OutOfBudget,
    /// No setting is known that could help.
    NothingToTry,
}

/// A value for a control variable of the MPI library, or for a variable of the environment.
#[derive(Data!, Serialize, Eq, Hash, Ord, PartialOrd)]
pub struct Assignment {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: String,
    /// Whether it is only a variable of the environment, which nobody reads back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_environment: bool,
}

/// A setting, or several that belong together, and what became of it.
#[apply(datum!)]
pub struct Trial {
    /// What is set.
    pub settings: Vec<Assignment>,
    /// The finding that nominated it; none when the user named it.
    pub nominated_by: Option<String>,
    /// What can go wrong with these settings, where that is known.
    pub hazard: Option<String>,
    /// Whether the library took it.
    pub took: Took,
    /// The number that must move if the settings do anything.
    pub witness: Option<Witnessed>,
    /// The metric in the runs of the race.
    pub raced: Vec<f64>,
    /// The metric in the confirming runs, which were not used to choose these settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<f64>,
    /// The gain over the default: from the confirming runs where there are any, else from the race.
    pub gain: Option<Gain>,
    /// What became of it.
    pub verdict: TrialVerdict,
    /// With the verdict `no_difference`: the largest part of the default's median that the interval of the gain reaches.
    pub no_more_than: Option<f64>,
    /// The reason for the verdict, where the verdict does not say it.
    pub why: Option<String>,
}

/// Whether the library took a setting.
#[derive(Data!, Serialize, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Took {
    /// No run with it yet.
    NotRun,
    /// Each rank read the value back, and its source is what gyan set.
    OnEveryRank,
    /// Nothing can read it back: the reason.
    Unproven(String),
    /// Some rank has another value, or none: the reason.
    Ignored(String),
}

/// A number that must move if a setting does anything.
#[derive(Data!, Serialize)]
pub struct Witnessed {
    /// In a few words.
    pub name: String,
    /// Its unit: `s`, or empty for a count.
    pub unit: String,
    /// The median of the runs with default settings.
    pub default: f64,
    /// The median of the runs with this setting.
    pub with: f64,
    /// Whether they differ by more than chance; false when they are the same count in each run, or shown not to differ by
    /// more than a twentieth. None when the runs show neither.
    pub moved: Option<bool>,
}

/// What a setting gains, as a part of the default's median: 0.1 is 10 % better.
#[derive(Data!, Serialize, Copy)]
pub struct Gain {
    /// The Hodges-Lehmann estimate.
    pub share: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The confidence level of the interval: 0.95 or more where there are enough runs.
    pub confidence: f64,
    /// The number of runs of the default that it was compared with.
    pub default_runs: usize,
    /// The number of its own runs.
    pub runs: usize,
}

/// What became of a setting.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum TrialVerdict {
    /// Better than the default in runs that were not used to choose it.
    Better,
    /// Worse than the default.
    Slower,
    /// The interval of its gain contains 0 and nothing of weight: it is neither better nor worse by more than `no_more_than`.
    NoDifference,
    /// Its runs show neither.
    #[serde(alias = "not_confirmed", alias = "dropped")]
    NotProven,
    /// Better than the default in the race, but another setting was better still; no new runs confirm it.
    Outrun,
    /// The library did not take it.
    Ignored,
    /// A run with it failed, took too long, or gave another result.
    Disqualified,
    /// The race was stopped before it was decided.
    Open,
}

impl Tuning {
    /// Whether there were settings to try, and not one of them could be: each was ignored, or its runs failed.
    pub fn could_try_nothing(&self) -> bool {
        let is_out = |trial: &Trial| {
            matches!(trial.verdict, TrialVerdict::Ignored | TrialVerdict::Disqualified)
        };
        !self.trials.is_empty() && self.trials.iter().all(is_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_read_and_written_the_same() {
        let text = include_str!("../examples/tune.json");
        let tuning: Tuning = serde_json::from_str(text).unwrap();
        assert_eq!(tuning.schema, crate::TUNE_SCHEMA);
        let again: Tuning = serde_json::from_str(&serde_json::to_string(&tuning).unwrap()).unwrap();
        assert_eq!(again, tuning);
        assert!(tuning.winner.is_none_or(|winner| winner < tuning.trials.len()));
    }
}
