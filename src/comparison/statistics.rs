//! Statements about numbers that differ from run to run, without assuming a distribution: run times have a long
//! tail, and there are few of them.

/// The type I error that intervals and tests keep to.
pub(crate) const ALPHA: f64 = 0.05;
/// The quantile of the normal distribution at `1 - ALPHA / 2`.
pub(crate) const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;
/// Runs needed on each side for a difference to be significant at [`ALPHA`]: with 3 the smallest possible p is
/// 0.1.
pub(crate) const RUNS_AT_LEAST: usize = 4;
/// Up to this many numbers on each side the distribution of U is exact: its counts are whole numbers below
/// 2^53.
const EXACT_UP_TO: usize = 25;

/// An estimate and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) estimate: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The confidence level of the interval, between 0 and 1: with few numbers it cannot reach `1 - ALPHA`.
    pub(crate) confidence: f64,
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> Option<f64> {
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
pub(crate) fn shift(a: &[f64], b: &[f64]) -> Option<Interval> {
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
    Some(Interval { estimate, low, high, confidence: 1.0 - 2.0 * tail })
}

/// The probability that numbers from one distribution differ at least as much as `a` and `b`: the two-sided test of Mann
/// and Whitney (1947). Exact for up to 25 numbers on each side, else by the normal distribution with corrections for ties
/// and continuity. None when a side has no numbers.
pub(crate) fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let all = sorted(&[a, b].concat());
    if a.len().max(b.len()) <= EXACT_UP_TO {
        return Some(exact(a, &all));
    }
    let greater = |of: &f64| b.iter().filter(|b| *b > of).count() as f64;
    let equal = |of: &f64| b.iter().filter(|b| *b == of).count() as f64;
    let u: f64 = a.iter().map(|of| greater(of) + equal(of) / 2.0).sum();
    let pairs = (a.len() * b.len()) as f64;
    let least = u.min(pairs - u);
    let ties: f64 = all
        .chunk_by(|one, other| one == other)
        .map(|same| same.len() as f64)
        .map(|same| same.powi(3) - same)
        .sum();
    let deviation = deviation(a.len(), b.len(), ties);
    if deviation == 0.0 {
        return Some(1.0);
    }
    let z = ((pairs / 2.0 - least - 0.5) / deviation).max(0.0);
    Some(libm::erfc(z / std::f64::consts::SQRT_2))
}

/// The p of the test over all ways to choose as many of the numbers of both sides (`all`, sorted) as `a` has:
/// equal numbers share their ranks (Lehmann, Nonparametrics, 1.4). Numbers with few digits often tie, and for
/// small samples the normal distribution would go below the smallest possible p.
fn exact(a: &[f64], all: &[f64]) -> f64 {
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
    (2.0 * part(&ways[..=sum_of_a]).min(part(&ways[sum_of_a..]))).min(1.0)
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

/// The p of each of several tests so that at most a share [`ALPHA`] of those below it are false discoveries on average
/// (Benjamini and Hochberg 1995), in the order of `p`.
pub(crate) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*other].total_cmp(&p[*one]));
    let mut adjusted = vec![1.0_f64; p.len()];
    let mut least = 1.0_f64;
    for (from_last, at) in order.into_iter().enumerate() {
        let rank = (p.len() - from_last) as f64;
        least = least.min(p[at] * p.len() as f64 / rank);
        adjusted[at] = least;
    }
    adjusted
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

    const A: [f64; 5] = [1.83, 0.50, 1.62, 2.48, 1.68];
    const B: [f64; 6] = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29];

    // Expected values are those of SciPy 1.16: stats.mannwhitneyu, quantile_test, false_discovery_control, and of R's
    // definition of the interval of wilcox.test.

    #[test]
    fn the_exact_test_is_that_of_scipy() {
        close(mann_whitney(&A, &B).unwrap(), 0.329_004_329_004_329);
        let (low, high) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        close(mann_whitney(&low, &high).unwrap(), 0.028_571_428_571_428_57);
        close(mann_whitney(&high, &low).unwrap(), 0.028_571_428_571_428_57);
        // With three on each side nothing is significant.
        close(mann_whitney(&low[..3], &high[..3]).unwrap(), 0.1);
        assert_eq!(mann_whitney(&A, &[]), None);
    }

    #[test]
    fn ties_of_few_numbers_are_exact() {
        // SciPy's permutation_test of the statistic of mannwhitneyu, with all permutations.
        let a = [1.0, 2.0, 2.0, 3.0, 4.0, 4.0];
        let b = [2.0, 3.0, 4.0, 5.0, 5.0, 6.0, 6.0];
        close(mann_whitney(&a, &b).unwrap(), 0.069_930_069_930_069_93);
        close(mann_whitney(&[1.2, 1.2, 1.3, 1.4], &[1.3, 1.4, 1.4, 1.5]).unwrap(), 0.2);
        // The normal distribution would give 0.047 with three on each side.
        close(mann_whitney(&[1.0; 3], &[2.0; 3]).unwrap(), 0.1);
        close(mann_whitney(&[1.0; 4], &[2.0; 4]).unwrap(), 0.028_571_428_571_428_57);
        close(mann_whitney(&[2.0; 4], &[2.0; 5]).unwrap(), 1.0);
    }

    #[test]
    fn the_test_for_many_numbers_and_ties_is_that_of_scipy() {
        let [a, b] = [10, 12].map(|n| (0..30).map(|i| f64::from(i % n)).collect::<Vec<f64>>());
        close(mann_whitney(&a, &b).unwrap(), 0.727_200_376_196_544_5);
        let a: Vec<f64> = (0..50).map(f64::from).collect();
        let b: Vec<f64> = a.iter().map(|a| a + 7.5).collect();
        close(mann_whitney(&a, &b).unwrap(), 0.016_907_707_503_191_156);
    }

    #[test]
    fn a_shift_is_the_median_of_differences_with_the_interval_of_the_test() {
        let Interval { estimate, low, high, confidence } = shift(&A, &B).unwrap();
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
    fn the_rate_of_false_discoveries_is_that_of_scipy() {
        let adjusted = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.2, 0.005]);
        for (adjusted, expected) in adjusted.iter().zip([0.025, 0.05, 0.05, 0.2, 0.025]) {
            close(*adjusted, expected);
        }
        assert_eq!(benjamini_hochberg(&[]), [0.0; 0]);
    }
}
