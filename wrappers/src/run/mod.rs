//! The run: the state between the start of MPI and its end, and how both proceed.

#[allow(unsafe_code)]
mod beginning;
mod cvars;
mod ending;
#[allow(unsafe_code)]
mod in_front;
#[allow(unsafe_code)]
mod keeper;
#[allow(unsafe_code)]
mod listing;
mod now;
mod snapshot;
mod surroundings;

pub(crate) use beginning::{Beginning, Start, say_memory_is_short};
#[cfg(test)]
pub(crate) use ending::in_mpi_together;
pub(crate) use ending::{aborts, end_run};
pub(crate) use snapshot::{is_snapshot_due, snapshot};

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use gyan_results::{End, Ending, Overhead, RankProfile};

use crate::calls::budget::budget;
use crate::calls::budget::objects::Cost;
use crate::calls::gate;
use crate::calls::ledger;
use crate::calls::sites;
use crate::calls::thread;
use crate::config::Config;
use crate::delivery::job::Job;
use crate::mpi::abi::Library;
use crate::mpi::handles::Kind;
use crate::mpi::tool::Mpit;
use crate::observe::communicators;
use crate::observe::phases::{self, Phases};
use crate::observe::pvars::{LastReading, Look, Sampler};
use crate::observe::recording::{self, PhasePass};
use crate::observe::timeline;
use crate::run::cvars::Recorded;
use crate::sys::alloc;
use crate::sys::cells::Counter;
use crate::sys::clock;
use crate::sys::guard;
use crate::sys::locks::lock_soon;
use ending::Earlier;
use snapshot::Snapshots;
use surroundings::Surroundings;

/// The time at which variables are sampled next.
static SAMPLE_DUE: Counter = Counter::new(u64::MAX);

/// How many samples and phase changes are guarded after the start or after the last object was created. Later
/// ones are not: the system calls for a guard take far longer than the readings, and the variables were already
/// read under guard when their handles were allocated.
const GUARDED_AT_FIRST: u32 = 16;

/// The run between start and end. The lock also serialises gyan's `MPI_T` calls.
static RUN: Mutex<Option<Run>> = Mutex::new(None);

pub(crate) struct Kept {
    /// The one reference to `MPI_T`.
    pub(crate) mpit: Option<Mpit>,
    pub(crate) run: Option<Run>,
}

pub(crate) struct Run {
    config: Config,
    library: Library,
    job: Job,
    begun: Instant,
    clock: clock::ClockReading,
    rank: u32,
    size: u32,
    thread_level: &'static str,
    cvars: Recorded,
    sampler: Option<Sampler>,
    /// Why there is no sampler.
    without_sampler: Option<String>,
    /// The names of the communicators that were alive at the last look.
    names: BTreeMap<usize, String>,
    surroundings: Surroundings,
    /// The readings up to an earlier end.
    earlier: Earlier,
    phases: Phases,
    snapshots: Snapshots,
    /// Whether the ranks should reduce their profiles themselves.
    reduces: bool,
    /// How many samples and phase changes there were since variables appeared, up to [`GUARDED_AT_FIRST`].
    samples: u32,
    change: ChangeCost,
    /// Whether the user was told where the profiles are.
    told: bool,
    /// When an end was last written.
    written: Option<Instant>,
    /// The profile of the latest end, if another was written not long before.
    unwritten: Option<Box<RankProfile>>,
    overhead: Overhead,
}

/// The known cost of a change of phase, in ticks: without reading variables and with it.
#[derive(Default)]
struct ChangeCost {
    without: f64,
    with_readings: f64,
}

/// Applies a closure to the run, if there is one and this thread does not already hold it.
pub(crate) fn with_run(work: impl FnOnce(&mut Run)) {
    holding(|| RUN.lock().ok(), work);
}

/// The same, if the run becomes free soon: another thread may hold it forever.
fn with_run_soon(work: impl FnOnce(&mut Run)) {
    holding(|| lock_soon(&RUN), work);
}

