//! Which calls wait, until when and for whom? By definition (the wait states of Scalasca), from when calls began on all ranks:
//!
//! - A receive waits until the send of its message begins (late sender), in the call that completes it, if that blocks.
//! - A blocking send waits until its receive is posted, provided that it lasts beyond that (late receiver).
//! - A collective that no rank leaves before all have begun it waits until the last rank begins it.
//! - One whose data come from a root waits until the root begins it (late root); at a root that gets the data of all, until the last
//!   of the others begins it (early root).
//! - A nonblocking one waits in the call that completes it, if that blocks.
//!
//! Of iterations that were kept no messages are known, but collectives are counted in each of them, if they lie between calls that all
//! ranks make together.
//!
//! A call waits from its own begin on, and at most until its end. Only what is certain is a wait: a message whose other end is not
//! known, or a collective that cannot be counted on every rank of its communicator, is none.

use std::collections::{BTreeMap, HashMap};

use gyan_results::{
    MessageDirection, TimelineEvent, TimelineHeader, TimelineKind, TimelinePeer, WaitsFor,
};
use serde::Serialize;

use super::arrows::{Arrows, Countable, in_stream};
use super::messages::{RankMessages, communicator, number};
use super::parts;

/// Collectives in which it is certain who waits for whom ([`WaitsFor`]). Not those in which each rank has a count of its own: with a
/// count of zero a rank need not wait.
const COLLECTIVES: [&str; 18] = [
    "MPI_Barrier",
    "MPI_Allreduce",
    "MPI_Allgather",
    "MPI_Alltoall",
    "MPI_Reduce_scatter_block",
    "MPI_Bcast",
    "MPI_Scatter",
    "MPI_Reduce",
    "MPI_Gather",
    "MPI_Ibarrier",
    "MPI_Iallreduce",
    "MPI_Iallgather",
    "MPI_Ialltoall",
    "MPI_Ireduce_scatter_block",
    "MPI_Ibcast",
    "MPI_Iscatter",
    "MPI_Ireduce",
    "MPI_Igather",
];
/// What the names of those begin with that another call completes.
const NONBLOCKING: &str = "MPI_I";

/// How a call waits for the messages and operations that are complete when it ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum WaitsForRequests {
    All,
    /// It returns with the first one.
    Any,
}

/// None if the call does not block for any.
fn waits_for_requests(function: &str) -> Option<WaitsForRequests> {
    match base(function) {
        "MPI_Recv"
        | "MPI_Mprobe"
        | "MPI_Sendrecv"
        | "MPI_Sendrecv_replace"
        | "MPI_Wait"
        | "MPI_Waitall" => Some(WaitsForRequests::All),
        "MPI_Waitany" | "MPI_Waitsome" => Some(WaitsForRequests::Any),
        _ => None,
    }
}

/// Whether it blocks for a message that it sends, and for nothing else.
fn is_blocking_send(function: &str) -> bool {
    matches!(base(function), "MPI_Send" | "MPI_Ssend" | "MPI_Rsend")
}

/// The large-count form is the same function.
fn base(function: &str) -> &str {
    function.strip_suffix("_c").unwrap_or(function)
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitState {
    LateSender,
    LateReceiver,
    /// The last rank of a collective.
    Collective,
    /// The root of a collective, from which its data come.
    LateRoot,
    /// The last of the others, at the root of a collective that gets their data.
    EarlyRoot,
}

impl WaitState {
    /// The finding that counts such waits, by its id.
    pub(super) fn finding(self) -> &'static str {
        match self {
            WaitState::LateSender => "late-senders",
            WaitState::LateReceiver => "late-receivers",
            WaitState::Collective => "waiting",
            WaitState::LateRoot => "late-root",
            WaitState::EarlyRoot => "early-root",
        }
    }
}

/// The call that another one waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LateCall {
    /// Its rank in `MPI_COMM_WORLD`.
    pub(crate) rank: u32,
    /// When it began, in ns on the clock of the run.
    pub(crate) begun_ns: u64,
}

