//! The two functions of `gyan.h` by which a program names its phases, and the way there for its [regions](super::regions).

use std::ffi::{CStr, c_char};

use crate::calls::containment::contain;
use crate::observe::phases::PhaseChange;
use crate::run;

/// A longer name is cut.
const NAME_BYTES_AT_MOST: usize = 256;
/// The name of what has none.
pub(super) const UNNAMED: &CStr = c"unnamed";

/// Begins a phase that the program names.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C-unwind" fn gyan_phase_begin(name: *const c_char) {
    // SAFETY: gyan.h says that it is a C string.
    begin(if name.is_null() { UNNAMED } else { unsafe { CStr::from_ptr(name) } });
}

/// Ends the phase that began last.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C-unwind" fn gyan_phase_end() {
    end();
}

/// Returns the ticks that it took, 0 where there is no run.
pub(super) fn begin(name: &CStr) -> f64 {
    let name = name.to_bytes();
    let name = name.get(..NAME_BYTES_AT_MOST).unwrap_or(name);
    let name = String::from_utf8_lossy(name).into_owned();
    let change = || run::change_phase(PhaseChange::Begin(name));
    contain("beginning a phase", change).unwrap_or(0.0)
}

/// Returns the ticks that it took, 0 where there is no run.
pub(super) fn end() -> f64 {
    contain("ending a phase", || run::change_phase(PhaseChange::End)).unwrap_or(0.0)
}
