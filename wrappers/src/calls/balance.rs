//! How does a stretch of a run divide between the program's own code and its calls, when only some of them were
//! timed?
//!
//! Calls and the gaps between them are sampled alike, and the length of the stretch is known exactly. What samples
//! show of calls and gaps that are like each other (`Times::regular`) is known well; what is left of the
//! stretch is the time of outliers, of which a sample shows few or none: a rank that lost its processor in a call, or
//! a long computation between two of a thousand calls. How much that is in all follows by subtraction. How it is
//! divided is known only as well as the outliers in the sample tell: by the rule of succession (Laplace), as if one
//! had been seen in a call and one in the program's own code. So the estimate stays within what is possible, and its
//! error shrinks with the remainder, and with each outlier that is seen. Where that is large, as in a program that computes for
//! as long as a thousand calls take, the timed calls of a function tell more of the others than the remainder does.

use std::collections::BTreeMap;

use crate::calls::estimate::{Estimate, Outliers, Times, WORTH_TELLING, unresolved};
use crate::calls::ledger::{Calls, Limited};

/// So many standard errors of the rest may be outliers that do not show.
const HIDDEN: f64 = 2.0;
/// What the timed calls of a function tell of the others counts, not what the rest of the run tells, when its error is less than this
/// part of the other one. They are not independent: of two about as good, the rest has what the calls do not show.
const FAR_LESS: f64 = 0.5;

/// The times of functions, by their numbers, and of all of them together.
pub(crate) struct Balance {
    pub(crate) functions: BTreeMap<usize, Estimate>,
    pub(crate) all: Estimate,
}

#[derive(Clone, Copy, Default)]
struct Part {
    regular: f64,
    variance: f64,
    /// What outliers in the sample stand for.
    outliers: f64,
    /// What was expected of outliers before any was seen; the sum over the calls is 1, as for own code.
    expected: f64,
}

/// The balance of a stretch in which one thread called MPI; none when every call of it was timed.
pub(crate) fn balance(calls: &BTreeMap<usize, Calls>, limited: &Limited) -> Option<Balance> {
    let timed = || calls.iter().filter(|(_, calls)| calls.times.timed > 0);
    let untimed = |calls: &Calls| calls.count > calls.times.timed;
    if limited.ticks <= 0.0 || !timed().any(|(_, calls)| untimed(calls)) {
        return None;
    }
    let others = |calls: &Calls| {
        if untimed(calls) { (calls.times.regular().0 - calls.times.sum).max(0.0) } else { 0.0 }
    };
    let all_others: f64 = timed().map(|(_, calls)| others(calls)).sum();
    let not_timed = |calls: &Calls| calls.count.saturating_sub(calls.times.timed) as f64;
    let all_not_timed: f64 = timed().map(|(_, calls)| not_timed(calls)).sum();
    let part = |times: &Times, expected: f64| {
        let (regular, variance) = times.regular();
        Part { regular, variance, outliers: times.outliers().total, expected }
    };
    let own = part(&limited.gaps, 1.0);
    let parts: Vec<(usize, Part)> = timed()
        .map(|(function, calls)| {
            // Where those that were timed have all of the time, each of the others may have an outlier.
            let expected = if all_others > 0.0 {
                others(calls) / all_others
            } else {
                not_timed(calls) / all_not_timed
            };
            (*function, part(&calls.times, expected))
        })
        .collect();
    let mut in_calls = Part { regular: -limited.certain, expected: 1.0, ..Part::default() };
    for (_, part) in &parts {
        in_calls.regular += part.regular;
        in_calls.variance += part.variance;
        in_calls.outliers += part.outliers;
    }
    let all_outliers = timed()
        .map(|(_, calls)| calls.times.outliers())
        .fold(limited.gaps.outliers(), Outliers::plus);
    let outliers = all_outliers.total;
    let variance = in_calls.variance + own.variance;
    let left = limited.ticks - limited.spent - in_calls.regular - own.regular;
    let noise = left.min(0.0);
    let remainder = left - noise;
    // Outliers in the sample tell of no more than they stand for: the rest is that of others, which are longer.
    // What they stand for is itself known within an error only.
    let may_be = outliers + all_outliers.variance.sqrt();
    let told_of = if outliers > 0.0 { remainder.min(may_be) } else { 0.0 };
    let seen = all_outliers.number();
    // Each of those that were not seen is either in a call or in own code.
    let one_of_told = if told_of > 0.0 { (all_outliers.size() / told_of).min(1.0) } else { 0.0 };
    // Outliers may hide in the noise, too: the rest is known no better than what it was subtracted from.
    let untold = remainder - told_of;
    let known = |part: &Part| {
        let of_noise = if variance > 0.0 { part.variance / variance } else { 0.0 };
        let of_outliers = if outliers > 0.0 { part.outliers / outliers } else { 0.0 };
        let share = |seen: f64, one: f64| {
            let share = (seen * of_outliers + part.expected) / (seen + 2.0);
            // Of the share, and of what has it: the beta-binomial distribution.
            (share, share * (1.0 - share) * (1.0 / (seen + 3.0) + one).min(1.0))
        };
        let (of_told, told_variance) = share(seen, one_of_told);
        let (of_untold, untold_variance) = share(0.0, 0.0);
        let total = part.regular + noise * of_noise + of_told * told_of + of_untold * untold;
        let unsure = untold + HIDDEN * variance.sqrt();
        let of_shares = told_variance * told_of * told_of + untold_variance * unsure * unsure;
        (total, part.variance * (1.0 - of_noise) + of_shares)
    };
    let functions = parts.iter().filter_map(|(function, part)| {
        let calls = calls.get(function)?;
        let known = if untimed(calls) {
            row(calls, known(part), limited.ticks)
        } else {
            Estimate { total: calls.times.sum, error: Some(0.0) }
        };
        Some((*function, known))
    });
    let functions: BTreeMap<usize, Estimate> = functions.collect();
    let total: f64 = functions.values().map(|known| known.total).sum();
    // A few rows may be lower bounds; what they leave out is part of the remainder.
    let (whole, variance) = known(&in_calls);
    let off = (whole + limited.certain - total).max(0.0);
    let of_functions: f64 = functions
        .iter()
        .filter(|(_, known)| known.error != Some(0.0))
        .filter_map(|(function, known)| Some(unresolved(known.total, calls.get(function)?.count)))
        .sum();
    let error = libm::hypot(variance.sqrt(), of_functions) + off;
    // As for a function: the rest may tell little.
    let error = error.min(error_of_rows(calls, &functions));
    let all = told(total, error).unwrap_or(Estimate { total, error: None });
    Some(Balance { functions, all })
}

