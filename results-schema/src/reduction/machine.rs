//! What the ranks ran on: hosts that are alike, which ranks share processors on them, and what the ranks used.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::hosts::Hosts;
use crate::data::derive;
use crate::loads::Loads;
use crate::merge::{Merge, MergeFields};
use crate::ranges::Ranges;
use crate::{Cgroup, Crowded, Machine, MachineSummary, PlacementSummary, RankProfile};

/// The hosts of each machine. The machine as JSON: most hosts of a job are alike.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Machines(BTreeMap<String, BTreeSet<String>>);

impl Merge for Machines {
    fn absorb(&mut self, other: &Machines) {
        self.0.absorb(&other.0);
    }
}

impl Machines {
    pub(super) fn set(&mut self, profile: &RankProfile) {
        self.0.clear();
        let machine = profile.machine.as_ref().map(serde_json::to_string);
        if let Some(Ok(machine)) = machine {
            self.0.insert(machine, BTreeSet::from([profile.host.clone()]));
        }
    }

    pub(super) fn finish(self) -> Vec<MachineSummary> {
        let machines = self.0.into_iter();
        let of = |(machine, hosts): (String, BTreeSet<String>)| {
            let machine = serde_json::from_str(&machine).ok()?;
            Some(MachineSummary { hosts: hosts.into_iter().collect(), machine })
        };
        machines.filter_map(of).collect()
    }
}

/// Which ranks may run where on a host.
#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct PlacementReduction {
    ranks: u64,
    /// Ranks, where their first threads could run at the start.
    loads: Loads,
    /// Of a rank with busy threads each of them, where it could run at the end; of any other rank the first.
    threads: Loads,
    busy: u64,
    /// What the control groups allow, for ranks that may not run on all of it.
    allowed: Ranges,
    /// The paths of groups that limit processor time, and their limits in thousandths of a processor.
    limits: BTreeSet<(String, u64)>,
    without_limit: u64,
}

impl PlacementReduction {
    pub(super) fn of(profile: &RankProfile) -> PlacementReduction {
        let Some(resources) = &profile.resources else { return PlacementReduction::default() };
        let processors: Ranges = resources.processors.parse().unwrap_or_default();
        if processors.is_empty() {
            return PlacementReduction::default();
        }
        let cgroup = resources.cgroup.as_ref();
        let allowed = cgroup.and_then(|cgroup| cgroup.processors.as_ref()?.parse().ok());
        let limit = cgroup.and_then(|Cgroup { path, processor_limit, .. }| {
            // A double beyond the range of integers is the nearest of them.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let limit = (processor_limit.filter(|limit| *limit > 0.0)? * 1000.0).round() as u64;
            Some((path.clone().unwrap_or_default(), limit))
        });
        let loads = Loads::of(&processors);
        let busy = resources.threads.as_ref().filter(|threads| threads.busy > 0);
        let threads = busy.map_or_else(|| loads.clone(), |of| Loads::from_rows(&of.loads));
        PlacementReduction {
            ranks: 1,
            loads,
            threads,
            busy: busy.map_or(1, |threads| threads.busy),
            allowed: allowed.unwrap_or_default(),
            without_limit: u64::from(limit.is_none()),
            limits: limit.into_iter().collect(),
        }
    }

    fn finish(&self, host: &str, machine: Option<&Machine>) -> Option<PlacementSummary> {
        let PlacementReduction { ranks, loads, threads, busy, allowed, limits, without_limit } =
            self;
        let running = threads.processors();
        let mut used = loads.processors();
        used.extend(&running);
        if used.is_empty() {
            return None;
        }
        let parsed = |text: &String| text.parse::<Ranges>().unwrap_or_default();
        let are_cores_known = machine.is_some_and(|machine| machine.cores.is_some());
        // Each processor counts as its own core if the host does not say more.
        let cores: Vec<Ranges> = machine
            .filter(|_| are_cores_known)
            .map(|machine| machine.core_processors.iter().map(parsed).collect())
            .unwrap_or_default();
        let with = |processors: &Ranges| -> Vec<&Ranges> {
            cores.iter().filter(|core| core.common(processors).is_some()).collect()
        };
        let cores_of = |processors: &Ranges| {
            if cores.is_empty() { processors.len() } else { with(processors).len() as u64 }
        };
        let mut available = allowed.clone();
        if available.is_empty() {
            available = machine.map(|machine| parsed(&machine.processors)).unwrap_or_default();
        }
        let mut taken = running.clone();
        for core in with(&running) {
            taken.extend(core);
        }
        let free_cores = cores_of(&available.without(&taken));
        let (crowded, threads_per_core) = threads.crowded(&cores);
        let (_, ranks_per_core) = loads.crowded(&cores);
        let crowded = (free_cores > 0 && !crowded.is_empty()).then(|| Crowded {
            processors: crowded.to_string(),
            ranks_per_core: if *busy > *ranks { ranks_per_core } else { threads_per_core },
            threads_per_core: (*busy > *ranks).then_some(threads_per_core),
            free_cores,
        });
        let limit = limits.iter().fold(0, |sum: u64, (_, limit)| sum.saturating_add(*limit));
        let mut placement = PlacementSummary {
            hosts: vec![host.to_owned()],
            ranks: *ranks,
            threads: (*busy > *ranks).then_some(*busy),
            processors: used.len(),
            cores: are_cores_known.then(|| cores_of(&used)),
            processor_limit: (*without_limit == 0).then_some(limit as f64 / 1000.0),
            is_oversubscribed: false,
            crowded,
        };
        placement.is_oversubscribed = placement.demand() as f64 > placement.capacity();
        Some(placement)
    }
}

