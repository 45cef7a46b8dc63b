//! Who sends to whom, over ranks. Large jobs do not keep each pair.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hosts::Hosts;
use crate::data::derive;
use crate::merge::{Merge, MergeFields};
use crate::{
    DistanceTraffic, HostTraffic, MatrixRow, PairTraffic, PeerTraffic, Peers, RankProfile,
    RankTraffic, TrafficKind, TrafficSummary, collected, sort_by,
};

/// Up to this many ranks, each pair is kept.
const MATRIX_AT_MOST: u32 = 1024;
const HEAVIEST: usize = 64;
const DISTANCES: usize = 64;
/// In a larger job: how many peers of a rank have their host looked up.
const PEERS_BY_HOST: usize = 64;

/// For each way in which anything was sent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct TrafficReduction(BTreeMap<TrafficKind, OneWay>);

#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
struct OneWay {
    ranks: BTreeMap<u32, OfRank>,
    heaviest: Heaviest,
    by_distance: BTreeMap<u32, Amount>,
    /// From each host to each rank; none for peers that are not known or not looked up.
    from_host: BTreeMap<String, BTreeMap<Option<u32>, Amount>>,
}

#[derive(MergeFields!, Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Amount {
    number: u64,
    bytes: u64,
}

/// What one rank sent.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct OfRank {
    peers: u64,
    all: Amount,
    heaviest: Option<(u32, u64)>,
    /// Empty in a large job.
    row: Vec<(Option<u32>, u64, u64)>,
}

/// The pairs with the most bytes, in that order.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Heaviest(Vec<(u32, u32, Amount)>);

impl Merge for TrafficReduction {
    fn absorb(&mut self, other: &TrafficReduction) {
        self.0.absorb(&other.0);
    }
}

/// No rank is reduced twice.
impl Merge for OfRank {
    fn absorb(&mut self, _: &OfRank) {}
}

impl Merge for Heaviest {
    fn absorb(&mut self, other: &Heaviest) {
        self.0.extend(&other.0);
        self.cut();
    }
}

impl Heaviest {
    fn cut(&mut self) {
        let key = |(from, to, amount): &(u32, u32, Amount)| {
            (Reverse((amount.bytes, amount.number)), *from, *to)
        };
        sort_by(&mut self.0, |one, other| key(one).cmp(&key(other)));
        self.0.truncate(HEAVIEST);
    }
}

impl TrafficReduction {
    pub(super) fn of(profile: &RankProfile) -> TrafficReduction {
        let Some(Peers { messages, accesses }) = &profile.peers else {
            return TrafficReduction::default();
        };
        let ways = [(TrafficKind::Messages, messages), (TrafficKind::Accesses, accesses)];
        let sent = ways.into_iter().filter(|(_, rows)| !rows.is_empty());
        TrafficReduction(collected(sent.map(|(kind, rows)| (kind, OneWay::of(profile, rows)))))
    }

    pub(super) fn finish(self, hosts: &Hosts) -> Vec<TrafficSummary> {
        self.0.into_iter().map(|(kind, way)| way.finish(kind, hosts)).collect()
    }
}

