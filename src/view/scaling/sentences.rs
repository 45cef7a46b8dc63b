//! What there is to say about how a program scales, the most important first.

use gyan_results::{Fit, Growth, ScaleKind, ScaleRow, Scaling};

use super::super::value::{Amount, Unit, Value, line, seconds, share};
use super::{amount, number, rounded, term, unit_of_size};

/// Sentences of each kind.
const GROWING_AT_MOST: usize = 2;
const BENDS_AT_MOST: usize = 2;
/// A maximum of so many averages is worth a sentence.
const MUCH: f64 = 3.0;
/// A share of the time of less is not.
const SHARE_AT_LEAST: f64 = 0.01;
/// A growth by less until the target is not.
const GROWTH_AT_LEAST: f64 = 1.5;
/// With so few sizes there are no laws.
const SIZES_OF_A_LAW: usize = 5;

pub(super) fn sentences(of: &Scaling) -> Vec<Value<'_>> {
    let mut sentences: Vec<Value> = Vec::new();
    sentences.extend(speed(of));
    sentences.extend(processors(of));
    sentences.extend(time(of));
    sentences.extend(growing(of));
    sentences.extend(bends(of));
    sentences.extend(uneven(of));
    if of.sizes.len() < SIZES_OF_A_LAW {
        let sizes = line![
            of.sizes.len(),
            " sizes tell slopes only, on logarithmic scales (1: in proportion, 0: constant)"
        ];
        sentences.push(line![sizes, "; a law takes ", SIZES_OF_A_LAW]);
    }
    sentences
}

/// How much faster the largest runs are.
fn speed(of: &Scaling) -> Option<Value<'_>> {
    let (first, last) = (of.sizes.first()?, of.sizes.last()?);
    let efficiency = share(last.efficiency?);
    let with = |size: f64| line!["with ", number(size), " ", unit_of_size(of)];
    let ends = line![
        with(last.size),
        " it takes ",
        seconds(last.run_s),
        ", with ",
        number(first.size),
        " ",
        seconds(first.run_s)
    ];
    let best = of.sizes.iter().min_by(|one, other| one.run_s.total_cmp(&other.run_s))?;
    let fastest = if best.size < last.size && !of.is_weak {
        line!["; it is fastest ", with(best.size)]
    } else {
        "".into()
    };
    let kind = if of.is_weak { "a weak efficiency of " } else { "an efficiency of " };
    Some(line![ends, ": ", kind, efficiency, fastest])
}

/// Where times say little.
fn processors(of: &Scaling) -> Option<Value<'_>> {
    let shared = of.sizes.iter().filter(|size| size.is_oversubscribed);
    let (mut count, mut first) = (0, None);
    for size in shared {
        count += 1;
        first = first.or(Some(size.size));
    }
    let all = count == of.sizes.len();
    let at = if all {
        "at each size".into()
    } else {
        line!["from ", number(first?), " ", unit_of_size(of), " on"]
    };
    (count > 0).then(|| line!["ranks share processors ", at, ": times say little there, counts do"])
}

/// The part of the time that is largest at the target, of those that are not the program's own.
fn time(of: &Scaling) -> Option<Value<'_>> {
    let last = of.sizes.last()?.size;
    let row = of
        .rows
        .iter()
        .find(|row| row.kind == ScaleKind::Time && row.target_share > Some(SHARE_AT_LEAST))?;
    let now = line![
        &row.name,
        " takes ",
        row.share.map(share),
        " of the time with ",
        number(last),
        " ",
        unit_of_size(of)
    ];
    let then = row.average.predicted.map_or("".into(), |_| {
        line![", and at ", number(of.target), " ", row.target_share.map(share), " as predicted"]
    });
    Some(line![now, then, how(row, &row.average)])
}

/// `; it grows as p`.
fn how<'a>(row: &ScaleRow, fit: &Fit) -> Value<'a> {
    match fit.growth {
        Growth::Law { exponent, logarithms, .. } => {
            let verb = if rises(row, fit) { "grows" } else { "falls" };
            let as_term = if is_saturating(fit) {
                line![verb, " to a limit"]
            } else {
                line![verb, " as ", term(exponent, logarithms)]
            };
            line!["; its seconds: it ", as_term]
        }
        Growth::Slope { slope: Some(slope) } => {
            line!["; the slope of its seconds is ", Unit::Count.double(rounded(slope))]
        }
        _ => "".into(),
    }
}

/// Whether what grows by a falling term comes to a limit.
fn is_saturating(fit: &Fit) -> bool {
    matches!(fit.growth, Growth::Law { coefficient, exponent, .. } if coefficient < 0.0 && exponent < 0.0)
}

fn rises(row: &ScaleRow, fit: &Fit) -> bool {
    let last = row.points.last().map_or(0.0, |point| point.avg);
    fit.predicted.is_some_and(|at| at.value > last)
}

