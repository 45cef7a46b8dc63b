//! The run: what there is between the start of MPI and its end, and how each of them goes.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gyan_results::{
    Coverage, CvarSetting, End, Ending, InMpi, Job as JobOfProfile, Moment, Overhead, PhasePvar,
    Pvar, RANK_SCHEMA, RankProfile, Series, Tool,
};

use crate::abi::{self, Library};
use crate::config::{Config, Notices};
use crate::job::{self, Job};
use crate::mpit::Mpit;
use crate::number::Whole;
use crate::objects::Kind;
use crate::phases::{self, Phases};
use crate::sampler::{self, Findings, Limits, Sampler};
use crate::table::Pointer;
use crate::{
    boundary, clock, cvars, enable, export, governor, listing, notice, output, references, store,
    thread, unwinding,
};

/// The clock at which variables are to be sampled next.
static SAMPLE_DUE: Whole = Whole::new(u64::MAX);

/// Ticks that gyan spent reading variables in between.
static SAMPLING: Whole = Whole::new(0);

/// The run between start and end. The lock also serialises gyan's calls of `MPI_T`.
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
    clock: clock::Moment,
    rank: u32,
    size: u32,
    thread_level: &'static str,
    cvars: Vec<CvarSetting>,
    sampler: Option<Sampler>,
    /// Why there is no sampler.
    without_sampler: Option<String>,
    /// What was read until an earlier end.
    earlier: Earlier,
    phases: Phases,
    /// Whether the user was told where the profiles are.
    told: bool,
    overhead: Overhead,
}

/// What was read until an earlier end of MPI.
#[derive(Clone, Default)]
struct Earlier {
    pvars: Vec<Pvar>,
    phases: Vec<(usize, PhasePvar)>,
    series: Option<Series>,
}

/// What is known between the start of the initialisation and its end.
pub(crate) struct Beginning {
    pub(crate) config: Config,
    library: Library,
    pub(crate) mpit: Result<Option<Mpit>, String>,
    cvars: Vec<CvarSetting>,
    early_names: Vec<Option<String>>,
    late: bool,
    begun: Instant,
    clock: clock::Moment,
    own: Duration,
    mpit_init: Duration,
}

/// By what MPI is initialised.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    World,
    /// The address of the session's handle.
    Session(Pointer),
}

/// Does something with the run, if there is one and this thread is not at it already.
pub(crate) fn with_run(work: impl FnOnce(&mut Run)) {
    if thread::here().holds_run.replace(true) {
        return;
    }
    if let Ok(mut slot) = RUN.lock()
        && let Some(run) = slot.as_mut()
    {
        work(run);
    }
    thread::here().holds_run.set(false);
}

impl Beginning {
    /// None when gyan stays off; then it has said why. `kept`: the reference to `MPI_T` that is
    /// held already; `earlier`: the run that goes on.
    pub(crate) fn new(late: bool, kept: Option<Mpit>, earlier: Option<&Run>) -> Option<Beginning> {
        let begun = Instant::now();
        let clock = clock::start();
        // Also for a gyan that stays off: its entry points are there.
        unwinding::prepare();
        references::restore();
        let mut config = Config::from_env();
        if !config.on {
            return None;
        }
        if earlier.is_some() {
            config.warnings.clear();
        }
        if config.notices == Notices::None || !job::speaks_for_node() {
            notice::silence();
        }
        let library = match Library::find() {
            Ok(library) => library,
            Err(what) => {
                notice::say(&format!(
                    "{what}; gyan is off; to have a libgyan.so for this MPI, in gyan's sources: \
                     MPICC=mpicc cargo build --release -p gyan-wrappers --features native"
                ));
                if config.list.is_some() {
                    listing::give_up();
                }
                return None;
            }
        };
        let level = if late { library.query_thread() } else { None };
        let mut settings =
            if late { Vec::new() } else { cvars::set_environment(&library, &mut config) };
        let mpit_begun = Instant::now();
        let mpit = match kept {
            Some(mpit) => Ok(Some(mpit)),
            None => Mpit::init(&library, level.unwrap_or(library.abi.thread_multiple()))
                .map_err(|failure| failure.to_string()),
        };
        let mpit_init = mpit_begun.elapsed();
        let early_names = match &mpit {
            Ok(Some(mpit)) if !late && config.list.is_none() => {
                sampler::early_names(mpit, &library)
            }
            _ => Vec::new(),
        };
        let cvars = match &mpit {
            // A listing reads everything by itself, in forks that may die of it.
            Ok(Some(mpit)) if config.list.is_none() || !settings.is_empty() => {
                if late {
                    settings = cvars::check_late(mpit, &library, &mut config);
                }
                cvars::write_and_record(mpit, &library, &settings, &mut config)
            }
            _ => Vec::new(),
        };
        Some(Beginning {
            config,
            library,
            mpit,
            cvars,
            early_names,
            late,
            begun,
            clock,
            own: begun.elapsed().saturating_sub(mpit_init),
            mpit_init,
        })
    }

