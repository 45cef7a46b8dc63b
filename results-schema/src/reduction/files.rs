//! Which ranks have a profile, and what its file is called: by the rank, as a rule, so that the names
//! of a million ranks take no room.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::merge::Merge;
use super::ranks::RankSet;
use crate::{live_file_name, rank_file_name};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Files {
    ranks: RankSet,
    /// Those of which there is a live file.
    live: RankSet,
    /// Those whose file has another name.
    others: BTreeMap<u32, String>,
}

impl Files {
    /// The one file of one rank.
    pub(super) fn set(&mut self, rank: u32, name: &str) {
        self.ranks.set(rank);
        self.live.clear();
        self.others.clear();
        if name == rank_file_name(rank) {
            return;
        }
        if name == live_file_name(rank) {
            self.live.set(rank);
        } else {
            self.others.insert(rank, name.to_owned());
        }
    }

    pub(super) fn ranks(&self) -> &RankSet {
        &self.ranks
    }

    pub(super) fn name(&self, rank: u32) -> String {
        if self.live.contains(rank) {
            return live_file_name(rank);
        }
        self.others.get(&rank).cloned().unwrap_or_else(|| rank_file_name(rank))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.ranks.iter().map(|rank| self.name(rank))
    }
}

impl Merge for Files {
    /// Takes in files of other ranks.
    fn absorb(&mut self, other: &Files) {
        let Files { ranks, live, others } = other;
        self.ranks.absorb(ranks);
        self.live.absorb(live);
        self.others.extend(others.iter().map(|(rank, name)| (*rank, name.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_as_it_was() {
        let mut files = Files::default();
        for (rank, name) in [(0, "rank-000000.json"), (1, "rank-000001.live"), (3, "other")] {
            let mut one = Files::default();
            one.set(7, "something");
            one.set(rank, name);
            files.absorb(&one);
        }
        assert!(files.names().eq(["rank-000000.json", "rank-000001.live", "other"]));
    }
}
