//! Work that may kill the process that does it: done in forked copies of this one, one after the other. Each
//! continues carefully where the last was killed.
//!
//! Used by `gyan varlist`, in a process that ends afterwards, and before MPI starts if the user wants control
//! variables set. A fork has a copy of the MPI library in its present state, so nothing is initialised again.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::ptr;

use rustix::fs::MemfdFlags;
use rustix::process::{DumpableBehavior, Pid, WaitOptions};

use crate::sys::at_exit;
use crate::sys::sigmask;

/// Seconds after which an item counts as hanging.
const PATIENCE_S: u32 = 10;

/// The exit code of a worker that ends because gyan's own code panics.
const INTERNAL_ERROR: c_int = 101;

/// The worker's progress: two numbers in a file that it shares with its parent.
pub(crate) struct Progress(File);

impl Progress {
    /// Records the next step for the item, as a number chosen by the caller.
    pub(crate) fn step(&self, step: usize) {
        // A memory file that has been written before always has room.
        let _ = self.0.write_all_at(&step.to_ne_bytes(), size_of::<usize>() as u64);
    }

    /// Records that `item` is worked on next.
    fn item(&self, item: usize) -> io::Result<()> {
        self.0.write_all_at([item, 0].map(usize::to_ne_bytes).as_flattened(), 0)
    }

    /// The item and step recorded last.
    fn reached(&self) -> io::Result<(usize, usize)> {
        let mut noted = [[0; size_of::<usize>()]; 2];
        self.0.read_exact_at(noted.as_flattened_mut(), 0)?;
        let [item, step] = noted.map(usize::from_ne_bytes);
        Ok((item, step))
    }
}

/// What happened to an item that was not finished.
pub(crate) struct Casualty {
    pub(crate) item: usize,
    pub(crate) step: usize,
    /// How it ended, as `crashes inside the library (signal 11)`.
    pub(crate) how: String,
}

/// The result of the work.
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
    /// Only steps that are not known to kill: doing all of them did.
    Careful,
}

