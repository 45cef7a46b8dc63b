//! How does the run end? What is read for the last time, and what is written.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use gyan_results::{
    Class, Coverage, End, Ending, EventCount, InMpi, Job as JobOfProfile, Label, Messages,
    Overhead, PeerTraffic, Peers, PhasePvar, Pvar, RANK_SCHEMA, RankProfile, Series, Summary, Tool,
    unfold,
};

use super::in_front;
use super::snapshot;
use super::{Kept, RUN, Run, SAMPLE_DUE};
use crate::calls::budget::budget;
use crate::calls::containment::contain;
use crate::calls::gate;
use crate::calls::ledger;
use crate::calls::longjmp;
use crate::calls::sites;
use crate::calls::thread;
use crate::calls::together;
use crate::calls::traffic::Way;
use crate::config::{LabelSource, Notices, Reduce};
use crate::delivery::keeper::NotWritten;
use crate::delivery::output;
use crate::delivery::reduce::{self, MergedProfiles, Outcome, ReductionTarget};
use crate::observe::communicators;
use crate::observe::objects;
use crate::observe::openmp;
use crate::observe::phases::RunCalls;
use crate::observe::pvars::{Look, Readings, Sampler};
use crate::observe::receives;
use crate::observe::streams;
use crate::observe::timeline;
use crate::observe::waiting;
use crate::run::cvars::Recorded;
use crate::sys::adiak;
use crate::sys::alloc;
use crate::sys::at_exit;
use crate::sys::clock;
use crate::sys::guard;
use crate::sys::notice;

/// The readings up to an earlier end of MPI.
#[derive(Clone, Default)]
pub(super) struct Earlier {
    pvars: Vec<Pvar>,
    phases: Vec<(usize, PhasePvar)>,
    series: Option<Series>,
    /// For the latest run: earlier counts are not added.
    events: Vec<EventCount>,
    messages: Vec<Messages>,
    callbacks: u64,
}

/// A program that opens and closes its only session again and again has its profile written no more often, and when
/// it ends.
const ENDS_APART: Duration = Duration::from_secs(10);

/// Ends the run, before MPI does. Returns what another start needs. `is_last`: MPI cannot be started again in this
/// way.
pub(crate) fn end_run(is_last: bool) -> Option<Kept> {
    if thread::here().holds_run.get() {
        return None;
    }
    let run = RUN.lock().ok()?.take()?;
    gate::close();
    if run.is_of_this_process() { Some(run.end(is_last)) } else { None }
}

/// The program calls `MPI_Abort`, which does not return. `is_alone`: from the program itself, whose other threads
/// call no MPI. Otherwise locks may be held that reading variables would wait for.
pub(crate) fn aborts(code: i32, is_alone: bool) {
    let look = if is_alone { Look::Whole } else { Look::Nothing };
    super::with_run_soon(|run| {
        if run.is_of_this_process() {
            run.write_so_far(End { how: Ending::Abort, code }, look);
        }
    });
}

/// Writes the profile when the program ends with `exit`, or by returning from `main`, before MPI ends.
pub(super) fn watch_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| at_exit::call(exits));
}

extern "C-unwind" fn exits(code: c_int, _argument: *mut c_void) {
    contain("ending without MPI_Finalize", || {
        gate::settle();
        // This thread may be inside an MPI call that ends the process, or other threads in any call, with locks
        // that reading variables would wait for.
        let look = if gate::is_alone_in_program() { Look::Whole } else { Look::Nothing };
        super::with_run_soon(|run| {
            if run.is_of_this_process() {
                run.write_so_far(End { how: Ending::Exit, code }, look);
            }
        });
    });
}

impl Kept {
    /// Whether an end is still to be written.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.unwritten.is_some())
    }

    /// Writes it.
    pub(crate) fn write(&mut self) {
        if let Some(run) = &mut self.run {
            run.write_unwritten();
        }
    }
}

