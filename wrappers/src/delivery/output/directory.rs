//! Which directory belongs to the run? Its name, its owner, and its permissions.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Display, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use gyan_results::{LiveFile, Whose, is_live_file_name, rank_of_file_name};
use serde::{Deserialize, Serialize};

use crate::sys::file_system;

/// How long one program of a job waits for another to make the run directory.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where the profiles of a run go.
#[derive(Clone, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct RunPlace {
    #[serde(with = "crate::delivery::path_bytes")]
    pub(crate) directory: PathBuf,
    /// The permissions of what is created, before the process's umask.
    pub(super) mode: u32,
    /// Set when the program's name is part of the directory's.
    family: Option<Family>,
}

/// The directories of the programs of one job: `<kind>-<program>-<id>`.
#[derive(Clone, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
struct Family {
    kind: String,
    id: String,
}

impl RunPlace {
    /// Where the user says.
    pub(crate) fn chosen(directory: &Path, mode: u32) -> RunPlace {
        RunPlace { directory: directory.into(), mode, family: None }
    }

    /// `<kind>-<program>-<id>` in `parent`, or with the name of another program of the same job.
    pub(crate) fn named(parent: &Path, mode: u32, kind: &str, program: &str, id: &str) -> RunPlace {
        RunPlace {
            directory: parent.join(format!("{kind}-{program}-{id}")),
            mode,
            family: Some(Family { kind: kind.to_owned(), id: id.to_owned() }),
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        file_system::is_local(&self.directory)
    }

    pub(crate) fn device(&self) -> Option<u64> {
        file_system::device(&self.directory)
    }

    fn parent(&self) -> &Path {
        match self.directory.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    /// The directory of the whole job. A job of several programs (MPMD) has one, and the first rank names it
    /// after its program; the names after the other programs are links to it. Without communication that needs
    /// a lock: creating a directory works as one on every file system.
    pub(super) fn settle(&self, job: &str) -> io::Result<(PathBuf, Option<Naming>)> {
        let Some(family) = &self.family else {
            return Ok((self.directory.clone(), None));
        };
        make(self.parent(), self.mode)?;
        let lock = self.parent().join(format!(".{}-{}", family.kind, family.id));
        let begun = Instant::now();
        while !self.directory.is_dir() {
            match DirBuilder::new().mode(self.mode).create(&lock) {
                Ok(()) => {
                    let naming = Naming(lock);
                    return Ok(match family.named_by_another(self.parent(), &naming, job) {
                        Some(other) => {
                            // The other ranks of this program find it without a search. Without links they
                            // search too.
                            let _ = std::os::unix::fs::symlink(&other, &self.directory);
                            (self.directory.with_file_name(other), None)
                        }
                        // Locked until the first profile is there, which identifies the job.
                        None => (self.directory.clone(), Some(naming)),
                    });
                }
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                Err(_) if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(1)),
                // Left by a process that was killed while it held the lock.
                Err(_) => {
                    let _ = fs::remove_dir(&lock);
                    break;
                }
            }
        }
        // If it is a link, the name that the others use.
        let directory = match fs::read_link(&self.directory) {
            Ok(name) if family.has(name.as_os_str()) => self.directory.with_file_name(name),
            Ok(_) => return Err(io::Error::other("it is a link that gyan did not make")),
            Err(_) => self.directory.clone(),
        };
        Ok((directory, None))
    }

    /// Something with the name that gyan would choose may have been put there by somebody else, who could read
    /// and change what is written. `owner`: the owner of files that this process writes there, which is not
    /// this process's user on every file system. A directory that the user named is not checked.
    pub(super) fn check_owner(&self, directory: &Path, owner: u32) -> io::Result<()> {
        if self.family.is_none() {
            return Ok(());
        }
        for path in [&self.directory, directory] {
            // There is no link if the file system does not support them.
            if path.symlink_metadata().is_ok_and(|metadata| metadata.uid() != owner) {
                return Err(io::Error::other("it belongs to another user"));
            }
        }
        if directory.symlink_metadata()?.is_dir() {
            return Ok(());
        }
        Err(io::Error::from(ErrorKind::NotADirectory))
    }
}

/// `path` as seen from the program's current directory.
pub(crate) fn shown(path: &Path) -> Display<'_> {
    let here = env::current_dir().ok();
    let inside = here.and_then(|here| path.strip_prefix(here).ok());
    inside.filter(|inside| !inside.as_os_str().is_empty()).unwrap_or(path).display()
}

/// Creates `directory` unless it exists. Its parents are created as by `mkdir -p`.
pub(super) fn make(directory: &Path, mode: u32) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(mode);
    let result = match (builder.create(directory), directory.parent()) {
        (Err(error), Some(parent)) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(parent)?;
            builder.create(directory)
        }
        (result, _) => result,
    };
    // Others of the job create it at the same time, and not every file system reports that.
    if directory.is_dir() { Ok(()) } else { result }
}

/// The right to name the run directory, until this is dropped.
pub(super) struct Naming(PathBuf);

impl Drop for Naming {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

impl Family {
    /// Whether `name` is a directory name of this family.
    fn has(&self, name: &OsStr) -> bool {
        let (beginning, ending) = (format!("{}-", self.kind), format!("-{}", self.id));
        name.to_str().is_some_and(|name| {
            name.starts_with(&beginning) && name.ends_with(&ending) && !name.contains('/')
        })
    }

    /// The name of the directory that another program of the job created, with the same owner.
    fn named_by_another(&self, parent: &Path, own: &Naming, job: &str) -> Option<OsString> {
        let owner = own.0.symlink_metadata().ok()?.uid();
        let is_ours = |entry: &fs::DirEntry| {
            entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == owner)
        };
        fs::read_dir(parent)
            .ok()?
            .flatten()
            .filter(|entry| self.has(&entry.file_name()))
            .filter(is_ours)
            .map(|entry| entry.file_name())
            // The end of a longer id may look like this one.
            .find(|name| holds(&parent.join(name), job))
    }
}

/// Whether the content of `directory` is from `job`.
fn holds(directory: &Path, job: &str) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let job_of = |entry: fs::DirEntry| {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_str().filter(|_| entry.file_type().is_ok_and(|kind| kind.is_file()))?;
        if is_live_file_name(name) {
            return LiveFile::open(&path).ok().map(|live| live.job);
        }
        rank_of_file_name(name)?;
        Whose::read(&path).ok().map(|profile| profile.job.id)
    };
    entries.flatten().find_map(job_of).is_some_and(|found| found == job)
}
