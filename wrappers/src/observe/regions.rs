//! Which regions that a program has for other tools may be phases? Some begin a million times in a second, which would cost more
//! than the budget: they are left out, by name.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

/// Regions with names beyond this number are counted, and left out, together.
const NAMES_AT_MOST: usize = 256;
/// What begins less often stays: it costs less than a millisecond, and a young program has spent no more than that.
const FEW: u64 = 256;

/// How often regions begin, and what they cost so far.
pub(crate) struct RegionCounts {
    by_name: BTreeMap<CString, RegionCount>,
    /// Of those that are not left out: how many names there are, how often they began, and the ticks that they cost.
    names: u64,
    begun: u64,
    spent: f64,
}

#[derive(Default)]
struct RegionCount {
    begun: u64,
    is_left_out: bool,
}

/// What a region is that begins.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum RegionBegins {
    AsPhase,
    /// Left out, as earlier ones of this name.
    LeftOut,
    /// The first of its name that is left out.
    TooOften,
}

impl RegionCounts {
    pub(crate) const fn new() -> RegionCounts {
        RegionCounts { by_name: BTreeMap::new(), names: 0, begun: 0, spent: 0.0 }
    }

    /// A region of this name begins. `is_affordable`: whether regions may have taken so many ticks. If they may not, those are
    /// left out that begin often, and at least as often as the average.
    pub(crate) fn begins(
        &mut self,
        name: &CStr,
        is_affordable: impl FnOnce(f64) -> bool,
    ) -> RegionBegins {
        let is_new = !self.by_name.contains_key(name);
        let name = if is_new && self.by_name.len() >= NAMES_AT_MOST { c"" } else { name };
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.to_owned(), RegionCount::default());
            self.names += 1;
        }
        let Some(count) = self.by_name.get_mut(name).filter(|count| !count.is_left_out) else {
            return RegionBegins::LeftOut;
        };
        count.begun += 1;
        self.begun += 1;
        let is_rare = count.begun < FEW || count.begun * self.names < self.begun;
        if is_rare || is_affordable(self.spent) {
            return RegionBegins::AsPhase;
        }
        count.is_left_out = true;
        self.spent -= self.spent * count.begun as f64 / self.begun as f64;
        self.begun -= count.begun;
        self.names -= 1;
        RegionBegins::TooOften
    }

    /// The beginning or the end of a phase took `ticks`.
    pub(crate) fn took(&mut self, ticks: f64) {
        self.spent += ticks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has each region cost one tick, of which `ticks` are affordable.
    fn begins(counts: &mut RegionCounts, name: &CStr, ticks: f64) -> RegionBegins {
        let begins = counts.begins(name, |spent| spent <= ticks);
        if begins == RegionBegins::AsPhase {
            counts.took(1.0);
        }
        begins
    }

    #[test]
    fn only_what_begins_too_often_is_left_out() {
        let mut counts = RegionCounts::new();
        let mut left_out = 0;
        for _ in 0..100 {
            assert_eq!(begins(&mut counts, c"step", 300.0), RegionBegins::AsPhase);
            for _ in 0..50 {
                let hot = begins(&mut counts, c"hot", 300.0);
                left_out += u64::from(hot != RegionBegins::AsPhase);
            }
        }
        assert!((4690..=4710).contains(&left_out), "{left_out}");
    }

    #[test]
    fn it_is_said_once_for_each_name() {
        let mut counts = RegionCounts::new();
        let mut said = 0;
        for _ in 0..1000 {
            for name in [c"one", c"other"] {
                said += u64::from(begins(&mut counts, name, 10.0) == RegionBegins::TooOften);
            }
        }
        assert_eq!(said, 2);
    }

    #[test]
    fn names_without_end_are_counted_together() {
        let mut counts = RegionCounts::new();
        for number in 0..10_000 {
            let name = CString::new(number.to_string()).unwrap();
            begins(&mut counts, &name, f64::INFINITY);
        }
        assert_eq!(counts.by_name.len(), NAMES_AT_MOST + 1);
    }
}
