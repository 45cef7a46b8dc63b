//! Which part of the run does the timeline record? Outside of it calls take the fast path.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use gyan_results::TimelineSelection;

use crate::calls::gate;
use crate::config::TimelineWindow;
use crate::sys::clock;

/// Why nothing is recorded: a bit for each reason; 0 while calls are recorded.
static OUTSIDE: AtomicU8 = AtomicU8::new(NOT_BEGUN);
const NOT_BEGUN: u8 = 1;
const OUT_OF_WINDOW: u8 = 2;
const OUT_OF_PHASE: u8 = 4;

/// When the window opens and closes, in ticks; never if there is none.
static OPENS: AtomicU64 = AtomicU64::new(u64::MAX);
static CLOSES: AtomicU64 = AtomicU64::new(u64::MAX);

/// What the user asked for.
static ASKED: OnceLock<TimelineSelection> = OnceLock::new();

/// There is memory for events: from now on they are recorded in the `window`, which counts from now, and inside of the `phase`.
/// `slowest`: how many of the slowest iterations are kept, if not the latest calls.
pub(crate) fn begin(window: Option<TimelineWindow>, phase: Option<&str>, slowest: Option<usize>) {
    let now = clock::now();
    let after = |seconds| now.saturating_add(clock::whole(clock::ticks(seconds)));
    let mut outside = 0;
    if let Some(TimelineWindow { from, length }) = window {
        OPENS.store(after(from.as_secs_f64()), Ordering::Relaxed);
        CLOSES.store(after((from + length).as_secs_f64()), Ordering::Relaxed);
        outside |= if from.is_zero() { 0 } else { OUT_OF_WINDOW };
    }
    if phase.is_some() {
        outside |= OUT_OF_PHASE;
    }
    if window.is_some() || phase.is_some() || slowest.is_some() {
        let window_s =
            window.map(|window| [window.from.as_secs_f64(), window.length.as_secs_f64()]);
        let slowest = slowest.and_then(|number| u32::try_from(number).ok());
        let asked = TimelineSelection { window_s, phase: phase.map(str::to_owned), slowest };
        _ = ASKED.set(asked);
    }
    OUTSIDE.store(outside, Ordering::Relaxed);
    gate::record_all(outside == 0);
}

/// What the user asked for; none for the latest calls.
pub(crate) fn asked() -> Option<TimelineSelection> {
    ASKED.get().cloned()
}

/// Whether calls are recorded now.
#[inline]
pub(crate) fn is_on() -> bool {
    OUTSIDE.load(Ordering::Relaxed) == 0
}

/// A call is about to be timed: opens the window if it is time.
#[inline]
pub(crate) fn opens(now: u64) {
    if now >= OPENS.load(Ordering::Relaxed) {
        OPENS.store(u64::MAX, Ordering::Relaxed);
        if now < CLOSES.load(Ordering::Relaxed) {
            inside(OUT_OF_WINDOW);
        }
    }
}

/// Whether a call is recorded that has ended; closes the window if it is time.
#[inline]
pub(crate) fn takes(begun: u64, ended: u64) -> bool {
    let closes = CLOSES.load(Ordering::Relaxed);
    if ended >= closes {
        outside(OUT_OF_WINDOW);
    }
    begun < closes
}

/// What follows from a change of the phase for the phase inside of which calls are recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PhasePass {
    /// It begins before the event of the change.
    Begins,
    /// It ends after that.
    Ends,
}

/// The program goes on in the phase `name`; `record` leaves the event of that, and `pass` hears if a pass begins or ends through the
/// phase inside of which calls are recorded.
pub(crate) fn phase_changes(name: &str, record: impl FnOnce(), pass: impl FnOnce(PhasePass)) {
    let wanted = ASKED.get().and_then(|asked| asked.phase.as_deref());
    let Some(wanted) = wanted else { return record() };
    if is_within(name, wanted) {
        if inside(OUT_OF_PHASE) {
            pass(PhasePass::Begins);
        }
        record();
    } else {
        record();
        if outside(OUT_OF_PHASE) {
            pass(PhasePass::Ends);
        }
    }
}

/// Whether a phase, with the names that it is in, is the wanted one or inside of it.
fn is_within(name: &str, wanted: &str) -> bool {
    format!("/{name}/").contains(&format!("/{wanted}/"))
}

/// The reason is gone. Returns whether it was there.
#[cold]
fn inside(reason: u8) -> bool {
    let before = OUTSIDE.fetch_and(!reason, Ordering::Relaxed);
    if before == reason {
        gate::record_all(true);
    }
    before & reason != 0
}

/// There is a reason. Returns whether it was not there.
#[cold]
fn outside(reason: u8) -> bool {
    let before = OUTSIDE.fetch_or(reason, Ordering::Relaxed);
    if before == 0 {
        gate::record_all(false);
    }
    before & reason == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_within_itself_and_those_around_it() {
        for wanted in ["step", "step/exchange", "exchange"] {
            assert!(is_within("step/exchange", wanted), "{wanted}");
        }
        for other in ["", "steps", "st", "one step", "exchange"] {
            assert!(!is_within(other, "step"), "{other}");
        }
        assert!(is_within("level 3/step", "level 3"));
    }
}