/// The traffic to each peer; none when that is not counted.
fn peers() -> Option<Peers> {
    let rows = |way| {
        let row = |(rank, number, bytes)| PeerTraffic { rank, number, bytes };
        ledger::peers(way).into_iter().map(row).collect()
    };
    ledger::counts_peers()
        .then(|| Peers { messages: rows(Way::Message), accesses: rows(Way::Access) })
}

/// Calls that were not timed may take this part of the time in MPI where it is to be known how much of it threads
/// spent there together.
const NOT_TIMED_AT_MOST: f64 = 0.1;

/// Seconds in which at least one of several threads was in MPI, of `ticks` of all threads; none when too few calls were
/// timed to tell.
pub(crate) fn in_mpi_together(ticks: f64, elapsed_s: f64) -> Option<f64> {
    let (timed, alone) = ledger::timed_ticks();
    // A thread that jumped out of a call seems to be still in it.
    let has_jumped = longjmp::described().is_some();
    let is_known = timed > 0.0 && timed >= (1.0 - NOT_TIMED_AT_MOST) * ticks && !has_jumped;
    // The others are assumed to be like these.
    let wall = || (alone + together::ticks(clock::now()) as f64) * (ticks / timed).max(1.0);
    is_known.then(|| clock::seconds(wall().min(ticks)).min(elapsed_s))
}

impl Run {
    /// Writes the profile as it is now.
    pub(super) fn write_so_far(&mut self, how: End, look: Look) {
        let asked = Instant::now();
        if !self.is_memory_enough() {
            return;
        }
        self.so_far(asked, how, look, |run, mut profile| _ = run.write(&mut profile, Some(asked)));
    }

    /// Applies a closure to the profile as of the moment `asked`.
    pub(super) fn so_far<T>(
        &mut self,
        asked: Instant,
        how: End,
        look: Look,
        work: impl FnOnce(&mut Run, RankProfile) -> T,
    ) -> T {
        if look == Look::Whole {
            self.ask_names();
        }
        let guards = look == Look::Whole || (look == Look::Values && self.guards());
        let readings = match &mut self.sampler {
            Some(sampler) => guard::inside_if(guards, || {
                sampler.so_far(look, &self.library, &mut self.config.wanted)
            }),
            None => Readings::default(),
        };
        let earlier = self.earlier.clone();
        let coverage = self.earlier.add(readings);
        let profile = self.profile(asked, coverage, how, Vec::new());
        let done = work(self, profile);
        self.earlier = earlier;
        done
    }

    /// Whether there is memory for a profile. If not, says that there will be none.
    fn is_memory_enough(&self) -> bool {
        let enough = alloc::is_enough_at_the_end_for(self.readings());
        if !enough {
            notice::say(&format!(
                "the profile of rank {} cannot be written: there is not enough memory; raise the \
                 limit of address space (ulimit -v)",
                self.rank
            ));
        }
        enough
    }

    /// How many readings of variables are stored.
    pub(super) fn readings(&self) -> usize {
        self.sampler.as_ref().map_or(0, Sampler::readings)
    }

    /// Asks for the names of communicators with hits of the watch.
    fn ask_names(&mut self) {
        if let Some(sampler) = self.sampler.as_ref().filter(|_| receives::is_on()) {
            self.names = sampler.names_of_comms();
        }
    }

