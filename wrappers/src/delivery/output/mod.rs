//! Where the profile of a rank goes, and the live file of a host: each is its own file in the run directory,
//! complete or absent. Nothing is written through a link, and only files that an earlier job of the same user
//! left are replaced.

mod directory;

pub(crate) use directory::{RunPlace, shown};

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gyan_results::{SUMMARY_FILE, Whose, rank_file_name};

use crate::sys::sigmask;

/// No rank of a job ever has more processes than this.
const PLACES: u32 = 10_000;
/// Nobody guesses that many names.
const NAMES: u32 = 8;

/// The permissions of a record: its owner writes it, the group of the spool reads it.
const RECORD_MODE: u32 = 0o640;

#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) directory: PathBuf,
    /// Why it is not in its usual place, in a sentence.
    pub(crate) why: Option<String>,
}

/// Writes the profile, of which `text` is the JSON, under a temporary name, then gives it its own.
pub(crate) fn write(place: &RunPlace, profile: &Whose, text: &[u8]) -> io::Result<Written> {
    make(place, &profile.job.id, &rank_file_name(profile.rank), text, |temporary, directory| {
        let owner = temporary.symlink_metadata()?.uid();
        Publication { temporary, directory, profile, owner }.publish(place.mode)
    })
}

/// Writes the summary into `directory`, which holds the profile of rank 0, replacing that of an earlier run.
pub(crate) fn write_summary(place: &RunPlace, directory: &Path, text: &[u8]) -> io::Result<()> {
    write_beside(place, directory, SUMMARY_FILE, text)
}

/// Writes a file into `directory`, which holds the profile of a rank, replacing that of an earlier run.
pub(crate) fn write_beside(
    place: &RunPlace,
    directory: &Path,
    name: &str,
    text: &[u8],
) -> io::Result<()> {
    let temporary = filled(directory, name, place.mode, text)?;
    let renamed = fs::rename(&temporary, directory.join(name));
    if renamed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    renamed
}

/// Writes a record into the spool of a site, whose group may read it whatever the umask is.
pub(crate) fn write_record(spool: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = filled(spool, name, RECORD_MODE, bytes)?;
    let published = fs::set_permissions(&temporary, Permissions::from_mode(RECORD_MODE))
        .and_then(|()| fs::rename(&temporary, spool.join(name)));
    if published.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    published
}

/// Writes the live file of a host of a job, replacing the earlier one. Returns its directory.
pub(crate) fn write_live(
    place: &RunPlace,
    job: &str,
    name: &str,
    text: &[u8],
) -> io::Result<PathBuf> {
    make(place, job, name, text, |temporary, directory| {
        fs::rename(temporary, directory.join(name)).map(|()| directory.to_owned())
    })
}

/// Creates a complete file under a temporary name in the directory of the place, and has `publish` give it its
/// final name there.
fn make<T>(
    place: &RunPlace,
    job: &str,
    name: &str,
    text: &[u8],
    publish: impl FnOnce(&Path, &Path) -> io::Result<T>,
) -> io::Result<T> {
    let (directory, _naming) = place.settle(job)?;
    directory::make(&directory, place.mode)?;
    let temporary = filled(&directory, name, place.mode, text)?;
    let owner = temporary.symlink_metadata().map(|metadata| metadata.uid());
    let published = owner
        .and_then(|owner| place.check_owner(&directory, owner))
        .and_then(|()| publish(&temporary, &directory));
    // It has its final name now, or failed.
    let _ = fs::remove_file(&temporary);
    published
}

/// A new file with this text, complete, under a temporary name.
fn filled(directory: &Path, name: &str, mode: u32, text: &[u8]) -> io::Result<PathBuf> {
    sigmask::without_signals(|| {
        let (mut file, path) = create(directory, name, mode)?;
        let written = file.write_all(text).and_then(|()| close(file));
        if written.is_err() {
            let _ = fs::remove_file(&path);
        }
        written.map(|()| path)
    })
}

