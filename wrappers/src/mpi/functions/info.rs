//! MPI 4.1, chapter 10: info objects.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Info_create / mpi_info_create(info: Pointer) [anywhere];
            MPI_Info_create_env(argc: Int, argv: Text, info: Pointer) [anywhere];
            MPI_Info_delete / mpi_info_delete(info: Handle, key: Text) [anywhere];
            MPI_Info_dup / mpi_info_dup(info: Handle, newinfo: Pointer) [anywhere];
            MPI_Info_free / mpi_info_free(info: Pointer) [anywhere];
            MPI_Info_get_nkeys / mpi_info_get_nkeys(info: Handle, nkeys: Pointer) [anywhere];
            MPI_Info_get_nthkey / mpi_info_get_nthkey(info: Handle, n: Int, key: Text) [anywhere];
            MPI_Info_get_string / mpi_info_get_string(info: Handle, key: Text, buflen: Pointer, value: Text, flag: Pointer) [anywhere];
            MPI_Info_set / mpi_info_set(info: Handle, key: Text, value: Text) [anywhere];
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::environment::END; }

use super::number_rows;
