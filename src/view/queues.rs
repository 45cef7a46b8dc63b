//! The queues of a run: the same named numbers from the best source that it had, the peers with the
//! longest queues, events, and the call sites of watched receives with their stacks.

use std::cmp::Reverse;

use gyan_results::{
    EventSummary, Fidelity, MessageSource, MessagesSummary, Metric, MetricSummary, Number,
    PairSummary, Quantity, QueueRow, QueueSource, QueueUnit, Summary, Traffic,
};

use super::numbers::{bytes, cut, double_text, grouped, integer_text, seconds};
use super::report::{self, first_rows, more_rows};
use super::{Align, Column, Section, View, watch};
use crate::symbols::stacks::Watched;

/// A list of functions is cut there.
const SOURCE_AT_MOST: usize = 48;

const NONE: &str = "-";

pub(crate) fn queues(
    summary: &Summary,
    rows: &[QueueRow],
    (watched, remarks): (&[Watched], &[String]),
    all: bool,
) -> View {
    let mut sections = Vec::new();
    if !rows.is_empty() {
        sections.push(portable(summary, rows, all));
    }
    for messages in &summary.messages {
        sections.extend(requests(messages, all));
        sections.extend(peers(messages, all));
    }
    if !summary.events.is_empty() {
        sections.push(events(summary, all));
    }
    sections.extend(watch::sites(watched, remarks, all));
    sections.extend(watch::stacks(watched, all));
    let mut view = View {
        title: report::title(summary),
        subtitle: vec![report::library_and_job(summary)],
        sections,
    };
    view.make_printable();
    view
}

fn left(title: &'static str) -> Column {
    Column { title, align: Align::Left }
}

fn right(title: &'static str) -> Column {
    Column { title, align: Align::Right }
}

pub(super) const EVENTS: &str = "MPI_T events";

pub(super) fn source_name(source: MessageSource) -> &'static str {
    match source {
        MessageSource::Peruse => "PERUSE",
        MessageSource::MpiTEvents => EVENTS,
    }
}

fn portable(summary: &Summary, rows: &[QueueRow], all: bool) -> Section {
    let mut shown: Vec<&QueueRow> = Vec::new();
    for row in rows {
        if all || !stands_back(row, &shown, rows) {
            shown.push(row);
        }
    }
    let cut_off = rows.len() - shown.len();
    let mut notes = more_rows(cut_off);
    let tells = |row: &QueueRow| row.source != QueueSource::Calls;
    let late = [Quantity::LateReceivers, Quantity::LateSenders];
    if shown.iter().any(|row| tells(row) && late.contains(&row.quantity)) {
        notes.push(
            "late receivers: messages that came before their receive; late senders: receives that came \
             before their message, which is no harm where the program works meanwhile"
                .into(),
        );
    }
    let kinds = [
        (Fidelity::Exact, "exact: all are in it"),
        (Fidelity::Sampled, "sampled: from readings at calls"),
        (Fidelity::Estimated, "estimated: from the times of calls"),
    ];
    let kinds = kinds.iter().filter(|(kind, _)| shown.iter().any(|row| row.fidelity == *kind));
    let kinds: Vec<&str> = kinds.map(|(_, text)| *text).collect();
    notes.push(format!(
        "MOST is that of one rank, MAX the largest single one; {}",
        kinds.join(", ")
    ));
    for remark in shown.iter().filter_map(|row| row.remark) {
        if !notes.iter().any(|note| note == remark) {
            notes.push(remark.to_owned());
        }
    }
    if shown.iter().any(|row| row.source == QueueSource::Pvar) {
        notes.push("variables count the messages of collective operations too".to_owned());
    }
    for messages in summary.messages.iter().filter(|messages| messages.lost > 0) {
        notes.push(format!(
            "{} did not follow {} requests and messages, which were too many at a time",
            source_name(messages.source),
            grouped(messages.lost.into())
        ));
    }
    notes.extend(summary.coverage.events.iter().cloned());
    if rows.iter().all(|row| row.source == QueueSource::Calls) {
        notes.extend(advice(&summary.mpi.library).map(|advice| format!("to see more: {advice}")));
    }
    Section {
        title: "Queues of messages".into(),
        columns: vec![
            left("WHAT"),
            right("NUMBER"),
            right("TOTAL"),
            right("MOST (RANK)"),
            right("MEAN"),
            right("MAX (RANK)"),
            left("FIDELITY"),
            left("SOURCE"),
        ],
        rows: shown.into_iter().map(cells).collect(),
        notes,
    }
}

