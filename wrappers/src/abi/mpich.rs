//! The interface of MPICH, Intel MPI, Cray MPICH and MVAPICH: a handle is an `int`.

use gyan_results::Datatype;

use super::{Abi, Constant};

pub(super) const ABI: Abi = Abi {
    name: "mpich",
    comm_world: Constant::Value(0x4400_0000),
    thread_levels: [0, 1, 2, 3],
    library_version_bytes: 8192,
    verbosities: [221, 222, 223, 224, 225, 226, 227, 228, 229],
    binds: &[9700, 9701, 9702, 9703, 9704, 9705, 9706, 9707, 9708, 9709, 9710, 9711],
    classes: [240, 241, 242, 243, 244, 245, 246, 247, 248, 249],
    scopes: [60438, 60439, 60440, 60441, 60442, 60443, 60444],
    source_ordered: 0,
    errors: &[
        (59, "MPI_T_ERR_MEMORY"),
        (60, "MPI_T_ERR_NOT_INITIALIZED"),
        (61, "MPI_T_ERR_CANNOT_INIT"),
        (62, "MPI_T_ERR_INVALID_INDEX"),
        (63, "MPI_T_ERR_INVALID_ITEM"),
        (64, "MPI_T_ERR_INVALID_HANDLE"),
        (65, "MPI_T_ERR_OUT_OF_HANDLES"),
        (66, "MPI_T_ERR_OUT_OF_SESSIONS"),
        (67, "MPI_T_ERR_INVALID_SESSION"),
        (68, "MPI_T_ERR_CVAR_SET_NOT_NOW"),
        (69, "MPI_T_ERR_CVAR_SET_NEVER"),
        (70, "MPI_T_ERR_PVAR_NO_STARTSTOP"),
        (71, "MPI_T_ERR_PVAR_NO_WRITE"),
        (72, "MPI_T_ERR_PVAR_NO_ATOMIC"),
        (73, "MPI_T_ERR_INVALID_NAME"),
        (74, "MPI_T_ERR_INVALID"),
        (78, "MPI_T_ERR_NOT_SUPPORTED"),
        (79, "MPI_T_ERR_NOT_ACCESSIBLE"),
    ],
    datatypes: &[
        (Datatype::Int, Constant::Value(0x4c00_0405)),
        (Datatype::Unsigned, Constant::Value(0x4c00_0406)),
        (Datatype::UnsignedLong, Constant::Value(0x4c00_0808)),
        (Datatype::UnsignedLongLong, Constant::Value(0x4c00_0819)),
        (Datatype::Long, Constant::Value(0x4c00_0807)),
        (Datatype::LongLong, Constant::Value(0x4c00_0809)),
        (Datatype::Count, Constant::Value(0x4c00_0845)),
        (Datatype::Char, Constant::Value(0x4c00_0101)),
        (Datatype::Double, Constant::Value(0x4c00_080b)),
        (Datatype::CBool, Constant::Value(0x4c00_013f)),
        (Datatype::Int32, Constant::Value(0x4c00_0439)),
        (Datatype::Uint32, Constant::Value(0x4c00_043d)),
        (Datatype::Int64, Constant::Value(0x4c00_083a)),
        (Datatype::Uint64, Constant::Value(0x4c00_083e)),
    ],
};
