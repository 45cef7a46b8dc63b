//! A run directory: which profiles are in it, and which directories of further processes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gyan_results::{
    LiveFile, RankProfile, RankReader, ReadError, SUMMARY_FILE, Summary, is_live_file_name,
    rank_file_name, rank_of_file_name, read_rank, read_summary,
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
    /// The live files of hosts.
    lives: Vec<LiveFile>,
    /// Live files that cannot be used, by name, and why.
    lost: Vec<(String, String)>,
    /// The summary that the ranks themselves wrote (`GYAN_REDUCE`) instead of a profile each.
    pub(crate) reduced_in_mpi: Option<Box<Summary>>,
}

/// Where what is known of one rank is.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct RankFile {
    pub(crate) rank: u32,
    /// In which of the live files it is; none: in a profile of its own.
    live: Option<usize>,
}

impl Directory {
    /// The profiles in `path`; what live files have of ranks without a profile, or of which a later
    /// process has none.
    pub(crate) fn open(path: &Path) -> Result<Directory, Error> {
        let Found { ranks, lives } = Found::in_directory(path)?;
        let own = |rank: &u32| (*rank, RankFile { rank: *rank, live: None });
        let mut files: BTreeMap<u32, RankFile> = ranks.iter().map(own).collect();
        let mut directory = Directory {
            path: path.to_owned(),
            files: Vec::new(),
            lives: Vec::new(),
            lost: Vec::new(),
            reduced_in_mpi: None,
        };
        for path in lives {
            match LiveFile::open(&path) {
                Ok(live) => directory.lives.push(live),
                // The run goes on, or has just ended.
                Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => directory.lost.push((name_of(&path), why(error))),
            }
        }
        for (at, live) in directory.lives.iter().enumerate() {
            for of in live.ranks() {
                let file = RankFile { rank: of.rank, live: Some(at) };
                let chosen = match files.remove(&of.rank) {
                    Some(other) => directory.later(other, file),
                    None => file,
                };
                files.insert(of.rank, chosen);
            }
        }
        directory.files = files.into_values().collect();
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

    /// What messages call that which is known of a rank.
    pub(crate) fn name(&self, file: RankFile) -> String {
        match file.live.and_then(|at| self.lives.get(at)) {
            Some(live) => format!("{}: rank {}", name_of(live.path()), file.rank),
            None => rank_file_name(file.rank),
        }
    }

    /// The file that holds the profile of a rank, and nothing else.
    pub(crate) fn file_of(&self, file: RankFile) -> Option<PathBuf> {
        file.live.is_none().then(|| self.path.join(rank_file_name(file.rank)))
    }

    /// The live files all of whose ranks are among these.
    pub(crate) fn lives_of(&self, files: &[RankFile]) -> impl Iterator<Item = &Path> {
        let ranks: BTreeSet<u32> = files.iter().map(|file| file.rank).collect();
        let is_whole = move |live: &&LiveFile| live.ranks().all(|of| ranks.contains(&of.rank));
        self.lives.iter().filter(is_whole).map(LiveFile::path)
    }

    /// Live files that cannot be used, by name, and why.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lost.iter().map(|(name, why)| (name.as_str(), why.as_str()))
    }

    /// The profile that is in a file, or what is wrong with it.
    pub(crate) fn read(&self, file: RankFile) -> Result<RankProfile, String> {
        match file.live {
            Some(at) => self.read_live(at, file.rank),
            None => {
                let profile = read_rank(&self.path.join(rank_file_name(file.rank))).map_err(why)?;
                check(file.rank, &profile).map(|()| profile)
            }
        }
    }

    /// The same for one who reads many.
    pub(crate) fn read_with<'a>(
        &self,
        reader: &'a mut RankReader,
        file: RankFile,
    ) -> Result<&'a mut RankProfile, String> {
        if let Some(at) = file.live {
            return self.read_live(at, file.rank).map(|profile| reader.hold(profile));
        }
        let profile = reader.read(&self.path.join(rank_file_name(file.rank))).map_err(why)?;
        check(file.rank, profile).map(|()| profile)
    }

    /// What a live file knows of a rank, and how it ended. A run that goes on may have written the profile
    /// meanwhile.
    fn read_live(&self, at: usize, rank: u32) -> Result<RankProfile, String> {
        let profile = || read_rank(&self.path.join(rank_file_name(rank))).map_err(why);
        let Some(live) = self.lives.get(at) else { return profile() };
        match live.read(rank) {
            Ok(Some((of, mut known))) => {
                killed::tell(&mut known, of.gone);
                Ok(known)
            }
            Ok(None) => profile(),
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => profile(),
            Err(error) => Err(why(error)),
        }
    }

    /// Of two files that know something of one rank the one that was written later.
    fn later(&self, one: RankFile, other: RankFile) -> RankFile {
        let when = |file: RankFile| {
            let job = self.read(file).ok()?.job;
            Some((job.started, job.elapsed_s))
        };
        if when(one) >= when(other) { one } else { other }
    }
}

/// A profile under the name of another rank is in no order.
pub(crate) fn check(rank: u32, profile: &RankProfile) -> Result<(), String> {
    if profile.rank == rank {
        Ok(())
    } else {
        Err(format!("is the profile of rank {}; give it back its name", profile.rank))
    }
}

/// Why a profile cannot be used, and what to do.
pub(crate) fn why(error: ReadError) -> String {
    match error {
        ReadError::Io(error) => format!("cannot be read: {}", reason(&error)),
        other => other.to_string(),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether `directory` holds profiles of ranks; false when there is no such directory.
pub(crate) fn has_profiles(directory: &Path) -> bool {
    Found::in_directory(directory)
        .is_ok_and(|found| !found.ranks.is_empty() || !found.lives.is_empty())
}

/// The profiles of ranks and the live files of hosts in a directory.
pub(crate) fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let Found { ranks, lives } = Found::in_directory(directory)?;
    let ranks = ranks.into_iter().map(|rank| directory.join(rank_file_name(rank)));
    Ok(ranks.chain(lives).collect())
}

/// What is in a run directory, by name.
#[derive(Default)]
struct Found {
    ranks: Vec<u32>,
    lives: Vec<PathBuf>,
}

impl Found {
    fn in_directory(directory: &Path) -> Result<Found, Error> {
        let io_error = |error: &io::Error| {
            Error::io(directory, error, "name the run directory of a program that ran under gyan")
        };
        let mut found = Found::default();
        for entry in fs::read_dir(directory).map_err(|error| io_error(&error))? {
            let name = entry.map_err(|error| io_error(&error))?.file_name();
            let Some(name) = name.to_str() else { continue };
            found.ranks.extend(rank_of_file_name(name));
            if is_live_file_name(name) {
                found.lives.push(directory.join(name));
            }
        }
        found.lives.sort();
        Ok(found)
    }
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
