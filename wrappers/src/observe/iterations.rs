//! Which iterations are worth keeping? The slowest ones, and a few that are drawn by lot, one of which is typical.
//!
//! An iteration lies between the ends of two calls of one collective operation on one communicator of all ranks, or is a pass
//! through a phase. Its events are in a ring of their own, and stay there if it is kept; otherwise the next one gets that ring.
//! Ranks do not ask each other: they agree on which operation that is, on the numbers of iterations, and on those that are drawn,
//! since all of these follow from the order of their calls. They need not agree on which are slow, so each keeps some more.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use gyan_results::{TimelineIteration, TimelineLabel};

use crate::config::SLOWEST_AT_MOST;
use crate::sys::cells::Counter;
use crate::sys::lookup::spread;
use crate::sys::ring::Rings;

/// Of which typical iterations are drawn: an odd number, so that one is in the middle.
const DRAWN: usize = 5;
/// How many more of the slowest ones a rank keeps than are shown.
const SPARE: usize = 2;
const RINGS_AT_MOST: usize = rings(SLOWEST_AT_MOST);

/// How many rings that needs, with one for the iteration that goes on.
pub(crate) const fn rings(slowest: usize) -> usize {
    slowest + SPARE + DRAWN + 1
}

/// An operation that has been called so often begins and ends iterations.
const CALLS: u64 = 3;
/// How many operations are counted; a power of two. Further ones are not.
const OPERATIONS: usize = 64;

static OPERATION: [BoundaryCalls; OPERATIONS] = [const { BoundaryCalls::new() }; OPERATIONS];
/// Where in these the one is that begins and ends iterations, plus 1; 0 for none.
static CHOSEN: AtomicU32 = AtomicU32::new(0);
/// None unless iterations are kept.
static KEPT: Mutex<Option<KeptIterations>> = Mutex::new(None);
/// How many ranks a communicator of all ranks has; 0 while no iterations are kept, or if they are passes through a phase.
static RANKS: AtomicU32 = AtomicU32::new(0);
static PHASE: AtomicU32 = AtomicU32::new(0);

/// How often an operation was called on a communicator.
struct BoundaryCalls {
    /// The function and the communicator; 0 for none.
    operation: AtomicU32,
    calls: Counter,
    /// How often since that many calls of the chosen one.
    since: Counter,
    chosen_calls: Counter,
}

impl BoundaryCalls {
    const fn new() -> BoundaryCalls {
        BoundaryCalls {
            operation: AtomicU32::new(0),
            calls: Counter::new(0),
            since: Counter::new(0),
            chosen_calls: Counter::new(0),
        }
    }

    /// That of a function on a communicator, and where it is; none if there is no room.
    fn find(function: u16, communicator: u16) -> Option<(usize, &'static BoundaryCalls)> {
        let wanted = u32::from(function) << 16 | u32::from(communicator);
        #[allow(clippy::cast_possible_truncation)]
        let begin = (spread(wanted as usize) >> (u64::BITS - OPERATIONS.ilog2())) as usize;
        for look in 0..OPERATIONS {
            let at = (begin + look) % OPERATIONS;
            let Some(place) = OPERATION.get(at) else { break };
            let is_new = || {
                place.operation.compare_exchange(0, wanted, Ordering::Relaxed, Ordering::Relaxed)
            };
            match place.operation.load(Ordering::Relaxed) {
                known if known == wanted => return Some((at, place)),
                0 if is_new().is_ok() => return Some((at, place)),
                _ => {}
            }
        }
        None
    }

    fn key(&self) -> (u16, u16) {
        let operation = self.operation.load(Ordering::Relaxed);
        ((operation >> 16) as u16, (operation & 0xffff) as u16)
    }

    /// Counts a call. Returns whether the one that was chosen, if there is one, is given up for this one: it was used while the
    /// program began.
    fn counts(&self, chosen: Option<&BoundaryCalls>) -> bool {
        let calls = self.calls.next() + 1;
        let Some(chosen) = chosen else { return calls >= CALLS };
        let of_chosen = chosen.calls.get();
        if self.chosen_calls.get() != of_chosen {
            self.chosen_calls.set(of_chosen);
            self.since.set(0);
        }
        self.since.next() + 1 > 2 * of_chosen + 10
    }
}

