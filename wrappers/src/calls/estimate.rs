//! How long do the calls of a function take, when only some of them are timed?
//!
//! Each call is timed with a probability that is fixed before it is made, and is weighted by the inverse of
//! that probability: the estimate is unbiased however the probability changes (Horvitz and Thompson 1952). As
//! the number of calls is known exactly, we estimate only the difference of each call from the mean of those
//! timed before it, which keeps the estimate unbiased and its error small (Cassel, Särndal and Wretman 1976).
//! When every call is timed, it is the sum.
//!
//! The variance of the estimate is estimated from the same differences. When a few of them make up most of it,
//! it is unknown (one call in a thousand may take ten thousand times as long as the others, and may not be
//! among the timed ones). Then no error is stated, and the time is a lower bound.

#![forbid(unsafe_code)]

use std::sync::OnceLock;

use crate::sys::cells::{Counter, Gauge};
use crate::sys::clock;

/// Bars of a histogram of times: the last begins at 2^46 ns, 20 hours.
const BARS: usize = 48;
/// A call stands for at most this many others: otherwise a program that becomes slow would go unwatched for
/// that long.
pub(crate) const SPACING_AT_MOST: f64 = 65536.0;
/// When timed calls are further apart than this, the code for timing is no longer in the caches, and its misses
/// would be measured. Then the call after the drawn one is timed.
pub(crate) const COLD_FROM: f64 = 32.0;
/// This many calls of a function are timed before any is left out.
const FIRST: u64 = 16;
/// How much a call counts in the mean of the recent ones.
const RECENT: f64 = 1.0 / 16.0;
/// The factor by which older observations lose weight at each look: half of it is gone after about 350 looks.
const MEMORY: f64 = 0.998;
/// How many phases have separate knowledge; further ones share it.
const STRATA: usize = 16;
/// The variance is known when it is made up of this many differences of about the same size.
const ENOUGH: f64 = 5.0;
/// The standard deviation of a function is assumed to be at least this part of its mean.
const STEADY: f64 = 0.05;
/// With this many timed calls, one in a thousand was probably among them.
const TOLD: u64 = 2500;
/// A turn of another process on the processor of this one.
const TURN_S: f64 = 4e-3;
/// Where most calls are timed, so many tell how the others vary.
const FEWEST: u64 = 250;
/// The factor between variances that means that calls standing for others varied far less than all calls before
/// them.
const UNLIKE: f64 = 4.0;
/// When they are this part of all timed calls, they would have shown the earlier rare ones.
const MOST: f64 = 0.75;
/// A call that takes 2 to this power times as long as a typical one, the geometric mean of the last ones, is an
/// outlier.
const LONE: f64 = 5.0;
/// How much a call counts in that mean.
const TYPICAL: f64 = 1.0 / 64.0;
/// Calls that were not timed do not matter when they cannot amount to more than this part of the rest.
pub(crate) const NEGLIGIBLE: f64 = 0.1;
/// Nor do they matter when they took no more than this part of the run.
const LITTLE: f64 = 0.02;
/// An estimate with a larger relative standard error does not count as one.
pub(crate) const WORTH_TELLING: f64 = 0.3;

/// Knowledge of the times of one function in one thread. Times in ticks.
pub(crate) struct Timing {
    timed: Counter,
    /// Of the timed calls.
    sum: Gauge,
    /// Of all calls up to `settled`.
    estimate: Gauge,
    settled: Counter,
    /// How many of the timed calls also stand for others, or were made when such calls did.
    sampled: Counter,
    /// The variance from their differences, the sum of the squares of its parts, and the variance if they
    /// varied like all timed calls before them.
    variance: Gauge,
    squares: Gauge,
    pooled: Gauge,
    /// The contributions of outliers to the estimate and to the variance, and the sum of the squares of the first.
    lone: Gauge,
    lone_variance: Gauge,
    lone_squares: Gauge,
    /// Of the timed calls since [`Timing::take_max`].
    max: Gauge,
    histogram: [Bar; BARS],
    /// How many calls there are between two timed ones, on average; below 1.5 each call is timed.
    spacing: Gauge,
    /// Number of the call that was timed last.
    last: Counter,
    /// Number of calls at the last look at all functions, and of calls that were not timed.
    looked: Counter,
    untimed: Counter,
    /// The total time between looks in which there were such calls: they took no longer than that.
    unseen: Gauge,
    /// 1 if the previous call was drawn, and took the path of a timed call.
    warm: Counter,
    /// The phase that the program is in, and the others.
    now: Stratum,
    strata: OnceLock<Box<[Stratum; STRATA]>>,
}

/// Data for one phase, to choose the calls to time and to predict the others.
struct Stratum {
    timed: Counter,
    /// The mean of the timed calls, each with its weight, the sum of the weights, and that of the squared
    /// differences from the mean before.
    mean: Gauge,
    weights: Gauge,
    differences: Gauge,
    /// The mean of the last ones, and of their logarithms.
    recent: Gauge,
    typical: Gauge,
    /// Calls per tick: the recent maximum.
    rate: Gauge,
    /// The spacing that the last look gave; 0 for none yet.
    allotted: Gauge,
}

/// Calls that took a time in one range: how many were timed, and for how many those stand.
struct Bar {
    timed: Counter,
    weights: Gauge,
}

/// By how much the time of `count` calls may be off because of the resolution of the clock: the same way in all of them.
pub(crate) fn unresolved(total: f64, count: u64) -> f64 {
    unresolved_by(clock::resolution(), total, count)
}

fn unresolved_by(resolution: f64, total: f64, count: u64) -> f64 {
    // They took time, and no more than there was.
    const AT_MOST: f64 = 0.25;
    (count as f64 * resolution).min(AT_MOST * total)
}

