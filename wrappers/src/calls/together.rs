//! How long is at least one thread of the process in MPI, when several call it? Known of the calls that are timed, which
//! each thread enters and leaves here; calls that are only counted stay as fast as they are.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::cells::Counter;
use crate::sys::clock;

/// The low bits of a time in ticks: enough for a call of a month. The bits above count the threads that are inside, up
/// to 1,023 of them.
const TIME_BITS: u32 = 54;
const TIME: u64 = (1 << TIME_BITS) - 1;
const ONE_THREAD: u64 = 1 << TIME_BITS;

/// How many threads are inside, and since when one is.
static INSIDE: AtomicU64 = AtomicU64::new(0);
/// The ticks for which at least one was, up to the last time that there was none.
static TICKS: Counter = Counter::new(0);

/// While this lives, a thread is in a timed call.
pub(crate) struct InTimedCall(());

impl InTimedCall {
    pub(crate) fn enter(now: u64) -> InTimedCall {
        change(
            |state| if state < ONE_THREAD { ONE_THREAD | now & TIME } else { state + ONE_THREAD },
        );
        InTimedCall(())
    }
}

/// Also when the stack is unwound.
impl Drop for InTimedCall {
    fn drop(&mut self) {
        let before = change(|state| {
            let is_last = state < 2 * ONE_THREAD;
            if is_last { 0 } else { state - ONE_THREAD }
        });
        if before < 2 * ONE_THREAD {
            // A thread on a processor whose counter lags behind may come out before it went in.
            let ticks = clock::now().wrapping_sub(before) & TIME;
            TICKS.add_shared(if ticks > TIME / 2 { 0 } else { ticks });
        }
    }
}

fn change(next: impl Fn(u64) -> u64) -> u64 {
    let changed =
        INSIDE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| Some(next(state)));
    changed.unwrap_or_else(|state| state)
}

/// The ticks up to `now` for which at least one thread was in a timed call.
pub(crate) fn ticks(now: u64) -> u64 {
    let state = INSIDE.load(Ordering::Relaxed);
    let so_far = now.wrapping_sub(state) & TIME;
    let is_inside = state >= ONE_THREAD && so_far <= TIME / 2;
    TICKS.get() + if is_inside { so_far } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fork::in_a_copy;

    /// In a copy of its own: what it counts belongs to the process.
    #[test]
    fn time_in_which_threads_are_inside_together_counts_once() {
        let lines = in_a_copy(|out| {
            let begun = clock::now();
            let first = InTimedCall::enter(begun);
            let second = InTimedCall::enter(clock::now());
            let middle = clock::now();
            drop(first);
            writeln!(out, "{}", ticks(clock::now()) >= middle - begun && TICKS.get() == 0)?;
            drop(second);
            let ended = clock::now();
            writeln!(out, "{}", (1..=ended - begun).contains(&ticks(ended)) && middle > begun)?;
            let before = ticks(ended);
            drop(InTimedCall::enter(clock::now()));
            writeln!(out, "{}", ticks(clock::now()) >= before)
        });
        assert_eq!(lines, "true\ntrue\ntrue\n");
    }
}
