//! When did the ranks of a communicator begin the same calls? Where a rank waits for some others only, it waits until these have
//! begun the call, at most as long as its own call takes (the late broadcast and early reduce of Scalasca's patterns).
//!
//! If a call only starts the operation, a rank waits in the one that completes it: from when that begins until the others have
//! started the operation. Of the operations that one call completes, the one for which it waits longest counts.
//!
//! Ranks of one host share a clock. Clocks of hosts are compared by calls that no rank leaves before all have entered: a rank
//! has begun such a call before any rank has ended it, which bounds how far two clocks are apart, from above and from below.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::path::{LeadsTo, PathCall, PathWait};
use super::waiting::{ComparedCall, Timed};
use crate::merge::Merge;
use crate::{CallStarts, Waiting, WaitsFor};

/// When calls of a function on a communicator began.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Starts {
    /// Where all wait for all: by clock, of each call of this level, when the last rank began it and the first one ended it.
    level: u32,
    by_clock: BTreeMap<String, Vec<Met>>,
    /// Of other functions, what each rank knows.
    of_ranks: Vec<RankStarts>,
}

/// When the last rank began a call, and the first one ended it, as is known for sure, in ns.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Met {
    begun: u64,
    ended: u64,
}

/// That of a call of which nothing is known.
impl Default for Met {
    fn default() -> Met {
        Met { begun: 0, ended: u64::MAX }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct RankStarts {
    /// In `MPI_COMM_WORLD`.
    rank: u32,
    /// In the communicator.
    place: u32,
    clock: String,
    level: u32,
    calls: Vec<RankStart>,
    /// The roots of the calls, as [`CallStarts`] has them.
    starts_level: u32,
    roots: Vec<(u32, u32)>,
}

/// When a rank began a call and when it began to wait in it or in the one that completed it, and how long that took, in ns; zeros if
/// that is not known.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct RankStart {
    begun: u64,
    waits: u64,
    took: u64,
}

/// What follows from when calls began.
#[derive(Debug, Default)]
pub(super) struct StartsCompared {
    /// The calls that all ranks have timed, with how long these waited.
    pub(super) timed: Timed,
    /// How much of the waiting may be differences of clocks.
    pub(super) clock_error_ns: u64,
    /// By rank, how long it waited in those calls.
    pub(super) waited_ns: BTreeMap<u32, u64>,
    /// By rank, those calls, on the clock of all.
    pub(super) path: BTreeMap<u32, Vec<PathCall>>,
}

impl Starts {
    pub(super) fn of_rank(waiting: &Waiting, rank: u32) -> Starts {
        let Some(starts) = &waiting.starts else { return Starts::default() };
        let CallStarts { rank: place, clock, level, .. } = starts;
        let level = (*level).max(waiting.level);
        let mut durations: Vec<Option<u64>> = waiting.durations().collect();
        thin(&mut durations, waiting.level, level);
        let mut begun: Vec<Option<u64>> = starts.times().collect();
        thin(&mut begun, starts.level, level);
        let mut waits: Vec<Option<u64>> = starts.times_of_waits().collect();
        thin(&mut waits, starts.level, level);
        let times = begun.into_iter().zip(waits).zip(durations);
        let start = |((begun, waits), took): ((Option<u64>, _), Option<u64>)| {
            begun.zip(waits).zip(took).map(|((begun, waits), took)| RankStart {
                begun,
                waits,
                took,
            })
        };
        let calls: Vec<RankStart> = times.map(|times| start(times).unwrap_or_default()).collect();
        let mut all = Starts { level, ..Starts::default() };
        if WaitsFor::in_function(&waiting.function) == WaitsFor::All {
            let met = calls.iter().map(|&RankStart { begun, waits, took }| match begun {
                0 => Met::default(),
                _ => Met { begun, ended: latest_end(waits, took) },
            });
            all.by_clock = BTreeMap::from([(clock.clone(), met.collect())]);
        }
        if WaitsFor::is_known_by_starts(&waiting.function) {
            all.of_ranks.push(RankStarts {
                rank,
                place: *place,
                clock: clock.clone(),
                level,
                calls,
                starts_level: starts.level,
                roots: starts.roots.clone(),
            });
        }
        all
    }

