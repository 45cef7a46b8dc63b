//! Call sites over ranks. Ranks may have different sites and stacks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::places::{Objects, Place, load_map};
use super::sorted::Sorted;
use crate::data::derive;
use crate::merge::{Absent, Merge, MergeFields, Takes};
use crate::sites::SiteReduction;
use crate::{Site, SiteStack, SiteSummary, Sites, SitesSummary, collected, sort_by};

const STACKS_AT_MOST: usize = 8;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct SitesReduction {
    /// By function and place.
    sites: Sorted<(String, Option<Place>), SiteRow>,
    /// Those of the latest profile.
    #[serde(skip)]
    objects: Objects,
}

impl Merge for SitesReduction {
    fn absorb(&mut self, other: &SitesReduction) {
        self.sites.absorb(&other.sites);
    }
}

#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
struct SiteRow {
    numbers: SiteReduction,
    stacks: Sorted<Vec<Place>, StackReduction>,
}

#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
struct StackReduction {
    hits: u64,
    calls: u64,
    time_s: f64,
}

impl SitesReduction {
    /// Makes this the sites of one rank, reusing its memory. The first of two that are the same counts.
    pub(super) fn set(&mut self, sites: Option<&Sites>, rank: u32) {
        self.sites.clear();
        let Some(Sites { sites, addresses, load_map }) = sites else { return };
        self.objects.set(load_map);
        let places: Vec<Place> = addresses.iter().map(|code| self.objects.code(code)).collect();
        for site in sites {
            let call = site.call.and_then(|at| places.get(at));
            let row = self.sites.row(
                |(function, place)| *function == site.function && place.as_ref() == call,
                |(function, place)| {
                    function.cmp(&site.function).then_with(|| place.as_ref().cmp(&call))
                },
                || (site.function.clone(), call.cloned()),
            );
            if let Some((false, row)) = row {
                row.set(site, &places, rank);
            }
        }
    }

    #[inline]
    pub(super) fn finish(self) -> Option<SitesSummary> {
        let sites: Vec<_> = self.sites.into_rows().collect();
        if sites.is_empty() {
            return None;
        }
        let of_stacks = sites.iter().flat_map(|(_, site)| site.stacks.keys().flatten());
        let of_calls = sites.iter().filter_map(|((_, place), _)| place.as_ref());
        let places: BTreeSet<&Place> = collected(of_calls.chain(of_stacks));
        let load_map = load_map(places.iter().copied());
        let places: Vec<Place> = places.into_iter().cloned().collect();
        let addresses = places.iter().map(|place| place.code_in(&load_map)).collect();
        let mut sites: Vec<SiteSummary> = sites
            .into_iter()
            .filter_map(|((function, place), site)| site.finish(function, place.as_ref(), &places))
            .collect();
        sort_by(&mut sites, |one, other| {
            other.time_s.sum.as_f64().total_cmp(&one.time_s.sum.as_f64())
        });
        Some(SitesSummary { sites, addresses, load_map })
    }
}

impl SiteRow {
    fn set(&mut self, site: &Site, places: &[Place], rank: u32) {
        self.numbers.set(site, rank);
        self.stacks.clear();
        for SiteStack { hits, calls, time_s, frames } in &site.stacks {
            let row = self.stacks.row(
                |known| known.iter().eq(places_of(frames, places)),
                |known| known.iter().cmp(places_of(frames, places)),
                || places_of(frames, places).cloned().collect(),
            );
            if let Some((false, row)) = row {
                *row = StackReduction { hits: *hits, calls: *calls, time_s: *time_s };
            }
        }
    }

    /// `places` are sorted.
    #[inline]
    fn finish(
        self,
        function: String,
        place: Option<&Place>,
        places: &[Place],
    ) -> Option<SiteSummary> {
        let at = |place: &Place| places.binary_search(place).ok();
        let stacks = self.stacks.into_rows();
        let mut stacks: Vec<SiteStack> = stacks
            .map(|(frames, StackReduction { hits, calls, time_s })| SiteStack {
                hits,
                calls,
                time_s,
                frames: frames.iter().filter_map(at).collect(),
            })
            .collect();
        sort_by(&mut stacks, |one, other| other.time_s.total_cmp(&one.time_s));
        stacks.truncate(STACKS_AT_MOST);
        let numbers = self.numbers.finish(function, place.and_then(at), Absent::default())?;
        Some(SiteSummary { stacks, ..numbers })
    }
}

fn places_of<'a>(frames: &'a [usize], places: &'a [Place]) -> impl Iterator<Item = &'a Place> {
    frames.iter().filter_map(|&at| places.get(at))
}
