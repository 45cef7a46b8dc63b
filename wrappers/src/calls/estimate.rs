//! How long do the calls of a function take, when only some of them are timed?
//!
//! Each call is timed with a probability that is fixed before it is made, and stands for as many calls
//! as that probability is small: an estimate that is unbiased however the probability changes
//! (Horvitz and Thompson 1952). As the number of calls is known exactly, what is estimated is the
//! difference of each call from the mean of those timed before it, which leaves the estimate unbiased
//! and makes its error small (Cassel, Särndal and Wretman 1976). When every call is timed it is the
//! sum.

#![forbid(unsafe_code)]

use crate::sys::cells::{Real, Whole};

/// Bars of a histogram of times: the last begins at 2^46 ns, 20 hours.
const BARS: usize = 48;
/// A call stands for as many others at most: a program that becomes slow is not watched for as long.
const SPACING_AT_MOST: f64 = 65536.0;
/// Two calls that follow each other at once are not a burst yet, so the spacing grows step by step.
const GROWTH_AT_MOST: f64 = 2.0;
/// When calls that are timed lie further apart, the processor no longer has at hand what timing
/// takes, and that would be measured. Then the call behind the one that was drawn is timed.
const COLD_FROM: f64 = 32.0;

/// What is known of the times of one function in one thread. Times in ticks.
pub(crate) struct Timing {
    timed: Whole,
    /// Of all calls up to `settled`.
    estimate: Real,
    variance: Real,
    settled: Whole,
    /// The mean of the timed calls, each with its weight, and the sum of the weights.
    mean: Real,
    weights: Real,
    /// Of the timed calls alone.
    sum: Real,
    /// Of the timed calls since [`Timing::take_max`].
    max: Real,
    histogram: [Bar; BARS],
    /// How many calls lie between two that are timed, on average; below 1.5 each is.
    spacing: Real,
    /// Time and number of the call that was timed last.
    last: (Whole, Whole),
    /// Number of calls at the last look at all functions.
    looked: Whole,
    /// 1 when the call before was drawn, and went the way of a timed call.
    warm: Whole,
}

/// Calls that took a time in one range: how many were timed, and for how many those stand.
struct Bar {
    timed: Whole,
    weights: Real,
}

/// The times of a function so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub(crate) timed: u64,
    /// In ticks.
    pub(crate) total: f64,
    pub(crate) variance: f64,
}

impl Times {
    pub(crate) fn plus(self, other: Times) -> Times {
        Times {
            timed: self.timed + other.timed,
            total: self.total + other.total,
            variance: self.variance + other.variance,
        }
    }

    pub(crate) fn minus(self, earlier: Times) -> Times {
        Times {
            timed: self.timed.saturating_sub(earlier.timed),
            total: self.total - earlier.total,
            variance: (self.variance - earlier.variance).max(0.0),
        }
    }
}

impl Timing {
    pub(crate) fn new() -> Timing {
        Timing {
            timed: Whole::new(0),
            estimate: Real::new(0.0),
            variance: Real::new(0.0),
            settled: Whole::new(0),
            mean: Real::new(0.0),
            weights: Real::new(0.0),
            sum: Real::new(0.0),
            max: Real::new(0.0),
            histogram: [const { Bar { timed: Whole::new(0), weights: Real::new(0.0) } }; BARS],
            spacing: Real::new(1.0),
            last: (Whole::new(0), Whole::new(0)),
            looked: Whole::new(0),
            warm: Whole::new(0),
        }
    }

    /// Whether the call that was just made only prepared for the next, which is timed.
    pub(crate) fn warms_up(&self) -> bool {
        let warms_up = self.spacing.get() > COLD_FROM && self.warm.get() == 0;
        self.warm.set(u64::from(warms_up));
        warms_up
    }

    pub(crate) fn is_warm(&self) -> bool {
        self.warm.get() == 1
    }

    pub(crate) fn timed(&self) -> u64 {
        self.timed.get()
    }

    /// Call number `call`, from 1, took `ticks`. How many calls were timed, this one included.
    pub(crate) fn take(&self, call: u64, ticks: f64, ns_per_tick: f64) -> u64 {
        let weight = weight(self.spacing.get());
        let mean = self.mean.get();
        let difference = ticks - mean;
        let settled = self.settled.get();
        self.estimate.add(mean * call.wrapping_sub(settled) as f64 + weight * difference);
        self.settled.set(call);
        self.variance.add(weight * (weight - 1.0) * difference * difference);
        self.weights.add(weight);
        self.mean.set(mean + difference * weight / self.weights.get());
        self.timed.add(1);
        self.max.set(self.max.get().max(ticks));
        self.sum.add(ticks);
        if let Some(bar) = self.histogram.get(bar(ticks * ns_per_tick)) {
            bar.timed.add(1);
            bar.weights.add(weight);
        }
        self.timed.get()
    }

