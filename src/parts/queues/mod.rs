//! The queues of a run: the same named numbers, each from the best source available, the peers with the longest
//! queues, events, and the call sites of watched receives with their stacks.

mod rows;

use std::cmp::Reverse;

use gyan_results::{
    EventSummary, Fidelity, MessageSource, MessagesSummary, Metric, MetricSummary, PairSummary,
    Quantity, QueueRow, QueueSource, Summary, Traffic, Unit,
};

use crate::document::limits::{first_rows, more_rows};
use crate::document::page::PageBlock;
use crate::document::value::{InUnit, line, row, seconds};
use crate::document::{Document, Presentation, Section, Value, View, numbers, texts};
use crate::error::Error;
use crate::parts::headings::{library_and_job, title};
use crate::parts::{Part, PartOption, ReportInput, SummaryTable, watch};
use rows::{Queues, rows};

/// Queues of messages.
pub(super) const QUEUES: Part = Part {
    option: Some(PartOption::new(
        "queues",
        "The queues of messages: how long they get, how long messages wait in them, who is \
         late, and where receives were called while a queue was long",
        show,
    )),
    table: Some(SummaryTable::new::<rows::QueueNumberRow>(
        "summary_queues",
        "measure of a queue",
        |of| Some(rows(Queues::new(of))),
    )),
    block: Some(block),
};

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let queues = Queues::new(of);
    if queues.is_empty() {
        let more = what_tells(&of.summary.mpi.library).map(|more| format!(" ({more})"));
        let remedy = format!("run with: gyan run --watch umq --events{}", more.unwrap_or_default());
        return Err(of.lacks("nothing is known of queues", &remedy));
    }
    let view = view(of, of.all);
    Ok(Presentation { view, rows: rows(queues), document: Document::new(queues) })
}

fn view<'r>(of: &'r ReportInput, all: bool) -> View<'r> {
    let (summary, metrics, (watched, remarks)) = (of.summary, of.queues(), of.watched());
    let mut sections = Vec::new();
    if !metrics.is_empty() {
        sections.push(portable(summary, metrics, all));
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
    View { title: title(summary), subtitle: vec![library_and_job(summary)], sections }
}

pub(super) const EVENTS: &str = "MPI_T events";

pub(crate) fn source_name(source: MessageSource) -> &'static str {
    match source {
        MessageSource::Peruse => "PERUSE",
        MessageSource::MpiTEvents => EVENTS,
    }
}

fn portable<'a>(summary: &'a Summary, rows: &'a [QueueRow], all: bool) -> Section<'a> {
    let mut shown: Vec<&QueueRow> = Vec::new();
    for row in rows {
        if all || !stands_back(row, &shown, rows) {
            shown.push(row);
        }
    }
    let cut_off = rows.len() - shown.len();
    let mut notes = more_rows(cut_off);
    let late = [Quantity::LateReceivers, Quantity::LateSenders];
    if shown.iter().any(|row| late.contains(&row.quantity)) {
        notes.push(
            "late receivers: messages that came before their receive; late senders: receives that \
             came before their message, which does no harm where the program works meanwhile"
                .into(),
        );
    }
    let kinds = [
        (Fidelity::Exact, "exact: all are in it"),
        (Fidelity::Sampled, "sampled: from readings at calls"),
    ];
    let kinds = kinds.iter().filter(|(kind, _)| shown.iter().any(|row| row.fidelity == *kind));
    let kinds: Vec<&str> = kinds.map(|(_, text)| *text).collect();
    let kinds = kinds.join(", ");
    notes.push(line!["MOST is that of one rank, MAX the largest single one; ", kinds]);
    for remark in shown.iter().filter_map(|row| row.remark) {
        if !notes.contains(&remark.into()) {
            notes.push(remark.into());
        }
    }
    if shown.iter().any(|row| row.source == QueueSource::Pvar) {
        notes.push("variables count the messages of collective operations too".into());
    }
    for messages in summary.messages.iter().filter(|messages| messages.lost > 0) {
        let (source, lost) = (source_name(messages.source), messages.lost);
        let why = " requests and messages, which were too many at a time";
        notes.push(line![source, " did not follow ", lost, why]);
    }
    notes.extend(summary.coverage.events.iter().map(Value::from));
    let mut columns = texts(["WHAT"]);
    columns.extend(numbers(["NUMBER", "TOTAL", "MOST (RANK)", "MEAN", "MAX (RANK)"]));
    columns.extend(texts(["FIDELITY", "SOURCE"]));
    Section {
        title: "Queues of messages".into(),
        columns,
        rows: shown.into_iter().map(cells).collect(),
        notes,
    }
}

