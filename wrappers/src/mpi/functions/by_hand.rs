//! MPI 4.1, sections 11.2 to 11.4: start and end, whose entry points are written by hand in
//! `lifecycle`.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Init(argc: Pointer, argv: Pointer);
            MPI_Init_thread(argc: Pointer, argv: Pointer, required: Int, provided: Pointer);
            MPI_Finalize();
            MPI_Session_init(info: Handle, errhandler: Handle, session: Pointer);
            MPI_Session_finalize(session: Pointer);
        }
    };
}

rows! { number_rows 0; }

use super::number_rows;