/// From now on iterations are kept. `ranks`: how many a communicator of all ranks has; none if iterations are passes through a phase.
pub(crate) fn begin(slowest: usize, ranks: Option<u32>) {
    if let Ok(mut kept) = KEPT.try_lock() {
        *kept = Some(KeptIterations::new(slowest.min(SLOWEST_AT_MOST)));
        RANKS.store(ranks.unwrap_or(0), Ordering::Relaxed);
    }
}

/// Whether calls of collective operations begin and end iterations.
#[inline]
pub(crate) fn are_between_calls() -> bool {
    RANKS.load(Ordering::Relaxed) != 0
}

/// A collective operation has ended at `now`, on a communicator with so many `ranks`; none if these are not known.
///
/// No two threads do so on one communicator at a time (MPI 4.1, 6.14).
pub(crate) fn operation_ended(
    rings: &Rings,
    function: u16,
    communicator: u16,
    ranks: Option<u32>,
    now: u64,
) {
    // Others are not called by all ranks, which have to agree.
    if ranks != Some(RANKS.load(Ordering::Relaxed)) {
        return;
    }
    let Some((at, operation)) = BoundaryCalls::find(function, communicator) else { return };
    let chosen = CHOSEN.load(Ordering::Relaxed);
    #[allow(clippy::cast_possible_truncation)]
    let own = at as u32 + 1;
    if own == chosen {
        let number = operation.calls.next() + 1;
        return change(|kept| {
            kept.ends(rings, number - 1, now);
            kept.begins(rings, number, now, Some(operation.key()));
        });
    }
    let chosen = (chosen as usize).checked_sub(1).and_then(|at| OPERATION.get(at));
    if operation.counts(chosen) {
        CHOSEN.store(own, Ordering::Relaxed);
        let number = operation.calls.get();
        change(|kept| {
            kept.forget(rings);
            kept.begins(rings, number, now, Some(operation.key()));
        });
    }
}

/// A pass through the phase begins.
pub(crate) fn pass_begins(rings: &Rings, now: u64) {
    if !are_between_calls() {
        change(|kept| kept.begins(rings, kept.label.iteration.number + 1, now, None));
    }
}

/// A pass through the phase has ended.
pub(crate) fn pass_ends(rings: &Rings, now: u64) {
    if !are_between_calls() {
        change(|kept| kept.ends(rings, kept.label.iteration.number, now));
    }
}

/// The program goes on in the phase with this number.
pub(crate) fn phase_changes(to: usize) {
    PHASE.store(u32::try_from(to).unwrap_or(0), Ordering::Relaxed);
}

/// Changes what is kept, unless another thread does so now: then an iteration is left out, as its number says.
fn change(change: impl FnOnce(&mut KeptIterations)) {
    if let Ok(mut kept) = KEPT.try_lock()
        && let Some(kept) = kept.as_mut()
    {
        change(kept);
    }
}

/// What is in each ring.
struct KeptIterations {
    slowest: usize,
    kept: [KeptRing; RINGS_AT_MOST],
    /// The ring of the iteration that goes on.
    current: usize,
    /// What that is labelled with; with number 0 none goes on.
    label: TimelineLabel,
    /// The number of the first one.
    first: u64,
}

/// What the iteration in a ring is kept for: nothing if the ring is free.
#[derive(Clone, Copy, Default)]
struct KeptRing {
    label: TimelineLabel,
    took: u64,
    is_slow: bool,
    /// Its place among those that were drawn.
    drawn: Option<usize>,
}

impl KeptIterations {
    fn new(slowest: usize) -> KeptIterations {
        KeptIterations {
            slowest,
            kept: [KeptRing::default(); RINGS_AT_MOST],
            current: 0,
            label: TimelineLabel::default(),
            first: 0,
        }
    }

