//! In which phase is the program, and which calls did it make in each? Phases are named by the program,
//! through `gyan.h` or `MPI_Pcontrol` (MPI 4.1, 15.2.4).
//!
//! The ledgers know nothing of phases: when one begins or ends, the counts since the last change are credited
//! to the one that the program was in. So phases add no cost to MPI calls.

use std::collections::BTreeMap;
use std::ffi::c_int;

use gyan_results::{Call, Counts, Phase, PhaseCounters, PhasePvar, collected};

use crate::calls::balance::{Balance, balance};
use crate::calls::budget::budget;
use crate::calls::estimate::{Estimate, NEGLIGIBLE, Times};
use crate::calls::gate;
use crate::calls::ledger::{self, Calls, Limited};
use crate::mpi::functions::Function;
use crate::sys::clock;

/// Phases beyond this number are merged into one.
const NAMES_AT_MOST: usize = 64;
const THE_REST: &str = "more phases";
/// The deepest nesting of phases; deeper ones count as the last.
const DEPTH_AT_MOST: usize = 32;
const OFF: &str = "off";
/// Reading counters at changes takes one part of the run in so many at most.
const COUNTING_PART: u64 = 1000;
/// So many stretches are counted one after the other: phases that take turns all have theirs.
const COUNTED_AT_ONCE: u32 = 16;

/// The phases of the process.
pub(crate) struct Phases {
    /// Every phase so far; the first stands for time outside all phases.
    all: Vec<PhaseAccount>,
    /// The name that `MPI_Pcontrol` gave.
    level: Option<c_int>,
    /// The nested names that `gyan_phase_begin` gave.
    names: Vec<String>,
    /// How many more began than are kept.
    deeper: usize,
    off: bool,
    current: usize,
    since: u64,
    /// The counts up to the last change, and the time in which not every call was timed.
    counted: BTreeMap<usize, Calls>,
    limited: Limited,
    meter: PhaseMeter,
}

/// What the processor and the host have counted so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterReading {
    pub(crate) counts: Option<Counts>,
    /// Joules of the host.
    pub(crate) energy_j: Option<f64>,
}

/// When counters are read.
#[derive(Default)]
struct PhaseMeter {
    begun: u64,
    /// The ticks that reading took.
    spent: u64,
    /// How many stretches are still to be counted.
    left: u32,
    /// The last reading, if the current stretch is counted.
    last: Option<(u64, CounterReading)>,
}

/// What was counted in some stretches of a phase.
#[derive(Default)]
struct CountedStretches {
    ticks: u64,
    counts: Option<Counts>,
    energy_j: Option<f64>,
}

#[derive(Default)]
struct PhaseAccount {
    name: String,
    entries: u64,
    ticks: u64,
    stretches: u64,
    stretches_read: u64,
    calls: BTreeMap<usize, Calls>,
    limited: Limited,
    counted: CountedStretches,
}

/// The calls of the whole run, and the time in them.
pub(crate) struct RunCalls {
    pub(crate) calls: Vec<Call>,
    /// In ticks.
    pub(crate) time: Estimate,
}

/// What the program says.
pub(crate) enum PhaseChange {
    Begin(String),
    End,
    /// `MPI_Pcontrol`.
    Level(c_int),
}

/// Where the program continues.
pub(crate) struct NextPhase {
    pub(crate) phase: usize,
    /// Whether it is part of the whole.
    pub(crate) counts: bool,
    /// Variables must be read here, because the totals depend on it.
    pub(crate) must_read: bool,
}

impl Phases {
    /// Outside all phases, from `now` on.
    pub(crate) fn new(now: u64) -> Phases {
        Phases {
            all: vec![PhaseAccount { entries: 1, ..PhaseAccount::default() }],
            level: None,
            names: Vec::new(),
            deeper: 0,
            off: false,
            current: 0,
            since: now,
            counted: BTreeMap::new(),
            limited: Limited::default(),
            meter: PhaseMeter { begun: now, ..PhaseMeter::default() },
        }
    }

    /// Their names, by number.
    pub(crate) fn names(&self) -> Vec<String> {
        self.all.iter().map(|phase| phase.name.clone()).collect()
    }

    /// The name of a phase; empty outside all phases.
    pub(crate) fn name(&self, phase: usize) -> &str {
        self.all.get(phase).map_or("", |account| &account.name)
    }

