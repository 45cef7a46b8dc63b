//! What each rank sends to which others, exactly: in messages, and by accesses to their memory.

use serde::{Deserialize, Serialize};

/// What a rank sent to each of its peers.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Peers {
    /// By point-to-point operations (MPI 4.1, chapters 3 and 4). A message is counted when its send is begun, with as
    /// many bytes as the arguments say; one to `MPI_PROC_NULL` is none.
    pub messages: Vec<PeerTraffic>,
    /// By one-sided operations (chapter 12): puts, gets, accumulates and their kin, with the bytes of the origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accesses: Vec<PeerTraffic>,
}

/// What a rank sent to one peer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct PeerTraffic {
    /// Its rank in `MPI_COMM_WORLD`. None for all others together: processes that are not in there, or whose rank is
    /// not known; in a job of more than 4,096 ranks those that found no room among the rank's first 1,024 peers.
    pub rank: Option<u32>,
    /// How many messages, or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The ways in which data gets from one process to another.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    /// See [`Peers::messages`].
    Messages,
    /// See [`Peers::accesses`].
    Accesses,
}

/// Who sends how much to whom, over the ranks.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TrafficSummary {
    /// In which way.
    pub kind: TrafficKind,
    /// All messages or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The ranks that sent anything.
    pub ranks: Vec<RankTraffic>,
    /// What each of them sent to each of its peers; empty in a job of more than 1,024 ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrix: Vec<MatrixRow>,
    /// The 64 pairs with the most bytes, the one with the most first.
    pub heaviest: Vec<PairTraffic>,
    /// By the distance between sender and receiver: the 64 distances with the most bytes, and the rest.
    pub by_distance: Vec<DistanceTraffic>,
    /// From host to host; empty when there is one host only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_host: Vec<HostTraffic>,
}

impl TrafficSummary {
    /// What goes from one rank to another, as (from, to, number, bytes), without `to` for all others: the matrix,
    /// or the heaviest pairs of a job that is too large for one.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, Option<u32>, u64, u64)> {
        let matrix = self.matrix.iter().flat_map(|row| {
            row.to.iter().map(|&(to, number, bytes)| (row.rank, to, number, bytes))
        });
        let heaviest = self.heaviest.iter().filter(|_| self.matrix.is_empty());
        let heaviest = heaviest.map(|pair| (pair.from, Some(pair.to), pair.number, pair.bytes));
        matrix.chain(heaviest)
    }
}

/// What one rank sent.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RankTraffic {
    /// The rank.
    pub rank: u32,
    /// To how many peers that are known.
    pub peers: u64,
    /// How many messages or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The peer that it sent the most bytes to; none when none is known.
    pub heaviest: Option<u32>,
    /// The bytes of that.
    pub heaviest_bytes: u64,
}

/// A row of the communication matrix.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct MatrixRow {
    /// The rank that sends.
    pub rank: u32,
    /// For each peer its rank, how many messages or accesses, and their bytes; without a rank all others.
    pub to: Vec<(Option<u32>, u64, u64)>,
}

/// What one rank sent to one other.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PairTraffic {
    /// The rank that sends.
    pub from: u32,
    /// The rank that it is sent to.
    pub to: u32,
    /// How many messages or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What was sent over one distance.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct DistanceTraffic {
    /// By how much the ranks of sender and receiver differ; none for the rest.
    pub distance: Option<u32>,
    /// How many messages or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What was sent from one host to another, or on one.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HostTraffic {
    /// The host that sends.
    pub from: String,
    /// The host that it is sent to; none for peers whose host is not known. In a job of more than 1,024 ranks what a rank
    /// sent to others than its 64 heaviest peers is in here, too.
    pub to: Option<String>,
    /// How many messages or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}
