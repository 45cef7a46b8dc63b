//! A program calls a function that its MPI library lacks.
//!
//! Without gyan the dynamic loader would have ended it, or a weak symbol would have told it that there is no
//! such function (mpi4py asks that way). With gyan in between, the symbol exists. So
//!
//! - a large-count function is forwarded to its twin for `int` counts, while they fit, or to the twin of MPI 3
//!   whose name ends with `_x`;
//! - if no twin can do it and a loaded object needs the symbol, the program ends with the loader's message and
//!   exit code: whatever gyan returned, the program would continue in a state that is impossible without gyan;
//! - otherwise the program asked whether the function exists while gyan's definition was the answer
//!   (`weak_symbols` corrects that at the start, and `dlsym` where there is one), and gets the error `MPI_ERR_UNSUPPORTED_OPERATION`.

use std::ffi::{CStr, CString, c_int};
use std::mem;

use super::call;
use crate::mpi::abi::{Inquiry, inquiry};
use crate::mpi::functions::{ArgumentKind, Name};
use crate::sys::peek::element;
use crate::sys::symbols::{self, Address, Next};
use crate::sys::weak_symbols;

/// The next definition, which the program would have called without gyan.
#[inline]
pub(crate) fn next_or_end(next: &Next, name: &CStr) -> Address {
    next.get(name).unwrap_or_else(|| end_as_the_loader(name))
}

/// Does what `name` would have done. `arguments` has the names and kinds of the arguments in `words`.
#[cold]
#[inline(never)]
pub(super) fn call(name: &CStr, arguments: &[(Name, ArgumentKind)], words: &[usize]) -> c_int {
    by_twin(name, arguments, words).unwrap_or_else(|| lacking(name))
}

/// A function that no other can stand in for.
#[cold]
pub(crate) fn lacking(name: &CStr) -> c_int {
    if weak_symbols::is_needed(name) {
        end_as_the_loader(name)
    }
    // Any error will do if not even the library is known.
    inquiry().map_or(1, |mpi| mpi.abi.unsupported_operation)
}

fn by_twin(name: &CStr, arguments: &[(Name, ArgumentKind)], words: &[usize]) -> Option<c_int> {
    let base = name.to_str().ok()?.strip_suffix("_c")?;
    let find = |name: String| symbols::next(&CString::new(name).ok()?);
    if let Some(same) = find(format!("{base}_x")) {
        // SAFETY: a function of MPI 3.0 with the same arguments.
        return Some(unsafe { call::call(same, words) });
    }
    let twin = find(base.to_owned())?;
    let mut narrow = Narrow { mpi: inquiry()?, arguments, arrays: Vec::new(), outs: Vec::new() };
    let converted = narrow.convert(words)?;
    // SAFETY: the twin takes the same arguments with `int` instead of counts, and arrays of `int` instead of
    // arrays of counts, as converted here.
    let result = unsafe { call::call(twin, &converted) };
    for (out, value) in &narrow.outs {
        let at = *out as *mut i64;
        // SAFETY: the program passed the address of an `MPI_Count` to be written.
        unsafe { at.write_unaligned(i64::from(**value)) };
    }
    if outlives_call(arguments) {
        // The arrays are leaked: nothing tells when the operation completes or its request is freed.
        mem::forget(narrow.arrays);
    }
    Some(result)
}

/// Whether the library may read arrays after the call has returned: for an operation with a request,
/// nonblocking or persistent (MPI 4.1, 6.12 and 6.13).
fn outlives_call(arguments: &[(Name, ArgumentKind)]) -> bool {
    arguments.iter().any(|(name, _)| *name == Name::Request)
}

/// The arguments of a large-count function on their way to its twin.
struct Narrow<'a> {
    mpi: &'static Inquiry,
    arguments: &'a [(Name, ArgumentKind)],
    arrays: Vec<Vec<c_int>>,
    /// Where the program wants a result, and where the twin writes it.
    outs: Vec<(usize, Box<c_int>)>,
}

