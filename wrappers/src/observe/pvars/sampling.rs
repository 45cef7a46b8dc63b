//! What is read while the program runs? Sampled variables at calls, and accumulating ones when a phase begins
//! or ends.

use super::by_phase::{Mark, Phase, Stretch, VariablePhases};
use super::series::{Key, Series, key};
use super::{Sampled, Sampler, is_passing};
use crate::calls::budget::{self, budget};
use crate::mpi::tool::{Api, PvarHandle, Session};
use crate::sys::clock;
use crate::sys::guard;

impl Sampler {
    /// Adds a variable. Those that are sampled come first, as a library may have a thousand others, and among them
    /// levels and watermarks.
    pub(super) fn push(&mut self, sampled: Sampled) {
        let mut at = self.sampled.len();
        let rank = sampled.rank();
        self.sampled.push(sampled);
        // Each rank gives the place of its first to the one before it.
        for end in self.ends.iter_mut().skip(rank).rev() {
            self.sampled.swap(at, *end);
            at = *end;
            *end += 1;
        }
        self.tell_budget();
    }

    /// Some variables were removed; the others are still in order.
    pub(super) fn count_sampled(&mut self) {
        let up_to = |rank| self.sampled.partition_point(|sampled| sampled.rank() <= rank);
        self.ends = [up_to(0), up_to(1)];
        self.tell_budget();
    }

    /// Tells the budget how many variables share it.
    fn tell_budget(&self) {
        let [levels, sampled] = self.ends;
        budget().set_variables(levels, sampled - levels);
    }

    /// Reads the sampled variables that are due at `now`. Returns when the next one is due.
    pub(crate) fn sample(&mut self, now: u64) -> u64 {
        let cost = self.read_cost();
        let over = |series: &Series| series.next <= now && budget().allows(now, series.last, cost);
        if self.series.as_ref().is_some_and(over) {
            self.read_all(now);
            return self.next_due();
        }
        let unlimited = budget().is_unlimited();
        // Otherwise the first variable would seem to cost what the guard does.
        guard::prepare();
        let mut before = clock::now();
        let [levels, sampled] = self.ends;
        for (at, sampled) in self.sampled.iter_mut().take(sampled).enumerate() {
            let Some(watch) = &mut sampled.watch else { continue };
            if watch.due > now {
                continue;
            }
            sampled.sample(&self.mpit.api, &self.session, self.elements, now);
            let Some(watch) = &mut sampled.watch else { continue };
            if !unlimited {
                let (after, is_level) = (clock::now(), at < levels);
                watch.cost(after.saturating_sub(before) as f64);
                before = after;
                if is_level {
                    budget().read_level(watch.cost);
                }
                watch.put_off(now, budget().between_readings(now, watch.cost, is_level));
            }
        }
        self.next_due()
    }

    /// Ticks needed to read every sampled variable.
    fn read_cost(&self) -> f64 {
        self.watches().map(|watch| watch.cost).sum()
    }

    fn watches(&self) -> impl Iterator<Item = &super::SampleState> {
        let [_, sampled] = self.ends;
        self.sampled.iter().take(sampled).filter_map(|sampled| sampled.watch.as_ref())
    }

    fn next_due(&self) -> u64 {
        let due = self.watches().map(|watch| watch.due).min();
        let series = self.series.as_ref().map(|series| series.next);
        due.into_iter().chain(series).min().unwrap_or(u64::MAX)
    }

    /// Reads every sampled variable, and ends an interval of the series.
    pub(super) fn read_all(&mut self, now: u64) {
        let Some(series) = &mut self.series else { return };
        let mut before = now;
        let [_, sampled] = self.ends;
        for sampled in self.sampled.iter_mut().take(sampled) {
            sampled.sample(&self.mpit.api, &self.session, self.elements, now);
            let Some(watch) = &mut sampled.watch else { continue };
            let after = clock::now();
            watch.cost(after.saturating_sub(before) as f64);
            before = after;
        }
        let limit = self.elements;
        let cells = self.sampled.iter_mut().filter_map(|sampled| {
            let key = sampled.key();
            let (datatype, count) = (sampled.variable.datatype, sampled.handle.count);
            let watch = sampled.watch.as_mut()?;
            watch.settle(datatype, count, limit, now);
            Some((key, watch.take_cell()))
        });
        series.record(now, cells);
    }

