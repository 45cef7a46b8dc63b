//! The interface of Open MPI and its kin: a handle is the address of a symbol.
//!
//! The predefined objects are copied into the executable, where they are initialised; the library's
//! own twins stay zero. So a symbol is looked for from the program first ([`super::Library`]).

use gyan_results::Datatype;

use super::{Abi, Constant, FortranConstant, FromFortran};

pub(super) const ABI: Abi = Abi {
    name: "openmpi",
    comm_world: Constant::Symbol(c"ompi_mpi_comm_world"),
    comm_null: Constant::Symbol(c"ompi_mpi_comm_null"),
    win_null: Constant::Symbol(c"ompi_mpi_win_null"),
    file_null: Constant::Symbol(c"ompi_mpi_file_null"),
    handle_bytes: 8,
    file_bytes: 8,
    in_place: 1,
    proc_null: -2,
    root: -4,
    object_name_bytes: 64,
    unsupported_operation: 52,
    topologies: [1, 2, 3],
    from_fortran: FromFortran {
        comm: Some(c"PMPI_Comm_f2c"),
        datatype: Some(c"PMPI_Type_f2c"),
        win: Some(c"PMPI_Win_f2c"),
        file: Some(c"PMPI_File_f2c"),
    },
    fortran_in_place: FortranConstant::Symbol(c"mpi_fortran_in_place_"),
    thread_levels: [0, 1, 2, 3],
    library_version_bytes: 256,
    verbosities: [0, 1, 2, 3, 4, 5, 6, 7, 8],
    binds: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    classes: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    scopes: [0, 1, 2, 3, 4, 5, 6],
    source_ordered: 0,
    errors: &[
        (54, "MPI_T_ERR_MEMORY"),
        (55, "MPI_T_ERR_NOT_INITIALIZED"),
        (56, "MPI_T_ERR_CANNOT_INIT"),
        (57, "MPI_T_ERR_INVALID_INDEX"),
        (58, "MPI_T_ERR_INVALID_ITEM"),
        (59, "MPI_T_ERR_INVALID_HANDLE"),
        (60, "MPI_T_ERR_OUT_OF_HANDLES"),
        (61, "MPI_T_ERR_OUT_OF_SESSIONS"),
        (62, "MPI_T_ERR_INVALID_SESSION"),
        (63, "MPI_T_ERR_CVAR_SET_NOT_NOW"),
        (64, "MPI_T_ERR_CVAR_SET_NEVER"),
        (65, "MPI_T_ERR_PVAR_NO_STARTSTOP"),
        (66, "MPI_T_ERR_PVAR_NO_WRITE"),
        (67, "MPI_T_ERR_PVAR_NO_ATOMIC"),
        (73, "MPI_T_ERR_INVALID_NAME"),
        (72, "MPI_T_ERR_INVALID"),
        (82, "MPI_T_ERR_NOT_SUPPORTED"),
        (81, "MPI_T_ERR_NOT_ACCESSIBLE"),
    ],
    datatypes: &[
        (Datatype::Int, Constant::Symbol(c"ompi_mpi_int")),
        (Datatype::Unsigned, Constant::Symbol(c"ompi_mpi_unsigned")),
        (Datatype::UnsignedLong, Constant::Symbol(c"ompi_mpi_unsigned_long")),
        (Datatype::UnsignedLongLong, Constant::Symbol(c"ompi_mpi_unsigned_long_long")),
        (Datatype::Long, Constant::Symbol(c"ompi_mpi_long")),
        (Datatype::LongLong, Constant::Symbol(c"ompi_mpi_long_long_int")),
        (Datatype::Count, Constant::Symbol(c"ompi_mpi_count")),
        (Datatype::Char, Constant::Symbol(c"ompi_mpi_char")),
        (Datatype::Double, Constant::Symbol(c"ompi_mpi_double")),
        (Datatype::CBool, Constant::Symbol(c"ompi_mpi_c_bool")),
        (Datatype::Int32, Constant::Symbol(c"ompi_mpi_int32_t")),
        (Datatype::Uint32, Constant::Symbol(c"ompi_mpi_uint32_t")),
        (Datatype::Int64, Constant::Symbol(c"ompi_mpi_int64_t")),
        (Datatype::Uint64, Constant::Symbol(c"ompi_mpi_uint64_t")),
    ],
};
