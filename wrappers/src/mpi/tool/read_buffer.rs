//! The buffer for readings: memory followed by spare room and then a guard page, so that a library that writes
//! more elements than announced does no harm, and crashes in its own code if it goes too far. Without memory
//! for that, nothing is read.

use std::io;
use std::ptr;
use std::slice;
use std::sync::Mutex;

use super::Failure;

use crate::sys::locks::held;

/// Words that a library may write beyond the announced size.
const ROOM: usize = 8192;
/// The size of a page, or several of them.
const PAGES: usize = 64 * 1024;

static LANDING: Mutex<Landing> = Mutex::new(Landing { place: ptr::null_mut(), words: 0 });

/// A mapping; of no words at first.
struct Landing {
    place: *mut u64,
    /// The words before the guard page.
    words: usize,
}

// SAFETY: the mapping is the whole process's.
unsafe impl Send for Landing {}

/// Lets `read` write at least `wanted` words, all 0 before, and gives them to `then`.
pub(super) fn land<T>(
    wanted: usize,
    read: impl FnOnce(*mut u64) -> Result<(), Failure>,
    then: impl FnOnce(&[u64]) -> T,
) -> Result<T, Failure> {
    let mut landing = held(&LANDING);
    let with_room = wanted.saturating_add(ROOM);
    if landing.words < with_room
        && let Err(error) = landing.grow(with_room)
        // Even with less spare room there is still the guard page.
        && landing.words < wanted
    {
        let error = format!("no memory for {wanted} values: {error}");
        return Err(Failure { call: "MPI_T_pvar_read", error });
    }
    // SAFETY: this many words can be written.
    unsafe { landing.place.write_bytes(0, wanted) };
    read(landing.place)?;
    // SAFETY: this many words can be read, and nobody writes to them while the lock is held.
    Ok(then(unsafe { slice::from_raw_parts(landing.place, wanted) }))
}

impl Landing {
    fn grow(&mut self, words: usize) -> io::Result<()> {
        let bytes = words.saturating_mul(size_of::<u64>()).checked_next_multiple_of(PAGES);
        let bytes = bytes.ok_or(io::ErrorKind::OutOfMemory)?;
        let (all, flags) = (bytes.saturating_add(PAGES), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping takes nothing away from anybody.
        let place = unsafe { libc::mmap(ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0) };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the first part of the mapping just made.
        if unsafe { libc::mprotect(place, bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            let error = io::Error::last_os_error();
            // SAFETY: the mapping just made, which nobody uses.
            unsafe { libc::munmap(place, all) };
            return Err(error);
        }
        if self.words > 0 {
            let before = self.words * size_of::<u64>() + PAGES;
            // SAFETY: the former mapping, which nobody uses while the lock is held.
            unsafe { libc::munmap(self.place.cast(), before) };
        }
        (self.place, self.words) = (place.cast(), bytes / size_of::<u64>());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_0_before_and_there_is_room_for_more_than_was_said() {
        let fill = |words: usize| {
            move |place: *mut u64| {
                // SAFETY: there is room for as many.
                unsafe { place.write_bytes(0xff, words) };
                Ok(())
            }
        };
        let is_full = |words: &[u64]| words.iter().all(|word| *word == u64::MAX);
        assert!(land(2, fill(2 + ROOM), is_full).unwrap());
        assert!(land(2, fill(0), |words| words == [0, 0]).unwrap());
        assert_eq!(land(100_000, fill(100_000 + ROOM), <[u64]>::len).unwrap(), 100_000);
        let fails = |_| Err(Failure { call: "", error: "no".into() });
        assert_eq!(land(1, fails, |_| ()).unwrap_err().error, "no");
        // Sizes that exceed any address space are not read.
        for words in [1 << 58, usize::MAX] {
            let never = |_| -> Result<(), Failure> { unreachable!() };
            assert!(land(words, never, |_| ()).unwrap_err().error.starts_with("no memory for "));
        }
    }
}
