//! Minimum, average, maximum and deviation of one number over ranks, and their merge.
//!
//! The merge does not depend on order or grouping, except for the rounding of doubles: integers are
//! summed exactly, deviations after Chan, Golub and `LeVeque` (1979), equal extremes go to the
//! lowest rank.

use std::cmp::Ordering;

use crate::Number;
use crate::data::{Deserialize, Serialize};

/// An extreme and the lowest rank that has it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
struct Extreme {
    value: Number,
    rank: u32,
}

/// The running moments of the finite values seen so far.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
struct Moments {
    n: u64,
    min: Extreme,
    max: Extreme,
    sum: Number,
    mean: f64,
    /// Sum of squared differences from the mean.
    m2: f64,
}

/// An accumulator over ranks.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Statistics {
    moments: Option<Moments>,
    not_finite: u64,
}

impl Statistics {
    /// The statistics of one value of one rank. NaN and infinities are counted separately, so that they do not
    /// poison the rest.
    #[inline]
    pub fn of(value: Number, rank: u32) -> Statistics {
        if !value.is_finite() {
            return Statistics { moments: None, not_finite: 1 };
        }
        let extreme = Extreme { value, rank };
        let moments =
            Moments { n: 1, min: extreme, max: extreme, sum: value, mean: value.as_f64(), m2: 0.0 };
        Statistics { moments: Some(moments), not_finite: 0 }
    }

    /// The statistics of `n` ranks that all have 0, the lowest of them being `lowest_rank`.
    pub fn of_zeros(n: u64, lowest_rank: u32) -> Statistics {
        let mut zeros = Statistics::of(Number::Integer(0), lowest_rank);
        if let Some(moments) = &mut zeros.moments {
            moments.n = n;
        }
        if n == 0 { Statistics::default() } else { zeros }
    }

    /// Adds the value of one more rank.
    pub fn add(&mut self, value: Number, rank: u32) {
        self.merge(&Statistics::of(value, rank));
    }

    /// Merges another accumulator over other ranks.
    #[inline]
    pub fn merge(&mut self, other: &Statistics) {
        let Statistics { moments, not_finite } = other;
        self.not_finite = self.not_finite.saturating_add(*not_finite);
        match (&mut self.moments, moments) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, other) => *own = *other,
            (Some(_), None) => {}
        }
    }

    /// The number of ranks seen.
    pub fn ranks(&self) -> u64 {
        self.moments.map_or(0, |moments| moments.n) + self.not_finite
    }

    /// The result; none before the first finite value.
    pub fn finish(&self) -> Option<Statistic> {
        let Statistics { moments, not_finite } = *self;
        let Moments { n, min, max, sum, mean: _, m2 } = moments?;
        Some(Statistic {
            ranks: self.ranks(),
            min: min.value,
            min_rank: min.rank,
            avg: sum.as_f64() / n as f64,
            max: max.value,
            max_rank: max.rank,
            sum,
            stddev: (m2.max(0.0) / n as f64).sqrt(),
            not_finite,
        })
    }
}

impl Moments {
    #[inline]
    fn merge(&mut self, other: &Moments) {
        let Moments { n, min, max, sum, mean, m2 } = other;
        let both = self.n + n;
        let delta = mean - self.mean;
        let weight = *n as f64 / both as f64;
        self.min.keep(min, min.value.compare(self.min.value));
        self.max.keep(max, max.value.compare(self.max.value).reverse());
        self.sum = self.sum.plus(*sum);
        self.mean += delta * weight;
        self.m2 = self.m2 + m2 + delta * delta * self.n as f64 * weight;
        self.n = both;
    }
}

impl Extreme {
    /// Becomes the other one if that comes first in the given order, or on a lower rank.
    #[inline]
    fn keep(&mut self, other: &Extreme, order: Ordering) {
        if order.is_lt() || (order.is_eq() && other.rank < self.rank) {
            *self = *other;
        }
    }
}

