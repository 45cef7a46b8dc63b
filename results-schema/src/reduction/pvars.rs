//! The numbers of variables over ranks, and what was sampled of them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::absence::{Absence, Row, Rows};
use super::insert_all;
use super::sorted::Sorted;
use super::wire::{Numbers, all_numbers};
use crate::readings::Reading;
use crate::{
    Class, Datatype, Element, Measure, Number, Pvar, PvarSummary, Samples, SamplesSummary,
    StateSummary, Statistics, add_histogram,
};

/// What makes two variables of two ranks the same.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
struct Variable {
    name: String,
    class: Class,
    object: Option<String>,
}

impl Variable {
    fn of(pvar: &Pvar) -> Variable {
        Variable { name: pvar.name.clone(), class: pvar.class, object: pvar.object.clone() }
    }

    fn identity(&self) -> (&str, Class, Option<&str>) {
        (&self.name, self.class, self.object.as_deref())
    }

    fn is(&self, pvar: &Pvar) -> bool {
        self.identity() == pvar.identity()
    }

    /// As the order of what [`of`](Self::of) makes of it.
    fn compare(&self, pvar: &Pvar) -> Ordering {
        self.identity().cmp(&pvar.identity())
    }
}

/// What the lowest rank that has a variable says of it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Said<D> {
    #[serde(skip)]
    rank: u32,
    datatype: D,
    behaves_as: Option<Class>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct NumberReduction {
    said: Said<Datatype>,
    notes: BTreeSet<String>,
    #[serde(skip)]
    statistics: Statistics,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct SamplesReduction {
    said: Said<()>,
    #[serde(skip)]
    ranks: u64,
    #[serde(skip)]
    n: u64,
    #[serde(skip)]
    histogram: Vec<u64>,
    states: Rows<StateReduction>,
}

/// A rank that was never in a state spent a share of 0 in it.
#[derive(Clone, Debug, Default)]
struct StateReduction {
    share: Statistics,
    absence: Absence,
}

all_numbers!(StateReduction);

/// The variables of a run, or of a phase of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Pvars {
    numbers: Sorted<(Variable, Measure, Element), NumberReduction>,
    samples: Sorted<Variable, SamplesReduction>,
}

impl Default for NumberReduction {
    fn default() -> NumberReduction {
        let said = Said { rank: u32::MAX, datatype: Datatype::Int, behaves_as: None };
        NumberReduction { said, notes: BTreeSet::new(), statistics: Statistics::default() }
    }
}

impl<D: Copy> Said<D> {
    fn merge(&mut self, other: &Said<D>) {
        if other.rank < self.rank {
            *self = *other;
        }
    }
}

impl Pvars {
    /// Forgets the numbers, before those of another profile are taken in.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.samples.clear();
    }

    /// Takes in what `rank` sampled of `pvar`.
    pub(super) fn add_samples(&mut self, pvar: &Pvar, samples: Option<&Samples>, rank: u32) {
        if let Some(samples) = samples.filter(|samples| samples.n > 0) {
            let is = |variable: &Variable| variable.is(pvar);
            let compare = |variable: &Variable| variable.compare(pvar);
            if let Some((_, row)) = self.samples.row(is, compare, || Variable::of(pvar)) {
                row.set(pvar.behaves_as, samples, rank);
            }
        }
    }

    /// Takes in one number of `pvar`.
    #[inline]
    pub(super) fn add(&mut self, pvar: &Pvar, (measure, element, number): Reading, rank: u32) {
        let is = |(variable, own, at): &(Variable, Measure, Element)| {
            *own == measure && *at == element && variable.is(pvar)
        };
        let compare = |(variable, own, at): &(Variable, Measure, Element)| {
            let order = variable.compare(pvar).then_with(|| own.cmp(&measure));
            order.then_with(|| at.cmp(&element))
        };
        match self.numbers.row(is, compare, || (Variable::of(pvar), measure, element)) {
            Some((true, row)) => row.statistics.add(number, rank),
            Some((false, row)) => row.set(pvar, number, rank),
            None => {}
        }
    }

    pub(super) fn merge(&mut self, other: &Pvars) {
        self.numbers.merge(&other.numbers, NumberReduction::merge, |_| {}, |_| {});
        self.samples.merge(&other.samples, SamplesReduction::merge, |_| {}, |_| {});
    }

    pub(super) fn numbers(&mut self, numbers: &mut Numbers) {
        for row in self.numbers.values_mut() {
            numbers.word(&mut row.said.rank, u32::min);
            numbers.statistics(&mut row.statistics);
        }
        self.samples.values_mut().for_each(|row| row.numbers(numbers));
    }

    pub(super) fn finish(self) -> (Vec<PvarSummary>, Vec<SamplesSummary>) {
        let numbers = self.numbers.into_rows().filter_map(|((variable, measure, element), row)| {
            let Said { datatype, behaves_as, .. } = row.said;
            Some(PvarSummary {
                name: variable.name,
                class: variable.class,
                behaves_as,
                object: variable.object,
                element,
                measure,
                datatype,
                statistic: row.statistics.finish()?,
                notes: row.notes.into_iter().collect(),
            })
        });
        let samples = self.samples.into_rows().map(|(variable, row)| row.finish(variable));
        (numbers.collect(), samples.collect())
    }
}

