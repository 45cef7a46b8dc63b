//! Whose code is running: the program's, or MPI's, or gyan's? MPI functions that MPI or gyan itself calls pass
//! through uncounted.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicUsize, Ordering};

use crate::calls::budget::budget;
use crate::calls::ledger::{self, Ledger};
use crate::calls::longjmp;
use crate::calls::now::Origin;
use crate::calls::sites::Noted;
use crate::calls::thread::{self, Here};
use crate::calls::traffic::Sent;
use crate::mpi::functions::Function;
use crate::sys::clock;

/// Before the first initialisation: nothing is known of this process.
const COLD: u8 = 0;
/// One thread calls MPI, and it is in the program.
pub(crate) const OPEN: u8 = 1;
/// One thread calls MPI, and it is inside MPI or gyan.
pub(crate) const INSIDE: u8 = 2;
/// Any thread may call MPI; `Thread::inside` tells where each is.
pub(crate) const THREADED: u8 = 3;
/// gyan is done or off: every call passes through.
const CLOSED: u8 = 4;
/// Like OPEN, but completions or receives are being watched: no call passes unseen.
const WATCHED: u8 = 5;
/// The same for THREADED.
const THREADED_WATCHED: u8 = 6;
/// Like WATCHED, but all calls are recorded: each takes a path on which it is.
pub(crate) const RECORDED: u8 = 9;
/// The same for THREADED.
const THREADED_RECORDED: u8 = 10;
/// Like OPEN, WATCHED or RECORDED, while the program's own code up to its next call is timed, whatever it calls.
const GAP: u8 = 7;
/// Like INSIDE, in a call from Fortran, whose routine may call the function of C by its name: that passes
/// through at once.
pub(crate) const INSIDE_FORTRAN: u8 = 8;

// Plain loads and stores: a single thread has no other to race with, and with several the value changes between
// start and end only when gyan starts or stops watching completions, or recording calls.
pub(crate) static GATE: Gate = Gate { state: AtomicU8::new(COLD), called: AtomicU16::new(0) };

/// Where the only thread that calls MPI is, or whether there are several, and the function that it called last. Both are
/// stored by one instruction.
#[repr(C, align(4))]
pub(crate) struct Gate {
    state: AtomicU8,
    called: AtomicU16,
}

impl Gate {
    #[inline]
    fn load(&self, order: Ordering) -> u8 {
        self.state.load(order)
    }

    #[inline]
    fn store(&self, state: u8, order: Ordering) {
        self.state.store(state, order);
    }

    /// The program is in a call of `function`.
    #[allow(clippy::cast_possible_truncation)]
    #[inline]
    fn enter(&self, function: Function) {
        self.state.store(INSIDE, Ordering::Relaxed);
        self.called.store(function.0 as u16, Ordering::Relaxed);
    }
}

/// The gate of another process.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct GateSeen {
    /// The program is inside a call, or in its own code.
    pub(crate) is_known: bool,
    pub(crate) in_mpi: bool,
    pub(crate) in_fortran: bool,
    pub(crate) is_threaded: bool,
    /// The number of the function that it called last.
    pub(crate) called: u16,
}

/// What the bytes of a gate say.
pub(crate) fn seen([state, _, low, high]: [u8; 4]) -> GateSeen {
    let in_mpi = matches!(state, INSIDE | INSIDE_FORTRAN);
    GateSeen {
        is_known: in_mpi || matches!(state, OPEN | WATCHED | RECORDED | GAP),
        in_mpi,
        in_fortran: state == INSIDE_FORTRAN,
        is_threaded: is_threaded(state),
        called: u16::from_le_bytes([low, high]),
    }
}

/// The gate as a number, for [`now`](crate::calls::now): while the program is in a call of `function` in this state.
#[allow(clippy::cast_possible_truncation)]
pub(crate) const fn entered(state: u8, function: Function) -> u32 {
    u32::from_le_bytes([state, 0, function.0 as u8, (function.0 >> 8) as u8])
}

/// The `Here` of the thread that initialised MPI. Most programs make all their calls from it.
static FIRST_THREAD: AtomicUsize = AtomicUsize::new(0);

