//! What did every rank do when? The timelines of a run's ranks on one clock, and the traces that viewers read.
//!
//! Each rank's file is read twice: to know which sends belong to which receives, and to write its slices. Only as many ranks as
//! there are processors are in memory at a time.

mod arrows;
mod clocks;
#[cfg(test)]
mod fixture;
mod iterations;
mod messages;
mod path;
mod totals;
mod trace;
mod waits;
mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gyan_results::{
    TimelineClock, TimelineCommunicator, TimelineEvent, TimelineHeader, TimelineIteration,
    TimelineSelection, parse_timeline, rank_of_timeline_name, timeline_file_name,
};

use self::arrows::Arrows;
pub(crate) use self::clocks::ClockAlignment;
use self::clocks::HostClock;
use self::iterations::KeptIterations;
pub(crate) use self::iterations::RunIterations;
use self::messages::RankMessages;
pub(crate) use self::path::{PathKnowledge, RankOnPath, TimelinePath};
pub(crate) use self::totals::{FunctionWaits, TimelineWaits};
pub(crate) use self::trace::{TimelineCall, WrittenEvents};
use self::waits::Communicators;
pub(crate) use self::waits::WaitState;
pub(crate) use self::window::{TimelineWindow, WindowLimits, WindowRow, WindowSpan};
use crate::error::{Error, reason};
use crate::symbols::Symbols;

/// How many events of a rank say when its events were.
const SAMPLED_AT_MOST: usize = 1024;

/// What is known of a run before it is written.
pub(crate) struct Timelines {
    directory: PathBuf,
    /// The id of the job, as the first rank has it.
    job: Option<String>,
    pub(crate) ranks: Vec<u32>,
    hosts: Vec<String>,
    arrows: Arrows,
    /// What is added to times on a clock; none if it cannot be compared with the first one.
    clocks: BTreeMap<String, Option<HostClock>>,
    /// The number of the clock of each of `ranks`.
    clock_numbers: Vec<usize>,
    /// Whether the clocks of hosts go so differently that no numbers make all messages arrive after they were sent.
    clocks_drift: bool,
    communicators: Communicators,
    /// How many events were overwritten.
    pub(crate) lost: u64,
    /// The earliest time, in ns.
    origin_ns: i128,
    /// Some events of each rank, evenly spread: the rank's place in `ranks`, when the event began on its clock in ns, and for how many
    /// events it stands.
    sampled: Vec<(usize, u64, f64)>,
    /// What ended before this time, in ns from the origin, is left out.
    from_ns: u64,
    /// The lines of call sites, by file, build and address.
    places: HashMap<(String, Option<String>, u64), String>,
    /// Which part of the run was recorded, if not all of it.
    pub(crate) selection: Option<TimelineSelection>,
    /// The iterations that are shown; none if the latest calls are.
    pub(crate) iterations: Option<RunIterations>,
}

/// Which part of the run was recorded.
pub(crate) fn recorded(selection: &TimelineSelection) -> String {
    let mut text = String::from("recorded");
    if let Some([from, length]) = selection.window_s {
        let _ = write!(text, " for {length} s from {from} s after MPI_Init on");
    }
    if let Some(phase) = &selection.phase {
        let _ = write!(text, " inside of the phase {phase:?}");
    }
    text
}

fn ranks_in(directory: &Path) -> io::Result<BTreeSet<u32>> {
    let names =
        fs::read_dir(directory)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter_map(|name| rank_of_timeline_name(&name)).collect())
}

pub(crate) fn files_in(directory: &Path) -> Vec<PathBuf> {
    let ranks = ranks_in(directory).unwrap_or_default().into_iter();
    ranks.map(|rank| directory.join(timeline_file_name(rank))).collect()
}

/// Of files of more bytes it is not looked at all at once who waits for whom: when each message began takes up to a quarter of that in
/// memory.
pub(crate) const FILES_AT_MOST: u64 = 2 << 30;

