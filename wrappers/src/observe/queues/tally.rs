//! Number, sum, maximum and histogram of measurements.

use crate::calls::estimate::bar;

/// Bars of a histogram: below 1, then one for each power of 2.
const BARS: usize = 48;

#[derive(Clone)]
pub(crate) struct Tally {
    pub(super) n: u64,
    pub(super) sum: f64,
    pub(super) max: f64,
    histogram: [u64; BARS],
}

impl Tally {
    pub(super) const fn new() -> Tally {
        Tally { n: 0, sum: 0.0, max: 0.0, histogram: [0; BARS] }
    }

    /// Adds `value`, which counts as `in_bars` in the histogram.
    pub(super) fn add(&mut self, value: f64, in_bars: f64) {
        self.n += 1;
        self.sum += value;
        self.max = self.max.max(value);
        if let Some(count) = self.histogram.get_mut(bar(in_bars).min(BARS - 1)) {
            *count += 1;
        }
    }

    /// Up to the last bar that is not 0.
    pub(super) fn histogram(&self) -> Vec<u64> {
        let last = self.histogram.iter().rposition(|&count| count > 0);
        self.histogram.iter().take(last.map_or(0, |last| last + 1)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_for_every_bar_is_in_the_last() {
        let mut tally = Tally::new();
        for value in [0.5, 3.0, 1e30] {
            tally.add(value, value);
        }
        assert_eq!(tally.histogram().len(), BARS);
        assert_eq!(tally.histogram().iter().sum::<u64>(), 3);
        assert_eq!((tally.n, tally.max), (3, 1e30));
        assert!(Tally::new().histogram().is_empty());
    }
}
