//! Which ranks is the critical path on? From when sampled calls of messages and collectives ended, and for whom their ranks waited
//! in them: backwards in time from the call that ended last, as far as the latest wait, and from there along the rank that was
//! waited for.
//!
//! Between two sampled calls of a rank there may be some that were not timed. They are taken to have been evenly apart, and each
//! like one of the sampled calls near them, drawn at random. The path is followed several times, each time with other draws, with
//! other weights of the sampled calls (a bootstrap), and with other assumptions ([`Assumptions`]): how much the results differ is
//! the standard error.

use std::collections::BTreeMap;

use super::pairs::CalledAt;
use super::places::{Place, load_map};
use crate::{CodeAddress, CriticalPath, MessagePlace, PathOfRank, Waiting, sort_by};

/// How often the path is followed where not every call was timed.
const WALKS: u64 = 48;
/// With more sampled calls, nothing is said.
const CALLS_AT_MOST: usize = 1 << 21;
/// Of the calls between sampled ones, at most so many are followed on a walk.
const STEPS_AT_MOST: usize = 1 << 14;
/// From so many sampled calls on each side those are drawn that stand for others.
const NEAR: usize = 4;
const RANKS_AT_MOST: usize = 16;
/// From so many sampled calls before the last one follows when a rank may have ended.
const END_NEAR: usize = 32;
/// How many periods are tried.
const PERIODS: usize = 6;
/// Longest period that is looked for.
const PERIOD_AT_MOST: u64 = 16;
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

/// All calls that were sampled.
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

/// The calls of one class, on one rank or on several alike.
#[derive(Debug)]
struct PathSource {
    calls: Vec<PathCall>,
    /// One call in `2^level` is among them.
    level: u32,
    /// How many there were, sampled or not.
    total: u64,
    /// By call with a wait, where that is among the calls of the late rank.
    met: BTreeMap<usize, Counterpart>,
}

/// Where a wait of one rank is among the calls of the late rank.
#[derive(Clone, Copy, Debug)]
struct Counterpart {
    source: usize,
    /// How many numbers later the call of the late rank is.
    shift: isize,
    /// How long before the beginning of that call it came.
    before_ns: i128,
}

/// What is assumed on a walk of the calls that were not timed. Each walk has a combination of its own.
#[derive(Clone, Copy)]
struct Assumptions {
    seed: u64,
    /// A rank that does not wait in sampled calls may have waited in between, if it has little time to spare.
    hides_waits: bool,
    /// A step in which ranks wait longer is longer.
    is_longer: bool,
    /// All calls between two sampled ones are alike.
    is_alike: bool,
    /// Only calls whose numbers are apart by a multiple of this are alike.
    period: u64,
}

impl Assumptions {
    fn of_walk(seed: u64) -> Assumptions {
        let [hides_waits, is_longer, is_alike] = [0, 1, 2].map(|bit| seed >> bit & 1 == 1);
        let period = [1, 2, 1, 3, 1, 4][usize::try_from(seed >> 3).unwrap_or(0) % PERIODS];
        Assumptions { seed, hides_waits, is_longer, is_alike, period }
    }
}

/// What a walk comes to: a sampled call, or a step after it, which stands for a call that was not timed.
#[derive(Clone, Copy)]
struct Reached {
    begun: i128,
    source: usize,
    at: usize,
    step: usize,
    /// How long the steps there are.
    step_ns: i128,
    /// Whether when it began is only known to a step.
    is_moved: bool,
}

impl Reached {
    /// What was followed before has calls of another number: how long before that this one began is not known, but less than a step.
    /// It is the same on all of a walk.
    fn moved(&mut self, totals: [u64; 2], before: i128, assumed: Assumptions) {
        let [own, other] = totals;
        if own == other || self.step == 0 {
            return;
        }
        let pair = usize::try_from(own.wrapping_mul(31).wrapping_add(other)).unwrap_or(0);
        let of_1024 = i128::from(bits(assumed.seed, pair, usize::MAX) % 1024);
        self.begun = before - 1 - self.step_ns * of_1024 / 1024;
        self.is_moved = true;
    }
}

/// The last sampled call of a rank.
struct RankEnd {
    rank: u32,
    ended: i128,
    /// Whether others waited for the rank in it.
    was_late: bool,
    /// When the last call of the rank, sampled or not, ended, and how long after that the rank may have ended.
    about_ns: f64,
    off_ns: f64,
}

/// What a walk found, in ns.
#[derive(Default)]
struct PathWalk {
    ns: BTreeMap<u32, f64>,
    calls: BTreeMap<(u32, LeadsTo), f64>,
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

