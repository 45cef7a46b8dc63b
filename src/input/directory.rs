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
    /// Further directories with profiles of the same job.
    others: Vec<PathBuf>,
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
    /// In which of the directories it is.
    part: usize,
}

impl Directory {
    /// The profiles in `path`; live files where ranks have no profile, or a later process of the
    /// rank had one.
    pub(crate) fn open(path: &Path) -> Result<Directory, Error> {
        Directory::open_all(path, &[])
    }

    /// The same with the profiles of one job that are in several directories. Of a rank that is in two of them the profile
    /// counts before the live file, then what is in the directory that is named first.
    pub(crate) fn open_all(path: &Path, others: &[PathBuf]) -> Result<Directory, Error> {
        let (path, others) = (path.to_owned(), others.to_vec());
        let mut directory = Directory { path, others, files: Vec::new(), reduced_in_mpi: None };
        let mut files: BTreeMap<u32, RankFile> = BTreeMap::new();
        let mut twice = Vec::new();
        for (part, place) in directory.places().enumerate() {
            for file in all_rank_files(place)? {
                let file = RankFile { part, ..file };
                let chosen = match files.remove(&file.rank) {
                    Some(other) if other.part == part => later(place, other, file),
                    Some(other) => {
                        twice.push(file.rank);
                        if other.live && !file.live { file } else { other }
                    }
                    None => file,
                };
                files.insert(file.rank, chosen);
            }
        }
        directory.files = files.into_values().collect();
        directory.check_job()?;
        if !twice.is_empty() {
            twice.sort_unstable();
            twice.dedup();
            let path = directory.path.display();
            let ranks = say::ranges(&twice);
            say::warn(format!(
                "{path}: rank {ranks} is in more than one of the directories; a profile counts before a live file, \
                 then the directory that is named first"
            ));
        }
        directory.reduced_in_mpi = directory.find_reduced().map(Box::new);
        Ok(directory)
    }

    /// All directories.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.path).chain(&self.others).map(PathBuf::as_path)
    }

    fn path_of(&self, file: RankFile) -> PathBuf {
        self.places().nth(file.part).unwrap_or(&self.path).join(file.name())
    }

    /// What a message calls a file of this name.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        let same = |file: &&RankFile| {
            RankFile::of(name).is_some_and(|of| (of.rank, of.live) == (file.rank, file.live))
        };
        self.files
            .iter()
            .find(same)
            .map_or_else(|| self.path.join(name), |&file| self.path_of(file))
    }

    /// Refuses several directories that hold profiles of different jobs.
    fn check_job(&self) -> Result<(), Error> {
        if self.others.is_empty() {
            return Ok(());
        }
        let mut first: Option<(&Path, String)> = None;
        for (part, place) in self.places().enumerate() {
            let files = all_rank_files(place)?;
            let job = |file: RankFile| Some(self.read(RankFile { part, ..file }).ok()?.job.id);
            let Some(job) = files.into_iter().find_map(job) else {
                let remedy = "name the directories of one run that have some";
                return Err(Error::new(place.display(), "holds no rank profiles", remedy));
            };
            let (other, of) = first.get_or_insert_with(|| (place, job.clone()));
            if *of != job {
                let other = other.display();
                return Err(Error::new(
                    place.display(),
                    format!("holds profiles of job {job}, and {other} those of job {of}"),
                    "report one job at a time; where the launcher gives each host an id of its \
                     own, set GYAN_JOB_ID",
                ));
            }
        }
        Ok(())
    }

    /// It is of a run before the last one when the profiles are of another job.
    fn find_reduced(&self) -> Option<Summary> {
        let summary =
            self.places().find_map(|place| read_summary(&place.join(SUMMARY_FILE)).ok())?;
        let fewer = (self.files.len() as u64) < u64::from(summary.ranks.reduced);
        let mut profiles = self.files.iter().filter_map(|&file| self.read(file).ok());
        let mut is_latest =
            || profiles.next().is_none_or(|profile| profile.job.id == summary.job.id);
        let is_theirs = summary.reduced_in_mpi.is_some() && fewer && is_latest();
        is_theirs.then_some(summary)
    }

    /// The profile that is in a file, or what is wrong with it.
    pub(crate) fn read(&self, file: RankFile) -> Result<RankProfile, String> {
        let mut profile = read_profile(&self.path_of(file)).map_err(why)?;
        file.look_at(&mut profile)?;
        Ok(profile)
    }

    /// The same for one who reads many.
    pub(crate) fn read_with<'a>(
        &self,
        reader: &'a mut RankReader,
        file: RankFile,
    ) -> Result<&'a mut RankProfile, String> {
        let profile = reader.read(&self.path_of(file)).map_err(why)?;
        file.look_at(profile)?;
        Ok(profile)
    }
}

impl RankFile {
    fn of(name: &str) -> Option<RankFile> {
        let live = |rank| RankFile { live: true, ..RankFile::profile(rank) };
        let profile = rank_of_file_name(name).map(RankFile::profile);
        profile.or_else(|| rank_of_live_file_name(name).map(live))
    }

    pub(crate) fn profile(rank: u32) -> RankFile {
        RankFile { rank, live: false, part: 0 }
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
