//! Gives what is known so far to the keeper while the program runs, so that it survives if the process is
//! killed.

#![forbid(unsafe_code)]

use std::io;
use std::time::Instant;

use gyan_results::{End, Ending, RankProfile};

use super::{RUN, Run, holding, now};
use crate::calls::budget::{self, budget};
use crate::config::Config;
use crate::delivery::keeper::Keeper;
use crate::observe::pvars::Look;
use crate::sys::alloc;
use crate::sys::cells::Counter;
use crate::sys::clock;

/// The time of the next snapshot.
static DUE: Counter = Counter::new(u64::MAX);

/// The state for snapshots while a program runs.
#[derive(Default)]
pub(super) struct Snapshots {
    /// None before the first start.
    pub(super) keeper: Option<Keeper>,
    /// Ticks that keeping it takes.
    ticks: f64,
    /// What the user was told about files that cannot be written.
    pub(super) said: Option<String>,
}

/// Whether to take a snapshot at a call at `now`.
#[inline]
pub(crate) fn is_snapshot_due(now: u64) -> bool {
    now >= DUE.get()
}

/// Takes none until the next start.
pub(super) fn pause() {
    DUE.set(u64::MAX);
}

/// Takes a snapshot, unless another thread holds the run.
#[cold]
pub(crate) fn snapshot(now: u64) {
    holding(|| RUN.try_lock().ok(), |run| run.snapshot(now));
}

impl Run {
    /// Finds the keeper of this host, or starts it, and takes the first snapshot. After an end that was not
    /// written the keeper is still there.
    pub(super) fn begin_keeping(&mut self) {
        if self.unwritten.take().is_some() {
            if self.keeps() {
                self.snapshot_due();
            }
            return;
        }
        let Config { keeper: wanted, crashes, write_timeout, .. } = self.config;
        let statics = now::statics(&self.library);
        let keeper = Keeper::begin(&self.job, self.rank, statics, wanted, crashes, write_timeout);
        self.config.warnings.extend(keeper.why_none().map(str::to_owned));
        self.snapshots.keeper = Some(keeper);
        if self.keeps() && self.take_snapshot(Look::Start) {
            self.snapshot_due();
        }
    }

    /// Whether what is known is kept while the program runs.
    fn keeps(&self) -> bool {
        self.snapshots.keeper.as_ref().is_some_and(Keeper::keeps)
    }

    fn snapshot(&mut self, now: u64) {
        DUE.set(u64::MAX);
        if !self.is_of_this_process() || !self.take_snapshot(Look::Values) {
            return;
        }
        let ticks = clock::now().wrapping_sub(now) as f64;
        self.snapshots.ticks = budget::learned(self.snapshots.ticks, ticks);
        budget().spent(clock::whole(self.snapshots.ticks));
        self.snapshot_due();
    }

    fn snapshot_due(&self) {
        let apart = budget().between_snapshots(self.snapshots.ticks);
        DUE.set(clock::now().saturating_add(clock::whole(apart)));
    }

    /// Writes what is known. Returns whether that worked.
    fn take_snapshot(&mut self, look: Look) -> bool {
        // A failed allocation in the middle of it would end the process.
        if alloc::is_short() || !alloc::is_enough_for(self.readings()) {
            return false;
        }
        let asked = Instant::now();
        let how = End { how: Ending::Running, code: 0 };
        let kept =
            self.so_far(asked, how, look, |run, mut profile| run.keep(&mut profile, Some(asked)));
        if let Err(error) = &kept {
            let text = "what is known is no longer kept while the program runs";
            self.config.warnings.push(format!("{text}: {error}"));
        }
        kept.is_ok()
    }

    /// Keeps a profile in case the process is killed. `asked`: when it was requested, if its cost is not yet
    /// included.
    pub(super) fn keep(
        &mut self,
        profile: &mut RankProfile,
        asked: Option<Instant>,
    ) -> io::Result<()> {
        if let Some(asked) = asked {
            self.measures(profile.job.elapsed_s, asked)(&mut profile.overhead);
        }
        match &mut self.snapshots.keeper {
            Some(keeper) => keeper.keep(profile),
            None => Ok(()),
        }
    }

    /// Nothing more will come.
    pub(super) fn end_keeping(&mut self) {
        pause();
        if let Some(keeper) = &mut self.snapshots.keeper {
            keeper.end();
        }
    }
}
