//! Waiting in collectives and in messages for other programs, one row each.

use gyan_results::{
    CommunicatorWaiting, LastRank, MessageDirection, MessagePlace, PairWaiting, WaitingSummary,
};
use serde::Serialize;

use crate::document::data::{columns, word};
use crate::document::{Data, Value};
use crate::parts::ReportInput;

/// Both tables, in the form of the JSON.
#[derive(Serialize)]
pub(super) struct Waits<'a> {
    collectives: &'a [WaitingSummary],
    messages: Vec<PlacedPair<'a>>,
}

/// How long a rank waited for another one, with places in words.
#[derive(Serialize)]
pub(super) struct PlacedPair<'a> {
    rank: u32,
    late_rank: u32,
    /// What the late rank did with the messages.
    late: MessageDirection,
    waiting_s: f64,
    waiting_error_s: Option<f64>,
    messages: u64,
    /// How many of them were timed on both ranks.
    compared: u64,
    /// Where the rank waited most.
    function: &'a str,
    place: Option<&'a str>,
    /// Where the late rank sent or received those messages.
    late_function: &'a str,
    late_place: Option<&'a str>,
    /// The part of the waiting that is there.
    share_there: f64,
    /// Seconds of the waiting while the message was there that was received next.
    wrong_order_s: f64,
}

impl<'a> Waits<'a> {
    pub(super) fn new(of: &'a ReportInput) -> Waits<'a> {
        let pairs = of.summary.message_waiting.iter().flat_map(|of| &of.pairs);
        let place = |call: &'a MessagePlace| (call.function.as_str(), of.message_place(call));
        let placed = |pair: &'a PairWaiting| {
            let (function, place_of_rank) = place(&pair.waits);
            let (late_function, late_place) = place(&pair.late_call);
            PlacedPair {
                rank: pair.rank,
                late_rank: pair.late_rank,
                late: pair.late,
                waiting_s: pair.waiting_s,
                waiting_error_s: pair.waiting_error_s,
                messages: pair.messages,
                compared: pair.compared,
                function,
                place: place_of_rank,
                late_function,
                late_place,
                share_there: pair.share_there,
                wrong_order_s: pair.wrong_order_s,
            }
        };
        Waits { collectives: &of.summary.waiting, messages: pairs.map(placed).collect() }
    }
}

pub(super) fn rows(waits: Waits<'_>) -> Data<'_> {
    let collectives = waits.collectives.iter().flat_map(|of| {
        let each = of.communicators.iter().map(move |on| (Some(of), Some(on), None));
        std::iter::once((Some(of), None, None)).chain(each)
    });
    let messages = waits.messages.into_iter().map(|pair| (None, None, Some(pair)));
    Data::new(collectives.chain(messages))
}

/// A collective, on a communicator or on all of them; or a pair of ranks.
pub(super) type WaitingRow<'a> =
    (Option<&'a WaitingSummary>, Option<&'a CommunicatorWaiting>, Option<PlacedPair<'a>>);

columns! { (of, on, pair) in WaitingRow<'_>;
    // `collective`, or `messages` of two ranks.
    required(kind: Text) => if pair.is_some() { "messages" } else { "collective" },
    // The one in which ranks wait; for messages, in which the rank waits most.
    required(function: Text) =>
        of.map(|of| of.function.as_str()).or(pair.as_ref().map(|pair| pair.function)),
    // Empty for all of them.
    column(communicator: Text) => on.map(|on| &on.communicator),
    column(members: Text) => on.map(|on| &on.members),
    column(ordinal: Integer) => on.map(|on| u64::from(on.ordinal)),
    column(size: Integer) => on.map(|on| u64::from(on.size)),
    column(ranks: Text) => on.map(|on| &on.ranks),
    column(calls: Integer) => on.map(|on| on.calls).or(of.map(|of| of.calls)),
    // How many of the calls or messages were timed on every rank.
    column(compared: Integer) =>
        on.map(|on| on.compared).or(pair.as_ref().map(|pair| pair.compared)),
    column(time_s: Double) => time_s(*of, *on),
    required(waiting_s: Double) => waiting_s(*of, *on)
        .or(pair.as_ref().map(|pair| pair.waiting_s)),
    column(waiting_error_s: Double) => match (of, on, pair) {
        (_, Some(on), _) => on.waiting_error_s,
        (Some(of), ..) => of.waiting_error_s,
        (.., pair) => pair.as_ref().and_then(|pair| pair.waiting_error_s),
    },
    column(transfer_s: Double) =>
        time_s(*of, *on).zip(waiting_s(*of, *on)).map(|(time_s, waiting_s)| time_s - waiting_s),
    // The rank for which others waited longest, and its share of the waiting.
    column(last_rank: Integer) => last(*of, *on).map(|last| Value::Rank(last.rank)),
    column(last_waiting_share: Double) => last(*of, *on).map(|last| last.waiting_share),
    // The ranks of a communicator, when all timed the same calls.
    column(waiting_min_s: Double) => on.and_then(|on| on.of_ranks).map(|of| of.min_s),
    column(waiting_min_rank: Integer) =>
        on.and_then(|on| on.of_ranks).map(|of| Value::Rank(of.min_rank)),
    column(waiting_avg_s: Double) => on.and_then(|on| on.of_ranks).map(|of| of.avg_s),
    column(waiting_max_s: Double) => on.and_then(|on| on.of_ranks).map(|of| of.max_s),
    column(waiting_max_rank: Integer) =>
        on.and_then(|on| on.of_ranks).map(|of| Value::Rank(of.max_rank)),
    // The rank that waited for messages, and from here on only what such a row has.
    column(rank: Integer) => pair.as_ref().map(|pair| Value::Rank(pair.rank)),
    column(place: Text) => pair.as_ref().and_then(|pair| pair.place),
    column(late_rank: Integer) => pair.as_ref().map(|pair| Value::Rank(pair.late_rank)),
    // What the late rank did with the messages.
    column(late: Text) => pair.as_ref().map(|pair| word(pair.late)).transpose()?,
    column(late_function: Text) => pair.as_ref().map(|pair| pair.late_function),
    column(late_place: Text) => pair.as_ref().and_then(|pair| pair.late_place),
    column(messages: Integer) => pair.as_ref().map(|pair| pair.messages),
    column(share_there: Double) => pair.as_ref().map(|pair| pair.share_there),
    column(wrong_order_s: Double) => pair.as_ref().map(|pair| pair.wrong_order_s),
}

fn time_s(of: Option<&WaitingSummary>, on: Option<&CommunicatorWaiting>) -> Option<f64> {
    on.map(|on| on.time_s).or(of.map(|of| of.time_s))
}

fn waiting_s(of: Option<&WaitingSummary>, on: Option<&CommunicatorWaiting>) -> Option<f64> {
    on.map(|on| on.waiting_s).or(of.map(|of| of.waiting_s))
}

/// The rank for which others waited longest, if any did.
fn last<'a>(
    of: Option<&'a WaitingSummary>,
    on: Option<&'a CommunicatorWaiting>,
) -> Option<&'a LastRank> {
    let last = on.map(|on| &on.last).or(of.map(|of| &of.last))?;
    last.first().filter(|last| last.waiting_share > 0.0)
}