/// What completions are watched for: a bit for each.
static COMPLETIONS: AtomicU8 = AtomicU8::new(0);

/// Why completions are watched.
#[derive(Clone, Copy)]
pub(crate) enum CompletionsFor {
    /// The program waits for a communicator of `MPI_Comm_idup`.
    Communicators = 1,
    /// Messages or collective operations that are timed have not completed.
    TimedOperations = 2,
}

/// Whether gyan stays off in this process: it was told to, or has no choice.
static OFF: AtomicBool = AtomicBool::new(false);

/// Whether receives are watched. Kept here so that turning gyan off also stops watching.
pub(crate) static WATCHES_RECEIVES: AtomicBool = AtomicBool::new(false);

/// Whether every call is recorded.
static RECORDS: AtomicBool = AtomicBool::new(false);

/// The ledger of this thread.
fn ledger_here() -> &'static Ledger {
    let here = thread::here();
    here.ledger.get().unwrap_or_else(|| {
        let ledger = ledger::new_ledger();
        here.ledger.set(Some(ledger));
        if !ledger.is_shared() {
            here.own.set(Some(ledger));
            // Not when the thread is ending: then it keeps the ledger.
            let _ = LEASE.try_with(|lease| lease.0.set(Some(ledger)));
        }
        ledger
    })
}

thread_local! {
    static LEASE: Lease = const { Lease(Cell::new(None)) };
}