    /// Where ranks made as many calls of several classes, they probably made one of each in every round of a loop. Those are sampled in
    /// the same rounds, which tells which call of a round comes first.
    fn align(&mut self) {
        let mut levels: BTreeMap<u64, u32> = BTreeMap::new();
        for source in &self.sources {
            let level = levels.entry(source.total).or_default();
            *level = (*level).max(source.level);
        }
        for source in &mut self.sources {
            source.thin_to(levels.get(&source.total).copied().unwrap_or(0));
        }
        self.period = self.found_period();
    }

    /// Where whom ranks wait for follows from the number of the call, modulo a period, but not without it.
    fn found_period(&self) -> Option<u64> {
        // In which part of the calls a rank waits for whom it waits most often in calls of this period.
        let agreement = |period: u64| {
            let (mut agree, mut all) = (0, 0);
            for source in self.sources.iter().filter(|source| source.is_sampled()) {
                let mut times: BTreeMap<(u64, Option<u32>), usize> = BTreeMap::new();
                for call in &source.calls {
                    let late_rank = call.wait().map(|wait| wait.late_rank);
                    *times.entry((call.number % period, late_rank)).or_default() += 1;
                }
                let mut most: BTreeMap<u64, usize> = BTreeMap::new();
                for ((place, _), times) in times {
                    let most = most.entry(place).or_default();
                    *most = times.max(*most);
                }
                agree += most.values().sum::<usize>();
                all += source.calls.len();
            }
            agree as f64 / (all as f64).max(1.0)
        };
        let without = agreement(1);
        (2..=PERIOD_AT_MOST).find(|period| {
            let with = agreement(*period);
            with > 0.9 && 1.0 - with < 0.3 * (1.0 - without)
        })
    }

    /// Finds each wait among the calls of the rank that was late.
    fn meet(&mut self) {
        let mut late: Vec<(usize, usize, u64)> = Vec::new();
        let mut met: Vec<(usize, usize, Counterpart)> = Vec::new();
        for (at, source) in self.sources.iter().enumerate() {
            for (number, call) in source.calls.iter().enumerate() {
                let Some(wait) = call.last else { continue };
                let Some((other, there, begun)) = self.next(wait, source.level) else { continue };
                late.push((other, there, call.waited_ns));
                let shift = there.cast_signed() - number.cast_signed();
                met.push((
                    at,
                    number,
                    Counterpart { source: other, shift, before_ns: begun - wait.came },
                ));
            }
        }
        for (source, call, late_ns) in late {
            let call = self.sources.get_mut(source).and_then(|source| source.calls.get_mut(call));
            if let Some(call) = call {
                call.late_ns = call.late_ns.max(late_ns);
            }
        }
        for (source, call, met) in met {
            if let Some(source) = self.sources.get_mut(source) {
                source.met.insert(call, met);
            }
        }
    }

    /// The next call of a rank that was late, of those sampled as rarely: the source, the number there, and when it began.
    fn next(&self, wait: PathWait, level: u32) -> Option<(usize, usize, i128)> {
        let sources = self.of_ranks.get(&wait.late_rank)?.values();
        let next = sources.filter_map(|at| {
            let source = self.sources.get(*at).filter(|source| source.level == level)?;
            let number = source.calls.partition_point(|call| call.begun < wait.came);
            Some((*at, number, source.calls.get(number)?.begun))
        });
        next.min_by_key(|(.., begun)| *begun)
    }

    /// Follows the path back from a rank at a time.
    fn walk(&self, assumed: Assumptions, mut rank: u32, from: i128, to: i128) -> PathWalk {
        let mut walk = PathWalk::default();
        let (mut until, mut before, mut leads_to, mut total) = (to, to + 1, None, None);
        for _ in 0..CALLS_AT_MOST {
            let Some(mut reached) = self.reached(rank, before) else { break };
            let Some(source) = self.sources.get(reached.source) else { break };
            if let Some(other) = total.replace(source.total) {
                reached.moved([source.total, other], before, assumed);
            }
            let drawn = source.drawn(reached, assumed);
            let Some(call) = source.calls.get(drawn) else { break };
            let is_hidden = source.hides_wait(reached, assumed);
            let wait = if is_hidden { call.last } else { call.wait() };
            let came = wait.map(|wait| (wait, self.came(source, reached, (drawn, call, wait))));
            // It cannot have come later than what the rank did after this call.
            let came = came.filter(|(wait, came)| wait.late_rank != rank && *came < before);
            // How long a call took may be rounded by more than when calls began.
            let ended = reached.begun + call.ended - call.begun;
            let ended = ended.max(came.map_or(ended, |(_, came)| came)).min(until);
            walk.was_on(rank, leads_to, until - ended);
            if let Some((wait, came)) = came {
                walk.was_on(rank, Some(call.leads_to), ended - came);
                (rank, until, before, leads_to) = (wait.late_rank, came, came, Some(wait.leads_to));
            } else {
                (until, before, leads_to) = (ended, reached.begun, Some(call.leads_to));
            }
            if assumed.is_longer {
                *walk.ns.entry(rank).or_default() += source.longer_ns(reached.at, call);
            }
        }
        walk.was_on(rank, leads_to, until - from);
        walk
    }

