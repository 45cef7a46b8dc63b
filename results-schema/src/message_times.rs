//! When messages began and ended: the same messages on both ranks, so that it is known how long each of the two waited for the
//! other one.
//!
//! Messages from one rank to another one, on one communicator and with one tag, are received in the order in which they were
//! sent (MPI 4.1, 3.5). So both number them alike without asking each other, and which of them are timed follows from
//! the number, as for collective operations ([`Waiting::timed_call`](crate::Waiting::timed_call)).

use crate::data::{Data, Deserialize, Serialize, apply, datum, derive};
use crate::waiting::{NS_PER_UNIT, write_number, written_numbers};
use crate::{CodeAddress, LoadedObject, LockTimes};

/// Most messages of one stream whose times a profile has.
pub const STREAM_TIMES_AT_MOST: usize = 256;

/// The messages of a rank, by stream.
#[derive(Data!, Serialize, Default)]
pub struct MessageTimes {
    /// A number of the clock of the times, which all ranks of a host share.
    pub clock: String,
    /// One for each direction, peer, tag and communicator.
    pub streams: Vec<MessageStream>,
    /// How many messages the rank sent that are in none of them: on communicators of which a rank does not know what they are
    /// for the others, or beyond the room for streams.
    pub sent_in_none: u64,
    /// The epochs in which it locked windows.
    #[serde(default)]
    pub locks: LockTimes,
    /// The calls that sent, received or waited for those that were timed, or locked windows.
    pub calls: Vec<MessagePlace>,
    /// The places in the code that `calls` name by their index.
    pub addresses: Vec<CodeAddress>,
    /// The files that `addresses` name by their index.
    pub load_map: Vec<LoadedObject>,
}

impl MessageTimes {
    /// Most messages whose times the profile of one of `size` ranks has. Those of all ranks are in memory together before they are
    /// compared.
    pub fn at_most(size: u32) -> usize {
        const OF_ALL_RANKS: usize = 1 << 19;
        (OF_ALL_RANKS / (size as usize).max(1)).clamp(64, 768)
    }
}

/// Which way messages go.
#[derive(Data!, Serialize, Copy, Default, Eq, Hash, Ord, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub enum MessageDirection {
    /// From this rank.
    #[default]
    Sent,
    /// To this rank, which names the other one and the tag: a receive from any is in no stream.
    Received,
}

/// What a rank waits for in the one-sided synchronisation of some ranks of a window (MPI 4.1, 12.5.2 and 12.5.3): a message
/// without data, or a lock.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// `MPI_Win_post` of a target: the origin may access it.
    Post,
    /// `MPI_Win_complete` of an origin: its accesses are over.
    Complete,
    /// `MPI_Win_unlock` or `MPI_Win_unlock_all`: another rank may have the lock. Its times are in `locks`.
    Unlock,
}

impl Signal {
    /// The tag of `MPI_Win_post`, for which the origin waits in `MPI_Win_start`.
    pub const POST_IN_START: i32 = -1;
    /// The same signal once more, as the origin may wait for it in `MPI_Win_complete` instead.
    pub const POST_IN_COMPLETE: i32 = -2;
    /// The tag of `MPI_Win_complete`, for which the target waits in `MPI_Win_wait`.
    pub const COMPLETE: i32 = -3;

    /// The signal with this tag; none for a message of the program.
    pub fn with_tag(tag: i32) -> Option<Signal> {
        match tag {
            Signal::POST_IN_START | Signal::POST_IN_COMPLETE => Some(Signal::Post),
            Signal::COMPLETE => Some(Signal::Complete),
            _ => None,
        }
    }
}

/// Messages from one rank to another one, on one communicator and with one tag.
#[derive(Data!, Serialize, Default)]
pub struct MessageStream {
    /// Which way they go.
    pub direction: MessageDirection,
    /// The other rank, in `MPI_COMM_WORLD`.
    pub peer: u32,
    /// Their tag. Below 0 they are signals of one-sided synchronisation and no messages: -1 for `MPI_Win_post`, for which the
    /// origin waits in `MPI_Win_start`, -2 for the same, for which it waits in `MPI_Win_complete`, -3 for `MPI_Win_complete`.
    pub tag: i32,
    /// A number of the communicator, or of the window, that its ranks agree on: 16 hexadecimal digits.
    pub communicator: String,
    /// The exact number of messages.
    pub messages: u64,
    /// Whether more may have come, which the rank could not number.
    #[serde(default)]
    pub is_partial: bool,
    /// One message in `2^level` is in `times`; 0 for every one.
    pub level: u32,
    /// For each of them, in units of 64 ns: 0 if its times are not known, else 1 more than the time since the one before it
    /// began; then how long after its beginning the rank began to wait for it, and how long it waited; then, in `calls` and plus
    /// 1, which call began it and which one waited for it, 0 if that is not known. Each number is written as those of
    /// `starts.begun` in `waiting`.
    pub times: String,
}

