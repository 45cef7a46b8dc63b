//! Waiting and transfer over ranks, call by call. For each timed call we keep the time of all ranks together,
//! and the shortest time with its rank, which is the one that came last. All in whole nanoseconds, so that the
//! order of the ranks does not matter. A rank's waiting is its own time minus the shortest times, which are the
//! same for all ranks. So the rank that waited least has the least time in the calls that all ranks timed; the
//! least and the most are kept for each level that this may turn out to be.
//!
//! That holds where each rank waits for all others in the call. In other functions, and in those that only start an operation, waiting
//! follows from when each rank began the call ([`starts`](super::starts)).
//!
//! How long each rank waited is told [`WaitsOfRanks`] only: it is in no summary.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ideal::WaitsOfRanks;
use super::path::{CallClass, LeadsTo, PathCall, PathWait};
use super::starts::{CallsOfRanks, Clocks, Starts, StartsCompared};
use crate::data::derive;
use crate::merge::{Lowest, Merge, MergeFields};
use crate::ranges::Ranges;
use crate::{
    CallSummary, CommunicatorWaiting, DURATIONS_AT_MOST, LastRank, Number, RankProfile, Waiting,
    WaitingOfRanks, WaitingSummary, WaitsFor, collected, only_starts, sort_by,
};

/// Most functions on communicators that are compared: those on the largest.
const ROWS_AT_MOST: usize = 256;
/// The number of levels after which one of a profile's durations is left.
const LEVELS: u32 = DURATIONS_AT_MOST.ilog2() + 1;
/// How many ranks are named.
const LAST_AT_MOST: usize = 4;

/// One row for each function and communicator.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Waits(BTreeMap<Key, CommunicatorWaits>);

/// The same on all ranks of a communicator; the largest come first.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
struct Key {
    size: Reverse<u32>,
    members: String,
    ordinal: u32,
    function: String,
}

#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
struct CommunicatorWaits {
    communicator: Lowest<String>,
    ranks: Ranges,
    calls: u64,
    timed: Timed,
    /// By rank, where each waits for all others in the call.
    of_each: BTreeMap<u32, TimesOfRank>,
    starts: Starts,
}

/// The calls that a rank timed, and their time.
#[derive(MergeFields!, Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct TimesOfRank {
    calls: u64,
    ns: u64,
}

/// The calls that were timed, at the highest level of all ranks.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Timed {
    pub(super) level: u32,
    pub(super) calls: Vec<ComparedCall>,
    /// The times of ranks in the calls of this level, of the next one and so on.
    pub(super) of_ranks: Vec<Extremes>,
}

/// The least and the most time, with the lowest rank that has it.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Extremes {
    min: (u64, u32),
    max: (u64, u32),
}

/// One call on the ranks that timed it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct ComparedCall {
    pub(super) ranks: u32,
    pub(super) sum_ns: u64,
    /// What a rank takes that does not wait.
    pub(super) min_ns: u64,
    /// The lowest rank that has the minimum: the one that others wait for.
    pub(super) last: u32,
}

/// How the clocks of hosts differ, as the collective operations in profiles show it in which each rank waits for all others.
#[derive(Debug)]
pub struct ClockOffsets(Clocks);

impl ClockOffsets {
    /// From the profiles of some ranks of a job.
    pub fn of(profiles: impl IntoIterator<Item = RankProfile>) -> ClockOffsets {
        let mut all = Waits::default();
        for profile in profiles {
            let mut of_rank = Waits::default();
            of_rank.set(&profile.waiting, profile.rank);
            all.absorb(&of_rank);
        }
        ClockOffsets(all.clocks())
    }

    /// What is added to a time on clock `of` for one on clock `on`, and how far that may be wrong, in ns; none if the two cannot be
    /// compared.
    pub fn between(&self, of: &str, on: &str) -> Option<(i128, u64)> {
        self.0.between(of, on)
    }
}

impl Waits {
    /// Makes this what one rank says.
    #[inline]
    pub(super) fn set(&mut self, waiting: &[Waiting], rank: u32) {
        self.0 = collected(waiting.iter().map(|waiting| CommunicatorWaits::of(waiting, rank)));
    }

    /// How the clocks of hosts differ.
    pub(super) fn clocks(&self) -> Clocks {
        Clocks::aligned(self.0.values().map(|row| &row.starts))
    }