/// A wait in a call of a rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CallWait {
    /// The place of the call among the rank's events.
    pub(crate) at: usize,
    pub(crate) state: WaitState,
    /// From when until when it waits, in ns on the clock of the run.
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
    pub(crate) late: LateCall,
}

/// From where the collectives on a communicator are counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CountedFrom {
    Start,
    End,
}

/// A communicator as far as its ranks are known.
#[derive(Clone, Copy, Debug)]
struct CommunicatorSeen {
    size: u32,
    ranks: u32,
    countable: Countable,
}

/// The communicators of a run.
#[derive(Default)]
pub(super) struct Communicators {
    /// By their numbers.
    seen: BTreeMap<u64, CommunicatorSeen>,
    /// Whether an iteration lies between calls that all ranks make together.
    pub(super) have_iterations: bool,
}

impl Communicators {
    /// `lost`: how many events of the rank were overwritten.
    pub(super) fn add(&mut self, header: &TimelineHeader, lost: u64) {
        let countable = Countable::new(header, lost);
        let own: BTreeMap<u64, u32> = header
            .communicators
            .iter()
            .filter_map(|known| {
                known.rank?;
                Some((number(known.number.as_deref()?)?, known.size))
            })
            .collect();
        for (number, size) in own {
            let first = CommunicatorSeen { size, ranks: 0, countable };
            let seen = self.seen.entry(number).or_insert(first);
            seen.ranks += 1;
            seen.countable.from_start &= countable.from_start;
            seen.countable.from_end &= countable.from_end;
        }
    }

    /// A communicator of which all ranks are known.
    fn whole(&self, number: u64) -> Option<&CommunicatorSeen> {
        self.seen.get(&number).filter(|seen| seen.ranks == seen.size && seen.size > 1)
    }

    /// From where its collectives are counted, if that is certain.
    fn counted(&self, number: u64) -> Option<CountedFrom> {
        match self.whole(number)?.countable {
            Countable { from_start: true, .. } => Some(CountedFrom::Start),
            Countable { from_end: true, .. } => Some(CountedFrom::End),
            Countable { .. } => None,
        }
    }
}

/// The n-th call of a function on a communicator: a collective operation, which all of its ranks call.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct CollectiveInstance {
    communicator: u64,
    function: &'static str,
    /// The number of the iteration in which it is counted; 0 if it is counted from the start, or from the end.
    iteration: u64,
    ordinal: usize,
}

/// Such an operation on one rank.
#[derive(Clone, Copy, Debug)]
struct OwnCollective {
    instance: CollectiveInstance,
    /// The place of its event.
    at: usize,
    /// The place of the call in which the rank waits: its own, or the one that completes it; none if that was not seen.
    waits_in: Option<usize>,
    is_root: bool,
}

/// The events of a rank, and their times.
pub(super) struct TimedEvents<'a> {
    pub(super) header: &'a TimelineHeader,
    pub(super) events: &'a [TimelineEvent],
    pub(super) messages: &'a RankMessages,
    /// Ticks as ns on the clock of the run.
    pub(super) ns: &'a dyn Fn(u64) -> u64,
}

