//! The entry points of the functions that return something other than an error code, or take arguments that no
//! row can describe (MPI 4.1, 5.1.5, 9.6 and 15.2.4).

use std::ffi::c_int;
use std::mem;

use super::next_or_end;
use crate::calls::containment::contain;
use crate::calls::gate::{self, Fast, InFortran};
use crate::entry::lifecycle::start_late;
#[cfg(not(feature = "static"))]
use crate::mpi::functions::Pointer;
use crate::mpi::functions::{Aint, Function, values};
use crate::observe::phases::PhaseChange;
use crate::run;
#[cfg(not(feature = "static"))]
use crate::sys::peek::element;
use crate::sys::symbols::{Address, Next};

fn pcontrol(level: c_int) {
    contain("changing the phase", || run::change_phase(PhaseChange::Level(level)));
}

fn pcontrol_of_c(level: c_int, _: usize, _: usize, _: usize, _: usize, _: usize) {
    pcontrol(level);
}

#[cfg(not(feature = "static"))]
fn pcontrol_of_fortran(level: Pointer, _: Pointer) {
    // SAFETY: Fortran passed the address of an INTEGER.
    pcontrol(unsafe { element::<c_int>(level as usize, 0) });
}

macro_rules! after {
    ([] $($arg:ident),*) => {};
    ([$then:ident] $($arg:ident),*) => {
        $then($($arg),*)
    };
}

macro_rules! prototype {
    ([] $own:ty) => {
        $own
    };
    ([$called:ty] $own:ty) => {
        $called
    };
}

/// `MPI_Pcontrol`, whose caller says in a dedicated register how many of the arguments are in floating-point
/// registers (System V ABI for x86-64, 3.5.7).
type Variadic = extern "C-unwind" fn(c_int, ...) -> c_int;

/// Forwards a call of a function that any thread may call at any time, and that is never timed, in the shortest way;
/// none for any other call. `inside` and `aside`: enter a call from Fortran.
#[inline]
pub(super) fn counted<I, T>(
    function: Function,
    inside: fn() -> I,
    aside: fn() -> I,
    next: impl FnOnce() -> T,
) -> Option<T> {
    if gate::is_in_fortran() {
        return Some(next());
    }
    if gate::is_aside(function) {
        let _aside = aside();
        return Some(next());
    }
    // None of these functions is in a timeline.
    let Fast::Alone(_counted) = gate::fast(function, true) else { return None };
    let _inside = inside();
    Some(next())
}

/// The same for a function that does nothing after the call.
macro_rules! counted {
    ([$then:ident] $($rest:tt)*) => {};
    ([] $inside:expr, $aside:expr, $function:ident, $next:ident ( $($arg:ident),* )) => {
        let next = || $next($($arg),*);
        if let Some(result) = counted(values::$function, || $inside, || $aside, next) {
            return result;
        }
    };
}

macro_rules! entry_points {
    ($inside:expr, $aside:expr; $($symbol:ident $name:literal as $function:ident ( $($arg:ident : $type:ty),* ) $(-> $result:ty)? $(, called as $called:ty)? $(, then $then:ident)?;)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[allow(non_snake_case)]
            extern "C-unwind" fn $symbol($($arg: $type),*) $(-> $result)? {
                static NEXT: Next = Next::new();
                type Function = prototype!([$($called)?] extern "C-unwind" fn($($type),*) $(-> $result)?);
                // SAFETY: the prototype that the standard gives this function.
                let next = unsafe { mem::transmute::<Address, Function>(next_or_end(&NEXT, $name)) };
                counted! { [$($then)?] $inside, $aside, $function, next ( $($arg),* ) }
                let scope = gate::enter(values::$function, start_late);
                let inside = $inside;
                #[allow(clippy::let_unit_value)]
                let result = next($($arg),*);
                drop(inside);
                // None of them is ever timed.
                scope.put_off();
                let is_of_program = scope.is_of_program();
                drop(scope);
                if is_of_program {
                    after!([$($then)?] $($arg),*);
                }
                result
            }
        )*
    };
}

