//! Which send belongs to which receive? Messages from one rank to another one, on one communicator and with one tag, are received
//! in the order in which they were sent, if the receives are posted by one thread and the sends too (MPI 4.1, 3.5). So the
//! n-th send belongs to the n-th receive.
//!
//! A timeline may begin in the middle, or have a part of the run or a few iterations only, in which nothing says how many messages were under way when
//! it began: these have no arrows. Where both ranks lost nothing, messages are counted from the start; otherwise from the end,
//! provided that both ranks came to `MPI_Finalize` and know that they sent and received as many. What may have been any message,
//! such as a receive from any rank whose status was ignored, ends the counting. Messages for which this does not say for certain
//! which is which are left out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    /// Those that its sender handed to MPI; 0 if that is not known, and on the rank that receives it.
    pub(super) bytes: u64,
    pub(super) begun_in: usize,
    /// None if the completion of its request was not seen.
    pub(super) ended_in: Option<usize>,
}

impl OwnMessage {
    /// The number of its communicator.
    pub(super) fn communicator(&self) -> u64 {
        self.key.communicator
    }

    /// The other rank in the communicator.
    pub(super) fn peer(&self) -> u32 {
        match self.direction {
            MessageDirection::Sent => self.key.destination,
            MessageDirection::Received => self.key.source,
        }
    }

    pub(super) fn tag(&self) -> i32 {
        self.key.tag
    }
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

impl OwnMessage {
    /// The event from whose begin, or to whose end, its arrow goes: none of a receive whose completion was not seen.
    pub(super) fn arrow_at(&self) -> Option<usize> {
        match self.direction {
            MessageDirection::Sent => Some(self.begun_in),
            MessageDirection::Received => self.ended_in,
        }
    }
}

impl UnknownMessage {
    /// It may be any.
    fn any(begun_in: usize) -> UnknownMessage {
        UnknownMessage { direction: None, communicator: None, peer: None, tag: None, begun_in }
    }

