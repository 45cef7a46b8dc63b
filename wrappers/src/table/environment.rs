//! MPI 4.1, chapter 11: start and end. Their entry points are written by hand in `lifecycle`.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $apply! { $($first)*
            /// 11.2.1
            MPI_Init(argc: Pointer, argv: Pointer);
            /// 11.2.1
            MPI_Init_thread(argc: Pointer, argv: Pointer, required: Int, provided: Pointer);
            /// 11.2.2
            MPI_Finalize();
        }
    };
}

rows! { number_rows 0; }

use super::number_rows;
