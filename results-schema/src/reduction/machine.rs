//! What the ranks ran on: hosts that are alike, which ranks share processors on them, and what the ranks used.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::hosts::Hosts;
use crate::merge::{Merge, merge_fields};
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

/// One rank on one processor.
const ONE: u64 = 1 << 32;

/// The demand for processors: the first and last of a range, and the load on each of them, in units of
/// 1/[`ONE`]. A rank that may run on several processors is a fraction of a load on each. Ranges are in order
/// and do not overlap; processors without demand are left out.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
struct Loads(Vec<(u32, u32, u64)>);

impl Loads {
    fn of(processors: &Ranges) -> Loads {
        let Some(load) = ONE.checked_div(processors.len()) else { return Loads::default() };
        Loads(processors.pairs().map(|(first, last)| (first, last, load)).collect())
    }

    fn processors(&self) -> Ranges {
        let mut all = Ranges::default();
        self.0.iter().for_each(|(first, last, _)| all.extend(&Ranges::between(*first, *last)));
        all
    }

    /// The load of all of these together.
    fn on(&self, processors: &Ranges) -> u128 {
        let on_both = |(first, last): (u32, u32)| {
            self.0.iter().map(move |(from, to, load)| {
                let (first, last) = (first.max(*from), last.min(*to));
                let number = (u64::from(last) + 1).saturating_sub(first.into());
                u128::from(number) * u128::from(*load)
            })
        };
        processors.pairs().flat_map(on_both).sum()
    }
}

impl Merge for Loads {
    fn absorb(&mut self, other: &Loads) {
        if self.0.is_empty() {
            return self.clone_from(other);
        }
        // The change of the load at a processor.
        let mut changes: BTreeMap<u64, i128> = BTreeMap::new();
        for &(first, last, load) in self.0.iter().chain(&other.0) {
            *changes.entry(first.into()).or_default() += i128::from(load);
            *changes.entry(u64::from(last) + 1).or_default() -= i128::from(load);
        }
        self.0.clear();
        let (mut from, mut load) = (0, 0_i128);
        for (at, change) in changes.into_iter().filter(|(_, change)| *change != 0) {
            if let (Ok(first), Ok(last)) =
                (u32::try_from(from), u32::try_from(at - u64::from(at > 0)))
                && load > 0
            {
                self.0.push((first, last, u64::try_from(load).unwrap_or(u64::MAX)));
            }
            (from, load) = (at, load + change);
        }
    }
}

/// Which ranks may run where on a host.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct PlacementReduction {
    ranks: u64,
    loads: Loads,
    /// What the control groups allow, for ranks that may not run on all of it.
    allowed: Ranges,
    /// The paths of groups that limit processor time, and their limits in thousandths of a processor.
    limits: BTreeSet<(String, u64)>,
    without_limit: u64,
}

merge_fields! {
    PlacementReduction { ranks, loads, allowed, limits, without_limit }
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
        PlacementReduction {
            ranks: 1,
            loads: Loads::of(&processors),
            allowed: allowed.unwrap_or_default(),
            without_limit: u64::from(limit.is_none()),
            limits: limit.into_iter().collect(),
        }
    }

    fn finish(&self, host: &str, machine: Option<&Machine>) -> Option<PlacementSummary> {
        let PlacementReduction { ranks, loads, allowed, limits, without_limit } = self;
        let used = loads.processors();
        if used.is_empty() {
            return None;
        }
        let parsed = |text: &String| text.parse::<Ranges>().unwrap_or_default();
        let cores: Option<Vec<Ranges>> = machine
            .filter(|machine| machine.cores.is_some())
            .map(|machine| machine.core_processors.iter().map(parsed).collect());
        // Each counts as its own core if the host does not say more.
        let cores_of = |processors: &Ranges| match cores.as_deref() {
            None | Some([]) => processors.len(),
            Some(cores) => {
                cores.iter().filter(|core| core.common(processors).is_some()).count() as u64
            }
        };
        let mut available = allowed.clone();
        if available.is_empty() {
            available = machine.map(|machine| parsed(&machine.processors)).unwrap_or_default();
        }
        let core_with = |processors: &Ranges| match cores.as_deref() {
            None | Some([]) => processors.clone(),
            Some(cores) => {
                let mut whole = Ranges::default();
                let with = cores.iter().filter(|core| core.common(processors).is_some());
                with.for_each(|core| whole.extend(core));
                whole
            }
        };
        let free_cores = cores_of(&available.without(&core_with(&used)));
        // Rounding can lower a load by up to one unit per processor.
        let is_crowded = |load: u128| load > u128::from(ONE + ONE / 100);
        let mut crowded = Ranges::default();
        let mut most = 0;
        let mut look_at = |core: Ranges, load: u128| {
            if is_crowded(load) {
                crowded.extend(&core);
                most = most.max(load);
            }
        };
        match cores.as_deref() {
            None | Some([]) => loads.0.iter().for_each(|(first, last, load)| {
                look_at(Ranges::between(*first, *last), (*load).into());
            }),
            Some(cores) => cores.iter().for_each(|core| look_at(core.clone(), loads.on(core))),
        }
        let crowded = (free_cores > 0 && most > 0).then(|| Crowded {
            processors: crowded.to_string(),
            ranks_per_core: rounded(most as f64 / ONE as f64),
            free_cores,
        });
        let limit = limits.iter().fold(0, |sum: u64, (_, limit)| sum.saturating_add(*limit));
        let mut placement = PlacementSummary {
            hosts: vec![host.to_owned()],
            ranks: *ranks,
            processors: used.len(),
            cores: cores.is_some().then(|| cores_of(&used)),
            processor_limit: (*without_limit == 0).then_some(limit as f64 / 1000.0),
            is_oversubscribed: false,
            crowded,
        };
        placement.is_oversubscribed = *ranks as f64 > placement.capacity();
        Some(placement)
    }
}

/// Ignoring what the rounding of loads leaves.
fn rounded(load: f64) -> f64 {
    (load * 1000.0).round() / 1000.0
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
    use crate::Resources;

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
            let Crowded { processors, ranks_per_core, free_cores } =
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

    #[test]
    fn loads_add_up_in_any_order_and_alike_neighbours_are_one_range() {
        let ranks = ["0-3", "2-5", "9", "0-1", "4294967290-4294967295", "3"];
        let of = |order: &[usize]| {
            let mut all = Loads::default();
            for at in order {
                let processors: Ranges = ranks[*at].parse().unwrap();
                all.absorb(&Loads::of(&processors));
            }
            all
        };
        let expected = of(&[0, 1, 2, 3, 4, 5]);
        assert_eq!(expected, of(&[5, 3, 1, 0, 2, 4]));
        assert_eq!(expected.processors().to_string(), "0-5,9,4294967290-4294967295");
        let mut bound = Loads::default();
        for processor in 0..4 {
            bound.absorb(&Loads::of(&Ranges::of(processor)));
        }
        assert_eq!(bound, Loads(vec![(0, 3, ONE)]));
    }
}
