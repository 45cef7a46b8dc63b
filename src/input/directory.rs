//! A run directory: which profiles are in it, and which directories of further processes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gyan_results::{
    RankProfile, RankReader, ReadError, SUMMARY_FILE, Summary, live_file_name, rank_file_name,
    rank_of_file_name, rank_of_live_file_name, read_profile, read_summary,
};

use crate::error::{Error, reason};
use crate::input::killed;
use crate::say;

/// The profiles of the ranks, at most one for each.
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// By rank. Names are made when they are needed: of a million ranks they would take more room
    /// than the summary.
    pub(crate) files: Vec<RankFile>,
    /// The summary that the ranks themselves wrote (`GYAN_REDUCE`) instead of a profile each.
    pub(crate) reduced_in_mpi: Option<Box<Summary>>,
}

/// What is known of one rank.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct RankFile {
    pub(crate) rank: u32,
    /// Its live file, not its profile.
    pub(crate) live: bool,
}

impl Directory {
    /// The profiles in `path`; live files where ranks have no profile, or a later process of the
    /// rank had one.
    pub(crate) fn open(path: &Path) -> Result<Directory, Error> {
        let mut files: BTreeMap<u32, RankFile> = BTreeMap::new();
        for file in all_rank_files(path)? {
            let chosen = match files.remove(&file.rank) {
                Some(other) => later(path, other, file),
                None => file,
            };
            files.insert(file.rank, chosen);
        }
        let files = files.into_values().collect();
        let mut directory = Directory { path: path.to_owned(), files, reduced_in_mpi: None };
        directory.reduced_in_mpi = directory.find_reduced().map(Box::new);
        Ok(directory)
    }

    /// It is of a run before the last one when the profiles are of another job.
    fn find_reduced(&self) -> Option<Summary> {
        let summary = read_summary(&self.path.join(SUMMARY_FILE)).ok()?;
        let fewer = (self.files.len() as u64) < u64::from(summary.ranks.reduced);
        let mut profiles = self.files.iter().filter_map(|&file| self.read(file).ok());
        let mut is_latest =
            || profiles.next().is_none_or(|profile| profile.job.id == summary.job.id);
        let is_theirs = summary.reduced_in_mpi.is_some() && fewer && is_latest();
        is_theirs.then_some(summary)
    }

    /// The profile that is in a file, or what is wrong with it.
    pub(crate) fn read(&self, file: RankFile) -> Result<RankProfile, String> {
        let mut profile = read_profile(&self.path.join(file.name())).map_err(why)?;
        file.look_at(&mut profile)?;
        Ok(profile)
    }

    /// The same for one who reads many.
    pub(crate) fn read_with<'a>(
        &self,
        reader: &'a mut RankReader,
        file: RankFile,
    ) -> Result<&'a mut RankProfile, String> {
        let profile = reader.read(&self.path.join(file.name())).map_err(why)?;
        file.look_at(profile)?;
        Ok(profile)
    }
}

impl RankFile {
    fn of(name: &str) -> Option<RankFile> {
        let profile = rank_of_file_name(name).map(|rank| RankFile { rank, live: false });
        profile.or_else(|| rank_of_live_file_name(name).map(|rank| RankFile { rank, live: true }))
    }

    pub(crate) fn name(self) -> String {
        if self.live { live_file_name(self.rank) } else { rank_file_name(self.rank) }
    }

    /// Tells how a rank ended of which this is all that is left.
    fn look_at(self, profile: &mut RankProfile) -> Result<(), String> {
        if self.live {
            killed::tell(profile);
        }
        self.check(profile)
    }

    pub(crate) fn check(self, profile: &RankProfile) -> Result<(), String> {
        if profile.rank == self.rank {
            Ok(())
        } else {
            Err(format!("is the profile of rank {}; give it back its name", profile.rank))
        }
    }
}

/// Why a profile cannot be used, and what to do.
pub(crate) fn why(error: ReadError) -> String {
    match error {
        ReadError::Io(error) => format!("cannot be read: {}", reason(&error)),
        other => other.to_string(),
    }
}

/// Whether `directory` holds profiles of ranks; false when there is no such directory.
pub(crate) fn has_profiles(directory: &Path) -> bool {
    all_rank_files(directory).is_ok_and(|files| !files.is_empty())
}

/// All profiles and live files.
pub(crate) fn all_rank_files(directory: &Path) -> Result<Vec<RankFile>, Error> {
    let io_error = |error: &io::Error| {
        Error::io(directory, error, "name the run directory of a program that ran under gyan")
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| io_error(&error))? {
        let name = entry.map_err(|error| io_error(&error))?.file_name();
        files.extend(name.to_str().and_then(RankFile::of));
    }
    Ok(files)
}

/// Of the profile and the live file of one rank the one that was written later.
fn later(directory: &Path, one: RankFile, other: RankFile) -> RankFile {
    let when = |file: RankFile| {
        let job = read_profile(&directory.join(file.name())).ok()?.job;
        Some((job.started, job.elapsed_s))
    };
    if when(one) >= when(other) { one } else { other }
}

/// Names the run directories inside of this one, on stderr: they have reports of their own.
pub(crate) fn name_nested(directory: &Path) {
    let nested = nested(directory);
    let lines = nested.iter().map(|inner| {
        let inner = inner.display();
        format!(
            "{inner}: holds profiles of further processes of the job; show them with: \
             gyan report {inner}"
        )
    });
    say::warn_of(lines, |more| {
        format!("{}: {more} more directories like these", directory.display())
    });
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
