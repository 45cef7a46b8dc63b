//! Rows by key that are reused for one profile after another: a row that a profile lacks keeps its key and
//! its memory for the next profile that has it.
//!
//! Profiles of a job have nearly the same rows in the same order, so a row is looked up where the previous
//! profile had it, and two lists are merged side by side.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::de::Error;
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::merge::Merge;

/// How many consecutive rows a profile may lack before a row is searched for.
const STEPS: usize = 8;
/// Numbers for lists of keys. They guard no other data, so relaxed ordering will do.
static LISTS: AtomicU64 = AtomicU64::new(1);

#[derive(Clone, Debug)]
pub(super) struct Sorted<K, V> {
    /// By key, including those that are not here.
    rows: Vec<Slot<K, V>>,
    /// Where the rows are, in the order in which the latest profile gave them.
    trail: Vec<usize>,
    /// How far this profile has advanced along the trail.
    at: usize,
    /// The number of its list of keys: lists with the same number have the same keys in the same places.
    list: u64,
}

#[derive(Clone, Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    is_here: bool,
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Sorted<K, V> {
        Sorted { rows: Vec::new(), trail: Vec::new(), at: 0, list: 0 }
    }
}

/// A list of the rows that are here, each with its key.
impl<K: Serialize, V: Serialize> Serialize for Sorted<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.rows.iter().filter(|row| row.is_here);
        let mut list = serializer.serialize_seq(Some(rows.clone().count()))?;
        for row in rows {
            list.serialize_element(&(&row.key, &row.value))?;
        }
        list.end()
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for Sorted<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sorted<K, V>, D::Error> {
        let rows: Vec<(K, V)> = Vec::deserialize(deserializer)?;
        if !rows.is_sorted_by(|(one, _), (other, _)| one < other) {
            return Err(D::Error::custom("rows are not in order"));
        }
        let rows = rows.into_iter().map(|(key, value)| Slot { key, value, is_here: true });
        let list = LISTS.fetch_add(1, Relaxed);
        Ok(Sorted { rows: rows.collect(), list, ..Sorted::default() })
    }
}

impl<K, V> Sorted<K, V> {
    pub(super) fn clear(&mut self) {
        self.at = 0;
        for row in &mut self.rows {
            row.is_here = false;
        }
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.rows.iter_mut().filter(|row| row.is_here).map(|row| &mut row.value)
    }

    /// In their order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.rows.iter().filter(|row| row.is_here).map(|row| &row.key)
    }

    /// In the order of the keys.
    pub(super) fn into_rows(self) -> impl Iterator<Item = (K, V)> {
        self.rows.into_iter().filter(|row| row.is_here).map(|row| (row.key, row.value))
    }

    /// The row with the key that `is` and `compare` look for, and whether it was here before. A row that was
    /// not still holds the data of another profile. A missing row is created.
    #[inline]
    pub(super) fn row(
        &mut self,
        is: impl Fn(&K) -> bool,
        compare: impl Fn(&K) -> Ordering,
        key: impl FnOnce() -> K,
    ) -> Option<(bool, &mut V)>
    where
        V: Default,
    {
        // Rows that this profile lacks are skipped.
        let ahead = self.trail.iter().enumerate().skip(self.at).take(STEPS);
        let is_there = |at: usize| self.rows.get(at).is_some_and(|row| is(&row.key));
        let found = ahead.map(|(step, &at)| (step, at)).find(|(_, at)| is_there(*at));
        let (step, at) = match found {
            Some(found) => found,
            None => (self.at, self.find(&compare, key)),
        };
        self.at = step + 1;
        let slot = self.rows.get_mut(at)?;
        Some((std::mem::replace(&mut slot.is_here, true), &mut slot.value))
    }

    /// Searches beyond the trail, and repairs it.
    #[cold]
    fn find(&mut self, compare: &impl Fn(&K) -> Ordering, key: impl FnOnce() -> K) -> usize
    where
        V: Default,
    {
        let at = match self.rows.binary_search_by(|row| compare(&row.key)) {
            Ok(at) => at,
            Err(at) => {
                self.insert(at, key());
                at
            }
        };
        // Where rows have no order, it does not grow.
        let is_long = self.trail.len() > self.rows.len();
        match self.trail.get_mut(self.at) {
            Some(step) if is_long => *step = at,
            _ => self.trail.insert(self.at.min(self.trail.len()), at),
        }
        at
    }

    fn insert(&mut self, at: usize, key: K)
    where
        V: Default,
    {
        self.list = LISTS.fetch_add(1, Relaxed);
        self.rows.insert(at, Slot { key, value: V::default(), is_here: false });
        for step in &mut self.trail {
            *step += usize::from(*step >= at);
        }
    }
}

impl<K: Clone + Ord, V: Clone + Merge> Merge for Sorted<K, V> {
    fn absorb(&mut self, other: &Sorted<K, V>) {
        self.merge_with(other, |_| {}, |_| {});
    }
}

impl<K: Clone + Ord, V: Clone + Merge> Sorted<K, V> {
    /// Merges the rows of another. The closures handle a row that only this one has, and one that it now has
    /// from the other.
    pub(super) fn merge_with(
        &mut self,
        other: &Sorted<K, V>,
        mut own: impl FnMut(&mut V),
        mut taken: impl FnMut(&mut V),
    ) {
        if self.list == other.list {
            for (slot, theirs) in self.rows.iter_mut().zip(&other.rows) {
                match (slot.is_here, theirs.is_here) {
                    (true, true) => slot.value.absorb(&theirs.value),
                    (true, false) => own(&mut slot.value),
                    (false, true) => {
                        slot.take(&theirs.value);
                        taken(&mut slot.value);
                    }
                    (false, false) => {}
                }
            }
            return;
        }
        let mut at = 0;
        let mut new = Vec::new();
        for theirs in other.rows.iter().filter(|row| row.is_here) {
            let mut order = Ordering::Less;
            while let Some(slot) = self.rows.get_mut(at) {
                order = theirs.key.cmp(&slot.key);
                if order.is_le() {
                    break;
                }
                if slot.is_here {
                    own(&mut slot.value);
                }
                at += 1;
            }
            match self.rows.get_mut(at).filter(|_| order.is_eq()) {
                Some(slot) if slot.is_here => slot.value.absorb(&theirs.value),
                Some(slot) => {
                    slot.take(&theirs.value);
                    taken(&mut slot.value);
                }
                None => {
                    let mut slot = theirs.clone();
                    taken(&mut slot.value);
                    new.push(slot);
                    continue;
                }
            }
            at += 1;
        }
        let rest = self.rows.get_mut(at..).unwrap_or_default();
        rest.iter_mut().filter(|slot| slot.is_here).for_each(|slot| own(&mut slot.value));
        if !new.is_empty() {
            self.list = LISTS.fetch_add(1, Relaxed);
            let mut new = new.into_iter().peekable();
            let old = std::mem::take(&mut self.rows);
            self.rows.reserve(old.len() + new.len());
            for slot in old {
                while let Some(before) = new.next_if(|new| new.key < slot.key) {
                    self.rows.push(before);
                }
                self.rows.push(slot);
            }
            self.rows.extend(new);
            self.trail.clear();
        }
        if self.rows.len() == other.rows.len()
            && self.rows.iter().zip(&other.rows).all(|(own, other)| own.key == other.key)
        {
            self.list = other.list;
        }
    }
}

impl<K, V: Clone> Slot<K, V> {
    fn take(&mut self, value: &V) {
        self.is_here = true;
        self.value.clone_from(value);
    }
}
