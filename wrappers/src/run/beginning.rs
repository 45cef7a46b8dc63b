//! How does the run begin? The work before the real initialisation, and after it.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::path::Path;
use std::time::{Duration, Instant};

use gyan_results::{Moment, Overhead};

use super::ending::watch_exit;
use super::in_front;
use super::snapshot::Snapshots;
use super::surroundings::Surroundings;
use super::{ChangeCost, Earlier, RUN, Run, SAMPLE_DUE, thread_level};
use crate::calls::budget::{self, budget};
use crate::calls::containment::contain;
use crate::calls::gate;
use crate::calls::ledger;
use crate::calls::sites;
use crate::config::{Config, Notices};
use crate::delivery::job::{self, Job};
use crate::delivery::keeper::TimelineMemory;
use crate::delivery::reduce;
use crate::mpi::abi::{self, Library};
use crate::mpi::functions::Pointer;
use crate::mpi::libraries::monitoring;
use crate::mpi::libraries::quirks;
use crate::mpi::tool::Mpit;
use crate::observe::communicators;
use crate::observe::iterations;
use crate::observe::objects;
use crate::observe::openmp;
use crate::observe::pending;
use crate::observe::phases::Phases;
use crate::observe::pvars::{self, Limits, Sampler};
use crate::observe::recording;
use crate::observe::streams;
use crate::observe::timeline;
use crate::observe::waiting;
use crate::run::cvars::{self, Recorded};
use crate::run::listing;
use crate::sys::alloc;
use crate::sys::clock;
use crate::sys::counters;
use crate::sys::guard;
use crate::sys::notice;
use crate::sys::resources::Usage;
use crate::sys::symbols;
use crate::sys::unwind;
use crate::sys::weak_symbols;

/// State between the start of the initialisation and its end.
pub(crate) struct Beginning {
    pub(crate) config: Config,
    library: Library,
    pub(crate) mpit: Result<Option<Mpit>, String>,
    cvars: Recorded,
    early_names: Vec<Option<String>>,
    late: bool,
    begun: Instant,
    clock: clock::ClockReading,
    usage: Usage,
    own: Duration,
    mpit_init: Duration,
}

/// How MPI is initialised.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    World,
    /// The address of the session's handle.
    Session(Pointer),
}

