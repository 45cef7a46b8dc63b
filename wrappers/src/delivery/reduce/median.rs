//! Which rank is the median? Found while parts of a run are merged: a bounded number of ranks is kept with
//! their values, each of which stands for others with nearly the same value.

use gyan_results::sort_by;
use serde::{Deserialize, Serialize};

/// How many are kept: with fewer ranks the median is exact, with any number it is within a few hundredths of
/// the middle.
const KEPT: usize = 64;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
struct Value {
    of: f64,
    rank: u32,
    /// How many ranks it stands for.
    weight: u64,
}

/// Values of ranks, the smallest first.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Middle(Vec<Value>);

impl Middle {
    pub(super) fn from_time(value: f64, rank: u32) -> Middle {
        Middle(vec![Value { of: value, rank, weight: 1 }])
    }

    pub(super) fn merge(&mut self, other: Middle) {
        self.0.extend(other.0);
        sort_by(&mut self.0, |a, b| a.of.total_cmp(&b.of).then(a.rank.cmp(&b.rank)));
        while self.0.len() > KEPT {
            self.halve();
        }
    }

    /// Of two neighbours the one that stands for more stays, for both.
    fn halve(&mut self) {
        let pairs = self.0.chunks(2).filter_map(|pair| match *pair {
            [one, other] => {
                let stays = if other.weight > one.weight { other } else { one };
                Some(Value { weight: one.weight + other.weight, ..stays })
            }
            [one] => Some(one),
            _ => None,
        });
        self.0 = pairs.collect();
    }

    pub(super) fn rank(&self) -> Option<u32> {
        let total: u64 = self.0.iter().map(|value| value.weight).sum();
        let mut before = 0;
        let middle = self.0.iter().find(|value| {
            before += value.weight;
            2 * before >= total
        });
        middle.map(|value| value.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merged like a tree: neighbours first.
    fn merged(mut parts: Vec<Middle>) -> Middle {
        while parts.len() > 1 {
            let mut next = Vec::new();
            let mut rest = parts.into_iter();
            while let Some(mut one) = rest.next() {
                if let Some(other) = rest.next() {
                    one.merge(other);
                }
                next.push(one);
            }
            parts = next;
        }
        parts.remove(0)
    }

    #[test]
    fn it_is_exact_for_few_ranks() {
        for ranks in 1..=64 {
            let value = |rank: u32| f64::from(rank * 37 % 101);
            let all = (0..ranks).map(|rank| Middle::from_time(value(rank), rank)).collect();
            let mut sorted: Vec<f64> = (0..ranks).map(value).collect();
            sorted.sort_by(f64::total_cmp);
            let middle = value(merged(all).rank().unwrap());
            assert!((middle - sorted[(sorted.len() - 1) / 2]).abs() < 1e-9, "{ranks}");
        }
    }

    #[test]
    fn it_is_near_the_middle_of_many() {
        let ranks = 20_000_u32;
        for value in [
            |rank: u32| f64::from(rank),
            |rank: u32| -f64::from(rank),
            |rank: u32| f64::from(rank.wrapping_mul(2_654_435_761) >> 8),
        ] {
            let all = (0..ranks).map(|rank| Middle::from_time(value(rank), rank)).collect();
            let middle = merged(all);
            assert!(middle.0.len() <= KEPT);
            let of_it = value(middle.rank().unwrap());
            let below = (0..ranks).filter(|&rank| value(rank) < of_it).count();
            let share = below as f64 / f64::from(ranks);
            assert!((0.45..0.55).contains(&share), "{share}");
        }
    }

    #[test]
    fn of_none_there_is_none() {
        assert_eq!(Middle::default().rank(), None);
    }
}
