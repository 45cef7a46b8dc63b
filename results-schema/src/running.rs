//! The part of a rank profile about the time between start and end: samples of variables, their course, phases,
//! and the clock.

use serde::{Deserialize, Serialize};

use crate::{Call, Class, Number, Values};

/// The readings of a variable while the program ran, at calls of MPI functions.
///
/// Each reading counts once, so the mean is over readings, which are spread over the run as the budget allows.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Samples {
    /// Number of readings.
    pub n: u64,
    /// The smallest reading of each element; empty for a vector that was too long to keep.
    pub min: Vec<Number>,
    /// The mean reading of each element.
    pub mean: Vec<Number>,
    /// The largest reading of each element.
    pub max: Vec<Number>,
    /// The same for the sum over the elements; none for a variable with one element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<SampledSum>,
    /// How many readings, of the sum over the elements, were below 1, in [1, 2), [2, 4), [4, 8), ...; up to the
    /// last that is not 0.
    pub histogram: Vec<u64>,
    /// For a STATE variable, the share of time in each state; each reading stands for the time until the next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StateShare>,
}

/// Extremes and mean of the sum over the elements of a vector.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct SampledSum {
    /// The smallest sum.
    pub min: Number,
    /// The mean sum.
    pub mean: Number,
    /// The largest sum.
    pub max: Number,
}

/// One state of a STATE variable.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StateShare {
    /// Its name in the variable's enumeration, else its number.
    pub state: String,
    /// The share of the time over which the variable was sampled.
    pub share: f64,
}

impl Samples {
    /// Adds the readings of the same variable in a later part of the run.
    #[inline]
    pub fn extend(&mut self, later: &Samples) {
        if self.n == 0 || later.n == 0 {
            if later.n > 0 {
                self.clone_from(later);
            }
            return;
        }
        let Samples { n: later_n, min, mean: means, max, sum, histogram, states } = later;
        let (n, m) = (self.n as f64, *later_n as f64);
        let mean = |own: Number, other: Number| {
            Number::Double((own.as_f64() * n + other.as_f64() * m) / (n + m))
        };
        let pairwise =
            |own: &mut Vec<Number>, other: &[Number], of: &dyn Fn(Number, Number) -> Number| {
                own.truncate(other.len());
                for (own, other) in own.iter_mut().zip(other) {
                    *own = of(*own, *other);
                }
            };
        pairwise(&mut self.min, min, &lesser);
        pairwise(&mut self.mean, means, &mean);
        pairwise(&mut self.max, max, &greater);
        self.sum = match (self.sum, *sum) {
            (Some(own), Some(other)) => Some(SampledSum {
                min: lesser(own.min, other.min),
                mean: mean(own.mean, other.mean),
                max: greater(own.max, other.max),
            }),
            _ => None,
        };
        add_histogram(&mut self.histogram, histogram);
        for state in &mut self.states {
            state.share *= n / (n + m);
        }
        for other in states {
            let share = other.share * m / (n + m);
            match self.states.iter_mut().find(|state| state.state == other.state) {
                Some(state) => state.share += share,
                None => self.states.push(StateShare { state: other.state.clone(), share }),
            }
        }
        self.n = self.n.saturating_add(*later_n);
    }
}

fn lesser(one: Number, other: Number) -> Number {
    if other.compare(one).is_lt() { other } else { one }
}

fn greater(one: Number, other: Number) -> Number {
    if other.compare(one).is_gt() { other } else { one }
}

/// Adds the bars of one histogram to another's.
pub fn add_histogram(histogram: &mut Vec<u64>, other: &[u64]) {
    if histogram.len() < other.len() {
        histogram.resize(other.len(), 0);
    }
    for (own, other) in histogram.iter_mut().zip(other) {
        *own = own.saturating_add(*other);
    }
}

/// The time that a rank spent inside MPI functions: an estimate from the calls that were timed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct InMpi {
    /// Seconds, summed over all threads.
    pub time_s: f64,
    /// The standard error of that; none when it is a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_error_s: Option<f64>,
    /// The part of `job.elapsed_s` in which at least one thread is inside; `time_s / job.elapsed_s`, which can be above 1,
    /// where that is not known.
    pub share: f64,
    /// How many threads called MPI, up to the number that gyan tells apart; 0 in profiles of early versions of gyan that
    /// did not say so.
    #[serde(default)]
    pub threads: u64,
    /// Seconds in which at least one of several threads was inside; none for one thread, for which it is `time_s`, and
    /// where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
}

impl InMpi {
    /// Seconds in which at least one thread of the rank was in MPI; none if that is not known.
    #[must_use]
    pub fn wall(&self) -> Option<f64> {
        // Earlier versions of gyan did not say how many threads there were.
        if self.threads > 1 || self.share > 1.0 { self.wall_s } else { Some(self.time_s) }
    }
}

/// The clock that gyan reads the time from.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Clock {
    /// `tsc` (the processor's counter, where it is invariant) or `clock_gettime`.
    pub source: String,
    /// What one reading costs, in seconds.
    pub read_s: f64,
    /// Whether that is so slow that fewer calls are timed.
    pub slow: bool,
}

