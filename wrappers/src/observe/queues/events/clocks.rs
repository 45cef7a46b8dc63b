//! When did an instance occur? Relates the clocks of sources to gyan's.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::mpi::tool::{EventFunctions, SourceInfo};
use crate::sys::cells::Gauge;
use crate::sys::clock;

/// The clock of each source that has one; further sources use gyan's.
static SOURCES: [SourceClock; 32] = [const { SourceClock::new() }; 32];

/// How a source's clock relates to gyan's.
pub(super) struct SourceClock {
    is_good: AtomicBool,
    /// One moment on both clocks.
    time: AtomicI64,
    ticks: AtomicU64,
    /// The time after which it starts again.
    max: AtomicI64,
    /// Seconds in one of its ticks.
    tick_s: Gauge,
}

impl SourceClock {
    const fn new() -> SourceClock {
        SourceClock {
            is_good: AtomicBool::new(false),
            time: AtomicI64::new(0),
            ticks: AtomicU64::new(0),
            max: AtomicI64::new(0),
            tick_s: Gauge::new(0.0),
        }
    }

    /// Compares it with gyan's, unless it cannot be asked for the time.
    fn compare(&self, events: &EventFunctions, index: usize, source: &SourceInfo) {
        let before = clock::now();
        let Some(time) = events.source_time(index) else { return };
        let after = clock::now();
        if source.ticks_per_second <= 0 {
            return;
        }
        self.time.store(time, Ordering::Relaxed);
        let middle = before.wrapping_add(after.wrapping_sub(before) / 2);
        self.ticks.store(middle, Ordering::Relaxed);
        self.max.store(source.max_ticks, Ordering::Relaxed);
        self.tick_s.set(1.0 / source.ticks_per_second as f64);
        // Everything that a callback reads after seeing this was stored before.
        self.is_good.store(true, Ordering::Release);
    }

    /// How far its clock has advanced since it was compared, for an instance at gyan's `now` or slightly
    /// before.
    pub(super) fn since(&self, time: i64, now: impl FnOnce() -> u64) -> i64 {
        let since = time.wrapping_sub(self.time.load(Ordering::Relaxed));
        let max = self.max.load(Ordering::Relaxed);
        // It would take centuries.
        if max <= 0 || max > i64::MAX / 2 {
            return since;
        }
        // How often it wrapped can only be told with another clock.
        let passed = self.passed(now());
        let turns = passed.saturating_sub(since) as f64 / (max as f64 + 1.0);
        #[allow(clippy::cast_possible_truncation, reason = "what is beyond is no time")]
        let turns = turns.round() as i64;
        since.wrapping_add(turns.wrapping_mul(max + 1))
    }

    /// How many of its ticks have passed since it was compared, by gyan's clock.
    pub(super) fn passed(&self, now: u64) -> i64 {
        let passed = now.wrapping_sub(self.compared()).cast_signed();
        #[allow(clippy::cast_possible_truncation, reason = "what is beyond is no time")]
        let ticks = (clock::seconds(passed as f64) / self.tick_s.get()) as i64;
        ticks
    }

    /// Converts its ticks to seconds.
    pub(super) fn seconds(&self, ticks: i64) -> f64 {
        ticks as f64 * self.tick_s.get()
    }

    /// When it was compared, on gyan's clock.
    pub(super) fn compared(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// The moment this many of its ticks after that, on gyan's clock.
    pub(super) fn on_gyans(&self, since: i64) -> u64 {
        #[allow(clippy::cast_possible_truncation, reason = "what is beyond is no time")]
        let ticks = clock::ticks(self.seconds(since)) as i64;
        self.compared().wrapping_add_signed(ticks)
    }
}

/// The slot of the clock of source `index`.
fn place(index: usize) -> Option<&'static SourceClock> {
    SOURCES.get(index)
}

/// The clock of source `index`, if it has one that was compared.
pub(super) fn clock_of(index: usize) -> Option<&'static SourceClock> {
    place(index).filter(|clock| clock.is_good.load(Ordering::Acquire))
}

/// Compares the clock of source `index` with gyan's, unless it cannot be asked for the time.
pub(super) fn compare(events: &EventFunctions, index: usize, source: &SourceInfo) {
    if let Some(clock) = place(index) {
        clock.compare(events, index, source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_begins_again_is_followed_for_as_many_turns_as_another_tells() {
        let source = SourceClock::new();
        source.time.store(9990, Ordering::Relaxed);
        source.ticks.store(1000, Ordering::Relaxed);
        source.tick_s.set(0.001);
        // It never wraps.
        source.max.store(i64::MAX, Ordering::Relaxed);
        assert_eq!(source.since(9995, || panic!("not needed")), 5);
        assert_eq!(source.since(9890, || panic!("not needed")), -100);
        source.max.store(9999, Ordering::Relaxed);
        let after = |seconds: f64| move || 1000 + clock::whole(clock::ticks(seconds));
        assert_eq!(source.since(9995, after(0.005)), 5);
        assert_eq!(source.since(9980, after(0.0)), -10);
        assert_eq!(source.since(14, after(0.024)), 24);
        assert_eq!(source.since(14, after(30.02)), 30_024);
    }
}
