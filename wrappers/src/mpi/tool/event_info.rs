//! What `MPI_T` tells of event types and of their sources (MPI 4.1, 15.3.8).

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use gyan_results::Datatype;

use super::api::{Failure, Raw, index_of, mpi_t, number, sized_text};
use crate::mpi::abi::{Abi, Library};
use crate::sys::foreign::foreign;
use crate::sys::guard::About;
use crate::sys::peek::word;

/// The functions of MPI 4.0 that list events.
pub(crate) struct EventApi {
    abi: &'static Abi,
    functions: DescribingFunctions,
}

/// The answer of `MPI_T_event_get_info`, in the library's own constants.
pub(crate) struct EventInfo {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) verbosity: c_int,
    pub(crate) bind: c_int,
    pub(crate) elements: usize,
}

/// The answer of `MPI_T_source_get_info`.
#[derive(Default)]
pub(crate) struct SourceInfo {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) ordering: c_int,
    pub(crate) ticks_per_second: i64,
    /// The time after which its clock starts again.
    pub(crate) max_ticks: i64,
}

foreign! {
    /// As in MPI 4.1, 15.3.8.
    struct DescribingFunctions: every [unsafe extern "C"] {
        event_get_num(*mut c_int) = c"PMPI_T_event_get_num";
        event_get_info(
            c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_void, *mut isize, *mut c_int,
            *mut Raw, *mut c_void, *mut c_char, *mut c_int, *mut c_int
        ) = c"PMPI_T_event_get_info";
        source_get_num(*mut c_int) = c"PMPI_T_source_get_num";
        source_get_info(
            c_int, *mut c_char, *mut c_int, *mut c_char, *mut c_int, *mut c_int, *mut i64,
            *mut i64, *mut c_void
        ) = c"PMPI_T_source_get_info";
    }
}

impl EventApi {
    /// Those of `library`; none when it lacks one.
    pub(super) fn find(library: &Library) -> Option<EventApi> {
        let functions = DescribingFunctions::find(|name| library.function(name))?;
        Some(EventApi { abi: library.abi, functions })
    }

    /// How many event types there are now; the number grows while the program runs.
    pub(crate) fn event_get_num(&self) -> Result<usize, Failure> {
        // SAFETY: the pointer is to an int.
        number(|n| unsafe { mpi_t!(self.event_get_num, About::Interface; n) })
    }

    /// How many sources there are now.
    pub(crate) fn source_get_num(&self) -> Result<usize, Failure> {
        // SAFETY: the pointer is to an int.
        number(|n| unsafe { mpi_t!(self.source_get_num, About::Interface; n) })
    }

    /// Event type `index`, which is below the current number.
    pub(crate) fn event(&self, index: usize) -> Result<EventInfo, Failure> {
        let (mut verbosity, mut bind, mut elements): (c_int, c_int, c_int) = (0, 0, 0);
        let mut info = |name, name_length, description, description_length| {
            elements = 0;
            let (mut one, mut other) = (Unwanted::default(), Unwanted::default());
            let (name, name_length) = one.text(name, name_length);
            let (description, description_length) = other.text(description, description_length);
            let mut enumeration: Raw = null_mut();
            // SAFETY: every pointer is to a variable of its type or null; without room for elements only their
            // number is returned (MPI 4.1, 15.3.8).
            unsafe {
                mpi_t!(self.event_get_info, About::Event(index);
                    index_of(index), name, name_length, &raw mut verbosity, null_mut(),
                    null_mut(), &raw mut elements, &raw mut enumeration, null_mut(), description,
                    description_length, &raw mut bind)
            }
        };
        let name = sized_text(|name, length| info(name, length, null_mut(), null_mut()))?;
        let description = sized_text(|text, length| info(null_mut(), null_mut(), text, length))?;
        let elements = usize::try_from(elements).unwrap_or(0);
        Ok(EventInfo { name, description, verbosity, bind, elements })
    }

    /// The datatypes of the first `elements` elements of event type `index`, which has that many; none for one
    /// that `MPI_T` does not allow.
    pub(crate) fn datatypes(
        &self,
        library: &Library,
        index: usize,
        elements: usize,
    ) -> Result<Vec<Option<Datatype>>, Failure> {
        // Words: libraries with int handles fill only the first half of the array.
        let mut handles: Vec<usize> = vec![0; elements];
        let mut displacements: Vec<isize> = vec![0; elements];
        let mut room = index_of(elements);
        let (mut one, mut other) = (Unwanted::default(), Unwanted::default());
        let (name, name_length) = one.text(null_mut(), null_mut());
        let (description, description_length) = other.text(null_mut(), null_mut());
        let (mut verbosity, mut bind): (c_int, c_int) = (0, 0);
        let mut enumeration: Raw = null_mut();
        // SAFETY: every pointer is to a variable of its type or null, and the two arrays have room for as
        // many elements as the call says.
        unsafe {
            mpi_t!(self.event_get_info, About::Event(index);
                index_of(index), name, name_length, &raw mut verbosity,
                handles.as_mut_ptr().cast(), displacements.as_mut_ptr(), &raw mut room,
                &raw mut enumeration, null_mut(), description, description_length, &raw mut bind)
        }?;
        let at = handles.as_ptr() as usize;
        let datatypes = (0..elements).map(|element| {
            // SAFETY: the array has room for this many words, which are handles or 0.
            let handle = unsafe { word(at, self.abi.handle_bytes, element) };
            library.datatype(handle)
        });
        Ok(datatypes.collect())
    }

    /// Source `index`, which is below the current number.
    pub(crate) fn source(&self, index: usize) -> Result<SourceInfo, Failure> {
        let mut source = SourceInfo::default();
        let mut info = |name, name_length, description, description_length| {
            let (mut one, mut other) = (Unwanted::default(), Unwanted::default());
            let (name, name_length) = one.text(name, name_length);
            let (description, description_length) = other.text(description, description_length);
            // SAFETY: every pointer is to a variable of its type or null.
            unsafe {
                mpi_t!(self.source_get_info, About::Source(index);
                    index_of(index), name, name_length, description, description_length,
                    &raw mut source.ordering, &raw mut source.ticks_per_second,
                    &raw mut source.max_ticks, null_mut())
            }
        };
        let name = sized_text(|name, length| info(name, length, null_mut(), null_mut()))?;
        let description = sized_text(|text, length| info(null_mut(), null_mut(), text, length))?;
        Ok(SourceInfo { name, description, ..source })
    }
}

/// Scratch space for unwanted results of functions that describe an event or a source: MPICH accepts null for
/// few of the pointers. No room for any text.
#[derive(Default)]
struct Unwanted {
    text: c_char,
    length: c_int,
}

impl Unwanted {
    /// A text and its length, for those that are not wanted.
    fn text(&mut self, text: *mut c_char, length: *mut c_int) -> (*mut c_char, *mut c_int) {
        self.length = 0;
        let length = if length.is_null() { &raw mut self.length } else { length };
        (if text.is_null() { &raw mut self.text } else { text }, length)
    }
}