/// Gives the ledger of a thread back when the thread ends.
struct Lease(Cell<Option<&'static Ledger>>);

impl Drop for Lease {
    fn drop(&mut self) {
        let here = thread::here();
        here.own.set(None);
        here.ledger.set(None);
        if let Some(ledger) = self.0.take() {
            ledger::give_back(ledger);
        }
    }
}

/// Sets whether all calls are recorded. Calls that are in progress end as they began.
pub(crate) fn record_all(record: bool) {
    RECORDS.store(record, Ordering::Relaxed);
    match GATE.load(Ordering::Relaxed) {
        gate if is_threaded(gate) => reopen(gate),
        OPEN | WATCHED | RECORDED if is_first(thread::here()) => {
            GATE.store(opened(false), Ordering::Relaxed);
        }
        // The end of the call or of the gap does it.
        _ => {}
    }
}

/// What is watched or recorded has changed while several threads call MPI.
fn reopen(gate: u8) {
    // Not if another thread closes it in the meantime.
    _ = GATE.state.compare_exchange(gate, opened(true), Ordering::Relaxed, Ordering::Relaxed);
}

/// Counts from now on; `threaded` when any thread may call MPI.
pub(crate) fn open(threaded: bool) {
    FIRST_THREAD.store(thread::here().place(), Ordering::Relaxed);
    GATE.store(opened(threaded), Ordering::Relaxed);
}

/// The state of the gate while any thread may call MPI, or while the only one that does is in the program.
fn opened(threaded: bool) -> u8 {
    if RECORDS.load(Ordering::Relaxed) {
        return if threaded { THREADED_RECORDED } else { RECORDED };
    }
    match watches_completions() || WATCHES_RECEIVES.load(Ordering::Relaxed) {
        false if threaded => THREADED,
        false => OPEN,
        true if threaded => THREADED_WATCHED,
        true => WATCHED,
    }
}

/// Whether this thread initialised MPI.
fn is_first(here: Here) -> bool {
    here.place() == FIRST_THREAD.load(Ordering::Relaxed)
}

/// Whether a thread other than the only one that calls MPI makes this call, of a function that any thread may
/// call at any time (MPI 4.1, 11.2.2, 11.4.1 and 11.6). Then it is counted here, and the gate, which says where
/// the first thread is, stays as it is.
#[inline]
pub(crate) fn is_aside(function: Function) -> bool {
    let gate = GATE.load(Ordering::Relaxed);
    if !matches!(gate, OPEN | WATCHED | RECORDED | INSIDE | INSIDE_FORTRAN | GAP) {
        return false;
    }
    let here = thread::here();
    if is_first(here) {
        return false;
    }
    // A routine of Fortran may call the function of C.
    if !here.fortran.get() {
        ledger::count_aside(function);
    }
    true
}

/// Whether any thread may call MPI.
pub(crate) fn has_threads() -> bool {
    is_threaded(GATE.load(Ordering::Relaxed))
}

fn is_threaded(gate: u8) -> bool {
    matches!(gate, THREADED | THREADED_WATCHED | THREADED_RECORDED)
}

/// The program continues in phase number `phase`. Other threads learn that at their next timed call.
pub(crate) fn enter_phase(phase: usize) {
    ledger::enter_phase(phase);
    end_gap();
    let here = thread::here();
    match GATE.load(Ordering::Relaxed) {
        gate if is_threaded(gate) => here.own.get(),
        OPEN | WATCHED | RECORDED | INSIDE | INSIDE_FORTRAN if is_first(here) => {
            Some(ledger::alone())
        }
        _ => None,
    }
    .inspect(|ledger| ledger.change_phase(ledger::NO_FUNCTION));
}

/// Calls `record` if the thread that changes the phase may record that: with whether no other thread calls MPI, and its number.
pub(crate) fn phase_changes(record: impl FnOnce(bool, u8)) {
    let here = thread::here();
    match GATE.load(Ordering::Relaxed) {
        gate if is_threaded(gate) => record(false, ledger_here().place()),
        _ if is_first(here) => record(true, 0),
        _ => {}
    }
}

/// Everything passes through from now on, uncounted.
pub(crate) fn close() {
    GATE.store(CLOSED, Ordering::Relaxed);
}

/// gyan does nothing more in this process: no contained piece of it runs, no receive is watched, and nothing is
/// read or written at the end.
pub(crate) fn stay_off() {
    OFF.store(true, Ordering::Relaxed);
    WATCHES_RECEIVES.store(false, Ordering::Relaxed);
    close();
}

/// Whether this thread is the only one that calls MPI, and is not inside.
pub(crate) fn is_alone_in_program() -> bool {
    matches!(GATE.load(Ordering::Relaxed), OPEN | WATCHED | RECORDED | GAP)
}

/// The program calls MPI again, or its own code is something else from now on: the part of it since the last call
/// has been timed, if that was wanted.
#[inline]
pub(crate) fn end_gap() {
    if GATE.load(Ordering::Relaxed) == GAP {
        ledger::alone().gap_ended(budget(), clock::now());
        GATE.store(opened(false), Ordering::Relaxed);
    }
}

/// Times the program's own code from now on until its next call, which is one of the only thread that calls MPI.
pub(crate) fn begin_gap(ledger: &Ledger) {
    GATE.store(GAP, Ordering::Relaxed);
    ledger.gap_begins(clock::now());
}

/// Sets whether every call that completes requests is examined from now on.
pub(crate) fn watch_completions(why: CompletionsFor, watch: bool) {
    if watch {
        COMPLETIONS.fetch_or(why as u8, Ordering::Relaxed);
    } else {
        COMPLETIONS.fetch_and(!(why as u8), Ordering::Relaxed);
    }
    let gate = GATE.load(Ordering::Relaxed);
    if is_threaded(gate) {
        reopen(gate);
    }
}

#[inline]
pub(crate) fn watches_completions() -> bool {
    COMPLETIONS.load(Ordering::Relaxed) != 0
}

/// Whether every call passes through: gyan is done or off.
pub(crate) fn is_closed() -> bool {
    GATE.load(Ordering::Relaxed) == CLOSED
}

pub(crate) fn is_off() -> bool {
    OFF.load(Ordering::Relaxed)
}

/// While this lives, MPI calls pass through uncounted; then the previous state returns, even when a C++
/// exception or a cancellation unwinds the stack.
pub(crate) struct Inside {
    before: u8,
}

impl Inside {
    #[inline]
    fn enter(before: u8, function: Function) -> Inside {
        GATE.enter(function);
        Inside { before }
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        // This overwrites even CLOSED, if gyan has turned itself off in a callback of the library: a test would
        // cost every call. Counting then continues, and `is_off` prevents everything else.
        GATE.store(self.before, Ordering::Relaxed);
    }
}

/// The fast path of a call.
pub(crate) enum Fast {
    /// For the only thread that calls MPI: it is counted and inside.
    Alone(Inside),
    /// For one of several.
    Thread,
    None,
}

/// Whether a call of `function` takes a fast path: it comes from the program and is not due for timing. Callers do not
/// ask for one that completes requests while completions are watched. `records`: they record the call if all are recorded.
#[inline]
pub(crate) fn fast(function: Function, records: bool) -> Fast {
    match GATE.load(Ordering::Relaxed) {
        gate @ (OPEN | WATCHED) if ledger::alone().count_unless_due(function) => {
            Fast::Alone(Inside::enter(gate, function))
        }
        RECORDED if records && ledger::alone().count_unless_due(function) => {
            Fast::Alone(Inside::enter(RECORDED, function))
        }
        THREADED | THREADED_WATCHED => Fast::Thread,
        THREADED_RECORDED if records => Fast::Thread,
        GAP => fast_after_gap(function, records),
        _ => Fast::None,
    }
}

#[cold]
#[inline(never)]
fn fast_after_gap(function: Function, records: bool) -> Fast {
    end_gap();
    fast(function, records)
}

/// Enters a call whose entry point has found the gate open and counted it.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn enter_counted(function: Function) -> Inside {
    Inside::enter(OPEN, function)
}

