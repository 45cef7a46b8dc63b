//! The handlers of signals: which crash is one of the library in a call of gyan's, and where does every
//! other signal go?
//!
//! A handler runs in any thread and allocates nothing, takes no lock and calls nothing but system calls.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::function::Function;
use super::trampoline::{gyan_guarded, gyan_guarded_crashed};
use super::{Here, Stage, here};

/// Signals by which a crash shows, `abort` among them.
const CRASHES: [c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// A call of the library that is under way.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Record {
    /// Where the stack was; written by the trampoline.
    pub(super) stack: usize,
    /// The signal by which it crashed; 0 for none.
    signal: c_int,
}

/// Bytes of a set of signals, to the kernel.
const SET_BYTES: i64 = 8;

/// How often what is there for a signal may change from one scope to another.
const CHANGES: usize = 8;

/// What was there for a signal before, the last of those that are set. A handler in another thread may be
/// reading one for as long as it likes, so that each is written once.
struct Former([OnceLock<libc::sigaction>; CHANGES]);

impl Former {
    /// What was there last.
    fn last(&self) -> Option<&libc::sigaction> {
        self.0.iter().rev().find_map(OnceLock::get)
    }

    /// Notes what is there now; false when it has changed too often. Only for the thread that has `OWNED`.
    fn note(&self, signal: c_int) -> bool {
        // SAFETY: an action of zeros is a valid one.
        let mut now: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: asks for an action, into a place that this thread may write.
        unsafe { libc::sigaction(signal, ptr::null(), &raw mut now) };
        let essence = |action: &libc::sigaction| {
            (action.sa_sigaction, action.sa_flags, kernels_part(&action.sa_mask))
        };
        self.last().is_some_and(|last| essence(last) == essence(&now))
            || self.0.iter().any(|place| place.set(now).is_ok())
    }
}

/// Memory for one thread at a time.
struct Stack(UnsafeCell<[u128; 4096]>);

// SAFETY: used by the one thread that has `OWNED`.
unsafe impl Sync for Stack {}

/// A thread has its handlers installed.
static OWNED: AtomicBool = AtomicBool::new(false);
/// For each of the signals.
static FORMER: [Former; CRASHES.len()] =
    [const { Former([const { OnceLock::new() }; CHANGES]) }; CRASHES.len()];
/// The program has put a handler of its own in the place of gyan's meanwhile, and may have kept gyan's
/// to go on to: it is never installed again, and leads where it led then.
static SPOILED: [AtomicBool; CRASHES.len()] = [const { AtomicBool::new(false) }; CRASHES.len()];
/// The signals that were blocked before.
static MASK: AtomicU64 = AtomicU64::new(0);
/// A crash can be that the stack is at its end; large enough for all registers of any processor, too.
static STACK: Stack = Stack(UnsafeCell::new([0; 4096]));
/// It is in use: the thread had none of its own.
static STACK_USED: AtomicBool = AtomicBool::new(false);

/// Installs the handlers; not when another thread has them.
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
        // What was there first: another thread may need it at once.
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

/// Takes the handlers away again.
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
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: this thread is not on that stack: it is not in a handler of gyan's.
        unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
    }
    OWNED.store(false, Ordering::Release);
}

/// Gives this thread a stack for handlers, unless it has one.
fn take_stack() {
    // SAFETY: a stack of zeros is a valid one.
    let mut stack: libc::stack_t = unsafe { mem::zeroed() };
    // SAFETY: asks for the present one, into a place that can be written.
    let asked = unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) };
    if asked != 0 || stack.ss_flags & libc::SS_DISABLE == 0 {
        return;
    }
    let stack = libc::stack_t {
        ss_sp: STACK.0.get().cast(),
        ss_flags: 0,
        ss_size: size_of::<[u128; 4096]>(),
    };
    // SAFETY: the memory is there for ever, and the one thread that has `OWNED` uses it.
    let taken = unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) } == 0;
    STACK_USED.store(taken, Ordering::Relaxed);
}

