//! MPI 4.1, sections 7.7 and 7.8: attributes and names of communicators, datatypes and windows.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Comm_create_keyval / mpi_comm_create_keyval(comm_copy_attr_fn: Pointer, comm_delete_attr_fn: Pointer, comm_keyval: Pointer, extra_state: Pointer);
            MPI_Comm_delete_attr / mpi_comm_delete_attr(comm: Comm, comm_keyval: Int);
            MPI_Comm_free_keyval / mpi_comm_free_keyval(comm_keyval: Pointer);
            MPI_Comm_get_attr / mpi_comm_get_attr(comm: Comm, comm_keyval: Int, attribute_val: Pointer, flag: Pointer);
            MPI_Comm_get_name / mpi_comm_get_name(comm: Comm, comm_name: Text, resultlen: Pointer);
            MPI_Comm_set_attr / mpi_comm_set_attr(comm: Comm, comm_keyval: Int, attribute_val: Pointer);
            MPI_Comm_set_name / mpi_comm_set_name(comm: Comm, comm_name: Text);
            MPI_Type_create_keyval / mpi_type_create_keyval(type_copy_attr_fn: Pointer, type_delete_attr_fn: Pointer, type_keyval: Pointer, extra_state: Pointer);
            MPI_Type_delete_attr / mpi_type_delete_attr(datatype: Datatype, type_keyval: Int);
            MPI_Type_free_keyval / mpi_type_free_keyval(type_keyval: Pointer);
            MPI_Type_get_attr / mpi_type_get_attr(datatype: Datatype, type_keyval: Int, attribute_val: Pointer, flag: Pointer);
            MPI_Type_get_name / mpi_type_get_name(datatype: Datatype, type_name: Text, resultlen: Pointer);
            MPI_Type_set_attr / mpi_type_set_attr(datatype: Datatype, type_keyval: Int, attribute_val: Pointer);
            MPI_Type_set_name / mpi_type_set_name(datatype: Datatype, type_name: Text);
            MPI_Win_create_keyval / mpi_win_create_keyval(win_copy_attr_fn: Pointer, win_delete_attr_fn: Pointer, win_keyval: Pointer, extra_state: Pointer);
            MPI_Win_delete_attr / mpi_win_delete_attr(win: Win, win_keyval: Int);
            MPI_Win_free_keyval / mpi_win_free_keyval(win_keyval: Pointer);
            MPI_Win_get_attr / mpi_win_get_attr(win: Win, win_keyval: Int, attribute_val: Pointer, flag: Pointer);
            MPI_Win_get_name / mpi_win_get_name(win: Win, win_name: Text, resultlen: Pointer);
            MPI_Win_set_attr / mpi_win_set_attr(win: Win, win_keyval: Int, attribute_val: Pointer);
            MPI_Win_set_name / mpi_win_set_name(win: Win, win_name: Text);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::communicators::END; }

use super::number_rows;