    /// The numbers of all rings.
    fn rings(&self) -> std::ops::Range<usize> {
        0..rings(self.slowest)
    }

    /// The iteration with this number begins, in the current ring.
    fn begins(&mut self, rings: &Rings, number: u64, now: u64, between: Option<(u16, u16)>) {
        if self.first == 0 {
            self.first = number;
        }
        let phase = PHASE.load(Ordering::Relaxed);
        let iteration =
            TimelineIteration { number, begun_ticks: now, phase, ..TimelineIteration::default() };
        self.label = TimelineLabel { iteration, ended_before: number - self.first, between };
        rings.clear(self.current);
        rings.label(self.current, self.label.packed());
    }

    /// The iteration with this number has ended. Events go into another ring if it is kept.
    fn ends(&mut self, rings: &Rings, number: u64, now: u64) {
        let begun = self.label.iteration;
        if begun.number != number || begun.ended_ticks.is_some() || number == 0 {
            return;
        }
        self.label.iteration.ended_ticks = Some(now);
        let changed = self.keeps(now.saturating_sub(begun.begun_ticks));
        for ring in changed.into_iter().flatten().filter(|ring| *ring != self.current) {
            self.relabel(rings, ring);
        }
        self.relabel(rings, self.current);
        let free = |ring: &usize| self.kept.get(*ring).is_some_and(KeptRing::is_free);
        if let Some(next) = self.rings().find(free) {
            rings.clear(next);
            // If no other one begins, this says how many there were.
            let ended_before = self.label.ended_before + 1;
            let between = self.label.between;
            let so_far = TimelineLabel { ended_before, between, ..TimelineLabel::default() };
            rings.label(next, so_far.packed());
            rings.turn_to(next);
            self.current = next;
        }
    }

    /// Has memory say what a ring is kept for.
    fn relabel(&self, rings: &Rings, ring: usize) {
        match self.kept.get(ring) {
            Some(kept) if !kept.is_free() => {
                let mut label = kept.label;
                label.iteration.is_slow = kept.is_slow;
                label.iteration.is_drawn = kept.drawn.is_some();
                rings.label(ring, label.packed());
            }
            _ => rings.clear(ring),
        }
    }

    /// Keeps the current iteration if it is worth it, in place of others. Returns the rings that are no longer kept for the same.
    fn keeps(&mut self, took: u64) -> [Option<usize>; 2] {
        let number = self.label.iteration.number;
        let slow = self.kept.iter().enumerate().filter(|(_, kept)| kept.is_slow);
        let fastest = slow.clone().min_by_key(|(_, kept)| kept.took);
        let fastest = fastest.map(|(ring, kept)| (ring, kept.took));
        let has_room = slow.count() < self.slowest + SPARE;
        let is_slow = has_room || fastest.is_some_and(|(_, least)| took > least);
        let drawn = drawn(number - self.first);
        let loses_slow = fastest.filter(|_| is_slow && !has_room).map(|(ring, _)| ring);
        let loses_place =
            drawn.and_then(|place| self.kept.iter().position(|kept| kept.drawn == Some(place)));
        if let Some(kept) = loses_slow.and_then(|ring| self.kept.get_mut(ring)) {
            kept.is_slow = false;
        }
        if let Some(kept) = loses_place.and_then(|ring| self.kept.get_mut(ring)) {
            kept.drawn = None;
        }
        if let Some(kept) = self.kept.get_mut(self.current) {
            *kept = KeptRing { label: self.label, took, is_slow, drawn };
        }
        [loses_slow, loses_place]
    }

    /// Another operation begins and ends iterations from now on.
    fn forget(&mut self, rings: &Rings) {
        self.rings().filter(|ring| *ring != self.current).for_each(|ring| rings.clear(ring));
        let current = self.current;
        *self = KeptIterations { current, ..KeptIterations::new(self.slowest) };
    }
}

impl KeptRing {
    fn is_free(&self) -> bool {
        !self.is_slow && self.drawn.is_none()
    }
}

