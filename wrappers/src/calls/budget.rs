//! How much may gyan do now, so that what it costs stays within the budget?
//!
//! The budget is a share of the time since the start, for everything that gyan chooses to do after it; the
//! start and the end have lines of their own in the report. Expenses are known: each timed call and each
//! reading of variables is entered here with its measured cost, and each counted call with the cost of counting
//! that was measured at the start.
//!
//! There are two pots. *Calls* pays for counting and timing, *beside* for everything else: readings, snapshots,
//! stacks, phases. Neither takes what the other was promised, but either may use what the other leaves over. Counting
//! cannot be left out, and does not take what timing was promised.
//! The cheapest knowledge comes first: as long as timing every call takes no more than a part of the budget,
//! every call is timed. A run begins with a credit, so that short programs are seen completely.

#![forbid(unsafe_code)]

pub(crate) mod objects;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::cells::{Counter, Gauge};
use crate::sys::clock;

/// The part of the budget that is planned with: what work costs is known only after it.
const PLANNED: f64 = 0.9;
/// The budget of this time may be spent freely at the beginning.
const CREDIT_S: f64 = 0.2;
/// Whatever is left over is spent within this time.
const HORIZON_S: f64 = 0.25;
/// As long as counting and timing take less than this part of the budget, every call is timed.
const FREE: f64 = 0.6;
/// The part of the budget for calls when some must be left out, and the part for everything else.
const CALLS: f64 = 0.7;
const BESIDE: f64 = 0.3;
/// For work other than calls, a young program may spend this part of the credit.
const BESIDE_AT_FIRST: f64 = 0.5;
/// Of that, what is kept for levels and watermarks, such as the lengths of queues, which pass: nothing else may use it.
const LEVELS_AT_FIRST: f64 = 0.3;
/// The part of the budget that is for them alone, whatever was spent on the rest.
const LEVELS: f64 = 0.1;
/// The part of what readings may take that other variables get beside them: the user may want a thousand counters sampled.
const BESIDE_LEVELS: f64 = 0.5;
/// Work that the user asked for may take this part of the budget, and the second one when no more than `RESERVE` of
/// the budget is left.
const ASKED_FOR: f64 = 0.5;
const ASKED_FOR_AT_LEAST: f64 = 0.25;
const RESERVE: f64 = 0.1;
/// Timing calls gets this part of the budget, whatever counting costs, which nobody can leave out.
const TIMING: f64 = 0.4;
/// When too much was spent, readings still get this part of the budget: gyan is never blind.
const LEAST_FOR_READINGS: f64 = 1.0 / 8.0;
/// The part of the budget that is for snapshots, and their share of the time without a budget.
const SNAPSHOTS: f64 = 0.15;
const SNAPSHOTS_AT_MOST: f64 = 0.005;
/// The part of the budget that is for stacks of call sites, and their share of the time without a budget.
const STACKS: f64 = 0.05;
const STACKS_AT_MOST: f64 = 0.005;
/// The part of the budget that is for timing parallel regions of OpenMP.
const REGIONS: f64 = 0.2;
/// How much a new measurement of a cost counts against the earlier ones.
const NOVELTY: f64 = 1.0 / 8.0;
/// Work that takes this many times as long as before was interrupted.
const IMPLAUSIBLE: f64 = 8.0;

/// The first pieces of work of a kind are all measured, and then one in `MEASURED_EVERY`.
const MEASURED_AT_FIRST: u64 = 64;
const MEASURED_EVERY: u64 = 16;

macro_rules! costs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The cost of calls, in ticks, measured at the start.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Costs {
            $($(#[$doc])* pub(crate) $name: f64,)*
        }

        /// The same, as a budget keeps it.
        struct KnownCosts {
            $($name: Gauge,)*
        }

        impl KnownCosts {
            const fn new() -> KnownCosts {
                KnownCosts { $($name: Gauge::new(0.0),)* }
            }

            fn set(&self, costs: Costs) {
                $(self.$name.set(costs.$name);)*
            }
        }
    };
}