/// The times of a function so far, in ticks: sums, so that subtraction gives those of a stretch of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub(crate) timed: u64,
    /// The time of the timed calls, and an upper bound for the others.
    pub(crate) sum: f64,
    unseen: f64,
    total: f64,
    sampled: u64,
    variance: f64,
    squares: f64,
    pooled: f64,
    lone: Outliers,
}

/// A time in ticks, and its standard error; no error when the time is a lower bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) total: f64,
    pub(crate) error: Option<f64>,
}

/// What the outliers of a sample stand for: the sum of that, its variance, and the sum of its squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outliers {
    pub(crate) total: f64,
    pub(crate) variance: f64,
    squares: f64,
}

impl Outliers {
    pub(crate) fn plus(self, other: Outliers) -> Outliers {
        Outliers {
            total: self.total + other.total,
            variance: self.variance + other.variance,
            squares: self.squares + other.squares,
        }
    }

    fn minus(self, earlier: Outliers) -> Outliers {
        Outliers {
            total: (self.total - earlier.total).max(0.0),
            variance: (self.variance - earlier.variance).max(0.0),
            squares: (self.squares - earlier.squares).max(0.0),
        }
    }

    /// How many were seen, if all were of one size.
    pub(crate) fn number(self) -> f64 {
        if self.squares > 0.0 { self.total * self.total / self.squares } else { 0.0 }
    }

    /// The size of one: where each of size d stands for w, the variance is the sum of w (w - 1) d^2, and that of the squares
    /// of (w - 1)^2 d^2.
    pub(crate) fn size(self) -> f64 {
        if self.total > 0.0 { (self.variance - self.squares).max(0.0) / self.total } else { 0.0 }
    }
}

impl Times {
    pub(crate) fn plus(self, other: Times) -> Times {
        Times {
            timed: self.timed + other.timed,
            sum: self.sum + other.sum,
            unseen: self.unseen + other.unseen,
            total: self.total + other.total,
            sampled: self.sampled + other.sampled,
            variance: self.variance + other.variance,
            squares: self.squares + other.squares,
            pooled: self.pooled + other.pooled,
            lone: self.lone.plus(other.lone),
        }
    }

    pub(crate) fn minus(self, earlier: Times) -> Times {
        Times {
            timed: self.timed.saturating_sub(earlier.timed),
            sum: self.sum - earlier.sum,
            unseen: (self.unseen - earlier.unseen).max(0.0),
            total: self.total - earlier.total,
            sampled: self.sampled.saturating_sub(earlier.sampled),
            variance: (self.variance - earlier.variance).max(0.0),
            squares: (self.squares - earlier.squares).max(0.0),
            pooled: (self.pooled - earlier.pooled).max(0.0),
            lone: self.lone.minus(earlier.lone),
        }
    }

    /// The time of `count` calls in a part of the run of `elapsed` ticks, of which the longest timed one took
    /// `longest`. Never less than what was timed, and never a mean above the longest.
    pub(crate) fn known(self, count: u64, longest: f64, elapsed: f64) -> Estimate {
        if self.timed >= count {
            return Estimate { total: self.sum, error: Some(0.0) };
        }
        let untimed_at_most = self.untimed_at_most(count, longest);
        let within = |total: f64| self.within(total, count, longest);
        if untimed_at_most < NEGLIGIBLE * self.sum {
            return Estimate { total: within(self.total), error: Some(0.5 * untimed_at_most) };
        }
        let error = self.error().or_else(|| self.error_where_most_are_timed(count));
        if let Some(error) = error.filter(|error| *error <= WORTH_TELLING * self.total) {
            let error = libm::hypot(error, unresolved(self.total, count));
            return Estimate { total: within(self.total), error: Some(error) };
        }
        let at_least = self.at_least(count, longest);
        let error = (self.unseen < LITTLE * elapsed).then_some(0.5 * self.unseen);
        Estimate { error, ..at_least }
    }

    /// What `count` calls took at least, of which the longest timed one took `longest`: if the timed ones are like the others, and
    /// none is far longer.
    pub(crate) fn at_least(&self, count: u64, longest: f64) -> Estimate {
        let total = self.at_least_but(clock::unforeseen(), count).max(longest);
        let most = self.sum + self.untimed_at_most(count, longest);
        Estimate { total: total.min(most), error: None }
    }

    /// The same where each timed call may have taken `off` ticks longer than the others.
    fn at_least_but(&self, off: f64, count: u64) -> f64 {
        let (regular, variance) = self.regular();
        let total = (regular - 2.0 * variance.sqrt()).max(self.total - 2.0 * self.variance.sqrt());
        let timed = self.sum - off * self.timed as f64;
        (total - off * count as f64).max(timed).max(0.0)
    }

    /// The `total` for `count` calls that is closest to this one and contradicts nothing that was seen.
    pub(crate) fn within(&self, total: f64, count: u64, longest: f64) -> f64 {
        total.clamp(self.sum, self.sum + self.untimed_at_most(count, longest))
    }

    /// An upper bound for the calls out of `count` that were not timed, if none was longer than the longest;
    /// and no more than the time in which there were any.
    pub(crate) fn untimed_at_most(&self, count: u64, longest: f64) -> f64 {
        (count.saturating_sub(self.timed) as f64 * longest.max(0.0)).min(self.unseen)
    }

