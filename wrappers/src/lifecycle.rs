//! Start and end of the run: `MPI_Init`, `MPI_Init_thread`, `MPI_Finalize`.
//!
//! The profiling names too, because Open MPI's Fortran bindings, and MPICH's `mpi_f08`, call those
//! and never the plain ones. Start and end are changes of one state, so it does not matter by how
//! many names one call comes through.

use std::ffi::{CStr, c_int};
use std::mem;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gyan_results::{
    Call, Coverage, CvarSetting, End, Ending, Job as JobOfProfile, Moment, Overhead, RANK_SCHEMA,
    RankProfile, Tool,
};

use crate::abi::Library;
use crate::config::{Config, Notices};
use crate::export::next_or_end;
use crate::job::{self, Job};
use crate::mpit::Mpit;
use crate::next::{Address, Next};
use crate::sampler::{self, Sampler};
use crate::table::{Function, Int, Pointer, environment};
use crate::{boundary, cvars, listing, notice, output, store, unwinding, weak_references};

/// Whether the run has started: the first initialisation that comes through wins.
static STARTED: AtomicBool = AtomicBool::new(false);

/// The run between start and end. The lock also serialises gyan's calls of `MPI_T`.
static RUN: Mutex<Option<Run>> = Mutex::new(None);

struct Run {
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
    overhead: Overhead,
}

/// What is known between the start of the initialisation and its end.
struct Beginning {
    config: Config,
    library: Library,
    mpit: Result<Option<Mpit>, String>,
    cvars: Vec<CvarSetting>,
    early_names: Vec<Option<String>>,
    late: bool,
    begun: Instant,
    own: Duration,
    mpit_init: Duration,
}

macro_rules! entry_points {
    ($($name:ident = $text:literal ($($arg:ident: $type:ident),*) $around:ident;)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[allow(non_snake_case)]
            extern "C-unwind" fn $name($($arg: $type),*) -> Int {
                static NEXT: Next = Next::new($text);
                // SAFETY: the prototype that the standard gives this function (MPI 4.1, 11.2).
                let next = unsafe {
                    mem::transmute::<Address, extern "C-unwind" fn($($type),*) -> Int>(
                        next_or_end(&NEXT),
                    )
                };
                $around!($text, next($($arg),*))
            }
        )*
    };
}

macro_rules! begin {
    ($text:literal, $forward:expr) => {
        initialised(function_of($text), || $forward)
    };
}

macro_rules! end {
    ($text:literal, $forward:expr) => {{
        end_run();
        boundary::uncounted(|| $forward)
    }};
}

entry_points! {
    MPI_Init = c"MPI_Init"(argc: Pointer, argv: Pointer) begin;
    PMPI_Init = c"PMPI_Init"(argc: Pointer, argv: Pointer) begin;
    MPI_Init_thread = c"MPI_Init_thread"(argc: Pointer, argv: Pointer, required: Int, provided: Pointer) begin;
    PMPI_Init_thread = c"PMPI_Init_thread"(argc: Pointer, argv: Pointer, required: Int, provided: Pointer) begin;
    MPI_Finalize = c"MPI_Finalize"() end;
    PMPI_Finalize = c"PMPI_Finalize"() end;
}

/// The function that a call by either of its names counts as.
fn function_of(name: &CStr) -> Function {
    match name.to_bytes() {
        b"MPI_Init_thread" | b"PMPI_Init_thread" => environment::MPI_Init_thread,
        _ => environment::MPI_Init,
    }
}

/// Around the real initialisation: `MPI_T` before it, handles after it.
fn initialised(function: Function, forward: impl FnOnce() -> c_int) -> c_int {
    if STARTED.swap(true, Ordering::Relaxed) {
        // Nested in another name of the same call, or a second initialisation, which is the
        // program's error and the library's to report.
        return boundary::uncounted(forward);
    }
    let beginning = boundary::contain("starting", || Beginning::new(false)).flatten();
    if let Some(beginning) = beginning.as_ref()
        && let Some(path) = &beginning.config.list
    {
        beginning.give_way_to_listing(path, forward);
    }
    let result = boundary::uncounted(forward);
    if result == 0
        && let Some(beginning) = beginning
    {
        store::count_alone(function);
        boundary::contain("starting", || beginning.start());
    } else {
        boundary::close();
    }
    result
}

/// At the first call that comes through without an initialisation having done so.
pub(crate) fn start_late() {
    if STARTED.swap(true, Ordering::Relaxed) {
        // Another thread is starting, or nothing will start.
        return;
    }
    let started = boundary::contain("starting late", || {
        let beginning = Beginning::new(true)?;
        beginning.start();
        Some(())
    });
    if started.flatten().is_none() {
        boundary::close();
    }
}

