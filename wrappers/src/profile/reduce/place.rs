//! From which ranks does a rank get parts, and to which does it send the result?
//!
//! The ranks of a host send to the lowest of them, and only that one sends to another host. Among the ranks of
//! a host, and among the hosts' lowest ranks, messages follow the tree by which parts are merged (`parts`),
//! without the ranks that do not take part: the lowest rank of a node's right half sends to the lowest of its
//! left half. With all ranks, that is a binomial tree: rank r receives from r + 1, then r + 2, r + 4 and so on,
//! as long as its bits are 0.

#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::parts::{Node, Parts};
use super::tree::Why;

/// If a message between hosts would have more parts than this, the tree over all ranks is used, whatever host
/// they are on. If the ranks of each host are consecutive, there are never more: a node of the tree without a
/// few of its first ranks, plus a few after its last, has at most log2 of all ranks plus log2 of those of a
/// host. If ranks are dealt to hosts in turn, there is one part for each rank of a host. Then every host would
/// merge that many parts one after the other, instead of each rank merging one.
const PARTS_AT_MOST: usize = 32;

/// A rank's place in the tree.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Place {
    /// The rank that it sends to; none for the root.
    pub(super) parent: Option<u32>,
    /// The ranks that send to it, those with the least to merge first.
    pub(super) children: Vec<u32>,
}

impl Place {
    /// From the host of each rank: all ranks decide the same.
    pub(super) fn over_hosts(rank: u32, size: u32, hosts: &[u64]) -> Place {
        let hosts = by_host(hosts);
        let leaders: Vec<u32> = hosts.iter().filter_map(|ranks| ranks.first().copied()).collect();
        let own = hosts.iter().find(|ranks| ranks.binary_search(&rank).is_ok());
        let is_followed = are_few(&hosts, &leaders, size).unwrap_or_default();
        let Some(own) = own.filter(|_| is_followed) else {
            return Place::over_ranks(rank, size);
        };
        let mut place = among(rank, own);
        if place.parent.is_none() {
            let Place { parent, children } = among(rank, &leaders);
            place.parent = parent;
            place.children.extend(children);
        }
        place
    }

    /// The ranks that it has to do with.
    pub(super) fn peers(&self) -> Vec<u32> {
        self.children.iter().copied().chain(self.parent).collect()
    }

    /// As if all ranks were on one host.
    pub(super) fn over_ranks(rank: u32, size: u32) -> Place {
        relatives(rank, |first, _| (first < size).then_some(first))
    }
}

/// The ranks of each host, by the lowest.
fn by_host(hosts: &[u64]) -> Vec<Vec<u32>> {
    let mut known = HashMap::new();
    let mut ranks: Vec<Vec<u32>> = Vec::new();
    for (rank, host) in (0..).zip(hosts) {
        let at = *known.entry(host).or_insert(ranks.len());
        match ranks.get_mut(at) {
            Some(ranks) => ranks.push(rank),
            None => ranks.push(vec![rank]),
        }
    }
    ranks
}

/// The place of a rank among ranks in ascending order.
fn among(rank: u32, ranks: &[u32]) -> Place {
    relatives(rank, |first, last| {
        let at = ranks.partition_point(|rank| *rank < first);
        ranks.get(at).copied().filter(|rank| *rank <= last)
    })
}

/// `lowest` returns the lowest rank that takes part between the first and the last.
fn relatives(rank: u32, lowest: impl Fn(u32, u32) -> Option<u32>) -> Place {
    let mut children = Vec::new();
    for level in 0..u32::BITS {
        let first = ((rank >> level) ^ 1) << level;
        let last = first | ((1 << level) - 1);
        match lowest(first, last) {
            Some(parent) if parent < rank => return Place { parent: Some(parent), children },
            Some(child) => children.push(child),
            None => {}
        }
    }
    Place { parent: None, children }
}

