//! Call sites over ranks. Ranks may have different sites and stacks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::merge::{Merge, merge_fields};
use super::places::{Objects, Place, load_map};
use crate::{
    Number, Site, SiteStack, SiteSummary, Sites, SitesSummary, Statistics, collected, sort_by,
};

/// Most stacks of a site that are kept.
const STACKS_AT_MOST: usize = 8;

/// By function and place.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct SitesReduction(BTreeMap<(String, Option<Place>), SiteReduction>);

impl Merge for SitesReduction {
    fn absorb(&mut self, other: &SitesReduction) {
        self.0.absorb(&other.0);
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct SiteReduction {
    calls: Statistics,
    /// The sum of the squared standard errors. NaN, which stays NaN in every sum, when a rank does not know its
    /// error.
    calls_variance: f64,
    timed: u64,
    time_s: Statistics,
    /// The sum of the standard errors, as for functions; NaN as above.
    time_error: f64,
    time_max_s: Statistics,
    bytes: Option<Statistics>,
    stacks_taken: u64,
    stacks: BTreeMap<Vec<Place>, StackReduction>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct StackReduction {
    hits: u64,
    calls: u64,
    time_s: f64,
}

merge_fields! {
    SiteReduction {
        calls, calls_variance, timed, time_s, time_error, time_max_s, bytes, stacks_taken, stacks,
    }
    StackReduction { hits, calls, time_s }
}

impl SitesReduction {
    #[inline]
    pub(super) fn of(sites: &Sites, rank: u32) -> SitesReduction {
        let Sites { sites, addresses, load_map } = sites;
        let objects = Objects::of(load_map);
        let places: Vec<Place> = addresses.iter().map(|code| objects.code(code)).collect();
        let place = |at: usize| places.get(at).cloned();
        let integer = |number: u64| Statistics::of(Number::Integer(number.into()), rank);
        let double = |number: f64| Statistics::of(Number::Double(number), rank);
        let variance = |error: &Option<f64>| error.map_or(f64::NAN, |error| error * error);
        let of_stack = |stack: &SiteStack| {
            let SiteStack { hits, calls, time_s, frames } = stack;
            let frames: Vec<Place> = frames.iter().filter_map(|at| place(*at)).collect();
            (frames, StackReduction { hits: *hits, calls: *calls, time_s: *time_s })
        };
        let mut reduction = SitesReduction::default();
        for site in sites {
            let Site {
                function,
                call,
                calls,
                calls_error,
                timed,
                time_s,
                time_error_s,
                time_max_s,
                bytes,
                stacks_taken,
                stacks,
            } = site;
            let mut of_site = SiteReduction {
                calls: integer(*calls),
                calls_variance: variance(calls_error),
                timed: *timed,
                time_s: double(*time_s),
                time_error: time_error_s.unwrap_or(f64::NAN),
                time_max_s: double(*time_max_s),
                bytes: bytes.map(integer),
                stacks_taken: *stacks_taken,
                stacks: BTreeMap::new(),
            };
            for (frames, stack) in stacks.iter().map(of_stack) {
                of_site.stacks.entry(frames).or_insert(stack);
            }
            reduction.0.entry((function.clone(), call.and_then(place))).or_insert(of_site);
        }
        reduction
    }

    #[inline]
    pub(super) fn finish(self) -> Option<SitesSummary> {
        if self.0.is_empty() {
            return None;
        }
        let sites = || self.0.iter();
        let of_stacks = sites().flat_map(|(_, site)| site.stacks.keys().flatten());
        let of_calls = sites().filter_map(|((_, place), _)| place.as_ref());
        let places: BTreeSet<&Place> = collected(of_calls.chain(of_stacks));
        let load_map = load_map(places.iter().copied());
        let places: Vec<Place> = places.into_iter().cloned().collect();
        let addresses = places.iter().map(|place| place.code_in(&load_map)).collect();
        let mut sites: Vec<SiteSummary> = self
            .0
            .into_iter()
            .filter_map(|((function, place), site)| site.finish(function, place.as_ref(), &places))
            .collect();
        sort_by(&mut sites, |one, other| {
            other.time_s.sum.as_f64().total_cmp(&one.time_s.sum.as_f64())
        });
        Some(SitesSummary { sites, addresses, load_map })
    }
}

impl SiteReduction {
    /// `places` are sorted.
    #[inline]
    fn finish(
        self,
        function: String,
        place: Option<&Place>,
        places: &[Place],
    ) -> Option<SiteSummary> {
        let SiteReduction {
            calls,
            calls_variance,
            timed,
            time_s,
            time_error,
            time_max_s,
            bytes,
            stacks_taken,
            stacks,
        } = self;
        let at = |place: &Place| places.binary_search(place).ok();
        let mut stacks: Vec<SiteStack> = stacks
            .into_iter()
            .map(|(frames, StackReduction { hits, calls, time_s })| SiteStack {
                hits,
                calls,
                time_s,
                frames: frames.iter().filter_map(at).collect(),
            })
            .collect();
        sort_by(&mut stacks, |one, other| other.time_s.total_cmp(&one.time_s));
        stacks.truncate(STACKS_AT_MOST);
        let known = |error: f64| Some(error).filter(|error| error.is_finite());
        Some(SiteSummary {
            function,
            call: place.and_then(at),
            calls: calls.finish()?,
            calls_error: known(calls_variance.sqrt()),
            timed,
            time_s: time_s.finish()?,
            time_error_s: known(time_error),
            time_max_s: time_max_s.finish()?,
            bytes: bytes.and_then(|bytes| bytes.finish()),
            stacks_taken,
            stacks,
        })
    }
}
