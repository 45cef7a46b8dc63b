//! A program unloads an object that it opened, such as a plugin. Call sites in it are looked up while it is there:
//! another object may be loaded at its addresses.

use std::ffi::{c_int, c_void};

use crate::calls::containment::contain;
use crate::calls::sites;
use crate::observe::timeline;
use crate::sys::symbols;

/// The function that programs call.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let before =
        contain("looking at call sites", || sites::before_unloading(timeline::has_begun()))
            .flatten();
    let result = symbols::dlclose(handle);
    if let Some(before) = before {
        contain("looking at call sites", || {
            let gone = sites::unloaded(before);
            timeline::replace_addresses(|address| gone.lasting(address));
        });
    }
    result
}
