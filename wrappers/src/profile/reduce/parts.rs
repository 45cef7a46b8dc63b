//! The data of some ranks, in parts: nodes of the same binary tree over all ranks that `gyan reduce` uses. Two
//! parts are merged as soon as both are here, the left with the right, and no others are. So sums of doubles
//! are grouped alike, wherever parts are merged and in whatever order they come.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use super::tree::Why;

/// The data of the ranks below a node of the tree.
pub(super) trait Share: Sized {
    /// Merges the data of the ranks that follow.
    fn merge(self, right: Self) -> Result<Self, Why>;
}

/// The position of a part in the tree over the ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Node {
    /// Its lowest rank.
    pub(super) start: u32,
    /// It has the ranks from `start` on, 2 to the power of this, or as many as there are.
    pub(super) level: u32,
}

pub(super) struct Parts<S> {
    /// The number of ranks in the whole tree.
    size: u32,
    /// By start: the level, and the data.
    parts: BTreeMap<u32, (u32, S)>,
}

impl<S: Share> Parts<S> {
    pub(super) fn of(size: u32) -> Parts<S> {
        Parts { size, parts: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Node, &S)> {
        self.parts.iter().map(|(&start, (level, share))| (Node { start, level: *level }, share))
    }

    /// Adds a part, and merges everything that it completes.
    pub(super) fn add(&mut self, node: Node, mut share: S) -> Result<(), Why> {
        let Node { mut start, mut level } = node;
        if start >= self.size || start.trailing_zeros() < level {
            return Err(Why::NotUnderstood);
        }
        while !self.is_whole(level) {
            let beside = start ^ (1 << level);
            // A node whose right half has no ranks is its left half.
            if beside < self.size {
                let Some((_, other)) = self.take_if(beside, level) else { break };
                share = if beside < start { other.merge(share) } else { share.merge(other) }?;
                start = start.min(beside);
            }
            level += 1;
        }
        match self.parts.insert(start, (level, share)) {
            None => Ok(()),
            // The same ranks came twice.
            Some(_) => Err(Why::NotUnderstood),
        }
    }

    /// Whether a node of this level has all ranks.
    fn is_whole(&self, level: u32) -> bool {
        1_u32.checked_shl(level).is_none_or(|ranks| ranks >= self.size)
    }

    fn take_if(&mut self, start: u32, level: u32) -> Option<(u32, S)> {
        if self.parts.get(&start)?.0 == level { self.parts.remove(&start) } else { None }
    }

    /// Takes all parts into others.
    pub(super) fn add_to(self, others: &mut Parts<S>) -> Result<(), Why> {
        let mut parts = self.parts.into_iter();
        parts.try_for_each(|(start, (level, share))| others.add(Node { start, level }, share))
    }

    /// The data of all ranks; none while some are missing.
    pub(super) fn take_whole(&mut self) -> Option<S> {
        let (level, _) = self.parts.get(&0)?;
        if !self.is_whole(*level) {
            return None;
        }
        self.parts.remove(&0).map(|(_, share)| share)
    }
}

/// Used when only the number of parts matters.
impl Share for () {
    fn merge(self, _right: ()) -> Result<(), Why> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the grouping.
    impl Share for String {
        fn merge(self, right: String) -> Result<String, Why> {
            Ok(format!("({self} {right})"))
        }
    }

    fn leaf(rank: u32) -> Node {
        Node { start: rank, level: 0 }
    }

    #[test]
    fn parts_are_grouped_alike_in_whatever_order_they_come() {
        for (size, expected) in [
            (1, "0"),
            (3, "((0 1) 2)"),
            (6, "(((0 1) (2 3)) (4 5))"),
            (11, "((((0 1) (2 3)) ((4 5) (6 7))) ((8 9) 10))"),
        ] {
            let mut ranks: Vec<u32> = (0..size).collect();
            for seed in 0..200 {
                fastrand::Rng::with_seed(seed).shuffle(&mut ranks);
                let mut parts = Parts::of(size);
                for (taken, &rank) in ranks.iter().enumerate() {
                    assert_eq!(parts.take_whole(), None, "{taken} of {size}");
                    parts.add(leaf(rank), rank.to_string()).unwrap();
                }
                assert_eq!(parts.len(), 1);
                assert_eq!(parts.take_whole().as_deref(), Some(expected), "{ranks:?}");
            }
        }
    }

    #[test]
    fn what_is_no_node_is_refused() {
        for (start, level, is_node) in [
            (5, 0, false),
            (2, 2, false),
            (1, 1, false),
            (0, 33, false),
            (0, 3, true),
            (4, 2, true),
        ] {
            let node = Node { start, level };
            assert_eq!(Parts::of(5).add(node, ()).is_ok(), is_node, "{node:?}");
        }
        let mut parts = Parts::of(u32::MAX);
        parts.add(leaf(u32::MAX - 1), ()).unwrap();
        assert!(parts.add(leaf(u32::MAX - 1), ()).is_err());
        assert_eq!(parts.take_whole(), None);
    }
}
