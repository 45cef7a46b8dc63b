//! The reduction inside MPI: at `MPI_Finalize` the ranks merge what they know over the same binary tree that
//! `gyan reduce` uses, and rank 0 writes the summary, instead of one file per rank. Only a few ranks write their
//! profiles: the first, the extreme ones and the median.
//!
//! All ranks must take part, so nothing is started if gyan may be missing from some of them. Nobody waits
//! forever: a rank that has waited too long gives up and tells the others, and all write their files.

mod choice;
#[allow(unsafe_code)]
mod communicator;
mod median;
mod tree;

use std::mem;
use std::time::{Duration, Instant};

use gyan_results::{RankProfile, ReducedInMpi, Reduction, Summary, rank_file_name, sort_by};
use serde::{Deserialize, Serialize};

use crate::config::{Config, Reduce};
use crate::delivery::job;
use crate::mpi::abi::Library;
use communicator::WorldMessages;
use median::Middle;
use tree::{Merging, NotReduced, Tree, Wait};

/// From more ranks on, `auto` reduces inside MPI.
const FILES_AT_MOST: u32 = 1024;

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

/// Merges the profiles of all ranks, provided that gyan is in all of them when they end. `wanted`: what makes a
/// rank extreme; `timeout`: how long one rank waits for another.
pub(crate) fn reduce(
    library: &Library,
    mut profile: RankProfile,
    wanted: &[String],
    timeout: Duration,
    target: &mut impl ReductionTarget,
) -> Outcome {
    let (rank, size) = (profile.rank, profile.size);
    let begun = Instant::now();
    // Not every launcher sets an id that the nodes share, but here all ranks belong to one job.
    let job = mem::take(&mut profile.job.id);
    let time_s = profile.in_mpi.as_ref().map(|in_mpi| in_mpi.time_s);
    let middle = time_s.map(|time_s| Middle::from_time(time_s, rank)).unwrap_or_default();
    // Rows are merged fastest in order.
    sort_by(&mut profile.pvars, |one, other| one.identity().cmp(&other.identity()));
    for phase in &mut profile.phases {
        sort_by(&mut phase.pvars, |one, other| one.identity().cmp(&other.identity()));
    }
    let mut reduction = Reduction::default();
    reduction.add(&rank_file_name(rank), &profile);
    let mut run =
        Reducing { middle, reduction, begun, job, wanted, target, waited_s: 0.0, waited: false };
    let reduced = meet(library, rank, timeout, &mut run).and_then(|communicator| {
        let mut tree = Tree::over_ranks(&communicator, (rank, size), timeout);
        communicator.greet(&tree.peers(), timeout, &mut run)?;
        tree.reduce(&mut run)
    });
    match reduced {
        Ok(ranks) => Outcome::Reduced { keeps: ranks.contains(&rank) },
        Err(why) => Outcome::Failed(said(why, timeout)),
    }
}

/// The communicator of the ranks, once all of them have come.
fn meet(
    library: &Library,
    rank: u32,
    timeout: Duration,
    run: &mut Reducing<'_, impl ReductionTarget>,
) -> Result<WorldMessages, NotReduced> {
    let communicator = WorldMessages::take(library, rank)?;
    communicator.fill_receives_left(timeout, run)?;
    let mut all_here = communicator.barrier()?;
    Wait::for_no_longer_than(timeout).until_done(&mut all_here, NotReduced::NotAllHere, run)?;
    run.waited_s = run.begun.elapsed().as_secs_f64();
    Ok(communicator)
}

fn said(why: NotReduced, timeout: Duration) -> String {
    let timeout = humantime::format_duration(timeout);
    match why {
        NotReduced::NotAllHere => format!(
            "not all ranks reached their end within {timeout} (GYAN_REDUCE_TIMEOUT), or not all of \
             them with gyan"
        ),
        NotReduced::Late(rank) => {
            format!("no word from rank {rank} within {timeout} (GYAN_REDUCE_TIMEOUT)")
        }
        NotReduced::GivenUp => "another rank gave up, and says why in its profile".into(),
        NotReduced::Mpi => "MPI failed".into(),
        NotReduced::NotUnderstood => "another gyan is in other ranks".into(),
        NotReduced::NotWritten => "the summary cannot be written".into(),
    }
}

/// The profiles of all ranks, before the figures of a summary are made of them.
#[derive(Deserialize, Serialize)]
pub(crate) struct MergedProfiles {
    reduction: Reduction,
    /// The id of the job.
    job: String,
    in_mpi: ReducedInMpi,
}

impl MergedProfiles {
    /// None where they are those of no job.
    pub(crate) fn into_summary(self) -> Option<Summary> {
        let mut summary = self.reduction.finish()?;
        summary.job.id = self.job;
        summary.reduced_in_mpi = Some(self.in_mpi);
        Some(summary)
    }
}

/// What the reduction needs of the run.
pub(crate) trait ReductionTarget {
    /// Leaves the summary to somebody else, on rank 0. False where it is this rank's own.
    fn hand_over(&mut self, profiles: &MergedProfiles) -> bool;
    /// Writes the summary, on rank 0. Whether that could be done.
    fn write(&mut self, summary: &Summary) -> bool;
    /// Called while the reduction takes long.
    fn wait(&mut self);
}

struct Reducing<'a, H> {
    /// Of the ranks merged so far: the median, and what they know.
    middle: Middle,
    reduction: Reduction,
    begun: Instant,
    job: String,
    /// The variables in which a rank can be extreme.
    wanted: &'a [String],
    target: &'a mut H,
    /// Seconds until all ranks had come.
    waited_s: f64,
    /// Whether the run was told that it takes long.
    waited: bool,
}

/// What ranks must have in common to understand each other.
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl<H: ReductionTarget> Merging for Reducing<'_, H> {
    fn add(&mut self, bytes: &[u8]) -> Result<(), NotReduced> {
        let version = postcard::take_from_bytes::<&str>(bytes);
        let (_, known) =
            version.ok().filter(|(one, _)| *one == VERSION).ok_or(NotReduced::NotUnderstood)?;
        let (middle, reduction) =
            postcard::from_bytes(known).map_err(|_| NotReduced::NotUnderstood)?;
        self.middle.merge(middle);
        self.reduction.merge(reduction);
        Ok(())
    }

    fn bytes(&self) -> Result<Vec<u8>, NotReduced> {
        let known = (VERSION, &self.middle, &self.reduction);
        postcard::to_allocvec(&known).map_err(|_| NotReduced::NotUnderstood)
    }

    fn finish(&mut self) -> Result<Vec<u32>, NotReduced> {
        let reduction = mem::take(&mut self.reduction);
        let in_mpi = |profiles: Vec<u32>| ReducedInMpi {
            time_s: self.begun.elapsed().as_secs_f64(),
            wait_s: self.waited_s,
            profiles,
        };
        let merged =
            MergedProfiles { reduction, job: self.job.clone(), in_mpi: in_mpi(Vec::new()) };
        if self.target.hand_over(&merged) {
            return Ok(Vec::new());
        }
        let mut summary = merged.into_summary().ok_or(NotReduced::NotUnderstood)?;
        let ranks = choice::ranks(&summary, self.wanted, self.middle.rank());
        summary.reduced_in_mpi = Some(in_mpi(ranks.clone()));
        if self.target.write(&summary) { Ok(ranks) } else { Err(NotReduced::NotWritten) }
    }

    fn wait(&mut self) {
        if !mem::replace(&mut self.waited, true) {
            self.target.wait();
        }
    }
}
