//! What `gyan check` shows: the verdict, what failed with both numbers, what was checked; and the same as test cases.

use gyan_results::{CheckResult, CheckRule, JudgedRow, Judgement, Number, Unit};

use crate::answers::interval;
use crate::document::value::{InUnit, Value, line, row, share};
use crate::document::{Case, Kind, Section, Suite, View, column, numbers, plural, texts};

/// Names that are shown of many.
const NAMES_AT_MOST: usize = 4;

pub(crate) fn judgement(judgement: &Judgement) -> View<'_> {
    let failed = judgement.failed().count();
    let judged = judgement.rows.iter().filter(|row| row.result != CheckResult::NotJudged).count();
    let unjudged = judgement.rows.len() - judged;
    let but = if unjudged > 0 { line![", ", unjudged, " not judged"] } else { "".into() };
    let title = match judgement.result {
        CheckResult::Failed => line!["FAILED: ", failed, " of ", judged, " checks", but],
        CheckResult::Passed => line!["passed: ", judged, " checks", but],
        CheckResult::NotJudged if judged == 0 => "NOT JUDGED: nothing could be compared".into(),
        CheckResult::NotJudged => {
            let why = judgement.of(CheckRule::Times).find_map(|row| row.remark.as_ref());
            line!["NOT JUDGED: times (", judged, " other checks passed): ", why]
        }
    };
    let mut subtitle =
        vec![line![names(&judgement.runs), " against ", names(&judgement.baselines)]];
    subtitle.extend(judgement.remarks.iter().map(Value::from));
    let mut sections = Vec::new();
    sections.extend(cut_short(judgement));
    sections.extend(grown(judgement));
    sections.extend(new_findings(judgement));
    sections.extend(slower(judgement));
    sections.push(checked(judgement));
    View { title, subtitle, sections }
}

/// `a, b and 3 more`.
fn names(names: &[String]) -> Value<'_> {
    let shown: Vec<&str> = names.iter().take(NAMES_AT_MOST).map(String::as_str).collect();
    let text = shown.join(", ");
    match names.len() - shown.len() {
        0 => text.into(),
        more => line![text, " and ", more, " more"],
    }
}

/// How a rule names one of its rows.
fn what(row: &JudgedRow) -> Value<'_> {
    match row.rule {
        CheckRule::Calls => line!["calls of ", &row.what],
        CheckRule::Bytes => line!["bytes of ", &row.what],
        CheckRule::Findings => line!["finding ", &row.what],
        CheckRule::Times if row.what == "run" => "time of the run".into(),
        CheckRule::Times if row.what == "in_mpi" => "time in MPI".into(),
        CheckRule::Times if row.what == "late_senders" => "waiting for late senders".into(),
        CheckRule::Times if row.what == "late_receivers" => "waiting for late receivers".into(),
        CheckRule::Times => line!["time in ", &row.what],
        CheckRule::Ended | CheckRule::Messages => (&row.what).into(),
    }
}

fn amount(row: &JudgedRow, number: Option<Number>) -> Value<'_> {
    let unit = Unit::from_symbol(&row.unit);
    number.map(|number| unit.amount(number)).into()
}

/// The growth of a number, relative to what it was.
fn growth(row: &JudgedRow) -> Value<'_> {
    match (row.baseline, row.now) {
        (Some(before), Some(now)) if before.as_f64() > 0.0 => {
            line!["+", share(now.as_f64() / before.as_f64() - 1.0)]
        }
        _ => "new".into(),
    }
}

fn failed(judgement: &Judgement, rule: CheckRule) -> impl Iterator<Item = &JudgedRow> {
    judgement.failed().filter(move |row| row.rule == rule)
}

/// Counts, grouped by rule, the one that grew most first.
fn grown(judgement: &Judgement) -> Option<Section<'_>> {
    let ratio = |row: &&JudgedRow| {
        let [before, now] = [row.baseline, row.now].map(|of| of.map_or(0.0, Number::as_f64));
        now / before
    };
    let rules = [CheckRule::Messages, CheckRule::Calls, CheckRule::Bytes];
    let rows: Vec<Vec<Value>> = rules
        .into_iter()
        .flat_map(|rule| {
            let mut rows: Vec<&JudgedRow> = failed(judgement, rule).collect();
            rows.sort_by(|one, other| ratio(other).total_cmp(&ratio(one)));
            rows
        })
        .map(|of| {
            let [before, now, most] = [of.baseline, of.now, of.at_most].map(|n| amount(of, n));
            row![what(of), before, now, growth(of), most]
        })
        .collect();
    let mut columns = texts(["COUNTED"]);
    columns.extend(numbers(["BASELINE", "NOW", "GROWTH", "AT MOST"]));
    let title = "More than allowed".into();
    (!rows.is_empty()).then_some(Section { title, columns, rows, notes: Vec::new() })
}

/// Runs that did not finish.
fn cut_short(judgement: &Judgement) -> Option<Section<'_>> {
    let said = failed(judgement, CheckRule::Ended);
    let notes: Vec<Value> = said.map(|of| line![&of.what, ": ", of.remark.as_ref()]).collect();
    (!notes.is_empty()).then(|| Section::of_notes("Cut short", notes))
}

