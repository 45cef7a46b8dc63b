//! Where did the run time change? Exact, row by row.
//!
//! With n calls of t seconds each, the change of n t is the change of n times the mean of both t, plus the mean
//! of both n times the change of t. Swapping the sides only flips the sign, and there is no remainder.

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{
    CallSummary, Change, PartDifference, PartKind, PhaseDifference, SideNumber, Split, Summary,
};

use super::change::{OfRun, change, judge, side};
use crate::comparison::each_once;

/// Parts below this share of the run are judged as a family of their own, so that they do not weaken the
/// verdict on the others. Membership does not depend on how the parts differ.
const LEAST_SHARE: f64 = 0.01;

/// The calls of a function, of an average rank.
#[derive(Clone, Copy)]
struct Calls {
    number: f64,
    /// None when they were not timed.
    time: Option<OfRun>,
}

/// The run or a phase of it, of an average rank.
struct AverageTime<'a> {
    time_s: f64,
    entries: f64,
    calls: BTreeMap<&'a str, Calls>,
}

impl<'a> AverageTime<'a> {
    fn new(time_s: f64, entries: f64, calls: &'a [CallSummary], ranks: f64) -> AverageTime<'a> {
        let calls = calls.iter().filter(|call| !call.count.is_zero()).map(|call| {
            let time = call.time_s.as_ref().map(|time| OfRun {
                value: time.sum.as_f64() / ranks,
                error: call.time_error_s.map(|error| error / ranks),
            });
            (call.name.as_str(), Calls { number: call.count.sum.as_f64() / ranks, time })
        });
        AverageTime { time_s, entries, calls: calls.collect() }
    }

    /// None when the time of each rank is not known.
    fn of_run(summary: &'a Summary) -> Option<AverageTime<'a>> {
        let elapsed = summary.rank_times_s()?;
        Some(AverageTime::new(elapsed.avg, 1.0, &summary.calls, elapsed.ranks as f64))
    }

    /// None when the run does not have the phase.
    fn of_phase(summary: &'a Summary, name: &str) -> Option<AverageTime<'a>> {
        let phase = summary.phases.iter().find(|phase| phase.name == name)?;
        let ranks = f64::from(summary.ranks.reduced.max(1));
        let (time_s, entries) = (phase.time_s.sum.as_f64(), phase.entries.sum.as_f64());
        Some(AverageTime::new(time_s / ranks, entries / ranks, &phase.calls, ranks))
    }
}

type Runs<'a> = [Option<AverageTime<'a>>];

fn side_of<'a>(
    runs: &Runs<'a>,
    of: impl Fn(&AverageTime<'a>) -> Option<OfRun>,
) -> Option<SideNumber> {
    side(&runs.iter().map(|run| run.as_ref().and_then(&of)).collect::<Vec<_>>())
}

/// How much of the change from `a` to `b` comes from the number of calls, and how much from the time of each:
/// `number` and `seconds` of both.
fn split(numbers: [f64; 2], seconds: [f64; 2]) -> Split {
    let each = |side: usize| (numbers[side] > 0.0).then(|| seconds[side] / numbers[side]);
    let each_s = [each(0).or(each(1)), each(1).or(each(0))].map(|each| each.unwrap_or(0.0));
    Split {
        number_a: numbers[0],
        number_b: numbers[1],
        each_a_s: each_s[0],
        each_b_s: each_s[1],
        by_number_s: (numbers[1] - numbers[0]) * f64::midpoint(each_s[0], each_s[1]),
        by_each_s: f64::midpoint(numbers[0], numbers[1]) * (each_s[1] - each_s[0]),
    }
}

/// The whole, and its parts: they add up to it.
fn explained<'a>(a: &Runs<'a>, b: &Runs<'a>) -> (Change, Vec<PartDifference>) {
    let time = |whole: &AverageTime| Some(OfRun::exact(whole.time_s));
    let mut whole = change(side_of(a, time), side_of(b, time));
    judge([(&mut whole, false)]);
    let all = || a.iter().chain(b).flatten().flat_map(|whole| &whole.calls);
    // What was not timed in one run counts as outside MPI in all.
    let not_timed: BTreeSet<&str> =
        all().filter(|(_, calls)| calls.time.is_none()).map(|(name, _)| *name).collect();
    let names: BTreeSet<&str> =
        all().map(|(name, _)| *name).filter(|name| !not_timed.contains(name)).collect();
    let mut parts: Vec<PartDifference> = Vec::new();
    for &name in &names {
        let time = |whole: &AverageTime| whole.calls.get(name)?.time;
        let number = |whole: &AverageTime| {
            Some(OfRun::exact(whole.calls.get(name).map_or(0.0, |of| of.number)))
        };
        let numbers = change(side_of(a, number), side_of(b, number)).means();
        let time = change(side_of(a, time), side_of(b, time));
        let split = Some(split(numbers, time.means()));
        parts.push(PartDifference { name: name.to_owned(), kind: PartKind::Function, time, split });
    }
    let outside = |whole: &AverageTime| {
        let timed = || whole.calls.iter().filter(|(name, _)| names.contains(*name));
        let in_calls = || timed().filter_map(|(_, calls)| calls.time);
        let squares = in_calls().map(|of| of.error.map(|error| error * error));
        let squares: Option<f64> = squares.sum();
        let in_calls_s: f64 = in_calls().map(|of| of.value).sum();
        Some(OfRun { value: whole.time_s - in_calls_s, error: squares.map(f64::sqrt) })
    };
    let outside_change = change(side_of(a, outside), side_of(b, outside));
    let by_seconds = |one: &PartDifference, other: &PartDifference| {
        other.time.change.abs().total_cmp(&one.time.change.abs())
    };
    parts.sort_by(by_seconds);
    let (name, kind) = (String::new(), PartKind::Outside);
    parts.push(PartDifference { name, kind, time: outside_change, split: None });
    let least_s = LEAST_SHARE * whole.larger();
    let (large, small): (Vec<_>, Vec<_>) =
        parts.iter_mut().map(|part| &mut part.time).partition(|time| time.larger() >= least_s);
    judge(large.into_iter().map(|time| (time, false)));
    judge(small.into_iter().map(|time| (time, false)));
    (whole, parts)
}

/// The change of the run time and its parts; none when a run does not know its time.
pub(super) fn run_time(a: &[&Summary], b: &[&Summary]) -> Option<(Change, Vec<PartDifference>)> {
    let [a, b] =
        [a, b].map(|side| side.iter().map(|run| AverageTime::of_run(run)).collect::<Vec<_>>());
    a.iter().chain(&b).all(Option::is_some).then(|| explained(&a, &b))
}

/// The phases of both sides, those with the most seconds first.
pub(super) fn phases(a: &[&Summary], b: &[&Summary]) -> Vec<PhaseDifference> {
    let has_phases = |side: &[&Summary]| side.iter().any(|run| !run.phases.is_empty());
    if !has_phases(a) || !has_phases(b) {
        return Vec::new();
    }
    let all = a.iter().chain(b).flat_map(|run| &run.phases);
    let names: Vec<&str> = each_once(all.map(|phase| phase.name.as_str()));
    let mut phases: Vec<PhaseDifference> = names.iter().map(|name| phase(a, b, name)).collect();
    judge(phases.iter_mut().map(|phase| (&mut phase.time, false)));
    phases.sort_by(|one, other| other.time.change.abs().total_cmp(&one.time.change.abs()));
    phases
}

fn phase(a: &[&Summary], b: &[&Summary], name: &str) -> PhaseDifference {
    let [a, b] = [a, b].map(|side| {
        side.iter()
            .map(|run| AverageTime::of_phase(run, name))
            .collect::<Vec<Option<AverageTime>>>()
    });
    let (time, parts) = explained(&a, &b);
    let entries = |whole: &AverageTime| Some(OfRun::exact(whole.entries));
    let numbers = change(side_of(&a, entries), side_of(&b, entries)).means();
    let split = split(numbers, time.means());
    PhaseDifference { name: name.to_owned(), time, split, parts }
}
