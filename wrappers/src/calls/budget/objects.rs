//! May a new communicator, window or file be read? Objects have their own pot, a part of the budget, so that
//! they are read however much is spent on the rest, and take no more than that from it.
//!
//! The ranks of a job should read the same objects without communicating. So objects draw lots, the same on
//! every rank, and when the pot runs low, the rest goes to the rare ones.

use super::BUDGET;
use crate::sys::cells::Gauge;
use crate::sys::clock;

/// The part of the budget that is for objects.
const PART: f64 = 0.1;
/// The budget of this time is available at the beginning: 0.75 ms, unless the budget is set.
const CREDIT_S: f64 = 1.5;
/// The assumed cost of an object when it is created, when it is freed, and when it is not read, before any was
/// measured.
const AT_FIRST_S: f64 = 15e-6;
const PASSED_OVER_S: f64 = 0.5e-6;
/// One object in 2 draws rarity 1, one in 4 rarity 2. The most common ones leave this many times their own cost
/// in the pot, and each step of rarity leaves less.
const LEFT_BY_THE_COMMON: f64 = 4.0;
const LESS_BY_RARITY: f64 = 0.25;

/// Ticks.
static SPENT: Gauge = Gauge::new(0.0);

/// The cost of objects of a kind, in ticks.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    coming: f64,
    going: f64,
    passed_over: f64,
    /// How many of those that were read are not freed yet.
    alive: u64,
}

impl Cost {
    pub(crate) fn unknown() -> Cost {
        let guess = clock::ticks(AT_FIRST_S);
        let passed_over = clock::ticks(PASSED_OVER_S);
        Cost { coming: guess, going: guess, passed_over, alive: 0 }
    }

    /// An object was read, and that took `ticks`.
    pub(crate) fn came(&mut self, ticks: u64) {
        self.alive += 1;
        SPENT.add(BUDGET.charge(&mut self.coming, ticks));
    }

    /// An object that was read was freed, and that took `ticks`.
    pub(crate) fn went(&mut self, ticks: u64) {
        self.alive = self.alive.saturating_sub(1);
        SPENT.add(BUDGET.charge(&mut self.going, ticks));
    }

    /// An object was created but is not read, and deciding that took `ticks`. The pot is for objects that are
    /// read: if many were created it would stay empty forever.
    pub(crate) fn passed_over(&mut self, ticks: u64) {
        BUDGET.charge(&mut self.passed_over, ticks);
    }

    /// The future cost of freeing those that were read and are alive.
    pub(crate) fn reserved(&self) -> f64 {
        self.going * self.alive as f64
    }

    /// Whether an object that drew `rarity` may be read at `now`. `reserved`: for all kinds.
    pub(crate) fn is_allowed(&self, now: u64, reserved: f64, rarity: u32) -> bool {
        if BUDGET.is_unlimited() {
            return true;
        }
        let elapsed = (now.wrapping_sub(BUDGET.started.get()) as f64).max(clock::ticks(CREDIT_S));
        let left = PART * BUDGET.share.get() * elapsed - SPENT.get() - reserved;
        let times = (LEFT_BY_THE_COMMON - LESS_BY_RARITY * f64::from(rarity)).max(0.0) + 1.0;
        left >= times * (self.coming + self.going)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fork::in_a_copy;

    #[test]
    fn objects_that_come_too_fast_are_read_as_often_as_their_part_allows() {
        // The numbers of the budget belong to the process.
        let lines = in_a_copy(|out| {
            BUDGET.begin(Some(0.005), 0);
            let mut cost = Cost::unknown();
            let ticks = clock::ticks(10e-6);
            let (mut now, mut read, mut at_first) = (0.0, 0, 0);
            for number in 0..1_000_000_u32 {
                now += ticks;
                let rarity = number.trailing_ones();
                if cost.is_allowed(clock::whole(now), cost.reserved(), rarity) {
                    cost.came(clock::whole(ticks));
                    cost.went(clock::whole(ticks));
                    read += 1;
                }
                at_first += u32::from(read == number + 1);
            }
            let share = SPENT.get() / now;
            writeln!(out, "{at_first} {read} {share}")
        });
        let numbers: Vec<f64> =
            lines.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [at_first, read, share] = numbers[..] else { panic!("{lines}") };
        assert!(at_first >= 20.0, "{lines}");
        assert!((160.0..=260.0).contains(&read), "{lines}");
        assert!(share <= 0.005 * PART, "{lines}");
    }

    #[test]
    fn what_is_alive_has_its_going_reserved() {
        let lines = in_a_copy(|out| {
            BUDGET.begin(Some(0.005), 0);
            let mut cost = Cost::unknown();
            while cost.is_allowed(0, cost.reserved(), 0) {
                cost.came(clock::whole(clock::ticks(10e-6)));
            }
            for _ in 0..cost.alive {
                cost.went(clock::whole(clock::ticks(10e-6)));
            }
            writeln!(out, "{}", SPENT.get() <= PART * 0.005 * clock::ticks(CREDIT_S))
        });
        assert_eq!(lines, "true\n");
    }
}
