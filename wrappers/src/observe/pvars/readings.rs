//! The readings of one variable while the program ran: extremes, means, a histogram, times in states.

use std::mem;

use gyan_results::{Datatype, Item, Number, SampledSum, Samples, StateShare};

use crate::calls::budget;
use crate::calls::estimate::bar;
use crate::sys::clock;

/// Bars of a histogram: the last begins at 2^63.
const BARS: usize = 65;
/// The first reading is not taken to be more costly than this: what it takes beyond that is an interruption.
const FIRST_AT_MOST_S: f64 = 5e-6;
/// After this many failed readings in a row a variable is not tried again.
const FAILURES_AT_MOST: u8 = 3;

pub(super) struct SampleState {
    /// The time at which it is read next.
    pub(super) due: u64,
    /// Ticks that a reading takes.
    pub(super) cost: f64,
    failures: u8,
    /// Since the last change of phase.
    current: Accumulated,
    /// Before that, excluding time with gyan switched off.
    total: Option<Box<Accumulated>>,
    /// Since the last record of the series.
    cell: Cell,
    /// Names of the states of a STATE variable.
    states: Option<Box<[Item]>>,
    /// The buffer for the next reading.
    pub(super) words: Vec<u64>,
    last: Last,
}

/// The last reading, which is accounted for only when a different one comes: most readings equal the one
/// before.
#[derive(Default)]
struct Last {
    words: Vec<u64>,
    /// How often it was read but not accounted for.
    repeats: u64,
    /// When it was first read or last accounted for, and when it was last read.
    since: u64,
    seen: u64,
}

/// The digest of many readings.
#[derive(Clone, Debug, Default)]
pub(super) struct Accumulated {
    n: u64,
    /// For each element; empty for a single one, and for more than the limit.
    elements: Vec<Extent>,
    /// For the sum over the elements.
    sum: Option<Extent>,
    histogram: Option<Box<[u32; BARS]>>,
    /// Ticks in each state.
    states: Vec<(i128, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Extent {
    min: Number,
    max: Number,
    sum: f64,
}

/// The readings in one interval of a series, for the sum over the elements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cell {
    pub(super) n: u32,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) sum: f64,
}

impl Extent {
    /// A value that was read several times.
    fn from_number(number: Number, times: u64) -> Extent {
        Extent { min: number, max: number, sum: number.as_f64() * times as f64 }
    }

    fn add(&mut self, other: &Extent) {
        if other.min.compare(self.min).is_lt() {
            self.min = other.min;
        }
        if other.max.compare(self.max).is_gt() {
            self.max = other.max;
        }
        self.sum += other.sum;
    }
}

impl Cell {
    pub(super) fn add(&mut self, other: &Cell) {
        if self.n == 0 {
            *self = *other;
        } else if other.n > 0 {
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
            self.sum += other.sum;
            self.n = self.n.saturating_add(other.n);
        }
    }
}

impl SampleState {
    /// `states`: the names of the states of a STATE variable.
    pub(super) fn new(states: Option<Vec<Item>>) -> SampleState {
        SampleState {
            due: 0,
            cost: 0.0,
            failures: 0,
            current: Accumulated::default(),
            total: None,
            cell: Cell::default(),
            states: states.map(Vec::into_boxed_slice),
            words: Vec::new(),
            last: Last::default(),
        }
    }

    /// Processes the reading in `words` at `now`; `limit`: the most elements that are kept one by one.
    #[inline]
    pub(super) fn take(&mut self, datatype: Datatype, count: usize, limit: usize, now: u64) {
        self.failures = 0;
        let words = (count * datatype.size()).div_ceil(size_of::<u64>());
        if self.words.get(..words) != Some(&self.last.words) {
            self.settle(datatype, count, limit, now);
            self.last.words.clear();
            self.last.words.reserve_exact(words);
            self.last.words.extend(self.words.iter().take(words));
            self.last.since = now;
        }
        self.last.repeats += 1;
        self.last.seen = now;
    }

