//! When did most jobs begin to use another MPI, or another system?

use std::collections::BTreeMap;

use gyan_results::{ArchiveChange, ArchiveChangeKind};

use crate::archive::days::name_of_day;
use crate::archive::report::jobs::{JobFacts, Jobs};
use crate::archive::scan::NOTHING;

/// So many days before and after a change are looked at.
const DAYS: usize = 14;
/// This part of the jobs before a change has what was before, and of those after it what is since.
const MOST: f64 = 0.8;

pub(super) fn of_clusters(jobs: &Jobs) -> Vec<ArchiveChange> {
    let mut by_cluster: BTreeMap<u32, Vec<&JobFacts>> = BTreeMap::new();
    for job in &jobs.facts {
        by_cluster.entry(job.cluster).or_default().push(job);
    }
    let of_cluster = |of: &Vec<&JobFacts>| within(jobs, of).into_iter().map(|(_, change)| change);
    let mut changes: Vec<ArchiveChange> = by_cluster.values().flat_map(of_cluster).collect();
    changes.sort_by(|one, other| one.day.cmp(&other.day));
    changes
}

/// The changes among jobs of one cluster, in the order of their days, with these.
pub(super) fn within(jobs: &Jobs, of: &[&JobFacts]) -> Vec<(i32, ArchiveChange)> {
    let mut changes = Vec::new();
    for kind in [ArchiveChangeKind::Mpi, ArchiveChangeKind::System] {
        let value = |job: &JobFacts| match kind {
            ArchiveChangeKind::Mpi => job.mpi,
            ArchiveChangeKind::System => job.system,
        };
        let mut days: BTreeMap<i32, BTreeMap<u32, u64>> = BTreeMap::new();
        for job in of.iter().filter(|job| value(job) != NOTHING) {
            *days.entry(job.day).or_default().entry(value(job)).or_default() += 1;
        }
        let days: Vec<(i32, BTreeMap<u32, u64>)> = days.into_iter().collect();
        for at in 1..days.len() {
            let before = most(&days[at.saturating_sub(DAYS)..at]);
            let after = most(&days[at..(at + DAYS).min(days.len())]);
            let ([Some(from), Some(to)], true) = (
                [before, after],
                most(&days[at..=at]) == after && most(&days[at - 1..at]) == before,
            ) else {
                continue;
            };
            if from == to {
                continue;
            }
            let cluster = of.first().map_or(NOTHING, |job| job.cluster);
            let [from, to, cluster] =
                [from, to, cluster].map(|code| jobs.names.name(code).to_owned());
            let day = name_of_day(days[at].0);
            changes.push((days[at].0, ArchiveChange { kind, cluster, from, to, day }));
        }
    }
    changes.sort_by_key(|(day, _)| *day);
    changes
}

/// What most jobs of some days have.
fn most(days: &[(i32, BTreeMap<u32, u64>)]) -> Option<u32> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for (value, jobs) in days.iter().flat_map(|(_, of)| of) {
        *sums.entry(*value).or_default() += jobs;
    }
    let all: u64 = sums.values().sum();
    let (value, jobs) = sums.into_iter().max_by_key(|(_, jobs)| *jobs)?;
    (jobs as f64 >= MOST * all as f64).then_some(value)
}
