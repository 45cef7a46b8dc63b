//! The calls of one function over ranks.

use serde::{Deserialize, Serialize};

use super::absence::{Absence, Row, Rows};
use super::merge::merge_fields;
use crate::{Call, CallSummary, Number, Statistics};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct CallReduction {
    count: Statistics,
    bytes: Option<Statistics>,
    timed: u64,
    time_s: Option<Statistics>,
    /// The sum of the standard errors, not of their squares: what ranks wait for each other is outside of the sample of all
    /// of them. NaN, which stays NaN in every sum, when a rank knows a time but not its error.
    time_error: f64,
    time_max_s: Option<Statistics>,
    time_histogram: Vec<u64>,
    size_histogram: Vec<u64>,
    size_histogram_bytes: Vec<u64>,
    absence: Absence,
}

merge_fields! {
    CallReduction {
        count, bytes, timed, time_s, time_error, time_max_s, time_histogram, size_histogram,
        size_histogram_bytes, absence,
    }
}

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
        let Call {
            name: _,
            count,
            bytes,
            timed,
            time_s,
            time_error_s,
            time_max_s,
            time_histogram,
            size_histogram,
            size_histogram_bytes,
        } = call;
        let error = time_s.map_or(0.0, |_| time_error_s.unwrap_or(f64::NAN));
        self.time_histogram.clone_from(time_histogram);
        self.size_histogram.clone_from(size_histogram);
        self.size_histogram_bytes.clone_from(size_histogram_bytes);
        *self = CallReduction {
            count: integer(*count),
            bytes: bytes.map(integer),
            timed: *timed,
            time_s: time_s.map(double),
            time_error: error,
            time_max_s: time_max_s.map(double),
            time_histogram: std::mem::take(&mut self.time_histogram),
            size_histogram: std::mem::take(&mut self.size_histogram),
            size_histogram_bytes: std::mem::take(&mut self.size_histogram_bytes),
            absence: Absence::default(),
        };
    }

    #[inline]
    pub(super) fn finish(self, name: String, reduced: u64) -> Option<CallSummary> {
        let CallReduction {
            count,
            bytes,
            timed,
            time_s,
            time_error,
            time_max_s,
            time_histogram,
            size_histogram,
            size_histogram_bytes,
            absence,
        } = self;
        let absent = reduced.saturating_sub(count.ranks());
        let with_absent = |statistics| absence.finish(statistics, absent);
        let time_s = time_s.and_then(with_absent);
        let error = Some(time_error).filter(|error| error.is_finite());
        Some(CallSummary {
            name,
            count: with_absent(count)?,
            bytes: bytes.and_then(with_absent),
            timed,
            time_error_s: time_s.as_ref().and(error),
            time_s,
            time_max_s: time_max_s.and_then(|longest| longest.finish()),
            time_histogram,
            size_histogram,
            size_histogram_bytes,
        })
    }
}

impl Row for CallReduction {
    fn absent_on(&mut self, lowest: u32) {
        self.absence.on(lowest);
    }
}
