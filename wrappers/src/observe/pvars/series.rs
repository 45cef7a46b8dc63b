//! Sampled variables over the run: a record per interval, in bounded memory. When memory is full, the older
//! half of the records is merged into half as many, which cover equal parts of the time: the whole run stays
//! covered, older parts more coarsely.

use std::collections::BTreeMap;

use super::readings::Cell;
use crate::observe::objects::Object;

/// Records are not merged into fewer than this, however little room there is.
const RECORDS_AT_LEAST: usize = 8;

pub(super) struct Series {
    /// Ticks.
    pub(super) interval: u64,
    /// The time at which the interval is over.
    pub(super) next: u64,
    /// The time of the last record.
    pub(super) last: u64,
    begun: u64,
    room: usize,
    ends: Vec<u64>,
    columns: BTreeMap<Key, Vec<Cell>>,
}

/// A variable by index, and an object by order.
pub(super) type Key = (usize, usize);

/// The key of a variable that binds to `object`, or to nothing.
pub(super) fn key(index: usize, object: Option<&Object>) -> Key {
    (index, object.map_or(0, |object| object.order))
}

impl Series {
    /// Starts a series with a record for each `interval` from `now` on, in `room` bytes.
    pub(super) fn new(interval: u64, room: usize, now: u64) -> Series {
        Series {
            interval,
            next: now.saturating_add(interval),
            last: now,
            begun: now,
            room,
            ends: Vec::new(),
            columns: BTreeMap::new(),
        }
    }

    /// Ends an interval at `now`, with the readings of each variable in it.
    pub(super) fn record(&mut self, now: u64, cells: impl Iterator<Item = (Key, Cell)>) {
        self.next = now.saturating_add(self.interval);
        self.last = now;
        let before = self.ends.len();
        for (key, cell) in cells.filter(|(_, cell)| cell.n > 0) {
            let column = self.columns.entry(key).or_default();
            column.resize(before, Cell::default());
            column.push(cell);
        }
        self.ends.push(now);
        let records = self.ends.len();
        for column in self.columns.values_mut() {
            column.resize(records, Cell::default());
        }
        while self.ends.len() > RECORDS_AT_LEAST && self.bytes() > self.room {
            self.merge();
        }
    }

    /// These columns are not kept.
    pub(super) fn forget(&mut self, keys: &[Key]) {
        for key in keys {
            self.columns.remove(key);
        }
    }

    fn bytes(&self) -> usize {
        self.ends.len() * (size_of::<u64>() + self.columns.len() * size_of::<Cell>())
    }

    /// Merges the older half of the records into half as many, for equal parts of the time.
    fn merge(&mut self) {
        let older = self.ends.len() / 2;
        let Some(until) = self.ends.get(older.saturating_sub(1)) else { return };
        let part = until.wrapping_sub(self.begun) / (older as u64 / 2).max(1);
        let mut begun = self.begun;
        // Which records are the last of a new one.
        let mut last = Vec::with_capacity(older);
        for (at, end) in self.ends.iter().take(older).enumerate() {
            let is_last = at + 1 == older || end.wrapping_sub(begun) >= part;
            last.push(is_last);
            if is_last {
                begun = *end;
            }
        }
        merge(&mut self.ends, &last, |earlier, later| *earlier = *later);
        for column in self.columns.values_mut() {
            merge(column, &last, Cell::add);
        }
    }

    /// The ends of the intervals, and the columns, all of the same length.
    pub(super) fn columns(&self) -> (&[u64], impl Iterator<Item = (Key, &[Cell])>) {
        (&self.ends, self.columns.iter().map(|(key, column)| (*key, column.as_slice())))
    }
}

/// Merges the records up to each last one.
fn merge<T: Copy>(records: &mut Vec<T>, last: &[bool], add: impl Fn(&mut T, &T)) {
    let mut merged = Vec::with_capacity(last.len());
    let mut current: Option<T> = None;
    for (record, is_last) in records.iter().zip(last) {
        match &mut current {
            Some(current) => add(current, record),
            None => current = Some(*record),
        }
        if *is_last {
            merged.extend(current.take());
        }
    }
    records.splice(..last.len().min(records.len()), merged);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(value: f64) -> Cell {
        Cell { n: 1, min: value, max: value, sum: value }
    }

    #[test]
    fn a_long_run_stays_covered_within_its_room() {
        const ROOM: usize = 4096;
        let mut series = Series::new(10, ROOM, 0);
        for record in 1..=10_000_u64 {
            let cells = [((0, 0), cell(record as f64)), ((1, 0), cell(1.0))];
            series.record(record * 10, cells.into_iter());
        }
        assert!(series.bytes() <= ROOM && series.bytes() > ROOM / 2);
        let (ends, columns) = series.columns();
        assert!(ends.is_sorted() && ends.last() == Some(&100_000));
        for (_, column) in columns {
            assert_eq!(column.len(), ends.len());
            assert_eq!(column.iter().map(|cell| cell.n).sum::<u32>(), 10_000);
        }
        // The first half of the run has its share of the records, and the end has fine resolution.
        let half = ends.iter().filter(|end| **end <= 50_000).count();
        assert!(half >= ends.len() / 16, "{half} of {}", ends.len());
        assert!(ends[0] <= 25_000, "{}", ends[0]);
        assert_eq!(ends[ends.len() - 2], 99_990);
        let (_, mut columns) = series.columns();
        let (_, column) = columns.next().unwrap();
        assert!((column[0].min - 1.0).abs() < 1e-9);
        assert!((column.last().unwrap().max - 10_000.0).abs() < 1e-9);
        let sum: f64 = column.iter().map(|cell| cell.sum).sum();
        assert!((sum - 10_000.0 * 10_001.0 / 2.0).abs() < 1.0);
    }

    #[test]
    fn a_variable_that_comes_or_goes_has_gaps() {
        let mut series = Series::new(10, 4096, 0);
        series.record(10, [((0, 0), cell(1.0))].into_iter());
        series.record(20, [((1, 0), cell(2.0))].into_iter());
        let (_, columns) = series.columns();
        let n: Vec<Vec<u32>> =
            columns.map(|(_, column)| column.iter().map(|cell| cell.n).collect()).collect();
        assert_eq!(n, [[1, 0], [0, 1]]);
    }
}
