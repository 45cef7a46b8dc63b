//! Watched receives over ranks. Ranks may have different sites and stacks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::places::{Objects, Place, load_map};
use crate::data::derive;
use crate::merge::{Absent, Merge, MergeFields, Takes};
use crate::watch::{WatchReduction, WatchSiteReduction};
use crate::{
    Address, Hit, LoadedObject, Number, Stack, Watch, WatchSite, WatchSiteSummary, WatchSummary,
    collected, sort_by,
};

const STACKS_AT_MOST: usize = 8;

/// What was watched, by variable and threshold.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Watches(BTreeMap<(String, u64), WatchRow>);

impl Merge for Watches {
    fn absorb(&mut self, other: &Watches) {
        self.0.absorb(&other.0);
    }
}

#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
struct WatchRow {
    numbers: WatchReduction,
    sites: BTreeMap<(String, Place), WatchSiteRow>,
}

#[derive(MergeFields!, Clone, Debug, Deserialize, Serialize)]
struct WatchSiteRow {
    numbers: WatchSiteReduction,
    worst: Worst,
    stacks: BTreeMap<Vec<Place>, u64>,
}

/// The hit with the largest value, and the lowest rank that has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Worst(u32, Hit);

impl Merge for Worst {
    fn absorb(&mut self, other: &Worst) {
        let order = |Worst(rank, hit): &Worst| (hit.value, Reverse(*rank));
        if order(other) > order(self) {
            self.clone_from(other);
        }
    }
}

impl Watches {
    #[inline]
    pub(super) fn of(watch: &Watch, rank: u32) -> Watches {
        let objects = Objects::of(&watch.load_map);
        let place = |address: &Address| objects.place(address);
        let site = |site: &WatchSite| {
            let stack =
                |Stack { hits, frames }: &Stack| (frames.iter().map(place).collect(), *hits);
            let mut row = WatchSiteRow {
                numbers: WatchSiteReduction::default(),
                worst: Worst(rank, site.worst.clone()),
                stacks: collected(site.stacks.iter().map(stack)),
            };
            row.numbers.set(site, rank);
            ((site.function.clone(), place(&site.call)), row)
        };
        let mut row = WatchRow {
            numbers: WatchReduction::default(),
            sites: collected(watch.sites.iter().map(site)),
        };
        row.numbers.set(watch, rank);
        Watches(BTreeMap::from([((watch.variable.clone(), watch.threshold), row)]))
    }

    #[inline]
    pub(super) fn finish(self) -> Vec<WatchSummary> {
        let watches = self.0.into_iter();
        watches.filter_map(|((variable, above), watch)| watch.finish(variable, above)).collect()
    }
}

impl WatchRow {
    #[inline]
    fn finish(self, variable: String, threshold: u64) -> Option<WatchSummary> {
        let WatchRow { numbers, sites } = self;
        let stacks = sites.values().flat_map(|site| site.stacks.keys().flatten());
        let places = sites.keys().map(|(_, place)| place).chain(stacks);
        let load_map = load_map(places);
        let mut sites: Vec<WatchSiteSummary> = sites
            .into_iter()
            .filter_map(|((function, place), site)| site.finish(function, &place, &load_map))
            .collect();
        sort_by(&mut sites, |one, other| sum_of(other).cmp(&sum_of(one)));
        let numbers = numbers.finish(variable, threshold, Absent::default())?;
        Some(WatchSummary { sites, load_map, ..numbers })
    }
}

fn sum_of(site: &WatchSiteSummary) -> i128 {
    match site.hits.sum {
        Number::Integer(sum) => sum,
        Number::Double(_) => i128::MAX,
    }
}

impl WatchSiteRow {
    #[inline]
    fn finish(
        self,
        function: String,
        place: &Place,
        load_map: &[LoadedObject],
    ) -> Option<WatchSiteSummary> {
        let WatchSiteRow { numbers, worst: Worst(worst_rank, worst), stacks } = self;
        let mut stacks: Vec<Stack> = stacks
            .iter()
            .map(|(frames, &hits)| Stack {
                hits,
                frames: frames.iter().map(|frame| frame.in_map(load_map)).collect(),
            })
            .collect();
        sort_by(&mut stacks, |one, other| other.hits.cmp(&one.hits));
        stacks.truncate(STACKS_AT_MOST);
        let numbers = numbers.finish(function, place.in_map(load_map), Absent::default())?;
        Some(WatchSiteSummary { worst, worst_rank, stacks, ..numbers })
    }
}
