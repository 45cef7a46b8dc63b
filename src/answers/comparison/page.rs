//! What changed between runs on one page: the change as a waterfall, and how sure it is as intervals.

use gyan_results::{Change, ChangeVerdict, Difference, PartDifference, Unit};

use crate::answers::comparison::{
    LEAST_SHARE, answer, findings, name_of, noise, others, phases, run_time, setup, side,
};
use crate::document::page::pictures::{Chart, Direction, Picture, Span, Spans};
use crate::document::page::{Page, PageBlock};
use crate::document::value::{Value, line, seconds};

/// A step below this share of the change would not be visible.
const LEAST_STEP: f64 = 0.005;
/// Steps of a waterfall, and intervals.
const SPANS_AT_MOST: usize = 12;

pub(crate) fn page_of_comparison(of: &Difference) -> Page<'_> {
    let mut change = PageBlock::new("change", "What changed");
    change.says.extend([side("A: ", &of.a), side("B: ", &of.b), noise(of)]);
    change.says.extend(of.remarks.iter().map(Value::from));
    change.charts.extend(waterfall(of));
    change.charts.extend(forest(of));
    change.extend(false, run_time(of, true));
    let mut blocks = vec![change, PageBlock::new("setup", "Set-up").with(true, [setup(of, true)])];
    let parts = [
        ("phases", "Phases", phases(of, true)),
        ("numbers", "Other numbers", others(of, false)),
        ("findings", "Findings", findings(of, true)),
    ];
    for (id, title, section) in parts {
        if let Some(section) = section {
            let mut block = PageBlock::new(id, title).with(true, [section]);
            if id == "numbers" {
                block.details = "All that differ";
                block.extend(false, others(of, true));
            }
            blocks.push(block);
        }
    }
    Page { title: "what changed from A to B".into(), headline: Some(answer(of)), blocks }
}

fn direction(change: &Change) -> Direction {
    match change.verdict {
        ChangeVerdict::Changed | ChangeVerdict::Unproven if change.change < 0.0 => Direction::Less,
        ChangeVerdict::Changed | ChangeVerdict::Unproven => Direction::More,
        _ => Direction::Unknown,
    }
}

/// From no change to the whole change, part by part.
fn waterfall(of: &Difference) -> Option<Chart<'_>> {
    let run = of.run_time.as_ref()?;
    if run.change == 0.0 {
        return None;
    }
    let mut parts: Vec<&PartDifference> = of.parts.iter().collect();
    parts.sort_by(|one, other| other.time.change.abs().total_cmp(&one.time.change.abs()));
    let is_seen = |part: &&PartDifference| part.time.change.abs() >= LEAST_STEP * run.change.abs();
    let seen = parts.iter().filter(|part| is_seen(part)).count();
    let rest = parts.split_off(seen.min(SPANS_AT_MOST));
    let mut reached = 0.0;
    let mut step = |name, by: f64, direction| {
        let from = reached;
        reached += by;
        let amount = seconds(by).as_change();
        Span { name, from, to: reached, estimate: None, amount, direction }
    };
    let mut spans: Vec<Span> = parts
        .into_iter()
        .map(|part| step(name_of(part), part.time.change, direction(&part.time)))
        .collect();
    if !rest.is_empty() {
        let by = rest.iter().map(|part| part.time.change).sum();
        spans.push(step(line!["the rest (", rest.len(), ")"], by, Direction::Unknown));
    }
    let (to, amount) = (run.change, seconds(run.change).as_change());
    let direction = direction(run);
    spans.push(Span { name: "the run".into(), from: 0.0, to, estimate: None, amount, direction });
    let says = "each bar begins where the one above it ends; grey: within the error or the noise";
    let picture = Picture::Spans(Spans { unit: Unit::Seconds, spans });
    Some(Chart::new("Where did the time change?", says, picture))
}

/// How far B is from A, with intervals; only for several runs.
fn forest(of: &Difference) -> Option<Chart<'_>> {
    let run = of.run_time.as_ref()?;
    let mut rows: Vec<(Value, &Change)> = vec![("the run".into(), run)];
    let least_s = LEAST_SHARE * run.larger();
    let large = of.parts.iter().filter(|part| part.time.larger() >= least_s);
    rows.extend(large.take(SPANS_AT_MOST).map(|part| (name_of(part), &part.time)));
    let spans = rows.into_iter().filter_map(|(name, change)| {
        let shift = change.shift?;
        let (from, to, estimate) = (shift.low, shift.high, Some(shift.estimate));
        let amount = seconds(shift.estimate).as_change();
        Some(Span { name, from, to, estimate, amount, direction: direction(change) })
    });
    let spans: Vec<Span> = spans.collect();
    if spans.is_empty() {
        return None;
    }
    let says = "the median difference between a run of B and one of A, with its interval; grey: within the error or the noise";
    let picture = Picture::Spans(Spans { unit: Unit::Seconds, spans });
    Some(Chart::new("How sure is it?", says, picture))
}
