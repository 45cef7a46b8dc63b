//! The numbers of variables over ranks, and their samples.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::absence::{Row, Rows};
use super::sorted::Sorted;
use crate::data::derive;
use crate::merge::{Each, Kind, Lowest, MergeFields, Takes};
use crate::{
    Class, Datatype, Element, Measure, Number, Pvar, PvarSummary, Reading, Samples, SamplesSummary,
    StateSummary, Statistics, sort_by,
};

/// What identifies a variable across ranks.
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

    /// The same order as that of the result of [`of`](Self::of).
    fn compare(&self, pvar: &Pvar) -> Ordering {
        self.identity().cmp(&pvar.identity())
    }
}

#[derive(MergeFields!, Clone, Debug, Deserialize, Serialize)]
struct NumberReduction {
    /// The datatype, and the class that the variable behaves as.
    said: Lowest<(Datatype, Option<Class>)>,
    notes: BTreeSet<String>,
    statistics: Statistics,
}

#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
struct SamplesReduction {
    behaves_as: Lowest<Option<Class>>,
    ranks: u64,
    n: u64,
    histogram: Vec<u64>,
    /// A rank that was never in a state has a share of 0 in it.
    states: Rows<Each>,
}

/// The variables of a run, or of a phase of it.
#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Pvars {
    numbers: Sorted<(Variable, Measure, Element), NumberReduction>,
    samples: Sorted<Variable, SamplesReduction>,
}

impl Default for NumberReduction {
    fn default() -> NumberReduction {
        let said = Lowest { rank: u32::MAX, said: (Datatype::Int, None) };
        NumberReduction { said, notes: BTreeSet::new(), statistics: Statistics::default() }
    }
}

impl Pvars {
    /// Clears the numbers before those of another profile are added.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.samples.clear();
    }

    #[inline]
    pub(super) fn add_samples(&mut self, pvar: &Pvar, samples: Option<&Samples>, rank: u32) {
        if let Some(samples) = samples.filter(|samples| samples.n > 0) {
            let is = |variable: &Variable| variable.is(pvar);
            let compare = |variable: &Variable| variable.compare(pvar);
            if let Some((_, row)) = self.samples.row(is, compare, || Variable::of(pvar)) {
                row.set(pvar.behaves_as, samples, rank);
            }
        }
    }

    #[inline]
    pub(super) fn add(&mut self, pvar: &Pvar, reading: Reading, rank: u32) {
        let Reading { measure, element, number } = reading;
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

    #[inline]
    pub(super) fn finish(self) -> (Vec<PvarSummary>, Vec<SamplesSummary>) {
        let numbers = self.numbers.into_rows().filter_map(|((variable, measure, element), row)| {
            let NumberReduction { said, notes, statistics } = row;
            let (datatype, behaves_as) = said.said;
            Some(PvarSummary {
                name: variable.name,
                class: variable.class,
                behaves_as,
                object: variable.object,
                element,
                measure,
                datatype,
                statistic: statistics.finish()?,
                notes: notes.into_iter().collect(),
            })
        });
        let samples = self.samples.into_rows().map(|(variable, row)| row.finish(variable));
        (numbers.collect(), samples.collect())
    }
}

impl NumberReduction {
    #[inline]
    fn set(&mut self, pvar: &Pvar, number: Number, rank: u32) {
        self.said = Lowest { rank, said: (pvar.datatype, pvar.behaves_as) };
        if !self.notes.iter().eq(&pvar.notes) {
            self.notes = pvar.notes.iter().cloned().collect();
        }
        self.statistics = Statistics::of(number, rank);
    }
}

impl SamplesReduction {
    #[inline]
    fn set(&mut self, behaves_as: Option<Class>, samples: &Samples, rank: u32) {
        // The numbers of elements are readings.
        let Samples { n, min: _, mean: _, max: _, sum: _, histogram, states } = samples;
        self.behaves_as = Lowest { rank, said: behaves_as };
        self.ranks = 1;
        self.n = *n;
        self.histogram.clone_from(histogram);
        self.states.set(
            rank,
            states,
            |name, state| name.cmp(&state.state),
            |state| state.state.clone(),
            |row, state| row.set(&state.share, rank),
        );
    }

    #[inline]
    fn finish(self, variable: Variable) -> SamplesSummary {
        let SamplesReduction { behaves_as, ranks, n, histogram, states } = self;
        let states = states.finish(ranks).filter_map(|(state, share, absent)| {
            Some(StateSummary { state, share: share.over_ranks(absent)? })
        });
        let mut states: Vec<StateSummary> = states.collect();
        sort_by(&mut states, |a, b| b.share.avg.total_cmp(&a.share.avg));
        SamplesSummary {
            name: variable.name,
            class: variable.class,
            behaves_as: behaves_as.said,
            object: variable.object,
            ranks,
            n,
            histogram,
            states,
        }
    }
}

impl Row for Each {}
