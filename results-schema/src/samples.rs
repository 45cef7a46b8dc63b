//! The readings of a variable while the program ran, and its course: on one rank and over ranks.

use crate::data::{Data, Serialize, derive};
use crate::merge::add_histogram;
use crate::{Class, Number, Statistic};

/// The readings of a variable while the program ran, at calls of MPI functions.
///
/// Each reading counts once, so the mean is over readings, which are spread over the run as the budget allows.
#[derive(Data!, Serialize, Default)]
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

/// Extremes and mean of the sum over the elements of a vector.
#[derive(Data!, Serialize, Copy)]
pub struct SampledSum {
    /// The smallest sum.
    pub min: Number,
    /// The mean sum.
    pub mean: Number,
    /// The largest sum.
    pub max: Number,
}

/// One state of a STATE variable.
#[derive(Data!, Serialize)]
pub struct StateShare {
    /// Its name in the variable's enumeration, else its number.
    pub state: String,
    /// The share of the time over which the variable was sampled.
    pub share: f64,
}

/// The readings of one variable on the ranks while the program ran. Extremes and means are among the rows of
/// variables.
#[derive(Data!, Serialize)]
pub struct SamplesSummary {
    /// Name of the variable.
    pub name: String,
    /// Its class according to the library.
    pub class: Class,
    /// The class that it behaves as, if the library is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaves_as: Option<Class>,
    /// The object that it is bound to.
    pub object: Option<String>,
    /// Number of ranks that sampled it.
    pub ranks: u64,
    /// Number of readings on all of them.
    pub n: u64,
    /// How many readings, of the sum over the elements, were below 1, in [1, 2), [2, 4), [4, 8), ...
    pub histogram: Vec<u64>,
    /// The states of a STATE variable, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StateSummary>,
}

/// One state of a STATE variable.
#[derive(Data!, Serialize)]
pub struct StateSummary {
    /// Its name in the variable's enumeration, else its number.
    pub state: String,
    /// The share of time in it, over the ranks that sampled the variable.
    pub share: Statistic,
}

/// Sampled variables over the run: one record per interval.
#[derive(Data!, Serialize)]
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

/// A variable in a series: for a vector, the sum over the elements. Each list is as long as [`Series::end_s`];
/// none for an interval in which it was not read.
#[derive(Data!, Serialize)]
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

fn lesser(one: Number, other: Number) -> Number {
    if other.compare(one).is_lt() { other } else { one }
}

fn greater(one: Number, other: Number) -> Number {
    if other.compare(one).is_gt() { other } else { one }
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
