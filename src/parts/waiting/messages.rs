//! How long do ranks wait for each other in messages, and in which calls?

use gyan_results::{Fidelity, MessagePlace, MessageWaitingSummary, Number, PairWaiting, Signal};

use crate::document::limits::{first_rows, more_rows};
use crate::document::value::{Amount, line, row, seconds, share};
use crate::document::{Kind, Section, Value, column, cut, numbers, texts};
use crate::findings::{LOCK_COMPLETING, LOCKING};
use crate::parts::ReportInput;
use crate::words::{NEARLY_ALL, how_much_in};

/// A longer place is cut in the table.
const PLACE_AT_MOST: usize = 30;

/// The pair with the longest waiting, if ranks wait much for each other.
pub(super) fn longest<'r>(of: &'r ReportInput) -> Option<Value<'r>> {
    let waiting = of.summary.message_waiting.as_ref()?;
    let pair = waiting.pairs.first().filter(|_| super::is_much(of.summary, all_s(waiting)))?;
    let who = line!["rank ", Value::Rank(pair.rank), " waited ", waited(pair)];
    let whom = line![" for rank ", Value::Rank(pair.late_rank), " to ", pair.to_do()];
    let [waits, late] = [&pair.waits, &pair.late_call].map(|call| in_words(of, call));
    let part = match pair.share_there {
        part if part >= NEARLY_ALL => "".into(),
        part => line![" (", share(part), " of it)"],
    };
    Some(line![who, whom, ", ", how_much_in(pair.share_there), " ", waits, " for ", late, part])
}

pub(super) fn totals(waiting: &MessageWaitingSummary) -> Value<'_> {
    line![of_both_sides(waiting), ", all ranks together"]
}

/// Seconds for messages and for signals.
pub(super) fn all_s(waiting: &MessageWaitingSummary) -> f64 {
    waiting.late_senders_s + waiting.late_receivers_s + waiting.signals_s.unwrap_or(0.0)
}

/// How long receivers and senders waited, and ranks in one-sided synchronisation.
pub(super) fn of_both_sides(waiting: &MessageWaitingSummary) -> Value<'_> {
    let senders = seconds(waiting.late_senders_s).estimated(waiting.late_senders_error_s);
    let receivers = seconds(waiting.late_receivers_s).estimated(waiting.late_receivers_error_s);
    let of_receivers = line!["receivers waited ", senders, " for late senders"];
    let of_messages = line![of_receivers, ", senders ", receivers, " for late receivers"];
    let Some(signals_s) = waiting.signals_s else { return of_messages };
    let signals = seconds(signals_s).estimated(waiting.signals_error_s);
    let of_signals = line![signals, " in one-sided synchronisation"];
    match waiting.messages {
        0 => line!["ranks waited ", of_signals],
        _ => line![of_messages, ", ranks ", of_signals],
    }
}

