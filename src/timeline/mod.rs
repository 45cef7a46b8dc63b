//! What did every rank do when? The timelines of a run's ranks on one clock, and the traces that viewers read.
//!
//! Each rank's file is read twice: to know which sends belong to which receives, and to write its slices. Only as many ranks as
//! there are processors are in memory at a time.

mod chrome;
mod messages;
mod perfetto;
mod waits;
mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gyan_results::{
    ClockOffsets, MessageDirection, TimelineCommunicator, TimelineEvent, TimelineHeader,
    TimelineKind, TimelinePeer, TimelineSelection, parse_timeline, rank_file_name,
    rank_of_timeline_name, read_rank, timeline_file_name,
};
use rayon::prelude::*;

use self::chrome::ChromeEvents;
use self::messages::{Arrows, RankMessages};
use self::perfetto::Packets;
use self::waits::Communicators;
pub(crate) use self::waits::WaitState;
pub(crate) use self::window::{TimelineWindow, WindowLimits, WindowRow, WindowSpan};
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

/// The thread of a rank's phases, beyond those of calls.
const PHASES: u32 = 256;

/// What is known of a run before it is written.
pub(crate) struct Timelines {
    directory: PathBuf,
    /// The id of the job, as the first rank has it.
    job: Option<String>,
    pub(crate) ranks: Vec<u32>,
    hosts: Vec<String>,
    arrows: Arrows,
    communicators: Communicators,
    /// How many events were overwritten.
    pub(crate) lost: u64,
    /// What is added to times on a clock, in ns; none if it cannot be compared with the first one.
    clocks: BTreeMap<String, Option<i128>>,
    /// The earliest time, in ns.
    origin_ns: i128,
    /// The lines of call sites, by file, build and address.
    places: HashMap<(String, Option<String>, u64), String>,
    /// Which part of the run was recorded, if not all of it.
    pub(crate) selection: Option<TimelineSelection>,
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
            origin_ns: i128::MAX,
            places: HashMap::new(),
            selection: None,
        };
        let mut symbols = Symbols::default();
        let mut starts = Vec::new();
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
            run.lost += lost;
            run.find_places(&header, &mut symbols);
            run.selection = run.selection.or(header.selection.clone());
            let first = events.iter().map(|event| event.begun).min();
            let first = first.unwrap_or(header.clock.now_ticks);
            starts.push((header.clock.host.clone(), header.clock.ns(first)));
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
        let begins = starts.iter().map(|(clock, ns)| run.on_first_clock(clock, *ns));
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

    /// A time of a rank, in ns after the first event of the run.
    fn ns(&self, header: &TimelineHeader, ticks: u64) -> u64 {
        let clock = &header.clock;
        let ns = self.on_first_clock(&clock.host, clock.ns(ticks)) - self.origin_ns;
        u64::try_from(ns).unwrap_or(0)
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
        let mut part = RankTrace::new(self, &header);
        part.tracks(out.as_mut(), &events);
        let mut written = part.slices(out.as_mut(), &events);
        written.lost = lost(&header, &events);
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
        let name = |of: &TimelineCommunicator| match of.name.as_str() {
            "" => format!("communicator of {} ranks", of.size),
            name => name.to_owned(),
        };
        let communicators = header.communicators.iter().map(name).collect();
        RankTrace { run, header, places: places.collect(), communicators }
    }

    /// The track of a rank, or of one of its threads.
    fn id(&self, thread: u32) -> u64 {
        ((u64::from(self.header.rank) + 1) << 16) + u64::from(thread) + 1
    }

    fn tracks(&self, out: &mut dyn TraceWriter, events: &[TimelineEvent]) {
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
        let threads: BTreeSet<u32> = events
            .iter()
            .map(|event| match event.kind {
                TimelineKind::Phase => PHASES,
                _ => u32::from(event.thread),
            })
            .collect();
        for thread in threads {
            let name = match thread {
                PHASES => "phases".to_owned(),
                0 => "MPI".to_owned(),
                255 => "MPI of further threads".to_owned(),
                thread => format!("MPI of thread {thread}"),
            };
            // Phases are above the calls.
            let order = if thread == PHASES { 0 } else { u64::from(thread) + 1 };
            out.track(&track(self.id(thread), name, Some(rank_id), order, Some(thread)));
        }
    }

    fn ns(&self, ticks: u64) -> u64 {
        self.run.ns(self.header, ticks)
    }

    fn slices(&mut self, out: &mut dyn TraceWriter, events: &[TimelineEvent]) -> WrittenEvents {
        let messages = RankMessages::of(self.header, events);
        let mut from: HashMap<usize, Vec<u64>> = HashMap::new();
        let mut to: HashMap<usize, Vec<u64>> = HashMap::new();
        let unknown = messages.unknown_receives() as u64;
        let mut written = WrittenEvents { received: unknown, ..WrittenEvents::default() };
        for (message, arrow) in self.run.arrows.of(&messages) {
            let is_received = message.direction == MessageDirection::Received;
            written.received += u64::from(is_received);
            let place = if is_received { message.ended_in } else { Some(message.begun_in) };
            let (Some(arrow), Some(place)) = (arrow, place) else { continue };
            written.arrows += u64::from(is_received);
            if is_received { &mut to } else { &mut from }.entry(place).or_default().push(arrow);
        }
        let mut phase_since = None;
        let first = events.iter().map(|event| event.begun).min().unwrap_or(0);
        for (at, event) in events.iter().enumerate() {
            match event.kind {
                TimelineKind::Call(function) => {
                    written.calls += 1;
                    let slice = Slice {
                        arrows_from: from.remove(&at).unwrap_or_default(),
                        arrows_to: to.remove(&at).unwrap_or_default(),
                        ..self.call(function, event)
                    };
                    out.slice(&slice);
                }
                TimelineKind::Phase => {
                    let since = phase_since.unwrap_or(first);
                    self.phase(out, event.request as usize, since, event.begun);
                    phase_since = Some(event.begun);
                }
                _ => {}
            }
        }
        let last = events.iter().rev().find(|event| event.kind == TimelineKind::Phase);
        if let (Some(last), Some(since)) = (last, phase_since) {
            let end = events.iter().map(|event| event.begun + event.took).max().unwrap_or(since);
            self.phase(out, usize::from(last.site), since, end);
        }
        written
    }

    fn phase(&self, out: &mut dyn TraceWriter, phase: usize, since: u64, until: u64) {
        let name = self.header.phases.get(phase).map_or("", String::as_str);
        if name.is_empty() {
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
