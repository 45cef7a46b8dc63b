//! Which ranks is the critical path on? From when sampled calls of messages and collectives ended, and for whom their ranks waited
//! in them: backwards in time from the call that ended last, as far as the latest wait, and from there along the rank that was
//! waited for.
//!
//! Between two sampled calls of a rank there may be some that were not timed. They are taken to have been evenly apart, and each
//! like one of the sampled calls near them, drawn at random. The path is followed several times, each time with other draws, with
//! other weights of the sampled calls (a bootstrap), and with other assumptions ([`Assumptions`]): how much the results differ is
//! the standard error.

mod alignment;
mod source;
mod walk;

use std::collections::BTreeMap;

use self::source::{PathSource, RankEnd};
use self::walk::{Assumptions, PathWalk, bits};
use super::pairs::CalledAt;
use super::places::{Place, load_map};
use crate::{CodeAddress, CriticalPath, MessagePlace, PathOfRank, sort_by};

/// How often the path is followed where not every call was timed.
const WALKS: u64 = 48;
/// With more sampled calls, nothing is said.
const CALLS_AT_MOST: usize = 1 << 21;
const RANKS_AT_MOST: usize = 16;
/// No share is known better: of ranks that come last nearly at once, rounded times do not tell which one it was.
const ERROR_AT_LEAST: f64 = 0.01;
/// Waits in calls one after the other depend on each other, which no walk imitates: in simulated programs results are off by so many
/// times as much as walks differ.
const DEPENDENT: f64 = 1.5;

/// Which calls are alike: those that end messages of a stream, or those of a collective on a communicator.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum CallClass {
    Messages { stream: usize, level: u32 },
    Collective(usize),
}

/// The call that a part of the path leads up to.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum LeadsTo {
    /// A function by its number in [`PathCalls`].
    Collective(usize),
    /// Of a rank, by the number that it gives the call; 0 if that is not known.
    Call(u32, u32),
}

/// A sampled call. Times in ns on a clock that all ranks have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathCall {
    /// Its number among the calls of its class, sampled or not.
    pub(super) number: u64,
    /// Where several ranks have it in common, when the last one began.
    pub(super) begun: i128,
    pub(super) ended: i128,
    /// For whom it would have waited if that had come later.
    pub(super) last: Option<PathWait>,
    /// How long it waited for that, in ns.
    pub(super) waited_ns: u64,
    /// What the time before it leads up to.
    pub(super) leads_to: LeadsTo,
    /// How late it was, or another one was for it, in ns.
    pub(super) late_ns: u64,
}

impl PathCall {
    fn wait(&self) -> Option<PathWait> {
        self.last.filter(|_| self.waited_ns > 0)
    }

    /// How much later the last one could have come without being waited for, in ns; negative if it was.
    fn spare_ns(&self) -> Option<f64> {
        Some((self.begun - self.last?.came) as f64)
    }
}

/// For whom a rank waits in a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathWait {
    pub(super) late_rank: u32,
    /// When that came.
    pub(super) came: i128,
    /// By which call.
    pub(super) leads_to: LeadsTo,
}

#[derive(Debug, Default)]
pub(super) struct PathCalls {
    sources: Vec<PathSource>,
    /// By rank and class, the number of the source.
    of_ranks: BTreeMap<u32, BTreeMap<CallClass, usize>>,
    functions: Vec<String>,
    named: BTreeMap<u32, Vec<CalledAt>>,
    /// Of all sources together.
    number: usize,
    /// After how many calls for whom ranks wait begins anew, if it does.
    period: Option<u64>,
}

impl PathCalls {
    pub(super) fn function(&mut self, name: &str) -> LeadsTo {
        let at = self.functions.iter().position(|known| known == name);
        LeadsTo::Collective(at.unwrap_or_else(|| {
            self.functions.push(name.to_owned());
            self.functions.len() - 1
        }))
    }

    /// Says what the numbers of calls stand for.
    pub(super) fn name(&mut self, named: BTreeMap<u32, Vec<CalledAt>>) {
        self.named = named;
    }

    /// Adds calls that all of `ranks` made: of so many one in `2^level`.
    pub(super) fn add(
        &mut self,
        class: CallClass,
        ranks: impl Iterator<Item = u32>,
        (total, level): (u64, u32),
        mut calls: Vec<PathCall>,
    ) {
        self.number = self.number.saturating_add(calls.len());
        if calls.is_empty() || self.number > CALLS_AT_MOST {
            return;
        }
        calls.sort_by_key(|call| call.begun);
        for rank in ranks {
            self.of_ranks.entry(rank).or_default().insert(class, self.sources.len());
        }
        self.sources.push(PathSource { calls, level, total, met: BTreeMap::new() });
    }