/// How large the timelines in a directory are, in bytes.
pub(crate) fn files_bytes(directory: &Path) -> u64 {
    let files = files_in(directory).into_iter().filter_map(|file| file.metadata().ok());
    files.map(|file| file.len()).sum()
}

/// How many ranks are in memory at a time.
fn at_a_time() -> usize {
    rayon::current_num_threads()
}

/// What a communicator is called where it is shown.
fn communicator_name(communicator: &TimelineCommunicator) -> String {
    match communicator.name.as_str() {
        "" => format!("communicator of {} ranks", communicator.size),
        name => name.to_owned(),
    }
}

fn lost(header: &TimelineHeader, events: &[TimelineEvent]) -> u64 {
    header.recorded.saturating_sub(events.len() as u64)
}

/// Events of a rank that follow each other: those of an iteration, or all.
struct EventsPart<'a> {
    iteration: Option<&'a TimelineIteration>,
    events: &'a [TimelineEvent],
    /// How many earlier ones were overwritten.
    lost: u64,
}

impl EventsPart<'_> {
    /// When the first of the events began, in ticks.
    fn first(&self) -> Option<u64> {
        self.events.iter().map(|event| event.begun).min()
    }
}

fn parts<'a>(header: &'a TimelineHeader, events: &'a [TimelineEvent]) -> Vec<EventsPart<'a>> {
    let Some(iterations) = &header.iterations else {
        return vec![EventsPart { iteration: None, events, lost: lost(header, events) }];
    };
    let mut rest = events;
    let part = |iteration: &'a TimelineIteration| {
        let length = usize::try_from(iteration.events).unwrap_or(usize::MAX);
        let events = rest.split_off(..length).unwrap_or_default();
        EventsPart { iteration: Some(iteration), events, lost: iteration.lost }
    };
    iterations.kept.iter().map(part).collect()
}

/// How times of a rank become times of the run.
#[derive(Clone, Copy)]
struct RankClock<'a> {
    clock: &'a TimelineClock,
    host: HostClock,
    origin_ns: i128,
}

impl RankClock<'_> {
    /// A time in ticks, in ns after the first event of the run.
    fn ns(&self, ticks: u64) -> u64 {
        self.since_origin(self.clock.ns(ticks))
    }

    /// The same of a time in ns on the clock of the host.
    fn since_origin(&self, ns: u64) -> u64 {
        u64::try_from(self.host.on_first(ns) - self.origin_ns).unwrap_or(0)
    }
}

