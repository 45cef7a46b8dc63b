//! Which send belongs to which receive? Messages from one rank to another one, on one communicator and with one tag, are received
//! in the order in which they were sent, if the receives are posted by one thread and the sends too (MPI 4.1, 3.5). So the
//! n-th send belongs to the n-th receive.
//!
//! A timeline may begin in the middle, or have a part of the run or a few iterations only, in which nothing says how many messages were under way when
//! it began: these have no arrows. Where both ranks lost nothing, messages are counted from the start; otherwise from the end,
//! provided that both ranks came to `MPI_Finalize` and know that they sent and received as many. What may have been any message,
//! such as a receive from any rank whose status was ignored, ends the counting. Messages for which this does not say for certain
//! which is which are left out.

use std::collections::{BTreeMap, HashMap};

use gyan_results::{
    Ending, MessageDirection, TimelineEvent, TimelineHeader, TimelineKind, TimelinePeer,
    TimelineSelection,
};

/// Messages from one rank to another one, by their ranks in the communicator.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct MessageKey {
    communicator: u64,
    source: u32,
    destination: u32,
    tag: i32,
}

/// A message on one of its ranks: the events of the call that sends it or posts its receive, and of the one that completes that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct OwnMessage {
    key: MessageKey,
    pub(super) direction: MessageDirection,
    thread: u8,
    pub(super) begun_in: usize,
    /// None of a receive whose completion was not seen.
    pub(super) ended_in: Option<usize>,
}

/// What may have been one of several messages.
#[derive(Clone, Copy, Debug)]
struct UnknownMessage {
    /// None for both.
    direction: Option<MessageDirection>,
    /// The communicator, the other rank and the tag, as far as they are known.
    communicator: Option<u64>,
    peer: Option<u32>,
    tag: Option<i32>,
    begun_in: usize,
}

impl UnknownMessage {
    /// It may be any.
    fn any(begun_in: usize) -> UnknownMessage {
        UnknownMessage { direction: None, communicator: None, peer: None, tag: None, begun_in }
    }

    fn may_be(&self, message: &OwnMessage) -> bool {
        let MessageKey { communicator, source, destination, tag } = message.key;
        let peer = match message.direction {
            MessageDirection::Sent => destination,
            MessageDirection::Received => source,
        };
        self.direction.is_none_or(|direction| direction == message.direction)
            && self.communicator.is_none_or(|known| known == communicator)
            && self.peer.is_none_or(|known| known == peer)
            && self.tag.is_none_or(|known| known == tag)
    }
}

/// What a function does with messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum MessageRole {
    Sends,
    /// `later`: in the call that completes its request.
    Receives {
        later: bool,
    },
    SendsAndReceives,
    Prepares(MessageDirection),
    /// A partitioned operation, which meets only such.
    PreparesOther,
    /// A message may be taken, or not come after all.
    Disturbs,
}

fn role(function: &str) -> Option<MessageRole> {
    let name = function.strip_suffix("_c").unwrap_or(function).strip_prefix("MPI_")?;
    Some(match name {
        "Send" | "Bsend" | "Rsend" | "Ssend" | "Isend" | "Ibsend" | "Irsend" | "Issend" => {
            MessageRole::Sends
        }
        "Recv" | "Mprobe" => MessageRole::Receives { later: false },
        "Irecv" => MessageRole::Receives { later: true },
        "Sendrecv" | "Sendrecv_replace" | "Isendrecv" | "Isendrecv_replace" => {
            MessageRole::SendsAndReceives
        }
        "Send_init" | "Bsend_init" | "Rsend_init" | "Ssend_init" => {
            MessageRole::Prepares(MessageDirection::Sent)
        }
        "Recv_init" => MessageRole::Prepares(MessageDirection::Received),
        "Psend_init" | "Precv_init" => MessageRole::PreparesOther,
        "Improbe" | "Cancel" => MessageRole::Disturbs,
        _ => return None,
    })
}

/// A persistent operation: the event that prepared it; none of one that is no message of these.
type PreparedMessage = Option<(MessageDirection, TimelineEvent)>;

/// The messages of one rank.
#[derive(Default)]
pub(super) struct RankMessages {
    pub(super) known: Vec<OwnMessage>,
    unknown: Vec<UnknownMessage>,
    /// By request, operations that were not seen to complete.
    pending: HashMap<u32, Vec<PendingOperation>>,
    prepared: HashMap<u32, PreparedMessage>,
    /// By thread, its last call.
    calls: HashMap<u8, CallSeen>,
}

