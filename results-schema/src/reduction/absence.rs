//! A rank that lacks a row counts as 0 in it. Finds the ranks that lack a row while parts of a run are merged
//! in any order.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::merge::Merge;
use super::sorted::Sorted;
use crate::{Statistic, Statistics};

/// The lowest of the ranks that lack a row.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Absence {
    lowest: Option<u32>,
}

impl Absence {
    pub(super) fn on(&mut self, rank: u32) {
        self.lowest = Some(self.lowest.map_or(rank, |lowest| lowest.min(rank)));
    }

    /// `statistics` with a 0 for each of the ranks that lack the row.
    pub(super) fn finish(self, mut statistics: Statistics, absent: u64) -> Option<Statistic> {
        if let Some(lowest) = self.lowest {
            statistics.merge(&Statistics::of_zeros(absent, lowest));
        }
        statistics.finish()
    }
}

impl Merge for Absence {
    fn absorb(&mut self, other: &Absence) {
        if let Some(rank) = other.lowest {
            self.on(rank);
        }
    }
}

/// A row that a rank can lack.
pub(super) trait Row: Clone + Default + Merge {
    /// Records that some ranks lack it; the lowest of them is `lowest`.
    fn absent_on(&mut self, lowest: u32);
}

/// Rows of some ranks, by name or another key.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound(
    serialize = "K: Serialize, R: Serialize",
    deserialize = "K: Deserialize<'de> + Ord, R: Deserialize<'de>"
))]
pub(super) struct Rows<R, K = String> {
    rows: Sorted<K, R>,
    /// The lowest rank whose rows were taken in.
    lowest_rank: u32,
}

impl<R, K> Default for Rows<R, K> {
    fn default() -> Rows<R, K> {
        Rows { rows: Sorted::default(), lowest_rank: 0 }
    }
}

impl<R: Row, K: Clone + Ord> Rows<R, K> {
    /// Makes these the rows of `rank`: `set` fills each one under its key, which `compare` orders against
    /// the key of a row.
    pub(super) fn set<T>(
        &mut self,
        rank: u32,
        rows: impl IntoIterator<Item = T>,
        compare: impl Fn(&K, &T) -> Ordering,
        key: impl Fn(&T) -> K,
        mut set: impl FnMut(&mut R, T),
    ) {
        self.lowest_rank = rank;
        self.rows.clear();
        for row in rows {
            if let Some((_, own)) = self.rows.row(
                |key| compare(key, &row).is_eq(),
                |key| compare(key, &row),
                || key(&row),
            ) {
                set(own, row);
            }
        }
    }

    pub(super) fn absent_on(&mut self, lowest: u32) {
        self.rows.values_mut().for_each(|row| row.absent_on(lowest));
        self.lowest_rank = self.lowest_rank.min(lowest);
    }

    pub(super) fn finish(self) -> impl Iterator<Item = (K, R)> {
        self.rows.into_rows()
    }
}

impl<R: Row, K: Clone + Ord> Merge for Rows<R, K> {
    fn absorb(&mut self, other: &Rows<R, K>) {
        let Rows { rows, lowest_rank: others } = other;
        let (own, others) = (self.lowest_rank, *others);
        self.rows.merge_with(rows, |row| row.absent_on(others), |row| row.absent_on(own));
        self.lowest_rank = own.min(others);
    }
}
