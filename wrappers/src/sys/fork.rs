//! Work that may kill the process that does it: done in forked copies of this one, one after the
//! other, each going on where the last was killed, with care.
//!
//! For `gyan varlist`, in a process that ends when it is done, and before MPI starts, when the user
//! wants control variables set. A fork has a copy of the MPI library in its present state, so nothing
//! is initialised again.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::FromRawFd;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Seconds after which an item counts as hanging.
const PATIENCE_S: u32 = 10;

/// Where the worker is; in memory that it shares with its parent.
pub(crate) struct Progress {
    item: AtomicUsize,
    step: AtomicUsize,
}

impl Progress {
    /// Notes what is done next with the item, as a number of the caller's.
    pub(crate) fn step(&self, step: usize) {
        self.step.store(step, Ordering::Release);
    }
}

/// What became of an item that was not finished.
pub(crate) struct Casualty {
    pub(crate) item: usize,
    pub(crate) step: usize,
    /// How it ended, as `crashes inside the library (signal 11)`.
    pub(crate) how: String,
}

/// What came of the work.
pub(crate) struct Survived {
    /// The lines that were written, in order.
    pub(crate) lines: String,
    pub(crate) casualties: Vec<Casualty>,
}

/// How an item is worked on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// All of it.
    Whole,
    /// Only what does not kill, as far as is known: the whole of it did.
    Careful,
}

/// Does `work` for each of `items` items. It writes whole lines. An item that killed is worked on
/// once more, carefully.
pub(crate) fn survive(
    items: usize,
    work: impl Fn(usize, Mode, &Progress, &mut dyn Write) -> io::Result<()>,
) -> io::Result<Survived> {
    let mut lines = memory_file()?;
    let progress = shared_progress()?;
    let mut casualties: Vec<Casualty> = Vec::new();
    let (mut next, mut mode) = (0, Mode::Whole);
    while next < items {
        progress.item.store(next, Ordering::Release);
        progress.step.store(0, Ordering::Release);
        // SAFETY: the child works on its copy of this process, calls nothing that relies on other
        // threads, and ends by _exit.
        let child = unsafe { libc::fork() };
        if child < 0 {
            return Err(io::Error::last_os_error());
        }
        if child == 0 {
            be_worker(next, mode, items, progress, &mut lines, &work);
        }
        let how = wait_for(child);
        let reached = progress.item.load(Ordering::Acquire);
        if reached >= items {
            break;
        }
        if reached == next && mode == Mode::Careful {
            // Even so: what was noted the first time stays.
            (next, mode) = (reached + 1, Mode::Whole);
        } else {
            let step = progress.step.load(Ordering::Acquire);
            casualties.push(Casualty { item: reached, step, how });
            (next, mode) = (reached, Mode::Careful);
        }
    }
    let mut text = Vec::new();
    lines.seek(SeekFrom::Start(0))?;
    lines.read_to_end(&mut text)?;
    Ok(Survived { lines: String::from_utf8_lossy(&text).into_owned(), casualties })
}

/// The life of the child. `mode` is that of the first item.
fn be_worker(
    first: usize,
    mode: Mode,
    items: usize,
    progress: &Progress,
    lines: &mut File,
    work: &impl Fn(usize, Mode, &Progress, &mut dyn Write) -> io::Result<()>,
) -> ! {
    die_quietly();
    let done = (first..items).try_for_each(|item| {
        progress.item.store(item, Ordering::Release);
        progress.step(0);
        // SAFETY: the default action of SIGALRM, set above, ends this child alone.
        unsafe { libc::alarm(PATIENCE_S) };
        work(item, if item == first { mode } else { Mode::Whole }, progress, lines)
    });
    if done.is_ok() {
        progress.item.store(items, Ordering::Release);
    }
    // SAFETY: ends this child without running anything of the program or of MPI.
    unsafe { libc::_exit(0) }
}

/// Makes this process die of a fault at once: without the handlers that MPI libraries install,
/// without their words on stderr, and without a core file.
fn die_quietly() {
    let faults =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGALRM];
    for fault in faults {
        // SAFETY: these signals exist, and the default action is always allowed.
        unsafe { libc::signal(fault, libc::SIG_DFL) };
    }
    // No core file, whatever the limit and the machine's handler of cores say.
    // SAFETY: changes a flag of this process alone.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    // SAFETY: the path is a C string.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY) };
    for stream in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: failing, as it does when `null` is no descriptor, changes nothing.
        unsafe { libc::dup2(null, stream) };
    }
}

/// Waits for the end of the child and says how it came.
fn wait_for(child: libc::pid_t) -> String {
    let mut status = 0;
    // SAFETY: the child is ours and `status` can be written.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            // A program that ignores SIGCHLD takes the status away.
            return "ends inside the library".into();
        }
    }
    if !libc::WIFSIGNALED(status) {
        return format!("ends inside the library (code {})", libc::WEXITSTATUS(status));
    }
    match libc::WTERMSIG(status) {
        libc::SIGALRM => format!("hangs inside the library (over {PATIENCE_S} s)"),
        libc::SIGSEGV => "crashes inside the library (SIGSEGV)".into(),
        libc::SIGBUS => "crashes inside the library (SIGBUS)".into(),
        libc::SIGABRT => "crashes inside the library (SIGABRT)".into(),
        signal => format!("crashes inside the library (signal {signal})"),
    }
}

/// A file without a name, gone with this process.
fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a C string.
    let descriptor = unsafe { libc::memfd_create(c"gyan".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open and nobody else's.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// Memory that stays common to this process and its forks.
fn shared_progress() -> io::Result<&'static Progress> {
    // SAFETY: a new anonymous mapping takes nothing away from anybody.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size_of::<Progress>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is zeroed, aligned to a page, large enough, and never unmapped; two
    // atomics that are 0 are a valid Progress.
    Ok(unsafe { &*address.cast::<Progress>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_goes_on_where_an_item_killed_with_care() {
        let survived = survive(6, |item, mode, progress, out| {
            progress.step(7);
            match (item, mode) {
                // SAFETY: ends the forked copy alone.
                (2, _) | (3, Mode::Whole) => unsafe { libc::abort() },
                // SAFETY: as above.
                (5, Mode::Whole) => unsafe { libc::_exit(3) },
                _ => writeln!(out, "{item} {mode:?}"),
            }
        })
        .unwrap();
        assert_eq!(survived.lines, "0 Whole\n1 Whole\n3 Careful\n4 Whole\n5 Careful\n");
        let deaths: Vec<_> =
            survived.casualties.iter().map(|c| (c.item, c.step, c.how.as_str())).collect();
        assert_eq!(
            deaths,
            [
                (2, 7, "crashes inside the library (SIGABRT)"),
                (3, 7, "crashes inside the library (SIGABRT)"),
                (5, 7, "ends inside the library (code 3)")
            ]
        );
    }

    #[test]
    fn a_kill_of_the_last_item_is_noticed() {
        // SAFETY: ends the forked copy alone.
        let survived = survive(1, |_, _, _, _| unsafe { libc::abort() }).unwrap();
        assert_eq!(survived.casualties.len(), 1);
    }
}