impl NumberReduction {
    fn set(&mut self, pvar: &Pvar, number: Number, rank: u32) {
        self.said = Said { rank, datatype: pvar.datatype, behaves_as: pvar.behaves_as };
        if !self.notes.iter().eq(&pvar.notes) {
            self.notes = pvar.notes.iter().cloned().collect();
        }
        self.statistics = Statistics::of(number, rank);
    }

    fn merge(&mut self, other: &NumberReduction) {
        self.statistics.merge(&other.statistics);
        self.said.merge(&other.said);
        insert_all(&mut self.notes, &other.notes);
    }
}

impl SamplesReduction {
    fn set(&mut self, behaves_as: Option<Class>, samples: &Samples, rank: u32) {
        self.said = Said { rank, datatype: (), behaves_as };
        self.ranks = 1;
        self.n = samples.n;
        self.histogram.clone_from(&samples.histogram);
        self.states.set(
            rank,
            &samples.states,
            |name, state| name.cmp(&state.state),
            |state| state.state.clone(),
            |row, state| {
                row.share = Statistics::of(Number::Double(state.share), rank);
                row.absence = Absence::default();
            },
        );
    }

    fn merge(&mut self, other: &SamplesReduction) {
        self.said.merge(&other.said);
        self.ranks = self.ranks.saturating_add(other.ranks);
        self.n = self.n.saturating_add(other.n);
        add_histogram(&mut self.histogram, &other.histogram);
        self.states.merge(&other.states);
    }

    fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.word(&mut self.said.rank, u32::min);
        numbers.count(&mut self.ranks);
        numbers.count(&mut self.n);
        numbers.histogram(&mut self.histogram);
        self.states.numbers(numbers);
    }

    fn finish(self, variable: Variable) -> SamplesSummary {
        let ranks = self.ranks;
        let states = self.states.finish().filter_map(|(state, row)| {
            let absent = ranks.saturating_sub(row.share.ranks());
            Some(StateSummary { state, share: row.absence.finish(row.share, absent)? })
        });
        let mut states: Vec<StateSummary> = states.collect();
        states.sort_by(|a, b| b.share.avg.total_cmp(&a.share.avg));
        SamplesSummary {
            name: variable.name,
            class: variable.class,
            behaves_as: self.said.behaves_as,
            object: variable.object,
            ranks,
            n: self.n,
            histogram: self.histogram,
            states,
        }
    }
}

impl Row for StateReduction {
    fn merge(&mut self, other: &StateReduction) {
        self.share.merge(&other.share);
        self.absence.merge(other.absence);
    }

    fn absent_on(&mut self, lowest: u32) {
        self.absence.on(lowest);
    }

    fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.statistics(&mut self.share);
        self.absence.numbers(numbers);
    }
}
