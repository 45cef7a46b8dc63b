//! The tree over which the ranks of `MPI_COMM_WORLD` merge what they know and learn how that ended.
//!
//! It is a binomial tree: rank r takes in what r + 1 knows, then r + 2, r + 4 and so on, as long as its bits
//! are 0. So neighbours are merged, grouped as `gyan reduce` groups the profiles of a directory, and sums
//! of doubles come out the same.
//!
//! A child says how many bytes it has to send, and the parent says that it has room for them: only a few
//! bytes are ever on their way to a process that may have given up. Who gives up tells parent and children.

#![forbid(unsafe_code)]

use std::thread;
use std::time::{Duration, Instant};

use super::communicator::{Communicator, Failure, Pending, Tag};

/// A rank that waits longer than this saves what it knows.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a waiting rank polls before it starts to sleep.
const AWAKE: Duration = Duration::from_millis(200);
/// The longest sleep of a waiting rank.
const SLEEP: Duration = Duration::from_millis(1);
/// At most so many ranks are named in the message that says how it ended.
pub(super) const KEPT: usize = 62;
/// Room for that message: each rank takes 5 bytes at most, whether there are any and how many 2.
const END_BYTES: usize = 2 + 5 * KEPT;
/// A length; as the length of a part 0: none will come.
const LENGTH_BYTES: usize = size_of::<u64>();
/// In the place of a part, whose first byte is never this: none will come.
const NOTHING: u8 = 0;

/// Why there is no reduction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// Not all ranks came in time.
    NotAllHere,
    /// No word from this rank in time.
    Late(u32),
    /// Another rank gave up.
    GivenUp,
    /// A call of MPI failed.
    Mpi,
    /// What another rank sent cannot be understood.
    NotUnderstood,
    /// The summary could not be written.
    NotWritten,
}

impl From<Failure> for Why {
    fn from(_: Failure) -> Why {
        Why::Mpi
    }
}

/// What goes up the tree.
pub(super) trait Part {
    /// Takes in what a child sent.
    fn take_in(&mut self, bytes: &[u8]) -> Result<(), Why>;
    /// What is sent to the parent; the first byte is not 0.
    fn bytes(&self) -> Result<Vec<u8>, Why>;
    /// Called on the root once it has everything: writes the summary and names the ranks that are to write
    /// their profiles.
    fn finish(&mut self) -> Result<Vec<u32>, Why>;
    /// Called again and again while it takes long.
    fn wait(&mut self);
}

/// One rank's place in the tree.
pub(super) struct Tree<'a> {
    communicator: &'a Communicator,
    rank: u32,
    size: u32,
    timeout: Duration,
    /// The message from the parent that says how it ended.
    end: Option<Pending>,
    /// What the parent still waits for from this rank.
    owed: Option<Tag>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(
        communicator: &'a Communicator,
        rank: u32,
        size: u32,
        timeout: Duration,
    ) -> Tree<'a> {
        Tree { communicator, rank, size, timeout, end: None, owed: Some(Tag::Length) }
    }

    /// Merges the parts of all ranks, and returns the ranks that are to write their profiles.
    pub(super) fn reduce(&mut self, part: &mut impl Part) -> Result<Vec<u32>, Why> {
        let named = self.up_and_down(part);
        let end = end_bytes(named.as_deref().ok());
        if named.is_err()
            && let (Some(parent), Some(tag)) = (parent(self.rank), self.owed)
        {
            self.say(parent, tag, vec![NOTHING; LENGTH_BYTES]);
        }
        for child in children(self.rank, self.size) {
            self.say(child, Tag::End, end.clone());
        }
        named
    }

    fn up_and_down(&mut self, part: &mut impl Part) -> Result<Vec<u32>, Why> {
        let communicator = self.communicator;
        if let Some(parent) = parent(self.rank) {
            self.end = Some(communicator.receive(parent, Tag::End, END_BYTES)?);
        }
        let mut lengths = Vec::new();
        for child in children(self.rank, self.size) {
            lengths.push((child, communicator.receive(child, Tag::Length, LENGTH_BYTES)?));
        }
        for (child, mut length) in lengths {
            self.wait_for(&mut length, child, part)?;
            let length = length.bytes().first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            let length = match length.map(usize::try_from) {
                Some(Ok(0)) => return Err(Why::GivenUp),
                Some(Ok(length)) => length,
                _ => return Err(Why::NotUnderstood),
            };
            let mut bytes = communicator.receive(child, Tag::Bytes, length)?;
            self.say(child, Tag::Go, Vec::new());
            self.wait_for(&mut bytes, child, part)?;
            let bytes = bytes.bytes();
            if bytes.first() == Some(&NOTHING) {
                return Err(Why::GivenUp);
            }
            part.take_in(&bytes)?;
        }
        let Some(parent) = parent(self.rank) else { return part.finish() };
        let bytes = part.bytes()?;
        let mut go = communicator.receive(parent, Tag::Go, 0)?;
        self.say(parent, Tag::Length, (bytes.len() as u64).to_le_bytes().into());
        self.owed = Some(Tag::Bytes);
        self.wait_for(&mut go, parent, part)?;
        self.owed = None;
        let mut bytes = communicator.send(parent, Tag::Bytes, bytes)?;
        let Some(mut end) = self.end.take() else { return Err(Why::Mpi) };
        // Before MPI says that the bytes have gone: the parent may have them, and tell the end, by then.
        self.wait_for(&mut end, parent, part)?;
        let named = named(&end.bytes()).ok_or(Why::GivenUp)?;
        self.wait_for(&mut bytes, parent, part)?;
        Ok(named)
    }

    /// Sends a few bytes, which MPI buffers if nobody receives them.
    fn say(&self, to: u32, tag: Tag, bytes: Vec<u8>) {
        if let Ok(mut pending) = self.communicator.send(to, tag, bytes) {
            let begun = Instant::now();
            while pending.is_done().is_ok_and(|done| !done) && begun.elapsed() < PATIENCE {
                thread::yield_now();
            }
        }
    }

    /// Waits until it is done, but not beyond the timeout, nor once the parent has given up.
    fn wait_for(
        &mut self,
        pending: &mut Pending,
        whom: u32,
        part: &mut impl Part,
    ) -> Result<(), Why> {
        let wait = Wait::for_no_longer_than(self.timeout);
        while !pending.is_done()? {
            if let Some(end) = &mut self.end
                && end.is_done()?
            {
                return Err(Why::GivenUp);
            }
            wait.a_little(part).map_err(|_| Why::Late(whom))?;
        }
        Ok(())
    }
}