    /// The path of a run that took so long; none if nothing is known of it.
    pub(super) fn finish(mut self, run_s: f64) -> Option<CriticalPath> {
        if self.number > CALLS_AT_MOST || run_s <= 0.0 {
            return None;
        }
        self.align();
        self.meet();
        let begun = |of: &PathSource| of.calls.first().map(|call| call.begun);
        let from = self.sources.iter().filter_map(begun).min()?;
        let (to, last) = self.last()?;
        let is_sampled = self.sources.iter().any(PathSource::is_sampled);
        let walks = if is_sampled { WALKS } else { last.len() as u64 };
        let assumed = |seed| {
            let of_walk = Assumptions::of_walk(seed);
            let period = self.period.filter(|_| of_walk.period > 1).unwrap_or(of_walk.period);
            Assumptions { period, ..of_walk }
        };
        let rank = |walk: u64| {
            let number = if is_sampled { bits(walk, usize::MAX, 0) } else { walk };
            let place = usize::try_from(number % (last.len() as u64).max(1)).unwrap_or(0);
            last.get(place).copied().unwrap_or(0)
        };
        let walks: Vec<PathWalk> =
            (0..walks).map(|walk| self.walk(assumed(walk), rank(walk), from, to)).collect();
        let known_share = (seconds(to - from) / run_s).min(1.0);
        Some(self.described(&walks, known_share, 1e-9 / run_s))
    }

    /// When the last call ended, and the ranks that may have ended last: what a rank did after its last sampled call is not known. Of
    /// ranks that leave that together, those come first for which the others waited.
    fn last(&self) -> Option<(i128, Vec<u32>)> {
        let mut ends: Vec<RankEnd> = Vec::new();
        for (rank, sources) in &self.of_ranks {
            let sources = sources.values().filter_map(|at| self.sources.get(*at));
            let last = sources.max_by_key(|source| source.calls.last().map(|call| call.ended));
            ends.extend(last.and_then(|source| source.end_of(*rank)));
        }
        let to = ends.iter().map(|of| of.ended).max()?;
        let latest_ns = ends.iter().map(|of| of.about_ns).fold(f64::MIN, f64::max);
        ends.retain(|of| of.about_ns + of.off_ns >= latest_ns);
        sort_by(&mut ends, |one, other| {
            (other.ended, other.was_late, other.rank).cmp(&(one.ended, one.was_late, one.rank))
        });
        Some((to, ends.iter().map(|of| of.rank).take(RANKS_AT_MOST).collect()))
    }

