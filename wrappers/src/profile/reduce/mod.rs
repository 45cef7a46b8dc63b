//! The reduction inside MPI: at `MPI_Finalize` the ranks merge what they know over a tree, and rank 0 writes
//! the summary, instead of one file per rank. Only a few ranks write their profiles: the first, the
//! extreme ones and the median.
//!
//! All ranks must take part, so nothing is started if gyan may be missing from some of them. Nobody waits
//! for ever: a rank that has waited too long gives up and tells the others, and all write their files.

mod choice;
mod communicator;
mod median;
mod tree;

use std::time::{Duration, Instant};

use gyan_results::{RankProfile, ReducedInMpi, Reduction, Summary, rank_file_name};

use crate::config::{Config, Reduce};
use crate::mpi::abi::Library;
use crate::profile::job;
use communicator::Communicator;
use median::Middle;
use tree::{Part, Tree, Wait, Why};

/// From more ranks on, `auto` reduces inside MPI.
const FILES_AT_MOST: u32 = 1024;

/// How the reduction ended.
pub(crate) enum Outcome {
    /// The summary is written; `keeps`: whether this rank also writes its profile.
    Reduced { keeps: bool },
    /// Nothing is written, so each rank must write its profile. The reason, in words.
    Failed(String),
}

/// Whether to reduce inside MPI; an error says why that is impossible although the user wants it. Nothing is
/// communicated before the end: on a rank without gyan, it would match the program's own operations.
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

/// Merges the profiles of all ranks, provided that gyan is in all of them when they end. `wanted`: what
/// makes a rank extreme; `timeout`: how long one rank waits for another.
pub(crate) fn reduce(
    library: &Library,
    mut profile: RankProfile,
    wanted: &[String],
    timeout: Duration,
    home: &mut impl Home,
) -> Outcome {
    let (rank, size) = (profile.rank, profile.size);
    let begun = Instant::now();
    // Not every launcher gives an id that the nodes share, and here all ranks are of one job.
    let job = std::mem::take(&mut profile.job.id);
    let time_s = profile.in_mpi.as_ref().map(|in_mpi| in_mpi.time_s);
    let middle = time_s.map(|time_s| Middle::of(time_s, rank)).unwrap_or_default();
    // Rows are taken in fastest in their order.
    profile.pvars.sort_by(|one, other| one.identity().cmp(&other.identity()));
    for phase in &mut profile.phases {
        phase.pvars.sort_by(|one, other| one.identity().cmp(&other.identity()));
    }
    let mut reduction = Reduction::default();
    reduction.add(&rank_file_name(rank), &profile);
    let mut known =
        Known { reduction, middle, begun, job, wanted, home, waited_s: 0.0, waited: false };
    let reduced = meet(library, timeout, &mut known)
        .and_then(|communicator| Tree::new(&communicator, rank, size, timeout).reduce(&mut known));
    match reduced {
        Ok(ranks) => Outcome::Reduced { keeps: ranks.contains(&rank) },
        Err(why) => Outcome::Failed(said(why, timeout)),
    }
}

/// The communicator of the ranks. It exists once all of them have come.
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
    /// Called while the reduction takes long.
    fn wait(&mut self);
}

/// What is known of some ranks.
struct Known<'a, H> {
    reduction: Reduction,
    middle: Middle,
    begun: Instant,
    /// The id of the job.
    job: String,
    /// The variables in which a rank can be extreme.
    wanted: &'a [String],
    home: &'a mut H,
    /// Seconds until all ranks had come.
    waited_s: f64,
    /// Whether the run has been told that it takes long.
    waited: bool,
}

/// What ranks must have in common to understand each other.
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl<H: Home> Part for Known<'_, H> {
    fn take_in(&mut self, bytes: &[u8]) -> Result<(), Why> {
        let version = postcard::take_from_bytes::<&str>(bytes);
        let (_, rest) =
            version.ok().filter(|(one, _)| *one == VERSION).ok_or(Why::NotUnderstood)?;
        let other = postcard::from_bytes(rest).map_err(|_| Why::NotUnderstood)?;
        let (middle, reduction): (Middle, Reduction) = other;
        self.middle.merge(middle);
        self.reduction.merge(reduction);
        Ok(())
    }

    fn bytes(&self) -> Result<Vec<u8>, Why> {
        let all = (VERSION, &self.middle, &self.reduction);
        postcard::to_allocvec(&all).map_err(|_| Why::NotUnderstood)
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
