//! Parallel regions over ranks. Ranks may have different ones.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::places::{Objects, Place, load_map};
use super::sorted::Sorted;
use crate::data::derive;
use crate::merge::{Absent, MergeFields, Takes};
use crate::openmp::{OpenMpReduction, OpenMpRegionReduction};
use crate::{OpenMp, OpenMpRegionSummary, OpenMpSummary, collected, sort_by};

/// Over the ranks with an OpenMP runtime that tells.
#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct OpenMpRanks {
    numbers: Option<OpenMpReduction>,
    regions: Sorted<Option<Place>, OpenMpRegionReduction>,
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Merge;
    use crate::{CodeAddress, LoadedObject, OpenMpRegion};

    /// A rank whose regions begin at these addresses, and take as many seconds as the second number says.
    fn rank_with(rank: u32, regions: &[(u64, f64)]) -> OpenMpRanks {
        let region = |(at, (_, time_s)): (usize, &(u64, f64))| OpenMpRegion {
            place: Some(at),
            entries: 2,
            timed: 2,
            threads: 4,
            time_s: *time_s,
            work_s: 3.0 * time_s,
            most_work_s: *time_s,
            ..OpenMpRegion::default()
        };
        let code = |(address, _): &(u64, f64)| CodeAddress {
            object: Some(0),
            address: *address,
            name: None,
        };
        let openmp = OpenMp {
            runtime: format!("runtime of rank {rank}"),
            threads: 4,
            elapsed_s: 10.0,
            serial_s: 1.0,
            regions: regions.iter().enumerate().map(region).collect(),
            addresses: regions.iter().map(code).collect(),
            load_map: vec![LoadedObject { path: "/app".into(), build_id: None }],
            ..OpenMp::default()
        };
        let mut ranks = OpenMpRanks::default();
        ranks.set(Some(&openmp), rank);
        ranks
    }

    #[test]
    fn regions_of_the_same_place_are_one() {
        let mut ranks = rank_with(1, &[(7, 1.0), (9, 4.0)]);
        ranks.absorb(&OpenMpRanks::default());
        ranks.absorb(&rank_with(0, &[(9, 2.0)]));
        let summary = ranks.finish().unwrap();
        assert_eq!(summary.runtime, "runtime of rank 0");
        assert_eq!((summary.serial_s.ranks, summary.capacity_s.sum.as_f64()), (2, 80.0));
        let found: Vec<_> = summary
            .regions
            .iter()
            .map(|region| {
                let address = summary.addresses[region.place.unwrap()].address;
                (address, region.time_s.sum.as_f64(), region.time_s.ranks, region.timed)
            })
            .collect();
        assert_eq!(found, [(9, 6.0, 2, 4), (7, 1.0, 1, 2)]);
        let lost = &summary.regions[0].lost_to_imbalance_s;
        assert_eq!((lost.sum.as_f64(), lost.max_rank), (6.0, 1));
    }

    #[test]
    fn a_job_without_a_runtime_that_tells_has_nothing() {
        let mut ranks = OpenMpRanks::default();
        ranks.set(None, 3);
        assert!(ranks.finish().is_none());
    }
}
