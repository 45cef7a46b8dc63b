//! How is the knowledge of some ranks merged with that of others? The type of a field says how the field is
//! merged; fields that are merged in another way have a type of their own where they are used.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Statistics, add_histogram};

pub(super) trait Merge {
    /// Merges the same of other ranks into this.
    fn absorb(&mut self, other: &Self);
}

/// Merges field by field. A field that is missing from the list does not compile.
macro_rules! merge_fields {
    ($($type:ident { $($field:ident),+ $(,)? })+) => {$(
        impl $crate::reduction::merge::Merge for $type {
            #[inline]
            fn absorb(&mut self, other: &$type) {
                let $type { $($field),+ } = other;
                $(self.$field.absorb($field);)+
            }
        }
    )+};
}
pub(super) use merge_fields;

impl Merge for Statistics {
    fn absorb(&mut self, other: &Statistics) {
        self.merge(other);
    }
}

/// A count.
impl Merge for u64 {
    fn absorb(&mut self, other: &u64) {
        *self = self.saturating_add(*other);
    }
}

/// An amount.
impl Merge for f64 {
    fn absorb(&mut self, other: &f64) {
        *self += other;
    }
}

/// A histogram.
impl Merge for Vec<u64> {
    fn absorb(&mut self, other: &Vec<u64>) {
        add_histogram(self, other);
    }
}

impl<T: Merge + Clone> Merge for Option<T> {
    fn absorb(&mut self, other: &Option<T>) {
        match (self, other) {
            (Some(own), Some(other)) => own.absorb(other),
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
    }
}

impl<K: Clone + Ord, V: Merge + Clone> Merge for BTreeMap<K, V> {
    fn absorb(&mut self, other: &BTreeMap<K, V>) {
        for (key, value) in other {
            match self.get_mut(key) {
                Some(own) => own.absorb(value),
                None => {
                    self.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

impl<T: Clone + Ord> Merge for BTreeSet<T> {
    fn absorb(&mut self, other: &BTreeSet<T>) {
        for one in other {
            if !self.contains(one) {
                self.insert(one.clone());
            }
        }
    }
}

/// The value of the lowest rank.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Lowest<T> {
    pub(super) rank: u32,
    pub(super) said: T,
}

impl<T: Clone> Merge for Lowest<T> {
    fn absorb(&mut self, other: &Lowest<T>) {
        if other.rank < self.rank {
            self.clone_from(other);
        }
    }
}
