//! The signal handlers: which crash happened in the library during a call by gyan, and where does every other
//! signal go?
//!
//! A handler runs in any thread, allocates nothing, takes no lock and makes only system calls.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::function::GuardedFunction;
use super::trampoline::{gyan_guarded, gyan_guarded_crashed};
use super::{Here, Stage, here};
use crate::sys::handlers::{self, CRASHES, Former, is_fault, kernels_part};

/// A library call in progress.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Record {
    /// Where the stack was; written by the trampoline.
    pub(super) stack: usize,
    /// The signal by which it crashed; 0 for none.
    signal: c_int,
}

/// Size of a signal set for the kernel, in bytes.
const SET_BYTES: i64 = 8;

/// Memory for one thread at a time.
struct SignalStack(UnsafeCell<[u128; 4096]>);

// SAFETY: used by the one thread that has `OWNED`.
unsafe impl Sync for SignalStack {}

/// A thread has its handlers installed.
static OWNED: AtomicBool = AtomicBool::new(false);
/// For each of the signals.
static FORMER: [Former; CRASHES.len()] = [const { Former::new() }; CRASHES.len()];
/// The program has replaced gyan's handler with its own in the meantime, and may chain to gyan's: that is never
/// installed again, and forwards where it did then.
static SPOILED: [AtomicBool; CRASHES.len()] = [const { AtomicBool::new(false) }; CRASHES.len()];
/// The signals that were blocked before.
static MASK: AtomicU64 = AtomicU64::new(0);
/// A crash can be a stack overflow, so handlers need their own stack, large enough for all registers of any
/// processor.
static STACK: SignalStack = SignalStack(UnsafeCell::new([0; 4096]));
/// It is in use: the thread did not have its own.
static STACK_USED: AtomicBool = AtomicBool::new(false);

/// Installs the handlers, unless another thread has them installed.
pub(super) fn install() -> bool {
    if OWNED.swap(true, Ordering::Acquire) {
        return false;
    }
    MASK.store(blocked(), Ordering::Relaxed);
    take_stack();
    for ((signal, former), spoiled) in CRASHES.into_iter().zip(&FORMER).zip(&SPOILED) {
        if spoiled.load(Ordering::Relaxed) {
            continue;
        }
        // Record the previous action first: another thread may need it at once.
        if !former.note(signal) {
            spoiled.store(true, Ordering::Relaxed);
            continue;
        }
        // SAFETY: an action of zeros is a valid one.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = our_handler();
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler has the type that the flags say and does what a handler may do.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
    true
}

/// Removes the handlers again.
pub(super) fn restore() {
    for ((signal, former), spoiled) in CRASHES.into_iter().zip(&FORMER).zip(&SPOILED) {
        let Some(former) = former.last().filter(|_| !spoiled.load(Ordering::Relaxed)) else {
            continue;
        };
        // SAFETY: an action of zeros is a valid one.
        let mut current: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: what was there before is valid, and `current` can be written.
        unsafe { libc::sigaction(signal, former, &raw mut current) };
        if current.sa_sigaction != our_handler() {
            spoiled.store(true, Ordering::Relaxed);
            // SAFETY: what was there a moment ago is valid.
            unsafe { libc::sigaction(signal, &raw const current, ptr::null_mut()) };
        }
    }
    if STACK_USED.swap(false, Ordering::Relaxed) {
        handlers::give_up_stack();
    }
    OWNED.store(false, Ordering::Release);
}

/// Gives this thread a stack for handlers, unless it has one.
fn take_stack() {
    if !handlers::has_no_stack() {
        return;
    }
    let stack = libc::stack_t {
        ss_sp: STACK.0.get().cast(),
        ss_flags: 0,
        ss_size: size_of::<[u128; 4096]>(),
    };
    // SAFETY: the memory lives forever, and only the thread that has `OWNED` uses it.
    let taken = unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) } == 0;
    STACK_USED.store(taken, Ordering::Relaxed);
}

fn our_handler() -> usize {
    handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

/// Marks the call that a thread is in, until this is dropped, even when a cancellation unwinds the stack.
struct Covered {
    here: Here,
    before: *mut Record,
}

impl Drop for Covered {
    fn drop(&mut self) {
        self.here.call.set(self.before);
    }
}

/// Calls a function; returns the signal by which it crashed, if this thread has the handlers.
///
/// # Safety
/// As for `function` itself.
pub(super) unsafe fn guarded<Arguments, F: GuardedFunction<Arguments>>(
    function: F,
    arguments: Arguments,
) -> Result<c_int, &'static str> {
    let here = here();
    if here.stage.get() != Stage::Guarded {
        // SAFETY: the caller's promise.
        return Ok(unsafe { function.direct(arguments) });
    }
    let words = F::words(arguments);
    let mut record = Record::default();
    let covered = Covered { here, before: here.call.replace(&raw mut record) };
    // SAFETY: the caller's promise; the function takes as many of the words as it has arguments, each of
    // which is an integer or a pointer.
    let code = unsafe { gyan_guarded(function.address(), &raw const words, &raw mut record) };
    drop(covered);
    if record.signal == 0 {
        return Ok(code);
    }
    Err(name(record.signal))
}

