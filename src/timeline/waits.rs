//! Which calls wait, until when and for whom? By definition (the wait states of Scalasca), from when calls began on all ranks:
//!
//! - A receive waits until the send of its message begins (late sender), in the call that completes it, if that blocks.
//! - A blocking send waits until its receive is posted, provided that it lasts beyond that (late receiver).
//! - A collective that no rank leaves before all have begun it waits until the last rank begins it.
//!
//! A call waits from its own begin on, and at most until its end. Only what is certain is a wait: a message whose other end is not
//! known, or a collective that cannot be counted on every rank of its communicator, is none.

use std::collections::{BTreeMap, HashMap};

use gyan_results::{MessageDirection, TimelineEvent, TimelineHeader, TimelineKind};

use super::messages::{Arrows, Countable, RankMessages, communicator, number};

/// Collectives that no rank leaves before all have begun them. Not those in which each rank has a count of its own: with a count of
/// zero a rank need not wait.
const OF_ALL: [&str; 5] =
    ["MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter_block"];

/// How a call waits for the messages that have come when it ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum WaitsForMessages {
    All,
    /// It returns with the first one.
    Any,
}

/// None if the call does not block for a message.
fn waits_for_messages(function: &str) -> Option<WaitsForMessages> {
    match base(function) {
        "MPI_Recv"
        | "MPI_Mprobe"
        | "MPI_Sendrecv"
        | "MPI_Sendrecv_replace"
        | "MPI_Wait"
        | "MPI_Waitall" => Some(WaitsForMessages::All),
        "MPI_Waitany" | "MPI_Waitsome" => Some(WaitsForMessages::Any),
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
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WaitState {
    LateSender,
    LateReceiver,
    /// The last rank of a collective.
    Collective,
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

/// The communicators of a run, by their numbers.
#[derive(Default)]
pub(super) struct Communicators(BTreeMap<u64, CommunicatorSeen>);

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
            let seen = self.0.entry(number).or_insert(first);
            seen.ranks += 1;
            seen.countable.from_start &= countable.from_start;
            seen.countable.from_end &= countable.from_end;
        }
    }

    /// The size of a communicator, and from where its collectives are counted if that is certain.
    fn counted(&self, number: u64) -> Option<(u32, CountedFrom)> {
        let seen = self.0.get(&number).filter(|seen| seen.ranks == seen.size && seen.size > 1)?;
        let from = match seen.countable {
            Countable { from_start: true, .. } => CountedFrom::Start,
            Countable { from_end: true, .. } => CountedFrom::End,
            _ => return None,
        };
        Some((seen.size, from))
    }
}

/// The n-th call of a function on a communicator: a collective operation, which all of its ranks call.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct CollectiveInstance {
    communicator: u64,
    function: &'static str,
    /// From the start, or from the end.
    ordinal: usize,
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

    /// The collectives that wait for all ranks: each with the place of its event.
    fn collectives(&self, communicators: &Communicators) -> Vec<(CollectiveInstance, usize)> {
        let functions: Vec<Option<&'static str>> = self
            .header
            .functions
            .iter()
            .map(|function| OF_ALL.into_iter().find(|known| *known == base(function)))
            .collect();
        let mut counts: HashMap<(u64, &str), usize> = HashMap::new();
        let mut all = Vec::new();
        for (at, event) in self.events.iter().enumerate() {
            let TimelineKind::Call(function) = event.kind else { continue };
            let Some(function) = functions.get(usize::from(function)).copied().flatten() else {
                continue;
            };
            let Some((communicator, _)) = communicator(self.header, event) else { continue };
            let count = counts.entry((communicator, function)).or_default();
            all.push((CollectiveInstance { communicator, function, ordinal: *count }, at));
            *count += 1;
        }
        let counted = |(instance, at): (CollectiveInstance, usize)| {
            let (_, from) = communicators.counted(instance.communicator)?;
            let ordinal = match from {
                CountedFrom::Start => instance.ordinal,
                CountedFrom::End => {
                    counts[&(instance.communicator, instance.function)] - 1 - instance.ordinal
                }
            };
            Some((CollectiveInstance { ordinal, ..instance }, at))
        };
        all.into_iter().filter_map(counted).collect()
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
            collectives: collectives
                .filter_map(|(instance, at)| Some((instance, begun(at)?)))
                .collect(),
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
        for (message, arrow) in arrows.of(self.messages) {
            let Some(arrow) = arrow else { continue };
            match message.direction {
                MessageDirection::Received => {
                    let Some(at) = message.ended_in else { continue };
                    let Some(how) = self.function_at(at).and_then(waits_for_messages) else {
                        continue;
                    };
                    let Some(send) = begins.of_message(arrow, MessageDirection::Sent) else {
                        continue;
                    };
                    let known = late.entry(at).or_insert((WaitState::LateSender, send));
                    let is_later = send.begun_ns > known.1.begun_ns;
                    if is_later == (how == WaitsForMessages::All) {
                        known.1 = send;
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
                    if let Some(receive) = lasted {
                        late.insert(at, (WaitState::LateReceiver, receive));
                    }
                }
            }
        }
        for (instance, at) in self.collectives(communicators) {
            if let Some(last) = begins.of_collective(&instance, communicators) {
                late.insert(at, (WaitState::Collective, last));
            }
        }
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
    collectives: Vec<(CollectiveInstance, u64)>,
}

/// One side of the messages of a stream, by their number.
#[derive(Default)]
struct StreamSide {
    rank: u32,
    begins_ns: Vec<u64>,
}

/// The last rank that began a collective, of how many.
#[derive(Clone, Copy)]
struct LastBegin {
    last: LateCall,
    ranks: u32,
}

/// When the calls of all ranks began that others may wait for: 8 bytes for each end of a message.
#[derive(Default)]
pub(super) struct Begins {
    /// By the number of the stream: the sends and the receives.
    streams: HashMap<u64, [StreamSide; 2]>,
    collectives: HashMap<CollectiveInstance, LastBegin>,
}

/// In place of a time that is not known.
const UNKNOWN: u64 = u64::MAX;

/// The number of a message's stream, and its own in that.
fn in_stream(arrow: u64) -> (u64, usize) {
    (arrow >> 32, usize::try_from(arrow & 0xffff_ffff).unwrap_or(usize::MAX))
}

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
        for (instance, begun_ns) in of.collectives {
            let own = LateCall { rank: of.rank, begun_ns };
            let known =
                self.collectives.entry(instance).or_insert(LastBegin { last: own, ranks: 0 });
            known.ranks += 1;
            if begun_ns > known.last.begun_ns {
                known.last = own;
            }
        }
    }

    fn of_message(&self, arrow: u64, direction: MessageDirection) -> Option<LateCall> {
        let (stream, ordinal) = in_stream(arrow);
        let side = &self.streams.get(&stream)?[side(direction)];
        let begun_ns = *side.begins_ns.get(ordinal).filter(|ns| **ns != UNKNOWN)?;
        Some(LateCall { rank: side.rank, begun_ns })
    }

    /// The last begin, if all ranks are known to have begun it.
    fn of_collective(
        &self,
        instance: &CollectiveInstance,
        communicators: &Communicators,
    ) -> Option<LateCall> {
        let (size, _) = communicators.counted(instance.communicator)?;
        let known = self.collectives.get(instance)?;
        (known.ranks == size).then_some(known.last)
    }
}
