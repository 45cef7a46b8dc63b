//! When did the ranks of a communicator begin the same calls? Where a rank waits for some others only, it waits until these have
//! begun the call, at most as long as its own call takes (the late broadcast and early reduce of Scalasca's patterns).
//!
//! Ranks of one host share a clock. Clocks of hosts are compared by calls that no rank leaves before all have entered: a rank
//! has begun such a call before any rank has ended it, which bounds how far two clocks are apart, from above and from below.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

/// The calls of one rank.
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

/// When a rank began a call, and how long it took, in ns; zeros if that is not known.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct RankStart {
    begun: u64,
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
        let times = begun.into_iter().zip(durations).map(|(begun, took)| begun.zip(took));
        if WaitsFor::in_function(&waiting.function) == WaitsFor::All {
            let met = |times: Option<(u64, u64)>| {
                times.map(|(begun, took)| Met { begun, ended: latest_end(begun, took) })
            };
            let calls = times.map(|times| met(times).unwrap_or_default()).collect();
            let by_clock = BTreeMap::from([(clock.clone(), calls)]);
            return Starts { level, by_clock, of_ranks: Vec::new() };
        }
        let start = |times: Option<(u64, u64)>| {
            times.map(|(begun, took)| RankStart { begun, took }).unwrap_or_default()
        };
        let of_rank = RankStarts {
            rank,
            place: *place,
            clock: clock.clone(),
            level,
            calls: times.map(start).collect(),
            starts_level: starts.level,
            roots: starts.roots.clone(),
        };
        Starts { of_ranks: vec![of_rank], ..Starts::default() }
    }

    /// The calls that all of its ranks have timed, with how long these waited, as `waits_for` says for whom.
    pub(super) fn compared(mut self, waits_for: WaitsFor, clocks: &Clocks) -> StartsCompared {
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
        let timed = Timed { level, ..Timed::default() };
        let mut compared = StartsCompared { timed, ..StartsCompared::default() };
        if ranks.is_empty() {
            return compared;
        }
        for at in 0..length {
            let begun = |(of, clock): &(&mut RankStarts, ClockOffset)| {
                let RankStart { begun, took } = *of.calls.get(at).filter(|of| of.begun > 0)?;
                let begun_ns = i128::from(begun) + clock.offset_ns;
                let (rank, place, clock) = (of.rank, of.place, *clock);
                Some(Began { rank, place, clock, begun_ns, took_ns: took })
            };
            let call: Option<Vec<Began>> = ranks.iter().map(begun).collect();
            let root = roots.get(at).copied();
            let found = call.and_then(|call| waited(waits_for, root, &call));
            let CallCompared { found, error_ns, waited_ns } = found.unwrap_or_default();
            compared.timed.calls.push(found);
            compared.clock_error_ns = compared.clock_error_ns.saturating_add(error_ns);
            for (rank, ns) in waited_ns {
                compared.waited_ns.entry(rank).or_default().absorb(&ns);
            }
        }
        compared
    }
}

/// One rank in a call, on the clock of all.
struct Began {
    rank: u32,
    place: u32,
    clock: ClockOffset,
    begun_ns: i128,
    took_ns: u64,
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
    /// How long this rank waits for another one, at most as long as its call takes; and how far that may be wrong.
    fn waits_for(&self, other: &Began) -> (u64, u64) {
        let later = u64::try_from(other.begun_ns - self.begun_ns).unwrap_or(0);
        let [own, others] = [self.clock, other.clock];
        let is_same = own.number == others.number;
        let error = if is_same { 0 } else { own.error_ns.saturating_add(others.error_ns) };
        (later.min(self.took_ns), error.min(self.took_ns))
    }
}

/// How long ranks waited in a call, and for whom most.
#[derive(Default)]
struct CallCompared {
    found: ComparedCall,
    /// How far that may be wrong.
    error_ns: u64,
    /// Each rank that waited, and how long.
    waited_ns: Vec<(u32, u64)>,
}