fn name(signal: c_int) -> &'static str {
    match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        _ => "SIGABRT",
    }
}

/// Does `work` in a callback from the library: a crash in it is not in frames that may be skipped.
pub(crate) fn uncovered<T>(work: impl FnOnce() -> T) -> T {
    let here = here();
    let _covered = Covered { here, before: here.call.replace(ptr::null_mut()) };
    work()
}

/// # Safety
/// Called by the kernel, with what it gives to a handler with `SA_SIGINFO`.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let here = here();
    let record = here.call.get();
    let is_own = || {
        // SAFETY: the kernel gives a valid one.
        let info = unsafe { &*info };
        // SAFETY: the kernel gives a valid one.
        is_of_this_thread(signal, info, unsafe { &*context.cast() })
    };
    if !record.is_null() && is_own() {
        here.call.set(ptr::null_mut());
        // SAFETY: the record lives in the frame of `guarded`, which is not skipped.
        let record = unsafe { &mut *record };
        record.signal = signal;
        // SAFETY: the kernel gives a context, which it takes up again when the handler returns.
        unsafe { go_on_after_the_call(context.cast(), record.stack) };
        return;
    }
    // SAFETY: as the kernel gave them.
    unsafe { forward(signal, info, context) };
}

/// Whether the thread itself raised the signal: by a fault, or by `abort` or `raise`.
fn is_of_this_thread(signal: c_int, info: &libc::siginfo_t, context: &libc::ucontext_t) -> bool {
    is_fault(info) || (info.si_code == libc::SI_TKILL && raises(signal, context))
}

/// Whether the thread is returning from the system call with which it sent itself the signal or, in C libraries
/// before 2.34, from the one that unblocked a signal sent before. `pthread_kill` from another thread produces
/// the same `siginfo_t` as `raise`; such a signal is mistaken for the thread's own only if the thread is just
/// unblocking signals.
fn raises(signal: c_int, context: &libc::ucontext_t) -> bool {
    // SAFETY: gettid(2) takes nothing.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    let machine = &context.uc_mcontext;
    // The kernel leaves the arguments in their registers, except the one for the result.
    #[cfg(target_arch = "x86_64")]
    {
        let register = |name: c_int| {
            usize::try_from(name).ok().and_then(|place| machine.gregs.get(place)).copied()
        };
        let is = |name, value: i64| register(name) == Some(value);
        let process = i64::from(std::process::id());
        // The system call instruction leaves the return address there.
        let returns = is(libc::REG_RAX, 0) && register(libc::REG_RCX) == register(libc::REG_RIP);
        let sent = is(libc::REG_RDI, process)
            && is(libc::REG_RSI, thread)
            && is(libc::REG_RDX, i64::from(signal));
        let how = [libc::SIG_SETMASK, libc::SIG_UNBLOCK];
        let let_in = how.into_iter().any(|how| is(libc::REG_RDI, i64::from(how)))
            && is(libc::REG_R10, SET_BYTES);
        returns && (sent || let_in)
    }
    #[cfg(target_arch = "aarch64")]
    {
        let is = |place: usize, value: i64| {
            machine.regs.get(place).copied() == Some(value.cast_unsigned())
        };
        let sent = is(8, libc::SYS_tgkill) && is(1, thread) && is(2, i64::from(signal));
        let let_in = is(8, libc::SYS_rt_sigprocmask) && is(3, SET_BYTES);
        is(0, 0) && (sent || let_in)
    }
}

