//! What is known so far goes to the live file while the program runs, so that it is there when the process
//! is killed.

#![forbid(unsafe_code)]

use std::io;
use std::time::Instant;

use gyan_results::{End, Ending, RankProfile};

use super::{RUN, Run, holding};
use crate::calls::budget::{self, budget};
use crate::observe::pvars::Look;
use crate::profile::live::Live;
use crate::profile::output;
use crate::sys::alloc;
use crate::sys::cells::Whole;
use crate::sys::clock;
use crate::sys::notice;

/// The clock at which the live file is to be written next.
static DUE: Whole = Whole::new(u64::MAX);

/// What there is for the live file of a run.
#[derive(Default)]
pub(super) struct Snapshots {
    pub(super) live: Option<Live>,
    /// Ticks that writing it takes.
    ticks: f64,
    /// What the user was told of that which cannot be written.
    pub(super) said: Option<String>,
}

/// Whether the live file is to be written at a call at `now`.
#[inline]
pub(crate) fn is_snapshot_due(now: u64) -> bool {
    now >= DUE.get()
}

/// Writes the live file, unless another thread is at the run.
#[cold]
pub(crate) fn snapshot(now: u64) {
    holding(|| RUN.try_lock().ok(), |run| run.snapshot(now));
}

impl Run {
    /// Makes the live file, when the user wants one.
    pub(super) fn begin_live(&mut self) {
        if self.job.live.is_some() && self.take_snapshot() {
            self.snapshot_due();
        }
    }

    fn snapshot(&mut self, now: u64) {
        DUE.set(u64::MAX);
        if !self.is_of_this_process() || !self.take_snapshot() {
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

    /// Writes what is known. Whether that could be done.
    fn take_snapshot(&mut self) -> bool {
        // What cannot be had in the middle of it would end the process.
        if alloc::is_short() || !alloc::is_enough_for(self.readings()) {
            return false;
        }
        let (asked, begun) = (Instant::now(), clock::now());
        let how = End { how: Ending::Running, code: 0 };
        let kept = self.so_far(asked, how, Look::Values, |run, mut profile| {
            if run.snapshots.live.is_none() {
                // Most of what it will take, without the making of the file.
                run.snapshots.ticks = clock::now().wrapping_sub(begun) as f64;
            }
            run.keep(&mut profile, Some(asked))
        });
        if let Err(error) = &kept {
            self.has_no_live_file(error);
        }
        kept.is_ok()
    }

    /// Keeps a profile in the live file, in a larger one when it has no room. `asked`: when it was asked for,
    /// where what it cost is not in it yet.
    pub(super) fn keep(
        &mut self,
        profile: &mut RankProfile,
        asked: Option<Instant>,
    ) -> io::Result<()> {
        if let Some(asked) = asked {
            self.measures(profile.job.elapsed_s, asked)(&mut profile.overhead);
        }
        let Some(place) = &self.job.live else { return Ok(()) };
        if let Some(live) = &mut self.snapshots.live
            && live.write(&serde_json::to_vec(profile)?)?
        {
            return Ok(());
        }
        self.snapshots.live = Some(Live::begin(place, profile, self.snapshots.live.as_ref())?);
        Ok(())
    }

    /// The profile is complete: nobody needs the live file any more.
    pub(super) fn end_live(&mut self) {
        DUE.set(u64::MAX);
        if let Some(live) = self.snapshots.live.take() {
            live.remove();
        }
    }

    /// A disk that is full and a directory that cannot be written to are as bad for the profile. A file
    /// system that cannot map files is not.
    fn has_no_live_file(&mut self, error: &io::Error) {
        let Some(place) = &self.job.live else { return };
        let own_place = place.directory != self.job.place.directory;
        let cannot_map = matches!(
            error.raw_os_error(),
            Some(libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL | libc::ENOMEM)
        );
        let was_cut = error.kind() == io::ErrorKind::UnexpectedEof;
        if cannot_map || was_cut {
            let text = "what is known so far is not kept in a live file";
            self.config.warnings.push(format!("{text}: {error}"));
        } else if own_place {
            notice::say(&format!(
                "{}: the live file cannot be written: {error}; set GYAN_LIVE to a directory that can",
                output::shown(&place.directory)
            ));
        } else {
            self.cannot_write(error);
        }
    }
}
