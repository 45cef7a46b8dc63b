//! Prepares for exceptions of the program that pass through gyan, and tells which calls lead to a place.
//!
//! libgyan.so brings its own copy of GCC's unwinder (`build.rs` says why). When a C++ exception, or the
//! cancellation of a thread, passes a frame of gyan that has cleanup to do, that copy is asked to set
//! registers. It ends the process if it has never unwound before, because only unwinding fills in its table of
//! register sizes.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Once;

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        step: extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
}

/// Has the unwinder walk one frame of the stack, which fills in its table.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    // SAFETY: the prototype of the unwinder of the platform's C++ interface (Itanium C++ ABI,
    // exception handling, level 1, as GCC extends it); `stop` uses neither argument.
    ONCE.call_once(|| _ = unsafe { _Unwind_Backtrace(stop, ptr::null_mut()) });
}

unsafe extern "C-unwind" {
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Writes the return addresses of the calls that lead here, the innermost first; returns how many. Allocates
/// nothing. After the outermost there is one at 0, unless the stack could not be unwound that far.
pub(crate) fn callers(into: &mut [usize]) -> usize {
    let mut frames = Frames { into, len: 0 };
    // SAFETY: `take` gets back the pointer to `frames`, which outlives the walk.
    unsafe { _Unwind_Backtrace(take, ptr::from_mut(&mut frames).cast()) };
    frames.len
}

struct Frames<'a> {
    into: &'a mut [usize],
    len: usize,
}

extern "C-unwind" fn take(context: *mut c_void, frames: *mut c_void) -> c_int {
    // SAFETY: the pointer that `callers` passed, used for nothing else meanwhile.
    let frames = unsafe { &mut *frames.cast::<Frames>() };
    let Some(frame) = frames.into.get_mut(frames.len) else { return URC_END_OF_STACK };
    // SAFETY: the context of a frame, which the unwinder passes.
    *frame = unsafe { _Unwind_GetIP(context) };
    frames.len += 1;
    0
}

const URC_END_OF_STACK: c_int = 5;

extern "C-unwind" fn stop(_context: *mut c_void, _argument: *mut c_void) -> c_int {
    URC_END_OF_STACK
}
