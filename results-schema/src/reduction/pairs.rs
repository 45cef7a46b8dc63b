//! How long did ranks wait for each other in messages? The two lists of a stream, that of its sender and that of its receiver,
//! meet here: message by message, both ranks timed the same ones.
//!
//! Of the messages that one call of a rank completes, the one for which it waited longest counts: it waited for the others in
//! the same time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ideal::WaitsOfRanks;
use super::places::{Objects, Place, load_map};
use super::starts::Clocks;
use crate::merge::Merge;
use crate::waiting::NS_PER_UNIT;
use crate::{
    CodeAddress, MessageDirection, MessageFunctionWaiting, MessagePlace, MessageStream,
    MessageTime, MessageTimes, MessageWaitingSummary, PairWaiting, Waiting, sort_by,
};

/// Most streams that are compared: of the others nothing is known.
const STREAMS_AT_MOST: usize = 1 << 17;
/// Most pairs of ranks in a summary.
const PAIRS_AT_MOST: usize = 4096;
/// In a call that ends several messages, a send may have ended before its receive was posted, as the library took the message; a
/// receive never ends before the message was sent. So a late receiver counts if it was later than a late sender by a hundredth: in
/// percent.
const SENDER_BEFORE_RECEIVER: u64 = 101;
/// Readings of one clock by two processes differ by less, in ns.
const SAME_TIME_NS: i128 = 10_000;

/// By stream, what its ranks know of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Pairs {
    streams: BTreeMap<StreamKey, Stream>,
    /// By rank, the calls that its streams name.
    calls: BTreeMap<u32, Vec<CalledAt>>,
    /// The messages that all ranks sent.
    sent: u64,
    /// Whether a rank timed any.
    is_known: bool,
}

#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
struct StreamKey {
    sender: u32,
    receiver: u32,
    communicator: String,
    tag: i32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Stream {
    sent: Option<StreamSide>,
    received: Option<StreamSide>,
}

/// What one rank knows of a stream.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct StreamSide {
    clock: String,
    messages: u64,
    level: u32,
    times: Vec<Option<MessageTime>>,
}

/// A function in C, and where it was called.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
struct CalledAt {
    function: String,
    place: Option<Place>,
}

impl Pairs {
    /// Makes this what one rank says.
    pub(super) fn set(&mut self, times: Option<&MessageTimes>, rank: u32) {
        *self = Pairs::default();
        let Some(times) = times else { return };
        let MessageTimes { clock, streams, sent_in_none, calls, addresses, load_map } = times;
        self.is_known = true;
        self.sent = *sent_in_none;
        let objects = Objects::of(load_map);
        let places: Vec<Place> = addresses.iter().map(|code| objects.code(code)).collect();
        let called = |MessagePlace { function, call }: &MessagePlace| CalledAt {
            function: function.clone(),
            place: call.and_then(|at| places.get(at)).cloned(),
        };
        self.calls.insert(rank, calls.iter().map(called).collect());
        for stream in streams {
            let MessageStream { direction, peer, messages, level, .. } = stream;
            let side = StreamSide {
                clock: clock.clone(),
                messages: *messages,
                level: *level,
                times: stream.messages_timed().collect(),
            };
            let is_sent = *direction == MessageDirection::Sent;
            let (sender, receiver) = if is_sent { (rank, *peer) } else { (*peer, rank) };
            let communicator = stream.communicator.clone();
            let key = StreamKey { sender, receiver, communicator, tag: stream.tag };
            let row = self.streams.entry(key).or_default();
            if is_sent {
                self.sent = self.sent.saturating_add(*messages);
                row.sent = Some(side);
            } else {
                row.received = Some(side);
            }
        }
    }

