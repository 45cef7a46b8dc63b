//! One run of the program, in a process group of its own and with a time limit. No process of it survives.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gyan_results::Assignment;
use rustix::process::{Pid, Signal, WaitOptions, getpid as own};

use crate::error::{Error, reason};
use crate::launch::launcher::{self, Launcher};
use crate::launch::preload::{library, preload};
use crate::launch::processes::{ProcessId, children};
use crate::launch::{keepers, wait::ending};

/// How often gyan checks whether a run has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// How long a launcher may take to end its ranks before gyan kills it.
const GRACE: Duration = Duration::from_secs(5);
/// How long gyan waits for the profiles of a run.
const KEEPERS: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) enum Ended {
    Well,
    /// In words.
    Badly(String),
    /// The user interrupted the tune.
    Interrupted,
}

/// Where the output of a run is, beside its profiles.
pub(super) fn output_of(directory: &Path, stream: &str) -> PathBuf {
    directory.with_extension(stream)
}

/// Runs the command with these settings; its profiles go to `directory`.
pub(super) fn run(
    launcher: Option<Launcher>,
    words: &[OsString],
    settings: &[Assignment],
    directory: &Path,
    limit: Option<Duration>,
    is_stopped: &AtomicBool,
) -> Result<(Ended, Duration), Error> {
    let failed = |error: &std::io::Error| Error::io(directory, error, "name another with -o");
    fs::create_dir_all(directory).map_err(|error| failed(&error))?;
    let cvars: Vec<String> = settings
        .iter()
        .filter(|setting| !setting.is_environment)
        .map(|setting| format!("{}={}", setting.name, setting.value))
        .collect();
    let mut variables: Vec<(String, OsString)> = vec![
        ("LD_PRELOAD".into(), preload(&library()?)),
        ("GYAN_OUTPUT".into(), directory.into()),
        ("GYAN_NOTICES".into(), "warnings".into()),
        // Each rank tells what it read back.
        ("GYAN_REDUCE".into(), "off".into()),
    ];
    if !cvars.is_empty() {
        variables.push(("GYAN_CVARS".into(), cvars.join(";").into()));
    }
    let environment = settings.iter().filter(|setting| setting.is_environment);
    variables.extend(environment.map(|setting| (setting.name.clone(), (&setting.value).into())));
    let mut command = launcher::command(launcher, words, &variables)?;
    let stream = |name| File::create(output_of(directory, name)).map_err(|error| failed(&error));
    let program = command.get_program().to_owned();
    command.process_group(0).stdin(input()).stdout(stream("stdout")?).stderr(stream("stderr")?);
    // Processes that outlive the launcher become children of this process, which ends them. If the kernel refuses that, only
    // the process group is ended.
    let _ = rustix::process::set_child_subreaper(Some(own()));
    // A shell that became gyan may have left children of its own.
    let others = children(own());
    let begun = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|error| Error::new(program.display(), reason(&error), "check the program"))?;
    let ended = watched(&mut child, begun, limit, is_stopped);
    let took = begun.elapsed();
    keepers::have_ended(directory, KEEPERS);
    end_what_is_left(&others);
    let ended = ended
        .map_err(|error| Error::new(program.display(), reason(&error), "run it without gyan"))?;
    Ok((ended, took))
}

/// The same input for each run: a file from its beginning, or nothing. A background process group may not read a terminal.
fn input() -> Stdio {
    let is_file = fs::metadata("/dev/stdin").is_ok_and(|input| input.is_file());
    let file = is_file.then(|| File::open("/dev/stdin").ok()).flatten();
    file.map_or_else(Stdio::null, Stdio::from)
}

fn watched(
    child: &mut Child,
    begun: Instant,
    limit: Option<Duration>,
    is_stopped: &AtomicBool,
) -> std::io::Result<Ended> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(how(status));
        }
        if is_stopped.load(Ordering::Relaxed) {
            end(child)?;
            return Ok(Ended::Interrupted);
        }
        if let Some(limit) = limit.filter(|limit| begun.elapsed() > *limit) {
            end(child)?;
            let limit = humantime::format_duration(Duration::from_secs(limit.as_secs()));
            return Ok(Ended::Badly(format!("still ran after {limit}, and was ended")));
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

fn how(status: ExitStatus) -> Ended {
    if status.success() { Ended::Well } else { Ended::Badly(ending(status)) }
}

/// Asks the launcher to end its ranks, then kills its whole process group.
fn end(child: &mut Child) -> std::io::Result<()> {
    let group = Pid::from_child(child);
    let _ = rustix::process::kill_process_group(group, Signal::TERM);
    let begun = Instant::now();
    while begun.elapsed() < GRACE {
        if child.try_wait()?.is_some() {
            break;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    // Ranks may have ignored the signal even if the launcher has ended.
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    child.wait().map(drop)
}

/// Kills the processes that outlived the run. They are children of this process now, beside the `others` that were
/// before the run.
fn end_what_is_left(others: &[ProcessId]) {
    loop {
        let mut is_any = false;
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        for child in children(own()).iter().filter(|child| !others.contains(child)) {
            is_any |= rustix::process::kill_process(child.pid, Signal::KILL).is_ok();
        }
        if !is_any {
            return;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}
