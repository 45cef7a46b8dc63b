//! How the ranks of `MPI_COMM_WORLD` merge what they know over a tree, and learn the outcome.
//!
//! Rank r receives from r + 1, then r + 2, r + 4 and so on, as long as its bits are 0, and merges what they send in
//! this order: two neighbours, two such pairs, and so on, as `gyan reduce` does. So sums of doubles are grouped
//! alike, in whatever order messages arrive.
//!
//! A child says how many bytes it has to send, and the parent says that it has room for them: only a few bytes
//! are ever on their way to a process that may have given up. Data of several children comes at the same time.
//! A rank that gives up tells its parent and children.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use super::communicator::{MessageFailure, Operation, Tag, WorldMessages};

/// A rank that waits longer than this saves what it knows.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a waiting rank polls before it starts to sleep.
const AWAKE: Duration = Duration::from_millis(200);
/// The longest sleep of a waiting rank.
const SLEEP: Duration = Duration::from_millis(1);
/// The most ranks that are named in the message about the outcome.
pub(super) const KEPT: usize = 62;
/// Room for that message: each rank takes at most 5 bytes; whether there are any, and how many, takes 2.
const END_BYTES: usize = 2 + 5 * KEPT;
/// A length; 0 as the length of a part means that none will come.
const LENGTH_BYTES: usize = size_of::<u64>();
/// Sent instead of a part, whose first byte is never this: none will come.
const NOTHING: u8 = 0;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NotReduced {
    /// Not all ranks came in time.
    NotAllHere,
    /// No word from this rank in time.
    Late(u32),
    /// Another rank gave up.
    GivenUp,
    Mpi,
    /// What another rank sent cannot be understood.
    NotUnderstood,
    NotWritten,
}

impl From<MessageFailure> for NotReduced {
    fn from(_: MessageFailure) -> NotReduced {
        NotReduced::Mpi
    }
}

/// What is merged on the way up the tree.
pub(super) trait Merging {
    /// Merges what a child sent.
    fn add(&mut self, bytes: &[u8]) -> Result<(), NotReduced>;
    /// The data for the parent; its first byte is not 0.
    fn bytes(&self) -> Result<Vec<u8>, NotReduced>;
    /// Called on the root once it has everything: writes the summary and names the ranks that must write their
    /// profiles.
    fn finish(&mut self) -> Result<Vec<u32>, NotReduced>;
    /// Called repeatedly while it takes long.
    fn wait(&mut self);
}

/// One rank in the tree.
pub(super) struct Tree<'a> {
    communicator: &'a WorldMessages,
    /// The rank that it sends to; none for the root.
    parent: Option<u32>,
    /// The ranks that send to it, in the order in which their data is merged.
    children: Vec<u32>,
    timeout: Duration,
    /// The message from the parent about the outcome.
    end: Option<Operation>,
    /// What the parent is still waiting for from this rank.
    owed: Option<Tag>,
}

/// A child whose data is not merged yet.
struct Coming {
    child: u32,
    /// The length, and then the bytes; none once they are here.
    pending: Option<Operation>,
    is_length: bool,
    bytes: Vec<u8>,
}

fn parent(rank: u32) -> Option<u32> {
    rank.checked_sub(1).map(|less| rank & less)
}

fn children(rank: u32, size: u32) -> Vec<u32> {
    let levels = if rank == 0 { u32::BITS } else { rank.trailing_zeros() };
    (0..levels).map(|level| rank | (1 << level)).take_while(|child| *child < size).collect()
}

