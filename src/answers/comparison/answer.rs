//! The answer in a sentence: how much longer or shorter, and why.

use gyan_results::{
    Change, ChangeVerdict, Difference, NumberDifference, NumberGroup, NumberKind, PartDifference,
    PartKind, Split,
};

use crate::answers::comparison::{LEAST_SHARE, came_or_went, is_worth_a_row, name_of};
use crate::document::plural;
use crate::document::value::{Value, line, seconds, share};

/// The least share of the change that makes a cause, and how many causes are named.
const CAUSE_AT_LEAST: f64 = 0.25;
const CAUSES_AT_MOST: usize = 2;
/// How many functions of one side are named.
const FUNCTIONS_AT_MOST: usize = 3;

pub(crate) fn answer(of: &Difference) -> Value<'_> {
    let Some(run) = &of.run_time else {
        return line!["times are not known on both sides", but(of)];
    };
    let [a_s, b_s] = run.means();
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
        ChangeVerdict::Changed => line![longer_or_shorter(of, run), only(of), findings(of)],
        ChangeVerdict::Unproven if run.may_be_real() => {
            let takes = takes(run);
            line![longer_or_shorter(of, run), only(of), findings(of), "; not judged", takes]
        }
        ChangeVerdict::Unproven => {
            let so_few = "so few runs cannot tell whether the run time changed: ";
            line![so_few, both, between(run), takes(run), but(of)]
        }
        ChangeVerdict::WithinNoise | ChangeVerdict::WithinError | ChangeVerdict::LowerBound => {
            line!["no change of the run time was shown: ", both, between(run), but(of)]
        }
    }
}

fn longer_or_shorter<'a>(of: &'a Difference, run: &Change) -> Value<'a> {
    let [a_s, b_s] = run.means();
    let than = if run.change < 0.0 { " less (" } else { " more (" };
    let part = if a_s > 0.0 { share(run.change.abs() / a_s) } else { share(1.0) };
    let from_to = line![seconds(a_s), " -> ", seconds(b_s), ", ", part, ")"];
    line!["B takes ", seconds(run.change.abs()), than, from_to, causes(of, run)]
}

fn takes(run: &Change) -> Value<'static> {
    run.runs_needed.map_or("".into(), |runs| line![", it takes ", runs, " runs of each"])
}

fn between(run: &Change) -> Value<'static> {
    match &run.shift {
        Some(shift) => {
            let [low, high] = [shift.low, shift.high].map(|end| seconds(end).as_change());
            let sure = share(shift.confidence);
            line![" (B is between ", low, " and ", high, " away, ", sure, " sure)"]
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
    let [counts, _] = changes(of);
    let counts =
        (counts > 0).then(|| line!["; ", counts, " count", plural(counts as u64), " changed"]);
    let mut parts: Vec<Value> = counts.into_iter().chain([only(of), findings(of)]).collect();
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

fn findings(of: &Difference) -> Value<'static> {
    match changes(of) {
        [_, 0] => "".into(),
        [_, some] => line!["; ", some, " finding", plural(some as u64), " came or went"],
    }
}

/// The functions that only one side calls, however little time they take.
fn only(of: &Difference) -> Value<'_> {
    let of_side = |is_b: bool| {
        let is_only = |of: &&NumberDifference| {
            let change = &of.number;
            let [with, without] =
                if is_b { [&change.b, &change.a] } else { [&change.a, &change.b] };
            let is_sure = change.verdict == ChangeVerdict::Changed;
            of.group == NumberGroup::Calls && with.is_some() && without.is_none() && is_sure
        };
        let names: Vec<&str> =
            of.numbers.iter().filter(is_only).map(|of| of.name.as_str()).collect();
        let shown = names.len().min(FUNCTIONS_AT_MOST);
        let more = match names.len() - shown {
            0 => "".into(),
            more => line![" and ", more, " more"],
        };
        let which = if is_b { "; only B calls " } else { "; only A calls " };
        (shown > 0).then(|| line![which, names[..shown].join(", "), more])
    };
    Value::Line([true, false].into_iter().filter_map(of_side).collect())
}

/// The parts that make up most of the change, with the reasons.
fn causes<'a>(of: &'a Difference, run: &Change) -> Value<'a> {
    let is_cause = |part: &&PartDifference| {
        let same_way = part.time.change * run.change > 0.0;
        let is_large = part.time.change.abs() >= CAUSE_AT_LEAST * run.change.abs();
        let is_bound = part.time.verdict == ChangeVerdict::LowerBound;
        same_way && is_large && part.time.may_be_real() && !is_bound
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
    if number_a == 0.0 || number_b == 0.0 {
        // The functions of one side are named below.
        "".into()
    } else if by_each_s.abs() >= by_number_s.abs() {
        let is = if each_b_s < each_a_s { "shorter" } else { "longer" };
        let each = line![seconds(each_a_s), " -> ", seconds(each_b_s), ")"];
        line![", because each call is ", is, " (", each]
    } else {
        let is = if number_b < number_a { "fewer" } else { "more" };
        line![", because there are ", is, " calls (", number_a, " -> ", number_b, " a rank)"]
    }
}
