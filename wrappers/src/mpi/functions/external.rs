//! MPI 4.1, chapter 13: generalised requests and statuses.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Grequest_complete / mpi_grequest_complete(request: Request);
            MPI_Grequest_start / mpi_grequest_start(query_fn: Pointer, free_fn: Pointer, cancel_fn: Pointer, extra_state: Pointer, request: Pointer);
            MPI_Status_set_cancelled / mpi_status_set_cancelled(status: Pointer, flag: Int);
            [MPI_Status_set_elements, MPI_Status_set_elements_c] / mpi_status_set_elements(status: Pointer, datatype: Datatype, count: Count);
            MPI_Status_set_error / mpi_status_set_error(status: Pointer, error: Int);
            MPI_Status_set_source / mpi_status_set_source(status: Pointer, source: Int);
            MPI_Status_set_tag / mpi_status_set_tag(status: Pointer, tag: Int);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::one_sided::END; }

use super::number_rows;