/// The event of a call, and when it began and ended, in ticks.
#[derive(Clone, Copy)]
struct CallSeen {
    at: usize,
    begun: u64,
    ended: u64,
}

/// An operation that a call has started, and when that call ended: of a receive where it is in `known`, or in `unknown` if it is from
/// any.
#[derive(Clone, Copy)]
struct PendingOperation {
    receive: Option<Result<usize, usize>>,
    started: u64,
}

impl RankMessages {
    pub(super) fn of(header: &TimelineHeader, events: &[TimelineEvent]) -> RankMessages {
        let roles: Vec<Option<MessageRole>> =
            header.functions.iter().map(|function| role(function)).collect();
        let mut all = RankMessages::default();
        for (at, event) in events.iter().enumerate() {
            match event.kind {
                TimelineKind::Call(function) => {
                    let ended = event.begun + event.took;
                    let call = CallSeen { at, begun: event.begun, ended };
                    all.calls.insert(event.thread, call);
                    if event.request != 0 {
                        all.begins(event.request, None, call);
                    }
                    if let Some(role) = roles.get(usize::from(function)).copied().flatten() {
                        all.call(header, role, event, call);
                    }
                }
                // Without its call, which was overwritten, it is not known when that was.
                _ if !all.calls.contains_key(&event.thread) => {
                    if matches!(event.kind, TimelineKind::Receives | TimelineKind::Starts) {
                        all.unknown.push(UnknownMessage::any(at));
                    }
                }
                TimelineKind::Receives => {
                    let later = event.request != 0;
                    let call = all.calls[&event.thread];
                    all.message(header, MessageDirection::Received, event, call, later);
                }
                TimelineKind::Starts => all.starts(header, event),
                TimelineKind::Completes => all.completes(header, event),
                TimelineKind::Phase => {}
            }
        }
        all.known.sort_by_key(|message| message.begun_in);
        all
    }

    fn call(
        &mut self,
        header: &TimelineHeader,
        role: MessageRole,
        event: &TimelineEvent,
        call: CallSeen,
    ) {
        match role {
            MessageRole::Sends | MessageRole::SendsAndReceives => {
                self.message(header, MessageDirection::Sent, event, call, false);
            }
            MessageRole::Receives { later } => {
                self.message(header, MessageDirection::Received, event, call, later);
            }
            MessageRole::Prepares(direction) => {
                self.prepared.insert(event.request, Some((direction, *event)));
            }
            MessageRole::PreparesOther => _ = self.prepared.insert(event.request, None),
            MessageRole::Disturbs => self.unknown.push(UnknownMessage::any(call.at)),
        }
    }

    /// A message is sent, or its receive is posted, in the call of the event `call`.
    fn message(
        &mut self,
        header: &TimelineHeader,
        direction: MessageDirection,
        event: &TimelineEvent,
        call: CallSeen,
        later: bool,
    ) {
        if event.peer == TimelinePeer::Null {
            return;
        }
        let own = communicator(header, event);
        let is_sent = direction == MessageDirection::Sent;
        let peer = match event.peer {
            TimelinePeer::Rank(rank) => Some(rank),
            _ => None,
        };
        let tag = Some(event.tag).filter(|tag| *tag >= 0);
        let place = if let (Some((communicator, rank)), Some(peer), Some(tag)) = (own, peer, tag) {
            let (source, destination) = if is_sent { (rank, peer) } else { (peer, rank) };
            let key = MessageKey { communicator, source, destination, tag };
            let ended_in = (!later).then_some(call.at);
            let thread = event.thread;
            self.known.push(OwnMessage { key, direction, thread, begun_in: call.at, ended_in });
            Ok(self.known.len() - 1)
        } else {
            // On a communicator that is known by name only, messages are none of those of others.
            if own.is_none() && event.communicator != 0 {
                return;
            }
            let communicator = own.map(|(communicator, _)| communicator);
            let direction = Some(direction);
            self.unknown.push(UnknownMessage {
                direction,
                communicator,
                peer,
                tag,
                begun_in: call.at,
            });
            Err(self.unknown.len() - 1)
        };
        if later {
            self.begins(event.request, Some(place), call);
        }
    }

