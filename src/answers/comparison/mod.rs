//! What changed between runs: the answer, then what differs in the set-up, where the time is, and whatever else changed.

mod answer;
mod page;
pub(crate) mod rows;

use std::collections::BTreeSet;

use gyan_results::{
    Change, ChangeVerdict, Difference, FindingDifference, NumberDifference, NumberGroup,
    NumberKind, PartDifference, PartKind, PhaseDifference, SetupDifference, Side, SideNumber,
    Split, Unit,
};

use crate::answers::interval;
use crate::document::data::word;
use crate::document::limits::more_rows;
use crate::document::value::{Amount, Bound, InUnit, Value, bytes, line, row, seconds, share};
use crate::document::{Column, Kind, Section, View, column, cut, numbers, plural, texts};
use crate::parts::headings::name_of_phase;
use gyan_results::Fidelity;

pub(crate) use crate::answers::comparison::answer::answer;
pub(crate) use crate::answers::comparison::page::page_of_comparison;

/// A smaller share of the run is not worth a row of its own.
const LEAST_SHARE: f64 = 0.01;
/// A number that differs from run to run must change by more than this to be shown.
const LEAST_RELATIVE: f64 = 0.1;
/// Rows on the first screen.
const SETTINGS_AT_MOST: usize = 6;
const PARTS_AT_MOST: usize = 6;
const PHASES_AT_MOST: usize = 4;
const NUMBERS_AT_MOST: usize = 12;
const OF_A_GROUP_AT_MOST: usize = 3;
/// Length limits in characters: for a value of the set-up, and for the names of the runs on a side.
const VALUE_AT_MOST: usize = 60;
const RUNS_AT_MOST: usize = 60;

pub(crate) fn comparison(of: &Difference, all: bool) -> View<'_> {
    let mut subtitle = vec![side("A: ", &of.a), side("B: ", &of.b), noise(of)];
    subtitle.extend(of.remarks.iter().map(Value::from));
    let mut sections = vec![setup(of, all)];
    sections.extend(run_time(of, all));
    sections.extend(phases(of, all));
    sections.extend(others(of, all));
    sections.extend(findings(of, all));
    View { title: answer(of), subtitle, sections }
}

fn side<'a>(which: &'static str, of: &'a Side) -> Value<'a> {
    let parents = of.runs.iter().map(|run| run.rsplit_once('/').map(|(parent, _)| parent));
    let parents: BTreeSet<Option<&str>> = parents.collect();
    let names = match (of.runs.as_slice(), parents.first()) {
        ([one], _) => cut(one, RUNS_AT_MOST),
        (_, Some(Some(parent))) if parents.len() == 1 => cut(parent, RUNS_AT_MOST),
        (runs, _) => cut(&runs.join(", "), RUNS_AT_MOST),
    };
    let runs: Value = match of.runs.len() {
        1 => "".into(),
        runs => line![" (", runs, " runs)"],
    };
    let incomplete: Value = match of.incomplete.len() {
        0 => "".into(),
        some => {
            line!["; ranks are missing or did not end well in ", some, " run", plural(some as u64)]
        }
    };
    line![which, names, runs, incomplete]
}

/// How many runs it takes to judge times, when these are too few.
fn noise(of: &Difference) -> Value<'static> {
    let run_s = of.run_time.as_ref().map_or(0.0, Change::larger);
    let large = of.parts.iter().map(|part| &part.time);
    let large = large.filter(|time| time.larger() >= LEAST_SHARE * run_s);
    let needed = |change: &Change| change.runs_needed;
    let run = of.run_time.as_ref().and_then(needed);
    let parts = large.filter_map(needed).max();
    let one = if of.a.runs.len().min(of.b.runs.len()) == 1 {
        "with one run on a side, how much times differ from run to run is not known: "
    } else {
        ""
    };
    match (run, parts) {
        (None, None) => "times are means over the runs".into(),
        (Some(run), None) => line![one, "it takes ", run, " runs of each to judge the run time"],
        (None, Some(parts)) => {
            line![one, "it takes ", parts, " runs of each to judge the parts of the run"]
        }
        (Some(run), Some(parts)) if run == parts => {
            line![one, "it takes ", run, " runs of each to judge the run time and its parts"]
        }
        (Some(run), Some(parts)) => {
            let its_parts =
                line![" runs of each to judge the run time, and ", parts, " for its parts"];
            line![one, "it takes ", run, its_parts, " (gyan run --repeat)"]
        }
    }
}