impl<'a> Tree<'a> {
    pub(super) fn over_ranks(
        communicator: &'a WorldMessages,
        (rank, size): (u32, u32),
        timeout: Duration,
    ) -> Tree<'a> {
        let (parent, children) = (parent(rank), children(rank, size));
        Tree { communicator, parent, children, timeout, end: None, owed: Some(Tag::Length) }
    }

    /// The ranks that it has to do with.
    pub(super) fn peers(&self) -> Vec<u32> {
        self.children.iter().copied().chain(self.parent).collect()
    }

    /// Merges what all ranks know, and returns the ranks that must write their profiles.
    pub(super) fn reduce(&mut self, merging: &mut impl Merging) -> Result<Vec<u32>, NotReduced> {
        let named = self.up_and_down(merging);
        let end = end_bytes(named.as_deref().ok());
        if named.is_err()
            && let (Some(parent), Some(tag)) = (self.parent, self.owed)
        {
            self.say(parent, tag, vec![NOTHING; LENGTH_BYTES]);
        }
        for &child in &self.children {
            self.say(child, Tag::End, end.clone());
        }
        named
    }

    fn up_and_down(&mut self, merging: &mut impl Merging) -> Result<Vec<u32>, NotReduced> {
        let communicator = self.communicator;
        let Some(parent) = self.parent else {
            self.merge_children(merging)?;
            return merging.finish();
        };
        self.end = Some(communicator.receive(parent, Tag::End, END_BYTES)?);
        self.merge_children(merging)?;
        let bytes = merging.bytes()?;
        let mut go = communicator.receive(parent, Tag::Go, 0)?;
        self.say(parent, Tag::Length, (bytes.len() as u64).to_le_bytes().into());
        self.owed = Some(Tag::Bytes);
        self.wait_for(&mut go, parent, merging)?;
        self.owed = None;
        let mut bytes = communicator.send(parent, Tag::Bytes, bytes)?;
        let Some(mut end) = self.end.take() else { return Err(NotReduced::Mpi) };
        // Do not wait until MPI says that the bytes were sent: the parent may already have them and report the
        // outcome.
        self.wait_for(&mut end, parent, merging)?;
        let named = named(&end.bytes()).ok_or(NotReduced::GivenUp)?;
        self.wait_for(&mut bytes, parent, merging)?;
        Ok(named)
    }

    /// Merges the children's data in their order, as it arrives.
    fn merge_children(&mut self, merging: &mut impl Merging) -> Result<(), NotReduced> {
        let communicator = self.communicator;
        let mut coming = VecDeque::new();
        for &child in &self.children {
            let pending = Some(communicator.receive(child, Tag::Length, LENGTH_BYTES)?);
            coming.push_back(Coming { child, pending, is_length: true, bytes: Vec::new() });
        }
        let mut wait = Wait::for_no_longer_than(self.timeout);
        loop {
            for Coming { child, pending, is_length, bytes } in &mut coming {
                let Some(one) = pending else { continue };
                if !one.is_done()? {
                    continue;
                }
                wait = Wait::for_no_longer_than(self.timeout);
                *bytes = one.bytes();
                if std::mem::take(is_length) {
                    *pending = Some(communicator.receive(*child, Tag::Bytes, length(bytes)?)?);
                    self.say(*child, Tag::Go, Vec::new());
                } else if bytes.first() == Some(&NOTHING) {
                    return Err(NotReduced::GivenUp);
                } else {
                    *pending = None;
                }
            }
            while coming.front().is_some_and(|next| next.pending.is_none())
                && let Some(next) = coming.pop_front()
            {
                merging.add(&next.bytes)?;
            }
            let Some(next) = coming.front() else { return Ok(()) };
            self.wait_a_little(&wait, next.child, merging)?;
        }
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

    /// Waits until it is done, up to the timeout, and no longer once the parent has given up.
    fn wait_for(
        &mut self,
        pending: &mut Operation,
        whom: u32,
        merging: &mut impl Merging,
    ) -> Result<(), NotReduced> {
        let wait = Wait::for_no_longer_than(self.timeout);
        while !pending.is_done()? {
            self.wait_a_little(&wait, whom, merging)?;
        }
        Ok(())
    }

    fn wait_a_little(
        &mut self,
        wait: &Wait,
        whom: u32,
        merging: &mut impl Merging,
    ) -> Result<(), NotReduced> {
        if let Some(end) = &mut self.end
            && end.is_done()?
        {
            return Err(NotReduced::GivenUp);
        }
        wait.a_little(merging).map_err(|_| NotReduced::Late(whom))
    }
}