    /// A call has started an operation.
    fn begins(&mut self, request: u32, receive: Option<Result<usize, usize>>, call: CallSeen) {
        let operation = PendingOperation { receive, started: call.ended };
        self.pending.entry(request).or_default().push(operation);
    }

    /// A persistent operation was started, which another event prepared.
    fn starts(&mut self, header: &TimelineHeader, event: &TimelineEvent) {
        let Some(call) = self.calls.get(&event.thread).copied() else { return };
        match self.prepared.get(&event.request).copied() {
            Some(Some((direction, prepared))) => {
                let message = TimelineEvent { thread: event.thread, ..prepared };
                let later = direction == MessageDirection::Received;
                self.message(header, direction, &message, call, later);
            }
            Some(None) => {}
            None => self.unknown.push(UnknownMessage::any(call.at)),
        }
    }

    /// A request has completed: a receive from any rank is known now, if its status says it.
    ///
    /// Other threads may have got the same request for other operations before this event was recorded. They did so in calls that
    /// ended after the one began that completes it, while a call that completes an operation begins after the one that started it.
    fn completes(&mut self, header: &TimelineHeader, event: &TimelineEvent) {
        let Some(call) = self.calls.get(&event.thread).copied() else { return };
        let Some(pending) = self.pending.get_mut(&event.request) else { return };
        let place = pending.iter().rposition(|operation| operation.started <= call.begun);
        match place.and_then(|place| pending.remove(place).receive) {
            Some(Ok(message)) => {
                if let Some(message) = self.known.get_mut(message) {
                    message.ended_in = Some(call.at);
                }
            }
            Some(Err(place)) => {
                let TimelinePeer::Rank(source) = event.peer else { return };
                let Some(unknown) = self.unknown.get_mut(place) else { return };
                let Some(communicator) = unknown.communicator.filter(|_| event.tag >= 0) else {
                    return;
                };
                let own = header.communicators.iter().find_map(|known| {
                    (number(known.number.as_deref()?) == Some(communicator))
                        .then_some(known.rank)?
                });
                let Some(destination) = own else { return };
                let key = MessageKey { communicator, source, destination, tag: event.tag };
                let begun_in = unknown.begun_in;
                // It stands for no other message.
                unknown.begun_in = usize::MAX;
                self.known.push(OwnMessage {
                    key,
                    direction: MessageDirection::Received,
                    thread: event.thread,
                    begun_in,
                    ended_in: Some(call.at),
                });
            }
            None => {}
        }
    }

    /// How many receives are not known to be of any message.
    pub(super) fn unknown_receives(&self) -> usize {
        let is_receive = |unknown: &&UnknownMessage| {
            unknown.direction == Some(MessageDirection::Received) && unknown.begun_in != usize::MAX
        };
        self.unknown.iter().filter(is_receive).count()
    }

    /// The messages that are certain if counted from the start and from the end: by key, how many.
    fn certain(&self) -> BTreeMap<(MessageKey, MessageDirection), CertainMessages> {
        let mut all: BTreeMap<(MessageKey, MessageDirection), CertainMessages> = BTreeMap::new();
        // Of unknown messages of one kind only the first and the last one matter.
        let mut kinds: BTreeMap<_, (UnknownMessage, usize)> = BTreeMap::new();
        for unknown in self.unknown.iter().filter(|unknown| unknown.begun_in != usize::MAX) {
            let UnknownMessage { direction, communicator, peer, tag, begun_in } = *unknown;
            let kind = kinds.entry((direction, communicator, peer, tag));
            kind.or_insert((*unknown, begun_in)).1 = begun_in;
        }
        for message in &self.known {
            let of = all.entry((message.key, message.direction)).or_insert_with(|| {
                let may_be = kinds.values().filter(|(unknown, _)| unknown.may_be(message));
                let (firsts, lasts): (Vec<usize>, Vec<usize>) =
                    may_be.map(|(unknown, last)| (unknown.begun_in, *last)).unzip();
                CertainMessages {
                    first_unknown: firsts.into_iter().min(),
                    last_unknown: lasts.into_iter().max(),
                    thread: message.thread,
                    ..CertainMessages::default()
                }
            });
            of.several_threads |= of.thread != message.thread;
            of.from_start += u64::from(of.first_unknown.is_none_or(|at| message.begun_in < at));
            of.from_end += u64::from(of.last_unknown.is_none_or(|at| message.begun_in > at));
            of.all += 1;
        }
        all
    }
}

