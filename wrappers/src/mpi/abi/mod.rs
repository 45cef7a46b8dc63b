//! Which MPI is in this process, and what its constants are.
//!
//! Three binary interfaces are known; a table for each holds what gyan needs of it (values: `mpi.h` of Open MPI
//! 4.1.4, of MPICH 4.0.2, and MPI 5.0, appendix A). Handles travel as machine words and are forwarded
//! unchanged, so the tables hold only the few that gyan itself passes.
//!
//! With the feature `native` the table is that of the MPI that gyan is built against.

#[cfg(feature = "native")]
mod comparison;
pub(crate) mod datatypes;
pub(crate) mod identity;
mod inquiry;
mod library;
mod mpich;
#[cfg(feature = "native")]
mod native;
mod openmpi;
mod standard;

pub(crate) use identity::{Implementation, Version, is_between};
pub(crate) use inquiry::{Group, Inquiry, inquiry, known_inquiry, prepare_inquiry};
pub(crate) use library::{Library, is_initialized};

use std::ffi::{CStr, c_int};

use gyan_results::{Class, Datatype};

use crate::sys::symbols::Address;

/// The constants of one binary interface.
pub(crate) struct Abi {
    /// Its name in the profile.
    pub(crate) name: &'static str,
    pub(crate) comm_world: Constant,
    pub(crate) comm_null: Constant,
    pub(crate) request_null: Constant,
    pub(crate) win_null: Constant,
    pub(crate) file_null: Constant,
    pub(crate) info_null: Constant,
    /// Bytes of an `MPI_Comm`, `MPI_Win`, `MPI_Datatype`, `MPI_Request` in memory.
    pub(crate) handle_bytes: usize,
    /// Bytes of an `MPI_File` in memory.
    pub(crate) file_bytes: usize,
    /// `MPI_IN_PLACE`, as an address.
    pub(crate) in_place: usize,
    pub(crate) proc_null: c_int,
    pub(crate) any_source: c_int,
    pub(crate) any_tag: c_int,
    /// `MPI_STATUS_IGNORE`, as an address.
    pub(crate) status_ignore: usize,
    /// The offsets of `MPI_SOURCE` and `MPI_TAG` in an `MPI_Status`.
    pub(crate) status_source_and_tag: [usize; 2],
    /// `MPI_ROOT`.
    pub(crate) root: c_int,
    /// `MPI_MODE_NOPRECEDE`.
    pub(crate) mode_noprecede: c_int,
    /// `MPI_LOCK_EXCLUSIVE`.
    pub(crate) lock_exclusive: c_int,
    /// `MPI_MAX_OBJECT_NAME`, with room for the NUL.
    pub(crate) object_name_bytes: usize,
    /// `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub(crate) unsupported_operation: c_int,
    /// `MPI_CART`, `MPI_GRAPH`, `MPI_DIST_GRAPH`.
    pub(crate) topologies: [c_int; 3],
    /// The functions that convert Fortran handles.
    pub(crate) from_fortran: FromFortran,
    /// How to find Fortran's `MPI_IN_PLACE`.
    pub(crate) fortran_in_place: FortranConstant,
    /// `MPI_THREAD_SINGLE`, `_FUNNELED`, `_SERIALIZED`, `_MULTIPLE`.
    pub(crate) thread_levels: [c_int; 4],
    /// `MPI_MAX_LIBRARY_VERSION_STRING`.
    pub(crate) library_version_bytes: usize,
    /// `MPI_T_VERBOSITY_*`, in the order of [`VERBOSITIES`].
    pub(crate) verbosities: [c_int; 9],
    /// `MPI_T_BIND_*`, in the order of [`Bind::ALL`]; shorter if the interface lacks the last one.
    pub(crate) binds: &'static [c_int],
    /// `MPI_T_PVAR_CLASS_*`, in the order of [`Class::ALL`].
    pub(crate) classes: [c_int; 10],
    /// `MPI_T_SCOPE_*`, in the order of [`SCOPES`].
    pub(crate) scopes: [c_int; 7],
    /// `MPI_T_SOURCE_ORDERED`; Open MPI has none before version 6.
    pub(crate) source_ordered: c_int,
    /// `MPI_T_CB_REQUIRE_*`, in the order of [`CALLBACK_SAFETIES`]; Open MPI has none before version 6.
    pub(crate) callback_safeties: [c_int; 4],
    /// The errors that `MPI_T` functions return, with their names.
    pub(crate) errors: &'static [(c_int, &'static str)],
    /// The datatypes that a variable of `MPI_T` can have.
    pub(crate) datatypes: &'static [(Datatype, Constant)],
}