impl OneWay {
    fn of(profile: &RankProfile, rows: &[PeerTraffic]) -> OneWay {
        let is_large = profile.size > MATRIX_AT_MOST;
        let mut all = Amount::default();
        let mut known: Vec<(u32, Amount)> = Vec::new();
        let mut way = OneWay::default();
        for &PeerTraffic { rank, number, bytes } in rows {
            let amount = Amount { number, bytes };
            all.absorb(&amount);
            known.extend(rank.map(|rank| (rank, amount)));
        }
        let key = |(rank, amount): &(u32, Amount)| (Reverse((amount.bytes, amount.number)), *rank);
        sort_by(&mut known, |one, other| key(one).cmp(&key(other)));
        way.heaviest.0 = known.iter().map(|(to, amount)| (profile.rank, *to, *amount)).collect();
        way.heaviest.cut();
        for (to, amount) in &known {
            way.by_distance.entry(to.abs_diff(profile.rank)).or_default().absorb(amount);
        }
        let by_host = known.iter().take(if is_large { PEERS_BY_HOST } else { usize::MAX });
        let mut to_host: BTreeMap<Option<u32>, Amount> = BTreeMap::new();
        let mut rest = all;
        for (to, amount) in by_host {
            rest.number = rest.number.saturating_sub(amount.number);
            rest.bytes = rest.bytes.saturating_sub(amount.bytes);
            to_host.entry(Some(*to)).or_default().absorb(amount);
        }
        if (rest.number, rest.bytes) != (0, 0) {
            to_host.insert(None, rest);
        }
        way.from_host.insert(profile.host.clone(), to_host);
        let row = |row: &PeerTraffic| (row.rank, row.number, row.bytes);
        let of_rank = OfRank {
            peers: known.len() as u64,
            all,
            heaviest: known.first().map(|(to, amount)| (*to, amount.bytes)),
            row: if is_large { Vec::new() } else { rows.iter().map(row).collect() },
        };
        way.ranks.insert(profile.rank, of_rank);
        way
    }

    fn finish(self, kind: TrafficKind, hosts: &Hosts) -> TrafficSummary {
        let OneWay { ranks, heaviest, by_distance, from_host } = self;
        let mut all = Amount::default();
        let (mut of_ranks, mut matrix) = (Vec::new(), Vec::new());
        for (rank, OfRank { peers, all: Amount { number, bytes }, heaviest, row }) in ranks {
            all.absorb(&Amount { number, bytes });
            let (heaviest, heaviest_bytes) = heaviest.unzip();
            let heaviest_bytes = heaviest_bytes.unwrap_or(0);
            of_ranks.push(RankTraffic { rank, peers, number, bytes, heaviest, heaviest_bytes });
            if !row.is_empty() {
                matrix.push(MatrixRow { rank, to: row });
            }
        }
        let heaviest = heaviest.0.into_iter();
        let pair = |(from, to, Amount { number, bytes })| PairTraffic { from, to, number, bytes };
        TrafficSummary {
            kind,
            number: all.number,
            bytes: all.bytes,
            ranks: of_ranks,
            matrix,
            heaviest: heaviest.map(pair).collect(),
            by_distance: distances(by_distance),
            by_host: if hosts.len() > 1 { between_hosts(&from_host, hosts) } else { Vec::new() },
        }
    }
}

fn distances(by_distance: BTreeMap<u32, Amount>) -> Vec<DistanceTraffic> {
    let mut all: Vec<(u32, Amount)> = by_distance.into_iter().collect();
    let key =
        |(distance, amount): &(u32, Amount)| (Reverse((amount.bytes, amount.number)), *distance);
    sort_by(&mut all, |one, other| key(one).cmp(&key(other)));
    let of = |distance, Amount { number, bytes }| DistanceTraffic { distance, number, bytes };
    let shown = all.iter().take(DISTANCES).map(|(distance, amount)| of(Some(*distance), *amount));
    let mut shown: Vec<DistanceTraffic> = shown.collect();
    let mut rest = Amount::default();
    for (_, amount) in all.iter().skip(DISTANCES) {
        rest.absorb(amount);
    }
    if all.len() > DISTANCES {
        shown.push(of(None, rest));
    }
    shown
}

