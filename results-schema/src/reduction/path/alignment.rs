//! Which calls of several classes are of one round of a loop, and where among the calls of a rank others waited for it?

use std::collections::BTreeMap;

use super::source::Counterpart;
use super::{PathCalls, PathWait};

/// Longest period that is looked for.
const PERIOD_AT_MOST: u64 = 16;

impl PathCalls {
    /// Where ranks made as many calls of several classes, they probably made one of each in every round of a loop. Those are sampled in
    /// the same rounds, which tells which call of a round comes first.
    pub(super) fn align(&mut self) {
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
    pub(super) fn meet(&mut self) {
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
}
