//! One phase over ranks.

use serde::{Deserialize, Serialize};

use super::absence::{Absence, Row, Rows};
use super::calls::CallReduction;
use super::pvars::Pvars;
use super::wire::Numbers;
use crate::readings::{self, Reading};
use crate::{Measure, Number, Phase, PhasePvar, PhaseSummary, Pvar, Statistics};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct PhaseReduction {
    /// Where it first came: the place in the list of a rank, and that rank. The smallest of all
    /// ranks orders the phases.
    #[serde(skip)]
    place: (usize, u32),
    #[serde(skip)]
    entries: Statistics,
    #[serde(skip)]
    time_s: Statistics,
    #[serde(skip)]
    stretches: u64,
    #[serde(skip)]
    stretches_read: u64,
    calls: Rows<CallReduction>,
    pvars: Pvars,
    #[serde(skip)]
    absence: Absence,
}

impl PhaseReduction {
    /// The phases of `rank`, which read `pvars`.
    pub(super) fn of_rank(
        rows: &mut Rows<PhaseReduction>,
        phases: &[Phase],
        pvars: &[Pvar],
        rank: u32,
    ) {
        let compare = |name: &String, (_, phase): &(usize, &Phase)| name.cmp(&phase.name);
        let key = |(_, phase): &(usize, &Phase)| phase.name.clone();
        rows.set(rank, phases.iter().enumerate(), compare, key, |row, (place, phase)| {
            row.set(place, phase, pvars, rank);
        });
    }

    fn set(&mut self, place: usize, phase: &Phase, pvars: &[Pvar], rank: u32) {
        self.place = (place, rank);
        self.entries = Statistics::of(Number::Integer(phase.entries.into()), rank);
        self.time_s = Statistics::of(Number::Double(phase.time_s), rank);
        self.stretches = phase.stretches;
        self.stretches_read = phase.stretches_read;
        CallReduction::of_rank(&mut self.calls, &phase.calls, rank);
        set_pvars(&mut self.pvars, phase, pvars, rank);
        self.absence = Absence::default();
    }

    /// In the order in which the phases first came.
    pub(super) fn finish(rows: Rows<PhaseReduction>, reduced: u64) -> Vec<PhaseSummary> {
        let mut phases: Vec<(String, PhaseReduction)> = rows.finish().collect();
        phases.sort_by_key(|(_, phase)| phase.place);
        phases.into_iter().filter_map(|(name, phase)| phase.summary(name, reduced)).collect()
    }

    fn summary(self, name: String, reduced: u64) -> Option<PhaseSummary> {
        let absent = reduced.saturating_sub(self.entries.ranks());
        let calls = self.calls.finish();
        let (mut pvars, samples) = self.pvars.finish();
        pvars.retain(|row| row.measure != Measure::Delta || !row.statistic.is_zero());
        Some(PhaseSummary {
            name,
            entries: self.absence.finish(self.entries, absent)?,
            time_s: self.absence.finish(self.time_s, absent)?,
            calls: calls.filter_map(|(name, call)| call.finish(name, reduced)).collect(),
            stretches: self.stretches,
            stretches_read: self.stretches_read,
            pvars,
            samples,
        })
    }
}

impl Row for PhaseReduction {
    fn merge(&mut self, other: &PhaseReduction) {
        self.place = self.place.min(other.place);
        self.entries.merge(&other.entries);
        self.time_s.merge(&other.time_s);
        self.stretches = self.stretches.saturating_add(other.stretches);
        self.stretches_read = self.stretches_read.saturating_add(other.stretches_read);
        self.calls.merge(&other.calls);
        self.pvars.merge(&other.pvars);
        self.absence.merge(other.absence);
    }

    fn absent_on(&mut self, lowest: u32) {
        self.absence.on(lowest);
        self.calls.absent_on(lowest);
    }

    fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.smallest(&mut self.place);
        numbers.statistics(&mut self.entries);
        numbers.statistics(&mut self.time_s);
        numbers.count(&mut self.stretches);
        numbers.count(&mut self.stretches_read);
        self.calls.numbers(numbers);
        self.pvars.numbers(numbers);
        self.absence.numbers(numbers);
    }
}

/// A phase names the variables that changed in it: the others grew by 0, where they were read.
fn set_pvars(reduction: &mut Pvars, phase: &Phase, pvars: &[Pvar], rank: u32) {
    reduction.clear();
    let mut next = 0;
    for pvar in pvars {
        let here = named_as(pvar, &phase.pvars, &mut next);
        let samples = here.and_then(|here| here.samples.as_ref());
        let mut take = |reading| reduction.add(pvar, reading, rank);
        match (here.and_then(|here| here.delta.as_ref()), &pvar.delta) {
            (Some(delta), _) => readings::of_values(Measure::Delta, delta, &mut take),
            (None, Some(delta)) if phase.stretches_read > 0 => {
                readings::of_values(Measure::Delta, delta, &mut |reading| take(zero(reading)));
            }
            (None, _) => {}
        }
        if let Some(samples) = samples {
            readings::of_samples(pvar.effective_class(), samples, &mut take);
        }
        reduction.add_samples(pvar, samples, rank);
    }
}

/// The variable as it was in a phase. They are in the same order in both, as a rule: `next` is where
/// the search begins.
fn named_as<'a>(pvar: &Pvar, in_phase: &'a [PhasePvar], next: &mut usize) -> Option<&'a PhasePvar> {
    let is_it = |here: &&PhasePvar| here.identity() == pvar.identity();
    if let Some(here) = in_phase.get(*next).filter(is_it) {
        *next += 1;
        return Some(here);
    }
    // Of those that are there twice the last counts.
    in_phase.iter().rev().find(is_it)
}

fn zero((measure, element, number): Reading) -> Reading {
    let zero = match number {
        Number::Integer(_) => Number::Integer(0),
        Number::Double(_) => Number::Double(0.0),
    };
    (measure, element, zero)
}
