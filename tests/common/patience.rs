//! Does something come true, however busy the machine is?

use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything takes that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns as soon as it is true; false when it is in vain to wait any longer.
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
