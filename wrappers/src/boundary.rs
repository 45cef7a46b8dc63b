//! Whose code is running: the program's, or MPI's, or gyan's? Calls of MPI functions that MPI or
//! gyan makes itself pass through uncounted, and a panic of gyan's ends at its own border.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::table::Function;
use crate::{lifecycle, notice, objects, store};

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
/// As OPEN, but no call takes the fast path, because completions are being watched.
const WATCHED: u8 = 5;

// Plain loads and stores: with one thread no other is there to race with, and with several the
// value does not change between start and end.
static GATE: AtomicU8 = AtomicU8::new(COLD);

/// Whether gyan stays off in this process: it was told to, or cannot help it.
static OFF: AtomicBool = AtomicBool::new(false);

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

/// gyan does nothing more in this process.
pub(crate) fn stay_off() {
    OFF.store(true, Ordering::Relaxed);
    close();
}

pub(crate) fn is_off() -> bool {
    OFF.load(Ordering::Relaxed)
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

/// Whether a call comes from the program while only one thread calls MPI: the fast path.
#[inline]
pub(crate) fn is_open() -> bool {
    GATE.load(Ordering::Relaxed) == OPEN
}

/// Forwards a call of the program, once, and counts it and its bytes. Only after [`is_open`].
#[inline]
pub(crate) fn counted_alone(
    function: Function,
    forward: impl FnOnce() -> c_int,
    bytes: impl FnOnce() -> u64,
) -> c_int {
    let inside = Inside::enter(OPEN);
    // Also when an exception flies out of it.
    store::count_alone(function);
    let result = forward();
    if result == 0 {
        let bytes = bytes();
        if bytes != 0 {
            store::add_bytes_alone(function, bytes);
        }
    }
    drop(inside);
    result
}

/// A call on any other path: while this lives, calls inside it are nested. It counts the call when
/// it goes, also when the stack is unwound.
pub(crate) struct Scope {
    function: Function,
    caller: Caller,
}

/// Who makes a call.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Caller {
    /// MPI or gyan, or a program whose run is over.
    Nobody,
    /// The program, before MPI was initialised.
    Early,
    /// The program, whose only thread that calls MPI this is.
    Alone,
    /// One of several threads of the program.
    Thread,
}

/// Enters a call of `function`.
#[inline(never)]
pub(crate) fn enter(function: Function) -> Scope {
    if GATE.load(Ordering::Relaxed) == COLD {
        // MPI may have been started by a way that gyan does not see.
        lifecycle::start_late();
    }
    let caller = match GATE.load(Ordering::Relaxed) {
        OPEN | WATCHED => {
            GATE.store(INSIDE, Ordering::Relaxed);
            Caller::Alone
        }
        gate @ (THREADED | COLD) if !THREAD_INSIDE.get() => {
            THREAD_INSIDE.set(true);
            if gate == COLD { Caller::Early } else { Caller::Thread }
        }
        _ => Caller::Nobody,
    };
    Scope { function, caller }
}

impl Scope {
    /// Whether the program makes this call, in a run.
    pub(crate) fn is_of_program(&self) -> bool {
        matches!(self.caller, Caller::Alone | Caller::Thread)
    }

    /// Counts `bytes` of the call.
    pub(crate) fn moved(&self, bytes: u64) {
        match self.caller {
            Caller::Alone => store::add_bytes_alone(self.function, bytes),
            Caller::Thread => store::add_bytes_threaded(self.function, bytes),
            Caller::Nobody | Caller::Early => {}
        }
    }
}

impl Drop for Scope {
    #[inline(never)]
    fn drop(&mut self) {
        match self.caller {
            Caller::Nobody => {}
            Caller::Alone => {
                store::count_alone(self.function);
                // Not when gyan closed in the meantime.
                if GATE.load(Ordering::Relaxed) == INSIDE {
                    let gate = if objects::are_pending() { WATCHED } else { OPEN };
                    GATE.store(gate, Ordering::Relaxed);
                }
            }
            Caller::Thread => {
                store::count_threaded(self.function);
                THREAD_INSIDE.set(false);
            }
            Caller::Early => {
                store::count_alone(self.function);
                THREAD_INSIDE.set(false);
            }
        }
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
    let _inside = matches!(before, OPEN | WATCHED | COLD).then(|| Inside::enter(before));
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
        stay_off();
        notice::say(&format!("internal error while {what}; gyan is off for the rest of the run"));
    }
    result
}