    /// How long each rank waited in the calls that all of its ranks have timed, as `waits_for` says for whom.
    pub(super) fn waits(mut self, waits_for: WaitsFor, clocks: &Clocks) -> CallsOfRanks {
        self.of_ranks.sort_by_key(|of| of.place);
        let level = self.of_ranks.iter().map(|of| of.level).max().unwrap_or(0);
        // They are the same on all ranks.
        let roots = self.of_ranks.first().map(|of| of.roots_at(level)).unwrap_or_default();
        let mut ranks = Vec::new();
        let mut length = usize::MAX;
        for of in &mut self.of_ranks {
            thin(&mut of.calls, of.level, level);
            length = length.min(of.calls.len());
            match clocks.0.get(&of.clock) {
                Some(clock) => ranks.push((of, *clock)),
                // One whose clock cannot be compared is missing in every call.
                None => length = 0,
            }
        }
        if ranks.is_empty() {
            length = 0;
        }
        let call = |at: usize| {
            let begun = |(of, clock): &(&mut RankStarts, ClockOffset)| {
                let start = *of.calls.get(at).filter(|of| of.begun > 0)?;
                let (rank, place, clock) = (of.rank, of.place, *clock);
                let begun_ns = i128::from(start.begun) + clock.offset_ns;
                Some(Began { rank, place, clock, begun_ns, start })
            };
            let call: Option<Vec<Began>> = ranks.iter().map(begun).collect();
            let root = roots.get(at).copied();
            call.and_then(|call| waited(waits_for, root, &call)).unwrap_or_default()
        };
        CallsOfRanks { level, calls: (0..length).map(call).collect() }
    }
}

/// The calls of a function on a communicator, each with what its ranks waited: none where that is not known of all.
#[derive(Debug)]
pub(super) struct CallsOfRanks {
    level: u32,
    calls: Vec<Vec<WaitOfCall>>,
}

/// How long a rank waited in a call, in ns.
#[derive(Debug)]
struct WaitOfCall {
    rank: u32,
    /// When it began to wait, on its own clock.
    waits: u64,
    took: u64,
    waited: u64,
    /// How far that may be wrong.
    error: u64,
    /// When it began to wait, on the clock of all.
    waits_at: i128,
    /// For whom it waited, if it may have to, and when that one came, on the clock of all.
    other: Option<(u32, i128)>,
}

impl CallsOfRanks {
    /// Where one call completed several operations of these rows, the one for which the rank waited longest has its time; nobody
    /// waited for the others.
    pub(super) fn count_once<'a>(rows: impl Iterator<Item = &'a mut CallsOfRanks>) {
        let all = rows.flat_map(|row| row.calls.iter_mut().flatten());
        let mut longest: BTreeMap<(u32, u64), &'a mut WaitOfCall> = BTreeMap::new();
        for of in all {
            let not_counted = match longest.get_mut(&(of.rank, of.waits)) {
                Some(before) if of.waited > before.waited => std::mem::replace(before, of),
                Some(_) => of,
                None => {
                    longest.insert((of.rank, of.waits), of);
                    continue;
                }
            };
            (not_counted.took, not_counted.waited, not_counted.error) = (0, 0, 0);
        }
    }

    /// `leads_to`: the function.
    pub(super) fn compared(self, leads_to: LeadsTo) -> StartsCompared {
        let timed = Timed { level: self.level, ..Timed::default() };
        let mut compared = StartsCompared { timed, ..StartsCompared::default() };
        for (block, call) in (0..).zip(self.calls) {
            let number = Waiting::timed_call(self.level, block);
            compared.timed.calls.push(compared_call(&call).unwrap_or_default());
            for of in call {
                compared.clock_error_ns = compared.clock_error_ns.saturating_add(of.error);
                compared.waited_ns.entry(of.rank).or_default().absorb(&of.waited);
                compared.path.entry(of.rank).or_default().push(of.on_path(number, leads_to));
            }
        }
        compared
    }
}

