//! The interface of the one MPI that this libgyan was built with, from its `mpi.h` through mpi-sys.
//!
//! If mpi-sys lacks a constant, or has it under a library-specific name, `native.c` provides it, compiled by
//! the same `mpicc`.

use std::ffi::{CStr, c_int, c_void};
use std::mem::{size_of, transmute_copy};
use std::ptr;
use std::sync::OnceLock;

use gyan_results::Datatype;

use super::comparison::differences;
use super::{Abi, Bind, Constant, FromFortran, TABLES, recognise};
use crate::mpi::functions::large_counts::Count;
use crate::sys::symbols::{self, Address};

/// Stands for a constant that `mpi.h` lacks: no MPI code is such a large negative number.
pub(super) const ABSENT: c_int = c_int::MIN;

unsafe extern "C" {
    safe static gyan_in_place: Word;
    safe static gyan_status_ignore: Word;
    safe static gyan_status_source_and_tag: [usize; 2];
    safe static gyan_fortran_handles_are_handles: c_int;
    safe static gyan_verbosities: [c_int; 9];
    safe static gyan_binds: [c_int; Bind::ALL.len() - 1];
    safe static gyan_classes: [c_int; 10];
    safe static gyan_scopes: [c_int; 7];
    safe static gyan_datatypes: [mpi_sys::MPI_Datatype; 8];
}

/// An address that is only compared.
#[repr(transparent)]
struct Word(*mut c_void);

// SAFETY: the memory behind it is never read.
unsafe impl Sync for Word {}

// Assumptions of gyan about every MPI.
const _: () = {
    assert!(size_of::<mpi_sys::MPI_Count>() == size_of::<Count>());
    assert!(size_of::<mpi_sys::MPI_Comm>() == size_of::<mpi_sys::MPI_Win>());
    assert!(size_of::<mpi_sys::MPI_Comm>() == size_of::<mpi_sys::MPI_Datatype>());
    assert!(size_of::<mpi_sys::MPI_Comm>() == size_of::<mpi_sys::MPI_Request>());
    assert!(size_of::<mpi_sys::MPI_T_enum>() == size_of::<*mut c_void>());
    assert!(size_of::<mpi_sys::MPI_T_cvar_handle>() == size_of::<*mut c_void>());
    assert!(size_of::<mpi_sys::MPI_T_pvar_handle>() == size_of::<*mut c_void>());
    assert!(size_of::<mpi_sys::MPI_T_pvar_session>() == size_of::<*mut c_void>());
};

/// The named constants, or [`ABSENT`] for each that mpi-sys lacks, with their names: the glob import of the
/// inner scope hides the constants of the outer one.
macro_rules! if_there {
    ($list:ident: $($name:ident)*) => {
        $(
            #[allow(non_upper_case_globals, dead_code, reason = "hidden where it is there")]
            const $name: c_int = ABSENT;
        )*
        const $list: &[(c_int, &str)] = {
            #[allow(unused_imports, clippy::wildcard_imports, reason = "see above")]
            use mpi_sys::*;
            #[allow(
                clippy::unnecessary_cast,
                clippy::cast_possible_wrap,
                reason = "bindgen makes the sign of a macro or enum its type"
            )]
            &[$(($name as c_int, stringify!($name))),*]
        };
    };
}

