//! How to read the handles and integers that a program passes to MPI, from C and from Fortran?
//!
//! Handles travel as machine words. None is ever converted for the callee. The promise that words are what a
//! program passed is made in one place, where an entry point turns them into [`Arguments`].

use std::ffi::c_int;
use std::num::NonZeroU8;

use crate::mpi::abi::{Bind, Constant, Library, inquiry};
use crate::sys::lookup::position;
use crate::sys::peek::{element, word};

/// The kind of handle at an address.
// A word, so that a copy of it and its neighbours reads what was written by as many bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(usize)]
pub(crate) enum Language {
    C,
    Fortran,
}

/// The kinds of objects that variables can be bound to here.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    Comm,
    Win,
    File,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Comm, Kind::Win, Kind::File];

    /// The kind that a variable binds to; none for one that gyan does not follow.
    pub(crate) fn from_bind(bind: Bind) -> Option<Kind> {
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

/// The arguments of a call by the program, in the order of the function's row: words, or addresses in Fortran.
/// Its holder can read what the program passed without any further promise.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    language: Language,
    words: &'a [usize],
}

/// The position of an argument, in a byte: those of a function are copied where a call is handled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ArgumentPosition(NonZeroU8);

impl ArgumentPosition {
    /// The first argument has 0. None for a position that no argument has.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) const fn new(at: usize) -> Option<ArgumentPosition> {
        if at >= u8::MAX as usize {
            return None;
        }
        match NonZeroU8::new(at as u8 + 1) {
            Some(next) => Some(ArgumentPosition(next)),
            None => None,
        }
    }

    /// That of the argument with this name; none for a name that no argument has.
    pub(crate) const fn named(names: &[&str], wanted: &str) -> Option<ArgumentPosition> {
        match position(names, wanted) {
            Some(at) => ArgumentPosition::new(at),
            None => None,
        }
    }

    /// The first one of two that is there.
    pub(crate) const fn first(
        one: Option<ArgumentPosition>,
        other: Option<ArgumentPosition>,
    ) -> Option<ArgumentPosition> {
        if one.is_some() { one } else { other }
    }
}

impl From<ArgumentPosition> for usize {
    #[inline(always)]
    fn from(at: ArgumentPosition) -> usize {
        usize::from(at.0.get()) - 1
    }
}

/// One of the arguments. Each method reads an argument of the kind that the row names.
#[derive(Clone, Copy)]
pub(crate) struct Passed {
    pub(crate) language: Language,
    pub(crate) word: usize,
}

impl<'a> Arguments<'a> {
    /// # Safety
    ///
    /// The program is inside a call of a function of MPI with these arguments, each of the kind that the
    /// function's row says.
    #[inline]
    pub(crate) unsafe fn new(language: Language, words: &'a [usize]) -> Arguments<'a> {
        Arguments { language, words }
    }

    pub(crate) fn words(self) -> &'a [usize] {
        self.words
    }

    #[inline]
    pub(crate) fn language(self) -> Language {
        self.language
    }

    /// All of them; none if the number differs.
    #[inline(always)]
    pub(crate) fn all<const N: usize>(self) -> Option<[Passed; N]> {
        let words = <[usize; N]>::try_from(self.words).ok()?;
        Some(words.map(|word| Passed { language: self.language, word }))
    }

    pub(crate) fn last(self) -> Option<Passed> {
        let word = *self.words.last()?;
        Some(Passed { language: self.language, word })
    }

    #[inline]
    pub(crate) fn at(self, place: impl Into<usize>) -> Passed {
        let word = self.words.get(place.into()).copied().unwrap_or(0);
        Passed { language: self.language, word }
    }
}