    /// `calls`: what else is known of the functions. `waited`: is told how long each rank waited.
    #[inline]
    pub(super) fn finish(
        self,
        calls: &[CallSummary],
        waited: &mut WaitsOfRanks,
    ) -> Vec<WaitingSummary> {
        let clocks = self.clocks();
        let mut rows = self.0;
        let of_starts = |key: &Key, row: &mut CommunicatorWaits| {
            std::mem::take(&mut row.starts).waits(WaitsFor::in_function(&key.function), &clocks)
        };
        let only_start = rows.iter_mut().filter(|(key, _)| only_starts(&key.function));
        let waits = only_start.map(|(key, row)| (key.clone(), of_starts(key, row)));
        let mut of_requests: BTreeMap<Key, CallsOfRanks> = waits.collect();
        CallsOfRanks::count_once(of_requests.values_mut());
        let mut functions: BTreeMap<String, Vec<Compared>> = BTreeMap::new();
        for (number, (key, mut row)) in rows.into_iter().enumerate() {
            let function = key.function.clone();
            let leads_to = waited.path.function(&function);
            let class = CallClass::Collective(number);
            let waits = of_requests.remove(&key).or_else(|| {
                WaitsFor::is_known_by_starts(&function).then(|| of_starts(&key, &mut row))
            });
            let mut starts = None;
            if let Some(waits) = waits {
                let mut compared = waits.compared(leads_to);
                let sampled = (row.calls_of_each(), compared.timed.level);
                for (rank, calls) in std::mem::take(&mut compared.path) {
                    waited.path.add(class, [rank].into_iter(), sampled, calls);
                }
                starts = Some(compared);
            } else {
                let calls = row.together(&key, &clocks, leads_to);
                let sampled = (row.calls_of_each(), row.timed.level);
                waited.path.add(class, row.ranks.iter(), sampled, calls);
            }
            if let Some(compared) = row.compared(key, starts) {
                functions.entry(function).or_default().push(compared);
            }
        }
        let mut summaries: Vec<WaitingSummary> = functions
            .into_iter()
            .map(|(function, rows)| {
                let call = calls.iter().find(|call| call.name == function);
                summary(function, rows, call, waited)
            })
            .collect();
        sort_by(&mut summaries, |one, other| other.waiting_s.total_cmp(&one.waiting_s));
        summaries
    }
}

impl Merge for Waits {
    fn absorb(&mut self, other: &Waits) {
        self.0.absorb(&other.0);
        // The result is the same in whichever order rows are dropped, whatever is merged later.
        while self.0.len() > ROWS_AT_MOST {
            self.0.pop_last();
        }
    }
}

impl CommunicatorWaits {
    fn of(waiting: &Waiting, rank: u32) -> (Key, CommunicatorWaits) {
        let Waiting { function, communicator, members, ordinal, size, calls, level, .. } = waiting;
        let key = Key {
            size: Reverse(*size),
            members: members.clone(),
            ordinal: *ordinal,
            function: function.clone(),
        };
        let call = |ns: Option<u64>| {
            let call = |ns| ComparedCall { ranks: 1, sum_ns: ns, min_ns: ns, last: rank };
            ns.map(call).unwrap_or_default()
        };
        let (mut timed, mut of_each) = (Timed::default(), BTreeMap::new());
        if !WaitsFor::is_known_by_starts(function) {
            timed = Timed::of(*level, waiting.durations().map(call).collect(), rank);
            let of_calls = timed.calls.iter().filter(|call| call.ranks > 0);
            let of_rank = of_calls.fold(TimesOfRank::default(), |of, call| TimesOfRank {
                calls: of.calls + 1,
                ns: of.ns.saturating_add(call.sum_ns),
            });
            of_each.insert(rank, of_rank);
        }
        let row = CommunicatorWaits {
            communicator: Lowest { rank, said: communicator.clone() },
            ranks: Ranges::of(rank),
            calls: *calls,
            timed,
            of_each,
            starts: Starts::of_rank(waiting, rank),
        };
        (key, row)
    }
}

impl Timed {
    fn of(level: u32, calls: Vec<ComparedCall>, rank: u32) -> Timed {
        let mut left = calls.clone();
        let of_level = |level: u32| {
            let sum = left.iter().fold(0, |sum: u64, call| sum.saturating_add(call.sum_ns));
            Waiting::thin(&mut left, level);
            Extremes { min: (sum, rank), max: (sum, rank) }
        };
        let levels = level..level.saturating_add(LEVELS);
        Timed { level, calls, of_ranks: levels.map(of_level).collect() }
    }