entry_points! {
    None::<InFortran>, None::<InFortran>;
    MPI_Wtime c"MPI_Wtime" as MPI_Wtime() -> f64;
    MPI_Wtick c"MPI_Wtick" as MPI_Wtick() -> f64;
    MPI_Aint_add c"MPI_Aint_add" as MPI_Aint_add(base: Aint, disp: Aint) -> Aint;
    MPI_Aint_diff c"MPI_Aint_diff" as MPI_Aint_diff(addr1: Aint, addr2: Aint) -> Aint;
    // Further arguments are defined by tools (15.2.4); integers and pointers in registers are passed on.
    MPI_Pcontrol c"MPI_Pcontrol" as MPI_Pcontrol(level: c_int, a: usize, b: usize, c: usize, d: usize, e: usize) -> c_int, called as Variadic, then pcontrol_of_c;
}

// As in `fortran`.
#[cfg(not(feature = "static"))]
entry_points! {
    InFortran::enter(), InFortran::aside();
    mpi_wtime_ c"mpi_wtime_" as MPI_Wtime() -> f64;
    mpi_wtime__ c"mpi_wtime__" as MPI_Wtime() -> f64;
    MPI_WTIME c"MPI_WTIME" as MPI_Wtime() -> f64;
    mpi_wtime_f08_ c"mpi_wtime_f08_" as MPI_Wtime() -> f64;
    mpi_wtick_ c"mpi_wtick_" as MPI_Wtick() -> f64;
    mpi_wtick__ c"mpi_wtick__" as MPI_Wtick() -> f64;
    MPI_WTICK c"MPI_WTICK" as MPI_Wtick() -> f64;
    mpi_wtick_f08_ c"mpi_wtick_f08_" as MPI_Wtick() -> f64;
    mpi_aint_add_ c"mpi_aint_add_" as MPI_Aint_add(base: Pointer, disp: Pointer) -> Aint;
    mpi_aint_add__ c"mpi_aint_add__" as MPI_Aint_add(base: Pointer, disp: Pointer) -> Aint;
    MPI_AINT_ADD c"MPI_AINT_ADD" as MPI_Aint_add(base: Pointer, disp: Pointer) -> Aint;
    mpi_aint_add_f08_ c"mpi_aint_add_f08_" as MPI_Aint_add(base: Pointer, disp: Pointer) -> Aint;
    mpi_aint_diff_ c"mpi_aint_diff_" as MPI_Aint_diff(addr1: Pointer, addr2: Pointer) -> Aint;
    mpi_aint_diff__ c"mpi_aint_diff__" as MPI_Aint_diff(addr1: Pointer, addr2: Pointer) -> Aint;
    MPI_AINT_DIFF c"MPI_AINT_DIFF" as MPI_Aint_diff(addr1: Pointer, addr2: Pointer) -> Aint;
    mpi_aint_diff_f08_ c"mpi_aint_diff_f08_" as MPI_Aint_diff(addr1: Pointer, addr2: Pointer) -> Aint;
    mpi_pcontrol_ c"mpi_pcontrol_" as MPI_Pcontrol(level: Pointer, ierr: Pointer), then pcontrol_of_fortran;
    mpi_pcontrol__ c"mpi_pcontrol__" as MPI_Pcontrol(level: Pointer, ierr: Pointer), then pcontrol_of_fortran;
    MPI_PCONTROL c"MPI_PCONTROL" as MPI_Pcontrol(level: Pointer, ierr: Pointer), then pcontrol_of_fortran;
    mpi_pcontrol_f08_ c"mpi_pcontrol_f08_" as MPI_Pcontrol(level: Pointer, ierr: Pointer), then pcontrol_of_fortran;
}

#[cfg(all(test, target_arch = "x86_64", not(feature = "static")))]
mod tests {
    use super::*;

    // What a variadic function finds in AL: how many of its arguments are floating-point numbers.
    std::arch::global_asm!(
        ".globl gyan_floating_arguments",
        "gyan_floating_arguments:",
        "movzx eax, al",
        "ret",
    );

    unsafe extern "C" {
        fn gyan_floating_arguments();
    }

    #[test]
    fn the_next_pcontrol_is_told_how_many_arguments_are_floating_point_numbers() {
        let next = Address::new(gyan_floating_arguments as *mut _).unwrap();
        // SAFETY: it takes anything, and only reads AL.
        let next = unsafe { mem::transmute::<Address, Variadic>(next) };
        for level in [0, 1, 2, 255] {
            assert_eq!(next(std::hint::black_box(level), 1_usize, 2_usize, 3_usize), 0);
        }
    }
}