fn setup(of: &Difference, all: bool) -> Section<'_> {
    let text = |values: &[String]| -> Value<'_> {
        let joined = if values.is_empty() { "-".to_owned() } else { values.join(" or ") };
        if all { joined.into() } else { cut(&joined, VALUE_AT_MOST).into() }
    };
    let cut_off = if all { 0 } else { of.setup.len().saturating_sub(SETTINGS_AT_MOST) };
    let shown = of.setup.iter().take(of.setup.len() - cut_off);
    let row = |of: &'_ SetupDifference| row![of.what.clone(), text(&of.a), text(&of.b)];
    let mut notes = more_rows(cut_off);
    if of.setup.is_empty() {
        notes.push("nothing, as far as the runs tell".into());
    }
    let mut columns = texts(["WHAT"]);
    columns.extend([column("A", Kind::Prose), column("B", Kind::Prose)]);
    Section {
        title: "What differs in the set-up".into(),
        columns,
        rows: shown.map(row).collect(),
        notes,
    }
}

/// The seconds that are worth a row, given the length of a run.
fn is_worth_a_row(change: &Change, run_s: f64) -> bool {
    change.may_be_real() && change.change.abs() >= LEAST_SHARE * run_s
}

/// `bound`: what a number without an error is.
fn means(change: &Change, unit: Unit, bound: Bound) -> [Value<'static>; 2] {
    let amount = |of: &SideNumber| {
        let is_bound = of.error.is_none() && of.mean != 0.0;
        let bound = if is_bound { bound } else { Bound::None };
        Amount { bound, ..unit.double(of.mean) }
    };
    [&change.a, &change.b].map(|side| side.as_ref().map(amount).into())
}

fn changed(change: &Change, unit: Unit) -> Amount {
    let error = change.error.filter(|error| *error > 0.0 && change.change != 0.0);
    let known = if change.error == Some(0.0) { Fidelity::Exact } else { Fidelity::Estimated };
    Amount { error, ..unit.double(change.change).known(known).as_change() }
}

fn how_sure(change: &Change, kind: NumberKind) -> Value<'static> {
    match (change.verdict, change.p_adjusted) {
        (ChangeVerdict::Same, _) => "the same".into(),
        (ChangeVerdict::WithinError, _) => "within the error".into(),
        (ChangeVerdict::WithinNoise, _) if kind == NumberKind::Count => "varies".into(),
        (ChangeVerdict::WithinNoise, Some(p)) => line!["not shown, p = ", p],
        (ChangeVerdict::WithinNoise, None) => "not in each run".into(),
        (ChangeVerdict::LowerBound, _) => "not judged: a lower bound".into(),
        (ChangeVerdict::Unproven, _) => match change.runs_needed {
            Some(runs) => line!["not judged: takes ", runs, " runs"],
            None => "not judged".into(),
        },
        (ChangeVerdict::Changed, Some(p)) => line!["yes, p = ", p],
        (ChangeVerdict::Changed, None) if kind == NumberKind::Count => "exact".into(),
        (ChangeVerdict::Changed, None) => {
            (if change.a.is_none() { "only B has it" } else { "only A has it" }).into()
        }
    }
}

fn name_of(part: &PartDifference) -> Value<'_> {
    match part.kind {
        PartKind::Function => part.name.as_str().into(),
        PartKind::Outside => "outside MPI".into(),
    }
}

fn time_columns(first: &'static str, split: [&'static str; 2]) -> Vec<Column> {
    let mut columns = texts([first]);
    columns.extend(numbers(["A", "B", "CHANGE"]));
    columns.extend(numbers(split));
    columns.extend(numbers(["INTERVAL"]));
    columns.extend(texts(["HOW SURE"]));
    columns
}

