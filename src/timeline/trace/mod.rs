//! What is in a trace, whatever its format: tracks, slices, arrows and the values of variables, rank by rank.

mod chrome;
mod limited;
mod otf2;
mod perfetto;
mod rows;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Seek};

use gyan_results::{
    MessageDirection, Series, SeriesColumn, TimelineEvent, TimelineHeader, TimelineKind,
    TimelinePeer, rank_file_name, read_rank_part,
};
use rayon::prelude::*;
use serde::Deserialize;

use self::chrome::ChromeEvents;
use self::limited::LimitedFile;
use self::perfetto::Packets;
pub(crate) use self::rows::TimelineCall;
use super::messages::{self, OwnMessage, RankMessages};
use super::path::PathSpans;
use super::waits::{Begins, TimedEvents};
use super::{
    EventsPart, FILES_AT_MOST, RankClock, Timelines, at_a_time, communicator_name, files_bytes,
    parts,
};

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
    /// A number that no message of the rank has, if it starts another operation that a later call completes.
    started: Option<u64>,
    /// The numbers of such operations that it completes.
    completed: Vec<u64>,
    /// What else it says, each with a name.
    numbers: Vec<(&'static str, u64)>,
}

#[derive(Clone, Copy)]
struct SliceCommunicator<'a> {
    name: &'a str,
    /// That its ranks agree on.
    number: Option<u64>,
}

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
            started: None,
            completed: Vec::new(),
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

#[derive(Deserialize)]
struct ProfileInTrace {
    #[serde(default)]
    series: Option<Series>,
}

struct TraceMarks {
    /// From which it follows which calls wait.
    begins: Begins,
    path: PathSpans,
}

/// Writes the trace of a rank.
trait TraceWriter {
    fn track(&mut self, track: &Track);
    fn slice(&mut self, slice: &Slice);
    /// Whether the values of variables are in the trace.
    fn has_values(&self) -> bool {
        true
    }
    /// The variable of this track has this value from a time on, in ns.
    fn value(&mut self, track: &Track, ns: u64, value: f64);
}

/// Variables of a rank are on tracks beyond those, so many at most.
const COUNTERS: u32 = 512;
const COUNTERS_AT_MOST: usize = 64;

/// The threads of a rank's phases, of its iterations and of the critical path, beyond those of calls.
const PHASES: u32 = 256;
const ITERATIONS: u32 = 257;
const CRITICAL_PATH: u32 = 258;
/// That of the waits of a thread is so much above its own, beyond those of variables.
const WAITS: u32 = 1024;

#[derive(Clone, Copy, Default)]
pub(crate) struct WrittenEvents {
    /// Calls that are not in the file because of its limit.
    pub(crate) left_out: u64,
    pub(crate) calls: u64,
    pub(crate) lost: u64,
    pub(crate) received: u64,
    pub(crate) arrows: u64,
    /// Whether it is marked which calls wait, and where the critical path is.
    pub(crate) has_marks: bool,
}

impl WrittenEvents {
    fn plus(self, other: WrittenEvents) -> WrittenEvents {
        WrittenEvents {
            left_out: self.left_out + other.left_out,
            calls: self.calls + other.calls,
            lost: self.lost + other.lost,
            received: self.received + other.received,
            arrows: self.arrows + other.arrows,
            has_marks: self.has_marks,
        }
    }
}

impl Timelines {
    /// Writes the trace in one of the formats that are one file. As many of the earliest calls are left out as it takes to make that
    /// no larger than `limit`, in bytes.
    pub(crate) fn write(
        &mut self,
        file: &mut File,
        is_json: bool,
        limit: Option<u64>,
    ) -> io::Result<WrittenEvents> {
        let mut share = 1.0;
        let marks = self.marks()?;
        loop {
            file.set_len(0)?;
            file.rewind()?;
            let mut out = LimitedFile::new(file, limit, self.ranks.len());
            let written = self.write_once(&mut out, is_json, marks.as_ref());
            let Some(too_large) = out.too_large() else {
                out.flush()?;
                return Ok(WrittenEvents { has_marks: marks.is_some(), ..written? });
            };
            // A little less than would fit, as ranks differ.
            share *= (0.95 / too_large).min(0.95);
            if share < 1e-6 {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the limit is too small"));
            }
            self.keep_latest(share);
        }
    }

