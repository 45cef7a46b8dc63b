//! Who sends how much to whom.

pub(crate) mod matrix;
pub(crate) mod rows;

use std::cmp::Reverse;

use gyan_results::{DistanceTraffic, Summary, TrafficKind, TrafficSummary};

use crate::document::limits::{first_rows, more_rows};
use crate::document::value::{Unit, Value, bytes, integer, line, row, share};
use crate::document::{Section, View, column, numbers, plural, texts};
use crate::parts::headings;

/// How many distances fit into a sentence.
const DISTANCES_AT_MOST: usize = 4;

pub(crate) fn peers(summary: &Summary, all: bool) -> View<'_> {
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
