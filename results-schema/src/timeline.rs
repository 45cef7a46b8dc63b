//! The timeline of a rank: its latest calls, with their times, as they were left in a ring in memory.
//!
//! A file `timeline-NNNNNN.bin` has the length of its [`TimelineHeader`] in bytes as a little-endian number of 64 bits, the header
//! in JSON, and then the events, the oldest first, of 32 bytes each ([`TimelineEvent`]). With [`TimelineIterations`] these are the
//! events of one iteration after those of another one.

use std::io::{self, ErrorKind, Write};

use serde::{Deserialize, Serialize};

use crate::{Address, Ending, LoadedObject, MessageDirection, TIMELINE_SCHEMA};

/// The size of an event in bytes.
pub const TIMELINE_EVENT_BYTES: usize = 32;

/// The name of a rank's timeline inside a run directory.
pub fn timeline_file_name(rank: u32) -> String {
    format!("timeline-{rank:06}.bin")
}

/// The rank in a file name; none when it is not the name of a timeline.
pub fn rank_of_timeline_name(name: &str) -> Option<u32> {
    let rank = name.strip_prefix("timeline-")?.strip_suffix(".bin")?.parse().ok()?;
    (timeline_file_name(rank) == name).then_some(rank)
}

/// What the events of a rank mean.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TimelineHeader {
    /// [`TIMELINE_SCHEMA`].
    pub schema: String,
    /// The id of the job.
    pub job: String,
    /// The rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// How many ranks `MPI_COMM_WORLD` has.
    pub size: u32,
    /// The host of the rank.
    pub host: String,
    /// The process of the rank.
    pub pid: u32,
    /// How the run of the rank ended; none if the process was killed.
    pub ended: Option<Ending>,
    /// The clock of its times.
    pub clock: TimelineClock,
    /// Which part of the run was recorded; none if all of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<TimelineSelection>,
    /// The iterations whose events the file has; none if it has the latest events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<TimelineIterations>,
    /// How many events the rank recorded, in the iterations of the file if it has such. Those of them that the file does not have
    /// were overwritten by later ones.
    pub recorded: u64,
    /// The functions of MPI, by the number that events have for them.
    pub functions: Vec<String>,
    /// The communicators, by the number that events have for them, from 1.
    pub communicators: Vec<TimelineCommunicator>,
    /// The numbers that events have for places in the code that called, and these.
    pub sites: Vec<(u16, Address)>,
    /// The files that `sites` name by their index.
    pub load_map: Vec<LoadedObject>,
    /// The phases, by their number; the first one is the time outside all phases.
    pub phases: Vec<String>,
    /// How many messages there were in all, as far as the rank knows: empty if it does not.
    pub messages: Vec<TimelineMessages>,
}

/// The part of a run that the user asked for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TimelineSelection {
    /// When recording began after the end of `MPI_Init`, and for how long it went on, in s; none for the whole run.
    pub window_s: Option<[f64; 2]>,
    /// The phase inside of which calls were recorded; none for all.
    pub phase: Option<String>,
    /// How many of the slowest iterations were asked for; none for the latest calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<u32>,
}

/// The iterations that a rank kept.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TimelineIterations {
    /// How many there were, of which the file has a few.
    pub ended: u64,
    /// What an iteration lies between: the calls of the function with this number on the communicator with this number. None if
    /// it is a pass through the phase of the selection, or if there was no iteration.
    pub between: Option<(u16, u16)>,
    /// Those that the file has, in the order of their events.
    pub kept: Vec<TimelineIteration>,
}

/// One iteration of a rank.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct TimelineIteration {
    /// Its number, on which all ranks agree: that of the call with which it begins, or of the pass, from 1. 0 if there was no
    /// iteration: then the events are the latest ones.
    pub number: u64,
    /// When it began, in ticks.
    pub begun_ticks: u64,
    /// When it ended, in ticks; none if it had not.
    pub ended_ticks: Option<u64>,
    /// Whether it was kept because it was slow.
    pub is_slow: bool,
    /// Whether it was kept because it was drawn by lot, among all.
    pub is_drawn: bool,
    /// The number of the phase in which it began.
    pub phase: u32,
    /// How many events the file has of it.
    pub events: u64,
    /// How many earlier ones were overwritten.
    pub lost: u64,
}

/// What memory says of the events of an iteration that lie in it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TimelineLabel {
    /// The iteration, but for its events.
    pub iteration: TimelineIteration,
    /// How many iterations had ended before it.
    pub ended_before: u64,
    /// As in [`TimelineIterations`].
    pub between: Option<(u16, u16)>,
}

