//! The run: what there is between the start of MPI and its end, and how each of them goes.

use std::cell::Cell;
use std::ffi::c_int;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gyan_results::{
    Call, Coverage, CvarSetting, End, Ending, Job as JobOfProfile, Moment, Overhead, Pvar,
    RANK_SCHEMA, RankProfile, Tool,
};

use crate::abi::{self, Library};
use crate::config::{Config, Notices};
use crate::job::{self, Job};
use crate::mpit::Mpit;
use crate::objects::Kind;
use crate::sampler::{self, Limits, Sampler};
use crate::table::Pointer;
use crate::{boundary, cvars, enable, listing, notice, output, references, store, unwinding};

/// The run between start and end. The lock also serialises gyan's calls of `MPI_T`.
static RUN: Mutex<Option<Run>> = Mutex::new(None);

thread_local! {
    /// This thread holds the run.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

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
    rank: u32,
    size: u32,
    thread_level: &'static str,
    cvars: Vec<CvarSetting>,
    sampler: Option<Sampler>,
    /// Why there is no sampler.
    without_sampler: Option<String>,
    /// What was read until an earlier end.
    earlier: Vec<Pvar>,
    /// Whether the user was told where the profiles are.
    told: bool,
    sampling: Duration,
    overhead: Overhead,
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
    if HOLDS.replace(true) {
        return;
    }
    if let Ok(mut slot) = RUN.lock()
        && let Some(run) = slot.as_mut()
    {
        work(run);
    }
    HOLDS.set(false);
}

impl Beginning {
    /// None when gyan stays off; then it has said why. `kept`: the reference to `MPI_T` that is
    /// held already; `earlier`: the run that goes on.
    pub(crate) fn new(late: bool, kept: Option<Mpit>, earlier: Option<&Run>) -> Option<Beginning> {
        let begun = Instant::now();
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
        let limits = Limits { elements: config.elements, objects: config.objects };
        let is_world = matches!(start, Start::World);
        if let Ok(Some(mpit)) = &mpit {
            enable::verify(mpit, &library, &mut config);
        }
        let sampler = match mpit {
            Ok(Some(mpit)) => {
                let selection = &mut config.pvars;
                Sampler::begin(mpit, &library, selection, early_names, limits, is_world)
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
            ..Overhead::default()
        };
        let run = match earlier {
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
                rank,
                size,
                thread_level,
                cvars,
                sampler,
                without_sampler,
                earlier: Vec::new(),
                told: false,
                sampling: Duration::ZERO,
                overhead,
            },
        };
        if let Ok(mut slot) = RUN.lock() {
            *slot = Some(run);
        }
        boundary::open(threaded);
    }
}

/// Whether any thread may call MPI, and the name of the level.
fn thread_level(library: &Library) -> (bool, &'static str) {
    let level = library.query_thread().and_then(|level| library.abi.thread_level(level));
    (level.is_none_or(|level| level == "MPI_THREAD_MULTIPLE"), level.unwrap_or("unknown"))
}

/// Ends the run, before MPI does. What is left for another start.
pub(crate) fn end_run() -> Option<Kept> {
    if HOLDS.get() {
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
            sampler.object_comes(library, &mut config.pvars, kind, handle);
        });
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
        self.sampled(|sampler, library, config| sampler.world_comes(library, &mut config.pvars));
    }

    /// The world model ends while sessions are in use.
    pub(crate) fn world_goes(&mut self) {
        self.sampled(|sampler, _, _| sampler.world_goes());
    }

    fn sampled(&mut self, work: impl FnOnce(&mut Sampler, &Library, &mut Config)) {
        let begun = Instant::now();
        // A forked child has the parent's run, and is not it.
        if self.job.pid == std::process::id()
            && let Some(sampler) = &mut self.sampler
        {
            work(sampler, &self.library, &mut self.config);
        }
        self.sampling += begun.elapsed();
    }

    /// Ends it and writes the profile. What is left for another start.
    fn end(mut self) -> Kept {
        let ended = Instant::now();
        let elapsed_s = ended.duration_since(self.begun).as_secs_f64();
        let mut warnings = self.config.warnings.clone();
        let (pvars, coverage, mpit) = match self.sampler.take() {
            Some(sampler) => {
                let selection = &mut self.config.pvars;
                let (pvars, coverage, mpit) = sampler.end(&self.library, selection);
                for warning in selection.unmatched() {
                    notice::say(&warning);
                    warnings.push(warning);
                }
                (pvars, coverage, mpit)
            }
            None => (Vec::new(), Coverage::default(), None),
        };
        self.take_in(pvars);
        warnings.extend(self.without_sampler.take());
        let calls = store::calls().into_iter().map(|calls| Call {
            name: calls.name.into(),
            count: calls.count,
            bytes: calls.bytes,
            ..Call::default()
        });
        let mut profile = RankProfile {
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
            end: End { how: Ending::Finalize, code: 0 },
            cvars: if self.rank == 0 { self.cvars.clone() } else { Vec::new() },
            pvars: self.earlier.clone(),
            calls: calls.collect(),
            in_mpi: None,
            phases: Vec::new(),
            series: None,
            clock: None,
            coverage,
            warnings,
            overhead: self.overhead.clone(),
        };
        let place = &self.job.place;
        let sampling_s = self.sampling.as_secs_f64();
        let finalize_s = self.overhead.finalize_s;
        let written = output::write(place, &mut profile, |overhead| {
            overhead.sampling_s = sampling_s;
            overhead.finalize_s = finalize_s + ended.elapsed().as_secs_f64();
            let own = overhead.init_s + overhead.sampling_s + overhead.finalize_s;
            overhead.share = own / elapsed_s;
        });
        match written {
            Err(error) => notice::say(&format!(
                "{}: the profile cannot be written: {error}; set GYAN_OUTPUT to a directory that \
                 can",
                place.directory.display()
            )),
            Ok(directory)
                if self.rank == 0 && self.config.notices == Notices::All && !self.told =>
            {
                self.told = true;
                let size = self.size;
                let ranks = if size == 1 { "rank" } else { "ranks" };
                let directory = directory.display();
                notice::say(&format!(
                    "profiles of {size} {ranks} in {directory}; show them with: gyan report \
                     {directory}"
                ));
            }
            Ok(_) => {}
        }
        self.overhead.finalize_s = profile.overhead.finalize_s;
        Kept { mpit, run: Some(self) }
    }

    /// Adds what was read to what was until an earlier end.
    fn take_in(&mut self, pvars: Vec<Pvar>) {
        for pvar in pvars {
            if !self.earlier.iter_mut().any(|earlier| earlier.continued(&pvar)) {
                self.earlier.push(pvar);
            }
        }
    }
}