    fn thin_to(&mut self, level: u32) {
        let higher = level.saturating_sub(self.level) as usize;
        self.of_ranks.drain(..higher.min(self.of_ranks.len()));
        while self.level < level && !self.calls.is_empty() {
            Waiting::thin(&mut self.calls, self.level);
            self.level += 1;
        }
        self.level = self.level.max(level);
    }
}

impl Merge for Timed {
    fn absorb(&mut self, other: &Timed) {
        self.thin_to(other.level);
        let mut thinned = Timed::default();
        let others = if other.level < self.level {
            thinned.clone_from(other);
            thinned.thin_to(self.level);
            &thinned
        } else {
            other
        };
        if self.calls.len() < others.calls.len() {
            self.calls.resize(others.calls.len(), ComparedCall::default());
        }
        for (own, other) in self.calls.iter_mut().zip(&others.calls) {
            own.absorb(other);
        }
        // A level that some ranks do not know is not known.
        self.of_ranks.truncate(others.of_ranks.len());
        for (own, other) in self.of_ranks.iter_mut().zip(&others.of_ranks) {
            own.absorb(other);
        }
    }
}

impl Merge for Extremes {
    fn absorb(&mut self, other: &Extremes) {
        let lowest = |(ns, rank): (u64, u32)| (ns, Reverse(rank));
        self.min = self.min.min(other.min);
        self.max = std::cmp::max_by_key(self.max, other.max, |of| lowest(*of));
    }
}

impl Merge for ComparedCall {
    #[inline]
    fn absorb(&mut self, other: &ComparedCall) {
        if other.ranks == 0 {
            return;
        }
        let first = |call: &ComparedCall| (call.min_ns, call.last);
        if self.ranks == 0 || first(other) < first(self) {
            (self.min_ns, self.last) = first(other);
        }
        self.ranks += other.ranks;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
}

/// A row that extrapolates from the calls that all ranks timed to all calls.
struct Compared {
    /// With the error of the waiting if the time of all calls is known.
    summary: CommunicatorWaiting,
    /// The error if it is not, and is an estimate from the same calls.
    error_with_time: Option<f64>,
    /// Whether every call was timed on all ranks.
    is_all: bool,
    missing: bool,
    /// By the rank that came last: in how many of the calls that were timed on every rank, and the seconds that
    /// the others waited for it, in all calls.
    last: BTreeMap<u32, (u64, f64)>,
    /// By rank, the seconds that it waited, in all calls.
    waited: Vec<(u32, f64)>,
}

impl CommunicatorWaits {
    /// How many calls each rank made.
    fn calls_of_each(&self) -> u64 {
        self.calls / self.ranks.len().max(1)
    }

    /// Where all wait for all, the calls that all ranks timed. Of some of them it is known when they were; the others are taken to
    /// be evenly apart.
    fn together(&self, key: &Key, clocks: &Clocks, leads_to: LeadsTo) -> Vec<PathCall> {
        let on = u64::from(key.size.0);
        if on < 2 || self.ranks.len() != on {
            return Vec::new();
        }
        let met = self.starts.met(clocks);
        let call = |(block, call): (u64, &ComparedCall)| {
            let number = Waiting::timed_call(self.timed.level, block);
            let (before, at) = met.range(..=number).next_back()?;
            let came = if *before == number {
                at.0
            } else {
                let (after, then) = met.range(number..).next()?;
                at.0 + (then.0 - at.0) * i128::from(number - before) / i128::from(after - before)
            };
            let late_ns = call.sum_ns.saturating_sub(call.min_ns.saturating_mul(on)) / (on - 1);
            Some(PathCall {
                number,
                begun: came,
                ended: came + i128::from(call.min_ns),
                last: Some(PathWait { late_rank: call.last, came, leads_to }),
                waited_ns: late_ns.max(1),
                leads_to,
                late_ns,
            })
        };
        let calls = (0..).zip(&self.timed.calls).filter(|(_, call)| u64::from(call.ranks) == on);
        calls.filter_map(call).collect()
    }

