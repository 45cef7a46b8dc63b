//! How long did ranks wait for each other in messages? The two lists of a stream, that of its sender and that of its receiver,
//! meet here: message by message, both ranks timed the same ones.
//!
//! Of the messages that one call of a rank completes, the one for which it waited longest counts: it waited for the others in
//! the same time.
//!
//! Signals of one-sided synchronisation are compared like messages and counted apart. Whoever gives one waits for nobody. A rank waits
//! for a post in one of two calls, and not in the one that ended before that. Locks of windows are compared by [`locks`](super::locks).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ideal::WaitsOfRanks;
use super::locks::{LockWait, Locks, LocksCompared};
use super::path::{CallClass, LeadsTo, PathCall, PathCalls, PathWait};
use super::places::{Objects, Place, load_map};
use super::starts::Clocks;
use crate::merge::Merge;
use crate::waiting::NS_PER_UNIT;
use crate::{
    CodeAddress, MessageDirection, MessageFunctionWaiting, MessagePlace, MessageStream,
    MessageTime, MessageTimes, MessageWaitingSummary, PairWaiting, Signal, Waiting, sort_by,
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
    locks: Locks,
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
    /// It could number no more.
    is_partial: bool,
    level: u32,
    times: Vec<Option<MessageTime>>,
}

/// A function in C, and where it was called.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) struct CalledAt {
    pub(super) function: String,
    pub(super) place: Option<Place>,
}

