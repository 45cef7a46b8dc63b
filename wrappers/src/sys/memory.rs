//! What is in the memory of a process, this one or another of the same user? The kernel reads it (`process_vm_readv(2)`), so
//! that nothing happens when nothing is there.

use std::ffi::c_void;
use std::io;

/// Fills `into` with what is in process `pid` at an address.
///
/// # Errors
/// When it may not be read, or nothing is there.
pub(crate) fn read_from(pid: libc::pid_t, at: usize, into: &mut [u8]) -> io::Result<()> {
    let length = into.len();
    let to = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: length };
    let from = libc::iovec { iov_base: at as *mut c_void, iov_len: length };
    // SAFETY: the kernel writes at most `length` bytes to `into`, and checks the other address itself.
    let got = unsafe { libc::process_vm_readv(pid, &raw const to, 1, &raw const from, 1, 0) };
    if usize::try_from(got) == Ok(length) { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Words in process `pid` from an address on.
///
/// # Errors
/// As of [`read_from`].
pub(crate) fn words_from<const N: usize>(pid: libc::pid_t, at: usize) -> io::Result<[usize; N]> {
    let mut bytes = [[0; size_of::<usize>()]; N];
    read_from(pid, at, bytes.as_flattened_mut())?;
    Ok(bytes.map(usize::from_ne_bytes))
}
