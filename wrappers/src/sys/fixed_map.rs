//! A hash map that never allocates after its creation.

#![forbid(unsafe_code)]

use std::hash::Hash;

use hashbrown::HashMap;

/// A map for at most this many keys.
pub(crate) struct FixedMap<K, V> {
    map: HashMap<K, V>,
    limit: usize,
}

impl<K: Eq + Hash, V> FixedMap<K, V> {
    pub(crate) fn new(limit: usize) -> FixedMap<K, V> {
        // hashbrown reorders in place, without allocating, as long as no more than half of its room is
        // in use.
        FixedMap { map: HashMap::with_capacity(2 * limit + 2), limit }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    /// Inserts a value, replacing the one of the same key; false when there is no room.
    pub(crate) fn put(&mut self, key: K, value: V) -> bool {
        let has_room = self.map.len() < self.limit || self.map.contains_key(&key);
        if has_room {
            self.map.insert(key, value);
        }
        has_room
    }

    pub(crate) fn take(&mut self, key: &K) -> Option<V> {
        self.map.remove(key)
    }

    pub(crate) fn clear(&mut self) {
        self.map.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.map.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_never_grows_however_often_keys_come_and_go() {
        let mut map: FixedMap<u64, u64> = FixedMap::new(64);
        let room = map.map.allocation_size();
        for round in 0..10_000_u64 {
            assert!(map.put(round * 64, round));
            if round >= 63 {
                assert_eq!(map.take(&((round - 63) * 64)), Some(round - 63));
            }
        }
        assert_eq!(map.iter().count(), 63);
        assert!(map.put(1, 1) && !map.put(2, 2));
        // Replaces the existing one.
        assert!(map.put(1, 3));
        assert_eq!(map.get(&1), Some(&mut 3));
        assert_eq!(map.get(&2), None);
        assert_eq!(map.map.allocation_size(), room);
    }
}