fn without_empty_columns(mut section: Section<'_>) -> Section<'_> {
    for at in (1..section.columns.len()).rev() {
        if section.rows.iter().all(|row| row.get(at) == Some(&Value::Nothing)) {
            section.columns.remove(at);
            section.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
    }
    section
}

fn run_time(of: &Difference, all: bool) -> Option<Section<'_>> {
    let run = of.run_time.as_ref()?;
    let run_s = run.larger();
    let shown: Vec<&PartDifference> =
        of.parts.iter().filter(|part| all || is_worth_a_row(&part.time, run_s)).collect();
    if shown.is_empty() {
        return None;
    }
    let limit = if all { shown.len() } else { PARTS_AT_MOST };
    let mut shown: Vec<&PartDifference> = shown.into_iter().take(limit).collect();
    shown.sort_by(|one, other| other.time.change.abs().total_cmp(&one.time.change.abs()));
    let is_shown = |part: &PartDifference| shown.iter().any(|of| std::ptr::eq(*of, part));
    let rest: Vec<&PartDifference> = of.parts.iter().filter(|part| !is_shown(part)).collect();
    let mut rows = vec![cells("the run".into(), run, None, false)];
    rows.extend(shown.iter().map(|part| {
        let is_outside = part.kind == PartKind::Outside;
        cells(name_of(part), &part.time, part.split, is_outside)
    }));
    if !rest.is_empty() {
        let sum = |of: &dyn Fn(&Change) -> f64| rest.iter().map(|part| of(&part.time)).sum::<f64>();
        let [a, b] = [0, 1].map(|side| seconds(sum(&|time| time.means()[side])));
        let change = seconds(sum(&|time| time.change)).as_change();
        let mut cells = row![line!["the rest (", rest.len(), ")"], a, b, change];
        cells.extend([const { Value::Nothing }; 4]);
        rows.push(cells);
    }
    let mut notes = vec![
        "seconds of an average rank; the rows add up to the run. BY CALLS: from the number of calls; BY EACH: from the time of one"
            .into(),
    ];
    if run.shift.is_some() {
        notes.push(sureness(run));
    }
    if !rest.is_empty() {
        notes.push(
            "the rest changed by less than 1 % of the run, or not for sure; --all shows it".into(),
        );
    }
    if of.parts.iter().any(|part| part.time.verdict == ChangeVerdict::LowerBound) {
        notes.push(
            "a lower bound (≥: too few calls were timed) is no ground of a comparison, nor is what is left of the run (≤)".into(),
        );
    }
    Some(without_empty_columns(Section {
        title: "Where the time changed".into(),
        columns: time_columns("PART", ["BY CALLS", "BY EACH"]),
        rows,
        notes,
    }))
}

/// A row of a part of the run.
fn cells<'a>(
    name: Value<'a>,
    time: &Change,
    split: Option<Split>,
    is_outside: bool,
) -> Vec<Value<'a>> {
    // What is left of the run when a part is at least so long.
    let bound = if is_outside { Bound::AtMost } else { Bound::AtLeast };
    let [a, b] = means(time, Unit::Seconds, bound);
    let by = split.map(|split| [split.by_number_s, split.by_each_s]);
    let [by_number, by_each] = match by {
        Some(parts) => parts.map(|part| seconds(part).as_change().into()),
        None => [const { Value::Nothing }; 2],
    };
    let sure = how_sure(time, NumberKind::Estimate);
    let change = changed(time, Unit::Seconds);
    row![name, a, b, change, by_number, by_each, interval(time.shift, Unit::Seconds), sure]
}

fn sureness(run: &Change) -> Value<'static> {
    let confidence = run.shift.as_ref().map_or(0.0, |shift| shift.confidence);
    let what = "INTERVAL: how far a run of B is from one of A (Hodges-Lehmann), ";
    let tests = "; p by Mann-Whitney, over the rows by Holm";
    let tests = if run.p.is_some() { tests } else { "" };
    line![what, share(confidence), " sure", tests]
}

fn phases<'a>(of: &'a Difference, all: bool) -> Option<Section<'a>> {
    let run_s = of.run_time.as_ref().map_or(0.0, Change::larger);
    let worth = |phase: &&PhaseDifference| all || is_worth_a_row(&phase.time, run_s);
    let worthy: Vec<&PhaseDifference> = of.phases.iter().filter(worth).collect();
    if worthy.is_empty() {
        return None;
    }
    let cut_off = if all { 0 } else { worthy.len().saturating_sub(PHASES_AT_MOST) };
    let row = |of: &&'a PhaseDifference| {
        let [a, b] = means(&of.time, Unit::Seconds, Bound::AtLeast);
        // The parts that changed most in the direction of the whole.
        let same_way = |part: &&PartDifference| part.time.change * of.time.change > 0.0;
        let most = of
            .parts
            .iter()
            .filter(same_way)
            .max_by(|one, other| one.time.change.abs().total_cmp(&other.time.change.abs()));
        let most =
            most.map(|part| line![name_of(part), " ", seconds(part.time.change).as_change()]);
        let by_number = seconds(of.split.by_number_s).as_change();
        let by_each = seconds(of.split.by_each_s).as_change();
        let sure = how_sure(&of.time, NumberKind::Estimate);
        let change = changed(&of.time, Unit::Seconds);
        let name = name_of_phase(&of.name);
        row![
            name,
            a,
            b,
            change,
            by_number,
            by_each,
            interval(of.time.shift, Unit::Seconds),
            sure,
            most
        ]
    };
    let rows = worthy.iter().take(worthy.len() - cut_off).map(row).collect();
    let mut columns = time_columns("PHASE", ["BY ENTRIES", "BY EACH"]);
    columns.extend(texts(["MOST OF IT"]));
    let title = "Phases".into();
    Some(without_empty_columns(Section { title, columns, rows, notes: more_rows(cut_off) }))
}

