//! The hosts of a run: how many ranks each has, and whether hosts differ, or one rank does.

use gyan_results::{
    Differing, HostDifference, HostMeasure, HostStatistic, HostSummary, Summary, Unit,
};

use crate::document::limits::{first_rows, more_rows, some_of};
use crate::document::value::{InUnit, line, row, share};
use crate::document::{Column, Kind, Section, Value, column, numbers, plural};

/// How many ranges of ranks are shown of a host.
const RANGES_AT_MOST: usize = 4;

/// Which hosts there were: usually `n1, n2 (4 ranks each)`.
pub(crate) fn hosts(summary: &Summary, all: bool) -> Option<Value<'_>> {
    let by_host = &summary.by_host;
    let first = by_host.first()?.number();
    if by_host.iter().all(|host| host.number() == first) {
        let names = some_of(by_host.iter().map(|host| &host.host), all);
        return Some(line!["hosts: ", names, " (", first, " rank", plural(first), " each)"]);
    }
    Some(line!["hosts: ", some_of(by_host.iter().map(with_ranks), all)])
}

fn with_ranks(host: &HostSummary) -> Value<'_> {
    let ranks = host.number();
    line![&host.host, " (", ranks, " rank", plural(ranks), ")"]
}

/// `rank 3`, and its host if there are several.
pub(crate) fn rank_and_host(summary: &Summary, rank: u32) -> Value<'_> {
    match summary.by_host.iter().find(|host| host.has(rank)) {
        Some(host) => line!["rank ", Value::Rank(rank), " on ", &host.host],
        None => line!["rank ", Value::Rank(rank)],
    }
}

/// ` on n2`, if all of these ranks are on only some of the hosts.
pub(crate) fn on_some<'a>(summary: &'a Summary, ranks: &[u32]) -> Option<Value<'a>> {
    let has_any = |host: &&HostSummary| ranks.iter().any(|rank| host.has(*rank));
    let hosts: Vec<&String> =
        summary.by_host.iter().filter(has_any).map(|host| &host.host).collect();
    (hosts.len() < summary.by_host.len() && !hosts.is_empty())
        .then(|| line![" on ", some_of(hosts, false)])
}

/// How hosts differ, or one rank does: a sentence each.
pub(crate) fn differences(summary: &Summary) -> impl Iterator<Item = Value<'_>> {
    summary.host_differences.iter().filter_map(|difference| sentence(summary, difference))
}

fn sentence<'a>(summary: &'a Summary, difference: &'a HostDifference) -> Option<Value<'a>> {
    let measure = difference.measure;
    let amount = |value: f64| match measure {
        HostMeasure::InMpi => share(value),
        HostMeasure::UnexpectedLength | HostMeasure::PostedLength => Unit::Count.double(value),
    };
    let of = |host| measure.of(host).map(|of: HostStatistic| (of.avg, host));
    let mut hosts: Vec<(f64, &HostSummary)> = summary.by_host.iter().filter_map(of).collect();
    hosts.sort_by(|one, other| one.0.total_cmp(&other.0));
    let on = |(value, host): (f64, &'a HostSummary)| line![amount(value), " on ", with_ranks(host)];
    let what = match measure {
        HostMeasure::InMpi => "in MPI by host: ",
        HostMeasure::UnexpectedLength => {
            "mean length of the queue of unexpected messages by host: "
        }
        HostMeasure::PostedLength => "mean length of the queue of posted receives by host: ",
    };
    match &difference.who {
        Differing::Hosts => {
            let (min, max) = (*hosts.first()?, *hosts.last()?);
            let why = ": hosts differ more than the ranks on a host do";
            Some(line![what, on(min), " to ", on(max), why])
        }
        Differing::OneHost(name) => {
            let at = hosts.iter().position(|(_, host)| host.host == *name)?;
            let odd = hosts.remove(at);
            let (min, max) = (hosts.first()?.0, hosts.last()?.0);
            let others = line![amount(min), " to ", amount(max), " on the other ", hosts.len()];
            let waited = at == 0 && measure == HostMeasure::InMpi;
            let why = if waited {
                ": the others wait for one host, not for one rank"
            } else {
                ": one host differs, not one rank"
            };
            Some(line![what, on(odd), ", ", others, why])
        }
        Differing::OneRank(rank) => {
            let all = &summary.in_mpi.as_ref()?.share;
            let is_lowest = all.min_rank == *rank;
            let value = if is_lowest { all.min } else { all.max }.as_f64();
            let ranks = (all.ranks - all.not_finite) as f64;
            let others = (all.avg * ranks - value) / (ranks - 1.0);
            let why = if is_lowest {
                ": the others wait for one rank, not for its host"
            } else {
                ": one rank differs, not its host"
            };
            let of_rank = line![amount(value), " on ", rank_and_host(summary, *rank)];
            Some(line!["in MPI: ", of_rank, ", ", amount(others), " on average on the others", why])
        }
    }
}

/// The first ranges of its ranks.
fn ranks(host: &HostSummary) -> String {
    let mut ranges: Vec<&str> = host.ranks.split(',').take(RANGES_AT_MOST + 1).collect();
    if let Some(more) = ranges.get_mut(RANGES_AT_MOST) {
        *more = "...";
    }
    ranges.join(", ")
}

/// A table with a row per host, by name, or with the hosts that the others wait for first.
pub(crate) fn table(summary: &Summary, all: bool) -> Option<Section<'_>> {
    let differ = !summary.host_differences.is_empty();
    if summary.by_host.is_empty() || !(all || differ) {
        return None;
    }
    let mut hosts: Vec<&HostSummary> = summary.by_host.iter().collect();
    if !all {
        hosts.sort_by(|one, other| in_mpi(one).total_cmp(&in_mpi(other)));
    }
    let (hosts, cut_off) = first_rows(hosts, all);
    let mut section = rows(summary, &hosts, &[]);
    section.notes = more_rows(cut_off);
    section.notes.push(means(if all { "" } else { "; those that are in MPI least first" }));
    Some(section)
}

