//! A program that gyan started and waits for: how do signals reach it, and how did it end?

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::processes::{descendants, signal_all, still_there};
use crate::error::Error;

/// How often to look whether a program that is to end has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// What signals mean now.
static STATE: Mutex<State> = Mutex::new(State { child: None, is_series: false, stopped_by: None });

struct State {
    /// The program that runs now.
    child: Option<Pid>,
    /// It is one of several, of which no more are started after a signal.
    is_series: bool,
    /// The first signal that came.
    stopped_by: Option<i32>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on programs run one after the other, until a signal comes: it ends the one that runs, and no other is
/// started.
pub(crate) fn begin_series() {
    state().is_series = true;
}

/// The signal that ended the series.
pub(crate) fn stopped_by() -> Option<i32> {
    state().stopped_by
}

/// No more programs are started: signals end gyan again.
pub(crate) fn end_series() {
    state().is_series = false;
}

/// Runs a command to its end. Signals to gyan end the command, not gyan.
pub(crate) fn run_and_wait(command: &mut Command) -> Result<ExitStatus, Error> {
    let program = Path::new(command.get_program()).to_owned();
    let failed = |error: std::io::Error| {
        Error::new(program.display(), crate::error::reason(&error), "run it without gyan")
    };
    // Caught before the program starts, so that no signal ends gyan before the report.
    catch_signals().map_err(failed)?;
    // A signal that comes before the child is known waits for the lock.
    let mut starting = state();
    if let Some(signal) = starting.stopped_by.filter(|_| starting.is_series) {
        return Err(Error::new(
            program.display(),
            format!("not started: signal {signal} came"),
            "run it again",
        ));
    }
    let mut child =
        command.spawn().map_err(|error| Error::io(&program, &error, "check the program"))?;
    let pid = Pid::from_child(&child);
    starting.child = Some(pid);
    drop(starting);
    // The process number is free for others once the child is waited for, so nobody signals it after this.
    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    state().child = None;
    child.wait().map_err(failed)
}

/// One handler for the process. Signals of the keyboard go to the whole process group, so the child has them already;
/// others are passed on to it.
fn catch_signals() -> std::io::Result<()> {
    static ONCE: Once = Once::new();
    if ONCE.is_completed() {
        return Ok(());
    }
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    ONCE.call_once(|| {
        thread::spawn(move || signals.forever().for_each(came));
    });
    Ok(())
}

fn came(signal: i32) {
    let mut state = state();
    state.stopped_by.get_or_insert(signal);
    let passed_on = match signal {
        SIGTERM => Some(rustix::process::Signal::TERM),
        SIGHUP => Some(rustix::process::Signal::HUP),
        _ => None,
    };
    match (state.child, passed_on) {
        // It may have ended at this moment.
        (Some(child), Some(signal)) => _ = kill_process(child, signal),
        (Some(_), None) => {}
        (None, _) if state.is_series => {}
        // The report is printed, or what follows it.
        (None, _) => _ = emulate_default_handler(signal),
    }
}

/// Ends the program that runs, and what it started here: it is asked to, and what is left after a while is killed.
pub(crate) fn end_program(patience: Duration) {
    let Some(child) = state().child else { return };
    let started = descendants(child);
    let tell_child = |signal| {
        let state = state();
        state.child.is_some_and(|child| kill_process(child, signal).is_ok())
    };
    let (begun, mut are_told) = (Instant::now(), false);
    tell_child(Signal::TERM);
    while begun.elapsed() < patience {
        thread::sleep(BETWEEN_LOOKS);
        if state().child.is_none() {
            if still_there(&started).is_empty() {
                return;
            }
            // A shell ends without its children.
            if !are_told {
                are_told = signal_all(&started, Signal::TERM);
            }
        }
    }
    tell_child(Signal::KILL);
    signal_all(&started, Signal::KILL);
}

/// How a program ended, in words.
pub(crate) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (_, Some(signal)) => format!("died of signal {signal}"),
        (Some(code), _) => format!("ended with code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