impl WaitOfCall {
    fn on_path(&self, number: u64, leads_to: LeadsTo) -> PathCall {
        let last = self.other.map(|(late_rank, came)| PathWait { late_rank, came, leads_to });
        PathCall {
            number,
            begun: self.waits_at,
            ended: self.waits_at + i128::from(self.took),
            last,
            waited_ns: self.waited,
            leads_to,
            late_ns: self.waited,
        }
    }
}

/// None if nothing is known of it.
fn compared_call(call: &[WaitOfCall]) -> Option<ComparedCall> {
    let ranks = u32::try_from(call.len()).ok()?;
    let sum = |ns: fn(&WaitOfCall) -> u64| call.iter().map(ns).fold(0, u64::saturating_add);
    let (sum_ns, waiting_ns) = (sum(|of| of.took), sum(|of| of.waited));
    // So that what the ranks took longer is what they waited.
    let min_ns = sum_ns.saturating_sub(waiting_ns) / u64::from(ranks).max(1);
    // The first of those that waited longest.
    let most = call.iter().filter(|of| of.other.is_some()).rev().max_by_key(|of| of.waited)?;
    Some(ComparedCall { ranks, sum_ns, min_ns, last: most.other?.0 })
}

impl Starts {
    /// Where all wait for all, by the number of a call: when the last rank began it and the first one ended it, on the clock of
    /// all.
    pub(super) fn met(&self, clocks: &Clocks) -> BTreeMap<u64, (i128, i128)> {
        let first = clocks.first().unwrap_or_default();
        let mut met: BTreeMap<u64, (i128, i128)> = BTreeMap::new();
        for (number, (clock, calls)) in self.by_clock.iter().enumerate() {
            let Some((offset, _)) = clocks.between(clock, first) else { return BTreeMap::new() };
            let mut of_clock: BTreeMap<u64, (i128, i128)> = BTreeMap::new();
            for (block, call) in (0..).zip(calls) {
                if call.begun == 0 || call.ended == u64::MAX {
                    continue;
                }
                let at = Waiting::timed_call(self.level, block);
                let own = [call.begun, call.ended].map(|ns| i128::from(ns) + offset);
                let before = met.get(&at).copied();
                let (begun, ended) = before.unwrap_or((own[0], own[1]));
                if number == 0 || before.is_some() {
                    of_clock.insert(at, (begun.max(own[0]), ended.min(own[1])));
                }
            }
            met = of_clock;
        }
        met
    }
}

/// One rank in a call, on the clock of all.
struct Began {
    rank: u32,
    place: u32,
    clock: ClockOffset,
    begun_ns: i128,
    /// On its own clock.
    start: RankStart,
}

impl RankStarts {
    /// The roots of the calls of a level that is not below its own.
    fn roots_at(&self, level: u32) -> Vec<u32> {
        let of = CallStarts { roots: self.roots.clone(), ..CallStarts::default() };
        let mut roots: Vec<u32> = of.root_of_each().collect();
        thin(&mut roots, self.starts_level, level);
        roots
    }
}

impl Began {
    /// How long this rank waits for another one, if it has to, at most as long as its call takes.
    fn waits_for(&self, other: Option<&Began>) -> WaitOfCall {
        let RankStart { waits, took, .. } = self.start;
        let own_ns = i128::from(waits) + self.clock.offset_ns;
        let mut wait = WaitOfCall {
            rank: self.rank,
            waits,
            took,
            waited: 0,
            error: 0,
            waits_at: own_ns,
            other: None,
        };
        let Some(other) = other else { return wait };
        let later = u64::try_from(other.begun_ns - own_ns).unwrap_or(0);
        let [own, others] = [self.clock, other.clock];
        let is_same = own.number == others.number;
        let error = if is_same { 0 } else { own.error_ns.saturating_add(others.error_ns) };
        (wait.waited, wait.error) = (later.min(took), error.min(took));
        wait.other = Some((other.rank, other.begun_ns));
        wait
    }
}

