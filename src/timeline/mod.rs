//! What did every rank do when? The timelines of a run's ranks on one clock, and the traces that viewers read.
//!
//! Each rank's file is read twice: to know which sends belong to which receives, and to write its slices. Only as many ranks as
//! there are processors are in memory at a time.

mod chrome;
mod iterations;
mod messages;
mod perfetto;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gyan_results::{
    ClockOffsets, MessageDirection, TimelineCommunicator, TimelineEvent, TimelineHeader,
    TimelineIteration, TimelineKind, TimelinePeer, TimelineSelection, parse_timeline,
    rank_file_name, rank_of_timeline_name, read_rank, timeline_file_name,
};
use rayon::prelude::*;

use self::chrome::ChromeEvents;
use self::iterations::KeptIterations;
pub(crate) use self::iterations::RunIterations;
use self::messages::{Arrows, RankMessages};
use self::perfetto::Packets;
use crate::error::{Error, reason};
use crate::symbols::Symbols;

/// Something that slices are on.
struct Track {
    id: u64,
    name: String,
    parent: Option<u64>,
    /// Its place among those of its parent.
    order: u64,
    host: String,
    /// None for a host or a rank.
    thread: Option<u32>,
}

/// A call or a phase.
struct Slice<'a> {
    track: u64,
    thread: u32,
    name: &'a str,
    begun_ns: u64,
    ended_ns: u64,
    arguments: Vec<(&'static str, Argument<'a>)>,
    /// The numbers of the messages that it sends, and of those that have come when it ends.
    arrows_from: Vec<u64>,
    arrows_to: Vec<u64>,
}

enum Argument<'a> {
    Number(i64),
    Text(&'a str),
}

/// Writes the trace of a rank.
trait TraceWriter {
    fn track(&mut self, track: &Track);
    fn slice(&mut self, slice: &Slice);
    /// What was written since the last time.
    fn take(&mut self) -> Vec<u8>;
}

/// The threads of a rank's phases and iterations, beyond those of calls.
const PHASES: u32 = 256;
const ITERATIONS: u32 = 257;

/// What is known of a run before it is written.
pub(crate) struct Timelines {
    directory: PathBuf,
    /// The id of the job, as the first rank has it.
    job: Option<String>,
    pub(crate) ranks: Vec<u32>,
    hosts: Vec<String>,
    arrows: Arrows,
    /// What is added to times on a clock, in ns; none if it cannot be compared with the first one.
    clocks: BTreeMap<String, Option<i128>>,
    /// The earliest time, in ns.
    origin_ns: i128,
    /// The lines of call sites, by file, build and address.
    places: HashMap<(String, Option<String>, u64), String>,
    /// Which part of the run was recorded, if not all of it.
    pub(crate) selection: Option<TimelineSelection>,
    /// The iterations that are shown; none if the latest calls are.
    pub(crate) iterations: Option<RunIterations>,
}

/// What was written.
#[derive(Clone, Copy, Default)]
pub(crate) struct WrittenEvents {
    pub(crate) calls: u64,
    pub(crate) lost: u64,
    pub(crate) received: u64,
    pub(crate) arrows: u64,
}

impl WrittenEvents {
    fn plus(self, other: WrittenEvents) -> WrittenEvents {
        WrittenEvents {
            calls: self.calls + other.calls,
            lost: self.lost + other.lost,
            received: self.received + other.received,
            arrows: self.arrows + other.arrows,
        }
    }
}

/// The ranks that have a timeline in a directory.
fn ranks_in(directory: &Path) -> io::Result<BTreeSet<u32>> {
    let names =
        fs::read_dir(directory)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter_map(|name| rank_of_timeline_name(&name)).collect())
}