/// Does `work`, which writes whole lines, for each of `items` items. An item that killed is tried once more,
/// carefully.
pub(crate) fn survive(
    items: usize,
    work: impl Fn(usize, Mode, &Progress, &mut dyn Write) -> io::Result<()>,
) -> io::Result<Survived> {
    let mut lines = memory_file()?;
    let progress = Progress(memory_file()?);
    let mut casualties: Vec<Casualty> = Vec::new();
    let (mut next, mut mode) = (0, Mode::Whole);
    while next < items {
        progress.item(next)?;
        // SAFETY: the child never returns from `be_worker`, so that nothing of the program runs in it. It is a
        // copy with this one thread. A lock that another thread held at the fork stays locked forever there,
        // except for the C library's own, which it makes usable again (fork(3)). A child that waits for any
        // other lock is ended by its alarm, and its item counts as hanging.
        let child = unsafe { libc::fork() };
        if child < 0 {
            return Err(io::Error::last_os_error());
        }
        let Some(child) = Pid::from_raw(child) else {
            be_worker(next, mode, items, &progress, &mut lines, &work)
        };
        let how = wait_for(child);
        let (reached, step) = progress.reached()?;
        if reached >= items {
            break;
        }
        if reached == next && mode == Mode::Careful {
            // Even if it succeeds now, the first result stays.
            (next, mode) = (reached + 1, Mode::Whole);
        } else {
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
    let _unwound = EndWhenUnwound;
    die_quietly();
    let done = (first..items).try_for_each(|item| {
        progress.item(item)?;
        // SAFETY: the default action of SIGALRM, set above, ends only this child.
        unsafe { libc::alarm(PATIENCE_S) };
        work(item, if item == first { mode } else { Mode::Whole }, progress, lines)
    });
    if done.and_then(|()| progress.item(items)).is_err() {
        end(INTERNAL_ERROR)
    }
    end(0)
}

/// Ends this child without running anything of the program or of MPI.
fn end(code: c_int) -> ! {
    // SAFETY: _exit(2) takes any code.
    unsafe { libc::_exit(code) }
}

/// Ends the child before a panic, or an exception from the library, reaches frames of the program.
struct EndWhenUnwound;

impl Drop for EndWhenUnwound {
    fn drop(&mut self) {
        end(INTERNAL_ERROR)
    }
}

extern "C-unwind" fn end_at_exit(code: c_int, _argument: *mut c_void) {
    end(code)
}

/// Makes this process die at once of a fault: without the handlers that MPI libraries install, the program's
/// exit handlers, their output on stderr, or a core file.
fn die_quietly() {
    let faults =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGALRM];
    for fault in faults {
        // SAFETY: these signals exist, and the default action is always allowed.
        unsafe { libc::signal(fault, libc::SIG_DFL) };
    }
    if let Some(alarm) = sigmask::set_of(&[libc::SIGALRM]) {
        // SAFETY: pthread_sigmask(3) with a set that was made.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const alarm, ptr::null_mut()) };
    }
    // The handler that is registered last runs first, and none after this one.
    at_exit::call(end_at_exit);
    // No core file, whatever the limit and the machine's handler of cores say.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Waits for the end of the child and says how it ended.
fn wait_for(child: Pid) -> String {
    let wait = || rustix::process::waitpid(Some(child), WaitOptions::empty());
    let Ok(Some((_, status))) = rustix::io::retry_on_intr(wait) else {
        // If the program ignores SIGCHLD, the status is lost.
        return "ends inside the library".into();
    };
    match (status.exit_status(), status.terminating_signal()) {
        (Some(INTERNAL_ERROR), _) => "is lost by an internal error of gyan's".into(),
        (Some(code), _) => format!("ends inside the library (code {code})"),
        (_, Some(libc::SIGALRM)) => format!("hangs inside the library (over {PATIENCE_S} s)"),
        (_, Some(libc::SIGSEGV)) => "crashes inside the library (SIGSEGV)".into(),
        (_, Some(libc::SIGBUS)) => "crashes inside the library (SIGBUS)".into(),
        (_, Some(libc::SIGABRT)) => "crashes inside the library (SIGABRT)".into(),
        (_, signal) => format!("crashes inside the library (signal {})", signal.unwrap_or(0)),
    }
}

/// A file without a name, which disappears with this process.
fn memory_file() -> io::Result<File> {
    Ok(rustix::fs::memfd_create(c"gyan", MemfdFlags::CLOEXEC)?.into())
}

/// The lines that `work` writes in a forked copy: for tests that change process-wide state.
#[cfg(test)]
pub(crate) fn in_a_copy(work: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
    let Survived { lines, casualties } = survive(1, |_, _, _, out| work(out)).unwrap();
    assert!(casualties.is_empty(), "{}", casualties[0].how);
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;
    use crate::sys::sigmask;

    /// The process that runs the tests.
    static TESTS: OnceLock<u32> = OnceLock::new();

    extern "C" fn abort_in_a_copy() {
        if TESTS.get() != Some(&std::process::id()) {
            // SAFETY: ends only the forked copy.
            unsafe { libc::abort() }
        }
    }

    #[test]
    fn the_work_goes_on_where_an_item_killed_with_care() {
        TESTS.get_or_init(std::process::id);
        // SAFETY: atexit(3) with a function that stays valid to the end.
        unsafe { libc::atexit(abort_in_a_copy) };
        let survived = survive(6, |item, mode, progress, out| {
            progress.step(7);
            match (item, mode) {
                // SAFETY: ends only the forked copy.
                (2, _) | (3, Mode::Whole) => unsafe { libc::abort() },
                // SAFETY: as above: what the program does at `exit` does not run in the copy.
                (5, Mode::Whole) => unsafe { libc::exit(3) },
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
        // SAFETY: ends only the forked copy.
        let survived = survive(1, |_, _, _, _| unsafe { libc::abort() }).unwrap();
        assert_eq!(survived.casualties.len(), 1);
    }

    #[test]
    fn a_worker_that_panics_ends_and_runs_nothing_of_its_parent() {
        let survived = survive(2, |item, _, _, out| {
            // In the copy: a backtrace of this test may take longer than a worker has.
            std::panic::set_hook(Box::new(|_| ()));
            assert_ne!(item, 0, "that it panics is what is tried");
            writeln!(out, "{item}")
        })
        .unwrap();
        assert_eq!(survived.lines, "1\n");
        let deaths: Vec<_> = survived.casualties.iter().map(|c| (c.item, c.how.as_str())).collect();
        assert_eq!(deaths, [(0, "is lost by an internal error of gyan's")]);
    }

    #[test]
    fn a_worker_can_be_ended_by_its_alarm_where_the_program_blocks_it() {
        let alarm = sigmask::set_of(&[libc::SIGALRM]).unwrap();
        // SAFETY: pthread_sigmask(3) with a set that was made, only in a thread of this test.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const alarm, ptr::null_mut()) };
        let survived = survive(1, |_, _, _, out| {
            // SAFETY: raise(3) only to the forked copy.
            unsafe { libc::raise(libc::SIGALRM) };
            writeln!(out, "goes on")
        })
        .unwrap();
        assert_eq!(survived.lines, "");
        assert_eq!(survived.casualties[0].how, "hangs inside the library (over 10 s)");
    }
}