fn holding(
    lock: impl FnOnce() -> Option<MutexGuard<'static, Option<Run>>>,
    work: impl FnOnce(&mut Run),
) {
    if thread::here().holds_run.replace(true) {
        return;
    }
    if let Some(mut slot) = lock()
        && let Some(run) = slot.as_mut()
    {
        work(run);
    }
    thread::here().holds_run.set(false);
}

/// Whether to sample variables at a call at `now`.
#[inline]
pub(crate) fn is_sample_due(now: u64) -> bool {
    now >= SAMPLE_DUE.get()
}

/// Samples variables, unless another thread holds the run.
pub(crate) fn sample(now: u64) {
    holding(|| RUN.try_lock().ok(), |run| run.sample(now));
}

/// A callback of the program frees an object from inside MPI: locks of the library may be held, so nothing is read,
/// and a run that another thread holds is not waited for long. That thread may wait for those locks.
pub(crate) fn object_goes_inside_mpi(kind: Kind, handle: usize) {
    with_run_soon(|run| run.object_goes(kind, handle, LastReading::LeaveOut));
}

/// The program begins or ends a phase. Returns the ticks that it took, 0 where there is no run.
pub(crate) fn change_phase(change: phases::PhaseChange) -> f64 {
    let mut ticks = 0.0;
    with_run(|run| ticks = run.change_phase(change));
    ticks
}

/// Adds a warning to the profile.
pub(crate) fn warn(text: &str) {
    with_run(|run| run.config.warn_once(vec![text.to_owned()]));
}

/// Whether any thread may call MPI, and the name of the level.
fn thread_level(library: &Library) -> (bool, &'static str) {
    let level = library.query_thread().and_then(|level| library.abi.thread_level(level));
    (level.is_none_or(|level| level == "MPI_THREAD_MULTIPLE"), level.unwrap_or("unknown"))
}

impl Run {
    /// An object was created. `looks`: new variables may have come with it.
    pub(crate) fn object_comes(&mut self, kind: Kind, handle: usize, looks: bool) {
        let before = self.readings();
        if looks {
            let begun = clock::now();
            self.sampled(|of, library, config| of.look_again(library, &mut config.wanted));
            budget().spent(clock::now().wrapping_sub(begun));
        }
        let begun = clock::now();
        let Some(sampler) = &mut self.sampler else { return };
        let object = sampler.object_comes(&self.library, kind, handle, begun);
        if let Some(object) = &object {
            self.sampled(|sampler, library, config| {
                sampler.read_object(library, &mut config.wanted, object);
            });
        }
        let charge = if object.is_some() { Cost::came } else { Cost::passed_over };
        self.spent_on_object(kind, begun, charge);
        if self.readings() > before {
            self.sample_soon();
        }
    }

    /// An object is about to be freed.
    pub(crate) fn object_goes(&mut self, kind: Kind, handle: usize, last: LastReading) {
        if !self.sampler.as_ref().is_some_and(|sampler| sampler.follows(kind, handle)) {
            return;
        }
        let begun = clock::now();
        self.sampled(|sampler, _, _| sampler.object_goes(kind, handle, last));
        self.spent_on_object(kind, begun, Cost::went);
    }

    /// The time since `begun` was spent on an object.
    fn spent_on_object(&mut self, kind: Kind, begun: u64, charge: fn(&mut Cost, u64)) {
        let ticks = clock::now().wrapping_sub(begun);
        match self.sampler.as_mut().and_then(|sampler| sampler.cost_of(kind)) {
            Some(cost) => charge(cost, ticks),
            None => budget().spent(ticks),
        }
    }