/// The same in a limited number of rows: the hosts furthest from the median, and the others in the last row.
pub(crate) fn table_of_some(summary: &Summary, rows_at_most: usize) -> Option<Section<'_>> {
    if summary.by_host.len() <= rows_at_most {
        return table(summary, true);
    }
    let mut hosts: Vec<&HostSummary> = summary.by_host.iter().collect();
    hosts.sort_by(|one, other| in_mpi(one).total_cmp(&in_mpi(other)));
    let middle = hosts.get(hosts.len() / 2).map_or(0.0, |host| in_mpi(host));
    let distance = |host: &HostSummary| (in_mpi(host) - middle).abs();
    hosts.sort_by(|one, other| distance(other).total_cmp(&distance(one)));
    let (first, others) = hosts.split_at(rows_at_most - 1);
    let mut section = rows(summary, first, others);
    section.notes.push(means(
        "; those furthest from the one in the middle first, the others in the last row",
    ));
    Some(section)
}

fn in_mpi(host: &HostSummary) -> f64 {
    host.in_mpi.map_or(f64::INFINITY, |of| of.avg)
}

fn means(order: &'static str) -> Value<'static> {
    line![
        "the mean over the ranks of a host, and its ranks with least and most",
        order,
        "; UNEXPECTED and POSTED are mean lengths of queues"
    ]
}

/// A row for each of `hosts`, and one for all `others`.
fn rows<'a>(
    summary: &'a Summary,
    hosts: &[&'a HostSummary],
    others: &[&HostSummary],
) -> Section<'a> {
    let measures = [
        (HostMeasure::InMpi, Unit::Share, ["IN MPI", "LEAST", "MOST"]),
        (HostMeasure::UnexpectedLength, Unit::Count, ["UNEXPECTED", "LEAST", "MOST"]),
        (HostMeasure::PostedLength, Unit::Count, ["POSTED", "LEAST", "MOST"]),
    ];
    let known = measures
        .into_iter()
        .filter(|(measure, ..)| summary.by_host.iter().any(|host| measure.of(host).is_some()));
    let known: Vec<_> = known.collect();
    let mut columns: Vec<Column> = vec![column("HOST", Kind::Text), column("RANKS", Kind::Text)];
    columns.extend(known.iter().flat_map(|(.., names)| numbers(*names)));
    let cells = |names: Vec<Value<'a>>, hosts: &[&HostSummary]| {
        let mut cells = names;
        for (measure, unit, _) in &known {
            let of = together(hosts.iter().filter_map(|host| measure.of(host)));
            cells.extend((0..3).map(|at| of.map(|of| unit.double(of[at])).into()));
        }
        cells
    };
    let mut rows: Vec<Vec<Value>> =
        hosts.iter().map(|&host| cells(row![&host.host, ranks(host)], &[host])).collect();
    if !others.is_empty() {
        let number: u64 = others.iter().map(|host| host.number()).sum();
        let names = row![line![others.len(), " other hosts"], line![number, " ranks"]];
        rows.push(cells(names, others));
    }
    Section { title: "Hosts".into(), columns, rows, notes: Vec::new() }
}

/// Mean, least and most over the ranks of hosts.
fn together(hosts: impl Iterator<Item = HostStatistic>) -> Option<[f64; 3]> {
    let add = |(ranks, sum, min, max): (f64, f64, f64, f64), of: HostStatistic| {
        let of_host = of.ranks as f64;
        (ranks + of_host, sum + of_host * of.avg, min.min(of.min), max.max(of.max))
    };
    let (ranks, sum, min, max) = hosts.fold((0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY), add);
    (ranks > 0.0).then(|| [sum / ranks, min, max])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_together_have_the_mean_over_their_ranks() {
        let of = |ranks, min, avg, max| HostStatistic { ranks, min, avg, max, stddev: 0.0 };
        let both = together([of(1, 1.0, 1.0, 1.0), of(3, 2.0, 5.0, 9.0)].into_iter());
        assert_eq!(both, Some([4.0, 1.0, 9.0]));
        assert_eq!(together(std::iter::empty()), None);
    }
}