    /// None when nothing was timed on more than one rank. `starts`: what follows from when the calls began, where waiting is known only
    /// by that.
    fn compared(self, key: Key, starts: Option<StartsCompared>) -> Option<Compared> {
        let CommunicatorWaits { communicator, ranks, calls, timed, of_each, starts: _ } = self;
        let by_starts = starts.is_some();
        let StartsCompared { timed: of_starts, clock_error_ns, waited_ns, path: _ } =
            starts.unwrap_or_default();
        let timed = if by_starts { of_starts } else { timed };
        let on = u32::try_from(ranks.len()).ok().filter(|on| *on > 1)?;
        let common = || timed.calls.iter().filter(|call| call.ranks == on);
        let waited = |call: &ComparedCall| {
            u128::from(call.sum_ns).saturating_sub(u128::from(call.min_ns) * u128::from(on))
        };
        let compared = common().count() as u64;
        let time: u128 = common().map(|call| u128::from(call.sum_ns)).sum();
        let waiting: u128 = common().map(waited).sum();
        if compared == 0 {
            return None;
        }
        // Each call stands for several, with a share of the time on all ranks.
        let each = calls as f64 / (compared as f64 * f64::from(on));
        let seconds = |ns: u128| ns as f64 * 1e-9 * each;
        let share = if time == 0 { 0.0 } else { waiting as f64 / time as f64 };
        let is_all = u128::from(calls) <= u128::from(compared) * u128::from(on);
        let error = |rest: &dyn Fn(&ComparedCall) -> f64| {
            if is_all {
                return Some(seconds(clock_error_ns.into()));
            }
            let squares: f64 = common().map(|call| rest(call) * rest(call)).sum();
            let fewer = (compared > 1).then(|| compared as f64 / (compared - 1) as f64);
            let of_rest =
                fewer.map(|fewer| (squares * fewer * (1.0 - 1.0 / each)).sqrt() * 1e-9 * each);
            of_rest.map(|error| error + seconds(clock_error_ns.into()))
        };
        let mean = waiting as f64 / compared as f64;
        let error_with_time = error(&|call| waited(call) as f64 - mean);
        let error = error(&|call| waited(call) as f64 - share * call.sum_ns as f64);
        let mut last: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
        for call in common() {
            let (calls, waiting) = last.entry(call.last).or_default();
            *calls += 1;
            *waiting += seconds(waited(call));
        }
        let shortest: u128 = common().map(|call| u128::from(call.min_ns)).sum();
        // A rank may have timed more calls than those that all did.
        let longer_ns = |(rank, TimesOfRank { calls, ns }): (u32, TimesOfRank)| {
            let as_many = ns as f64 * compared as f64 / calls.max(1) as f64;
            (rank, (as_many - shortest as f64).max(0.0))
        };
        let waited_ns: Vec<(u32, f64)> = if by_starts {
            waited_ns.into_iter().map(|(rank, ns)| (rank, ns as f64)).collect()
        } else {
            of_each.into_iter().map(longer_ns).collect()
        };
        let of_rank = |ns: u64| seconds(u128::from(ns).saturating_sub(shortest));
        // The extremes cover all calls that a rank timed.
        let extremes = timed.of_ranks.first().filter(|_| common().count() == timed.calls.len());
        let of_ranks = extremes.map(|&Extremes { min, max }| WaitingOfRanks {
            min_s: of_rank(min.0),
            min_rank: min.1,
            avg_s: seconds(waiting) / f64::from(on),
            max_s: of_rank(max.0),
            max_rank: max.1,
        });
        let summary = CommunicatorWaiting {
            communicator: communicator.said,
            members: key.members,
            ordinal: key.ordinal,
            size: key.size.0,
            ranks: ranks.to_string(),
            calls,
            compared,
            time_s: seconds(time),
            waiting_s: seconds(waiting),
            waiting_error_s: error,
            last: most_waited_for(&last, compared),
            of_ranks,
        };
        Some(Compared {
            missing: u64::from(key.size.0) > ranks.len(),
            summary,
            error_with_time,
            is_all,
            last,
            waited: waited_ns.into_iter().map(|(rank, ns)| (rank, ns * 1e-9 * each)).collect(),
        })
    }
}

impl Compared {
    /// Tells how long each rank waited: `scale` times as long as the compared calls say. A rank has its part of the error, or that
    /// of an average rank.
    fn tell(&self, scale: f64, waited: &mut WaitsOfRanks) {
        let CommunicatorWaiting { waiting_s, waiting_error_s, .. } = self.summary;
        let average = 1.0 / self.waited.len().max(1) as f64;
        for (rank, seconds) in &self.waited {
            let part = if waiting_s > 0.0 { seconds / waiting_s } else { 0.0 };
            let error_s = waiting_error_s.map(|error| error * part.max(average));
            waited.add(*rank, seconds * scale, error_s);
        }
    }
}

fn summary(
    function: String,
    mut rows: Vec<Compared>,
    call: Option<&CallSummary>,
    waited: &mut WaitsOfRanks,
) -> WaitingSummary {
    let calls = rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.summary.calls));
    let all = match call.map(|call| call.count.sum) {
        Some(Number::Integer(count)) => u64::try_from(count).unwrap_or(calls),
        _ => calls,
    };
    let calls_not_compared = all.saturating_sub(calls);
    let timed: f64 = rows.iter().map(|row| row.summary.time_s).sum();
    let waiting: f64 = rows.iter().map(|row| row.summary.waiting_s).sum();
    let is_all = rows.iter().all(|row| row.is_all);
    let of_function = call.and_then(|call| Some((call.time_s.as_ref()?.sum.as_f64(), call)));
    // That of a function which only starts an operation is not the time in which ranks wait.
    let of_function = of_function.filter(|_| !is_all && timed > 0.0 && !only_starts(&function));
    // The time of the function is known more exactly than from the calls that all ranks timed. If it is known only
    // as a lower bound, so is the waiting, and the parts of a function take no longer than it.
    let (scale, time_error) = match of_function {
        Some((known, call)) if calls_not_compared == 0 => (known / timed, call.time_error_s),
        Some((known, _)) if known < timed => (known / timed, None),
        _ => (1.0, Some(0.0)),
    };
    let is_known = of_function.is_some() && calls_not_compared == 0;
    let error_of = |row: &Compared| {
        let error = if is_known { row.summary.waiting_error_s } else { row.error_with_time };
        let part = row.summary.waiting_s / timed.max(f64::MIN_POSITIVE);
        Some(libm::hypot(error? * scale, part * time_error?))
    };
    let squares: Option<f64> =
        rows.iter().map(|row| error_of(row).map(|error| error * error)).sum();
    for row in &mut rows {
        row.summary.waiting_error_s = error_of(row);
        row.tell(scale, waited);
    }
    let mut last: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
    for (rank, (times, waiting)) in rows.iter().flat_map(|row| &row.last) {
        let (all, sum) = last.entry(*rank).or_default();
        *all += times;
        *sum += waiting;
    }
    let compared = rows.iter().map(|row| row.summary.compared).sum();
    let mut summary = WaitingSummary {
        function,
        calls,
        calls_not_compared,
        time_s: timed * scale,
        waiting_s: waiting * scale,
        waiting_error_s: squares.map(f64::sqrt),
        ranks_missing: rows.iter().any(|row| row.missing),
        last: most_waited_for(&last, compared),
        communicators: rows.into_iter().map(|row| row.summary).collect(),
    };
    for row in &mut summary.communicators {
        row.time_s *= scale;
        row.waiting_s *= scale;
        if let Some(WaitingOfRanks { min_s, avg_s, max_s, .. }) = &mut row.of_ranks {
            for seconds in [min_s, avg_s, max_s] {
                *seconds *= scale;
            }
        }
    }
    sort_by(&mut summary.communicators, |one, other| other.waiting_s.total_cmp(&one.waiting_s));
    summary
}

