//! A run directory: which profiles it holds, and which directories of further processes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gyan_results::{
    CrashSeen, Doing, EndedFrom, Ending, FrameNow, LiveFile, LiveRank, RankDoing, RankProfile,
    RankReader, ReadError, SUMMARY_FILE, Summary, Whose, is_live_file_name, rank_file_name,
    rank_of_file_name, read_rank, read_rank_without, read_summary,
};

use crate::error::{Error, reason};
use crate::input::killed;
use crate::say;
use crate::words::ranges;

/// The profiles of the ranks, at most one for each.
#[derive(Default)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// Further directories with profiles of the same job.
    others: Vec<PathBuf>,
    /// By rank. File names are made when needed: for a million ranks they would take more memory than the
    /// summary.
    pub(crate) files: Vec<RankFile>,
    lives: Vec<LiveFile>,
    /// Live files that cannot be used: the directory, the name, and the reason.
    lost: Vec<(usize, String, String)>,
    /// The summary that the ranks themselves wrote (`GYAN_REDUCE`) instead of a profile each.
    pub(crate) reduced_in_mpi: Option<Box<Summary>>,
}

/// The process of a rank that has not ended, as far as is known.
pub(crate) struct RankProcess {
    pub(crate) rank: u32,
    pub(crate) host: String,
    /// None on another host than this one.
    pub(crate) pid: Option<u32>,
}

/// How far a rank had come when it wrote its latest record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankProgress {
    pub(crate) rank: u32,
    /// Which process it is: its host, its id there, and when it started.
    pub(crate) process: (String, u32, String),
    /// The time of the record, since the start.
    pub(crate) elapsed_s: f64,
    /// How many calls of MPI it had made.
    pub(crate) calls: u64,
    /// What it had handed to MPI.
    pub(crate) bytes: u64,
    /// How long it had been in MPI, if that is known.
    pub(crate) in_mpi_s: Option<f64>,
    /// The standard error of that; none if it is not known.
    pub(crate) in_mpi_error_s: Option<f64>,
    /// How many of its threads call MPI.
    pub(crate) threads: u64,
}

impl RankProgress {
    fn of_profile(profile: &RankProfile) -> RankProgress {
        let RankProfile { rank, host, pid, job, calls, in_mpi, .. } = profile;
        RankProgress {
            rank: *rank,
            process: (host.clone(), *pid, job.started.clone()),
            elapsed_s: job.known_s(),
            calls: calls.iter().map(|call| call.count).sum(),
            bytes: calls.iter().filter_map(|call| call.bytes).sum(),
            in_mpi_s: in_mpi.map(|of| of.time_s),
            in_mpi_error_s: in_mpi.and_then(|of| of.time_error_s),
            threads: in_mpi.map_or(1, |of| of.threads),
        }
    }

