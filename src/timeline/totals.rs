//! How long do the ranks wait in which function, for what and for whom? All waits of a timeline, by definition, and the critical path
//! that follows from them.

use std::collections::BTreeMap;
use std::io;

use gyan_results::TimelineKind;
use serde::Serialize;

use super::Timelines;
use super::path::{PathKnowledge, RankForPath};
use super::waits::{TimedEvents, WaitState};

/// The waits of all ranks of a timeline, the longest first. They are exact, of the calls that are in it.
#[derive(Debug, Serialize)]
pub(crate) struct TimelineWaits {
    pub(crate) ranks: usize,
    pub(crate) calls: u64,
    /// How many events were overwritten.
    pub(crate) lost: u64,
    pub(crate) waits: Vec<FunctionWaits>,
    pub(crate) critical_path: PathKnowledge,
}

#[derive(Debug, Serialize)]
pub(crate) struct FunctionWaits {
    pub(crate) function: String,
    pub(crate) state: WaitState,
    /// How many calls of the function wait so, and how long, in s.
    pub(crate) waits: u64,
    pub(crate) waiting_s: f64,
    /// How long all calls of the function take, in s.
    pub(crate) time_s: f64,
    /// By the rank that waits and the one that it waits for, in `MPI_COMM_WORLD`, the longest first.
    pub(crate) pairs: Vec<RankPairWaits>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RankPairWaits {
    pub(crate) rank: u32,
    pub(crate) late_rank: u32,
    pub(crate) waits: u64,
    pub(crate) waiting_s: f64,
}

/// Calls and ns.
type Sum = (u64, u64);

/// By function, kind, and rank that is late.
type WaitsOfRank = BTreeMap<(String, WaitState, u32), Sum>;

impl Timelines {
    /// All waits.
    pub(crate) fn waits(&self) -> io::Result<TimelineWaits> {
        let seen = self.seen()?;
        let look = |rank: &TimedEvents| {
            let mut waits = WaitsOfRank::new();
            let of_rank = rank.waits(&self.arrows, &self.communicators, &seen.begins);
            let for_path = RankForPath::new(rank, &of_rank);
            for wait in of_rank {
                let Some(function) = rank.events.get(wait.at).and_then(|call| rank.function(call))
                else {
                    continue;
                };
                let key = (function.to_owned(), wait.state, wait.late.rank);
                let sum = waits.entry(key).or_default();
                *sum = (sum.0 + 1, sum.1 + (wait.until_ns - wait.from_ns));
            }
            (rank.header.rank, waits, time_in_functions(rank), for_path)
        };
        let mut pairs: BTreeMap<(String, WaitState), BTreeMap<(u32, u32), Sum>> = BTreeMap::new();
        let mut all_ns: BTreeMap<String, u64> = BTreeMap::new();
        let mut for_paths = Vec::new();
        self.each(&self.ranks, look, |(rank, waits, of_rank, for_path)| {
            for_paths.push(for_path);
            for ((function, state, late), sum) in waits {
                pairs.entry((function, state)).or_default().insert((rank, late), sum);
            }
            for (function, ns) in of_rank {
                *all_ns.entry(function).or_default() += ns;
            }
        })?;
        let of_function = |((function, state), pairs): ((String, WaitState), BTreeMap<_, Sum>)| {
            let time_s = seconds(all_ns.get(&function).copied().unwrap_or(0));
            FunctionWaits {
                state,
                waits: pairs.values().map(|sum| sum.0).sum(),
                waiting_s: seconds(pairs.values().map(|sum| sum.1).sum()),
                time_s,
                function,
                pairs: longest_first(pairs),
            }
        };
        let mut waits: Vec<FunctionWaits> = pairs.into_iter().map(of_function).collect();
        waits.sort_by(|one, other| other.waiting_s.total_cmp(&one.waiting_s));
        let (ranks, calls, lost) = (self.ranks.len(), seen.calls, self.lost);
        let critical_path = self.path(for_paths, seen.run_ns)?;
        Ok(TimelineWaits { ranks, calls, lost, waits, critical_path })
    }
}

fn longest_first(pairs: BTreeMap<(u32, u32), Sum>) -> Vec<RankPairWaits> {
    let pair = |((rank, late_rank), (waits, ns))| RankPairWaits {
        rank,
        late_rank,
        waits,
        waiting_s: seconds(ns),
    };
    let mut pairs: Vec<RankPairWaits> = pairs.into_iter().map(pair).collect();
    pairs.sort_by(|one, other| other.waiting_s.total_cmp(&one.waiting_s));
    pairs
}

/// How long the calls of each function took, in ns.
fn time_in_functions(rank: &TimedEvents) -> BTreeMap<String, u64> {
    let mut times: BTreeMap<String, u64> = BTreeMap::new();
    for event in rank.events.iter().filter(|event| matches!(event.kind, TimelineKind::Call(_))) {
        let Some(function) = rank.function(event) else { continue };
        let (begun, ended) = rank.span_ns(event);
        if let Some(time) = times.get_mut(function) {
            *time += ended - begun;
        } else {
            times.insert(function.to_owned(), ended - begun);
        }
    }
    times
}

pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
