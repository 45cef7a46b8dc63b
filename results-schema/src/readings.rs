//! Which numbers of a variable a summary has, by class.

use serde::{Deserialize, Serialize};

use crate::{Class, Element, Number, Pvar, Samples, Values};

/// Which reading of a variable a number is.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The reading at the end less the one at the start.
    Delta,
    /// The reading at the start, after `MPI_Init`.
    Start,
    /// The reading at the end, before `MPI_Finalize`.
    End,
    /// The smallest reading while the program ran.
    SampledMin,
    /// The mean reading while the program ran.
    SampledMean,
    /// The largest reading while the program ran.
    SampledMax,
}

impl Measure {
    /// As in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Measure::Delta => "delta",
            Measure::Start => "start",
            Measure::End => "end",
            Measure::SampledMin => "sampled_min",
            Measure::SampledMean => "sampled_mean",
            Measure::SampledMax => "sampled_max",
        }
    }
}

/// One number of one variable on one rank.
pub(crate) type Reading = (Measure, Element, Number);

/// A variable that accumulates shows its difference, or the reading at the end where there is none
/// at the start. Each reading is given to `take`: an iterator of all would take longer than they do.
#[inline]
pub(crate) fn of_pvar(pvar: &Pvar, take: &mut impl FnMut(Reading)) {
    let class = pvar.effective_class();
    let delta = if class.accumulates() { pvar.delta.as_ref() } else { None };
    let start = if class == Class::Generic { pvar.start.as_ref() } else { None };
    let end = if delta.is_some() { None } else { pvar.end.as_ref() };
    for (measure, values) in [(Measure::Delta, delta), (Measure::Start, start), (Measure::End, end)]
    {
        if let Some(values) = values {
            of_values(measure, values, take);
        }
    }
    if let Some(samples) = &pvar.samples {
        of_samples(class, samples, take);
    }
}

/// Text has no minimum: it stays in the rank profile.
#[inline]
pub(crate) fn of_values(measure: Measure, values: &Values, take: &mut impl FnMut(Reading)) {
    match values {
        Values::Elements(elements) => of_elements(measure, elements, take),
        Values::Digest(digest) => {
            take((measure, Element::Sum, digest.sum));
            take((measure, Element::Min, digest.min));
            take((measure, Element::Max, digest.max));
        }
        Values::Text(_) => {}
    }
}

/// The number of a state has no mean and no extremes: states have shares.
#[inline]
pub(crate) fn of_samples(class: Class, samples: &Samples, take: &mut impl FnMut(Reading)) {
    if samples.n == 0 || class == Class::State {
        return;
    }
    let sum = samples.sum.as_ref();
    for (measure, elements, sum) in [
        (Measure::SampledMin, &samples.min, sum.map(|sum| sum.min)),
        (Measure::SampledMean, &samples.mean, sum.map(|sum| sum.mean)),
        (Measure::SampledMax, &samples.max, sum.map(|sum| sum.max)),
    ] {
        of_elements(measure, elements, take);
        if let Some(sum) = sum {
            take((measure, Element::Sum, sum));
        }
    }
}

#[inline]
fn of_elements(measure: Measure, elements: &[Number], take: &mut impl FnMut(Reading)) {
    if let [number] = elements {
        take((measure, Element::Scalar, *number));
        return;
    }
    for (index, number) in elements.iter().enumerate() {
        take((measure, Element::Index(index), *number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampledSum;

    fn samples(elements: &[i128]) -> Samples {
        let numbers: Vec<Number> = elements.iter().copied().map(Number::Integer).collect();
        let sum = Number::Integer(elements.iter().sum());
        Samples {
            n: 1,
            min: numbers.clone(),
            mean: numbers.clone(),
            max: numbers,
            sum: (elements.len() != 1).then_some(SampledSum { min: sum, mean: sum, max: sum }),
            ..Samples::default()
        }
    }

    fn readings(class: Class, samples: &Samples) -> Vec<Reading> {
        let mut readings = Vec::new();
        of_samples(class, samples, &mut |reading| readings.push(reading));
        readings
    }

    #[test]
    fn a_sampled_vector_has_its_elements_and_their_sum() {
        let readings = readings(Class::Level, &samples(&[2, 3]));
        assert_eq!(readings.len(), 9);
        assert!(readings.contains(&(Measure::SampledMax, Element::Index(1), Number::Integer(3))));
        assert!(readings.contains(&(Measure::SampledMean, Element::Sum, Number::Integer(5))));
    }

    #[test]
    fn a_sampled_scalar_has_no_sum() {
        let readings = readings(Class::Level, &samples(&[2]));
        assert_eq!(readings.len(), 3);
        assert!(readings.iter().all(|(_, element, _)| *element == Element::Scalar));
    }

    #[test]
    fn a_state_has_no_extremes() {
        assert_eq!(readings(Class::State, &samples(&[2])), []);
    }

    #[test]
    fn what_was_never_read_has_no_readings() {
        assert_eq!(readings(Class::Level, &Samples { n: 0, ..samples(&[2]) }), []);
    }
}