    /// Ends it and writes the profile. Returns what another start needs.
    fn end(mut self, is_last: bool) -> Kept {
        SAMPLE_DUE.set(u64::MAX);
        communicators::end();
        openmp::end();
        let ended = Instant::now();
        if !self.is_memory_enough() {
            return Kept { mpit: None, run: None };
        }
        self.ask_names();
        self.surroundings.look_at_transports();
        receives::end();
        let mut warnings = Vec::new();
        let (readings, mpit) = match self.sampler.take() {
            Some(sampler) => {
                let wanted = &mut self.config.wanted;
                let (readings, mpit) = guard::inside(|| sampler.end(&self.library, wanted));
                for warning in wanted.unmatched() {
                    notice::say(&warning);
                    warnings.push(warning);
                }
                (readings, mpit)
            }
            None => (Readings::default(), None),
        };
        let coverage = self.earlier.add(readings);
        warnings.extend(self.without_sampler.take());
        let how = End { how: Ending::Finalize, code: 0 };
        let mut profile = self.profile(ended, coverage, how, warnings);
        // The others were told at the start.
        for tool in in_front::tools().iter().filter(|tool| tool.at_start().is_none()) {
            if let Some(warning) = tool.at_end(&profile.calls) {
                notice::say(&warning);
            }
        }
        let is_soon = self.written.is_some_and(|written| written.elapsed() < ENDS_APART);
        if self.reduces {
            self.reduce(&mut profile, ended);
        } else if is_soon && !is_last {
            self.measures(profile.job.elapsed_s, ended)(&mut profile.overhead);
        } else if let Some(directory) = self.write(&mut profile, Some(ended)) {
            self.tell("profiles", "them", &directory);
        }
        self.overhead.finalize_s = profile.overhead.finalize_s;
        if is_soon && !is_last {
            snapshot::pause();
            self.unwritten = Some(Box::new(profile));
        } else {
            self.written = Some(Instant::now());
            if self.snapshots.said.is_none() && !self.snapshots.is_left_to_keeper {
                self.end_keeping();
            }
        }
        Kept { mpit, run: Some(self) }
    }

    /// Writes the latest end, unless that was done.
    fn write_unwritten(&mut self) {
        if self.is_of_this_process()
            && let Some(mut profile) = self.unwritten.take()
        {
            self.write(&mut profile, None);
            self.end_keeping();
        }
    }

    /// Has the ranks reduce their profiles, and writes those that are not reduced.
    fn reduce(&mut self, profile: &mut RankProfile, ended: Instant) {
        // Anything from here on is not in the summary, so it must not be in the profile.
        self.measures(profile.job.elapsed_s, ended)(&mut profile.overhead);
        let wanted = self.config.reduce_profiles.clone();
        let (library, timeout) = (self.library.clone(), self.config.reduce_timeout);
        let mut target = TargetInRun { run: self, profile, directory: None };
        let mut all = target.profile.clone();
        // As from a file.
        _ = unfold(&mut all.pvars);
        let outcome = reduce::reduce(&library, all, &wanted, timeout, &mut target);
        let directory = target.directory;
        match (outcome, directory) {
            // Rank 0 has written its profile, too.
            (Outcome::Reduced { .. }, Some(directory)) => {
                self.tell("the summary", "it", &directory);
            }
            (Outcome::Reduced { keeps }, None) => {
                let writes = keeps || self.config.reduce == Reduce::Both;
                if writes && self.config.site.is_none() {
                    self.write(profile, None);
                } else {
                    self.write_timeline(None, profile.end.how);
                }
            }
            (Outcome::Failed(why), _) => {
                let text = format!("GYAN_REDUCE: {why}: each rank writes a file");
                if self.rank == 0 {
                    notice::say(&text);
                }
                profile.warnings.push(text);
                if let Some(directory) = self.write(profile, None) {
                    self.tell("profiles", "them", &directory);
                }
            }
        }
    }

    /// Says, once, where the files of the run are.
    fn tell(&mut self, what: &str, them: &str, directory: &Path) {
        if self.rank != 0 || self.config.notices != Notices::All || self.told {
            return;
        }
        self.told = true;
        let size = self.size;
        let ranks = if size == 1 { "rank" } else { "ranks" };
        let directory = output::shown(directory);
        notice::say(&format!(
            "{what} of {size} {ranks} in {directory}; show {them} with: gyan report {directory}"
        ));
    }

