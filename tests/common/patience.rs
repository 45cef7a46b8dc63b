//! Does something come true, however busy the machine is?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything that a test waits for takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// Returns true as soon as it holds; false when waiting longer is pointless.
pub(crate) fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// The result of the first of so many tries in which no assertion failed: on a busy machine a measurement may be disturbed, while
/// an error is in all of them.
pub(crate) fn in_some_try<T>(tries: usize, work: impl Fn() -> T) -> Option<T> {
    (0..tries).find_map(|_| catch_unwind(AssertUnwindSafe(&work)).ok())
}

/// Does the work for each, for two at a time: most of it is waiting.
pub(crate) fn in_pairs<T: Sync>(all: &[T], work: impl Fn(&T) + Sync) {
    for pair in all.chunks(2) {
        thread::scope(|scope| {
            for one in pair {
                scope.spawn(|| work(one));
            }
        });
    }
}