impl TimedEvents<'_> {
    pub(super) fn function(&self, event: &TimelineEvent) -> Option<&str> {
        let TimelineKind::Call(function) = event.kind else { return None };
        self.header.functions.get(usize::from(function)).map(String::as_str)
    }

    /// When a call began and ended.
    pub(super) fn span_ns(&self, event: &TimelineEvent) -> (u64, u64) {
        let begun = (self.ns)(event.begun);
        (begun, (self.ns)(event.begun + event.took).max(begun))
    }

    /// The collectives in which ranks wait, as far as it is certain which calls of other ranks they are.
    fn collectives(&self, communicators: &Communicators) -> Vec<OwnCollective> {
        let functions: Vec<Option<&'static str>> = self
            .header
            .functions
            .iter()
            .map(|function| COLLECTIVES.into_iter().find(|known| *known == base(function)))
            .collect();
        // Not of iterations: a request may have been that of an operation between two that were kept.
        let operations = self.messages.other_operations.iter().copied();
        let completed: HashMap<usize, usize> =
            operations.filter(|_| self.header.iterations.is_none()).collect();
        let mut counts: HashMap<(u64, &str, u64), usize> = HashMap::new();
        let mut all = Vec::new();
        for (iteration, at, event) in self.counted_events(communicators) {
            let TimelineKind::Call(function) = event.kind else { continue };
            let Some(function) = functions.get(usize::from(function)).copied().flatten() else {
                continue;
            };
            let Some((communicator, own)) = communicator(self.header, event) else { continue };
            let count = counts.entry((communicator, function, iteration)).or_default();
            let instance =
                CollectiveInstance { communicator, function, iteration, ordinal: *count };
            let is_root = event.peer == TimelinePeer::Rank(own);
            let is_nonblocking = function.starts_with(NONBLOCKING);
            let waits_in = if is_nonblocking { completed.get(&at).copied() } else { Some(at) };
            all.push(OwnCollective { instance, at, waits_in, is_root });
            *count += 1;
        }
        let counted = |own: OwnCollective| {
            let instance = own.instance;
            if instance.iteration > 0 {
                return Some(own);
            }
            let from = communicators.counted(instance.communicator)?;
            let ordinal = match from {
                CountedFrom::Start => instance.ordinal,
                CountedFrom::End => {
                    counts[&(instance.communicator, instance.function, 0)] - 1 - instance.ordinal
                }
            };
            Some(OwnCollective { instance: CollectiveInstance { ordinal, ..instance }, ..own })
        };
        all.into_iter().filter_map(counted).collect()
    }

    /// The events whose collectives can be counted, each with its iteration and its place.
    fn counted_events(&self, communicators: &Communicators) -> Vec<(u64, usize, &TimelineEvent)> {
        let mut begin = 0;
        let mut all = Vec::new();
        for part in parts(self.header, self.events) {
            let places = begin..;
            begin += part.events.len();
            let iteration = match part.iteration {
                None => 0,
                Some(of) if communicators.have_iterations && part.lost == 0 && of.number > 0 => {
                    of.number
                }
                Some(_) => continue,
            };
            all.extend(places.zip(part.events).map(|(at, event)| (iteration, at, event)));
        }
        all
    }

    /// When the calls began that others may wait for.
    pub(super) fn begins(&self, arrows: &Arrows, communicators: &Communicators) -> RankBegins {
        let begun = |at: usize| self.events.get(at).map(|event| (self.ns)(event.begun));
        let messages = arrows.of(self.messages).into_iter().filter_map(|(message, arrow)| {
            Some((arrow?, message.direction, begun(message.begun_in)?))
        });
        let collectives = self.collectives(communicators).into_iter();
        RankBegins {
            rank: self.header.rank,
            messages: messages.collect(),
            collectives: collectives.filter_map(|own| Some((own, begun(own.at)?))).collect(),
        }
    }

    /// The waits of this rank, in the order of its events.
    pub(super) fn waits(
        &self,
        arrows: &Arrows,
        communicators: &Communicators,
        begins: &Begins,
    ) -> Vec<CallWait> {
        let mut late: BTreeMap<usize, (WaitState, LateCall)> = BTreeMap::new();
        // What a call waits for that may wait for several.
        let mut waits_for = |at: usize, state, call: LateCall| {
            let Some(how) = self.function_at(at).and_then(waits_for_requests) else { return };
            let known = late.entry(at).or_insert((state, call));
            let is_later = call.begun_ns > known.1.begun_ns;
            if is_later == (how == WaitsForRequests::All) {
                *known = (state, call);
            }
        };
        let mut alone = Vec::new();
        for (message, arrow) in arrows.of(self.messages) {
            let Some(arrow) = arrow else { continue };
            match message.direction {
                MessageDirection::Received => {
                    let Some(at) = message.ended_in else { continue };
                    if let Some(send) = begins.of_message(arrow, MessageDirection::Sent) {
                        waits_for(at, WaitState::LateSender, send);
                    }
                }
                MessageDirection::Sent => {
                    let at = message.begun_in;
                    if !self.function_at(at).is_some_and(is_blocking_send) {
                        continue;
                    }
                    let receive = begins.of_message(arrow, MessageDirection::Received);
                    let ended = self.events.get(at).map(|event| self.span_ns(event).1);
                    // What ends before that did not wait for it.
                    let lasted =
                        receive.filter(|call| ended.is_some_and(|end| end > call.begun_ns));
                    alone.extend(lasted.map(|call| (at, (WaitState::LateReceiver, call))));
                }
            }
        }
        for own in self.collectives(communicators) {
            let Some((state, call)) = begins.waited_for(&own, communicators) else { continue };
            match own.waits_in {
                Some(at) if at == own.at => alone.push((at, (state, call))),
                Some(at) => waits_for(at, state, call),
                None => {}
            }
        }
        late.extend(alone);
        let wait = |(at, (state, late)): (usize, (WaitState, LateCall))| {
            let (from_ns, end) = self.span_ns(self.events.get(at)?);
            let until_ns = late.begun_ns.min(end);
            (until_ns > from_ns).then_some(CallWait { at, state, from_ns, until_ns, late })
        };
        late.into_iter().filter_map(wait).collect()
    }

    fn function_at(&self, at: usize) -> Option<&str> {
        self.function(self.events.get(at)?)
    }
}

