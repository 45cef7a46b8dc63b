//! The two functions of `gyan.h` by which a program names its phases.

use std::ffi::{CStr, c_char};

use crate::calls::containment::contain;
use crate::observe::phases::PhaseChange;
use crate::run;

/// A longer name is cut.
const NAME_BYTES_AT_MOST: usize = 256;
const UNNAMED: &CStr = c"unnamed";

/// Begins a phase that the program names.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C-unwind" fn gyan_phase_begin(name: *const c_char) {
    let name = if name.is_null() {
        UNNAMED
    } else {
        // SAFETY: gyan.h says that it is a C string.
        unsafe { CStr::from_ptr(name) }
    };
    let name = name.to_bytes();
    let name = name.get(..NAME_BYTES_AT_MOST).unwrap_or(name);
    let name = String::from_utf8_lossy(name).into_owned();
    contain("beginning a phase", || run::change_phase(PhaseChange::Begin(name)));
}

/// Ends the phase that began last.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C-unwind" fn gyan_phase_end() {
    contain("ending a phase", || run::change_phase(PhaseChange::End));
}