    /// The user asked for a listing instead of the run: it takes the place of the program.
    pub(crate) fn give_way_to_listing(&self, path: &Path, forward: impl FnOnce() -> c_int) -> ! {
        match &self.mpit {
            Ok(Some(mpit)) => {
                if self.config.list_before_init {
                    listing::take_over(&self.library, mpit, Moment::BeforeInit, None, path);
                }
                let earlier = boundary::contain("listing", || listing::early(&self.library, mpit));
                let code = boundary::uncounted(forward);
                if code != 0 {
                    notice::say(&format!("MPI_Init failed ({})", self.library.abi.error(code)));
                    listing::give_up();
                }
                let moment = Moment::AfterInit;
                listing::take_over(&self.library, mpit, moment, earlier.flatten(), path)
            }
            Ok(None) => notice::say("the MPI library has no MPI_T interface (MPI 3.0)"),
            Err(failure) => notice::say(failure),
        }
        listing::give_up()
    }

    /// Starts the run, after MPI was initialised.
    pub(crate) fn start(self, start: Start, earlier: Option<Run>) {
        let begun = Instant::now();
        let Beginning { mut config, library, mpit, cvars, early_names, late, .. } = self;
        let world = match start {
            Start::World => library.world(),
            Start::Session(session) => library.world_of_session(session),
        };
        let Some((rank, size)) = world else {
            notice::say("MPI_COMM_WORLD was not found in the MPI library; gyan is off");
            boundary::stay_off();
            return;
        };
        abi::prepare_inquiry(&library);
        let (threaded, thread_level) = match start {
            Start::World => thread_level(&library),
            // Each session has a level of its own.
            Start::Session(_) => (true, "unknown"),
        };
        clock::calibrate(self.clock);
        let limits = Limits {
            elements: config.elements,
            objects: config.objects,
            series: config
                .series
                .map(|interval| (whole(clock::ticks(interval.as_secs_f64())), config.series_bytes)),
            begun: earlier.as_ref().map_or(self.clock, |run| run.clock).ticks(),
        };
        let is_world = matches!(start, Start::World);
        if let Ok(Some(mpit)) = &mpit {
            enable::verify(mpit, &library, &mut config);
        }
        let sampler = match mpit {
            Ok(Some(mpit)) => {
                let wanted = &mut config.wanted;
                Sampler::begin(mpit, &library, wanted, early_names, limits, is_world)
                    .map_err(|failure| failure.to_string())
            }
            Ok(None) => Err("the MPI library has no MPI_T interface (MPI 3.0)".into()),
            Err(failure) => Err(failure),
        };
        let (sampler, without_sampler) = match sampler {
            Ok(sampler) => (Some(sampler), None),
            Err(why) => (None, Some(why)),
        };
        if late {
            let text = "the start was missed: calls and readings before the first call that gyan \
                        saw are missing";
            config.warnings.push(text.into());
        }
        for warning in &config.warnings {
            notice::say(warning);
        }
        let overhead = Overhead {
            mpit_init_s: self.mpit_init.as_secs_f64(),
            init_s: (self.own + begun.elapsed()).as_secs_f64(),
            budget: config.budget,
            ..Overhead::default()
        };
        governor::begin(config.budget, self.clock.ticks(), clock::ticks(overhead.init_s));
        let mut run = match earlier {
            Some(mut run) => {
                run.sampler = sampler;
                run.without_sampler = without_sampler;
                run.overhead.mpit_init_s += overhead.mpit_init_s;
                run.overhead.init_s += overhead.init_s;
                if is_world {
                    (run.rank, run.size, run.thread_level) = (rank, size, thread_level);
                }
                run
            }
            None => Run {
                // Without a world there is no parent to ask for.
                job: Job::of_this_process(&config, is_world && library.is_spawned()),
                config,
                library,
                begun: self.begun,
                clock: self.clock,
                rank,
                size,
                thread_level,
                cvars,
                sampler,
                without_sampler,
                earlier: Earlier::default(),
                phases: Phases::new(self.clock.ticks()),
                told: false,
                overhead,
            },
        };
        SAMPLE_DUE.set(if run.sampler.is_some() { 0 } else { u64::MAX });
        boundary::open(threaded);
        let measuring = Instant::now();
        governor::learn(export::costs());
        run.overhead.init_s += measuring.elapsed().as_secs_f64();
        if let Ok(mut slot) = RUN.lock() {
            *slot = Some(run);
        }
    }
}