/// The standard error of all rows together. What hides in those that have none hides in each by itself.
fn error_of_rows(calls: &BTreeMap<usize, Calls>, functions: &BTreeMap<usize, Estimate>) -> f64 {
    let (mut error, mut of_untold) = (0.0, 0.0);
    for (function, known) in functions {
        let Some(Calls { times, max, .. }) = calls.get(function) else { continue };
        error += known.error.unwrap_or(0.0);
        if known.error.is_none() {
            of_untold =
                libm::hypot(of_untold, libm::hypot(times.plain_error(), times.hidden(*max)));
        }
    }
    error + of_untold
}

/// The time of one function in a stretch of so many ticks, for which the rest of the stretch leaves `total` with a `variance`.
fn row(calls: &Calls, (total, variance): (f64, f64), ticks: f64) -> Estimate {
    let Calls { times, count, max, .. } = calls;
    let within = times.within(total, *count, *max);
    // More than can be of calls like those that were seen is a lower bound.
    let off = (total - within).abs();
    let of_rest = told(within, variance.sqrt()).filter(|known| known.error > Some(off));
    let of_rest = of_rest.map(|Estimate { total, error }| {
        // What was cut off may be there.
        let unresolved = unresolved(total, *count);
        let error = error.map(|error| libm::hypot(error, unresolved) + off);
        Estimate { total, error }
    });
    // The rest tells little where one computation takes as long as a thousand calls.
    let direct = times.known(*count, *max, ticks);
    let with_hidden = |error| told(direct.total, libm::hypot(error, times.hidden(*max)));
    let tells_more = |direct: &Estimate| {
        of_rest.is_none_or(|rest| direct.error < rest.error.map(|error| FAR_LESS * error))
    };
    let direct = direct.error.and_then(with_hidden).filter(tells_more);
    direct.or(of_rest).unwrap_or_else(|| times.at_least(*count, *max))
}

/// None when the error is too large for an estimate.
fn told(total: f64, error: f64) -> Option<Estimate> {
    (error <= WORTH_TELLING * total).then_some(Estimate { total, error: Some(error) })
}