    /// The labels of a run that ends in this way.
    fn labels(&self, how: Ending) -> Vec<Label> {
        let mut labels = self.job.labels.clone();
        if how == Ending::Finalize && self.config.labels_from.contains(&LabelSource::Adiak) {
            let registered = contain("asking Adiak", adiak::names_and_values).unwrap_or_default();
            for (name, value) in registered {
                // What the user says comes first.
                if labels.iter().all(|label| label.name != name) {
                    labels.push(Label { name, value });
                }
            }
        }
        labels
    }

    /// The profile, at the moment `ended`.
    fn profile(
        &mut self,
        ended: Instant,
        mut coverage: Coverage,
        end: End,
        warnings: Vec<String>,
    ) -> RankProfile {
        clock::measure(self.clock);
        let elapsed_s = ended.duration_since(self.begun).as_secs_f64();
        let until = self.clock.ticks().wrapping_add(clock::whole(clock::ticks(elapsed_s)));
        self.phases
            .settle(until, || self.surroundings.counter_reading(self.snapshots.has_keeper()));
        let RunCalls { calls, time } = self.phases.calls();
        let clock = clock::described();
        let mut all = self.config.warnings.clone();
        all.extend(warnings);
        all.extend(guard::crash());
        all.extend(longjmp::described());
        let before = all.len();
        all.extend(in_front::tools().iter().filter_map(|tool| tool.at_end(&calls)));
        let sees_all = all.len() == before;
        if elapsed_s <= 0.0 {
            all.push("the clock went back: no time in this profile is right".into());
        }
        if alloc::is_short() {
            all.push(
                "memory ran out: variables that appeared later were not sampled, and functions \
                 first called later are not timed"
                    .into(),
            );
        }
        if clock.slow {
            let ns = clock.read_s * 1e9;
            all.push(format!("the clock is slow ({ns:.0} ns a reading): few calls are timed"));
        }
        if ledger::is_shared() {
            all.push(
                "more than 255 threads called MPI at a time: calls of the others are not timed"
                    .into(),
            );
        }
        coverage.objects.extend(waiting::left_out());
        coverage.objects.extend(streams::left_out());
        coverage.advice.extend(openmp::advice());
        let names = |comm| self.names.get(&comm).cloned();
        let watch = self.config.watch.as_ref().and_then(|_| receives::described(&names));
        let ends = end.how != Ending::Running;
        let host_counters = ends.then(|| self.host_counters()).flatten();
        let sites = self.config.sites.then(|| sites::described(&calls, ends)).flatten();
        let time_s = clock::seconds(time.total);
        let init = calls.iter().filter(|call| call.name.starts_with("MPI_Init"));
        // The counters begin after it.
        let since_init_s = (time_s - init.filter_map(|call| call.time_s).sum::<f64>()).max(0.0);
        let threads = ledger::threads();
        let wall_s = (threads > 1).then(|| in_mpi_together(time.total, elapsed_s)).flatten();
        let in_mpi = InMpi {
            time_s,
            time_error_s: time.error.map(clock::seconds),
            share: share(wall_s.unwrap_or(time_s), elapsed_s),
            threads,
            wall_s,
        };
        let Recorded { mut cvars, mut knobs } = self.cvars.clone();
        if self.rank != 0 {
            // One rank is enough for what is alike on all; whether all took what was asked for only they can tell.
            cvars.retain(|cvar| cvar.requested.is_some());
            knobs.clear();
        }
        RankProfile {
            schema: RANK_SCHEMA.into(),
            tool: Tool::gyan(),
            job: JobOfProfile {
                id: self.job.id.clone(),
                command: self.job.command.clone(),
                labels: self.labels(end.how),
                started: self.job.started.clone(),
                elapsed_s,
                known_until_s: None,
            },
            rank: self.rank,
            size: self.size,
            host: self.job.host.clone(),
            pid: self.job.pid,
            mpi: self.library.described(self.thread_level),
            end,
            cvars,
            knobs,
            objects_made: objects::made(),
            pvars: self.earlier.pvars.clone(),
            in_mpi: (sees_all && calls.iter().any(|call| call.timed > 0)).then_some(in_mpi),
            calls,
            peers: peers(),
            phases: self.phases.described(&self.earlier.phases),
            series: self.earlier.series.clone(),
            watch,
            machine: self.surroundings.machine(),
            resources: Some(self.surroundings.resources(since_init_s)),
            host_counters,
            sites,
            openmp: openmp::described(elapsed_s - self.overhead.start_s(), time.total),
            waiting: waiting::described(),
            message_times: streams::described(self.size),
            messages: self.earlier.messages.clone(),
            events: self.earlier.events.clone(),
            coverage,
            clock: Some(clock),
            warnings: all,
            overhead: self.overhead.clone(),
        }
    }