impl Timelines {
    /// Reads all timelines once. `bad`: those that cannot be read, and why.
    pub(crate) fn open(directory: &Path, bad: &mut Vec<String>) -> Result<Timelines, Error> {
        let ranks = ranks_in(directory)
            .map_err(|error| Error::io(directory, &error, "name the run directory"))?;
        let mut run = Timelines {
            directory: directory.to_owned(),
            job: None,
            ranks: Vec::new(),
            hosts: Vec::new(),
            arrows: Arrows::default(),
            communicators: Communicators::default(),
            lost: 0,
            clocks: BTreeMap::new(),
            clock_numbers: Vec::new(),
            clocks_drift: false,
            origin_ns: i128::MAX,
            sampled: Vec::new(),
            from_ns: 0,
            places: HashMap::new(),
            selection: None,
            iterations: None,
        };
        let mut symbols = Symbols::default();
        let (mut starts, mut clocks) = (Vec::new(), Vec::new());
        let mut kept = KeptIterations::default();
        for rank in ranks {
            let (header, events) = match run.read(rank) {
                Ok(read) => read,
                Err(error) => {
                    let name = timeline_file_name(rank);
                    bad.push(format!("{}: {}", directory.join(name).display(), reason(&error)));
                    continue;
                }
            };
            run.job.get_or_insert_with(|| header.job.clone());
            let lost = lost(&header, &events);
            run.arrows.add(&header, lost, &RankMessages::of(&header, &events));
            run.communicators.add(&header, lost);
            run.find_places(&header, &mut symbols);
            run.selection = run.selection.or(header.selection.clone());
            let each = events.len().div_ceil(SAMPLED_AT_MOST).max(1);
            let place = run.ranks.len();
            let times = events.iter().step_by(each).map(|event| header.clock.ns(event.begun));
            run.sampled.extend(times.map(|ns| (place, ns, each as f64)));
            kept.add(&header);
            for part in parts(&header, &events) {
                let first = header.clock.ns(part.first().unwrap_or(header.clock.now_ticks));
                starts.push((header.clock.host.clone(), part.iteration.copied(), first));
                run.lost += part.lost;
            }
            clocks.push(header.clock.host.clone());
            run.clocks.insert(header.clock.host.clone(), None);
            if !run.hosts.contains(&header.host) {
                run.hosts.push(header.host);
            }
            run.ranks.push(rank);
        }
        if run.ranks.is_empty() {
            let why = "holds no timelines (timeline-NNNNNN.bin)";
            let remedy = "record one: gyan run --timeline -- mpirun -n 4 ./app";
            return Err(Error::new(directory.display(), why, remedy));
        }
        run.arrows.choose();
        let number = |clock| run.clocks.keys().position(|known| known == clock);
        run.clock_numbers = clocks.iter().map(|clock| number(clock).unwrap_or_default()).collect();
        run.compare_clocks().map_err(|error| Error::io(directory, &error, "try again"))?;
        run.iterations = kept.chosen();
        run.communicators.have_iterations = run
            .iterations
            .as_ref()
            .is_some_and(|iterations| iterations.between.is_some() && !iterations.differ);
        let shown = starts.iter().filter(|(_, of, _)| run.shows(of.as_ref()));
        let begins = shown.map(|(clock, _, ns)| run.on_first_clock(clock, *ns));
        run.origin_ns = begins.min().unwrap_or(0);
        Ok(run)
    }

    fn read(&self, rank: u32) -> io::Result<(TimelineHeader, Vec<TimelineEvent>)> {
        let path = self.directory.join(timeline_file_name(rank));
        let (header, events) = parse_timeline(&gyan_results::read_regular(&path)?)?;
        if header.rank != rank {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "is of another rank"));
        }
        if self.job.as_ref().is_some_and(|job| *job != header.job) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "is of another job"));
        }
        Ok((header, events))
    }

    /// Whether a part of the events of a rank is shown.
    fn shows(&self, iteration: Option<&TimelineIteration>) -> bool {
        match (iteration, &self.iterations) {
            (Some(iteration), Some(iterations)) => iterations.name(iteration).is_some(),
            _ => true,
        }
    }

    fn on_first_clock(&self, clock: &str, ns: u64) -> i128 {
        self.clocks.get(clock).copied().flatten().unwrap_or_default().on_first(ns)
    }

    fn rank_clock<'a>(&self, header: &'a TimelineHeader) -> RankClock<'a> {
        let host = self.clocks.get(&header.clock.host).copied().flatten().unwrap_or_default();
        RankClock { clock: &header.clock, host, origin_ns: self.origin_ns }
    }

    /// Finds the lines of the call sites of a rank.
    fn find_places(&mut self, header: &TimelineHeader, symbols: &mut Symbols) {
        for (_, site) in &header.sites {
            let Some(object) = site.object.and_then(|at| header.load_map.get(at)) else { continue };
            let key = (object.path.clone(), object.build_id.clone(), site.address);
            self.places.entry(key).or_insert_with(|| {
                let id = object.build_id.as_deref();
                let frames = symbols.frames(&object.path, id, site.address);
                frames.first().map(crate::symbols::StackFrame::place).unwrap_or_default()
            });
        }
    }
}
