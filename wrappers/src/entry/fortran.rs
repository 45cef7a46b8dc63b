//! The Fortran entry points of `mpif.h`, `use mpi` and `use mpi_f08`, in the spellings that
//! compilers make, and Open MPI's `ompi_*_f`, which its `mpi_f08` calls.
//!
//! Every argument is an address; `ierr` comes after the others, followed by the lengths of the strings. A routine
//! forwards the same addresses to the next Fortran definition, once, and counts the call as one of the C function;
//! those that move nothing have the fast path of C. If that definition in turn calls another of these or the C function, that call is nested
//! and not counted again. The routines of MPICH's `mpi_f08` that take a choice buffer call the C functions, so
//! they need no entry points of their own. Names without a trailing underscore are left alone: other libraries
//! have such names too.

use pastey::paste;

use super::c;
use super::caller::noting_caller;
use super::entrance::{fortran_entrance, nested_entrance};
use super::words::as_words;
#[allow(clippy::wildcard_imports)]
use crate::mpi::functions::*;

macro_rules! entry_points {
    ($chapter:ident; $(
        $form:ident $name:ident [$($fortran:ident)*] {
            ( $($arg:ident : $type:ident),* ) $known:tt $($effect:ident $what:ident ( $($on:ident),* ))?
        }
    )*) => {
        // Functions without a name here exist in Fortran only inside mpi_f08.
        $(
            spellings! {
                routine 0, $name ( $($fortran)* ) { $known $($effect)? } ( $($arg $type)* )
            }
        )*
    };
}

/// `$apply` with each spelling of a function's names and its number ([`super::spelling`]).
macro_rules! spellings {
    ($apply:ident $first:expr, $name:ident () $known:tt $arguments:tt) => {};
    ($apply:ident $first:expr, $name:ident ( $fortran:ident $($more:ident)* ) $known:tt $arguments:tt) => {
        paste! {
            $apply! { $name [<$fortran _>] ($first) $known $arguments [] $arguments }
            $apply! { $name [<$fortran __>] ($first + 1) $known $arguments [] $arguments }
            $apply! { $name [<$fortran:upper>] ($first + 2) $known $arguments [] $arguments }
            $apply! { $name [<$fortran _f08_>] ($first + 3) $known $arguments [] $arguments }
            $apply! { $name [<o $fortran _f>] ($first + 4) $known $arguments [] $arguments }
        }
        spellings! { $apply $first + 5, $name ( $($more)* ) $known $arguments }
    };
}

/// Collects the lengths of strings, then defines the routine.
macro_rules! routine {
    ($name:ident $routine:ident $spelling:tt $known:tt $arguments:tt [ $($length:ident)* ] ( $arg:ident Text $($rest:tt)* )) => {
        paste! {
            routine! { $name $routine $spelling $known $arguments [ $($length)* [<$arg _length>] ] ( $($rest)* ) }
        }
    };
    ($name:ident $routine:ident $spelling:tt $known:tt $arguments:tt $lengths:tt ( $arg:ident $type:ident $($rest:tt)* )) => {
        routine! { $name $routine $spelling $known $arguments $lengths ( $($rest)* ) }
    };
    (
        $name:ident $routine:ident $spelling:tt { [samples $($known:tt)*] $($effect:ident)? }
        $arguments:tt $lengths:tt ()
    ) => {
        routine! { $name $routine $spelling { [$($known)*] $($effect)? } $arguments $lengths () }
    };
    ($name:ident $routine:ident $spelling:tt { [] $(completes)? } $arguments:tt $lengths:tt ()) => {
        routine! { $name $routine $spelling fast $arguments $lengths }
    };
    ($name:ident $routine:ident $spelling:tt { [$(anywhere)?] $($effect:ident)? } $arguments:tt $lengths:tt ()) => {
        routine! { $name $routine $spelling slow $arguments $lengths }
    };
    ($name:ident $routine:ident $spelling:tt fast ( $($arg:ident $type:ident)* ) [ $($length:ident)* ]) => {
        const _: () = {
            as_words! {
                fn other($($arg: usize,)* ierr: usize $(, $length: usize)*)
                => from_fortran(c::$name::ENTRY, $spelling)
            }

            fortran_entrance! {
                #[cfg_attr(not(test), unsafe(no_mangle))]
                fn $routine($($arg: usize,)* ierr: usize $(, $length: usize)*)
                of c::$name::FUNCTION, $spelling
            }
        };
    };
    ($name:ident $routine:ident $spelling:tt slow ( $($arg:ident $type:ident)* ) [ $($length:ident)* ]) => {
        const _: () = {
            as_words! {
                fn other($($arg: usize,)* ierr: usize $(, $length: usize)*)
                => from_fortran(c::$name::ENTRY, $spelling)
            }

            nested_entrance! {
                #[cfg_attr(not(test), unsafe(no_mangle))]
                fn $routine($($arg: usize,)* ierr: usize $(, $length: usize)*)
                of c::$name::FUNCTION, $spelling
            }
        };
    };
    ($name:ident $routine:ident $spelling:tt $known:tt ( $($arg:ident $type:ident)* ) [ $($length:ident)* ] ()) => {
        const _: () = {
            nested_entrance! {
                #[cfg_attr(not(test), unsafe(no_mangle))]
                fn $routine($($arg: usize,)* ierr: usize $(, $length: usize)*)
                of c::$name::FUNCTION, $spelling
            }

            noting_caller! {
                fn other($($arg: usize,)* ierr: usize $(, $length: usize)*), noted, noted
            }

            as_words! {
                fn noted($($arg: usize,)* ierr: usize $(, $length: usize)*)
                => from_fortran(c::$name::ENTRY, $spelling)
            }
        };
    };
}

every_row! { entry_points }

#[cfg(test)]
mod tests {
    use super::super::call::WORDS_AT_MOST;
    use super::super::spelling;
    use super::*;

    #[test]
    fn no_row_has_more_words_than_a_call_can_pass() {
        macro_rules! widest {
            ($chapter:ident; $(
                $form:ident $name:ident [$($fortran:ident)*] {
                    ( $($arg:ident : $type:ident),* ) $known:tt $($effect:ident $what:ident ( $($on:ident),* ))?
                }
            )*) => {
                $({
                    let types: &[&str] = &[$(stringify!($type)),*];
                    let texts = types.iter().filter(|name| **name == "Text").count();
                    assert!(types.len() + 1 + texts <= WORDS_AT_MOST, stringify!($name));
                })*
            };
        }
        every_row! { widest }
    }

    #[test]
    fn the_next_routine_is_looked_up_by_the_name_of_this_one() {
        let mut routines = 0;
        macro_rules! named {
            ($name:ident $routine:ident ($spelling:expr) $known:tt $arguments:tt [] $again:tt) => {
                let name = spelling::name(&c::$name::ENTRY, $spelling);
                assert_eq!(name.to_str(), Ok(stringify!($routine)));
                routines += 1;
            };
        }
        macro_rules! rows {
            ($chapter:ident; $(
                $form:ident $name:ident [$($fortran:ident)*] {
                    ( $($arg:ident : $type:ident),* ) $known:tt $($effect:ident $what:ident ( $($on:ident),* ))?
                }
            )*) => {
                $( spellings! { named 0, $name ( $($fortran)* ) [] () } )*
            };
        }
        every_row! { rows }
        assert!(routines > 2000, "{routines}");
    }
}