    /// `marks`: as [`Timelines::each_rank`].
    fn write_once(
        &self,
        out: &mut LimitedFile,
        is_json: bool,
        marks: Option<&TraceMarks>,
    ) -> io::Result<WrittenEvents> {
        if !is_json {
            let start = |rank| Packets::new(u64::from(rank) + 1);
            return self.each_rank(marks, start, |packets| out.put_rank(&packets.into_bytes()));
        }
        out.put(b"{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n")?;
        let put = |events: ChromeEvents| out.put_rank(&events.into_bytes());
        let written = self.each_rank(marks, ChromeEvents::new, put)?;
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

    /// Which calls wait, and where the critical path is; none if that would take too much memory.
    fn marks(&self) -> io::Result<Option<TraceMarks>> {
        if files_bytes(&self.directory) > FILES_AT_MOST {
            return Ok(None);
        }
        let begins = self.seen()?.begins;
        let path = self.path_spans(&begins)?;
        Ok(Some(TraceMarks { begins, path }))
    }

    /// Writes each rank with a writer of its own, which `start` makes, and hands these to `put` in the order of the ranks. `marks`: none
    /// if nothing is marked.
    fn each_rank<W: TraceWriter + Send>(
        &self,
        marks: Option<&TraceMarks>,
        start: impl Fn(u32) -> W + Sync,
        mut put: impl FnMut(W) -> io::Result<()>,
    ) -> io::Result<WrittenEvents> {
        let mut sum = WrittenEvents::default();
        for ranks in self.ranks.chunks(at_a_time()) {
            let parts: Vec<io::Result<(W, WrittenEvents)>> =
                ranks.par_iter().map(|rank| self.part(*rank, marks, start(*rank))).collect();
            for part in parts {
                let (writer, written) = part?;
                put(writer)?;
                sum = sum.plus(written);
            }
        }
        Ok(sum)
    }

    fn part<W: TraceWriter>(
        &self,
        rank: u32,
        marks: Option<&TraceMarks>,
        mut out: W,
    ) -> io::Result<(W, WrittenEvents)> {
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
        if let Some(marks) = marks {
            trace.waits(&mut out, &events, &marks.begins);
            trace.path(&mut out, marks.path.get(&rank).map_or(&[], Vec::as_slice));
        }
        if out.has_values() {
            let profile = self.directory.join(rank_file_name(rank));
            if let Ok(ProfileInTrace { series: Some(series) }) = read_rank_part(&profile) {
                trace.counters(&mut out, &series);
            }
        }
        Ok((out, written))
    }
}

pub(super) struct RankTrace<'a> {
    run: &'a Timelines,
    header: &'a TimelineHeader,
    clock: RankClock<'a>,
    /// The line of each call site.
    pub(super) places: HashMap<u16, &'a str>,
    communicators: Vec<String>,
}

