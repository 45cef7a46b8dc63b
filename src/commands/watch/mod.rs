//! `gyan watch`: what every rank of a running job is doing and how fast they go, look after look, until it has ended.

mod screen;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, io::IsTerminal, thread};

use gyan_results::{Doing, JobNow};

use crate::cli::{WatchOptions, parse_span};
use crate::document::plural;
use crate::error::Error;
use crate::hang::{self, PaceKeeper};
use crate::input::directory::{Directory, newest_running};
use crate::launch::keepers;
use crate::words::ranges;
use crate::{DONE, answers, output, render, say};

/// Between two looks on a terminal, and without one.
const APART: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));
/// More often, most ranks have nothing new.
const LEAST: Duration = Duration::from_secs(1);

pub(crate) fn watch(options: &WatchOptions) -> Result<u8, Error> {
    let interval = options.interval.as_deref().map(parse).transpose()?;
    let path = match &options.directory {
        Some(path) => path.clone(),
        None => newest_running("gyan watch")?,
    };
    wait_for(&path);
    let mut watcher = Watcher::of(path);
    // What is wrong at once is no look.
    let first = watcher.look()?;
    let is_terminal = std::io::stdout().is_terminal()
        && env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    if is_terminal {
        let path = watcher.path.clone();
        let last = screen::show(first, watcher, interval.unwrap_or(APART.0))?;
        if let Some(end) = last {
            print_end(&end, &path)?;
        }
        return Ok(DONE);
    }
    print_looks(first, watcher, interval.unwrap_or(APART.1))
}

/// Waits until a directory is there, unless there is no place for it.
fn wait_for(path: &Path) {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let has_place = || above.is_none_or(Path::is_dir);
    if path.exists() || !has_place() {
        return;
    }
    say::warn(format_args!(
        "{}: is not there yet; waiting for the run that makes it",
        path.display()
    ));
    while !path.exists() && has_place() {
        thread::sleep(LEAST);
    }
}

fn parse(text: &str) -> Result<Duration, Error> {
    parse_span(text).filter(|interval| *interval >= LEAST).ok_or_else(|| {
        let why = "no time of 1 s or more";
        Error::new(format!("--interval {text}"), why, "write a time such as 2s or 1m")
    })
}

enum Look {
    /// Nothing is known of any rank yet.
    Nothing,
    /// The ranks are running; what is shown of them.
    Running(Vec<u8>),
    Ended(JobEnd),
}

struct JobEnd {
    /// What is to be said of ranks that left no profile.
    shown: Vec<u8>,
    /// These ranks.
    gone: Vec<u32>,
}

struct Watcher {
    path: PathBuf,
    paces: PaceKeeper,
    /// Whether a rank was seen running.
    is_seen: bool,
}

impl Watcher {
    fn of(path: PathBuf) -> Watcher {
        Watcher { path, paces: PaceKeeper::default(), is_seen: false }
    }

    fn look(&mut self) -> Result<Look, Error> {
        keepers::write_now(&self.path);
        let directory = match Directory::open(&self.path) {
            Ok(directory) => directory,
            // With GYAN_LIVE, the directory goes with the run.
            Err(_) if self.is_seen && !self.path.exists() => {
                return Ok(Look::Ended(JobEnd::good()));
            }
            Err(error) => return Err(error),
        };
        let mut progress = Vec::new();
        let Some(now) = hang::with_progress(&directory, Some(&mut progress)) else {
            let has_ended = directory.has_ended() || self.is_seen;
            return Ok(if has_ended { Look::Ended(JobEnd::good()) } else { Look::Nothing });
        };
        let at = SystemTime::now();
        self.paces.look(progress);
        let silent = directory.silence();
        let view = answers::watched(&now, &self.paces, &silent, &self.path, at);
        let mut shown = Vec::new();
        render::table(&mut shown, &view)
            .map_err(|error| Error::new("gyan watch", error, "start it again"))?;
        if now.is_over {
            return Ok(Look::Ended(JobEnd { shown, gone: gone(&now) }));
        }
        self.is_seen = true;
        Ok(Look::Running(shown))
    }
}

impl JobEnd {
    fn good() -> JobEnd {
        JobEnd { shown: Vec::new(), gone: Vec::new() }
    }
}

/// Ranks that ended without `MPI_Finalize`: `hang` shows them as what they did last.
fn gone(now: &JobNow) -> Vec<u32> {
    let gone = now.ranks.iter().filter(|rank| rank.doing != Doing::Ended);
    gone.map(|rank| rank.rank).collect()
}

fn print_looks(first: Look, mut watcher: Watcher, interval: Duration) -> Result<u8, Error> {
    let mut look = first;
    loop {
        let at = humantime::format_rfc3339_seconds(SystemTime::now());
        match look {
            Look::Nothing => output::say(format_args!("{at}: {NOTHING}\n"))?,
            Look::Running(shown) => output::print(|out| {
                writeln!(out, "{at}")?;
                out.write_all(&shown)?;
                writeln!(out)
            })?,
            Look::Ended(end) => {
                print_end(&end, &watcher.path)?;
                return Ok(DONE);
            }
        }
        thread::sleep(interval);
        look = watcher.look()?;
    }
}

const NOTHING: &str = "nothing is known of the ranks yet";

fn print_end(end: &JobEnd, path: &Path) -> Result<(), Error> {
    let path = output::shell_word(&path.display().to_string());
    output::print(|out| {
        if end.gone.is_empty() {
            return writeln!(out, "The job has ended. What it did: gyan report {path}");
        }
        out.write_all(&end.shown)?;
        let (ranks, s) = (ranges(&end.gone), plural(end.gone.len() as u64));
        writeln!(
            out,
            "\nThe job has ended, rank{s} {ranks} without MPI_Finalize. What is known: gyan report {path}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_time_of_a_second_or_more() {
        assert_eq!(parse("2s").unwrap(), Duration::from_secs(2));
        assert_eq!(parse("90").unwrap(), Duration::from_secs(90));
        for wrong in ["0", "100ms", "often", ""] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--interval {wrong}: ")), "{error}");
        }
    }
}