    /// `waited`: is told how long each rank waited.
    pub(super) fn finish(
        self,
        clocks: &Clocks,
        waited: &mut WaitsOfRanks,
    ) -> Option<MessageWaitingSummary> {
        if !self.is_known {
            return None;
        }
        let (mut paired, mut compared): (u64, u64) = (0, 0);
        let mut flows: Vec<Flow> = Vec::new();
        let mut waits: Vec<MessageWait> = Vec::new();
        for (key, stream) in self.streams {
            let (Some(sent), Some(received)) = (stream.sent, stream.received) else { continue };
            let Some(both) = compare(sent, received, clocks) else { continue };
            let Both { sent, messages, offset_ns, error_ns } = both;
            paired += sent.messages;
            compared += messages.len() as u64;
            let reversed = messages.iter().map(|[sent, received]| [*received, *sent]).collect();
            let (from, to) = (key.sender, key.receiver);
            for (rank, late_rank, late, messages, offset_ns) in [
                (from, to, MessageDirection::Received, messages, offset_ns),
                (to, from, MessageDirection::Sent, reversed, -offset_ns),
            ] {
                let flow = flows.len();
                waits.extend(messages.iter().map(|[own, other]| {
                    let call = (own.waits_ns, own.ended_ns);
                    let calls = (own.waits_in, other.begun_in);
                    let other_begun = i128::from(other.begun_ns) + offset_ns;
                    let ns = waits_for(own, other_begun, error_ns);
                    MessageWait { rank, call, flow, ns, calls, other_begun }
                }));
                flows.push(Flow {
                    rank,
                    late_rank,
                    late,
                    messages: sent.messages,
                    compared: messages.len() as u64,
                    error_ns,
                    waited: Vec::new(),
                });
            }
        }
        let weight = |of: &MessageWait| {
            let late = flows.get(of.flow).map(|flow| flow.late);
            let is_certain = late == Some(MessageDirection::Sent);
            of.ns.saturating_mul(if is_certain { SENDER_BEFORE_RECEIVER } else { 100 })
        };
        waits.sort_by_cached_key(|of| (of.rank, of.call, Reverse(weight(of)), of.flow));
        let is_receive = |of: &&MessageWait| {
            flows.get(of.flow).is_some_and(|flow| flow.late == MessageDirection::Sent)
        };
        // The longest is the first of each call.
        let calls = waits.chunk_by(|one, other| (one.rank, one.call) == (other.rank, other.call));
        let calls: Vec<CallOfRank> = calls
            .filter_map(|call| {
                let sent = call.iter().filter(is_receive).map(|of| of.other_begun).max();
                Some(CallOfRank { longest: call.first()?, sent })
            })
            .collect();
        for (at, CallOfRank { longest, .. }) in calls.iter().enumerate() {
            if longest.ns == 0 {
                continue;
            }
            let next = calls.get(at + 1).filter(|next| next.longest.rank == longest.rank);
            let wrong_order_ns = next.map_or(0, |next| next.comes_before(longest));
            let Some(flow) = flows.get_mut(longest.flow) else { continue };
            let is_receive = flow.late == MessageDirection::Sent;
            let wrong_order_ns = if is_receive { wrong_order_ns } else { 0 };
            flow.waited.push(CountedWait { ns: longest.ns, wrong_order_ns, calls: longest.calls });
        }
        Some(summary([self.sent, paired, compared], &flows, &self.calls, waited))
    }
}

impl Merge for Pairs {
    fn absorb(&mut self, other: &Pairs) {
        self.is_known |= other.is_known;
        self.sent = self.sent.saturating_add(other.sent);
        for (rank, calls) in &other.calls {
            self.calls.entry(*rank).or_insert_with(|| calls.clone());
        }
        for (key, Stream { sent, received }) in &other.streams {
            let row = self.streams.entry(key.clone()).or_default();
            row.sent = row.sent.take().or_else(|| sent.clone());
            row.received = row.received.take().or_else(|| received.clone());
        }
        // The result is the same in whichever order they are dropped, whatever is merged later.
        while self.streams.len() > STREAMS_AT_MOST {
            self.streams.pop_last();
        }
    }
}

/// How long a rank waits until the other one begins, in ns, at most as long as its call takes. It does not wait for one that
/// begins after its call has ended: then the library has taken the message. `other_begun`: on the clock of the rank that waits; `error_ns`: how far that may be
/// wrong.
fn waits_for(own: &MessageTime, other_begun: i128, error_ns: u64) -> u64 {
    let ended = i128::from(own.ended_ns);
    if other_begun > ended + slack(error_ns) {
        return 0;
    }
    u64::try_from(other_begun.min(ended) - i128::from(own.waits_ns)).unwrap_or(0)
}

