//! A file as memory.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

use memmap2::MmapMut;

use crate::sys::guard;

/// A file that is mapped as a whole.
pub(super) struct Mapping(MmapMut);

impl Mapping {
    /// Gives an empty file `size` bytes on its disk, and maps them.
    pub(super) fn of(file: &File, size: usize) -> io::Result<Mapping> {
        let length = i64::try_from(size).map_err(|_| ErrorKind::FileTooLarge)?;
        // SAFETY: posix_fallocate(3) of a file that is open for writing. Where the file system has no such
        // call the C library writes a byte to each of its blocks.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        // SAFETY: the file is this process's own, under a name that nobody else knows yet. Its memory is
        // only written to, as bytes, and never read, so that it does not matter who else writes there; that
        // it can be cut short is what `write` is guarded for.
        unsafe { MmapMut::map_mut(file) }.map(Mapping)
    }

    /// Writes `bytes` at `at`, behind all that was written before. Fails where the file was cut short
    /// (SIGBUS), in a scope of the guard.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        let place = self.0.get_mut(at..at.saturating_add(bytes.len()));
        let to = place.ok_or(ErrorKind::InvalidInput)?.as_mut_ptr();
        let function: Copy = copy;
        compiler_fence(Ordering::SeqCst);
        // SAFETY: there is room for so many bytes in the mapping, which is none of what `bytes` is in; of the
        // frame that a crash leaves nothing is needed.
        let result = unsafe { guard::attempt(function, (to, bytes.as_ptr(), bytes.len())) };
        compiler_fence(Ordering::SeqCst);
        let cut = |signal| format!("it was cut short ({signal})");
        result.map(drop).map_err(|signal| io::Error::new(ErrorKind::UnexpectedEof, cut(signal)))
    }
}

type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize) -> c_int;

/// # Safety
/// As for `copy_nonoverlapping`.
unsafe extern "C" fn copy(to: *mut u8, from: *const u8, bytes: usize) -> c_int {
    // SAFETY: the caller's.
    unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
    0
}
