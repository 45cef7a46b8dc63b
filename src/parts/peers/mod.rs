//! Who sends how much to whom.

mod matrix;

use std::cmp::Reverse;

use gyan_results::{DistanceTraffic, Summary, TrafficKind, TrafficSummary, Unit};

use crate::document::data::columns;
use crate::document::limits::{first_rows, more_rows};
use crate::document::page::PageBlock;
use crate::document::page::pictures::{Chart, Picture};
use crate::document::value::{InUnit, bytes, integer, line, row, share};
use crate::document::{
    Data, Document, Presentation, Section, Value, View, column, numbers, plural, texts,
};
use crate::error::Error;
use crate::parts::matrix::by_member;
use crate::parts::{Part, PartOption, ReportInput, SummaryTable, headings};
use matrix::{by_host, by_rank, hosts as hosts_of};

/// Who sends to whom.
pub(super) const PEERS: Part = Part {
    option: Some(PartOption::new(
        "peers",
        "Who sends how much to whom: the pairs of ranks with the most bytes; with --all each \
         pair",
        show,
    )),
    table: Some(SummaryTable::new::<(&str, u32, Option<u32>, u64, u64)>(
        "summary_peers",
        "pair of ranks",
        |of| Some(rows(of.summary)),
    )),
    block: Some(block),
};

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let summary = of.summary;
    if summary.peers.is_empty() {
        return Err(of.lacks(
            "nothing is known of peers",
            "no message was sent from rank to rank, or GYAN_PEERS was off",
        ));
    }
    let view = view(summary, of.all);
    Ok(Presentation { view, rows: rows(summary), document: Document::new(&summary.peers) })
}

/// How many distances fit into a sentence.
const DISTANCES_AT_MOST: usize = 4;
/// Most pairs of ranks in the table of a page.
const PAIRS_AT_MOST: usize = 256;

fn view(summary: &Summary, all: bool) -> View<'_> {
    let sections = summary.peers.iter().flat_map(|traffic| {
        let hosts = (!traffic.by_host.is_empty()).then(|| between_hosts(traffic, all));
        std::iter::once(pairs(traffic, all)).chain(hosts)
    });
    View {
        title: headings::title(summary),
        subtitle: vec![headings::library_and_job(summary)],
        sections: sections.collect(),
    }
}

/// A column heading, and the noun for one of them.
fn names(kind: TrafficKind) -> (&'static str, &'static str) {
    match kind {
        TrafficKind::Messages => ("MESSAGES", "message"),
        TrafficKind::Accesses => ("ACCESSES", "access"),
    }
}

fn amount(number: u64) -> Value<'static> {
    bytes(number as f64).into()
}

fn part(of: u64, all: u64) -> Value<'static> {
    share(of as f64 / all.max(1) as f64).into()
}

/// The pairs with the most bytes; all pairs if asked for, unless the job is too large.
fn pairs(traffic: &TrafficSummary, all: bool) -> Section<'_> {
    let TrafficSummary { kind, number, bytes: total, ranks, .. } = traffic;
    let mut pairs: Vec<_> = traffic.pairs().collect();
    pairs.sort_by_key(|&(from, to, number, bytes)| (Reverse((bytes, number)), from, to));
    let (pairs, cut_off) = first_rows(pairs, all);
    let cells = |&(from, to, number, bytes): &(u32, Option<u32>, u64, u64)| {
        let to: Value = to.map_or("others".into(), Value::Rank);
        let mean = Unit::Bytes.double(bytes as f64 / number.max(1) as f64);
        row![Value::Rank(from), to, number, amount(bytes), part(bytes, *total), mean]
    };
    let (heading, one) = names(*kind);
    let many = match (*kind, *number) {
        (TrafficKind::Accesses, 2..) => "es",
        (_, number) => plural(number),
    };
    let mut notes = more_rows(cut_off);
    if traffic.matrix.is_empty() {
        notes.push("the 64 heaviest pairs are kept, of a job of more than 1,024 ranks and in a page of too many".into());
    }
    let fewest = ranks.iter().map(|rank| rank.peers).min().unwrap_or(0);
    let most = ranks.iter().map(|rank| rank.peers).max().unwrap_or(0);
    let range = if fewest == most { line![most] } else { line![fewest, " to ", most] };
    notes.push(line!["each rank that sends has ", range, " peer", plural(most)]);
    notes.extend(distances(&traffic.by_distance, *total));
    let senders = ranks.len();
    let mut columns = vec![
        column("FROM", crate::document::Kind::Integer),
        column("TO", crate::document::Kind::Number),
    ];
    columns.extend(numbers([heading, "BYTES", "SHARE", "MEAN"]));
    let what = match kind {
        TrafficKind::Messages => "Messages by peer: ",
        TrafficKind::Accesses => "Accesses to memory by peer (one-sided): ",
    };
    let by = line![senders, " rank", plural(senders as u64)];
    Section {
        title: line![what, integer(*number), " ", one, many, ", ", amount(*total), ", from ", by],
        columns,
        rows: pairs.iter().map(cells).collect(),
        notes,
    }
}