/// A wait for something that may come at once or take long.
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

    /// Waits until it is done; `otherwise`: the reason if that takes too long.
    pub(super) fn until_done(
        &self,
        pending: &mut Operation,
        otherwise: NotReduced,
        merging: &mut impl Merging,
    ) -> Result<(), NotReduced> {
        while !pending.is_done()? {
            self.a_little(merging).map_err(|_| otherwise)?;
        }
        Ok(())
    }

    /// Waits a little; the longer it has taken, the longer.
    pub(super) fn a_little(&self, merging: &mut impl Merging) -> Result<(), TooLong> {
        let waited = self.begun.elapsed();
        if waited > self.no_longer_than {
            return Err(TooLong);
        }
        if waited > PATIENCE {
            merging.wait();
        }
        if waited < AWAKE {
            thread::yield_now();
        } else {
            thread::sleep((waited / 10).min(SLEEP));
        }
        Ok(())
    }
}

fn length(bytes: &[u8]) -> Result<usize, NotReduced> {
    let length = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    match length.map(usize::try_from) {
        Some(Ok(0)) => Err(NotReduced::GivenUp),
        Some(Ok(length)) => Ok(length),
        _ => Err(NotReduced::NotUnderstood),
    }
}

fn end_bytes(named: Option<&[u32]>) -> Vec<u8> {
    postcard::to_allocvec(&named).unwrap_or_default()
}

/// Decodes the ranks that must write; none when the reduction failed.
fn named(bytes: &[u8]) -> Option<Vec<u32>> {
    postcard::from_bytes(bytes).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a rank sends, as the grouping in which it is merged.
    fn sent(rank: u32, size: u32) -> String {
        children(rank, size)
            .into_iter()
            .fold(rank.to_string(), |own, child| format!("({own} {})", sent(child, size)))
    }

    #[test]
    fn ranks_are_grouped_as_in_the_reduction_of_files() {
        for (size, expected) in [
            (1, "0"),
            (3, "((0 1) 2)"),
            (6, "(((0 1) (2 3)) (4 5))"),
            (11, "((((0 1) (2 3)) ((4 5) (6 7))) ((8 9) 10))"),
        ] {
            assert_eq!(sent(0, size), expected);
        }
    }

    #[test]
    fn it_is_a_binomial_tree() {
        for size in [1, 2, 3, 7, 8, 64, 1000] {
            for rank in 0..size {
                for child in children(rank, size) {
                    assert_eq!(parent(child), Some(rank));
                }
            }
            let received: usize = (0..size).map(|rank| children(rank, size).len()).sum();
            assert_eq!(received, size as usize - 1);
        }
        assert_eq!(children(0, 6), [1, 2, 4]);
        assert_eq!(children(4, 6), [5]);
        assert_eq!(children(6, 8), [7]);
        assert_eq!(parent(u32::MAX - 1), Some((u32::MAX - 1) & (u32::MAX - 2)));
        assert_eq!(children(u32::MAX - 1, u32::MAX), [0_u32; 0]);
    }

    #[test]
    fn how_it_ended_is_understood() {
        let ranks: Vec<u32> = (0..62).map(|rank| u32::MAX - rank).collect();
        for ranks in [&ranks[..], &ranks[..1], &[]] {
            // The received data always fills its buffer.
            let mut bytes = end_bytes(Some(ranks));
            assert!(bytes.len() <= END_BYTES);
            bytes.resize(END_BYTES, 0);
            assert_eq!(named(&bytes).as_deref(), Some(ranks));
        }
        assert_eq!(named(&end_bytes(None)), None);
        assert_eq!(named(&[]), None);
    }
}
