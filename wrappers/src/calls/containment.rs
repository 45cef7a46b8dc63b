//! What happens when gyan itself panics? The panic ends here, gyan is off for the rest of the run, says so
//! once, and the application goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::calls::gate;
use crate::sys::notice;

/// Runs a piece of gyan; none when it panicked.
pub(crate) fn contain<T>(what: &str, piece: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    // gyan has its own copy of std, so the hook of a Rust application stays what it is.
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    // AssertUnwindSafe: after a panic gyan is closed, nothing is looked at again.
    let result = catch_unwind(AssertUnwindSafe(piece)).ok();
    if result.is_none() {
        gate::stay_off();
        notice::say(&format!("internal error while {what}; gyan is off for the rest of the run"));
    }
    result
}