costs! {
    /// By the shortest way.
    counted,
    /// What is added to that: by counting the bytes of a call;
    moving,
    /// by counting to whom they go;
    sending,
    /// by passing the arguments as an array of words, from C or from Fortran;
    in_words,
    from_fortran,
    /// by looking at requests before and after the call;
    asking,
    /// by an entry point that is written by hand;
    by_hand,
    /// and by a scope around the call.
    scoped,
    /// A call that MPI makes.
    passed,
    /// A call that is timed. A budget keeps it without what is done after the call, which it learns as it goes.
    timed,
    /// The time measured for a function that does nothing: part of each time.
    between,
    /// The time measured for a program that does nothing between two calls.
    gap,
}

/// Numbers of calls, by the way that they took and what was counted on it. A call may be in several of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ways {
    /// All that the program made, and those that were timed, whose cost is known apart.
    pub(crate) calls: u64,
    pub(crate) timed: u64,
    /// Whose bytes were counted; messages and accesses to each peer.
    pub(crate) moving: u64,
    pub(crate) sending: u64,
    /// Whose communicator was looked up for ranks that wait.
    pub(crate) waiting: u64,
    /// Not by the shortest way.
    pub(crate) in_words: u64,
    pub(crate) from_fortran: u64,
    /// Whose requests were looked at on the fast path.
    pub(crate) asking: u64,
    pub(crate) by_hand: u64,
    pub(crate) scoped: u64,
    /// Made by MPI.
    pub(crate) passed: u64,
}

/// The budget of a process, and how much of it was spent. All times in ticks.
pub(crate) struct Budget {
    /// No limit: every call is timed, and variables are read at every eligible call.
    unlimited: AtomicBool,
    share: Gauge,
    started: Counter,
    costs: KnownCosts,
    /// The cost of what is done after a timed call.
    after: Gauge,
    sampling: Gauge,
    effect: Gauge,
    look: Gauge,
    calls: Counter,
    /// Of `calls`, without counting.
    timing: Counter,
    /// Of `calls`, for objects and requests.
    effects: Counter,
    beside: Counter,
    /// Of `beside`, for reading levels.
    level_readings: Counter,
    /// Levels that are sampled, and other variables that are.
    levels: Counter,
    others: Counter,
    /// Number of threads that time calls and have their own ledgers.
    threads: Counter,
}

static BUDGET: Budget = Budget::new();

/// The budget of this process.
pub(crate) fn budget() -> &'static Budget {
    &BUDGET
}

impl Budget {
    pub(crate) const fn new() -> Budget {
        Budget {
            unlimited: AtomicBool::new(false),
            share: Gauge::new(0.0),
            started: Counter::new(0),
            costs: KnownCosts::new(),
            after: Gauge::new(0.0),
            sampling: Gauge::new(0.0),
            effect: Gauge::new(0.0),
            look: Gauge::new(0.0),
            calls: Counter::new(0),
            timing: Counter::new(0),
            effects: Counter::new(0),
            beside: Counter::new(0),
            level_readings: Counter::new(0),
            levels: Counter::new(0),
            others: Counter::new(0),
            threads: Counter::new(0),
        }
    }

    /// The budget as a share of the elapsed time, none for no limit. The run began, or continues after an
    /// earlier end, at `started`.
    pub(crate) fn begin(&self, share: Option<f64>, started: u64) {
        self.unlimited.store(share.is_none(), Ordering::Relaxed);
        self.share.set(PLANNED * share.unwrap_or(0.0));
        // Earlier expenses count against the time since the first start.
        if self.started.get() == 0 {
            self.started.set(started);
        }
    }

    pub(crate) fn learn(&self, costs: Costs) {
        let timed = (costs.timed - self.after.get()).max(0.0);
        self.costs.set(Costs { timed, ..costs });
        // Only of work that does nothing, so far.
        self.effect.set(0.0);
    }

    /// Ticks that are measured when a function does nothing.
    pub(crate) fn between(&self) -> f64 {
        self.costs.between.get()
    }

    /// Ticks that are measured when a program does nothing between two calls.
    pub(crate) fn gap(&self) -> f64 {
        self.costs.gap.get()
    }

    /// How many levels are sampled, and how many other variables.
    pub(crate) fn set_variables(&self, levels: usize, others: usize) {
        self.levels.set(levels as u64);
        self.others.set(others as u64);
    }

    /// A level was read, which takes `ticks`. They are part of what is reported to [`sampled`](Self::sampled).
    pub(crate) fn read_level(&self, ticks: f64) {
        self.level_readings.add_shared(clock::whole(ticks));
    }

    pub(crate) fn set_threads(&self, number: u64) {
        self.threads.set(number);
    }

