//! Whose code is running: the program's, or MPI's, or gyan's? Calls of MPI functions that MPI or
//! gyan makes itself pass through uncounted.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use crate::calls::ledger::{self, Ledger};
use crate::calls::longjmp;
use crate::calls::thread::{self, Here};
use crate::mpi::functions::Function;

/// Before the first initialisation: nothing is known of this process.
const COLD: u8 = 0;
/// One thread calls MPI, and it is in the program.
const OPEN: u8 = 1;
/// One thread calls MPI, and it is inside MPI or gyan.
const INSIDE: u8 = 2;
/// Any thread may call MPI; `Thread::inside` tells where each is.
const THREADED: u8 = 3;
/// gyan is done or off: every call passes through.
const CLOSED: u8 = 4;
/// As OPEN, but no call takes the fast path, because completions are being watched.
const WATCHED: u8 = 5;

// Plain loads and stores: with one thread no other is there to race with, and with several the
// value does not change between start and end.
static GATE: AtomicU8 = AtomicU8::new(COLD);

/// The thread that MPI was initialised in, of which most programs make all their calls: its `Here`.
static FIRST_THREAD: AtomicUsize = AtomicUsize::new(0);

/// Whether the program waits for a communicator of `MPI_Comm_idup`.
static COMPLETIONS: AtomicBool = AtomicBool::new(false);

/// Whether gyan stays off in this process: it was told to, or cannot help it.
static OFF: AtomicBool = AtomicBool::new(false);

/// Whether receives are watched. Here, so that a gyan that turns itself off watches none.
pub(crate) static WATCHES_RECEIVES: AtomicBool = AtomicBool::new(false);

/// The ledger of this thread.
fn ledger_here() -> &'static Ledger {
    let here = thread::here();
    here.ledger.get().unwrap_or_else(|| {
        let ledger = ledger::new_ledger();
        here.ledger.set(Some(ledger));
        if !ledger.is_shared() {
            here.own.set(Some(ledger));
        }
        ledger
    })
}

/// Counts from now on; `threaded` when any thread may call MPI.
pub(crate) fn open(threaded: bool) {
    FIRST_THREAD.store(thread::here().place(), Ordering::Relaxed);
    GATE.store(if threaded { THREADED } else { OPEN }, Ordering::Relaxed);
}

/// The program goes on in phase number `phase`. Other threads learn that at their next call that is timed.
pub(crate) fn enter_phase(phase: usize) {
    ledger::enter_phase(phase);
    let here = thread::here();
    match GATE.load(Ordering::Relaxed) {
        THREADED => here.own.get(),
        OPEN | WATCHED | INSIDE if here.place() == FIRST_THREAD.load(Ordering::Relaxed) => {
            Some(ledger::alone())
        }
        _ => None,
    }
    .inspect(|ledger| ledger.change_phase(ledger::NO_FUNCTION));
}

/// Everything passes through from now on, uncounted.
pub(crate) fn close() {
    GATE.store(CLOSED, Ordering::Relaxed);
}

/// gyan does nothing more in this process: no piece of it runs that is contained, no receive is watched,
/// and nothing is read or written at the end.
pub(crate) fn stay_off() {
    OFF.store(true, Ordering::Relaxed);
    WATCHES_RECEIVES.store(false, Ordering::Relaxed);
    close();
}

/// Whether this thread is the only one that calls MPI, and is not inside.
pub(crate) fn is_alone_in_program() -> bool {
    matches!(GATE.load(Ordering::Relaxed), OPEN | WATCHED)
}

/// From now on, whether every call that completes requests is looked at.
pub(crate) fn watch_completions(watch: bool) {
    COMPLETIONS.store(watch, Ordering::Relaxed);
}

#[inline]
pub(crate) fn watches_completions() -> bool {
    COMPLETIONS.load(Ordering::Relaxed)
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
        // Also over CLOSED, when gyan has turned itself off in a callback of the library's: a test would
        // cost every call. Calls are counted on then, and `is_off` keeps all else from being done.
        GATE.store(self.before, Ordering::Relaxed);
    }
}

/// What the fast path of a call is.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Fast {
    /// For the only thread that calls MPI.
    Alone,
    /// For one of several.
    Thread,
    None,
}

/// Whether a call of `function` takes a fast path: it comes from the program and is not to be timed.
#[inline]
pub(crate) fn fast(function: Function) -> Fast {
    match GATE.load(Ordering::Relaxed) {
        OPEN if !ledger::alone().is_due(function) => Fast::Alone,
        THREADED => Fast::Thread,
        _ => Fast::None,
    }
}