fn our_handler() -> usize {
    handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

/// The call that a thread is in, until this goes, also when a cancellation unwinds the stack.
struct Covered {
    here: Here,
    before: *mut Record,
}

impl Drop for Covered {
    fn drop(&mut self) {
        self.here.call.set(self.before);
    }
}

/// Calls a function; the signal by which it crashed, when this thread has the handlers.
///
/// # Safety
/// As for `function` itself.
pub(super) unsafe fn guarded<Arguments, F: Function<Arguments>>(
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

/// Does `work`, which the library calls back for: a crash in it is not one of a frame that may be
/// skipped.
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
        // SAFETY: the record lives on the stack of `guarded`, which is below nothing that is skipped.
        let record = unsafe { &mut *record };
        record.signal = signal;
        // SAFETY: the kernel gives a context, which it takes up again when the handler returns.
        unsafe { go_on_behind_the_call(context.cast(), record.stack) };
        return;
    }
    // SAFETY: as the kernel gave them.
    unsafe { forward(signal, info, context) };
}

/// Whether the thread itself has raised the signal: by a fault, or by `abort` or `raise`.
fn is_of_this_thread(signal: c_int, info: &libc::siginfo_t, context: &libc::ucontext_t) -> bool {
    is_fault(info) || (info.si_code == libc::SI_TKILL && raises(signal, context))
}

