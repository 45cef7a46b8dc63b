//! The tree over which the ranks of `MPI_COMM_WORLD` merge what they know, and hear how that went.
//!
//! It is a binomial tree: rank r takes in what r + 1 knows, then r + 2, r + 4 and so on, as long as its bits
//! are 0. So the parts that are merged are neighbours, in the grouping in which `gyan reduce` merges the
//! profiles of a directory, and sums of doubles come out the same.
//!
//! A child says how much it has to send and the fingerprint of its shape; the parent says whether it needs
//! the shape, too, and has room for all of it then: nothing but a few words is ever on its way to a process
//! that may have given up. Who gives up tells parent and children.

#![forbid(unsafe_code)]

use std::thread;
use std::time::{Duration, Instant};

use super::communicator::{Communicator, Failure, Pending, Tag};

/// A rank that has to wait longer than this saves what it knows.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a rank that waits stays awake.
const AWAKE: Duration = Duration::from_millis(200);
/// The longest sleep of a rank that waits.
const SLEEP: Duration = Duration::from_millis(1);
/// Words of the message that says how it ended: whether well, how many ranks follow, and those.
const END_WORDS: usize = 2 + KEPT;
/// At most so many ranks are named in there.
pub(super) const KEPT: usize = 62;
const WELL: u64 = 1;
/// In the place of the size of a part, or of its first word, which is never this: none will come.
const NOTHING: u64 = 0;
/// What a parent says to a child that can send.
const WITHOUT: u64 = 1;
const WITH_SHAPE: u64 = 2;

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

/// A child's first message: words without the shape, words of the shape, its fingerprint.
const SIZE_WORDS: usize = 4;

/// What goes up the tree.
pub(super) trait Part {
    /// The fingerprint of its shape: parts that have the same are merged without a look at it.
    fn fingerprint(&mut self) -> Result<[u64; 2], Why>;
    /// Takes in what a child sent, with its shape where that is another.
    fn take_in(&mut self, words: Vec<u64>, shape: Option<Vec<u64>>) -> Result<(), Why>;
    /// What is sent to the parent; the first word is not 0.
    fn words(&mut self) -> Vec<u64>;
    /// Its shape.
    fn shape(&mut self) -> Result<Vec<u64>, Why>;
    /// The root has everything: does with it what is to be done, and names the ranks that are to write
    /// their profiles.
    fn finish(&mut self) -> Result<Vec<u32>, Why>;
    /// It takes long: called again and again.
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
    /// What the parent waits for from here; none when it has everything.
    owed: Option<Tag>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(
        communicator: &'a Communicator,
        rank: u32,
        size: u32,
        timeout: Duration,
    ) -> Tree<'a> {
        Tree { communicator, rank, size, timeout, end: None, owed: Some(Tag::Size) }
    }

    /// Merges the parts of all ranks; the ranks that are to write their profiles.
    pub(super) fn reduce(&mut self, part: &mut impl Part) -> Result<Vec<u32>, Why> {
        let named = self.up_and_down(part);
        let words = end_words(named.as_deref().ok());
        if named.is_err()
            && let (Some(parent), Some(tag)) = (parent(self.rank), self.owed)
        {
            self.say(parent, tag, vec![NOTHING; SIZE_WORDS]);
        }
        for child in children(self.rank, self.size) {
            self.say(child, Tag::End, words.clone());
        }
        named
    }

    fn up_and_down(&mut self, part: &mut impl Part) -> Result<Vec<u32>, Why> {
        let communicator = self.communicator;
        if let Some(parent) = parent(self.rank) {
            self.end = Some(communicator.receive(parent, Tag::End, END_WORDS)?);
        }
        let mut sizes = Vec::new();
        for child in children(self.rank, self.size) {
            sizes.push((child, communicator.receive(child, Tag::Size, SIZE_WORDS)?));
        }
        for (child, mut size) in sizes {
            self.wait_for(&mut size, child, part)?;
            let [words, of_shape, fingerprint @ ..] = &size.words()[..] else {
                return Err(Why::Mpi);
            };
            if *words == NOTHING {
                return Err(Why::GivenUp);
            }
            let needs_shape = *fingerprint != part.fingerprint()?;
            let number = |words: u64| usize::try_from(words).map_err(|_| Why::NotUnderstood);
            let words = number(*words)?;
            let of_shape = if needs_shape { number(*of_shape)? } else { 0 };
            let mut all =
                communicator.receive(child, Tag::Words, words.saturating_add(of_shape))?;
            self.say(child, Tag::Go, vec![if needs_shape { WITH_SHAPE } else { WITHOUT }]);
            self.wait_for(&mut all, child, part)?;
            let mut all = all.words();
            if all.first() == Some(&NOTHING) {
                return Err(Why::GivenUp);
            }
            let shape = all.split_off(words.min(all.len()));
            part.take_in(all, needs_shape.then_some(shape))?;
        }
        let Some(parent) = parent(self.rank) else { return part.finish() };
        let (mut words, [first, second]) = (part.words(), part.fingerprint()?);
        let mut shape = part.shape()?;
        let mut go = communicator.receive(parent, Tag::Go, 1)?;
        self.say(parent, Tag::Size, vec![words.len() as u64, shape.len() as u64, first, second]);
        self.owed = Some(Tag::Words);
        self.wait_for(&mut go, parent, part)?;
        self.owed = None;
        if go.words() == [WITH_SHAPE] {
            words.append(&mut shape);
        }
        let mut all = communicator.send(parent, Tag::Words, words)?;
        self.wait_for(&mut all, parent, part)?;
        let Some(mut end) = self.end.take() else { return Err(Why::Mpi) };
        self.wait_for(&mut end, parent, part)?;
        named(&end.words()).ok_or(Why::GivenUp)
    }

    /// Sends a few words, which MPI keeps when nobody takes them.
    fn say(&self, to: u32, tag: Tag, words: Vec<u64>) {
        if let Ok(mut pending) = self.communicator.send(to, tag, words) {
            let begun = Instant::now();
            while pending.is_done().is_ok_and(|done| !done) && begun.elapsed() < PATIENCE {
                thread::yield_now();
            }
        }
    }

    /// Waits until it is done. Not for longer than the timeout, and not when the parent has given up.
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

/// Somebody waits for what may come at once, and may take long.
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

    /// A little while, the longer the longer it takes.
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

fn end_words(named: Option<&[u32]>) -> Vec<u64> {
    let mut words = vec![0; END_WORDS];
    let said = [if named.is_some() { WELL } else { 0 }, named.map_or(0, <[u32]>::len) as u64];
    let named = named.unwrap_or_default().iter().map(|rank| u64::from(*rank));
    words.iter_mut().zip(said.into_iter().chain(named)).for_each(|(word, said)| *word = said);
    words
}

/// The ranks that such words name; none when it did not end well.
fn named(words: &[u64]) -> Option<Vec<u32>> {
    let [WELL, number, ranks @ ..] = words else { return None };
    let number = usize::try_from(*number).ok()?;
    ranks.iter().take(number).map(|rank| u32::try_from(*rank).ok()).collect()
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
        let ranks: Vec<u32> = (0..62).map(|rank| rank * 1000).collect();
        for ranks in [&ranks[..], &ranks[..1], &[]] {
            assert_eq!(named(&end_words(Some(ranks))).as_deref(), Some(ranks));
        }
        assert_eq!(named(&end_words(None)), None);
        assert_eq!(named(&[]), None);
    }
}
