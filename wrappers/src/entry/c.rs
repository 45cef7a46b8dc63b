//! The C entry points.
//!
//! Two skeletons. Most functions: find the next definition, forward the caller's arguments to it
//! once, count the call and its bytes, return its result; with a fast path for the program's calls.
//! Functions by which objects come and go have none. `C-unwind`, because a C++ error handler may
//! throw through it.

use std::mem;

use super::call::{self, Effect, Entry};
use super::caller::noting_caller;
use crate::calls::gate::{self, Fast};
use crate::entry::bytes::{self, Given, InC};
use crate::entry::effects;
#[allow(clippy::wildcard_imports)]
use crate::mpi::functions::*;
use crate::mpi::handles::Language;
use crate::observe::receives;
use crate::sys::symbols::{Address, Next, c_name};

macro_rules! entry_points {
    ($chapter:ident; $(
        $name:ident $(/ $($fortran:ident)+)? ( $($arg:ident : $type:ident),* )
        $($effect:ident $what:ident ( $($on:ident),* ))? ;
    )*) => {
        $( skeleton! { $chapter $name ( $($arg : $type),* ) $($effect $what ( $($on),* ))? } )*
    };
}

macro_rules! skeleton {
    ($chapter:ident $name:ident ( $($arg:ident : $type:ident),* )) => {
        fast! { $chapter $name ( $($arg : $type),* ) || 0; Effect::Nothing }
    };
    ($chapter:ident $name:ident ( $($arg:ident : $type:ident),* ) moves $formula:ident ( $($on:ident),* )) => {
        fast! {
            $chapter $name ( $($arg : $type),* ) || bytes::$formula($($on.given()),*);
            Effect::Moves(|words| {
                let [$($arg),*] = *words else { return 0 };
                $(
                    #[allow(unused_variables)]
                    let $arg = InC::<$type>::new($arg);
                )*
                bytes::$formula($($on.value()),*)
            })
        }
    };
    ($chapter:ident $name:ident ( $($arg:ident : $type:ident),* ) completes $what:ident ( $($on:ident),* )) => {
        fast! {
            $chapter $name ( $($arg : $type),* ) || 0;
            Effect::Completes(object_change! { ( $($arg : $type),* ) completes $what ( $($on),* ) })
        }
    };
    ($chapter:ident $name:ident ( $($arg:ident : $type:ident),* ) $effect:ident $what:ident ( $($on:ident),* )) => {
        entry_point! {
            $chapter $name ( $($arg : $type),* )
            Effect::Changes(object_change! { ( $($arg : $type),* ) $effect $what ( $($on),* ) });
            #[inline]
            fn called<const WATCHED: bool>($($arg: $type),*) -> Int {
                call::from_c(&ENTRY, &mut [$(Argument::word($arg)),*])
            }
        }
    };
}

macro_rules! object_change {
    (( $($arg:ident : $type:ident),* ) $effect:ident $what:ident ( $($on:ident),* )) => {
        |scope, words| {
            let [$($arg),*] = *words else { return effects::Change::Nothing };
            $(
                #[allow(unused_variables)]
                let $arg = InC::<$type>::new($arg);
            )*
            effects::$effect::$what(scope, Language::C, $($on.word()),*)
        }
    };
}

/// An entry point with a fast path.
macro_rules! fast {
    ($chapter:ident $name:ident ( $($arg:ident : $type:ident),* ) $bytes:expr; $effect:expr) => {
        entry_point! {
            $chapter $name ( $($arg : $type),* )
            $effect;

            type Function = extern "C-unwind" fn($($type),*) -> Int;

            /// `WATCHED`: receives are watched.
            #[inline]
            fn called<const WATCHED: bool>($($arg: $type),*) -> Int {
                match (next(), gate::fast($chapter::$name)) {
                    (Some(next), Fast::Alone) => {
                        let forward = || forward::<WATCHED>(next, true, $($arg),*);
                        gate::counted_alone($chapter::$name, forward, $bytes)
                    }
                    (_, Fast::Thread) => threaded::<WATCHED>($($arg),*),
                    _ => slow($($arg),*),
                }
            }

            // With the same arguments in the same registers, so that the fast path saves none.
            #[cold]
            #[inline(never)]
            extern "C-unwind" fn slow($($arg: $type),*) -> Int {
                call::from_c(&ENTRY, &mut [$(Argument::word($arg)),*])
            }

            #[inline(never)]
            extern "C-unwind" fn threaded<const WATCHED: bool>($($arg: $type),*) -> Int {
                if let Some(next) = next()
                    && let Some(inside) = gate::enter_thread($chapter::$name)
                {
                    let forward = || forward::<WATCHED>(next, false, $($arg),*);
                    return gate::counted_in_thread(inside, $chapter::$name, forward, $bytes);
                }
                slow($($arg),*)
            }

            #[inline]
            fn next() -> Option<Function> {
                let address = ENTRY.next.found()?;
                // SAFETY: the row has the prototype that the standard gives this function, with
                // handles as machine words, which are passed like them.
                Some(unsafe { mem::transmute::<Address, Function>(address) })
            }

            /// `alone`: no other thread calls MPI.
            #[inline]
            fn forward<const WATCHED: bool>(next: Function, alone: bool $(, $arg: $type)*) -> Int {
                if !WATCHED {
                    return next($($arg),*);
                }
                let words = [$(Argument::word($arg)),*];
                let watched = RECEIVES.and_then(|receives| {
                    receives::before(alone, $chapter::$name, receives, Language::C, &words)
                });
                let result = next($($arg),*);
                receives::after(watched, Language::C, &words, result == 0);
                result
            }
        }
    };
}