/// Sampled variables over the run: one record per interval.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Series {
    /// The requested interval, in seconds. In a long run records are merged, the oldest the most, so their
    /// intervals are longer.
    pub interval_s: f64,
    /// The end of the interval of each record, in seconds since `MPI_Init`, in ascending order. Times in which
    /// the program called no MPI function are not known.
    pub end_s: Vec<f64>,
    /// One for each sampled variable.
    pub columns: Vec<SeriesColumn>,
}

/// A variable in a series: for a vector, the sum over the elements. Each list is as long as [`Series::end_s`];
/// none for an interval in which it was not read.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SeriesColumn {
    /// Its name.
    pub name: String,
    /// Its class according to the library.
    pub class: Class,
    /// The object that it is bound to.
    pub object: Option<String>,
    /// The smallest reading in each interval.
    pub min: Vec<Option<f64>>,
    /// The mean reading in each interval.
    pub mean: Vec<Option<f64>>,
    /// The largest reading in each interval.
    pub max: Vec<Option<f64>>,
}

/// What happened while the program was in one phase.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Phase {
    /// Its name: that given to `gyan_phase_begin`, after those of the phases around it (`step/exchange`), or
    /// `level N` of `MPI_Pcontrol`; empty for time outside all phases, and `off` for time between
    /// `MPI_Pcontrol(0)` and `MPI_Pcontrol(1)`, which is nowhere else in the profile.
    pub name: String,
    /// How often it began.
    pub entries: u64,
    /// Seconds in it, without the phases inside it.
    pub time_s: f64,
    /// The functions that were called in it, without the phases inside it.
    pub calls: Vec<Call>,
    /// How many stretches of time it consists of: one starts when the phase begins, and after each phase inside
    /// it.
    pub stretches: u64,
    /// How many of those had the variables read at both ends; for the others the budget did not allow it, and
    /// `delta` does not include them.
    pub stretches_read: u64,
    /// The variables that changed or were sampled in it.
    pub pvars: Vec<PhasePvar>,
}

/// A variable in one phase.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PhasePvar {
    /// Its name.
    pub name: String,
    /// Its class according to the library.
    pub class: Class,
    /// The class that it behaves as, if the library is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaves_as: Option<Class>,
    /// The object that it is bound to.
    pub object: Option<String>,
    /// How much a variable that accumulates grew in the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Values>,
    /// Its readings in the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

impl PhasePvar {
    /// As [`Pvar::identity`](crate::Pvar::identity).
    #[must_use]
    pub fn identity(&self) -> (&str, Class, Option<&str>) {
        (&self.name, self.class, self.object.as_deref())
    }

    /// Adds what the same variable did after MPI was initialised again. False when it is not the same variable.
    pub fn continued(&mut self, later: &PhasePvar) -> bool {
        if self.identity() != later.identity() {
            return false;
        }
        let PhasePvar { name: _, class: _, behaves_as: _, object: _, delta, samples } = later;
        match (&self.delta, delta) {
            (Some(own), Some(later)) => self.delta = own.plus(later),
            (None, later) => self.delta.clone_from(later),
            (Some(_), None) => {}
        }
        match (&mut self.samples, samples) {
            (Some(own), Some(later)) => own.extend(later),
            (own @ None, later) => own.clone_from(later),
            (Some(_), None) => {}
        }
        true
    }
}

impl Series {
    /// Adds the records of a later part of the run.
    #[inline]
    pub fn extend(&mut self, later: &Series) {
        let Series { interval_s: _, end_s, columns } = later;
        let before = self.end_s.len();
        self.end_s.extend(end_s);
        for column in columns {
            let known = self.columns.iter().position(|own| {
                (&own.name, own.class, &own.object) == (&column.name, column.class, &column.object)
            });
            let at = known.unwrap_or_else(|| {
                let gap = || vec![None; before];
                self.columns.push(SeriesColumn {
                    min: gap(),
                    mean: gap(),
                    max: gap(),
                    ..column.clone()
                });
                self.columns.len() - 1
            });
            if let Some(own) = self.columns.get_mut(at) {
                let SeriesColumn { name: _, class: _, object: _, min, mean, max } = column;
                own.min.extend(min);
                own.mean.extend(mean);
                own.max.extend(max);
            }
        }
        let records = self.end_s.len();
        for column in &mut self.columns {
            for list in [&mut column.min, &mut column.mean, &mut column.max] {
                list.resize(records, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(n: u64, value: i128) -> Samples {
        let number = Number::Integer(value);
        Samples {
            n,
            min: vec![number],
            mean: vec![Number::Double(number.as_f64())],
            max: vec![number],
            sum: None,
            histogram: vec![0, n],
            states: vec![StateShare { state: value.to_string(), share: 1.0 }],
        }
    }

    #[test]
    fn samples_of_two_parts_of_a_run_are_those_of_the_whole() {
        let mut whole = Samples::default();
        whole.extend(&samples(1, 1));
        whole.extend(&samples(3, 5));
        assert_eq!(whole.n, 4);
        assert_eq!((whole.min[0], whole.max[0]), (Number::Integer(1), Number::Integer(5)));
        assert_eq!(whole.mean, [Number::Double(4.0)]);
        assert_eq!(whole.histogram, [0, 4]);
        let shares: Vec<f64> = whole.states.iter().map(|state| state.share).collect();
        assert_eq!(shares, [0.25, 0.75]);
    }
}
