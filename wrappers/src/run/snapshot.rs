//! Gives what is known so far to the keeper while the program runs, so that it survives if the process is
//! killed.

use std::io;
use std::path::Path;
use std::time::Instant;

use gyan_results::{End, Ending, HostCounters, RankProfile, TimelineHeader, timeline_file_name};

use super::beginning::begin_timeline;
use super::{RUN, Run, holding, now};
use crate::calls::budget::{self, budget};
use crate::config::Config;
use crate::delivery::keeper::{Keeper, TimelineMemory};
use crate::delivery::output;
use crate::delivery::reduce::MergedProfiles;
use crate::observe::pvars::Look;
use crate::observe::timeline;
use crate::sys::alloc;
use crate::sys::cells::Counter;
use crate::sys::clock;
use crate::sys::notice;

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
    /// The keeper makes the record of the site of what it has, once this process has ended.
    pub(super) is_left_to_keeper: bool,
}

impl Snapshots {
    /// Whether a keeper is there.
    pub(super) fn has_keeper(&self) -> bool {
        self.keeper.as_ref().is_some_and(Keeper::is_there)
    }
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
    /// written the keeper is still there. `threaded`: any thread may call MPI.
    pub(super) fn begin_keeping(&mut self, threaded: bool) {
        if let Some(site) = &self.config.site {
            // A run that ends before that leaves no record, and so costs no keeper.
            let ticks = clock::ticks(site.at_least.as_secs_f64());
            DUE.set(clock::now().saturating_add(clock::whole(ticks)));
            if self.unwritten.take().is_none() {
                self.snapshots.keeper = None;
            }
            return;
        }
        let timeline = begin_timeline(&mut self.config, &self.library, self.size, threaded);
        if self.unwritten.take().is_some() {
            if self.keeps() {
                self.snapshot_due();
            }
            return;
        }
        let before = self.snapshots.keeper.as_mut().and_then(Keeper::take_timeline);
        self.begin_keeper(timeline.or(before));
        if self.keeps() && self.take_snapshot(Look::Start) {
            self.snapshot_due();
        }
    }

    fn begin_keeper(&mut self, timeline: Option<TimelineMemory>) {
        let Config { keeper: wanted, crashes, write_timeout, .. } = self.config;
        let statics = now::statics(&self.library);
        let mut keeper =
            Keeper::begin(&self.job, self.rank, statics, wanted, crashes, timeline, write_timeout);
        self.config.warnings.extend(keeper.why_none().map(str::to_owned));
        if let Some(memory) = self.surroundings.energy_memory() {
            keeper.note_energy(memory);
        }
        self.snapshots.keeper = Some(keeper);
    }

    /// What the host counted.
    pub(super) fn host_counters(&mut self) -> Option<HostCounters> {
        self.surroundings.host_counters(self.snapshots.has_keeper())
    }

    /// The keeper, in a run of which the site gets a record; none if the run is too short for that so far, or there can be no
    /// keeper.
    fn keeper_for_record(&mut self, elapsed_s: f64) -> Option<&mut Keeper> {
        let site = self.config.site.as_ref()?;
        if elapsed_s < site.at_least.as_secs_f64() {
            return None;
        }
        if self.snapshots.keeper.is_none() {
            self.begin_keeper(None);
        }
        self.snapshots.keeper.as_mut()
    }

    /// Has the keeper write the record of the site, of a job whose ranks left these profiles.
    pub(super) fn record(&mut self, profiles: &MergedProfiles, elapsed_s: f64) {
        if let Some(keeper) = self.keeper_for_record(elapsed_s) {
            keeper.record(profiles);
        }
    }

    /// Leaves the last profile of this rank to the keeper, which makes a record of what the ranks of its host left.
    pub(super) fn leave_to_keeper(&mut self, profile: &mut RankProfile, asked: Option<Instant>) {
        if self.keeper_for_record(profile.job.elapsed_s).is_some() {
            self.snapshots.is_left_to_keeper = self.keep(profile, asked).is_ok();
        }
    }

    /// Whether what is known is kept while the program runs.
    fn keeps(&self) -> bool {
        self.snapshots.keeper.as_ref().is_some_and(Keeper::keeps)
    }

    fn snapshot(&mut self, now: u64) {
        DUE.set(u64::MAX);
        if !self.is_of_this_process() {
            return;
        }
        if self.snapshots.keeper.is_none() {
            self.begin_keeper(None);
            if self.keeps() && self.take_snapshot(Look::Start) {
                self.snapshot_due();
            }
            return budget().spent(clock::now().wrapping_sub(now));
        }
        if !self.take_snapshot(Look::Values) {
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
        let header = self.timeline_header(None);
        match &mut self.snapshots.keeper {
            Some(keeper) => {
                if let Some(header) = header.filter(|_| keeper.keeps()) {
                    keeper.keep_timeline(&header)?;
                }
                keeper.keep(profile)
            }
            None => Ok(()),
        }
    }

    /// What the events of the timeline mean; none if none are recorded.
    fn timeline_header(&self, ended: Option<Ending>) -> Option<TimelineHeader> {
        let mut header = timeline::described()?;
        header.clock.begun_ticks = self.clock.ticks();
        Some(TimelineHeader {
            job: self.job.id.clone(),
            rank: self.rank,
            size: self.size,
            host: self.job.host.clone(),
            pid: self.job.pid,
            ended,
            phases: self.phases.names(),
            ..header
        })
    }

    /// Writes the timeline, if calls are recorded: into `directory`, or where profiles go if that is not known.
    pub(super) fn write_timeline(&mut self, directory: Option<&Path>, ended: Ending) {
        let Some(header) = self.timeline_header(Some(ended)) else { return };
        let Some(keeper) = self.snapshots.keeper.as_mut() else { return };
        if let Err(error) = keeper.write_timeline(&self.job.place, directory, &header) {
            let name = timeline_file_name(self.rank);
            let directory = output::shown(directory.unwrap_or(&self.job.place.directory));
            notice::say(&format!(
                "{directory}/{name}: cannot be written: {error}; make room, or set GYAN_TIMELINE to a smaller size"
            ));
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
