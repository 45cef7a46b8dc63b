//! How likely is it that noise alone makes new runs this much slower than the baselines?
//!
//! Uses only the order of the runs: when nothing changed, every order is equally likely, whatever the
//! distribution of run times. By chance the new runs are the slowest of all in one of C(n + m, m) cases, so a
//! test without assumptions needs several runs of each. With fewer, nothing is said: a limit for one more run
//! from a few baselines (Hahn and Meeker, Statistical Intervals, chapter 4) assumes that run times are
//! log-normal. On a busy machine they are not: of 100 checks of one run against 5 or 10 baselines of the same
//! program 7 and 8 failed at 5 %.

use crate::comparison::statistics::{ALPHA, mann_whitney, shift};

/// The probability that numbers from one distribution differ this much; 1 when the new ones are not larger.
/// None when there are too few numbers for one below [`ALPHA`].
pub(super) fn probability(baselines: &[f64], new: &[f64]) -> Option<f64> {
    if !are_enough(baselines.len(), new.len()) {
        return None;
    }
    let p = mann_whitney(baselines, new)?;
    let is_slower = shift(baselines, new)?.estimate > 0.0;
    Some(if is_slower { p } else { 1.0 })
}

/// Whether the test can tell from noise that all new runs are slower than all baselines.
fn are_enough(baselines: usize, new: usize) -> bool {
    // 1 / C(n + m, m): all new ones are the slowest; that they are the fastest is equally likely.
    let slowest: f64 = (1..=new).map(|at| at as f64 / (baselines + at) as f64).product();
    2.0 * slowest <= ALPHA
}

/// How many new runs are needed with this many baselines; none when no reasonable number is enough.
pub(super) fn new_runs_for(baselines: usize) -> Option<usize> {
    const REASONABLE: usize = 10;
    (1..=REASONABLE).find(|new| are_enough(baselines, *new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_runs_of_each_are_enough_and_only_the_order_of_the_runs_counts() {
        let baselines = [1.0, 1.1, 1.2, 1.3];
        let new = [1.31, 1.4, 9.0, 1.5];
        let p = probability(&baselines, &new).unwrap();
        assert!((p - 2.0 / 70.0).abs() < 1e-12, "{p}");
        assert_eq!(probability(&new, &baselines), Some(1.0));
        assert_eq!(probability(&baselines[..3], &new[..3]), None);
        assert_eq!(probability(&baselines[..1], &[1e9; 20]), None);
    }

    #[test]
    fn it_is_known_how_many_runs_are_missing() {
        // C(n + m, m) is 40 or more.
        let needed = [(39, 1), (8, 2), (5, 3), (4, 4), (3, 5), (2, 8)];
        for (baselines, new) in needed {
            assert_eq!(new_runs_for(baselines), Some(new), "{baselines}");
        }
        assert_eq!(new_runs_for(1), None);
    }
}