if_there! { ERRORS:
    MPI_T_ERR_MEMORY
    MPI_T_ERR_NOT_INITIALIZED
    MPI_T_ERR_CANNOT_INIT
    MPI_T_ERR_INVALID_INDEX
    MPI_T_ERR_INVALID_ITEM
    MPI_T_ERR_INVALID_HANDLE
    MPI_T_ERR_OUT_OF_HANDLES
    MPI_T_ERR_OUT_OF_SESSIONS
    MPI_T_ERR_INVALID_SESSION
    MPI_T_ERR_CVAR_SET_NOT_NOW
    MPI_T_ERR_CVAR_SET_NEVER
    MPI_T_ERR_PVAR_NO_STARTSTOP
    MPI_T_ERR_PVAR_NO_WRITE
    MPI_T_ERR_PVAR_NO_ATOMIC
    MPI_T_ERR_INVALID_NAME
    MPI_T_ERR_INVALID
    MPI_T_ERR_NOT_SUPPORTED
    MPI_T_ERR_NOT_ACCESSIBLE
}
// Here, too, the second name is that of an enumerator.
if_there! { SAFETY_NONE: MPI_T_CB_REQUIRE_NONE MPI_T_cb_safety_MPI_T_CB_REQUIRE_NONE }
if_there! { SAFETY_MPI_RESTRICTED:
    MPI_T_CB_REQUIRE_MPI_RESTRICTED
    MPI_T_cb_safety_MPI_T_CB_REQUIRE_MPI_RESTRICTED
}
if_there! { SAFETY_THREAD_SAFE:
    MPI_T_CB_REQUIRE_THREAD_SAFE
    MPI_T_cb_safety_MPI_T_CB_REQUIRE_THREAD_SAFE
}
if_there! { SAFETY_ASYNC_SIGNAL_SAFE:
    MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE
    MPI_T_cb_safety_MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE
}
if_there! { SOURCE_ORDERED: MPI_T_SOURCE_ORDERED MPI_T_source_order_MPI_T_SOURCE_ORDERED }
// Only the header of the standard's own interface has it.
if_there! { ABI_VERSION: MPI_ABI_VERSION }
// The second is MPICH's.
if_there! { BIND_SESSION: MPI_T_BIND_MPI_SESSION MPIR_T_bind_t_MPI_T_BIND_MPI_SESSION }

fn first(constants: &[(c_int, &str)]) -> Option<c_int> {
    constants.iter().map(|(value, _)| *value).find(|value| *value != ABSENT)
}

/// A handle as a machine word.
fn word<T: Copy>(handle: T) -> Constant {
    Constant::Value(if size_of::<T>() == size_of::<u32>() {
        // SAFETY: a handle of this size is an int, for which any bits are valid.
        let handle = unsafe { transmute_copy::<T, u32>(&handle) };
        handle as usize
    } else {
        const { assert!(size_of::<T>() == size_of::<u32>() || size_of::<T>() == size_of::<usize>()) }
        // SAFETY: it has the size of a machine word, as asserted.
        unsafe { transmute_copy::<T, usize>(&handle) }
    })
}

/// The value of a constant of mpi-sys that its C part holds.
macro_rules! of_shim {
    ($name:ident) => {
        // SAFETY: a constant in the C part of mpi-sys, which nothing writes to.
        unsafe { ptr::read(&raw const mpi_sys::$name) }
    };
}

/// The table of this MPI.
pub(super) fn table() -> &'static Abi {
    static TABLE: OnceLock<Abi> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = make();
        // mpi.h does not say where Fortran's constants are, but that is the same for all libraries with an
        // interface.
        if let Some(known) = equal_to(&table) {
            table.fortran_in_place = known.fortran_in_place;
        }
        table
    })
}

/// The known table that agrees with `mpi.h`.
fn equal_to(native: &Abi) -> Option<&'static Abi> {
    TABLES.into_iter().find(|known| differences(known, native).is_empty())
}

/// The functions for handles of Fortran.
fn from_fortran() -> FromFortran {
    if first(ABI_VERSION).is_some() {
        return FromFortran {
            comm: Some(c"PMPI_Comm_fromint"),
            datatype: Some(c"PMPI_Type_fromint"),
            group: Some(c"PMPI_Group_fromint"),
            win: Some(c"PMPI_Win_fromint"),
            file: Some(c"PMPI_File_fromint"),
        };
    }
    let function = |name| (gyan_fortran_handles_are_handles == 0).then_some(name);
    FromFortran {
        comm: function(c"PMPI_Comm_f2c"),
        datatype: function(c"PMPI_Type_f2c"),
        group: function(c"PMPI_Group_f2c"),
        win: function(c"PMPI_Win_f2c"),
        // Its handle is always wider than an INTEGER.
        file: Some(c"PMPI_File_f2c"),
    }
}