/// `call`: in the order of the communicator, in which `root` is its root. None without that where there has to be one.
fn waited(waits_for: WaitsFor, root: Option<u32>, call: &[Began]) -> Option<Vec<WaitOfCall>> {
    let root = root.and_then(|place| call.iter().find(|of| of.place == place));
    if matches!(waits_for, WaitsFor::Root | WaitsFor::AtRoot) && root.is_none() {
        return None;
    }
    let last = latest(call.iter());
    let mut before = None;
    let mut waits = Vec::with_capacity(call.len());
    for of in call {
        let is_root = root.is_some_and(|root| root.place == of.place);
        let other = match waits_for {
            WaitsFor::Root => root,
            WaitsFor::AtRoot if is_root => {
                latest(call.iter().filter(|other| other.place != of.place))
            }
            WaitsFor::AtRoot => None,
            WaitsFor::Lower => before,
            WaitsFor::All => last,
        };
        waits.push(of.waits_for(other.filter(|other| other.place != of.place)));
        before = latest(before.into_iter().chain([of]));
    }
    Some(waits)
}

/// The one of these that began last; of several, the one with the lowest rank.
fn latest<'a>(ranks: impl Iterator<Item = &'a Began>) -> Option<&'a Began> {
    ranks.max_by_key(|of| (of.begun_ns, std::cmp::Reverse(of.rank)))
}

/// Keeps of the calls of one level those of a higher one.
fn thin<T: Clone>(calls: &mut Vec<T>, from: u32, to: u32) {
    for level in from..to {
        if calls.is_empty() {
            return;
        }
        Waiting::thin(calls, level);
    }
}

/// The latest time at which a call may have ended, for what is written of it.
fn latest_end(begun: u64, took: u64) -> u64 {
    // Both were rounded.
    let (unit, part) = (64, took / 64 + 1);
    [unit, took, part].into_iter().fold(begun, u64::saturating_add)
}

impl Merge for Starts {
    fn absorb(&mut self, other: &Starts) {
        self.of_ranks.extend_from_slice(&other.of_ranks);
        if other.by_clock.is_empty() {
            return;
        }
        if self.by_clock.is_empty() {
            self.level = other.level;
        }
        let level = self.level.max(other.level);
        for calls in self.by_clock.values_mut() {
            thin(calls, self.level, level);
        }
        self.level = level;
        for (clock, calls) in &other.by_clock {
            let mut calls = calls.clone();
            thin(&mut calls, other.level, level);
            let Some(own) = self.by_clock.get_mut(clock) else {
                self.by_clock.insert(clock.clone(), calls);
                continue;
            };
            own.resize(own.len().max(calls.len()), Met::default());
            for (own, other) in own.iter_mut().zip(calls) {
                own.begun = own.begun.max(other.begun);
                own.ended = own.ended.min(other.ended);
            }
        }
    }
}

/// How clocks differ from the first of them, in ns.
#[derive(Debug, Default)]
pub(super) struct Clocks(BTreeMap<String, ClockOffset>);

/// What is added to a time on a clock, and how far that may be wrong.
#[derive(Clone, Copy, Debug, Default)]
struct ClockOffset {
    /// Which clock it is; 0 for the first one.
    number: usize,
    offset_ns: i128,
    error_ns: u64,
}

