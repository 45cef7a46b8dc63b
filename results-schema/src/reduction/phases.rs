//! One phase over ranks.

use serde::{Deserialize, Serialize};

use super::absence::{Absence, Row, Rows};
use super::calls::CallReduction;
use super::merge::{Merge, merge_fields};
use super::pvars::Pvars;
use crate::{Measure, Number, Phase, PhasePvar, PhaseSummary, Pvar, Reading, Statistics, sort_by};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct PhaseReduction {
    /// The smallest over all ranks orders the phases.
    place: PhaseOrder,
    entries: Statistics,
    time_s: Statistics,
    in_mpi_s: Statistics,
    useful_s: Statistics,
    stretches: u64,
    stretches_read: u64,
    calls: Rows<CallReduction>,
    pvars: Pvars,
    absence: Absence,
}

/// Where a phase first occurred: its position in the list of a rank, and that rank.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
struct PhaseOrder(usize, u32);

impl Merge for PhaseOrder {
    fn absorb(&mut self, other: &PhaseOrder) {
        *self = (*self).min(*other);
    }
}

merge_fields! {
    PhaseReduction { place, entries, time_s, in_mpi_s, useful_s, stretches, stretches_read, calls, pvars, absence }
}

impl PhaseReduction {
    /// The phases of `rank`, which read `pvars`. `start_s`: what the start of gyan took, outside all phases; none
    /// for a rank whose threads may be in MPI at the same time.
    #[inline]
    pub(super) fn of_rank(
        rows: &mut Rows<PhaseReduction>,
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
        let Phase { name, entries, time_s, calls, stretches, stretches_read, pvars: here } = phase;
        self.place = PhaseOrder(place, rank);
        self.entries = Statistics::of(Number::Integer((*entries).into()), rank);
        self.time_s = Statistics::of(Number::Double(*time_s), rank);
        let in_mpi_s: f64 = calls.iter().filter_map(|call| call.time_s).sum();
        self.in_mpi_s = Statistics::of(Number::Double(in_mpi_s), rank);
        // A lower bound of the time in MPI says nothing of what is left.
        let is_known =
            calls.iter().all(|call| call.time_s.is_none() || call.time_error_s.is_some());
        let start_s = start_s.filter(|_| is_known);
        self.useful_s = start_s.map_or_else(Statistics::default, |start_s| {
            let start_s = if name.is_empty() { start_s } else { 0.0 };
            Statistics::of(Number::Double((time_s - in_mpi_s - start_s).max(0.0)), rank)
        });
        self.stretches = *stretches;
        self.stretches_read = *stretches_read;
        CallReduction::of_rank(&mut self.calls, calls, rank);
        set_pvars(&mut self.pvars, here, *stretches_read > 0, pvars, rank);
        self.absence = Absence::default();
    }

    /// In the order in which the phases first occurred.
    #[inline]
    pub(super) fn finish(rows: Rows<PhaseReduction>, reduced: u64) -> Vec<PhaseSummary> {
        let mut phases: Vec<(String, PhaseReduction)> = rows.finish().collect();
        sort_by(&mut phases, |(_, one), (_, other)| one.place.cmp(&other.place));
        phases.into_iter().filter_map(|(name, phase)| phase.summary(name, reduced)).collect()
    }

    #[inline]
    fn summary(self, name: String, reduced: u64) -> Option<PhaseSummary> {
        let PhaseReduction {
            place: _,
            entries,
            time_s,
            in_mpi_s,
            useful_s,
            stretches,
            stretches_read,
            calls,
            pvars,
            absence,
        } = self;
        let absent = reduced.saturating_sub(entries.ranks());
        let calls = calls.finish();
        let (mut pvars, samples) = pvars.finish();
        pvars.retain(|row| row.measure != Measure::Delta || !row.statistic.is_zero());
        Some(PhaseSummary {
            name,
            entries: absence.finish(entries, absent)?,
            time_s: absence.finish(time_s, absent)?,
            in_mpi_s: absence.finish(in_mpi_s, absent),
            useful_s: absence.finish(useful_s, absent).filter(|useful| useful.ranks == reduced),
            calls: calls.filter_map(|(name, call)| call.finish(name, reduced)).collect(),
            stretches,
            stretches_read,
            pvars,
            samples,
        })
    }
}

impl Row for PhaseReduction {
    fn absent_on(&mut self, lowest: u32) {
        self.absence.on(lowest);
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
