//! Where the profile of this rank goes: a file of its own in the run directory, complete or not
//! there at all. No profile of another process of the job is overwritten.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use gyan_results::{
    Overhead, RankProfile, rank_file_name, rank_of_file_name, read_rank, write_rank,
};

use crate::notice;

/// How long one program of a job waits for another to make the run directory.
const PATIENCE: Duration = Duration::from_secs(2);
/// More processes than this never have one rank of one job.
const PLACES: u32 = 10_000;

/// Where the profiles of a run go.
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    /// When the program's name is part of the directory's.
    family: Option<Family>,
}

/// The directories of the programs of one job: `<kind>-<program>-<id>`.
struct Family {
    kind: &'static str,
    id: String,
}

impl Place {
    /// Where the user says.
    pub(crate) fn chosen(directory: &Path) -> Place {
        Place { directory: directory.into(), family: None }
    }

    /// `<kind>-<program>-<id>` in `parent`, or with the name of another program of the same job.
    pub(crate) fn named(parent: &Path, kind: &'static str, program: &str, id: &str) -> Place {
        Place {
            directory: parent.join(format!("{kind}-{program}-{id}")),
            family: Some(Family { kind, id: id.to_owned() }),
        }
    }

    /// The directory in which the place is.
    fn parent(&self) -> &Path {
        match self.directory.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }
}

/// Writes the profile under a temporary name, then gives it its own. `measure` fills in the
/// overhead behind the writing of all else. The directory in which it is.
pub(crate) fn write(
    place: &Place,
    profile: &mut RankProfile,
    measure: impl FnOnce(&mut Overhead),
) -> io::Result<PathBuf> {
    let (directory, _naming) = settle(place, &profile.job.id)?;
    fs::create_dir_all(&directory)?;
    let name = rank_file_name(profile.rank);
    // Of this process alone, and new: nobody's file or link is written through.
    let temporary = directory.join(format!(".{name}.{}.{}", profile.host, profile.pid));
    // What an earlier process of the same number may have left when it was killed here.
    let _ = fs::remove_file(&temporary);
    let written = create(&temporary, profile, measure)
        .and_then(|()| publish(&temporary, &directory, &name, profile));
    // It has another name now, or failed.
    let _ = fs::remove_file(&temporary);
    written
}

/// The directory of the whole job. A job of several programs (MPMD) has one, and whoever comes
/// first names it after its program; the names after the other programs are links to it. Without
/// communication that takes a lock: the making of a directory is one on every file system.
fn settle(place: &Place, job: &str) -> io::Result<(PathBuf, Option<Naming>)> {
    let Some(family) = &place.family else {
        return Ok((place.directory.clone(), None));
    };
    fs::create_dir_all(place.parent())?;
    let lock = place.parent().join(format!(".{}-{}", family.kind, family.id));
    let begun = Instant::now();
    while !place.directory.is_dir() {
        match fs::create_dir(&lock) {
            Ok(()) => {
                let naming = Naming(lock);
                return Ok(match named_by_another(place.parent(), family, job) {
                    Some(other) => {
                        // The other ranks of this program find it without a search. Where there
                        // are no links they search too.
                        let _ = std::os::unix::fs::symlink(&other, &place.directory);
                        (place.directory.with_file_name(other), None)
                    }
                    // Locked until the first profile is there, which says whose it is.
                    None => (place.directory.clone(), Some(naming)),
                });
            }
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Err(_) if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(1)),
            // Left by a process that was killed in there.
            Err(_) => {
                let _ = fs::remove_dir(&lock);
                break;
            }
        }
    }
    // Behind a link, the name that the others use.
    let directory = match fs::read_link(&place.directory) {
        Ok(name) => place.directory.with_file_name(name),
        Err(_) => place.directory.clone(),
    };
    Ok((directory, None))
}

/// The right to name the run directory, until this is dropped.
struct Naming(PathBuf);

impl Drop for Naming {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The name of the directory that another program of the job made.
fn named_by_another(parent: &Path, family: &Family, job: &str) -> Option<OsString> {
    let (beginning, ending) = (format!("{}-", family.kind), format!("-{}", family.id));
    let of_family = |name: &OsStr| {
        name.to_str().is_some_and(|name| name.starts_with(&beginning) && name.ends_with(&ending))
    };
    fs::read_dir(parent)
        .ok()?
        .flatten()
        .filter(|entry| of_family(&entry.file_name()))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name())
        // The end of a longer id may look like this one.
        .find(|name| holds(&parent.join(name), job))
}

/// Whether the profiles in `directory` are of `job`.
fn holds(directory: &Path, job: &str) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let is_profile = |name: &OsStr| name.to_str().and_then(rank_of_file_name).is_some();
    let profile = entries.flatten().find(|entry| is_profile(&entry.file_name()));
    profile.is_some_and(|entry| is_of(&entry.path(), job))
}

/// Whether `path` is a profile of `job`.
fn is_of(path: &Path, job: &str) -> bool {
    profile_at(path).is_some_and(|profile| profile.job.id == job)
}

/// Whether `path` is a profile of another process of the same job. One of this process is of an
/// earlier end of MPI, and all of it is in the later one.
fn is_of_another(path: &Path, own: &RankProfile) -> bool {
    profile_at(path).is_some_and(|other| {
        other.job.id == own.job.id && (other.pid, &other.host) != (own.pid, &own.host)
    })
}

