//! The ranks of each host, and a few numbers over them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::json;
use super::machine::PlacementReduction;
use crate::data::derive;
use crate::hosts::{HostStatistic, HostSummary};
use crate::merge::{Lowest, MergeFields};
use crate::queues::{Quantity, sampled_length};
use crate::ranges::Ranges;
use crate::{HostCounters, HostCountersSummary, Number, RankProfile, Statistics};

/// By name.
pub(super) type Hosts = BTreeMap<String, HostReduction>;

#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct HostReduction {
    ranks: Ranges,
    /// When the lowest of them began, by the clock of the host.
    pub(super) started: Lowest<String>,
    in_mpi: Statistics,
    unexpected_length: Statistics,
    posted_length: Statistics,
    pub(super) placement: PlacementReduction,
    /// Of the lowest rank that has them.
    #[serde(with = "json")]
    counters: Option<Lowest<HostCounters>>,
}

impl HostReduction {
    pub(super) fn of(profile: &RankProfile) -> HostReduction {
        let rank = profile.rank;
        let of = |value: Option<f64>| {
            value.map(|value| Statistics::of(Number::Double(value), rank)).unwrap_or_default()
        };
        HostReduction {
            ranks: Ranges::of(rank),
            started: Lowest { rank, said: profile.job.started.clone() },
            in_mpi: of(profile.in_mpi.as_ref().map(|in_mpi| in_mpi.share)),
            unexpected_length: of(sampled_length(profile, Quantity::UnexpectedLength)),
            posted_length: of(sampled_length(profile, Quantity::PostedLength)),
            placement: PlacementReduction::of(profile),
            counters: profile.host_counters.clone().map(|said| Lowest { rank, said }),
        }
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = u32> {
        self.ranks.iter()
    }

    fn finish(self, host: String) -> HostSummary {
        let HostReduction {
            ranks,
            started: _,
            in_mpi,
            unexpected_length,
            posted_length,
            placement: _,
            counters: _,
        } = self;
        let number = |statistics: Statistics| statistics.finish().as_ref().map(HostStatistic::of);
        HostSummary {
            host,
            ranks: ranks.to_string(),
            in_mpi: number(in_mpi),
            unexpected_length: number(unexpected_length),
            posted_length: number(posted_length),
        }
    }
}

pub(super) fn finish(hosts: Hosts) -> Vec<HostSummary> {
    hosts.into_iter().map(|(name, host)| host.finish(name)).collect()
}

/// The counters of the hosts that have any.
pub(super) fn counters(hosts: &Hosts) -> Vec<HostCountersSummary> {
    let counted = |(name, host): (&String, &HostReduction)| {
        let counters = host.counters.as_ref()?.said.clone();
        let in_mpi_share = host.in_mpi.clone().finish().map(|share| share.avg);
        Some(HostCountersSummary { host: name.clone(), in_mpi_share, counters })
    };
    hosts.iter().filter_map(counted).collect()
}
