//! What is done around a call that is timed: variables are sampled before it, and its time is taken.

#![forbid(unsafe_code)]

use crate::calls::budget::budget;
use crate::calls::containment::contain;
use crate::calls::gate::Scope;
use crate::calls::ledger::Ledger;
use crate::calls::sites::{self, Noted};
use crate::mpi::functions::Function;
use crate::run;
use crate::sys::clock;

/// Of this many timed calls of a function one is used to measure what comes after a call.
const MEASURED_EVERY: u64 = 16;

/// Runs while a call is timed.
pub(crate) struct Stopwatch {
    ledger: &'static Ledger,
    function: Function,
    begun: u64,
}

impl Stopwatch {
    /// Starts when the call is to be timed. `samples`: variables are sampled at such calls.
    #[inline]
    pub(crate) fn start(scope: &Scope, function: Function, samples: bool) -> Option<Stopwatch> {
        let ledger = scope.times()?;
        let mut begun = clock::now();
        let samples = samples && run::is_sample_due(begun);
        // Not where it would be in the way of a measurement that was prepared.
        if (samples || run::is_snapshot_due(begun)) && !ledger.is_warm(function) {
            begun = look(samples, begun);
        }
        Some(Stopwatch { ledger, function, begun })
    }

    /// The call has returned, to go on at `caller` in the program, if that is known (else 0).
    #[inline]
    pub(crate) fn stop(stopwatch: Option<&Stopwatch>, caller: usize) -> Option<Noted> {
        let &Stopwatch { ledger, function, begun } = stopwatch?;
        let ended = clock::now();
        let timed = ledger.timed(budget(), function, begun, ended);
        let noted = (timed.number > 0)
            .then(|| sites::note(ledger, function, caller, (timed.ticks, timed.weight)))
            .flatten();
        let looked = noted.is_some_and(|noted| noted.looked);
        if timed.looked {
            budget().spend_on_timing(clock::now().wrapping_sub(ended) as f64);
        } else if timed.number % MEASURED_EVERY == MEASURED_EVERY / 2
            && !budget().is_unlimited()
            && !looked
        {
            // Never the first, for which memory is got.
            budget().learn_after(clock::now().wrapping_sub(ended) as f64);
        }
        noted
    }
}

/// Samples variables, and writes down what is known, when either is due. When that is done.
#[cold]
fn look(samples: bool, begun: u64) -> u64 {
    let mut ended = begun;
    if samples {
        contain("sampling", || run::sample(begun));
        ended = clock::now();
        budget().sampled(ended.wrapping_sub(begun));
    }
    if run::is_snapshot_due(ended) {
        contain("writing the live file", || run::snapshot(ended));
        ended = clock::now();
    }
    ended
}
