//! The C entry points.
//!
//! One skeleton: find the next definition, forward the caller's arguments to it once, count the
//! call, return its result. `C-unwind`, because a C++ error handler may throw through it.

use std::mem;

use super::{FitsInt, next_or_twin};
use crate::boundary;
use crate::next::{Address, Next, c_name};
#[allow(clippy::wildcard_imports)]
use crate::table::{Count, Handle, Int, Pointer, point_to_point};

macro_rules! entry_points {
    ($chapter:ident; $($(#[$doc:meta])* $name:ident $(/ $fortran:ident)? ( $($arg:ident : $type:ident),* );)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
            extern "C-unwind" fn $name($($arg: $type),*) -> Int {
                static NEXT: Next = Next::new(c_name(concat!(stringify!($name), "\0")));
                type Function = extern "C-unwind" fn($($type),*) -> Int;

                // With the same arguments in the same registers, so that the fast path saves none.
                #[cold]
                #[inline(never)]
                extern "C-unwind" fn slow($($arg: $type),*) -> Int {
                    let counts_fit = true $(&& $arg.fits_int())*;
                    let next = next_or_twin(&NEXT, counts_fit);
                    // SAFETY: as in the fast path; a twin takes an int in the place of a count
                    // that is one.
                    let next = unsafe { mem::transmute::<Address, Function>(next) };
                    boundary::counted($chapter::$name, || next($($arg),*))
                }

                match NEXT.found() {
                    Some(address) if boundary::is_open() => {
                        // SAFETY: the row has the prototype that the standard gives this
                        // function, with handles as machine words, which are passed like them.
                        let next = unsafe { mem::transmute::<Address, Function>(address) };
                        boundary::counted_alone($chapter::$name, || next($($arg),*))
                    }
                    _ => slow($($arg),*),
                }
            }
        )*
    };
}

point_to_point::rows! { entry_points point_to_point; }
