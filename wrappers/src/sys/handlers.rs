//! Handlers of the signals that mean a crash: what was installed before gyan's, and how does it get its turn?
//!
//! A handler runs in any thread, allocates nothing, takes no lock and makes only system calls.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::OnceLock;

/// Signals that mean a crash, including `abort`.
pub(crate) const CRASHES: [c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// How often the action for a signal may change.
pub(crate) const CHANGES: usize = 8;

/// The previous actions for a signal; the last one set is current. A handler in another thread may take any
/// time to read one, so each is written only once.
pub(crate) struct Former([OnceLock<libc::sigaction>; CHANGES]);

impl Former {
    pub(crate) const fn new() -> Former {
        Former([const { OnceLock::new() }; CHANGES])
    }

    /// The current previous action.
    pub(crate) fn last(&self) -> Option<&libc::sigaction> {
        self.0.iter().rev().find_map(OnceLock::get)
    }

    /// Records the present action; false when it has changed too often. Only for one thread at a time.
    pub(crate) fn note(&self, signal: c_int) -> bool {
        let now = action(signal);
        let essence = |action: &libc::sigaction| {
            (action.sa_sigaction, action.sa_flags, kernels_part(&action.sa_mask))
        };
        self.last().is_some_and(|last| essence(last) == essence(&now))
            || self.0.iter().any(|place| place.set(now).is_ok())
    }
}

/// The present action for a signal.
pub(crate) fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: an action of zeros is a valid one.
    let mut now: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: asks for an action, into a place that this thread may write.
    unsafe { libc::sigaction(signal, ptr::null(), &raw mut now) };
    now
}

/// The part of a set that the kernel uses.
pub(crate) fn kernels_part(set: &libc::sigset_t) -> u64 {
    // SAFETY: the set is longer; the kernel has 64 signals.
    unsafe { ptr::from_ref(set).cast::<u64>().read() }
}

pub(crate) fn set_of(signal: c_int) -> libc::sigset_t {
    // SAFETY: a set of zeros is the empty one.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the set is valid.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    set
}

/// The stack for handlers of this thread.
pub(crate) fn stack() -> Option<libc::stack_t> {
    // SAFETY: a stack of zeros is a valid one.
    let mut stack: libc::stack_t = unsafe { mem::zeroed() };
    // SAFETY: asks for the present one, into a place that can be written.
    let asked = unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) };
    (asked == 0).then_some(stack)
}

/// Whether this thread has none.
pub(crate) fn has_no_stack() -> bool {
    stack().is_some_and(|stack| stack.ss_flags & libc::SS_DISABLE != 0)
}

/// Takes the stack for handlers from this thread.
pub(crate) fn give_up_stack() {
    let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the system refuses while the thread is on that stack.
    unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
}

pub(crate) fn is_fault(info: &libc::siginfo_t) -> bool {
    info.si_code > 0
}

/// Does what would have happened with this action.
///
/// # Safety
/// The arguments are those of a handler that runs.
pub(crate) unsafe fn call(
    former: &libc::sigaction,
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    type Plain = extern "C" fn(c_int);
    type WithInfo = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    // SAFETY: the caller's promise.
    let is_fault = unsafe { is_fault(&*info) };
    match former.sa_sigaction {
        libc::SIG_IGN if !is_fault => return,
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the default action is always allowed.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            if !is_fault {
                // The signal is blocked until the handler returns. A fault recurs by itself.
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
    // As the kernel would do: when the handler returns, the mask is as before. SAFETY: changes the
    // mask of this thread; the set is valid.
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