    pub(crate) fn threads(&self) -> u64 {
        self.threads.get().max(1)
    }

    #[inline]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.unlimited.load(Ordering::Relaxed)
    }

    /// `ticks` were spent on something other than counting and timing calls.
    pub(crate) fn spent(&self, ticks: u64) {
        self.beside.add_shared(ticks);
    }

    /// All ticks reported to [`spent`](Self::spent) and [`sampled`](Self::sampled).
    pub(crate) fn beside(&self) -> u64 {
        self.beside.get()
    }

    /// What was spent on calls.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// All that was spent.
    pub(crate) fn all(&self) -> u64 {
        self.calls.get().saturating_add(self.beside.get())
    }

    /// A call was timed, and `counted` were counted since the last timed one; `moves`: with their bytes. Returns
    /// what was spent on calls.
    pub(crate) fn spend_on_calls(&self, counted: u64, moves: bool) -> u64 {
        let moving = if moves { self.costs.moving.get() + self.costs.sending.get() } else { 0.0 };
        self.calls.add_shared(clock::whole((self.costs.counted.get() + moving) * counted as f64));
        self.spend_on_timing(self.timed_ticks());
        self.calls.get()
    }

    /// Does number `number` of the pieces of work that come with calls for objects and requests. Some of them are
    /// measured, and stand for the others. What the work reports as spent is not counted twice.
    pub(crate) fn effect<T>(&self, number: u64, work: impl FnOnce() -> T) -> T {
        let stands_for = match number {
            0..MEASURED_AT_FIRST => 1.0,
            _ if number.is_multiple_of(MEASURED_EVERY) => MEASURED_EVERY as f64,
            _ => return work(),
        };
        let (begun, before) = (clock::now(), self.beside.get());
        let result = work();
        let reported = self.beside.get().saturating_sub(before);
        let ticks = clock::now().saturating_sub(begun).saturating_sub(reported) as f64;
        let ticks = cost_of(&self.effect, (ticks - self.costs.between.get()).max(0.0));
        self.calls.add_shared(clock::whole(stands_for * ticks));
        self.effects.add_shared(clock::whole(stands_for * ticks));
        result
    }

    /// `ticks` were spent on timing.
    pub(crate) fn spend_on_timing(&self, ticks: f64) {
        let ticks = clock::whole(ticks);
        self.calls.add_shared(ticks);
        self.timing.add_shared(ticks);
    }

    /// Looking at all functions after a timed call took `ticks`.
    pub(crate) fn looked(&self, ticks: f64) {
        self.spend_on_timing(cost_of(&self.look, ticks));
    }

    /// The work after a timed call took `ticks`.
    pub(crate) fn learn_after(&self, ticks: f64) {
        self.after.set(learned(self.after.get(), ticks));
    }

    /// Work that is done again and again took `ticks`. Without a limit all of it counts, otherwise only as much as
    /// can be gyan's cost, after the `known` one, which is updated. Returns what counts.
    pub(crate) fn charge(&self, known: &mut f64, ticks: u64) -> f64 {
        let measured = ticks as f64;
        let cost = if self.is_unlimited() { measured } else { plausible(*known, measured) };
        *known = learned(*known, measured);
        self.spent(clock::whole(cost));
        cost
    }

    /// Reading variables at a call took `ticks`.
    pub(crate) fn sampled(&self, ticks: u64) {
        let mut known = self.sampling.get();
        self.charge(&mut known, ticks);
        self.sampling.set(known);
    }

    /// Ticks that timing a call takes.
    pub(crate) fn timed_ticks(&self) -> f64 {
        self.costs.timed.get() + self.after.get()
    }

    /// The ticks that a part of the budget amounts to from the start to `now`, including the credit.
    fn allowed(&self, now: u64, part: f64) -> f64 {
        let elapsed = now.saturating_sub(self.started.get()) as f64;
        part * self.share.get() * elapsed.max(clock::ticks(CREDIT_S))
    }

    /// The rest of the whole budget at `now`; negative when too much was spent.
    fn left(&self, now: u64) -> f64 {
        self.allowed(now, 1.0) - self.all() as f64
    }

    /// The ticks that calls may take before any must be left out; infinite for no limit.
    pub(crate) fn free(&self, now: u64) -> f64 {
        if self.is_unlimited() { f64::INFINITY } else { self.allowed(now, FREE) }
    }

    /// The share of the time from `now` on that timing calls may take; infinite when every call may be
    /// timed.
    pub(crate) fn for_calls(&self, now: u64) -> f64 {
        if (self.calls.get() as f64) < self.free(now) {
            return f64::INFINITY;
        }
        let share = self.share.get();
        (share * CALLS + self.left(now) / clock::ticks(HORIZON_S)).max(share * TIMING)
    }

    /// If calls of a function take `mean` ticks on average, whether all may be timed: timing then takes no more of
    /// the time in them than the part of the budget that is for calls.
    pub(crate) fn pays_for_itself(&self, mean: f64) -> bool {
        self.timed_ticks() < self.share.get() * CALLS * mean
    }

    /// The credit of a young program for work other than calls, and what of it only levels may use.
    fn credit(&self) -> (f64, f64) {
        let credit = self.share.get() * clock::ticks(CREDIT_S);
        let kept = if self.levels.get() == 0 { 0.0 } else { LEVELS_AT_FIRST * credit };
        (BESIDE_AT_FIRST * credit, (kept - self.level_readings.get() as f64).max(0.0))
    }

    /// The share of the time from `now` on that reading variables may take.
    fn for_readings(&self, now: u64) -> f64 {
        let beside = self.beside.get() as f64;
        let share = self.share.get();
        let (credit, kept) = self.credit();
        if self.is_unlimited() || beside + kept < credit {
            return f64::INFINITY;
        }
        let left = (self.allowed(now, BESIDE) - beside).min(self.left(now));
        (share * (BESIDE - SNAPSHOTS) + left / clock::ticks(HORIZON_S))
            .max(share * LEAST_FOR_READINGS)
    }

    /// The same for levels, which come first.
    fn for_levels(&self, now: u64) -> f64 {
        let (_, kept) = self.credit();
        if kept > 0.0 {
            return f64::INFINITY;
        }
        let left = self.allowed(now, LEVELS) - self.level_readings.get() as f64;
        let own = self.share.get() * LEVELS + left / clock::ticks(HORIZON_S);
        self.for_readings(now).max(own)
    }

    /// Whether something that the user asked for may be done now. It costs `ticks` and was last done at `last`:
    /// a part of the budget since then is reserved for it, whatever was spent on the rest.
    pub(crate) fn allows(&self, now: u64, last: u64, ticks: f64) -> bool {
        let is_short = self.left(now) < self.allowed(now, RESERVE);
        let part = if is_short { ASKED_FOR_AT_LEAST } else { ASKED_FOR };
        self.for_readings(now).is_infinite()
            || ticks <= self.share.get() * part * now.saturating_sub(last) as f64
    }

    /// The least number of ticks between two readings of a variable that takes `cost` to read.
    pub(crate) fn between_readings(&self, now: u64, cost: f64, is_level: bool) -> f64 {
        let (number, share) = if is_level {
            (self.levels.get(), self.for_levels(now))
        } else {
            let part = if self.levels.get() > 0 { BESIDE_LEVELS } else { 1.0 };
            (self.others.get(), self.for_readings(now) * part)
        };
        apart(cost * number.max(1) as f64, share)
    }

    /// The least number of ticks between two snapshots, each of which takes `cost`: they have a part of the
    /// budget and of the credit, so that nothing is lost of a program that dies young.
    pub(crate) fn between_snapshots(&self, cost: f64) -> f64 {
        if self.is_unlimited() {
            return apart(cost, SNAPSHOTS_AT_MOST);
        }
        let (credit, kept) = self.credit();
        let has_credit = self.beside.get() as f64 + kept + cost < credit;
        if has_credit { 0.0 } else { apart(cost, self.share.get() * SNAPSHOTS) }
    }

    /// The least number of ticks between two looks at stacks of call sites, each of which takes `cost`.
    pub(crate) fn between_stacks(&self, cost: f64) -> f64 {
        let share = if self.is_unlimited() { STACKS_AT_MOST } else { self.share.get() * STACKS };
        apart(cost, share)
    }

    /// The share of the time of parallel regions that timing them may take; infinite for no limit.
    pub(crate) fn for_regions(&self) -> f64 {
        if self.is_unlimited() { f64::INFINITY } else { self.share.get() * REGIONS }
    }

    /// Whether the phases that libraries name may take `spent` ticks until `now`: all of them together as much as the whole budget.
    pub(crate) fn allows_phases(&self, now: u64, spent: f64) -> bool {
        self.is_unlimited() || spent <= self.allowed(now, 1.0)
    }

    /// Ticks that gyan spent in wrappers.
    pub(crate) fn wrappers(&self, ways: &Ways) -> f64 {
        let timing = if self.is_unlimited() {
            ways.timed as f64 * self.timed_ticks()
        } else {
            self.timing.get() as f64
        };
        // Who waits is found as who is sent to.
        let counting = [
            (ways.calls.saturating_sub(ways.timed), &self.costs.counted),
            (ways.moving, &self.costs.moving),
            (ways.sending + ways.waiting, &self.costs.sending),
            (ways.in_words.saturating_sub(ways.timed), &self.costs.in_words),
            (ways.from_fortran, &self.costs.from_fortran),
            (ways.asking, &self.costs.asking),
            (ways.by_hand, &self.costs.by_hand),
            (ways.scoped.saturating_sub(ways.timed), &self.costs.scoped),
            (ways.passed, &self.costs.passed),
        ];
        let counting: f64 = counting.iter().map(|(calls, cost)| *calls as f64 * cost.get()).sum();
        counting + self.effects.get() as f64 + timing
    }
}

