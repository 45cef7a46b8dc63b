//! The functions of the standard that are not wrapped, each with the reason. For the matrix.

/// Patterns of names, with the reasons.
pub(crate) const UNWRAPPED: &[(&str, &str)] = &[
    ("MPI_T_*", "the tool interface: gyan is a user of it, and so may the program be"),
    ("MPI_Get_version", "mpi4py takes whatever defines it in the global scope for the MPI library"),
    ("MPI_Abi_*", "MPI 5.0; mpi4py looks for it as for MPI_Get_version"),
    ("MPI_*_c2f", "converts a handle; a macro in some libraries"),
    ("MPI_*_f2c", "converts a handle; a macro in some libraries"),
    ("MPI_*_toint", "converts a handle (MPI 5.0)"),
    ("MPI_*_fromint", "converts a handle (MPI 5.0)"),
    ("MPI_Status_*2*", "converts a status"),
    ("MPI_*_FN", "a callback that programs pass by its address, which libraries compare"),
    ("MPI_CONVERSION_*", "a callback that programs pass by its address, which libraries compare"),
    ("MPI_*_fn", "a callback that programs pass by its address, which libraries compare"),
    ("MPI_Session_set_info", "not in the standard: Open MPI 5 has it"),
    ("MPI_Sizeof", "generic in Fortran, without a symbol of its own"),
];
