//! The path is followed back once, with assumptions of calls that were not timed.

use std::collections::BTreeMap;

use super::source::PathSource;
use super::{CALLS_AT_MOST, LeadsTo, PathCall, PathCalls, PathWait};

/// How many periods are tried.
const PERIODS: usize = 6;

/// What is assumed on a walk of the calls that were not timed. Each walk has a combination of its own.
#[derive(Clone, Copy)]
pub(super) struct Assumptions {
    pub(super) seed: u64,
    /// A rank that does not wait in sampled calls may have waited in between, if it has little time to spare.
    pub(super) hides_waits: bool,
    /// A step in which ranks wait longer is longer.
    pub(super) is_longer: bool,
    /// All calls between two sampled ones are alike.
    pub(super) is_alike: bool,
    /// Only calls whose numbers are apart by a multiple of this are alike.
    pub(super) period: u64,
}

impl Assumptions {
    pub(super) fn of_walk(seed: u64) -> Assumptions {
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

/// What a walk found, in ns.
#[derive(Default)]
pub(super) struct PathWalk {
    pub(super) ns: BTreeMap<u32, f64>,
    pub(super) calls: BTreeMap<(u32, LeadsTo), f64>,
}

impl PathCalls {
    /// Follows the path back from a rank at a time.
    pub(super) fn walk(
        &self,
        assumed: Assumptions,
        mut rank: u32,
        from: i128,
        to: i128,
    ) -> PathWalk {
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
}

impl PathSource {
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

/// A number from 0 to below 1 that looks random.
fn part(seed: u64, call: usize, step: usize) -> f64 {
    (bits(seed, call, step) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Bits that look random (splitmix64).
pub(super) fn bits(seed: u64, call: usize, step: usize) -> u64 {
    let mix = |bits: u64| {
        let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    mix(mix(mix(seed) ^ call as u64) ^ step as u64)
}
