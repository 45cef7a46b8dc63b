//! How much may gyan do now, so that what it costs stays within the budget?
//!
//! The budget is a share of the elapsed time, for all that gyan does after the start. What was spent
//! is known: each timed call and each reading of variables is entered here with what it was measured
//! to cost, each counted call with what counting was found to cost at the start. While less was spent
//! than the elapsed time allows, calls are timed and variables read more often, else more rarely. The
//! start and what the end will take are held back, so that the share of the whole run comes out right
//! for runs of a second or more. A run begins with a credit: in short programs everything is seen.

#![forbid(unsafe_code)]

pub(crate) mod objects;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::cells::{Real, Whole};
use crate::sys::clock;

/// As much as is allowed for in this time is spent freely at the beginning.
const CREDIT_S: f64 = 0.2;
/// What is left over is spent within this time.
const HORIZON_S: f64 = 1.0;
/// When too much was spent, this part of the budget goes on: nothing is ever blind.
const LEAST: f64 = 1.0 / 4.0;
/// The part of the budget that is for snapshots, and their share of the time without a budget.
const SNAPSHOTS: f64 = 1.0 / 4.0;
const SNAPSHOTS_AT_MOST: f64 = 0.005;
/// The end takes as long as the start and this part of it.
const END_BY_START: f64 = 1.25;
/// All functions are looked at after this time, to see which are called more rarely than before.
const LOOK_S: f64 = 0.01;
/// How much a new measurement of a cost counts against the earlier ones.
const NOVELTY: f64 = 1.0 / 8.0;
/// What takes so many times as long as before was interrupted.
const IMPLAUSIBLE: f64 = 8.0;

/// No limit: every call is timed, at every call in question variables are read.
static UNLIMITED: AtomicBool = AtomicBool::new(false);
static BUDGET: Real = Real::new(0.0);
static STARTED: Whole = Whole::new(0);
/// Ticks of the start and the end.
static RESERVE: Real = Real::new(0.0);
static SPENT: Whole = Whole::new(0);
/// Ticks that counting a call takes, that timing one takes before and behind it.
static COUNTED: Real = Real::new(0.0);
static TIMED: Real = Real::new(0.0);
static BEHIND: Real = Real::new(0.0);
static SAMPLING: Real = Real::new(0.0);
static BETWEEN: Real = Real::new(0.0);
/// Ticks spent on reading variables, looking at stacks and writing snapshots.
static BESIDE_CALLS: Whole = Whole::new(0);
/// Functions that are being called, and variables that are sampled.
static FUNCTIONS: Whole = Whole::new(1);
static VARIABLES: Whole = Whole::new(0);
static LOOKED: Whole = Whole::new(0);

/// What calls cost, in ticks, as it was found at the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    pub(crate) counted: f64,
    pub(crate) timed: f64,
    /// What is measured of a function that does nothing: part of each time.
    pub(crate) between: f64,
}

/// The budget as a share of the elapsed time, none for no limit. The run began at `started`, or goes on
/// then after an earlier end.
pub(crate) fn begin(budget: Option<f64>, started: u64, start_ticks: f64) {
    UNLIMITED.store(budget.is_none(), Ordering::Relaxed);
    BUDGET.set(budget.unwrap_or(0.0));
    // What was spent before counts against the time since the first start.
    if SPENT.get() == 0 {
        STARTED.set(started);
    }
    RESERVE.add(start_ticks * (1.0 + END_BY_START));
}

pub(crate) fn learn(costs: Costs) {
    COUNTED.set(costs.counted);
    BETWEEN.set(costs.between);
    TIMED.set((costs.timed - BEHIND.get()).max(0.0));
}

/// Ticks that are measured when a function does nothing.
pub(crate) fn between() -> f64 {
    BETWEEN.get()
}

/// The variables that are sampled.
pub(crate) fn set_variables(number: usize) {
    VARIABLES.set(number as u64);
}

#[inline]
pub(crate) fn is_unlimited() -> bool {
    UNLIMITED.load(Ordering::Relaxed)
}

fn spend(ticks: f64) {
    SPENT.add_shared(clock::whole(ticks));
}

/// `ticks` were spent on something else than counting and timing calls.
pub(crate) fn spent(ticks: u64) {
    BESIDE_CALLS.add_shared(ticks);
    SPENT.add_shared(ticks);
}

/// All the ticks that [`spent`] and [`sampled`] were told of.
pub(crate) fn beside_calls() -> u64 {
    BESIDE_CALLS.get()
}

/// A call was timed, and `counted` were counted since the last that was.
pub(crate) fn spend_on_calls(counted: u64) {
    spend(COUNTED.get() * counted as f64 + timed_ticks());
}

/// What lies behind a timed call took `ticks`.
pub(crate) fn learn_behind(ticks: f64) {
    BEHIND.set(learned(BEHIND.get(), ticks));
}

/// A cost that was `known`, 0 for not at all, and was now measured. One that is far larger is that of
/// an interruption, which is none of gyan's cost.
pub(crate) fn learned(known: f64, measured: f64) -> f64 {
    if known == 0.0 { measured } else { known + (plausible(known, measured) - known) * NOVELTY }
}

