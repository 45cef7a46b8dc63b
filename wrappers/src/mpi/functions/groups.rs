//! MPI 4.1, section 7.3: groups.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Group_compare / mpi_group_compare(group1: Handle, group2: Handle, result: Pointer);
            MPI_Group_difference / mpi_group_difference(group1: Handle, group2: Handle, newgroup: Pointer);
            MPI_Group_excl / mpi_group_excl(group: Handle, n: Int, ranks: Pointer, newgroup: Pointer);
            MPI_Group_free / mpi_group_free(group: Pointer);
            MPI_Group_from_session_pset / mpi_group_from_session_pset(session: Handle, pset_name: Text, newgroup: Pointer);
            MPI_Group_incl / mpi_group_incl(group: Handle, n: Int, ranks: Pointer, newgroup: Pointer);
            MPI_Group_intersection / mpi_group_intersection(group1: Handle, group2: Handle, newgroup: Pointer);
            MPI_Group_range_excl / mpi_group_range_excl(group: Handle, n: Int, ranges: Pointer, newgroup: Pointer);
            MPI_Group_range_incl / mpi_group_range_incl(group: Handle, n: Int, ranges: Pointer, newgroup: Pointer);
            MPI_Group_rank / mpi_group_rank(group: Handle, rank: Pointer);
            MPI_Group_size / mpi_group_size(group: Handle, size: Pointer);
            MPI_Group_translate_ranks / mpi_group_translate_ranks(group1: Handle, n: Int, ranks1: Pointer, group2: Handle, ranks2: Pointer);
            MPI_Group_union / mpi_group_union(group1: Handle, group2: Handle, newgroup: Pointer);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::collective::END; }

use super::number_rows;
