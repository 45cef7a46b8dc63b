//! `gyan run --stall`: does the program go on? If it does not, that is said once, and the program is ended if asked.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use gyan_results::{JobNow, write_json};

use super::relative;
use crate::cli::{RunOptions, parse_span};
use crate::error::Error;
use crate::hang::{self, STALL_FILE, Stall, Starting};
use crate::input::directory::Directory;
use crate::launch::{keepers, ranks, wait};
use crate::stacks::WhichThreads;
use crate::words::seconds;
use crate::{output, say};

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
        let (started, mut was_unseen, mut is_warned) = (Instant::now(), false, false);
        let mut start = StartWatch { since: started, in_init: BTreeSet::new(), is_said: false };
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
                start.in_init.clear();
            }
            let seen = Directory::open(directory).ok();
            if !hang::has_begun(seen.as_ref()) {
                match start.look(self, directory) {
                    Some((now, stall)) => return self.tell(directory, &now, &stall, ""),
                    None => continue,
                }
            }
            let why = seen.as_ref().and_then(hang::unseen);
            let why = why.filter(|_| !is_warned && started.elapsed() >= self.span);
            // Twice, as a job whose ranks have all called MPI_Finalize is about to end.
            if let Some(why) = why.as_ref().filter(|_| was_unseen) {
                say::warn(format_args!("--stall cannot tell whether the job goes on: {why}"));
                is_warned = true;
            }
            was_unseen = why.is_some();
            let begun = Instant::now();
            let found = self.look(directory, awake_ms);
            if found.is_none() {
                pause = least.max(begun.elapsed() * PARTS);
            }
            // Twice, as what a keeper wrote may be old.
            match found {
                Some((now, stall)) if was_still => {
                    let shown = relative(directory).display();
                    let more = format!(". What each rank does: gyan now {shown}");
                    return self.tell(directory, &now, &stall, &more);
                }
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

    /// `more`: how to learn more.
    fn tell(self, directory: &Path, now: &JobNow, stall: &Stall, more: &str) -> bool {
        let Stall { still_s, sentence } = stall;
        let time = seconds(*still_s);
        say::warn(format_args!("the job has not gone on for {time}: {sentence}{more}"));
        // No rank may have made it yet; what is wrong with it is said below.
        let _ = DirBuilder::new().recursive(true).mode(super::mode()).create(directory);
        let file = directory.join(STALL_FILE);
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

/// What was seen of a job of which no rank is known to have left `MPI_Init`.
struct StartWatch {
    /// The last look, or the start of the job.
    since: Instant,
    /// The ranks that were in it then.
    in_init: BTreeSet<u32>,
    is_said: bool,
}

impl StartWatch {
    /// Looks once a span, and says once what was seen. Returns that if the job is to be ended: a rank is in `MPI_Init`, as it was at
    /// the look before.
    fn look(&mut self, watch: StallWatch, directory: &Path) -> Option<(JobNow, Stall)> {
        if self.since.elapsed() < watch.span || self.is_said && !watch.kills {
            return None;
        }
        let since = std::mem::replace(&mut self.since, Instant::now());
        let jobs = ranks::jobs().into_iter();
        let mut jobs = jobs.filter(|job| job.output.as_deref() == Some(directory));
        let starting = jobs.next().map(|job| hang::starting(&job, WhichThreads::Main));
        keepers::write_now(directory);
        // It may have begun meanwhile.
        if hang::has_begun(Directory::open(directory).ok().as_ref()) {
            return None;
        }
        if !self.is_said {
            say_start(since.elapsed(), starting.as_ref());
            self.is_said = true;
        }
        let starting = starting?;
        let is_still = starting.is_known && !starting.in_init.is_disjoint(&self.in_init);
        let sentence = format!("no rank has left MPI_Init; {}", starting.sentence());
        self.in_init = starting.in_init;
        let still_s = since.elapsed().as_secs_f64();
        is_still.then_some((starting.now, Stall { still_s, sentence }))
    }
}

/// `time`: since the start of the job.
fn say_start(time: Duration, starting: Option<&Starting>) {
    let unknown =
        "--stall cannot tell whether the job goes on: no rank is known to have left MPI_Init";
    match starting {
        Some(starting) if starting.has_keeper => say::warn(format_args!(
            "after {}, no rank is known to have left MPI_Init: {}",
            seconds(time.as_secs_f64()),
            starting.sentence()
        )),
        Some(starting) => say::warn(format_args!(
            "{unknown}, as no keeper tells of all of them: {}",
            starting.sentence()
        )),
        None => say::warn(format_args!(
            "{unknown}: it hangs there or before, runs with GYAN_KEEPER=off, or is no MPI program"
        )),
    }
}