/// Enters and counts a call of `function` whose entry point has found that calls are recorded; none if it is due for timing.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn enter_recorded(function: Function) -> Option<Inside> {
    ledger::alone().count_unless_due(function).then(|| Inside::enter(RECORDED, function))
}

/// The answer of a frame's personality routine when there is nothing to catch (`_URC_CONTINUE_UNWIND`).
#[cfg(target_arch = "x86_64")]
const CONTINUE_UNWIND: c_int = 8;

/// The personality routine for entry points that set INSIDE and back by themselves: the unwinder calls it for
/// an exception or a cancellation that passes through (System V ABI for x86-64, 6.2). It does what dropping
/// `Inside` does.
#[cfg(target_arch = "x86_64")]
pub(crate) extern "C" fn unwound(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut std::ffi::c_void,
    _context: *mut std::ffi::c_void,
) -> c_int {
    // Not during the search for a handler (`_UA_CLEANUP_PHASE`).
    const CLEANUP_PHASE: c_int = 2;
    if actions & CLEANUP_PHASE != 0 {
        drop(Inside { before: OPEN });
    }
    CONTINUE_UNWIND
}

/// Forwards a counted call of the program, once; if it succeeds, `moved` counts what it moved.
#[inline(always)]
pub(crate) fn forward<T>(
    inside: T,
    ledger: &Ledger,
    next: impl FnOnce() -> c_int,
    moved: impl FnOnce(&Ledger),
) -> c_int {
    let result = next();
    if result == 0 {
        moved(ledger);
    }
    drop(inside);
    result
}

/// Like [`Inside`], for one of several threads.
pub(crate) struct ThreadInside {
    here: Here,
    pub(crate) ledger: &'static Ledger,
}

/// Enters and counts a call of `function` if it takes the fast path for one of several threads: it comes from
/// the program, is not due for timing, and the thread is known. Only for [`Fast::Thread`].
#[inline]
pub(crate) fn enter_thread(function: Function) -> Option<ThreadInside> {
    let here = thread::here();
    let ledger = here.own.get()?;
    if here.inside.get() || !ledger.count_unless_due(function) {
        return None;
    }
    here.inside.set(true);
    Some(ThreadInside { here, ledger })
}

impl ThreadInside {
    /// Where the call comes from. `is_noted`: its return address was recorded, as that of a receive that is watched.
    #[inline]
    pub(crate) fn origin(&self, is_noted: bool) -> Origin {
        if is_noted {
            Origin::Address(self.here.caller.get())
        } else {
            Origin::OnStack(self.here.stack.get())
        }
    }
}

impl Drop for ThreadInside {
    #[inline]
    fn drop(&mut self) {
        self.here.inside.set(false);
    }
}

