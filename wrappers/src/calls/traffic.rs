//! What do calls move, and to whom? Exact: every successful call is counted here, on the fast path as on any
//! other.
//!
//! The calls of a function that moves bytes are counted by size: a bar for each power of two, with the number
//! of calls and their bytes. The bytes of the function are the sum of its bars. For each peer, messages and
//! their bytes are counted, and separately the accesses to its memory.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::cells::Counter;
use crate::sys::lookup::spread;
use crate::sys::memory::ReadProcess;

/// A bar for calls of no bytes, then for those of 1, 2 to 3, 4 to 7 and so on; the last has all above.
pub(crate) const BARS: usize = 48;
/// Up to this many ranks, each has a row. In a larger job a rank has rows for the first peers that it meets.
const ROWS_AT_MOST: usize = 4096;
const HASHED_ROWS: usize = 1024;
/// How many slots are searched for the row of a peer among those.
const PROBES: usize = 16;

/// Calls, or messages, and their bytes.
pub(crate) struct Amount {
    number: Counter,
    bytes: Counter,
}

impl Amount {
    const fn new() -> Amount {
        Amount { number: Counter::new(0), bytes: Counter::new(0) }
    }

    #[inline]
    fn add(&self, number: u64, bytes: u64, shared: bool) {
        if shared {
            self.number.add_shared(number);
            self.bytes.add_shared(bytes);
        } else {
            self.number.add(number);
            self.bytes.add(bytes);
        }
    }

    fn get(&self) -> (u64, u64) {
        (self.number.get(), self.bytes.get())
    }
}

/// A bar for each binary logarithm that there is: this needs no comparison with [`BARS`].
const BARS_KEPT: usize = u64::BITS as usize;

/// The calls of one function by their bytes.
pub(crate) struct Sizes([Amount; BARS_KEPT]);

impl Sizes {
    pub(crate) fn new() -> Sizes {
        Sizes([const { Amount::new() }; BARS_KEPT])
    }

    /// Counts a call with its bytes; `shared`: other threads count here, too.
    #[inline]
    pub(crate) fn add(&self, bytes: u64, shared: bool) {
        // The binary logarithm plus 1, and 0 for 0. No call moves as much as the highest bit stands for.
        let bar = (bytes << 1 | 1).ilog2() as usize;
        if let Some(bar) = self.0.get(bar) {
            bar.add(1, bytes, shared);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().fold(0, |sum, bar| sum.wrapping_add(bar.bytes.get()))
    }

    /// Calls and bytes in each of [`BARS`] bars.
    pub(crate) fn bars(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut bars = [(0, 0); BARS];
        for (at, amount) in self.0.iter().enumerate() {
            if let Some(bar) = bars.get_mut(at.min(BARS - 1)) {
                let (number, bytes) = amount.get();
                *bar = (bar.0 + number, u64::wrapping_add(bar.1, bytes));
            }
        }
        bars.into_iter()
    }
}

/// How data gets to a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// In messages from one process to another (MPI 4.1, chapters 3 and 4).
    Message = 0,
    /// By accesses to its memory (chapter 12).
    Access = 1,
}

impl Way {
    pub(crate) const ALL: [Way; 2] = [Way::Message, Way::Access];
}

/// What a call sends to one peer. Two words, so that it stays in registers on the fast path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    /// The peer, with bits for how: see [`MORE`] and [`ACCESS`].
    how: u64,
}

/// The message was counted before: these bytes are more of it.
const MORE: u64 = 1 << 32;
/// By [`Way::Access`].
const ACCESS: u64 = 1 << 33;

impl Sent {
    /// To a rank in `MPI_COMM_WORLD`, [`ELSEWHERE`] or [`NOBODY`].
    #[inline]
    pub(crate) fn to(to: u32, way: Way, bytes: u64) -> Sent {
        let access = if way == Way::Access { ACCESS } else { 0 };
        Sent { bytes, how: u64::from(to) | access }
    }

