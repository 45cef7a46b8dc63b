//! Sentences about how a program scales, the most important first.

use gyan_results::{Fit, Growth, ScaleKind, ScalePoint, ScaleRow, Scaling, Unit};

use crate::answers::scaling::{BY_RANKS, at_size, number, rounded, term};
use crate::document::value::{Amount, InUnit, Value, line, seconds, share};

/// Most sentences of each kind.
const GROWING_AT_MOST: usize = 2;
const BENDS_AT_MOST: usize = 2;
/// A maximum of this many times the average is worth a sentence.
const MUCH: f64 = 3.0;
/// A power above this means that the number begins at next to nothing.
const STEEPEST: f64 = 3.0;
/// With fewer things it is chance.
const LEAST_COUNT: f64 = 10.0;
/// A smaller share of the time is not worth a sentence.
const SHARE_AT_LEAST: f64 = 0.01;
/// Smaller growth up to the target is not worth a sentence.
const GROWTH_AT_LEAST: f64 = 1.5;
/// Own code that scales worse than this is worth a sentence.
const GOOD: f64 = 0.9;
/// With so few sizes there are no laws.
const SIZES_OF_A_LAW: usize = 5;

pub(crate) fn sentences(of: &Scaling) -> Vec<Value<'_>> {
    let mut sentences: Vec<Value> = Vec::new();
    sentences.extend(speed(of));
    sentences.extend(processors(of));
    sentences.extend(time(of));
    sentences.extend(own_code(of));
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

/// How much faster the largest runs are, and what comes next.
fn speed(of: &Scaling) -> Option<Value<'_>> {
    let (first, last) = (of.sizes.first()?, of.sizes.last()?);
    let kind = if of.is_weak { "a weak efficiency of " } else { "an efficiency of " };
    let ends = line![
        seconds(last.run_s),
        " ",
        at_size(of, last.size),
        ", ",
        seconds(first.run_s),
        " ",
        at_size(of, first.size),
        ": ",
        kind,
        share(last.efficiency?)
    ];
    let best = of.sizes.iter().min_by(|one, other| one.run_s.total_cmp(&other.run_s))?;
    let is_past = best.size < last.size && !of.is_weak;
    let fastest = if is_past { line!["; fastest ", at_size(of, best.size)] } else { "".into() };
    let run = of.rows.iter().find(|row| row.kind == ScaleKind::RunTime);
    let next = run.and_then(|row| Some((row, row.average.predicted?)));
    let next = next.map_or("".into(), |(row, _)| {
        line!["; predicted ", at_size(of, of.target), ": ", said(row)]
    });
    Some(line![ends, fastest, next])
}

/// What a law predicts, with its interval.
fn said(row: &ScaleRow) -> Option<Value<'static>> {
    let at = row.average.predicted?;
    let between = if at.high - at.low > 1e-6 * at.value {
        line![" (", row.unit.double(at.low), " to ", row.unit.double(at.high), ")"]
    } else {
        "".into()
    };
    Some(line![row.unit.double(at.value), between])
}

/// Where times mean little.
fn processors(of: &Scaling) -> Option<Value<'_>> {
    let shared = of.sizes.iter().filter(|size| size.is_oversubscribed);
    let (mut count, mut first) = (0, None);
    for size in shared {
        count += 1;
        first = first.or(Some(size.size));
    }
    let all = count == of.sizes.len();
    let at = if all { "at each size".into() } else { line![at_size(of, first?), " and more"] };
    (count > 0).then(|| line!["ranks share processors ", at, ": times say little there, counts do"])
}

/// The largest part of the time at the target, apart from the program's own.
fn time(of: &Scaling) -> Option<Value<'_>> {
    let last = of.sizes.last()?.size;
    let row = of
        .rows
        .iter()
        .find(|row| row.kind == ScaleKind::Time && row.target_share > Some(SHARE_AT_LEAST))?;
    let now = line![&row.name, " takes ", row.share.map(share), " of the time "];
    let now = line![now, at_size(of, last)];
    let then = row.average.predicted.map_or("".into(), |_| {
        line![", ", row.target_share.map(share), " as predicted ", at_size(of, of.target)]
    });
    Some(line![now, then, how(row, &row.average)])
}

/// What makes own code scale badly up to the largest size, where processors count.
fn own_code(of: &Scaling) -> Vec<Value<'_>> {
    let (Some(first), Some(last)) = (of.sizes.first(), of.sizes.last()) else { return Vec::new() };
    let parts = last.pop.and_then(|pop| pop.computation_parts);
    let Some(parts) = parts.filter(|_| of.by == BY_RANKS) else { return Vec::new() };
    let of_whom = if of.is_weak { "own code of a rank does " } else { "own code does " };
    let causes = [
        (
            parts.instructions,
            "INSTR",
            line![of_whom, times(1.0 / parts.instructions), " times the instructions"],
            "each rank repeats work of the others: share that out, too",
        ),
        (
            parts.ipc,
            "IPC",
            line!["own code does ", share(parts.ipc), " of the instructions per cycle"],
            "ranks of a host may share its memory and caches: see whether fewer on a host are faster",
        ),
        (
            parts.frequency,
            "FREQ",
            line!["processors run at ", share(parts.frequency), " of the clock"],
            "with more busy cores a processor is slower; a limit of power may be the cause",
        ),
    ];
    let is_bad = |(part, ..): &(f64, &str, Value, &str)| *part < GOOD;
    let said = |(part, name, what, why)| {
        let compared =
            line![what, " ", at_size(of, last.size), ", compared to ", at_size(of, first.size)];
        line![compared, " (", name, " ", share(part), "): ", why]
    };
    causes.into_iter().filter(is_bad).map(said).collect()
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