/// Resumes the thread after the call of the function, with the same signals blocked as before.
///
/// # Safety
/// `context` is the one that the kernel gave to the handler that runs, `stack` was noted by the trampoline
/// and its frame is still there.
unsafe fn go_on_after_the_call(context: *mut libc::ucontext_t, stack: usize) {
    let after = gyan_guarded_crashed as *const c_void as usize;
    // SAFETY: the caller's promise.
    let context = unsafe { &mut *context };
    let mask = MASK.load(Ordering::Relaxed);
    // SAFETY: the kernel's mask has only 64 bits, whatever the type says.
    unsafe { (&raw mut context.uc_sigmask).cast::<u64>().write(mask) };
    let machine = &mut context.uc_mcontext;
    #[cfg(target_arch = "x86_64")]
    for (register, value) in [(libc::REG_RIP, after), (libc::REG_RSP, stack)] {
        let place = usize::try_from(register).ok().and_then(|place| machine.gregs.get_mut(place));
        if let Some(place) = place {
            *place = value.cast_signed() as libc::greg_t;
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        machine.pc = after as u64;
        machine.sp = stack as u64;
    }
}

/// The signals that this thread blocks.
fn blocked() -> u64 {
    // SAFETY: a set of zeros is the empty one.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: asks for the mask of this thread, into a place that can be written.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut set) };
    kernels_part(&set)
}

/// Does what would have happened without gyan.
///
/// # Safety
/// The arguments are those of a handler that runs.
unsafe fn forward(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let known = CRASHES.into_iter().zip(&FORMER).find(|(known, _)| *known == signal);
    let Some(former) = known.and_then(|(_, former)| former.last()) else { return };
    // SAFETY: the caller's promise.
    unsafe { handlers::call(former, signal, info, context) };
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::sys::handlers::{CHANGES, set_of};

    /// The result depends on all of its arguments.
    #[allow(clippy::many_single_char_names)]
    unsafe extern "C" fn digits(
        a: c_int,
        b: *mut c_void,
        c: usize,
        d: c_int,
        e: usize,
        f: usize,
        g: usize,
        h: *mut c_void,
        i: c_int,
        j: usize,
        k: usize,
        l: usize,
        m: c_int,
    ) -> c_int {
        let number = |word: usize| c_int::try_from(word).unwrap();
        let (b, c, e, f) = (number(b as usize), number(c), number(e), number(f));
        let (g, h, j, k, l) = (number(g), number(h as usize), number(j), number(k), number(l));
        let all = [b, c, d, e, f, g, h, i, j, k, l, m];
        all.into_iter().fold(a, |sum, number| sum.wrapping_mul(3).wrapping_add(number))
    }

    unsafe extern "C" fn write_to_null() -> c_int {
        // SAFETY: the test is that it cannot be written.
        unsafe { black_box(ptr::null_mut::<c_int>()).write_volatile(1) };
        0
    }

    unsafe extern "C" fn block_and_abort() -> c_int {
        let set = set_of(libc::SIGUSR1);
        // SAFETY: the set is valid. The mask must be the same afterwards.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
        // SAFETY: the test is that it does not return.
        unsafe { libc::abort() }
    }

    unsafe extern "C" fn illegal() -> c_int {
        // SAFETY: sends a signal to this thread.
        unsafe { libc::raise(libc::SIGILL) };
        0
    }

    /// As `raise` did before version 2.34 of the C library.
    unsafe extern "C" fn raise_while_blocked() -> c_int {
        let set = set_of(libc::SIGILL);
        let mut before = set;
        // SAFETY: the sets are valid.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) };
        // SAFETY: sends a signal to this thread.
        unsafe { libc::raise(libc::SIGILL) };
        // SAFETY: the set is valid.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) }
    }

    /// Waits until the program's handler has heard of a signal that another thread sends.
    unsafe extern "C" fn wait_to_hear() -> c_int {
        WAITS.store(true, Ordering::Relaxed);
        while HEARD.load(Ordering::Relaxed) == 0 {
            std::hint::spin_loop();
        }
        7
    }

    /// With frames smaller than a page: larger, instrumented ones could jump over the guard page into another
    /// stack.
    fn fill_the_stack(depth: c_int) -> c_int {
        let frame = black_box([depth; 256]);
        if depth < 0 { 0 } else { fill_the_stack(black_box(depth + 1)) + frame[7] }
    }

    unsafe extern "C" fn overflow() -> c_int {
        fill_the_stack(0)
    }

    const SA_RESTORER: c_int = 0x0400_0000;

    fn actions() -> Vec<(usize, c_int)> {
        let action = |signal| {
            let action = handlers::action(signal);
            // The C library adds one of its own whenever an action is set.
            (action.sa_sigaction, action.sa_flags & !SA_RESTORER)
        };
        CRASHES.into_iter().map(action).collect()
    }

    fn stack() -> libc::stack_t {
        handlers::stack().unwrap()
    }

    /// The previous stack for handlers.
    fn change_stack(to: libc::stack_t) -> libc::stack_t {
        let before = stack();
        // SAFETY: none, or one that there was before.
        unsafe { libc::sigaltstack(&raw const to, ptr::null_mut()) };
        before
    }

    static HEARD: AtomicUsize = AtomicUsize::new(0);
    static WAITS: AtomicBool = AtomicBool::new(false);

    extern "C" fn hears(_: c_int) {
        HEARD.fetch_add(1, Ordering::Relaxed);
    }

    type Digits = unsafe extern "C" fn(
        c_int,
        *mut c_void,
        usize,
        c_int,
        usize,
        usize,
        usize,
        *mut c_void,
        c_int,
        usize,
        usize,
        usize,
        c_int,
    ) -> c_int;

    type Plain = unsafe extern "C" fn() -> c_int;

    // A single test: the handlers are process-wide.
    #[test]
    fn a_crash_comes_back_and_all_else_is_as_before() {
        // The program has a handler of its own for one of the signals.
        let handler = hears as extern "C" fn(c_int) as usize;
        // SAFETY: the handler does what a handler may do.
        let own = unsafe { libc::signal(libc::SIGFPE, handler) };
        // A thread without a stack for handlers: Rust sets one up in its own threads.
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        let of_rust = change_stack(none);
        let (actions_before, blocked_before) = (actions(), blocked());
        assert!(install());
        assert_eq!(stack().ss_flags, 0);
        assert!(!install());
        here().stage.set(Stage::Guarded);
        assert_ne!(actions(), actions_before);
        let word = |word: usize| word as *mut c_void;
        let arguments = (1, word(2), 3, 4, 5, 6, 7, word(8), 9, 10, 11, 12, -13);
        let function: Digits = digits;
        // SAFETY: takes anything.
        let expected = unsafe { function.direct(arguments) };
        // SAFETY: takes anything.
        assert_eq!(unsafe { guarded(function, arguments) }.ok(), Some(expected));
        let crashes: [(Plain, &str); 5] = [
            (write_to_null, "SIGSEGV"),
            (block_and_abort, "SIGABRT"),
            (illegal, "SIGILL"),
            (raise_while_blocked, "SIGILL"),
            (overflow, "SIGSEGV"),
        ];
        // Again and again: nothing is used up.
        for (crash, signal) in crashes.into_iter().chain(crashes) {
            // SAFETY: the test is that they crash.
            assert_eq!(unsafe { guarded(crash, ()) }.err(), Some(signal));
            assert_eq!(blocked(), blocked_before);
        }
        // Signals that another thread sends here or raises belong to the program, and so do this thread's
        // outside a call. SAFETY: pthread_self(3) takes nothing.
        let this = unsafe { libc::pthread_self() };
        let other = std::thread::spawn(move || {
            while !WAITS.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            // SAFETY: the thread waits for it; the program's handler comes back.
            unsafe { libc::pthread_kill(this, libc::SIGFPE) }
        });
        let wait: Plain = wait_to_hear;
        // SAFETY: takes nothing.
        assert_eq!(unsafe { guarded(wait, ()) }.ok(), Some(7));
        other.join().unwrap();
        // SAFETY: the program's handler comes back.
        std::thread::spawn(|| unsafe { libc::raise(libc::SIGFPE) }).join().unwrap();
        assert_eq!(HEARD.load(Ordering::Relaxed), 2);
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGFPE) };
        assert_eq!(HEARD.load(Ordering::Relaxed), 3);
        here().stage.set(Stage::None);
        restore();
        assert_eq!(actions(), actions_before);
        assert_eq!(stack().ss_flags, libc::SS_DISABLE);
        change_stack(of_rust);
        // A program that keeps changing its handler between gyan's scopes is left alone.
        for number in 0..=CHANGES {
            let to = if number % 2 == 0 { libc::SIG_IGN } else { libc::SIG_DFL };
            // SAFETY: both are always allowed.
            unsafe { libc::signal(libc::SIGILL, to) };
            let set = actions();
            assert!(install());
            assert_eq!(actions()[2] == set[2], number + 1 >= CHANGES, "{number}");
            restore();
            assert_eq!(actions(), set);
        }
        // SAFETY: the default action is always allowed.
        unsafe { libc::signal(libc::SIGILL, libc::SIG_DFL) };
        // A handler that the program sets meanwhile stays, and gyan's is not installed again.
        assert!(install());
        // SAFETY: the default action is always allowed.
        unsafe { libc::signal(libc::SIGFPE, libc::SIG_DFL) };
        restore();
        let set = actions();
        assert_eq!(set[3].0, libc::SIG_DFL);
        assert!(install());
        assert_eq!(actions()[3], set[3]);
        restore();
        // SAFETY: what was there before.
        unsafe { libc::signal(libc::SIGFPE, own) };
    }
}
