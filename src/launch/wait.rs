//! A program that gyan started and waits for: how do signals reach it, and how did it end?

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::Error;

/// Runs a command to its end. Signals to gyan end the command, not gyan.
pub(crate) fn run_and_wait(command: &mut Command) -> Result<ExitStatus, Error> {
    let program = Path::new(command.get_program()).to_owned();
    // Caught before the program starts, so that no signal ends gyan before the report.
    let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])
        .map_err(|error| Error::new("gyan run", error, "run the program without gyan"))?;
    let mut child =
        command.spawn().map_err(|error| Error::io(&program, &error, "check the program"))?;
    pass_on(signals, &child);
    child.wait().map_err(|error| Error::new(program.display(), error, "run it without gyan"))
}

/// Passes signals on to the child. The keyboard's go to the whole process group, so the child
/// has them already.
fn pass_on(mut signals: Signals, child: &Child) {
    let Some(child) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw)
    else {
        return;
    };
    thread::spawn(move || {
        for signal in signals.forever() {
            let signal = match signal {
                SIGTERM => rustix::process::Signal::TERM,
                SIGHUP => rustix::process::Signal::HUP,
                _ => continue,
            };
            // It may have ended at this moment.
            let _ = rustix::process::kill_process(child, signal);
        }
    });
}

/// How a program ended, in words.
pub(crate) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (_, Some(signal)) => format!("died of signal {signal}"),
        (Some(code), _) => format!("ended with code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
