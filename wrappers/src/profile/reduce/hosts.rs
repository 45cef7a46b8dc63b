//! On which host is each rank? What the ranks tell each other once all have come, before they send on what
//! they know.
//!
//! It is no `MPI_Iallgather`: Open MPI up to 5.0 has each rank send to all others in that (libnbc's linear algorithm),
//! MPICH sends many words around a ring of all ranks, and nobody could end it. Here each rank sends to 15 others what
//! it knows, then to 15 others what it knows then, and so on: rank r hears of r + 1 to r + 15, then of 16 times as
//! many. That is up to 60 messages for 65,536 ranks, each at most so late as four messages after each other.

#![forbid(unsafe_code)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;
use std::time::Duration;

use super::communicator::{Communicator, Pending, Tag};
use super::tree::{Merging, Wait, Why};

/// Of more ranks nobody asks: that is 8 bytes a rank in each of them, 1 MiB.
pub(super) const RANKS_AT_MOST: u32 = 1 << 17;
/// Each round makes what a rank knows so many times as much.
const RADIX: u32 = 16;
/// What has more bytes than this waits until there is room for it: see `tree`.
const FEW_BYTES: usize = 256;

/// What a rank sends to the one that is `distance` before it, and hears from the one that is as far after it.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    distance: u32,
    /// Of how many ranks.
    ranks: u32,
}

impl Exchange {
    fn bytes(self) -> usize {
        self.ranks as usize * size_of::<u64>()
    }
}

/// By rounds.
fn exchanges(size: u32) -> impl Iterator<Item = Vec<Exchange>> {
    let known = iter::successors(Some(1_u32), |known| known.checked_mul(RADIX));
    known.take_while(move |known| *known < size).map(move |known| {
        let distances = (1..RADIX).map_while(|step| known.checked_mul(step));
        let distances = distances.take_while(|distance| *distance < size);
        distances.map(|distance| Exchange { distance, ranks: known.min(size - distance) }).collect()
    })
}

/// A number for the host that each rank is on, by rank: equal numbers for equal names.
pub(super) fn learn(
    communicator: &Communicator,
    (rank, size): (u32, u32),
    host: &str,
    timeout: Duration,
    merging: &mut impl Merging,
) -> Result<Vec<u64>, Why> {
    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    // From this rank on, and around.
    let mut known = hasher.finish().to_ne_bytes().to_vec();
    let mut wait = |pending: &mut Pending, whom, wait: &Wait| {
        while !pending.is_done()? {
            wait.a_little(merging).map_err(|_| Why::Late(whom))?;
        }
        Ok::<(), Why>(())
    };
    let after = |distance| around(rank, distance, size);
    let before = |distance: u32| around(rank, size - distance, size);
    let mut sent = Vec::new();
    let mut rounds = Vec::new();
    for exchanges in exchanges(size) {
        let mut round = Vec::new();
        for exchange in exchanges {
            let (from, to) = (after(exchange.distance), before(exchange.distance));
            let receive = communicator.receive(from, Tag::Hosts, exchange.bytes())?;
            let mut room = None;
            if exchange.bytes() > FEW_BYTES {
                sent.push((from, communicator.send(from, Tag::HostsGo, Vec::new())?));
                room = Some(communicator.receive(to, Tag::HostsGo, 0)?);
            }
            round.push((exchange, from, to, receive, room));
        }
        rounds.push(round);
    }
    let patience = Wait::for_no_longer_than(timeout);
    for mut round in rounds {
        for (exchange, _, to, _, room) in &mut round {
            if let Some(room) = room {
                wait(room, *to, &patience)?;
            }
            let bytes = known.get(..exchange.bytes()).ok_or(Why::NotUnderstood)?.to_vec();
            sent.push((*to, communicator.send(*to, Tag::Hosts, bytes)?));
        }
        for (_, from, _, receive, _) in &mut round {
            wait(receive, *from, &patience)?;
            known.extend(receive.bytes());
        }
    }
    for (whom, pending) in &mut sent {
        wait(pending, *whom, &patience)?;
    }
    let (words, _) = known.as_chunks();
    let mut hosts: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    hosts.rotate_right(rank as usize);
    Ok(hosts)
}

/// The rank that is so far after another, around.
fn around(rank: u32, distance: u32, size: u32) -> u32 {
    let to_last = size - 1 - rank;
    if distance <= to_last { rank + distance } else { distance - to_last - 1 }
}
