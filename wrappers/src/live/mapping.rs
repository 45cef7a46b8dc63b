//! A file as memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{Ordering, compiler_fence};

use memmap2::MmapMut;

/// A file that is mapped as a whole.
pub(super) struct Mapping(MmapMut);

impl Mapping {
    /// Gives an empty file `size` bytes on its disk, and maps them.
    pub(super) fn of(file: &File, size: usize) -> io::Result<Mapping> {
        let length = i64::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: posix_fallocate(3) of a file that is open for writing. Where the file system has no such
        // call the C library writes a byte to each of its blocks.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        // SAFETY: the file is this process's own, under a name that nobody else knows yet; whoever cuts it
        // short later takes the risk that this process meets SIGBUS. Its memory is only written to, as
        // bytes, and never read, so that it does not matter who else writes there.
        unsafe { MmapMut::map_mut(file) }.map(Mapping)
    }

    /// Writes `bytes` at `at`, behind all that was written before.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        compiler_fence(Ordering::SeqCst);
        if let Some(to) = self.0.get_mut(at..at.saturating_add(bytes.len())) {
            to.copy_from_slice(bytes);
        }
        compiler_fence(Ordering::SeqCst);
    }
}