    fn may_be(&self, message: &OwnMessage) -> bool {
        self.direction.is_none_or(|direction| direction == message.direction)
            && self.communicator.is_none_or(|known| known == message.communicator())
            && self.peer.is_none_or(|known| known == message.peer())
            && self.tag.is_none_or(|known| known == message.tag())
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

/// The event of a call, when it began and ended, in ticks, and the bytes that it handed to MPI.
#[derive(Clone, Copy)]
struct CallSeen {
    at: usize,
    bytes: u64,
    begun: u64,
    ended: u64,
}

/// An operation that a call has started, and when that call ended: of a message where it is in `known`, or of a receive from any rank
/// where it is in `unknown`.
#[derive(Clone, Copy)]
struct PendingOperation {
    message: Option<Result<usize, usize>>,
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
                    let call = CallSeen { at, bytes: event.bytes, begun: event.begun, ended };
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
            // The request of both is that of the receive.
            MessageRole::Sends | MessageRole::SendsAndReceives => {
                let later = role == MessageRole::Sends && event.request != 0;
                self.message(header, MessageDirection::Sent, event, call, later);
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
            self.known.push(OwnMessage {
                key,
                direction,
                thread: event.thread,
                bytes: if is_sent { event.bytes } else { 0 },
                begun_in: call.at,
                ended_in,
            });
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
        // A status says nothing of a send.
        if later && (place.is_ok() || !is_sent) {
            self.begins(event.request, Some(place), call);
        }
    }

    /// A call has started an operation.
    fn begins(&mut self, request: u32, message: Option<Result<usize, usize>>, call: CallSeen) {
        let operation = PendingOperation { message, started: call.ended };
        let pending = self.pending.entry(request).or_default();
        // The operation of a call is known by its request before it is known as a message.
        match pending.last_mut() {
            Some(last) if last.message.is_none() && last.started == call.ended => *last = operation,
            _ => pending.push(operation),
        }
    }

    /// A persistent operation was started, which another event prepared.
    fn starts(&mut self, header: &TimelineHeader, event: &TimelineEvent) {
        let Some(call) = self.calls.get(&event.thread).copied() else { return };
        match self.prepared.get(&event.request).copied() {
            Some(Some((direction, prepared))) => {
                let bytes =
                    if direction == MessageDirection::Sent { self.own_bytes(call) } else { 0 };
                let message = TimelineEvent { thread: event.thread, bytes, ..prepared };
                self.message(header, direction, &message, call, true);
            }
            Some(None) => {}
            None => self.unknown.push(UnknownMessage::any(call.at)),
        }
    }

    /// The bytes of the next operation that a call starts: those of the call if there is one send; of several 0, as it is not known
    /// which of them has how many.
    fn own_bytes(&mut self, call: CallSeen) -> u64 {
        let own = self.known.iter_mut().rev().take_while(|message| message.begun_in == call.at);
        let mut sent = own.filter(|message| message.direction == MessageDirection::Sent);
        sent.next().map_or(call.bytes, |other| {
            other.bytes = 0;
            0
        })
    }

    /// A request has completed: a receive from any rank is known now, if its status says it.
    ///
    /// Other threads may have got the same request for other operations before this event was recorded. They did so in calls that
    /// ended after the one began that completes it, while a call that completes an operation begins after the one that started it.
    fn completes(&mut self, header: &TimelineHeader, event: &TimelineEvent) {
        let Some(call) = self.calls.get(&event.thread).copied() else { return };
        let Some(pending) = self.pending.get_mut(&event.request) else { return };
        let place = pending.iter().rposition(|operation| operation.started <= call.begun);
        match place.and_then(|place| pending.remove(place).message) {
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
                    bytes: 0,
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

/// The number that ranks agree on.
pub(super) fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// The number of the communicator of an event, and the rank in it, if all its ranks know them.
pub(super) fn communicator(header: &TimelineHeader, event: &TimelineEvent) -> Option<(u64, u32)> {
    let known = header.communicators.get(usize::from(event.communicator).checked_sub(1)?)?;
    Some((number(known.number.as_deref()?)?, known.rank?))
}

/// From where the calls of a rank can be counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Countable {
    /// It has all of them from the end of `MPI_Init` on.
    pub(super) from_start: bool,
    /// It has all of them up to `MPI_Finalize`, from some event on.
    pub(super) from_end: bool,
}

impl Countable {
    pub(super) fn new(header: &TimelineHeader, lost: u64) -> Countable {
        let selection = header.selection.as_ref();
        let is_from_start = selection.is_none_or(TimelineSelection::begins_with_the_run);
        Countable {
            from_start: lost == 0 && is_from_start,
            from_end: header.ended == Some(Ending::Finalize) && selection.is_none(),
        }
    }
}

/// A rank as far as its messages are concerned.
struct RankSide {
    rank: u32,
    countable: Countable,
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

/// From where things in a row are counted, and how many are certain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Counted {
    FromStart(u64),
    FromEnd(u64),
}

impl Counted {
    /// The number of a certain one; none of one that is not. `before`: how many were before it of `all`.
    pub(super) fn ordinal(self, before: u64, all: u64) -> Option<u64> {
        let (ordinal, certain) = match self {
            Counted::FromStart(certain) => (before, certain),
            Counted::FromEnd(certain) => (all.checked_sub(before + 1)?, certain),
        };
        Some(ordinal).filter(|ordinal| *ordinal < certain)
    }
}

impl Arrows {
    pub(super) fn add(&mut self, header: &TimelineHeader, lost: u64, messages: &RankMessages) {
        let total = |of: &gyan_results::TimelineMessages| {
            let key = (of.direction, number(&of.communicator)?, of.peer, of.tag);
            Some((key, of.messages?))
        };
        self.ranks.push(RankSide {
            rank: header.rank,
            countable: Countable::new(header, lost),
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
            let counted = if from.countable.from_start && to.countable.from_start {
                Counted::FromStart(sent.from_start.min(received.from_start))
            } else if from.countable.from_end && to.countable.from_end {
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
            let ordinal = counted.ordinal(before, certain.get(&of)?.all)?;
            Some(stream << STREAM_BIT | ordinal & ORDINAL_MASK)
        };
        messages.known.iter().map(|message| (message, arrow(message))).collect()
    }

    /// Room for the times of the messages of streams whose sender and receiver, by the order in which ranks were added, are `between`
    /// hosts.
    pub(super) fn times_between(&self, between: impl Fn(usize, usize) -> bool) -> SentTimes {
        let mut left = TIMES_AT_MOST;
        let mut all = HashMap::new();
        for (key, sides) in &self.streams {
            let Some((stream, counted)) = self.chosen.get(key) else { continue };
            let [Some((sender, _)), Some((receiver, _))] = sides else { continue };
            let (Counted::FromStart(messages) | Counted::FromEnd(messages)) = *counted;
            let messages = usize::try_from(messages).unwrap_or(usize::MAX);
            if between(*sender, *receiver) && messages <= left {
                left -= messages;
                all.insert(*stream, (*sender, vec![0; messages]));
            }
        }
        SentTimes(all)
    }
}

/// An arrow's number is that of its stream, and which of its messages it is.
const STREAM_BIT: u32 = 32;
const ORDINAL_MASK: u64 = (1 << STREAM_BIT) - 1;

/// Times take half a gigabyte at most.
const TIMES_AT_MOST: usize = 1 << 26;

/// When messages were sent, by stream: the sender, in the order in which ranks were added, and the times on its clock, in ns; 0 if
/// one is not known.
pub(super) struct SentTimes(HashMap<u64, (usize, Vec<u64>)>);

/// The number of the stream of an arrow's message, and which of its messages that is.
pub(super) fn in_stream(arrow: u64) -> (u64, usize) {
    (arrow >> STREAM_BIT, usize::try_from(arrow & ORDINAL_MASK).unwrap_or(usize::MAX))
}

impl SentTimes {
    /// The numbers of the streams.
    pub(super) fn streams(&self) -> BTreeSet<u64> {
        self.0.keys().copied().collect()
    }

    /// The sender of a message, and when it was sent.
    pub(super) fn get_mut(&mut self, arrow: u64) -> Option<(usize, &mut u64)> {
        let (stream, ordinal) = in_stream(arrow);
        let (sender, times) = self.0.get_mut(&stream)?;
        let time = times.get_mut(ordinal)?;
        Some((*sender, time))
    }
}

#[cfg(test)]
mod tests {
    use gyan_results::{TimelineCommunicator, TimelineMessages};

    use super::*;

    const FUNCTIONS: [&str; 6] =
        ["MPI_Send", "MPI_Recv", "MPI_Irecv", "MPI_Wait", "MPI_Improbe", "MPI_Isend"];
    const SEND: u16 = 0;
    const RECV: u16 = 1;
    const IRECV: u16 = 2;
    const WAIT: u16 = 3;
    const IMPROBE: u16 = 4;
    const ISEND: u16 = 5;

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
    fn sends_that_share_a_request_are_each_completed_once() {
        // MPICH gives small messages that are sent at once the same request.
        let sends = event(TimelineKind::Call(ISEND), TimelinePeer::Rank(1), 9);
        let wait =
            TimelineEvent { begun: 1, ..event(TimelineKind::Call(WAIT), TimelinePeer::None, 0) };
        let ends = event(TimelineKind::Completes, TimelinePeer::None, 9);
        let events = [sends, sends, wait, ends, ends];
        let known = RankMessages::of(&header(0, None), &events).known;
        let ends: Vec<_> =
            known.iter().map(|message| (message.begun_in, message.ended_in)).collect();
        assert_eq!(ends, [(0, Some(2)), (1, Some(2))]);
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