    /// The program continues in another phase, which `counts` unless gyan is switched off in it. `must`:
    /// accumulating variables are read here at any cost. Returns whether they were read at both ends of the
    /// stretch that ended.
    pub(crate) fn change_phase(
        &mut self,
        now: u64,
        phase: Phase,
        counts: bool,
        must: bool,
    ) -> bool {
        let was_read = self.phases.stretch.read;
        // The other end of the stretch must be read as well.
        let read = must || budget().allows(now, self.phases.last, 2.0 * self.phases.cost);
        for sampled in &mut self.sampled {
            let (api, session) = (&self.mpit.api, &self.session);
            sampled.settle(&mut self.phases, read, |handle| handle.read(api, session).ok());
        }
        self.phases.stretch = Stretch { phase, counts, read };
        if read || was_read {
            self.phases.cost =
                budget::learned(self.phases.cost, clock::now().saturating_sub(now) as f64);
            self.phases.last = now;
        }
        was_read
    }

    /// Whether variables were read at the change of phase at `now`.
    pub(crate) fn read_phase_at(&self, now: u64) -> bool {
        self.phases.last == now
    }
}

impl Sampled {
    /// 0 for levels that are sampled, 1 for other variables that are, 2 for those that are not.
    fn rank(&self) -> usize {
        match &self.watch {
            Some(_) if is_passing(self.known.effective(self.variable.class)) => 0,
            Some(_) => 1,
            None => 2,
        }
    }

    pub(super) fn key(&self) -> Key {
        key(self.variable.index, self.object.as_ref())
    }

    /// Reads it if it is sampled.
    fn sample(&mut self, api: &Api, session: &Session, limit: usize, now: u64) {
        let Some(watch) = &mut self.watch else { return };
        match self.handle.read_into(api, session, &mut watch.words) {
            Ok(()) => watch.take(self.variable.datatype, self.handle.count, limit, now),
            Err(failure) => {
                if watch.failed() {
                    self.notes.push(format!("not sampled any more: {failure}"));
                }
            }
        }
    }

    /// Processes the sample.
    pub(super) fn settle_samples(&mut self, phases: &mut VariablePhases) {
        let key = self.key();
        if let Some(watch) = &mut self.watch {
            // The time since then is not known.
            let seen = watch.seen();
            watch.settle(self.variable.datatype, self.handle.count, phases.elements, seen);
            if let Some(samples) = watch.end_phase(phases.stretch.counts) {
                phases.add_samples(key, &samples);
            }
        }
    }

    /// A stretch ends: processes the readings in it and the growth. `next`: whether to read in the next one.
    pub(super) fn settle(
        &mut self,
        phases: &mut VariablePhases,
        next: bool,
        read: impl FnOnce(&PvarHandle) -> Option<Vec<u8>>,
    ) {
        let key = self.key();
        self.settle_samples(phases);
        let class = self.known.effective(self.variable.class);
        let before = std::mem::take(&mut self.mark);
        let was_read = phases.stretch.read && !matches!(before, Mark::Unknown);
        if !class.accumulates() || !self.known.may_be_read_in_between() || !(was_read || next) {
            return;
        }
        let Some(now) = read(&self.handle) else { return };
        let before = match &before {
            Mark::Start => self.start.as_ref(),
            Mark::At(bytes) => Some(bytes),
            Mark::Unknown => None,
        };
        if let (true, Some(before)) = (was_read, before) {
            let delta = self.variable.datatype.differences(before, &now);
            if !phases.stretch.counts {
                super::by_phase::add(&mut self.excluded, delta.clone());
            }
            phases.add_delta(key, delta);
        }
        if next {
            self.mark = Mark::At(now);
        }
    }
}