fn between_hosts(
    from_host: &BTreeMap<String, BTreeMap<Option<u32>, Amount>>,
    hosts: &Hosts,
) -> Vec<HostTraffic> {
    let host_of: BTreeMap<u32, &String> =
        hosts.iter().flat_map(|(name, host)| host.ranks().map(move |rank| (rank, name))).collect();
    let mut pairs: BTreeMap<(&String, Option<&String>), Amount> = BTreeMap::new();
    for (from, to) in from_host {
        for (rank, amount) in to {
            let to = rank.and_then(|rank| host_of.get(&rank).copied());
            pairs.entry((from, to)).or_default().absorb(amount);
        }
    }
    let pair = |((from, to), Amount { number, bytes }): ((&String, Option<&String>), Amount)| {
        HostTraffic { from: from.clone(), to: to.cloned(), number, bytes }
    };
    pairs.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(rank: u32, size: u32, host: &str, to: &[(Option<u32>, u64, u64)]) -> RankProfile {
        let mut profile = crate::parse_rank(include_bytes!("../../examples/rank.json")).unwrap();
        let row = |&(rank, number, bytes): &_| PeerTraffic { rank, number, bytes };
        let messages = to.iter().map(row).collect();
        profile.peers = Some(Peers { messages, accesses: Vec::new() });
        (profile.rank, profile.size, profile.host) = (rank, size, host.into());
        profile
    }

    fn summary(profiles: &[RankProfile]) -> TrafficSummary {
        let mut reduction = crate::Reduction::default();
        for profile in profiles {
            reduction.add(&format!("rank-{}", profile.rank), profile);
        }
        let mut ways = reduction.finish().unwrap().peers;
        assert_eq!(ways.len(), 1);
        ways.remove(0)
    }

    #[test]
    fn a_matrix_holds_each_pair_and_what_goes_elsewhere() {
        let all = summary(&[
            profile(1, 3, "b", &[(Some(0), 2, 20), (Some(2), 1, 100)]),
            profile(0, 3, "a", &[(Some(1), 4, 40), (None, 1, 5)]),
        ]);
        assert_eq!((all.number, all.bytes), (8, 165));
        let rows: Vec<_> = all.matrix.iter().map(|row| (row.rank, row.to.as_slice())).collect();
        let first = [(Some(1), 4, 40), (None, 1, 5)];
        let second = [(Some(0), 2, 20), (Some(2), 1, 100)];
        assert_eq!(rows, [(0, &first[..]), (1, &second[..])]);
        let heaviest: Vec<_> = all.heaviest.iter().map(|pair| (pair.from, pair.to)).collect();
        assert_eq!(heaviest, [(1, 2), (0, 1), (1, 0)]);
        let ranks: Vec<_> = all.ranks.iter().map(|rank| (rank.peers, rank.heaviest)).collect();
        assert_eq!(ranks, [(1, Some(1)), (2, Some(2))]);
        assert_eq!(all.by_distance.len(), 1);
        assert_eq!((all.by_distance[0].number, all.by_distance[0].bytes), (7, 160));
        let hosts: Vec<_> =
            all.by_host.iter().map(|pair| (&*pair.from, pair.to.as_deref(), pair.bytes)).collect();
        // The host of rank 2 is not known.
        let expected =
            [("a", None, 5), ("a", Some("b"), 40), ("b", None, 100), ("b", Some("a"), 20)];
        assert_eq!(hosts, expected);
    }

    #[test]
    fn of_a_large_job_the_heaviest_pairs_and_the_distances_are_kept() {
        let ranks = (0..200_u32).map(|rank| {
            let to: Vec<_> = (1..101).map(|far| (Some(rank + far), 1, u64::from(far))).collect();
            profile(rank, 2000, if rank < 100 { "a" } else { "b" }, &to)
        });
        let all = summary(&ranks.collect::<Vec<_>>());
        assert!(all.matrix.is_empty());
        assert_eq!((all.number, all.bytes), (200 * 100, 200 * 5050));
        assert_eq!(all.heaviest.len(), HEAVIEST);
        assert!(all.heaviest.iter().all(|pair| pair.to - pair.from == 100 && pair.bytes == 100));
        assert_eq!(all.by_distance.len(), DISTANCES + 1);
        assert_eq!(all.by_distance[0].distance, Some(100));
        let rest = all.by_distance[DISTANCES];
        assert_eq!((rest.distance, rest.bytes), (None, 200 * (36 * 37 / 2)));
        let bytes: u64 = all.by_host.iter().map(|pair| pair.bytes).sum();
        assert_eq!(bytes, all.bytes);
        assert_eq!(all.ranks.len(), 200);
    }
}
