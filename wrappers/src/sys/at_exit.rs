//! What does gyan do when the program ends with `exit`, or by returning from `main`?

use std::ffi::{c_int, c_void};
use std::ptr;

/// Called with the code that the process ends with, in the thread that called `exit`.
pub(crate) type Handler = extern "C-unwind" fn(c_int, *mut c_void);

unsafe extern "C" {
    fn on_exit(function: Handler, argument: *mut c_void) -> c_int;
}

/// Registers `handler` to be called then, before existing ones.
pub(crate) fn call(handler: Handler) {
    // SAFETY: the prototype of the C library's on_exit(3). The handler stays valid to the end: libgyan.so is
    // linked so that it is never unloaded (build.rs).
    unsafe { on_exit(handler, ptr::null_mut()) };
}
