//! The answer in a sentence: how much longer or shorter, and why.

use gyan_results::{
    Change, ChangeVerdict, Difference, NumberDifference, NumberKind, PartDifference, PartKind,
    Split,
};

use super::{LEAST_SHARE, came_or_went, is_worth_a_row, mean, name_of};
use crate::view::plural;
use crate::view::value::{Value, line, seconds, share};

/// The least share of the change that makes a cause, and how many causes are named.
const CAUSE_AT_LEAST: f64 = 0.25;
const CAUSES_AT_MOST: usize = 2;

pub(crate) fn answer(of: &Difference) -> Value<'_> {
    let Some(run) = &of.run_time else {
        return line!["times are not known on both sides", but(of)];
    };
    let [a_s, b_s] = [&run.a, &run.b].map(|side| mean(side.as_ref()));
    let both = line![seconds(a_s), " and ", seconds(b_s)];
    let has_causes = of.parts.iter().any(|part| part.time.verdict != ChangeVerdict::Same);
    match run.verdict {
        ChangeVerdict::Same if !has_causes && changes(of) == [0, 0] && of.setup.is_empty() => {
            "nothing changed".into()
        }
        ChangeVerdict::Same => line!["the run time is the same, ", seconds(a_s), but(of)],
        _ if run.relative().abs() < LEAST_SHARE => {
            line!["no change of the run time to speak of: ", both, but(of)]
        }
        ChangeVerdict::WithinNoise | ChangeVerdict::WithinError => {
            line!["no change of the run time beyond the noise: ", both, between(run), but(of)]
        }
        ChangeVerdict::Changed | ChangeVerdict::Unproven => {
            let than = if run.change < 0.0 { " less (" } else { " more (" };
            let part = if a_s > 0.0 { share(run.change.abs() / a_s) } else { share(1.0) };
            let from_to = line![seconds(a_s), " -> ", seconds(b_s), ", ", part, ")"];
            line!["B takes ", seconds(run.change.abs()), than, from_to, causes(of, run)]
        }
    }
}

fn between(run: &Change) -> Value<'static> {
    match &run.shift {
        Some(shift) => {
            let [low, high] = [shift.low, shift.high].map(|end| seconds(end).as_change());
            line![" (B is between ", low, " and ", high, " away)"]
        }
        None => "".into(),
    }
}

/// How many counts changed, and how many findings came or went.
fn changes(of: &Difference) -> [usize; 2] {
    let is_exact = |of: &&NumberDifference| {
        of.kind == NumberKind::Count && of.number.verdict == ChangeVerdict::Changed
    };
    let runs = [of.a.runs.len(), of.b.runs.len()];
    let came_or_went = of.findings.iter().filter(|of| came_or_went(of, runs));
    [of.numbers.iter().filter(is_exact).count(), came_or_went.count()]
}

fn but(of: &Difference) -> Value<'_> {
    let [counts, findings] = changes(of);
    let counts =
        (counts > 0).then(|| line!["; ", counts, " count", plural(counts as u64), " changed"]);
    let findings = (findings > 0)
        .then(|| line!["; ", findings, " finding", plural(findings as u64), " came or went"]);
    let mut parts: Vec<Value> = [counts, findings].into_iter().flatten().collect();
    // What is certain about parts, although the whole is not.
    let run_s = of.run_time.as_ref().map_or(0.0, Change::larger);
    let is_sure = |part: &&PartDifference| {
        part.time.verdict == ChangeVerdict::Changed && is_worth_a_row(&part.time, run_s)
    };
    for (at, part) in of.parts.iter().filter(is_sure).take(CAUSES_AT_MOST).enumerate() {
        let before = if at == 0 { "; for sure: " } else { ", " };
        parts.push(line![before, name_of(part), " ", seconds(part.time.change).as_change()]);
    }
    Value::Line(parts)
}

/// The parts that make up most of the change, with the reasons.
fn causes<'a>(of: &'a Difference, run: &Change) -> Value<'a> {
    let is_cause = |part: &&PartDifference| {
        let same_way = part.time.change * run.change > 0.0;
        let is_large = part.time.change.abs() >= CAUSE_AT_LEAST * run.change.abs();
        same_way && is_large && part.time.is_real()
    };
    let mut causes: Vec<&PartDifference> = of.parts.iter().filter(is_cause).collect();
    causes.sort_by(|one, other| other.time.change.abs().total_cmp(&one.time.change.abs()));
    let mut parts: Vec<Value> = Vec::new();
    for cause in causes.into_iter().take(CAUSES_AT_MOST) {
        parts.push(if parts.is_empty() { ": ".into() } else { "; ".into() });
        let change = seconds(cause.time.change).as_change();
        parts.push(line![name_of(cause), " ", change, because(cause)]);
    }
    Value::Line(parts)
}

fn because(part: &PartDifference) -> Value<'static> {
    let Some(Split { number_a, number_b, each_a_s, each_b_s, by_number_s, by_each_s }) = part.split
    else {
        return "".into();
    };
    debug_assert!(part.kind == PartKind::Function);
    if number_a == 0.0 {
        ", which A does not call".into()
    } else if number_b == 0.0 {
        ", which B does not call".into()
    } else if by_each_s.abs() >= by_number_s.abs() {
        let is = if each_b_s < each_a_s { "shorter" } else { "longer" };
        let each = line![seconds(each_a_s), " -> ", seconds(each_b_s), ")"];
        line![", because each call is ", is, " (", each]
    } else {
        let is = if number_b < number_a { "fewer" } else { "more" };
        line![", because there are ", is, " calls (", number_a, " -> ", number_b, " a rank)"]
    }
}