/// Whole ticks. Not negative, and beyond 2^64 the largest there is.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(ticks: f64) -> u64 {
    ticks as u64
}

/// Whether variables are to be sampled at a call at `now`.
#[inline]
pub(crate) fn is_sample_due(now: u64) -> bool {
    now >= SAMPLE_DUE.get()
}

/// Samples variables, unless another thread is at the run.
pub(crate) fn sample(now: u64) {
    if thread::here().holds_run.replace(true) {
        return;
    }
    if let Ok(mut slot) = RUN.try_lock()
        && let Some(run) = slot.as_mut()
    {
        run.sample(now);
    }
    thread::here().holds_run.set(false);
}

/// So many ticks were spent reading variables at a call.
pub(crate) fn sampled(ticks: u64) {
    if governor::is_unlimited() {
        SAMPLING.add_shared(ticks);
    } else {
        spent(whole(governor::learn_sampling(ticks as f64)));
    }
}

/// So many ticks were spent reading variables.
fn spent(ticks: u64) {
    SAMPLING.add_shared(ticks);
    governor::spend(ticks as f64);
}

/// The program begins or ends a phase.
pub(crate) fn change_phase(change: phases::Change) {
    with_run(|run| run.change_phase(change));
}

/// Whether any thread may call MPI, and the name of the level.
fn thread_level(library: &Library) -> (bool, &'static str) {
    let level = library.query_thread().and_then(|level| library.abi.thread_level(level));
    (level.is_none_or(|level| level == "MPI_THREAD_MULTIPLE"), level.unwrap_or("unknown"))
}

/// Ends the run, before MPI does. What is left for another start.
pub(crate) fn end_run() -> Option<Kept> {
    if thread::here().holds_run.get() {
        return None;
    }
    let run = RUN.lock().ok()?.take()?;
    boundary::close();
    // A forked child has the parent's run, and is not it.
    if run.job.pid == std::process::id() { Some(run.end()) } else { None }
}

impl Run {
    /// An object has come.
    pub(crate) fn object_comes(&mut self, kind: Kind, handle: usize) {
        self.sampled(|sampler, library, config| {
            sampler.object_comes(library, &mut config.wanted, kind, handle);
        });
        self.sample_soon();
    }

    /// An object is about to go.
    pub(crate) fn object_goes(&mut self, kind: Kind, handle: usize) {
        self.sampled(|sampler, _, _| sampler.object_goes(kind, handle));
    }

