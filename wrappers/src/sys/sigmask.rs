//! How does gyan write so that a failed write is an error instead of the end of the application?

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use libc::{sigset_t, timespec};

/// The signals that by default end a program when it writes beyond its file size limit (`RLIMIT_FSIZE`), or to
/// a pipe without readers. The kernel sends both to the thread that writes.
const SIGNALS: [c_int; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

/// Writes; instead of raising a signal, the write just fails with `EFBIG` or `EPIPE`. The application's
/// handlers are not touched: other threads may need them meanwhile.
pub(crate) fn without_signals<T>(write: impl FnOnce() -> T) -> T {
    let _held = Held::new();
    write()
}

/// While this lives, the signals are blocked in this thread; then those that came are discarded.
struct Held {
    mask: sigset_t,
    /// Those that were already pending belong to the application.
    ours: [Option<c_int>; 2],
}

impl Held {
    fn new() -> Option<Held> {
        let waiting = waiting()?;
        let mut mask = MaybeUninit::uninit();
        let signals = set_of(&SIGNALS)?;
        // SAFETY: pthread_sigmask(3) with a set that was made and room for the one before.
        let changed = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, mask.as_mut_ptr())
        };
        if changed != 0 {
            return None;
        }
        // SAFETY: it was filled in, as there was no error.
        let mask = unsafe { mask.assume_init() };
        Some(Held {
            mask,
            ours: SIGNALS.map(|signal| (!is_in(&waiting, signal)).then_some(signal)),
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let at_once = timespec { tv_sec: 0, tv_nsec: 0 };
        for signals in self.ours.iter().flatten().filter_map(|signal| set_of(&[*signal])) {
            // SAFETY: sigtimedwait(2) with a set and a time that live; it discards the signal.
            while unsafe {
                libc::sigtimedwait(&raw const signals, ptr::null_mut(), &raw const at_once)
            } > 0
            {}
        }
        // SAFETY: pthread_sigmask(3) with the set that it gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, ptr::null_mut()) };
    }
}

/// The signals pending for this thread or this process.
fn waiting() -> Option<sigset_t> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigpending(2) with room for a set.
    let filled = unsafe { libc::sigpending(set.as_mut_ptr()) } == 0;
    // SAFETY: it was filled in, as there was no error.
    filled.then(|| unsafe { set.assume_init() })
}

fn is_in(set: &sigset_t, signal: c_int) -> bool {
    // SAFETY: sigismember(3) with a set that was made.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// The set of these signals.
pub(crate) fn set_of(signals: &[c_int]) -> Option<sigset_t> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset(3) with room for a set.
    if unsafe { libc::sigemptyset(set.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: it was just created.
    let mut set = unsafe { set.assume_init() };
    for signal in signals {
        // SAFETY: sigaddset(3) with a set that was made and a signal that there is.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::FromRawFd;

    use super::*;

    /// The reading end of a pipe is closed, so a write raises SIGPIPE, whose default action would end the test.
    fn write_into_the_void() -> std::io::ErrorKind {
        let mut ends = [0; 2];
        // SAFETY: pipe(2) with room for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: the pipe's own descriptors, which nobody else has.
        let [reading, mut writing] = ends.map(|end| unsafe { File::from_raw_fd(end) });
        drop(reading);
        writing.write_all(b"x").unwrap_err().kind()
    }

    #[test]
    fn a_write_that_fails_raises_no_signal_and_what_waited_before_still_waits() {
        // SAFETY: signal(2): Rust's own main had it ignored.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        assert_eq!(without_signals(write_into_the_void), std::io::ErrorKind::BrokenPipe);
        assert!(!is_in(&waiting().unwrap(), libc::SIGPIPE));
        let pipe = set_of(&[libc::SIGPIPE]).unwrap();
        // SAFETY: pthread_sigmask(3) with a set that was made, only in a thread of this test.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, ptr::null_mut()) };
        // SAFETY: raise(3) to this thread, which holds it back.
        unsafe { libc::raise(libc::SIGPIPE) };
        without_signals(|| ());
        assert!(is_in(&waiting().unwrap(), libc::SIGPIPE));
        let at_once = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: sigtimedwait(2) with a set and a time that live.
        unsafe { libc::sigtimedwait(&raw const pipe, ptr::null_mut(), &raw const at_once) };
        // SAFETY: as Rust's main had it.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    }
}
