//! What callbacks of the library reported about each message and each queue: on one rank and over ranks.

use strum::VariantArray;

use crate::data::{Data, Serialize, derive};
use crate::merge::{Each, Later, Least, Most, reduced};
use crate::statistics::{Statistic, Statistics};

/// What callbacks of the library reported about messages and the queues that they wait in.
#[derive(Data!, Serialize)]
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
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum MessageSource {
    /// PERUSE 2.0.
    Peruse,
    /// Events of `MPI_T` (MPI 4.1, 15.3.8).
    MpiTEvents,
}

/// Whose messages.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// Those of the program, whose tags are not negative.
    Program,
    /// Those that implement collective operations in the library.
    Collectives,
}

/// What is measured of messages. The first eight are those of PERUSE 2.0, section 9.2. A time is taken when
/// both its start and its end were seen for one request or message.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(strum::IntoStaticStr, VariantArray)]
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
    pub const ALL: [Metric; Metric::VARIANTS.len()] = *Metric::VARIANTS.first_chunk().unwrap();

    /// The name in the specification and in the files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it is a time in seconds; the others are numbers.
    pub fn is_time(self) -> bool {
        !matches!(self, Metric::NPostedQLen | Metric::NUnexQLen)
    }
}

/// The measurements of one metric.
#[derive(Data!, Serialize)]
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
#[derive(Data!, Serialize)]
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
#[derive(Data!, Serialize)]
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

/// What one source reported about messages, over the ranks that had it.
#[derive(Data!, Serialize)]
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

reduced! {
    /// One metric over the ranks; one that measured nothing counts as 0 in the number.
    MessageMetric => MetricReduction => MetricSummary by (
        /// What is measured.
        metric: Metric,
        /// Whose messages.
        traffic: Traffic,
    ) {
        /// The number of measurements.
        n: Statistic = Each,
        /// Their sum, over the ranks that measured.
        sum: Statistic = Statistics,
        /// The mean of all measurements of all ranks.
        #[serde(with = "crate::number::double")]
        #[cfg_attr(feature = "schema", schemars(with = "crate::Number"))]
        + mean: f64 = Later,
        /// The largest, over the ranks that measured.
        max: Statistic = Statistics,
        /// The histograms of all ranks added up.
        histogram: Vec<u64> = Vec<u64>,
    } without ()
}

/// The queues of the messages from one rank to another.
#[derive(Data!, Serialize)]
pub struct PairSummary {
    /// The rank that receives.
    pub rank: u32,
    /// The rank that sends, and the queues of what it sends.
    #[serde(flatten)]
    pub queues: PeerQueues,
}

reduced! {
    /// The instances of one event of `MPI_T` over the ranks; one without any counts as 0.
    EventCount => EventReduction => EventSummary by (
        /// Its name.
        name: String,
        /// The name of its source.
        event_source: String,
        /// The communicator that it is bound to.
        object: Option<String>,
    ) {
        /// The number of instances.
        n: Statistic = Each,
        /// Instances on all ranks that the library could not deliver.
        dropped: u64 = u64,
        /// Seconds from the start of the run to the first on any rank.
        first_s: Option<f64> = Least,
        /// Seconds from the start of the run to the last on any rank.
        last_s: Option<f64> = Most,
        /// The longest time between two on any rank.
        gap_max_s: Option<f64> = Most,
    } without ()
}
