//! What if the MPI library crashes while gyan asks it something? Then gyan says in which call and at
//! which variable, never calls `MPI_T` again in this process, and the program goes on.
//!
//! Only calls of the library that gyan makes itself, inside a [`Scope`], are guarded, and what it writes to a
//! file that is mapped: handlers of signals
//! are there from the first such call in a scope to its end. What the program does is never touched, and
//! neither is a signal that has another cause ([`signals`]). Nor does the guard protect from a call that
//! hangs, or from a library that writes where it may not.

mod function;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod signals;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "no_signals.rs"]
mod signals;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod trampoline;

pub(crate) use function::Function;
use signals::Record;
pub(crate) use signals::uncovered;

use std::cell::Cell;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::notice;
use crate::sys::tls::thread_cells;

/// What a call of the library is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About<'a> {
    Interface,
    /// Index, and name when it is known.
    Pvar(usize, Option<&'a str>),
    Cvar(usize, Option<&'a str>),
    Category(usize),
    Event(usize),
    Source(usize),
}

/// The one crash: there is no call after it.
static CRASH: OnceLock<Crash> = OnceLock::new();
static OFF: AtomicBool = AtomicBool::new(false);

/// A crash, in words.
struct Crash {
    what: String,
    consequence: String,
}

/// Whether `MPI_T` must not be called any more.
#[inline]
pub(crate) fn is_off() -> bool {
    OFF.load(Ordering::Relaxed)
}

/// What crashed, what became of it and what the user can do; none when nothing did.
pub(crate) fn crash() -> Option<String> {
    CRASH.get().map(|Crash { what, consequence }| format!("{what}; {consequence}"))
}

/// While this lives, calls of the library that this thread makes by [`call`] are guarded.
pub(crate) struct Scope {
    is_outermost: bool,
    /// It is this thread's.
    _here: PhantomData<*const ()>,
}

/// How far a thread is with its scope.
#[derive(Clone, Copy, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The value of a thread that starts.
    None = 0,
    /// It is in a scope and has called nothing yet.
    Wanted,
    /// The handlers are there.
    Guarded,
}

impl Scope {
    fn enter() -> Scope {
        let stage = &here().stage;
        let is_outermost = stage.get() == Stage::None;
        if is_outermost {
            stage.set(Stage::Wanted);
        }
        Scope { is_outermost, _here: PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if self.is_outermost && here().stage.replace(Stage::None) == Stage::Guarded {
            signals::restore();
        }
    }
}

thread_cells! {
    "gyan_guard"
    /// What the guard knows of a thread.
    struct Guarding {
        /// How far it is with its scope.
        stage: Cell<Stage>,
        /// The guarded call of the library that it is in; null for none.
        call: Cell<*mut Record>,
    }
}

/// Does `work`, in which calls of the library are guarded.
pub(crate) fn inside<T>(work: impl FnOnce() -> T) -> T {
    let _scope = Scope::enter();
    work()
}

/// Does `work`, in which calls of the library are guarded when `guards`.
pub(crate) fn inside_if<T>(guards: bool, work: impl FnOnce() -> T) -> T {
    let _scope = guards.then(Scope::enter);
    work()
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum Lost {
    /// It crashed, by this signal.
    Crashed(&'static str),
    /// It was not made, because an earlier one crashed.
    Off,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lost::Crashed(signal) => write!(f, "crashed inside the library ({signal})"),
            Lost::Off => {
                let what = CRASH.get().map_or("", |crash| &crash.what);
                write!(f, "not called any more: {what}")
            }
        }
    }
}

/// Calls a function of the library, which the standard calls `name`.
///
/// # Safety
/// As for `function` itself with these arguments.
pub(crate) unsafe fn call<Arguments, F: Function<Arguments>>(
    name: &'static str,
    about: About,
    function: F,
    arguments: Arguments,
) -> Result<c_int, Lost> {
    if is_off() {
        return Err(Lost::Off);
    }
    // SAFETY: the caller's promise.
    match unsafe { attempt(function, arguments) } {
        Ok(code) => Ok(code),
        Err(signal) => {
            crashed(name, about, signal);
            Err(Lost::Crashed(signal))
        }
    }
}

/// Calls a function, guarded in a scope. The signal by which it crashed. For what is no call of the library:
/// nothing follows from a crash.
///
/// # Safety
/// As for `function` itself with these arguments; after a crash its frames are gone.
pub(crate) unsafe fn attempt<Arguments, F: Function<Arguments>>(
    function: F,
    arguments: Arguments,
) -> Result<c_int, &'static str> {
    let here = here();
    if here.stage.get() == Stage::Wanted && signals::install() {
        here.stage.set(Stage::Guarded);
    }
    // SAFETY: the caller's promise.
    unsafe { signals::guarded(function, arguments) }
}

#[cold]
fn crashed(name: &str, about: About, signal: &str) {
    OFF.store(true, Ordering::Relaxed);
    let what = format!("{name}{about} crashed inside the MPI library ({signal})");
    let remedy = about.remedy();
    let consequence = format!("gyan calls MPI_T no more in this process; {remedy}");
    if CRASH.set(Crash { what, consequence }).is_ok() {
        notice::say(&crash().unwrap_or_default());
    }
}

impl std::fmt::Display for About<'_> {
    /// With a blank in front.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            About::Interface => Ok(()),
            About::Pvar(index, None) => write!(f, " for performance variable {index}"),
            About::Pvar(index, Some(name)) => {
                write!(f, " for {name} (performance variable {index})")
            }
            About::Cvar(index, None) => write!(f, " for control variable {index}"),
            About::Cvar(index, Some(name)) => write!(f, " for {name} (control variable {index})"),
            About::Category(index) => write!(f, " for category {index}"),
            About::Event(index) => write!(f, " for event {index}"),
            About::Source(index) => write!(f, " for source {index} of events"),
        }
    }
}

impl About<'_> {
    fn remedy(self) -> String {
        match self {
            About::Pvar(_, Some(name)) => format!("leave the variable out: GYAN_PVARS=-{name}"),
            About::Cvar(..) => "do without control variables: GYAN_CVARS_RECORD=none".into(),
            About::Event(_) | About::Source(_) => "do without events: unset GYAN_EVENTS".into(),
            About::Pvar(_, None) => {
                "gyan doctor --probe writes a file for GYAN_QUIRKS that leaves it out".into()
            }
            About::Category(_) | About::Interface => {
                "report it to the makers of the MPI library, or run without gyan: GYAN=off".into()
            }
        }
    }
}