const IS_SLOW: u64 = 1;
const IS_DRAWN: u64 = 2;
const IS_BETWEEN: u64 = 1 << 32;

impl TimelineLabel {
    /// As it is in memory.
    pub fn packed(&self) -> [u64; 6] {
        let TimelineIteration {
            number, begun_ticks, ended_ticks, is_slow, is_drawn, phase, ..
        } = self.iteration;
        let flags = if is_slow { IS_SLOW } else { 0 } | if is_drawn { IS_DRAWN } else { 0 };
        let between = self.between.map_or(0, |(function, communicator)| {
            IS_BETWEEN | u64::from(function) << 16 | u64::from(communicator)
        });
        let phase = u64::from(phase) << 32;
        [number, begun_ticks, ended_ticks.unwrap_or(0), flags | phase, between, self.ended_before]
    }

    /// The label of a packed form.
    #[allow(clippy::cast_possible_truncation)]
    pub fn unpacked([number, begun, ended, flags, between, ended_before]: [u64; 6]) -> Self {
        let iteration = TimelineIteration {
            number,
            begun_ticks: begun,
            ended_ticks: (ended != 0).then_some(ended),
            is_slow: flags & IS_SLOW != 0,
            is_drawn: flags & IS_DRAWN != 0,
            phase: (flags >> 32) as u32,
            ..TimelineIteration::default()
        };
        let of = ((between >> 16) as u16, between as u16);
        let between = (between & IS_BETWEEN != 0).then_some(of);
        TimelineLabel { iteration, ended_before, between }
    }
}

impl TimelineSelection {
    /// Whether the first message of the run is in it.
    pub fn begins_with_the_run(&self) -> bool {
        self.phase.is_none()
            && self.slowest.is_none()
            && self.window_s.is_none_or(|[from_s, _]| from_s <= 0.0)
    }
}

/// How ticks become times.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TimelineClock {
    /// A number of the clock that all ranks of a host share, as that of `starts` in `waiting`: empty if it is not known.
    pub host: String,
    /// A moment in ticks.
    pub origin_ticks: u64,
    /// The same one on the clock of the host, in ns.
    pub origin_ns: u64,
    /// How long a tick is.
    pub ns_per_tick: f64,
    /// When this was written, in ticks.
    pub now_ticks: u64,
    /// When the run of the rank began, in ticks.
    pub begun_ticks: u64,
}

impl TimelineClock {
    /// A time on the clock of the host, in ns.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn ns(&self, ticks: u64) -> u64 {
        let since = ticks.saturating_sub(self.origin_ticks) as f64;
        self.origin_ns.saturating_add((since * self.ns_per_tick) as u64)
    }
}

/// A communicator or window.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TimelineCommunicator {
    /// Its name, as the program or the library gives it.
    pub name: String,
    /// A number that its ranks agree on, as that of `message_times`: 16 hexadecimal digits; none if they could not.
    pub number: Option<String>,
    /// How many ranks it has.
    pub size: u32,
    /// This rank in it, if that is known.
    pub rank: Option<u32>,
}

/// The messages from or to another rank on one communicator and with one tag.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TimelineMessages {
    /// Which way they go.
    pub direction: MessageDirection,
    /// The other rank, in `MPI_COMM_WORLD`.
    pub peer: u32,
    /// Their tag.
    pub tag: i32,
    /// The number of the communicator.
    pub communicator: String,
    /// Their exact number; none if more may have come.
    pub messages: Option<u64>,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimelineKind {
    /// A call of the function with this number.
    Call(u16),
    /// The receive of the call before it on its thread, if that call also sends.
    Receives,
    /// A persistent operation that the call before it on its thread started.
    Starts,
    /// A request that the call before it on its thread completed. `peer` and `tag`: from its status, if that was asked for.
    Completes,
    /// The program went from the phase with the number `request` to that with the number `site`.
    Phase,
}

/// The rank that an event names: in its communicator, or as the root of a collective operation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TimelinePeer {
    /// None, or it is not known.
    #[default]
    None,
    /// `MPI_PROC_NULL`.
    Null,
    /// `MPI_ANY_SOURCE`.
    Any,
    /// This one.
    Rank(u32),
}