    /// Accounts for the last value, as often as it was read. It stands for the time until `now`.
    pub(super) fn settle(&mut self, datatype: Datatype, count: usize, limit: usize, now: u64) {
        let Accumulated { n, elements, sum, histogram, states } = &mut self.current;
        let each = 1 < count && count <= limit.max(1);
        let mut whole: Option<Number> = None;
        for index in 0..count {
            let Some(number) = element(datatype, &self.last.words, index) else { break };
            if each && self.last.repeats > 0 {
                let extent = Extent::from_number(number, self.last.repeats);
                match elements.get_mut(index) {
                    Some(known) => known.add(&extent),
                    None => elements.push(extent),
                }
            }
            whole = Some(whole.map_or(number, |whole| whole.plus(number)));
        }
        let Some(whole) = whole else { return };
        if let (Some(_), Number::Integer(state)) = (&self.states, whole) {
            let ticks = now.wrapping_sub(self.last.since);
            if ticks > 0 {
                add_state(states, state, ticks);
            }
            self.last.since = now;
        }
        let repeats = std::mem::take(&mut self.last.repeats);
        if repeats == 0 {
            return;
        }
        *n += repeats;
        let extent = Extent::from_number(whole, repeats);
        match sum {
            Some(known) => known.add(&extent),
            None => *sum = Some(extent),
        }
        let value = whole.as_f64();
        let times = u32::try_from(repeats).unwrap_or(u32::MAX);
        let bars = histogram.get_or_insert_with(|| Box::new([0; BARS]));
        if let Some(bar) = bars.get_mut(bar(value).min(BARS - 1)) {
            *bar = bar.saturating_add(times);
        }
        self.cell.add(&Cell { n: times, min: value, max: value, sum: value * repeats as f64 });
    }

    /// When it was last read.
    pub(super) fn seen(&self) -> u64 {
        self.last.seen
    }

    /// A reading took `ticks`.
    pub(super) fn cost(&mut self, ticks: f64) {
        let is_first = self.cost <= 0.0;
        let ticks = if is_first { ticks.min(clock::ticks(FIRST_AT_MOST_S)) } else { ticks };
        self.cost = budget::learned(self.cost, ticks);
    }

    /// It is not read again within the next `ticks`.
    pub(super) fn put_off(&mut self, now: u64, ticks: f64) {
        if self.due != u64::MAX {
            self.due = now.saturating_add(clock::whole(ticks));
        }
    }

    /// A reading failed. Returns whether to give up.
    pub(super) fn failed(&mut self) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.failures < FAILURES_AT_MOST {
            return false;
        }
        self.due = u64::MAX;
        true
    }

    /// The readings since the last time. Call after [`settle`](Self::settle).
    pub(super) fn take_cell(&mut self) -> Cell {
        mem::take(&mut self.cell)
    }

    /// A phase ends: its readings, if there were any. Call after [`settle`](Self::settle). `counts`: it counts
    /// for the whole run.
    pub(super) fn end_phase(&mut self, counts: bool) -> Option<Accumulated> {
        if self.current.n == 0 {
            return None;
        }
        let current = mem::take(&mut self.current);
        if counts {
            self.total.get_or_insert_default().add(&current);
        }
        Some(current)
    }

    /// The readings of the whole run up to the last [`end_phase`](Self::end_phase).
    pub(super) fn samples(&self) -> Option<Samples> {
        self.total.as_ref()?.samples(self.names())
    }

    pub(super) fn names(&self) -> &[Item] {
        self.states.as_deref().unwrap_or_default()
    }
}

fn element(datatype: Datatype, words: &[u64], index: usize) -> Option<Number> {
    // The sizes divide that of a word.
    let offset = index * datatype.size();
    let bytes = words.get(offset / 8)?.to_ne_bytes();
    datatype.decode(bytes.get(offset % 8..)?)
}

fn add_state(states: &mut Vec<(i128, u64)>, state: i128, ticks: u64) {
    match states.iter_mut().find(|(known, _)| *known == state) {
        Some((_, known)) => *known += ticks,
        None => states.push((state, ticks)),
    }
}