    /// The world model is initialised while sessions are in use.
    pub(crate) fn world_comes(&mut self) {
        if let Some((rank, size)) = self.library.world() {
            (self.rank, self.size) = (rank, size);
            (_, self.thread_level) = thread_level(&self.library);
        }
        communicators::begin(self.library.handle(self.library.abi.comm_world));
        if self.config.peers {
            ledger::count_peers(self.size);
        }
        let begun = clock::now();
        self.sampled(|sampler, library, config| {
            sampler.world_comes(library, &mut config.wanted);
        });
        budget().spent(clock::now().wrapping_sub(begun));
        self.sample_soon();
    }

    /// The world model ends while sessions are in use.
    pub(crate) fn world_goes(&mut self) {
        self.reduces = false;
        communicators::end();
        let begun = clock::now();
        self.sampled(|sampler, _, _| sampler.world_goes());
        budget().spent(clock::now().wrapping_sub(begun));
    }

    /// Applies a closure to the sampler, under guard; none in a forked child, or without a sampler.
    fn sampled<T>(
        &mut self,
        work: impl FnOnce(&mut Sampler, &Library, &mut Config) -> T,
    ) -> Option<T> {
        if !self.is_of_this_process() {
            return None;
        }
        let sampler = self.sampler.as_mut()?;
        Some(guard::inside(|| work(sampler, &self.library, &mut self.config)))
    }

    /// A forked child has a copy of the parent's run, but does not own it.
    fn is_of_this_process(&self) -> bool {
        self.job.pid == std::process::id()
    }

    /// Whether the next reading during the run is guarded.
    fn guards(&mut self) -> bool {
        let guards = self.samples < GUARDED_AT_FIRST;
        self.samples += u32::from(guards);
        guards
    }

    fn sample(&mut self, now: u64) {
        // Sampling may take memory.
        if alloc::is_short() {
            SAMPLE_DUE.set(u64::MAX);
            return;
        }
        let guards = self.guards();
        if let Some(sampler) = &mut self.sampler {
            let due = guard::inside_if(guards, || sampler.sample(now));
            SAMPLE_DUE.set(if guard::is_off() { u64::MAX } else { due });
        }
    }

    /// There may be new variables to sample.
    fn sample_soon(&mut self) {
        self.samples = 0;
        if self.sampler.is_some() && !self.phases.is_off() {
            SAMPLE_DUE.set(0);
        }
    }

    /// The program begins or ends a phase, or calls `MPI_Pcontrol`. Returns the ticks that it took.
    fn change_phase(&mut self, change: phases::PhaseChange) -> f64 {
        if !self.is_of_this_process() {
            return 0.0;
        }
        let now = clock::now();
        if matches!(change, phases::PhaseChange::Level(2)) {
            self.write_so_far(End { how: Ending::Running, code: 0 }, Look::Whole);
            let ticks = clock::now().wrapping_sub(now);
            budget().spent(ticks);
            return ticks as f64;
        }
        if let Some(next) = self.phases.change(change) {
            let guards = self.guards();
            let read = self.sampler.as_mut().is_some_and(|sampler| {
                let change = || sampler.change_phase(now, next.phase, next.counts, next.must_read);
                guard::inside_if(guards, change)
            });
            let from = self.phases.current();
            let record = || {
                gate::phase_changes(|is_alone, thread| {
                    timeline::phase_changes(from, next.phase, now, is_alone, thread);
                });
            };
            recording::phase_changes(self.phases.name(next.phase), record, |pass| match pass {
                PhasePass::Begins => timeline::pass_begins(now),
                PhasePass::Ends => timeline::pass_ends(now),
            });
            self.phases
                .count(now, || self.surroundings.counter_reading(self.snapshots.has_keeper()));
            self.phases.go_on(next.phase, now, read);
            sites::resume(self.config.sites && !self.phases.is_off());
            if next.must_read {
                SAMPLE_DUE.set(if next.counts { 0 } else { u64::MAX });
            }
        }
        let reads = self.sampler.as_ref().is_some_and(|sampler| sampler.read_phase_at(now));
        let known = if reads { &mut self.change.with_readings } else { &mut self.change.without };
        budget().charge(known, clock::now().wrapping_sub(now))
    }
}
