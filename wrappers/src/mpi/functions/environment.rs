//! MPI 4.1, chapter 9: versions, memory, errors.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Add_error_class / mpi_add_error_class(errorclass: Pointer) [anywhere];
            MPI_Add_error_code / mpi_add_error_code(errorclass: Int, errorcode: Pointer) [anywhere];
            MPI_Add_error_string / mpi_add_error_string(errorcode: Int, string: Text) [anywhere];
            MPI_Alloc_mem / mpi_alloc_mem mpi_alloc_mem_cptr(size: Aint, info: Handle, baseptr: Pointer);
            MPI_Comm_call_errhandler / mpi_comm_call_errhandler(comm: Comm, errorcode: Int);
            MPI_Comm_create_errhandler / mpi_comm_create_errhandler(comm_errhandler_fn: Pointer, errhandler: Pointer);
            MPI_Comm_get_errhandler / mpi_comm_get_errhandler(comm: Comm, errhandler: Pointer);
            MPI_Comm_set_errhandler / mpi_comm_set_errhandler(comm: Comm, errhandler: Handle);
            MPI_Errhandler_free / mpi_errhandler_free(errhandler: Pointer) [anywhere];
            MPI_Error_class / mpi_error_class(errorcode: Int, errorclass: Pointer) [anywhere];
            MPI_Error_string / mpi_error_string(errorcode: Int, string: Text, resultlen: Pointer) [anywhere];
            MPI_File_call_errhandler / mpi_file_call_errhandler(fh: File, errorcode: Int);
            MPI_File_create_errhandler / mpi_file_create_errhandler(file_errhandler_fn: Pointer, errhandler: Pointer);
            MPI_File_get_errhandler / mpi_file_get_errhandler(file: File, errhandler: Pointer);
            MPI_File_set_errhandler / mpi_file_set_errhandler(file: File, errhandler: Handle);
            MPI_Free_mem / mpi_free_mem(base: Pointer);
            MPI_Get_hw_resource_info / mpi_get_hw_resource_info(hw_info: Pointer) [anywhere];
            MPI_Get_library_version / mpi_get_library_version(version: Text, resultlen: Pointer) [anywhere];
            MPI_Get_processor_name / mpi_get_processor_name(name: Text, resultlen: Pointer) [anywhere];
            MPI_Remove_error_class / mpi_remove_error_class(errorclass: Int) [anywhere];
            MPI_Remove_error_code / mpi_remove_error_code(errorcode: Int) [anywhere];
            MPI_Remove_error_string / mpi_remove_error_string(errorcode: Int) [anywhere];
            MPI_Session_call_errhandler / mpi_session_call_errhandler(session: Handle, errorcode: Int);
            MPI_Session_create_errhandler / mpi_session_create_errhandler(session_errhandler_fn: Pointer, errhandler: Pointer) [anywhere];
            MPI_Session_get_errhandler / mpi_session_get_errhandler(session: Handle, errhandler: Pointer);
            MPI_Session_set_errhandler / mpi_session_set_errhandler(session: Handle, errhandler: Handle);
            MPI_Win_call_errhandler / mpi_win_call_errhandler(win: Win, errorcode: Int);
            MPI_Win_create_errhandler / mpi_win_create_errhandler(win_errhandler_fn: Pointer, errhandler: Pointer);
            MPI_Win_get_errhandler / mpi_win_get_errhandler(win: Win, errhandler: Pointer);
            MPI_Win_set_errhandler / mpi_win_set_errhandler(win: Win, errhandler: Handle);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::topologies::END; }

use super::number_rows;