    /// To nobody, or to a peer that is not counted.
    #[inline]
    pub(crate) fn to_nobody(bytes: u64) -> Sent {
        Sent::to(NOBODY, Way::Message, bytes)
    }

    /// Bytes of a message that was counted before.
    pub(crate) fn more(self, bytes: u64) -> Sent {
        Sent { bytes, how: self.how | MORE }
    }

    #[allow(clippy::cast_possible_truncation)]
    #[inline]
    pub(crate) fn peer(self) -> u32 {
        self.how as u32
    }

    #[inline]
    pub(crate) fn way(self) -> Way {
        if self.how & ACCESS == 0 { Way::Message } else { Way::Access }
    }

    #[inline]
    fn messages(self) -> u64 {
        u64::from(self.how & MORE == 0)
    }
}

pub(crate) const NOBODY: u32 = u32::MAX - 1;
/// Not a rank in `MPI_COMM_WORLD`: of another world, or not known.
pub(crate) const ELSEWHERE: u32 = u32::MAX;

/// The traffic to each peer.
#[repr(C)]
pub(crate) struct Peers {
    /// For the keeper: where the rows of `dense` are, and how many.
    at: [usize; 2],
    /// By rank; empty when there are too many of them.
    dense: Box<[Amount]>,
    /// Then these rows, each with the rank that owns it, plus 1.
    hashed: Box<[(AtomicU64, Amount)]>,
    others: Amount,
}

impl Peers {
    /// For a world of `size` ranks.
    pub(crate) fn new(size: usize) -> Peers {
        let (dense, hashed) = if size <= ROWS_AT_MOST { (size, 0) } else { (0, HASHED_ROWS) };
        let dense: Box<[Amount]> = (0..dense).map(|_| Amount::new()).collect();
        Peers {
            at: [dense.as_ptr().addr(), dense.len()],
            dense,
            hashed: (0..hashed).map(|_| (AtomicU64::new(0), Amount::new())).collect(),
            others: Amount::new(),
        }
    }

    #[inline]
    pub(crate) fn add(&self, sent: Sent, shared: bool) {
        let row = match self.dense.get(sent.peer() as usize) {
            Some(row) => row,
            None => self.other(sent.peer()),
        };
        row.add(sent.messages(), sent.bytes, shared);
    }

    /// Takes messages of no bytes back.
    pub(crate) fn take_back(&self, rank: u32, messages: u64) {
        let row = self.dense.get(rank as usize).unwrap_or_else(|| self.other(rank));
        row.number.add(messages.wrapping_neg());
    }

    /// The row for a rank that has no row at its number.
    #[inline(never)]
    fn other(&self, rank: u32) -> &Amount {
        self.hashed(rank).unwrap_or(&self.others)
    }

    /// The row of a rank in a job with more ranks than rows; it gets one now if it has none.
    fn hashed(&self, rank: u32) -> Option<&Amount> {
        if rank == ELSEWHERE {
            return None;
        }
        let key = u64::from(rank) + 1;
        let first = (spread(rank as usize) >> 32) as usize;
        (first..first + PROBES).find_map(|place| {
            let (relaxed, (rank, row)) = (Ordering::Relaxed, self.hashed.get(place % HASHED_ROWS)?);
            let found = rank.load(relaxed) == key
                || match rank.compare_exchange(0, key, relaxed, relaxed) {
                    Ok(_) => true,
                    Err(other) => other == key,
                };
            found.then_some(row)
        })
    }

    /// Rank, messages and bytes of each peer, in no order; without a rank for all others.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (Option<u32>, u64, u64)> {
        let dense =
            self.dense.iter().enumerate().map(|(rank, row)| (u32::try_from(rank).ok(), row));
        let rank =
            |key: &AtomicU64| u32::try_from(key.load(Ordering::Relaxed)).ok()?.checked_sub(1);
        let hashed = self.hashed.iter().map(move |(key, row)| (rank(key), row));
        let others = std::iter::once((None, &self.others));
        dense.chain(hashed).chain(others).filter_map(|(rank, row)| {
            let (messages, bytes) = row.get();
            ((messages, bytes) != (0, 0)).then_some((rank, messages, bytes))
        })
    }
}

