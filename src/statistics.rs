//! Statements about numbers that differ from run to run, without assuming a distribution: run times have a long
//! tail, and there are few of them.

use gyan_results::Shift;

/// The type I error that intervals and tests keep to.
pub(crate) const ALPHA: f64 = 0.05;
/// The quantile of the normal distribution at `1 - ALPHA / 2`.
pub(crate) const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;
/// Up to this many numbers on each side the distribution of U is exact: its counts are whole numbers below
/// 2^53.
const EXACT_UP_TO: usize = 25;

/// Which differences a test looks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sides {
    /// Larger or smaller numbers: two-sided.
    Both,
    /// Only larger ones: one-sided.
    Larger,
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The number in the middle, or the mean of the two; none of no numbers.
pub(crate) fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(sorted.len() / 2 - 1)?, upper))
}

/// The median; none of no numbers.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    middle(&sorted(values))
}

/// How far `b` is from `a`: the median of all differences, with the interval that belongs to the test of
/// [`mann_whitney`] (Hodges and Lehmann 1963; as R's `wilcox.test(b, a, conf.int = TRUE)` has it).
pub(crate) fn shift(a: &[f64], b: &[f64]) -> Option<Shift> {
    let differences: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    let sorted = sorted(&differences);
    let estimate = middle(&sorted)?;
    let pairs = sorted.len();
    let (left_out, tail) = if a.len().max(b.len()) <= EXACT_UP_TO {
        // The first U at which the distribution reaches half of the error.
        let cumulated = distribution(a.len(), b.len());
        let at = cumulated.iter().position(|below| *below >= ALPHA / 2.0).unwrap_or(0).max(1);
        (at - 1, *cumulated.get(at - 1)?)
    } else {
        let half = pairs as f64 / 2.0;
        let width = NORMAL_QUANTILE * deviation(a.len(), b.len(), 0.0);
        // It is positive and below the number of pairs.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let out = (half - width).max(0.0) as usize;
        (out, ALPHA / 2.0)
    };
    let (low, high) = (*sorted.get(left_out)?, *sorted.get(pairs - 1 - left_out)?);
    Some(Shift { estimate, low, high, confidence: 1.0 - 2.0 * tail })
}

/// The probability that numbers of `b` from the distribution of `a` differ from it at least as much as these: the test of
/// Mann and Whitney (1947). Exact for up to 25 numbers on each side, else by the normal distribution with corrections for ties
/// and continuity. None when a side has no numbers.
pub(crate) fn mann_whitney(a: &[f64], b: &[f64], sides: Sides) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let all = sorted(&[a, b].concat());
    let [larger, smaller] = if a.len().max(b.len()) <= EXACT_UP_TO {
        exact(a, &all)
    } else {
        by_normal_distribution(a, b, &all)
    };
    Some(match sides {
        Sides::Both => (2.0 * larger.min(smaller)).min(1.0),
        Sides::Larger => larger,
    })
}

/// The smallest p that any numbers can have in this test: all of `b` are larger than all of `a`.
pub(crate) fn least_p(a: usize, b: usize, sides: Sides) -> f64 {
    // 1 / C(a + b, b)
    let extreme: f64 = (1..=b).map(|at| at as f64 / (a + at) as f64).product();
    match sides {
        Sides::Both => (2.0 * extreme).min(1.0),
        Sides::Larger => extreme,
    }
}

/// The probabilities of numbers of `b` that are as large as these or larger, and as small or smaller; `all`: those of both
/// sides, sorted.
fn by_normal_distribution(a: &[f64], b: &[f64], all: &[f64]) -> [f64; 2] {
    let greater = |of: &f64| b.iter().filter(|b| *b > of).count() as f64;
    let equal = |of: &f64| b.iter().filter(|b| *b == of).count() as f64;
    let u: f64 = a.iter().map(|of| greater(of) + equal(of) / 2.0).sum();
    let pairs = (a.len() * b.len()) as f64;
    let ties: f64 = all
        .chunk_by(|one, other| one == other)
        .map(|same| same.len() as f64)
        .map(|same| same.powi(3) - same)
        .sum();
    let deviation = deviation(a.len(), b.len(), ties);
    if deviation == 0.0 {
        return [1.0; 2];
    }
    [u, pairs - u].map(|u| {
        let z = (u - pairs / 2.0 - 0.5) / deviation;
        upper_tail(z)
    })
}