/// Whether a number that grows by a falling term approaches a limit.
fn is_saturating(fit: &Fit) -> bool {
    matches!(fit.growth, Growth::Law { coefficient, exponent, .. } if coefficient < 0.0 && exponent < 0.0)
}

fn rises(row: &ScaleRow, fit: &Fit) -> bool {
    let last = row.points.last().map_or(0.0, |point| point.avg);
    fit.predicted.is_some_and(|at| at.value > last)
}

/// The numbers, other than times, that grow most by a law.
fn growing(of: &Scaling) -> Vec<Value<'_>> {
    let grows = |row: &&ScaleRow| {
        let last = row.points.last().map_or(0.0, |point| point.avg);
        let factor = row.average.predicted.map_or(0.0, |at| at.value / last);
        matches!(row.average.growth, Growth::Law { .. })
            // Times are in the table.
            && row.unit != Unit::Seconds
            && last > 0.0
            && factor >= GROWTH_AT_LEAST
    };
    let sentences = of.rows.iter().filter(grows).filter_map(|row| growth(of, row));
    sentences.take(GROWING_AT_MOST).collect()
}

fn growth<'a>(of: &'a Scaling, row: &'a ScaleRow) -> Option<Value<'a>> {
    let Growth::Law { exponent, logarithms, .. } = row.average.growth else { return None };
    let last = row.points.last()?;
    let law = line![subject(row), " grows as ", term(exponent, logarithms), ": "];
    let now = line![law, row.unit.double(last.avg), " on average ", at_size(of, last.size)];
    Some(line![now, ", ", said(row), " predicted ", at_size(of, of.target)])
}

/// The name of a row, as the subject of a sentence.
fn subject(row: &ScaleRow) -> Value<'_> {
    match row.kind {
        ScaleKind::Time => line!["the time in ", &row.name],
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
    let is_little = match row.kind {
        ScaleKind::InMpi | ScaleKind::OwnCode => true,
        ScaleKind::Time | ScaleKind::Waiting => row.share < Some(SHARE_AT_LEAST),
        _ => false,
    };
    if is_little {
        return None;
    }
    let verb = if rises { "grows" } else { "falls" };
    let slope = before.map(rounded).filter(|slope| slope.abs() <= STEEPEST);
    let as_power = slope.map_or("".into(), |slope| line![" as ", power(slope)]);
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

/// A slope as a power; one that is nearly whole is rounded.
fn power<'a>(slope: f64) -> Value<'a> {
    let whole = slope.round();
    if whole != 0.0 && (slope - whole).abs() < 0.03 {
        term(whole, 0).into()
    } else {
        line!["p^", Unit::Count.double(slope)]
    }
}

/// `16 processes a node`.
fn each_host<'a>(of: &Scaling, at: f64) -> Value<'a> {
    let size = of.sizes.iter().find(|size| size.size.total_cmp(&at).is_eq());
    let each = size.map_or(0, |size| u64::from(size.ranks) / size.hosts.max(1) as u64);
    line![each, " processes a node"]
}

/// A ratio, rounded to what can be told apart at a glance.
fn times(ratio: f64) -> Amount {
    let tenths = if ratio < 10.0 { 10.0 } else { 1.0 };
    Unit::Count.double((ratio * tenths).round() / tenths)
}

/// The number that is concentrated most on one rank, as in the paper's second case: the maximum grows away from
/// the average.
fn uneven(of: &Scaling) -> Option<Value<'_>> {
    let ratio = |point: Option<&ScalePoint>| {
        let point = point.filter(|point| point.avg > 0.0)?;
        Some(point.max / point.avg)
    };
    let first = |row: &ScaleRow| ratio(row.points.first()).unwrap_or(1.0);
    let last = |row: &ScaleRow| ratio(row.points.last()).unwrap_or(1.0);
    let is_growing = |row: &&ScaleRow| {
        // Any part of next to nothing is large, and times on shared processors are unreliable.
        let is_much = row.points.last().is_some_and(|last| last.max >= LEAST_COUNT);
        row.unit != Unit::Seconds && is_much && last(row) >= MUCH.max(1.5 * first(row))
    };
    let growing = of.rows.iter().filter(is_growing);
    let row = growing.max_by(|one, other| last(one).total_cmp(&last(other)))?;
    let at = row.points.last()?;
    let most = line![subject(row), ": ", row.unit.double(at.max), " on one rank, "];
    let most = line![most, times(last(row)), " times the average, ", at_size(of, at.size)];
    let law = match row.imbalance.as_ref()?.growth {
        Growth::Law { exponent, logarithms, coefficient, .. }
            if coefficient > 0.0 && exponent >= 0.0 =>
        {
            line!["; that grows as ", term(exponent, logarithms)]
        }
        _ => {
            line!["; ", times(first(row)), " ", at_size(of, row.points.first()?.size)]
        }
    };
    Some(line![most, law])
}
