//! Numbers that one thread writes, with plain loads and stores, while others may look at them.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

/// A whole number.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

/// A real number.
#[derive(Default)]
pub(crate) struct Gauge(AtomicU64);

impl Counter {
    pub(crate) const fn new(number: u64) -> Counter {
        Counter(AtomicU64::new(number))
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// Adds, provided that no other thread adds to the same number meanwhile: a load and a store.
    #[inline]
    pub(crate) fn add(&self, number: u64) {
        self.set(self.get().wrapping_add(number));
    }

    /// Adds one, as in [`add`](Self::add); returns the number before.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        let number = self.get();
        self.set(number.wrapping_add(1));
        number
    }

    /// Adds one, even with other writers; returns the number before.
    #[inline]
    pub(crate) fn next_shared(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Sets bits, even with other writers.
    pub(crate) fn or(&self, bits: u64) {
        self.0.fetch_or(bits, Ordering::Relaxed);
    }

    /// Raises it to `number`, even with other writers.
    pub(crate) fn raise(&self, number: u64) {
        // Most often it is that high, and a look is cheaper.
        if self.get() < number {
            self.0.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// Makes it `number` unless it is something else than 0 and `number`, even with other writers; returns whether it is `number`.
    pub(crate) fn claim(&self, number: u64) -> bool {
        let claimed = self.0.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        claimed.unwrap_or_else(|known| if known == number { 0 } else { known }) == 0
    }

    /// Adds, even with other writers.
    pub(crate) fn add_shared(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }
}

impl Gauge {
    pub(crate) const fn new(number: f64) -> Gauge {
        Gauge(AtomicU64::new(number.to_bits()))
    }

    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, number: f64) {
        self.0.store(number.to_bits(), Ordering::Relaxed);
    }

    /// Adds, provided that no other thread adds to the same number meanwhile.
    pub(crate) fn add(&self, number: f64) {
        self.set(self.get() + number);
    }
}
