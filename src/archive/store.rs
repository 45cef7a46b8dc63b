//! Where are the files of an archive? On a local disk, or in an object store that speaks S3.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::s3::ObjectStore;
use crate::error::Error;

/// What the name of an archive in an object store begins with.
const S3: &str = "s3://";

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct StoredFile {
    /// Its path in the archive: `jobs/day=2026-11-28/batch-0123456789abcdef.parquet`.
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

impl StoredFile {
    /// Its path without directories.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The files of an archive. Paths are relative to it, with `/`.
pub(crate) trait Store: Sync {
    /// The Parquet files below a directory, sorted; none where it is not there.
    fn list(&self, directory: &str) -> io::Result<Vec<StoredFile>>;

    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Writes a whole file, in place of one of that name: it is there as a whole or not at all, and stays.
    fn write(&self, path: &str, content: &[u8]) -> io::Result<()>;

    /// Removes a file, if it is there.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Waits until no other ingester changes the archive, for as long as the file is open; none where that is not known.
    fn lock(&self) -> io::Result<Option<File>>;
}

/// The files of the archive of this name.
pub(crate) fn open(archive: &str) -> Result<Box<dyn Store>, Error> {
    Ok(match archive.strip_prefix(S3) {
        Some(place) => Box::new(ObjectStore::from_environment(place)?),
        None => Box::new(LocalStore { root: PathBuf::from(archive) }),
    })
}

struct LocalStore {
    root: PathBuf,
}

impl Store for LocalStore {
    fn list(&self, directory: &str) -> io::Result<Vec<StoredFile>> {
        let mut files = Vec::new();
        below(&self.root.join(directory), directory, &mut files)?;
        files.sort();
        Ok(files)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.root.join(path))
    }

    fn write(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let path = self.root.join(path);
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        create(directory)?;
        write_file(directory, &name.to_string_lossy(), content)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.root.join(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> io::Result<Option<File>> {
        create(&self.root)?;
        locked(&self.root.join(".lock")).map(Some)
    }
}

/// Waits until nobody else has this file locked. It is locked for as long as it is open.
pub(super) fn locked(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Creates a directory with those above it, so that they stay.
fn create(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above {
        create(above)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(above.unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes a whole file in a directory, so that it is there as a whole or not at all, and stays. What an earlier attempt left is
/// written over, as it has the same name.
pub(super) fn write_file(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let temporary = directory.join(format!(".{name}"));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o644).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(name))?;
    File::open(directory)?.sync_all()
}

fn below(directory: &Path, path: &str, files: &mut Vec<StoredFile>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{}/{name}", path.trim_end_matches('/'));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            below(&entry.path(), &path, files)?;
        } else if kind.is_file() && !name.starts_with('.') && name.ends_with(".parquet") {
            files.push(StoredFile { path, bytes: entry.metadata()?.len() });
        }
    }
    Ok(())
}