impl Passed {
    /// An `int`, which C passes by value and Fortran by address.
    #[inline]
    pub(crate) fn integer(self) -> Option<c_int> {
        match self.language {
            // The upper half of the word is not part of the int.
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
            Language::C => Some(self.word as c_int),
            Language::Fortran if self.word == 0 => None,
            // SAFETY: the address of an INTEGER, or of a structure that is nothing but one.
            Language::Fortran => Some(unsafe { element::<c_int>(self.word, 0) }),
        }
    }

    /// Whether the flag at the address in this argument is set, which the call has written.
    pub(crate) fn is_set(self) -> bool {
        // SAFETY: the address of an int, or of a LOGICAL of that size.
        self.word != 0 && unsafe { element::<c_int>(self.word, 0) } != 0
    }

    /// The same for a number of things.
    pub(crate) fn number(self) -> usize {
        self.integer().and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
    }

    /// A communicator, which C passes by value and Fortran by address; the upper half of an `int` handle's word
    /// is undefined.
    #[inline]
    pub(crate) fn comm(self) -> Option<usize> {
        match self.language {
            Language::C => Some(self.word),
            Language::Fortran => inquiry()?.from_fortran.comm.handle(self.integer()?),
        }
    }

    /// The same for a window.
    #[inline]
    pub(crate) fn win(self) -> Option<usize> {
        match self.language {
            Language::C => Some(self.word),
            Language::Fortran => inquiry()?.from_fortran.win.handle(self.integer()?),
        }
    }

    /// The same for a group.
    pub(crate) fn group(self) -> Option<usize> {
        match self.language {
            Language::C => Some(self.word),
            Language::Fortran => inquiry()?.from_fortran.group.handle(self.integer()?),
        }
    }

    /// The handle at the address in this argument.
    pub(crate) fn handle(self, kind: Kind) -> Option<usize> {
        let mpi = inquiry()?;
        if self.word == 0 {
            return None;
        }
        if self.language == Language::Fortran {
            let handle = self.integer()?;
            return match kind {
                Kind::Comm => mpi.from_fortran.comm.handle(handle),
                Kind::Win => mpi.from_fortran.win.handle(handle),
                Kind::File => mpi.from_fortran.file.handle(handle),
            };
        }
        let bytes = if kind == Kind::File { mpi.abi.file_bytes } else { mpi.abi.handle_bytes };
        // SAFETY: the address of a handle of this kind, which has as many bytes.
        Some(unsafe { word(self.word, bytes, 0) })
    }

    /// The request at index `at` of an array that has it, as the program stores it.
    pub(crate) fn request(self, at: usize) -> Option<usize> {
        let bytes = self.request_bytes()?;
        // SAFETY: an array of requests of this size, with this element.
        Some(unsafe { word(self.word, bytes, at) })
    }

    /// The first requests of an array that has so many.
    #[inline]
    pub(crate) fn requests(self, into: &mut [usize]) {
        let Some(bytes) = self.request_bytes() else { return };
        for (at, request) in into.iter_mut().enumerate() {
            // SAFETY: an array of requests of this size, with this element.
            *request = unsafe { word(self.word, bytes, at) };
        }
    }

    /// Those of each request at the address in this argument; none if there is no address.
    #[inline]
    fn request_bytes(self) -> Option<usize> {
        match self.language {
            _ if self.word == 0 => None,
            Language::C => Some(inquiry()?.abi.handle_bytes),
            Language::Fortran => Some(size_of::<c_int>()),
        }
    }

    /// Source and tag in a status that the call has filled in; none if it is ignored, or a Fortran status.
    #[inline]
    pub(crate) fn source_and_tag(self) -> Option<(c_int, c_int)> {
        let abi = &inquiry()?.abi;
        let Passed { language, word: at } = self;
        if language == Language::Fortran || at == 0 || at == abi.status_ignore {
            return None;
        }
        // SAFETY: a status has both.
        let at = |offset| unsafe { element::<c_int>(at + offset, 0) };
        let [source, tag] = abi.status_source_and_tag;
        Some((at(source), at(tag)))
    }
}
