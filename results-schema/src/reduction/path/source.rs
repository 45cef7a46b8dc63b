//! The sampled calls of one class: where they are among all calls of it, and when those between them began.

use std::collections::BTreeMap;

use super::PathCall;
use crate::Waiting;

/// Of the calls between sampled ones, at most so many are followed on a walk.
const STEPS_AT_MOST: usize = 1 << 14;
/// From so many sampled calls on each side those are drawn that stand for others.
const NEAR: usize = 4;
/// From so many sampled calls before the last one follows when a rank may have ended.
const END_NEAR: usize = 32;

/// The calls of one class, on one rank or on several alike.
#[derive(Debug)]
pub(super) struct PathSource {
    pub(super) calls: Vec<PathCall>,
    /// One call in `2^level` is among them.
    pub(super) level: u32,
    /// How many there were, sampled or not.
    pub(super) total: u64,
    /// By call with a wait, where that is among the calls of the late rank.
    pub(super) met: BTreeMap<usize, Counterpart>,
}

/// Where a wait of one rank is among the calls of the late rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counterpart {
    pub(super) source: usize,
    /// How many numbers later the call of the late rank is.
    pub(super) shift: isize,
    /// How long before the beginning of that call it came.
    pub(super) before_ns: i128,
}

/// The last sampled call of a rank.
pub(super) struct RankEnd {
    pub(super) rank: u32,
    pub(super) ended: i128,
    /// Whether others waited for the rank in it.
    pub(super) was_late: bool,
    /// When the last call of the rank, sampled or not, ended, and how long after that the rank may have ended.
    pub(super) about_ns: f64,
    pub(super) off_ns: f64,
}

impl PathSource {
    /// Whether there were others than the calls that were sampled.
    pub(super) fn is_sampled(&self) -> bool {
        self.level > 0
    }

    pub(super) fn end_of(&self, rank: u32) -> Option<RankEnd> {
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

    pub(super) fn thin_to(&mut self, level: u32) {
        if level > self.level {
            self.level = level;
            let is_kept = |number: u64| {
                number == Waiting::timed_call(level, number.checked_shr(level).unwrap_or(0))
            };
            self.calls.retain(|call| is_kept(call.number));
        }
    }

    /// How many calls there are from a sampled one to the next one.
    pub(super) fn number_from(&self, call: usize) -> usize {
        let both = self.number(call + 1).zip(self.number(call)).filter(|_| self.is_sampled());
        both.map_or(1, |(next, own)| next.saturating_sub(own)).max(1)
    }

    pub(super) fn number(&self, call: usize) -> Option<usize> {
        usize::try_from(self.calls.get(call)?.number).ok()
    }

    /// By how many steps these are followed.
    pub(super) fn steps(&self, call: usize) -> usize {
        self.number_from(call).min((STEPS_AT_MOST / self.calls.len().max(1)).max(2))
    }

    pub(super) fn begun(&self, call: usize, step: usize) -> Option<i128> {
        let begun = self.calls.get(call)?.begun;
        if step == 0 {
            return Some(begun);
        }
        let gap_ns = self.calls.get(call + 1)?.begun - begun;
        Some(begun + gap_ns * step as i128 / self.steps(call) as i128)
    }

    pub(super) fn near(&self, call: usize) -> std::ops::Range<usize> {
        (call + 1).saturating_sub(NEAR)..(call + 1 + NEAR).min(self.calls.len())
    }

    /// The sampled calls near one whose numbers are at the same place of a period as that of a step.
    pub(super) fn near_in(&self, call: usize, step: usize, period: u64) -> Vec<usize> {
        let near = NEAR * usize::try_from(period).unwrap_or(1);
        let near = (call + 1).saturating_sub(near)..(call + 1 + near).min(self.calls.len());
        let Some(number) = self.number(call) else { return Vec::new() };
        let skipped = step as u64 * self.number_from(call) as u64 / self.steps(call) as u64;
        let place = (number as u64 + skipped) % period;
        let is_there = |at: &usize| self.number(*at).is_some_and(|of| of as u64 % period == place);
        near.filter(is_there).collect()
    }
}
