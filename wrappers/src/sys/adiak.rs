//! What does a program tell Adiak of its run? Names with values, as Adiak hands them to tools (`adiak.h` and `adiak_tool.h`, 0.4).

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_uint, c_ulong, c_ulonglong, c_void};

use super::foreign::foreign;
use super::peek::element;
use super::symbols;

/// `adiak_general`: what is known of a run, other than how fast it was.
const GENERAL: c_int = 2;
/// Of the interface; no release looks at it.
const VERSION: c_int = 0;
/// So many are kept.
const MOST: usize = 64;
/// Values are cut to so many characters.
const LONGEST: usize = 200;
/// What Adiak finds out by itself if the program asks for it: a profile has that already, or should not.
const ITS_OWN: [&str; 12] = [
    "adiakversion",
    "cluster",
    "executable",
    "hostname",
    "jobsize",
    "mpi_library",
    "mpi_library_vendor",
    "mpi_library_version",
    "mpi_version",
    "numhosts",
    "uid",
    "user",
];

/// The type of a value (`adiak_datatype_t`), as far as gyan reads it: its first field, an `adiak_type_t`.
#[repr(C)]
struct Datatype {
    kind: c_int,
}

type NameAndValue =
    extern "C-unwind" fn(*const c_char, c_int, *const c_char, usize, *const Datatype, *mut c_void);

/// The names with a single number or text as their value, in the order in which the program gave them. Empty where Adiak is not a
/// shared library.
pub(crate) fn names_and_values() -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(list) = symbols::default(c"adiak_list_namevals") {
        let list = foreign!(list, extern "C-unwind" fn(c_int, c_int, NameAndValue, *mut c_void));
        list(VERSION, GENERAL, keep, (&raw mut found).cast());
    }
    found
}

extern "C-unwind" fn keep(
    name: *const c_char,
    _category: c_int,
    _subcategory: *const c_char,
    value: usize,
    datatype: *const Datatype,
    found: *mut c_void,
) {
    // SAFETY: what `names_and_values` passed, while it waits.
    let Some(found) = (unsafe { found.cast::<Vec<(String, String)>>().as_mut() }) else { return };
    // SAFETY: the type of this value, or null.
    let Some(datatype) = (unsafe { datatype.as_ref() }) else { return };
    if name.is_null() || value == 0 || found.len() >= MOST {
        return;
    }
    // SAFETY: Adiak keeps the name as a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    if ITS_OWN.contains(&&*name) {
        return;
    }
    // SAFETY: the value has this type.
    if let Some(value) = unsafe { shown(datatype.kind, value) } {
        found.push((name.into_owned(), value));
    }
}

/// A value of a type (`adiak_type_t`) as text; none of times, paths and all that has parts.
///
/// # Safety
///
/// At `value` is an `adiak_value_t` with a value of this type.
unsafe fn shown(kind: c_int, value: usize) -> Option<String> {
    macro_rules! number {
        ($type:ty) => {
            // SAFETY: the caller's.
            unsafe { element::<$type>(value, 0) }.to_string()
        };
    }
    Some(match kind {
        1 => number!(c_long),
        2 => number!(c_ulong),
        3 => number!(c_int),
        4 => number!(c_uint),
        5 => number!(f64),
        // A version, a string, and one of a category.
        8..=10 => {
            // SAFETY: the caller's: the address of a text.
            let text = unsafe { element::<*const c_char>(value, 0) };
            if text.is_null() {
                return None;
            }
            // SAFETY: the caller's: a C string.
            let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
            text.chars().take(LONGEST).collect()
        }
        16 => number!(c_longlong),
        17 => number!(c_ulonglong),
        _ => return None,
    })
}
