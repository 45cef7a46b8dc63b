//! What each rank sends to each of the others, exactly: in messages, and by accesses to their memory.

use crate::data::{Data, Serialize, derive};

/// What a rank sent to each of its peers.
#[derive(Data!, Serialize, Default, Eq)]
pub struct Peers {
    /// By point-to-point operations (MPI 4.1, chapters 3 and 4). A message is counted when its send begins,
    /// with the bytes given by the arguments; one to `MPI_PROC_NULL` does not count.
    pub messages: Vec<PeerTraffic>,
    /// By one-sided operations (chapter 12): puts, gets, accumulates and the like, with the bytes of the
    /// origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accesses: Vec<PeerTraffic>,
}

/// What a rank sent to one peer.
#[derive(Data!, Serialize, Copy, Default, Eq)]
pub struct PeerTraffic {
    /// Its rank in `MPI_COMM_WORLD`. None for all others together: processes that are not in it, or whose rank
    /// is not known; in a job of more than 4,096 ranks, also peers after the rank's first 1,024.
    pub rank: Option<u32>,
    /// How many messages, or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The ways in which data gets from one process to another.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    /// See [`Peers::messages`].
    Messages,
    /// See [`Peers::accesses`].
    Accesses,
}

/// Who sends how much to whom, over the ranks.
#[derive(Data!, Serialize, Eq)]
pub struct TrafficSummary {
    /// The way.
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
    /// From host to host; empty when there is only one host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_host: Vec<HostTraffic>,
}

impl TrafficSummary {
    /// The traffic from one rank to another, as (from, to, number, bytes), without `to` for all others: the
    /// matrix, or the heaviest pairs if the job is too large for one.
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
#[derive(Data!, Serialize, Eq)]
pub struct RankTraffic {
    /// The rank.
    pub rank: u32,
    /// The number of known peers that it sent to.
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
#[derive(Data!, Serialize, Eq)]
pub struct MatrixRow {
    /// The rank that sends.
    pub rank: u32,
    /// For each peer its rank, the number of messages or accesses, and their bytes; without a rank for all
    /// others.
    pub to: Vec<(Option<u32>, u64, u64)>,
}

/// What one rank sent to one other.
#[derive(Data!, Serialize, Copy, Eq)]
pub struct PairTraffic {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// How many messages or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What was sent over one distance.
#[derive(Data!, Serialize, Copy, Eq)]
pub struct DistanceTraffic {
    /// The difference of the ranks of sender and receiver; none for the rest.
    pub distance: Option<u32>,
    /// How many messages or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What was sent from one host to another, or within one.
#[derive(Data!, Serialize, Eq)]
pub struct HostTraffic {
    /// The host that sends.
    pub from: String,
    /// The host that receives; none for peers whose host is not known. In a job of more than 1,024 ranks, none
    /// also covers what a rank sent to peers other than its 64 heaviest.
    pub to: Option<String>,
    /// How many messages or accesses.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}
