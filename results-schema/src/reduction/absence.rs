//! A rank that lacks a row counts as 0 in it. Finds the ranks that lack a row while parts of a run are merged
//! in any order.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::sorted::Sorted;
use crate::merge::{Absent, Merge};

/// A row that a rank can lack.
pub(super) trait Row: Clone + Default + Merge {
    /// Records in rows inside this one that some ranks lack it; the lowest of them is `lowest`.
    fn absent_on(&mut self, _lowest: u32) {}
}

/// A row, and the ranks that have it or lack it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Present<R> {
    row: R,
    ranks: u64,
    lowest_absent: Option<u32>,
}

impl<R: Row> Present<R> {
    fn absent_on(&mut self, lowest: u32) {
        self.lacks(lowest);
        self.row.absent_on(lowest);
    }

    fn lacks(&mut self, rank: u32) {
        self.lowest_absent = Some(self.lowest_absent.map_or(rank, |lowest| lowest.min(rank)));
    }
}

impl<R: Row> Merge for Present<R> {
    fn absorb(&mut self, other: &Present<R>) {
        self.row.absorb(&other.row);
        self.ranks += other.ranks;
        if let Some(lowest) = other.lowest_absent {
            self.lacks(lowest);
        }
    }
}

/// Rows of some ranks, by name or another key.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound(
    serialize = "K: Serialize, R: Serialize",
    deserialize = "K: Deserialize<'de> + Ord, R: Deserialize<'de>"
))]
pub(super) struct Rows<R, K = String> {
    rows: Sorted<K, Present<R>>,
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
                set(&mut own.row, row);
                (own.ranks, own.lowest_absent) = (1, None);
            }
        }
    }

    pub(super) fn absent_on(&mut self, lowest: u32) {
        self.rows.values_mut().for_each(|row| row.absent_on(lowest));
        self.lowest_rank = self.lowest_rank.min(lowest);
    }

    /// The rows, each with the ranks that lack it, of `ranks` in all.
    pub(super) fn finish(self, ranks: u64) -> impl Iterator<Item = (K, R, Absent)> {
        self.rows.into_rows().map(move |(key, Present { row, ranks: present, lowest_absent })| {
            let absent = |lowest| Absent { ranks: ranks.saturating_sub(present), lowest };
            (key, row, lowest_absent.map(absent).unwrap_or_default())
        })
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
