//! What is known of the thread that runs.
//!
//! In a library that is preloaded, thread-local storage is two instructions away, at a place that is
//! fixed when the program starts (the initial-exec model of the ELF ABI). The compiler would call a
//! function for it, which takes as long as all else on the fast path, so the variable is declared to
//! the assembler where the processor allows.

use std::cell::Cell;
use std::ops::Deref;

use crate::calls::ledger::Ledger;
use crate::sys::guard;

/// All of it is 0 when a thread starts.
pub(crate) struct Thread {
    /// None before its first call.
    pub(crate) ledger: Cell<Option<&'static Ledger>>,
    /// The ledger again, when it is this thread's alone.
    pub(crate) own: Cell<Option<&'static Ledger>>,
    /// It is inside MPI or gyan.
    pub(crate) inside: Cell<bool>,
    /// The function of the call that it is inside of on another path than the fast one, which counts it
    /// at the end, and 1; 0 when there is none.
    pub(crate) uncounted: Cell<usize>,
    /// It is inside a call from Fortran.
    pub(crate) fortran: Cell<bool>,
    /// For `jumps`: calls since the last look, and looks that found nothing.
    pub(crate) calls_inside: Cell<u32>,
    pub(crate) looks_in_vain: Cell<u32>,
    /// It holds the run.
    pub(crate) holds_run: Cell<bool>,
    /// Where the call returns to that came last on another path than the fast one; 0 when that is not
    /// known.
    pub(crate) caller: Cell<usize>,
    /// How far it is with a guarded scope.
    pub(crate) guard_stage: Cell<guard::Stage>,
    /// The guarded call of the library that it is in; null for none.
    pub(crate) guard: Cell<*mut guard::Record>,
}

/// This thread. It stays in it where threads are those of POSIX, as MPI assumes (MPI 4.1, 11.6.1).
///
/// An MPI that is built on user-level threads may go on with one in another kernel thread after a call
/// that waits. What is kept across that call, the mark of being inside, is then taken away from the thread
/// in which the call began, while that may be setting it: a byte that both write as a whole.
#[derive(Clone, Copy)]
pub(crate) struct Here(*const Thread);

impl Here {
    /// Where it is: another for each thread that runs.
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}

impl Deref for Here {
    type Target = Thread;

    #[inline]
    fn deref(&self) -> &Thread {
        // SAFETY: this thread's variable, which has no destructor and is there as long as the thread runs.
        // gyan never hands the pointer to another thread. Where the MPI does, see above, the kernel
        // threads are a pool that the MPI ends in MPI_Finalize, after every call.
        unsafe { &*self.0 }
    }
}

#[cfg(target_arch = "x86_64")]
mod place {
    use std::arch::{asm, global_asm};

    use super::{Here, Thread};

    global_asm!(
        ".pushsection .tbss.gyan_thread,\"awT\",@nobits",
        ".balign 8",
        ".globl gyan_thread",
        ".hidden gyan_thread",
        ".type gyan_thread, @object",
        ".size gyan_thread, {size}",
        "gyan_thread: .zero {size}",
        ".popsection",
        size = const size_of::<Thread>(),
    );

    /// The thread that runs.
    #[inline]
    pub(crate) fn here() -> Here {
        let place: *const Thread;
        // SAFETY: the address of the variable above: the thread pointer, which lies at fs:0, and an
        // offset that the loader wrote (ELF Handling For Thread-Local Storage, 4.4.6). Neither is the
        // same for ever, as `nomem` would say: after a call that may have moved a user-level thread to
        // another kernel thread it is looked up again.
        unsafe {
            asm!(
                "mov {place}, qword ptr fs:[0]",
                "add {place}, qword ptr [rip + gyan_thread@GOTTPOFF]",
                place = out(reg) place,
                options(pure, readonly, nostack),
            );
        }
        Here(place)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod place {
    use std::cell::Cell;

    use super::{Here, Thread};

    thread_local! {
        static THREAD: Thread = const {
            Thread { ledger: Cell::new(None), own: Cell::new(None), inside: Cell::new(false), uncounted: Cell::new(0), fortran: Cell::new(false), calls_inside: Cell::new(0), looks_in_vain: Cell::new(0), holds_run: Cell::new(false), caller: Cell::new(0), guard_stage: Cell::new(guard::Stage::None), guard: Cell::new(std::ptr::null_mut()) }
        };
    }

    /// The thread that runs.
    pub(crate) fn here() -> Here {
        THREAD.with(|thread| Here(thread))
    }
}

pub(crate) use place::here;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_and_it_is_empty_at_first() {
        here().inside.set(true);
        let place = here().0 as usize;
        let other = std::thread::spawn(|| {
            assert!(!here().inside.get() && here().own.get().is_none());
            here().0 as usize
        });
        assert_ne!(other.join().unwrap(), place);
        assert!(here().inside.get());
        here().inside.set(false);
    }
}
