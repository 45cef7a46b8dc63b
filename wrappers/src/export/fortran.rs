//! The Fortran entry points of `mpif.h` and `use mpi`, in the spellings that compilers make, and
//! Open MPI's `ompi_*_f`, which its `mpi_f08` calls.
//!
//! Every argument is an address, and `ierr` comes behind the others. One skeleton: forward the same
//! addresses to the next Fortran definition, once, and count the call as that of the C function.
//! Where that definition calls the C function in turn (MPICH), the call is nested and not counted
//! again. MPICH's `mpi_f08` calls the C functions, so it needs no entry points of its own. Names
//! without an underscore behind them are left alone: other libraries have such names too.

use std::mem;

use pastey::paste;

use super::next_or_end;
use crate::boundary;
use crate::next::{Address, Next, c_name};
use crate::table::{Pointer, point_to_point};

macro_rules! entry_point {
    ($chapter:ident $name:ident $spelling:ident $($arg:ident)*) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        extern "C-unwind" fn $spelling($($arg: Pointer,)* ierr: Pointer) {
            static NEXT: Next = Next::new(c_name(concat!(stringify!($spelling), "\0")));
            type Routine = extern "C-unwind" fn($($crate::export::fortran::always!($arg),)* Pointer);
            // SAFETY: a Fortran routine with as many arguments as the row has, and ierr; each is
            // an address, whatever its type.
            let next = unsafe { mem::transmute::<Address, Routine>(next_or_end(&NEXT)) };
            boundary::counted($chapter::$name, || {
                next($($arg,)* ierr);
                0
            });
        }
    };
}

/// The type of every argument.
macro_rules! always {
    ($arg:ident) => {
        Pointer
    };
}
use always;

macro_rules! spellings {
    // A function without a Fortran name of this kind.
    ($chapter:ident $name:ident ( $($arg:ident)* )) => {};
    ($chapter:ident $name:ident / $fortran:ident ( $($arg:ident)* )) => {
        paste! {
            entry_point! { $chapter $name [<$fortran _>] $($arg)* }
            entry_point! { $chapter $name [<$fortran __>] $($arg)* }
            entry_point! { $chapter $name [<$fortran:upper>] $($arg)* }
            entry_point! { $chapter $name [<o $fortran _f>] $($arg)* }
        }
    };
}

macro_rules! entry_points {
    ($chapter:ident;
     $($(#[$doc:meta])*
       $name:ident $(/ $fortran:ident)? ( $($arg:ident : $type:ident),* );)*) => {
        $( spellings! { $chapter $name $(/ $fortran)? ( $($arg)* ) } )*
    };
}

point_to_point::rows! { entry_points point_to_point; }
