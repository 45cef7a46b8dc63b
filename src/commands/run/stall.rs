//! `gyan run --stall`: does the program go on? If it does not, that is said once, and the program is ended if asked.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use gyan_results::{JobNow, write_json};

use super::relative;
use crate::cli::{RunOptions, parse_span};
use crate::error::Error;
use crate::hang::{self, Stall};
use crate::input::directory::Directory;
use crate::launch::{keepers, wait};
use crate::words::seconds;
use crate::{output, say};

/// What is known when it stands still, in the run directory.
pub(super) const FILE: &str = "stall.json";
/// What `--stall-kill` alone means.
const SPAN: Duration = Duration::from_secs(60);
/// Less is not known for sure.
const AT_LEAST: Duration = Duration::from_secs(5);
/// How long the program may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// Looks take at most one part in so many of the time.
const PARTS: u32 = 50;

/// What the user asked for.
#[derive(Clone, Copy)]
pub(super) struct StallWatch {
    span: Duration,
    kills: bool,
}

pub(super) fn asked(options: &RunOptions) -> Result<Option<StallWatch>, Error> {
    let kills = options.stall_kill;
    let Some(text) = &options.stall else {
        return Ok(kills.then_some(StallWatch { span: SPAN, kills }));
    };
    let span = parse_span(text).filter(|span| *span >= AT_LEAST).ok_or_else(|| {
        let why = "no time of 5 s or more";
        Error::new(format!("--stall {text}"), why, "write a time such as 60s or 5m")
    })?;
    Ok(Some(StallWatch { span, kills }))
}

impl StallWatch {
    /// Looks now and then until `over` is closed. Returns whether the program was ended.
    pub(super) fn watch(self, directory: &Path, over: &Receiver<()>) -> bool {
        let least = (self.span / 10).clamp(Duration::from_secs(1), Duration::from_secs(5));
        let (mut pause, mut awake_ms, mut was_still) = (least, 0, false);
        let (started, mut is_warned) = (Instant::now(), false);
        loop {
            let slept = hang::ms_since_1970(SystemTime::now());
            if over.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return false;
            }
            // The machine was asleep, or this process stopped: so may the ranks have been.
            let late = u64::try_from((pause * 2).as_millis()).unwrap_or(u64::MAX);
            let now_ms = hang::ms_since_1970(SystemTime::now());
            if now_ms.saturating_sub(slept) > late {
                awake_ms = now_ms;
            }
            if !is_warned
                && started.elapsed() >= self.span
                && let Some(why) = hang::unseen(Directory::open(directory).ok().as_ref())
            {
                say::warn(format_args!("--stall cannot tell whether the job goes on: {why}"));
                is_warned = true;
            }
            let begun = Instant::now();
            let found = self.look(directory, awake_ms);
            if found.is_none() {
                pause = least.max(begun.elapsed() * PARTS);
            }
            // Twice, as what a keeper wrote may be old.
            match found {
                Some((now, stall)) if was_still => return self.tell(directory, &now, &stall),
                found => was_still = found.is_some(),
            }
        }
    }

    /// Only where a stall is likely, the keepers are asked for what they know.
    fn look(self, directory: &Path, awake_ms: u64) -> Option<(JobNow, Stall)> {
        let find = |look: fn(&Directory) -> Option<JobNow>| {
            let now = look(&Directory::open(directory).ok()?)?;
            let stall = hang::stall(&now, self.span, awake_ms)?;
            Some((now, stall))
        };
        find(hang::without_places)?;
        keepers::write_now(directory);
        find(hang::of_directory)
    }

    fn tell(self, directory: &Path, now: &JobNow, stall: &Stall) -> bool {
        let shown = relative(directory).display();
        let Stall { still_s, sentence } = stall;
        let time = seconds(*still_s);
        say::warn(format_args!(
            "the job has not gone on for {time}: {sentence}. What each rank does: gyan now {shown}"
        ));
        let file = directory.join(FILE);
        if let Err(error) = output::to_file(&file, true, |out| write_json(out, now)) {
            say::warn(error);
        }
        if self.kills {
            say::warn("--stall-kill: ending it by SIGTERM, and by SIGKILL what is left after 10 s");
            wait::end_program(GRACE);
        }
        self.kills
    }
}