impl Clocks {
    /// Those that can be compared with the first one.
    pub(super) fn aligned<'a>(all: impl Iterator<Item = &'a Starts> + Clone) -> Clocks {
        let of_ranks = all.clone().flat_map(|starts| &starts.of_ranks).map(|of| &of.clock);
        let known = of_ranks.chain(all.clone().flat_map(|starts| starts.by_clock.keys()));
        let Some(first) = known.min().cloned() else { return Clocks(BTreeMap::new()) };
        // How much a clock may be behind the first one at most, and at least.
        let mut bounds: BTreeMap<&String, (i128, i128)> = BTreeMap::new();
        for starts in all {
            let Some(of_first) = starts.by_clock.get(&first) else { continue };
            for (clock, calls) in starts.by_clock.iter().filter(|(clock, _)| **clock != first) {
                for (own, of_first) in calls.iter().zip(of_first) {
                    let (most, least) = bounds.entry(clock).or_insert((i128::MAX, i128::MIN));
                    if own.begun > 0 && of_first.ended < u64::MAX {
                        *most = (*most).min(i128::from(of_first.ended) - i128::from(own.begun));
                    }
                    if of_first.begun > 0 && own.ended < u64::MAX {
                        *least = (*least).max(i128::from(of_first.begun) - i128::from(own.ended));
                    }
                }
            }
        }
        let offset = |(number, (clock, (most, least))): (usize, (&String, (i128, i128)))| {
            let apart = most.checked_sub(least).filter(|apart| *apart >= 0)?;
            let error_ns = u64::try_from(apart / 2 + 1).ok()?;
            let offset_ns = least + apart / 2;
            let offset = ClockOffset { number: number + 1, offset_ns, error_ns };
            Some((clock.clone(), offset))
        };
        let mut clocks: BTreeMap<String, ClockOffset> =
            bounds.into_iter().enumerate().filter_map(offset).collect();
        clocks.insert(first, ClockOffset::default());
        Clocks(clocks)
    }

    /// The clock on which all others are set.
    pub(super) fn first(&self) -> Option<&str> {
        let is_first = |(_, offset): &(&String, &ClockOffset)| offset.number == 0;
        self.0.iter().find(is_first).map(|(clock, _)| &**clock)
    }

    /// What is added to a time on clock `of` for one on clock `on`, and how far that may be wrong, in ns; none if the two
    /// cannot be compared.
    pub(super) fn between(&self, of: &str, on: &str) -> Option<(i128, u64)> {
        if of == on {
            return Some((0, 0));
        }
        let (of, on) = (self.0.get(of)?, self.0.get(on)?);
        Some((of.offset_ns - on.offset_ns, of.error_ns.saturating_add(on.error_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DURATIONS_AT_MOST;

    /// A program of which everything is known: the clock of each rank, and when it begins and ends each call.
    struct Simulated {
        /// By rank, the clock and what it says at time 0.
        clocks: Vec<(usize, u64)>,
        /// Whether the calls only start the operation, which another call completes.
        only_start: bool,
        /// By call, the function, the root, and by rank when it begins, when the rank begins to wait, and when that ends, in ns.
        calls: Vec<(WaitsFor, u32, Vec<[u64; 3]>)>,
    }

    impl Simulated {
        fn name(&self, waits_for: WaitsFor) -> &'static str {
            let [blocking, nonblocking] = match waits_for {
                WaitsFor::All => ["MPI_Barrier", "MPI_Ibarrier"],
                WaitsFor::Root => ["MPI_Bcast", "MPI_Ibcast"],
                WaitsFor::AtRoot => ["MPI_Reduce", "MPI_Ireduce"],
                WaitsFor::Lower => ["MPI_Scan", "MPI_Iscan"],
            };
            if self.only_start { nonblocking } else { blocking }
        }
    }

    impl Simulated {
        /// What the ranks write, of every call.
        fn waiting(&self, rank: usize) -> Vec<Waiting> {
            let each = [WaitsFor::All, WaitsFor::Root, WaitsFor::AtRoot, WaitsFor::Lower];
            each.map(|waits_for| {
                let (clock, zero) = self.clocks[rank];
                let calls = || self.calls.iter().filter(|(of, ..)| *of == waits_for);
                let times = || calls().map(|(.., times)| times[rank]);
                let on_clock = |at: u64| Some(zero + at);
                let roots = match waits_for {
                    WaitsFor::All | WaitsFor::Lower => Vec::new(),
                    _ => calls().map(|(_, root, _)| (1, *root)).collect(),
                };
                let begun = || times().map(|[begun, ..]| on_clock(begun));
                let waits = times().map(|[_, waits, _]| on_clock(waits));
                let starts = CallStarts {
                    rank: u32::try_from(rank).unwrap(),
                    clock: format!("{clock}"),
                    level: 0,
                    roots,
                    begun: CallStarts::written(begun()),
                    waits: if self.only_start {
                        CallStarts::written_waits(begun(), waits)
                    } else {
                        String::new()
                    },
                };
                let durations = times().map(|[_, waits, ended]| Some(ended - waits));
                Waiting {
                    function: self.name(waits_for).into(),
                    times_ns: Waiting::written(durations),
                    starts: Some(starts),
                    ..Waiting::default()
                }
            })
            .into()
        }

        /// Seconds of waiting and its error in a function, merged in the order of these ranks.
        fn found(&self, of: WaitsFor, ranks: &[usize]) -> (f64, f64, Vec<u32>) {
            let mut functions: BTreeMap<String, Starts> = BTreeMap::new();
            for rank in ranks {
                for waiting in self.waiting(*rank) {
                    let starts = Starts::of_rank(&waiting, u32::try_from(*rank).unwrap());
                    functions.entry(waiting.function).or_default().absorb(&starts);
                }
            }
            let clocks = Clocks::aligned(functions.values());
            let calls = functions.remove(self.name(of)).unwrap().waits(of, &clocks);
            let StartsCompared { timed, clock_error_ns, waited_ns, path: _ } =
                calls.compared(LeadsTo::Collective(0));
            let waited = |call: &ComparedCall| call.sum_ns - call.min_ns * u64::from(call.ranks);
            let waiting: u64 = timed.calls.iter().map(waited).sum();
            // The transfer in whole ns of each of four ranks is rounded down.
            let of_ranks: u64 = waited_ns.values().sum();
            assert!(waiting.abs_diff(of_ranks) <= 4 * timed.calls.len() as u64);
            let last = timed.calls.iter().map(|call| call.last).collect();
            (waiting as f64 * 1e-9, clock_error_ns as f64 * 1e-9, last)
        }

        /// Seconds of waiting in a function, by its definition.
        fn truth(&self, of: WaitsFor) -> f64 {
            let mut ns = 0;
            for (_, root, times) in self.calls.iter().filter(|(waits_for, ..)| *waits_for == of) {
                let root = *root as usize;
                for (rank, [_, waits, ended]) in times.iter().enumerate() {
                    let others: Vec<usize> = match of {
                        WaitsFor::Root => vec![root],
                        WaitsFor::All => (0..times.len()).collect(),
                        WaitsFor::AtRoot if rank == root => (0..times.len()).collect(),
                        WaitsFor::Lower => (0..rank).collect(),
                        WaitsFor::AtRoot => Vec::new(),
                    };
                    let until = others.iter().map(|other| times[*other][0]).max().unwrap_or(0);
                    ns += until.clamp(*waits, *ended) - waits;
                }
            }
            ns as f64 * 1e-9
        }
    }

    /// Four ranks on as many clocks as given, which make calls of all kinds, some of them late. If they only start operations, ranks
    /// then work before they complete them.
    fn simulated(
        clocks: &[(usize, u64)],
        only_start: bool,
        random: &mut fastrand::Rng,
    ) -> Simulated {
        let mut now = vec![random.u64(1_000_000..2_000_000); clocks.len()];
        let mut calls = Vec::new();
        for number in 0..DURATIONS_AT_MOST.min(120) {
            let kinds = [WaitsFor::All, WaitsFor::Root, WaitsFor::AtRoot, WaitsFor::Lower];
            let (of, root) = (kinds[number % 4], random.usize(0..clocks.len()));
            let begun: Vec<u64> = now
                .iter()
                .map(|now| now + random.u64(0..200_000) * if random.u8(0..8) == 0 { 30 } else { 1 })
                .collect();
            let all = *begun.iter().max().unwrap();
            let works = u64::from(only_start) * 60_000;
            let waits: Vec<u64> = begun.iter().map(|begun| begun + random.u64(0..=works)).collect();
            let ended = |rank: usize| {
                let needs = match of {
                    WaitsFor::All => all,
                    WaitsFor::Root => begun[root],
                    WaitsFor::AtRoot if rank == root => all,
                    WaitsFor::AtRoot => 0,
                    WaitsFor::Lower => *begun[..=rank].iter().max().unwrap(),
                };
                needs.max(waits[rank])
            };
            let ended: Vec<u64> =
                (0..clocks.len()).map(|rank| ended(rank) + 3_000 + random.u64(0..4_000)).collect();
            let root = u32::try_from(root).unwrap();
            let times = |rank: usize| [begun[rank], waits[rank], ended[rank]];
            calls.push((of, root, (0..clocks.len()).map(times).collect()));
            now = ended;
        }
        Simulated { clocks: clocks.to_vec(), only_start, calls }
    }

    #[test]
    fn waiting_is_that_of_its_definition_on_one_host_and_within_its_error_on_several() {
        let mut random = fastrand::Rng::with_seed(36);
        for _ in 0..50 {
            for clocks in [
                [(0, 0); 4],
                [(0, 0), (0, 0), (1, 7_000_000_000), (1, 7_000_000_000)],
                [(3, 1 << 50), (2, 77), (1, 0), (0, 1 << 40)],
            ] {
                let only_start = random.bool();
                let program = simulated(&clocks, only_start, &mut random);
                let kinds = [WaitsFor::Root, WaitsFor::AtRoot, WaitsFor::Lower, WaitsFor::All];
                // In blocking calls, that each waits for all others is known without the starts.
                for of in kinds.into_iter().take(if only_start { 4 } else { 3 }) {
                    let (waiting_s, error_s, last) = program.found(of, &[0, 1, 2, 3]);
                    assert_eq!(program.found(of, &[2, 3, 1, 0]), (waiting_s, error_s, last));
                    let truth_s = program.truth(of);
                    assert!(truth_s > if only_start { 3e-4 } else { 1e-3 });
                    let off_s = (waiting_s - truth_s).abs();
                    assert!(off_s <= 0.01 * truth_s + error_s, "{clocks:?} {of:?}: {off_s}");
                    assert!(error_s <= 0.5 * truth_s, "{clocks:?} {of:?}: {error_s} {truth_s}");
                    assert_eq!(error_s == 0.0, clocks[3].0 == clocks[0].0);
                }
            }
        }
    }

    #[test]
    fn clocks_that_no_call_compares_are_not_compared() {
        let mut random = fastrand::Rng::with_seed(1);
        let clocks = [(0, 0), (0, 0), (1, 5), (1, 5)];
        let mut program = simulated(&clocks, false, &mut random);
        program.calls.retain(|(of, ..)| *of != WaitsFor::All);
        assert!(program.found(WaitsFor::Root, &[0, 1, 2, 3]).2.iter().all(|last| *last == 0));
        assert!(program.found(WaitsFor::Root, &[0, 1, 2, 3]).0 < 1e-12);
    }

    #[test]
    fn of_the_operations_that_one_call_completes_the_one_with_the_longest_waiting_counts() {
        let wait = |rank, waits, waited| WaitOfCall {
            rank,
            waits,
            took: 100,
            waited,
            error: 1,
            waits_at: i128::from(waits),
            other: Some((3, 0)),
        };
        let row = |calls| CallsOfRanks { level: 0, calls };
        // Rank 0 completes three operations with one call at 7, and one more at 8.
        let mut rows = [
            row(vec![vec![wait(0, 7, 20), wait(1, 7, 5)], vec![wait(0, 7, 60), wait(1, 9, 0)]]),
            row(vec![vec![wait(0, 7, 40), wait(1, 11, 50)], vec![wait(0, 8, 30), wait(1, 12, 1)]]),
        ];
        CallsOfRanks::count_once(rows.iter_mut());
        let counted = |of: &WaitOfCall| (of.took, of.waited, of.error);
        let known: Vec<_> =
            rows.iter().flat_map(|row| row.calls.iter().flatten()).map(counted).collect();
        let (none, all) = ((0, 0, 0), |waited| (100, waited, 1));
        assert_eq!(known, [none, all(5), all(60), all(0), none, all(50), all(30), all(1)]);
    }
}