/// What is of less interest than another row: collective operations beside the program's own messages,
/// and communicators beside the one with the longest queue, which is before them.
fn stands_back(row: &QueueRow, before: &[&QueueRow], rows: &[QueueRow]) -> bool {
    let same = |other: &QueueRow| {
        (other.quantity, other.source, &other.name) == (row.quantity, row.source, &row.name)
    };
    let of_program = |other: &QueueRow| same(other) && other.traffic == Some(Traffic::Program);
    (row.traffic == Some(Traffic::Collectives) && rows.iter().any(of_program))
        || (row.object.is_some() && before.iter().any(|other| same(other)))
}

fn cells(row: &QueueRow) -> Vec<String> {
    let amount = |value: f64| match row.unit {
        QueueUnit::Seconds => seconds(value),
        QueueUnit::Bytes => bytes(value),
        QueueUnit::Messages | QueueUnit::Receives => double_text(value),
    };
    let number = |value: Option<f64>| value.map_or(NONE.to_owned(), double_text);
    let text = |value: Option<f64>| value.map_or(NONE.to_owned(), amount);
    let most = row.most.map(|most| {
        // Without a total it is the number that is most.
        let value = if row.total.is_some() { amount(most.value) } else { double_text(most.value) };
        format!("{value} ({})", most.rank)
    });
    let max = row.max.map(|max| format!("{} ({})", amount(max.value), max.rank));
    let collectives = if row.traffic == Some(Traffic::Collectives) { ", collectives" } else { "" };
    vec![
        format!("{}{collectives}", what(row)),
        match row.of {
            Some(of) => format!("{} of {}", number(row.number), double_text(of)),
            None => number(row.number),
        },
        text(row.total),
        most.unwrap_or(NONE.into()),
        text(row.mean),
        max.unwrap_or(NONE.into()),
        fidelity_name(row.fidelity).to_owned(),
        source(row),
    ]
}

fn what(row: &QueueRow) -> &'static str {
    match row.quantity {
        Quantity::UnexpectedLength => "unexpected queue, messages",
        Quantity::UnexpectedBytes => "unexpected queue, bytes",
        Quantity::PostedLength => "posted queue, receives",
        Quantity::UnexpectedTime => "time in unexpected queue",
        Quantity::PostedMatchAttempts => "match attempts, posted queue",
        Quantity::UnexpectedMatchAttempts => "match attempts, unexpected queue",
        Quantity::PostedSearchTime => "time searching, posted queue",
        Quantity::UnexpectedSearchTime => "time searching, unexpected queue",
        Quantity::LateReceivers => "late receivers",
        Quantity::LateSenders => "late senders",
    }
}

fn fidelity_name(fidelity: Fidelity) -> &'static str {
    match fidelity {
        Fidelity::Exact => "exact",
        Fidelity::Sampled => "sampled",
        Fidelity::Estimated => "estimated",
    }
}

fn source(row: &QueueRow) -> String {
    let object = row.object.as_ref().map_or(String::new(), |object| format!(", {object}"));
    match row.source {
        QueueSource::Peruse => format!("PERUSE {}", row.name),
        QueueSource::MpiTEvents => format!("{EVENTS} {}", row.name),
        QueueSource::Watch => format!("{} at every receive", row.name),
        QueueSource::Pvar => format!("{}{object}", row.name),
        QueueSource::Calls => cut(&format!("times of {}", row.name), SOURCE_AT_MOST),
    }
}

/// What would tell more than the times of calls, by the name that the library gives itself.
fn advice(library: &str) -> Option<&'static str> {
    const ADVICE: [(&str, &str); 3] = [
        (
            "Open MPI",
            "run with Open MPI's pml ob1 (--mca pml ob1), which has the lengths of its queues; an Open \
             MPI built with configure's --enable-peruse tells of every message: gyan run --events",
        ),
        ("Intel", "Intel MPI tells nothing more of its queues; another MPI may"),
        (
            "MPICH",
            "an MPICH built with configure's --enable-mpit-pvars=recvq has the lengths of its queues; \
             one with --enable-mpit-events tells of every message: gyan run --events",
        ),
    ];
    let known = ADVICE.iter().find(|(name, _)| library.contains(name));
    known.map(|(_, advice)| *advice)
}

