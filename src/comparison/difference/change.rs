//! What does a change mean? Three kinds of numbers allow three kinds of statements.

use gyan_results::{Change, ChangeVerdict, SideNumber};

use crate::comparison::judge::{self, Answer, FamilyRow, Judged};
use crate::statistics::{NORMAL_QUANTILE, Sides};

/// A number of one run, with its standard error if it is an estimate: 0 for a count, none when the error is not
/// known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OfRun {
    pub(super) value: f64,
    pub(super) error: Option<f64>,
}

impl OfRun {
    pub(super) fn exact(value: f64) -> OfRun {
        OfRun { value, error: Some(0.0) }
    }
}

/// The number in each run of a side; none when no run has it. When only some runs have it, it is 0 in the
/// others.
pub(super) fn side(runs: &[Option<OfRun>]) -> Option<SideNumber> {
    if runs.iter().all(Option::is_none) {
        return None;
    }
    let number = runs.len() as f64;
    let runs = runs.iter().map(|run| run.unwrap_or(OfRun::exact(0.0)));
    let squares = runs.clone().map(|run| run.error.map(|error| error * error));
    let squares: Option<f64> = squares.sum();
    let runs: Vec<f64> = runs.map(|run| run.value).collect();
    let mean = runs.iter().sum::<f64>() / number;
    Some(SideNumber { mean, error: squares.map(|of| of.sqrt() / number), runs })
}

/// What changed from one side to the other; [`judge()`] gives the verdict.
pub(super) fn change(a: Option<SideNumber>, b: Option<SideNumber>) -> Change {
    let error = |side: &Option<SideNumber>| side.as_ref().map_or(Some(0.0), |of| of.error);
    let error = error(&a).zip(error(&b)).map(|(a, b)| a.hypot(b));
    let mut change = Change { a, b, error, ..Change::default() };
    let [a, b] = change.means();
    change.change = b - a;
    change
}

/// Sets the verdicts of a family of rows, each given with whether it is a count.
pub(super) fn judge<'c>(family: impl IntoIterator<Item = (&'c mut Change, bool)>) {
    let mut tested: Vec<&mut Change> = Vec::new();
    for (change, is_count) in family {
        match without_test(change, is_count) {
            Some(verdict) => change.verdict = verdict,
            None => tested.push(change),
        }
    }
    let rows: Vec<FamilyRow> = tested.iter().map(|change| row(change)).collect();
    let judged = judge::judge(&rows, Sides::Both);
    for (change, Judged { shift, p, p_adjusted, answer }) in tested.into_iter().zip(judged) {
        (change.shift, change.p, change.p_adjusted) = (shift, p, p_adjusted);
        let is_within = |error: f64| error > 0.0 && change.change.abs() <= NORMAL_QUANTILE * error;
        change.verdict = match answer {
            Answer::Bound => ChangeVerdict::LowerBound,
            _ if change.error.is_some_and(is_within) => ChangeVerdict::WithinError,
            Answer::Yes => ChangeVerdict::Changed,
            Answer::NotShown => ChangeVerdict::WithinNoise,
            Answer::TooFew(needed) => {
                change.runs_needed = needed;
                ChangeVerdict::Unproven
            }
        };
    }
}

fn row(change: &Change) -> FamilyRow<'_> {
    let [a, b] = [&change.a, &change.b]
        .map(|side| side.as_ref().map_or(&[][..], |of: &SideNumber| of.runs.as_slice()));
    FamilyRow { a, b, is_bound: change.error.is_none() }
}

/// What is certain without a test: what is the same in each run of a side, and what only one side has.
fn without_test(change: &Change, is_count: bool) -> Option<ChangeVerdict> {
    let (Some(a), Some(b)) = (&change.a, &change.b) else {
        let sides = [&change.a, &change.b].into_iter().flatten();
        let is_zero = sides.flat_map(|side| &side.runs).any(|run| *run == 0.0);
        return Some(if is_zero { ChangeVerdict::WithinNoise } else { ChangeVerdict::Changed });
    };
    let is_constant =
        |of: &SideNumber| of.runs.windows(2).all(|runs| runs[0].total_cmp(&runs[1]).is_eq());
    if a.runs == b.runs {
        return Some(ChangeVerdict::Same);
    }
    let is_exact = is_count && is_constant(a) && is_constant(b);
    let is_same = change.change == 0.0;
    is_exact.then_some(if is_same { ChangeVerdict::Same } else { ChangeVerdict::Changed })
}
