//! Definitions in a program that contains its MPI library.
//!
//! There is no next object to search, and a fully static program has no loader to ask. gyan defines the plain
//! name of each function there, so the next definition is the one under the profiling name (MPI 4.1, 15.2.1),
//! and the linker fills in the addresses of everything that `mpi.h` declares.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

use super::Address;

// PROFILING_NAMES, sorted: `build.rs` takes the names from mpi.h.
include!(concat!(env!("OUT_DIR"), "/profiling_names.rs"));

/// A function by its name.
struct Defined(&'static str, unsafe extern "C" fn());

/// The definition of `name`, with or without the leading `P`.
pub(crate) fn next(name: &CStr) -> Option<Address> {
    let name = name.to_str().ok()?;
    let pmpi = if name.starts_with('P') { name.to_owned() } else { format!("P{name}") };
    let at = PROFILING_NAMES.binary_search_by_key(&pmpi.as_str(), |defined| defined.0).ok()?;
    let Defined(_, address) = PROFILING_NAMES.get(at)?;
    NonNull::new(*address as *mut c_void)
}

/// Data symbols are not looked up by name: their addresses are in the table of this MPI.
pub(crate) fn default(_name: &CStr) -> Option<Address> {
    None
}

/// The program comes first.
pub(crate) fn is_behind_another_gyan() -> bool {
    false
}

/// The program, which is the only object that matters.
#[derive(Clone)]
pub(crate) struct LoadedObject {
    /// Its file.
    pub(crate) path: CString,
}

impl LoadedObject {
    /// The object that holds `address`.
    pub(crate) fn holding(_address: Address) -> Option<LoadedObject> {
        let path = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        Some(LoadedObject { path: CString::new(path.into_os_string().into_encoded_bytes()).ok()? })
    }

    /// The definition of `name` in it.
    #[allow(clippy::unused_self, reason = "as in an object that is loaded")]
    pub(crate) fn find(&self, name: &CStr) -> Option<Address> {
        next(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_only_under_its_profiling_name() {
        assert!(PROFILING_NAMES.is_sorted_by_key(|defined| defined.0));
        assert!(next(c"MPI_Recv").is_some());
        assert_eq!(next(c"MPI_Recv"), next(c"PMPI_Recv"));
        assert_ne!(next(c"MPI_Recv"), next(c"MPI_Send"));
        assert_eq!(next(c"PMPI_Init_no_such"), None);
    }
}
