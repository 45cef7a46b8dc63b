//! When did a series of numbers change? Runs of a program over commits, or weeks of a host: in their order, of any distribution.
//!
//! The statistic is that of Mann, Whitney and Pettitt: how far the ranks before a place are from those after it. Ranks do not
//! care how long the tail of run times is, or how many modes they have. The place is looked for in the whole series and in seeded
//! intervals of it (Kovács, Bühlmann, Li and Munk, Biometrika 110, 2023), so that what was slower for a while is found as
//! well; then again before and after each change. The statistic is divided by what autocorrelation adds to it (Shao and Zhang,
//! JASA 105, 2010), since machines are slow for several runs in a row. Its largest value in a series is compared with that of
//! made-up series in which nothing changed ([`NOISES`]): so `alpha` holds for a whole series, not for each place in it.
//!
//! E-divisive (Matteson and James 2014; Daly and others 2020, at `MongoDB`) and its successor with a t-test (Fleming and others
//! 2023, Hunter) look at means, which one run of three times the length moves, and take runs for independent. CUSUM and PELT
//! have to be told how large the noise is, or what a change costs.
//!
//! It deliberately does not judge how large a change has to be to matter. It cannot tell a step from a random walk.

mod noise;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;

use crate::statistics::{median, shift};
use noise::{NOISES, noise};

/// Fewer numbers cannot show a change ([`least_p`](crate::statistics::least_p)).
pub(crate) const VALUES_AT_LEAST: usize = 8;
/// How many series a distribution is made of, and how many numbers these have in all.
const SERIES: RangeInclusive<usize> = 400..=2000;
const NUMBERS: usize = 100_000;
/// The changes that are taken out of a series before its autocorrelation is estimated: one for so many numbers, and no fewer than
/// these.
const VALUES_PER_CHANGE: usize = 20;
const CHANGES_AT_LEAST: usize = 2;
/// The autocorrelations that count, weighted by the window of Bartlett.
const LAGS: usize = 2;
/// The least factor that they can make of the variance of a mean.
const VARIANCE_AT_LEAST: f64 = 0.1;
/// Places at which the numbers fit worse than at the best one by this many mean deviations are out of the question: of
/// simulated changes, 95 % are within.
const FITS: f64 = 3.0;

/// A place where a series changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChangePoint {
    /// The first number after it.
    pub(crate) index: usize,
    /// Where that number is with 95 %.
    pub(crate) within: RangeInclusive<usize>,
    /// The numbers from here to the next change, over those back to the one before: 1.08 for 8 % more.
    pub(crate) ratio: f64,
    /// The ends of the interval of `ratio` with 95 %.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The probability that a series without a change seems to have one as clear as this, anywhere.
    pub(crate) p: f64,
}

/// How large the statistic gets in series without a change, by their length: made when it is needed first, and kept for other
/// series.
#[derive(Default)]
pub(crate) struct Unchanged {
    largest: BTreeMap<usize, Vec<Vec<f64>>>,
}

/// The changes of `values`, in their order: of series without a change, a part of at most `alpha` has any. None of fewer than
/// [`VALUES_AT_LEAST`] values, and none where one is not positive.
pub(crate) fn change_points(
    values: &[f64],
    alpha: f64,
    unchanged: &mut Unchanged,
) -> Vec<ChangePoint> {
    if values.len() < VALUES_AT_LEAST || !values.iter().all(|of| *of > 0.0 && of.is_finite()) {
        return Vec::new();
    }
    let logs: Vec<f64> = values.iter().map(|value| libm::log(*value)).collect();
    let ranks = ranks(&logs);
    let wider = widening(&logs, &ranks);
    let mut found = splits(&ranks, wider, alpha, unchanged.of_length(values.len()));
    locate(&logs, &mut found);
    let parts = parts(values.len(), &found);
    let change = |(parts, split): (&[Range<usize>], &Split)| {
        let (begin, end) = (parts[0].start, parts[1].end);
        let shift = shift(&logs[begin..split.index], &logs[split.index..end])?;
        let edge = |edge: f64| libm::exp(shift.estimate + wider.max(1.0) * (edge - shift.estimate));
        Some(ChangePoint {
            index: split.index,
            within: where_it_fits(&logs, begin..end, split.index),
            ratio: libm::exp(shift.estimate),
            low: edge(shift.low),
            high: edge(shift.high),
            p: split.p,
        })
    };
    parts.windows(2).zip(&found).filter_map(change).collect()
}