/// One event. Its 32 bytes are four little-endian numbers of 64 bits; the lowest bits come first:
///
/// | number | bits |
/// | :-- | :-- |
/// | 0 | begin (48), communicator (16) |
/// | 1 | duration (32: an exponent of 5 bits, a mantissa of 27), request (32) |
/// | 2 | tag (32), peer (24), thread (8) |
/// | 3 | kind (12), call site (16), bytes (36) |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimelineEvent {
    /// What it is.
    pub kind: TimelineKind,
    /// When it began, in ticks; of the packed form the lowest 48 bits.
    pub begun: u64,
    /// How long it took, in ticks; exact below 2^27, then with a relative error below 2^-26.
    pub took: u64,
    /// The number of the communicator or window; 0 for none.
    pub communicator: u16,
    /// The low half of the request that it made or that completed; 0 for none.
    pub request: u32,
    /// The tag; -1 for any, [`TimelineEvent::NO_TAG`] for none.
    pub tag: i32,
    /// The other rank.
    pub peer: TimelinePeer,
    /// The thread: 0 if only one calls MPI; 255 stands for several.
    pub thread: u8,
    /// The number of the call site; 0 if it is not known.
    pub site: u16,
    /// What the call handed to MPI, in bytes, as the profile counts it; at most [`TimelineEvent::BYTES_AT_MOST`].
    pub bytes: u64,
}

const BEGIN_BITS: u32 = 48;
const MANTISSA_BITS: u32 = 27;
const EXPONENT_BITS: u32 = 32 - MANTISSA_BITS;
const PEER_BITS: u32 = 24;
const KIND_BITS: u32 = 12;
const SITE_BITS: u32 = 16;

/// The kinds that are no calls, from the top of their range down. 0 is a place that holds no event.
const RECEIVES: u16 = 0xfff;
const STARTS: u16 = 0xffe;
const COMPLETES: u16 = 0xffd;
const PHASE: u16 = 0xffc;

/// The peers that are no ranks.
const NO_PEER: u32 = 0xff_ffff;
const NULL_PEER: u32 = 0xff_fffe;
const ANY_PEER: u32 = 0xff_fffd;

impl TimelineEvent {
    /// In place of a tag.
    pub const NO_TAG: i32 = i32::MIN;
    /// The most bytes that an event can tell: 64 GiB - 1.
    pub const BYTES_AT_MOST: u64 = (1 << (64 - KIND_BITS - SITE_BITS)) - 1;
    /// The number of a function is below this.
    pub const FUNCTIONS_AT_MOST: u16 = PHASE - 1;

    /// An event that says nothing else.
    pub const fn new(kind: TimelineKind, begun: u64) -> TimelineEvent {
        TimelineEvent {
            kind,
            begun,
            took: 0,
            communicator: 0,
            request: 0,
            tag: TimelineEvent::NO_TAG,
            peer: TimelinePeer::None,
            thread: 0,
            site: 0,
            bytes: 0,
        }
    }

    /// As it is in memory and in the file.
    #[inline]
    #[allow(clippy::cast_sign_loss)]
    pub fn packed(&self) -> [u64; 4] {
        let exponent = (u64::BITS - self.took.leading_zeros()).saturating_sub(MANTISSA_BITS);
        let took = (self.took >> exponent) << EXPONENT_BITS | u64::from(exponent);
        let peer = match self.peer {
            TimelinePeer::None => NO_PEER,
            TimelinePeer::Null => NULL_PEER,
            TimelinePeer::Any => ANY_PEER,
            TimelinePeer::Rank(rank) => rank.min(NO_PEER),
        };
        let kind = match self.kind {
            TimelineKind::Call(function) => function + 1,
            TimelineKind::Receives => RECEIVES,
            TimelineKind::Starts => STARTS,
            TimelineKind::Completes => COMPLETES,
            TimelineKind::Phase => PHASE,
        };
        [
            self.begun & ((1 << BEGIN_BITS) - 1) | u64::from(self.communicator) << BEGIN_BITS,
            took | u64::from(self.request) << 32,
            u64::from(self.tag as u32) | u64::from(peer) << 32 | u64::from(self.thread) << 56,
            u64::from(kind)
                | u64::from(self.site) << KIND_BITS
                | self.bytes.min(TimelineEvent::BYTES_AT_MOST) << (KIND_BITS + SITE_BITS),
        ]
    }