/// Identical hosts form one row, in the order of the first of them.
pub(super) fn placements(hosts: &Hosts, machines: &[MachineSummary]) -> Vec<PlacementSummary> {
    let machine_of: BTreeMap<&String, &Machine> = machines
        .iter()
        .flat_map(|of| of.hosts.iter().map(move |host| (host, &of.machine)))
        .collect();
    let mut rows: Vec<PlacementSummary> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (name, host) in hosts {
        let Some(row) = host.placement.finish(name, machine_of.get(name).copied()) else {
            continue;
        };
        let alike = serde_json::to_string(&PlacementSummary { hosts: Vec::new(), ..row.clone() });
        let place = *known.entry(alike.unwrap_or_default()).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(first) => first.hosts.extend(row.hosts),
            None => rows.push(row),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Resources, Threads};

    fn machine(processors: &str, cores: &[&str]) -> Machine {
        Machine {
            processors: processors.into(),
            cores: Some(if cores.is_empty() {
                processors.parse::<Ranges>().unwrap().len()
            } else {
                cores.len() as u64
            }),
            core_processors: cores.iter().map(|core| (*core).into()).collect(),
            ..Machine::default()
        }
    }

    /// Ranks that may run on these processors of one host.
    fn placed(ranks: &[&str], machine: Option<&Machine>) -> PlacementSummary {
        limited(&ranks.iter().map(|rank| (*rank, None)).collect::<Vec<_>>(), machine)
    }

    /// The same, with the control group of each rank and what it allows.
    fn limited(
        ranks: &[(&str, Option<(&str, f64)>)],
        machine: Option<&Machine>,
    ) -> PlacementSummary {
        let mut all = PlacementReduction::default();
        for (rank, (processors, limit)) in (0..).zip(ranks) {
            let cgroup = limit.map(|(path, limit)| Cgroup {
                path: Some(path.into()),
                processor_limit: Some(limit),
                ..Cgroup::default()
            });
            let resources =
                Resources { processors: (*processors).into(), cgroup, ..Resources::default() };
            let mut profile = crate::reduction::tests::profile("a", rank, 4);
            profile.resources = Some(resources);
            all.absorb(&PlacementReduction::of(&profile));
        }
        all.finish("n1", machine).unwrap()
    }

    #[test]
    fn more_ranks_than_processors_are_too_many_however_they_are_bound() {
        for (ranks, processors, too_many) in [
            (&["0-1"; 4][..], 2, true),
            (&["0-1"; 2], 2, false),
            (&["0", "1", "2", "3"], 4, false),
            (&["0", "0", "0", "0"], 1, true),
            (&["0-3", "2-5", "9"], 7, false),
            (&["0-63"; 65], 64, true),
        ] {
            let placement = placed(ranks, None);
            assert_eq!(placement.ranks, ranks.len() as u64);
            assert_eq!(placement.processors, processors, "{ranks:?}");
            assert_eq!(placement.is_oversubscribed, too_many, "{ranks:?}");
            assert_eq!((placement.cores, placement.crowded), (None, None), "{ranks:?}");
        }
    }

    #[test]
    fn a_limit_of_processor_time_bounds_what_a_group_of_ranks_may_use() {
        let whole = ("0-7", Some(("/job", 2.5)));
        let [two, four] = [2, 4].map(|ranks| limited(&vec![whole; ranks], None));
        assert_eq!((two.processor_limit, two.is_oversubscribed), (Some(2.5), false));
        // A group has one limit, however many ranks are in it.
        assert_eq!((four.processor_limit, four.is_oversubscribed), (Some(2.5), true));
        let own = [("0-7", Some(("/job/0", 1.0))), ("0-7", Some(("/job/1", 1.0)))];
        let own = limited(&own, None);
        assert_eq!((own.processor_limit, own.is_oversubscribed), (Some(2.0), false));
        let one_is_free = limited(&[whole, ("0-7", None), whole], None);
        assert_eq!((one_is_free.processor_limit, one_is_free.is_oversubscribed), (None, false));
    }

    #[test]
    fn cores_that_are_shared_while_others_are_free_are_told() {
        let crowded = |ranks: &[&str], machine: &Machine| {
            let Crowded { processors, ranks_per_core, free_cores, .. } =
                placed(ranks, Some(machine)).crowded?;
            Some((processors, ranks_per_core, free_cores))
        };
        let four = machine("0-3", &[]);
        assert_eq!(crowded(&["0", "0", "0", "0"], &four), Some(("0".into(), 4.0, 3)));
        assert_eq!(crowded(&["0", "0", "1", "2"], &four), Some(("0".into(), 2.0, 1)));
        assert_eq!(crowded(&["0-1", "0-1", "0-1"], &four), Some(("0-1".into(), 1.5, 2)));
        // All of them are used, or no rank has to share.
        for ranks in [&["0-3"; 8][..], &["0", "1"], &["0-1", "0-1"], &["0", "0", "1-3"]] {
            assert_eq!(crowded(ranks, &four), None, "{ranks:?}");
        }
        // Two threads of one core, while another core is free.
        let threads = machine("0-3", &["0,2", "1,3"]);
        assert_eq!(crowded(&["0", "2"], &threads), Some(("0,2".into(), 2.0, 1)));
        assert_eq!(crowded(&["0", "1"], &threads), None);
        assert_eq!(crowded(&["0", "1", "2", "3"], &threads), None);
        assert_eq!(placed(&["0", "1", "2"], Some(&threads)).cores, Some(2));
    }

    /// Ranks that may run on these processors, each with its busy threads and where those may run.
    fn threaded(ranks: &[(&str, &[&str])], machine: &Machine) -> PlacementSummary {
        let mut all = PlacementReduction::default();
        for (rank, (processors, threads)) in (0..).zip(ranks) {
            let mut loads = Loads::default();
            threads.iter().for_each(|thread| loads.add(&thread.parse().unwrap()));
            let busy = threads.len() as u64;
            let threads =
                Threads { number: busy + 2, busy, loads: loads.rows(), ..Threads::default() };
            let mut profile = crate::reduction::tests::profile("a", rank, 4);
            profile.resources = Some(Resources {
                processors: (*processors).into(),
                threads: Some(threads),
                ..Resources::default()
            });
            all.absorb(&PlacementReduction::of(&profile));
        }
        all.finish("n1", Some(machine)).unwrap()
    }

    #[test]
    fn busy_threads_need_a_processor_each_and_a_rank_without_one_counts_as_one() {
        let four = machine("0-3", &[]);
        for (ranks, threads, too_many) in [
            (&[("0-3", &["0-3"; 1][..]), ("0-3", &[])][..], None, false),
            (&[("0-3", &["0-3"; 2]), ("0-3", &["0-3"; 2])], Some(4), false),
            (&[("0-3", &["0-3"; 2]), ("0-3", &["0-3"; 3])], Some(5), true),
            // An OpenMP runtime binds the first thread before MPI_Init, and the others to other processors.
            (&[("0", &["0", "1", "2", "3"])], Some(4), false),
        ] {
            let placement = threaded(ranks, &four);
            let found =
                (placement.threads, placement.is_oversubscribed, placement.crowded.is_some());
            assert_eq!(found, (threads, too_many, false), "{ranks:?}");
        }
    }

    #[test]
    fn threads_on_one_core_while_others_are_free_are_told() {
        let crowded = |ranks: &[(&str, &[&str])], machine: &Machine| {
            let of = threaded(ranks, machine).crowded?;
            Some((of.processors, of.ranks_per_core, of.threads_per_core, of.free_cores))
        };
        let four = machine("0-3", &[]);
        // The launcher binds to a core, or the OpenMP runtime does.
        let one = &[("0", &["0"; 4][..])];
        assert_eq!(crowded(one, &four), Some(("0".into(), 1.0, Some(4.0), 3)));
        let own = &[("0-3", &["1", "1"][..])];
        assert_eq!(crowded(own, &four), Some(("1".into(), 0.25, Some(2.0), 3)));
        let cores = machine("0-3", &["0,2", "1,3"]);
        let two = &[("0-3", &["0", "2"][..])];
        assert_eq!(crowded(two, &cores), Some(("0,2".into(), 0.5, Some(2.0), 1)));
        assert_eq!(crowded(&[("0-3", &["0", "1"][..])], &cores), None);
        assert_eq!(crowded(&[("0-3", &["0-3"; 2][..])], &four), None);
    }
}
