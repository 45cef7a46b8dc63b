//! A set of ranks as ranges: of a job whose ranks are all there, one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::merge::Merge;

/// Ranges in their order, apart from each other; the first rank and the last of each.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct RankSet(Vec<(u32, u32)>);

impl RankSet {
    pub(super) fn of(rank: u32) -> RankSet {
        RankSet(vec![(rank, rank)])
    }

    pub(super) fn set(&mut self, rank: u32) {
        self.0.clear();
        self.0.push((rank, rank));
    }

    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    pub(super) fn contains(&self, rank: u32) -> bool {
        let behind = self.0.partition_point(|(first, _)| *first <= rank);
        behind.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|(_, last)| rank <= *last)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The lowest rank that is in both.
    pub(super) fn common(&self, other: &RankSet) -> Option<u32> {
        let (mut own, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some((first, last)), Some((other_first, other_last))) =
            (own.peek(), others.peek())
        {
            let lowest = *first.max(other_first);
            if lowest <= *last.min(other_last) {
                return Some(lowest);
            }
            if last < other_last {
                own.next()
            } else {
                others.next()
            };
        }
        None
    }
}

/// As `0-3,8`.
impl fmt::Display for RankSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { "," } else { "" })?;
            if first == last { write!(f, "{first}")? } else { write!(f, "{first}-{last}")? }
        }
        Ok(())
    }
}

impl Merge for RankSet {
    /// Takes in ranks of which none is here.
    fn absorb(&mut self, other: &RankSet) {
        let is_behind =
            self.0.last().zip(other.0.first()).is_none_or(|(own, other)| own.1 < other.0);
        self.0.extend_from_slice(&other.0);
        if !is_behind {
            self.0.sort_unstable();
        }
        self.0.dedup_by(|next, range| {
            let is_one = range.1.checked_add(1) == Some(next.0);
            if is_one {
                range.1 = next.1;
            }
            is_one
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ranks_that_follow_each_other_are_one_range_in_whichever_order_they_come() {
        for order in [[0, 1, 2, 3, 4, 7], [7, 4, 3, 2, 1, 0], [2, 0, 4, 7, 1, 3]] {
            let mut set = RankSet::default();
            let mut expected = BTreeSet::new();
            for rank in order {
                assert_eq!(set.common(&RankSet::of(rank)), None);
                set.absorb(&RankSet::of(rank));
                expected.insert(rank);
                assert!(set.iter().eq(expected.iter().copied()), "{set:?}");
                assert!((0..9).all(|rank| set.contains(rank) == expected.contains(&rank)));
                assert_eq!(set.len(), expected.len() as u64);
            }
            assert_eq!(set.0, [(0, 4), (7, 7)]);
            assert_eq!(set.to_string(), "0-4,7");
            let other = RankSet(vec![(5, 6), (7, 9)]);
            assert_eq!((set.common(&other), other.common(&set)), (Some(7), Some(7)));
        }
    }

    #[test]
    fn the_largest_rank_has_none_behind_it() {
        let mut set = RankSet::of(u32::MAX);
        set.absorb(&RankSet::of(0));
        assert_eq!(set.0, [(0, 0), (u32::MAX, u32::MAX)]);
    }
}