/// A new file in `directory`, under an unpredictable name: others may be able to write to the directory.
fn create(directory: &Path, name: &str, mode: u32) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(mode & 0o666)
        .custom_flags(libc::O_NOFOLLOW);
    let mut tries = 0;
    loop {
        tries += 1;
        let path = directory.join(format!(".{name}.{:016x}", random()));
        match options.open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < NAMES => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn random() -> u64 {
    // The keys of std's hash maps come from the kernel's random numbers.
    RandomState::new().hash_one(0)
}

/// Network file systems report a full disk or an exceeded quota on close.
#[allow(unsafe_code)]
fn close(file: File) -> io::Result<()> {
    // SAFETY: close(2) of a descriptor that was `file`'s and is nobody's now.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // It is closed anyway.
            error if error.kind() == ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        },
    }
}

/// A profile that is about to get its final name.
struct Publication<'a> {
    temporary: &'a Path,
    directory: &'a Path,
    profile: &'a Whose,
    /// The owner of files that this process writes there.
    owner: u32,
}

impl Publication<'_> {
    /// Whether `other`, of another job, had ended when this one began. By the clock of their host or, if the
    /// hosts differ, by that of the file system, which has the times of both files. If a clock went back, the
    /// answer is no, and nothing is replaced.
    fn is_earlier(&self, other: &Whose, other_file: &Metadata) -> bool {
        let own = self.profile;
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).ok();
        let [ended, begun] = if other.host == own.host {
            let begun = |profile: &Whose| humantime::parse_rfc3339(&profile.job.started).ok();
            let elapsed = seconds(other.job.elapsed_s);
            [
                begun(other).zip(elapsed).and_then(|(at, elapsed)| at.checked_add(elapsed)),
                begun(own),
            ]
        } else {
            let written = |file: Metadata| file.modified().ok();
            let now = self.temporary.symlink_metadata().ok().and_then(written);
            let elapsed = seconds(own.job.elapsed_s);
            let begun = now.zip(elapsed).and_then(|(now, elapsed)| now.checked_sub(elapsed));
            [other_file.modified().ok(), begun]
        };
        ended.zip(begun).is_some_and(|(ended, begun)| ended <= begun)
    }
}

/// What already has the name of a profile.
enum Found {
    /// Nothing, or a profile that is replaced.
    Free,
    /// Something that stays, in words.
    Kept(String),
}

impl Publication<'_> {
    /// Gives the file its name in `directory`, or in `directory/again-<n>` if it is taken there.
    fn publish(&self, mode: u32) -> io::Result<Written> {
        let mut why = None;
        for number in 1..PLACES {
            let directory = match number {
                1 => self.directory.to_owned(),
                _ => self.directory.join(format!("again-{number}")),
            };
            if number > 1 && !is_directory_or_free(&directory) {
                continue;
            }
            directory::make(&directory, mode)?;
            if let Err(what) = self.give_name(&directory)? {
                why.get_or_insert(what);
                continue;
            }
            let rank = self.profile.rank;
            let taken = self.directory.join(rank_file_name(rank));
            let why = why.map(|why| {
                let (taken, directory) = (taken.display(), directory.display());
                format!("{taken}: {why} and stays; the profile of rank {rank} is in {directory}")
            });
            return Ok(Written { directory, why });
        }
        Err(io::Error::other("too many processes of this job had this rank"))
    }

    /// Gives the file its name in `directory`, or says what is there and stays.
    fn give_name(&self, directory: &Path) -> io::Result<Result<(), String>> {
        let path = directory.join(rank_file_name(self.profile.rank));
        if let Found::Kept(what) = self.found_at(&path) {
            return Ok(Err(what));
        }
        if fs::hard_link(self.temporary, &path).is_ok() {
            return Ok(Ok(()));
        }
        // Another process was quicker, or it is from an earlier job, or this file system has no links.
        if let Found::Kept(what) = self.found_at(&path) {
            return Ok(Err(what));
        }
        fs::rename(self.temporary, path).map(Ok)
    }

    /// A job script may give one id to several runs, and a process that Open MPI 5 starts as one rank may run
    /// several programs. A profile of this same process is from an earlier end of MPI, and the later one
    /// contains all of it.
    fn found_at(&self, path: &Path) -> Found {
        let Ok(metadata) = path.symlink_metadata() else { return Found::Free };
        let kept = |what: &str| Found::Kept(what.into());
        // Only regular files are read: a pipe would wait for a writer.
        if !metadata.is_file() {
            return kept("is not one of gyan's files");
        }
        if metadata.uid() != self.owner {
            return kept("belongs to another user");
        }
        let (Ok(other), own) = (Whose::read(path), self.profile) else {
            return kept("is not a profile that this gyan can read");
        };
        let is_same_process = (other.pid, &other.host) == (own.pid, &own.host);
        match other.job.id == own.job.id {
            true if is_same_process => Found::Free,
            true => kept("is of another process of this job"),
            false if self.is_earlier(&other, &metadata) => Found::Free,
            false => kept("is of another job that ran at the same time"),
        }
    }
}

