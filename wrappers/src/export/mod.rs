//! The rows of `table` turned into entry points.

mod c;

use std::ffi::{CStr, c_int};

use crate::next::{Address, Next};

/// The next definition, which a program that got here without gyan would have called.
///
/// When there is none, the MPI library lacks the function, and the dynamic loader would have ended
/// a program that calls it. So it ends here, in the loader's own words and with its code: whatever
/// gyan returned, the program would go on in a state that it cannot be in without gyan.
#[inline]
pub(crate) fn next_or_end(next: &Next) -> Address {
    match next.get() {
        Some(address) => address,
        None => end_as_the_loader(next.name()),
    }
}

#[cold]
#[inline(never)]
fn end_as_the_loader(symbol: &CStr) -> ! {
    const CODE_OF_THE_LOADER: c_int = 127;
    let program = std::env::args_os().next().unwrap_or_default();
    let program = program.to_string_lossy();
    let symbol = symbol.to_string_lossy();
    let line = format!("{program}: symbol lookup error: {program}: undefined symbol: {symbol}\n");
    // SAFETY: the pointer and the length are those of `line`.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    // SAFETY: _exit may be called anywhere; the loader ends a process the same way.
    unsafe { libc::_exit(CODE_OF_THE_LOADER) }
}
