//! The calls of one function over ranks.

use super::absence::{Absence, Row, Rows};
use super::merge_option;
use super::wire::{Numbers, all_numbers};
use crate::{Call, CallSummary, Number, Statistics, add_histogram};

#[derive(Clone, Debug, Default)]
pub(super) struct CallReduction {
    count: Statistics,
    bytes: Option<Statistics>,
    timed: u64,
    time_s: Option<Statistics>,
    /// The sum of the squared standard errors. NaN, which stays one in every sum, when a rank knows
    /// a time and not how sure it is.
    time_variance: f64,
    time_max_s: Option<Statistics>,
    time_histogram: Vec<u64>,
    absence: Absence,
}

all_numbers!(CallReduction);

impl CallReduction {
    /// The calls of `rank`.
    pub(super) fn of_rank<'a>(
        rows: &mut Rows<CallReduction>,
        calls: impl IntoIterator<Item = &'a Call>,
        rank: u32,
    ) {
        let compare = |name: &String, call: &&Call| name.cmp(&call.name);
        rows.set(rank, calls, compare, |call| call.name.clone(), |row, call| row.set(call, rank));
    }

    fn set(&mut self, call: &Call, rank: u32) {
        let integer = |number: u64| Statistics::of(Number::Integer(number.into()), rank);
        let double = |number: f64| Statistics::of(Number::Double(number), rank);
        let error = call.time_s.map_or(0.0, |_| call.time_error_s.unwrap_or(f64::NAN));
        self.count = integer(call.count);
        self.bytes = call.bytes.map(integer);
        self.timed = call.timed;
        self.time_s = call.time_s.map(double);
        self.time_variance = error * error;
        self.time_max_s = call.time_max_s.map(double);
        self.time_histogram.clone_from(&call.time_histogram);
        self.absence = Absence::default();
    }

    pub(super) fn finish(self, name: String, reduced: u64) -> Option<CallSummary> {
        let absent = reduced.saturating_sub(self.count.ranks());
        let with_absent = |statistics| self.absence.finish(statistics, absent);
        let time_s = self.time_s.and_then(with_absent);
        let error = Some(self.time_variance.sqrt()).filter(|error| error.is_finite());
        Some(CallSummary {
            name,
            count: with_absent(self.count)?,
            bytes: self.bytes.and_then(with_absent),
            timed: self.timed,
            time_error_s: time_s.as_ref().and(error),
            time_s,
            time_max_s: self.time_max_s.and_then(|longest| longest.finish()),
            time_histogram: self.time_histogram,
        })
    }
}

impl Row for CallReduction {
    fn merge(&mut self, other: &CallReduction) {
        self.count.merge(&other.count);
        merge_option(&mut self.bytes, other.bytes.as_ref());
        self.timed = self.timed.saturating_add(other.timed);
        merge_option(&mut self.time_s, other.time_s.as_ref());
        self.time_variance += other.time_variance;
        merge_option(&mut self.time_max_s, other.time_max_s.as_ref());
        add_histogram(&mut self.time_histogram, &other.time_histogram);
        self.absence.merge(other.absence);
    }

    fn absent_on(&mut self, lowest: u32) {
        self.absence.on(lowest);
    }

    fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.statistics(&mut self.count);
        numbers.optional_statistics(&mut self.bytes);
        numbers.count(&mut self.timed);
        numbers.optional_statistics(&mut self.time_s);
        numbers.word(&mut self.time_variance, |one, other| one + other);
        numbers.optional_statistics(&mut self.time_max_s);
        numbers.histogram(&mut self.time_histogram);
        self.absence.numbers(numbers);
    }
}
