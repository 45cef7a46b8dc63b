//! Which records are in a spool, and how does one leave it?
//!
//! Every user can create files there. So nothing is followed, nothing is waited for, names say nothing but which is to be read
//! first, and what the ingester needs for itself is in directories of its own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gyan_results::{RECORD_BYTES, RECORD_SUFFIX};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::data_set::hash_name;
use super::store::{locked, write_file};
use super::tables::Refusal;
use crate::error::Error;

/// The directory with what an ingester has begun.
const BEGUN: &str = ".ingest";
/// The directory of records that were refused.
const REFUSED: &str = "refused";
/// How often what was refused, by user and reason, as CSV.
const COUNTS: &str = "counts.csv";
/// Refused records that are kept, of all users and of one.
const KEPT_AT_MOST: usize = 1000;
const KEPT_OF_USER_AT_MOST: usize = 20;
/// Users with more records than this come after all others.
const FEW: usize = 10_000;
/// A temporary file that is older was left by a process that died.
const OLD: Duration = Duration::from_secs(86_400);

/// A directory to which every user can add records.
pub(crate) struct Spool {
    path: PathBuf,
    directory: File,
    begun: PathBuf,
    refused: PathBuf,
}

#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct WaitingRecord {
    /// Whether its user has very many.
    is_of_many: bool,
    /// The job that the name claims, by which records of a day are near each other.
    job: u64,
    name: OsString,
}

#[derive(Default)]
pub(crate) struct WaitingRecords {
    /// In the order in which they are to be read.
    pub(crate) records: Vec<WaitingRecord>,
    /// How many more there are, of users with more than a run takes.
    pub(crate) left: usize,
}

/// The owner of a record and its content, or why it is refused.
pub(crate) type ReadRecord = Result<(u32, Vec<u8>), (u32, Refusal)>;

/// What was refused: how many records of each user, and why.
pub(crate) type Refused = BTreeMap<(u32, Refusal), u64>;

impl Spool {
    /// # Errors
    /// When it is no directory, or its owner and the user of this process are not the same.
    pub(crate) fn open(path: &Path) -> Result<Spool, Error> {
        let failed = |error: io::Error| {
            Error::io(path, &error, "name the spool, and run this as its owner or as root")
        };
        let directory = File::open(path).map_err(failed)?;
        let about = directory.metadata().map_err(failed)?;
        if !about.is_dir() {
            return Err(Error::new(path.display(), "is no directory", "name the spool"));
        }
        let own = |name| own_directory(path, name, about.uid()).map_err(failed);
        let (begun, refused) = (own(BEGUN)?, own(REFUSED)?);
        Ok(Spool { path: path.to_owned(), directory, begun, refused })
    }

    /// Waits until no other ingester works on the spool, for as long as the file is open.
    pub(crate) fn lock(&self) -> io::Result<File> {
        locked(&self.begun.join("lock"))
    }