impl Accumulated {
    pub(super) fn add(&mut self, other: &Accumulated) {
        if self.n == 0 {
            self.clone_from(other);
            return;
        }
        self.n += other.n;
        for (own, other) in self.elements.iter_mut().zip(&other.elements) {
            own.add(other);
        }
        if let (Some(own), Some(other)) = (&mut self.sum, &other.sum) {
            own.add(other);
        }
        match (&mut self.histogram, &other.histogram) {
            (Some(own), Some(other)) => {
                for (own, other) in own.iter_mut().zip(other.iter()) {
                    *own = own.saturating_add(*other);
                }
            }
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
        for (state, ticks) in &other.states {
            add_state(&mut self.states, *state, *ticks);
        }
    }

    /// The bars up to the last that is not 0.
    fn bars(&self) -> Vec<u64> {
        let bars = self.histogram.as_deref().map_or(&[][..], |bars| &bars[..]);
        let len = bars.iter().rposition(|bar| *bar > 0).map_or(0, |last| last + 1);
        bars.iter().take(len).map(|bar| u64::from(*bar)).collect()
    }

    /// In the form of the profile; none when there is no reading.
    pub(super) fn samples(&self, names: &[Item]) -> Option<Samples> {
        let sum = self.sum?;
        let n = self.n as f64;
        let mean = |extent: &Extent| Number::Double(extent.sum / n);
        let is_scalar = self.elements.is_empty();
        let extents = if is_scalar { std::slice::from_ref(&sum) } else { &self.elements };
        let in_states: u64 = self.states.iter().map(|(_, ticks)| ticks).sum();
        let states = self.states.iter().map(|(state, ticks)| StateShare {
            state: names
                .iter()
                .find(|item| i128::from(item.value) == *state)
                .map_or_else(|| state.to_string(), |item| item.name.clone()),
            share: *ticks as f64 / in_states.max(1) as f64,
        });
        Some(Samples {
            n: self.n,
            min: extents.iter().map(|extent| extent.min).collect(),
            mean: extents.iter().map(mean).collect(),
            max: extents.iter().map(|extent| extent.max).collect(),
            sum: (!is_scalar).then(|| SampledSum { min: sum.min, mean: mean(&sum), max: sum.max }),
            histogram: self.bars(),
            states: states.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SampleState {
        fn ended(&mut self, counts: bool) -> Option<Accumulated> {
            self.settle(Datatype::UnsignedLong, self.words.len(), 64, self.seen());
            self.end_phase(counts)
        }

        fn whole(&mut self) -> Samples {
            self.ended(true);
            self.samples().unwrap()
        }
    }

    fn watch(readings: &[(&[u64], u64)], states: Option<Vec<Item>>) -> SampleState {
        let mut watch = SampleState::new(states);
        for (words, now) in readings {
            watch.words = words.to_vec();
            watch.take(Datatype::UnsignedLong, words.len(), 64, *now);
        }
        watch
    }

    #[test]
    fn a_scalar_keeps_extremes_mean_and_histogram() {
        let samples = watch(&[(&[3], 1), (&[0], 2), (&[9], 3)], None).whole();
        assert_eq!(samples.n, 3);
        assert_eq!(samples.min, [Number::Integer(0)]);
        assert_eq!(samples.mean, [Number::Double(4.0)]);
        assert_eq!(samples.max, [Number::Integer(9)]);
        assert_eq!(samples.histogram, [1, 0, 1, 0, 1]);
        assert_eq!(samples.sum, None);
    }

    #[test]
    fn a_vector_keeps_each_element_and_the_sum() {
        let samples = watch(&[(&[1, 5], 1), (&[3, 0], 2)], None).whole();
        assert_eq!(samples.max, [Number::Integer(3), Number::Integer(5)]);
        let sum = samples.sum.unwrap();
        assert_eq!((sum.min, sum.max), (Number::Integer(3), Number::Integer(6)));
        assert_eq!(sum.mean, Number::Double(4.5));
    }

    #[test]
    fn each_reading_of_a_state_stands_for_the_time_until_the_next() {
        let names =
            vec![Item { value: 0, name: "idle".into() }, Item { value: 1, name: "busy".into() }];
        let readings: &[(&[u64], u64)] = &[(&[0], 100), (&[1], 130), (&[1], 150), (&[7], 200)];
        let samples = watch(readings, Some(names)).whole();
        assert_eq!(samples.n, 4);
        let shares: Vec<(&str, f64)> =
            samples.states.iter().map(|state| (state.state.as_str(), state.share)).collect();
        assert_eq!(shares, [("idle", 0.3), ("busy", 0.7)]);
    }

    #[test]
    fn a_phase_that_does_not_count_is_no_part_of_the_whole() {
        let mut watch = watch(&[(&[3], 1)], None);
        assert_eq!(watch.ended(true).unwrap().n, 1);
        watch.words = vec![100];
        watch.take(Datatype::UnsignedLong, 1, 64, 2);
        assert_eq!(watch.ended(false).unwrap().n, 1);
        assert_eq!(watch.samples().unwrap().max, [Number::Integer(3)]);
        watch.words = vec![4];
        watch.take(Datatype::UnsignedLong, 1, 64, 3);
        let whole = watch.whole();
        assert_eq!((whole.n, whole.max[0]), (2, Number::Integer(4)));
    }

    #[test]
    fn a_hundred_scalars_take_less_than_64_kib() {
        let mut watch = watch(&[(&[u64::MAX], 1)], None);
        watch.settle(Datatype::UnsignedLong, 1, 64, 1);
        watch.words.resize(9, 0);
        let words = watch.words.capacity() + watch.last.words.capacity();
        let heap = size_of::<[u32; BARS]>() + words * size_of::<u64>();
        assert!(
            100 * (size_of::<SampleState>() + heap) <= 64 * 1024,
            "{}",
            size_of::<SampleState>() + heap
        );
    }
}
