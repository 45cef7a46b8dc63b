//! A hash table that never allocates once it is there.

#![forbid(unsafe_code)]

use hashbrown::HashTable;

/// What a table holds.
pub(crate) trait Row {
    type Key: Copy;

    fn key(&self) -> Self::Key;
    fn is(&self, key: Self::Key) -> bool;
    fn hash(key: Self::Key) -> u64;
}

/// At most so many rows.
pub(crate) struct Table<R> {
    rows: HashTable<R>,
    limit: usize,
}

impl<R: Row> Table<R> {
    pub(crate) fn new(limit: usize) -> Table<R> {
        // hashbrown reorders in place, without allocating, as long as no more than half of its room is
        // in use.
        Table { rows: HashTable::with_capacity(2 * limit + 2), limit }
    }

    pub(crate) fn get(&mut self, key: R::Key) -> Option<&mut R> {
        self.rows.find_mut(R::hash(key), |row| row.is(key))
    }

    /// Puts a row in, in place of one with its key; false when there is no room.
    pub(crate) fn put(&mut self, row: R) -> bool {
        let key = row.key();
        if let Some(known) = self.get(key) {
            *known = row;
            return true;
        }
        if self.rows.len() >= self.limit {
            return false;
        }
        self.rows.insert_unique(R::hash(key), row, |row| R::hash(row.key()));
        true
    }

    pub(crate) fn take(&mut self, key: R::Key) -> Option<R> {
        let found = self.rows.find_entry(R::hash(key), |row| row.is(key));
        Some(found.ok()?.remove().0)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &R> {
        self.rows.iter()
    }
}

/// Bits that depend on all bits of two words.
pub(crate) fn mixed(one: u64, other: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(one ^ other.rotate_left(32) ^ ODD) * u128::from(ODD);
    // Both halves.
    #[allow(clippy::cast_possible_truncation)]
    let folded = product as u64 ^ (product >> 64) as u64;
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Row for (u64, u64) {
        type Key = u64;

        fn key(&self) -> u64 {
            self.0
        }

        fn is(&self, key: u64) -> bool {
            self.0 == key
        }

        fn hash(key: u64) -> u64 {
            mixed(key, 0)
        }
    }

    #[test]
    fn a_table_never_grows_however_often_rows_come_and_go() {
        let mut table: Table<(u64, u64)> = Table::new(64);
        let room = table.rows.capacity();
        for round in 0..10_000_u64 {
            assert!(table.put((round * 64, round)));
            if round >= 63 {
                let oldest = (round - 63) * 64;
                assert_eq!(table.take(oldest), Some((oldest, round - 63)));
            }
        }
        assert_eq!(table.rows().count(), 63);
        assert!(table.put((1, 1)) && !table.put((2, 2)));
        // In place of the one that is there.
        assert!(table.put((1, 3)));
        assert_eq!(table.get(1), Some(&mut (1, 3)));
        assert_eq!(table.get(2), None);
        assert_eq!(table.rows.capacity(), room);
    }
}
