//! Parallel regions over ranks. Ranks may have different ones.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::places::{Objects, Place, load_map};
use super::sorted::Sorted;
use crate::merge::{Absent, Takes, merge_fields};
use crate::openmp::{OpenMpReduction, OpenMpRegionReduction};
use crate::{OpenMp, OpenMpRegionSummary, OpenMpSummary, collected, sort_by};

/// Over the ranks with an OpenMP runtime that tells.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct OpenMpRanks {
    numbers: Option<OpenMpReduction>,
    regions: Sorted<Option<Place>, OpenMpRegionReduction>,
}

merge_fields! { OpenMpRanks { numbers, regions } }

impl OpenMpRanks {
    /// Makes this what one rank has. The first of two regions of the same place counts.
    pub(super) fn set(&mut self, openmp: Option<&OpenMp>, rank: u32) {
        self.regions.clear();
        self.numbers = openmp.map(|openmp| {
            let mut numbers = OpenMpReduction::default();
            numbers.set(openmp, rank);
            numbers
        });
        let Some(OpenMp { regions, addresses, load_map, .. }) = openmp else { return };
        let mut objects = Objects::default();
        objects.set(load_map);
        let places: Vec<Place> = addresses.iter().map(|code| objects.code(code)).collect();
        for region in regions {
            let place = region.place.and_then(|at| places.get(at));
            let row = self.regions.row(
                |known| known.as_ref() == place,
                |known| known.as_ref().cmp(&place),
                || place.cloned(),
            );
            if let Some((false, row)) = row {
                row.set(region, rank);
            }
        }
    }

    pub(super) fn finish(self) -> Option<OpenMpSummary> {
        let places: BTreeSet<&Place> = collected(self.regions.keys().flatten());
        let load_map = load_map(places.iter().copied());
        let places: Vec<Place> = places.into_iter().cloned().collect();
        let addresses = places.iter().map(|place| place.code_in(&load_map)).collect();
        let at = |place: Place| places.binary_search(&place).ok();
        let regions = self.regions.into_rows();
        let mut regions: Vec<OpenMpRegionSummary> = regions
            .filter_map(|(place, row)| row.finish(place.and_then(at), Absent::default()))
            .collect();
        sort_by(&mut regions, |one, other| {
            other.time_s.sum.as_f64().total_cmp(&one.time_s.sum.as_f64())
        });
        let numbers = self.numbers?.finish(Absent::default())?;
        Some(OpenMpSummary { regions, addresses, load_map, ..numbers })
    }
}
