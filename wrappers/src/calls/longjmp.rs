//! Has the program left a call of MPI by `longjmp`? An error handler may do that without gyan knowing: to gyan
//! the thread then stays inside that call forever, and all later calls look as if MPI made them.
//!
//! So gyan checks a call that looks like that: if no frame of libgyan.so is further down the stack, there is no
//! call around it. A check takes microseconds, and MPI itself makes many calls, so checks become rare while
//! they find nothing. The program's own calls pay nothing for it. Inside a call from Fortran there is no check:
//! a library's Fortran routine may jump to the C one and leave no frame between two of gyan's.

use std::ops::Range;
use std::sync::OnceLock;

use crate::calls::budget::budget;
use crate::calls::thread::Here;
use crate::sys::cells::Counter;
use crate::sys::clock;
use crate::sys::elf_objects;
use crate::sys::unwind;

/// This many checks in a row may find nothing before they become rare: error handlers call MPI, too.
const LOOKS_AT_FIRST: u32 = 8;

/// There is at least one check every 2 to the power of this calls.
const RAREST: u32 = 10;

/// A deeper stack is not walked to its end.
const FRAMES: usize = 256;

/// Calls that were left.
static LEFT: Counter = Counter::new(0);

/// Calls after them, before that was noticed: some may be the program's, and none was counted.
static IN_DOUBT: Counter = Counter::new(0);

/// A thread makes a call while gyan thinks it is inside another. Returns whether it has left that one;
/// `at_once`: checks now, even if no check is due.
pub(crate) fn has_left(here: Here, at_once: bool) -> bool {
    // In a program that contains gyan, the program's frames cannot be told from gyan's.
    if cfg!(feature = "static") {
        return false;
    }
    let calls = here.calls_inside.get().saturating_add(1);
    let looks = here.looks_in_vain.get();
    if !at_once && calls < 1 << looks.saturating_sub(LOOKS_AT_FIRST).min(RAREST) {
        here.calls_inside.set(calls);
        return false;
    }
    here.calls_inside.set(0);
    let begun = clock::now();
    let left = is_outermost();
    budget().spent(clock::now().saturating_sub(begun));
    if left {
        LEFT.add_shared(1);
        IN_DOUBT.add_shared(u64::from(calls - 1));
        here.looks_in_vain.set(0);
    } else {
        here.looks_in_vain.set(looks.saturating_add(1));
    }
    left
}

/// A warning for the user.
pub(crate) fn described() -> Option<String> {
    let (left, in_doubt) = (LEFT.get(), IN_DOUBT.get());
    (in_doubt > 0).then(|| {
        format!(
            "{left} calls of MPI were left by longjmp; of the {in_doubt} calls after them, before \
             gyan noticed, those that the program made are not counted"
        )
    })
}

/// Whether the call in which this runs is the only one on the stack. False when the stack cannot be
/// walked to its end.
fn is_outermost() -> bool {
    let mut frames = [0; FRAMES];
    let len = unwind::callers(&mut frames);
    let Some(own) = own() else { return false };
    // After the outermost there is one at 0.
    let Some((0, frames)) = frames.get(..len).and_then(<[usize]>::split_last) else { return false };
    let mut outer = frames.iter().skip_while(|frame| own.contains(frame));
    !outer.any(|frame| own.contains(frame))
}

/// Where libgyan.so is.
fn own() -> Option<&'static Range<usize>> {
    static OWN: OnceLock<Option<Range<usize>>> = OnceLock::new();
    let find = || {
        let mut own = None;
        elf_objects::each(&mut |object| {
            if object.is_own() {
                own = Some(object.range());
            }
        });
        own
    };
    OWN.get_or_init(find).as_ref()
}