impl Beginning {
    /// None when gyan stays off; then it has said why.
    fn new(late: bool) -> Option<Beginning> {
        let begun = Instant::now();
        unwinding::prepare();
        let mut config = Config::from_env();
        if !config.on {
            return None;
        }
        if config.notices == Notices::None || !job::speaks_for_node() {
            notice::silence();
        }
        let library = match Library::find() {
            Ok(library) => library,
            Err(what) => {
                notice::say(&format!(
                    "{what}; gyan is off, because it knows the interfaces of Open MPI, of MPICH \
                     and of MPI 5 only"
                ));
                if config.list.is_some() {
                    listing::give_up();
                }
                return None;
            }
        };
        if late && !library.is_initialized() {
            return None;
        }
        weak_references::restore();
        let level = if late { library.query_thread() } else { None };
        let mut settings =
            if late { Vec::new() } else { cvars::set_environment(&library, &mut config) };
        let mpit_begun = Instant::now();
        let mpit = Mpit::init(&library, level.unwrap_or(library.abi.thread_multiple()));
        let mpit = mpit.map_err(|failure| failure.to_string());
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
    fn give_way_to_listing(&self, path: &Path, forward: impl FnOnce() -> c_int) -> ! {
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
    fn start(self) {
        let begun = Instant::now();
        let Beginning { mut config, library, mpit, cvars, early_names, late, .. } = self;
        let Some((rank, size)) = library.world() else {
            notice::say("MPI_COMM_WORLD was not found in the MPI library; gyan is off");
            boundary::close();
            return;
        };
        let level = library.query_thread().and_then(|level| library.abi.thread_level(level));
        let threaded = level.is_none_or(|level| level == "MPI_THREAD_MULTIPLE");
        let sampler = match mpit {
            Ok(Some(mpit)) => {
                let selection = &mut config.pvars;
                Sampler::begin(mpit, &library, selection, early_names, late)
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
            let text =
                "the start was missed: calls and readings before the first receive are missing";
            config.warnings.push(text.into());
        }
        for warning in &config.warnings {
            notice::say(warning);
        }
        let job = Job::of_this_process(&config);
        let overhead = Overhead {
            mpit_init_s: self.mpit_init.as_secs_f64(),
            init_s: (self.own + begun.elapsed()).as_secs_f64(),
            ..Overhead::default()
        };
        let run = Run {
            config,
            library,
            job,
            begun: self.begun,
            rank,
            size,
            thread_level: level.unwrap_or("unknown"),
            cvars,
            sampler,
            without_sampler,
            overhead,
        };
        if let Ok(mut slot) = RUN.lock() {
            *slot = Some(run);
        }
        boundary::open(threaded);
    }
}

/// Ends the run once, before the real `MPI_Finalize`.
fn end_run() {
    boundary::contain("ending", || {
        // Not waiting: whoever holds it is ending the run.
        let Ok(mut slot) = RUN.try_lock() else { return };
        let Some(run) = slot.take() else { return };
        drop(slot);
        boundary::close();
        // A forked child has the parent's run, and is not it.
        if run.job.pid == std::process::id() {
            run.end();
        }
    });
}

impl Run {
    fn end(mut self) {
        store::count_alone(environment::MPI_Finalize);
        let ended = Instant::now();
        let elapsed_s = ended.duration_since(self.begun).as_secs_f64();
        let mut warnings = mem::take(&mut self.config.warnings);
        let (pvars, coverage) = match self.sampler.take() {
            Some(sampler) => {
                let selection = &mut self.config.pvars;
                let result = sampler.end(&self.library, selection, self.config.elements);
                for warning in selection.unmatched() {
                    notice::say(&warning);
                    warnings.push(warning);
                }
                result
            }
            None => (Vec::new(), Coverage::default()),
        };
        warnings.extend(self.without_sampler.take());
        let calls = store::calls().into_iter();
        let mut profile = RankProfile {
            schema: RANK_SCHEMA.into(),
            tool: Tool::gyan(),
            job: JobOfProfile {
                id: mem::take(&mut self.job.id),
                command: mem::take(&mut self.job.command),
                started: mem::take(&mut self.job.started),
                elapsed_s,
            },
            rank: self.rank,
            size: self.size,
            host: mem::take(&mut self.job.host),
            pid: self.job.pid,
            mpi: self.library.described(self.thread_level),
            end: End { how: Ending::Finalize, code: 0 },
            cvars: if self.rank == 0 { mem::take(&mut self.cvars) } else { Vec::new() },
            pvars,
            calls: calls.map(|(name, count)| Call { name: name.into(), count }).collect(),
            coverage,
            warnings,
            overhead: mem::take(&mut self.overhead),
        };
        let directory = &self.job.directory;
        let written = output::write(directory, &mut profile, |overhead| {
            overhead.finalize_s = ended.elapsed().as_secs_f64();
            overhead.share = (overhead.init_s + overhead.finalize_s) / elapsed_s;
        });
        let directory = directory.display();
        if let Err(error) = written {
            notice::say(&format!(
                "{directory}: the profile cannot be written: {error}; set GYAN_OUTPUT to a \
                 directory that can"
            ));
        } else if self.rank == 0 && self.config.notices == Notices::All {
            let size = self.size;
            let ranks = if size == 1 { "rank" } else { "ranks" };
            notice::say(&format!(
                "profiles of {size} {ranks} in {directory}; show them with: gyan report {directory}"
            ));
        }
    }
}
