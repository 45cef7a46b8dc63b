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
        $name:ident $(/ $($fortran:ident)+)? ( $($arg:ident : $type:ident),* ) $([$($known:tt)*])?
        $($effect:ident $what:ident ( $($on:ident),* ))? ;
    )*) => {
        $(
            #[allow(clippy::too_many_arguments, clippy::similar_names)]
            const _: () = {
                skeleton! {
                    $chapter $name [$($($known)*)?] ( $($arg : $type),* )
                    $($effect $what ( $($on),* ))?
                }
                exported! { [$($($known)*)?] $name ( $($arg : $type),* ) }
            };
        )*
    };
}

macro_rules! skeleton {
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* )) => {
        fast! { ($chapter::$name) $name $known ( $($arg : $type),* ) || 0; Effect::Nothing }
    };
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* ) moves $formula:ident ( $($on:ident),* )) => {
        fast! {
            ($chapter::$name) $name $known ( $($arg : $type),* ) || bytes::$formula($($on.given()),*);
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
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* ) completes $what:ident ( $($on:ident),* )) => {
        fast! {
            ($chapter::$name) $name $known ( $($arg : $type),* ) || 0;
            Effect::Completes(object_change! { ( $($arg : $type),* ) completes $what ( $($on),* ) })
        }
    };
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* ) $effect:ident $what:ident ( $($on:ident),* )) => {
        entry! {
            ($chapter::$name) $name $known ( $($arg : $type),* )
            Effect::Changes(object_change! { ( $($arg : $type),* ) $effect $what ( $($on),* ) })
        }

        #[inline]
        fn called<const WATCHED: bool>($($arg: $type),*) -> Int {
            call::from_c(&ENTRY, &mut [$(Argument::word($arg)),*])
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

/// The function `called`, with a fast path, and what it needs.
macro_rules! fast {
    ($function:tt $name:ident $known:tt ( $($arg:ident : $type:ident),* ) $bytes:expr; $effect:expr) => {
        entry! { $function $name $known ( $($arg : $type),* ) $effect }

        type Function = extern "C-unwind" fn($($type),*) -> Int;

        /// `WATCHED`: receives are watched.
        #[inline]
        fn called<const WATCHED: bool>($($arg: $type),*) -> Int {
            match (next(), gate::fast($function)) {
                (Some(next), Fast::Alone) => {
                    let forward = || forward::<WATCHED>(next, true, $($arg),*);
                    gate::counted_alone($function, forward, $bytes)
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
                && let Some(inside) = gate::enter_thread($function)
            {
                let forward = || forward::<WATCHED>(next, false, $($arg),*);
                return gate::counted_in_thread(inside, $function, forward, $bytes);
            }
            slow($($arg),*)
        }

        #[inline]
        fn next() -> Option<Function> {
            let address = ENTRY.next.found()?;
            // SAFETY: the row has the prototype that the standard gives this function, with handles as
            // machine words, which are passed like them.
            Some(unsafe { mem::transmute::<Address, Function>(address) })
        }

        /// `alone`: no other thread calls MPI.
        #[inline]
        fn forward<const WATCHED: bool>(next: Function, alone: bool $(, $arg: $type)*) -> Int {
            if !WATCHED {
                return next($($arg),*);
            }
            let words = [$(Argument::word($arg)),*];
            let watched = ENTRY.receives.and_then(|receives| {
                receives::before(alone, $function, receives, Language::C, &words)
            });
            let result = next($($arg),*);
            receives::after(watched, Language::C, &words, result == 0);
            result
        }
    };
}
pub(super) use fast;

/// What is known of an entry point.
macro_rules! entry {
    ($function:tt $name:ident $known:tt ( $($arg:ident : $type:ident),* ) $effect:expr) => {
        static ENTRY: Entry = Entry {
            next: Next::new(c_name(concat!(stringify!($name), "\0"))),
            function: $function,
            arguments: &[$((stringify!($arg), <$type as Argument>::KIND)),*],
            effect: $effect,
            samples: samples! { $known },
            receives: receives! { ( $($arg)* ) $known },
        };
    };
}
pub(super) use entry;

/// The function that programs call. Those that have to do with receives note where they return to when
/// that is wanted.
macro_rules! exported {
    ([samples $($fact:tt)*] $($rest:tt)*) => {
        exported! { [$($fact)*] $($rest)* }
    };
    ([] $name:ident ( $($arg:ident : $type:ident),* )) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case)]
        extern "C-unwind" fn $name($($arg: $type),*) -> Int {
            called::<false>($($arg),*)
        }
    };
    ($known:tt $name:ident ( $($arg:ident : $type:ident),* )) => {
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