impl Narrow<'_> {
    /// The words for the twin; none when a number does not fit, or there is no twin.
    fn convert(&mut self, words: &[usize]) -> Option<Vec<usize>> {
        let kinds = self.arguments.iter().map(|(_, kind)| *kind);
        let mut converted = Vec::with_capacity(words.len());
        for (kind, &word) in kinds.zip(words) {
            converted.push(match kind {
                ArgumentKind::Same => word,
                ArgumentKind::Count => c_int::try_from(signed(word)).ok().map(|_| word)?,
                ArgumentKind::Inconvertible => return None,
                ArgumentKind::OutCount => self.out(word),
                ArgumentKind::PerRank => {
                    let length = self.mpi.peers(self.word(Name::Comm, words)?)?;
                    self.array(word, length)?
                }
                ArgumentKind::PerRankAtRoot => {
                    let comm = self.word(Name::Comm, words)?;
                    if self.is_root(comm, int(self.word(Name::Root, words)?))? {
                        self.array(word, self.mpi.peers(comm)?)?
                    } else {
                        word
                    }
                }
                ArgumentKind::PerSource => {
                    let (sources, _) = self.mpi.neighbors(self.word(Name::Comm, words)?)?;
                    self.array(word, sources)?
                }
                ArgumentKind::PerDestination => {
                    let (_, destinations) = self.mpi.neighbors(self.word(Name::Comm, words)?)?;
                    self.array(word, destinations)?
                }
                ArgumentKind::PerItem => {
                    let count = self.word(Name::Count, words).map(signed);
                    let count =
                        count.or_else(|| Some(int(self.word(Name::Ndims, words)?).into()))?;
                    self.array(word, usize::try_from(count).ok()?)?
                }
            });
        }
        Some(converted)
    }

    /// The argument of this name in the row.
    fn word(&self, name: Name, words: &[usize]) -> Option<usize> {
        let at = self.arguments.iter().position(|(argument, _)| *argument == name)?;
        words.get(at).copied()
    }

    fn is_root(&self, comm: usize, root: c_int) -> Option<bool> {
        if self.mpi.is_intercommunicator(comm) {
            return Some(root == self.mpi.abi.root);
        }
        Some(usize::try_from(root).ok() == Some(self.mpi.rank(comm)?))
    }

    /// The address of `length` numbers as `int`.
    fn array(&mut self, at: usize, length: usize) -> Option<usize> {
        if at == 0 {
            return Some(at);
        }
        let mut array = Vec::with_capacity(length);
        for index in 0..length {
            // SAFETY: the program passed an array of this many 8-byte numbers.
            let number = unsafe { element::<i64>(at, index) };
            array.push(c_int::try_from(number).ok()?);
        }
        let at = array.as_ptr() as usize;
        self.arrays.push(array);
        Some(at)
    }

    /// The address of an `int` for a result; it is initialised with the caller's number, for arguments that are
    /// also read.
    fn out(&mut self, at: usize) -> usize {
        // SAFETY: the program passed the address of an `MPI_Count`.
        let before = unsafe { element::<i64>(at, 0) };
        let mut value = Box::new(c_int::try_from(before).unwrap_or(0));
        let address = &raw mut *value as usize;
        self.outs.push((at, value));
        address
    }
}

/// For an `int` argument: the upper half of its word is undefined.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
fn int(word: usize) -> c_int {
    word as c_int
}

#[allow(clippy::cast_possible_wrap)]
fn signed(word: usize) -> i64 {
    word as i64
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

#[cfg(test)]
mod tests {
    use super::super::c;
    use super::*;
    use crate::mpi::functions::every_row;

    type Arguments = &'static [(Name, ArgumentKind)];

    /// Every row's name with its arguments.
    fn rows() -> Vec<(&'static str, Arguments)> {
        let mut rows: Vec<(&str, Arguments)> = Vec::new();
        macro_rules! row {
            ($chapter:ident; $(
                $form:ident $name:ident $fortran:tt $rest:tt
            )*) => {
                $( rows.push((stringify!($name), c::$name::ENTRY.arguments)); )*
            };
        }
        every_row! { row }
        rows
    }

    #[test]
    fn arrays_of_nonblocking_and_persistent_operations_are_kept() {
        use ArgumentKind::{Count, Inconvertible, OutCount, Same};
        let is_array = |kind| ![Same, Count, OutCount, Inconvertible].contains(&kind);
        let mut rows = rows();
        rows.retain(|(_, arguments)| arguments.iter().any(|(_, kind)| is_array(*kind)));
        for (name, arguments) in &rows {
            let lives_on = name.starts_with("MPI_I") || name.ends_with("_init_c");
            assert_eq!(outlives_call(arguments), lives_on, "{name}");
        }
        for name in ["MPI_Ialltoallv_c", "MPI_Alltoallv_init_c"] {
            assert!(rows.iter().any(|(row, _)| *row == name), "{name}");
        }
    }

    #[test]
    fn a_function_with_other_arguments_does_not_stand_in() {
        let rows = rows();
        for (name, large) in &rows {
            let Some(base) = name.strip_suffix("_c") else { continue };
            let (_, small) = rows.iter().find(|(row, _)| *row == base).unwrap();
            let refused = large.iter().any(|(_, kind)| *kind == ArgumentKind::Inconvertible);
            assert!(refused || small.len() == large.len(), "{name}");
        }
    }
}