/// Rows of less interest than another: collective operations next to the program's own messages, and
/// communicators after the one with the longest queue, which comes first.
fn stands_back(row: &QueueRow, before: &[&QueueRow], rows: &[QueueRow]) -> bool {
    let same = |other: &QueueRow| {
        (other.quantity, other.source, &other.name) == (row.quantity, row.source, &row.name)
    };
    let of_program = |other: &QueueRow| same(other) && other.traffic == Some(Traffic::Program);
    (row.traffic == Some(Traffic::Collectives) && rows.iter().any(of_program))
        || (row.object.is_some() && before.iter().any(|other| same(other)))
}

fn cells(row: &QueueRow) -> Vec<Value<'_>> {
    let amount = |unit: Unit| move |value: f64| unit.double(value).known(row.fidelity);
    let number = row.number.map(amount(Unit::Count));
    // Without a total, the number itself has the maximum.
    let most = amount(if row.total.is_some() { row.unit } else { Unit::Count });
    let collectives = if row.traffic == Some(Traffic::Collectives) { ", collectives" } else { "" };
    row![
        line![row.quantity.words(), collectives],
        match row.of {
            Some(of) => line![number, " of ", of],
            None => number.into(),
        },
        row.total.map(amount(row.unit)),
        row.most.map(|highest| most(highest.value).on(highest.rank)),
        row.mean.map(amount(row.unit)),
        row.max.map(|max| amount(row.unit)(max.value).on(max.rank)),
        row.fidelity.words(),
        source(row),
    ]
}

fn source(row: &QueueRow) -> Value<'_> {
    let name = row.name.as_str();
    match row.source {
        QueueSource::Peruse => line!["PERUSE ", name],
        QueueSource::MpiTEvents => line![EVENTS, " ", name],
        QueueSource::Watch => line![name, " at every receive"],
        QueueSource::Pvar => match &row.object {
            Some(object) => line![name, ", ", object],
            None => name.into(),
        },
    }
}

/// What tells of queues, by the name of the library.
fn what_tells(library: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 3] = [
        (
            "Open MPI",
            "Open MPI's pml ob1 has their lengths, and one built with configure's --enable-peruse tells of every message",
        ),
        ("Intel", "Intel MPI tells nothing of its queues; another MPI may"),
        (
            "MPICH",
            "an MPICH built with configure's --enable-mpit-pvars=recvq has their lengths, and one with --enable-mpit-events \
             tells of every message",
        ),
    ];
    let known = KNOWN.iter().find(|(name, _)| library.contains(name));
    known.map(|(_, what)| *what)
}

/// The times of requests, which only callbacks provide: those that are not in the first table.
fn requests(messages: &MessagesSummary, all: bool) -> Option<Section<'_>> {
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
        let unit = if row.metric.is_time() { Unit::Seconds } else { Unit::Count };
        let collectives = if row.traffic == Traffic::Collectives { ", collectives" } else { "" };
        let max = unit.double(row.max.max.as_f64()).on(row.max.max_rank);
        let total = row.metric.is_time().then(|| unit.amount(row.sum.sum));
        row![line![row.metric.name(), collectives], row.n.sum, total, unit.double(row.mean), max]
    };
    let rows: Vec<Vec<Value>> = shown.map(cells).collect();
    let mut columns = texts(["METRIC"]);
    columns.extend(numbers(["NUMBER", "TOTAL", "MEAN", "MAX (RANK)"]));
    (!rows.is_empty()).then(|| Section {
        title: line!["Requests as ", source_name(messages.source), " told of them"],
        columns,
        rows,
        notes: Vec::new(),
    })
}

