//! MPI 4.1, sections 7.4 to 7.6: communicators.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Comm_compare / mpi_comm_compare(comm1: Comm, comm2: Comm, result: Pointer);
            MPI_Comm_create / mpi_comm_create(comm: Comm, group: Handle, newcomm: Pointer) creates part(newcomm, comm);
            MPI_Comm_create_from_group / mpi_comm_create_from_group(group: Handle, stringtag: Text, info: Handle, errhandler: Handle, newcomm: Pointer) creates comm(newcomm);
            MPI_Comm_create_group / mpi_comm_create_group(comm: Comm, group: Handle, tag: Int, newcomm: Pointer) creates comm(newcomm);
            MPI_Comm_dup / mpi_comm_dup(comm: Comm, newcomm: Pointer) creates duplicate(newcomm, comm);
            MPI_Comm_dup_with_info / mpi_comm_dup_with_info(comm: Comm, info: Handle, newcomm: Pointer) creates duplicate(newcomm, comm);
            MPI_Comm_free / mpi_comm_free(comm: Pointer) frees comm(comm);
            MPI_Comm_get_info / mpi_comm_get_info(comm: Comm, info_used: Pointer);
            MPI_Comm_group / mpi_comm_group(comm: Comm, group: Pointer);
            MPI_Comm_idup / mpi_comm_idup(comm: Comm, newcomm: Pointer, request: Pointer) begins duplicate(newcomm, request, comm);
            MPI_Comm_idup_with_info / mpi_comm_idup_with_info(comm: Comm, info: Handle, newcomm: Pointer, request: Pointer) begins duplicate(newcomm, request, comm);
            MPI_Comm_rank / mpi_comm_rank(comm: Comm, rank: Pointer);
            MPI_Comm_remote_group / mpi_comm_remote_group(comm: Comm, group: Pointer);
            MPI_Comm_remote_size / mpi_comm_remote_size(comm: Comm, size: Pointer);
            MPI_Comm_set_info / mpi_comm_set_info(comm: Comm, info: Handle);
            MPI_Comm_size / mpi_comm_size(comm: Comm, size: Pointer);
            MPI_Comm_split / mpi_comm_split(comm: Comm, color: Int, key: Int, newcomm: Pointer) creates part(newcomm, comm);
            MPI_Comm_split_type / mpi_comm_split_type(comm: Comm, split_type: Int, key: Int, info: Handle, newcomm: Pointer) creates part(newcomm, comm);
            MPI_Comm_test_inter / mpi_comm_test_inter(comm: Comm, flag: Pointer);
            MPI_Intercomm_create / mpi_intercomm_create(local_comm: Comm, local_leader: Int, peer_comm: Comm, remote_leader: Int, tag: Int, newintercomm: Pointer) creates comm(newintercomm);
            MPI_Intercomm_create_from_groups / mpi_intercomm_create_from_groups(local_group: Handle, local_leader: Int, remote_group: Handle, remote_leader: Int, stringtag: Text, info: Handle, errhandler: Handle, newintercomm: Pointer) creates comm(newintercomm);
            MPI_Intercomm_merge / mpi_intercomm_merge(intercomm: Comm, high: Int, newintracomm: Pointer) creates comm(newintracomm);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::groups::END; }

use super::number_rows;