    /// The event of a packed form; none for a place that holds none.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    pub fn unpacked([begin, took, tag, kind]: [u64; 4]) -> Option<TimelineEvent> {
        let mantissa = u64::from(took as u32 >> EXPONENT_BITS);
        let exponent = took & ((1 << EXPONENT_BITS) - 1);
        let peer = match (tag >> 32) as u32 & ((1 << PEER_BITS) - 1) {
            NO_PEER => TimelinePeer::None,
            NULL_PEER => TimelinePeer::Null,
            ANY_PEER => TimelinePeer::Any,
            rank => TimelinePeer::Rank(rank),
        };
        let number = kind as u16 & ((1 << KIND_BITS) - 1);
        Some(TimelineEvent {
            kind: match number {
                0 => return None,
                RECEIVES => TimelineKind::Receives,
                STARTS => TimelineKind::Starts,
                COMPLETES => TimelineKind::Completes,
                PHASE => TimelineKind::Phase,
                call => TimelineKind::Call(call - 1),
            },
            begun: begin & ((1 << BEGIN_BITS) - 1),
            took: mantissa << exponent,
            communicator: (begin >> BEGIN_BITS) as u16,
            request: (took >> 32) as u32,
            tag: tag as u32 as i32,
            peer,
            thread: (tag >> 56) as u8,
            site: (kind >> KIND_BITS) as u16,
            bytes: kind >> (KIND_BITS + SITE_BITS),
        })
    }
}

/// A ring of events in memory.
#[derive(Clone, Copy, Debug)]
pub struct TimelineRing<'a> {
    /// How many events there were. Event number `n` of them is at `n` modulo the number of events for which there is room.
    pub recorded: u64,
    /// The memory of the events.
    pub events: &'a [u8],
}

impl<'a> TimelineRing<'a> {
    /// The events that are left, the oldest first, in two pieces.
    fn pieces(&self) -> [&'a [[u8; TIMELINE_EVENT_BYTES]]; 2] {
        let (rows, _) = self.events.as_chunks::<TIMELINE_EVENT_BYTES>();
        let next = usize::try_from(self.recorded).unwrap_or(usize::MAX);
        if let Some(all) = rows.get(..next) {
            return [all, &[]];
        }
        let (later, earlier) = rows.split_at(next % rows.len().max(1));
        [earlier, later]
    }

    /// How many events are left.
    pub fn left(&self) -> u64 {
        self.pieces().iter().map(|piece| piece.len() as u64).sum()
    }
}

/// Writes the file of a rank, with the events of each ring after those of the one before.
///
/// # Errors
/// Those of `out`.
pub fn write_timeline(
    out: &mut impl Write,
    header: &TimelineHeader,
    rings: &[TimelineRing],
) -> io::Result<()> {
    let text = serde_json::to_vec(header)?;
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(&text)?;
    for piece in rings.iter().flat_map(TimelineRing::pieces) {
        out.write_all(piece.as_flattened())?;
    }
    Ok(())
}

/// The timeline in the bytes of a file, in which the times of events are whole: in ticks, the oldest first. An event that was being
/// written when the process was killed is left out.
///
/// The high bits of a time follow from the next event, as no two events in a row are 13 hours apart on a clock of 3 GHz (2^47 ticks).
/// Those of the last event of an iteration follow from its end.
///
/// # Errors
/// If the file is not one of this version.
pub fn parse_timeline(bytes: &[u8]) -> io::Result<(TimelineHeader, Vec<TimelineEvent>)> {
    let bad = |what: &str| io::Error::new(ErrorKind::InvalidData, what.to_owned());
    let not_whole = || bad("is not a whole timeline");
    let (length, rest) = bytes.split_first_chunk().ok_or_else(not_whole)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| not_whole())?;
    let (text, rows) = rest.split_at_checked(length).ok_or_else(not_whole)?;
    let mut header: TimelineHeader = serde_json::from_slice(text).map_err(io::Error::other)?;
    if header.schema != TIMELINE_SCHEMA {
        return Err(bad("is a timeline of another version of gyan"));
    }
    let (mut rows, _) = rows.as_chunks::<TIMELINE_EVENT_BYTES>();
    let now = header.clock.now_ticks;
    let Some(iterations) = &mut header.iterations else {
        let events = whole_events(rows, now);
        return Ok((header, events));
    };
    let mut events = Vec::new();
    for iteration in &mut iterations.kept {
        let length = usize::try_from(iteration.events).unwrap_or(usize::MAX);
        let (own, others) = rows.split_at_checked(length).ok_or_else(not_whole)?;
        let own = whole_events(own, iteration.ended_ticks.unwrap_or(now));
        iteration.events = own.len() as u64;
        events.extend(own);
        rows = others;
    }
    Ok((header, events))
}

