//! The part of a rank profile about messages and queues: receives that were watched, and what callbacks of the
//! library reported about each message.

use serde::{Deserialize, Serialize};

/// Receives that were called while a variable was above a threshold (after the example tool in MPI 4.1,
/// 15.3.7).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Watch {
    /// The variable that was compared, by the library's name.
    pub variable: String,
    /// A value above this is a hit. For a vector, the sum over the elements counts.
    pub threshold: u64,
    /// Receives at which it was compared.
    pub receives: u64,
    /// Receives at which it could not be compared: on communicators for which there is no handle.
    pub not_compared: u64,
    /// Receives at which it was above the threshold.
    pub hits: u64,
    /// The largest value at a receive, above the threshold or not.
    pub max: u64,
    /// Where the hits were, the most frequent first.
    pub sites: Vec<WatchSite>,
    /// Hits that are in none of the sites, because there were too many.
    pub hits_elsewhere: u64,
    /// The loaded objects that contain the addresses.
    pub load_map: Vec<LoadedObject>,
}

/// One place in the program that calls a receive.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct WatchSite {
    /// The function that is called, by its name in C.
    pub function: String,
    /// Where the call returns to.
    pub call: Address,
    /// Exact number of hits.
    pub hits: u64,
    /// The sum of the values at the hits.
    pub sum: u64,
    /// The hit with the largest value.
    pub worst: Hit,
    /// At how many hits the stack was recorded, as the budget allowed.
    pub stacks_taken: u64,
    /// The stacks that were seen, the most frequent first; not more than a few.
    pub stacks: Vec<Stack>,
}

/// A receive that was called while the variable was above the threshold.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Hit {
    /// The value.
    pub value: u64,
    /// The rank in the communicator that was received from; none when that is not known, as for
    /// `MPI_ANY_SOURCE` without a status and for `MPI_Mrecv`.
    pub source: Option<i32>,
    /// The tag; none in the same cases.
    pub tag: Option<i32>,
    /// The name of the communicator; none when the call does not say.
    pub communicator: Option<String>,
    /// For a variable with an element for each rank of the communicator: the rank with the largest.
    pub longest_from: Option<u32>,
}

/// The return addresses of nested calls, the innermost first, without gyan's.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Stack {
    /// How many of the recorded stacks are this one.
    pub hits: u64,
    /// The addresses.
    pub frames: Vec<Address>,
}

/// A place in the code.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
pub struct Address {
    /// The object, by its place in the load map; none for code that belongs to no file.
    pub object: Option<usize>,
    /// The address as in the symbol table of the object; without an object that in the process.
    pub address: u64,
}

/// A program or library that was loaded.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct LoadedObject {
    /// Its file.
    pub path: String,
    /// Its build id in hexadecimal digits, which identifies the build; none when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

/// What callbacks of the library reported about messages and the queues that they wait in.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Messages {
    /// Who called back.
    pub source: MessageSource,
    /// The metrics of which something was measured.
    pub metrics: Vec<MessageMetric>,
    /// The queues of the program's messages from each peer, by rank in `MPI_COMM_WORLD`.
    pub peers: Vec<PeerQueues>,
    /// Messages and receives that are in no peer's row, because there were too many.
    pub without_peer: u64,
    /// Requests and messages that were not followed, because there were too many at a time.
    pub lost: u64,
}

/// Who reports messages.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageSource {
    /// PERUSE 2.0.
    Peruse,
    /// Events of `MPI_T` (MPI 4.1, 15.3.8).
    MpiTEvents,
}

/// Whose messages.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// Those of the program, whose tags are not negative.
    Program,
    /// Those that implement collective operations in the library.
    Collectives,
}

/// What is measured of messages. The first eight are those of PERUSE 2.0, section 9.2. A time is taken when
/// both its start and its end were seen for one request or message.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Metric {
    /// Seconds from the activation of a receive to finding its message among the unexpected ones.
    TReqActivateToMatch,
    /// Seconds from the activation of a request to the start of its transfer.
    TReqActivateToXferBegin,
    /// Seconds of a transfer.
    TXferBeginToEnd,
    /// Seconds from the completion of a request to the program's notice of it.
    TCompleteToNotify,
    /// Seconds from the activation of a request to the program's notice of its completion.
    TActivateToNotify,
    /// Seconds that a message waited for its receive.
    TInUnexQ,
    /// Length of the queue of posted receives after each that was posted, over all communicators, of
    /// the same traffic.
    NPostedQLen,
    /// Length of the queue of unexpected messages after each arrival, over all communicators, of the same
    /// traffic.
    NUnexQLen,
    /// Seconds that a posted receive waited for its message.
    TInPostedQ,
    /// Seconds of a search of the queue of posted receives.
    TSearchPostedQ,
    /// Seconds of a search of the queue of unexpected messages.
    TSearchUnexQ,
}

impl Metric {
    /// Every metric, in the order of the specification.
    pub const ALL: [Metric; 11] = [
        Metric::TReqActivateToMatch,
        Metric::TReqActivateToXferBegin,
        Metric::TXferBeginToEnd,
        Metric::TCompleteToNotify,
        Metric::TActivateToNotify,
        Metric::TInUnexQ,
        Metric::NPostedQLen,
        Metric::NUnexQLen,
        Metric::TInPostedQ,
        Metric::TSearchPostedQ,
        Metric::TSearchUnexQ,
    ];

    /// The name in the specification and in the files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it is a time in seconds; the others are numbers.
    #[must_use]
    pub fn is_time(self) -> bool {
        !matches!(self, Metric::NPostedQLen | Metric::NUnexQLen)
    }
}

/// The measurements of one metric.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MessageMetric {
    /// What is measured.
    pub metric: Metric,
    /// Whose messages.
    pub traffic: Traffic,
    /// Number of measurements.
    pub n: u64,
    /// Their sum.
    pub sum: f64,
    /// The largest.
    pub max: f64,
    /// How many were below 1, in [1, 2), [2, 4), [4, 8), ...; of times in nanoseconds. Up to the last
    /// that is not 0.
    pub histogram: Vec<u64>,
}

/// The queues of the messages from one peer (PERUSE 2.0, section 9.1.4).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PeerQueues {
    /// The rank in `MPI_COMM_WORLD`; none for receives from `MPI_ANY_SOURCE`.
    pub peer: Option<u32>,
    /// Messages from it that came before their receive was posted.
    pub unexpected: u64,
    /// The longest queue of those.
    pub unexpected_max: u64,
    /// The mean length after each arrival.
    pub unexpected_mean: f64,
    /// Seconds that they waited, of those that were received.
    pub unexpected_time_s: f64,
    /// The longest of those.
    pub unexpected_time_max_s: f64,
    /// Receives from it that were posted before their message came.
    pub posted: u64,
    /// The longest queue of those.
    pub posted_max: u64,
    /// The mean length after each that was posted.
    pub posted_mean: f64,
}

/// The instances of one event of `MPI_T`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EventCount {
    /// Its name.
    pub name: String,
    /// The name of its source.
    pub event_source: String,
    /// The communicator that it is bound to; none for an event that binds to nothing.
    pub object: Option<String>,
    /// Number of instances.
    pub n: u64,
    /// Instances that the library says it could not deliver.
    pub dropped: u64,
    /// Seconds from the start of the run to the first.
    pub first_s: Option<f64>,
    /// Seconds from the start of the run to the last.
    pub last_s: Option<f64>,
    /// The longest time between two.
    pub gap_max_s: Option<f64>,
}
