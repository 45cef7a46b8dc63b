//! Whose code is running: the program's, or MPI's, or gyan's? Calls of MPI functions that MPI or
//! gyan makes itself pass through uncounted, and a panic of gyan's ends at its own border.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::table::Function;
use crate::{lifecycle, notice, store};

/// Before the first initialisation: nothing is known of this process.
const COLD: u8 = 0;
/// One thread calls MPI, and it is in the program.
const OPEN: u8 = 1;
/// One thread calls MPI, and it is inside MPI or gyan.
const INSIDE: u8 = 2;
/// Any thread may call MPI; [`THREAD_INSIDE`] tells where each is.
const THREADED: u8 = 3;
/// gyan is done or off: every call passes through.
const CLOSED: u8 = 4;

// Plain loads and stores: with one thread no other is there to race with, and with several the
// value does not change between start and end.
static GATE: AtomicU8 = AtomicU8::new(COLD);

thread_local! {
    static THREAD_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Counts from now on; `threaded` when any thread may call MPI.
pub(crate) fn open(threaded: bool) {
    GATE.store(if threaded { THREADED } else { OPEN }, Ordering::Relaxed);
}

/// Everything passes through from now on, uncounted.
pub(crate) fn close() {
    GATE.store(CLOSED, Ordering::Relaxed);
}

/// While this lives, MPI calls pass through uncounted; then it is as it was before, also when a
/// C++ exception or a cancellation unwinds the stack.
struct Inside {
    before: u8,
}

impl Inside {
    #[inline]
    fn enter(before: u8) -> Inside {
        GATE.store(INSIDE, Ordering::Relaxed);
        Inside { before }
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        // Also when gyan closed in the meantime: what is counted after the end is not looked at,
        // and a test would cost every call.
        GATE.store(self.before, Ordering::Relaxed);
    }
}

/// [`Inside`] for one of several threads.
struct ThreadInside;

impl ThreadInside {
    fn enter() -> ThreadInside {
        THREAD_INSIDE.set(true);
        ThreadInside
    }
}

impl Drop for ThreadInside {
    fn drop(&mut self) {
        THREAD_INSIDE.set(false);
    }
}

/// Whether a call comes from the program while only one thread calls MPI: the fast path.
#[inline]
pub(crate) fn is_open() -> bool {
    GATE.load(Ordering::Relaxed) == OPEN
}

/// Forwards a call of the program, once, and counts it. Only after [`is_open`].
#[inline]
pub(crate) fn counted_alone(function: Function, forward: impl FnOnce() -> c_int) -> c_int {
    let inside = Inside::enter(OPEN);
    let result = forward();
    store::count_alone(function);
    drop(inside);
    result
}

/// Forwards a call, once, and counts it when it is the program's; a nested one is only forwarded.
#[inline]
pub(crate) fn counted(function: Function, forward: impl FnOnce() -> c_int) -> c_int {
    if GATE.load(Ordering::Relaxed) == COLD {
        // MPI may have been started by a way that gyan does not see.
        lifecycle::start_late();
    }
    match GATE.load(Ordering::Relaxed) {
        OPEN => counted_alone(function, forward),
        THREADED if !THREAD_INSIDE.get() => {
            let inside = ThreadInside::enter();
            let result = forward();
            store::count_threaded(function);
            drop(inside);
            result
        }
        _ => forward(),
    }
}

/// Runs `forward`, a call that starts or ends MPI: what MPI calls in it is not counted.
pub(crate) fn uncounted(forward: impl FnOnce() -> c_int) -> c_int {
    let before = GATE.load(Ordering::Relaxed);
    if before == THREADED {
        let nested = THREAD_INSIDE.replace(true);
        let result = forward();
        THREAD_INSIDE.set(nested);
        return result;
    }
    let _inside = (before == OPEN || before == COLD).then(|| Inside::enter(before));
    forward()
}

/// Runs a piece of gyan. A panic ends here: gyan turns itself off for the rest of the run, says
/// so, and the application goes on.
pub(crate) fn contain<T>(what: &str, piece: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    // gyan has its own copy of std, so the hook of a Rust application stays what it is.
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    // AssertUnwindSafe: after a panic gyan is closed, nothing is looked at again.
    let result = catch_unwind(AssertUnwindSafe(piece)).ok();
    if result.is_none() {
        close();
        notice::say(&format!("internal error while {what}; gyan is off for the rest of the run"));
    }
    result
}
