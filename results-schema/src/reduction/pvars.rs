//! The numbers of variables over ranks, and what was sampled of them.

use std::collections::{BTreeMap, BTreeSet};

use super::absence::{Absence, Row, Rows};
use crate::readings::Reading;
use crate::{
    Class, Datatype, Element, Measure, Number, Pvar, PvarSummary, Samples, SamplesSummary,
    StateSummary, Statistics, add_histogram,
};

/// What makes two variables of two ranks the same.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
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

#[derive(Debug)]
struct NumberReduction {
    /// What the lowest rank that has the variable says of it.
    said: (u32, Datatype, Option<Class>),
    notes: BTreeSet<String>,
    statistics: Statistics,
}

#[derive(Debug)]
struct SamplesReduction {
    /// What the lowest rank that has the variable says of it.
    said: (u32, Option<Class>),
    ranks: u64,
    n: u64,
    histogram: Vec<u64>,
    states: Rows<StateReduction>,
}

/// A rank that was never in a state spent a share of 0 in it.
#[derive(Debug)]
struct StateReduction {
    share: Statistics,
    absence: Absence,
}

/// The variables of a run, or of a phase of it.
#[derive(Debug, Default)]
pub(super) struct Pvars {
    numbers: BTreeMap<(Variable, Measure, Element), NumberReduction>,
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
                        said: (rank, pvar.datatype, pvar.behaves_as),
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
                    if row.said.0 < own.said.0 {
                        own.said = row.said;
                    }
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

    pub(super) fn finish(self) -> (Vec<PvarSummary>, Vec<SamplesSummary>) {
        let numbers = self.numbers.into_iter().filter_map(|((variable, measure, element), row)| {
            let (_, datatype, behaves_as) = row.said;
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
            said: (rank, behaves_as),
            ranks: 1,
            n: samples.n,
            histogram: samples.histogram.clone(),
            states: Rows::of(rank, states),
        }
    }

    fn merge(&mut self, other: SamplesReduction) {
        if other.said.0 < self.said.0 {
            self.said = other.said;
        }
        self.ranks = self.ranks.saturating_add(other.ranks);
        self.n = self.n.saturating_add(other.n);
        add_histogram(&mut self.histogram, &other.histogram);
        self.states.merge(other.states);
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
            behaves_as: self.said.1,
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
}