/// A wait for what may come at once or take long.
pub(super) struct Wait {
    begun: Instant,
    no_longer_than: Duration,
}

/// It takes too long.
pub(super) struct TooLong;

impl Wait {
    pub(super) fn for_no_longer_than(no_longer_than: Duration) -> Wait {
        Wait { begun: Instant::now(), no_longer_than }
    }

    /// Waits a little, and longer the longer it has taken.
    pub(super) fn a_little(&self, part: &mut impl Part) -> Result<(), TooLong> {
        let waited = self.begun.elapsed();
        if waited > self.no_longer_than {
            return Err(TooLong);
        }
        if waited > PATIENCE {
            part.wait();
        }
        if waited < AWAKE {
            thread::yield_now();
        } else {
            thread::sleep((waited / 10).min(SLEEP));
        }
        Ok(())
    }
}

/// The rank without its lowest bit; none of the root.
fn parent(rank: u32) -> Option<u32> {
    rank.checked_sub(1).map(|less| rank & less)
}

/// In the order in which they are merged.
fn children(rank: u32, size: u32) -> impl Iterator<Item = u32> + use<> {
    let bits = if rank == 0 { u32::BITS } else { rank.trailing_zeros() };
    (0..bits).map_while(move |bit| rank.checked_add(1 << bit)).take_while(move |&rank| rank < size)
}

fn end_bytes(named: Option<&[u32]>) -> Vec<u8> {
    postcard::to_allocvec(&named).unwrap_or_default()
}

/// The ranks that such bytes name; none when it did not end well.
fn named(bytes: &[u8]) -> Option<Vec<u32>> {
    postcard::from_bytes(bytes).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_the_child_of_one_and_neighbours_are_merged() {
        for size in [1, 2, 3, 7, 8, 64, 1000] {
            let mut seen = vec![0; size as usize];
            for rank in 0..size {
                for child in children(rank, size) {
                    seen[child as usize] += 1;
                    assert_eq!(parent(child), Some(rank));
                }
            }
            seen[0] += 1;
            assert!(seen.iter().all(|&times| times == 1), "{size}: {seen:?}");
        }
        assert_eq!(children(0, 6).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(children(4, 6).collect::<Vec<_>>(), [5]);
        assert_eq!(children(6, 8).collect::<Vec<_>>(), [7]);
        assert_eq!(children(u32::MAX - 1, u32::MAX).count(), 0);
        assert_eq!(parent(0), None);
    }

    #[test]
    fn how_it_ended_is_understood() {
        let ranks: Vec<u32> = (0..62).map(|rank| u32::MAX - rank).collect();
        for ranks in [&ranks[..], &ranks[..1], &[]] {
            // What is received is as long as the room for it.
            let mut bytes = end_bytes(Some(ranks));
            assert!(bytes.len() <= END_BYTES);
            bytes.resize(END_BYTES, 0);
            assert_eq!(named(&bytes).as_deref(), Some(ranks));
        }
        assert_eq!(named(&end_bytes(None)), None);
        assert_eq!(named(&[]), None);
    }
}
