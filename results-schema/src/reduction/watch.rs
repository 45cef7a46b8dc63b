//! Watched receives over ranks: call sites are the same when they are at the same place in the same
//! file, wherever it was loaded. Which sites and stacks there are is not the same of every rank.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::wire::pairs;
use crate::{
    Address, Hit, LoadedObject, Number, Stack, Statistics, Watch, WatchSite, WatchSiteSummary,
    WatchSummary,
};

/// Stacks of a site that are shown.
const STACKS_AT_MOST: usize = 8;

/// What was watched, by variable and threshold.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Watches(#[serde(with = "pairs")] BTreeMap<(String, u64), WatchReduction>);

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct WatchReduction {
    receives: Statistics,
    not_compared: u64,
    hits: Statistics,
    max: Statistics,
    #[serde(with = "pairs")]
    sites: BTreeMap<(String, Place), SiteReduction>,
    hits_elsewhere: u64,
}

/// A place in the code, without the load map of a rank.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
struct Place {
    object: Option<LoadedObject>,
    address: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct SiteReduction {
    hits: Statistics,
    sum: u64,
    worst: (u32, Hit),
    stacks_taken: u64,
    #[serde(with = "pairs")]
    stacks: BTreeMap<Vec<Place>, u64>,
}

impl Watches {
    pub(super) fn of(watch: &Watch, rank: u32) -> Watches {
        let integer = |number: u64| Statistics::of(Number::Integer(number.into()), rank);
        let place = |address: &Address| {
            let object = address.object.and_then(|object| watch.load_map.get(object));
            Place { object: object.cloned(), address: address.address }
        };
        let site = |site: &WatchSite| {
            let stack = |stack: &Stack| (stack.frames.iter().map(place).collect(), stack.hits);
            let reduction = SiteReduction {
                hits: integer(site.hits),
                sum: site.sum,
                worst: (rank, site.worst.clone()),
                stacks_taken: site.stacks_taken,
                stacks: site.stacks.iter().map(stack).collect(),
            };
            ((site.function.clone(), place(&site.call)), reduction)
        };
        let reduction = WatchReduction {
            receives: integer(watch.receives),
            not_compared: watch.not_compared,
            hits: integer(watch.hits),
            max: integer(watch.max),
            sites: watch.sites.iter().map(site).collect(),
            hits_elsewhere: watch.hits_elsewhere,
        };
        Watches(BTreeMap::from([((watch.variable.clone(), watch.threshold), reduction)]))
    }

    pub(super) fn merge(&mut self, other: &Watches) {
        for (key, watch) in &other.0 {
            self.0.entry(key.clone()).or_default().merge(watch);
        }
    }

    pub(super) fn finish(self) -> Vec<WatchSummary> {
        let watches = self.0.into_iter();
        watches.filter_map(|((variable, above), watch)| watch.finish(variable, above)).collect()
    }
}

impl WatchReduction {
    fn merge(&mut self, other: &WatchReduction) {
        self.receives.merge(&other.receives);
        self.not_compared = self.not_compared.saturating_add(other.not_compared);
        self.hits.merge(&other.hits);
        self.max.merge(&other.max);
        self.hits_elsewhere = self.hits_elsewhere.saturating_add(other.hits_elsewhere);
        for (key, site) in &other.sites {
            match self.sites.get_mut(key) {
                Some(own) => own.merge(site),
                None => {
                    self.sites.insert(key.clone(), site.clone());
                }
            }
        }
    }

    fn finish(self, variable: String, threshold: u64) -> Option<WatchSummary> {
        let stacks = self.sites.values().flat_map(|site| site.stacks.keys().flatten());
        let places = self.sites.keys().map(|(_, place)| place).chain(stacks);
        let objects: BTreeSet<&LoadedObject> =
            places.filter_map(|place| place.object.as_ref()).collect();
        let load_map: Vec<LoadedObject> = objects.into_iter().cloned().collect();
        let sites = self.sites.into_iter();
        let mut sites: Vec<WatchSiteSummary> = sites
            .filter_map(|((function, place), site)| site.finish(function, &place, &load_map))
            .collect();
        sites.sort_by_key(|site| Reverse(sum_of(site)));
        Some(WatchSummary {
            variable,
            threshold,
            receives: self.receives.finish()?,
            not_compared: self.not_compared,
            hits: self.hits.finish()?,
            max: self.max.finish()?,
            sites,
            hits_elsewhere: self.hits_elsewhere,
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

impl SiteReduction {
    fn merge(&mut self, other: &SiteReduction) {
        self.hits.merge(&other.hits);
        self.sum = self.sum.saturating_add(other.sum);
        let order = |(rank, hit): &(u32, Hit)| (hit.value, Reverse(*rank));
        if order(&other.worst) > order(&self.worst) {
            self.worst.clone_from(&other.worst);
        }
        self.stacks_taken = self.stacks_taken.saturating_add(other.stacks_taken);
        for (stack, hits) in &other.stacks {
            let own = self.stacks.entry(stack.clone()).or_default();
            *own = own.saturating_add(*hits);
        }
    }

    fn finish(
        self,
        function: String,
        place: &Place,
        load_map: &[LoadedObject],
    ) -> Option<WatchSiteSummary> {
        let mut stacks: Vec<Stack> = self
            .stacks
            .iter()
            .map(|(frames, &hits)| Stack {
                hits,
                frames: frames.iter().map(|frame| frame.in_map(load_map)).collect(),
            })
            .collect();
        stacks.sort_by_key(|stack| Reverse(stack.hits));
        stacks.truncate(STACKS_AT_MOST);
        let (worst_rank, worst) = self.worst;
        Some(WatchSiteSummary {
            function,
            call: place.in_map(load_map),
            hits: self.hits.finish()?,
            sum: self.sum,
            worst,
            worst_rank,
            stacks_taken: self.stacks_taken,
            stacks,
        })
    }
}

impl Place {
    /// `load_map` is sorted.
    fn in_map(&self, load_map: &[LoadedObject]) -> Address {
        let object = self.object.as_ref().and_then(|object| load_map.binary_search(object).ok());
        Address { object, address: self.address }
    }
}