/// The distances that most data travels, in one sentence.
fn distances(by_distance: &[DistanceTraffic], total: u64) -> Option<Value<'_>> {
    let mut parts: Vec<Value> = Vec::new();
    for of in by_distance.iter().take(DISTANCES_AT_MOST) {
        let distance = of.distance?;
        let before = if parts.is_empty() { "by distance in rank: " } else { ", " };
        parts.push(line![before, integer(distance), " ", part(of.bytes, total)]);
    }
    (!parts.is_empty()).then_some(Value::Line(parts))
}

fn between_hosts(traffic: &TrafficSummary, all: bool) -> Section<'_> {
    let mut pairs: Vec<_> = traffic.by_host.iter().collect();
    pairs.sort_by_key(|pair| (Reverse(pair.bytes), &pair.from, &pair.to));
    let (pairs, cut_off) = first_rows(pairs, all);
    let (heading, _) = names(traffic.kind);
    let within = traffic.by_host.iter().filter(|pair| pair.to.as_ref() == Some(&pair.from));
    let within: u64 = within.map(|pair| pair.bytes).sum();
    let mut columns = texts(["FROM HOST", "TO HOST"]);
    columns.extend(numbers([heading, "BYTES", "SHARE"]));
    let rows = pairs.iter().map(|pair| {
        let to: Value = pair.to.as_ref().map_or("others".into(), Value::from);
        row![&pair.from, to, pair.number, amount(pair.bytes), part(pair.bytes, traffic.bytes)]
    });
    Section {
        title: line!["By host: ", part(within, traffic.bytes), " of the bytes stay on their host"],
        columns,
        rows: rows.collect(),
        notes: more_rows(cut_off),
    }
}

fn rows(summary: &Summary) -> Data<'_> {
    Data::new(summary.peers.iter().flat_map(|traffic| {
        let kind = match traffic.kind {
            TrafficKind::Messages => "messages",
            TrafficKind::Accesses => "accesses",
        };
        traffic.pairs().map(move |(from, to, number, bytes)| (kind, from, to, number, bytes))
    }))
}

columns! { (kind, from, to, number, bytes) in (&str, u32, Option<u32>, u64, u64);
    required(kind: Text) => *kind,
    required(from: Integer) => Value::Rank(*from),
    // Nothing for all others.
    column(to: Integer) => to.map(Value::Rank),
    required(number: Integer) => *number,
    required(bytes: Integer) => *bytes,
}

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let summary = of.summary;
    if summary.peers.is_empty() {
        return Err(
            "who sends to whom: no message was sent from rank to rank, or GYAN_PEERS was off"
                .into(),
        );
    }
    let mut block = PageBlock::new("peers", "Who sends to whom");
    for traffic in &summary.peers {
        let (bytes, number) = match traffic.kind {
            TrafficKind::Messages => {
                ("Who sends how many bytes to whom?", "Who sends how many messages?")
            }
            TrafficKind::Accesses => {
                ("Who puts and gets how many bytes?", "Who puts and gets how often?")
            }
        };
        let (size, of_ranks) = (summary.ranks.expected as usize, !traffic.matrix.is_empty());
        let by = if of_ranks {
            by_member(size, "rank")
        } else {
            by_member(hosts_of(traffic).len(), "host")
        };
        for (unit, question, total) in
            [(Unit::Bytes, bytes, traffic.bytes), (Unit::Count, number, traffic.number)]
        {
            let matrix =
                if of_ranks { by_rank(traffic, unit, size) } else { by_host(traffic, unit) };
            let total = Unit::double(unit, total as f64);
            let says = line![total, " in all, ", by.clone()];
            let chart = |matrix| Chart::new(question, says, Picture::Matrix(matrix));
            block.charts.extend(matrix.map(chart));
        }
    }
    let pairs = summary.peers.iter().map(|traffic| traffic.pairs().take(PAIRS_AT_MOST + 1).count());
    let all = pairs.max().unwrap_or(0) <= PAIRS_AT_MOST;
    Ok(block.of_view(false, view(summary, all)))
}