    /// How old the record is at a time, by the clocks of the two hosts.
    pub(crate) fn age_s(&self, at: SystemTime) -> Option<f64> {
        let started = humantime::parse_rfc3339(&self.process.2).ok()?;
        let since = at.duration_since(started).ok()?.as_secs_f64();
        Some((since - self.elapsed_s).max(0.0))
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct RankFile {
    pub(crate) rank: u32,
    /// The directory that holds it.
    part: usize,
    /// The live file that holds it; none when it has its own profile.
    live: Option<usize>,
}

impl RankFile {
    /// Whether only a live file has it.
    pub(crate) fn is_live(self) -> bool {
        self.live.is_some()
    }
}

pub(crate) struct JobDoing {
    /// The job's id.
    pub(crate) job: String,
    /// How many ranks it has, as far as they say so.
    pub(crate) size: u32,
    pub(crate) ranks: Vec<RankDoing>,
}

impl Directory {
    /// The summary of a run without profiles: from a page, or from a file.
    pub(crate) fn of_summary(path: &Path, summary: Summary) -> Directory {
        let reduced_in_mpi = Some(summary.into());
        Directory { path: path.to_owned(), reduced_in_mpi, ..Directory::default() }
    }

    /// The profiles in `path`, and the data in live files of ranks that have no profile, or none of their
    /// latest process.
    pub(crate) fn open(path: &Path) -> Result<Directory, Error> {
        Directory::open_all(path, &[])
    }

    /// The same for one job whose profiles are in several directories. When a rank is in two of them, a profile
    /// takes precedence over a live file, then the directory named first.
    pub(crate) fn open_all(path: &Path, others: &[PathBuf]) -> Result<Directory, Error> {
        let path = path.to_owned();
        let mut directory = Directory { path, others: others.to_vec(), ..Directory::default() };
        let mut files: BTreeMap<u32, RankFile> = BTreeMap::new();
        let mut twice = BTreeSet::new();
        let mut jobs: Vec<(PathBuf, Option<String>)> = Vec::new();
        let places: Vec<PathBuf> = directory.places().map(Path::to_owned).collect();
        for (part, place) in places.into_iter().enumerate() {
            let found = directory.find(part, &place)?;
            if !others.is_empty() {
                let job = found.iter().find_map(|&file| Some(directory.read(file).ok()?.job.id));
                jobs.push((place, job));
            }
            for file in found {
                let chosen = match files.remove(&file.rank) {
                    Some(other) if other.part == part => directory.later(other, file),
                    Some(other) => {
                        twice.insert(file.rank);
                        if other.live.is_some() && file.live.is_none() { file } else { other }
                    }
                    None => file,
                };
                files.insert(file.rank, chosen);
            }
        }
        directory.files = files.into_values().collect();
        check_jobs(&jobs)?;
        if !twice.is_empty() {
            let path = directory.path.display();
            let ranks = ranges(&Vec::from_iter(twice));
            say::warn(format!(
                "{path}: rank {ranks} is in more than one of the directories; a profile takes \
                 precedence over a live file, then the directory that is named first"
            ));
        }
        directory.reduced_in_mpi = directory.find_reduced().map(Box::new);
        Ok(directory)
    }

    /// The data on ranks in one of the directories.
    fn find(&mut self, part: usize, place: &Path) -> Result<Vec<RankFile>, Error> {
        let Found { ranks, lives } = Found::in_directory(place)?;
        let mut files: Vec<RankFile> =
            ranks.into_iter().map(|rank| RankFile { rank, part, live: None }).collect();
        for path in lives {
            match LiveFile::open(&path) {
                Ok(live) => {
                    let at = Some(self.lives.len());
                    files.extend(live.ranks().map(|of| RankFile { rank: of.rank, part, live: at }));
                    self.lives.push(live);
                }
                // The run goes on, or has just ended.
                Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.lost.push((part, name_of(&path), why(error))),
            }
        }
        Ok(files)
    }

    /// All directories.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.path).chain(&self.others).map(PathBuf::as_path)
    }

    fn place_of(&self, part: usize) -> &Path {
        self.places().nth(part).unwrap_or(&self.path)
    }

    /// How a message names the file of this name.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        let file = self.files.iter().find(|file| self.name(**file) == name).map(|file| file.part);
        let lost = || self.lost.iter().find(|(_, lost, _)| lost == name).map(|(part, ..)| *part);
        self.place_of(file.or_else(lost).unwrap_or(0)).join(name)
    }

    /// It belongs to an earlier run when the profiles are of another job.
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

    pub(crate) fn name(&self, file: RankFile) -> String {
        match file.live.and_then(|at| self.lives.get(at)) {
            Some(live) => format!("{}: rank {}", name_of(live.path()), file.rank),
            None => rank_file_name(file.rank),
        }
    }

    /// The file that holds only the profile of a rank.
    pub(crate) fn file_of(&self, file: RankFile) -> Option<PathBuf> {
        file.live.is_none().then(|| self.profile_of(file))
    }

    fn profile_of(&self, file: RankFile) -> PathBuf {
        self.place_of(file.part).join(rank_file_name(file.rank))
    }

    /// The live files all of whose ranks are among these.
    pub(crate) fn lives_of(&self, files: &[RankFile]) -> impl Iterator<Item = &Path> {
        let ranks: BTreeSet<u32> = files.iter().map(|file| file.rank).collect();
        let is_whole = move |live: &&LiveFile| live.ranks().all(|of| ranks.contains(&of.rank));
        self.lives.iter().filter(is_whole).map(LiveFile::path)
    }

    /// For other hosts, whose ranks may be running or dead, says when they were last heard from.
    pub(crate) fn warn_of_silence(&self) {
        say::warn_of(self.silence(), |more| {
            format!("{}: {more} more live files of other hosts", self.path.display())
        });
    }

