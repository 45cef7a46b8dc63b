//! One phase over ranks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::absence::{Absence, Row, Rows};
use super::calls::CallReduction;
use super::pvars::Pvars;
use super::wire::Numbers;
use crate::readings::{self, Reading};
use crate::{Class, Measure, Number, Phase, PhasePvar, PhaseSummary, Pvar, Statistics};

#[derive(Debug, Deserialize, Serialize)]
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
    /// The phase at `place` in the list of `rank`, which read `pvars`.
    pub(super) fn of(
        place: usize,
        phase: Phase,
        pvars: &[Pvar],
        rank: u32,
    ) -> (String, PhaseReduction) {
        let reduction = PhaseReduction {
            place: (place, rank),
            entries: Statistics::of(Number::Integer(phase.entries.into()), rank),
            time_s: Statistics::of(Number::Double(phase.time_s), rank),
            stretches: phase.stretches,
            stretches_read: phase.stretches_read,
            pvars: pvars_of(&phase, pvars, rank),
            calls: Rows::of(
                rank,
                phase.calls.into_iter().map(|call| CallReduction::of(call, rank)),
            ),
            absence: Absence::default(),
        };
        (phase.name, reduction)
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
    fn merge(&mut self, other: PhaseReduction) {
        self.place = self.place.min(other.place);
        self.entries.merge(&other.entries);
        self.time_s.merge(&other.time_s);
        self.stretches = self.stretches.saturating_add(other.stretches);
        self.stretches_read = self.stretches_read.saturating_add(other.stretches_read);
        self.calls.merge(other.calls);
        self.pvars.merge(other.pvars);
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
fn pvars_of(phase: &Phase, pvars: &[Pvar], rank: u32) -> Pvars {
    let in_phase: BTreeMap<(&str, Class, Option<&str>), &PhasePvar> = phase
        .pvars
        .iter()
        .map(|pvar| ((pvar.name.as_str(), pvar.class, pvar.object.as_deref()), pvar))
        .collect();
    let mut reduction = Pvars::default();
    for pvar in pvars {
        let here = in_phase.get(&(pvar.name.as_str(), pvar.class, pvar.object.as_deref()));
        let samples = here.and_then(|here| here.samples.as_ref());
        let mut readings: Vec<Reading> = Vec::new();
        match (here.and_then(|here| here.delta.as_ref()), &pvar.delta) {
            (Some(delta), _) => readings.extend(readings::of_values(Measure::Delta, delta)),
            (None, Some(delta)) if phase.stretches_read > 0 => {
                readings.extend(zeros(readings::of_values(Measure::Delta, delta)));
            }
            (None, _) => {}
        }
        if let Some(samples) = samples {
            readings.extend(readings::of_samples(pvar.effective_class(), samples));
        }
        reduction.add(pvar, readings, samples, rank);
    }
    reduction
}

fn zeros(readings: Vec<Reading>) -> impl Iterator<Item = Reading> {
    readings.into_iter().map(|(measure, element, number)| {
        let zero = match number {
            Number::Integer(_) => Number::Integer(0),
            Number::Double(_) => Number::Double(0.0),
        };
        (measure, element, zero)
    })
}
