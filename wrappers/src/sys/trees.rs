//! Trees of files that look like `/proc` and `/sys`, for tests.

use std::fs;

use tempfile::TempDir;

/// A directory with these files.
pub(crate) fn tree<P: AsRef<str>>(files: &[(P, &str)]) -> TempDir {
    let root = TempDir::new().unwrap();
    for (path, text) in files {
        let path = root.path().join(path.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}