/// The messages of one stream on one of its ranks.
#[derive(Clone, Copy, Debug, Default)]
struct CertainMessages {
    first_unknown: Option<usize>,
    last_unknown: Option<usize>,
    thread: u8,
    several_threads: bool,
    from_start: u64,
    from_end: u64,
    all: u64,
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// The number of the communicator of an event, and the rank in it, if all its ranks know them.
fn communicator(header: &TimelineHeader, event: &TimelineEvent) -> Option<(u64, u32)> {
    let known = header.communicators.get(usize::from(event.communicator).checked_sub(1)?)?;
    Some((number(known.number.as_deref()?)?, known.rank?))
}

/// A rank as far as its messages are concerned.
struct RankSide {
    rank: u32,
    lost_none: bool,
    finalized: bool,
    /// The exact number of messages, by direction, communicator, the other rank in `MPI_COMM_WORLD`, and tag.
    totals: HashMap<(MessageDirection, u64, u32, i32), u64>,
}

/// Which messages get an arrow.
#[derive(Default)]
pub(super) struct Arrows {
    ranks: Vec<RankSide>,
    streams: BTreeMap<MessageKey, [Option<(usize, CertainMessages)>; 2]>,
    /// For each stream its number, and which of its messages.
    chosen: HashMap<MessageKey, (u64, Counted)>,
}

/// How messages of a stream are counted, and how many are certain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Counted {
    FromStart(u64),
    FromEnd(u64),
}

impl Arrows {
    pub(super) fn add(&mut self, header: &TimelineHeader, lost: u64, messages: &RankMessages) {
        let total = |of: &gyan_results::TimelineMessages| {
            let key = (of.direction, number(&of.communicator)?, of.peer, of.tag);
            Some((key, of.messages?))
        };
        let (from_start, to_end) = match &header.selection {
            None => (true, true),
            Some(TimelineSelection { window_s: Some([from, _]), phase: None, slowest: None }) => {
                (*from == 0.0, false)
            }
            Some(_) => (false, false),
        };
        self.ranks.push(RankSide {
            rank: header.rank,
            lost_none: lost == 0 && from_start,
            finalized: header.ended == Some(Ending::Finalize) && to_end,
            totals: header.messages.iter().filter_map(total).collect(),
        });
        let place = self.ranks.len() - 1;
        for ((key, direction), certain) in messages.certain() {
            let [sent, received] = self.streams.entry(key).or_default();
            let side = if direction == MessageDirection::Sent { sent } else { received };
            *side = Some((place, certain));
        }
    }

    /// All ranks were added.
    pub(super) fn choose(&mut self) {
        for (number, (key, sides)) in (1..).zip(&self.streams) {
            let [Some((from, sent)), Some((to, received))] = sides else { continue };
            let (Some(from), Some(to)) = (self.ranks.get(*from), self.ranks.get(*to)) else {
                continue;
            };
            if sent.several_threads || received.several_threads {
                continue;
            }
            let total = |of: &RankSide, direction, other: &RankSide| {
                of.totals.get(&(direction, key.communicator, other.rank, key.tag)).copied()
            };
            let counted = if from.lost_none && to.lost_none {
                Counted::FromStart(sent.from_start.min(received.from_start))
            } else if from.finalized && to.finalized {
                let all_sent = total(from, MessageDirection::Sent, to);
                let all_received = total(to, MessageDirection::Received, from);
                if all_sent.is_none() || all_sent != all_received {
                    continue;
                }
                Counted::FromEnd(sent.from_end.min(received.from_end))
            } else {
                continue;
            };
            self.chosen.insert(*key, (number, counted));
        }
    }

    /// The arrows of the messages of a rank, each with a number that both of its ends have: by message.
    pub(super) fn of<'a>(&self, messages: &'a RankMessages) -> Vec<(&'a OwnMessage, Option<u64>)> {
        let certain = messages.certain();
        let mut counts: HashMap<(MessageKey, MessageDirection), u64> = HashMap::new();
        let mut arrow = |message: &OwnMessage| {
            let of = (message.key, message.direction);
            let count = counts.entry(of).or_default();
            let before = std::mem::replace(count, *count + 1);
            let (stream, counted) = self.chosen.get(&message.key)?;
            let ordinal = match *counted {
                Counted::FromStart(number) => Some(before).filter(|before| *before < number),
                Counted::FromEnd(number) => {
                    let left = certain.get(&of)?.all - 1 - before;
                    Some(left).filter(|left| *left < number)
                }
            }?;
            Some(stream << 32 | ordinal & 0xffff_ffff)
        };
        messages.known.iter().map(|message| (message, arrow(message))).collect()
    }
}

