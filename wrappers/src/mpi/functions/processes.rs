//! MPI 4.1, chapter 11: start, sessions, end, and processes that connect while they run.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Abort / mpi_abort(comm: Comm, errorcode: Int) ends with(errorcode);
            MPI_Close_port / mpi_close_port(port_name: Text);
            MPI_Comm_accept / mpi_comm_accept(port_name: Text, info: Handle, root: Int, comm: Comm, newcomm: Pointer) creates comm(newcomm);
            MPI_Comm_connect / mpi_comm_connect(port_name: Text, info: Handle, root: Int, comm: Comm, newcomm: Pointer) creates comm(newcomm);
            MPI_Comm_disconnect / mpi_comm_disconnect(comm: Pointer) frees comm(comm);
            MPI_Comm_get_parent / mpi_comm_get_parent(parent: Pointer) finds comm(parent);
            MPI_Comm_join / mpi_comm_join(fd: Int, intercomm: Pointer) creates comm(intercomm);
            MPI_Comm_spawn / mpi_comm_spawn(command: Text, argv: Text, maxprocs: Int, info: Handle, root: Int, comm: Comm, intercomm: Pointer, array_of_errcodes: Pointer) creates comm(intercomm);
            MPI_Comm_spawn_multiple / mpi_comm_spawn_multiple(count: Int, array_of_commands: Text, array_of_argv: Text, array_of_maxprocs: Pointer, array_of_info: Pointer, root: Int, comm: Comm, intercomm: Pointer, array_of_errcodes: Pointer) creates comm(intercomm);
            MPI_Finalized / mpi_finalized(flag: Pointer) [anywhere];
            MPI_Initialized / mpi_initialized(flag: Pointer) [anywhere];
            MPI_Is_thread_main / mpi_is_thread_main(flag: Pointer) [anywhere];
            MPI_Lookup_name / mpi_lookup_name(service_name: Text, info: Handle, port_name: Text);
            MPI_Open_port / mpi_open_port(info: Handle, port_name: Text);
            MPI_Publish_name / mpi_publish_name(service_name: Text, info: Handle, port_name: Text);
            MPI_Query_thread / mpi_query_thread(provided: Pointer) [anywhere];
            MPI_Session_get_info / mpi_session_get_info(session: Handle, info_used: Pointer);
            MPI_Session_get_nth_pset / mpi_session_get_nth_pset(session: Handle, info: Handle, n: Int, pset_len: Pointer, pset_name: Text);
            MPI_Session_get_num_psets / mpi_session_get_num_psets(session: Handle, info: Handle, npset_names: Pointer);
            MPI_Session_get_pset_info / mpi_session_get_pset_info(session: Handle, pset_name: Text, info: Pointer);
            MPI_Unpublish_name / mpi_unpublish_name(service_name: Text, info: Handle, port_name: Text);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::info::END; }

use super::number_rows;