/// Numbers other than times that grow most by a law.
fn growing(of: &Scaling) -> Vec<Value<'_>> {
    let grows = |row: &&ScaleRow| {
        let last = row.points.last().map_or(0.0, |point| point.avg);
        let factor = row.average.predicted.map_or(0.0, |at| at.value / last);
        matches!(row.average.growth, Growth::Law { .. })
            && row.kind != ScaleKind::Time
            && row.kind != ScaleKind::OwnCode
            && last > 0.0
            && factor >= GROWTH_AT_LEAST
    };
    let sentences = of.rows.iter().filter(grows).filter_map(|row| growth(of, row));
    sentences.take(GROWING_AT_MOST).collect()
}

fn growth<'a>(of: &'a Scaling, row: &'a ScaleRow) -> Option<Value<'a>> {
    let Growth::Law { exponent, logarithms, .. } = row.average.growth else { return None };
    let (last, at) = (row.points.last()?, row.average.predicted?);
    let law = line![subject(row), " grows as ", term(exponent, logarithms), ": "];
    let now = line![law, amount(row.unit, last.avg), " on average with ", number(last.size)];
    let between = if at.high - at.low > 1e-6 * at.value {
        line![" (", amount(row.unit, at.low), " to ", amount(row.unit, at.high), ")"]
    } else {
        "".into()
    };
    let then = line![amount(row.unit, at.value), between];
    Some(line![now, ", ", then, " predicted at ", number(of.target)])
}

/// What a row is of, as the subject of a sentence.
fn subject(row: &ScaleRow) -> Value<'_> {
    match row.kind {
        ScaleKind::Calls => line!["the number of calls of ", &row.name],
        ScaleKind::Bytes => line!["the bytes of ", &row.name],
        ScaleKind::Peers => "the number of ranks that a rank sends to".into(),
        _ => (&row.name).into(),
    }
}

/// `posted_recvq_length grows as p until 16, then falls (16 processes a node)`.
fn bends(of: &Scaling) -> Vec<Value<'_>> {
    of.rows.iter().filter_map(|row| bend(of, row)).take(BENDS_AT_MOST).collect()
}

fn bend<'a>(of: &'a Scaling, row: &'a ScaleRow) -> Option<Value<'a>> {
    let Growth::Bend { until, before, rises, stays, .. } = row.average.growth else { return None };
    if matches!(row.kind, ScaleKind::InMpi | ScaleKind::OwnCode) {
        return None;
    }
    let verb = if rises { "grows" } else { "falls" };
    let slope = before.map(|slope| rounded(slope.abs()));
    let as_power = slope.map_or("".into(), |slope| line![" as p^", Unit::Count.double(slope)]);
    let then = match (rises, stays) {
        (_, true) => "stays",
        (true, false) => "falls",
        (false, false) => "grows",
    };
    let node = of.node_boundary.filter(|at| at.total_cmp(&until).is_eq());
    let node = node.map_or("".into(), |at| line![" (", each_host(of, at), ")"]);
    let turn = line![" until ", number(until), ", then ", then, node];
    Some(line![subject(row), " ", verb, as_power, turn])
}

/// `16 processes a node`.
fn each_host<'a>(of: &Scaling, at: f64) -> Value<'a> {
    let size = of.sizes.iter().find(|size| size.size.total_cmp(&at).is_eq());
    let each = size.map_or(0, |size| u64::from(size.ranks) / size.hosts.max(1) as u64);
    line![each, " processes a node"]
}

/// The number with the most on one rank, as the paper's second case: the maximum leaves the average.
fn uneven(of: &Scaling) -> Option<Value<'_>> {
    let ratio = |row: &ScaleRow| {
        let last = row.points.last().filter(|last| {
            last.avg > 0.0 && last.max >= 1.0 || row.unit == gyan_results::ScaleUnit::Seconds
        })?;
        Some(last.max / last.avg)
    };
    let is_growing = |row: &&ScaleRow| {
        let first =
            row.points.first().filter(|first| first.avg > 0.0).map(|first| first.max / first.avg);
        row.imbalance.is_some()
            && ratio(row) >= Some(MUCH)
            && ratio(row) > first.map(|first| 1.5 * first)
    };
    let row = of.rows.iter().filter(is_growing).max_by(|one, other| {
        let of = |row: &ScaleRow| ratio(row).unwrap_or(0.0);
        of(one).total_cmp(&of(other))
    })?;
    let (last, ratio) = (row.points.last()?, ratio(row)?);
    let times: Amount = Unit::Count.double((ratio * 10.0).round() / 10.0);
    let max = line![
        subject(row),
        ": the largest of a rank is ",
        times,
        " times the average with ",
        number(last.size)
    ];
    let law = match row.imbalance.as_ref()?.growth {
        Growth::Law { exponent, logarithms, coefficient, .. }
            if coefficient > 0.0 && exponent >= 0.0 =>
        {
            line![", and that grows as ", term(exponent, logarithms)]
        }
        _ => line![", and more than with ", number(row.points.first()?.size)],
    };
    Some(line![max, law])
}