impl Beginning {
    /// None when gyan stays off; it has then said why. `kept`: the reference to `MPI_T` that is already held;
    /// `earlier`: the run to continue.
    pub(crate) fn new(
        late: bool,
        by_session: bool,
        kept: Option<Mpit>,
        earlier: Option<&Run>,
    ) -> Option<Beginning> {
        let begun = Instant::now();
        let clock = clock::start();
        // Needed even if gyan stays off: its entry points exist.
        unwind::prepare();
        weak_symbols::restore();
        let mut config = Config::from_env();
        if !config.on || symbols::is_behind_another_gyan() {
            return None;
        }
        if config.site.as_ref().is_some_and(|site| !job::is_recorded(site)) {
            return None;
        }
        if earlier.is_some() {
            config.warnings.clear();
        }
        if config.notices == Notices::None || !job::speaks_for_node() {
            notice::silence();
        }
        let usage = Usage::now();
        let library = match Library::find() {
            Ok(library) => library,
            Err(what) => {
                notice::say(&format!(
                    "{what}; gyan is off; to build a libgyan.so for this MPI, in gyan's sources: \
                     MPICC=mpicc cargo build --release -p gyan-wrappers --features native"
                ));
                if config.list.is_some() {
                    listing::give_up();
                }
                return None;
            }
        };
        let level = if late {
            library.query_thread()
        } else {
            (by_session && quirks::session_keeps_level(library.implementation))
                .then(|| library.abi.thread_single())
        };
        let mut settings =
            if late { Vec::new() } else { cvars::set_environment(&library, &mut config) };
        let mpit_begun = Instant::now();
        let mpit = match kept {
            Some(mpit) => Ok(Some(mpit)),
            // Some libraries take hundreds of milliseconds to start it.
            None if config.site.is_some() => Ok(None),
            None => Mpit::init(&library, level.unwrap_or(library.abi.thread_multiple()))
                .map_err(|failure| failure.to_string()),
        };
        let mpit_init = mpit_begun.elapsed();
        if !is_memory_for(&mpit) {
            return None;
        }
        let early_names = match &mpit {
            Ok(Some(mpit)) if !late && config.list.is_none() => {
                guard::inside(|| pvars::early_names(mpit, &library, &config.wanted.exclusions))
            }
            _ => Vec::new(),
        };
        let cvars = match &mpit {
            // A listing reads everything itself, in forks that may die of it.
            Ok(Some(mpit)) if config.list.is_none() || !settings.is_empty() => {
                guard::inside(|| {
                    if late {
                        settings = cvars::check_late(mpit, &library, &mut config);
                    }
                    cvars::write_and_record(mpit, &library, &settings, &mut config)
                })
            }
            _ => Recorded::default(),
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
            usage,
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
                let earlier = contain("listing", || listing::early(&self.library, mpit));
                let code = gate::uncounted(forward);
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

    /// Starts the run, after MPI was initialised. `costs` measures the cost of a call, with the gate open.
    pub(crate) fn start(self, start: Start, earlier: Option<Run>, costs: fn() -> budget::Costs) {
        let begun = Instant::now();
        let Beginning { mut config, library, mpit, mut cvars, early_names, late, .. } = self;
        if !is_memory_for(&mpit) {
            say_memory_is_short();
            gate::stay_off();
            return;
        }
        let world = match start {
            Start::World => library.world(),
            Start::Session(session) => library.world_of_session(session),
        };
        let Some((rank, size)) = world else {
            notice::say("MPI_COMM_WORLD was not found in the MPI library; gyan is off");
            gate::stay_off();
            return;
        };
        abi::prepare_inquiry(&library);
        let (threaded, thread_level) = match start {
            Start::World => thread_level(&library),
            // Each session has a level of its own.
            Start::Session(_) => (true, "unknown"),
        };
        clock::calibrate(self.clock);
        let begun_at = earlier.as_ref().map_or(self.clock, |run| run.clock);
        let limits = limits(&config, begun_at);
        let is_world = matches!(start, Start::World);
        objects::begin(&library);
        communicators::begin(is_world.then(|| library.handle(library.abi.comm_world)).flatten());
        if is_world && config.peers {
            ledger::count_peers(size);
        }
        begin_timing(&config, is_world);
        if let Ok(Some(mpit)) = &mpit {
            check_settings(mpit, &library, &mut config, (!late).then_some(&mut cvars));
        }
        let reduces = is_world && !late && reduces(&mut config, size);
        let (sampler, without_sampler) = match guard::inside(|| {
            sampler_of(mpit, &library, &mut config, early_names, limits, is_world)
        }) {
            Ok(sampler) => (Some(sampler), None),
            Err(why) => (None, Some(why)),
        };
        say_warnings(&mut config, late, earlier.is_none());
        let overhead = Overhead {
            mpit_init_s: self.mpit_init.as_secs_f64(),
            budget: config.budget,
            ..Overhead::default()
        };
        budget().begin(config.budget, self.clock.ticks());
        let mut run = match earlier {
            Some(mut run) => {
                run.sampler = sampler;
                run.without_sampler = without_sampler;
                run.samples = 0;
                run.reduces = reduces;
                run.overhead.mpit_init_s += overhead.mpit_init_s;
                if is_world {
                    (run.rank, run.size, run.thread_level) = (rank, size, thread_level);
                }
                run
            }
            None => Run {
                // Without a world one cannot ask for a parent.
                job: Job::of_this_process(&config, is_world && library.is_spawned(), self.begun),
                surroundings: Surroundings::new(self.usage, config.machine, config.site.is_none()),
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
                names: BTreeMap::new(),
                earlier: Earlier::default(),
                phases: Phases::new(self.clock.ticks()),
                snapshots: Snapshots::default(),
                reduces,
                samples: 0,
                change: ChangeCost::default(),
                told: false,
                written: None,
                unwritten: None,
                overhead,
            },
        };
        run.overhead.init_s += (self.own + begun.elapsed()).as_secs_f64();
        watch_exit();
        SAMPLE_DUE.set(if run.sampler.is_some() { 0 } else { u64::MAX });
        if run.config.sites {
            sites::begin();
        }
        gate::open(threaded);
        let measuring = Instant::now();
        budget().learn(counters::forgetting(costs));
        run.begin_keeping(threaded);
        run.overhead.init_s += measuring.elapsed().as_secs_f64();
        if let Ok(mut slot) = RUN.lock() {
            *slot = Some(run);
        }
    }
}

/// From now on every call is recorded, if that is wanted and was not begun before. `ranks`: how many a communicator of all of them
/// has.
pub(super) fn begin_timeline(
    config: &mut Config,
    library: &Library,
    ranks: u32,
    threaded: bool,
) -> Option<TimelineMemory> {
    let bytes = config.timeline.filter(|_| !timeline::has_begun())?;
    #[allow(clippy::cast_possible_truncation)]
    let null = library.handle(library.abi.request_null).unwrap_or(0) as u32;
    if config.timeline_window.is_some() && config.timeline_slowest.take().is_some() {
        // Each rank opens the window by its own clock, so they would count other calls.
        let text =
            "GYAN_TIMELINE_SLOWEST: not with GYAN_TIMELINE_WINDOW; the latest calls are kept";
        notice::say(text);
        config.warnings.push(text.into());
    }
    let rings = config.timeline_slowest.map_or(1, iterations::rings);
    let memory = TimelineMemory::begin(bytes, rings, |memory, size| {
        // SAFETY: zeros of this size, which stay and are only for this.
        unsafe { timeline::begin(memory, size, rings, null) };
    });
    match memory {
        Ok(memory) => {
            let phase = config.timeline_phase.as_deref();
            if let Some(slowest) = config.timeline_slowest {
                iterations::begin(slowest, phase.is_none().then_some(ranks));
            }
            recording::begin(config.timeline_window, phase, config.timeline_slowest);
            gate::open(threaded);
            Some(memory)
        }
        Err(error) => {
            let text =
                format!("GYAN_TIMELINE: no memory of this size: {error}; no call is recorded");
            notice::say(&text);
            config.warnings.push(text);
            None
        }
    }
}

/// From now on the processor counts, and collectives, messages and parallel regions are timed, if that is wanted. `has_world`:
/// ranks of messages can be told.
fn begin_timing(config: &Config, has_world: bool) {
    if config.counters {
        counters::begin();
    }
    pending::begin(config.waiting);
    waiting::begin(config.waiting);
    streams::begin(config.waiting && has_world);
    openmp::begin(config.openmp);
}

/// Says what the user must know now. `first`: nothing was said before in this process.
fn say_warnings(config: &mut Config, late: bool, first: bool) {
    if late {
        let text = "the start was missed: calls and readings before the first call that gyan saw are \
                    missing";
        config.warnings.push(text.into());
    }
    for warning in &config.warnings {
        notice::say(warning);
    }
    if first && config.notices != Notices::None {
        // Not for the profile: what gyan did not see is known at the end.
        for warning in in_front::tools().iter().filter_map(in_front::Tool::at_start) {
            notice::say(&warning);
        }
    }
}

/// Whether what the user turned on is there, and what the library made of the `recorded` control variables.
fn check_settings(
    mpit: &Mpit,
    library: &Library,
    config: &mut Config,
    recorded: Option<&mut Recorded>,
) {
    let excluded = |index| config.wanted.exclusions.has_index(index);
    let missing = guard::inside(|| monitoring::verify(mpit, library, &config.enable, excluded));
    config.warn_once(missing);
    if let Some(recorded) = recorded {
        guard::inside(|| cvars::read_again(mpit, library, recorded, config));
    }
}

fn limits(config: &Config, begun: clock::ClockReading) -> Limits {
    let ticks = |interval: Duration| clock::whole(clock::ticks(interval.as_secs_f64()));
    Limits {
        elements: config.elements,
        objects: config.objects,
        series: config.series.map(|interval| (ticks(interval), config.series_bytes)),
        begun: begun.ticks(),
        events: config.events,
    }
}

/// Whether the ranks should reduce their profiles themselves, at the end.
fn reduces(config: &mut Config, size: u32) -> bool {
    reduce::is_to_be(config, size).unwrap_or_else(|why| {
        config.warnings.push(format!("GYAN_REDUCE: {why}: each rank writes a file"));
        false
    })
}

/// Whether there is memory for the variables of the library.
fn is_memory_for(mpit: &Result<Option<Mpit>, String>) -> bool {
    let mpit = mpit.as_ref().ok().and_then(Option::as_ref);
    let exported = || mpit.map_or(0, pvars::exported);
    alloc::is_enough_for(guard::inside(exported))
}

pub(crate) fn say_memory_is_short() {
    notice::say(
        "there is not enough memory for gyan to start: it is off for this run; raise the limit of \
         address space (ulimit -v)",
    );
}

/// The sampler of variables, or why there is none.
fn sampler_of(
    mpit: Result<Option<Mpit>, String>,
    library: &Library,
    config: &mut Config,
    early_names: Vec<Option<String>>,
    limits: Limits,
    is_world: bool,
) -> Result<Sampler, String> {
    let Some(mpit) = mpit? else {
        return Err(match config.site {
            Some(_) => "the site's settings leave variables out".into(),
            None => "the MPI library has no MPI_T interface (MPI 3.0)".into(),
        });
    };
    let wanted = &mut config.wanted;
    let mut sampler = Sampler::begin(mpit, library, wanted, early_names, limits, is_world)
        .map_err(|failure| failure.to_string())?;
    if let Some(watch) = &config.watch
        && let Err(why) = sampler.watch_receives(watch)
    {
        config.warnings.push(why);
    }
    for sentence in sampler.lacking() {
        notice::say(sentence);
    }
    Ok(sampler)
}
