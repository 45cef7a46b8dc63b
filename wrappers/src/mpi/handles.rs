//! How are the handles and integers read that a program passes to MPI, from C and from Fortran?
//!
//! Handles travel as machine words. None is ever converted for the callee.

use std::ffi::c_int;

use crate::mpi::abi::{Bind, Constant, Inquiry, Library, inquiry};
use crate::sys::peek::{element, word};

/// Whose handle lies at an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Language {
    C,
    Fortran,
}

/// What variables can be bound to here.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    Comm,
    Win,
    File,
}

impl Kind {
    /// The kind that a variable binds to; none for one that gyan does not follow.
    pub(crate) fn of(bind: Bind) -> Option<Kind> {
        match bind {
            Bind::Comm => Some(Kind::Comm),
            Bind::Win => Some(Kind::Win),
            Bind::File => Some(Kind::File),
            _ => None,
        }
    }

    /// In words, for one.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Kind::Comm => "communicator",
            Kind::Win => "window",
            Kind::File => "file",
        }
    }

    pub(crate) fn null(self, library: &Library) -> Constant {
        match self {
            Kind::Comm => library.abi.comm_null,
            Kind::Win => library.abi.win_null,
            Kind::File => library.abi.file_null,
        }
    }
}

/// An `int` that C passes by value and Fortran by address.
pub(crate) fn integer(language: Language, word: usize) -> Option<c_int> {
    match language {
        // The upper half of the word is not part of an int.
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        Language::C => Some(word as c_int),
        Language::Fortran if word == 0 => None,
        // SAFETY: the address of an INTEGER, or of a structure that is nothing but one, that Fortran
        // passed to a function of MPI.
        Language::Fortran => Some(unsafe { element::<c_int>(word, 0) }),
    }
}

/// The same for a number of things.
pub(crate) fn number(language: Language, word: usize) -> usize {
    integer(language, word).and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

/// The handle at an address that a call of MPI has for it.
pub(crate) fn handle(mpi: &Inquiry, kind: Kind, language: Language, at: usize) -> Option<usize> {
    if at == 0 {
        return None;
    }
    if language == Language::Fortran {
        // SAFETY: the address of an INTEGER, or of a structure that is nothing but one.
        let handle = unsafe { element::<c_int>(at, 0) };
        return match kind {
            Kind::Comm => mpi.comm(handle),
            Kind::Win => mpi.win(handle),
            Kind::File => mpi.file(handle),
        };
    }
    let bytes = if kind == Kind::File { mpi.abi.file_bytes } else { mpi.abi.handle_bytes };
    // SAFETY: the address of a handle of this kind, which has as many bytes.
    Some(unsafe { word(at, bytes, 0) })
}

/// The requests at an address, as the program holds them.
pub(crate) fn requests(language: Language, at: usize, count: usize) -> Vec<usize> {
    let bytes = match (language, inquiry()) {
        (Language::Fortran, _) => size_of::<c_int>(),
        (Language::C, Some(mpi)) => mpi.abi.handle_bytes,
        (Language::C, None) => return Vec::new(),
    };
    if at == 0 {
        return Vec::new();
    }
    // SAFETY: the program passed an array of `count` requests, each of as many bytes.
    (0..count).map(|index| unsafe { word(at, bytes, index) }).collect()
}