fn unit_of(of: &NumberDifference) -> Unit {
    Unit::from_symbol(&of.unit)
}

fn group_name(group: NumberGroup) -> String {
    match group {
        NumberGroup::Sizes => "calls of a size".to_owned(),
        NumberGroup::WaitingPairs => "waiting".to_owned(),
        group => word(group).unwrap_or_default(),
    }
}

fn is_shown(of: &NumberDifference, run_s: f64) -> bool {
    let change = &of.number;
    let is_enough = match of.kind {
        NumberKind::Count if change.p.is_none() => true,
        _ if of.unit == "s" => change.change.abs() >= LEAST_SHARE * run_s,
        _ => change.relative().abs() >= LEAST_RELATIVE,
    };
    change.may_be_real() && is_enough
}

fn others(of: &Difference, all: bool) -> Option<Section<'_>> {
    let run_s = of.run_time.as_ref().map_or(0.0, Change::larger);
    let worthy: Vec<&NumberDifference> =
        of.numbers.iter().filter(|of| all || is_shown(of, run_s)).collect();
    if worthy.is_empty() {
        return None;
    }
    let mut shown: Vec<&NumberDifference> = Vec::new();
    for &number in &worthy {
        let of_group = shown.iter().filter(|of| of.group == number.group).count();
        if all || (of_group < OF_A_GROUP_AT_MOST && shown.len() < NUMBERS_AT_MOST) {
            shown.push(number);
        }
    }
    let cut_off = worthy.len() - shown.len();
    let row = |of: &&NumberDifference| {
        let unit = unit_of(of);
        let [a, b] = means(&of.number, unit, Bound::AtLeast);
        let name: Value = match of.from_bytes {
            Some(0) => line![of.name.clone(), ", 0 bytes"],
            Some(from) => line![of.name.clone(), ", from ", bytes(from as f64)],
            None => of.name.clone().into(),
        };
        let before = of.number.means()[0].abs();
        let part = (before > 0.0).then(|| share(of.number.change / before).as_change());
        let sure = how_sure(&of.number, of.kind);
        row![group_name(of.group), name, a, b, changed(&of.number, unit), part, sure]
    };
    let rows = shown.iter().map(row).collect();
    let mut columns = texts(["WHAT", "OF"]);
    columns.extend(numbers(["A", "B", "CHANGE", "OF A"]));
    columns.extend(texts(["HOW SURE"]));
    let has_pairs = shown.iter().any(|of| of.group == NumberGroup::WaitingPairs);
    let mut notes = more_rows(cut_off);
    notes.push("of an average rank".into());
    notes.extend(has_pairs.then(|| "rank ... for rank ...: seconds of that rank".into()));
    Some(Section { title: "What else changed".into(), columns, rows, notes })
}

/// Whether most runs of a side have a finding, all where no time is at stake, and none of the other.
fn came_or_went(of: &FindingDifference, [a_runs, b_runs]: [usize; 2]) -> bool {
    let has_stake = of.a_share.or(of.b_share).is_some();
    let is_in_enough = |some: usize, runs: usize| some == runs || (has_stake && 2 * some > runs);
    (of.a_runs == 0 && is_in_enough(of.b_runs, b_runs))
        || (of.b_runs == 0 && is_in_enough(of.a_runs, a_runs))
}

fn findings(of: &Difference, all: bool) -> Option<Section<'_>> {
    let line_of = |of: &'_ FindingDifference, runs: [usize; 2]| {
        let (what, share_of, some, whole) = match (of.a_runs, of.b_runs) {
            (0, some) => ("new in B: ", of.b_share, some, runs[1]),
            (some, 0) => ("gone in B: ", of.a_share, some, runs[0]),
            (_, some) => ("in runs of both: ", of.b_share, some, runs[1]),
        };
        let at_stake = share_of.map(|part| line![" [at stake: ", share(part), " of the run]"]);
        let seen: Value =
            if some < whole { line![" (in ", some, " of ", whole, " runs)"] } else { "".into() };
        line![
            what,
            of.title.clone(),
            at_stake.unwrap_or("".into()),
            seen,
            "; gyan explain ",
            of.id.clone()
        ]
    };
    let runs = [of.a.runs.len(), of.b.runs.len()];
    let shown = of.findings.iter().filter(|of| all || came_or_went(of, runs));
    let notes: Vec<Value> = shown.map(|of| line_of(of, runs)).collect();
    (!notes.is_empty()).then(|| Section::of_notes("Findings", notes))
}