    /// A closure that fills in the overhead of a profile that covers this many seconds and was requested at the
    /// moment `asked`.
    pub(super) fn measures(
        &self,
        elapsed_s: f64,
        asked: Instant,
    ) -> impl FnOnce(&mut Overhead) + use<> {
        let sampling_s = clock::seconds(budget().beside() as f64);
        let finalize_s = self.overhead.finalize_s;
        let wrappers_s = clock::seconds(budget().wrappers(&ledger::ways()));
        let timeline_s = clock::seconds(timeline::ticks());
        let events_s = clock::seconds(self.earlier.callbacks as f64);
        move |overhead| {
            overhead.sampling_s = sampling_s;
            overhead.wrappers_s = wrappers_s;
            overhead.events_s = events_s;
            overhead.timeline_s = timeline_s;
            overhead.finalize_s = finalize_s + asked.elapsed().as_secs_f64();
            let running = overhead.sampling_s + overhead.wrappers_s + overhead.events_s;
            let all = overhead.init_s + running + timeline_s + overhead.finalize_s;
            overhead.share = share(all, elapsed_s);
            overhead.running_share = share(running, elapsed_s);
        }
    }

    /// Writes the profile. Returns its directory. `asked`: when it was requested, if its cost is not yet
    /// included.
    fn write(&mut self, profile: &mut RankProfile, asked: Option<Instant>) -> Option<PathBuf> {
        if self.config.site.is_some() {
            self.leave_to_keeper(profile, asked);
            return None;
        }
        let elapsed_s = profile.job.elapsed_s;
        let measure = asked.map(|asked| self.measures(elapsed_s, asked));
        let measure = |overhead: &mut Overhead| {
            if let Some(measure) = measure {
                measure(overhead);
            }
        };
        let ends = profile.end.how != Ending::Running;
        let keeper = self.snapshots.keeper.as_mut()?;
        match keeper.write(&self.job.place, profile, ends, measure) {
            Ok(written) => {
                if let Some(why) = written.why {
                    notice::say(&why);
                }
                if ends {
                    self.write_timeline(Some(&written.directory), profile.end.how);
                }
                Some(written.directory)
            }
            Err(failure) => {
                self.cannot_write(&failure);
                // In case it can be written after this process has ended.
                let _ = self.keep(profile, asked);
                None
            }
        }
    }

    /// Says, once, that nothing can be written to the directory of the profiles.
    fn cannot_write(&mut self, NotWritten { error, elsewhere }: &NotWritten) {
        let directory = output::shown(&self.job.place.directory);
        let what = if error.kind() == ErrorKind::TimedOut {
            let timeout = humantime::format_duration(self.config.write_timeout);
            format!("profiles are not written within {timeout} (GYAN_WRITE_TIMEOUT)")
        } else {
            let remedy = match error.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (ulimit -n)",
                Some(libc::EFBIG) => "raise the limit of a file's size (ulimit -f)",
                _ => "set GYAN_OUTPUT to a directory that can",
            };
            format!("profiles cannot be written: {error}; {remedy}")
        };
        let left = elsewhere.as_ref().and_then(|file| file.parent()).map(|directory| {
            let host = &self.job.host;
            format!("; those of host {host} are in {}", output::shown(directory))
        });
        let text = format!("{directory}: {what}{}", left.unwrap_or_default());
        if self.snapshots.said.as_ref() != Some(&text) {
            notice::say(&text);
            self.snapshots.said = Some(text);
        }
    }
}