/// The table, with the longest waiting first.
pub(super) fn table<'r>(of: &'r ReportInput, all: bool) -> Option<Section<'r>> {
    let waiting = of.summary.message_waiting.as_ref()?;
    let MessageWaitingSummary { messages, paired, .. } = *waiting;
    let (pairs, cut_off) = first_rows(waiting.pairs.iter().collect::<Vec<&PairWaiting>>(), all);
    let mut notes = more_rows(cut_off);
    notes.push(totals(waiting));
    if waiting.wrong_order_s > 0.0 {
        let wrong = Amount { fidelity: Fidelity::Estimated, ..seconds(waiting.wrong_order_s) };
        let while_there =
            " of it while the message was there that the receiver received next (wrong order)";
        notes.push(line![wrong, while_there]);
    }
    if paired < messages {
        let why = " messages are compared: not those that a nonblocking call receives from any rank or with any \
                   tag, or on communicators that gyan cannot name";
        notes.push(line![paired, " of ", messages, why]);
    }
    if pairs.iter().any(|pair| pair.signal.is_none()) {
        notes.push(
            "WAITING for a rank to send is the time from when the receiver begins to wait until the sender begins \
             to send; for a rank to receive, until the receive is posted"
                .into(),
        );
    }
    if pairs.iter().any(|pair| pair.signal == Some(Signal::Unlock)) {
        notes.push(
            "WAITING for a rank to unlock is the time in MPI_Win_lock, in a flush or in MPI_Win_unlock until it returns from \
             MPI_Win_unlock, or begins that, if it returns later"
                .into(),
        );
    }
    notes.extend(locks_not_compared(of, waiting));
    let is_group =
        |pair: &&PairWaiting| matches!(pair.signal, Some(Signal::Post | Signal::Complete));
    if pairs.iter().any(is_group) {
        notes.push(
            "WAITING for a rank to post is the time in MPI_Win_start or MPI_Win_complete until it begins MPI_Win_post; for \
             a rank to complete, that in MPI_Win_wait until it begins MPI_Win_complete; neither counts as a message"
                .into(),
        );
    }
    if waiting.compared < paired {
        let stand = " were timed on both ranks and stand for the others; ± is the standard error of the estimate";
        notes.push(line![waiting.compared, " messages", stand]);
    }
    notes.extend(of.message_places().1.iter().map(Value::from));
    let mut columns = vec![column("RANK", Kind::Integer), column("WAITS FOR", Kind::Integer)];
    columns.extend(texts(["TO"]));
    columns.extend(numbers(["WAITING"]));
    columns.extend(texts(["MOST IN", "FOR"]));
    columns.extend(numbers(["OF IT"]));
    let cells = |pair: &&'r PairWaiting| {
        let [waits, late] =
            [&pair.waits, &pair.late_call].map(|call| cut(&in_words(of, call), PLACE_AT_MOST));
        row![
            Value::Rank(pair.rank),
            Value::Rank(pair.late_rank),
            pair.to_do(),
            waited(pair),
            waits,
            late,
            share(pair.share_there),
        ]
    };
    let rows = pairs.iter().map(cells).collect();
    Some(Section { title: "Waiting in messages".into(), columns, rows, notes })
}

fn waited(pair: &PairWaiting) -> Amount {
    seconds(pair.waiting_s).estimated(pair.waiting_error_s)
}

/// How many epochs with locks are compared, and how much of the time in their calls; none if all are, or there are none.
fn locks_not_compared<'r>(
    of: &'r ReportInput,
    waiting: &MessageWaitingSummary,
) -> Option<Value<'r>> {
    let of_function = |name: &str| of.summary.calls.iter().find(|call| call.name == name);
    let locking = LOCKING.iter().filter_map(|name| of_function(name));
    let epochs = locking.fold(Number::Integer(0), |sum, call| sum.plus(call.count.sum));
    let compared = waiting.lock_epochs_compared.unwrap_or(0);
    if compared as f64 >= epochs.as_f64() {
        return None;
    }
    let locks = LOCKING.iter().chain(LOCK_COMPLETING);
    let times = locks.filter_map(|name| of_function(name)).filter_map(|call| call.time_s.as_ref());
    let all_s: f64 = times.map(|time_s| time_s.sum.as_f64()).sum();
    let all = Amount { fidelity: Fidelity::Estimated, ..seconds(all_s) };
    let number = line![compared, " of ", epochs, " epochs with locks are compared, with "];
    let time = line![seconds(waiting.lock_calls_compared_s.unwrap_or(0.0)), " of ", all];
    Some(line![number, time, " in MPI_Win_lock, MPI_Win_flush, MPI_Win_unlock and their kin"])
}

/// `MPI_Recv at halo.c:31`, or the function only.
fn in_words(of: &ReportInput, call: &MessagePlace) -> String {
    match of.message_place(call) {
        Some(place) => format!("{} at {place}", call.function),
        None => call.function.clone(),
    }
}
