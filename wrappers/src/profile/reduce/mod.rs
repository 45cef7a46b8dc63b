//! The reduction inside MPI: at `MPI_Finalize` the ranks merge what they know over a tree, and rank 0 writes
//! the summary, instead of one file a rank. Only a few ranks write their profiles: the first, the
//! extreme ones and the one in the middle.
//!
//! All ranks have to take part, so nothing is begun where gyan may not be in all of them, and nobody
//! waits for ever: who has to wait too long gives up, tells the others, and all write their files.

mod choice;
mod communicator;
mod median;
mod tree;

use std::hash::{DefaultHasher, Hasher};
use std::time::{Duration, Instant};

use gyan_results::{
    RankProfile, ReducedInMpi, Reduction, Summary, bytes_of, rank_file_name, words_of,
};

use crate::config::{Config, Reduce};
use crate::mpi::abi::Library;
use crate::profile::job;
use communicator::Communicator;
use median::Middle;
use tree::{Part, Tree, Wait, Why};

/// From more ranks on, `auto` reduces inside MPI.
const FILES_AT_MOST: u32 = 1024;

/// How it went.
pub(crate) enum Outcome {
    /// The summary is written; whether this rank is to write its profile too.
    Reduced { keeps: bool },
    /// Nothing is: each rank has to write its profile. Why, in words.
    Failed(String),
}

/// Whether there is to be one; an error says why not, though the user wants it. Nothing is communicated
/// before the end: what a rank without gyan would not take part in would meet its own operations.
pub(crate) fn is_to_be(config: &Config, size: u32) -> Result<bool, String> {
    let wanted = match config.reduce {
        Reduce::Off => false,
        Reduce::Auto => size > FILES_AT_MOST,
        Reduce::Mpi | Reduce::Both => true,
    };
    match job::programs().filter(|_| wanted) {
        Some(several) => Err(format!("{several}, and gyan may not be in all of them")),
        None => Ok(wanted),
    }
}

/// Merges the profiles of all ranks, when all of them come to their end with gyan. `wanted`: in what ranks
/// can be extreme; `timeout`: how long one waits for another.
pub(crate) fn reduce(
    library: &Library,
    mut profile: RankProfile,
    wanted: &[String],
    timeout: Duration,
    home: &mut impl Home,
) -> Outcome {
    let (rank, size) = (profile.rank, profile.size);
    let begun = Instant::now();
    // Not every launcher gives an id that the nodes share, and here nobody can be of another job.
    let job = std::mem::take(&mut profile.job.id);
    let time_s = profile.in_mpi.as_ref().map(|in_mpi| in_mpi.time_s);
    let middle = time_s.map(|time_s| Middle::of(time_s, rank)).unwrap_or_default();
    // Rows that come in their order are taken in at once.
    profile.pvars.sort_by(|one, other| one.identity().cmp(&other.identity()));
    for phase in &mut profile.phases {
        phase.pvars.sort_by(|one, other| one.identity().cmp(&other.identity()));
    }
    let mut reduction = Reduction::default();
    reduction.add(&rank_file_name(rank), &profile);
    let mut known = Known {
        reduction,
        shape: None,
        middle,
        begun,
        job,
        wanted,
        home,
        waited_s: 0.0,
        waited: false,
    };
    let reduced = meet(library, timeout, &mut known)
        .and_then(|communicator| Tree::new(&communicator, rank, size, timeout).reduce(&mut known));
    match reduced {
        Ok(ranks) => Outcome::Reduced { keeps: ranks.contains(&rank) },
        Err(why) => Outcome::Failed(said(why, timeout)),
    }
}

/// The communicator of the ranks, which is there when all of them are here.
fn meet(
    library: &Library,
    timeout: Duration,
    known: &mut Known<'_, impl Home>,
) -> Result<Communicator, Why> {
    let (communicator, mut pending) = Communicator::begin(library)?;
    let wait = Wait::for_no_longer_than(timeout);
    while !pending.is_done()? {
        wait.a_little(known).map_err(|_| Why::NotAllHere)?;
    }
    communicator.returns_errors(library)?;
    known.waited_s = known.begun.elapsed().as_secs_f64();
    Ok(communicator)
}

