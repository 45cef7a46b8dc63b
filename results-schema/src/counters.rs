//! What the processor counted of the program: instructions, cycles and cache misses.

use crate::data::{Data, Serialize, derive};

/// What the processor counted in user mode, on the thread that initialised MPI, from then on.
#[derive(Data!, Serialize, Default)]
pub struct Counters {
    /// All that was counted.
    pub total: Counts,
    /// The part in MPI functions, from calls that were timed; none where counters cannot be read at a call, or none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_mpi: Option<CountsInMpi>,
    /// Seconds for which the thread had a processor.
    pub processor_s: f64,
    /// The part of those in which the counters counted. Where it is below 1, others used them too, and the counts are scaled.
    pub counted_share: f64,
}

/// Counts of the same instructions.
#[derive(Data!, Serialize, Copy, Default)]
pub struct Counts {
    /// Instructions that were completed.
    pub instructions: u64,
    /// Cycles of the core.
    pub cycles: u64,
    /// Accesses to memory that the last level of cache did not have; none where the processor does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<u64>,
}

/// What was counted in MPI functions.
#[derive(Data!, Serialize, Default)]
pub struct CountsInMpi {
    /// The counts of all calls, estimated from those at which the counters were read.
    pub counts: Counts,
    /// The part of the time in MPI that those calls took.
    pub read_share: f64,
}

impl Counts {
    /// Instructions per cycle; none where no cycle was counted.
    pub fn ipc(&self) -> Option<f64> {
        (self.cycles > 0).then(|| self.instructions as f64 / self.cycles as f64)
    }

    /// Cache misses per 1000 instructions.
    pub fn misses_per_1000(&self) -> Option<f64> {
        let misses = self.cache_misses.filter(|_| self.instructions > 0)?;
        Some(1000.0 * misses as f64 / self.instructions as f64)
    }

    /// So many times as much of each.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // neither is negative
    #[must_use]
    pub fn scaled(&self, times: f64) -> Counts {
        let scaled = |count: u64| (count as f64 * times).round() as u64;
        Counts {
            instructions: scaled(self.instructions),
            cycles: scaled(self.cycles),
            cache_misses: self.cache_misses.map(scaled),
        }
    }

    /// Together with others.
    #[must_use]
    pub fn plus(&self, other: &Counts) -> Counts {
        self.each(other, u64::saturating_add)
    }

    /// Without a part of them.
    #[must_use]
    pub fn without(&self, part: &Counts) -> Counts {
        self.each(part, u64::saturating_sub)
    }

    fn each(&self, other: &Counts, combine: fn(u64, u64) -> u64) -> Counts {
        let misses = self.cache_misses.zip(other.cache_misses);
        Counts {
            instructions: combine(self.instructions, other.instructions),
            cycles: combine(self.cycles, other.cycles),
            cache_misses: misses.map(|(one, other)| combine(one, other)),
        }
    }
}

impl Counters {
    /// What was counted outside MPI; none where that is not known.
    pub fn useful(&self) -> Option<Counts> {
        Some(self.total.without(&self.in_mpi.as_ref()?.counts))
    }

    /// Cycles a second of processor time. Time in the kernel, of which no cycles are counted, lowers it.
    pub fn frequency_hz(&self) -> Option<f64> {
        (self.processor_s > 0.0).then(|| self.total.cycles as f64 / self.processor_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(instructions: u64, cycles: u64, cache_misses: u64) -> Counts {
        Counts { instructions, cycles, cache_misses: Some(cache_misses) }
    }

    #[test]
    fn what_is_outside_mpi_is_the_total_without_what_is_in_it() {
        let total = counts(5000, 4000, 30);
        let in_mpi = Some(CountsInMpi { counts: counts(2000, 1000, 10), read_share: 0.5 });
        let of = Counters { total, in_mpi, processor_s: 2e-6, counted_share: 1.0 };
        let useful = of.useful().unwrap();
        assert_eq!(useful, counts(3000, 3000, 20));
        assert_eq!(useful.ipc(), Some(1.0));
        assert_eq!(useful.misses_per_1000(), Some(20.0 / 3.0));
        assert_eq!(of.frequency_hz(), Some(2e9));
        // An estimate may be larger than all that there is.
        assert_eq!(total.without(&total.scaled(1.5)), counts(0, 0, 0));
        assert_eq!(Counters { in_mpi: None, ..of }.useful(), None);
        let without_misses = Counts { cache_misses: None, ..total };
        assert_eq!(total.without(&without_misses).cache_misses, None);
        assert_eq!((Counts::default().ipc(), Counts::default().misses_per_1000()), (None, None));
    }
}