    /// The same as lines.
    pub(crate) fn silence(&self) -> Vec<String> {
        let here = killed::this_host();
        let silent = self.lives.iter().enumerate().filter_map(|(at, live)| {
            let chosen = |rank| self.files.iter().any(|f| f.rank == rank && f.live == Some(at));
            let ranks = live.ranks().filter(|of| !of.gone && chosen(of.rank));
            let ranks: Vec<u32> = ranks.map(|of| of.rank).collect();
            let changed = fs::metadata(live.path()).and_then(|file| file.modified()).ok()?;
            let since = changed.elapsed().unwrap_or_default().as_secs();
            let since = humantime::format_duration(Duration::from_secs(since));
            (live.host != here && !ranks.is_empty()).then(|| {
                format!(
                    "{}: host {} last wrote it {since} ago; whether rank {} is running cannot be \
                     told from here",
                    live.path().display(),
                    live.host,
                    ranges(&ranks)
                )
            })
        });
        silent.collect()
    }

    /// What each rank is doing, as far as it is known: from live files, of which `killed` says whether the processes are
    /// still there. `crashed_in`: the functions that a rank crashed in, from the outermost one on. `progress` takes how far the
    /// ranks of live files have come, for which their whole profiles are read.
    pub(crate) fn doing(
        &self,
        crashed_in: &mut dyn FnMut(&CrashSeen) -> Vec<FrameNow>,
        mut progress: Option<&mut Vec<RankProgress>>,
    ) -> JobDoing {
        let (mut job, mut size, mut ranks) = (String::new(), 0, Vec::new());
        for &file in &self.files {
            let rank = file.rank;
            let Some(live) = file.live.and_then(|at| self.lives.get(at)) else {
                ranks.push(RankDoing::new(rank, "", Doing::Ended));
                continue;
            };
            job.clone_from(&live.job);
            let read = match progress.as_deref_mut() {
                Some(progress) => self.whose_progress(file, progress),
                None => self.whose(file),
            };
            let Some((of, whose)) = read else {
                // One that is not there any more has written its profile.
                if self.profile_of(file).exists() {
                    ranks.push(RankDoing::new(rank, &live.host, Doing::Ended));
                }
                continue;
            };
            size = size.max(whose.size);
            let (end, _) = killed::ending(&whose, &of);
            let mut told = RankDoing::new(rank, &live.host, Doing::Ended);
            told.doing = match end.how {
                Ending::Running | Ending::Unknown => match (of.now, of.not_seen) {
                    (Some(now), _) => Doing::Still(now),
                    (None, Some(why)) => Doing::NotSeen(why),
                    (None, None) => Doing::Moves,
                },
                how if of.gone || how == Ending::Killed => {
                    told.ended_ms = of.seen_ms;
                    let is_known = how == Ending::Killed && end.code != 0;
                    told.ended_by = is_known.then(|| killed::signal_name(end.code));
                    told.ended_from = match &of.crash {
                        _ if of.out_of_memory => Some(EndedFrom::OutOfMemory),
                        Some(crash) if crash.sent => Some(EndedFrom::OtherProcess),
                        _ => None,
                    };
                    told.crashed_in = of.crash.as_ref().map(&mut *crashed_in).unwrap_or_default();
                    Doing::Gone(of.now)
                }
                _ => Doing::Ended,
            };
            ranks.push(told);
        }
        JobDoing { job, size, ranks }
    }

    /// The entry of a live file, and whose it is; none if the rank is not in it any more.
    fn whose(&self, file: RankFile) -> Option<(LiveRank, Whose)> {
        self.lives.get(file.live?)?.read_whose(file.rank).ok()?
    }

    /// The same, and how far the rank has come.
    fn whose_progress(
        &self,
        file: RankFile,
        progress: &mut Vec<RankProgress>,
    ) -> Option<(LiveRank, Whose)> {
        let (of, profile) = self.lives.get(file.live?)?.read(file.rank).ok()??;
        progress.push(RankProgress::of_profile(&profile));
        Some((of, Whose::from(&profile)))
    }

    /// Whether it has what ranks leave at their end, and nothing of any that may be running.
    pub(crate) fn has_ended(&self) -> bool {
        let is_any = !self.files.is_empty() || self.reduced_in_mpi.is_some();
        is_any && self.lives.is_empty() && self.lost.is_empty()
    }

    pub(crate) fn processes(&self) -> Vec<RankProcess> {
        let processes = self.files.iter().filter_map(|&file| {
            let (of, whose) = self.whose(file)?;
            let (end, _) = killed::ending(&whose, &of);
            let Whose { rank, host, pid, .. } = whose;
            match end.how {
                Ending::Running => Some(RankProcess { rank, host, pid: Some(pid) }),
                Ending::Unknown => Some(RankProcess { rank, host, pid: None }),
                _ => None,
            }
        });
        processes.collect()
    }

