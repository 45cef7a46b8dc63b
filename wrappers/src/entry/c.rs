//! The C entry points.
//!
//! Most functions find the next definition, forward the caller's arguments to it once,
//! count the call and what it moves, and return its result, with a fast path for the program's calls. Functions
//! that create or free objects, prepare operations, or may be called by any thread at any time have no fast path.
//! They are `C-unwind`, because a C++
//! error handler may throw through them.

use std::ffi::c_void;
use std::mem;
use std::ptr;

use super::call::{
    Effect, Entry, completes, formula, moves, object_change, prepares, words_from_fortran,
};
use super::caller::noting_caller;
use super::entrance::entrance;
use super::words::as_words;
use crate::calls::gate::{self, Fast};
use crate::calls::ledger;
use crate::entry::bytes::{self, Given, Moves, Typed};
use crate::entry::effects;
use crate::entry::requests::Prepared;
#[allow(clippy::wildcard_imports)]
use crate::mpi::functions::*;
use crate::mpi::handles::{Arguments, Language};
use crate::observe::receives;
use crate::observe::waiting;
use crate::sys::symbols::{Next, c_name};

macro_rules! entry_points {
    ($chapter:ident; $(
        $form:ident $name:ident [$($fortran:ident)*] {
            ( $($arg:ident : $type:ident),* ) $known:tt $($effect:ident $what:ident ( $($on:ident),* ))?
        }
    )*) => {
        $(
            #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
            pub(in crate::entry) mod $name {
                #[allow(clippy::wildcard_imports)]
                use super::*;
                #[allow(unused_imports, clippy::wildcard_imports)]
                use crate::mpi::functions::$form::*;

                // Some have no names in Fortran.
                #[allow(dead_code)]
                pub(in crate::entry) const FUNCTION: crate::mpi::functions::Function = $chapter::$name;

                skeleton! {
                    $chapter $name $known ( $($arg : $type),* )
                    $($effect $what ( $($on),* ))?
                }
            }
        )*
    };
}

macro_rules! skeleton {
    // When ranks wait for each other in the call, the entrance leaves it to compiled code, which times it.
    ($chapter:ident $name:ident [samples waits $on:tt] ( $($arg:ident : $type:ident),* )) => {
        fast! { ($chapter::$name) $name [samples waits $on] ( $($arg : $type),* ) |_| {}; Effect::Nothing }
        fast_entrance! { ($chapter::$name) $name [samples waits $on] ( $($arg : $type),* ), then counted if true }
        counted! { ($chapter::$name) ( $($arg : $type),* ) |_| {} }
    };
    ($chapter:ident $name:ident [anywhere] $arguments:tt) => {
        slow_entrance! { ($chapter::$name) $name [] $arguments Effect::Anywhere }
    };
    ($chapter:ident $name:ident [samples $($fact:tt)*] ( $($arg:ident : $type:ident),* )) => {
        fast! { ($chapter::$name) $name [samples $($fact)*] ( $($arg : $type),* ) |_| {}; Effect::Nothing }
        fast_entrance! {
            ($chapter::$name) $name [samples $($fact)*] ( $($arg : $type),* ), then counted if MESSAGE.is_some()
        }
        counted! { ($chapter::$name) ( $($arg : $type),* ) |_| {} }
    };
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* )) => {
        fast! { ($chapter::$name) $name $known ( $($arg : $type),* ) |_| {}; Effect::Nothing }
        fast_entrance! { ($chapter::$name) $name $known ( $($arg : $type),* ) }
    };
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* ) moves $formula:ident ( $($on:ident),* )) => {
        fast! {
            ($chapter::$name) $name $known ( $($arg : $type),* )
            |ledger| by_formula! { ledger $chapter::$name, $formula ( $($on),* ) };
            moves! { ( $($arg $type)* ) $formula ( $($on)* ) }
        }
        fast_entrance! { ($chapter::$name) $name $known ( $($arg : $type),* ), then counted if true }
        counted! {
            ($chapter::$name) ( $($arg : $type),* )
            |ledger| by_formula! { ledger $chapter::$name, $formula ( $($on),* ) }
        }
    };
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* ) prepares $formula:ident ( $($on:ident),* )) => {
        slow_entrance! {
            ($chapter::$name) $name $known ( $($arg : $type),* )
            prepares! { ( $($arg $type)* ) $formula ( $($on)* ) }
        }
    };
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* ) completes $what:ident ( $($on:ident),* )) => {
        fast! {
            ($chapter::$name) $name $known ( $($arg : $type),* ) |_| {};
            Effect::Completes(completes! { ( $($arg)* ) $what ( $($on)* ) })
        }
        fast_entrance! { ($chapter::$name) $name $known ( $($arg : $type),* ) }
    };
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* ) locks $what:ident ( $($on:ident),* )) => {
        slow_entrance! {
            ($chapter::$name) $name $known ( $($arg : $type),* )
            Effect::Locks(object_change! { ( $($arg)* ) locks $what ( $($on)* ) })
        }
    };
    ($chapter:ident $name:ident $known:tt ( $($arg:ident : $type:ident),* ) $effect:ident $what:ident ( $($on:ident),* )) => {
        slow_entrance! {
            ($chapter::$name) $name $known ( $($arg : $type),* )
            Effect::Changes(object_change! { ( $($arg)* ) $effect $what ( $($on)* ) })
        }
    };
}