/// Whether `path` is a directory, and not a link to one, or does not exist yet.
fn is_directory_or_free(path: &Path) -> bool {
    path.symlink_metadata().map_or(true, |metadata| metadata.is_dir())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use gyan_results::{RankProfile, read_rank};

    use super::*;
    use crate::sys::notice;

    /// A profile of `rank` of `job`, by the process `pid`.
    fn profile(job: &str, rank: u32, pid: u32) -> RankProfile {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results-schema/examples");
        let mut profile = read_rank(&example.join("rank.json")).unwrap();
        profile.job.id = job.into();
        (profile.rank, profile.size, profile.pid) = (rank, 4, pid);
        profile
    }

    fn put(place: &RunPlace, profile: &RankProfile) -> io::Result<Written> {
        write(place, &profile.into(), &serde_json::to_vec(profile).unwrap())
    }

    /// The place of a profile of `program` below `parent`.
    fn written(parent: &Path, program: &str, profile: &RankProfile) -> String {
        let place = RunPlace::named(parent, 0o700, "gyan", program, &profile.job.id);
        let directory = put(&place, profile).unwrap().directory;
        let read = read_rank(&directory.join(rank_file_name(profile.rank))).unwrap();
        assert_eq!(read.pid, profile.pid);
        directory.strip_prefix(parent).unwrap().display().to_string()
    }

    #[test]
    fn no_profile_of_the_same_job_is_overwritten_and_an_earlier_jobs_is() {
        let here = tempfile::tempdir().unwrap();
        let place = RunPlace::chosen(here.path(), 0o700);
        let write = |job, pid| {
            let mut profile = profile(job, 0, pid);
            // Each job is on a different day.
            profile.job.started = format!("2026-01-0{job}T00:00:00Z");
            put(&place, &profile).unwrap();
            let read = |path: &str| read_rank(&here.path().join(path)).ok().map(|read| read.pid);
            [read("rank-000000.json"), read("again-2/rank-000000.json")]
        };
        assert_eq!(write("1", 10), [Some(10), None]);
        assert_eq!(write("1", 11), [Some(10), Some(11)]);
        assert_eq!(write("2", 12), [Some(12), Some(11)]);
        assert_eq!(write("2", 13), [Some(12), Some(13)]);
        // A job at the same time, or an earlier one after which the clock went back.
        assert_eq!(write("1", 14), [Some(12), Some(13)]);
        assert_eq!(read_rank(&here.path().join("again-3/rank-000000.json")).unwrap().pid, 14);
    }

    /// The clocks of hosts may differ by hours; the file system has one.
    #[test]
    fn an_earlier_job_on_another_host_is_told_by_the_clock_of_the_file_system() {
        let here = tempfile::tempdir().unwrap();
        let place = RunPlace::chosen(here.path(), 0o700);
        let mut earlier = profile("1", 0, 10);
        earlier.job.started = "2099-01-01T00:00:00Z".into();
        put(&place, &earlier).unwrap();
        let file = File::options().write(true).open(here.path().join("rank-000000.json")).unwrap();
        let mut own = profile("2", 0, 11);
        "another".clone_into(&mut own.host);
        own.job.elapsed_s = 100.0;
        let ago = |seconds| std::time::SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(ago(50)).unwrap();
        assert_eq!(put(&place, &own).unwrap().directory, here.path().join("again-2"));
        file.set_modified(ago(200)).unwrap();
        own.pid = 12;
        assert_eq!(put(&place, &own).unwrap().directory, here.path());
    }

    #[test]
    fn what_gyan_did_not_write_stays() {
        for kind in ["text", "link", "directory", "half a profile", "another user's"] {
            let here = tempfile::tempdir().unwrap();
            let (taken, precious) =
                (here.path().join("rank-000000.json"), here.path().join("precious"));
            fs::write(&precious, "mine").unwrap();
            match kind {
                "text" => fs::write(&taken, "mine").unwrap(),
                "link" => std::os::unix::fs::symlink(&precious, &taken).unwrap(),
                "directory" => fs::create_dir(&taken).unwrap(),
                "half a profile" => fs::write(&taken, "{\"schema\":\"gyan.rank/1\"").unwrap(),
                _ => {
                    let text = serde_json::to_vec(&profile("0", 0, 1)).unwrap();
                    fs::write(&taken, text).unwrap();
                    if std::os::unix::fs::chown(&taken, Some(65534), None).is_err() {
                        notice::say("skipped: no right to give a file away");
                        continue;
                    }
                }
            }
            let before = taken.symlink_metadata().unwrap().ino();
            // In the way of the next name, too.
            std::os::unix::fs::symlink(here.path(), here.path().join("again-2")).unwrap();
            let place = RunPlace::chosen(here.path(), 0o700);
            let mut profile = profile("1", 0, 10);
            profile.job.started = "2099-01-01T00:00:00Z".into();
            let directory = put(&place, &profile).unwrap().directory;
            assert_eq!(directory, here.path().join("again-3"), "{kind}");
            assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
            assert_eq!(taken.symlink_metadata().unwrap().ino(), before, "{kind}");
        }
    }

    #[test]
    fn a_directory_that_somebody_else_prepared_is_not_written_to() {
        let here = tempfile::tempdir().unwrap();
        let place = |job: &str| RunPlace::named(here.path(), 0o700, "gyan", "a", job);
        let elsewhere = here.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, here.path().join("gyan-a-1")).unwrap();
        let error = put(&place("1"), &profile("1", 0, 10)).unwrap_err();
        assert_eq!(error.to_string(), "it is a link that gyan did not make");
        let foreign = here.path().join("gyan-a-2");
        fs::create_dir(&foreign).unwrap();
        if std::os::unix::fs::chown(&foreign, Some(65534), None).is_err() {
            notice::say("skipped: no right to give a directory away");
            return;
        }
        let error = put(&place("2"), &profile("2", 0, 10)).unwrap_err();
        assert_eq!(error.to_string(), "it belongs to another user");
        // Nor is one mistaken for that of another program of the job.
        fs::create_dir(here.path().join("gyan-b-3")).unwrap();
        let text = serde_json::to_vec(&profile("3", 1, 11)).unwrap();
        fs::write(here.path().join("gyan-b-3/rank-000001.json"), text).unwrap();
        std::os::unix::fs::chown(here.path().join("gyan-b-3"), Some(65534), None).unwrap();
        assert_eq!(written(here.path(), "a", &profile("3", 0, 10)), "gyan-a-3");
        for directory in [&elsewhere, &foreign] {
            assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
        }
    }

    #[test]
    fn directories_have_the_mode_and_files_what_of_it_is_not_execution() {
        let here = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let place = RunPlace::chosen(&here.path().join("a/b"), 0o700);
        put(&place, &profile("1", 0, 1)).unwrap();
        put(&place, &profile("1", 0, 2)).unwrap();
        for directory in ["a/b", "a/b/again-2"] {
            assert_eq!(mode(&here.path().join(directory)), 0o700);
            assert_eq!(mode(&here.path().join(directory).join("rank-000000.json")), 0o600);
        }
    }

    #[test]
    fn the_programs_of_a_job_share_one_directory() {
        let here = tempfile::tempdir().unwrap();
        assert_eq!(written(here.path(), "a", &profile("7", 0, 1)), "gyan-a-7");
        assert_eq!(written(here.path(), "b", &profile("7", 1, 2)), "gyan-a-7");
        assert_eq!(written(here.path(), "b", &profile("7", 2, 3)), "gyan-a-7");
        // Another job, whose directory ends alike.
        assert_eq!(written(here.path(), "c", &profile("12-7", 0, 4)), "gyan-c-12-7");
        assert_eq!(written(here.path(), "d", &profile("7", 3, 5)), "gyan-a-7");
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
                        scope.spawn(move || written(path, program, &profile))
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
        assert_eq!(written(here.path(), "a", &profile("7", 0, 1)), "gyan-a-7");
        assert!(!here.path().join(".gyan-7").exists());
    }
}