/// For each kind of handle of Fortran the name of the function that converts it; none if it is the handle itself.
#[derive(Clone, Copy)]
pub(crate) struct FromFortran<T = Option<&'static CStr>> {
    pub(crate) comm: T,
    pub(crate) datatype: T,
    pub(crate) group: T,
    pub(crate) win: T,
    pub(crate) file: T,
}

/// A constant that Fortran knows by its address.
#[derive(Clone, Copy)]
pub(crate) enum FortranConstant {
    /// The address of this symbol.
    Symbol(&'static CStr),
    /// The address that this variable holds.
    Variable(&'static CStr),
    /// There is no Fortran.
    None,
}

/// A predefined handle.
#[derive(Clone, Copy)]
pub(crate) enum Constant {
    /// Its value.
    Value(usize),
    /// The address of this symbol.
    Symbol(&'static CStr),
}

/// `MPI_T_VERBOSITY_*` without the prefix (MPI 4.1, 15.3.1).
pub(crate) const VERBOSITIES: [&str; 9] = [
    "USER_BASIC",
    "USER_DETAIL",
    "USER_ALL",
    "TUNER_BASIC",
    "TUNER_DETAIL",
    "TUNER_ALL",
    "MPIDEV_BASIC",
    "MPIDEV_DETAIL",
    "MPIDEV_ALL",
];

/// `MPI_T_SCOPE_*` without the prefix (MPI 4.1, 15.3.6).
pub(crate) const SCOPES: [&str; 7] =
    ["CONSTANT", "READONLY", "LOCAL", "GROUP", "GROUP_EQ", "ALL", "ALL_EQ"];

/// `MPI_T_CB_REQUIRE_*` without the prefix: what a callback must be safe for, in increasing strictness
/// (MPI 4.1, 15.3.8).
pub(crate) const CALLBACK_SAFETIES: [&str; 4] =
    ["NONE", "MPI_RESTRICTED", "THREAD_SAFE", "ASYNC_SIGNAL_SAFE"];

/// `MPI_THREAD_*`, by increasing support.
pub(crate) const THREAD_LEVELS: [&str; 4] =
    ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"];

/// What a variable binds to: `MPI_T_BIND_*` (MPI 4.1, 15.3.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Bind {
    NoObject,
    Comm,
    Datatype,
    Errhandler,
    File,
    Group,
    Op,
    Request,
    Win,
    Message,
    Info,
    Session,
}

impl Bind {
    pub(crate) const ALL: [Bind; 12] = [
        Bind::NoObject,
        Bind::Comm,
        Bind::Datatype,
        Bind::Errhandler,
        Bind::File,
        Bind::Group,
        Bind::Op,
        Bind::Request,
        Bind::Win,
        Bind::Message,
        Bind::Info,
        Bind::Session,
    ];

    /// The standard's name for the kind of handle; none for no object.
    pub(crate) fn name(self) -> Option<&'static str> {
        Some(match self {
            Bind::NoObject => return None,
            Bind::Comm => "MPI_COMM",
            Bind::Datatype => "MPI_DATATYPE",
            Bind::Errhandler => "MPI_ERRHANDLER",
            Bind::File => "MPI_FILE",
            Bind::Group => "MPI_GROUP",
            Bind::Op => "MPI_OP",
            Bind::Request => "MPI_REQUEST",
            Bind::Win => "MPI_WIN",
            Bind::Message => "MPI_MESSAGE",
            Bind::Info => "MPI_INFO",
            Bind::Session => "MPI_SESSION",
        })
    }
}

impl Abi {
    /// The name of an error code; the number itself when the interface does not define it.
    pub(crate) fn error(&self, code: c_int) -> String {
        match self.errors.iter().find(|(value, _)| *value == code) {
            Some((_, name)) => (*name).to_owned(),
            None => format!("error {code}"),
        }
    }