    /// The latest call of a rank that began before a time.
    fn reached(&self, rank: u32, before: i128) -> Option<Reached> {
        let sources = self.of_ranks.get(&rank)?.values();
        let reached = sources.filter_map(|at| {
            let source = self.sources.get(*at)?;
            let next = source.calls.partition_point(|call| call.begun < before);
            let call = next.checked_sub(1)?;
            let (steps, begun) = (source.steps(call), source.calls.get(call)?.begun);
            let gap_ns = source.calls.get(next).map_or(0, |next| next.begun - begun);
            let since = ((before - 1 - begun) * steps as i128).checked_div(gap_ns).unwrap_or(0);
            let step = usize::try_from(since).unwrap_or(0).min(steps - 1);
            let step_ns = gap_ns / steps as i128;
            let begun = source.begun(call, step)?;
            let is_moved = false;
            Some(Reached { begun, source: *at, at: call, step, step_ns, is_moved })
        });
        reached.max_by_key(|reached| reached.begun)
    }

    /// When the late rank came: as long before its own call began as where the wait was drawn from.
    fn came(
        &self,
        source: &PathSource,
        reached: Reached,
        (drawn, call, wait): (usize, &PathCall, PathWait),
    ) -> i128 {
        if reached.step == 0 {
            return wait.came;
        }
        let there = source.met.get(&drawn).filter(|_| !reached.is_moved).and_then(|met| {
            let at = reached.at.checked_add_signed(met.shift)?;
            let late = self.sources.get(met.source)?;
            Some(late.begun(at, reached.step)? - met.before_ns)
        });
        there.unwrap_or(reached.begun + (wait.came - call.begun))
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

impl PathSource {
    /// Whether there were others than the calls that were sampled.
    fn is_sampled(&self) -> bool {
        self.level > 0
    }

    fn end_of(&self, rank: u32) -> Option<RankEnd> {
        let last = self.calls.last()?;
        let near = self.calls.get(self.calls.len().saturating_sub(END_NEAR + 1)..)?;
        let apart = |from: &PathCall, to: &PathCall| {
            (to.number.saturating_sub(from.number) as f64, (to.begun - from.begun) as f64)
        };
        let (number, ns) = apart(near.first()?, last);
        let each_ns = ns / number.max(1.0);
        let squares = near.iter().zip(near.iter().skip(1)).map(|(call, next)| {
            let (number, ns) = apart(call, next);
            (ns - number * each_ns) * (ns - number * each_ns)
        });
        let variance = squares.sum::<f64>() / number.max(1.0);
        let left = if self.is_sampled() { self.total.saturating_sub(last.number + 1) } else { 0 };
        let left = left as f64;
        Some(RankEnd {
            rank,
            ended: last.ended,
            was_late: last.wait().is_some_and(|wait| wait.late_rank == rank),
            about_ns: last.ended as f64 + each_ns * left,
            off_ns: 0.5 * each_ns + 2.0 * (variance * left).sqrt(),
        })
    }

    fn thin_to(&mut self, level: u32) {
        if level > self.level {
            self.level = level;
            let is_kept = |number: u64| {
                number == Waiting::timed_call(level, number.checked_shr(level).unwrap_or(0))
            };
            self.calls.retain(|call| is_kept(call.number));
        }
    }

    /// How many calls there are from a sampled one to the next one.
    fn number_from(&self, call: usize) -> usize {
        let both = self.number(call + 1).zip(self.number(call)).filter(|_| self.is_sampled());
        both.map_or(1, |(next, own)| next.saturating_sub(own)).max(1)
    }

    /// The number of a sampled call among all.
    fn number(&self, call: usize) -> Option<usize> {
        usize::try_from(self.calls.get(call)?.number).ok()
    }

    /// By how many steps these are followed.
    fn steps(&self, call: usize) -> usize {
        self.number_from(call).min((STEPS_AT_MOST / self.calls.len().max(1)).max(2))
    }

    /// When a step after a call began.
    fn begun(&self, call: usize, step: usize) -> Option<i128> {
        let begun = self.calls.get(call)?.begun;
        if step == 0 {
            return Some(begun);
        }
        let gap_ns = self.calls.get(call + 1)?.begun - begun;
        Some(begun + gap_ns * step as i128 / self.steps(call) as i128)
    }

    /// The sampled calls near a call.
    fn near(&self, call: usize) -> std::ops::Range<usize> {
        (call + 1).saturating_sub(NEAR)..(call + 1 + NEAR).min(self.calls.len())
    }

    /// The sampled calls near one whose numbers are at the same place of a period as that of a step.
    fn near_in(&self, call: usize, step: usize, period: u64) -> Vec<usize> {
        let near = NEAR * usize::try_from(period).unwrap_or(1);
        let near = (call + 1).saturating_sub(near)..(call + 1 + near).min(self.calls.len());
        let Some(number) = self.number(call) else { return Vec::new() };
        let skipped = step as u64 * self.number_from(call) as u64 / self.steps(call) as u64;
        let place = (number as u64 + skipped) % period;
        let is_there = |at: &usize| self.number(*at).is_some_and(|of| of as u64 % period == place);
        near.filter(is_there).collect()
    }

    /// The number of the call that stands for what was reached. Calls that are sampled alike are drawn alike.
    fn drawn(&self, reached: Reached, assumed: Assumptions) -> usize {
        let Assumptions { seed, is_alike, period, .. } = assumed;
        let Reached { at, step, .. } = reached;
        if step == 0 {
            return at;
        }
        let number = |call: usize| self.number(call).unwrap_or(call);
        let weight = |call: usize| -libm::log(1.0 - part(seed, number(call), 0));
        let near = self.near_in(at, step, period);
        let all: f64 = near.iter().copied().map(weight).sum();
        let place = usize::try_from(period).map_or(0, |period| step % period.max(1));
        let mut left = all * part(seed, number(at), if is_alike { 1 + place } else { step });
        let drawn = near.iter().find(|call| {
            left -= weight(**call);
            left < 0.0
        });
        drawn.copied().unwrap_or(at)
    }

    /// Whether what was reached stands for a call in which the rank waits although it does not in the sampled calls on both sides:
    /// as likely as a random walk from the time to spare in the one to that in the other one comes to 0 on its way. Once in between.
    fn hides_wait(&self, reached: Reached, assumed: Assumptions) -> bool {
        let Assumptions { seed, hides_waits, .. } = assumed;
        let Reached { at, step, .. } = reached;
        let steps = self.steps(at);
        // Between which two steps it is.
        let hidden_at = part(seed, at, steps) * (steps - 1) as f64;
        let is_there = (0.0..1.0).contains(&(hidden_at - (step as f64 - 1.0)));
        if !hides_waits || step == 0 || !is_there {
            return false;
        }
        let spare_ns = |at: usize| self.calls.get(at).and_then(PathCall::spare_ns);
        let Some((before, after)) = spare_ns(at).zip(spare_ns(at + 1)) else { return false };
        if before <= 0.0 || after <= 0.0 {
            return false;
        }
        let near = self.near(at);
        let changes = near.clone().filter_map(|at| Some(spare_ns(at + 1)? - spare_ns(at)?));
        let variance = changes.map(|ns| ns * ns).sum::<f64>() / near.len() as f64;
        part(seed, at, steps + 1) < libm::exp(-2.0 * before * after / variance.max(1.0))
    }

    /// By how much longer a step with such a call is than others near it, if its own rank takes as long in both; for all that it
    /// stands for.
    fn longer_ns(&self, at: usize, call: &PathCall) -> f64 {
        if !self.is_sampled() {
            return 0.0;
        }
        let near = self.calls.get(self.near(at)).unwrap_or_default();
        let mean_ns =
            near.iter().map(|call| call.late_ns as f64).sum::<f64>() / near.len().max(1) as f64;
        (call.late_ns as f64 - mean_ns) * self.number_from(at) as f64 / self.steps(at) as f64
    }
}

impl PathWalk {
    fn was_on(&mut self, rank: u32, leads_to: Option<LeadsTo>, ns: i128) {
        let ns = ns.max(0) as f64;
        *self.ns.entry(rank).or_default() += ns;
        if let Some(leads_to) = leads_to {
            *self.calls.entry((rank, leads_to)).or_default() += ns;
        }
    }
}

fn seconds(ns: i128) -> f64 {
    ns as f64 * 1e-9
}

/// A number from 0 to below 1 that looks random.
fn part(seed: u64, call: usize, step: usize) -> f64 {
    (bits(seed, call, step) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Bits that look random (splitmix64).
fn bits(seed: u64, call: usize, step: usize) -> u64 {
    let mix = |bits: u64| {
        let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    mix(mix(mix(seed) ^ call as u64) ^ step as u64)
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
