//! MPI 4.1, chapters 16 and 17: what is deprecated or was removed, but is still in libraries.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Address / mpi_address(location: Pointer, address: Pointer);
            MPI_Attr_delete / mpi_attr_delete(comm: Comm, keyval: Int);
            MPI_Attr_get / mpi_attr_get(comm: Comm, keyval: Int, attribute_val: Pointer, flag: Pointer);
            MPI_Attr_put / mpi_attr_put(comm: Comm, keyval: Int, attribute_val: Pointer);
            MPI_Errhandler_create / mpi_errhandler_create(comm_errhandler_fn: Pointer, errhandler: Pointer);
            MPI_Errhandler_get / mpi_errhandler_get(comm: Comm, errhandler: Pointer);
            MPI_Errhandler_set / mpi_errhandler_set(comm: Comm, errhandler: Handle);
            MPI_Get_elements_x / mpi_get_elements_x(status: Pointer, datatype: Datatype, count: Pointer);
            MPI_Info_get / mpi_info_get(info: Handle, key: Text, valuelen: Int, value: Text, flag: Pointer) [anywhere];
            MPI_Info_get_valuelen / mpi_info_get_valuelen(info: Handle, key: Text, valuelen: Pointer, flag: Pointer) [anywhere];
            MPI_Keyval_create / mpi_keyval_create(copy_fn: Pointer, delete_fn: Pointer, keyval: Pointer, extra_state: Pointer);
            MPI_Keyval_free / mpi_keyval_free(keyval: Pointer);
            MPI_Status_set_elements_x / mpi_status_set_elements_x(status: Pointer, datatype: Datatype, count: Count);
            MPI_Type_extent / mpi_type_extent(datatype: Datatype, extent: Pointer);
            MPI_Type_get_extent_x / mpi_type_get_extent_x(datatype: Datatype, lb: Pointer, extent: Pointer);
            MPI_Type_get_true_extent_x / mpi_type_get_true_extent_x(datatype: Datatype, true_lb: Pointer, true_extent: Pointer);
            MPI_Type_hindexed / mpi_type_hindexed(count: Int, array_of_blocklengths: Pointer, array_of_displacements: Pointer, oldtype: Datatype, newtype: Pointer);
            MPI_Type_hvector / mpi_type_hvector(count: Int, blocklength: Int, stride: Aint, oldtype: Datatype, newtype: Pointer);
            MPI_Type_lb / mpi_type_lb(datatype: Datatype, displacement: Pointer);
            MPI_Type_size_x / mpi_type_size_x(datatype: Datatype, size: Pointer);
            MPI_Type_struct / mpi_type_struct(count: Int, array_of_blocklengths: Pointer, array_of_displacements: Pointer, array_of_types: Pointer, newtype: Pointer);
            MPI_Type_ub / mpi_type_ub(datatype: Datatype, displacement: Pointer);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::io::END; }

use super::number_rows;
