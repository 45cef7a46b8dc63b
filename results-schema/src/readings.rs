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
/// at the start.
pub(crate) fn of_pvar(pvar: &Pvar) -> impl Iterator<Item = Reading> {
    let class = pvar.effective_class();
    let delta = if class.accumulates() { pvar.delta.as_ref() } else { None };
    let start = if class == Class::Generic { pvar.start.as_ref() } else { None };
    let end = if delta.is_some() { None } else { pvar.end.as_ref() };
    let readings = [(Measure::Delta, delta), (Measure::Start, start), (Measure::End, end)];
    let sampled = pvar.samples.iter().flat_map(move |samples| of_samples(class, samples));
    readings
        .into_iter()
        .flat_map(|(measure, values)| values.into_iter().flat_map(move |v| of_values(measure, v)))
        .chain(sampled)
}

/// Text has no minimum: it stays in the rank profile.
pub(crate) fn of_values(measure: Measure, values: &Values) -> impl Iterator<Item = Reading> {
    let (elements, digest) = match values {
        Values::Elements(elements) => (elements.as_slice(), None),
        Values::Digest(digest) => (&[][..], Some(digest)),
        Values::Text(_) => (&[][..], None),
    };
    let digest = digest.into_iter().flat_map(move |digest| {
        [(Element::Sum, digest.sum), (Element::Min, digest.min), (Element::Max, digest.max)]
    });
    of_elements(measure, elements).chain(digest.map(move |(element, n)| (measure, element, n)))
}

/// The number of a state has no mean and no extremes: states have shares.
pub(crate) fn of_samples(class: Class, samples: &Samples) -> impl Iterator<Item = Reading> {
    let samples = (samples.n > 0 && class != Class::State).then_some(samples);
    samples.into_iter().flat_map(|samples| {
        let sum = samples.sum.as_ref();
        [
            (Measure::SampledMin, &samples.min, sum.map(|sum| sum.min)),
            (Measure::SampledMean, &samples.mean, sum.map(|sum| sum.mean)),
            (Measure::SampledMax, &samples.max, sum.map(|sum| sum.max)),
        ]
        .into_iter()
        .flat_map(|(measure, elements, sum)| {
            let sum = sum.map(|sum| (measure, Element::Sum, sum));
            of_elements(measure, elements).chain(sum)
        })
    })
}

fn of_elements(measure: Measure, elements: &[Number]) -> impl Iterator<Item = Reading> {
    let scalar = elements.len() == 1;
    elements.iter().enumerate().map(move |(index, &number)| {
        (measure, if scalar { Element::Scalar } else { Element::Index(index) }, number)
    })
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

    #[test]
    fn a_sampled_vector_has_its_elements_and_their_sum() {
        let samples = samples(&[2, 3]);
        let readings: Vec<Reading> = of_samples(Class::Level, &samples).collect();
        assert_eq!(readings.len(), 9);
        assert!(readings.contains(&(Measure::SampledMax, Element::Index(1), Number::Integer(3))));
        assert!(readings.contains(&(Measure::SampledMean, Element::Sum, Number::Integer(5))));
    }

    #[test]
    fn a_sampled_scalar_has_no_sum() {
        let samples = samples(&[2]);
        let readings: Vec<Reading> = of_samples(Class::Level, &samples).collect();
        assert_eq!(readings.len(), 3);
        assert!(readings.iter().all(|(_, element, _)| *element == Element::Scalar));
    }

    #[test]
    fn a_state_has_no_extremes() {
        assert_eq!(of_samples(Class::State, &samples(&[2])).count(), 0);
    }

    #[test]
    fn what_was_never_read_has_no_readings() {
        let none = Samples { n: 0, ..samples(&[2]) };
        assert_eq!(of_samples(Class::Level, &none).count(), 0);
    }
}