    /// The standard error. Twice the error is a 95 % interval, even when few differences make up most of the
    /// variance (Satterthwaite 1946). None when the timed calls cannot tell: they are too few, or too few
    /// differences make up the variance, or the calls from when all were timed varied far more than those that
    /// stand for others, and the latter are too few to show that this is over.
    pub(crate) fn error(&self) -> Option<f64> {
        let effective = self.variance * self.variance / self.squares;
        let is_like_the_rest = self.pooled <= UNLIKE * self.variance;
        let is_most = self.sampled as f64 >= MOST * self.timed as f64;
        let can_tell = self.timed >= TOLD && (is_like_the_rest || is_most);
        // This also excludes NaN.
        (can_tell && effective >= ENOUGH).then(|| {
            let mixed = 0.5 * (self.variance + self.pooled);
            let variance = if is_like_the_rest { self.variance.max(mixed) } else { self.variance };
            variance.sqrt() * (1.0 + 1.5 / effective)
        })
    }

    /// The standard error where the timed calls are at least as many as the others, so that what is rare among those is among them,
    /// too: the others vary as all timed ones before them.
    fn error_where_most_are_timed(&self, count: u64) -> Option<f64> {
        let are_most = self.timed >= FEWEST && 2 * self.timed >= count;
        are_most.then(|| self.plain_error())
    }

    /// The standard error from what no timed call shows, as it comes once in the time of all of them: what takes as long as the
    /// `longest`, or a turn of another process. None where it is not among the others in 19 of 20 runs.
    pub(crate) fn hidden(&self, longest: f64) -> f64 {
        let among_others = (self.total / self.sum - 1.0).max(0.0);
        if among_others < 0.05 {
            0.0
        } else {
            longest.max(clock::ticks(TURN_S)) * among_others.sqrt()
        }
    }

    /// The standard error if the others vary as the timed ones do.
    pub(crate) fn plain_error(&self) -> f64 {
        self.variance.max(self.pooled).sqrt()
    }

    /// The plain estimate, without bounds.
    pub(crate) fn total(&self) -> f64 {
        self.total
    }

    /// The variance as far as it is known.
    pub(crate) fn variance(&self) -> f64 {
        self.variance
    }

    /// The estimate without what outliers stand for, and its variance.
    pub(crate) fn regular(&self) -> (f64, f64) {
        (self.total - self.lone.total, (self.variance - self.lone.variance).max(0.0))
    }

    /// What outliers stand for.
    pub(crate) fn outliers(&self) -> Outliers {
        self.lone
    }
}

impl Stratum {
    const fn new() -> Stratum {
        Stratum {
            timed: Counter::new(0),
            mean: Gauge::new(0.0),
            weights: Gauge::new(0.0),
            differences: Gauge::new(0.0),
            recent: Gauge::new(0.0),
            typical: Gauge::new(0.0),
            rate: Gauge::new(0.0),
            allotted: Gauge::new(0.0),
        }
    }

    fn set(&self, other: &Stratum) {
        let Stratum { timed, mean, weights, differences, recent, typical, rate, allotted } = other;
        self.timed.set(timed.get());
        self.mean.set(mean.get());
        self.weights.set(weights.get());
        self.differences.set(differences.get());
        self.recent.set(recent.get());
        self.typical.set(typical.get());
        self.rate.set(rate.get());
        self.allotted.set(allotted.get());
    }

    /// Whether a call that took `ticks` is an outlier; the next ones are compared with it, too.
    fn is_lone(&self, ticks: f64) -> bool {
        let (typical, log) = (self.typical.get(), log2(ticks));
        let timed = self.timed.get();
        let rate = TYPICAL.max(1.0 / (timed + 1) as f64);
        self.typical.set(typical + rate * (log - typical));
        timed > 0 && log > typical + LONE
    }

    /// The variance of the calls.
    fn spread(&self) -> f64 {
        let weights = self.weights.get();
        if weights > 0.0 { self.differences.get() / weights } else { 0.0 }
    }
}

impl Timing {
    pub(crate) const fn new() -> Timing {
        Timing {
            timed: Counter::new(0),
            sum: Gauge::new(0.0),
            estimate: Gauge::new(0.0),
            settled: Counter::new(0),
            sampled: Counter::new(0),
            variance: Gauge::new(0.0),
            squares: Gauge::new(0.0),
            pooled: Gauge::new(0.0),
            lone: Gauge::new(0.0),
            lone_variance: Gauge::new(0.0),
            lone_squares: Gauge::new(0.0),
            max: Gauge::new(0.0),
            histogram: [const { Bar { timed: Counter::new(0), weights: Gauge::new(0.0) } }; BARS],
            spacing: Gauge::new(1.0),
            last: Counter::new(0),
            looked: Counter::new(0),
            untimed: Counter::new(0),
            unseen: Gauge::new(0.0),
            warm: Counter::new(0),
            now: Stratum::new(),
            strata: OnceLock::new(),
        }
    }

    /// Whether the call just made only warmed up for the next one, which is timed.
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

    /// The number of calls that the call timed now stands for.
    pub(crate) fn weight(&self) -> f64 {
        weight(self.spacing.get())
    }

    /// Call number `call`, from 1, took `ticks`. Returns how many calls were made since the last timed one, not
    /// counting this one.
    pub(crate) fn take(&self, call: u64, ticks: f64, ns_per_tick: f64) -> u64 {
        self.take_as(self.weight(), call, ticks, ns_per_tick)
    }