/// `call`: in the order of the communicator, in which `root` is its root. None without that where there has to be one.
fn waited(waits_for: WaitsFor, root: Option<u32>, call: &[Began]) -> Option<CallCompared> {
    let (mut waiting_ns, mut error_ns): (u64, u64) = (0, 0);
    let mut waited_ns = Vec::new();
    // The longest waiting for one rank, and that rank.
    let mut most: Option<(u64, u32)> = None;
    let mut wait = |of: &Began, other: &Began| {
        let (ns, error) = of.waits_for(other);
        waiting_ns = waiting_ns.saturating_add(ns);
        error_ns = error_ns.saturating_add(error);
        waited_ns.push((of.rank, ns));
        if most.is_none_or(|(longest, _)| ns > longest) {
            most = Some((ns, other.rank));
        }
    };
    match waits_for {
        WaitsFor::Root | WaitsFor::AtRoot => {
            let place = root?;
            let root = call.iter().find(|of| of.place == place)?;
            let others = || call.iter().filter(|of| of.place != place);
            if waits_for == WaitsFor::Root {
                others().for_each(|of| wait(of, root));
            } else {
                wait(root, latest(others())?);
            }
        }
        WaitsFor::Lower | WaitsFor::All => {
            let (first, others) = call.split_first()?;
            let mut before = first;
            for of in others {
                wait(of, before);
                before = latest([before, of].into_iter())?;
            }
        }
    }
    let ranks = u32::try_from(call.len()).ok()?;
    let sum_ns = call.iter().fold(0, |sum: u64, of| sum.saturating_add(of.took_ns));
    // So that what the ranks took longer is what they waited.
    let min_ns = sum_ns.saturating_sub(waiting_ns) / u64::from(ranks).max(1);
    let found = ComparedCall { ranks, sum_ns, min_ns, last: most?.1 };
    Some(CallCompared { found, error_ns, waited_ns })
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
        /// By call, the function, the root, and by rank when it begins and ends, in ns.
        calls: Vec<(WaitsFor, u32, BeginsAndEnds)>,
    }

    type BeginsAndEnds = Vec<(u64, u64)>;

    fn name(waits_for: WaitsFor) -> &'static str {
        match waits_for {
            WaitsFor::All => "MPI_Barrier",
            WaitsFor::Root => "MPI_Bcast",
            WaitsFor::AtRoot => "MPI_Reduce",
            WaitsFor::Lower => "MPI_Scan",
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
                let roots = match waits_for {
                    WaitsFor::All | WaitsFor::Lower => Vec::new(),
                    _ => calls().map(|(_, root, _)| (1, *root)).collect(),
                };
                let begun = times().map(|(begun, _)| Some(zero + begun));
                let starts = CallStarts {
                    rank: u32::try_from(rank).unwrap(),
                    clock: format!("{clock}"),
                    level: 0,
                    roots,
                    begun: CallStarts::written(begun),
                };
                let durations = times().map(|(begun, ended)| Some(ended - begun));
                Waiting {
                    function: name(waits_for).into(),
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
            let StartsCompared { timed, clock_error_ns, waited_ns } =
                functions.remove(name(of)).unwrap().compared(of, &clocks);
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
                for (rank, (begun, ended)) in times.iter().enumerate() {
                    let others: Vec<usize> = match of {
                        WaitsFor::Root => vec![root],
                        WaitsFor::AtRoot if rank == root => (0..times.len()).collect(),
                        WaitsFor::Lower => (0..rank).collect(),
                        _ => Vec::new(),
                    };
                    let until = others.iter().map(|other| times[*other].0).max().unwrap_or(0);
                    ns += until.clamp(*begun, *ended) - begun;
                }
            }
            ns as f64 * 1e-9
        }
    }

    /// Four ranks on as many clocks as given, which make calls of all kinds, some of them late.
    fn simulated(clocks: &[(usize, u64)], random: &mut fastrand::Rng) -> Simulated {
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
            let ended = |rank: usize| {
                let needs = match of {
                    WaitsFor::All => all,
                    WaitsFor::Root => begun[root],
                    WaitsFor::AtRoot if rank == root => all,
                    WaitsFor::AtRoot => 0,
                    WaitsFor::Lower => *begun[..=rank].iter().max().unwrap(),
                };
                needs.max(begun[rank])
            };
            let ended: Vec<u64> =
                (0..clocks.len()).map(|rank| ended(rank) + 3_000 + random.u64(0..4_000)).collect();
            let root = u32::try_from(root).unwrap();
            calls.push((of, root, begun.into_iter().zip(ended.iter().copied()).collect()));
            now = ended;
        }
        Simulated { clocks: clocks.to_vec(), calls }
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
                let program = simulated(&clocks, &mut random);
                for of in [WaitsFor::Root, WaitsFor::AtRoot, WaitsFor::Lower] {
                    let (waiting_s, error_s, last) = program.found(of, &[0, 1, 2, 3]);
                    assert_eq!(program.found(of, &[2, 3, 1, 0]), (waiting_s, error_s, last));
                    let truth_s = program.truth(of);
                    assert!(truth_s > 1e-3);
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
        let mut program = simulated(&clocks, &mut random);
        program.calls.retain(|(of, ..)| *of != WaitsFor::All);
        assert!(program.found(WaitsFor::Root, &[0, 1, 2, 3]).2.iter().all(|last| *last == 0));
        assert!(program.found(WaitsFor::Root, &[0, 1, 2, 3]).0 < 1e-12);
    }
}