/// The ranks for which others waited longest, among all that came last in one of the `compared` calls.
fn most_waited_for(last: &BTreeMap<u32, (u64, f64)>, compared: u64) -> Vec<LastRank> {
    let waiting: f64 = last.values().map(|(_, waiting)| waiting).sum();
    let share = |part: f64| if waiting > 0.0 { part / waiting } else { 0.0 };
    let of = |(rank, (times, part)): (&u32, &(u64, f64))| LastRank {
        rank: *rank,
        calls_share: *times as f64 / compared.max(1) as f64,
        waiting_share: share(*part),
    };
    let mut ranks: Vec<LastRank> = last.iter().map(of).collect();
    sort_by(&mut ranks, |one, other| {
        let order = other.waiting_share.total_cmp(&one.waiting_share);
        order.then(other.calls_share.total_cmp(&one.calls_share)).then(one.rank.cmp(&other.rank))
    });
    ranks.truncate(LAST_AT_MOST);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CallStarts;
    use crate::statistics::Statistics;

    fn profile(function: &str, level: u32, calls: u64, times: &[u64]) -> Waiting {
        Waiting {
            function: function.into(),
            communicator: "MPI_COMM_WORLD".into(),
            members: "0123456789abcdef".into(),
            size: 3,
            calls,
            level,
            times_ns: Waiting::written(times.iter().map(|ns| Some(*ns).filter(|ns| *ns > 0))),
            ..Waiting::default()
        }
    }

    /// Two hosts, the clock of one of which is ahead: no rank leaves a barrier before the other one has begun it.
    #[test]
    fn offsets_of_clocks_follow_from_barriers_in_profiles() {
        const AHEAD: u64 = 5_000_000_000_000;
        let begun = [[1_000_000, 1_003_000], [2_009_000, 2_000_000], [3_000_000, 3_001_000]];
        let ended = [1_005_000, 2_010_000, 3_002_000];
        let of_rank = |rank: u32| {
            let ahead = if rank == 1 { AHEAD } else { 0 };
            let begun = begun.map(|begun: [u64; 2]| begun[rank as usize]);
            let took: Vec<u64> =
                ended.iter().zip(begun).map(|(ended, begun)| ended - begun).collect();
            let starts = CallStarts {
                rank,
                clock: format!("clock-{rank}"),
                level: 0,
                roots: Vec::new(),
                begun: CallStarts::written(begun.map(|begun| Some(ahead + begun))),
                waits: String::new(),
            };
            let of_calls = profile("MPI_Barrier", 0, 3, &took);
            let waiting = vec![Waiting { size: 2, starts: Some(starts), ..of_calls }];
            RankProfile { waiting, ..crate::reduction::tests::profile("1", rank, 2) }
        };
        let offsets = ClockOffsets::of((0..2).map(of_rank));
        let (offset, error_ns) = offsets.between("clock-1", "clock-0").unwrap();
        let off = (offset + i128::from(AHEAD)).unsigned_abs();
        assert!(off <= u128::from(error_ns) && error_ns < 5_000, "{offset} {error_ns}");
        assert_eq!(offsets.between("clock-0", "clock-0"), Some((0, 0)));
        assert_eq!(offsets.between("clock-2", "clock-0"), None);
    }

    fn of(waiting: &[Waiting], rank: u32) -> Waits {
        let mut waits = Waits::default();
        waits.set(waiting, rank);
        waits
    }

    /// In any order.
    fn reduced(ranks: &[Waiting]) -> WaitingSummary {
        let one_by_one = |order: [usize; 3]| {
            let mut waits = Waits::default();
            for rank in order.into_iter().filter(|rank| *rank < ranks.len()) {
                let waiting = std::slice::from_ref(&ranks[rank]);
                waits.absorb(&of(waiting, u32::try_from(rank).unwrap()));
            }
            waits.finish(&[], &mut WaitsOfRanks::default())
        };
        let summaries = one_by_one([0, 1, 2]);
        for order in [[2, 1, 0], [1, 2, 0], [0, 2, 1]] {
            assert_eq!(one_by_one(order), summaries);
        }
        assert_eq!(summaries.len(), 1);
        summaries.into_iter().next().unwrap()
    }

    fn is(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-9 * other.abs()
    }

    #[test]
    fn what_ranks_take_longer_than_the_one_that_came_last_is_waiting() {
        // Rank 2 comes last in the first two calls, rank 0 in the third.
        let ranks = [[96, 1024, 64], [64, 1024, 128], [32, 64, 80]];
        let ranks = ranks.map(|times| profile("MPI_Barrier", 0, 3, &times));
        let summary = reduced(&ranks);
        assert!(is(summary.time_s, f64::from(192 + 2112 + 272) * 1e-9));
        assert!(is(summary.waiting_s, f64::from(96 + 1920 + 80) * 1e-9));
        assert_eq!((summary.calls, summary.waiting_error_s), (9, Some(0.0)));
        assert_eq!((summary.ranks_missing, summary.calls_not_compared), (false, 0));
        let [first, second] = summary.last.as_slice() else { panic!("{:?}", summary.last) };
        assert_eq!((first.rank, second.rank), (2, 0));
        assert!(is(first.calls_share, 2.0 / 3.0) && is(first.waiting_share, 2016.0 / 2096.0));
        let row = &summary.communicators[0];
        assert_eq!((row.ranks.as_str(), row.size, row.compared), ("0-2", 3, 3));
        // The calls themselves cost 160 ns: rank 0 waits 64 + 960 ns, rank 1 32 + 960 + 64, rank 2 16.
        let of = row.of_ranks.unwrap();
        assert_eq!((of.min_rank, of.max_rank), (2, 1));
        assert!(is(of.min_s, 16e-9) && is(of.max_s, 1056e-9) && is(of.avg_s, 2096e-9 / 3.0));
    }

    #[test]
    fn of_ranks_that_wait_as_long_the_lowest_is_named() {
        let ranks = [[64, 80], [80, 64], [64, 80]];
        let row = reduced(&ranks.map(|times| profile("MPI_Barrier", 0, 2, &times)));
        let of = row.communicators[0].of_ranks.unwrap();
        assert_eq!((of.min_rank, of.max_rank), (0, 0));
        assert!(is(of.min_s, 16e-9) && is(of.max_s, 16e-9));
    }

    #[test]
    fn calls_that_a_rank_did_not_time_are_left_out_and_what_stands_for_them_is_an_estimate() {
        let ranks = [[64, 80, 100, 0], [64, 64, 64, 64], [0, 96, 100, 64]];
        let summary = reduced(&ranks.map(|times| profile("MPI_Barrier", 0, 4, &times)));
        let row = &summary.communicators[0];
        assert_eq!((row.compared, row.calls), (2, 12));
        assert!(is(summary.waiting_s, 2.0 * f64::from(48 + 72) * 1e-9));
        assert!(summary.waiting_error_s.unwrap() > 0.0);
        // Ranks that timed different calls are not compared with each other.
        assert_eq!(row.of_ranks, None);
    }

    #[test]
    fn ranks_with_different_levels_share_the_calls_of_the_highest() {
        let timed = |level: u32, calls: u64, times: &dyn Fn(u64) -> u64| {
            let number = (0..).map(|block| Waiting::timed_call(level, block));
            let times: Vec<u64> = number.take_while(|call| *call < calls).map(times).collect();
            profile("MPI_Allreduce", level, calls, &times)
        };
        // 10 ns more than rank 0 at each call.
        let ranks = [
            timed(0, 64, &|call| call + 1),
            timed(2, 64, &|call| call + 11),
            timed(1, 64, &|call| call + 11),
        ];
        let summary = reduced(&ranks);
        assert_eq!(summary.communicators[0].compared, 16);
        assert!(is(summary.waiting_s, 64.0 * 20.0 * 1e-9));
        assert!((summary.last[0].rank, summary.last.len()) == (0, 1));
        let of = summary.communicators[0].of_ranks.unwrap();
        assert_eq!((of.min_s, of.min_rank, of.max_rank), (0.0, 0, 1));
        assert!(is(of.max_s, 64.0 * 10.0 * 1e-9) && is(of.avg_s, summary.waiting_s / 3.0));
    }

    /// 3 ranks make 4,000 calls each, of which every 1,000th is compared; one of those is interrupted.
    fn of_a_loop(time_s: f64, time_error_s: Option<f64>) -> WaitingSummary {
        let timed = |rank: u64| {
            let ns: Vec<u64> = (0..4).map(|block| 200 + rank * block * block * 4000).collect();
            profile("MPI_Alltoallv", 10, 4000, &ns)
        };
        let mut waits = of(&[timed(0)], 0);
        waits.absorb(&of(&[timed(1)], 1));
        waits.absorb(&of(&[timed(2)], 2));
        let sum = |sum| Statistics::of(sum, 0).finish().unwrap();
        let call = CallSummary {
            name: "MPI_Alltoallv".into(),
            count: sum(Number::Integer(12_000)),
            bytes: None,
            timed: 12,
            time_s: Some(sum(Number::Double(time_s))),
            time_error_s,
            time_max_s: None,
            time_histogram: Vec::new(),
            size_histogram: Vec::new(),
            size_histogram_bytes: Vec::new(),
        };
        waits.finish(&[call], &mut WaitsOfRanks::default()).remove(0)
    }

    #[test]
    fn waiting_is_a_part_of_the_time_of_the_function_and_a_lower_bound_where_that_is_one() {
        // From the compared calls alone it would be 168 s.
        let known = of_a_loop(1e-3, Some(5e-5));
        assert!(is(known.time_s, 1e-3) && known.waiting_s < 1e-3);
        let error = known.waiting_error_s.unwrap();
        let share = known.waiting_s / known.time_s;
        assert!(error >= share * 5e-5, "{known:?}");
        let at_least = of_a_loop(1e-3, None);
        assert!(is(at_least.waiting_s, known.waiting_s) && at_least.waiting_error_s.is_none());
        assert_eq!(at_least.communicators[0].waiting_error_s, None);
    }

    /// Two ranks start an operation every 10 us, and complete it 1 us later. Every other time, rank 1 starts it 3 us too late.
    fn of_requests(level: u32, calls: u64) -> (WaitingSummary, f64) {
        let profile = |rank: u32| {
            let late = |call: u64| 3_008 * u64::from(rank) * (call % 2);
            let timed = (0..).map(|block| Waiting::timed_call(level, block));
            let timed: Vec<u64> = timed.take_while(|call| *call < calls).collect();
            let begun = || timed.iter().map(|call| Some(64_000 + call * 10_048 + late(*call)));
            let waits = || begun().map(|begun| begun.map(|begun| begun + 1_024));
            let took = |call: &u64| Some(if rank == 0 { 2_048 + 3_008 * (call % 2) } else { 64 });
            let starts = crate::CallStarts {
                rank,
                clock: "1".into(),
                level,
                roots: Vec::new(),
                begun: crate::CallStarts::written(begun()),
                waits: crate::CallStarts::written_waits(begun(), waits()),
            };
            Waiting {
                size: 2,
                times_ns: Waiting::written(timed.iter().map(took)),
                starts: Some(starts),
                ..profile("MPI_Iallreduce", level, calls, &[])
            }
        };
        let mut waits = of(&[profile(0)], 0);
        waits.absorb(&of(&[profile(1)], 1));
        let sum = |sum| Statistics::of(sum, 0).finish().unwrap();
        // The calls that only start it take no time to speak of.
        let call = CallSummary {
            name: "MPI_Iallreduce".into(),
            count: sum(Number::Integer(i128::from(2 * calls))),
            bytes: None,
            timed: 1,
            time_s: Some(sum(Number::Double(1e-6))),
            time_error_s: Some(0.0),
            time_max_s: None,
            time_histogram: Vec::new(),
            size_histogram: Vec::new(),
            size_histogram_bytes: Vec::new(),
        };
        let summary = waits.finish(&[call], &mut WaitsOfRanks::default()).remove(0);
        (summary, calls as f64 / 2.0 * (3_008.0 - 1_024.0) * 1e-9)
    }

    #[test]
    fn ranks_wait_for_what_others_start_in_the_calls_that_complete_it() {
        let (exact, truth_s) = of_requests(0, 100);
        assert!(is(exact.waiting_s, truth_s) && exact.waiting_error_s == Some(0.0), "{exact:?}");
        assert!(is(exact.time_s, 50.0 * (2.0 * 2_048.0 + 3_008.0 + 128.0) * 1e-9), "{exact:?}");
        assert_eq!((exact.last[0].rank, exact.calls), (1, 200));
        // The calls that were not timed are estimated by their number, not by the time of the function.
        let (estimate, truth_s) = of_requests(4, 8_000);
        let error_s = estimate.waiting_error_s.unwrap();
        assert!((estimate.waiting_s - truth_s).abs() < 3.0 * error_s, "{estimate:?} {truth_s}");
        assert!(error_s > 0.0 && error_s < 0.1 * truth_s, "{estimate:?}");
    }

    #[test]
    fn one_rank_is_not_compared_and_with_some_ranks_it_is_said_that_others_are_missing() {
        let ranks = [[64, 80], [80, 64]].map(|times| profile("MPI_Barrier", 0, 2, &times));
        let mut waits = of(&ranks[..1], 0);
        assert!(waits.clone().finish(&[], &mut WaitsOfRanks::default()).is_empty());
        waits.absorb(&of(&ranks[1..], 1));
        let summary = waits.finish(&[], &mut WaitsOfRanks::default()).remove(0);
        assert!(summary.ranks_missing && is(summary.waiting_s, 32e-9));
    }

    #[test]
    fn of_too_many_rows_those_of_the_largest_communicators_stay_in_any_order() {
        let row = |number: u32| Waiting {
            members: format!("{:016x}", number.wrapping_mul(0x9e37_79b9)),
            size: 2 + number % 7,
            ..profile("MPI_Barrier", 0, 1, &[64])
        };
        let rows: Vec<Waiting> = (0..1000).map(row).collect();
        let reduced = |parts: &[&[Waiting]]| {
            let mut waits = Waits::default();
            for (rank, part) in (0..).zip(parts) {
                waits.absorb(&of(part, rank));
            }
            waits.0.into_keys().collect::<Vec<Key>>()
        };
        let whole = reduced(&[&rows]);
        assert_eq!(whole.len(), ROWS_AT_MOST);
        assert!(whole.iter().all(|key| key.size.0 > 6));
        assert_eq!(reduced(&[&rows[500..], &rows[..300], &rows[300..500], &rows]), whole);
    }
}