    /// The same for a call that stands for `weight` calls.
    pub(crate) fn take_as(&self, weight: f64, call: u64, ticks: f64, ns_per_tick: f64) -> u64 {
        let now = &self.now;
        let mean = now.mean.get();
        let is_first = now.timed.get() == 0;
        let difference = ticks - mean;
        let square = if is_first { 0.0 } else { difference * difference };
        let is_lone = now.is_lone(ticks);
        self.settle(call);
        self.estimate.add(weight * difference);
        if weight > 1.0 {
            // The clock resolves no less than ticks.
            let scale = weight * (weight - 1.0);
            let variance = scale * (difference * difference + 1.0);
            self.sampled.add(1);
            self.variance.add(variance);
            self.squares.add(variance * variance);
            self.pooled.add(scale * (now.spread() + 1.0));
            if difference > 0.0 && is_lone {
                let others = (weight - 1.0) * difference;
                self.lone.add(others);
                self.lone_variance.add(variance);
                self.lone_squares.add(others * others);
            }
        }
        now.weights.add(weight);
        now.differences.add(weight * square);
        now.mean.set(mean + difference * weight / now.weights.get());
        let recent = now.recent.get();
        now.recent.set(if is_first { ticks } else { recent + RECENT * (ticks - recent) });
        now.timed.add(1);
        self.took(weight, ticks, ns_per_tick);
        let counted = call.saturating_sub(self.last.get() + 1);
        self.last.set(call);
        counted
    }

    /// A call took `ticks` that was not drawn, and is timed in any case: it stands for itself only, as one of a stratum of which
    /// every call is known (Cochran 1977, 5.1).
    pub(crate) fn take_certain(&self, ticks: f64, ns_per_tick: f64) {
        // `settle` takes it for one like those before.
        self.estimate.add(ticks - self.now.mean.get());
        // It would have shown what is rare as well as one that stands for others.
        if self.weight() > 1.0 {
            self.sampled.add(1);
        }
        self.took(1.0, ticks, ns_per_tick);
    }

    fn took(&self, weight: f64, ticks: f64, ns_per_tick: f64) {
        self.timed.add(1);
        self.max.set(self.max.get().max(ticks));
        self.sum.add(ticks);
        if let Some(bar) = self.histogram.get(bar(ticks * ns_per_tick)) {
            bar.timed.add(1);
            bar.weights.add(weight);
        }
    }

    /// The same for a call that was drawn at this `spacing`, and is not followed by another draw.
    pub(crate) fn take_at(&self, spacing: f64, call: u64, ticks: f64) {
        self.spacing.set(spacing);
        self.take(call, ticks, 1.0);
    }

    /// Nothing is said of calls up to number `call` that are not settled.
    pub(crate) fn skip(&self, call: u64) {
        self.settled.set(call);
    }

    /// Calls up to number `call` are assumed to be like those before.
    pub(crate) fn settle(&self, call: u64) {
        let calls = call.saturating_sub(self.settled.get());
        self.estimate.add(self.now.mean.get() * calls as f64);
        self.settled.add(calls);
    }

    /// The predicted time of one of the next calls: the mean of the last timed ones, or, when a few calls take
    /// nearly all of the time, the certain part of the mean of all `calls`.
    pub(crate) fn mean(&self, calls: u64) -> f64 {
        self.now.recent.get().max(self.sum.get() / calls.max(1) as f64)
    }

    /// Which call is timed next, as the number of calls before it. Call number `call` was timed. `limited`: not
    /// every call of every function can be timed; `each`: every call of this one can.
    pub(crate) fn next(&self, call: u64, limited: bool, each: bool, random: f64) -> u64 {
        let allotted = self.now.allotted.get();
        let spacing = if !limited || each {
            1.0
        } else if allotted > 0.0 {
            allotted
        } else if self.now.timed.get() < FIRST {
            1.0
        } else {
            // Until a look tells how often it is called.
            (2.0 * self.spacing.get()).min(SPACING_AT_MOST)
        };
        self.spacing.set(spacing);
        self.draw(call, random)
    }

    /// Draws the next call to time, after `calls` calls: returns the number of calls before it, or before its
    /// warm-up call. Calls are drawn independently of each other, so a new draw does not affect earlier ones;
    /// the call after a drawn one may itself be drawn.
    fn draw(&self, calls: u64, random: f64) -> u64 {
        let spacing = self.spacing.get();
        let drawn = drawn(spacing, random);
        let is_cold = spacing > COLD_FROM;
        self.warm.set(u64::from(is_cold && drawn == 0));
        calls + drawn.saturating_sub(u64::from(is_cold))
    }

    /// A look at all functions, `ticks` after the last, when there were `calls` calls. Returns whether there
    /// was one recently.
    pub(crate) fn look(&self, calls: u64, ticks: f64, memory: f64) -> bool {
        let lately = calls.saturating_sub(self.looked.get()) as f64;
        self.looked.set(calls);
        self.unseen.set(self.unseen(calls, ticks));
        self.untimed.set(calls.saturating_sub(self.timed.get()));
        let now = &self.now;
        let rate = (lately / ticks.max(1.0)).max(now.rate.get() * memory / (memory + ticks));
        now.rate.set(rate);
        now.weights.set(now.weights.get() * MEMORY);
        now.differences.set(now.differences.get() * MEMORY);
        rate > 0.0 && now.timed.get() > 0
    }

    /// An upper bound for the calls that were not timed, `ticks` after the last look.
    fn unseen(&self, calls: u64, ticks: f64) -> f64 {
        let is_more = calls.saturating_sub(self.timed.get()) > self.untimed.get();
        self.unseen.get() + if is_more { ticks } else { 0.0 }
    }

    /// Calls per tick, and the standard deviation of their times.
    pub(crate) fn demand(&self) -> (f64, f64) {
        let now = &self.now;
        let mean = now.mean.get();
        let at_least = if now.timed.get() < FIRST { mean } else { STEADY * mean };
        (now.rate.get(), now.spread().sqrt().max(at_least))
    }

    pub(crate) fn spacing(&self) -> f64 {
        self.spacing.get()
    }

