//! What happens when gyan itself panics, or its thread is cancelled? A panic ends here: gyan is off for the
//! rest of the run, says so once, and the application goes on. A cancellation waits until gyan has done its
//! work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::calls::gate;
use crate::sys::cancellation;
use crate::sys::notice;

/// Runs a piece of gyan; none when it panicked, or when gyan is off.
pub(crate) fn contain<T>(what: &str, piece: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    if gate::is_off() {
        return None;
    }
    // gyan has its own copy of std, so the hook of a Rust application is not affected.
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    // AssertUnwindSafe: after a panic gyan is closed, and nothing is examined again.
    let result = cancellation::without(|| catch_unwind(AssertUnwindSafe(piece)).ok());
    if result.is_none() {
        gate::stay_off();
        notice::say(&format!("internal error while {what}; gyan is off for the rest of the run"));
    }
    result
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::calls::gate::Fast;
    use crate::calls::ledger;
    use crate::mpi::functions::values;
    use crate::sys::fork::in_a_copy;

    #[test]
    fn after_a_contained_panic_nothing_contained_runs_and_nothing_is_watched() {
        let lines = in_a_copy(|out| {
            gate::open(false);
            gate::WATCHES_RECEIVES.store(true, Ordering::Relaxed);
            // A callback from the library in a call on the fast path, which opens the gate again.
            let callback = || {
                contain("trying", || panic!("that it is contained is what is tried"));
                0
            };
            // Its first call is timed.
            ledger::alone().put_off(values::MPI_Wtime);
            let Fast::Alone(inside) = gate::fast(values::MPI_Wtime, false) else { unreachable!() };
            gate::forward(inside, ledger::alone(), callback, |_| {});
            let more = contain("trying again", || ());
            writeln!(
                out,
                "{} {more:?} {}",
                gate::is_off(),
                gate::WATCHES_RECEIVES.load(Ordering::Relaxed)
            )
        });
        assert_eq!(lines, "true None false\n");
    }
}