/// A place, and the probability of one like it.
#[derive(Clone, Copy, Debug)]
struct Split {
    index: usize,
    p: f64,
}

/// The rank of each number, from 0. Equal numbers are ranked by lot, so that every order of ranks stays equally likely.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut order);
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    order.iter().enumerate().for_each(|(rank, at)| ranks[*at] = rank as f64);
    ranks
}

/// Intervals in `whole`: all of it, and shorter ones by the root of two each time, which overlap by half at least.
fn intervals(whole: Range<usize>) -> Vec<Range<usize>> {
    let mut intervals = Vec::new();
    let mut length = whole.len();
    while length >= VALUES_AT_LEAST {
        let rest = whole.len() - length;
        let steps = (2 * rest).div_ceil(length);
        intervals.extend((0..=steps).map(|step| {
            let from = whole.start + (step * rest).checked_div(steps).unwrap_or(0);
            from..from + length
        }));
        // 0.707 of it.
        length = (length * 707).div_ceil(1000);
    }
    intervals
}

/// The place in `part` before and after which ranks differ most, and how much, in standard deviations.
fn most_different(ranks: &[f64], part: Range<usize>) -> Option<(usize, f64)> {
    let whole = part.len() as f64;
    let places = intervals(part).into_iter().filter_map(|interval| {
        let (split, statistic) = best_split(&ranks[interval.clone()])?;
        // There are more short intervals, so one of them is extreme more often.
        let penalty = (libm::log(whole / interval.len() as f64) / 2.0).sqrt();
        Some((interval.start + split, statistic - penalty))
    });
    places.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// The same for one interval: the sum of the ranks that its numbers have within it, which is that of Mann and Whitney.
fn best_split(interval: &[f64]) -> Option<(usize, f64)> {
    let mut order: Vec<usize> = (0..interval.len()).collect();
    order.sort_unstable_by(|one, other| interval[*one].total_cmp(&interval[*other]));
    let all = interval.len() as f64;
    let mut centred = vec![0.0; interval.len()];
    let ranked = order.iter().enumerate();
    ranked.for_each(|(rank, at)| centred[*at] = rank as f64 - (all - 1.0) / 2.0);
    let mut sum: f64 = 0.0;
    let statistics = centred.iter().zip(1..interval.len()).map(|(rank, split)| {
        sum += rank;
        let (before, after) = (split as f64, all - split as f64);
        (split, sum.abs() / (before * after * (all + 1.0) / 12.0).sqrt())
    });
    statistics.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// Where the series changed: the place where it differs most, then those before and after it, until chance explains them.
fn splits(ranks: &[f64], wider: f64, alpha: f64, unchanged: &[Vec<f64>]) -> Vec<Split> {
    let mut found = Vec::new();
    let mut left: Vec<Range<usize>> = std::iter::once(0..ranks.len()).collect();
    while let Some(part) = left.pop() {
        let Some((index, statistic)) = most_different(ranks, part.clone()) else { continue };
        let p = unchanged.iter().map(|of| probability(of, statistic / wider)).fold(0.0, f64::max);
        if p <= alpha {
            found.push(Split { index, p });
            left.extend([part.start..index, index..part.end]);
        }
    }
    found.sort_by_key(|split| split.index);
    found
}

/// This many places where the series differs most, whether by chance or not.
fn likeliest(ranks: &[f64], number: usize) -> Vec<Split> {
    let split_of = |part: Range<usize>| {
        most_different(ranks, part.clone()).map(|(index, statistic)| (part, index, statistic))
    };
    let mut found = Vec::new();
    let mut left: Vec<_> = split_of(0..ranks.len()).into_iter().collect();
    while found.len() < number && !left.is_empty() {
        left.sort_by(|one, other| one.2.total_cmp(&other.2));
        let Some((part, index, _)) = left.pop() else { break };
        found.push(Split { index, p: 1.0 });
        left.extend([part.start..index, index..part.end].into_iter().filter_map(split_of));
    }
    found.sort_by_key(|split| split.index);
    found
}

/// How often the statistic is as large in series without a change, which are sorted. Among the largest 1 % it is taken to fall
/// exponentially, as fast as from the largest 10 % to these.
fn probability(unchanged: &[f64], statistic: f64) -> f64 {
    let all = unchanged.len();
    let [tenth, hundredth] = [10, 100].map(|part| unchanged[all - 1 - all / part]);
    if statistic <= hundredth || hundredth <= tenth {
        let below = unchanged.partition_point(|other| *other < statistic);
        return (all - below + 1) as f64 / (all + 1) as f64;
    }
    0.01 * libm::exp(-std::f64::consts::LN_10 * (statistic - hundredth) / (hundredth - tenth))
}

/// The stretches between splits.
fn parts(length: usize, splits: &[Split]) -> Vec<Range<usize>> {
    let places = || splits.iter().map(|split| split.index);
    [0].into_iter()
        .chain(places())
        .zip(places().chain([length]))
        .map(|(from, to)| from..to)
        .collect()
}

/// Moves each split to where the numbers on both sides are nearest to their medians: ranks in an interval tell that there is a
/// change better than where.
fn locate(logs: &[f64], splits: &mut [Split]) {
    for at in 0..splits.len() {
        let begin = at.checked_sub(1).map_or(0, |before| splits[before].index);
        let end = splits.get(at + 1).map_or(logs.len(), |next| next.index);
        let nearness = |index: &usize| misfit(logs, begin..end, *index);
        let best = (begin + 1..end).min_by(|one, other| nearness(one).total_cmp(&nearness(other)));
        splits[at].index = best.unwrap_or(splits[at].index);
    }
}

/// The places around `index` at which the numbers of `part` fit about as well.
fn where_it_fits(logs: &[f64], part: Range<usize>, index: usize) -> RangeInclusive<usize> {
    let best = misfit(logs, part.clone(), index);
    let most = best + FITS * best / part.len() as f64;
    let fits = |at: &usize| misfit(logs, part.clone(), *at) <= most;
    let mut all = (part.start + 1..part.end).filter(fits);
    let first = all.next().unwrap_or(index);
    first..=all.next_back().unwrap_or(first)
}

/// The distances of all numbers of `part` from the median of their side of `index`, added up.
fn misfit(logs: &[f64], part: Range<usize>, index: usize) -> f64 {
    let of_side = |side: &[f64]| {
        let middle = median(side).unwrap_or_default();
        side.iter().map(|value| (value - middle).abs()).sum::<f64>()
    };
    of_side(&logs[part.start..index]) + of_side(&logs[index..part.end])
}

/// How many times larger the error of a mean is than that of independent numbers, when the likeliest changes are taken out.
fn widening(logs: &[f64], ranks: &[f64]) -> f64 {
    let mut changes = likeliest(ranks, (logs.len() / VALUES_PER_CHANGE).max(CHANGES_AT_LEAST));
    locate(logs, &mut changes);
    let mut left = Vec::with_capacity(logs.len());
    for part in parts(logs.len(), &changes) {
        let middle = median(&logs[part.clone()]).unwrap_or_default();
        left.extend(logs[part].iter().map(|value| value - middle));
    }
    // An outlier must not hide what the others do.
    let middle = (left.len() as f64 - 1.0) / 2.0;
    let scores: Vec<f64> = self::ranks(&left).into_iter().map(|rank| rank - middle).collect();
    let product = |lag: usize| {
        scores.iter().zip(scores.iter().skip(lag)).map(|(one, other)| one * other).sum::<f64>()
    };
    let weighted = |lag: usize| 2.0 * (1.0 - lag as f64 / (LAGS + 1) as f64) * product(lag);
    let correlated = (1..=LAGS).map(weighted).sum::<f64>() / product(0);
    (1.0 + correlated).max(VARIANCE_AT_LEAST).sqrt()
}

impl Unchanged {
    /// The largest statistics of series of this length, sorted, for each of the [`NOISES`].
    fn of_length(&mut self, length: usize) -> &[Vec<f64>] {
        self.largest.entry(length).or_insert_with(|| {
            let series = (NUMBERS / length).clamp(*SERIES.start(), *SERIES.end());
            let largest = |of| {
                let mut random = fastrand::Rng::with_seed(1);
                let statistic = |_| {
                    let numbers = noise(of, length, &mut random);
                    let ranks = ranks(&numbers);
                    let (_, most) = most_different(&ranks, 0..length)?;
                    Some(most / widening(&numbers, &ranks))
                };
                let mut largest: Vec<f64> = (0..series).filter_map(statistic).collect();
                largest.sort_by(f64::total_cmp);
                largest
            };
            NOISES.into_par_iter().map(largest).collect()
        })
    }
}
