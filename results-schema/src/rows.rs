//! The rows of a summary: variables, calls, samples and phases over ranks.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    Address, Class, Datatype, Hit, LoadedObject, Measure, MessageSource, Metric, PeerQueues, Stack,
    Statistic, Traffic,
};

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
    /// The suffix after the name of the variable: empty for a scalar.
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
    /// Its class according to the library.
    pub class: Class,
    /// The class that it behaves as, if the library is wrong.
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

/// How often a function was called and how long that took; a rank that never called it counts as 0.
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
    /// How many calls were timed, on all ranks.
    #[serde(default)]
    pub timed: u64,
    /// Seconds in all calls, over the ranks that know it; none when no rank does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<Statistic>,
    /// The standard error of the sum over the ranks; none when a rank has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_error_s: Option<f64>,
    /// Seconds of the longest call, over the ranks that timed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_max_s: Option<Statistic>,
    /// How many calls on all ranks took less than 1 ns, [1, 2), [2, 4), [4, 8), ... ns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_histogram: Vec<u64>,
    /// How many calls on all ranks moved 0 bytes, 1, [2, 4), [4, 8), ... bytes; exact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_histogram: Vec<u64>,
    /// The bytes of the calls in each of those bars.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_histogram_bytes: Vec<u64>,
}

/// The readings of one variable on the ranks while the program ran. Extremes and means are among the rows of
/// variables.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SamplesSummary {
    /// Name of the variable.
    pub name: String,
    /// Its class according to the library.
    pub class: Class,
    /// The class that it behaves as, if the library is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaves_as: Option<Class>,
    /// The object that it is bound to.
    pub object: Option<String>,
    /// Number of ranks that sampled it.
    pub ranks: u64,
    /// Number of readings on all of them.
    pub n: u64,
    /// How many readings, of the sum over the elements, were below 1, in [1, 2), [2, 4), [4, 8), ...
    pub histogram: Vec<u64>,
    /// The states of a STATE variable, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StateSummary>,
}

/// One state of a STATE variable.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StateSummary {
    /// Its name in the variable's enumeration, else its number.
    pub state: String,
    /// The share of time in it, over the ranks that sampled the variable.
    pub share: Statistic,
}

/// One phase of the program; a rank that was never in it counts as 0.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PhaseSummary {
    /// Its name; empty for time outside all phases, `off` for time with gyan switched off.
    pub name: String,
    /// How often it began.
    pub entries: Statistic,
    /// Seconds in it, without the phases inside it.
    pub time_s: Statistic,
    /// Seconds of those in MPI functions that were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_mpi_s: Option<Statistic>,
    /// Seconds outside MPI; none where threads of a rank may have been in MPI at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub useful_s: Option<Statistic>,
    /// One row for each function that a rank called in it.
    pub calls: Vec<CallSummary>,
    /// How many stretches of time it consists of, on all ranks.
    pub stretches: u64,
    /// How many of those had the variables read at both ends.
    pub stretches_read: u64,
    /// One row for each variable, object, element and measure, over the ranks that read it in this
    /// phase; without differences that are 0 on every rank.
    pub pvars: Vec<PvarSummary>,
    /// One row for each variable and object that a rank sampled in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<SamplesSummary>,
}

/// The receives that were watched on the ranks that compared one variable with one threshold.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WatchSummary {
    /// The variable, by the library's name.
    pub variable: String,
    /// A value above this is a hit.
    pub threshold: u64,
    /// Receives at which it was compared.
    pub receives: Statistic,
    /// Receives at which it could not be compared, on all ranks.
    pub not_compared: u64,
    /// Receives at which it was above the threshold.
    pub hits: Statistic,
    /// The largest value at a receive.
    pub max: Statistic,
    /// Where the hits were, the most hits on all ranks first.
    pub sites: Vec<WatchSiteSummary>,
    /// Hits on all ranks that are in none of the sites.
    pub hits_elsewhere: u64,
    /// The objects that contain the addresses.
    pub load_map: Vec<LoadedObject>,
}

/// One place in the program that calls a receive.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WatchSiteSummary {
    /// The function that is called, by its name in C.
    pub function: String,
    /// Where the call returns to.
    pub call: Address,
    /// The number of hits, over the ranks that have one.
    pub hits: Statistic,
    /// The sum of the values at the hits of all ranks.
    pub sum: u64,
    /// The hit with the largest value.
    pub worst: Hit,
    /// The rank that had it.
    pub worst_rank: u32,
    /// At how many hits the stack was recorded, on all ranks.
    pub stacks_taken: u64,
    /// The stacks that were seen, the most frequent first.
    pub stacks: Vec<Stack>,
}

/// What one source reported about messages, over the ranks that had it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MessagesSummary {
    /// Who called back.
    pub source: MessageSource,
    /// Number of ranks.
    pub ranks: u64,
    /// One row for each metric of which a rank measured something.
    pub metrics: Vec<MetricSummary>,
    /// The queues with the most unexpected messages, then with the most posted receives.
    pub pairs: Vec<PairSummary>,
    /// How many pairs of ranks there are.
    pub pairs_seen: u64,
    /// Messages and receives that are in no pair's row, on all ranks.
    pub without_peer: u64,
    /// Requests and messages that were not followed, on all ranks.
    pub lost: u64,
}

/// One metric over the ranks; one that measured nothing counts as 0 in the number.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MetricSummary {
    /// What is measured.
    pub metric: Metric,
    /// Whose messages.
    pub traffic: Traffic,
    /// The number of measurements.
    pub n: Statistic,
    /// Their sum, over the ranks that measured.
    pub sum: Statistic,
    /// The mean of all measurements of all ranks.
    #[serde(with = "crate::number::double")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::Number"))]
    pub mean: f64,
    /// The largest, over the ranks that measured.
    pub max: Statistic,
    /// The histograms of all ranks added up.
    pub histogram: Vec<u64>,
}

/// The queues of the messages from one rank to another.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PairSummary {
    /// The rank that receives.
    pub rank: u32,
    /// The rank that sends, and the queues of what it sends.
    #[serde(flatten)]
    pub queues: PeerQueues,
}

/// The instances of one event of `MPI_T` over the ranks; one without any counts as 0.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EventSummary {
    /// Its name.
    pub name: String,
    /// The name of its source.
    pub event_source: String,
    /// The communicator that it is bound to.
    pub object: Option<String>,
    /// The number of instances.
    pub n: Statistic,
    /// Instances on all ranks that the library could not deliver.
    pub dropped: u64,
    /// Seconds from the start of the run to the first on any rank.
    pub first_s: Option<f64>,
    /// Seconds from the start of the run to the last on any rank.
    pub last_s: Option<f64>,
    /// The longest time between two on any rank.
    pub gap_max_s: Option<f64>,
}
