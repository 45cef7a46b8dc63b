//! The work around a timed call: variables are sampled before it, and its time is taken.

#![forbid(unsafe_code)]

use crate::calls::budget::budget;
use crate::calls::containment::contain;
use crate::calls::gate::Scope;
use crate::calls::ledger::{Ledger, Timed};
use crate::calls::sites::{self, Noted};
use crate::calls::together::InTimedCall;
use crate::mpi::functions::Function;
use crate::observe::openmp;
use crate::observe::recording;
use crate::observe::waiting::Due;
use crate::run;
use crate::sys::clock;
use crate::sys::counters::{self, Each};

/// One in this many timed calls of a function is used to measure the work after a call.
const MEASURED_EVERY: u64 = 16;

/// Runs while a call is timed.
pub(crate) struct Stopwatch {
    /// Where its time goes: the ledger of the thread, if it has one to itself.
    ledger: Option<&'static Ledger>,
    /// The budget chose the call.
    chosen: bool,
    function: Function,
    /// The call is timed by all ranks.
    due: Option<Due>,
    begun: u64,
    /// What the processor had counted just before, if that can be read.
    counted: Option<Each>,
    /// Of one of several threads.
    together: Option<InTimedCall>,
}

impl Stopwatch {
    /// Starts if the call is chosen for timing, or is also `due`. `samples`: variables are sampled at such
    /// calls.
    #[inline]
    pub(crate) fn start(
        scope: &Scope,
        function: Function,
        samples: bool,
        due: Option<Due>,
    ) -> Option<Stopwatch> {
        let ledger = scope.own_ledger();
        let chosen = ledger.is_some_and(|ledger| ledger.is_due(function));
        if !chosen && due.is_none() {
            return None;
        }
        let mut counted = counters::now();
        let mut begun = clock::now();
        recording::opens(begun);
        if let Some(ledger) = ledger.filter(|_| chosen) {
            let samples = samples && run::is_sample_due(begun);
            // Skip if the previous call warmed up for this measurement.
            if (samples || run::is_snapshot_due(begun)) && !ledger.is_warm(function) {
                begun = look(samples, begun);
                counted = None;
            }
        }
        let together = (!scope.is_alone()).then(|| InTimedCall::enter(begun));
        Some(Stopwatch { ledger, chosen, function, due, begun, counted, together })
    }

    /// The call has returned, to `caller` in the program, if that is known (else 0).
    #[inline]
    pub(crate) fn stop(
        stopwatch: Option<Stopwatch>,
        caller: usize,
        succeeded: bool,
    ) -> Option<Noted> {
        let Stopwatch { ledger, chosen, function, due, begun, counted, together } = stopwatch?;
        let ended = clock::now();
        counters::called(counted, ended.saturating_sub(begun));
        drop(together);
        let noted = ledger.and_then(|ledger| {
            let timed = if chosen {
                ledger.timed(budget(), function, begun, ended, due.is_some())
            } else {
                ledger.timed_besides(budget(), function, begun, ended)
            };
            note_place(ledger, &timed, function, caller, ended)
        });
        if let Some(due) = due {
            due.took(begun, ended.saturating_sub(begun), succeeded);
        }
        noted
    }
}

/// Records where a call came from that was timed.
#[inline]
fn note_place(
    ledger: &'static Ledger,
    timed: &Timed,
    function: Function,
    caller: usize,
    ended: u64,
) -> Option<Noted> {
    openmp::in_mpi(timed.ticks, timed.weight);
    let noted = (timed.number > 0)
        .then(|| sites::note(ledger, function, caller, (timed.ticks, timed.weight)))
        .flatten();
    let looked = noted.is_some_and(|noted| noted.looked);
    if timed.looked {
        budget().looked(clock::now().saturating_sub(ended) as f64);
    } else if timed.number % MEASURED_EVERY == MEASURED_EVERY / 2
        && !budget().is_unlimited()
        && !looked
    {
        // Never the first, which allocates memory.
        budget().learn_after(clock::now().saturating_sub(ended) as f64);
    }
    noted
}

/// Samples variables, and saves what is known, if either is due. Returns when that was done.
#[cold]
fn look(samples: bool, begun: u64) -> u64 {
    let mut ended = begun;
    if samples {
        contain("sampling", || run::sample(begun));
        ended = clock::now();
        budget().sampled(ended.saturating_sub(begun));
    }
    if run::is_snapshot_due(ended) {
        contain("writing the live file", || run::snapshot(ended));
        ended = clock::now();
    }
    ended
}
