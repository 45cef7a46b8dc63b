//! Which messages did a rank send and receive, in its order? As far as its events say it: what may have been any message, such as a
//! receive from any rank whose status was ignored, is kept apart.

use std::collections::{BTreeMap, HashMap};

use gyan_results::{MessageDirection, TimelineEvent, TimelineHeader, TimelineKind, TimelinePeer};

/// Messages from one rank to another one, by their ranks in the communicator.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct MessageKey {
    pub(super) communicator: u64,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) tag: i32,
}

/// A message on one of its ranks: the events of the call that sends it or posts its receive, and of the one that completes that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct OwnMessage {
    pub(super) key: MessageKey,
    pub(super) direction: MessageDirection,
    thread: u8,
    /// Those that its sender handed to MPI; 0 if that is not known, and on the rank that receives it.
    pub(super) bytes: u64,
    pub(super) begun_in: usize,
    /// None if the completion of its request was not seen.
    pub(super) ended_in: Option<usize>,
}

impl OwnMessage {
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

    /// The event from whose begin, or to whose end, its arrow goes: none of a receive whose completion was not seen.
    pub(super) fn arrow_at(&self) -> Option<usize> {
        match self.direction {
            MessageDirection::Sent => Some(self.begun_in),
            MessageDirection::Received => self.ended_in,
        }
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

#[derive(Default)]
pub(super) struct RankMessages {
    pub(super) known: Vec<OwnMessage>,
    unknown: Vec<UnknownMessage>,
    /// By request, operations that were not seen to complete.
    pending: HashMap<u32, Vec<PendingOperation>>,
    prepared: HashMap<u32, PreparedMessage>,
    /// By thread, its last call.
    calls: HashMap<u8, CallSeen>,
    /// Operations that completed and are no such messages: the events of the call that started one, and of the one that completed it.
    pub(super) other_operations: Vec<(usize, usize)>,
}

/// The event of a call, when it began and ended, in ticks, and the bytes that it handed to MPI.
#[derive(Clone, Copy)]
struct CallSeen {
    at: usize,
    bytes: u64,
    begun: u64,
    ended: u64,
}

/// An operation that a call has started, the event of that call, and when it ended: of a message where it is in `known`, or of a
/// receive from any rank where it is in `unknown`.
#[derive(Clone, Copy)]
struct PendingOperation {
    message: Option<Result<usize, usize>>,
    begun_in: usize,
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
        let operation = PendingOperation { message, begun_in: call.at, started: call.ended };
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
        let Some(operation) = place.map(|place| pending.remove(place)) else { return };
        match operation.message {
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
            None => self.other_operations.push((operation.begun_in, call.at)),
        }
    }

    pub(super) fn unknown_receives(&self) -> usize {
        let is_receive = |unknown: &&UnknownMessage| {
            unknown.direction == Some(MessageDirection::Received) && unknown.begun_in != usize::MAX
        };
        self.unknown.iter().filter(is_receive).count()
    }

    /// The messages that are certain if counted from the start and from the end: by key, how many.
    pub(super) fn certain(&self) -> BTreeMap<(MessageKey, MessageDirection), CertainMessages> {
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

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CertainMessages {
    first_unknown: Option<usize>,
    last_unknown: Option<usize>,
    thread: u8,
    pub(super) several_threads: bool,
    pub(super) from_start: u64,
    pub(super) from_end: u64,
    pub(super) all: u64,
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
