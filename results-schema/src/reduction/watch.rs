//! Watched receives over ranks. Ranks may have different sites and stacks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::merge::{Merge, merge_fields};
use super::places::{Objects, Place, load_map};
use crate::{
    Address, Hit, LoadedObject, Number, Stack, Statistics, Watch, WatchSite, WatchSiteSummary,
    WatchSummary, collected, sort_by,
};

/// Most stacks of a site that are shown.
const STACKS_AT_MOST: usize = 8;

/// What was watched, by variable and threshold.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Watches(BTreeMap<(String, u64), WatchReduction>);

impl Merge for Watches {
    fn absorb(&mut self, other: &Watches) {
        self.0.absorb(&other.0);
    }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct WatchReduction {
    receives: Statistics,
    not_compared: u64,
    hits: Statistics,
    max: Statistics,
    sites: BTreeMap<(String, Place), WatchedSiteReduction>,
    hits_elsewhere: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct WatchedSiteReduction {
    hits: Statistics,
    sum: u64,
    worst: Worst,
    stacks_taken: u64,
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

merge_fields! {
    WatchReduction { receives, not_compared, hits, max, sites, hits_elsewhere }
    WatchedSiteReduction { hits, sum, worst, stacks_taken, stacks }
}

impl Watches {
    #[inline]
    pub(super) fn of(watch: &Watch, rank: u32) -> Watches {
        let Watch {
            variable,
            threshold,
            receives,
            not_compared,
            hits,
            max,
            sites,
            hits_elsewhere,
            load_map,
        } = watch;
        let integer = |number: u64| Statistics::of(Number::Integer(number.into()), rank);
        let objects = Objects::of(load_map);
        let place = |address: &Address| objects.place(address);
        let site = |site: &WatchSite| {
            let WatchSite { function, call, hits, sum, worst, stacks_taken, stacks } = site;
            let stack =
                |Stack { hits, frames }: &Stack| (frames.iter().map(place).collect(), *hits);
            let reduction = WatchedSiteReduction {
                hits: integer(*hits),
                sum: *sum,
                worst: Worst(rank, worst.clone()),
                stacks_taken: *stacks_taken,
                stacks: collected(stacks.iter().map(stack)),
            };
            ((function.clone(), place(call)), reduction)
        };
        let reduction = WatchReduction {
            receives: integer(*receives),
            not_compared: *not_compared,
            hits: integer(*hits),
            max: integer(*max),
            sites: collected(sites.iter().map(site)),
            hits_elsewhere: *hits_elsewhere,
        };
        Watches(BTreeMap::from([((variable.clone(), *threshold), reduction)]))
    }

    #[inline]
    pub(super) fn finish(self) -> Vec<WatchSummary> {
        let watches = self.0.into_iter();
        watches.filter_map(|((variable, above), watch)| watch.finish(variable, above)).collect()
    }
}

impl WatchReduction {
    #[inline]
    fn finish(self, variable: String, threshold: u64) -> Option<WatchSummary> {
        let WatchReduction { receives, not_compared, hits, max, sites, hits_elsewhere } = self;
        let stacks = sites.values().flat_map(|site| site.stacks.keys().flatten());
        let places = sites.keys().map(|(_, place)| place).chain(stacks);
        let load_map = load_map(places);
        let mut sites: Vec<WatchSiteSummary> = sites
            .into_iter()
            .filter_map(|((function, place), site)| site.finish(function, &place, &load_map))
            .collect();
        sort_by(&mut sites, |one, other| sum_of(other).cmp(&sum_of(one)));
        Some(WatchSummary {
            variable,
            threshold,
            receives: receives.finish()?,
            not_compared,
            hits: hits.finish()?,
            max: max.finish()?,
            sites,
            hits_elsewhere,
            load_map,
        })
    }
}

fn sum_of(site: &WatchSiteSummary) -> i128 {
    match site.hits.sum {
        Number::Integer(sum) => sum,
        Number::Double(_) => i128::MAX,
    }
}

impl WatchedSiteReduction {
    #[inline]
    fn finish(
        self,
        function: String,
        place: &Place,
        load_map: &[LoadedObject],
    ) -> Option<WatchSiteSummary> {
        let WatchedSiteReduction { hits, sum, worst, stacks_taken, stacks } = self;
        let mut stacks: Vec<Stack> = stacks
            .iter()
            .map(|(frames, &hits)| Stack {
                hits,
                frames: frames.iter().map(|frame| frame.in_map(load_map)).collect(),
            })
            .collect();
        sort_by(&mut stacks, |one, other| other.hits.cmp(&one.hits));
        stacks.truncate(STACKS_AT_MOST);
        let Worst(worst_rank, worst) = worst;
        Some(WatchSiteSummary {
            function,
            call: place.in_map(load_map),
            hits: hits.finish()?,
            sum,
            worst,
            worst_rank,
            stacks_taken,
            stacks,
        })
    }
}
