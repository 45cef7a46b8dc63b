//! MPI 4.1, chapter 4: partitioned communication.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Parrived / mpi_parrived(request: Request, partition: Int, flag: Pointer);
            MPI_Pready / mpi_pready(partition: Int, request: Request) moves ready(request);
            MPI_Pready_list / mpi_pready_list(length: Int, array_of_partitions: Pointer, request: Request) moves ready_list(length, request);
            MPI_Pready_range / mpi_pready_range(partition_low: Int, partition_high: Int, request: Request) moves ready_range(partition_low, partition_high, request);
            MPI_Precv_init / mpi_precv_init(buf: Pointer, partitions: Int, count: Count, datatype: Datatype, source: Int, tag: Int, comm: Comm, info: Handle, request: Pointer) [prepares(source, tag, comm, request)];
            MPI_Psend_init / mpi_psend_init(buf: Pointer, partitions: Int, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm, info: Handle, request: Pointer) prepares partitioned(count, datatype, dest, comm);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::point_to_point::END; }

use super::number_rows;