/// The times of requests, which only callbacks tell: those that are not in the first table.
fn requests(messages: &MessagesSummary, all: bool) -> Option<Section> {
    const PORTABLE: [Metric; 6] = [
        Metric::TInUnexQ,
        Metric::NPostedQLen,
        Metric::NUnexQLen,
        Metric::TInPostedQ,
        Metric::TSearchPostedQ,
        Metric::TSearchUnexQ,
    ];
    let shown = messages
        .metrics
        .iter()
        .filter(|row| all || (row.traffic == Traffic::Program && !PORTABLE.contains(&row.metric)));
    let cells = |row: &MetricSummary| {
        let collectives = if row.traffic == Traffic::Collectives { ", collectives" } else { "" };
        let number =
            |number: f64| if row.metric.is_time() { seconds(number) } else { double_text(number) };
        let total = row.sum.sum.as_f64();
        vec![
            format!("{}{collectives}", row.metric.name()),
            integer_or_double(row.n.sum),
            if row.metric.is_time() { seconds(total) } else { NONE.into() },
            number(row.mean),
            format!("{} ({})", number(row.max.max.as_f64()), row.max.max_rank),
        ]
    };
    let rows: Vec<Vec<String>> = shown.map(cells).collect();
    (!rows.is_empty()).then(|| Section {
        title: format!("Requests as {} told of them", source_name(messages.source)),
        columns: vec![
            left("METRIC"),
            right("NUMBER"),
            right("TOTAL"),
            right("MEAN"),
            right("MAX (RANK)"),
        ],
        rows,
        notes: Vec::new(),
    })
}

fn integer_or_double(number: Number) -> String {
    match number {
        Number::Integer(integer) => integer_text(integer),
        Number::Double(double) => double_text(double),
    }
}

/// The pairs of ranks between which the queues were longest.
fn peers(messages: &MessagesSummary, all: bool) -> Option<Section> {
    let mut pairs: Vec<&PairSummary> = messages.pairs.iter().collect();
    pairs.sort_by_key(|pair| {
        let queues = &pair.queues;
        Reverse((queues.unexpected_max, queues.unexpected, queues.posted_max))
    });
    let (pairs, cut_off) = first_rows(pairs, all);
    let cells = |pair: &&PairSummary| {
        let queues = &pair.queues;
        vec![
            pair.rank.to_string(),
            queues.peer.map_or("any".into(), |peer| peer.to_string()),
            grouped(queues.unexpected.into()),
            grouped(queues.unexpected_max.into()),
            double_text(queues.unexpected_mean),
            seconds(queues.unexpected_time_s),
            seconds(queues.unexpected_time_max_s),
            grouped(queues.posted.into()),
            grouped(queues.posted_max.into()),
            double_text(queues.posted_mean),
        ]
    };
    let mut notes = more_rows(cut_off);
    let kept = messages.pairs.len() as u64;
    if all && messages.pairs_seen > kept {
        let (kept, seen) = (grouped(kept.into()), grouped(messages.pairs_seen.into()));
        notes
            .push(format!("the {kept} pairs of ranks with the most unexpected messages of {seen}"));
    }
    if messages.without_peer > 0 {
        let without = grouped(messages.without_peer.into());
        notes
            .push(format!("{without} more messages and receives, of too many peers to keep apart"));
    }
    notes.push(
        "of the program's messages from one rank to another: UNEXPECTED came before their receive, \
         POSTED are receives that came before their message; LONGEST and MEAN are lengths of the queue"
            .into(),
    );
    (!pairs.is_empty()).then(|| Section {
        title: format!("Peers with the longest queues ({})", source_name(messages.source)),
        columns: vec![
            right("ON RANK"),
            right("FROM"),
            right("UNEXPECTED"),
            right("LONGEST"),
            right("MEAN"),
            right("WAITED"),
            right("LONGEST WAIT"),
            right("POSTED"),
            right("LONGEST"),
            right("MEAN"),
        ],
        rows: pairs.iter().map(cells).collect(),
        notes,
    })
}

fn events(summary: &Summary, all: bool) -> Section {
    let mut events: Vec<&EventSummary> = summary.events.iter().collect();
    events.sort_by(|one, other| other.n.sum.compare(one.n.sum));
    let (events, cut_off) = first_rows(events, all);
    let run_s = summary.job.elapsed_s;
    let cells = |event: &&EventSummary| {
        let rate = event.n.sum.as_f64() / run_s;
        vec![
            event.name.clone(),
            event.event_source.clone(),
            event.object.clone().unwrap_or_else(|| NONE.into()),
            integer_or_double(event.n.sum),
            format!("{} ({})", integer_or_double(event.n.max), event.n.max_rank),
            grouped(event.dropped.into()),
            if run_s > 0.0 { format!("{} /s", double_text(rate)) } else { NONE.into() },
            event.gap_max_s.map_or(NONE.into(), seconds),
        ]
    };
    let mut notes = more_rows(cut_off);
    if summary.events.iter().any(|event| event.dropped > 0) {
        notes.push(
            "DROPPED were not delivered by the library: other numbers are without them".into(),
        );
    }
    Section {
        title: "Events of MPI_T".into(),
        columns: vec![
            left("EVENT"),
            left("SOURCE"),
            left("OBJECT"),
            right("NUMBER"),
            right("MOST (RANK)"),
            right("DROPPED"),
            right("RATE"),
            right("LONGEST GAP"),
        ],
        rows: events.iter().map(cells).collect(),
        notes,
    }
}