/// When the calls of a rank began that others may wait for, in ns on the clock of the run.
pub(super) struct RankBegins {
    rank: u32,
    messages: Vec<(u64, MessageDirection, u64)>,
    collectives: Vec<(OwnCollective, u64)>,
}

/// One side of the messages of a stream, by their number.
#[derive(Default)]
struct StreamSide {
    rank: u32,
    begins_ns: Vec<u64>,
}

/// When ranks began a collective.
#[derive(Clone, Copy, Default)]
struct CollectiveBegins {
    /// The last one but the root, where there is one.
    last: Option<LateCall>,
    root: Option<LateCall>,
    ranks: u32,
}

/// When the calls of all ranks began that others may wait for: 8 bytes for each end of a message.
#[derive(Default)]
pub(super) struct Begins {
    /// By the number of the stream: the sends and the receives.
    streams: HashMap<u64, [StreamSide; 2]>,
    collectives: HashMap<CollectiveInstance, CollectiveBegins>,
}

/// In place of a time that is not known.
const UNKNOWN: u64 = u64::MAX;

fn side(direction: MessageDirection) -> usize {
    match direction {
        MessageDirection::Sent => 0,
        MessageDirection::Received => 1,
    }
}

impl Begins {
    pub(super) fn add(&mut self, of: RankBegins) {
        for (arrow, direction, ns) in of.messages {
            let (stream, ordinal) = in_stream(arrow);
            let side = &mut self.streams.entry(stream).or_default()[side(direction)];
            side.rank = of.rank;
            if side.begins_ns.len() <= ordinal {
                side.begins_ns.resize(ordinal + 1, UNKNOWN);
            }
            side.begins_ns[ordinal] = ns;
        }
        for (collective, begun_ns) in of.collectives {
            let own = LateCall { rank: of.rank, begun_ns };
            let known = self.collectives.entry(collective.instance).or_default();
            known.ranks += 1;
            if collective.is_root {
                known.root = Some(own);
            } else if known.last.is_none_or(|last| begun_ns > last.begun_ns) {
                known.last = Some(own);
            }
        }
    }

    fn of_message(&self, arrow: u64, direction: MessageDirection) -> Option<LateCall> {
        let (stream, ordinal) = in_stream(arrow);
        let side = &self.streams.get(&stream)?[side(direction)];
        let begun_ns = *side.begins_ns.get(ordinal).filter(|ns| **ns != UNKNOWN)?;
        Some(LateCall { rank: side.rank, begun_ns })
    }