fn profile_at(path: &Path) -> Option<RankProfile> {
    // Nothing is read but files: a pipe would wait for a writer.
    let is_file = path.symlink_metadata().is_ok_and(|file| file.is_file());
    if is_file { read_rank(path).ok() } else { None }
}

/// Gives the profile its name in `directory`, or in `directory/again-<n>` when another process of
/// the job had the same rank, as when a job script gives one id to several runs. What an earlier
/// job left is replaced.
fn publish(
    temporary: &Path,
    directory: &Path,
    name: &str,
    profile: &RankProfile,
) -> io::Result<PathBuf> {
    for number in 1..PLACES {
        let place = match number {
            1 => directory.to_owned(),
            _ => directory.join(format!("again-{number}")),
        };
        fs::create_dir_all(&place)?;
        let path = place.join(name);
        if is_of_another(&path, profile) {
            continue;
        }
        match fs::hard_link(temporary, &path) {
            Ok(()) => {}
            Err(_) if is_of_another(&path, profile) => continue,
            // Of an earlier job, or there are no links in this file system.
            Err(_) => fs::rename(temporary, &path)?,
        }
        if number > 1 {
            notice::say(&format!(
                "{}: another process of this job was rank {} and has its profile there; this one \
                 is in {}",
                directory.display(),
                profile.rank,
                place.display()
            ));
        }
        return Ok(place);
    }
    Err(io::Error::other("too many processes of this job had this rank"))
}

fn create(
    path: &Path,
    profile: &mut RankProfile,
    measure: impl FnOnce(&mut Overhead),
) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    write_rank(&mut file, profile, measure)?;
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile of `rank` of `job`, by the process `pid`.
    fn profile(job: &str, rank: u32, pid: u32) -> RankProfile {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results-schema/examples");
        let mut profile = read_rank(&example.join("rank.json")).unwrap();
        profile.job.id = job.into();
        (profile.rank, profile.size, profile.pid) = (rank, 4, pid);
        profile
    }

    /// Where a profile of `program` went below `parent`.
    fn written(parent: &Path, program: &str, mut profile: RankProfile) -> String {
        let place = Place::named(parent, "gyan", program, &profile.job.id);
        let directory = write(&place, &mut profile, |_| ()).unwrap();
        let read = read_rank(&directory.join(rank_file_name(profile.rank))).unwrap();
        assert_eq!(read.pid, profile.pid);
        directory.strip_prefix(parent).unwrap().display().to_string()
    }

    #[test]
    fn no_profile_of_the_same_job_is_overwritten_and_an_earlier_jobs_is() {
        let here = tempfile::tempdir().unwrap();
        let place = Place::chosen(here.path());
        let write = |job, pid| {
            write(&place, &mut profile(job, 0, pid), |_| ()).unwrap();
            let read = |path: &str| read_rank(&here.path().join(path)).ok().map(|read| read.pid);
            [read("rank-000000.json"), read("again-2/rank-000000.json")]
        };
        assert_eq!(write("1", 10), [Some(10), None]);
        assert_eq!(write("1", 11), [Some(10), Some(11)]);
        assert_eq!(write("2", 12), [Some(12), Some(11)]);
        assert_eq!(write("2", 13), [Some(12), Some(13)]);
    }

    #[test]
    fn the_programs_of_a_job_share_one_directory() {
        let here = tempfile::tempdir().unwrap();
        assert_eq!(written(here.path(), "a", profile("7", 0, 1)), "gyan-a-7");
        assert_eq!(written(here.path(), "b", profile("7", 1, 2)), "gyan-a-7");
        assert_eq!(written(here.path(), "b", profile("7", 2, 3)), "gyan-a-7");
        // Another job, whose directory ends alike.
        assert_eq!(written(here.path(), "c", profile("12-7", 0, 4)), "gyan-c-12-7");
        assert_eq!(written(here.path(), "d", profile("7", 3, 5)), "gyan-a-7");
        let mut names: Vec<String> = fs::read_dir(here.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["gyan-a-7", "gyan-b-7", "gyan-c-12-7", "gyan-d-7"]);
        let link = fs::read_link(here.path().join("gyan-b-7")).unwrap();
        assert_eq!(link, Path::new("gyan-a-7"));
    }

    #[test]
    fn programs_that_end_at_once_agree_on_a_directory() {
        let here = tempfile::tempdir().unwrap();
        for job in 0..20 {
            let directories: Vec<String> = thread::scope(|scope| {
                let ranks: Vec<_> = (0..4)
                    .map(|rank| {
                        let path = here.path();
                        let program = ["a", "b", "c", "d"][rank as usize];
                        let profile = profile(&job.to_string(), rank, rank);
                        scope.spawn(move || written(path, program, profile))
                    })
                    .collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
            });
            assert!(directories.iter().all(|one| *one == directories[0]), "{directories:?}");
        }
    }

    #[test]
    fn what_a_killed_process_left_does_not_stop_the_others() {
        let here = tempfile::tempdir().unwrap();
        fs::create_dir(here.path().join(".gyan-7")).unwrap();
        assert_eq!(written(here.path(), "a", profile("7", 0, 1)), "gyan-a-7");
        assert!(!here.path().join(".gyan-7").exists());
    }
}
