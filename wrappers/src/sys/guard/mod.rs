//! What if the MPI library crashes while gyan asks it something? Then gyan says in which call and at
//! which variable, never calls `MPI_T` again in this process, and the program goes on.
//!
//! Only library calls that gyan itself makes inside a [`GuardScope`] are guarded, and its writes to mapped files:
//! signal handlers are installed from the first such call in a scope to its end. Nothing that the program does
//! is affected, nor are signals with another cause ([`signals`]). The guard does not protect against a call
//! that hangs, or a library that corrupts memory.

mod function;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod signals;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "no_signals.rs"]
mod signals;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod trampoline;

pub(crate) use function::GuardedFunction;
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

/// The one crash: no call is made after it.
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

/// What crashed, the consequence and what the user can do; none when nothing crashed.
pub(crate) fn crash() -> Option<String> {
    CRASH.get().map(|Crash { what, consequence }| format!("{what}; {consequence}"))
}

/// While this lives, library calls that this thread makes with [`call`] are guarded.
pub(crate) struct GuardScope {
    is_outermost: bool,
    /// It belongs to this thread.
    _here: PhantomData<*const ()>,
}

/// The progress of a thread in its scope.
#[derive(Clone, Copy, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The value in a new thread.
    None = 0,
    /// It is in a scope and has called nothing yet.
    Wanted,
    /// The handlers are installed.
    Guarded,
}

impl GuardScope {
    fn enter() -> GuardScope {
        let stage = &here().stage;
        let is_outermost = stage.get() == Stage::None;
        if is_outermost {
            stage.set(Stage::Wanted);
        }
        GuardScope { is_outermost, _here: PhantomData }
    }
}

impl Drop for GuardScope {
    fn drop(&mut self) {
        if self.is_outermost && here().stage.replace(Stage::None) == Stage::Guarded {
            signals::restore();
        }
    }
}

thread_cells! {
    "gyan_guard"
    /// The guard's state for a thread.
    struct Guarding {
        /// Its progress in its scope.
        stage: Cell<Stage>,
        /// The guarded call of the library that it is in; null for none.
        call: Cell<*mut Record>,
    }
}

/// Does `work`, in which calls of the library are guarded.
pub(crate) fn inside<T>(work: impl FnOnce() -> T) -> T {
    let _scope = GuardScope::enter();
    work()
}

/// Does `work`, in which calls of the library are guarded when `guards`.
pub(crate) fn inside_if<T>(guards: bool, work: impl FnOnce() -> T) -> T {
    let _scope = guards.then(GuardScope::enter);
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
pub(crate) unsafe fn call<Arguments, F: GuardedFunction<Arguments>>(
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

/// Calls a function, guarded in a scope; returns the signal by which it crashed. For functions outside the
/// library: a crash has no consequences.
///
/// # Safety
/// As for `function` itself with these arguments; after a crash its frames are gone.
pub(crate) unsafe fn attempt<Arguments, F: GuardedFunction<Arguments>>(
    function: F,
    arguments: Arguments,
) -> Result<c_int, &'static str> {
    prepare();
    // SAFETY: the caller's promise.
    unsafe { signals::guarded(function, arguments) }
}

/// In a scope, what the first call would do: installs the handlers.
#[inline]
pub(crate) fn prepare() {
    let here = here();
    if here.stage.get() == Stage::Wanted && signals::install() {
        here.stage.set(Stage::Guarded);
    }
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