fn said(why: Why, timeout: Duration) -> String {
    let timeout = humantime::format_duration(timeout);
    match why {
        Why::NotAllHere => format!(
            "not all ranks came to their end within {timeout} (GYAN_REDUCE_TIMEOUT), or not all of \
                 them with gyan"
        ),
        Why::Late(rank) => {
            format!("no word from rank {rank} within {timeout} (GYAN_REDUCE_TIMEOUT)")
        }
        Why::GivenUp => "another rank gave up, and says why in its profile".into(),
        Why::Mpi => "MPI failed".into(),
        Why::NotUnderstood => "another gyan is in other ranks".into(),
        Why::NotWritten => "the summary cannot be written".into(),
    }
}

/// What the reduction needs of the run.
pub(crate) trait Home {
    /// Writes the summary, on rank 0. Whether that could be done.
    fn write(&mut self, summary: &Summary) -> bool;
    /// It takes long.
    fn wait(&mut self);
}

/// What is known of some ranks.
struct Known<'a, H> {
    reduction: Reduction,
    /// The shape of that, when it is known.
    shape: Option<Vec<u8>>,
    middle: Middle,
    begun: Instant,
    /// The id of the job.
    job: String,
    /// In which variables ranks can be extreme.
    wanted: &'a [String],
    home: &'a mut H,
    /// Seconds until all ranks were there.
    waited_s: f64,
    /// Whether the run knows that it takes long.
    waited: bool,
}

impl<H> Known<'_, H> {
    /// The shape of the reduction, which is made once as long as it does not change.
    fn shape_of_all(&mut self) -> Result<&[u8], Why> {
        let shape = match self.shape.take() {
            Some(shape) => shape,
            None => self.reduction.shape().map_err(|_| Why::NotUnderstood)?,
        };
        Ok(self.shape.insert(shape))
    }
}

impl<H: Home> Part for Known<'_, H> {
    fn fingerprint(&mut self) -> Result<[u64; 2], Why> {
        let shape = self.shape_of_all()?;
        let mut hasher = DefaultHasher::new();
        hasher.write(shape);
        let length = shape.len() as u64;
        Ok([hasher.finish(), u64::from(crc32fast::hash(shape)) << 32 | length & 0xffff_ffff])
    }

    fn take_in(&mut self, mut words: Vec<u64>, shape: Option<Vec<u64>>) -> Result<(), Why> {
        let at = words.first().and_then(|at| usize::try_from(*at).ok());
        let at = at.filter(|at| *at < words.len()).ok_or(Why::NotUnderstood)?;
        let numbers = words.split_off(at);
        self.middle.merge(Middle::of_words(words.get(1..).unwrap_or_default()));
        let merged = match shape {
            None => self.reduction.merge_by_place(numbers),
            Some(shape) => {
                self.shape = None;
                self.reduction.merge_by_name(&bytes_of(&shape), numbers)
            }
        };
        merged.map_err(|_| Why::NotUnderstood)
    }

    fn words(&mut self) -> Vec<u64> {
        let middle = self.middle.words();
        // Where the numbers begin.
        let mut words = vec![1 + middle.len() as u64];
        words.extend(middle);
        words.extend(self.reduction.to_numbers());
        words
    }

    fn shape(&mut self) -> Result<Vec<u64>, Why> {
        Ok(words_of(self.shape_of_all()?).collect())
    }

    fn finish(&mut self) -> Result<Vec<u32>, Why> {
        let mut summary = std::mem::take(&mut self.reduction).finish().ok_or(Why::NotUnderstood)?;
        summary.job.id.clone_from(&self.job);
        let ranks = choice::ranks(&summary, self.wanted, self.middle.rank());
        summary.reduced_in_mpi = Some(ReducedInMpi {
            time_s: self.begun.elapsed().as_secs_f64(),
            wait_s: self.waited_s,
            profiles: ranks.clone(),
        });
        if self.home.write(&summary) { Ok(ranks) } else { Err(Why::NotWritten) }
    }

    fn wait(&mut self) {
        if !std::mem::replace(&mut self.waited, true) {
            self.home.wait();
        }
    }
}