/// Counts what a successful call moved.
macro_rules! by_formula {
    ($ledger:ident $function:expr, $formula:ident ( $($on:ident),* )) => {{
        // SAFETY: asked after the call succeeded.
        let moved = unsafe { bytes::$formula($($on.given()),*) };
        $ledger.moved($function, moved.show(&mut |sent| $ledger.sent(sent)));
    }};
}

pub(super) use by_formula;

/// The function that programs call, for a row without a fast path.
macro_rules! slow_entrance {
    // Where it is called is found at the top of the stack.
    ($function:tt $name:ident [] ( $($arg:ident : $type:ident),* ) $effect:expr) => {
        entry! { $function $name [] ( $($arg : $type),* ) ptr::null_mut(); $effect }

        as_words! {
            #[cfg_attr(not(test), unsafe(no_mangle))]
            fn $name($($arg: $type),*) -> Int => from_c(ENTRY)
        }
    };
    ($function:tt $name:ident $known:tt ( $($arg:ident : $type:ident),* ) $effect:expr) => {
        entry! { $function $name $known ( $($arg : $type),* ) ptr::null_mut(); $effect }

        as_words! { fn slow($($arg: $type),*) -> Int => from_c(ENTRY) }

        #[inline]
        fn called<const WATCHED: bool>($($arg: $type),*) -> Int {
            slow($($arg),*)
        }

        noting! { $known #[cfg_attr(not(test), unsafe(no_mangle))] $name ( $($arg : $type),* ) }
    };
}

/// The function that an entrance continues as after counting the call.
macro_rules! counted {
    ($function:tt ( $($arg:ident : $type:ident),* ) $moved:expr) => {
        #[cfg(target_arch = "x86_64")]
        extern "C-unwind" fn counted($($arg: $type),*) -> Int {
            if MESSAGE.is_some() && $crate::observe::streams::is_on() {
                let Some(messages) = at_hand($($arg),*) else { return further($($arg),*) };
                messages.count();
            }
            if meets_on($($arg),*).is_some_and(|on| $crate::observe::waiting::is_due_or_counted($function, on)) {
                return further($($arg),*);
            }
            goes_on($($arg),*)
        }

        /// The same for a message whose count is not the first one that is looked at, or for an operation that is timed. It has the same
        /// arguments in the same registers, so `counted` need not save any.
        #[cfg(target_arch = "x86_64")]
        #[cold]
        #[inline(never)]
        extern "C-unwind" fn further($($arg: $type),*) -> Int {
            if let Some(messages) = untimed($($arg),*) {
                messages.count();
                return goes_on($($arg),*);
            }
            if MESSAGE.is_some_and(|at| at.is_try())
                || MESSAGE.is_some_and(|at| at.only_receives())
                    && $crate::observe::streams::numbers_any()
                    && is_from_any($($arg),*)
            {
                return receives_from_any($($arg),*);
            }
            ledger::alone().take_back($function);
            leaves($($arg),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[inline(never)]
        fn is_from_any($($arg: $type),*) -> bool {
            let words = [$(Argument::word($arg)),*];
            // SAFETY: the arguments of this call, which are those of the row.
            let arguments = unsafe { Arguments::new(Language::C, &words) };
            MESSAGE.is_some_and(|at| at.is_from_any(arguments))
        }

        #[cfg(target_arch = "x86_64")]
        #[inline(never)]
        extern "C-unwind" fn receives_from_any($($arg: $type),*) -> Int {
            let words = [$(Argument::word($arg)),*];
            let next = || match MESSAGE {
                // SAFETY: the arguments of this call, which are those of the row.
                Some(at) => unsafe { $crate::entry::call::receives_from_any(&ENTRY, at, &words) },
                None => next()($($arg),*),
            };
            gate::forward(gate::enter_counted($function), ledger::alone(), next, $moved)
        }

        /// If ranks wait for each other in the call, or in that which completes what it starts, it is counted for that.
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        fn goes_on($($arg: $type),*) -> Int {
            let next = || {
                let result = next()($($arg),*);
                if STARTED.is_some() && result == 0 {
                    $crate::entry::call::has_begun();
                }
                result
            };
            gate::forward(gate::enter_counted($function), ledger::alone(), next, $moved)
        }
    };
}

pub(super) use counted;

/// Forwards a call with `$next`, and times it, or what it starts with a request, if all ranks that wait for each other time it.
macro_rules! waits_in {
    ([samples waits ($on:ident $(, $root:ident)?)] $alone:ident $function:tt $request:expr, $next:expr) => {{
        #[allow(unused_mut, unused_assignments)]
        let mut root = waiting::NO_ROOT;
        $( root = $root; )?
        let meeting = waiting::AsCalled { root, request: $request };
        let on = || Some($crate::observe::communicators::handle(Argument::word($on)));
        waiting::around($alone, $function, on, meeting, $next)
    }};
    ([samples waits ($win:ident unless $assert:ident)] $alone:ident $function:tt $request:expr, $next:expr) => {{
        let meeting = waiting::AsCalled { root: waiting::NO_ROOT, request: $request };
        let on = || waiting::on_window(Argument::word($win), $assert);
        waiting::around($alone, $function, on, meeting, $next)
    }};
    ($known:tt $alone:ident $function:tt $request:expr, $next:expr) => {
        $next()
    };
}
pub(super) use waits_in;

/// The function `called`, with a fast path, and its helpers.
macro_rules! fast {
    ($function:tt $name:ident $known:tt ( $($arg:ident : $type:ident),* ) $moved:expr; $effect:expr) => {
        entry! { $function $name $known ( $($arg : $type),* ) at_first as *mut _; $effect }

        as_words! {
            /// Called instead of the next definition until that is known.
            fn at_first($($arg: $type),*) -> Int => forward(ENTRY)
        }

        type Function = extern "C-unwind" fn($($type),*) -> Int;

        /// `WATCHED`: receives are watched.
        #[cfg_attr(target_arch = "x86_64", allow(dead_code))]
        #[inline]
        fn called<const WATCHED: bool>($($arg: $type),*) -> Int {
            let Some(messages) = untimed($($arg),*) else { return slow($($arg),*) };
            if ENTRY.is_examined() {
                return slow($($arg),*);
            }
            match gate::fast($function, false) {
                Fast::Alone(inside) => {
                    messages.count();
                    let next = || forward::<WATCHED>(true, $($arg),*);
                    gate::forward(inside, ledger::alone(), next, $moved)
                }
                Fast::Thread => threaded::<WATCHED>($($arg),*),
                Fast::None => slow($($arg),*),
            }
        }

        /// What the call sends and receives, if its counts are those that are looked at first and it is not timed.
        #[allow(dead_code)]
        #[inline(always)]
        fn at_hand($($arg: $type),*) -> Option<$crate::observe::streams::Untimed> {
            let words = [$(Argument::word($arg)),*];
            let at = MESSAGE?;
            if at.is_start() {
                return untimed($($arg),*);
            }
            $crate::observe::streams::at_hand(at, |place| words.get(place).copied().unwrap_or(0))
        }

        /// Whether all ranks time this call, or what it starts. Then its time counts for its function and its line, too, and calls that
        /// complete requests may be examined from now on, which the fast path cannot have done.
        #[inline(always)]
        fn is_due($($arg: $type),*) -> bool {
            meets_on($($arg),*).is_some_and(|on| $crate::observe::waiting::is_due($function, on))
        }

        /// On what ranks wait for each other in the call, or in that which completes what it starts; none if they do not.
        #[inline(always)]
        fn meets_on($($arg: $type),*) -> Option<usize> {
            let words = [$(Argument::word($arg)),*];
            let word = |place: u8| words.get(usize::from(place)).copied().unwrap_or(0);
            match MEETING? {
                $crate::mpi::functions::Meeting::OnComm { comm, .. } => Some($crate::observe::communicators::handle(word(comm))),
                #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
                $crate::mpi::functions::Meeting::OnWindow { win, assert } => $crate::observe::waiting::on_window(word(win), word(assert) as Int),
            }
        }

        /// Whether the messages of persistent operations that the call starts are timed.
        #[allow(dead_code)]
        #[inline(never)]
        fn starts_timed_messages($($arg: $type),*) -> bool {
            let words = [$(Argument::word($arg)),*];
            // SAFETY: the arguments of this call, which are those of the row.
            let arguments = unsafe { Arguments::new(Language::C, &words) };
            MESSAGE.is_some_and(|at| $crate::entry::requests::untimed(at, arguments).is_none())
        }

        /// What the call sends and receives; none if that is timed, or what it starts.
        #[inline(always)]
        fn untimed($($arg: $type),*) -> Option<$crate::observe::streams::Untimed> {
            if is_due($($arg),*) {
                return None;
            }
            let Some(at) = MESSAGE else { return Some($crate::observe::streams::Untimed::NOTHING) };
            let words = [$(Argument::word($arg)),*];
            if at.is_start() {
                return (!starts_timed_messages($($arg),*)).then($crate::observe::streams::Untimed::started);
            }
            $crate::observe::streams::untimed(at, |place| words.get(place).copied().unwrap_or(0))
        }

        as_words! {
            // With the same arguments in the same registers, so the fast path need not save any.
            fn slow($($arg: $type),*) -> Int => from_c(ENTRY)
        }

        /// Continues after the entrance, which has left where the return address is, while calls are recorded.
        #[cfg(target_arch = "x86_64")]
        #[inline(never)]
        extern "C-unwind" fn recorded($($arg: $type),*) -> Int {
            let words = [$(Argument::word($arg)),*];
            // SAFETY: the arguments of this call, which are those of the row.
            let arguments = unsafe { Arguments::new(Language::C, &words) };
            let messages = match MESSAGE {
                Some(at) if at.is_from_any(arguments) => None,
                Some(_) if $crate::observe::streams::is_on() => at_hand($($arg),*),
                _ => Some($crate::observe::streams::Untimed::NOTHING),
            };
            // SAFETY: the same, and it has not returned.
            unsafe { $crate::entry::call::recorded(&ENTRY, &words, messages) }
        }

        /// Continues as `slow` after the entrance, which has left where the return address is. On the stack there may be more by now.
        #[cold]
        #[inline(never)]
        extern "C-unwind" fn leaves($($arg: $type),*) -> Int {
            let words = [$(Argument::word($arg)),*];
            // SAFETY: the arguments of this call, which are those of the row, and which has not returned.
            unsafe { $crate::entry::call::from_entrance(&ENTRY, &words) }
        }

        #[inline(never)]
        extern "C-unwind" fn threaded<const WATCHED: bool>($($arg: $type),*) -> Int {
            let off = if WATCHED { slow } else { leaves };
            let Some(messages) = untimed($($arg),*) else { return off($($arg),*) };
            let Some(inside) = gate::enter_thread($function) else { return off($($arg),*) };
            let ledger = inside.ledger;
            messages.count_in(ledger);
            let words = [$(Argument::word($arg)),*];
            let _now = ledger.now.enter($function, &words, inside.origin(WATCHED), true, false);
            let next = || {
                let result = forward::<WATCHED>(false, $($arg),*);
                if let (Some(started), 0) = (STARTED, result) {
                    // SAFETY: the arguments of this call, which are those of the row.
                    unsafe { $crate::entry::call::has_begun_in_c($function, started, &words) };
                }
                result
            };
            gate::forward(inside, ledger, next, $moved)
        }

        #[inline]
        fn next() -> Function {
            // SAFETY: the row has the prototype that the standard gives this function, with handles as machine
            // words, which are passed alike; `at_first` has the same prototype.
            unsafe { mem::transmute::<*mut c_void, Function>(ENTRY.next.callable()) }
        }

        /// `alone`: no other thread calls MPI.
        #[inline]
        fn forward<const WATCHED: bool>(alone: bool $(, $arg: $type)*) -> Int {
            let words = [$(Argument::word($arg)),*];
            // SAFETY: the arguments of this call, which are those of the row.
            let arguments = unsafe { Arguments::new(Language::C, &words) };
            #[allow(unused_variables)]
            let request = STARTED.map(|started| arguments.at(started.request));
            if !WATCHED {
                return waits_in! { $known alone $function request, move || next()($($arg),*) };
            }
            let watched = ENTRY.receives.and_then(|receives| {
                receives::before(alone, $function, receives, arguments)
            });
            let result = waits_in! { $known alone $function request, move || next()($($arg),*) };
            receives::after(watched, arguments, result == 0);
            result
        }
    };
}
pub(super) use fast;

/// The function that programs call, for a row with a fast path.
macro_rules! fast_entrance {
    ($function:tt $name:ident $known:tt ( $($arg:ident : $type:ident),* ) $($then:tt)*) => {
        other! { $known ( $($arg : $type),* ) }

        entrance! {
            #[cfg_attr(not(test), unsafe(no_mangle))]
            fn $name($($arg: $type),*) of $function $($then)*
        }
    };
}

/// The function that an entrance continues as for a call that it does not take. If the entrance is compiled
/// code, this has the fast path, as does the variant that records the callers of receives.
macro_rules! other {
    ([samples $($fact:tt)*] $arguments:tt) => {
        other! { [$($fact)*] $arguments }
    };
    ([waits $on:tt $($fact:tt)*] $arguments:tt) => {
        other! { [$($fact)*] $arguments }
    };
    ([] ( $($arg:ident : $type:ident),* )) => {
        #[cfg(target_arch = "x86_64")]
        use slow as other;

        #[cfg(not(target_arch = "x86_64"))]
        noting! { [] #[allow(clippy::too_many_arguments)] other ( $($arg : $type),* ) }
    };
    ($known:tt $arguments:tt) => {
        noting! { $known #[allow(clippy::too_many_arguments)] other $arguments }
    };
}

pub(super) use other;

/// The data of an entry point.
macro_rules! entry {
    ($function:tt $name:ident $known:tt ( $($arg:ident : $type:ident),* ) $at_first:expr; $effect:expr) => {
        /// Where its arguments are, if it starts an operation.
        pub(in crate::entry) const STARTED: Option<$crate::calls::requests::StartArguments> =
            $crate::calls::requests::StartArguments::new(
                crate::mpi::functions::name($function),
                &[$(stringify!($arg)),*],
            );

        /// Where they are if it sends or receives a message.
        const MESSAGE: Option<$crate::observe::streams::MessageArguments> =
            $crate::observe::streams::MessageArguments::new(
                crate::mpi::functions::name($function),
                &[$(stringify!($arg)),*],
            );

        /// Where they are if ranks wait for each other in it, or in the call that completes what it starts.
        const MEETING: Option<$crate::mpi::functions::Meeting> = waits! { ( $($arg)* ) $known };

        pub(in crate::entry) static ENTRY: Entry = Entry {
            next: Next::instead($at_first),
            name: c_name(concat!(stringify!($name), "\0")),
            function: $function,
            arguments: &[$((Name::from_text(stringify!($arg)), <$type as Argument>::KIND)),*],
            words_from_fortran: words_from_fortran(&[$(stringify!($type)),*]),
            effect: $effect,
            samples: samples! { $known },
            receives: receives! { ( $($arg)* ) $known },
            waits: MEETING,
            started: STARTED,
            message: MESSAGE,
            timeline: $crate::observe::timeline::TimelineArguments::new(
                crate::mpi::functions::name($function),
                &[$(stringify!($arg)),*],
                &[$(stringify!($type)),*],
                STARTED.is_some(),
                matches!(MEETING, Some($crate::mpi::functions::Meeting::OnComm { .. })),
            ),
        };
    };
}
pub(super) use entry;

/// A function that continues as `called`. Those that deal with receives record their return address when that
/// is wanted.
macro_rules! noting {
    ([samples $($fact:tt)*] $($rest:tt)*) => {
        noting! { [$($fact)*] $($rest)* }
    };
    ([waits $on:tt $($fact:tt)*] $($rest:tt)*) => {
        noting! { [$($fact)*] $($rest)* }
    };
    ([] #[$attribute:meta] $name:ident ( $($arg:ident : $type:ident),* )) => {
        #[$attribute]
        #[allow(non_snake_case)]
        extern "C-unwind" fn $name($($arg: $type),*) -> Int {
            called::<false>($($arg),*)
        }
    };
    ($known:tt #[$attribute:meta] $name:ident ( $($arg:ident : $type:ident),* )) => {
        noting_caller! {
            #[$attribute]
            fn $name($($arg: $type),*) -> Int, plain, watched
        }

        // The entrance has handled the fast path. The function that it calls finds the return address.
        #[cfg(target_arch = "x86_64")]
        use slow as plain;

        #[cfg(not(target_arch = "x86_64"))]
        extern "C-unwind" fn plain($($arg: $type),*) -> Int {
            called::<false>($($arg),*)
        }

        extern "C-unwind" fn watched($($arg: $type),*) -> Int {
            called::<true>($($arg),*)
        }
    };
}

every_row! { entry_points }