    /// The number of the current one.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    pub(crate) fn is_off(&self) -> bool {
        self.off
    }

    /// Applies what the program says; none when that changes nothing.
    pub(crate) fn change(&mut self, change: PhaseChange) -> Option<NextPhase> {
        let was_off = self.off;
        let begins = match change {
            PhaseChange::Begin(name) => {
                if self.names.len() >= DEPTH_AT_MOST {
                    self.deeper += 1;
                    return None;
                }
                self.names.push(name);
                true
            }
            PhaseChange::End if self.deeper > 0 => {
                self.deeper -= 1;
                return None;
            }
            PhaseChange::End => {
                self.names.pop()?;
                false
            }
            PhaseChange::Level(level) => {
                self.off = level == 0;
                let level = Some(level).filter(|level| !(0..=2).contains(level));
                let begins = !self.off && level.is_some();
                if !self.off {
                    self.level = level;
                }
                begins || self.off
            }
        };
        let phase = self.phase();
        if begins && let Some(account) = self.all.get_mut(phase) {
            account.entries += 1;
        }
        (phase != self.current).then_some(NextPhase {
            phase,
            counts: !self.off,
            must_read: self.off || was_off,
        })
    }

    /// The phase with these names; created if they are new.
    fn phase(&mut self) -> usize {
        let mut parts: Vec<String> =
            self.level.iter().map(|level| format!("level {level}")).collect();
        parts.extend(self.names.iter().cloned());
        let name = if self.off { OFF.into() } else { parts.join("/") };
        let known =
            |all: &[PhaseAccount], name: &str| all.iter().position(|phase| phase.name == name);
        if let Some(known) = known(&self.all, &name) {
            return known;
        }
        let is_full = self.all.len() > NAMES_AT_MOST && !self.off;
        let name = if is_full { THE_REST.into() } else { name };
        known(&self.all, &name).unwrap_or_else(|| {
            self.all.push(PhaseAccount { name, ..PhaseAccount::default() });
            self.all.len() - 1
        })
    }

    /// The program continues in `next`: the counts belong to the phase that it was in. `read`: whether
    /// variables were read at both ends of the stretch.
    pub(crate) fn go_on(&mut self, next: usize, now: u64, read: bool) {
        // Phases may change often. What is not called in one takes no time at its end.
        self.credit(now, |known, count, timed| (known.count, known.times.timed) == (count, timed));
        if let Some(account) = self.all.get_mut(self.current) {
            account.stretches += 1;
            account.stretches_read += u64::from(read);
        }
        self.current = next;
        gate::enter_phase(next);
    }

    /// The current phase is left, or looked at: what was counted since the last change is its. `read` reads the counters, if the
    /// time that this takes allows it; none where there are none.
    pub(crate) fn count(&mut self, now: u64, read: impl FnOnce() -> Option<CounterReading>) {
        let meter = &mut self.meter;
        let is_allowed = meter.spent <= now.saturating_sub(meter.begun) / COUNTING_PART;
        if meter.left == 0 && is_allowed {
            meter.left = COUNTED_AT_ONCE;
        }
        if meter.left == 0 && meter.last.is_none() {
            return;
        }
        let begun = clock::now();
        let Some(reading) = read() else {
            *meter = PhaseMeter { spent: u64::MAX, ..PhaseMeter::default() };
            return;
        };
        meter.spent = meter.spent.saturating_add(clock::now().saturating_sub(begun));
        let last = meter.last.take();
        if meter.left > 0 {
            meter.left -= 1;
            meter.last = Some((now, reading));
        }
        if let (Some((since, before)), Some(account)) = (last, self.all.get_mut(self.current)) {
            account.counted.add(now.saturating_sub(since), before, reading);
        }
    }

    /// Credits the counts since the last time. `read` reads the counters.
    pub(crate) fn settle(&mut self, now: u64, read: impl FnOnce() -> Option<CounterReading>) {
        if self.all.len() > 1 {
            self.count(now, read);
        }
        self.credit(now, |_, _, _| false);
    }

    /// Credits the counts since the last time, except those of functions that are `passed_over`: by what was known
    /// of them, and the numbers of their calls and of the timed ones.
    fn credit(&mut self, now: u64, passed_over: fn(&Calls, u64, u64) -> bool) {
        gate::end_gap();
        let Some(account) = self.all.get_mut(self.current) else { return };
        // A profile that is written in between ends at a time converted to ticks, which can be slightly later
        // than the next change.
        let now = now.max(self.since);
        account.ticks += now - self.since;
        self.since = now;
        let limited = ledger::alone().limited(budget(), now);
        account.limited = account.limited.plus(limited.minus(self.limited));
        self.limited = limited;
        for (function, count, timed) in ledger::numbers() {
            let counted = self.counted.entry(function.0).or_default();
            if passed_over(counted, count, timed) {
                continue;
            }
            let calls = ledger::calls(function);
            let since = calls.since(counted);
            if since.count > 0 || since.max > 0.0 {
                account.calls.entry(function.0).or_default().add(&since);
            }
            *counted = calls;
        }
    }

    /// The calls of the whole run, except those while gyan was switched off.
    pub(crate) fn calls(&self) -> RunCalls {
        let counted = || self.all.iter().filter(|account| account.name != OFF);
        let mut whole = PhaseAccount::default();
        // The sum over the phases of each function's times, if all of them know their errors.
        let mut parts: BTreeMap<usize, Estimate> = BTreeMap::new();
        for account in counted() {
            whole.ticks += account.ticks;
            whole.limited = whole.limited.plus(account.limited);
            for (function, calls) in &account.calls {
                whole.calls.entry(*function).or_default().add(calls);
            }
            for (function, known) in account.known().functions {
                let nothing = Estimate { total: 0.0, error: Some(0.0) };
                let sum = parts.entry(function).or_insert(nothing);
                sum.total += known.total;
                sum.error = sum.error.and(known.error);
            }
        }
        let Balance { functions: mut known, all: mut time } = whole.known();
        for (function, known) in &mut known {
            if let Some(Estimate { total, error: Some(_) }) = parts.get(function) {
                known.total = *total;
            }
        }
        time.total = known.values().map(|known| known.total).sum();
        let whole = whole.calls;
        let calls = described(&whole, &known).map(|(function, call)| {
            let mut sizes = if call.bytes.is_some() { ledger::sizes(function) } else { Vec::new() };
            let last = sizes.iter().rposition(|(calls, _)| *calls > 0);
            sizes.truncate(last.map_or(0, |last| last + 1));
            let (size_histogram, size_histogram_bytes) = sizes.into_iter().unzip();
            Call {
                time_histogram: if call.timed > 0 {
                    ledger::histogram(function)
                } else {
                    Vec::new()
                },
                size_histogram,
                size_histogram_bytes,
                ..call
            }
        });
        RunCalls { calls: calls.collect(), time }
    }

    /// The phases, if the program has any; `pvars`: what variables did in them.
    pub(crate) fn described(&self, pvars: &[(usize, PhasePvar)]) -> Vec<Phase> {
        if self.all.len() < 2 {
            return Vec::new();
        }
        let phases = self.all.iter().enumerate().map(|(number, account)| {
            // The current phase has not been left yet.
            let current = u64::from(number == self.current);
            Phase {
                name: account.name.clone(),
                entries: account.entries,
                time_s: clock::seconds(account.ticks as f64),
                calls: described(&account.calls, &account.known().functions)
                    .map(|(_, call)| call)
                    .collect(),
                stretches: account.stretches + current,
                stretches_read: account.stretches_read + current,
                pvars: pvars
                    .iter()
                    .filter(|(phase, _)| *phase == number)
                    .map(|(_, pvar)| pvar.clone())
                    .collect(),
                counters: account.counted.described(),
            }
        });
        phases.collect()
    }
}