/// Combines a `known` cost, 0 if unknown, with a new measurement. A far larger one includes an interruption,
/// which is not gyan's cost.
pub(crate) fn learned(known: f64, measured: f64) -> f64 {
    if known == 0.0 { measured } else { known + (plausible(known, measured) - known) * NOVELTY }
}

/// What of a measurement can be the cost of work whose `known` cost is updated.
fn cost_of(known: &Gauge, measured: f64) -> f64 {
    let cost = plausible(known.get(), measured);
    known.set(learned(known.get(), measured));
    cost
}

/// The measured cost, without what cannot be gyan's.
fn plausible(known: f64, measured: f64) -> f64 {
    if known == 0.0 { measured } else { measured.min(known * IMPLAUSIBLE) }
}

fn apart(ticks: f64, share: f64) -> f64 {
    // A budget of zero becomes one of next to nothing.
    if share.is_infinite() { 0.0 } else { ticks / share.max(1e-9) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A budget of 0.5 %, of a run in which `levels` and `others` are sampled and a record took 4 ms.
    fn after_a_record(levels: usize, others: usize) -> Budget {
        let budget = Budget::new();
        budget.begin(Some(0.005), 1);
        budget.set_variables(levels, others);
        budget.spent(ticks(4e-3));
        budget
    }

    fn ticks(seconds: f64) -> u64 {
        clock::whole(clock::ticks(seconds))
    }

    /// Seconds between two readings of a variable, of which each takes 100 ns.
    fn apart_s(budget: &Budget, is_level: bool) -> f64 {
        let between = budget.between_readings(ticks(0.01), clock::ticks(100e-9), is_level);
        clock::seconds(between)
    }

    #[test]
    fn a_record_leaves_levels_their_credit_and_then_their_part() {
        let budget = after_a_record(11, 0);
        assert!(apart_s(&budget, true) <= 0.0);
        // 200 readings of all, and many more.
        budget.read_level(clock::ticks(11.0 * 200.0 * 100e-9));
        assert!(apart_s(&budget, true) <= 0.0);
        budget.read_level(clock::ticks(100e-6));
        let apart = apart_s(&budget, true);
        assert!((0.1e-3..=5e-3).contains(&apart), "{apart}");
    }

    #[test]
    fn a_thousand_other_variables_take_nothing_from_levels() {
        for spent_s in [0.0, 0.3e-3] {
            let apart = [0, 1040].map(|others| {
                let budget = after_a_record(11, others);
                budget.read_level(clock::ticks(spent_s));
                apart_s(&budget, true)
            });
            assert!(apart[1] <= apart[0], "{apart:?}");
        }
        let budget = after_a_record(11, 1040);
        assert!(apart_s(&budget, false) > 0.1);
        // Without levels nothing is kept for them.
        let young = Budget::new();
        young.begin(Some(0.005), 1);
        young.set_variables(0, 1040);
        young.spent(ticks(0.3e-3));
        assert!(apart_s(&young, false) <= 0.0);
        young.set_variables(11, 1040);
        assert!(apart_s(&young, false) > 0.0);
    }
}