/// Whether the thread comes back from the system call by which it sent the signal to itself, or, as in the
/// C library before its version 2.34, from the one that let in what it had sent before. `pthread_kill` of
/// another thread gives the same `siginfo_t` as `raise`. What comes from there is taken for the thread's own
/// only where the thread is just letting signals in.
fn raises(signal: c_int, context: &libc::ucontext_t) -> bool {
    // SAFETY: gettid(2) takes nothing.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    let machine = &context.uc_mcontext;
    // The kernel leaves the arguments in their registers, but for what it puts the result into.
    #[cfg(target_arch = "x86_64")]
    {
        let register = |name: c_int| {
            usize::try_from(name).ok().and_then(|place| machine.gregs.get(place)).copied()
        };
        let is = |name, value: i64| register(name) == Some(value);
        let process = i64::from(std::process::id());
        // The instruction for system calls leaves there where it returns to.
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

fn is_fault(info: &libc::siginfo_t) -> bool {
    info.si_code > 0
}

/// Lets the thread go on behind the call of the function, with the signals blocked that were before.
///
/// # Safety
/// `context` is the one that the kernel gave to the handler that runs, `stack` was noted by the trampoline
/// and its frame is still there.
unsafe fn go_on_behind_the_call(context: *mut libc::ucontext_t, stack: usize) {
    let behind = gyan_guarded_crashed as *const c_void as usize;
    // SAFETY: the caller's promise.
    let context = unsafe { &mut *context };
    let mask = MASK.load(Ordering::Relaxed);
    // SAFETY: of the mask the kernel has only the first 64 bits, whatever the type says.
    unsafe { (&raw mut context.uc_sigmask).cast::<u64>().write(mask) };
    let machine = &mut context.uc_mcontext;
    #[cfg(target_arch = "x86_64")]
    for (register, value) in [(libc::REG_RIP, behind), (libc::REG_RSP, stack)] {
        let place = usize::try_from(register).ok().and_then(|place| machine.gregs.get_mut(place));
        if let Some(place) = place {
            *place = value.cast_signed() as libc::greg_t;
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        machine.pc = behind as u64;
        machine.sp = stack as u64;
    }
}

/// The part of a set that the kernel has.
fn kernels_part(set: &libc::sigset_t) -> u64 {
    // SAFETY: the set is longer; the kernel has 64 signals.
    unsafe { ptr::from_ref(set).cast::<u64>().read() }
}

/// The signals that this thread blocks.
fn blocked() -> u64 {
    // SAFETY: a set of zeros is the empty one.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: asks for the mask of this thread, into a place that can be written.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut set) };
    kernels_part(&set)
}

fn set_of(signal: c_int) -> libc::sigset_t {
    // SAFETY: a set of zeros is the empty one.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the set is valid.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    set
}

/// Does what would have happened without gyan.
///
/// # Safety
/// The arguments are those of a handler that runs.
unsafe fn forward(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    type Plain = extern "C" fn(c_int);
    type WithInfo = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    let known = CRASHES.into_iter().zip(&FORMER).find(|(known, _)| *known == signal);
    let Some(former) = known.and_then(|(_, former)| former.last()) else { return };
    // SAFETY: the caller's promise.
    let is_fault = unsafe { is_fault(&*info) };
    match former.sa_sigaction {
        libc::SIG_IGN if !is_fault => return,
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the default action is always allowed.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            if !is_fault {
                // It is blocked until the handler returns. A fault happens again by itself.
                // SAFETY: sends a signal to this thread.
                unsafe { libc::raise(signal) };
            }
            return;
        }
        _ => {}
    }
    if former.sa_flags & libc::SA_RESETHAND != 0 {
        // SAFETY: as above.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // As the kernel would have: what is blocked now is as before when the handler returns.
    // SAFETY: changes the mask of this thread; the set is valid.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const former.sa_mask, ptr::null_mut()) };
    if former.sa_flags & libc::SA_NODEFER != 0 {
        let own = set_of(signal);
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const own, ptr::null_mut()) };
    }
    if former.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: with this flag the handler has this type.
        let handler = unsafe { mem::transmute::<usize, WithInfo>(former.sa_sigaction) };
        handler(signal, info, context);
    } else {
        // SAFETY: without that flag the handler has this type.
        let handler = unsafe { mem::transmute::<usize, Plain>(former.sa_sigaction) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// What comes of its arguments, which all matter.
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
        // SAFETY: that it cannot be written is what is tried.
        unsafe { black_box(ptr::null_mut::<c_int>()).write_volatile(1) };
        0
    }

    unsafe extern "C" fn block_and_abort() -> c_int {
        let set = set_of(libc::SIGUSR1);
        // SAFETY: the set is valid. What is blocked is to be as before.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
        // SAFETY: that it does not come back is what is tried.
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

    /// In frames of less than a page: instrumented ones would step over the end of the stack, into another.
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
            // SAFETY: an action of zeros is a valid one.
            let mut action: libc::sigaction = unsafe { mem::zeroed() };
            // SAFETY: asks for an action, into a place that can be written.
            unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
            // The C library adds one of its own whenever an action is set.
            (action.sa_sigaction, action.sa_flags & !SA_RESTORER)
        };
        CRASHES.into_iter().map(action).collect()
    }

    fn stack() -> libc::stack_t {
        // SAFETY: a stack of zeros is a valid one.
        let mut stack: libc::stack_t = unsafe { mem::zeroed() };
        // SAFETY: asks for the present one, into a place that can be written.
        unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) };
        stack
    }

    /// The stack for handlers that there was before.
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

    // One test: the handlers are the whole process's.
    #[test]
    fn a_crash_comes_back_and_all_else_is_as_before() {
        // The program has a handler of its own for one of the signals.
        let handler = hears as extern "C" fn(c_int) as usize;
        // SAFETY: the handler does what a handler may do.
        let own = unsafe { libc::signal(libc::SIGFPE, handler) };
        // A thread without a stack for handlers: Rust gives one to its own.
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
            // SAFETY: that they crash is what is tried.
            assert_eq!(unsafe { guarded(crash, ()) }.err(), Some(signal));
            assert_eq!(blocked(), blocked_before);
        }
        // What another thread sends here or raises is the program's, and so is what this one does outside of
        // a call.
        // SAFETY: pthread_self(3) takes nothing.
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
        // A program that changes its handler again and again between gyan's scopes is let alone.
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
        // A handler that the program sets meanwhile stays, and gyan's comes no more.
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
