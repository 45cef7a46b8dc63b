//! What does it cost to count a call, by each way that it can take, and to time one? Measured at the start, on
//! functions that do nothing, with the skeletons of the other entry points.

// As many arguments as `MPI_Recv` has; they need no names.
#![allow(clippy::many_single_char_names, clippy::too_many_arguments)]

use std::ffi::c_void;
use std::hint::black_box;
use std::mem;

use super::by_hand;
use super::c::{by_formula, counted, entry, fast, other, waits_in};
use super::call::{self, Effect, Entry, formula, moves, words_from_fortran};
use super::entrance::entrance;
use super::lifecycle::start_late;
use super::spelling::NEXT;
use super::words::as_words;
use crate::calls::budget::Costs;
use crate::calls::gate::{self, CompletionsFor, Fast, InFortran};
use crate::calls::ledger::{self, NO_FUNCTION};
use crate::entry::bytes::{self, Given, Moves, Typed};
use crate::entry::effects::{ObjectChange, completes};
use crate::mpi::abi::inquiry;
use crate::mpi::functions::{
    Argument, Comm, Datatype, Handle, Int, Name, receives, samples, waits,
};
use crate::mpi::handles::{Arguments, Language};
use crate::observe::communicators;
use crate::observe::receives;
use crate::sys::clock;
use crate::sys::symbols::{Address, Next, c_name};

/// A call that changes objects, of which there are none.
mod changing {
    #[allow(clippy::wildcard_imports)]
    use super::*;

    entry! {
        NO_FUNCTION nothing [] (a: Handle, b: Int, c: Datatype, d: Int, e: Int, f: Comm, g: Handle)
        std::ptr::null_mut(); Effect::Changes(|_, _| ObjectChange::Nothing)
    }

    as_words! {
        fn slow(a: Handle, b: Int, c: Datatype, d: Int, e: Int, f: Comm, g: Handle) -> Int
        => from_c(ENTRY)
    }

    pub(super) const CHANGES: (&Entry, Called) = (&ENTRY, slow);
}

/// A call that asks whether any of no requests has completed.
mod asking {
    #[allow(clippy::wildcard_imports)]
    use super::*;

    entry! {
        NO_FUNCTION nothing [] (a: Handle, b: Int, c: Datatype, d: Int, e: Int, f: Comm, g: Handle)
        std::ptr::null_mut();
        Effect::Completes(|arguments| {
            let [a, b, _, _, _, _, g] = arguments.all()?;
            Some(completes::many_if(b, a, g))
        })
    }

    as_words! {
        fn slow(a: Handle, b: Int, c: Datatype, d: Int, e: Int, f: Comm, g: Handle) -> Int
        => from_c(ENTRY)
    }

    pub(super) const ASKS: (&Entry, Called) = (&ENTRY, slow);
}

type Routine = extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize, usize);
type Called = extern "C-unwind" fn(Handle, Int, Datatype, Int, Int, Comm, Handle) -> Int;

/// What gyan puts around a function that does nothing.
struct Measured {
    entry: &'static Entry,
    wrapped: Called,
    /// Its call with the arguments as an array of words.
    in_words: Called,
    from_fortran: Routine,
}

/// A function that does nothing, and what gyan puts around it: `wrapped`, whose bytes are counted by `$moved`.
macro_rules! measured {
    ($way:ident $arguments:tt $moved:expr; $effect:expr $(; $counted:ident)?) => {
        mod $way {
            #[allow(clippy::wildcard_imports)]
            use super::*;

            fast! { NO_FUNCTION nothing [] $arguments $moved; $effect }

            $( $counted! { NO_FUNCTION $arguments $moved } )?

            other! { [] $arguments }

            entrance! { fn wrapped $arguments of NO_FUNCTION $(, then $counted if true)? }

            as_words! {
                fn routine(
                    a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, ierr: usize
                ) => from_fortran(ENTRY, 0)
            }

            pub(super) const WAY: Measured =
                Measured { entry: &ENTRY, wrapped, in_words: slow, from_fortran: routine };
        }
    };
}
measured! {
    counted (a: Handle, b: Int, c: Datatype, d: Int, e: Int, f: Comm, g: Handle) |_| {};
    Effect::Nothing
}
measured! {
    moving (a: Handle, b: Int, c: Datatype, d: Int, e: Int, f: Comm, g: Handle)
    |ledger| by_formula! { ledger NO_FUNCTION, elements(b, c) };
    moves! { (a Handle b Int c Datatype d Int e Int f Comm g Handle) elements (b c) }; counted
}
measured! {
    sending (a: Handle, b: Int, c: Datatype, d: Int, e: Int, f: Comm, g: Handle)
    |ledger| by_formula! { ledger NO_FUNCTION, message(b, c, d, f) };
    moves! { (a Handle b Int c Datatype d Int e Int f Comm g Handle) message (b c d f) }; counted
}

const COUNTED: u32 = 64;
const CLOCKS: u32 = 64;
const TIMED: u32 = 24;

#[inline(never)]
extern "C-unwind" fn nothing(
    a: Handle,
    _: Int,
    _: Datatype,
    _: Int,
    _: Int,
    _: Comm,
    _: Handle,
) -> Int {
    black_box(a);
    0
}