    /// From now on each call is timed with this probability. Returns the number of calls before the next timed
    /// one, when there were `calls` calls.
    pub(crate) fn allot(&self, probability: f64, calls: u64, random: f64) -> u64 {
        let spacing = (1.0 / probability).clamp(1.0, SPACING_AT_MOST);
        self.now.allotted.set(spacing);
        self.spacing.set(spacing);
        self.draw(calls, random)
    }

    /// Forgets how often calls may be timed.
    pub(crate) fn free(&self, calls: u64) -> u64 {
        self.now.allotted.set(0.0);
        self.spacing.set(1.0);
        calls
    }

    /// The program continues in another phase, after `calls` calls; `limited` as for [`next`](Self::next).
    /// Returns the number of calls before the next timed one.
    pub(crate) fn change_phase(
        &self,
        (from, to): (usize, usize),
        limited: bool,
        calls: u64,
        random: f64,
    ) -> u64 {
        self.settle(calls);
        self.looked.set(calls);
        let strata = self.strata.get_or_init(|| Box::new([const { Stratum::new() }; STRATA]));
        if let (Some(from), Some(to)) = (strata.get(from % STRATA), strata.get(to % STRATA)) {
            from.set(&self.now);
            let mean = self.now.mean.get();
            self.now.set(to);
            if to.timed.get() == 0 {
                self.now.mean.set(mean);
            }
        }
        let allotted = if limited { self.now.allotted.get() } else { 1.0 };
        self.spacing.set(allotted.max(1.0));
        self.draw(calls, random)
    }

    /// The times when there were `calls` calls, `ticks` after the last look.
    pub(crate) fn times(&self, calls: u64, ticks: f64) -> Times {
        let unsettled = calls.saturating_sub(self.settled.get()) as f64;
        Times {
            timed: self.timed.get(),
            sum: self.sum.get(),
            unseen: self.unseen(calls, ticks),
            total: self.estimate.get() + self.now.mean.get() * unsettled,
            sampled: self.sampled.get(),
            variance: self.variance.get(),
            squares: self.squares.get(),
            pooled: self.pooled.get(),
            lone: Outliers {
                total: self.lone.get(),
                variance: self.lone_variance.get(),
                squares: self.lone_squares.get(),
            },
        }
    }

    /// The longest since [`take_max`](Self::take_max).
    pub(crate) fn max(&self) -> f64 {
        self.max.get()
    }

