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

/// A process whose memory is read, by its id.
#[derive(Clone, Copy)]
pub(crate) struct ReadProcess(pub(crate) libc::pid_t);

impl ReadProcess {
    /// A number of any width at an address; none where nothing can be read.
    pub(crate) fn read<T: FromMemory>(self, at: usize) -> Option<T> {
        let mut bytes = T::Bytes::default();
        self.read_into(at, bytes.as_mut())?;
        Some(T::from_bytes(bytes))
    }

    /// So many words from an address on.
    pub(crate) fn words(self, at: usize, number: usize) -> Option<Vec<usize>> {
        let mut bytes = vec![0; number * size_of::<usize>()];
        self.read_into(at, &mut bytes)?;
        let (words, _) = bytes.as_chunks();
        Some(words.iter().map(|word| usize::from_ne_bytes(*word)).collect())
    }

    pub(crate) fn read_into(self, at: usize, into: &mut [u8]) -> Option<()> {
        read_from(self.0, at, into).ok()
    }
}

pub(crate) trait FromMemory {
    type Bytes: Default + AsMut<[u8]>;
    fn from_bytes(bytes: Self::Bytes) -> Self;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl FromMemory for $number {
            type Bytes = [u8; size_of::<$number>()];
            fn from_bytes(bytes: Self::Bytes) -> Self {
                <$number>::from_ne_bytes(bytes)
            }
        }
    )*};
}

numbers!(u8 u32 i32 u64 usize);
