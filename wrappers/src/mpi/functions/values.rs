//! MPI 4.1, sections 5.1.5, 9.6 and 15.2.4: the functions that return something other than an error code, or
//! take arguments that no row can describe. Their entry points are written by hand in `entry::values`.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Wtime / mpi_wtime();
            MPI_Wtick / mpi_wtick();
            MPI_Aint_add / mpi_aint_add(base: Aint, disp: Aint);
            MPI_Aint_diff / mpi_aint_diff(addr1: Aint, addr2: Aint);
            MPI_Pcontrol / mpi_pcontrol(level: Int);
        }
    };
}

rows! { number_rows super::deprecated::END; }

use super::number_rows;