/// Minimum, average and maximum of one number over ranks.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Statistic {
    /// Number of ranks that have the number.
    pub ranks: u64,
    /// The smallest value.
    pub min: Number,
    /// The lowest rank that has it.
    pub min_rank: u32,
    /// The mean.
    #[serde(with = "crate::number::double")]
    #[cfg_attr(feature = "schema", schemars(with = "Number"))]
    pub avg: f64,
    /// The largest value.
    pub max: Number,
    /// The lowest rank that has it.
    pub max_rank: u32,
    /// The sum; exact for integers up to 64 bits, beyond that the nearest double.
    pub sum: Number,
    /// The standard deviation of the population: all ranks that have the number.
    #[serde(with = "crate::number::double")]
    #[cfg_attr(feature = "schema", schemars(with = "Number"))]
    pub stddev: f64,
    /// Number of ranks whose value was NaN or infinite; they count in `ranks` but nowhere else.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_finite: u64,
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Statistic {
    /// Whether the value is 0 on every rank.
    pub fn is_zero(&self) -> bool {
        self.min.is_zero() && self.max.is_zero() && self.not_finite == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[i128]) -> Statistics {
        let mut statistics = Statistics::default();
        for (rank, &value) in (0..).zip(values) {
            statistics.add(Number::Integer(value), rank);
        }
        statistics
    }

    #[test]
    fn extremes_carry_the_lowest_rank_that_has_them() {
        let result = of(&[4, 1, 9, 1, 9]).finish().unwrap();
        assert_eq!((result.min, result.min_rank), (Number::Integer(1), 1));
        assert_eq!((result.max, result.max_rank), (Number::Integer(9), 2));
        assert_eq!(result.sum, Number::Integer(24));
        assert!((result.avg - 4.8).abs() < 1e-12);
    }

    #[test]
    fn the_deviation_is_that_of_the_population() {
        let result = of(&[2, 4, 4, 4, 5, 5, 7, 9]).finish().unwrap();
        assert!((result.stddev - 2.0).abs() < 1e-12);
    }

    #[test]
    fn grouping_and_order_do_not_matter() {
        let values: Vec<i128> = (0..100).map(|i| (i * 7919) % 101).collect();
        let whole = of(&values).finish().unwrap();
        for cut in [1, 33, 99] {
            let mut parts = [Statistics::default(), Statistics::default()];
            for (at, &value) in values.iter().enumerate() {
                let rank = u32::try_from(at).unwrap();
                parts[usize::from(at < cut)].add(Number::Integer(value), rank);
            }
            let [mut first, second] = parts;
            first.merge(&second);
            let merged = first.finish().unwrap();
            assert_eq!(merged.min_rank, whole.min_rank);
            assert_eq!(merged.max_rank, whole.max_rank);
            assert_eq!(merged.sum, whole.sum);
            assert!((merged.stddev - whole.stddev).abs() < 1e-9);
        }
    }

    #[test]
    fn a_value_that_is_not_finite_does_not_poison_the_rest() {
        let mut statistics = Statistics::of(Number::Double(f64::NAN), 0);
        assert_eq!(statistics.finish(), None);
        statistics.add(Number::Double(2.0), 1);
        statistics.add(Number::Double(f64::INFINITY), 2);
        let result = statistics.finish().unwrap();
        assert_eq!((result.ranks, result.not_finite), (3, 2));
        assert_eq!(result.max, Number::Double(2.0));
    }

    #[test]
    fn zeros_of_absent_ranks_count_as_zeros() {
        let mut statistics = of(&[6, 6]);
        statistics.merge(&Statistics::of_zeros(2, 2));
        let result = statistics.finish().unwrap();
        assert_eq!((result.min, result.min_rank, result.ranks), (Number::Integer(0), 2, 4));
        assert!((result.avg - 3.0).abs() < 1e-12 && (result.stddev - 3.0).abs() < 1e-12);
        assert_eq!(Statistics::of_zeros(0, 0), Statistics::default());
    }
}