    /// When something was last known of a rank: when a live file was last written, if it does not say.
    pub(crate) fn last_heard(&self) -> Option<SystemTime> {
        let written = |live: &LiveFile| {
            let seen = live.ranks().filter_map(LiveRank::seen).max();
            seen.or_else(|| fs::metadata(live.path()).ok()?.modified().ok())
        };
        self.lives.iter().filter_map(written).max()
    }

    /// Live files that cannot be used, by name, and why.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lost.iter().map(|(_, name, why)| (name.as_str(), why.as_str()))
    }

    pub(crate) fn read(&self, file: RankFile) -> Result<RankProfile, String> {
        self.read_without(file, &[])
    }

    /// The same without fields that nobody asks for, as of [`read_rank_without`].
    pub(crate) fn read_without(
        &self,
        file: RankFile,
        left_out: &[&str],
    ) -> Result<RankProfile, String> {
        if let Some(at) = file.live {
            return self.read_live(at, file);
        }
        let profile = read_rank_without(&self.profile_of(file), left_out).map_err(why)?;
        check(file.rank, &profile).map(|()| profile)
    }

    /// The same for a caller that reads many.
    pub(crate) fn read_with<'a>(
        &self,
        reader: &'a mut RankReader,
        file: RankFile,
    ) -> Result<&'a mut RankProfile, String> {
        if let Some(at) = file.live {
            return self.read_live(at, file).map(|profile| reader.hold(profile));
        }
        let profile = reader.read(&self.profile_of(file)).map_err(why)?;
        check(file.rank, profile).map(|()| profile)
    }

    /// What a live file knows of a rank, and how the rank ended. If the run is still going, it may have written
    /// the profile meanwhile.
    fn read_live(&self, at: usize, file: RankFile) -> Result<RankProfile, String> {
        let profile = || read_rank(&self.profile_of(file)).map_err(why);
        let Some(live) = self.lives.get(at) else { return profile() };
        match live.read(file.rank) {
            Ok(Some((of, mut known))) => {
                killed::tell(&mut known, &of);
                Ok(known)
            }
            Ok(None) => profile(),
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => profile(),
            Err(error) => Err(why(error)),
        }
    }

    /// Of two files about the same rank, the one written later.
    fn later(&self, one: RankFile, other: RankFile) -> RankFile {
        let when = |file: RankFile| {
            let job = self.read(file).ok()?.job;
            let known_s = job.known_s();
            Some((job.started, known_s))
        };
        if when(one) >= when(other) { one } else { other }
    }
}

/// Refuses several directories that hold profiles of different jobs, or none.
fn check_jobs(jobs: &[(PathBuf, Option<String>)]) -> Result<(), Error> {
    let mut first: Option<(&Path, &str)> = None;
    for (place, job) in jobs {
        let Some(job) = job else {
            let remedy = "name the directories of one run that have some";
            return Err(Error::new(place.display(), "holds no rank profiles", remedy));
        };
        let (other, of) = *first.get_or_insert((place, job));
        if of != job {
            let other = other.display();
            return Err(Error::new(
                place.display(),
                format!("holds profiles of job {job}, and {other} those of job {of}"),
                "report one job at a time; where the launcher gives each host an id of its own, set GYAN_JOB_ID",
            ));
        }
    }
    Ok(())
}

/// A profile under the name of another rank would be out of order.
pub(crate) fn check(rank: u32, profile: &RankProfile) -> Result<(), String> {
    if profile.rank == rank {
        Ok(())
    } else {
        Err(format!("is the profile of rank {}; rename it back", profile.rank))
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

/// The run directory below the current one whose live file was written last. `command`: what to type instead.
pub(crate) fn newest_running(command: &str) -> Result<PathBuf, Error> {
    let entries = fs::read_dir(".").into_iter().flatten().flatten();
    let runs =
        entries.filter_map(|entry| Some((live_since(&entry.path())?, entry.file_name().into())));
    let newest = runs.max_by_key(|(written, _): &(SystemTime, PathBuf)| *written);
    newest.map(|(_, path)| path).ok_or_else(|| {
        let remedy = format!("name its directory: {command} DIR");
        Error::new("no run", "there is no directory of a running job below this one", remedy)
    })
}

/// When a live file in a directory was last written, if there is one.
fn live_since(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let lives = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_live_file_name));
    lives.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()
}

/// Names the run directories inside this one on stderr: they have reports of their own.
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

/// The run directories inside `directory`: those of processes that the program spawned, and of further starts
/// by the same launcher.
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