/// What was measured, without what cannot be gyan's cost.
fn plausible(known: f64, measured: f64) -> f64 {
    if known == 0.0 { measured } else { measured.min(known * IMPLAUSIBLE) }
}

/// Variables were read for `ticks` at a call. Without a limit all of it counts, else as much as is gyan's
/// cost.
pub(crate) fn sampled(ticks: u64) {
    if is_unlimited() {
        BESIDE_CALLS.add_shared(ticks);
        return;
    }
    let known = SAMPLING.get();
    SAMPLING.set(learned(known, ticks as f64));
    spent(clock::whole(plausible(known, ticks as f64)));
}

/// Ticks that timing a call takes.
fn timed_ticks() -> f64 {
    TIMED.get() + BEHIND.get()
}

/// The share of the time from `now` on that gyan may take; infinite when it does not matter.
fn rate(now: u64) -> f64 {
    let budget = BUDGET.get();
    let spent = SPENT.get() as f64;
    if is_unlimited() || spent < budget * clock::ticks(CREDIT_S) {
        return f64::INFINITY;
    }
    let allowed = budget * now.wrapping_sub(STARTED.get()) as f64 - RESERVE.get();
    let left = allowed - spent;
    if left < 0.0 { budget * LEAST } else { budget + left / clock::ticks(HORIZON_S) }
}

/// Whether something that costs `ticks`, and was done last at `last`, may be done now for the user who
/// asked for it: half of the budget of the time since is for that, whatever was spent on the rest.
pub(crate) fn allows(now: u64, last: u64, ticks: f64) -> bool {
    rate(now).is_infinite() || ticks <= BUDGET.get() * 0.5 * now.wrapping_sub(last) as f64
}

/// Ticks that are to lie between two timed calls of one function.
pub(crate) fn gap(now: u64) -> f64 {
    let functions = FUNCTIONS.get().max(1) as f64;
    let share = if VARIABLES.get() > 0 { 0.5 } else { 1.0 };
    apart(timed_ticks() * functions, rate(now) * share)
}

/// Ticks that are to lie between two readings of a variable that takes `cost` to read.
pub(crate) fn between_readings(now: u64, cost: f64) -> f64 {
    let variables = VARIABLES.get().max(1) as f64;
    apart(cost * variables, rate(now) * 0.5)
}

/// Ticks that are to lie between two snapshots, of which one takes `cost`: a quarter of the budget is for
/// them, and half of the credit, so that nothing is lost of a program that dies young.
pub(crate) fn between_snapshots(cost: f64) -> f64 {
    if is_unlimited() {
        return apart(cost, SNAPSHOTS_AT_MOST);
    }
    let has_credit = SPENT.get() as f64 + cost < 0.5 * BUDGET.get() * clock::ticks(CREDIT_S);
    if has_credit { 0.0 } else { apart(cost, BUDGET.get() * SNAPSHOTS) }
}

fn apart(ticks: f64, share: f64) -> f64 {
    // A budget of nothing is one of next to nothing.
    if share.is_infinite() { 0.0 } else { ticks / share.max(1e-9) }
}

/// Ticks since the last look at all functions, when it is time for another.
pub(crate) fn look(now: u64) -> Option<f64> {
    let ticks = now.wrapping_sub(LOOKED.get()) as f64;
    (ticks > clock::ticks(LOOK_S)).then(|| {
        LOOKED.set(now);
        ticks
    })
}

/// So many functions are being called.
pub(crate) fn set_functions(number: u64) {
    FUNCTIONS.set(number);
}

/// Ticks that gyan spent in wrappers, when `counted` calls were counted and `timed` of them timed.
pub(crate) fn wrappers(counted: u64, timed: u64) -> f64 {
    counted as f64 * COUNTED.get() + timed as f64 * timed_ticks()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_approaches_the_budget_from_either_side() {
        begin(Some(0.005), 0, clock::ticks(0.001));
        learn(Costs { counted: 1.0, timed: clock::ticks(1e-7), between: 0.0 });
        assert!(gap(0) == 0.0, "there is a credit");
        // A program that always has something to time: time goes by in steps of the gap.
        let mut now = 0.0;
        while now < clock::ticks(5.0) {
            spend_on_calls(0);
            now += 1000.0_f64.max(gap(clock::whole(now)));
        }
        let total = SPENT.get() as f64 + RESERVE.get();
        let share = total / now;
        assert!((0.004..=0.00501).contains(&share), "{share}");
        // A run that goes on may spend what the time since its first start allows.
        let before = gap(clock::whole(now));
        begin(Some(0.005), clock::whole(now), 0.0);
        assert!((gap(clock::whole(now)) / before - 1.0).abs() < 1e-9);
        // Twice as much as allowed: only the least goes on.
        spend(total);
        assert!((rate(clock::whole(now)) - 0.005 * LEAST).abs() < 1e-9);
        let second = clock::ticks(1.0);
        let last = clock::whole(now - second);
        assert!(allows(clock::whole(now), last, 0.002 * second));
        assert!(!allows(clock::whole(now), last, 0.003 * second));
    }
}
