//! A rank that lacks a row counts as 0 in it: who lacked it, found while parts of a run are merged
//! in any order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::wire::{Numbers, pairs};
use crate::{Statistic, Statistics};

/// The ranks that lack a row, of which the lowest has to be known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Absence {
    lowest: Option<u32>,
}

impl Absence {
    pub(super) fn on(&mut self, rank: u32) {
        self.lowest = Some(self.lowest.map_or(rank, |lowest| lowest.min(rank)));
    }

    pub(super) fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.optional(&mut self.lowest, u32::min);
    }

    pub(super) fn merge(&mut self, other: Absence) {
        if let Some(rank) = other.lowest {
            self.on(rank);
        }
    }

    /// `statistics` with a 0 for each of the ranks that lack the row.
    pub(super) fn finish(self, mut statistics: Statistics, absent: u64) -> Option<Statistic> {
        if let Some(lowest) = self.lowest {
            statistics.merge(&Statistics::of_zeros(absent, lowest));
        }
        statistics.finish()
    }
}

/// A row that a rank can lack.
pub(super) trait Row {
    /// Takes in the same row of other ranks.
    fn merge(&mut self, other: Self);
    /// Notes that ranks lack it, of which `lowest` is the lowest.
    fn absent_on(&mut self, lowest: u32);
    /// Its numbers, one after the other.
    fn numbers(&mut self, numbers: &mut Numbers);
}

/// Rows of some ranks, by name or another key.
#[derive(Debug, Deserialize, Serialize)]
#[serde(bound(
    serialize = "K: Serialize, R: Serialize",
    deserialize = "K: Deserialize<'de> + Ord, R: Deserialize<'de>"
))]
pub(super) struct Rows<R, K = String> {
    #[serde(with = "pairs")]
    rows: BTreeMap<K, R>,
    /// The lowest rank that was looked at for them.
    #[serde(skip)]
    lowest_rank: u32,
}

impl<R: Row, K: Ord> Rows<R, K> {
    pub(super) fn of(rank: u32, rows: impl IntoIterator<Item = (K, R)>) -> Rows<R, K> {
        Rows { rows: rows.into_iter().collect(), lowest_rank: rank }
    }

    pub(super) fn absent_on(&mut self, lowest: u32) {
        self.rows.values_mut().for_each(|row| row.absent_on(lowest));
        self.lowest_rank = self.lowest_rank.min(lowest);
    }

    pub(super) fn merge(&mut self, other: Rows<R, K>) {
        for (name, row) in &mut self.rows {
            if !other.rows.contains_key(name) {
                row.absent_on(other.lowest_rank);
            }
        }
        for (name, mut row) in other.rows {
            if let Some(own) = self.rows.get_mut(&name) {
                own.merge(row);
            } else {
                row.absent_on(self.lowest_rank);
                self.rows.insert(name, row);
            }
        }
        self.lowest_rank = self.lowest_rank.min(other.lowest_rank);
    }

    pub(super) fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.word(&mut self.lowest_rank, u32::min);
        self.rows.values_mut().for_each(|row| row.numbers(numbers));
    }

    pub(super) fn finish(self) -> impl Iterator<Item = (K, R)> {
        self.rows.into_iter()
    }
}