/// Measures it in this thread, from which MPI is being called. The gate must be open.
pub(crate) fn costs() -> Costs {
    let Some(address) = Address::new(nothing as *mut _) else {
        return Costs::default();
    };
    let ledger = gate::ledger();
    let [counted, moving, sending] = [counted::WAY, moving::WAY, sending::WAY];
    let (changing, changes) = changing::CHANGES;
    let (asking, asks) = asking::ASKS;
    let entries = [counted.entry, moving.entry, sending.entry, changing, asking];
    let functions = [counted.wrapped, moving.wrapped, sending.wrapped, changes, asks];
    for (entry, function) in entries.into_iter().zip(functions) {
        entry.next.is_at(address);
        // The first call sets up what later ones find.
        ledger.forget(NO_FUNCTION);
        to_nobody(function);
    }
    let bare = least(COUNTED, nothing, || ());
    ledger.put_off(NO_FUNCTION);
    let by_entrance = least(COUNTED, counted.wrapped, || ());
    let in_words = least(COUNTED, counted.in_words, || ());
    let with_bytes = least(COUNTED, moving.wrapped, || ());
    let to_peer = message(sending.wrapped);
    let from_fortran = fortran(&moving, address);
    // Most of the functions written by hand read a clock, and the processor does nothing else beside that.
    let reads_clock = || black_box(clock::of_kernel)();
    let clock = clock::least_of(CLOCKS, || _ = reads_clock());
    let by_hand = clock::least_of(CLOCKS, || {
        by_hand::counted(NO_FUNCTION, InFortran::enter, InFortran::aside, reads_clock);
    });
    gate::watch_completions(CompletionsFor::TimedOperations, true);
    let asking = least(COUNTED, asks, || ());
    gate::watch_completions(CompletionsFor::TimedOperations, false);
    let scoped = least(COUNTED, changes, || ());
    ledger.forget_effects();
    let inside = gate::enter(NO_FUNCTION, start_late);
    let in_fortran = InFortran::enter();
    let passed = least(COUNTED, counted.in_words, || ());
    drop(in_fortran);
    drop(inside);
    // Each is a first call.
    let timed = least(TIMED, counted.wrapped, || ledger.forget(NO_FUNCTION));
    ledger.put_off(NO_FUNCTION);
    let gap = || {
        ledger.want_gap_of_nothing();
        gate::begin_gap(ledger);
        to_nobody(counted.wrapped);
        ledger.gap_took()
    };
    let gaps = || (0..TIMED).map(|_| gap()).sum::<f64>() / f64::from(TIMED);
    Costs {
        counted: (by_entrance - bare).max(0.0),
        moving: (with_bytes - by_entrance).max(0.0),
        sending: to_peer.map_or(0.0, |to_peer| (to_peer - with_bytes).max(0.0)),
        in_words: (in_words - by_entrance).max(0.0),
        from_fortran: (from_fortran - with_bytes).max(0.0),
        asking: (asking - in_words).max(0.0),
        by_hand: (by_hand - clock - (by_entrance - bare)).max(0.0),
        scoped: (scoped - in_words).max(0.0),
        passed: (passed - bare).max(0.0),
        timed: (timed - bare).max(0.0),
        between: (between(address) - bare).max(0.0),
        // With several threads, none is timed.
        gap: if gate::is_alone_in_program() {
            (0..clock::BATCHES).map(|_| gaps()).fold(f64::INFINITY, f64::min)
        } else {
            0.0
        },
    }
}

/// A message of nothing to nobody: `MPI_PROC_NULL` is negative in every library.
#[inline]
fn to_nobody(function: Called) -> Int {
    function(0, 0, Datatype(0), -1, 0, Comm(0), 0)
}

/// Ticks of a call from Fortran whose bytes are counted.
fn fortran(way: &Measured, nothing: Address) -> f64 {
    let Some(next) = NEXT.get(NO_FUNCTION.0).and_then(|next| next.first()) else { return 0.0 };
    next.is_at(nothing);
    // Each argument is an INTEGER.
    let zero: Int = 0;
    let zero = &raw const zero as usize;
    let mut error: Int = 0;
    let error = &raw mut error as usize;
    clock::least_of(COUNTED, || {
        black_box(way.from_fortran)(zero, zero, zero, zero, zero, zero, zero, error);
    })
}

/// Ticks of a message of no bytes to this rank itself, which is not counted in the end; none where peers are not
/// counted.
fn message(wrapped: Called) -> Option<f64> {
    let world = communicators::world().filter(|_| ledger::counts_peers())?;
    let rank = u32::try_from(inquiry()?.rank(world)?).ok()?;
    let to = Int::try_from(rank).ok()?;
    let ticks = clock::least_of(COUNTED, || {
        // No datatype is 0, and none is asked about where there are no elements.
        black_box(wrapped)(0, 0, Datatype(0), to, 0, Comm(world), 0);
    });
    gate::ledger().not_sent(rank, u64::from(clock::BATCHES * COUNTED));
    Some(ticks)
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
    (0..clock::BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// Ticks of a call of `function`, to nobody.
fn least(calls: u32, function: Called, before: impl Fn()) -> f64 {
    let function = black_box(function);
    clock::least_of(calls, || {
        before();
        to_nobody(function);
    })
}
