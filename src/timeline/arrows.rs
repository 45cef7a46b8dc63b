//! Which send belongs to which receive? Messages from one rank to another one, on one communicator and with one tag, are received
//! in the order in which they were sent, if the receives are posted by one thread and the sends too (MPI 4.1, 3.5). So the
//! n-th send belongs to the n-th receive.
//!
//! A timeline may begin in the middle, or have only a part of the run or a few iterations, in which nothing says how many messages were
//! under way when it began: these have no arrows. Where both ranks lost nothing, messages are counted from the start; otherwise from
//! the end, provided that both ranks came to `MPI_Finalize` and know that they sent and received as many. What may have been any message
//! ends the counting. Messages for which this does not say for certain which is which are left out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gyan_results::{Ending, MessageDirection, TimelineHeader, TimelineSelection};

use super::messages::{CertainMessages, MessageKey, OwnMessage, RankMessages, number};

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
    use gyan_results::{
        TimelineCommunicator, TimelineEvent, TimelineKind, TimelineMessages, TimelinePeer,
    };

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
