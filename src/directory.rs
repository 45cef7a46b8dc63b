//! A run directory: finds the profiles in it and reduces them to a summary.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gyan_results::{
    RankProfile, ReadError, Reduction, SUMMARY_FILE, Summary, rank_of_file_name,
    rank_of_live_file_name, read_profile, read_summary,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;

use crate::error::{Error, reason};
use crate::killed;
use crate::view::printable;

/// Profiles that one thread reduces before their reductions are merged.
const CHUNK: usize = 64;
/// A reduction that takes longer shows its progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// More lines of one kind than this are not printed.
const LINES_AT_MOST: usize = 8;

/// The profiles in `directory`, reduced. When there are none, the summary that was left of them.
pub(crate) fn summarize(directory: &Path) -> Result<Summary, Error> {
    let files = rank_files(directory)?;
    if files.is_empty() {
        let summary = directory.join(SUMMARY_FILE);
        return match read_summary(&summary) {
            Ok(summary) => Ok(summary),
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::new(
                    directory.display(),
                    "holds no rank profiles (rank-NNNNNN.json)",
                    "name the run directory of a program that ran under gyan",
                ))
            }
            Err(error) => {
                let text = error.to_string();
                let (why, remedy) = text.split_once("; ").unwrap_or((&text, "reduce again"));
                Err(Error::new(summary.display(), why, remedy))
            }
        };
    }
    let reduction = reduce(directory, &files);
    let why_none = reduction.left_out().next().map(|left_out| {
        let file = directory.join(&left_out.file);
        Error::new(file.display(), &left_out.reason, "no other profile is here")
    });
    match (reduction.finish(), why_none) {
        (Some(summary), _) => Ok(summary),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::new(directory.display(), "nothing to reduce", "run again")),
    }
}

/// Whether `directory` holds profiles of ranks; false when there is no such directory.
pub(crate) fn has_profiles(directory: &Path) -> bool {
    all_rank_files(directory).is_ok_and(|files| !files.is_empty())
}

/// The names of the rank profiles, by rank; those of live files where ranks have no profile, or a later
/// process of the rank had one.
pub(crate) fn rank_files(directory: &Path) -> Result<Vec<String>, Error> {
    let mut files: BTreeMap<u32, String> = BTreeMap::new();
    for (rank, name) in all_rank_files(directory)? {
        let chosen = match files.remove(&rank) {
            Some(other) => later(directory, other, name),
            None => name,
        };
        files.insert(rank, chosen);
    }
    Ok(files.into_values().collect())
}

/// The ranks and the names of all profiles and live files.
pub(crate) fn all_rank_files(directory: &Path) -> Result<Vec<(u32, String)>, Error> {
    let io_error = |error: &io::Error| {
        Error::io(directory, error, "name the run directory of a program that ran under gyan")
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| io_error(&error))? {
        let name = entry.map_err(|error| io_error(&error))?.file_name();
        if let Some(name) = name.to_str()
            && let Some(rank) = rank_of(name)
        {
            files.push((rank, name.to_owned()));
        }
    }
    Ok(files)
}

/// The rank that a file tells of, by its name.
fn rank_of(name: &str) -> Option<u32> {
    rank_of_file_name(name).or_else(|| rank_of_live_file_name(name))
}

/// Of the profile and the live file of one rank the one that was written later.
fn later(directory: &Path, one: String, other: String) -> String {
    let when = |name: &str| {
        let job = read_profile(&directory.join(name)).ok()?.job;
        Some((job.started, job.elapsed_s))
    };
    if when(&one) >= when(&other) { one } else { other }
}

fn reduce(directory: &Path, files: &[String]) -> Reduction {
    let progress = Progress::new(files.len());
    let reductions: Vec<Reduction> = files
        .par_chunks(CHUNK)
        .map(|files| {
            let mut reduction = Reduction::default();
            for file in files {
                match read(directory, file) {
                    Ok(profile) => reduction.add(file, profile),
                    Err(why) => reduction.leave_out(file, &why),
                }
                progress.step();
            }
            reduction
        })
        .collect();
    progress.finish();
    // In the order of the ranks, so that sums of doubles do not depend on the threads.
    reductions.into_iter().fold(Reduction::default(), |mut whole, part| {
        whole.merge(part);
        whole
    })
}