impl CountedStretches {
    /// Another stretch of so many ticks, with what the counters said at its ends.
    fn add(&mut self, ticks: u64, begin: CounterReading, end: CounterReading) {
        self.ticks += ticks;
        if let Some((begin, end)) = begin.counts.zip(end.counts) {
            let more = end.without(&begin);
            self.counts = Some(self.counts.map_or(more, |counts| counts.plus(&more)));
        }
        if let Some((begin, end)) = begin.energy_j.zip(end.energy_j) {
            *self.energy_j.get_or_insert(0.0) += (end - begin).max(0.0);
        }
    }

    fn described(&self) -> Option<PhaseCounters> {
        let CountedStretches { ticks, counts, energy_j } = *self;
        let time_s = clock::seconds(ticks as f64);
        let is_known = counts.is_some() || energy_j.is_some();
        is_known.then_some(PhaseCounters { time_s, counts, energy_j })
    }
}

impl PhaseAccount {
    /// The times of its functions. On each thread, all of them together took no longer than it did.
    fn known(&self) -> Balance {
        let calls = &self.calls;
        let alone = ledger::threads() <= 1;
        let balanced = alone.then(|| balance(calls, &self.limited)).flatten();
        let mut balanced = balanced.unwrap_or_else(|| without_balance(calls, self.ticks));
        let known = &mut balanced.functions;
        let total: f64 = known.values().map(|known| known.total).sum();
        let too_much = total - self.ticks as f64 * ledger::threads() as f64;
        let sum = |function: &usize| calls.get(function).map_or(0.0, |calls| calls.times.sum);
        // What was timed is certain: the estimate of the rest is reduced.
        let estimated: f64 =
            known.iter().map(|(function, known)| known.total - sum(function)).sum();
        if too_much > 0.0 && estimated > 0.0 {
            let part = (too_much / estimated).min(1.0);
            for (function, known) in known.iter_mut() {
                known.total -= (known.total - sum(function)) * part;
            }
        }
        balanced.all.total = known.values().map(|known| known.total).sum();
        balanced
    }
}

