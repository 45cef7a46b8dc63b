//! Exceptions of the program that fly through gyan: what has to be ready for them.
//!
//! libgyan.so brings its own copy of GCC's unwinder (`build.rs` says why). Where an exception of
//! C++, or the cancellation of a thread, passes a frame of gyan that has something to put back,
//! that copy is asked to set registers; and it ends the process when it has not unwound before,
//! because it fills in a table of register sizes then and not earlier.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Once;

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        step: extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
}

/// Lets the unwinder look at one frame of the stack, which fills in its table.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    // SAFETY: the prototype of the unwinder of the platform's C++ interface (Itanium C++ ABI,
    // exception handling, level 1, as GCC extends it); `stop` uses neither argument.
    ONCE.call_once(|| _ = unsafe { _Unwind_Backtrace(stop, ptr::null_mut()) });
}

extern "C-unwind" fn stop(_context: *mut c_void, _argument: *mut c_void) -> c_int {
    const URC_END_OF_STACK: c_int = 5;
    URC_END_OF_STACK
}
