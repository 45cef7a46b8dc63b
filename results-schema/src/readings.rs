//! The numbers that a rank read from a variable, one after the other: the only access to them for code that
//! reduces, exports or shows them.

use std::collections::BTreeMap;

use crate::{Class, Element, Measure, Number, PhasePvar, Pvar, Samples, Values};

/// One number of one variable on one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Which reading it is.
    pub measure: Measure,
    /// The element.
    pub element: Element,
    /// The number.
    pub number: Number,
}

/// The readings of one element of a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Readings {
    pub delta: Option<Number>,
    pub start: Option<Number>,
    pub end: Option<Number>,
    pub sampled_min: Option<Number>,
    pub sampled_mean: Option<Number>,
    pub sampled_max: Option<Number>,
}

impl Pvar {
    /// Passes every number that was read from it to `take`, in the order of [`Measure`]. Text has none.
    // An iterator would take longer than reducing what it yields.
    #[inline]
    pub fn readings(&self, take: &mut impl FnMut(Reading)) {
        let Pvar { start, end, delta, samples, .. } = self;
        of_values(Measure::Delta, delta.as_ref(), take);
        of_values(Measure::Start, start.as_ref(), take);
        of_values(Measure::End, end.as_ref(), take);
        of_samples(samples.as_ref(), take);
    }

    /// The same by element, in order; a variable without a number has none.
    pub fn elements(&self) -> BTreeMap<Element, Readings> {
        let mut elements: BTreeMap<Element, Readings> = BTreeMap::new();
        self.readings(&mut |Reading { measure, element, number }| {
            let known = elements.entry(element).or_default();
            let place = match measure {
                Measure::Delta => &mut known.delta,
                Measure::Start => &mut known.start,
                Measure::End => &mut known.end,
                Measure::SampledMin => &mut known.sampled_min,
                Measure::SampledMean => &mut known.sampled_mean,
                Measure::SampledMax => &mut known.sampled_max,
            };
            *place = Some(number);
        });
        elements
    }

    /// Whether a summary has this measure of it: the difference of a variable that accumulates, or the reading
    /// at the end where there is no difference; no extremes for the numbers of states, which have shares
    /// instead.
    pub(crate) fn is_summarized(&self, measure: Measure) -> bool {
        let class = self.effective_class();
        match measure {
            Measure::Delta => class.accumulates(),
            Measure::Start => class == Class::Generic,
            Measure::End => !class.accumulates() || self.delta.is_none(),
            Measure::SampledMin | Measure::SampledMean | Measure::SampledMax => {
                class != Class::State
            }
        }
    }
}

impl PhasePvar {
    /// As [`Pvar::readings`].
    #[inline]
    pub fn readings(&self, take: &mut impl FnMut(Reading)) {
        let PhasePvar { delta, samples, .. } = self;
        of_values(Measure::Delta, delta.as_ref(), take);
        of_samples(samples.as_ref(), take);
    }
}

#[inline]
fn of_values(measure: Measure, values: Option<&Values>, take: &mut impl FnMut(Reading)) {
    match values {
        Some(Values::Elements(elements)) => of_elements(measure, elements, take),
        Some(Values::Digest(digest)) => {
            take(Reading { measure, element: Element::Sum, number: digest.sum });
            take(Reading { measure, element: Element::Min, number: digest.min });
            take(Reading { measure, element: Element::Max, number: digest.max });
        }
        Some(Values::Text(_)) | None => {}
    }
}

#[inline]
fn of_samples(samples: Option<&Samples>, take: &mut impl FnMut(Reading)) {
    let Some(samples) = samples.filter(|samples| samples.n > 0) else { return };
    let Samples { n: _, min, mean, max, sum, histogram: _, states: _ } = samples;
    for (measure, elements, sum) in [
        (Measure::SampledMin, min, sum.map(|sum| sum.min)),
        (Measure::SampledMean, mean, sum.map(|sum| sum.mean)),
        (Measure::SampledMax, max, sum.map(|sum| sum.max)),
    ] {
        of_elements(measure, elements, take);
        if let Some(number) = sum {
            take(Reading { measure, element: Element::Sum, number });
        }
    }
}

#[inline]
fn of_elements(measure: Measure, elements: &[Number], take: &mut impl FnMut(Reading)) {
    if let [number] = elements {
        take(Reading { measure, element: Element::Scalar, number: *number });
        return;
    }
    for (index, number) in elements.iter().enumerate() {
        take(Reading { measure, element: Element::Index(index), number: *number });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampledSum;

    /// The readings of a variable that was only sampled.
    fn readings(samples: Samples) -> Vec<Reading> {
        let (name, class) = (String::new(), Class::Level);
        let samples = Some(samples);
        let pvar = PhasePvar { name, class, behaves_as: None, object: None, delta: None, samples };
        let mut readings = Vec::new();
        pvar.readings(&mut |reading| readings.push(reading));
        readings
    }

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
        let readings = readings(samples(&[2, 3]));
        assert_eq!(readings.len(), 9);
        let has = |measure, element, number| {
            readings.contains(&Reading { measure, element, number: Number::Integer(number) })
        };
        assert!(has(Measure::SampledMax, Element::Index(1), 3));
        assert!(has(Measure::SampledMean, Element::Sum, 5));
    }

    #[test]
    fn a_sampled_scalar_has_no_sum() {
        let readings = readings(samples(&[2]));
        assert_eq!(readings.len(), 3);
        assert!(readings.iter().all(|reading| reading.element == Element::Scalar));
    }

    #[test]
    fn what_was_never_read_has_no_readings() {
        assert_eq!(readings(Samples { n: 0, ..samples(&[2]) }), []);
    }

    #[test]
    fn each_reading_of_the_example_is_in_the_place_of_its_measure() {
        let profile: crate::RankProfile =
            serde_json::from_str(include_str!("../examples/rank.json")).unwrap();
        let (mut one_by_one, mut by_element) = (0, 0);
        for pvar in &profile.pvars {
            pvar.readings(&mut |_| one_by_one += 1);
            for (element, readings) in pvar.elements() {
                let Readings { delta, start, end, sampled_min, sampled_mean, sampled_max } =
                    readings;
                let all = [delta, start, end, sampled_min, sampled_mean, sampled_max];
                by_element += all.iter().flatten().count();
                if let (Element::Scalar, Some(Values::Elements(end_values))) = (element, &pvar.end)
                {
                    assert_eq!(end, Some(end_values[0]));
                }
            }
        }
        assert!(one_by_one > 10, "{one_by_one}");
        assert_eq!(one_by_one, by_element);
    }
}