    /// The longest since the last time this was asked.
    pub(crate) fn take_max(&self) -> f64 {
        let max = self.max();
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

/// The logarithm to the base of 2 of a number of at least 1, within 0.09: the exponent, and the rest as if it were
/// linear between two powers.
fn log2(number: f64) -> f64 {
    const ONE: u64 = 1 << (f64::MANTISSA_DIGITS - 1);
    number.max(1.0).to_bits() as f64 / ONE as f64 - 1023.0
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

/// How many calls are skipped before a timed one: 0 for the next. `random` is uniform in [0, 1). Each call has
/// the same chance, however many were skipped.
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

/// How many calls a [`drawn`] one stands for: 1 / (1 - e^(-1 / spacing)), as a series.
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
    fn many_short_calls_are_known_no_better_than_the_clock_resolves() {
        // 1,000 calls of 100 ticks, and of 4, with a clock that is off by 5.
        assert!((unresolved_by(5.0, 100_000.0, 1000) - 5000.0).abs() < 1e-9);
        assert!((unresolved_by(5.0, 4000.0, 1000) - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn what_short_calls_took_at_least_is_without_what_timing_them_takes() {
        let times = Times { timed: 10, sum: 400.0, total: 4000.0, unseen: 1e9, ..Times::default() };
        // 100 calls of 40 ticks, of which 10 were timed.
        for (off, at_least) in [(0.0, 4000.0), (30.0, 1000.0), (38.0, 200.0), (50.0, 0.0)] {
            let found = times.at_least_but(off, 100);
            assert!((found - at_least).abs() < 1e-9, "{off}: {found}");
        }
    }

    #[test]
    fn when_every_call_is_timed_the_estimate_is_the_sum() {
        let timing = Timing::new();
        for call in 1..=100 {
            timing.take(call, call as f64, 1.0);
            assert_eq!(timing.next(call, false, false, 0.5), call);
        }
        let known = timing.times(100, 0.0).known(100, 100.0, 0.0);
        assert!((known.total - 5050.0).abs() < 1e-6, "{known:?}");
        assert_eq!(known.error, Some(0.0));
        assert!((timing.take_max() - 100.0).abs() < 1e-9);
        assert!((timing.histogram(100).iter().sum::<f64>() - 100.0).abs() < 1e-9);
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

    #[track_caller]
    fn close(found: &[f64], expected: &[f64]) {
        let is_close = |(found, expected): (&f64, &f64)| {
            (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
        };
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(expected).all(is_close), "{found:?} for {expected:?}");
    }

    #[test]
    fn stretches_of_a_run_add_up_and_none_is_negative() {
        let small = Times {
            timed: 1,
            sum: 2.0,
            unseen: 3.0,
            total: 4.0,
            sampled: 5,
            variance: 6.0,
            squares: 7.0,
            pooled: 8.0,
            lone: Outliers { total: 9.0, variance: 10.0, squares: 11.0 },
        };
        let large = Times {
            timed: 101,
            sum: 202.0,
            unseen: 303.0,
            total: 404.0,
            sampled: 505,
            variance: 606.0,
            squares: 707.0,
            pooled: 808.0,
            lone: Outliers { total: 909.0, variance: 1010.0, squares: 1111.0 },
        };
        let hundred = Times {
            timed: 100,
            sum: 200.0,
            unseen: 300.0,
            total: 400.0,
            sampled: 500,
            variance: 600.0,
            squares: 700.0,
            pooled: 800.0,
            lone: Outliers { total: 900.0, variance: 1000.0, squares: 1100.0 },
        };
        assert_eq!(small.plus(hundred), large);
        assert_eq!(large.minus(small), hundred);
        let none = small.minus(large);
        close(&[none.unseen, none.variance, none.squares, none.pooled], &[0.0; 4]);
        close(&[none.lone.total, none.lone.variance, none.lone.squares], &[0.0; 3]);
        assert_eq!((none.timed, none.sampled), (0, 0));
    }

    #[test]
    fn what_is_known_of_few_untimed_calls_of_many_and_of_too_few() {
        let all = Times { timed: 100, sum: 1000.0, total: 1010.0, unseen: 1e6, ..Times::default() };
        let known = |times: Times, count, longest, elapsed| {
            let Estimate { total, error } = times.known(count, longest, elapsed);
            (total, error)
        };
        assert_eq!(known(all, 100, 10.0, 1e6), (1000.0, Some(0.0)));
        // Four calls of at most 10: they are less than a tenth.
        assert_eq!(known(all, 104, 10.0, 1e6), (1010.0, Some(20.0)));
        assert_eq!(known(all, 104, -1.0, 1e6), (1000.0, Some(0.0)));
        // No more than the time in which there were any.
        assert_eq!(known(Times { unseen: 6.0, ..all }, 104, 10.0, 1e6), (1006.0, Some(3.0)));
        // A tenth is not negligible, and of a hundred calls the error is not known: it is a lower bound.
        assert_eq!(known(all, 110, 10.0, 1e6), (1010.0, None));
        assert_eq!(known(Times { unseen: 200.0, ..all }, 1000, 10.0, 1e6), (1010.0, Some(100.0)));
        assert_eq!(known(Times { unseen: 200.0, ..all }, 1000, 10.0, 1e4), (1010.0, None));

        // Ten differences of the same size, each with a variance of 1,000.
        let ten = Times {
            timed: 2500,
            sum: 25_000.0,
            total: 100_000.0,
            unseen: 1e9,
            sampled: 2000,
            variance: 1e4,
            squares: 1e7,
            pooled: 1e4,
            ..Times::default()
        };
        let (total, error) = known(ten, 10_000, 100.0, 1e9);
        close(&[total, error.unwrap()], &[100_000.0, 115.0]);
        // As they varied more before, but not far more, half of that counts.
        close(&[Times { pooled: 4e4, ..ten }.error().unwrap()], &[2.5e4_f64.sqrt() * 1.15]);
        close(&[Times { pooled: 100.0, ..ten }.error().unwrap()], &[115.0]);
        close(&[Times { pooled: 5e4, ..ten }.error().unwrap()], &[115.0]);
        assert_eq!(Times { pooled: 5e4, sampled: 1800, ..ten }.error(), None);
        assert!(Times { pooled: 5e4, sampled: 1875, ..ten }.error().is_some());
        assert_eq!(Times { timed: 2499, ..ten }.error(), None);
        // Five differences are enough, four are not.
        close(&[Times { squares: 2e7, ..ten }.error().unwrap()], &[130.0]);
        assert_eq!(Times { squares: 2.5e7, ..ten }.error(), None);
        assert_eq!(Times { variance: 0.0, squares: 0.0, ..ten }.error(), None);

        // Where at least half of the calls are timed they need not be many, nor be like those that stand for others.
        let most = Times { timed: 250, sum: 2500.0, total: 5000.0, pooled: 4e4, ..ten };
        close(&[known(most, 500, 100.0, 1e9).1.unwrap()], &[200.0]);
        assert_eq!(known(most, 501, 100.0, 1e9).1, None);
        assert_eq!(known(Times { timed: 249, ..most }, 498, 100.0, 1e9).1, None);
        // What comes once in the time of all timed calls comes once in as much again, and in twice the time as if it came root 2 times.
        let turn = clock::ticks(4e-3);
        close(&[most.hidden(1.0), most.hidden(2.0 * turn)], &[turn, 2.0 * turn]);
        close(&[Times { total: 7500.0, ..most }.hidden(1.0)], &[2.0_f64.sqrt() * turn]);
        close(
            &[
                Times { total: 2624.0, ..most }.hidden(1.0),
                Times { total: 0.0, ..most }.hidden(1.0),
            ],
            &[0.0, 0.0],
        );

        // An error of more than three tenths is none, and the time is what the calls took at least.
        let at_most = |total| known(Times { total, ..ten }, 1_000_000, 100.0, 1e9).1;
        assert!(at_most(384.0).is_some() && at_most(383.0).is_none());
        let wide = Times { variance: 1e10, squares: 1e19, pooled: 1e10, ..ten };
        assert_eq!(known(Times { total: 226_000.0, ..wide }, 10_000, 100.0, 1e9), (26_000.0, None));
        // Without outliers 80,000 are left, with a variance of 1e8.
        let outliers = Outliers { total: 20_000.0, variance: 9.9e9, squares: 7.0 };
        let lone = Times { lone: outliers, ..wide };
        close(&[lone.at_least_but(0.0, 10_000)], &[60_000.0]);
        close(&[lone.regular().0, lone.regular().1], &[80_000.0, 1e8]);
        // Two outliers of 100, of which each stands for four calls: three others.
        let two = Outliers { total: 600.0, variance: 240_000.0, squares: 180_000.0 };
        close(&[two.number(), two.size()], &[2.0, 100.0]);
        let all = two.plus(lone.outliers());
        close(&[all.total, all.variance, all.squares], &[20_600.0, 9.9e9 + 240_000.0, 180_007.0]);
        close(&[Outliers::default().number(), Outliers::default().size()], &[0.0, 0.0]);
        let more = Outliers { variance: 2e10, ..Outliers::default() };
        close(&[Times { lone: more, ..wide }.regular().1], &[0.0]);
        assert_eq!((lone.total(), lone.variance()), (100_000.0, 1e10));
        close(&[ten.untimed_at_most(2510, 3.0), ten.within(1.0, 2510, 3.0)], &[30.0, 25_000.0]);
    }

    /// Of 10 calls, four are timed: of the last two, one stands for 4 calls and one, which is an outlier, for 2.
    fn four_of_ten() -> (Timing, [u64; 4]) {
        let timing = Timing::new();
        let took = |weight, call, ticks| timing.take_as(weight, call, ticks, 4.0);
        let counted =
            [took(1.0, 1, 10.0), took(1.0, 2, 14.0), took(4.0, 6, 8.0), took(2.0, 8, 1000.0)];
        (timing, counted)
    }

    #[test]
    fn each_timed_call_corrects_the_mean_before_it_for_as_many_calls_as_it_stands_for() {
        let (timing, counted) = four_of_ten();
        assert_eq!(counted, [0, 0, 3, 1]);
        // The mean before each: 0, 10, 12, and (10 + 14 + 4 * 8) / 6.
        let third = 56.0 / 6.0;
        let differences = [10.0, 4.0, -4.0, 1000.0 - third];
        let predicted = 10.0 + 4.0 * 12.0 + 2.0 * third;
        let corrections = 10.0 + 4.0 - 4.0 * 4.0 + 2.0 * differences[3];
        let mean = (56.0 + 2.0 * 1000.0) / 8.0;
        // With a resolution of a tick.
        let variances = [4.0 * 3.0 * (16.0 + 1.0), 2.0 * (differences[3] * differences[3] + 1.0)];
        let spreads = [16.0 / 2.0, (16.0 + 4.0 * 16.0) / 6.0];
        let times = timing.times(10, 7.0);
        assert_eq!((times.timed, times.sampled), (4, 2));
        close(
            &[times.sum, times.unseen, times.total, times.variance, times.squares, times.pooled],
            &[
                1032.0,
                7.0,
                predicted + corrections + 2.0 * mean,
                variances[0] + variances[1],
                variances[0] * variances[0] + variances[1] * variances[1],
                12.0 * (spreads[0] + 1.0) + 2.0 * (spreads[1] + 1.0),
            ],
        );
        close(
            &[times.lone.total, times.lone.variance, times.lone.squares],
            &[differences[3], variances[1], differences[3] * differences[3]],
        );
        // The mean of the last ones: a sixteenth each.
        let mut recent = 10.0;
        for ticks in [14.0, 8.0, 1000.0] {
            recent += (ticks - recent) / 16.0;
        }
        close(&[timing.mean(100)], &[recent]);
        close(&[timing.mean(2)], &[516.0]);
        close(&[timing.mean(0)], &[1032.0]);
        assert_eq!(timing.timed(), 4);
        let bars = timing.histogram(16);
        // From 32 ns and from 2048 ns on, at 4 ns a tick.
        close(&[bars[6], bars[12], bars.iter().sum()], &[12.0, 4.0, 16.0]);
        assert_eq!((timing.take_max(), timing.take_max()), (1000.0, 0.0));
        close(&[Timing::new().histogram(3).iter().sum()], &[0.0]);
    }

    #[test]
    fn a_call_that_is_timed_in_any_case_stands_for_itself() {
        let (timing, _) = four_of_ten();
        let before = timing.times(10, 0.0);
        timing.spacing.set(2.0);
        timing.take_certain(300.0, 1.0);
        let after = timing.times(10, 0.0);
        // Instead of the mean of 257.
        close(&[after.total - before.total, after.sum - before.sum], &[43.0, 300.0]);
        assert_eq!((after.timed, after.sampled), (5, 3));
        timing.spacing.set(1.0);
        timing.take_certain(300.0, 1.0);
        assert_eq!(timing.times(10, 0.0).sampled, 3);
        // Of calls that are skipped nothing is said.
        timing.skip(12);
        let skipped = timing.times(14, 0.0).total - timing.times(12, 0.0).total;
        close(&[skipped], &[2.0 * 257.0]);
        close(&[timing.times(12, 0.0).total], &[after.total + 43.0 - 2.0 * 257.0]);
    }

    #[test]
    fn an_outlier_takes_over_32_times_as_long_as_a_typical_call() {
        let stratum = Stratum::new();
        // The first one is compared with nothing.
        assert!(!stratum.is_lone(1e6));
        let stratum = Stratum::new();
        for _ in 0..100 {
            stratum.is_lone(16.0);
            stratum.timed.add(1);
        }
        assert!(!stratum.is_lone(512.0));
        assert!(stratum.is_lone(600.0));
        // A call has a sixty-fourth in the mean of the logarithms, which was 4.
        let found = stratum.typical.get();
        let first = 4.0 + 5.0 / 64.0;
        close(&[found], &[first + (log2(600.0) - first) / 64.0]);
        close(&[log2(0.5), log2(1.0), log2(8.0), log2(12.0)], &[0.0, 0.0, 3.0, 3.5]);
    }

    #[test]
    fn the_next_call_to_time_depends_on_what_is_allotted_and_otherwise_doubles_the_distance() {
        // 1 - e^(-d) of the calls come within `d` spacings.
        assert_eq!([drawn(10.0, 0.5), drawn(10.0, 0.9), drawn(1.49, 0.9)], [6, 23, 0]);
        assert_eq!(drawn(1.5, 0.9), 3);
        close(&[weight(1.49), weight(1e6)], &[1.0, 1e6 + 0.5 + 1.0 / 12e6]);
        for spacing in [1.5_f64, 2.0, 5.0] {
            let exact = 1.0 / (1.0 - (-1.0 / spacing).exp());
            assert!((weight(spacing) / exact - 1.0).abs() < 1e-6, "{spacing}");
        }
        let timing = Timing::new();
        let next = |limited, each, random| timing.next(100, limited, each, random);
        for call in 0..16 {
            // The first ones are all timed.
            assert_eq!((next(true, false, 0.5), timing.spacing()), (100, 1.0), "{call}");
            timing.now.timed.add(1);
        }
        assert_eq!((next(true, false, 0.5), timing.spacing()), (101, 2.0));
        close(&[timing.weight()], &[weight(2.0)]);
        assert_eq!((next(true, false, 0.0), timing.spacing()), (100, 4.0));
        assert_eq!((next(true, true, 0.5), timing.spacing()), (100, 1.0));
        assert_eq!((next(false, false, 0.5), timing.spacing()), (100, 1.0));
        timing.spacing.set(40_000.0);
        next(true, false, 0.5);
        close(&[timing.spacing()], &[65536.0]);
        assert_eq!(timing.allot(0.1, 100, 0.5), 106);
        assert_eq!((next(true, false, 0.9), timing.spacing()), (123, 10.0));
        // The call before it only warms up.
        assert_eq!((timing.allot(1.0 / 64.0, 100, 0.5), timing.is_warm()), (143, false));
        assert_eq!((timing.warms_up(), timing.is_warm()), (true, true));
        assert_eq!((timing.warms_up(), timing.is_warm()), (false, false));
        assert_eq!((timing.allot(1.0 / 64.0, 100, 0.0), timing.is_warm()), (100, true));
        // Up to a distance of 32 none does.
        assert_eq!((timing.allot(1.0 / 32.0, 100, 0.5), timing.is_warm()), (122, false));
        assert!(!timing.warms_up());
        timing.allot(1e-9, 100, 0.0);
        close(&[timing.spacing()], &[65536.0]);
        timing.allot(2.0, 100, 0.0);
        close(&[timing.spacing()], &[1.0]);
        assert_eq!((timing.free(7), timing.spacing(), timing.now.allotted.get()), (7, 1.0, 0.0));
        timing.take_at(3.0, 200, 5.0);
        assert_eq!((timing.spacing(), timing.now.weights.get()), (3.0, weight(3.0)));
    }

    #[test]
    fn a_look_tells_how_often_a_function_is_called_and_how_long_calls_went_unseen() {
        let (timing, _) = four_of_ten();
        let spread = timing.now.spread();
        close(&[spread], &[(80.0 + 2.0 * (1000.0_f64 - 56.0 / 6.0).powi(2)) / 8.0]);
        assert!(timing.look(10, 5.0, 20.0));
        // Fewer than 16 were timed: they may vary by as much as they take.
        close(&[timing.demand().0, timing.demand().1], &[2.0, spread.sqrt().max(257.0)]);
        close(
            &[timing.now.weights.get(), timing.now.differences.get()],
            &[8.0 * 0.998, 8.0 * 0.998 * spread],
        );
        assert_eq!((timing.unseen.get(), timing.untimed.get()), (5.0, 6));
        // No more of them: the rate fades, and no time is added.
        assert!(timing.look(10, 20.0, 20.0));
        close(&[timing.demand().0, timing.unseen.get()], &[2.0 * 20.0 / (20.0 + 20.0), 5.0]);
        close(&[timing.times(11, 3.0).unseen], &[8.0]);
        timing.look(13, 0.5, 20.0);
        // At least a tick.
        close(&[timing.demand().0], &[3.0]);

        let steady = Timing::new();
        assert_eq!(steady.demand(), (0.0, 0.0));
        for call in 1..=16 {
            steady.take(call, 100.0, 1.0);
            let least = if call < 16 { 100.0 } else { 5.0 };
            close(&[steady.demand().1], &[least]);
        }
        assert!(!Timing::new().look(10, 5.0, 20.0), "none was timed");
        assert!(!steady.look(0, 5.0, 20.0), "none was made");
    }

    #[test]
    fn each_phase_has_its_own_mean_and_begins_with_that_of_the_one_before() {
        let (timing, _) = four_of_ten();
        assert_eq!(timing.change_phase((0, 1), true, 10, 0.5), 10);
        // Two calls more of the first phase.
        close(&[timing.times(10, 0.0).total], &[2056.0 + 2.0 * 257.0]);
        close(&[timing.now.mean.get()], &[257.0]);
        assert_eq!((timing.now.timed.get(), timing.looked.get()), (0, 10));
        timing.take_as(1.0, 11, 50.0, 1.0);
        close(&[timing.now.mean.get()], &[50.0]);
        timing.allot(0.1, 11, 0.5);
        assert_eq!(timing.change_phase((1, 0), true, 20, 0.5), 20);
        close(&[timing.now.mean.get(), timing.now.weights.get()], &[257.0, 8.0]);
        assert_eq!(timing.now.timed.get(), 4);
        // What was allotted to a phase is so again; unless there is no limit.
        assert_eq!(timing.change_phase((0, 1), true, 30, 0.5), 36);
        assert_eq!((timing.now.mean.get(), timing.spacing()), (50.0, 10.0));
        assert_eq!(timing.change_phase((1, 17), false, 40, 0.5), 40);
        assert_eq!((timing.now.mean.get(), timing.spacing()), (50.0, 1.0), "17 shares it with 1");
    }
}