    /// The world model is initialised while sessions are in use.
    pub(crate) fn world_comes(&mut self) {
        if let Some((rank, size)) = self.library.world() {
            (self.rank, self.size) = (rank, size);
            (_, self.thread_level) = thread_level(&self.library);
        }
        self.sampled(|sampler, library, config| {
            sampler.world_comes(library, &mut config.wanted);
        });
        self.sample_soon();
    }

    /// The world model ends while sessions are in use.
    pub(crate) fn world_goes(&mut self) {
        self.sampled(|sampler, _, _| sampler.world_goes());
    }

    fn sampled(&mut self, work: impl FnOnce(&mut Sampler, &Library, &mut Config)) {
        let begun = clock::now();
        if self.is_of_this_process()
            && let Some(sampler) = &mut self.sampler
        {
            work(sampler, &self.library, &mut self.config);
        }
        spent(clock::now().wrapping_sub(begun));
    }

    /// A forked child has the parent's run, and is not it.
    fn is_of_this_process(&self) -> bool {
        self.job.pid == std::process::id()
    }

    fn sample(&mut self, now: u64) {
        if let Some(sampler) = &mut self.sampler {
            SAMPLE_DUE.set(sampler.sample(now));
        }
    }

    /// There may be new variables to sample.
    fn sample_soon(&self) {
        if self.sampler.is_some() && !self.phases.is_off() {
            SAMPLE_DUE.set(0);
        }
    }

    /// The program begins or ends a phase, or calls `MPI_Pcontrol`.
    fn change_phase(&mut self, change: phases::Change) {
        if !self.is_of_this_process() {
            return;
        }
        let now = clock::now();
        let flushes = matches!(change, phases::Change::Level(2));
        if flushes {
            self.write_so_far();
        } else if let Some(next) = self.phases.change(change) {
            let read = self.sampler.as_mut().is_some_and(|sampler| {
                sampler.change_phase(now, next.phase, next.counts, next.must_read)
            });
            self.phases.go_on(next.phase, now, read);
            if next.must_read {
                SAMPLE_DUE.set(if next.counts { 0 } else { u64::MAX });
            }
        }
        spent(clock::now().wrapping_sub(now));
    }

    /// Writes the profile as it is now, for a program that asks for it.
    fn write_so_far(&mut self) {
        let asked = Instant::now();
        let findings = match &mut self.sampler {
            Some(sampler) => sampler.so_far(&self.library, &mut self.config.wanted),
            None => Findings::default(),
        };
        let earlier = self.earlier.clone();
        self.earlier.take_in(&findings);
        let how = End { how: Ending::Running, code: 0 };
        let mut profile = self.profile(asked, findings.coverage, how, Vec::new());
        self.earlier = earlier;
        self.write(&mut profile, asked);
    }

    /// Ends it and writes the profile. What is left for another start.
    fn end(mut self) -> Kept {
        SAMPLE_DUE.set(u64::MAX);
        let ended = Instant::now();
        let mut warnings = Vec::new();
        let (findings, mpit) = match self.sampler.take() {
            Some(sampler) => {
                let wanted = &mut self.config.wanted;
                let (findings, mpit) = sampler.end(&self.library, wanted);
                for warning in wanted.unmatched() {
                    notice::say(&warning);
                    warnings.push(warning);
                }
                (findings, mpit)
            }
            None => (Findings::default(), None),
        };
        self.earlier.take_in(&findings);
        warnings.extend(self.without_sampler.take());
        let how = End { how: Ending::Finalize, code: 0 };
        let mut profile = self.profile(ended, findings.coverage, how, warnings);
        let directory = self.write(&mut profile, ended);
        if let Some(directory) = directory
            && self.rank == 0
            && self.config.notices == Notices::All
            && !self.told
        {
            self.told = true;
            let size = self.size;
            let ranks = if size == 1 { "rank" } else { "ranks" };
            let directory = directory.display();
            notice::say(&format!(
                "profiles of {size} {ranks} in {directory}; show them with: gyan report {directory}"
            ));
        }
        self.overhead.finalize_s = profile.overhead.finalize_s;
        Kept { mpit, run: Some(self) }
    }

