//! Which variables were read, and which were left out: on one rank and over ranks.

use crate::Statistic;
use crate::data::{Data, Serialize, derive};

/// What the library exports, what of it was read, and what was not, with the reasons.
#[derive(Data!, Serialize, Default, Eq)]
pub struct Coverage {
    /// Number of performance variables that the library exports.
    pub exported: usize,
    /// Number of those that were read.
    pub sampled: usize,
    /// The others.
    pub skipped: Vec<Skipped>,
    /// The communicators, windows and files that are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectsLeftOut>,
    /// What is missing from events and the watch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// What would give more.
    pub advice: Vec<String>,
}

/// The coverage blocks of all ranks.
#[derive(Data!, Serialize, Default)]
pub struct CoverageSummary {
    /// The largest number of variables that the library exports on any rank.
    pub exported: usize,
    /// The largest number of variables read on any rank.
    pub sampled: usize,
    /// The variables that some rank did not read.
    pub skipped: Vec<SkippedSummary>,
    /// The communicators, windows and files that are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectsLeftOutSummary>,
    /// What is missing from events and the watch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// What would give more.
    pub advice: Vec<String>,
}

/// A variable that was not read.
#[derive(Data!, Serialize, Eq, Ord, PartialOrd)]
pub struct Skipped {
    /// Its index in the library.
    pub index: usize,
    /// Its name, if the library gives one.
    pub name: Option<String>,
    /// Why it was not read.
    pub reason: String,
}

/// A variable that some rank did not read.
#[derive(Data!, Serialize, Eq)]
pub struct SkippedSummary {
    /// Its index in the library.
    pub index: usize,
    /// Its name, if the library gives one.
    pub name: Option<String>,
    /// Why it was not read.
    pub reason: String,
    /// How many ranks did not read it.
    pub ranks: u64,
}

/// Communicators, windows or files that the profile does not cover.
#[derive(Data!, Serialize, Default, Eq)]
pub struct ObjectsLeftOut {
    /// One of them: its kind and its size in ranks.
    pub what: String,
    /// How many.
    pub number: u64,
    /// Why.
    pub reason: String,
}

/// Communicators, windows or files that the profiles of some ranks do not cover.
#[derive(Data!, Serialize)]
pub struct ObjectsLeftOutSummary {
    /// One of them: its kind and its size in ranks.
    pub what: String,
    /// How many, on the ranks that left some out.
    pub number: Statistic,
    /// Why.
    pub reason: String,
}