#[allow(clippy::cast_possible_wrap, clippy::unnecessary_cast, reason = "as in if_there")]
fn make() -> Abi {
    let errors: Vec<_> = ERRORS.iter().copied().filter(|(value, _)| *value != ABSENT).collect();
    let binds: Vec<_> = gyan_binds.iter().copied().chain(first(BIND_SESSION)).collect();
    let [int, unsigned, long, unsigned_long, long_long, unsigned_long_long, count, char] =
        gyan_datatypes.map(word);
    let datatypes = vec![
        (Datatype::Int, int),
        (Datatype::Unsigned, unsigned),
        (Datatype::UnsignedLong, unsigned_long),
        (Datatype::UnsignedLongLong, unsigned_long_long),
        (Datatype::Long, long),
        (Datatype::LongLong, long_long),
        (Datatype::Count, count),
        (Datatype::Char, char),
        (Datatype::Double, word(of_shim!(RSMPI_DOUBLE))),
        (Datatype::CBool, word(of_shim!(RSMPI_C_BOOL))),
        (Datatype::Int32, word(of_shim!(RSMPI_INT32_T))),
        (Datatype::Uint32, word(of_shim!(RSMPI_UINT32_T))),
        (Datatype::Int64, word(of_shim!(RSMPI_INT64_T))),
        (Datatype::Uint64, word(of_shim!(RSMPI_UINT64_T))),
    ];
    Abi {
        name: "native",
        comm_world: word(of_shim!(RSMPI_COMM_WORLD)),
        comm_null: word(of_shim!(RSMPI_COMM_NULL)),
        request_null: word(of_shim!(RSMPI_REQUEST_NULL)),
        win_null: word(of_shim!(RSMPI_WIN_NULL)),
        file_null: word(of_shim!(RSMPI_FILE_NULL)),
        info_null: word(of_shim!(RSMPI_INFO_NULL)),
        handle_bytes: size_of::<mpi_sys::MPI_Comm>(),
        file_bytes: size_of::<mpi_sys::MPI_File>(),
        in_place: gyan_in_place.0 as usize,
        proc_null: of_shim!(RSMPI_PROC_NULL),
        any_source: of_shim!(RSMPI_ANY_SOURCE),
        any_tag: of_shim!(RSMPI_ANY_TAG),
        status_ignore: gyan_status_ignore.0 as usize,
        status_source_and_tag: gyan_status_source_and_tag,
        root: mpi_sys::MPI_ROOT as c_int,
        mode_noprecede: mpi_sys::MPI_MODE_NOPRECEDE as c_int,
        lock_exclusive: mpi_sys::MPI_LOCK_EXCLUSIVE as c_int,
        object_name_bytes: mpi_sys::MPI_MAX_OBJECT_NAME as usize,
        unsupported_operation: mpi_sys::MPI_ERR_UNSUPPORTED_OPERATION as c_int,
        topologies: [of_shim!(RSMPI_CART), of_shim!(RSMPI_GRAPH), of_shim!(RSMPI_DIST_GRAPH)],
        from_fortran: from_fortran(),
        // No header has it.
        fortran_in_place: if symbols::default(c"MPIR_F_MPI_IN_PLACE").is_some() {
            super::mpich::ABI.fortran_in_place
        } else {
            super::openmpi::ABI.fortran_in_place
        },
        thread_levels: [
            of_shim!(RSMPI_THREAD_SINGLE),
            of_shim!(RSMPI_THREAD_FUNNELED),
            of_shim!(RSMPI_THREAD_SERIALIZED),
            of_shim!(RSMPI_THREAD_MULTIPLE),
        ],
        library_version_bytes: mpi_sys::MPI_MAX_LIBRARY_VERSION_STRING as usize,
        verbosities: gyan_verbosities,
        binds: binds.leak(),
        classes: gyan_classes,
        scopes: gyan_scopes,
        source_ordered: first(SOURCE_ORDERED).unwrap_or(ABSENT),
        callback_safeties: [
            SAFETY_NONE,
            SAFETY_MPI_RESTRICTED,
            SAFETY_THREAD_SAFE,
            SAFETY_ASYNC_SIGNAL_SAFE,
        ]
        .map(|names| first(names).unwrap_or(ABSENT)),
        errors: errors.leak(),
        datatypes: datatypes.leak(),
    }
}

