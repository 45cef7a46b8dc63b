//! What is known so far: the exact number of calls of each function, and the bytes that they moved.
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

/// What is known of each function.
struct Known {
    calls: Counts,
    bytes: Counts,
}

impl Known {
    const fn new() -> Known {
        Known { calls: Counts::new(), bytes: Counts::new() }
    }
}

impl Counts {
    const fn new() -> Counts {
        Counts([const { AtomicU64::new(0) }; LEN])
    }

    /// Adds, when no other thread adds to the same number meanwhile: a load and a store.
    #[inline]
    fn add_alone(&self, function: Function, number: u64) {
        if let Some(count) = self.0.get(function.0) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
        }
    }

    /// Adds, whoever else does.
    fn add_shared(&self, function: Function, number: u64) {
        if let Some(count) = self.0.get(function.0) {
            count.fetch_add(number, Ordering::Relaxed);
        }
    }

    fn get(&self, function: Function) -> u64 {
        self.0.get(function.0).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// What is known of one thread, or of many when `shared`.
struct Slab {
    known: Known,
    shared: AtomicBool,
}

impl Slab {
    fn add(&self, which: fn(&Known) -> &Counts, function: Function, number: u64) {
        if self.shared.load(Ordering::Relaxed) {
            which(&self.known).add_shared(function, number);
        } else {
            which(&self.known).add_alone(function, number);
        }
    }
}

static ALONE: Known = Known::new();
static SLABS: Mutex<Vec<&'static Slab>> = Mutex::new(Vec::new());

thread_local! {
    static SLAB: Cell<Option<&'static Slab>> = const { Cell::new(None) };
}

/// Counts a call while only one thread calls MPI.
#[inline]
pub(crate) fn count_alone(function: Function) {
    ALONE.calls.add_alone(function, 1);
}

/// Counts bytes of a call while only one thread calls MPI.
#[inline]
pub(crate) fn add_bytes_alone(function: Function, bytes: u64) {
    ALONE.bytes.add_alone(function, bytes);
}

/// Counts a call that starts or ends MPI, whoever else counts.
pub(crate) fn count(function: Function) {
    ALONE.calls.add_shared(function, 1);
}

/// Counts a call while any thread may call MPI.
#[inline]
pub(crate) fn count_threaded(function: Function) {
    SLAB.get().unwrap_or_else(new_slab).add(|known| &known.calls, function, 1);
}

/// Counts bytes of a call while any thread may call MPI.
pub(crate) fn add_bytes_threaded(function: Function, bytes: u64) {
    SLAB.get().unwrap_or_else(new_slab).add(|known| &known.bytes, function, bytes);
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
                Box::leak(Box::new(Slab { known: Known::new(), shared: false.into() }));
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

/// A function that was called at least once, over all threads.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Calls {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    /// Bytes that they handed to MPI; none for a function whose bytes are not counted.
    pub(crate) bytes: Option<u64>,
}

/// The functions that were called.
pub(crate) fn calls() -> Vec<Calls> {
    let slabs = SLABS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let total = |which: fn(&Known) -> &Counts, function: Function| {
        let threads: u64 = slabs.iter().map(|slab| which(&slab.known).get(function)).sum();
        which(&ALONE).get(function) + threads
    };
    functions()
        .map(|(function, row)| Calls {
            name: row.name,
            count: total(|known| &known.calls, function),
            bytes: row.bytes.then(|| total(|known| &known.bytes, function)),
        })
        .filter(|calls| calls.count > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::point_to_point::{MPI_Isend, MPI_Mrecv};

    #[test]
    fn counts_of_all_threads_are_exact_with_more_threads_than_slabs() {
        std::thread::scope(|scope| {
            for _ in 0..SLABS_AT_MOST + 8 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        count_threaded(MPI_Isend);
                        add_bytes_threaded(MPI_Isend, 8);
                    }
                });
            }
        });
        count_alone(MPI_Mrecv);
        let calls = calls();
        let count = 1000 * (SLABS_AT_MOST as u64 + 8);
        let bytes = Some(8 * count);
        assert!(calls.contains(&Calls { name: "MPI_Isend", count, bytes }));
        assert!(calls.contains(&Calls { name: "MPI_Mrecv", count: 1, bytes: None }));
        assert!(SLABS.lock().unwrap().len() <= SLABS_AT_MOST);
    }
}
