//! For processors without a trampoline for the guard: calls are made directly.

use std::ffi::c_int;

use super::GuardedFunction;

/// There is nothing to record.
pub(crate) struct Record;

pub(super) fn install() -> bool {
    false
}

pub(super) fn restore() {}

/// # Safety
/// As for `function` itself.
pub(super) unsafe fn guarded<Arguments, F: GuardedFunction<Arguments>>(
    function: F,
    arguments: Arguments,
) -> Result<c_int, &'static str> {
    // SAFETY: the caller's promise.
    Ok(unsafe { function.direct(arguments) })
}

pub(crate) fn uncovered<T>(work: impl FnOnce() -> T) -> T {
    work()
}
