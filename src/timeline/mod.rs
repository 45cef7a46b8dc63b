//! What did every rank do when? The timelines of a run's ranks on one clock, and the traces that viewers read.
//!
//! Each rank's file is read twice: to know which sends belong to which receives, and to write its slices. Only as many ranks as
//! there are processors are in memory at a time.

mod chrome;
mod clocks;
mod iterations;
mod limited;
mod messages;
mod otf2;
mod perfetto;
mod totals;
mod waits;
mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use gyan_results::{
    ClockOffsets, MessageDirection, Series, SeriesColumn, TimelineCommunicator, TimelineEvent,
    TimelineHeader, TimelineIteration, TimelineKind, TimelinePeer, TimelineSelection,
    parse_timeline, rank_file_name, rank_of_timeline_name, read_rank, timeline_file_name,
};
use rayon::prelude::*;

use self::chrome::ChromeEvents;
use self::clocks::{ClockBounds, HostClock};
use self::iterations::KeptIterations;
pub(crate) use self::iterations::RunIterations;
use self::limited::LimitedFile;
use self::messages::{Arrows, OwnMessage, RankMessages, in_stream};
use self::perfetto::Packets;
pub(crate) use self::totals::{FunctionWaits, TimelineWaits};
pub(crate) use self::waits::WaitState;
use self::waits::{Communicators, TimedEvents};
pub(crate) use self::window::{TimelineWindow, WindowLimits, WindowRow, WindowSpan};
use crate::error::{Error, reason};
use crate::symbols::Symbols;

/// Something that slices are on, or the course of a variable.
struct Track {
    id: u64,
    name: String,
    parent: Option<u64>,
    /// Its place among those of its parent.
    order: u64,
    host: String,
    /// None for a host or a rank.
    thread: Option<u32>,
    is_counter: bool,
}

/// A call or a phase.
struct Slice<'a> {
    track: u64,
    thread: u32,
    name: &'a str,
    begun_ns: u64,
    ended_ns: u64,
    /// None of a phase, and of a call that names none.
    communicator: Option<SliceCommunicator<'a>>,
    /// The other rank or the root.
    peer: TimelinePeer,
    /// As [`TimelineEvent::tag`].
    tag: i32,
    bytes: u64,
    /// 0 for none.
    request: u32,
    /// The line that it was called from.
    place: Option<&'a str>,
    /// What it does with messages that have an arrow.
    messages: Vec<SliceMessage>,
    /// What else it says, each with a name.
    numbers: Vec<(&'static str, u64)>,
}

#[derive(Clone, Copy)]
struct SliceCommunicator<'a> {
    name: &'a str,
    /// That its ranks agree on.
    number: Option<u64>,
}