/// The times of timed calls, in a part of the run of this many ticks, from the calls alone.
fn without_balance(calls: &BTreeMap<usize, Calls>, ticks: u64) -> Balance {
    let timed = calls.iter().filter(|(_, calls)| calls.times.timed > 0);
    let known = timed.map(|(function, calls)| {
        (*function, calls.times.known(calls.count, calls.max, ticks as f64))
    });
    let functions: BTreeMap<usize, Estimate> = collected(known);
    let all = in_mpi(calls, &functions);
    Balance { functions, all }
}

/// The time in all calls together.
fn in_mpi(calls: &BTreeMap<usize, Calls>, known: &BTreeMap<usize, Estimate>) -> Estimate {
    let mut all = Times::default();
    let (mut total, mut variance, mut unknown) = (0.0, 0.0, 0.0);
    for (function, known) in known {
        let Some(calls) = calls.get(function) else { continue };
        all = all.plus(calls.times);
        total += known.total;
        if let Some(error) = known.error {
            variance += error * error;
        } else {
            variance += calls.times.variance();
            unknown += calls.times.untimed_at_most(calls.count, calls.max);
        }
    }
    // What is not known of one function may not matter compared with the others.
    let is_known = unknown <= NEGLIGIBLE * total || all.error().is_some();
    Estimate { total, error: is_known.then(|| variance.sqrt()) }
}