    /// The number of the call that was timed last.
    pub(crate) fn last_call(&self) -> u64 {
        self.last.1.get()
    }

    /// Which call is timed next, when calls that are timed should lie at least `gap` ticks apart:
    /// the number of calls before it. Call number `call` was timed, and began at `begun`.
    pub(crate) fn next(&self, call: u64, begun: u64, gap: f64, random: f64) -> u64 {
        let (last_begun, last_call) = (self.last.0.get(), self.last.1.get());
        self.last.0.set(begun);
        self.last.1.set(call);
        let ticks = begun.wrapping_sub(last_begun) as f64;
        let apart = ticks / call.wrapping_sub(last_call).max(1) as f64;
        let wanted = if last_call == 0 { 1.0 } else { gap / apart.max(1.0) };
        let at_most = (self.spacing.get() * GROWTH_AT_MOST).min(SPACING_AT_MOST);
        self.spacing.set(wanted.min(at_most).max(1.0));
        call + drawn(self.spacing.get(), random)
    }

    /// Looks whether the function has come to be called so rarely, in the `ticks` since the last look,
    /// that the next call to be timed is far off. Then the number of calls before a nearer one.
    pub(crate) fn look(&self, calls: u64, ticks: f64, gap: f64, random: f64) -> Option<u64> {
        let lately = calls.wrapping_sub(self.looked.get());
        self.looked.set(calls);
        let wanted = (gap * lately as f64 / ticks.max(1.0)).max(1.0);
        // Calls are drawn independently of each other, so that a new draw changes nothing of what
        // was before.
        (wanted * 4.0 < self.spacing.get()).then(|| {
            self.spacing.set(wanted);
            calls + drawn(wanted, random)
        })
    }

    /// Whether there were calls since the last [`Timing::look`].
    pub(crate) fn is_active(&self, calls: u64) -> bool {
        calls != self.looked.get()
    }

    /// What is known when there were `calls` calls. When all happen to have been timed, that is the sum.
    pub(crate) fn times(&self, calls: u64) -> Times {
        let timed = self.timed.get();
        if timed == calls {
            return Times { timed, total: self.sum.get(), variance: 0.0 };
        }
        let unsettled = calls.wrapping_sub(self.settled.get()) as f64;
        Times {
            timed,
            total: self.estimate.get() + self.mean.get() * unsettled,
            variance: self.variance.get(),
        }
    }

    /// The longest since this was asked last.
    pub(crate) fn take_max(&self) -> f64 {
        let max = self.max.get();
        self.max.set(0.0);
        max
    }

    /// Numbers of calls by the time that they took, below 1 ns, [1, 2), [2, 4), ...: estimates that add
    /// up to `calls`.
    pub(crate) fn histogram(&self, calls: u64) -> [f64; BARS] {
        let all_timed = self.timed.get() == calls;
        let number = |bar: &Bar| if all_timed { bar.timed.get() as f64 } else { bar.weights.get() };
        let sum: f64 = self.histogram.iter().map(number).sum();
        let scale = if sum > 0.0 { calls as f64 / sum } else { 0.0 };
        std::array::from_fn(|at| self.histogram.get(at).map_or(0.0, |bar| number(bar) * scale))
    }
}

/// The bar for a number: 0 for those below 1, then one for each power of 2.
pub(crate) fn bar(number: f64) -> usize {
    const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
    const BIAS: u64 = 1023;
    if number < 1.0 {
        return 0;
    }
    let exponent = (number.to_bits() >> MANTISSA).saturating_sub(BIAS);
    usize::try_from(exponent).unwrap_or(0) + 1
}

/// How many calls go by until one that is timed, that included less one: 0 for the next. `random` is
/// uniform in [0, 1). Whatever went by, each call has the same chance.
fn drawn(spacing: f64, random: f64) -> u64 {
    if spacing < 1.5 {
        return 0;
    }
    let exponential = -libm::log(1.0 - random);
    // Not negative, and far below 2^63.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let drawn = (exponential * spacing) as u64;
    drawn
}