/// What a call does with a message.
#[derive(Clone, Copy)]
struct SliceMessage {
    part: MessagePart,
    /// The number of the message, which both of its ranks have.
    arrow: u64,
    /// The other rank in the communicator, the tag, and the number of the communicator.
    peer: u32,
    tag: i32,
    communicator: u64,
    /// That its sender handed to MPI; 0 where it is received.
    bytes: u64,
    /// A number that no other message of the rank has, if another call completes the message.
    request: Option<u64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum MessagePart {
    Sent,
    /// The send was completed by this call, and begun by another one.
    SendCompleted,
    /// The receive was posted by this call, and is completed by another one.
    Posted,
    Received,
}

impl<'a> Slice<'a> {
    /// One that says nothing else.
    fn new(track: u64, thread: u32, name: &'a str, [begun_ns, ended_ns]: [u64; 2]) -> Slice<'a> {
        Slice {
            track,
            thread,
            name,
            begun_ns,
            ended_ns,
            communicator: None,
            peer: TimelinePeer::None,
            tag: TimelineEvent::NO_TAG,
            bytes: 0,
            request: 0,
            place: None,
            messages: Vec::new(),
            numbers: Vec::new(),
        }
    }

    fn arguments(&self) -> Vec<(&'static str, Argument<'a>)> {
        let mut arguments = Vec::new();
        if let Some(communicator) = self.communicator {
            arguments.push(("communicator", Argument::Text(communicator.name)));
        }
        match self.peer {
            TimelinePeer::None => {}
            TimelinePeer::Null => arguments.push(("peer", Argument::Text("MPI_PROC_NULL"))),
            TimelinePeer::Any => arguments.push(("peer", Argument::Text("MPI_ANY_SOURCE"))),
            TimelinePeer::Rank(rank) => arguments.push(("peer", Argument::Number(rank.into()))),
        }
        match self.tag {
            TimelineEvent::NO_TAG => {}
            -1 => arguments.push(("tag", Argument::Text("MPI_ANY_TAG"))),
            tag => arguments.push(("tag", Argument::Number(tag.into()))),
        }
        if self.bytes > 0 {
            let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
            arguments.push(("bytes", Argument::Number(bytes)));
        }
        if self.request != 0 {
            arguments.push(("request", Argument::Number(self.request.into())));
        }
        if let Some(place) = self.place {
            arguments.push(("called at", Argument::Text(place)));
        }
        let number = |number: u64| Argument::Number(i64::try_from(number).unwrap_or(i64::MAX));
        arguments.extend(self.numbers.iter().map(|(name, of)| (*name, number(*of))));
        arguments
    }

    /// The arrows that begin or end in it.
    fn arrows(&self, part: MessagePart) -> impl Iterator<Item = u64> {
        let messages = self.messages.iter().filter(move |message| message.part == part);
        messages.map(|message| message.arrow)
    }
}

enum Argument<'a> {
    Number(i64),
    Text(&'a str),
}

/// Writes the trace of a rank.
trait TraceWriter {
    fn track(&mut self, track: &Track);
    fn slice(&mut self, slice: &Slice);
    /// The variable of this track has this value from a time on, in ns.
    fn value(&mut self, track: &Track, ns: u64, value: f64);
}

/// Variables of a rank are on tracks beyond those, so many at most.
const COUNTERS: u32 = 512;
const COUNTERS_AT_MOST: usize = 64;

/// How many events of a rank say when its events were.
const SAMPLED_AT_MOST: usize = 1024;

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

/// How the clocks of hosts were brought together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ClockAlignment {
    OneHost,
    /// They cannot be compared.
    Unknown,
    /// They go so differently that some messages arrive before they were sent.
    Drifting,
    /// A time on any of these hosts' clocks differs from that on the first one by at most so much.
    Within {
        hosts: usize,
        error_ns: u64,
    },
}

/// What was written.
#[derive(Clone, Copy, Default)]
pub(crate) struct WrittenEvents {
    /// Calls that are not in the file because of its limit.
    pub(crate) left_out: u64,
    pub(crate) calls: u64,
    pub(crate) lost: u64,
    pub(crate) received: u64,
    pub(crate) arrows: u64,
}

impl WrittenEvents {
    fn plus(self, other: WrittenEvents) -> WrittenEvents {
        WrittenEvents {
            left_out: self.left_out + other.left_out,
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

    /// Clocks of several hosts are compared by the collective operations in the profiles, and by the messages between them.
    fn compare_clocks(&mut self) -> io::Result<()> {
        let names: Vec<String> = self.clocks.keys().cloned().collect();
        let [first, _, ..] = names.as_slice() else {
            self.clocks.values_mut().for_each(|clock| *clock = Some(HostClock::default()));
            return Ok(());
        };
        let profiles = self
            .ranks
            .iter()
            .filter_map(|rank| read_rank(&self.directory.join(rank_file_name(*rank))).ok());
        let offsets = ClockOffsets::of(profiles);
        let mut of_profiles = ClockBounds::default();
        for (number, name) in names.iter().enumerate() {
            if let Some((offset_ns, error_ns)) = offsets.between(name, first) {
                of_profiles.differs(number, offset_ns, error_ns);
            }
        }
        let of_messages = self.bounds_of_messages()?;
        let mut all = of_profiles.clone();
        all.absorb(&of_messages);
        self.clocks_drift = all.solved(names.len()).is_none();
        // What contradicts itself is left out: profiles are of the whole run, in which clocks drift apart further.
        let solved = [of_profiles, of_messages, all]
            .iter()
            .filter_map(|bounds| bounds.solved(names.len()))
            .max_by_key(|clocks| clocks.iter().flatten().count());
        for (name, clock) in names.into_iter().zip(solved.into_iter().flatten()) {
            self.clocks.insert(name, clock);
        }
        Ok(())
    }

    /// A message is received after its send began.
    fn bounds_of_messages(&self) -> io::Result<ClockBounds> {
        let mut bounds = ClockBounds::default();
        let clock = |rank: usize| self.clock_numbers.get(rank).copied().unwrap_or(0);
        let mut sent = self.arrows.times_between(|from, to| clock(from) != clock(to));
        let streams = sent.streams();
        if streams.is_empty() {
            return Ok(bounds);
        }
        for direction in [MessageDirection::Sent, MessageDirection::Received] {
            let mut place = 0;
            let look = |rank: &TimedEvents| self.times_of_arrows(rank, direction, &streams);
            self.each(&self.ranks, look, |times| {
                for (arrow, ns) in times {
                    let Some((sender, sent_ns)) = sent.get_mut(arrow) else { continue };
                    match direction {
                        MessageDirection::Sent => *sent_ns = ns,
                        MessageDirection::Received if *sent_ns > 0 => {
                            bounds.was_before((clock(sender), *sent_ns), (clock(place), ns));
                        }
                        MessageDirection::Received => {}
                    }
                }
                place += 1;
            })?;
        }
        Ok(bounds)
    }

    /// When the messages of a rank in these streams were sent, or received, on its clock, in ns: by the number of the arrow.
    fn times_of_arrows(
        &self,
        rank: &TimedEvents,
        direction: MessageDirection,
        streams: &BTreeSet<u64>,
    ) -> Vec<(u64, u64)> {
        let arrows = self.arrows.of(rank.messages).into_iter();
        let time = |(message, arrow): (&OwnMessage, Option<u64>)| {
            let arrow = arrow.filter(|arrow| {
                message.direction == direction && streams.contains(&in_stream(*arrow).0)
            })?;
            let event = rank.events.get(message.arrow_at()?)?;
            let ticks = match direction {
                MessageDirection::Sent => event.begun,
                MessageDirection::Received => event.begun + event.took,
            };
            Some((arrow, rank.header.clock.ns(ticks)))
        };
        arrows.filter_map(time).collect()
    }

    /// How the clocks of hosts were brought together.
    pub(crate) fn alignment(&self) -> ClockAlignment {
        match self.clocks.len() {
            0 | 1 => ClockAlignment::OneHost,
            _ if self.clocks.values().any(Option::is_none) => ClockAlignment::Unknown,
            _ if self.clocks_drift => ClockAlignment::Drifting,
            hosts => {
                let errors = self.clocks.values().flatten().map(|clock| clock.error_ns());
                ClockAlignment::Within { hosts, error_ns: errors.max().unwrap_or(0) }
            }
        }
    }

    fn on_first_clock(&self, clock: &str, ns: u64) -> i128 {
        self.clocks.get(clock).copied().flatten().unwrap_or_default().on_first(ns)
    }

    /// A time of a rank, in ns after the first event of the run.
    fn ns(&self, header: &TimelineHeader, ticks: u64) -> u64 {
        self.since_origin(&header.clock.host, header.clock.ns(ticks))
    }

    /// A time on a clock, in ns after the first event of the run.
    fn since_origin(&self, clock: &str, ns: u64) -> u64 {
        u64::try_from(self.on_first_clock(clock, ns) - self.origin_ns).unwrap_or(0)
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

    /// Writes the trace in one of the formats that are one file. As many of the earliest calls are left out as it takes to make that
    /// no larger than `limit`, in bytes.
    pub(crate) fn write(
        &mut self,
        file: &mut File,
        is_json: bool,
        limit: Option<u64>,
    ) -> io::Result<WrittenEvents> {
        let mut share = 1.0;
        loop {
            file.set_len(0)?;
            file.rewind()?;
            let mut out = LimitedFile::new(file, limit, self.ranks.len());
            let written = self.write_once(&mut out, is_json);
            let Some(too_large) = out.too_large() else {
                out.flush()?;
                return written;
            };
            // A little less than would fit, as ranks differ.
            share *= (0.95 / too_large).min(0.95);
            if share < 1e-6 {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the limit is too small"));
            }
            self.keep_latest(share);
        }
    }

    fn write_once(&self, out: &mut LimitedFile, is_json: bool) -> io::Result<WrittenEvents> {
        if !is_json {
            let start = |rank| Packets::new(u64::from(rank) + 1);
            return self.each_rank(start, |packets| out.put_rank(&packets.into_bytes()));
        }
        out.put(b"{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n")?;
        let put = |events: ChromeEvents| out.put_rank(&events.into_bytes());
        let written = self.each_rank(ChromeEvents::new, put)?;
        // Without a comma behind the last event.
        out.put(b"{\"ph\": \"M\", \"name\": \"trace\", \"pid\": 0, \"args\": {}}\n]}\n")?;
        Ok(written)
    }

    /// Leaves out all but the latest share of the events.
    fn keep_latest(&mut self, share: f64) {
        let time = |&(rank, ns, events): &(usize, u64, f64)| {
            (self.on_first_clock(self.clock_of(rank), ns) - self.origin_ns, events)
        };
        let mut times: Vec<(i128, f64)> = self.sampled.iter().map(time).collect();
        times.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        let mut left = share * times.iter().map(|(_, events)| events).sum::<f64>();
        let first = times.into_iter().find(|(_, events)| {
            left -= events;
            left <= 0.0
        });
        self.from_ns = first.and_then(|(ns, _)| u64::try_from(ns).ok()).unwrap_or(0);
    }

    fn clock_of(&self, rank: usize) -> &str {
        let number = self.clock_numbers.get(rank).copied().unwrap_or(0);
        self.clocks.keys().nth(number).map_or("", String::as_str)
    }

    /// Writes each rank with a writer of its own, which `start` makes, and hands these to `put` in the order of the ranks.
    fn each_rank<W: TraceWriter + Send>(
        &self,
        start: impl Fn(u32) -> W + Sync,
        mut put: impl FnMut(W) -> io::Result<()>,
    ) -> io::Result<WrittenEvents> {
        let mut sum = WrittenEvents::default();
        for ranks in self.ranks.chunks(at_a_time()) {
            let parts: Vec<io::Result<(W, WrittenEvents)>> =
                ranks.par_iter().map(|rank| self.part(*rank, start(*rank))).collect();
            for part in parts {
                let (writer, written) = part?;
                put(writer)?;
                sum = sum.plus(written);
            }
        }
        Ok(sum)
    }

    /// The trace of one rank.
    fn part<W: TraceWriter>(&self, rank: u32, mut out: W) -> io::Result<(W, WrittenEvents)> {
        let (header, events) = self.read(rank)?;
        let trace = RankTrace::new(self, &header);
        let parts = parts(&header, &events);
        let shown: Vec<&EventsPart> =
            parts.iter().filter(|part| self.shows(part.iteration)).collect();
        trace.tracks(&mut out, &shown);
        let mut written = WrittenEvents::default();
        for part in shown {
            written = written.plus(trace.slices(&mut out, part));
        }
        let profile = read_rank(&self.directory.join(rank_file_name(rank))).ok();
        if let Some(series) = profile.and_then(|profile| profile.series) {
            trace.counters(&mut out, &series);
        }
        Ok((out, written))
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
        let communicators = header.communicators.iter().map(communicator_name).collect();
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
            is_counter: false,
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
        self.run.ns(self.header, ticks)
    }

    /// The variables that were sampled over time, as far as they are not always zero.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn counters(&self, out: &mut dyn TraceWriter, series: &Series) {
        let clock = &self.header.clock;
        // A reading is the mean of the time since the one before.
        let begins = std::iter::once(&0.0).chain(&series.end_s).map(|begin_s| {
            let ns = clock.origin_ns.saturating_add((begin_s * 1e9) as u64);
            self.run.since_origin(&clock.host, ns)
        });
        let begins: Vec<u64> = begins.collect();
        let is_seen =
            |column: &&SeriesColumn| column.max.iter().flatten().any(|value| *value != 0.0);
        let columns = series.columns.iter().filter(is_seen).take(COUNTERS_AT_MOST);
        for (thread, column) in (COUNTERS..).zip(columns) {
            let object = column.object.as_ref().map(|object| format!(" of {object}"));
            let track = Track {
                id: self.id(thread),
                name: column.name.clone() + &object.unwrap_or_default(),
                parent: Some(self.id(0) - 1),
                order: thread.into(),
                host: self.header.host.clone(),
                thread: Some(thread),
                is_counter: true,
            };
            out.track(&track);
            for (begun_ns, value) in begins.iter().zip(&column.mean) {
                if let Some(value) = value.filter(|_| *begun_ns >= self.run.from_ns) {
                    out.value(&track, *begun_ns, value);
                }
            }
        }
    }

    /// By event, what its call does with messages that have an arrow.
    fn messages(
        &self,
        messages: &RankMessages,
        events: &[TimelineEvent],
        written: &mut WrittenEvents,
    ) -> HashMap<usize, Vec<SliceMessage>> {
        let mut all: HashMap<usize, Vec<SliceMessage>> = HashMap::new();
        for (number, (message, arrow)) in (1..).zip(self.run.arrows.of(messages)) {
            let call = message.arrow_at().and_then(|at| events.get(at));
            if call.is_some_and(|call| self.is_left_out(call)) {
                continue;
            }
            let is_received = message.direction == MessageDirection::Received;
            written.received += u64::from(is_received);
            let Some(arrow) = arrow else { continue };
            let OwnMessage { begun_in, ended_in, .. } = *message;
            let ends_later = ended_in.filter(|ended_in| *ended_in != begun_in);
            let part = |part| SliceMessage {
                part,
                arrow,
                peer: message.peer(),
                tag: message.tag(),
                communicator: message.communicator(),
                bytes: message.bytes,
                request: ends_later.map(|_| number),
            };
            let mut put = |event: usize, kind| all.entry(event).or_default().push(part(kind));
            if is_received {
                let Some(ended_in) = ended_in else { continue };
                written.arrows += 1;
                if ends_later.is_some() {
                    put(begun_in, MessagePart::Posted);
                }
                put(ended_in, MessagePart::Received);
            } else {
                put(begun_in, MessagePart::Sent);
                if let Some(ended_in) = ends_later {
                    put(ended_in, MessagePart::SendCompleted);
                }
            }
        }
        all
    }

    fn slices(&self, out: &mut dyn TraceWriter, part: &EventsPart) -> WrittenEvents {
        let events = part.events;
        let messages = RankMessages::of(self.header, events);
        let unknown = messages.unknown_receives() as u64;
        let mut written =
            WrittenEvents { received: unknown, lost: part.lost, ..WrittenEvents::default() };
        let mut by_call = self.messages(&messages, events, &mut written);
        for (at, event) in events.iter().enumerate() {
            let TimelineKind::Call(function) = event.kind else { continue };
            if self.is_left_out(event) {
                written.left_out += 1;
                continue;
            }
            written.calls += 1;
            let messages = by_call.remove(&at).unwrap_or_default();
            out.slice(&Slice { messages, ..self.call(function, event) });
        }
        self.phases(out, part);
        self.iteration(out, part);
        written
    }

    fn is_left_out(&self, event: &TimelineEvent) -> bool {
        self.run.from_ns > 0 && self.ns(event.begun + event.took) < self.run.from_ns
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
        out.slice(&Slice {
            numbers: vec![
                ("iteration", iteration.number),
                ("duration in ns", ended_ns - begun_ns),
                ("earlier events lost", iteration.lost),
            ],
            ..Slice::new(self.id(ITERATIONS), ITERATIONS, &name, [begun_ns, ended_ns])
        });
    }

    fn phase(&self, out: &mut dyn TraceWriter, phase: usize, since: u64, until: u64) {
        let name = self.header.phases.get(phase).map_or("", String::as_str);
        let (begun_ns, ended_ns) = (self.ns(since).max(self.run.from_ns), self.ns(until));
        if name.is_empty() || until <= since || ended_ns < begun_ns {
            return;
        }
        out.slice(&Slice::new(self.id(PHASES), PHASES, name, [begun_ns, ended_ns]));
    }

    fn call(&self, function: u16, event: &TimelineEvent) -> Slice<'_> {
        let header = self.header;
        let name = header.functions.get(usize::from(function)).map_or("?", String::as_str);
        let communicator = usize::from(event.communicator).checked_sub(1).map(|at| {
            let number = header.communicators.get(at).and_then(|known| known.number.as_deref());
            let name = self.communicators.get(at).map_or("", String::as_str);
            SliceCommunicator { name, number: number.and_then(messages::number) }
        });
        let begun_ns = self.ns(event.begun);
        let ended_ns = self.ns(event.begun + event.took).max(begun_ns);
        let thread = event.thread.into();
        Slice {
            communicator,
            peer: event.peer,
            tag: event.tag,
            bytes: event.bytes,
            request: event.request,
            place: self.places.get(&event.site).copied(),
            ..Slice::new(self.id(thread), thread, name, [begun_ns, ended_ns])
        }
    }
}