/// How far two clocks may be apart that are wrong by so much, in ns.
fn slack(error_ns: u64) -> i128 {
    SAME_TIME_NS + i128::from(error_ns)
}

/// A stream that its ranks number alike: as its sender knows it, and the messages that both timed, on the sender and on the receiver.
struct Both {
    sent: StreamSide,
    messages: Vec<[MessageTime; 2]>,
    /// What is added to a time of the receiver for one on the clock of the sender, and how far that may be wrong.
    offset_ns: i128,
    error_ns: u64,
}

/// None if the two cannot be compared, or do not number the messages alike.
fn compare(mut sent: StreamSide, mut received: StreamSide, clocks: &Clocks) -> Option<Both> {
    if sent.messages != received.messages {
        return None;
    }
    let (offset_ns, error_ns) = clocks.between(&received.clock, &sent.clock)?;
    let level = sent.level.max(received.level);
    for side in [&mut sent, &mut received] {
        for level in side.level..level {
            Waiting::thin(&mut side.times, level);
        }
    }
    let both = sent.times.iter().zip(&received.times);
    let messages: Vec<[MessageTime; 2]> =
        both.filter_map(|(sent, received)| Some([(*sent)?, (*received)?])).collect();
    // A message cannot come before it was sent.
    let slack = slack(error_ns);
    let is_wrong = |[sent, received]: &&[MessageTime; 2]| {
        i128::from(received.ended_ns) + offset_ns + slack < sent.begun_ns.into()
    };
    let wrong = messages.iter().filter(is_wrong).count();
    let is_alike = !messages.is_empty() && 4 * wrong <= messages.len();
    is_alike.then_some(Both { sent, messages, offset_ns, error_ns })
}

/// What is compared of a stream, for one of its two ranks, which may wait for the other one.
struct Flow {
    rank: u32,
    late_rank: u32,
    late: MessageDirection,
    messages: u64,
    compared: u64,
    error_ns: u64,
    /// The waits that count.
    waited: Vec<CountedWait>,
}

/// How long a rank waited, how long of that in the wrong order, and in which calls.
struct CountedWait {
    ns: u64,
    wrong_order_ns: u64,
    calls: WaitingCalls,
}

/// A call of a rank that ends messages.
struct CallOfRank<'a> {
    longest: &'a MessageWait,
    /// When the last message was sent that it receives, on the clock of the rank.
    sent: Option<i128>,
}

impl CallOfRank<'_> {
    /// How long a wait in the call before this one was while all was there for this one.
    fn comes_before(&self, wait: &MessageWait) -> u64 {
        let (waits, ended) = wait.call;
        let Some(sent) = self.sent.filter(|_| self.longest.call.0 >= ended) else { return 0 };
        u64::try_from(wait.other_begun - sent.max(waits.into())).unwrap_or(0)
    }
}

/// The numbers of the calls in which a rank waits, and in which the other one began the message.
type WaitingCalls = (u32, u32);

/// A rank waits for a message in a call, which began and ended then.
struct MessageWait {
    rank: u32,
    call: (u64, u64),
    flow: usize,
    ns: u64,
    calls: WaitingCalls,
    /// When the other one began the message, on the clock of this rank.
    other_begun: i128,
}

/// Seconds, and the error.
#[derive(Clone, Copy)]
struct WaitEstimate {
    waiting_s: f64,
    /// None if not known.
    variance: Option<f64>,
    /// Of clocks.
    clocks_s: f64,
}

impl WaitEstimate {
    const NONE: WaitEstimate = WaitEstimate { waiting_s: 0.0, variance: Some(0.0), clocks_s: 0.0 };

    fn plus(self, other: WaitEstimate) -> WaitEstimate {
        let variance = self.variance.zip(other.variance).map(|(own, others)| own + others);
        WaitEstimate {
            waiting_s: self.waiting_s + other.waiting_s,
            variance,
            clocks_s: self.clocks_s + other.clocks_s,
        }
    }