/// For how many calls one stands that was [`drawn`]: 1 / (1 - e^(-1 / spacing)), as its series.
fn weight(spacing: f64) -> f64 {
    if spacing < 1.5 {
        return 1.0;
    }
    let once = 1.0 / spacing;
    let cube = once * once * once;
    spacing + 0.5 + once / 12.0 - cube / 720.0 + cube * once * once / 30240.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_every_call_is_timed_the_estimate_is_the_sum() {
        let timing = Timing::new();
        for call in 1..=100 {
            timing.take(call, call as f64, 1.0);
            assert_eq!(timing.next(call, call * 1000, 0.0, 0.5), call);
        }
        let times = timing.times(100);
        assert!((times.total - 5050.0).abs() < 1e-6, "{times:?}");
        assert_eq!((times.timed, times.variance), (100, 0.0));
        assert!((timing.take_max() - 100.0).abs() < 1e-9);
        assert!((timing.histogram(100).iter().sum::<f64>() - 100.0).abs() < 1e-9);
    }

    /// Estimates of one program's time by as many seeds: calls of 100 ticks, every tenth of 1000, and
    /// some of 100,000 in the second half alone.
    fn estimates(runs: u64) -> (f64, Vec<Times>) {
        const CALLS: u64 = 20_000;
        let duration = |call: u64| match call {
            _ if call > 10_000 && call % 500 == 7 => 100_000,
            _ if call.is_multiple_of(10) => 1000,
            _ => 100_u32,
        };
        let truth = (1..=CALLS).map(|call| f64::from(duration(call))).sum();
        let run = |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let timing = Timing::new();
            let (mut due, mut now) = (0, 0);
            for call in 1..=CALLS {
                if call > due && !timing.warms_up() {
                    timing.take(call, f64::from(duration(call)), 1.0);
                    due = timing.next(call, now, 5000.0, random.f64());
                }
                if call.is_multiple_of(1000)
                    && let Some(nearer) = timing.look(call, 500_000.0, 5000.0, random.f64())
                {
                    due = nearer;
                }
                now += u64::from(duration(call));
            }
            timing.times(CALLS)
        };
        (truth, (0..runs).map(run).collect())
    }

    #[test]
    fn the_estimate_is_unbiased_and_its_standard_error_is_right() {
        const RUNS: u64 = 2000;
        let (truth, estimates) = estimates(RUNS);
        assert!(estimates.iter().all(|times| times.timed < 10_000));
        let n = RUNS as f64;
        let mean = estimates.iter().map(|times| times.total).sum::<f64>() / n;
        let spread = estimates.iter().map(|times| (times.total - truth).powi(2)).sum::<f64>() / n;
        let error_of_mean = (spread / n).sqrt();
        assert!((mean - truth).abs() < 4.0 * error_of_mean, "{mean} instead of {truth}");
        let claimed = estimates.iter().map(|times| times.variance).sum::<f64>() / n;
        assert!((claimed / spread - 1.0).abs() < 0.25, "{claimed} claimed, {spread} found");
    }

    #[test]
    fn when_all_happen_to_be_timed_the_sum_counts_and_not_the_estimate() {
        let timing = Timing::new();
        for call in 1..=3 {
            timing.take(call, 10.0, 1.0);
            // Far more rarely than the calls come; drawn is the next nevertheless.
            assert_eq!(timing.next(call, call * 10, 1e6, 0.0), call);
        }
        let times = timing.times(3);
        assert!((times.total - 30.0).abs() < 1e-9 && times.variance == 0.0, "{times:?}");
        assert!((timing.histogram(3).iter().sum::<f64>() - 3.0).abs() < 1e-9);
        assert!(timing.times(10).variance >= 0.0);
    }

    #[test]
    fn each_call_has_the_chance_that_its_weight_says() {
        let mut random = fastrand::Rng::with_seed(1);
        for spacing in [1.5, 2.0, 7.3, 100.0] {
            const DRAWS: u64 = 200_000;
            let calls: u64 = (0..DRAWS).map(|_| drawn(spacing, random.f64()) + 1).sum();
            let found = calls as f64 / DRAWS as f64;
            assert!((found / weight(spacing) - 1.0).abs() < 0.01, "{spacing}: {found}");
        }
    }

    #[test]
    fn a_bar_holds_the_numbers_up_to_the_next_power_of_two() {
        let bars = [0.0, 0.99, 1.0, 1.99, 2.0, 3.0, 4.0, 1024.0].map(bar);
        assert_eq!(bars, [0, 0, 1, 1, 2, 2, 3, 11]);
        assert_eq!(bar(-5.0), 0);
    }
}