    /// The profile, at the moment `ended`.
    fn profile(
        &mut self,
        ended: Instant,
        coverage: Coverage,
        end: End,
        warnings: Vec<String>,
    ) -> RankProfile {
        clock::measure(self.clock);
        let elapsed_s = ended.duration_since(self.begun).as_secs_f64();
        self.phases.settle(self.clock.ticks().wrapping_add(whole(clock::ticks(elapsed_s))));
        let calls = self.phases.calls();
        let clock = clock::described();
        let mut all = self.config.warnings.clone();
        all.extend(warnings);
        if clock.slow {
            let ns = clock.read_s * 1e9;
            all.push(format!("the clock is slow ({ns:.0} ns a reading): few calls are timed"));
        }
        if store::is_shared() {
            all.push("more than 255 threads called MPI: calls of the others are not timed".into());
        }
        let timed = calls.iter().filter_map(|call| Some((call.time_s?, call.time_error_s?)));
        let (time_s, variance) = timed.fold((0.0, 0.0), |(time, variance), (time_s, error_s)| {
            (time + time_s, variance + error_s * error_s)
        });
        let in_mpi = InMpi { time_s, time_error_s: variance.sqrt(), share: time_s / elapsed_s };
        RankProfile {
            schema: RANK_SCHEMA.into(),
            tool: Tool::gyan(),
            job: JobOfProfile {
                id: self.job.id.clone(),
                command: self.job.command.clone(),
                started: self.job.started.clone(),
                elapsed_s,
            },
            rank: self.rank,
            size: self.size,
            host: self.job.host.clone(),
            pid: self.job.pid,
            mpi: self.library.described(self.thread_level),
            end,
            cvars: if self.rank == 0 { self.cvars.clone() } else { Vec::new() },
            pvars: self.earlier.pvars.clone(),
            in_mpi: calls.iter().any(|call| call.timed > 0).then_some(in_mpi),
            calls,
            phases: self.phases.described(&self.earlier.phases),
            series: self.earlier.series.clone(),
            coverage,
            clock: Some(clock),
            warnings: all,
            overhead: self.overhead.clone(),
        }
    }

    /// Writes the profile. The directory in which it is.
    fn write(&self, profile: &mut RankProfile, ended: Instant) -> Option<PathBuf> {
        let place = &self.job.place;
        let sampling_s = clock::seconds(SAMPLING.get() as f64);
        let finalize_s = self.overhead.finalize_s;
        let (calls, timed) = store::numbers();
        let wrappers_s = clock::seconds(governor::wrappers(calls.saturating_sub(timed), timed));
        let elapsed_s = profile.job.elapsed_s;
        let written = output::write(place, profile, |overhead| {
            overhead.sampling_s = sampling_s;
            overhead.wrappers_s = wrappers_s;
            overhead.finalize_s = finalize_s + ended.elapsed().as_secs_f64();
            let running = overhead.sampling_s + overhead.wrappers_s + overhead.finalize_s;
            overhead.share = (overhead.init_s + running) / elapsed_s;
            overhead.running_share = running / elapsed_s;
        });
        if let Err(error) = &written {
            notice::say(&format!(
                "{}: the profile cannot be written: {error}; set GYAN_OUTPUT to a directory that \
                 can",
                place.directory.display()
            ));
        }
        written.ok()
    }
}

impl Earlier {
    /// Adds what was read to what was until an earlier end.
    fn take_in(&mut self, findings: &Findings) {
        for pvar in &findings.pvars {
            if !self.pvars.iter_mut().any(|earlier| earlier.continued(pvar)) {
                self.pvars.push(pvar.clone());
            }
        }
        for (phase, pvar) in &findings.phases {
            let known = self.phases.iter_mut().filter(|(known, _)| known == phase);
            if !known.into_iter().any(|(_, earlier)| earlier.continued(pvar)) {
                self.phases.push((*phase, pvar.clone()));
            }
        }
        match (&mut self.series, &findings.series) {
            (Some(series), Some(later)) => series.extend(later),
            (series @ None, later) => series.clone_from(later),
            (Some(_), None) => {}
        }
    }
}