/// In the form of the profile.
fn described(
    calls: &BTreeMap<usize, Calls>,
    known: &BTreeMap<usize, Estimate>,
) -> impl Iterator<Item = (Function, Call)> {
    calls.iter().filter_map(|(function, calls)| {
        let known = known.get(function);
        let function = Function(*function);
        let row = ledger::row(function)?;
        let call = Call {
            name: row.name.into(),
            count: calls.count,
            bytes: row.bytes.then_some(calls.bytes),
            timed: calls.times.timed,
            time_s: known.map(|known| clock::seconds(known.total.max(0.0))),
            time_error_s: known.and_then(|known| known.error).map(clock::seconds),
            time_max_s: known.map(|_| clock::seconds(calls.max)),
            time_histogram: Vec::new(),
            size_histogram: Vec::new(),
            size_histogram_bytes: Vec::new(),
        };
        (calls.count > 0).then_some((function, call))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(phases: &mut Phases, change: PhaseChange) -> Option<String> {
        let next = phases.change(change)?;
        phases.go_on(next.phase, 0, true);
        Some(phases.all[phases.current].name.clone())
    }

    fn begin(name: &str) -> PhaseChange {
        PhaseChange::Begin(name.into())
    }

    #[test]
    fn a_change_before_the_end_of_the_last_profile_takes_no_time_away() {
        let mut phases = Phases::new(100);
        phases.settle(150, || None);
        phases.go_on(0, 140, true);
        phases.settle(160, || None);
        assert_eq!(phases.all[0].ticks, 60);
    }

    #[test]
    fn phases_inside_each_other_are_named_by_their_path() {
        let mut phases = Phases::new(0);
        assert_eq!(go(&mut phases, begin("step")).as_deref(), Some("step"));
        assert_eq!(go(&mut phases, begin("exchange")).as_deref(), Some("step/exchange"));
        assert_eq!(go(&mut phases, PhaseChange::End).as_deref(), Some("step"));
        assert_eq!(go(&mut phases, PhaseChange::End).as_deref(), Some(""));
        assert_eq!(go(&mut phases, PhaseChange::End), None);
        assert_eq!(go(&mut phases, begin("step")).as_deref(), Some("step"));
        let entries: Vec<u64> = phases.all.iter().map(|account| account.entries).collect();
        assert_eq!(entries, [1, 2, 1]);
    }

    #[test]
    fn pcontrol_switches_off_and_on_and_names_levels() {
        let mut phases = Phases::new(0);
        assert_eq!(go(&mut phases, PhaseChange::Level(1)), None);
        assert_eq!(go(&mut phases, PhaseChange::Level(3)).as_deref(), Some("level 3"));
        assert_eq!(go(&mut phases, PhaseChange::Level(0)).as_deref(), Some("off"));
        assert!(phases.is_off());
        assert_eq!(go(&mut phases, PhaseChange::Level(4)).as_deref(), Some("level 4"));
        assert_eq!(go(&mut phases, begin("a")).as_deref(), Some("level 4/a"));
        assert_eq!(go(&mut phases, PhaseChange::Level(1)).as_deref(), Some("a"));
        assert!(!phases.is_off());
    }

    #[test]
    fn counters_of_stretches_are_those_of_their_phases() {
        let mut phases = Phases::new(0);
        // A thousand instructions a tick, but nothing is known of the first stretch.
        let counted = |now: u64| {
            let counts = Counts { instructions: 1000 * now, cycles: 500 * now, cache_misses: None };
            Some(CounterReading { counts: Some(counts), energy_j: Some(now as f64) })
        };
        let last = 1 << 40;
        for (now, change) in [
            (100, begin("a")),
            (130, begin("b")),
            (170, PhaseChange::End),
            (last, PhaseChange::End),
        ] {
            let next = phases.change(change).unwrap();
            phases.count(now, || counted(now));
            phases.go_on(next.phase, now, true);
        }
        let of = |name: &str| &phases.all.iter().find(|of| of.name == name).unwrap().counted;
        let (inner, outer) = (of("a/b"), of("a"));
        assert_eq!(inner.ticks, 40);
        assert_eq!(inner.counts.unwrap().instructions, 40_000);
        assert_eq!(inner.energy_j, Some(40.0));
        assert_eq!(outer.ticks, 30 + (last - 170));
        assert_eq!(of("").described(), None);
    }

    #[test]
    fn counters_are_read_as_long_as_that_takes_little_and_never_where_there_are_none() {
        let mut phases = Phases::new(clock::now());
        let mut readings = 0;
        for _ in 0..1000 {
            // Each reading takes about a millisecond, and nothing else takes time.
            phases.count(clock::now(), || {
                readings += 1;
                std::thread::sleep(std::time::Duration::from_millis(1));
                Some(CounterReading { counts: None, energy_j: Some(0.0) })
            });
        }
        assert!(readings <= 2 * (COUNTED_AT_ONCE + 1), "{readings}");
        let mut phases = Phases::new(0);
        let mut readings = 0;
        for now in 0..1000 {
            phases.count(now * 1_000_000_000, || {
                readings += 1;
                None
            });
        }
        assert_eq!(readings, 1);
    }

    #[test]
    fn there_is_an_end_to_names_and_to_depth() {
        let mut phases = Phases::new(0);
        for number in 0..1000 {
            go(&mut phases, begin(&number.to_string()));
            go(&mut phases, PhaseChange::End);
        }
        assert_eq!(phases.all.len(), NAMES_AT_MOST + 2);
        assert_eq!(phases.all.last().unwrap().name, THE_REST);
        for _ in 0..1000 {
            go(&mut phases, begin("deep"));
        }
        for _ in 0..1000 {
            go(&mut phases, PhaseChange::End);
        }
        assert_eq!(phases.current, 0);
    }
}
