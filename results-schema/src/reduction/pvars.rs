//! The numbers of variables over ranks, and what was sampled of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::absence::{Absence, Row, Rows};
use super::wire::{Numbers, all_numbers, pairs};
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
}

/// What the lowest rank that has a variable says of it.
#[derive(Debug, Deserialize, Serialize)]
struct Said<D> {
    #[serde(skip)]
    rank: u32,
    datatype: D,
    behaves_as: Option<Class>,
}

impl<D> Said<D> {
    fn by(rank: u32, datatype: D, behaves_as: Option<Class>) -> Said<D> {
        Said { rank, datatype, behaves_as }
    }

    fn merge(&mut self, other: Said<D>) {
        if other.rank < self.rank {
            *self = other;
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct NumberReduction {
    said: Said<Datatype>,
    notes: BTreeSet<String>,
    #[serde(skip)]
    statistics: Statistics,
}

#[derive(Debug, Deserialize, Serialize)]
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
#[derive(Debug, Default)]
struct StateReduction {
    share: Statistics,
    absence: Absence,
}

all_numbers!(StateReduction);

/// The variables of a run, or of a phase of it.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Pvars {
    #[serde(with = "pairs")]
    numbers: BTreeMap<(Variable, Measure, Element), NumberReduction>,
    #[serde(with = "pairs")]
    samples: BTreeMap<Variable, SamplesReduction>,
}

impl Pvars {
    /// Takes in what `rank` read of `pvar`.
    pub(super) fn add(
        &mut self,
        pvar: &Pvar,
        readings: impl IntoIterator<Item = Reading>,
        samples: Option<&Samples>,
        rank: u32,
    ) {
        for (measure, element, number) in readings {
            let row =
                self.numbers.entry((Variable::of(pvar), measure, element)).or_insert_with(|| {
                    NumberReduction {
                        said: Said::by(rank, pvar.datatype, pvar.behaves_as),
                        notes: pvar.notes.iter().cloned().collect(),
                        statistics: Statistics::default(),
                    }
                });
            row.statistics.add(number, rank);
        }
        if let Some(samples) = samples.filter(|samples| samples.n > 0) {
            let row = SamplesReduction::of(pvar.behaves_as, samples, rank);
            self.samples.insert(Variable::of(pvar), row);
        }
    }

    pub(super) fn merge(&mut self, other: Pvars) {
        for (key, row) in other.numbers {
            match self.numbers.get_mut(&key) {
                Some(own) => {
                    own.statistics.merge(&row.statistics);
                    own.said.merge(row.said);
                    own.notes.extend(row.notes);
                }
                None => {
                    self.numbers.insert(key, row);
                }
            }
        }
        for (variable, row) in other.samples {
            match self.samples.get_mut(&variable) {
                Some(own) => own.merge(row),
                None => {
                    self.samples.insert(variable, row);
                }
            }
        }
    }

    pub(super) fn numbers(&mut self, numbers: &mut Numbers) {
        for row in self.numbers.values_mut() {
            numbers.word(&mut row.said.rank, u32::min);
            numbers.statistics(&mut row.statistics);
        }
        for row in self.samples.values_mut() {
            row.numbers(numbers);
        }
    }

    pub(super) fn finish(self) -> (Vec<PvarSummary>, Vec<SamplesSummary>) {
        let numbers = self.numbers.into_iter().filter_map(|((variable, measure, element), row)| {
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
        let samples = self.samples.into_iter().map(|(variable, row)| row.finish(variable));
        (numbers.collect(), samples.collect())
    }
}

impl SamplesReduction {
    fn of(behaves_as: Option<Class>, samples: &Samples, rank: u32) -> SamplesReduction {
        let states = samples.states.iter().map(|state| {
            let share = Statistics::of(Number::Double(state.share), rank);
            (state.state.clone(), StateReduction { share, absence: Absence::default() })
        });
        SamplesReduction {
            said: Said::by(rank, (), behaves_as),
            ranks: 1,
            n: samples.n,
            histogram: samples.histogram.clone(),
            states: Rows::of(rank, states),
        }
    }

    fn merge(&mut self, other: SamplesReduction) {
        self.said.merge(other.said);
        self.ranks = self.ranks.saturating_add(other.ranks);
        self.n = self.n.saturating_add(other.n);
        add_histogram(&mut self.histogram, &other.histogram);
        self.states.merge(other.states);
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
    fn merge(&mut self, other: StateReduction) {
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