    fn described(&self, walks: &[PathWalk], known_share: f64, per_ns: f64) -> CriticalPath {
        let number = walks.len() as f64;
        let mut ranks: Vec<(u32, f64, f64)> = Vec::new();
        for rank in self.of_ranks.keys() {
            let of_walk = |of: &PathWalk| of.ns.get(rank).copied().unwrap_or(0.0);
            let found: Vec<f64> = walks.iter().map(of_walk).collect();
            let mean_ns = found.iter().sum::<f64>() / number;
            let squares: f64 = found.iter().map(|ns| (ns - mean_ns) * (ns - mean_ns)).sum();
            let error_ns = (squares / (number - 1.0).max(1.0)).sqrt();
            let error = (DEPENDENT * error_ns * per_ns).max(ERROR_AT_LEAST);
            ranks.push((*rank, (mean_ns * per_ns).clamp(0.0, known_share), error));
        }
        sort_by(&mut ranks, |one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranks.retain(|(_, share, _)| *share > 0.0);
        ranks.truncate(RANKS_AT_MOST);
        let mut calls: BTreeMap<(u32, LeadsTo), f64> = BTreeMap::new();
        for (call, ns) in walks.iter().flat_map(|walk| &walk.calls) {
            *calls.entry(*call).or_default() += ns * per_ns / number;
        }
        let of_rank = |(rank, share, share_error): (u32, f64, f64)| {
            let of_calls = calls.range((rank, LeadsTo::Collective(0))..=(rank, LAST_CALL));
            let most = of_calls.max_by(|one, other| one.1.total_cmp(other.1));
            let (leads_to, leads_to_share) =
                most.map_or((None, 0.0), |((_, to), of)| (Some(*to), *of));
            let of_rank = PathOfRank {
                rank,
                share,
                share_error,
                lower: (share - 2.0 * share_error).max(0.0),
                upper: (share + 2.0 * share_error + 1.0 - known_share).min(1.0),
                leads_to: MessagePlace::default(),
                leads_to_share,
            };
            (of_rank, leads_to)
        };
        let ranks: Vec<(PathOfRank, Option<LeadsTo>)> = ranks.into_iter().map(of_rank).collect();
        self.placed(&ranks, known_share)
    }

    /// With the names and the places of calls.
    fn placed(&self, ranks: &[(PathOfRank, Option<LeadsTo>)], known_share: f64) -> CriticalPath {
        let called = |leads_to: Option<LeadsTo>| match leads_to? {
            LeadsTo::Collective(at) => Some((self.functions.get(at)?, None)),
            LeadsTo::Call(rank, number) => {
                let called = self.named.get(&rank)?.get((number as usize).checked_sub(1)?)?;
                Some((&called.function, called.place.as_ref()))
            }
        };
        let mut places: Vec<&Place> =
            ranks.iter().filter_map(|(_, leads_to)| called(*leads_to)?.1).collect();
        places.sort_unstable();
        places.dedup();
        let load_map = load_map(places.iter().copied());
        let addresses: Vec<CodeAddress> =
            places.iter().map(|place| place.code_in(&load_map)).collect();
        let with_place = |(of_rank, leads_to): &(PathOfRank, Option<LeadsTo>)| {
            let (function, place) = called(*leads_to)
                .map_or_else(Default::default, |(name, place)| (name.clone(), place));
            let call = place.and_then(|place| places.binary_search(&place).ok());
            PathOfRank { leads_to: MessagePlace { function, call }, ..of_rank.clone() }
        };
        let ranks = ranks.iter().map(with_place).collect();
        CriticalPath { known_share, ranks, addresses, load_map }
    }
}

/// After all others.
const LAST_CALL: LeadsTo = LeadsTo::Call(u32::MAX, u32::MAX);

fn seconds(ns: i128) -> f64 {
    ns as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ranks that exchange a message each millisecond, one of which comes late. `late`: by round; `each`: one in so many rounds is
    /// sampled.
    fn found(rounds: u32, each: u64, late: impl Fn(u32) -> u32) -> CriticalPath {
        let mut path = PathCalls::default();
        for rank in [0, 1] {
            let of_round = |round: u32| {
                let came = i128::from(round + 1) * 1_000_000;
                let is_late = late(round) == rank;
                let waited_ns = if is_late { 0 } else { 300_000 };
                let leads_to = LeadsTo::Collective(0);
                let last = PathWait { late_rank: 1 - rank, came, leads_to };
                PathCall {
                    number: round.into(),
                    begun: if is_late { came + 64 } else { came - 300_000 },
                    ended: came + 1000,
                    last: (!is_late).then_some(last),
                    waited_ns,
                    leads_to,
                    late_ns: waited_ns,
                }
            };
            let sampled = (0..rounds).step_by(usize::try_from(each).unwrap()).map(of_round);
            let class = CallClass::Messages { stream: 0, level: each.ilog2() };
            path.function("MPI_Sendrecv");
            let level = each.ilog2();
            path.add(class, [rank].into_iter(), (rounds.into(), level), sampled.collect());
        }
        path.finish(f64::from(rounds) * 1e-3).unwrap()
    }

    #[test]
    fn the_path_is_on_the_rank_that_is_waited_for() {
        for each in [1, 16] {
            let path = found(1600, each, |_| 1);
            assert_eq!(path.ranks[0].rank, 1);
            assert!(path.ranks[0].share > 0.98 && path.ranks[0].share_error < 0.02, "{path:?}");
            assert_eq!(path.ranks[0].leads_to.function, "MPI_Sendrecv");
            // The one that is late changes after a quarter of the run.
            let path = found(1600, each, |round| u32::from(round >= 400));
            assert!((path.ranks[0].share - 0.75).abs() < 0.02, "{path:?}");
            assert!((path.ranks[1].share - 0.25).abs() < 0.02, "{path:?}");
        }
    }

    #[test]
    fn nothing_is_known_without_calls() {
        assert_eq!(PathCalls::default().finish(1.0), None);
    }
}
