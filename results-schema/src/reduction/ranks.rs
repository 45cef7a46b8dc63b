//! A set of ranks, of different profiles.

pub(super) use crate::ranges::Ranges as RankSet;

use super::merge::Merge;

impl Merge for RankSet {
    fn absorb(&mut self, other: &RankSet) {
        self.extend(other);
    }
}