    /// What waits. Of each user, at most so many records are taken.
    pub(crate) fn waiting(&self, most_of_user: usize) -> io::Result<WaitingRecords> {
        let mut of_users: BTreeMap<u32, Vec<WaitingRecord>> = BTreeMap::new();
        let mut waiting = WaitingRecords::default();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_temporary = name.as_bytes().starts_with(b".");
            let is_record = Path::new(&name).extension() == Some(OsStr::new(RECORD_SUFFIX));
            if is_temporary || !is_record {
                if is_temporary {
                    self.remove_old(&entry);
                }
                continue;
            }
            // It may be gone: another ingester has it.
            let Ok(about) = entry.metadata() else { continue };
            let of_user = of_users.entry(about.uid()).or_default();
            if of_user.len() < most_of_user {
                of_user.push(WaitingRecord { is_of_many: false, job: claimed_job(&name), name });
            } else {
                waiting.left += 1;
            }
        }
        for mut of_user in of_users.into_values() {
            let is_of_many = of_user.len() > FEW;
            for record in &mut of_user {
                record.is_of_many = is_of_many;
            }
            waiting.records.append(&mut of_user);
        }
        waiting.records.sort_unstable();
        Ok(waiting)
    }

    /// Removes what a process left that died before its record was whole.
    fn remove_old(&self, entry: &fs::DirEntry) {
        let Ok(about) = entry.metadata() else { return };
        let age = about.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        if !about.is_dir() && age.is_some_and(|age| age > OLD) {
            let _ = unlinkat(&self.directory, entry.file_name(), AtFlags::empty());
        }
    }

    /// Reads a record. None if it is gone, or cannot be read now.
    pub(crate) fn read(&self, record: &WaitingRecord) -> Option<ReadRecord> {
        // A FIFO is opened at once, a link and a socket are not opened.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.directory, &record.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(error) => {
                let refusal = match error {
                    Errno::LOOP | Errno::NXIO => Refusal::NoFile,
                    Errno::ACCESS | Errno::PERM => Refusal::Unreadable,
                    _ => return None,
                };
                let about = fs::symlink_metadata(self.path.join(&record.name)).ok()?;
                return Some(Err((about.uid(), refusal)));
            }
        };
        let about = file.metadata().ok()?;
        let owner = about.uid();
        if !about.is_file() || about.nlink() > 1 {
            return Some(Err((owner, Refusal::NoFile)));
        }
        let most = RECORD_BYTES as u64;
        let mut content = Vec::new();
        // It can grow meanwhile.
        file.take(most + 1).read_to_end(&mut content).ok()?;
        let is_too_long = content.len() as u64 > most;
        Some(if is_too_long { Err((owner, Refusal::TooLong)) } else { Ok((owner, content)) })
    }

    pub(crate) fn remove<'a>(
        &self,
        records: impl Iterator<Item = &'a WaitingRecord>,
    ) -> io::Result<()> {
        for record in records {
            match unlinkat(&self.directory, &record.name, AtFlags::empty()) {
                Err(error) if error != Errno::NOENT => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes refused records out of the spool, and keeps some. What is no regular file is not kept.
    pub(crate) fn refuse(&self, records: &[(&WaitingRecord, u32, Refusal)]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let mut kept: BTreeMap<u32, usize> = BTreeMap::new();
        for entry in fs::read_dir(&self.refused)? {
            let name = entry?.file_name();
            let owner = name.to_str().and_then(|name| name.split('-').next()?.parse().ok());
            *kept.entry(owner.unwrap_or_default()).or_default() += 1;
        }
        let mut all: usize = kept.values().sum();
        let mut counts = Refused::new();
        for &(record, owner, refusal) in records {
            *counts.entry((owner, refusal)).or_default() += 1;
            let of_owner = kept.entry(owner).or_default();
            let is_kept = refusal != Refusal::NoFile
                && all < KEPT_AT_MOST
                && *of_owner < KEPT_OF_USER_AT_MOST;
            if is_kept {
                let hash = hash_name(record.name.as_bytes());
                let name = format!("{owner}-{}-{hash}", refusal.name());
                // Their user may have removed it.
                if fs::rename(self.path.join(&record.name), self.refused.join(name)).is_ok() {
                    (all, *of_owner) = (all + 1, *of_owner + 1);
                }
            } else {
                self.discard(&record.name)?;
            }
        }
        self.count(counts)
    }

    /// Takes anything out of the spool. A directory that is not empty gets a name that is none of a record.
    fn discard(&self, name: &OsStr) -> io::Result<()> {
        match unlinkat(&self.directory, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) if error != Errno::NOENT => return Err(error.into()),
            _ => return Ok(()),
        }
        if unlinkat(&self.directory, name, AtFlags::REMOVEDIR).is_err() {
            let hidden = format!(".refused-{}", hash_name(name.as_bytes()));
            fs::rename(self.path.join(name), self.path.join(hidden))?;
        }
        Ok(())
    }

    /// Adds to the numbers of what was refused.
    fn count(&self, mut counts: Refused) -> io::Result<()> {
        let before = fs::read_to_string(self.refused.join(COUNTS)).unwrap_or_default();
        for line in before.lines().skip(1) {
            let mut cells = line.split(',');
            let user = cells.next().and_then(|user| user.parse().ok());
            let refusal = cells.next().and_then(|name| name.parse().ok());
            let number: Option<u64> = cells.next().and_then(|number| number.parse().ok());
            if let (Some(user), Some(refusal), Some(number)) = (user, refusal, number) {
                *counts.entry((user, refusal)).or_default() += number;
            }
        }
        let mut text = "user,reason,records\n".to_owned();
        for ((user, refusal), number) in counts {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{user},{},{number}", refusal.name());
        }
        write_file(&self.refused, COUNTS, text.as_bytes())
    }

    /// Notes what is about to be done, until it is [forgotten](Spool::forget): whoever finds it there does it again.
    pub(crate) fn note(&self, name: &str, content: &[u8]) -> io::Result<()> {
        write_file(&self.begun, name, content)
    }

    /// What an ingester that died had begun.
    pub(crate) fn noted(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.begun.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            content => content.map(Some),
        }
    }

    pub(crate) fn forget(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.begun.join(name))
    }
}

/// The job in `UID-JOB-STEP-RANDOM.gyan-record`; 0 where there is no number.
fn claimed_job(name: &OsStr) -> u64 {
    let job = name.as_bytes().split(|byte| *byte == b'-').nth(1).unwrap_or_default();
    let digits = job.iter().take_while(|byte| byte.is_ascii_digit()).take(18);
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// A directory in the spool that only its owner can use. One that another user has put there gets another name.
fn own_directory(spool: &Path, name: &str, owner: u32) -> io::Result<PathBuf> {
    let path = spool.join(name);
    if let Ok(about) = fs::symlink_metadata(&path) {
        let is_own = [owner, geteuid().as_raw()].contains(&about.uid());
        if about.is_dir() && is_own && about.mode() & 0o022 == 0 {
            return Ok(path);
        }
        fs::rename(&path, spool.join(format!(".foreign-{:016x}", fastrand::u64(..))))?;
    }
    match DirBuilder::new().mode(0o700).create(&path) {
        // Somebody was faster: another ingester, or another user.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let about = fs::symlink_metadata(&path)?;
            if about.is_dir() && about.uid() == geteuid().as_raw() { Ok(path) } else { Err(error) }
        }
        created => created.map(|()| path),
    }
}
