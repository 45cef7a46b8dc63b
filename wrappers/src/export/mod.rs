//! The rows of `table` turned into entry points.

mod c;
// A program that contains its MPI has the Fortran entry points of that.
#[cfg(not(feature = "static"))]
mod fortran;

use std::ffi::{CStr, CString, c_int};

use crate::next::{Address, Next};
use crate::table;

/// The next definition, which a program that got here without gyan would have called.
///
/// When there is none, the MPI library lacks the function, and the dynamic loader would have ended
/// a program that calls it. So it ends here, in the loader's own words and with its code: whatever
/// gyan returned, the program would go on in a state that it cannot be in without gyan.
#[inline]
pub(crate) fn next_or_end(next: &Next) -> Address {
    next.get().unwrap_or_else(|| end_as_the_loader(next.name()))
}

/// The next definition; where there is none for a large-count function, the one of its twin for
/// counts that are `int`, when `counts_fit`.
///
/// A program that looks whether there is such a function (mpi4py does) finds gyan's, although its
/// MPI has none, and calls it. The twin takes the same arguments in the same places, and looks at
/// the lower half of the count alone.
#[cold]
pub(crate) fn next_or_twin(next: &Next, counts_fit: bool) -> Address {
    let twin = || {
        let name = next.name().to_str().ok().filter(|_| counts_fit)?.strip_suffix("_c")?;
        crate::next::next(&CString::new(name).ok()?)
    };
    next.get().or_else(twin).unwrap_or_else(|| end_as_the_loader(next.name()))
}

/// Whether an argument means the same to a function that takes an `int` in its place.
pub(crate) trait FitsInt {
    fn fits_int(&self) -> bool {
        true
    }
}

impl FitsInt for table::Pointer {}
impl FitsInt for table::Int {}
impl FitsInt for table::Handle {}
impl FitsInt for table::Count {
    fn fits_int(&self) -> bool {
        c_int::try_from(*self).is_ok()
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
