//! One phase over ranks.

use serde::{Deserialize, Serialize};

use super::absence::{Row, Rows};
use super::pvars::Pvars;
use super::{calls_finished, set_calls};
use crate::call::CallReduction;
use crate::data::derive;
use crate::merge::{Absent, Merge, MergeFields, Takes};
use crate::phase::PhaseReduction;
use crate::{Measure, Number, Phase, PhasePvar, PhaseSummary, Pvar, Reading, sort_by};

#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct PhaseRow {
    /// The smallest over all ranks orders the phases.
    place: PhaseOrder,
    numbers: PhaseReduction,
    calls: Rows<CallReduction>,
    pvars: Pvars,
}

/// Where a phase first occurred: its position in the list of a rank, and that rank.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
struct PhaseOrder(usize, u32);

impl Merge for PhaseOrder {
    fn absorb(&mut self, other: &PhaseOrder) {
        *self = (*self).min(*other);
    }
}

impl PhaseRow {
    /// The phases of `rank`, which read `pvars`. `start_s`: what the start of gyan took, outside all phases; none
    /// for a rank whose threads may be in MPI at the same time.
    #[inline]
    pub(super) fn of_rank(
        rows: &mut Rows<PhaseRow>,
        phases: &[Phase],
        pvars: &[Pvar],
        start_s: Option<f64>,
        rank: u32,
    ) {
        let compare = |name: &String, (_, phase): &(usize, &Phase)| name.cmp(&phase.name);
        let key = |(_, phase): &(usize, &Phase)| phase.name.clone();
        rows.set(rank, phases.iter().enumerate(), compare, key, |row, (place, phase)| {
            row.set(place, phase, pvars, start_s, rank);
        });
    }

    fn set(
        &mut self,
        place: usize,
        phase: &Phase,
        pvars: &[Pvar],
        start_s: Option<f64>,
        rank: u32,
    ) {
        self.place = PhaseOrder(place, rank);
        self.numbers.set(phase, rank);
        let in_mpi_s: f64 = phase.calls.iter().filter_map(|call| call.time_s).sum();
        self.numbers.in_mpi_s.set(&Some(in_mpi_s), rank);
        // A lower bound of the time in MPI says nothing of what is left.
        let is_known =
            phase.calls.iter().all(|call| call.time_s.is_none() || call.time_error_s.is_some());
        let useful_s = start_s.filter(|_| is_known).map(|start_s| {
            let start_s = if phase.name.is_empty() { start_s } else { 0.0 };
            (phase.time_s - in_mpi_s - start_s).max(0.0)
        });
        self.numbers.useful_s.set(&useful_s, rank);
        set_calls(&mut self.calls, &phase.calls, rank);
        set_pvars(&mut self.pvars, &phase.pvars, phase.stretches_read > 0, pvars, rank);
    }

    /// In the order in which the phases first occurred.
    #[inline]
    pub(super) fn finish(rows: Rows<PhaseRow>, reduced: u64) -> Vec<PhaseSummary> {
        let mut phases: Vec<(String, PhaseRow, Absent)> = rows.finish(reduced).collect();
        sort_by(&mut phases, |(_, one, _), (_, other, _)| one.place.cmp(&other.place));
        let phases = phases.into_iter();
        phases.filter_map(|(name, row, absent)| row.summary(name, absent, reduced)).collect()
    }

    #[inline]
    fn summary(self, name: String, absent: Absent, reduced: u64) -> Option<PhaseSummary> {
        let PhaseRow { place: _, numbers, calls, pvars } = self;
        let (mut pvars, samples) = pvars.finish();
        pvars.retain(|row| row.measure != Measure::Delta || !row.statistic.is_zero());
        let calls = calls_finished(calls, reduced);
        let numbers = numbers.finish(name, absent)?;
        let useful_s = numbers.useful_s.filter(|useful| useful.ranks == reduced);
        Some(PhaseSummary { useful_s, calls, pvars, samples, ..numbers })
    }
}

impl Row for PhaseRow {
    fn absent_on(&mut self, lowest: u32) {
        self.calls.absent_on(lowest);
    }
}

/// A phase names the variables that changed in it: the others grew by 0, if they `were_read`.
fn set_pvars(
    reduction: &mut Pvars,
    in_phase: &[PhasePvar],
    were_read: bool,
    pvars: &[Pvar],
    rank: u32,
) {
    reduction.clear();
    let mut next = 0;
    for pvar in pvars {
        let here = named_as(pvar, in_phase, &mut next);
        if were_read && here.is_none_or(|here| here.delta.is_none()) {
            pvar.readings(&mut |reading| {
                if reading.measure == Measure::Delta {
                    reduction.add(pvar, zero(reading), rank);
                }
            });
        }
        let Some(here) = here else { continue };
        here.readings(&mut |reading| {
            if reading.measure == Measure::Delta || pvar.is_summarized(reading.measure) {
                reduction.add(pvar, reading, rank);
            }
        });
        reduction.add_samples(pvar, here.samples.as_ref(), rank);
    }
}

/// The variable in a phase. Both lists usually have the same order: `next` is where the search begins.
fn named_as<'a>(pvar: &Pvar, in_phase: &'a [PhasePvar], next: &mut usize) -> Option<&'a PhasePvar> {
    let is_it = |here: &&PhasePvar| here.identity() == pvar.identity();
    if let Some(here) = in_phase.get(*next).filter(is_it) {
        *next += 1;
        return Some(here);
    }
    // If one is there twice, the last one counts.
    in_phase.iter().rev().find(is_it)
}

fn zero(reading: Reading) -> Reading {
    let number = match reading.number {
        Number::Integer(_) => Number::Integer(0),
        Number::Double(_) => Number::Double(0.0),
    };
    Reading { number, ..reading }
}
