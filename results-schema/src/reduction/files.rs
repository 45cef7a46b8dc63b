//! Which ranks have a profile, and the name of its file: usually derived from the rank, so that the names of a
//! million ranks take no memory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::merge::Merge;
use crate::ranges::Ranges;
use crate::rank_file_name;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Files {
    ranks: Ranges,
    /// Ranks whose file has another name.
    others: BTreeMap<u32, String>,
}

impl Files {
    pub(super) fn set(&mut self, rank: u32, name: &str) {
        self.ranks.set(rank);
        self.others.clear();
        if name != rank_file_name(rank) {
            self.others.insert(rank, name.to_owned());
        }
    }

    pub(super) fn ranks(&self) -> &Ranges {
        &self.ranks
    }

    pub(super) fn name(&self, rank: u32) -> String {
        self.others.get(&rank).cloned().unwrap_or_else(|| rank_file_name(rank))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.ranks.iter().map(|rank| self.name(rank))
    }
}

impl Merge for Files {
    fn absorb(&mut self, other: &Files) {
        let Files { ranks, others } = other;
        self.ranks.absorb(ranks);
        self.others.extend(others.iter().map(|(rank, name)| (*rank, name.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_as_it_was() {
        let mut files = Files::default();
        for (rank, name) in
            [(0, "rank-000000.json"), (1, "host-n1-3f9a0c1e.live: rank 1"), (3, "other")]
        {
            let mut one = Files::default();
            one.set(7, "something");
            one.set(rank, name);
            files.absorb(&one);
        }
        assert!(files.names().eq(["rank-000000.json", "host-n1-3f9a0c1e.live: rank 1", "other"]));
    }
}