    /// For whom a rank waits in a collective, if all ranks are known to have begun it.
    fn waited_for(
        &self,
        own: &OwnCollective,
        communicators: &Communicators,
    ) -> Option<(WaitState, LateCall)> {
        let size = communicators.whole(own.instance.communicator)?.size;
        let known = self.collectives.get(&own.instance).filter(|known| known.ranks == size)?;
        let late_root = || Some((WaitState::LateRoot, known.root?));
        match (WaitsFor::in_function(own.instance.function), own.is_root) {
            (WaitsFor::All, _) => Some((WaitState::Collective, known.last?)),
            (WaitsFor::AtRoot, true) => Some((WaitState::EarlyRoot, known.last?)),
            (WaitsFor::Root, false) => late_root(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use gyan_results::{Ending, TimelineCommunicator, TimelineIteration, TimelineIterations};

    use super::*;

    const FUNCTIONS: [&str; 14] = [
        "MPI_Send",
        "MPI_Recv",
        "MPI_Irecv",
        "MPI_Waitall",
        "MPI_Waitany",
        "MPI_Test",
        "MPI_Barrier",
        "MPI_Allreduce",
        "MPI_Isend",
        "MPI_Alltoallv",
        "MPI_Bcast",
        "MPI_Reduce",
        "MPI_Iallreduce",
        "MPI_Ireduce",
    ];

    fn header(rank: u32, size: u32) -> TimelineHeader {
        let world = TimelineCommunicator {
            number: Some("0000000000000001".into()),
            size,
            rank: Some(rank),
            ..TimelineCommunicator::default()
        };
        TimelineHeader {
            rank,
            size,
            ended: Some(Ending::Finalize),
            functions: FUNCTIONS.map(str::to_owned).into(),
            communicators: vec![world],
            ..TimelineHeader::default()
        }
    }

    /// A call from one time to another one.
    fn call(function: &str, (begun, ended): (u64, u64)) -> TimelineEvent {
        let at = FUNCTIONS.iter().position(|known| *known == function).unwrap();
        let kind = TimelineKind::Call(u16::try_from(at).unwrap());
        TimelineEvent { communicator: 1, took: ended - begun, ..TimelineEvent::new(kind, begun) }
    }

    /// The same with another rank.
    fn with(peer: u32, of: TimelineEvent) -> TimelineEvent {
        TimelineEvent { peer: TimelinePeer::Rank(peer), tag: 7, ..of }
    }

    fn requested(request: u32, of: TimelineEvent) -> TimelineEvent {
        TimelineEvent { request, ..of }
    }

    fn completes(request: u32, at: u64) -> TimelineEvent {
        TimelineEvent { request, ..TimelineEvent::new(TimelineKind::Completes, at) }
    }

    /// A wait: place, state, from, until and the late rank.
    type FoundWait = (usize, WaitState, u64, u64, u32);

    fn waits_of(ranks: &[(TimelineHeader, u64, Vec<TimelineEvent>)]) -> Vec<Vec<FoundWait>> {
        let (mut arrows, mut communicators) = (Arrows::default(), Communicators::default());
        communicators.have_iterations = ranks.iter().all(|(of, ..)| of.iterations.is_some());
        let messages: Vec<RankMessages> =
            ranks.iter().map(|(header, _, events)| RankMessages::of(header, events)).collect();
        for ((header, lost, _), messages) in ranks.iter().zip(&messages) {
            arrows.add(header, *lost, messages);
            communicators.add(header, *lost);
        }
        arrows.choose();
        let ns = |ticks| ticks;
        let timed: Vec<TimedEvents> = ranks
            .iter()
            .zip(&messages)
            .map(|((header, _, events), messages)| TimedEvents {
                header,
                events,
                messages,
                ns: &ns,
            })
            .collect();
        let mut begins = Begins::default();
        for rank in &timed {
            begins.add(rank.begins(&arrows, &communicators));
        }
        let each = |rank: &TimedEvents| {
            let waits = rank.waits(&arrows, &communicators, &begins).into_iter();
            waits.map(|of| (of.at, of.state, of.from_ns, of.until_ns, of.late.rank)).collect()
        };
        timed.iter().map(each).collect()
    }

    /// The same of ranks that lost nothing.
    fn waits(events: &[&[TimelineEvent]]) -> Vec<Vec<FoundWait>> {
        let size = u32::try_from(events.len()).unwrap();
        let ranks = (0..size).zip(events);
        let ranks: Vec<_> =
            ranks.map(|(rank, events)| (header(rank, size), 0, events.to_vec())).collect();
        waits_of(&ranks)
    }

    use WaitState::{Collective, EarlyRoot, LateReceiver, LateRoot, LateSender};

    #[test]
    fn a_receive_waits_until_its_message_is_sent() {
        let send = with(1, call("MPI_Send", (50, 52)));
        let found = waits(&[&[send], &[with(0, call("MPI_Recv", (10, 53)))]]);
        assert_eq!(found, [vec![], vec![(0, LateSender, 10, 50, 0)]]);
        // The message was there before.
        assert_eq!(waits(&[&[send], &[with(0, call("MPI_Recv", (60, 90)))]])[1], []);
    }

    #[test]
    fn a_send_waits_until_it_is_received_if_it_lasts_beyond_that() {
        let receive = with(0, call("MPI_Recv", (40, 60)));
        let send = |ended| with(1, call("MPI_Send", (10, ended)));
        assert_eq!(waits(&[&[send(55)], &[receive]]), [vec![(0, LateReceiver, 10, 40, 1)], vec![]]);
        // A small message is on its way, and the call has ended.
        assert_eq!(waits(&[&[send(12)], &[receive]])[0], []);
        let started = with(1, requested(3, call("MPI_Isend", (10, 55))));
        assert_eq!(waits(&[&[started], &[receive]])[0], []);
    }

    #[test]
    fn a_receive_that_was_posted_before_waits_in_the_call_that_completes_it() {
        let posted = |request, from| with(from, requested(request, call("MPI_Irecv", (1, 2))));
        let completed = |function| {
            let ends = [call(function, (10, 90)), completes(1, 90), completes(2, 90)];
            [&[posted(1, 0), posted(2, 1)][..], &ends].concat()
        };
        let sends: [&[TimelineEvent]; 2] =
            [&[with(2, call("MPI_Send", (30, 31)))], &[with(2, call("MPI_Send", (80, 81)))]];
        let found = |function| waits(&[sends[0], sends[1], &completed(function)]).remove(2);
        assert_eq!(found("MPI_Waitall"), [(2, LateSender, 10, 80, 1)]);
        assert_eq!(found("MPI_Waitany"), [(2, LateSender, 10, 30, 0)]);
        assert_eq!(found("MPI_Test"), []);
    }

    #[test]
    fn all_wait_for_the_last_rank_of_a_barrier() {
        let barrier = |begun| [call("MPI_Barrier", (begun, 60))];
        let found = waits(&[&barrier(10), &barrier(50), &barrier(30)]);
        let wait = |begun| vec![(0, Collective, begun, 50, 1)];
        assert_eq!(found, [wait(10), vec![], wait(30)]);
    }

    #[test]
    fn others_wait_for_the_root_of_a_broadcast_and_the_root_of_a_reduction_for_others() {
        let broadcast = |begun| [with(1, call("MPI_Bcast", (begun, 60)))];
        let found = waits(&[&broadcast(10), &broadcast(30), &broadcast(50)]);
        assert_eq!(found, [vec![(0, LateRoot, 10, 30, 1)], vec![], vec![]]);
        let reduction = |begun| [with(1, call("MPI_Reduce", (begun, 60)))];
        let found = waits(&[&reduction(10), &reduction(30), &reduction(50)]);
        assert_eq!(found, [vec![], vec![(0, EarlyRoot, 30, 50, 2)], vec![]]);
    }

    #[test]
    fn a_nonblocking_operation_waits_in_the_call_that_completes_it_until_the_others_start_it() {
        let all = |started, completed: &str, waits: (u64, u64)| {
            let start = requested(1, call("MPI_Iallreduce", (started, started + 1)));
            vec![start, call(completed, waits), completes(1, waits.1)]
        };
        let late = || all(50, "MPI_Waitall", (55, 90));
        let found = |completed| waits(&[&all(5, completed, (10, 90)), &late()]);
        assert_eq!(found("MPI_Waitall"), [vec![(1, Collective, 10, 50, 1)], vec![]]);
        assert_eq!(found("MPI_Test"), [vec![], vec![]]);
        let to_root = |started, waits| {
            let mut events = all(started, "MPI_Waitall", waits);
            events[0] = with(0, requested(1, call("MPI_Ireduce", (started, started + 1))));
            events
        };
        let found = waits(&[&to_root(5, (10, 90)), &to_root(50, (55, 90))]);
        assert_eq!(found, [vec![(1, EarlyRoot, 10, 50, 1)], vec![]]);
    }

    #[test]
    fn instances_are_counted_for_each_function_and_not_where_counts_may_differ() {
        let events = |late: u64| {
            [
                call("MPI_Allreduce", (10, 20)),
                call("MPI_Alltoallv", (30, 40)),
                call("MPI_Barrier", (50 + late, 60)),
                call("MPI_Allreduce", (70 + late, 80)),
            ]
        };
        let found = waits(&[&events(0), &events(5)]);
        assert_eq!(found, [vec![(2, Collective, 50, 55, 1), (3, Collective, 70, 75, 1)], vec![]]);
    }

    #[test]
    fn a_rank_without_its_first_events_is_counted_from_the_end_if_all_finalized() {
        let barrier = |begun| call("MPI_Barrier", (begun, begun + 20));
        let all = vec![barrier(10), barrier(100), barrier(200)];
        let late = vec![barrier(105), barrier(205)];
        let ranks = |ended| {
            let header = |rank| TimelineHeader { ended, ..header(rank, 2) };
            [(header(0), 0, all.clone()), (header(1), 1, late.clone())]
        };
        let truth = [(1, Collective, 100, 105, 1), (2, Collective, 200, 205, 1)];
        assert_eq!(waits_of(&ranks(Some(Ending::Finalize)))[0], truth);
        assert_eq!(waits_of(&ranks(None))[0], []);
    }

    #[test]
    fn collectives_are_counted_in_each_iteration_that_was_kept_and_lost_no_event() {
        let barrier = |begun| call("MPI_Barrier", (begun, begun + 50));
        let kept = |numbers: &[(u64, u64)]| {
            let of = |&(number, lost): &(u64, u64)| TimelineIteration {
                number,
                lost,
                events: 2,
                ended_ticks: Some(1000),
                ..TimelineIteration::default()
            };
            let kept = numbers.iter().map(of).collect();
            Some(TimelineIterations { ended: 20, between: Some((6, 1)), kept })
        };
        let ranks = |lost| {
            // The second rank did not keep iteration 7, and came 20 later to all others.
            let first = [10, 100, 200, 300, 400, 500].map(barrier).to_vec();
            let second = [30, 120, 420, 520].map(barrier).to_vec();
            let of = |rank, iterations| TimelineHeader { iterations, ..header(rank, 2) };
            [
                (of(0, kept(&[(5, 0), (7, 0), (9, lost)])), 0, first),
                (of(1, kept(&[(5, 0), (9, lost)])), 0, second),
            ]
        };
        let of_five = vec![(0, Collective, 10, 30, 1), (1, Collective, 100, 120, 1)];
        let of_nine = vec![(4, Collective, 400, 420, 1), (5, Collective, 500, 520, 1)];
        assert_eq!(waits_of(&ranks(0)), [[of_five.clone(), of_nine].concat(), vec![]]);
        assert_eq!(waits_of(&ranks(3)), [of_five, vec![]]);
    }

    #[test]
    fn nobody_knows_for_whom_a_rank_waits_if_one_has_no_timeline() {
        let barrier = |begun| vec![call("MPI_Barrier", (begun, 60))];
        let ranks = [(header(0, 3), 0, barrier(10)), (header(1, 3), 0, barrier(50))];
        assert_eq!(waits_of(&ranks), [vec![], vec![]]);
    }

    #[test]
    fn nobody_waits_longer_than_the_call_takes() {
        let found = waits(&[&[call("MPI_Barrier", (10, 30))], &[call("MPI_Barrier", (50, 60))]]);
        assert_eq!(found[0], [(0, Collective, 10, 30, 1)]);
    }
}
