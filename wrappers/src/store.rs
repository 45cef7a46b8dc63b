//! What is known so far: the exact number of calls of each function.
//!
//! One thread at a time: plain additions. `MPI_THREAD_MULTIPLE`: every thread adds to a slab of its
//! own, so that no addition is locked either; the slabs are summed at the end. A thread that ends
//! leaves its slab behind, so after [`SLABS_AT_MOST`] of them the last one is shared, with locked
//! additions.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::table::{Function, LEN, functions};

const SLABS_AT_MOST: usize = 256;

/// One number for each function.
struct Counts([AtomicU64; LEN]);

impl Counts {
    const fn new() -> Counts {
        Counts([const { AtomicU64::new(0) }; LEN])
    }

    /// Adds one, when no other thread adds to the same number meanwhile: a load and a store.
    #[inline]
    fn add_alone(&self, function: Function) {
        if let Some(count) = self.0.get(function.0) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    fn get(&self, function: Function) -> u64 {
        self.0.get(function.0).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// The counts of one thread, or of many when `shared`.
struct Slab {
    counts: Counts,
    shared: AtomicBool,
}

static ALONE: Counts = Counts::new();
static SLABS: Mutex<Vec<&'static Slab>> = Mutex::new(Vec::new());

thread_local! {
    static SLAB: Cell<Option<&'static Slab>> = const { Cell::new(None) };
}

/// Counts a call while only one thread calls MPI.
#[inline]
pub(crate) fn count_alone(function: Function) {
    ALONE.add_alone(function);
}

/// Counts a call while any thread may call MPI.
#[inline]
pub(crate) fn count_threaded(function: Function) {
    let slab = SLAB.get().unwrap_or_else(new_slab);
    if slab.shared.load(Ordering::Relaxed) {
        if let Some(count) = slab.counts.0.get(function.0) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    } else {
        slab.counts.add_alone(function);
    }
}

/// The slab of a thread that calls for the first time.
#[cold]
#[inline(never)]
fn new_slab() -> &'static Slab {
    let mut slabs = SLABS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let slab = match slabs.last() {
        Some(last) if slabs.len() >= SLABS_AT_MOST => *last,
        _ => {
            let slab: &'static Slab =
                Box::leak(Box::new(Slab { counts: Counts::new(), shared: false.into() }));
            slabs.push(slab);
            // The last one is shared from its first use on, so that no thread ever adds to it
            // without the lock.
            slab.shared.store(slabs.len() == SLABS_AT_MOST, Ordering::Relaxed);
            slab
        }
    };
    SLAB.set(Some(slab));
    slab
}

/// The functions that were called at least once, with their counts over all threads.
pub(crate) fn calls() -> Vec<(&'static str, u64)> {
    let slabs = SLABS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let count = |function: Function| {
        let threads: u64 = slabs.iter().map(|slab| slab.counts.get(function)).sum();
        ALONE.get(function) + threads
    };
    functions()
        .map(|(function, name)| (name, count(function)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::point_to_point::{MPI_Irecv, MPI_Mrecv};

    #[test]
    fn counts_of_all_threads_are_exact_with_more_threads_than_slabs() {
        std::thread::scope(|scope| {
            for _ in 0..SLABS_AT_MOST + 8 {
                scope.spawn(|| (0..1000).for_each(|_| count_threaded(MPI_Irecv)));
            }
        });
        count_alone(MPI_Mrecv);
        let calls = calls();
        assert!(calls.contains(&("MPI_Irecv", 1000 * (SLABS_AT_MOST as u64 + 8))));
        assert!(calls.contains(&("MPI_Mrecv", 1)));
        assert!(SLABS.lock().unwrap().len() <= SLABS_AT_MOST);
    }
}