impl<'a> RankTrace<'a> {
    pub(super) fn new(run: &'a Timelines, header: &'a TimelineHeader) -> RankTrace<'a> {
        let places = header.sites.iter().filter_map(|(number, site)| {
            let object = header.load_map.get(site.object?)?;
            let key = (object.path.clone(), object.build_id.clone(), site.address);
            Some((*number, run.places.get(&key)?.as_str()))
        });
        let communicators = header.communicators.iter().map(communicator_name).collect();
        let clock = run.rank_clock(header);
        RankTrace { run, header, clock, places: places.collect(), communicators }
    }

    /// The track of a rank, or of one of its threads.
    fn id(&self, thread: u32) -> u64 {
        ((u64::from(self.header.rank) + 1) << 16) + u64::from(thread) + 1
    }

    fn tracks(&self, out: &mut dyn TraceWriter, parts: &[&EventsPart]) {
        let host = self.run.hosts.iter().position(|host| *host == self.header.host).unwrap_or(0);
        let host_id = 1 << 60 | host as u64;
        let of_host = &self.header.host;
        let track = |id, name: String, parent, order| Track {
            id,
            name,
            parent,
            order,
            host: of_host.clone(),
            thread: None,
            is_counter: false,
        };
        out.track(&track(host_id, of_host.clone(), None, host as u64));
        let rank = self.header.rank;
        out.track(&track(self.id(0) - 1, format!("rank {rank}"), Some(host_id), rank.into()));
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
            out.track(&self.track(thread));
        }
    }

    /// The track of a thread, or of what is beyond those.
    fn track(&self, thread: u32) -> Track {
        let of_thread = |what: &str, thread: u32| match thread {
            0 => what.to_owned(),
            255 => format!("{what} of further threads"),
            thread => format!("{what} of thread {thread}"),
        };
        // Above the calls. Waits are above the calls of their thread.
        let (name, order) = match thread {
            ITERATIONS => ("iterations".to_owned(), 0),
            PHASES => ("phases".to_owned(), 1),
            CRITICAL_PATH => ("critical path".to_owned(), 2),
            WAITS.. => (of_thread("waits", thread - WAITS), 2 * u64::from(thread - WAITS) + 3),
            thread => (of_thread("MPI", thread), 2 * u64::from(thread) + 4),
        };
        Track {
            id: self.id(thread),
            name,
            parent: Some(self.id(0) - 1),
            order,
            host: self.header.host.clone(),
            thread: Some(thread),
            is_counter: false,
        }
    }

    fn ns(&self, ticks: u64) -> u64 {
        self.clock.ns(ticks)
    }

    /// Marks when calls wait, each under the name of the finding that counts it.
    fn waits(&self, out: &mut dyn TraceWriter, events: &[TimelineEvent], begins: &Begins) {
        let messages = RankMessages::of(self.header, events);
        let ns = |ticks| self.ns(ticks);
        let rank = TimedEvents { header: self.header, events, messages: &messages, ns: &ns };
        let mut threads = BTreeSet::new();
        for wait in rank.waits(&self.run.arrows, &self.run.communicators, begins) {
            let Some(call) = events.get(wait.at).filter(|call| !self.is_left_out(call)) else {
                continue;
            };
            let thread = WAITS + u32::from(call.thread);
            if threads.insert(thread) {
                out.track(&self.track(thread));
            }
            let span = [wait.from_ns, wait.until_ns];
            out.slice(&Slice {
                place: self.places.get(&call.site).copied(),
                numbers: vec![("for rank", wait.late.rank.into())],
                ..Slice::new(self.id(thread), thread, wait.state.finding(), span)
            });
        }
    }

    fn path(&self, out: &mut dyn TraceWriter, spans: &[(u64, u64)]) {
        if !spans.is_empty() {
            out.track(&self.track(CRITICAL_PATH));
        }
        for (from_ns, to_ns) in spans.iter().filter(|(_, to_ns)| *to_ns >= self.run.from_ns) {
            let span = [*from_ns, *to_ns];
            out.slice(&Slice::new(self.id(CRITICAL_PATH), CRITICAL_PATH, "critical path", span));
        }
    }

    /// The variables that were sampled over time, as far as they are not always zero.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn counters(&self, out: &mut dyn TraceWriter, series: &Series) {
        let clock = &self.header.clock;
        // A reading is the mean of the time since the one before.
        let begins = std::iter::once(&0.0).chain(&series.end_s).map(|begin_s| {
            let ns = clock.origin_ns.saturating_add((begin_s * 1e9) as u64);
            self.clock.since_origin(ns)
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
                order: 2 * u64::from(thread),
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
        let mut started: HashMap<usize, u64> = HashMap::new();
        let mut completed: HashMap<usize, Vec<u64>> = HashMap::new();
        let numbers = messages.known.len() as u64 + 1..;
        for (number, (begun_in, ended_in)) in numbers.zip(&messages.other_operations) {
            started.insert(*begun_in, number);
            completed.entry(*ended_in).or_default().push(number);
        }
        for (at, event) in events.iter().enumerate() {
            let TimelineKind::Call(function) = event.kind else { continue };
            if self.is_left_out(event) {
                written.left_out += 1;
                continue;
            }
            written.calls += 1;
            let messages = by_call.remove(&at).unwrap_or_default();
            let (started, completed) =
                (started.remove(&at), completed.remove(&at).unwrap_or_default());
            out.slice(&Slice { messages, started, completed, ..self.call(function, event) });
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
