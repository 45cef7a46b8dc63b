//! What does it cost to count a call, and to time one? Measured at the start, on a function that does
//! nothing, with the skeleton of every other entry point.

// As many arguments as `MPI_Recv` has; they need no names.
#![allow(clippy::many_single_char_names, clippy::too_many_arguments)]

use std::ffi::c_void;
use std::hint::black_box;
use std::mem;

use super::c::{entry, fast, waits_in};
use super::call::{self, Effect, Entry, words_from_fortran};
use super::entrance::entrance;
use super::words::as_words;
use crate::calls::budget::Costs;
use crate::calls::gate::{self, Fast};
use crate::calls::ledger::{self, NO_FUNCTION};
use crate::mpi::functions::{Argument, Handle, Int, Name, receives, samples, waits};
use crate::mpi::handles::{Arguments, Language};
use crate::observe::receives;
use crate::sys::clock;
use crate::sys::symbols::{Address, Next, c_name};

fast! {
    NO_FUNCTION nothing [] (a: Handle, b: Handle, c: Handle, d: Handle, e: Handle, f: Handle, g: Handle)
    |_| {}; Effect::Nothing
}

const BATCHES: usize = 6;
const COUNTED: u32 = 256;
const TIMED: u32 = 24;

#[inline(never)]
extern "C-unwind" fn nothing(
    a: Handle,
    _: Handle,
    _: Handle,
    _: Handle,
    _: Handle,
    _: Handle,
    _: Handle,
) -> Int {
    black_box(a);
    0
}

#[cfg(target_arch = "x86_64")]
use slow as other;

#[cfg(not(target_arch = "x86_64"))]
extern "C-unwind" fn other(
    a: Handle,
    b: Handle,
    c: Handle,
    d: Handle,
    e: Handle,
    f: Handle,
    g: Handle,
) -> Int {
    called::<false>(a, b, c, d, e, f, g)
}

entrance! {
    fn wrapped(a: Handle, b: Handle, c: Handle, d: Handle, e: Handle, f: Handle, g: Handle)
    of NO_FUNCTION
}

/// Measures it in this thread, from which MPI is being called. The gate must be open.
pub(crate) fn costs() -> Costs {
    let Some(address) = Address::new(nothing as *mut _) else {
        return Costs::default();
    };
    ENTRY.next.is_at(address);
    // The first call sets up what later ones find.
    wrapped(0, 0, 0, 0, 0, 0, 0);
    let ledger = gate::ledger();
    let bare = least(COUNTED, nothing, || ());
    ledger.put_off(NO_FUNCTION);
    let counted = least(COUNTED, wrapped, || ());
    // Each is a first call.
    let timed = least(TIMED, wrapped, || ledger.forget(NO_FUNCTION));
    ledger.put_off(NO_FUNCTION);
    let gap = || {
        ledger.want_gap_of_nothing();
        gate::begin_gap(ledger);
        wrapped(1, 2, 3, 4, 5, 6, 7);
        ledger.gap_took()
    };
    let gaps = || (0..TIMED).map(|_| gap()).sum::<f64>() / f64::from(TIMED);
    Costs {
        counted: (counted - bare).max(0.0),
        timed: (timed - bare).max(0.0),
        between: (between(address) - bare).max(0.0),
        // With several threads, none is timed.
        gap: if gate::is_alone_in_program() {
            (0..BATCHES).map(|_| gaps()).fold(f64::INFINITY, f64::min)
        } else {
            0.0
        },
    }
}

/// Ticks measured when nothing is called.
fn between(nothing: Address) -> f64 {
    let batch = || {
        let ticks = |_| {
            let begun = clock::now();
            // SAFETY: the function takes seven words.
            unsafe { call::call(nothing, &[1, 2, 3, 4, 5, 6, 7]) };
            clock::now().wrapping_sub(begun)
        };
        (0..TIMED).map(ticks).sum::<u64>() as f64 / f64::from(TIMED)
    };
    (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// Ticks of a call: the minimum over some batches, which excludes other activity of the machine.
fn least(calls: u32, function: Function, before: impl Fn()) -> f64 {
    let function = black_box(function);
    let batch = || {
        let begun = clock::now();
        for _ in 0..calls {
            before();
            function(1, 2, 3, 4, 5, 6, 7);
        }
        clock::now().wrapping_sub(begun) as f64 / f64::from(calls)
    };
    (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
}