/// The number of messages to each rank, in another process, where its [`Peers`] are at `at`. None if not each rank has a row of
/// its own, or messages went to other peers.
pub(crate) fn messages_in(process: ReadProcess, at: usize) -> Option<Vec<u64>> {
    const IN_ROW: usize = size_of::<Amount>() / size_of::<u64>();
    let of_others = offset_of!(Peers, others) + offset_of!(Amount, number);
    let others: u64 = process.read(at.wrapping_add(of_others))?;
    let of_rows = at.wrapping_add(offset_of!(Peers, at));
    let [rows, number] = process.words(of_rows, 2)?[..] else { return None };
    if others != 0 || !(1..=ROWS_AT_MOST).contains(&number) {
        return None;
    }
    let rows = process.words(rows, number * IN_ROW)?;
    let messages = rows.iter().skip(offset_of!(Amount, number) / size_of::<u64>());
    Some(messages.step_by(IN_ROW).map(|word| *word as u64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(to: u32, bytes: u64) -> Sent {
        Sent::to(to, Way::Message, bytes)
    }

    #[test]
    fn a_call_is_in_the_bar_of_its_power_of_two() {
        let sizes = Sizes::new();
        for bytes in [0, 1, 2, 3, 4, 1 << 20, (1 << 20) + 5, 1 << 50] {
            sizes.add(bytes, false);
        }
        let bars: Vec<_> = sizes.bars().enumerate().filter(|(_, bar)| bar.0 > 0).collect();
        let mega = (21, (2, (1 << 21) + 5));
        assert_eq!(
            bars,
            [(0, (1, 0)), (1, (1, 1)), (2, (2, 5)), (3, (1, 4)), mega, (47, (1, 1 << 50))]
        );
        assert_eq!(sizes.bytes(), 1 + 5 + 4 + (1 << 21) + 5 + (1 << 50));
    }

    #[test]
    fn each_rank_has_a_row_and_those_elsewhere_share_one() {
        let peers = Peers::new(4);
        for (to, bytes) in [(0, 10), (3, 1), (3, 2), (4, 5), (ELSEWHERE, 7)] {
            peers.add(sent(to, bytes), to == 3);
        }
        let rows: Vec<_> = peers.rows().collect();
        assert_eq!(rows, [(Some(0), 1, 10), (Some(3), 2, 3), (None, 2, 12)]);
        let pid = i32::try_from(std::process::id()).unwrap();
        let seen = |peers: &Peers| messages_in(ReadProcess(pid), (&raw const *peers).addr());
        assert_eq!(seen(&peers), None, "some went elsewhere");
        peers.others.number.set(0);
        assert_eq!(seen(&peers).unwrap(), [1, 0, 0, 2]);
        assert_eq!(seen(&Peers::new(1_000_000)), None);
    }

    #[test]
    fn in_a_large_job_the_first_peers_have_rows_and_nothing_is_lost() {
        let peers = Peers::new(1_000_000);
        for to in 0..5000_u32 {
            peers.add(sent(7 * to, 3), false);
            peers.add(sent(7 * to, 3), true);
        }
        let rows: Vec<_> = peers.rows().collect();
        let (own, others): (Vec<_>, Vec<_>) = rows.iter().partition(|(rank, ..)| rank.is_some());
        assert!(own.len() > HASHED_ROWS * 9 / 10, "{}", own.len());
        assert!(own.iter().all(|(rank, messages, bytes)| {
            rank.unwrap() % 7 == 0 && (*messages, *bytes) == (2, 6)
        }));
        assert_eq!(others.len(), 1);
        assert_eq!(rows.iter().map(|(_, messages, _)| messages).sum::<u64>(), 10_000);
    }
}