impl Pairs {
    /// Makes this what one rank says.
    pub(super) fn set(&mut self, times: Option<&MessageTimes>, rank: u32) {
        *self = Pairs::default();
        let Some(times) = times else { return };
        let MessageTimes { clock, streams, sent_in_none, locks, calls, addresses, load_map } =
            times;
        self.is_known = true;
        self.sent = *sent_in_none;
        self.locks = Locks::of_rank(locks, clock, rank);
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
                is_partial: stream.is_partial,
                level: *level,
                times: stream.messages_timed().collect(),
            };
            let is_sent = *direction == MessageDirection::Sent;
            let (sender, receiver) = if is_sent { (rank, *peer) } else { (*peer, rank) };
            let communicator = stream.communicator.clone();
            let key = StreamKey { sender, receiver, communicator, tag: stream.tag };
            let row = self.streams.entry(key).or_default();
            if is_sent {
                let is_message = Signal::with_tag(stream.tag).is_none();
                self.sent = self.sent.saturating_add(if is_message { *messages } else { 0 });
                row.sent = Some(side);
            } else {
                row.received = Some(side);
            }
        }
    }

    /// `size`: of the job; `waited`: is told how long each rank waited.
    pub(super) fn finish(
        self,
        clocks: &Clocks,
        size: u32,
        waited: &mut WaitsOfRanks,
    ) -> Option<MessageWaitingSummary> {
        if !self.is_known {
            return None;
        }
        let (mut paired, mut compared): (u64, u64) = (0, 0);
        let mut flows: Vec<Flow> = Vec::new();
        let mut waits: Vec<MessageWait> = Vec::new();
        let offsets = offsets(&self.streams, clocks);
        for (number, (key, stream)) in self.streams.into_iter().enumerate() {
            let (Some(sent), Some(received)) = (stream.sent, stream.received) else { continue };
            let signal = Signal::with_tag(key.tag);
            let Some(both) = compare(sent, received, clocks, signal) else { continue };
            let Both { sent, level, messages, numbers, offset_ns, error_ns } = both;
            if signal.is_none() {
                paired += sent.messages;
                compared += messages.len() as u64;
            }
            let reversed = messages.iter().map(|[sent, received]| [*received, *sent]).collect();
            let (from, to) = (key.sender, key.receiver);
            let sides = [
                (from, to, MessageDirection::Received, messages, offset_ns),
                (to, from, MessageDirection::Sent, reversed, -offset_ns),
            ];
            let may_wait = |late| signal.is_none() || late == MessageDirection::Sent;
            for (rank, late_rank, late, messages, offset_ns) in
                sides.into_iter().filter(|side| may_wait(side.2))
            {
                let flow = flows.len();
                waits.extend(numbers.iter().zip(&messages).map(|(number, [own, other])| {
                    let call = (own.waits_ns, own.ended_ns);
                    let calls = (own.waits_in, other.begun_in);
                    let other_begun = i128::from(other.begun_ns) + offset_ns;
                    let ns = waits_for(own, other_begun, error_ns);
                    let (number, begun_in) = (*number, own.begun_in);
                    MessageWait { rank, call, flow, number, ns, calls, begun_in, other_begun }
                }));
                flows.push(Flow {
                    stream: number,
                    level,
                    rank,
                    late_rank,
                    late,
                    signal,
                    is_again: key.tag == Signal::POST_IN_COMPLETE,
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
        let is_receive = |of: &&MessageWait| flows.get(of.flow).is_some_and(Flow::is_receive);
        // The longest is the first of each call.
        let calls = waits.chunk_by(|one, other| (one.rank, one.call) == (other.rank, other.call));
        let calls: Vec<CallOfRank> = calls
            .filter_map(|call| {
                let sent = call.iter().filter(is_receive).map(|of| of.other_begun).max();
                Some(CallOfRank { longest: call.first()?, all: call, sent })
            })
            .collect();
        add_to_path(&calls, &flows, &offsets, &mut waited.path);
        for (at, CallOfRank { longest, .. }) in calls.iter().enumerate() {
            if longest.ns == 0 {
                continue;
            }
            let next = calls.get(at + 1).filter(|next| next.longest.rank == longest.rank);
            let wrong_order_ns = next.map_or(0, |next| next.comes_before(longest));
            let Some(flow) = flows.get_mut(longest.flow) else { continue };
            let wrong_order_ns = if flow.is_receive() { wrong_order_ns } else { 0 };
            flow.waited.push(CountedWait { ns: longest.ns, wrong_order_ns, calls: longest.calls });
        }
        let LocksCompared { epochs, calls_ns, waits } = self.locks.finish(clocks, size);
        flows.extend(waits.iter().map(Flow::of_lock));
        let mut summary = summary([self.sent, paired, compared], &flows, &self.calls, waited);
        if epochs > 0 {
            summary.lock_epochs_compared = Some(epochs);
            summary.lock_calls_compared_s = Some(calls_ns as f64 * 1e-9);
        }
        waited.path.name(self.calls);
        Some(summary)
    }
}

impl Merge for Pairs {
    fn absorb(&mut self, other: &Pairs) {
        self.is_known |= other.is_known;
        self.sent = self.sent.saturating_add(other.sent);
        self.locks.absorb(&other.locks);
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
    /// At which it is compared.
    level: u32,
    messages: Vec<[MessageTime; 2]>,
    /// Of each of these, its number in the stream.
    numbers: Vec<u64>,
    /// What is added to a time of the receiver for one on the clock of the sender, and how far that may be wrong.
    offset_ns: i128,
    error_ns: u64,
}

/// None if the two cannot be compared, or do not number the messages alike.
fn compare(
    mut sent: StreamSide,
    mut received: StreamSide,
    clocks: &Clocks,
    signal: Option<Signal>,
) -> Option<Both> {
    let is_partial = received.is_partial && received.messages < sent.messages;
    if sent.messages != received.messages && !is_partial {
        return None;
    }
    sent.messages = received.messages;
    let (offset_ns, error_ns) = clocks.between(&received.clock, &sent.clock)?;
    let level = sent.level.max(received.level);
    for side in [&mut sent, &mut received] {
        for level in side.level..level {
            Waiting::thin(&mut side.times, level);
        }
    }
    let both = (0..).zip(sent.times.iter().zip(&received.times));
    let number = |block: u64| Waiting::timed_call(level, block);
    let (numbers, messages): (Vec<u64>, Vec<[MessageTime; 2]>) = both
        .filter_map(|(block, (sent, received))| Some((number(block), [(*sent)?, (*received)?])))
        .unzip();
    // A message cannot come before it was sent. A signal can, as far as the call knows that need not wait for it.
    let slack = slack(error_ns);
    let is_wrong = |[sent, received]: &&[MessageTime; 2]| {
        i128::from(received.ended_ns) + offset_ns + slack < sent.begun_ns.into()
    };
    let wrong = messages.iter().filter(is_wrong).count();
    let is_alike = !messages.is_empty() && (signal.is_some() || 4 * wrong <= messages.len());
    is_alike.then_some(Both { sent, level, messages, numbers, offset_ns, error_ns })
}

/// What is compared of a stream, for one of its two ranks, which may wait for the other one.
struct Flow {
    /// The number of the stream, and at which level it is compared.
    stream: usize,
    level: u32,
    rank: u32,
    late_rank: u32,
    late: MessageDirection,
    signal: Option<Signal>,
    /// Its messages are those of another flow.
    is_again: bool,
    messages: u64,
    compared: u64,
    error_ns: u64,
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
    all: &'a [MessageWait],
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

/// By rank, what is added to a time on its clock for one on the clock of the lowest rank; of ranks whose clocks are compared.
fn offsets(streams: &BTreeMap<StreamKey, Stream>, clocks: &Clocks) -> BTreeMap<u32, i128> {
    let of_rank = streams.iter().flat_map(|(key, Stream { sent, received })| {
        let sides = [(key.sender, sent), (key.receiver, received)];
        sides.into_iter().filter_map(|(rank, side)| Some((rank, &side.as_ref()?.clock)))
    });
    let of_rank: BTreeMap<u32, &String> = of_rank.collect();
    let Some(first) = clocks.first().or(of_rank.values().next().map(|clock| &***clock)) else {
        return BTreeMap::new();
    };
    let offset = |(rank, clock): (&u32, &&String)| Some((*rank, clocks.between(clock, first)?.0));
    of_rank.iter().filter_map(offset).collect()
}

fn add_to_path(
    calls: &[CallOfRank],
    flows: &[Flow],
    offsets: &BTreeMap<u32, i128>,
    path: &mut PathCalls,
) {
    let mut of_class: BTreeMap<(u32, CallClass), (u64, u32, Vec<PathCall>)> = BTreeMap::new();
    for CallOfRank { longest, all, .. } in calls {
        let rank = longest.rank;
        let Some(offset) = offsets.get(&rank) else { continue };
        let of_flow = |of: &MessageWait| flows.get(of.flow);
        let is_receive =
            |of: &&MessageWait| of_flow(of).is_some_and(|flow| flow.late == MessageDirection::Sent);
        let last = all.iter().filter(is_receive).max_by_key(|of| of.other_begun);
        let last = last.filter(|_| longest.ns == 0).unwrap_or(longest);
        let sends = all
            .iter()
            .find(|of| of_flow(of).is_some_and(|flow| flow.late == MessageDirection::Received));
        let leads_to = LeadsTo::Call(rank, sends.map_or(longest.calls.0, |of| of.begun_in));
        // A call is sampled if one of its messages is.
        let levels = all.iter().filter_map(of_flow).map(|flow| flow.level);
        let level = levels.min().unwrap_or(0);
        let is_known = longest.ns > 0 || is_receive(&last);
        let last = of_flow(last).filter(|_| is_known).map(|flow| PathWait {
            late_rank: flow.late_rank,
            came: last.other_begun + offset,
            leads_to: LeadsTo::Call(flow.late_rank, last.calls.1),
        });
        let streams = all.iter().filter_map(|of| Some((of_flow(of)?, of.number)));
        let first = streams.map(|(flow, number)| (flow.stream, number, flow.messages)).min();
        let (stream, number, total) = first.unwrap_or_default();
        let [begun, ended] = [longest.call.0, longest.call.1].map(|ns| i128::from(ns) + offset);
        let (waited_ns, late_ns) = (longest.ns, longest.ns);
        let call = PathCall { number, begun, ended, last, waited_ns, leads_to, late_ns };
        let class = CallClass::Messages { stream, level };
        of_class.entry((rank, class)).or_insert((total, level, Vec::new())).2.push(call);
    }
    for ((rank, class), (total, level, calls)) in of_class {
        path.add(class, [rank].into_iter(), (total, level), calls);
    }
}

/// The numbers of the calls in which a rank waits, and in which the other one began the message.
type WaitingCalls = (u32, u32);

/// A rank waits for a message in a call, which began and ended then.
struct MessageWait {
    rank: u32,
    call: (u64, u64),
    flow: usize,
    /// Of the message in its stream.
    number: u64,
    ns: u64,
    calls: WaitingCalls,
    /// The number of the call in which this rank began the message.
    begun_in: u32,
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
    /// That of one call in which a rank waited for a lock: all such calls are compared.
    fn of_lock(wait: &LockWait) -> Flow {
        let LockWait { rank, late_rank, ns, error_ns, calls } = *wait;
        Flow {
            // Of no stream, and not on the critical path.
            stream: usize::MAX,
            level: 0,
            rank,
            late_rank,
            late: MessageDirection::Sent,
            signal: Some(Signal::Unlock),
            is_again: false,
            messages: 1,
            compared: 1,
            error_ns,
            waited: vec![CountedWait { ns, wrong_order_ns: 0, calls }],
        }
    }

    /// Whether the rank receives messages.
    fn is_receive(&self) -> bool {
        self.late == MessageDirection::Sent && self.signal.is_none()
    }

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
type PairKey = (u32, u32, (MessageDirection, Option<Signal>));

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
        let (rank, late_rank, (late, signal)) = self.key;
        let [waits, late_call] = self.calls.map(place);
        PairWaiting {
            rank,
            late_rank,
            late,
            signal,
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
        let pair =
            pairs.entry((flow.rank, flow.late_rank, (flow.late, flow.signal))).or_insert(PairSum {
                estimate: WaitEstimate::NONE,
                messages: 0,
                compared: 0,
                wrong_order_s: 0.0,
                places: BTreeMap::new(),
            });
        pair.estimate = pair.estimate.plus(flow.estimate());
        if !flow.is_again {
            pair.messages = pair.messages.saturating_add(flow.messages);
            pair.compared += flow.compared;
        }
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
    let total = |is_of: &dyn Fn(MessageDirection, Option<Signal>) -> bool| {
        let of = pairs.iter().filter(|((.., (late, signal)), _)| is_of(*late, *signal));
        of.map(|(_, pair)| pair.estimate).reduce(WaitEstimate::plus)
    };
    let of_messages = |of: MessageDirection| {
        total(&|late, signal| late == of && signal.is_none()).unwrap_or(WaitEstimate::NONE)
    };
    let signals = total(&|_, signal| signal.is_some());
    let functions = by_function(pairs.iter().flat_map(|((rank, late_rank, _), pair)| {
        let function = |waits: u32| called_at(*rank, waits).map(|called| &*called.function);
        let waits = pair.places.iter();
        waits.filter_map(move |((waits, _), seconds)| {
            Some((function(*waits)?, *late_rank, *seconds))
        })
    }));
    let all_in_wrong_order_s = pairs.values().map(|pair| pair.wrong_order_s).sum();
    let [senders, receivers] =
        [MessageDirection::Sent, MessageDirection::Received].map(of_messages);
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
        signals_s: signals.map(|signals| signals.waiting_s),
        signals_error_s: signals.and_then(|signals| signals.error_s()),
        lock_epochs_compared: None,
        lock_calls_compared_s: None,
        wrong_order_s: all_in_wrong_order_s,
        functions,
        pairs,
        addresses,
        load_map,
    }
}

#[cfg(test)]
mod tests;