/// Forwards a call of the program, once, and counts it and its bytes. Only for [`Fast::Alone`].
#[inline]
pub(crate) fn counted_alone(
    function: Function,
    forward: impl FnOnce() -> c_int,
    bytes: impl FnOnce() -> u64,
) -> c_int {
    let inside = Inside::enter(OPEN);
    // Also when an exception flies out of it.
    ledger::alone().count(function);
    let result = forward();
    if result == 0 {
        let bytes = bytes();
        if bytes != 0 {
            ledger::alone().add_bytes(function, bytes);
        }
    }
    drop(inside);
    result
}

/// The same for a thread that [`enter_thread`] let in.
#[inline]
pub(crate) fn counted_in_thread(
    inside: ThreadInside,
    function: Function,
    forward: impl FnOnce() -> c_int,
    bytes: impl FnOnce() -> u64,
) -> c_int {
    inside.ledger.count(function);
    let result = forward();
    if result == 0 {
        let bytes = bytes();
        if bytes != 0 {
            inside.ledger.add_bytes(function, bytes);
        }
    }
    drop(inside);
    result
}

/// As [`Inside`], for one of several threads.
pub(crate) struct ThreadInside {
    here: Here,
    ledger: &'static Ledger,
}

/// Enters a call of `function` when it takes the fast path for one of several threads: it comes from
/// the program and is not to be timed, the thread is known, and no completions are being watched. Only
/// for [`Fast::Thread`].
#[inline]
pub(crate) fn enter_thread(function: Function) -> Option<ThreadInside> {
    let here = thread::here();
    let ledger = here.own.get()?;
    if here.inside.get() || ledger.is_due(function) || watches_completions() {
        return None;
    }
    here.inside.set(true);
    Some(ThreadInside { here, ledger })
}

impl Drop for ThreadInside {
    #[inline]
    fn drop(&mut self) {
        self.here.inside.set(false);
    }
}

/// A call on any other path: while this lives, calls inside it are nested. It counts the call when
/// it goes, also when the stack is unwound.
pub(crate) struct Scope {
    function: Function,
    caller: Caller,
}

/// Who makes a call.
#[derive(Clone, Copy)]
enum Caller {
    /// MPI or gyan, or a program whose run is over.
    Nobody,
    /// The program, before MPI was initialised.
    Early,
    /// The program, whose only thread that calls MPI this is.
    Alone,
    /// One of several threads of the program.
    Thread(&'static Ledger),
}

/// Enters a call of `function`. `start_late` is called when nothing is known of this process: MPI may have
/// been started in a way that gyan does not see.
#[inline]
pub(crate) fn enter(function: Function, start_late: fn()) -> Scope {
    let caller = match GATE.load(Ordering::Relaxed) {
        OPEN | WATCHED => {
            GATE.store(INSIDE, Ordering::Relaxed);
            Caller::Alone
        }
        _ => other_caller(start_late),
    };
    if !matches!(caller, Caller::Nobody) {
        thread::here().uncounted.set(function.0 + 1);
    }
    Scope { function, caller }
}

#[inline(never)]
fn other_caller(start_late: fn()) -> Caller {
    if GATE.load(Ordering::Relaxed) == COLD {
        start_late();
    }
    match GATE.load(Ordering::Relaxed) {
        OPEN | WATCHED => {
            GATE.store(INSIDE, Ordering::Relaxed);
            Caller::Alone
        }
        INSIDE if has_left(false) => Caller::Alone,
        gate @ (THREADED | COLD) => {
            let nested = thread::here().inside.replace(true);
            if nested && !(gate == THREADED && has_left(false)) {
                Caller::Nobody
            } else if gate == COLD {
                Caller::Early
            } else {
                Caller::Thread(ledger_here())
            }
        }
        _ => Caller::Nobody,
    }
}

/// Whether this thread has left the call that it is inside of, as far as the gate and its own flag know.
/// That call is counted then, if it was not yet.
#[cold]
#[inline(never)]
fn has_left(at_once: bool) -> bool {
    let here = thread::here();
    let threaded = GATE.load(Ordering::Relaxed) == THREADED;
    // Another thread may ask whether MPI is initialised while one is inside.
    if !threaded && here.place() != FIRST_THREAD.load(Ordering::Relaxed) {
        return false;
    }
    // A library's routine for Fortran may jump to that for C and leave no frame between two of gyan's.
    if here.fortran.get() && !at_once {
        return false;
    }
    if !longjmp::has_left(here, at_once) {
        return false;
    }
    let uncounted = here.uncounted.replace(0);
    if uncounted > 0 {
        ledger().count_slowly(Function(uncounted - 1));
    }
    true
}

/// While this lives, the thread is inside a call from Fortran.
pub(crate) struct InFortran {
    here: Here,
    before: bool,
}

impl InFortran {
    pub(crate) fn enter() -> InFortran {
        let here = thread::here();
        InFortran { here, before: here.fortran.replace(true) }
    }
}

impl Drop for InFortran {
    fn drop(&mut self) {
        self.here.fortran.set(self.before);
    }
}

/// The run is about to end: a call that was left is no longer on the way.
pub(crate) fn settle() {
    match GATE.load(Ordering::Relaxed) {
        INSIDE if has_left(true) => GATE.store(OPEN, Ordering::Relaxed),
        THREADED if thread::here().inside.get() && has_left(true) => {
            thread::here().inside.set(false);
        }
        _ => {}
    }
}

impl Scope {
    /// Whether the program makes this call, in a run.
    pub(crate) fn is_of_program(&self) -> bool {
        self.ledger().is_some()
    }