/// The table, if the library at `path`, whose symbols `find` looks up, is the MPI that it was made for, as far
/// as can be told: a library that has a different known table is not.
pub(super) fn of(
    find: &dyn Fn(&CStr) -> Option<Address>,
    path: &str,
) -> Result<&'static Abi, String> {
    // In a static program the linker has already matched them.
    if !cfg!(feature = "static") {
        let built_for = equal_to(table());
        let is_here = recognise(find);
        if let Some(built_for) = built_for
            && is_here.is_none_or(|here| here.name != built_for.name)
        {
            return Err(format!(
                "{path} does not have the {} interface that this libgyan was built for",
                built_for.name
            ));
        }
    }
    Ok(table())
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "tests/real_mpi/calls/native.rs looks at what was compared")]
mod tests {
    use std::ffi::c_char;

    use super::super::comparison::constants;
    use super::*;

    /// Constants that not every version of an interface has, by table.
    const NOT_IN_EVERY_VERSION: [(&str, &str); 9] = [
        // Open MPI before 6 is at MPI 3.1.
        ("openmpi", "MPI_T_SOURCE_ORDERED"),
        ("openmpi", "MPI_T_CB_REQUIRE_NONE"),
        ("openmpi", "MPI_T_CB_REQUIRE_MPI_RESTRICTED"),
        ("openmpi", "MPI_T_CB_REQUIRE_THREAD_SAFE"),
        ("openmpi", "MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE"),
        ("openmpi", "MPI_T_ERR_NOT_SUPPORTED"),
        ("openmpi", "MPI_T_ERR_NOT_ACCESSIBLE"),
        // MPICH before 4.1.
        ("mpich", "MPI_T_BIND_MPI_SESSION"),
        ("mpich", "MPI_T_ERR_NOT_ACCESSIBLE"),
    ];

    /// The table that is nearest to `mpi.h`.
    fn nearest() -> &'static Abi {
        let nearest = TABLES.into_iter().min_by_key(|known| differences(known, table()).len());
        nearest.expect("there are tables")
    }

    #[test]
    fn the_table_is_what_mpi_h_says() {
        let known = nearest();
        let differences = differences(known, table());
        let header = constants(table());
        let mut absent: Vec<String> = constants(known)
            .into_iter()
            .filter(|(name, _)| !header.iter().any(|(there, _)| there == name))
            .map(|(name, _)| name)
            .collect();
        println!("{} constants compared with the table {}", header.len(), known.name);
        println!("absent from mpi.h: {}", absent.join(" "));
        absent.retain(|name| !NOT_IN_EVERY_VERSION.contains(&(known.name, name.as_str())));
        assert!(absent.is_empty(), "absent from mpi.h, but not known to be: {absent:?}");
        assert!(differences.is_empty(), "\n{}\n", differences.join("\n"));
    }

    #[test]
    fn the_library_is_recognised_as_what_its_mpi_h_says() {
        let mut text: Vec<c_char> = vec![0; table().library_version_bytes + 1];
        let mut length = 0;
        // SAFETY: the prototype in MPI 4.1, 9.1.1; callable before MPI_Init, with a buffer of
        // MPI_MAX_LIBRARY_VERSION_STRING.
        unsafe { mpi_sys::MPI_Get_library_version(text.as_mut_ptr(), &raw mut length) };
        // SAFETY: MPI ends it with a NUL.
        println!("{}", unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy());
        let find = |name: &CStr| symbols::default(name);
        let recognised = recognise(&find).expect("an interface that is known");
        assert_eq!(recognised.name, nearest().name);
        let FromFortran { comm, datatype, group, win, .. } = &recognised.from_fortran;
        for name in [comm, datatype, group, win].into_iter().flatten() {
            assert!(find(name).is_some(), "{name:?}");
        }
    }
}