/// One message on one of its two ranks, in ns on the clock of its host.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct MessageTime {
    /// When the call began that sends it or posts its receive.
    pub begun_ns: u64,
    /// When the call began that completes it: the same one, or a later one such as `MPI_Waitall`.
    pub waits_ns: u64,
    /// When that call ended.
    pub ended_ns: u64,
    /// Which call began it, from 1 in the order of `calls`; 0 if that is not known.
    pub begun_in: u32,
    /// Which call completed it.
    pub waits_in: u32,
}

impl MessageStream {
    /// Encodes the times of messages, none for one of which they are not known, as `times`. A message that began before the one
    /// before it is not known.
    pub fn written(messages: impl IntoIterator<Item = Option<MessageTime>>) -> String {
        let (mut text, mut before) = (String::new(), 0);
        for message in messages {
            let units = message.map(|message| {
                let MessageTime { begun_ns, waits_ns, ended_ns, begun_in, waits_in } = message;
                let times = [begun_ns, waits_ns.max(begun_ns), ended_ns.max(waits_ns)];
                (times.map(|ns| ns / NS_PER_UNIT), [begun_in, waits_in])
            });
            match units.filter(|([begun, ..], _)| *begun >= before) {
                Some(([begun, waits, ended], calls)) => {
                    write_number(&mut text, begun - before + 1);
                    write_number(&mut text, waits - begun);
                    write_number(&mut text, ended.saturating_sub(waits));
                    for call in calls {
                        write_number(&mut text, call.into());
                    }
                    before = begun;
                }
                None => write_number(&mut text, 0),
            }
        }
        text
    }

    /// Decodes `times`.
    pub fn messages_timed(&self) -> impl Iterator<Item = Option<MessageTime>> {
        let mut numbers = written_numbers(&self.times);
        let mut before: u64 = 0;
        let next = move || {
            let Some(since) = numbers.next()?.checked_sub(1) else { return Some(None) };
            let begun = before.saturating_add(since);
            let waits = begun.saturating_add(numbers.next()?);
            let ended = waits.saturating_add(numbers.next()?);
            let mut call = || u32::try_from(numbers.next()?).ok();
            let (begun_in, waits_in) = (call()?, call()?);
            before = begun;
            let [begun_ns, waits_ns, ended_ns] =
                [begun, waits, ended].map(|unit| unit.saturating_mul(NS_PER_UNIT));
            Some(Some(MessageTime { begun_ns, waits_ns, ended_ns, begun_in, waits_in }))
        };
        std::iter::from_fn(next).take(STREAM_TIMES_AT_MOST)
    }
}

/// How long ranks waited for each other in messages.
///
/// A receiver waits for a late sender from when it begins to wait, in the receive itself or in a call such as `MPI_Waitall`,
/// until the sender begins to send; a sender waits for a late receiver, if it does, until the receive is posted (the patterns "late
/// sender" and "late receiver" of Scalasca). Of several messages that one call waits for, the one for which it waits longest counts.
/// The messages of a stream that both ranks timed stand for the others.
#[apply(datum!)]
#[derive(Default)]
pub struct MessageWaitingSummary {
    /// The messages that the ranks sent.
    pub messages: u64,
    /// Of these, the messages of streams of which both ranks have the same number and timed some: of the others nothing
    /// is known.
    pub paired: u64,
    /// How many messages were timed on both ranks.
    pub compared: u64,
    /// Seconds in which receivers waited for late senders, all ranks together.
    pub late_senders_s: f64,
    /// Its error: the standard error of the estimate from those that were timed, and how far the clocks of hosts may be wrong; none
    /// where the timed messages cannot tell it.
    pub late_senders_error_s: Option<f64>,
    /// Seconds in which senders waited for late receivers, all ranks together.
    pub late_receivers_s: f64,
    /// As for `late_senders_error_s`.
    pub late_receivers_error_s: Option<f64>,
    /// Seconds in which ranks waited for signals of one-sided synchronisation, all ranks together: an origin until the target calls
    /// `MPI_Win_post`, a target until the origin calls `MPI_Win_complete`, and a rank that wants a lock until the one that has it
    /// returns from `MPI_Win_unlock`. Signals are none of the messages above. None if there were none that could be compared.
    pub signals_s: Option<f64>,
    /// As for `late_senders_error_s`.
    pub signals_error_s: Option<f64>,
    /// The epochs with locks that were compared with those of all other ranks; none if there were none.
    pub lock_epochs_compared: Option<u64>,
    /// Seconds of `MPI_Win_lock`, `MPI_Win_unlock` and the flushes of these epochs in which a rank may have waited for a lock.
    pub lock_calls_compared_s: Option<f64>,
    /// Seconds of `late_senders_s` in which all messages had been sent that the receiver's next call received: it received in the
    /// wrong order (the pattern "messages in wrong order" of Scalasca). At least, where not every message was timed.
    pub wrong_order_s: f64,
    /// By function in which ranks waited, the longest waiting first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<MessageFunctionWaiting>,
    /// By pair of ranks, the longest waiting first; at most 4,096.
    pub pairs: Vec<PairWaiting>,
    /// The places in the code that `pairs` name by their index.
    pub addresses: Vec<CodeAddress>,
    /// The files that `addresses` name by their index.
    pub load_map: Vec<LoadedObject>,
}

