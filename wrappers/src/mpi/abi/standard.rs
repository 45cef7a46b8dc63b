//! The interface of the standard itself since MPI 5.0 (`libmpi_abi.so`): a handle is a pointer whose
//! predefined values are small integers.

use std::ffi::{CStr, c_int};

use gyan_results::Datatype;

use super::{Abi, Constant, FortranConstant, FromFortran};
use crate::sys::foreign::foreign;
use crate::sys::symbols::Address;

pub(super) const ABI: Abi = Abi {
    name: "standard",
    comm_world: Constant::Value(0x101),
    comm_null: Constant::Value(0x100),
    request_null: Constant::Value(0x180),
    win_null: Constant::Value(0x110),
    file_null: Constant::Value(0x118),
    info_null: Constant::Value(0x130),
    handle_bytes: 8,
    file_bytes: 8,
    in_place: 1,
    proc_null: -3,
    any_source: -1,
    any_tag: -2,
    status_ignore: 0,
    status_source_and_tag: [0, 4],
    root: -4,
    mode_noprecede: 2048,
    lock_exclusive: 301,
    object_name_bytes: 128,
    unsupported_operation: 55,
    topologies: [211, 212, 213],
    from_fortran: FromFortran {
        comm: Some(c"PMPI_Comm_fromint"),
        datatype: Some(c"PMPI_Type_fromint"),
        group: Some(c"PMPI_Group_fromint"),
        win: Some(c"PMPI_Win_fromint"),
        file: Some(c"PMPI_File_fromint"),
    },
    fortran_in_place: FortranConstant::None,
    thread_levels: [0, 1024, 2048, 4096],
    library_version_bytes: 8192,
    verbosities: [9, 10, 12, 17, 18, 20, 33, 34, 36],
    binds: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    classes: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    scopes: [1, 2, 3, 4, 5, 6, 7],
    source_ordered: 1,
    callback_safeties: [0, 3, 15, 63],
    errors: &[
        (1005, "MPI_T_ERR_MEMORY"),
        (1003, "MPI_T_ERR_NOT_INITIALIZED"),
        (1001, "MPI_T_ERR_CANNOT_INIT"),
        (1007, "MPI_T_ERR_INVALID_INDEX"),
        (1008, "MPI_T_ERR_INVALID_ITEM"),
        (1010, "MPI_T_ERR_INVALID_HANDLE"),
        (1012, "MPI_T_ERR_OUT_OF_HANDLES"),
        (1013, "MPI_T_ERR_OUT_OF_SESSIONS"),
        (1009, "MPI_T_ERR_INVALID_SESSION"),
        (1014, "MPI_T_ERR_CVAR_SET_NOT_NOW"),
        (1015, "MPI_T_ERR_CVAR_SET_NEVER"),
        (1017, "MPI_T_ERR_PVAR_NO_STARTSTOP"),
        (1016, "MPI_T_ERR_PVAR_NO_WRITE"),
        (1018, "MPI_T_ERR_PVAR_NO_ATOMIC"),
        (1011, "MPI_T_ERR_INVALID_NAME"),
        (1006, "MPI_T_ERR_INVALID"),
        (1004, "MPI_T_ERR_NOT_SUPPORTED"),
        (1002, "MPI_T_ERR_NOT_ACCESSIBLE"),
    ],
    datatypes: &[
        (Datatype::Int, Constant::Value(0x209)),
        (Datatype::Unsigned, Constant::Value(0x20d)),
        (Datatype::UnsignedLong, Constant::Value(0x20e)),
        (Datatype::UnsignedLongLong, Constant::Value(0x20f)),
        (Datatype::Long, Constant::Value(0x20a)),
        (Datatype::LongLong, Constant::Value(0x20b)),
        (Datatype::Count, Constant::Value(0x202)),
        (Datatype::Char, Constant::Value(0x243)),
        (Datatype::Double, Constant::Value(0x214)),
        (Datatype::CBool, Constant::Value(0x238)),
        (Datatype::Int32, Constant::Value(0x250)),
        (Datatype::Uint32, Constant::Value(0x251)),
        (Datatype::Int64, Constant::Value(0x258)),
        (Datatype::Uint64, Constant::Value(0x259)),
    ],
};

/// Whether the library has this interface: libraries with another one also have `MPI_Abi_get_version`, but
/// answer -1.
pub(super) fn is_here(find: &dyn Fn(&CStr) -> Option<Address>) -> bool {
    let symbols = [c"PMPI_Abi_get_version", c"MPI_Abi_get_version"];
    let Some(address) = symbols.into_iter().find_map(find) else { return false };
    // MPI 5.0, 20.2; callable before MPI_Init.
    let abi_get_version = foreign!(address, extern "C" fn(*mut c_int, *mut c_int) -> c_int);
    let (mut major, mut minor): (c_int, c_int) = (-1, -1);
    abi_get_version(&raw mut major, &raw mut minor) == 0 && major >= 1
}
