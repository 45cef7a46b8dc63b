//! On which host is each rank? The ranks tell each other once all have come, before they send what they know:
//! up the tree over all ranks and down again, one message each way.
//!
//! It does not use `MPI_Iallgather`: there Open MPI up to 5.0 has each rank send to all others (libnbc's linear
//! algorithm), MPICH sends long data around a ring of all ranks, and it could not be cancelled. Here a rank
//! usually sends to a rank that it already sent to while the communicator was created: setting up a connection
//! takes longer than a message.

#![forbid(unsafe_code)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use super::communicator::{Communicator, Pending, Tag};
use super::place::Place;
use super::tree::{Merging, Wait, Why};

/// With more ranks this is skipped: it takes 8 bytes per rank on each of them, 1 MiB.
pub(super) const RANKS_AT_MOST: u32 = 1 << 17;
/// Longer data waits until the receiver is ready: see `tree`.
const FEW_BYTES: usize = 256;

/// Data expected from a rank, and the message that says that data may be sent to it.
struct Peer {
    rank: u32,
    comes: Pending,
    may_go: Option<Pending>,
}

impl Peer {
    /// Makes room for this many numbers from a rank, and says so; equally many may be sent to it.
    fn new(
        communicator: &Communicator,
        rank: u32,
        (coming, going): (usize, usize),
        sent: &mut Vec<(u32, Pending)>,
    ) -> Result<Peer, Why> {
        let [coming, going] = [coming, going].map(|hosts| hosts * size_of::<u64>());
        let comes = communicator.receive(rank, Tag::Hosts, coming)?;
        if coming > FEW_BYTES {
            sent.push((rank, communicator.send(rank, Tag::HostsGo, Vec::new())?));
        }
        let may_go = (going > FEW_BYTES).then(|| communicator.receive(rank, Tag::HostsGo, 0));
        Ok(Peer { rank, comes, may_go: may_go.transpose()? })
    }
}

/// A number for the host of each rank, by rank: equal numbers for equal names.
pub(super) fn learn(
    communicator: &Communicator,
    (rank, size): (u32, u32),
    host: &str,
    timeout: Duration,
    merging: &mut impl Merging,
) -> Result<Vec<u64>, Why> {
    let patience = Wait::for_no_longer_than(timeout);
    let place = Place::over_ranks(rank, size);
    communicator.greet(&place.peers(), timeout, merging)?;
    let mut wait =
        |pending: &mut Pending, whom| patience.until_done(pending, Why::Late(whom), merging);
    let all = size as usize;
    let mut sent = Vec::new();
    let mut children = Vec::new();
    let mut below = 1;
    for &child in &place.children {
        // It knows as many ranks, from itself on, as there are from this rank to it, or as are left.
        let coming = ((child - rank).min(size - child)) as usize;
        children.push(Peer::new(communicator, child, (coming, all), &mut sent)?);
        below += coming;
    }
    let parent =
        place.parent.map(|parent| Peer::new(communicator, parent, (all, below), &mut sent));
    let mut parent = parent.transpose()?;

    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    let mut known = hasher.finish().to_ne_bytes().to_vec();
    for Peer { rank, comes, .. } in &mut children {
        wait(comes, *rank)?;
        known.extend(comes.bytes());
    }
    if let Some(Peer { rank, comes, may_go }) = &mut parent {
        if let Some(may_go) = may_go {
            wait(may_go, *rank)?;
        }
        sent.push((*rank, communicator.send(*rank, Tag::Hosts, known)?));
        wait(comes, *rank)?;
        known = comes.bytes();
    }
    for Peer { rank, may_go, .. } in &mut children {
        if let Some(may_go) = may_go {
            wait(may_go, *rank)?;
        }
        sent.push((*rank, communicator.send(*rank, Tag::Hosts, known.clone())?));
    }
    for (whom, pending) in &mut sent {
        wait(pending, *whom)?;
    }
    let (words, _) = known.as_chunks();
    Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}