    /// Whether no other thread calls MPI.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self.caller, Caller::Alone)
    }

    /// Where the call is counted, when the program makes it in a run.
    fn ledger(&self) -> Option<&'static Ledger> {
        match self.caller {
            Caller::Alone => Some(ledger::alone()),
            Caller::Thread(ledger) => Some(ledger),
            Caller::Nobody | Caller::Early => None,
        }
    }

    /// Where the call is to be timed; none when it is not to be.
    #[inline]
    pub(crate) fn times(&self) -> Option<&'static Ledger> {
        self.ledger().filter(|ledger| ledger.is_due(self.function) && !ledger.is_shared())
    }

    /// Counts `bytes` of the call.
    pub(crate) fn moved(&self, bytes: u64) {
        if let Some(ledger) = self.ledger() {
            ledger.add_bytes_slowly(self.function, bytes);
        }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.caller, Caller::Nobody) {
            thread::here().uncounted.set(0);
        }
        match self.caller {
            Caller::Nobody => {}
            Caller::Alone => {
                ledger::alone().count_slowly(self.function);
                // Not when gyan closed in the meantime.
                if GATE.load(Ordering::Relaxed) == INSIDE {
                    let gate = if watches_completions() { WATCHED } else { OPEN };
                    GATE.store(gate, Ordering::Relaxed);
                }
            }
            Caller::Thread(ledger) => {
                ledger.count_slowly(self.function);
                thread::here().inside.set(false);
            }
            Caller::Early => {
                ledger::alone().count_slowly(self.function);
                thread::here().inside.set(false);
            }
        }
    }
}

/// Where the calls of this thread are counted.
pub(crate) fn ledger() -> &'static Ledger {
    match GATE.load(Ordering::Relaxed) {
        THREADED => ledger_here(),
        _ => ledger::alone(),
    }
}

/// Runs `forward`, a call that starts or ends MPI: what MPI calls in it is not counted.
pub(crate) fn uncounted(forward: impl FnOnce() -> c_int) -> c_int {
    let before = GATE.load(Ordering::Relaxed);
    let _thread = (before == THREADED).then(ThreadUncounted::enter);
    let _inside = matches!(before, OPEN | WATCHED | COLD).then(|| Inside::enter(before));
    forward()
}

/// As [`Inside`], for one of several threads: it may be nested already.
struct ThreadUncounted {
    here: Here,
    before: bool,
}

impl ThreadUncounted {
    fn enter() -> ThreadUncounted {
        let here = thread::here();
        ThreadUncounted { here, before: here.inside.replace(true) }
    }
}

impl Drop for ThreadUncounted {
    fn drop(&mut self) {
        self.here.inside.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::sys::fork::in_a_copy;

    #[test]
    fn a_thread_is_counted_again_after_an_exception_left_an_uncounted_call() {
        let lines = in_a_copy(|out| {
            open(true);
            let thrown = catch_unwind(|| uncounted(|| panic!("as an exception would")));
            writeln!(out, "{} {}", thrown.is_err(), thread::here().inside.get())
        });
        assert_eq!(lines, "true false\n");
    }
}