/// An entry point, with the function `called` and what that needs.
macro_rules! entry_point {
    ($chapter:ident $name:ident ( $($arg:ident : $type:ident),* ) $effect:expr; $($items:item)*) => {
        #[allow(clippy::too_many_arguments, clippy::similar_names)]
        const _: () = {
            const ARGUMENTS: &[(&str, Kind)] =
                &[$((stringify!($arg), <$type as Argument>::KIND)),*];
            const RECEIVES: Option<Receives> = receives(stringify!($name), ARGUMENTS);
            static ENTRY: Entry = Entry {
                next: Next::new(c_name(concat!(stringify!($name), "\0"))),
                function: $chapter::$name,
                arguments: ARGUMENTS,
                effect: $effect,
                samples: is_sampling_point(stringify!($name)),
                receives: RECEIVES,
            };

            $($items)*

            exported! { $name ( $($arg : $type),* ) }
        };
    };
}

/// The function that programs call. Those that receive note where they return to when that is wanted; a
/// name that is missing here does not compile.
macro_rules! exported {
    (MPI_Irecv $($rest:tt)*) => { noting! { MPI_Irecv $($rest)* } };
    (MPI_Irecv_c $($rest:tt)*) => { noting! { MPI_Irecv_c $($rest)* } };
    (MPI_Imrecv $($rest:tt)*) => { noting! { MPI_Imrecv $($rest)* } };
    (MPI_Imrecv_c $($rest:tt)*) => { noting! { MPI_Imrecv_c $($rest)* } };
    (MPI_Isendrecv $($rest:tt)*) => { noting! { MPI_Isendrecv $($rest)* } };
    (MPI_Isendrecv_c $($rest:tt)*) => { noting! { MPI_Isendrecv_c $($rest)* } };
    (MPI_Isendrecv_replace $($rest:tt)*) => { noting! { MPI_Isendrecv_replace $($rest)* } };
    (MPI_Isendrecv_replace_c $($rest:tt)*) => { noting! { MPI_Isendrecv_replace_c $($rest)* } };
    (MPI_Mrecv $($rest:tt)*) => { noting! { MPI_Mrecv $($rest)* } };
    (MPI_Mrecv_c $($rest:tt)*) => { noting! { MPI_Mrecv_c $($rest)* } };
    (MPI_Recv $($rest:tt)*) => { noting! { MPI_Recv $($rest)* } };
    (MPI_Recv_c $($rest:tt)*) => { noting! { MPI_Recv_c $($rest)* } };
    (MPI_Sendrecv $($rest:tt)*) => { noting! { MPI_Sendrecv $($rest)* } };
    (MPI_Sendrecv_c $($rest:tt)*) => { noting! { MPI_Sendrecv_c $($rest)* } };
    (MPI_Sendrecv_replace $($rest:tt)*) => { noting! { MPI_Sendrecv_replace $($rest)* } };
    (MPI_Sendrecv_replace_c $($rest:tt)*) => { noting! { MPI_Sendrecv_replace_c $($rest)* } };
    (MPI_Start $($rest:tt)*) => { noting! { MPI_Start $($rest)* } };
    (MPI_Startall $($rest:tt)*) => { noting! { MPI_Startall $($rest)* } };
    (MPI_Precv_init $($rest:tt)*) => { noting! { MPI_Precv_init $($rest)* } };
    (MPI_Recv_init $($rest:tt)*) => { noting! { MPI_Recv_init $($rest)* } };
    (MPI_Recv_init_c $($rest:tt)*) => { noting! { MPI_Recv_init_c $($rest)* } };
    (MPI_Request_free $($rest:tt)*) => { noting! { MPI_Request_free $($rest)* } };
    ($name:ident ( $($arg:ident : $type:ident),* )) => {
        const _: () = assert!(RECEIVES.is_none(), stringify!($name));

        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case)]
        extern "C-unwind" fn $name($($arg: $type),*) -> Int {
            called::<false>($($arg),*)
        }
    };
}

macro_rules! noting {
    ($name:ident ( $($arg:ident : $type:ident),* )) => {
        const _: () = assert!(RECEIVES.is_some(), stringify!($name));

        noting_caller! {
            #[cfg_attr(not(test), unsafe(no_mangle))]
            fn $name($($arg: $type),*) -> Int, true, plain, watched
        }

        extern "C-unwind" fn plain($($arg: $type),*) -> Int {
            called::<false>($($arg),*)
        }

        extern "C-unwind" fn watched($($arg: $type),*) -> Int {
            called::<true>($($arg),*)
        }
    };
}

every_row! { entry_points }
