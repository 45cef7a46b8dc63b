//! What does a change mean? Three kinds of numbers allow three kinds of statements.

use gyan_results::{Change, ChangeVerdict, Shift, SideNumber};

use crate::comparison::statistics::{
    ALPHA, Interval, NORMAL_QUANTILE, RUNS_AT_LEAST, benjamini_hochberg, mann_whitney, shift,
};

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

/// What changed from one side to the other; [`judge`] gives the verdict.
pub(super) fn change(a: Option<SideNumber>, b: Option<SideNumber>) -> Change {
    let mean = |side: &Option<SideNumber>| side.as_ref().map_or(0.0, |of| of.mean);
    let error = |side: &Option<SideNumber>| side.as_ref().map_or(Some(0.0), |of| of.error);
    let of_both = a.as_ref().zip(b.as_ref());
    let shift = of_both
        .filter(|(a, b)| a.runs.len().min(b.runs.len()) > 1)
        .and_then(|(a, b)| shift(&a.runs, &b.runs))
        .map(|Interval { estimate, low, high, confidence }| Shift {
            estimate,
            low,
            high,
            confidence,
        });
    let p = of_both
        .filter(|(a, b)| a.runs.len().min(b.runs.len()) >= RUNS_AT_LEAST)
        .and_then(|(a, b)| mann_whitney(&a.runs, &b.runs));
    Change {
        change: mean(&b) - mean(&a),
        error: error(&a).zip(error(&b)).map(|(a, b)| a.hypot(b)),
        shift,
        p,
        p_adjusted: None,
        verdict: ChangeVerdict::Same,
        a,
        b,
    }
}

/// Sets the verdicts of a family of rows, each given with whether it is a count.
pub(super) fn judge<'c>(family: impl IntoIterator<Item = (&'c mut Change, bool)>) {
    let mut family: Vec<(&mut Change, bool)> = family.into_iter().collect();
    let is_constant = |change: &Change| {
        let mut sides = [&change.a, &change.b].into_iter().flatten();
        sides.all(|side| side.runs.windows(2).all(|runs| runs[0].total_cmp(&runs[1]).is_eq()))
    };
    for (change, is_count) in &mut family {
        if *is_count && is_constant(change) {
            (change.shift, change.p) = (None, None);
        }
    }
    let tests: Vec<f64> = family.iter().filter_map(|(change, _)| change.p).collect();
    let mut adjusted = benjamini_hochberg(&tests).into_iter();
    for (change, is_count) in family {
        change.p_adjusted = change.p.and_then(|_| adjusted.next());
        change.verdict = verdict(change, is_count && is_constant(change));
    }
}

fn verdict(change: &Change, is_exact: bool) -> ChangeVerdict {
    let (Some(a), Some(b)) = (&change.a, &change.b) else {
        let sides = [&change.a, &change.b].into_iter().flatten();
        let is_zero = sides.flat_map(|side| &side.runs).any(|run| *run == 0.0);
        return if is_zero { ChangeVerdict::WithinNoise } else { ChangeVerdict::Changed };
    };
    if is_exact {
        return if change.change == 0.0 { ChangeVerdict::Same } else { ChangeVerdict::Changed };
    }
    if a.runs == b.runs {
        return ChangeVerdict::Same;
    }
    let is_within = |error: f64| error > 0.0 && change.change.abs() <= NORMAL_QUANTILE * error;
    if change.error.is_some_and(is_within) {
        return ChangeVerdict::WithinError;
    }
    let (low, high) = (f64::min, f64::max);
    let least = |runs: &[f64]| runs.iter().copied().fold(f64::INFINITY, low);
    let most = |runs: &[f64]| runs.iter().copied().fold(f64::NEG_INFINITY, high);
    let overlap = least(&a.runs).max(least(&b.runs)) <= most(&a.runs).min(most(&b.runs));
    match change.p_adjusted {
        Some(p) if p <= ALPHA => ChangeVerdict::Changed,
        _ if overlap => ChangeVerdict::WithinNoise,
        // No run of one side is like one of the other, but with so few runs that could be chance.
        _ => ChangeVerdict::Unproven,
    }
}
