//! Opening files that somebody else named or made. A named pipe with nobody at its other end would be waited for, and a
//! device has no end: both are refused.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file, also behind a link.
///
/// # Errors
/// When it cannot be opened, or is something else.
#[inline]
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without it, opening a pipe waits for somebody who writes (open(2)). Nothing changes for regular files.
    const O_NONBLOCK: i32 = 0o4000;
    let file = File::options().read(true).custom_flags(O_NONBLOCK).open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !about.is_file() {
        return Err(io::Error::other("is a pipe, a device or a socket"));
    }
    Ok(file)
}

/// The content of a regular file.
///
/// # Errors
/// As for [`open_regular`], and when it cannot be read.
#[inline]
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_and_a_directory_are_refused_and_a_file_is_read() {
        assert!(open_regular("/dev/zero".as_ref()).is_err());
        assert!(open_regular("/".as_ref()).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "known").unwrap();
        assert_eq!(read_regular(file.path()).unwrap(), b"known");
    }
}