/// The timelines in a directory.
pub(crate) fn files_in(directory: &Path) -> Vec<PathBuf> {
    let ranks = ranks_in(directory).unwrap_or_default().into_iter();
    ranks.map(|rank| directory.join(timeline_file_name(rank))).collect()
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

/// The parts of a rank's events.
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

fn name_of(communicator: &TimelineCommunicator) -> String {
    match communicator.name.as_str() {
        "" => format!("communicator of {} ranks", communicator.size),
        name => name.to_owned(),
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
            clocks: BTreeMap::new(),
            origin_ns: i128::MAX,
            places: HashMap::new(),
            selection: None,
            iterations: None,
        };
        let mut symbols = Symbols::default();
        let mut starts = Vec::new();
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
            run.arrows.add(&header, lost(&header, &events), &RankMessages::of(&header, &events));
            run.find_places(&header, &mut symbols);
            run.selection = run.selection.or(header.selection.clone());
            kept.add(&header);
            for part in parts(&header, &events) {
                let first = header.clock.ns(part.first().unwrap_or(header.clock.now_ticks));
                starts.push((header.clock.host.clone(), part.iteration.copied(), first));
            }
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
        run.compare_clocks();
        run.iterations = kept.chosen();
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

    /// Clocks of several hosts are compared by the collective operations in the profiles.
    fn compare_clocks(&mut self) {
        let mut known = self.clocks.keys();
        let Some(first) = known.next().cloned() else { return };
        if known.next().is_none() {
            self.clocks.insert(first, Some(0));
            return;
        }
        let profiles = self
            .ranks
            .iter()
            .filter_map(|rank| read_rank(&self.directory.join(rank_file_name(*rank))).ok());
        let offsets = ClockOffsets::of(profiles);
        for (clock, offset) in &mut self.clocks {
            *offset = offsets.between(clock, &first).map(|(offset, _)| offset);
        }
    }

    /// Do the times of all hosts belong together?
    pub(crate) fn has_one_clock(&self) -> bool {
        self.clocks.values().all(Option::is_some)
    }

    fn on_first_clock(&self, clock: &str, ns: u64) -> i128 {
        i128::from(ns) + self.clocks.get(clock).copied().flatten().unwrap_or(0)
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

    pub(crate) fn write(&self, out: &mut impl Write, is_json: bool) -> io::Result<WrittenEvents> {
        if is_json {
            out.write_all(b"{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n")?;
        }
        let mut sum = WrittenEvents::default();
        for ranks in self.ranks.chunks(rayon::current_num_threads()) {
            let parts: Vec<io::Result<(Vec<u8>, WrittenEvents)>> =
                ranks.par_iter().map(|rank| self.part(*rank, is_json)).collect();
            for part in parts {
                let (bytes, written) = part?;
                out.write_all(&bytes)?;
                sum = sum.plus(written);
            }
        }
        if is_json {
            // Without a comma behind the last event.
            out.write_all(b"{\"ph\": \"M\", \"name\": \"trace\", \"pid\": 0, \"args\": {}}\n]}\n")?;
        }
        Ok(sum)
    }

    /// The trace of one rank.
    fn part(&self, rank: u32, is_json: bool) -> io::Result<(Vec<u8>, WrittenEvents)> {
        let (header, events) = self.read(rank)?;
        let mut out: Box<dyn TraceWriter> = if is_json {
            Box::new(ChromeEvents::new(rank))
        } else {
            Box::new(Packets::new(u64::from(rank) + 1))
        };
        let trace = RankTrace::new(self, &header);
        let parts = parts(&header, &events);
        let shown: Vec<&EventsPart> =
            parts.iter().filter(|part| self.shows(part.iteration)).collect();
        trace.tracks(out.as_mut(), &shown);
        let mut written = WrittenEvents::default();
        for part in shown {
            written = written.plus(trace.slices(out.as_mut(), part));
        }
        Ok((out.take(), written))
    }
}

/// The trace of one rank.
struct RankTrace<'a> {
    run: &'a Timelines,
    header: &'a TimelineHeader,
    /// The line of each call site.
    places: HashMap<u16, &'a str>,
    /// The names of communicators.
    communicators: Vec<String>,
}

impl<'a> RankTrace<'a> {
    fn new(run: &'a Timelines, header: &'a TimelineHeader) -> RankTrace<'a> {
        let places = header.sites.iter().filter_map(|(number, site)| {
            let object = header.load_map.get(site.object?)?;
            let key = (object.path.clone(), object.build_id.clone(), site.address);
            Some((*number, run.places.get(&key)?.as_str()))
        });
        let communicators = header.communicators.iter().map(name_of).collect();
        RankTrace { run, header, places: places.collect(), communicators }
    }

    /// The track of a rank, or of one of its threads.
    fn id(&self, thread: u32) -> u64 {
        ((u64::from(self.header.rank) + 1) << 16) + u64::from(thread) + 1
    }

    fn tracks(&self, out: &mut dyn TraceWriter, parts: &[&EventsPart]) {
        let host = self.run.hosts.iter().position(|host| *host == self.header.host).unwrap_or(0);
        let host_id = 1 << 60 | host as u64;
        let of_host = self.header.host.clone();
        let track = |id, name: String, parent, order, thread| Track {
            id,
            name,
            parent,
            order,
            host: of_host.clone(),
            thread,
        };
        out.track(&track(host_id, of_host.clone(), None, host as u64, None));
        let rank = self.header.rank;
        let rank_id = self.id(0) - 1;
        out.track(&track(rank_id, format!("rank {rank}"), Some(host_id), rank.into(), None));
        let events = parts.iter().flat_map(|part| part.events);
        let mut threads: BTreeSet<u32> = events
            .map(|event| match event.kind {
                TimelineKind::Phase => PHASES,
                _ => u32::from(event.thread),
            })
            .collect();
        let iterations = || parts.iter().filter_map(|part| part.iteration);
        threads.extend(iterations().filter(|of| of.phase != 0).map(|_| PHASES));
        threads.extend(iterations().map(|_| ITERATIONS));
        for thread in threads {
            let name = match thread {
                PHASES => "phases".to_owned(),
                ITERATIONS => "iterations".to_owned(),
                0 => "MPI".to_owned(),
                255 => "MPI of further threads".to_owned(),
                thread => format!("MPI of thread {thread}"),
            };
            // Above the calls.
            let order = match thread {
                ITERATIONS => 0,
                PHASES => 1,
                thread => u64::from(thread) + 2,
            };
            out.track(&track(self.id(thread), name, Some(rank_id), order, Some(thread)));
        }
    }

    fn ns(&self, ticks: u64) -> u64 {
        let clock = &self.header.clock;
        let ns = self.run.on_first_clock(&clock.host, clock.ns(ticks)) - self.run.origin_ns;
        u64::try_from(ns).unwrap_or(0)
    }

    fn slices(&self, out: &mut dyn TraceWriter, part: &EventsPart) -> WrittenEvents {
        let events = part.events;
        let messages = RankMessages::of(self.header, events);
        let mut from: HashMap<usize, Vec<u64>> = HashMap::new();
        let mut to: HashMap<usize, Vec<u64>> = HashMap::new();
        let unknown = messages.unknown_receives() as u64;
        let mut written =
            WrittenEvents { received: unknown, lost: part.lost, ..WrittenEvents::default() };
        for (message, arrow) in self.run.arrows.of(&messages) {
            let is_received = message.direction == MessageDirection::Received;
            written.received += u64::from(is_received);
            let place = if is_received { message.ended_in } else { Some(message.begun_in) };
            let (Some(arrow), Some(place)) = (arrow, place) else { continue };
            written.arrows += u64::from(is_received);
            if is_received { &mut to } else { &mut from }.entry(place).or_default().push(arrow);
        }
        for (at, event) in events.iter().enumerate() {
            let TimelineKind::Call(function) = event.kind else { continue };
            written.calls += 1;
            let slice = Slice {
                arrows_from: from.remove(&at).unwrap_or_default(),
                arrows_to: to.remove(&at).unwrap_or_default(),
                ..self.call(function, event)
            };
            out.slice(&slice);
        }
        self.phases(out, part);
        self.iteration(out, part);
        written
    }

    fn phases(&self, out: &mut dyn TraceWriter, part: &EventsPart) {
        // In which phase its first event was is known if that was not overwritten.
        let whole = part.iteration.filter(|_| part.lost == 0);
        let first = part.first().unwrap_or(0);
        let mut since = whole.map_or(first, |iteration| iteration.begun_ticks);
        let mut now = whole.map(|iteration| iteration.phase as usize);
        for event in part.events.iter().filter(|event| event.kind == TimelineKind::Phase) {
            self.phase(out, event.request as usize, since, event.begun);
            since = event.begun;
            now = Some(event.site.into());
        }
        let last = part.events.iter().map(|event| event.begun + event.took).max();
        let ended = part.iteration.and_then(|iteration| iteration.ended_ticks).or(last);
        if let Some(phase) = now {
            self.phase(out, phase, since, ended.unwrap_or(since));
        }
    }

    /// Marks an iteration.
    fn iteration(&self, out: &mut dyn TraceWriter, part: &EventsPart) {
        let Some(iteration) = part.iteration else { return };
        let run = self.run.iterations.as_ref();
        let Some(name) = run.and_then(|run| run.name(iteration)) else { return };
        let last = part.events.iter().map(|event| event.begun + event.took).max();
        // Where there was no iteration, nothing says when that began.
        let begun = if iteration.number == 0 { part.first() } else { Some(iteration.begun_ticks) };
        let begun_ns = self.ns(begun.unwrap_or(0));
        let ended_ns = self.ns(iteration.ended_ticks.or(last).unwrap_or(0)).max(begun_ns);
        let number = |number: u64| Argument::Number(i64::try_from(number).unwrap_or(i64::MAX));
        out.slice(&Slice {
            track: self.id(ITERATIONS),
            thread: ITERATIONS,
            name: &name,
            begun_ns,
            ended_ns,
            arguments: vec![
                ("iteration", number(iteration.number)),
                ("duration in ns", number(ended_ns - begun_ns)),
                ("earlier events lost", number(iteration.lost)),
            ],
            arrows_from: Vec::new(),
            arrows_to: Vec::new(),
        });
    }

    fn phase(&self, out: &mut dyn TraceWriter, phase: usize, since: u64, until: u64) {
        let name = self.header.phases.get(phase).map_or("", String::as_str);
        if name.is_empty() || until <= since {
            return;
        }
        out.slice(&Slice {
            track: self.id(PHASES),
            thread: PHASES,
            name,
            begun_ns: self.ns(since),
            ended_ns: self.ns(until),
            arguments: Vec::new(),
            arrows_from: Vec::new(),
            arrows_to: Vec::new(),
        });
    }

    fn call(&self, function: u16, event: &TimelineEvent) -> Slice<'_> {
        let header = self.header;
        let name = header.functions.get(usize::from(function)).map_or("?", String::as_str);
        let mut arguments = Vec::new();
        let communicator = usize::from(event.communicator).checked_sub(1);
        if let Some(at) = communicator {
            let name = self.communicators.get(at).map_or("", String::as_str);
            arguments.push(("communicator", Argument::Text(name)));
        }
        match event.peer {
            TimelinePeer::None => {}
            TimelinePeer::Null => arguments.push(("peer", Argument::Text("MPI_PROC_NULL"))),
            TimelinePeer::Any => arguments.push(("peer", Argument::Text("MPI_ANY_SOURCE"))),
            TimelinePeer::Rank(rank) => arguments.push(("peer", Argument::Number(rank.into()))),
        }
        match event.tag {
            TimelineEvent::NO_TAG => {}
            -1 => arguments.push(("tag", Argument::Text("MPI_ANY_TAG"))),
            tag => arguments.push(("tag", Argument::Number(tag.into()))),
        }
        if event.bytes > 0 {
            let bytes = i64::try_from(event.bytes).unwrap_or(i64::MAX);
            arguments.push(("bytes", Argument::Number(bytes)));
        }
        if event.request != 0 {
            arguments.push(("request", Argument::Number(event.request.into())));
        }
        if let Some(place) = self.places.get(&event.site) {
            arguments.push(("called at", Argument::Text(place)));
        }
        let begun_ns = self.ns(event.begun);
        Slice {
            track: self.id(event.thread.into()),
            thread: event.thread.into(),
            name,
            begun_ns,
            ended_ns: self.ns(event.begun + event.took).max(begun_ns),
            arguments,
            arrows_from: Vec::new(),
            arrows_to: Vec::new(),
        }
    }
}