/// A call on any other path: while this lives, calls inside it are nested. Dropping it counts the call, even
/// when the stack is unwound.
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
    /// The program, and this is its only thread that calls MPI.
    Alone,
    /// One of several threads of the program.
    Thread(&'static Ledger),
}

/// Enters a call of `function`. `start_late` is called when nothing is known of this process: MPI may have
/// been started in a way that gyan does not see.
#[inline]
pub(crate) fn enter(function: Function, start_late: fn()) -> Scope {
    end_gap();
    let caller = match GATE.load(Ordering::Relaxed) {
        OPEN | WATCHED | RECORDED => {
            GATE.enter(function);
            Caller::Alone
        }
        _ => other_caller(function, start_late),
    };
    if !matches!(caller, Caller::Nobody) {
        thread::here().uncounted.set(function.0 + 1);
    }
    Scope { function, caller }
}

#[inline(never)]
fn other_caller(function: Function, start_late: fn()) -> Caller {
    if GATE.load(Ordering::Relaxed) == COLD {
        start_late();
    }
    match GATE.load(Ordering::Relaxed) {
        OPEN | WATCHED | RECORDED => {
            GATE.enter(function);
            Caller::Alone
        }
        INSIDE if has_left(false) => {
            GATE.enter(function);
            Caller::Alone
        }
        gate @ (THREADED | THREADED_WATCHED | THREADED_RECORDED | COLD) => {
            let nested = thread::here().inside.replace(true);
            if nested && !(is_threaded(gate) && has_left(false)) {
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

/// Whether this thread has left the call that the gate and its own flag say it is inside of. If so, counts that
/// call unless it was counted before.
#[cold]
#[inline(never)]
fn has_left(at_once: bool) -> bool {
    let here = thread::here();
    let threaded = is_threaded(GATE.load(Ordering::Relaxed));
    // Another thread may ask whether MPI is initialised while this one is inside.
    if !threaded && !is_first(here) {
        return false;
    }
    // A library's Fortran routine may jump to the C one and leave no frame between two of gyan's.
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

/// Whether the only thread that calls MPI is inside a call from Fortran. Then a call is MPI's, or one that
/// [`is_aside`].
#[inline]
pub(crate) fn is_in_fortran() -> bool {
    GATE.load(Ordering::Relaxed) == INSIDE_FORTRAN && is_first(thread::here())
}

/// While this lives, the thread is inside a call from Fortran.
pub(crate) enum InFortran {
    /// Of the only thread that calls MPI.
    Alone,
    Thread {
        here: Here,
        before: bool,
    },
}

impl InFortran {
    /// Not for a call that [`is_aside`].
    #[inline]
    pub(crate) fn enter() -> InFortran {
        if GATE.load(Ordering::Relaxed) == INSIDE {
            GATE.store(INSIDE_FORTRAN, Ordering::Relaxed);
            return InFortran::Alone;
        }
        InFortran::aside()
    }

    /// For a call that [`is_aside`].
    pub(crate) fn aside() -> InFortran {
        let here = thread::here();
        InFortran::Thread { here, before: here.fortran.replace(true) }
    }
}

impl Drop for InFortran {
    #[inline]
    fn drop(&mut self) {
        match self {
            // Not if gyan closed in the meantime.
            InFortran::Alone if GATE.load(Ordering::Relaxed) == INSIDE_FORTRAN => {
                GATE.store(INSIDE, Ordering::Relaxed);
            }
            InFortran::Alone => {}
            InFortran::Thread { here, before } => here.fortran.set(*before),
        }
    }
}

/// The run is about to end: a call that was left is no longer in progress.
pub(crate) fn settle() {
    end_gap();
    match GATE.load(Ordering::Relaxed) {
        INSIDE | INSIDE_FORTRAN if has_left(true) => GATE.store(opened(false), Ordering::Relaxed),
        gate if is_threaded(gate) && thread::here().inside.get() && has_left(true) => {
            thread::here().inside.set(false);
        }
        _ => {}
    }
}

impl Scope {
    /// Whether the program makes this call, during a run.
    pub(crate) fn is_of_program(&self) -> bool {
        self.ledger().is_some()
    }

    /// Whether no other thread calls MPI.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self.caller, Caller::Alone)
    }

    /// The ledger of the thread that makes the call, if it is one of several and has it to itself.
    pub(crate) fn thread(&self) -> Option<&'static Ledger> {
        match self.caller {
            Caller::Thread(ledger) if !ledger.is_shared() => Some(ledger),
            _ => None,
        }
    }

    /// Where to count the call, if the program makes it during a run.
    pub(crate) fn ledger(&self) -> Option<&'static Ledger> {
        match self.caller {
            Caller::Alone => Some(ledger::alone()),
            Caller::Thread(ledger) => Some(ledger),
            Caller::Nobody | Caller::Early => None,
        }
    }

    /// Does the work for objects and requests that comes with the call. Some of it is measured.
    pub(crate) fn effect<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.ledger() {
            Some(ledger) => budget().effect(ledger.next_effect(), work),
            None => work(),
        }
    }

    /// From now on the function is never timed, except on request.
    pub(crate) fn put_off(&self) {
        if let Some(ledger) = self.ledger() {
            ledger.put_off(self.function);
        }
    }

    /// The ledger, if no other thread counts in it: where calls are timed.
    #[inline]
    pub(crate) fn own_ledger(&self) -> Option<&'static Ledger> {
        self.ledger().filter(|ledger| !ledger.is_shared())
    }

    /// The call succeeded. It was `noted` if it was timed, and sent what `send` says, which gives the bytes
    /// that it moved, and these are returned.
    pub(crate) fn moved(
        &self,
        noted: Option<Noted>,
        send: impl FnOnce(&mut dyn FnMut(Sent)) -> u64,
    ) -> u64 {
        let Some(ledger) = self.ledger() else { return 0 };
        let bytes = send(&mut |sent| ledger.sent_slowly(sent));
        ledger.moved_slowly(self.function, bytes);
        if let Some(noted) = noted {
            noted.moved(bytes);
        }
        bytes
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.caller, Caller::Nobody) {
            thread::here().uncounted.set(0);
        }
        match self.caller {
            Caller::Nobody => ledger::passed(),
            Caller::Alone => {
                ledger::alone().was_in_scope();
                ledger::alone().count_slowly(self.function);
                // Not if gyan closed in the meantime.
                if GATE.load(Ordering::Relaxed) == INSIDE {
                    GATE.store(opened(false), Ordering::Relaxed);
                    if ledger::alone().wants_gap() {
                        begin_gap(ledger::alone());
                    }
                }
            }
            Caller::Thread(ledger) => {
                ledger.was_in_scope();
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

/// Where to count the calls of this thread.
pub(crate) fn ledger() -> &'static Ledger {
    if is_threaded(GATE.load(Ordering::Relaxed)) { ledger_here() } else { ledger::alone() }
}

/// Runs `forward`, a call that starts or ends MPI: calls that MPI makes in it are not counted.
pub(crate) fn uncounted(forward: impl FnOnce() -> c_int) -> c_int {
    end_gap();
    let before = GATE.load(Ordering::Relaxed);
    let _thread = is_threaded(before).then(ThreadUncounted::enter);
    let _inside = matches!(before, OPEN | WATCHED | RECORDED | COLD).then(|| {
        GATE.store(INSIDE, Ordering::Relaxed);
        Inside { before }
    });
    forward()
}

/// Like [`Inside`], for one of several threads: it may be nested already.
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
    use crate::mpi::functions::point_to_point::MPI_Iprobe;
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

    /// Programs that start a thread for each task.
    #[test]
    fn threads_that_come_and_go_have_one_ledger_after_the_other() {
        let lines = in_a_copy(|out| {
            let before = ledger::threads();
            for _ in 0..600 {
                let thread = std::thread::spawn(|| ledger_here().count_slowly(MPI_Iprobe));
                thread.join().unwrap();
            }
            let numbers = ledger::numbers();
            let calls = numbers.iter().find(|(function, ..)| *function == MPI_Iprobe);
            let (_, calls, _) = calls.unwrap();
            writeln!(out, "{calls} {} {}", ledger::threads() <= before + 1, ledger::is_shared())
        });
        assert_eq!(lines, "600 true false\n");
    }
}