/// How long ranks waited in a function for others that were to send or to receive.
#[derive(Data!, Serialize, Default)]
pub struct MessageFunctionWaiting {
    /// The function's name in C.
    pub function: String,
    /// Seconds, all ranks together.
    pub waiting_s: f64,
    /// The rank that they waited for longest.
    pub late_rank: u32,
    /// The part of the waiting that was for that rank.
    pub late_share: f64,
}

/// How long a rank waited for another one, which was late.
#[apply(datum!)]
#[derive(Default)]
pub struct PairWaiting {
    /// The rank that waited.
    pub rank: u32,
    /// The rank that it waited for.
    pub late_rank: u32,
    /// What the late rank was to do: send for a late sender, receive for a late receiver.
    pub late: MessageDirection,
    /// What it was to signal, if they were no messages.
    pub signal: Option<Signal>,
    /// Seconds.
    pub waiting_s: f64,
    /// As for the summary.
    pub waiting_error_s: Option<f64>,
    /// The messages of the two in that direction, or the signals; of locks the calls in which the rank waited.
    pub messages: u64,
    /// How many of them were timed on both ranks.
    pub compared: u64,
    /// Where the rank waited most.
    pub waits: MessagePlace,
    /// Where the late rank sent or received those messages.
    pub late_call: MessagePlace,
    /// The part of `waiting_s` in which the rank waited there for messages from there.
    pub share_there: f64,
    /// Seconds of `waiting_s` in the wrong order, as for the summary.
    pub wrong_order_s: f64,
}

impl PairWaiting {
    /// What the late rank was to do, as a verb.
    pub fn to_do(&self) -> &'static str {
        match (self.signal, self.late) {
            (Some(Signal::Post), _) => "post",
            (Some(Signal::Complete), _) => "complete",
            (Some(Signal::Unlock), _) => "unlock",
            (None, MessageDirection::Sent) => "send",
            (None, MessageDirection::Received) => "receive",
        }
    }
}

/// A call of a function that sends, receives or waits.
#[derive(Data!, Serialize, Default, Eq)]
pub struct MessagePlace {
    /// The function's name in C.
    pub function: String,
    /// The index of its place in `addresses`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_that_were_written_in_units_of_64_ns() {
        let time = |begun_ns, waits_ns, ended_ns| {
            Some(MessageTime { begun_ns, waits_ns, ended_ns, begun_in: 1, waits_in: 77 })
        };
        let messages = [
            time(6400, 6400, 64_000_000),
            None,
            time(6400, 12_800, 12_800),
            time(1 << 40, 1 << 41, 1 << 42),
            time(128, 192, 256),
        ];
        let stream =
            MessageStream { times: MessageStream::written(messages), ..MessageStream::default() };
        let read: Vec<Option<MessageTime>> = stream.messages_timed().collect();
        // The last one began before others.
        assert_eq!(read[..4], messages[..4]);
        assert_eq!(read[4..], [None]);
    }

    #[test]
    fn what_was_cut_short_is_not_known() {
        let times = MessageStream::written([Some(MessageTime {
            begun_ns: 1 << 20,
            waits_ns: 1 << 21,
            ended_ns: 1 << 22,
            begun_in: 40,
            waits_in: 1,
        })]);
        for length in 0..times.len() {
            let times = times[..length].to_owned();
            let stream = MessageStream { times, ..MessageStream::default() };
            assert_eq!(stream.messages_timed().count(), 0, "{length}");
        }
    }
}
