//! What is a Fortran routine called? Determined by the number that [`super::fortran`] gives each spelling that
//! compilers make of a name; those with `_cptr` follow the others.

use std::ffi::CString;

use super::call::Entry;
use super::missing;
#[cfg(target_arch = "x86_64")]
use crate::mpi::functions::Function;
use crate::mpi::functions::LEN;
use crate::sys::symbols::{Address, Next};

/// The most spellings that a function has.
const SPELLINGS: usize = 10;

/// With a row for measuring gyan.
pub(super) static NEXT: [[Next; SPELLINGS]; LEN + 1] =
    [const { [const { Next::new() }; SPELLINGS] }; LEN + 1];

/// The offset in [`NEXT`] of the address of a routine; null before it was looked up.
#[cfg(target_arch = "x86_64")]
pub(super) const fn place(function: Function, spelling: usize) -> usize {
    (function.0 * SPELLINGS + spelling) * size_of::<Next>() + Next::CALLABLE
}

/// The next definition, which the program would have called without gyan.
#[inline]
pub(super) fn next_or_end(entry: &Entry, spelling: usize) -> Address {
    static NO_SUCH: Next = Next::new();
    let next = NEXT.get(entry.function.0).and_then(|next| next.get(spelling)).unwrap_or(&NO_SUCH);
    next.found().unwrap_or_else(|| missing::next_or_end(next, &name(entry, spelling)))
}

#[cold]
pub(super) fn name(entry: &Entry, spelling: usize) -> CString {
    let cptr = if spelling < 5 { "" } else { "_cptr" };
    let name = entry.name.to_string_lossy().to_lowercase() + cptr;
    CString::new(match spelling % 5 {
        0 => name + "_",
        1 => name + "__",
        2 => name.to_uppercase(),
        3 => name + "_f08_",
        _ => format!("o{name}_f"),
    })
    .unwrap_or_default()
}