/// The same over all ways to choose as many of the numbers of both sides as `a` has: equal numbers share their ranks (Lehmann,
/// Nonparametrics, 1.4). Numbers with few digits often tie, and for small samples the normal distribution would go below the
/// smallest possible p.
fn exact(a: &[f64], all: &[f64]) -> [f64; 2] {
    // Twice the rank, from 1: a whole number even for ties.
    let rank = |value: f64| {
        let below = all.partition_point(|other| other.total_cmp(&value).is_lt());
        let up_to = all.partition_point(|other| other.total_cmp(&value).is_le());
        below + up_to + 1
    };
    let sum_of_a: usize = a.iter().map(|value| rank(*value)).sum();
    let most: usize = all.iter().rev().take(a.len()).map(|value| rank(*value)).sum();
    // The number of ways to choose this many numbers with this sum of ranks.
    let mut ways = vec![vec![0.0_f64; most + 1]; a.len() + 1];
    ways[0][0] = 1.0;
    for rank in all.iter().map(|value| rank(*value)) {
        for chosen in (1..=a.len()).rev() {
            let (fewer, with) = ways.split_at_mut(chosen);
            let sums = with[0].iter_mut().skip(rank).zip(&fewer[chosen - 1]);
            sums.for_each(|(with, without)| *with += without);
        }
    }
    let ways = &ways[a.len()];
    let part = |of: &[f64]| of.iter().sum::<f64>() / ways.iter().sum::<f64>();
    [part(&ways[..=sum_of_a]), part(&ways[sum_of_a..])]
}

/// The standard deviation of U; `ties` is the sum of t^3 - t over groups of t equal numbers.
fn deviation(a: usize, b: usize, ties: f64) -> f64 {
    let (a, b) = (a as f64, b as f64);
    let all = a + b;
    let corrected = if all > 1.0 { all + 1.0 - ties / (all * (all - 1.0)) } else { 0.0 };
    (a * b / 12.0 * corrected).max(0.0).sqrt()
}

/// P(U <= u) for each u, of `a` and `b` numbers without ties: the largest number belongs to one side or the
/// other.
fn distribution(a: usize, b: usize) -> Vec<f64> {
    // The coefficients of a Gaussian binomial: multiplied by 1 - q^(b + i), divided by 1 - q^i.
    let pairs = a * b;
    let mut ways = vec![0.0_f64; pairs + 1];
    ways[0] = 1.0;
    for i in 1..=a {
        for at in (b + i..=pairs).rev() {
            ways[at] -= ways[at - b - i];
        }
        for at in i..=pairs {
            ways[at] += ways[at - i];
        }
    }
    let all: f64 = ways.iter().sum();
    let mut sum = 0.0;
    let cumulate = |ways: &f64| {
        sum += ways;
        sum / all
    };
    ways.iter().map(cumulate).collect()
}

/// The p of each of several tests so that the probability of any false one below [`ALPHA`] is at most that (Holm 1979), in the
/// order of `p`. However the tests depend on each other: the run and the time in MPI do.
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0_f64; p.len()];
    let mut most = 0.0_f64;
    for (smaller, at) in order.into_iter().enumerate() {
        most = most.max(p[at] * (p.len() - smaller) as f64).min(1.0);
        adjusted[at] = most;
    }
    adjusted
}

/// The p of each of several tests so that of those below a bound, a part of at most that is false (Benjamini and Hochberg 1995), in
/// the order of `p`.
pub(crate) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0_f64; p.len()];
    let mut least = 1.0_f64;
    for (smaller, at) in order.into_iter().enumerate().rev() {
        least = least.min(p[at] * p.len() as f64 / (smaller + 1) as f64);
        adjusted[at] = least;
    }
    adjusted
}