fn new_findings(judgement: &Judgement) -> Option<Section<'_>> {
    let found = failed(judgement, CheckRule::Findings);
    let rows: Vec<Vec<Value>> = found.map(|of| row![&of.what, of.remark.as_ref()]).collect();
    let mut columns = texts(["ID"]);
    columns.push(column("WHAT", Kind::Prose));
    let notes =
        vec!["gyan explain ID says what it means, gyan report --findings what to do".into()];
    let title = "Findings that no baseline has".into();
    (!rows.is_empty()).then_some(Section { title, columns, rows, notes })
}

fn slower(judgement: &Judgement) -> Option<Section<'_>> {
    let rows: Vec<Vec<Value>> = failed(judgement, CheckRule::Times)
        .map(|of| {
            let [before, now, most] = [of.baseline, of.now, of.at_most].map(|n| amount(of, n));
            row![
                what(of),
                before,
                now,
                growth(of),
                most,
                interval(of.shift, Unit::Seconds),
                of.p.map(share)
            ]
        })
        .collect();
    let mut columns = texts(["TIME"]);
    columns.extend(numbers(["BASELINE", "NOW", "GROWTH", "AT MOST", "LONGER BY", "BY CHANCE"]));
    let confidence = failed(judgement, CheckRule::Times).find_map(|of| of.shift);
    let mut notes = vec!["BASELINE and NOW are medians; BY CHANCE: how likely any of the times is this much longer when nothing changed".into()];
    if let Some(shift) = confidence {
        let sure = share(shift.confidence);
        notes.push(line!["LONGER BY: how far a new run is from a baseline, ", sure, " sure"]);
    }
    let title = "Slower than noise explains".into();
    (!rows.is_empty()).then_some(Section { title, columns, rows, notes })
}

/// What passed or could not be judged, in a line for each rule.
fn checked(judgement: &Judgement) -> Section<'_> {
    let mut rows = Vec::new();
    for rule in CheckRule::ALL {
        let of = |result| judgement.of(rule).filter(move |row| row.result == result);
        let [passed, failed, unknown] =
            [CheckResult::Passed, CheckResult::Failed, CheckResult::NotJudged]
                .map(|result| of(result).count());
        if passed + failed + unknown == 0 {
            rows.push(row![about(rule), "-", "none that can be compared"]);
            continue;
        }
        let why = of(CheckResult::NotJudged).next().and_then(|row| row.remark.as_ref());
        let remark: Value = match (rule, why) {
            (_, Some(why)) => line!["not judged: ", why],
            (CheckRule::Times, None) => closest(judgement),
            _ => "".into(),
        };
        rows.push(row![about(rule), line![passed, " of ", passed + failed], remark]);
    }
    let mut columns = texts(["CHECKED"]);
    columns.extend([column("PASSED", Kind::Text), column("", Kind::Prose)]);
    let mut notes = Vec::new();
    if !judgement.ignored.is_empty() {
        let s = plural(judgement.ignored.len() as u64);
        notes.push(line!["left out by the rules: function", s, " ", names(&judgement.ignored)]);
    }
    Section { title: "".into(), columns, rows, notes }
}

fn about(rule: CheckRule) -> &'static str {
    match rule {
        CheckRule::Ended => "runs that finished",
        CheckRule::Calls => "calls of functions",
        CheckRule::Bytes => "bytes of functions",
        CheckRule::Messages => "messages and accesses",
        CheckRule::Findings => "findings",
        CheckRule::Times => "times",
    }
}

/// The time change that is least likely to be chance.
fn closest(judgement: &Judgement) -> Value<'_> {
    let by_p = |one: &&JudgedRow, other: &&JudgedRow| {
        one.p.unwrap_or(1.0).total_cmp(&other.p.unwrap_or(1.0))
    };
    let Some(of) = judgement.of(CheckRule::Times).min_by(by_p) else { return "".into() };
    let [before, now] = [of.baseline, of.now].map(|number| amount(of, number));
    line![what(of), " ", before, " before, ", now, " now"]
}

/// One suite per rule, one case per number and finding.
pub(crate) fn suites(judgement: &Judgement) -> Vec<Suite<'_>> {
    let case = |row| Case { name: what(row), result: row.result, said: sentence(row) };
    let suite = |rule: CheckRule| Suite {
        name: rule.name(),
        cases: judgement.of(rule).map(case).collect(),
    };
    CheckRule::ALL.map(suite).into_iter().filter(|suite| !suite.cases.is_empty()).collect()
}

fn sentence(row: &JudgedRow) -> Value<'_> {
    let remark = || row.remark.as_ref().map_or("".into(), Value::from);
    if row.result == CheckResult::NotJudged {
        return remark();
    }
    let [before, now, most] =
        [row.baseline, row.now, row.at_most].map(|number| amount(row, number));
    match row.rule {
        CheckRule::Ended => remark(),
        CheckRule::Findings => line!["in no baseline: ", remark()],
        CheckRule::Times => {
            line![
                now,
                " now, ",
                before,
                " before, at most ",
                most,
                "; by chance: ",
                row.p.map(share)
            ]
        }
        CheckRule::Calls | CheckRule::Bytes | CheckRule::Messages => {
            line![now, " now, ", before, " before, at most ", most]
        }
    }
}