fn read(directory: &Path, file: &str) -> Result<RankProfile, String> {
    let mut profile = read_profile(&directory.join(file)).map_err(|error| match error {
        ReadError::Io(error) => format!("cannot be read: {}", reason(&error)),
        other => other.to_string(),
    })?;
    if rank_of_live_file_name(file).is_some() {
        killed::tell(&mut profile);
    }
    if rank_of(file) == Some(profile.rank) {
        Ok(profile)
    } else {
        Err(format!("is the profile of rank {}; give it back its name", profile.rank))
    }
}

/// What `of` makes of each profile of `job`, in the order of the ranks. What cannot be read is left
/// out: [`warn_of_gaps`] has said so.
pub(crate) fn of_each<T: Send>(
    directory: &Path,
    job: &str,
    of: impl Fn(RankProfile) -> T + Send + Sync,
) -> Result<Vec<T>, Error> {
    let files = rank_files(directory)?;
    let profiles = files.par_iter().filter_map(|file| read(directory, file).ok());
    Ok(profiles.filter(|profile| profile.job.id == job).map(of).collect())
}

/// The profiles of `job` one after the other: for what is too much to hold of all of them.
pub(crate) fn one_by_one(
    directory: &Path,
    job: &str,
) -> Result<impl Iterator<Item = RankProfile>, Error> {
    let files = rank_files(directory)?.into_iter();
    let profiles = files.filter_map(move |file| read(directory, &file).ok());
    Ok(profiles.filter(move |profile| profile.job.id == job))
}

/// Says what the summary lacks, on stderr. Whether it is complete.
pub(crate) fn warn_of_gaps(directory: &Path, summary: &Summary) -> bool {
    let ranks = &summary.ranks;
    for left_out in ranks.left_out.iter().take(LINES_AT_MOST) {
        let file = directory.join(&left_out.file);
        let line = format!("{}: {}", file.display(), left_out.reason);
        anstream::eprintln!("gyan: {}", printable(&line));
    }
    if ranks.left_out.len() > LINES_AT_MOST {
        anstream::eprintln!(
            "gyan: {}: {} more files were left out; gyan reduce lists them in {SUMMARY_FILE}",
            directory.display(),
            ranks.left_out.len() - LINES_AT_MOST,
        );
    }
    if !ranks.missing.is_empty() {
        anstream::eprintln!(
            "gyan: {}: {} of {} ranks have no usable profile ({}); they ended before \
             MPI_Finalize, could not write, or ran without gyan",
            directory.display(),
            ranks.missing.len(),
            ranks.expected,
            crate::view::ranges(&ranks.missing),
        );
    }
    name_nested(directory);
    ranks.is_complete()
}

/// Names the run directories inside of this one, on stderr: they have reports of their own.
pub(crate) fn name_nested(directory: &Path) {
    let nested = nested(directory);
    for inner in nested.iter().take(LINES_AT_MOST) {
        let inner = inner.display().to_string();
        let inner = printable(&inner);
        anstream::eprintln!(
            "gyan: {inner}: holds profiles of further processes of the job; show them with: \
             gyan report {inner}"
        );
    }
    if nested.len() > LINES_AT_MOST {
        let more = nested.len() - LINES_AT_MOST;
        anstream::eprintln!("gyan: {}: {more} more directories like these", directory.display());
    }
}

/// The run directories inside of `directory`: of processes that the program spawned, and of
/// further starts by one launcher.
pub(crate) fn nested(directory: &Path) -> Vec<PathBuf> {
    let named = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("spawned-") || name.starts_with("again-")
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut nested: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(named)
        .filter(|path| has_profiles(path))
        .collect();
    nested.sort();
    nested
}

/// A progress bar for who waits longer than a second in front of a terminal.
struct Progress {
    bar: ProgressBar,
    begun: Instant,
    wanted: bool,
}

impl Progress {
    fn new(files: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(files as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} profiles, {eta} left")
        {
            bar.set_style(style);
        }
        Progress { bar, begun: Instant::now(), wanted: io::stderr().is_terminal() }
    }

    fn step(&self) {
        self.bar.inc(1);
        if self.wanted && self.bar.is_hidden() && self.begun.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    fn finish(self) {
        self.bar.finish_and_clear();
    }
}