/// The place among those drawn that the iteration gets before which there were so many; none if it is not drawn. So each of
/// them is drawn with the same probability (Vitter's algorithm R).
fn drawn(before: u64) -> Option<usize> {
    let places = DRAWN as u64;
    let lot =
        if before < places { before } else { fastrand::Rng::with_seed(before).u64(0..=before) };
    usize::try_from(lot).ok().filter(|place| *place < DRAWN)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::sys::ring::{self, RingContent, WORDS};

    /// A rank whose iterations have these durations, from number 1 on; each leaves as many events as the last digit of its number.
    struct TestRank {
        rings: Rings,
        memory: &'static [AtomicU64],
        kept: KeptIterations,
        now: u64,
    }

    const ROOM: usize = 8;

    impl TestRank {
        fn new(slowest: usize) -> TestRank {
            let number = rings(slowest);
            let (rings, memory) = Rings::leaked(number * ROOM * WORDS * 8, number);
            TestRank { rings, memory, kept: KeptIterations::new(slowest), now: 1 }
        }

        fn does(&mut self, number: u64, took: u64) {
            self.kept.begins(&self.rings, number, self.now, None);
            (0..number % 10).for_each(|_| self.rings.push(true, [number; WORDS]));
            self.now += took;
            self.kept.ends(&self.rings, number, self.now);
        }

        /// The iterations in the memory, each with how long it took.
        fn seen(&self) -> Vec<(TimelineIteration, u64)> {
            let bytes = ring::bytes_of(self.memory);
            let seen = ring::contents(&bytes).filter_map(|content| {
                let RingContent { number, label, events } = content;
                let iteration = TimelineLabel::unpacked(label).iteration;
                // The events are those of this one.
                assert_eq!(number, iteration.number % 10);
                let (words, _) = events.as_chunks();
                let own = words.iter().take(WORDS * ROOM.min(usize::try_from(number).unwrap()));
                assert!(own.clone().all(|word| u64::from_ne_bytes(*word) == iteration.number));
                let took = iteration.ended_ticks? - iteration.begun_ticks;
                Some((iteration, took))
            });
            seen.collect()
        }

        fn numbers(&self, is_it: fn(&TimelineIteration) -> bool) -> BTreeSet<u64> {
            let seen = self.seen().into_iter().map(|(iteration, _)| iteration);
            seen.filter(is_it).map(|iteration| iteration.number).collect()
        }
    }

    #[test]
    fn the_slowest_are_kept_whatever_order_they_come_in() {
        let mut random = fastrand::Rng::with_seed(1);
        for slowest in [1, 3, 50] {
            for order in 0..12 {
                let mut durations: Vec<u64> = (1..=400).map(|rank| rank * 100).collect();
                match order {
                    0 => {}
                    1 => durations.reverse(),
                    _ => random.shuffle(&mut durations),
                }
                let mut rank = TestRank::new(slowest);
                for (number, took) in (1..).zip(&durations) {
                    rank.does(number, *took);
                    // What is in memory is what is known at any time.
                    if number % 7 == 0 || number < 70 || number == 400 {
                        let mut truth: Vec<(u64, u64)> =
                            durations.iter().copied().zip(1..=number).collect();
                        truth.sort_unstable();
                        let truth = truth.iter().rev().take(slowest + SPARE);
                        let truth: BTreeSet<u64> = truth.map(|(_, number)| *number).collect();
                        assert_eq!(rank.numbers(|of| of.is_slow), truth, "{order} {number}");
                    }
                }
                for (iteration, took) in rank.seen() {
                    let place = usize::try_from(iteration.number - 1).unwrap();
                    assert_eq!(took, durations[place]);
                }
            }
        }
    }

    #[test]
    fn ranks_draw_the_same_iterations_whatever_they_take() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut ranks: Vec<TestRank> = [1, 1, 4].into_iter().map(TestRank::new).collect();
        for number in 1..=3000 {
            for rank in &mut ranks {
                rank.does(number, random.u64(1..1000));
            }
            let [one, two, three] = [0, 1, 2].map(|rank| ranks[rank].numbers(|of| of.is_drawn));
            assert_eq!(one.len(), DRAWN.min(usize::try_from(number).unwrap()));
            assert!(one == two && two == three, "{number}");
        }
    }

    #[test]
    fn each_iteration_is_drawn_with_the_same_probability() {
        // As many runs of 1 to 4000 iterations: how often is the one drawn that is left in the first, second, ... fifth of them?
        let mut fifths = [0_u32; 5];
        let mut left: Vec<Option<u64>> = vec![None; DRAWN];
        for before in 0..4000 {
            if let Some(place) = drawn(before) {
                left[place] = Some(before);
            }
            for number in left.iter().flatten() {
                fifths[usize::try_from(number * 5 / (before + 1)).unwrap()] += 1;
            }
        }
        let all: u32 = fifths.iter().sum();
        // Neighbouring runs share most of what is drawn, so this is rough.
        for fifth in fifths {
            assert!((0.1..0.3).contains(&(f64::from(fifth) / f64::from(all))), "{fifths:?}");
        }
    }

    #[test]
    fn an_iteration_whose_begin_or_end_was_missed_is_left_out() {
        let mut rank = TestRank::new(1);
        rank.does(1, 10);
        // Another thread was at it when number 2 ended and number 3 began.
        rank.kept.begins(&rank.rings, 2, rank.now, None);
        rank.kept.ends(&rank.rings, 3, rank.now + 1000);
        rank.kept.begins(&rank.rings, 4, rank.now + 1000, None);
        rank.kept.ends(&rank.rings, 4, rank.now + 1020);
        let bytes = ring::bytes_of(rank.memory);
        let labels = ring::contents(&bytes).map(|content| TimelineLabel::unpacked(content.label));
        let seen: BTreeSet<_> = labels
            .filter(|label| label.iteration.number > 0)
            .map(|label| (label.iteration.number, label.ended_before))
            .collect();
        assert_eq!(seen, BTreeSet::from([(1, 0), (4, 3)]));
    }

    #[test]
    fn the_operation_that_is_called_again_and_again_begins_iterations() {
        let (all, memory) = Rings::leaked(1 << 16, rings(1));
        begin(1, Some(4));
        let now = &mut 0;
        let mut called = |function, communicator, ranks| {
            *now += 10;
            operation_ended(&all, function, communicator, Some(ranks), *now);
            let bytes = ring::bytes_of(memory);
            let labels =
                ring::contents(&bytes).map(|content| TimelineLabel::unpacked(content.label));
            let current = labels.filter(|label| label.iteration.ended_ticks.is_none());
            let current = current.max_by_key(|label| label.iteration.number).unwrap();
            (current.between, current.iteration.number, current.ended_before)
        };
        // Not all ranks call the first one.
        (0..10).for_each(|_| _ = called(1, 1, 2));
        (0..2).for_each(|_| assert_eq!(called(2, 1, 4), (None, 0, 0)));
        assert_eq!(called(3, 1, 4), (None, 0, 0));
        assert_eq!(called(2, 1, 4), (Some((2, 1)), 3, 0));
        assert_eq!(called(3, 1, 4), (Some((2, 1)), 3, 0));
        assert_eq!(called(2, 1, 4), (Some((2, 1)), 4, 1));
        // On another communicator it is another one. It takes over when it goes on without the first one.
        for _ in 0..18 {
            assert_eq!(called(2, 2, 4), (Some((2, 1)), 4, 1));
        }
        assert_eq!(called(2, 2, 4), (Some((2, 2)), 19, 0));
        assert_eq!(called(2, 2, 4), (Some((2, 2)), 20, 1));
        let bytes = ring::bytes_of(memory);
        let labels = ring::contents(&bytes).map(|content| TimelineLabel::unpacked(content.label));
        let mut others = labels.filter(|label| label.between.is_some());
        assert!(others.all(|label| label.between == Some((2, 2))), "what was kept is forgotten");
        RANKS.store(0, Ordering::Relaxed);
    }
}
