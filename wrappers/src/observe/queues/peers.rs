//! The queues of each peer (PERUSE 2.0, section 9.1.4).

use gyan_results::{PeerQueues, sort_by};

use crate::sys::clock;
use crate::sys::fixed_map::FixedMap;

/// Most processes exchange messages with few others.
const PEERS_AT_MOST: usize = 1024;

/// From whom a message comes, or is received.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Peer {
    /// A rank in `MPI_COMM_WORLD`.
    Rank(u32),
    /// `MPI_ANY_SOURCE`.
    Any,
    /// A process that is not in `MPI_COMM_WORLD`, or whose rank there is not known.
    Unknown,
}

pub(super) struct PeerTallies {
    rows: FixedMap<Peer, OfPeer>,
    /// Messages and receives that are in no row.
    others: u64,
}

#[derive(Default)]
struct OfPeer {
    unexpected: Lengths,
    waited: f64,
    waited_max: f64,
    posted: Lengths,
}

/// The length of a queue, after each arrival.
#[derive(Default)]
struct Lengths {
    now: u64,
    came: u64,
    sum: u64,
    max: u64,
}

impl Lengths {
    fn came(&mut self) {
        self.now += 1;
        self.came += 1;
        self.sum += self.now;
        self.max = self.max.max(self.now);
    }

    fn went(&mut self) {
        self.now = self.now.saturating_sub(1);
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.came.max(1) as f64
    }
}

impl PeerTallies {
    pub(super) fn new() -> PeerTallies {
        PeerTallies { rows: FixedMap::new(PEERS_AT_MOST), others: 0 }
    }

    fn row(&mut self, peer: Peer) -> Option<&mut OfPeer> {
        if peer == Peer::Unknown {
            self.others += 1;
            return None;
        }
        if self.rows.get(&peer).is_none() && !self.rows.put(peer, OfPeer::default()) {
            self.others += 1;
        }
        self.rows.get(&peer)
    }

    pub(super) fn came(&mut self, peer: Peer) {
        if let Some(row) = self.row(peer) {
            row.unexpected.came();
        }
    }

    /// A message that waited for `ticks`.
    pub(super) fn went(&mut self, peer: Peer, ticks: f64) {
        if let Some(row) = self.rows.get(&peer) {
            row.unexpected.went();
            row.waited += ticks;
            row.waited_max = row.waited_max.max(ticks);
        }
    }

    pub(super) fn posted(&mut self, peer: Peer) {
        if let Some(row) = self.row(peer) {
            row.posted.came();
        }
    }

    pub(super) fn unposted(&mut self, peer: Peer) {
        if let Some(row) = self.rows.get(&peer) {
            row.posted.went();
        }
    }

    pub(super) fn without_row(&self) -> u64 {
        self.others
    }

    /// By peer, `MPI_ANY_SOURCE` last.
    pub(super) fn described(&self) -> Vec<PeerQueues> {
        let row = |(peer, row): (&Peer, &OfPeer)| PeerQueues {
            peer: match *peer {
                Peer::Rank(rank) => Some(rank),
                Peer::Any | Peer::Unknown => None,
            },
            unexpected: row.unexpected.came,
            unexpected_max: row.unexpected.max,
            unexpected_mean: row.unexpected.mean(),
            unexpected_time_s: clock::seconds(row.waited),
            unexpected_time_max_s: clock::seconds(row.waited_max),
            posted: row.posted.came,
            posted_max: row.posted.max,
            posted_mean: row.posted.mean(),
        };
        let mut rows: Vec<PeerQueues> = self.rows.iter().map(row).collect();
        let key = |row: &PeerQueues| (row.peer.is_none(), row.peer);
        sort_by(&mut rows, |one, other| key(one).cmp(&key(other)));
        rows
    }
}