    pub(crate) fn class(&self, value: c_int) -> Option<Class> {
        named(&self.classes, &Class::ALL, value)
    }

    pub(crate) fn bind(&self, value: c_int) -> Option<Bind> {
        named(self.binds, &Bind::ALL, value)
    }

    pub(crate) fn verbosity(&self, value: c_int) -> Option<&'static str> {
        named(&self.verbosities, &VERBOSITIES, value)
    }

    pub(crate) fn scope(&self, value: c_int) -> Option<&'static str> {
        named(&self.scopes, &SCOPES, value)
    }

    pub(crate) fn thread_level(&self, value: c_int) -> Option<&'static str> {
        named(&self.thread_levels, &THREAD_LEVELS, value)
    }

    /// `MPI_THREAD_SINGLE`.
    pub(crate) fn thread_single(&self) -> c_int {
        let [single, ..] = self.thread_levels;
        single
    }

    /// `MPI_THREAD_MULTIPLE`.
    pub(crate) fn thread_multiple(&self) -> c_int {
        let [.., multiple] = self.thread_levels;
        multiple
    }
}

fn named<T: Copy>(values: &[c_int], names: &[T], value: c_int) -> Option<T> {
    let at = values.iter().position(|&known| known == value)?;
    names.get(at).copied()
}

/// The binary interfaces that are known.
#[cfg(feature = "native")]
static TABLES: [&Abi; 3] = [&openmpi::ABI, &mpich::ABI, &standard::ABI];

/// The binary interface of the library at `path`, whose symbols `find` looks up.
fn of_library(find: &dyn Fn(&CStr) -> Option<Address>, path: &str) -> Result<&'static Abi, String> {
    #[cfg(feature = "native")]
    return native::of(find, path);
    #[cfg(not(feature = "native"))]
    recognise(find).ok_or_else(|| {
        format!("{path} has another binary interface than Open MPI, MPICH and MPI 5")
    })
}

/// The binary interface of the library that holds `init`, the next definition of `MPI_Init`; none for an
/// unknown one.
///
/// `find` looks up a symbol in that library. The order matters: in Open MPI 6 the library with the standard's
/// interface also exposes Open MPI's own symbols.
pub(crate) fn recognise(find: &dyn Fn(&CStr) -> Option<Address>) -> Option<&'static Abi> {
    if standard::is_here(find) {
        return Some(&standard::ABI);
    }
    if find(c"ompi_mpi_comm_world").is_some() {
        return Some(&openmpi::ABI);
    }
    let mpich = [c"MPI_T_PVAR_ALL_HANDLES", c"MPI_UNWEIGHTED"];
    mpich.iter().any(|name| find(name).is_some()).then_some(&mpich::ABI)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_mean_different_things_in_each_interface() {
        assert_eq!(openmpi::ABI.class(6), Some(Class::Counter));
        assert_eq!(standard::ABI.class(6), Some(Class::LowWatermark));
        assert_eq!(mpich::ABI.class(246), Some(Class::Counter));
        assert_eq!(openmpi::ABI.bind(1), Some(Bind::Comm));
        assert_eq!(standard::ABI.bind(1), Some(Bind::NoObject));
        assert_eq!(openmpi::ABI.bind(11), None);
        assert_eq!(standard::ABI.verbosity(17), Some("TUNER_BASIC"));
        assert_eq!(mpich::ABI.class(6), None);
    }

    #[test]
    fn an_error_without_a_name_is_its_number() {
        assert_eq!(openmpi::ABI.error(72), "MPI_T_ERR_INVALID");
        assert_eq!(mpich::ABI.error(62), "MPI_T_ERR_INVALID_INDEX");
        assert_eq!(openmpi::ABI.error(4711), "error 4711");
    }
}
