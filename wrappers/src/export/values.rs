//! The entry points of the functions that return something else than an error code, or take
//! arguments that no row can tell (MPI 4.1, 5.1.5, 9.6 and 15.2.4).

use std::ffi::c_int;
use std::mem;

use super::next_or_end;
use crate::boundary;
use crate::next::{Address, Next};
use crate::table::{Aint, Pointer, values};

macro_rules! entry_points {
    ($($symbol:ident $name:literal as $function:ident ( $($arg:ident : $type:ty),* ) $(-> $result:ty)?;)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[allow(non_snake_case)]
            extern "C-unwind" fn $symbol($($arg: $type),*) $(-> $result)? {
                static NEXT: Next = Next::new($name);
                type Function = extern "C-unwind" fn($($type),*) $(-> $result)?;
                // SAFETY: the prototype that the standard gives this function.
                let next = unsafe { mem::transmute::<Address, Function>(next_or_end(&NEXT)) };
                let _scope = boundary::enter(values::$function);
                next($($arg),*)
            }
        )*
    };
}

entry_points! {
    MPI_Wtime c"MPI_Wtime" as MPI_Wtime() -> f64;
    mpi_wtime_ c"mpi_wtime_" as MPI_Wtime() -> f64;
    mpi_wtime__ c"mpi_wtime__" as MPI_Wtime() -> f64;
    MPI_WTIME c"MPI_WTIME" as MPI_Wtime() -> f64;
    mpi_wtime_f08_ c"mpi_wtime_f08_" as MPI_Wtime() -> f64;
    MPI_Wtick c"MPI_Wtick" as MPI_Wtick() -> f64;
    mpi_wtick_ c"mpi_wtick_" as MPI_Wtick() -> f64;
    mpi_wtick__ c"mpi_wtick__" as MPI_Wtick() -> f64;
    MPI_WTICK c"MPI_WTICK" as MPI_Wtick() -> f64;
    mpi_wtick_f08_ c"mpi_wtick_f08_" as MPI_Wtick() -> f64;
    MPI_Aint_add c"MPI_Aint_add" as MPI_Aint_add(base: Aint, disp: Aint) -> Aint;
    mpi_aint_add_ c"mpi_aint_add_" as MPI_Aint_add(base: Pointer, disp: Pointer) -> Aint;
    mpi_aint_add__ c"mpi_aint_add__" as MPI_Aint_add(base: Pointer, disp: Pointer) -> Aint;
    MPI_AINT_ADD c"MPI_AINT_ADD" as MPI_Aint_add(base: Pointer, disp: Pointer) -> Aint;
    mpi_aint_add_f08_ c"mpi_aint_add_f08_" as MPI_Aint_add(base: Pointer, disp: Pointer) -> Aint;
    MPI_Aint_diff c"MPI_Aint_diff" as MPI_Aint_diff(addr1: Aint, addr2: Aint) -> Aint;
    mpi_aint_diff_ c"mpi_aint_diff_" as MPI_Aint_diff(addr1: Pointer, addr2: Pointer) -> Aint;
    mpi_aint_diff__ c"mpi_aint_diff__" as MPI_Aint_diff(addr1: Pointer, addr2: Pointer) -> Aint;
    MPI_AINT_DIFF c"MPI_AINT_DIFF" as MPI_Aint_diff(addr1: Pointer, addr2: Pointer) -> Aint;
    mpi_aint_diff_f08_ c"mpi_aint_diff_f08_" as MPI_Aint_diff(addr1: Pointer, addr2: Pointer) -> Aint;
    mpi_pcontrol_ c"mpi_pcontrol_" as MPI_Pcontrol(level: Pointer, ierr: Pointer);
    mpi_pcontrol__ c"mpi_pcontrol__" as MPI_Pcontrol(level: Pointer, ierr: Pointer);
    MPI_PCONTROL c"MPI_PCONTROL" as MPI_Pcontrol(level: Pointer, ierr: Pointer);
    mpi_pcontrol_f08_ c"mpi_pcontrol_f08_" as MPI_Pcontrol(level: Pointer, ierr: Pointer);
    // More arguments are the tools' own (15.2.4); those in registers are passed on.
    MPI_Pcontrol c"MPI_Pcontrol" as MPI_Pcontrol(level: c_int, a: usize, b: usize, c: usize, d: usize, e: usize) -> c_int;
}