/// Where the reduction writes its result.
struct TargetInRun<'a> {
    run: &'a mut Run,
    profile: &'a mut RankProfile,
    /// Where the summary is, on rank 0.
    directory: Option<PathBuf>,
}

impl ReductionTarget for TargetInRun<'_> {
    fn hand_over(&mut self, profiles: &MergedProfiles) -> bool {
        let is_for_site = self.run.config.site.is_some();
        if is_for_site {
            self.run.record(profiles, self.profile.job.elapsed_s);
        }
        is_for_site
    }

    fn write(&mut self, summary: &Summary) -> bool {
        let Some(directory) = self.run.write(self.profile, None) else { return false };
        let run = &mut *self.run;
        let Some(keeper) = &mut run.snapshots.keeper else { return false };
        if let Err(error) = keeper.write_summary(&run.job.place, &directory, summary) {
            run.cannot_write(&NotWritten { error, elsewhere: None });
            return false;
        }
        self.directory = Some(directory);
        true
    }

    /// The process may be killed while it waits.
    fn wait(&mut self) {
        let mut profile = self.profile.clone();
        profile.end = End { how: Ending::Running, code: 0 };
        // A failure to keep it is reported when the profile cannot be written.
        let _ = self.run.keep(&mut profile, None);
    }
}

/// An index of the rows of a list: by phase, name, class and object.
#[derive(Default)]
struct RowIndex(BTreeMap<(usize, String, &'static str, Option<String>), usize>);

impl RowIndex {
    /// The place of such a row; `next` for the first.
    fn place_of(
        &mut self,
        phase: usize,
        (name, class, object): (&str, Class, Option<&str>),
        next: usize,
    ) -> usize {
        let key = (phase, name.to_owned(), class.name(), object.map(str::to_owned));
        *self.0.entry(key).or_insert(next)
    }
}

/// The share of a whole; 0 when the clock went back.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Earlier {
    /// Adds the readings to those up to an earlier end.
    fn add(&mut self, readings: Readings) -> Coverage {
        let Readings { mut pvars, coverage, phases, series, told } = readings;
        self.events = told.events;
        self.messages = told.messages;
        self.callbacks = told.ticks;
        if !self.pvars.is_empty() {
            // What was alike may have differed since.
            _ = (unfold(&mut self.pvars), unfold(&mut pvars));
        }
        let mut known = RowIndex::default();
        for (place, pvar) in self.pvars.iter().enumerate() {
            known.place_of(0, pvar.identity(), place);
        }
        for pvar in pvars {
            let place = known.place_of(0, pvar.identity(), self.pvars.len());
            match self.pvars.get_mut(place) {
                Some(earlier) => _ = earlier.continued(&pvar),
                None => self.pvars.push(pvar),
            }
        }
        let mut known = RowIndex::default();
        for (place, (phase, pvar)) in self.phases.iter().enumerate() {
            known.place_of(*phase, pvar.identity(), place);
        }
        for (phase, pvar) in phases {
            let place = known.place_of(phase, pvar.identity(), self.phases.len());
            match self.phases.get_mut(place) {
                Some((_, earlier)) => _ = earlier.continued(&pvar),
                None => self.phases.push((phase, pvar)),
            }
        }
        match (&mut self.series, series) {
            (Some(series), Some(later)) => series.extend(&later),
            (series @ None, later) => *series = later,
            (Some(_), None) => {}
        }
        coverage
    }
}