    fn error_s(&self) -> Option<f64> {
        self.variance.map(|variance| variance.sqrt() + self.clocks_s)
    }
}

impl Flow {
    /// The messages that were compared stand for all (a sample without replacement).
    fn estimate(&self) -> WaitEstimate {
        let (all, compared) = (self.messages as f64, self.compared as f64);
        let each = all / compared;
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let sum: f64 = self.waited.iter().map(|of| seconds(of.ns)).sum();
        let squares: f64 = self.waited.iter().map(|of| seconds(of.ns) * seconds(of.ns)).sum();
        let variance = if self.compared >= self.messages {
            Some(0.0)
        } else if self.compared > 1 {
            let spread = (squares - sum * sum / compared).max(0.0) / (compared - 1.0);
            Some(all * all * (1.0 - compared / all) * spread / compared)
        } else {
            None
        };
        // What times are rounded to: an estimate is never exact.
        let rounded_ns = if self.compared < self.messages { NS_PER_UNIT } else { 0 };
        let clocks_s = seconds(self.error_ns + rounded_ns) * self.waited.len().max(1) as f64 * each;
        WaitEstimate { waiting_s: sum * each, variance, clocks_s }
    }
}

/// The rank that waits, the one that is late, and what that was to do.
type PairKey = (u32, u32, MessageDirection);

/// What flows of a pair of ranks have in common.
struct PairSum {
    estimate: WaitEstimate,
    messages: u64,
    compared: u64,
    wrong_order_s: f64,
    /// By the calls, seconds.
    places: BTreeMap<WaitingCalls, f64>,
}

impl PairSum {
    /// The calls in which the rank waited most, and the seconds.
    fn most(&self) -> (WaitingCalls, f64) {
        let most = self.places.iter().max_by(|one, other| one.1.total_cmp(other.1));
        most.map_or(((0, 0), 0.0), |(calls, seconds)| (*calls, *seconds))
    }
}

/// Adds up functions with late ranks and seconds.
fn by_function<'a>(
    waits: impl Iterator<Item = (&'a str, u32, f64)>,
) -> Vec<MessageFunctionWaiting> {
    let mut functions: BTreeMap<&str, BTreeMap<u32, f64>> = BTreeMap::new();
    for (function, late_rank, seconds) in waits {
        *functions.entry(function).or_default().entry(late_rank).or_default() += seconds;
    }
    let row = |(function, late): (&str, BTreeMap<u32, f64>)| {
        let waiting_s: f64 = late.values().sum();
        let most = late.iter().max_by(|one, other| one.1.total_cmp(other.1));
        let (late_rank, seconds) = most.map_or((0, 0.0), |(rank, seconds)| (*rank, *seconds));
        let late_share = if waiting_s > 0.0 { seconds / waiting_s } else { 0.0 };
        MessageFunctionWaiting { function: function.into(), waiting_s, late_rank, late_share }
    };
    let mut rows: Vec<MessageFunctionWaiting> = functions.into_iter().map(row).collect();
    sort_by(&mut rows, |one, other| other.waiting_s.total_cmp(&one.waiting_s));
    rows
}

/// A pair that is shown, with the calls in which the rank waits and the other one is late.
struct ShownPair<'a> {
    key: PairKey,
    sum: &'a PairSum,
    calls: [Option<&'a CalledAt>; 2],
    share_there: f64,
}

impl ShownPair<'_> {
    /// `places`: sorted.
    fn described(&self, places: &[&Place]) -> PairWaiting {
        let place = |called: Option<&CalledAt>| {
            let place = called.and_then(|called| called.place.as_ref());
            MessagePlace {
                function: called.map(|called| called.function.clone()).unwrap_or_default(),
                call: place.and_then(|place| places.binary_search(&place).ok()),
            }
        };
        let (rank, late_rank, late) = self.key;
        let [waits, late_call] = self.calls.map(place);
        PairWaiting {
            rank,
            late_rank,
            late,
            waiting_s: self.sum.estimate.waiting_s,
            waiting_error_s: self.sum.estimate.error_s(),
            messages: self.sum.messages,
            compared: self.sum.compared,
            waits,
            late_call,
            share_there: self.share_there,
            wrong_order_s: self.sum.wrong_order_s,
        }
    }
}

