//! The ranks of this host, as their keeper knows them: at which stage they are, and what it saw them do.

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gyan_results::{CrashSeen, RankNow};
use rustix::process::Pid;

use super::crash;
use super::messages::{Hello, LookAtRank};
use super::metrics::{MetricsState, RankFigures, RankMetrics};
use super::records;
use super::timeline;
use crate::sys::cgroups;
use crate::sys::locks::held;

/// A rank that has not moved for this time is news.
const STILL: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RankStage {
    /// It is running.
    Here,
    /// Its process ended without a profile: when, in milliseconds since 1970, and how, as wait(2) has it.
    Gone(u64, Option<c_int>),
    /// Its profile is written, or will not come.
    Done,
}

/// A rank of this host.
pub(super) struct Rank {
    pub(super) hello: Hello,
    /// None for a process that is not visible from here.
    pub(super) pid: Option<Pid>,
    pub(super) seen: Mutex<RankSeen>,
    pub(super) records: Mutex<Option<File>>,
    /// The memory in which it notes a crash.
    pub(super) crash: Mutex<Option<File>>,
    /// The memory of its timeline, and its header.
    pub(super) timeline: Mutex<Option<File>>,
    pub(super) timeline_header: Mutex<Option<File>>,
    /// Where the system counts processes that it kills for lack of memory, and whether this was one.
    pub(super) memory_kills: PathBuf,
    pub(super) out_of_memory: AtomicBool,
    /// What it noted there.
    pub(super) crashed: OnceLock<CrashSeen>,
    pub(super) stage: Mutex<RankStage>,
    /// The latest ones, if metrics are wanted: they outlive its records, as what is counted does not go back.
    pub(super) figures: Mutex<Option<RankFigures>>,
}

/// What the keeper saw a rank do.
pub(super) struct RankSeen {
    /// At the last look.
    stamp: Option<String>,
    /// When it was first so.
    since_ms: u64,
    /// None if it moved between the last two looks.
    now: Result<Option<RankNow>, String>,
    /// It has not moved for [`STILL`].
    is_still: bool,
}

impl Rank {
    pub(super) fn new(hello: Hello, pid: Option<Pid>, records: Option<File>) -> Rank {
        let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.as_raw_nonzero().to_string());
        let memory_kills = cgroups::memory_kills_file(Path::new("/"), &process);
        let seen = RankSeen { stamp: None, since_ms: 0, now: Ok(None), is_still: false };
        Rank {
            hello,
            pid,
            seen: Mutex::new(seen),
            records: Mutex::new(records),
            crash: Mutex::default(),
            timeline: Mutex::default(),
            timeline_header: Mutex::default(),
            memory_kills,
            out_of_memory: AtomicBool::new(false),
            crashed: OnceLock::new(),
            stage: Mutex::new(RankStage::Here),
            figures: Mutex::new(None),
        }
    }

    /// Its process has ended.
    pub(super) fn note_crash(&self) {
        let file = held(&self.crash).take();
        if let Some(seen) = file.as_ref().and_then(crash::seen) {
            let _ = self.crashed.set(seen);
        }
    }

    /// Its process has ended: writes its timeline, if it left one.
    pub(super) fn write_timeline(&self) -> Option<io::Result<()>> {
        let (memory, header) = (held(&self.timeline).take()?, held(&self.timeline_header).take()?);
        let place = self.hello.live.as_ref()?;
        Some(timeline::write_of_killed(&memory, &header, place))
    }

    /// Takes the figures of a profile that it wrote.
    pub(super) fn figures_of(&self, text: &[u8]) {
        let Some(found) = RankFigures::of_profile(text) else { return };
        let mut figures = held(&self.figures);
        *figures = Some(match figures.take() {
            Some(before) => before.then(&found),
            None => found,
        });
    }

    /// What it does, as metrics say it; none if nobody wants them.
    pub(super) fn metrics(&self) -> Option<RankMetrics> {
        let place = self.hello.metrics.clone()?;
        let record = held(&self.records).as_ref().and_then(|file| records::latest(file).ok()?);
        if let Some(record) = record {
            self.figures_of(&record);
        }
        let state = match *held(&self.stage) {
            RankStage::Here => held(&self.seen).state(),
            RankStage::Gone(..) => MetricsState::Gone,
            RankStage::Done => MetricsState::Ended,
        };
        let (job, figures) = (self.hello.job.clone(), held(&self.figures).clone());
        Some(RankMetrics { place, job, state, figures })
    }

    /// Looks at what it is doing. Returns whether that is news.
    pub(super) fn look(&self, look: &dyn LookAtRank) -> bool {
        let (Some(pid), Some(statics)) = (self.pid, &self.hello.statics) else { return false };
        let pid = pid.as_raw_nonzero().get();
        let stamp = look.stamp(pid, statics);
        let now_ms = now_ms();
        let mut seen = held(&self.seen);
        let was_still = seen.is_still;
        match stamp {
            // What it did last is what is known of a process that has just ended.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return false,
            Err(error) => {
                let is_new = seen.now.is_ok();
                seen.now = Err(why_not(&error));
                return is_new;
            }
            Ok(stamp) if stamp.is_none() || stamp != seen.stamp => {
                *seen = RankSeen { stamp, since_ms: now_ms, now: Ok(None), is_still: false };
            }
            Ok(_) if !matches!(seen.now, Ok(Some(_))) => {
                let since_ms = seen.since_ms;
                let told = look.tell(pid, statics).ok().flatten();
                seen.now = Ok(told.map(|now| RankNow { since_ms, ..now }));
            }
            Ok(_) => {
                seen.is_still =
                    Duration::from_millis(now_ms.saturating_sub(seen.since_ms)) >= STILL;
            }
        }
        was_still != seen.is_still
    }
}

pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// In words for a user.
fn why_not(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => "its memory may not be read: kernel.yama.ptrace_scope is not 0, or a container forbids it".into(),
        Some(libc::ENOSYS) => "its memory may not be read: the container forbids process_vm_readv".into(),
        _ => error.to_string(),
    }
}

impl RankSeen {
    fn state(&self) -> MetricsState {
        match &self.now {
            Err(_) => MetricsState::Unseen,
            Ok(_) if self.is_still => {
                let since = Duration::from_millis(now_ms().saturating_sub(self.since_ms));
                MetricsState::Still(since.as_secs_f64())
            }
            Ok(_) => MetricsState::Moving,
        }
    }

    /// What a live file says: that a rank moves again is news only if it was said to be still. `gone`: there is no more
    /// to come.
    pub(super) fn told(&self, gone: bool) -> Result<Option<RankNow>, String> {
        self.now.clone().map(|now| now.filter(|_| self.is_still || gone))
    }
}