#[cfg(test)]
mod tests {
    use gyan_results::{TimelineCommunicator, TimelineMessages};

    use super::*;

    const FUNCTIONS: [&str; 6] =
        ["MPI_Send", "MPI_Recv", "MPI_Irecv", "MPI_Wait", "MPI_Improbe", "MPI_Barrier"];
    const SEND: u16 = 0;
    const RECV: u16 = 1;
    const IRECV: u16 = 2;
    const WAIT: u16 = 3;
    const IMPROBE: u16 = 4;

    fn header(rank: u32, total: Option<(MessageDirection, u64)>) -> TimelineHeader {
        let world = TimelineCommunicator {
            number: Some("0000000000000001".into()),
            size: 2,
            rank: Some(rank),
            ..TimelineCommunicator::default()
        };
        let messages = total.map(|(direction, messages)| TimelineMessages {
            direction,
            peer: 1 - rank,
            tag: 7,
            communicator: "0000000000000001".into(),
            messages: Some(messages),
        });
        TimelineHeader {
            rank,
            size: 2,
            ended: Some(Ending::Finalize),
            functions: FUNCTIONS.map(str::to_owned).into(),
            communicators: vec![world],
            messages: messages.into_iter().collect(),
            ..TimelineHeader::default()
        }
    }

    fn event(kind: TimelineKind, peer: TimelinePeer, request: u32) -> TimelineEvent {
        let tag = if peer == TimelinePeer::None { TimelineEvent::NO_TAG } else { 7 };
        TimelineEvent { communicator: 1, request, peer, tag, ..TimelineEvent::new(kind, 0) }
    }

    fn send() -> TimelineEvent {
        event(TimelineKind::Call(SEND), TimelinePeer::Rank(1), 0)
    }

    fn receive(from: TimelinePeer) -> TimelineEvent {
        event(TimelineKind::Call(RECV), from, 0)
    }

    /// Which send each receive of rank 1 gets, by the places of their events, if rank 0 lost `lost` events.
    fn arrows(
        sends: &[TimelineEvent],
        receives: &[TimelineEvent],
        lost: u64,
        totals: Option<[u64; 2]>,
    ) -> Vec<(usize, usize)> {
        let total = |direction, at: usize| totals.map(|totals| (direction, totals[at]));
        let headers = [
            header(0, total(MessageDirection::Sent, 0)),
            header(1, total(MessageDirection::Received, 1)),
        ];
        let [of_0, of_1] = [(0, sends), (1, receives)]
            .map(|(rank, events): (usize, _)| RankMessages::of(&headers[rank], events));
        let mut all = Arrows::default();
        all.add(&headers[0], lost, &of_0);
        all.add(&headers[1], 0, &of_1);
        all.choose();
        let from = all.of(&of_0);
        let to = all.of(&of_1);
        let ends = to.iter().filter_map(|(message, arrow)| {
            let arrow = (*arrow)?;
            let (begins, _) = from.iter().find(|(_, other)| *other == Some(arrow))?;
            Some((begins.begun_in, message.begun_in))
        });
        ends.collect()
    }

    const FROM_0: TimelinePeer = TimelinePeer::Rank(0);

    #[test]
    fn messages_are_received_in_their_order() {
        let receives = [receive(FROM_0), receive(FROM_0)];
        assert_eq!(arrows(&[send(), send(), send()], &receives, 0, None), [(0, 0), (1, 1)]);
    }

    #[test]
    fn a_ring_that_begins_in_the_middle_is_counted_from_the_end_if_both_know_how_many_there_were() {
        let receives = [receive(FROM_0), receive(FROM_0), receive(FROM_0)];
        let found = |totals| arrows(&[send(), send()], &receives, 5, totals);
        assert_eq!(found(Some([3, 3])), [(0, 1), (1, 2)]);
        // One was never received, or nobody knows.
        assert_eq!(found(Some([4, 3])), []);
        assert_eq!(found(None), []);
    }

