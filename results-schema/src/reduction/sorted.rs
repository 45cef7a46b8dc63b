//! Rows by key, which are filled again for one profile after the other: a row that a profile lacks is
//! kept aside with its key and its room, for the next one that has it.
//!
//! Profiles of a job have nearly the same rows in the same order, so a row is looked for where the
//! profile before had it, and the rows of two lists are compared side by side.

use std::cmp::Ordering;

#[derive(Clone, Debug)]
pub(super) struct Sorted<K, V> {
    /// By key, those that are not here included.
    rows: Vec<Slot<K, V>>,
    /// Where the rows are, in the order in which the latest profile gave them.
    trail: Vec<usize>,
    /// How far this profile has come on the trail.
    at: usize,
}

#[derive(Clone, Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    is_here: bool,
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Sorted<K, V> {
        Sorted { rows: Vec::new(), trail: Vec::new(), at: 0 }
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

    /// In the order of the keys.
    pub(super) fn into_rows(self) -> impl Iterator<Item = (K, V)> {
        self.rows.into_iter().filter(|row| row.is_here).map(|row| (row.key, row.value))
    }

    /// The row whose key `compare` says is the one that is looked for, and whether it was here before. A
    /// row that was not has what it had for another profile. It is always there.
    #[inline]
    pub(super) fn row(
        &mut self,
        compare: impl Fn(&K) -> Ordering,
        key: impl FnOnce() -> K,
    ) -> Option<(bool, &mut V)>
    where
        V: Default,
    {
        let expected = self.trail.get(self.at).copied();
        let is_there = |&at: &usize| self.rows.get(at).is_some_and(|row| compare(&row.key).is_eq());
        let at = match expected.filter(is_there) {
            Some(at) => at,
            None => self.find(&compare, key),
        };
        self.at += 1;
        let slot = self.rows.get_mut(at)?;
        Some((std::mem::replace(&mut slot.is_here, true), &mut slot.value))
    }

    /// Looks beside the trail, and mends it.
    #[cold]
    fn find(&mut self, compare: &impl Fn(&K) -> Ordering, key: impl FnOnce() -> K) -> usize
    where
        V: Default,
    {
        let at = match self.rows.binary_search_by(|row| compare(&row.key)) {
            Ok(at) => at,
            Err(at) => {
                self.insert(at, key(), V::default(), false);
                at
            }
        };
        match self.trail.get_mut(self.at) {
            Some(step) => *step = at,
            None => self.trail.push(at),
        }
        at
    }

    fn insert(&mut self, at: usize, key: K, value: V, is_here: bool) {
        self.rows.insert(at, Slot { key, value, is_here });
        for step in &mut self.trail {
            *step += usize::from(*step >= at);
        }
    }
}

impl<K: Clone + Ord, V: Clone> Sorted<K, V> {
    /// Takes in the rows of another: what to do with a row that both have, with one that only this one
    /// has, and with one that it has now from the other.
    pub(super) fn merge(
        &mut self,
        other: &Sorted<K, V>,
        mut both: impl FnMut(&mut V, &V),
        mut own: impl FnMut(&mut V),
        mut taken: impl FnMut(&mut V),
    ) {
        let mut at = 0;
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
                Some(slot) if slot.is_here => both(&mut slot.value, &theirs.value),
                Some(slot) => {
                    slot.is_here = true;
                    slot.value.clone_from(&theirs.value);
                    taken(&mut slot.value);
                }
                None => {
                    let mut value = theirs.value.clone();
                    taken(&mut value);
                    self.insert(at, theirs.key.clone(), value, true);
                }
            }
            at += 1;
        }
        let rest = self.rows.get_mut(at..).unwrap_or_default();
        rest.iter_mut().filter(|slot| slot.is_here).for_each(|slot| own(&mut slot.value));
    }
}