/// The events of these rows, of which the last one ended at about `end`.
fn whole_events(rows: &[[u8; TIMELINE_EVENT_BYTES]], end: u64) -> Vec<TimelineEvent> {
    let unpacked = rows.iter().filter_map(|row| {
        let (words, _) = row.as_chunks::<8>();
        let words: [[u8; 8]; 4] = words.try_into().ok()?;
        TimelineEvent::unpacked(words.map(u64::from_le_bytes))
    });
    let mut events: Vec<TimelineEvent> = unpacked.collect();
    let mut next = end;
    for event in events.iter_mut().rev() {
        let end = nearest(event.begun.wrapping_add(event.took), next);
        event.begun = end.saturating_sub(event.took);
        next = end;
    }
    events
}

/// The time with these low bits that is nearest to another one.
fn nearest(low: u64, to: u64) -> u64 {
    const ROUND: u64 = 1 << BEGIN_BITS;
    let ahead = low.wrapping_sub(to) & (ROUND - 1);
    if ahead < ROUND / 2 { to + ahead } else { to.saturating_sub(ROUND - ahead) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_event(random: &mut fastrand::Rng) -> TimelineEvent {
        let kinds = [
            TimelineKind::Call(random.u16(..TimelineEvent::FUNCTIONS_AT_MOST)),
            TimelineKind::Receives,
            TimelineKind::Starts,
            TimelineKind::Completes,
            TimelineKind::Phase,
        ];
        let peers = [
            TimelinePeer::None,
            TimelinePeer::Null,
            TimelinePeer::Any,
            TimelinePeer::Rank(random.u32(..ANY_PEER)),
        ];
        TimelineEvent {
            kind: random.choice(kinds).unwrap(),
            begun: random.u64(..1 << BEGIN_BITS),
            took: random.u64(..1 << MANTISSA_BITS),
            communicator: random.u16(..),
            request: random.u32(..),
            tag: random.i32(..),
            peer: random.choice(peers).unwrap(),
            thread: random.u8(..),
            site: random.u16(..),
            bytes: random.u64(..=TimelineEvent::BYTES_AT_MOST),
        }
    }

    #[test]
    fn an_event_is_the_same_after_packing() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let event = random_event(&mut random);
            assert_eq!(TimelineEvent::unpacked(event.packed()), Some(event));
        }
        assert_eq!(TimelineEvent::unpacked([1, 2, 3, 0]), None);
    }

    #[test]
    fn long_calls_are_known_to_one_in_2_to_the_26() {
        for took in [1 << 27, (1 << 27) + 1, 3_000_000_000 * 3600, (1 << 58) - 1] {
            let event = TimelineEvent { took, ..TimelineEvent::new(TimelineKind::Phase, 0) };
            let known = TimelineEvent::unpacked(event.packed()).unwrap().took;
            assert!(took - known <= took >> 26, "{took} {known}");
        }
        let event = TimelineEvent { bytes: u64::MAX, ..TimelineEvent::new(TimelineKind::Phase, 0) };
        let known = TimelineEvent::unpacked(event.packed()).unwrap().bytes;
        assert_eq!(known, TimelineEvent::BYTES_AT_MOST);
    }

    /// The memory of a ring of `room` events after `recorded` ones, whose begins are `apart` apart and end at `end`.
    fn ring(room: u64, recorded: u64, apart: u64, end: u64) -> Vec<u8> {
        let mut ring = vec![0; usize::try_from(room).unwrap() * TIMELINE_EVENT_BYTES];
        for number in 0..recorded {
            let begun = end - (recorded - number) * apart;
            let kind = TimelineKind::Call(u16::try_from(number).unwrap());
            let event = TimelineEvent { took: 5, ..TimelineEvent::new(kind, begun) };
            let at = usize::try_from(number % room).unwrap() * TIMELINE_EVENT_BYTES;
            let words = event.packed().map(u64::to_le_bytes);
            ring[at..at + TIMELINE_EVENT_BYTES].copy_from_slice(words.as_flattened());
        }
        ring
    }

    /// The file of such a ring.
    fn written(room: u64, recorded: u64, apart: u64, now_ticks: u64) -> Vec<u8> {
        let header = TimelineHeader {
            schema: TIMELINE_SCHEMA.into(),
            recorded,
            clock: TimelineClock { now_ticks, ..TimelineClock::default() },
            ..TimelineHeader::default()
        };
        let mut file = Vec::new();
        let events = &ring(room, recorded, apart, now_ticks);
        write_timeline(&mut file, &header, &[TimelineRing { recorded, events }]).unwrap();
        file
    }

    #[test]
    fn the_latest_events_are_in_their_order_whether_the_ring_was_filled_or_not() {
        for (room, recorded) in [(4, 0), (4, 3), (4, 4), (4, 5), (4, 8), (4, 11), (1, 7)] {
            let (_, events) = parse_timeline(&written(room, recorded, 10, 1 << 60)).unwrap();
            let numbers: Vec<_> = events.iter().map(|event| event.kind).collect();
            let first = recorded.saturating_sub(room);
            let all = first..recorded;
            let truth = all.map(|number| TimelineKind::Call(u16::try_from(number).unwrap()));
            assert_eq!(numbers, truth.collect::<Vec<_>>(), "{room} {recorded}");
        }
    }

    #[test]
    fn times_are_whole_although_the_window_is_longer_than_what_their_bits_can_tell() {
        // The events are 10 hours apart, on a clock of 3 GHz.
        let (apart, now) = (36_000 * 3_000_000_000, 1 << 61);
        let (_, events) = parse_timeline(&written(64, 50, apart, now)).unwrap();
        for (at, event) in events.iter().enumerate() {
            assert_eq!(event.begun, now - (50 - at as u64) * apart);
        }
    }

    #[test]
    fn iterations_follow_each_other_and_each_has_the_times_of_its_own_end() {
        // Two weeks apart, in an order that is none of times: nothing in the events says so.
        let week = 7 * 86_400 * 3_000_000_000;
        let ends = [5 * week, week, 3 * week];
        let counts = [3, 6, 4];
        let memory = ends.iter().zip(counts).map(|(end, count)| ring(4, count, 10, *end));
        let memory: Vec<Vec<u8>> = memory.collect();
        let rings = memory.iter().zip(counts);
        let rings: Vec<TimelineRing> =
            rings.map(|(events, recorded)| TimelineRing { recorded, events }).collect();
        let kept = ends.iter().zip(&rings).map(|(end, ring)| TimelineIteration {
            ended_ticks: Some(*end),
            events: ring.left(),
            ..TimelineIteration::default()
        });
        let kept: Vec<TimelineIteration> = kept.collect();
        assert_eq!(kept.iter().map(|kept| kept.events).collect::<Vec<_>>(), [3, 4, 4]);
        let header = TimelineHeader {
            schema: TIMELINE_SCHEMA.into(),
            iterations: Some(TimelineIterations { kept, ..TimelineIterations::default() }),
            clock: TimelineClock { now_ticks: 6 * week, ..TimelineClock::default() },
            ..TimelineHeader::default()
        };
        let mut file = Vec::new();
        write_timeline(&mut file, &header, &rings).unwrap();
        let (read, events) = parse_timeline(&file).unwrap();
        assert_eq!(read, header);
        let begins: Vec<u64> = events.iter().map(|event| event.begun).collect();
        let truth = ends.iter().zip([3, 4, 4]);
        let truth = truth.flat_map(|(end, left)| (1..=left).rev().map(move |ago| end - ago * 10));
        assert_eq!(begins, truth.collect::<Vec<_>>());
        // What is cut off is refused.
        assert!(parse_timeline(&file[..file.len() - TIMELINE_EVENT_BYTES]).is_err());
    }

    #[test]
    fn a_label_is_the_same_after_packing() {
        for (number, between, ended) in [(0, None, None), (7, Some((300, 4)), Some(1 << 60))] {
            let label = TimelineLabel {
                iteration: TimelineIteration {
                    number,
                    begun_ticks: 9,
                    ended_ticks: ended,
                    is_slow: number > 0,
                    is_drawn: number == 0,
                    phase: 3,
                    ..TimelineIteration::default()
                },
                ended_before: 1_000_000_000_000,
                between,
            };
            assert_eq!(TimelineLabel::unpacked(label.packed()), label);
        }
    }

    #[test]
    fn what_is_no_timeline_is_refused() {
        let good = written(4, 9, 10, 1 << 60);
        assert!(parse_timeline(&good).is_ok());
        for length in [0, 7, 8, 100] {
            assert!(parse_timeline(&good[..length]).is_err());
        }
        let other = String::from_utf8_lossy(&good).replace("timeline/1", "timeline/2");
        assert!(parse_timeline(other.as_bytes()).is_err());
    }
}
