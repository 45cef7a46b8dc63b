//! How long do ranks wait for each other in messages, and in which calls?

use gyan_results::{Fidelity, MessageDirection, MessagePlace, MessageWaitingSummary, PairWaiting};

use crate::document::data::{columns, word};
use crate::document::limits::{first_rows, more_rows};
use crate::document::value::{Amount, line, row, seconds, share};
use crate::document::{Data, Kind, Section, Value, column, cut, numbers, texts};
use crate::parts::{Part, ReportInput, SummaryTable};
use crate::words::{NEARLY_ALL, how_much_in};

/// Messages, as a table. They are shown below the collectives.
pub(in crate::parts) const MESSAGES: Part = Part {
    option: None,
    table: Some(SummaryTable::new(
        "summary_message_waiting",
        "pair of ranks of which one waited for the other in messages",
        |of| {
            Some(Data::new(
                of.summary.message_waiting.as_ref()?.pairs.iter().map(move |pair| (of, pair)),
            ))
        },
    )),
    block: None,
};

/// A longer place is cut in the table.
const PLACE_AT_MOST: usize = 30;

/// The pair with the longest waiting, if ranks wait much for each other.
pub(super) fn longest<'r>(of: &'r ReportInput) -> Option<Value<'r>> {
    let waiting = of.summary.message_waiting.as_ref()?;
    let waiting_s = waiting.late_senders_s + waiting.late_receivers_s;
    let pair = waiting.pairs.first().filter(|_| super::is_much(of.summary, waiting_s))?;
    let who = line!["rank ", Value::Rank(pair.rank), " waited ", waited(pair)];
    let whom = line![" for rank ", Value::Rank(pair.late_rank), " to ", verb(pair)];
    let [waits, late] = [&pair.waits, &pair.late_call].map(|call| in_words(of, call));
    let part = match pair.share_there {
        part if part >= NEARLY_ALL => "".into(),
        part => line![" (", share(part), ")"],
    };
    Some(line![who, whom, ", ", how_much_in(pair.share_there), " ", waits, " for ", late, part])
}

pub(super) fn totals(waiting: &MessageWaitingSummary) -> Value<'_> {
    line![of_both_sides(waiting), ", all ranks together"]
}

/// How long receivers and senders waited.
pub(super) fn of_both_sides(waiting: &MessageWaitingSummary) -> Value<'_> {
    let senders = seconds(waiting.late_senders_s).estimated(waiting.late_senders_error_s);
    let receivers = seconds(waiting.late_receivers_s).estimated(waiting.late_receivers_error_s);
    let of_receivers = line!["receivers waited ", senders, " for late senders"];
    line![of_receivers, ", senders ", receivers, " for late receivers"]
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
        let why = " messages are compared: not those of persistent operations, on communicators that gyan cannot \
                   name, or received from any rank or with any tag";
        notes.push(line![paired, " of ", messages, why]);
    }
    if !pairs.is_empty() {
        notes.push(
            "WAITING for a rank to send is the time from when the receiver begins to wait until the sender begins \
             to send; for a rank to receive, until the receive is posted"
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
            verb(pair),
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

/// What the late rank was to do.
fn verb(pair: &PairWaiting) -> &'static str {
    match pair.late {
        MessageDirection::Sent => "send",
        MessageDirection::Received => "receive",
    }
}

/// `MPI_Recv at halo.c:31`, or the function only.
fn in_words(of: &ReportInput, call: &MessagePlace) -> String {
    match of.message_place(call) {
        Some(place) => format!("{} at {place}", call.function),
        None => call.function.clone(),
    }
}

columns! { (of, pair) in (&ReportInput<'_>, &PairWaiting);
    // The rank that waited, and the one that was late.
    required(rank: Integer) => Value::Rank(pair.rank),
    required(late_rank: Integer) => Value::Rank(pair.late_rank),
    // What the late rank did with the messages.
    required(late: Text) => word(pair.late)?,
    required(waiting_s: Double) => pair.waiting_s,
    column(waiting_error_s: Double) => pair.waiting_error_s,
    required(messages: Integer) => pair.messages,
    // How many of them were timed on both ranks.
    required(compared: Integer) => pair.compared,
    required(waits_function: Text) => &pair.waits.function,
    column(waits_place: Text) => of.message_place(&pair.waits),
    required(late_function: Text) => &pair.late_call.function,
    column(late_place: Text) => of.message_place(&pair.late_call),
    // The part of the waiting that is there.
    required(share_there: Double) => pair.share_there,
    // Seconds of the waiting while the message was there that was received next.
    required(wrong_order_s: Double) => pair.wrong_order_s,
}
