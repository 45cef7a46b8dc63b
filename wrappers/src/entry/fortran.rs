//! The Fortran entry points of `mpif.h`, `use mpi` and `use mpi_f08`, in the spellings that
//! compilers make, and Open MPI's `ompi_*_f`, which its `mpi_f08` calls.
//!
//! Every argument is an address; `ierr` comes behind the others, and behind it the lengths of the
//! strings. One skeleton: forward the same addresses to the next Fortran definition, once, and count
//! the call as that of the C function. Where that definition calls another of these or the C
//! function in turn, that call is nested and not counted again. The routines of MPICH's `mpi_f08`
//! that take a choice buffer call the C functions, so they need no entry points of their own. Names
//! without an underscore behind them are left alone: other libraries have such names too.

use pastey::paste;

use super::call::{self, Effect, Entry};
use super::caller::noting_caller;
use crate::entry::bytes::{self, InFortran};
use crate::entry::effects;
#[allow(clippy::wildcard_imports)]
use crate::mpi::functions::*;
use crate::mpi::handles::Language;
use crate::sys::symbols::{Next, c_name};

macro_rules! entry_points {
    ($chapter:ident; $(
        $name:ident $(/ $($fortran:ident)+)? ( $($arg:ident : $type:ident),* ) $([$($known:tt)*])?
        $($effect:ident $what:ident ( $($on:ident),* ))? ;
    )*) => {
        $( routines! {
            $chapter $name ( $($($fortran)+)? ) [$($($known)*)?] ( $($arg $type)* ) ( $($effect $what ( $($on)* ))? )
        } )*
    };
}

macro_rules! routines {
    // Fortran has it inside mpi_f08 alone.
    ($chapter:ident $name:ident () $known:tt $arguments:tt $effect:tt) => {};
    ($chapter:ident $name:ident $fortran:tt $known:tt ( $($arg:ident $type:ident)* ) ( $($effect:tt)* )) => {
        #[allow(non_snake_case)]
        mod $name {
            #[allow(clippy::wildcard_imports)]
            use super::*;

            const EFFECT: Effect = effect! { ( $($arg $type)* ) $($effect)* };
            const ARGUMENTS: &[(&str, Kind)] = &[$((stringify!($arg), Kind::Same)),*];
            const SAMPLES: bool = samples! { $known };
            const RECEIVES: Option<Receives> = receives! { ( $($arg)* ) $known };

            spellings! { $chapter $name $fortran ( $($arg $type)* ) }
        }
    };
}

macro_rules! effect {
    ($arguments:tt) => {
        Effect::Nothing
    };
    (( $($arg:ident $type:ident)* ) moves $formula:ident ( $($on:ident)* )) => {
        Effect::Moves(|words| {
            let [$($arg),*] = *words else { return 0 };
            $(
                #[allow(unused_variables)]
                let $arg = InFortran::<$type>::new($arg);
            )*
            // SAFETY: the arguments of a call that succeeded, with the types of the row.
            unsafe { bytes::$formula($($on.value()),*) }
        })
    };
    ($arguments:tt completes $what:ident $on:tt) => {
        Effect::Completes(object_change! { $arguments completes $what $on })
    };
    ($arguments:tt $effect:ident $what:ident $on:tt) => {
        Effect::Changes(object_change! { $arguments $effect $what $on })
    };
}

macro_rules! object_change {
    (( $($arg:ident $type:ident)* ) $effect:ident $what:ident ( $($on:ident)* )) => {
        |scope, words| {
            #[allow(unused_variables)]
            let [$($arg),*] = *words else { return effects::Change::Nothing };
            effects::$effect::$what(scope, Language::Fortran, $($on),*)
        }
    };
}

macro_rules! spellings {
    ($chapter:ident $name:ident () $arguments:tt) => {};
    ($chapter:ident $name:ident ( $fortran:ident $($more:ident)* ) $arguments:tt) => {
        paste! {
            routine! { $chapter $name [<$fortran _>] $arguments [] $arguments }
            routine! { $chapter $name [<$fortran __>] $arguments [] $arguments }
            routine! { $chapter $name [<$fortran:upper>] $arguments [] $arguments }
            routine! { $chapter $name [<$fortran _f08_>] $arguments [] $arguments }
            routine! { $chapter $name [<o $fortran _f>] $arguments [] $arguments }
        }
        spellings! { $chapter $name ( $($more)* ) $arguments }
    };
}

/// Collects the lengths of strings, then makes the routine.
macro_rules! routine {
    ($chapter:ident $name:ident $spelling:ident $arguments:tt [ $($length:ident)* ] ( $arg:ident Text $($rest:tt)* )) => {
        paste! {
            routine! { $chapter $name $spelling $arguments [ $($length)* [<$arg _length>] ] ( $($rest)* ) }
        }
    };
    ($chapter:ident $name:ident $spelling:ident $arguments:tt $lengths:tt ( $arg:ident $type:ident $($rest:tt)* )) => {
        routine! { $chapter $name $spelling $arguments $lengths ( $($rest)* ) }
    };
    ($chapter:ident $name:ident $spelling:ident ( $($arg:ident $type:ident)* ) [ $($length:ident)* ] ()) => {
        const _: () = {
            noting_caller! {
                #[cfg_attr(not(test), unsafe(no_mangle))]
                fn $spelling($($arg: usize,)* ierr: usize $(, $length: usize)*),
                RECEIVES.is_some(), from_fortran, from_fortran
            }

            #[allow(clippy::too_many_arguments, clippy::similar_names)]
            extern "C-unwind" fn from_fortran($($arg: usize,)* ierr: usize $(, $length: usize)*) {
                static ENTRY: Entry = Entry {
                    next: Next::new(c_name(concat!(stringify!($spelling), "\0"))),
                    function: $chapter::$name,
                    arguments: ARGUMENTS,
                    effect: EFFECT,
                    samples: SAMPLES,
                    receives: RECEIVES,
                };
                call::from_fortran(&ENTRY, &mut [$($arg,)* ierr $(, $length)*]);
            }
        };
    };
}

every_row! { entry_points }

#[cfg(test)]
mod tests {
    use super::super::call::WORDS_AT_MOST;
    use super::*;

    #[test]
    fn no_row_has_more_words_than_a_call_can_pass() {
        macro_rules! widest {
            ($chapter:ident; $(
                $name:ident $(/ $($fortran:ident)+)? ( $($arg:ident : $type:ident),* ) $([$($known:tt)*])?
                $($effect:ident $what:ident ( $($on:ident),* ))? ;
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
}