/// Whether no message has too many parts. Messages on a host have no more than its lowest rank has in the end.
fn are_few(hosts: &[Vec<u32>], leaders: &[u32], size: u32) -> Result<bool, Why> {
    let mut parts: Vec<Parts<()>> = hosts.iter().map(|_| Parts::of(size)).collect();
    // The sender is always higher than the receiver.
    for (ranks, &leader) in hosts.iter().zip(leaders).rev() {
        let mut own = Parts::of(size);
        for &rank in ranks {
            own.add(Node { start: rank, level: 0 }, ())?;
        }
        let mut sent = parts.pop().unwrap_or(Parts::of(size));
        if own.len() > PARTS_AT_MOST {
            return Ok(false);
        }
        own.add_to(&mut sent)?;
        if sent.len() > PARTS_AT_MOST {
            return Ok(false);
        }
        let parent = among(leader, leaders).parent;
        let at = parent.and_then(|parent| leaders.binary_search(&parent).ok());
        if let Some(others) = at.and_then(|at| parts.get_mut(at)) {
            sent.add_to(others)?;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ranks are given to hosts.
    fn placements() -> Vec<Vec<u64>> {
        let mut placements = Vec::new();
        for size in [1, 2, 3, 5, 8, 12, 13, 16, 31, 64, 100, 257] {
            for each in [1, 2, 3, 4, 7, 16, 300] {
                let hosts = size_of_hosts(size, each);
                placements.push((0..size).map(|rank| rank / each).collect());
                placements.push((0..size).map(|rank| rank % hosts).collect());
                placements.push((0..size).map(|rank| rank / 2 % hosts).collect());
            }
            for seed in 0..20 {
                let mut random = fastrand::Rng::with_seed(seed);
                let hosts = random.u64(1..=size);
                placements.push((0..size).map(|_| random.u64(0..hosts)).collect());
                let mut uneven: Vec<u64> = (0..size).map(|_| random.u64(0..hosts)).collect();
                uneven.sort_unstable();
                placements.push(uneven);
            }
        }
        placements
    }

    fn size_of_hosts(size: u64, each: u64) -> u64 {
        size.div_ceil(each)
    }

    fn number<T>(ranks: &[T]) -> u32 {
        u32::try_from(ranks.len()).unwrap()
    }

    /// The place of each rank.
    fn places(hosts: &[u64]) -> Vec<Place> {
        let size = number(hosts);
        (0..size).map(|rank| Place::over_hosts(rank, size, hosts)).collect()
    }

    /// What a rank sends, and the most parts of any message on the way there.
    fn sent(rank: u32, places: &[Place]) -> (Parts<String>, usize) {
        let mut parts = Parts::of(number(places));
        parts.add(Node { start: rank, level: 0 }, rank.to_string()).unwrap();
        let mut most = 0;
        for &child in &places[rank as usize].children {
            let (others, before) = sent(child, places);
            most = most.max(before).max(others.len());
            others.add_to(&mut parts).unwrap();
        }
        (parts, most)
    }

    fn canonical(start: u32, level: u32, size: u32) -> String {
        if level == 0 {
            return start.to_string();
        }
        let left = canonical(start, level - 1, size);
        let right = start + (1 << (level - 1));
        if right >= size { left } else { format!("({left} {})", canonical(right, level - 1, size)) }
    }

    #[test]
    fn every_placement_gives_the_same_grouping_and_one_message_a_host() {
        let mut followed = 0;
        for hosts in placements() {
            let size = number(&hosts);
            let places = places(&hosts);
            let mut between = 0;
            for (rank, place) in (0..).zip(&places) {
                assert_eq!(place.parent.is_none(), rank == 0, "{hosts:?}");
                for &child in &place.children {
                    assert_eq!(places[child as usize].parent, Some(rank), "{hosts:?}");
                    between += usize::from(hosts[child as usize] != hosts[rank as usize]);
                }
            }
            let (mut parts, most) = sent(0, &places);
            assert_eq!(parts.take_whole().unwrap(), canonical(0, 9, size), "{hosts:?}");
            assert!(most <= PARTS_AT_MOST, "{most} {hosts:?}");
            let groups = by_host(&hosts);
            let leaders: Vec<u32> = groups.iter().map(|ranks| ranks[0]).collect();
            if are_few(&groups, &leaders, size).unwrap() {
                followed += 1;
                assert_eq!(between, groups.len() - 1, "{hosts:?}");
            } else {
                assert_eq!(places[0], Place::over_ranks(0, size));
            }
        }
        assert!(followed > placements().len() / 2, "{followed}");
    }

    #[test]
    fn ranks_that_follow_each_other_on_hosts_make_few_parts() {
        for each in [1, 2, 3, 7, 36, 48, 100, 128, 255] {
            let size = if cfg!(miri) { 1 << 10 } else { 1 << 17 };
            let hosts: Vec<u64> = (0..size).map(|rank| rank / each).collect();
            let groups = by_host(&hosts);
            let leaders: Vec<u32> = groups.iter().map(|ranks| ranks[0]).collect();
            assert!(are_few(&groups, &leaders, number(&hosts)).unwrap(), "{each}");
        }
    }

    #[test]
    fn on_one_host_it_is_a_binomial_tree() {
        for size in [1, 2, 3, 7, 8, 64, 1000] {
            let hosts = vec![7; size as usize];
            for rank in 0..size {
                let place = Place::over_hosts(rank, size, &hosts);
                assert_eq!(place, Place::over_ranks(rank, size));
                assert_eq!(place.parent, rank.checked_sub(1).map(|less| rank & less));
            }
        }
        assert_eq!(Place::over_ranks(0, 6).children, [1, 2, 4]);
        assert_eq!(Place::over_ranks(4, 6).children, [5]);
        assert_eq!(Place::over_ranks(6, 8).children, [7]);
        let last = Place { parent: Some((u32::MAX - 1) & (u32::MAX - 2)), children: Vec::new() };
        assert_eq!(Place::over_ranks(u32::MAX - 1, u32::MAX), last);
    }

    #[test]
    fn hosts_with_many_ranks_in_turn_are_not_followed() {
        let hosts: Vec<u64> = (0..4000).map(|rank| rank % 40).collect();
        assert_eq!(places(&hosts)[41], Place::over_ranks(41, 4000));
        let hosts: Vec<u64> = (0..400).map(|rank| rank % 40).collect();
        assert_eq!(places(&hosts)[80].parent, Some(0));
        assert_eq!(places(&hosts)[41].parent, Some(1));
    }
}