/// `numbers`: of messages that were sent, that are paired, and that were compared.
fn summary(
    numbers: [u64; 3],
    flows: &[Flow],
    calls: &BTreeMap<u32, Vec<CalledAt>>,
    waited: &mut WaitsOfRanks,
) -> MessageWaitingSummary {
    let [messages, paired, compared] = numbers;
    let mut pairs: BTreeMap<PairKey, PairSum> = BTreeMap::new();
    for flow in flows {
        let pair = pairs.entry((flow.rank, flow.late_rank, flow.late)).or_insert(PairSum {
            estimate: WaitEstimate::NONE,
            messages: 0,
            compared: 0,
            wrong_order_s: 0.0,
            places: BTreeMap::new(),
        });
        pair.estimate = pair.estimate.plus(flow.estimate());
        pair.messages = pair.messages.saturating_add(flow.messages);
        pair.compared += flow.compared;
        let each_s = 1e-9 * flow.messages as f64 / flow.compared as f64;
        for CountedWait { ns, wrong_order_ns, calls } in &flow.waited {
            *pair.places.entry(*calls).or_default() += *ns as f64 * each_s;
            pair.wrong_order_s += *wrong_order_ns as f64 * each_s;
        }
    }
    for ((rank, ..), PairSum { estimate, .. }) in &pairs {
        waited.add(*rank, estimate.waiting_s, estimate.error_s());
    }
    let called_at = |rank: u32, number: u32| {
        let at = (number as usize).checked_sub(1)?;
        calls.get(&rank)?.get(at)
    };
    let total = |late: MessageDirection| {
        let of = pairs.iter().filter(|((.., own), _)| *own == late);
        of.fold(WaitEstimate::NONE, |sum, (_, pair)| sum.plus(pair.estimate))
    };
    let functions = by_function(pairs.iter().flat_map(|((rank, late_rank, _), pair)| {
        let function = |waits: u32| called_at(*rank, waits).map(|called| &*called.function);
        let waits = pair.places.iter();
        waits.filter_map(move |((waits, _), seconds)| {
            Some((function(*waits)?, *late_rank, *seconds))
        })
    }));
    let all_in_wrong_order_s = pairs.values().map(|pair| pair.wrong_order_s).sum();
    let (senders, receivers) = (total(MessageDirection::Sent), total(MessageDirection::Received));
    let mut rows: Vec<_> = pairs.iter().filter(|(_, pair)| pair.estimate.waiting_s > 0.0).collect();
    sort_by(&mut rows, |(_, one), (_, other)| {
        other.estimate.waiting_s.total_cmp(&one.estimate.waiting_s)
    });
    rows.truncate(PAIRS_AT_MOST);
    let shown: Vec<ShownPair> = rows
        .into_iter()
        .map(|(key, sum)| {
            let (rank, late_rank, _) = *key;
            let ((waits, late), seconds) = sum.most();
            let calls = [called_at(rank, waits), called_at(late_rank, late)];
            ShownPair { key: *key, sum, calls, share_there: seconds / sum.estimate.waiting_s }
        })
        .collect();
    let called = shown.iter().flat_map(|pair| pair.calls).flatten();
    let mut places: Vec<&Place> = called.filter_map(|called| called.place.as_ref()).collect();
    places.sort_unstable();
    places.dedup();
    let load_map = load_map(places.iter().copied());
    let addresses: Vec<CodeAddress> = places.iter().map(|place| place.code_in(&load_map)).collect();
    let pairs = shown.iter().map(|pair| pair.described(&places)).collect();
    MessageWaitingSummary {
        messages,
        paired,
        compared,
        late_senders_s: senders.waiting_s,
        late_senders_error_s: senders.error_s(),
        late_receivers_s: receivers.waiting_s,
        late_receivers_error_s: receivers.error_s(),
        wrong_order_s: all_in_wrong_order_s,
        functions,
        pairs,
        addresses,
        load_map,
    }
}

#[cfg(test)]
mod tests;