/// The probability that a number of the standard normal distribution is this large or larger.
pub(crate) fn upper_tail(z: f64) -> f64 {
    libm::erfc(z / std::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(value: f64, expected: f64) {
        assert!(
            (value - expected).abs() <= 1e-9 * expected.abs().max(1.0),
            "{value} for {expected}"
        );
    }

    fn both(a: &[f64], b: &[f64]) -> Option<f64> {
        mann_whitney(a, b, Sides::Both)
    }

    const A: [f64; 5] = [1.83, 0.50, 1.62, 2.48, 1.68];
    const B: [f64; 6] = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29];

    // Expected values are those of SciPy 1.16: stats.mannwhitneyu, quantile_test, false_discovery_control, and of R's
    // definition of the interval of wilcox.test.

    #[test]
    fn the_exact_test_is_that_of_scipy() {
        close(both(&A, &B).unwrap(), 0.329_004_329_004_329);
        let (low, high) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        close(both(&low, &high).unwrap(), 0.028_571_428_571_428_57);
        close(both(&high, &low).unwrap(), 0.028_571_428_571_428_57);
        // With three on each side nothing is significant.
        close(both(&low[..3], &high[..3]).unwrap(), 0.1);
        assert_eq!(both(&A, &[]), None);
    }

    #[test]
    fn ties_of_few_numbers_are_exact() {
        // SciPy's permutation_test of the statistic of mannwhitneyu, with all permutations.
        let a = [1.0, 2.0, 2.0, 3.0, 4.0, 4.0];
        let b = [2.0, 3.0, 4.0, 5.0, 5.0, 6.0, 6.0];
        close(both(&a, &b).unwrap(), 0.069_930_069_930_069_93);
        close(both(&[1.2, 1.2, 1.3, 1.4], &[1.3, 1.4, 1.4, 1.5]).unwrap(), 0.2);
        // The normal distribution would give 0.047 with three on each side.
        close(both(&[1.0; 3], &[2.0; 3]).unwrap(), 0.1);
        close(both(&[1.0; 4], &[2.0; 4]).unwrap(), 0.028_571_428_571_428_57);
        close(both(&[2.0; 4], &[2.0; 5]).unwrap(), 1.0);
    }

    #[test]
    fn the_test_for_many_numbers_and_ties_is_that_of_scipy() {
        let [a, b] = [10, 12].map(|n| (0..30).map(|i| f64::from(i % n)).collect::<Vec<f64>>());
        close(both(&a, &b).unwrap(), 0.727_200_376_196_544_5);
        let a: Vec<f64> = (0..50).map(f64::from).collect();
        let b: Vec<f64> = a.iter().map(|a| a + 7.5).collect();
        close(both(&a, &b).unwrap(), 0.016_907_707_503_191_156);
    }

    #[test]
    fn a_shift_is_the_median_of_differences_with_the_interval_of_the_test() {
        let Shift { estimate, low, high, confidence } = shift(&A, &B).unwrap();
        close(estimate, -0.681);
        close(low, -1.42);
        close(high, 0.43);
        assert!(confidence > 0.95 && confidence < 1.0, "{confidence}");
        // With three on each side the interval spans all numbers, and says that its confidence is low.
        let few = shift(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]).unwrap();
        assert_eq!((few.low, few.estimate, few.high), (-1.0, 1.0, 3.0));
        close(few.confidence, 0.9);
        let many: Vec<f64> = (0..60).map(f64::from).collect();
        let same = shift(&many, &many).unwrap();
        assert!(same.estimate == 0.0 && same.low == -same.high && same.high > 0.0, "{same:?}");
    }

    #[test]
    fn one_side_is_that_of_scipy() {
        let larger = |a: &[f64], b: &[f64]| mann_whitney(a, b, Sides::Larger).unwrap();
        // alternative = "less", since SciPy asks whether the first is smaller.
        close(larger(&A, &B), 0.876_623_376_623_376_6);
        close(larger(&B, &A), 0.164_502_164_502_164_5);
        close(larger(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]), 1.0 / 70.0);
        close(larger(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0]), 1.0);
        let a: Vec<f64> = (0..50).map(f64::from).collect();
        let b: Vec<f64> = a.iter().map(|a| a + 7.5).collect();
        close(larger(&a, &b), 0.008_453_853_751_595_578);
    }

    #[test]
    fn no_numbers_have_a_smaller_p_than_those_apart() {
        for (a, b) in [(4, 4), (5, 3), (8, 2), (2, 2), (1, 9)] {
            let values = |from: usize, to: usize| (from..to).map(|at| at as f64).collect();
            let (low, high): (Vec<f64>, Vec<f64>) = (values(0, a), values(a, a + b));
            for sides in [Sides::Both, Sides::Larger] {
                close(mann_whitney(&low, &high, sides).unwrap(), least_p(a, b, sides));
            }
        }
    }

    #[test]
    fn several_tests_are_corrected_as_r_does() {
        // p.adjust(p, "holm")
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.2, 0.005]);
        for (adjusted, expected) in adjusted.iter().zip([0.04, 0.09, 0.09, 0.2, 0.025]) {
            close(*adjusted, expected);
        }
        assert_eq!(holm(&[]), [0.0; 0]);
        // p.adjust(p, "BH")
        let adjusted = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.2, 0.005]);
        for (adjusted, expected) in adjusted.iter().zip([0.025, 0.05, 0.05, 0.2, 0.025]) {
            close(*adjusted, expected);
        }
    }
}