    #[test]
    fn a_part_of_a_run_is_counted_from_its_begin_only_if_that_is_the_begin_of_the_run() {
        let found = |window_s: Option<[f64; 2]>, phase: Option<&str>, slowest: Option<u32>| {
            let phase = phase.map(str::to_owned);
            let selection = TimelineSelection { window_s, phase, slowest };
            let mut all = Arrows::default();
            for (rank, event) in [(0, send()), (1, receive(FROM_0))] {
                let direction = [MessageDirection::Sent, MessageDirection::Received][rank as usize];
                let selection = Some(selection.clone());
                let header = TimelineHeader { selection, ..header(rank, Some((direction, 1))) };
                all.add(&header, 0, &RankMessages::of(&header, &[event]));
            }
            all.choose();
            all.chosen.len()
        };
        assert_eq!(found(Some([0.0, 1.0]), None, None), 1);
        assert_eq!(found(Some([1.0, 1.0]), None, None), 0);
        assert_eq!(found(Some([0.0, 1.0]), Some("step"), None), 0);
        assert_eq!(found(None, Some("step"), None), 0);
        assert_eq!(found(None, None, Some(3)), 0);
    }

    #[test]
    fn a_receive_from_any_rank_is_one_of_the_stream_that_its_status_says() {
        let posted = event(TimelineKind::Call(IRECV), TimelinePeer::Any, 9);
        let wait = event(TimelineKind::Call(WAIT), TimelinePeer::None, 0);
        let ends = |peer| event(TimelineKind::Completes, peer, 9);
        let sends = [send(), send(), send()];
        let receives = |peer| [receive(FROM_0), posted, receive(FROM_0), wait, ends(peer)];
        assert_eq!(arrows(&sends, &receives(FROM_0), 0, None), [(0, 0), (1, 1), (2, 2)]);
        // Without a status it may be the second one or not.
        assert_eq!(arrows(&sends, &receives(TimelinePeer::None), 0, None), [(0, 0)]);
        let totals = Some([3, 3]);
        assert_eq!(arrows(&sends, &receives(TimelinePeer::None), 1, totals), [(2, 2)]);
    }

    #[test]
    fn the_completion_of_a_receive_is_where_its_arrow_ends() {
        let posted = event(TimelineKind::Call(IRECV), FROM_0, 9);
        let wait = event(TimelineKind::Call(WAIT), TimelinePeer::None, 0);
        let events = [posted, wait, event(TimelineKind::Completes, TimelinePeer::None, 9)];
        let [message] = RankMessages::of(&header(1, None), &events).known[..] else { panic!() };
        assert_eq!((message.begun_in, message.ended_in), (0, Some(1)));
    }

    #[test]
    fn what_may_take_any_message_ends_the_counting_and_threads_have_no_order() {
        let probe = event(TimelineKind::Call(IMPROBE), TimelinePeer::None, 0);
        let sends = [send(), send(), send()];
        let receives = [receive(FROM_0), probe, receive(FROM_0)];
        assert_eq!(arrows(&sends, &receives, 0, None), [(0, 0)]);
        let other = TimelineEvent { thread: 1, ..receive(FROM_0) };
        assert_eq!(arrows(&sends, &[receive(FROM_0), other], 0, None), []);
    }

    #[test]
    fn a_request_that_another_thread_gets_before_its_completion_is_recorded_is_that_of_the_first() {
        let at = |event: TimelineEvent, thread, begun, took| TimelineEvent {
            thread,
            begun,
            took,
            ..event
        };
        let posted = event(TimelineKind::Call(IRECV), FROM_0, 9);
        let wait = event(TimelineKind::Call(WAIT), TimelinePeer::None, 0);
        let ends = event(TimelineKind::Completes, TimelinePeer::None, 9);
        let events = [
            at(posted, 1, 0, 10),
            // Its post ends while the other thread waits, and is recorded first.
            at(posted, 2, 40, 20),
            at(wait, 2, 65, 5),
            at(ends, 2, 70, 0),
            at(posted, 2, 72, 2),
            at(wait, 1, 20, 60),
            at(ends, 1, 80, 0),
            at(wait, 2, 90, 5),
            at(ends, 2, 95, 0),
        ];
        let known = RankMessages::of(&header(1, None), &events).known;
        let ends: Vec<_> =
            known.iter().map(|message| (message.begun_in, message.ended_in)).collect();
        assert_eq!(ends, [(0, Some(5)), (1, Some(2)), (4, Some(7))]);
    }
}
