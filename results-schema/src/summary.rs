//! The profiles of all ranks of a job reduced to one: schema `gyan.summary/1`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Class, CvarSetting, Datatype, Ending, Job, Measure, Mpi, Statistic, Tool};

/// What the ranks of one job saw, as minimum, average and maximum.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`](crate::SUMMARY_SCHEMA).
    pub schema: String,
    /// What wrote this summary.
    pub tool: Tool,
    /// The job, as its lowest rank tells it; `elapsed_s` is the longest of all ranks.
    pub job: Job,
    /// The MPI library, as the lowest rank tells it.
    pub mpi: Mpi,
    /// Hosts of the ranks, sorted.
    pub hosts: Vec<String>,
    /// Which ranks are in here and which are not.
    pub ranks: Ranks,
    /// Control variables and their values, as rank 0 tells them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cvars: Vec<CvarSetting>,
    /// One row for each variable, class, object, element and measure.
    pub pvars: Vec<PvarSummary>,
    /// One row for each MPI function that a rank called.
    pub calls: Vec<CallSummary>,
    /// What the library exports and what of it was not read.
    pub coverage: CoverageSummary,
    /// What gyan itself cost.
    pub overhead: OverheadSummary,
    /// The warnings of all ranks.
    pub warnings: Vec<Warning>,
}

/// Which ranks a summary holds.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Ranks {
    /// Size of `MPI_COMM_WORLD`.
    pub expected: u32,
    /// Number of profiles reduced.
    pub reduced: u32,
    /// Ranks without a profile.
    pub missing: Vec<u32>,
    /// Ranks that did not end by `MPI_Finalize`.
    pub ended_badly: Vec<BadEnding>,
    /// Files that could not be used.
    pub left_out: Vec<LeftOut>,
}

impl Ranks {
    /// Whether every rank is in here and nothing was left out.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.left_out.is_empty()
    }
}

/// A rank that did not end by `MPI_Finalize`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct BadEnding {
    /// The rank.
    pub rank: u32,
    /// By what it ended.
    pub how: Ending,
    /// With which code.
    pub code: i32,
}

/// A file of the run directory that is not part of the summary.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub file: String,
    /// Why it was left out.
    pub reason: String,
}

/// Which element of a variable a row is about.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Element {
    /// The one element of a scalar.
    Scalar,
    /// An element of a vector, from 0.
    Index(usize),
    /// The sum over a vector that was too long to keep.
    Sum,
    /// The smallest element of such a vector.
    Min,
    /// The largest element of such a vector.
    Max,
}

impl fmt::Display for Element {
    /// What stands behind the name of the variable: nothing for a scalar.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Scalar => Ok(()),
            Element::Index(index) => write!(f, "[{index}]"),
            Element::Sum => f.write_str("[sum]"),
            Element::Min => f.write_str("[min]"),
            Element::Max => f.write_str("[max]"),
        }
    }
}

/// One number of one variable over the ranks that have it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PvarSummary {
    /// Name of the variable.
    pub name: String,
    /// Its class, as the library says.
    pub class: Class,
    /// The class that it behaves as, where the library says it wrongly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaves_as: Option<Class>,
    /// The object that it is bound to.
    pub object: Option<String>,
    /// Which element.
    pub element: Element,
    /// Which reading.
    pub measure: Measure,
    /// Its datatype.
    pub datatype: Datatype,
    /// The result.
    #[serde(flatten)]
    pub statistic: Statistic,
    /// What a reader of this number should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl PvarSummary {
    /// The class that decides how it is reported.
    #[must_use]
    pub fn effective_class(&self) -> Class {
        self.behaves_as.unwrap_or(self.class)
    }
}

/// How often a function was called; a rank that never called it counts as 0.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CallSummary {
    /// Name of the function.
    pub name: String,
    /// The number of calls.
    pub count: Statistic,
    /// The bytes that they handed to MPI; none for a function whose bytes are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Statistic>,
}

/// The coverage blocks of all ranks.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CoverageSummary {
    /// The largest number of variables that the library exports on any rank.
    pub exported: usize,
    /// The largest number of variables read on any rank.
    pub sampled: usize,
    /// The variables that some rank did not read.
    pub skipped: Vec<SkippedSummary>,
    /// What is missing of communicators, windows and files, on any rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
    /// What would give more.
    pub advice: Vec<String>,
}

/// A variable that some rank did not read.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SkippedSummary {
    /// Its index in the library.
    pub index: usize,
    /// Its name, where the library gives one.
    pub name: Option<String>,
    /// Why it was not read.
    pub reason: String,
    /// On how many ranks.
    pub ranks: u64,
}

/// What gyan cost on the ranks.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct OverheadSummary {
    /// Seconds in `MPI_T_init_thread` of the library.
    pub mpit_init_s: Statistic,
    /// Seconds added to `MPI_Init`.
    pub init_s: Statistic,
    /// Seconds spent reading variables in between.
    pub sampling_s: Statistic,
    /// Seconds added to the end.
    pub finalize_s: Statistic,
    /// Share of the run.
    pub share: Statistic,
}

/// A warning and how many ranks gave it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Warning {
    /// The warning.
    pub text: String,
    /// Number of ranks that gave it.
    pub ranks: u64,
}