/// The pairs of ranks between which the queues were longest.
fn peers(messages: &MessagesSummary, all: bool) -> Option<Section<'_>> {
    let mut pairs: Vec<&PairSummary> = messages.pairs.iter().collect();
    pairs.sort_by_key(|pair| {
        let queues = &pair.queues;
        Reverse((queues.unexpected_max, queues.unexpected, queues.posted_max))
    });
    let (pairs, cut_off) = first_rows(pairs, all);
    let cells = |pair: &&PairSummary| {
        let queues = &pair.queues;
        row![
            Value::Rank(pair.rank),
            queues.peer.map_or("any".into(), Value::Rank),
            queues.unexpected,
            queues.unexpected_max,
            queues.unexpected_mean,
            seconds(queues.unexpected_time_s),
            seconds(queues.unexpected_time_max_s),
            queues.posted,
            queues.posted_max,
            queues.posted_mean,
        ]
    };
    let mut notes = more_rows(cut_off);
    let kept = messages.pairs.len() as u64;
    if all && messages.pairs_seen > kept {
        let of = " pairs of ranks with the most unexpected messages of ";
        notes.push(line!["the ", kept, of, messages.pairs_seen]);
    }
    if messages.without_peer > 0 {
        let of = " more messages and receives, of too many peers to keep apart";
        notes.push(line![messages.without_peer, of]);
    }
    notes.push(
        "of the program's messages from one rank to another: UNEXPECTED came before their receive, \
         POSTED are receives that came before their message; LONGEST and MEAN are lengths of the queue"
            .into(),
    );
    let mut columns = numbers(["ON RANK", "FROM", "UNEXPECTED", "LONGEST", "MEAN", "WAITED"]);
    columns.extend(numbers(["LONGEST WAIT", "POSTED", "LONGEST", "MEAN"]));
    (!pairs.is_empty()).then(|| Section {
        title: line!["Peers with the longest queues (", source_name(messages.source), ")"],
        columns,
        rows: pairs.iter().map(cells).collect(),
        notes,
    })
}

fn events<'a>(summary: &'a Summary, all: bool) -> Section<'a> {
    let mut events: Vec<&EventSummary> = summary.events.iter().collect();
    events.sort_by(|one, other| other.n.sum.compare(one.n.sum));
    let (events, cut_off) = first_rows(events, all);
    let run_s = summary.job.known_s();
    let cells = |event: &&'a EventSummary| {
        let rate = (run_s > 0.0).then(|| Unit::PerSecond.double(event.n.sum.as_f64() / run_s));
        row![
            &event.name,
            &event.event_source,
            event.object.as_ref(),
            event.n.sum,
            Unit::Count.extremes(&event.n)[1],
            event.dropped,
            rate,
            event.gap_max_s.map(seconds),
        ]
    };
    let mut notes = more_rows(cut_off);
    if summary.events.iter().any(|event| event.dropped > 0) {
        notes.push(
            "DROPPED events were not delivered by the library: the other numbers do not include \
             them"
                .into(),
        );
    }
    let mut columns = texts(["EVENT", "SOURCE", "OBJECT"]);
    columns.extend(numbers(["NUMBER", "MOST (RANK)", "DROPPED", "RATE", "LONGEST GAP"]));
    Section {
        title: "Events of MPI_T".into(),
        columns,
        rows: events.iter().map(cells).collect(),
        notes,
    }
}

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    if Queues::new(of).is_empty() {
        return Err(
            "queues: the library tells nothing of them; run with gyan run --watch umq --events"
                .into(),
        );
    }
    Ok(PageBlock::new("queues", "Queues of messages").of_view(true, view(of, false)))
}
