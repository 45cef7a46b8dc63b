//! The value of a variable at one moment: its elements, a digest of a long vector, or text.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as DeserializeDerive, Serialize};

use crate::{Datatype, Number};

/// The value of a variable at one moment. In JSON an array, an object or a string.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Values {
    /// Every element, in the order of the library; a scalar has one.
    Elements(Vec<Number>),
    /// The digest of a vector with more elements than the limit.
    Digest(Digest),
    /// An `MPI_CHAR` variable, up to its first NUL.
    Text(String),
}

/// Sum and extremes of a vector that was too long to keep.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, DeserializeDerive, PartialEq, Serialize)]
pub struct Digest {
    /// Number of elements.
    pub count: usize,
    /// Number of elements that are not 0.
    pub nonzero: usize,
    /// Sum of the elements.
    pub sum: Number,
    /// Smallest element.
    pub min: Number,
    /// Index of the smallest element, the first of equals.
    pub min_at: usize,
    /// Largest element.
    pub max: Number,
    /// Index of the largest element, the first of equals.
    pub max_at: usize,
}

impl Values {
    /// The value in `bytes`, in the machine's byte order: text up to the first NUL for `MPI_CHAR`, otherwise
    /// elements as in [`from_elements`](Self::from_elements).
    pub fn from_bytes(datatype: Datatype, bytes: &[u8], limit: usize) -> Values {
        if datatype != Datatype::Char {
            return Values::from_elements(datatype.decode_all(bytes), limit);
        }
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let text = bytes.get(..end).unwrap_or(bytes);
        Values::Text(String::from_utf8_lossy(text).into_owned())
    }

    /// The elements themselves if there are at most `limit`, otherwise their [`Digest`].
    pub fn from_elements(elements: Vec<Number>, limit: usize) -> Values {
        if elements.len() <= limit.max(1) {
            return Values::Elements(elements);
        }
        let mut digest: Option<Digest> = None;
        for (at, &element) in elements.iter().enumerate() {
            let nonzero = usize::from(!element.is_zero());
            match &mut digest {
                None => {
                    digest = Some(Digest {
                        count: elements.len(),
                        nonzero,
                        sum: element,
                        min: element,
                        min_at: at,
                        max: element,
                        max_at: at,
                    });
                }
                Some(digest) => {
                    digest.nonzero += nonzero;
                    digest.sum = digest.sum.plus(element);
                    if element.compare(digest.min).is_lt() {
                        (digest.min, digest.min_at) = (element, at);
                    }
                    if element.compare(digest.max).is_gt() {
                        (digest.max, digest.max_at) = (element, at);
                    }
                }
            }
        }
        digest.map_or(Values::Elements(elements), Values::Digest)
    }

    /// The differences `end - start` of each element, wrapping in the width of `datatype`; the
    /// shorter of the two gives the length.
    pub fn difference(datatype: Datatype, start: &[u8], end: &[u8], limit: usize) -> Values {
        Values::from_elements(datatype.differences(start, end), limit)
    }

    /// The sums of the elements of both; none for values without elements.
    pub fn plus(&self, other: &Values) -> Option<Values> {
        let (Values::Elements(one), Values::Elements(other)) = (self, other) else { return None };
        let sums = one.iter().zip(other).map(|(&one, &other)| one.plus(other));
        (one.len() == other.len()).then(|| Values::Elements(sums.collect()))
    }
}

struct ValuesVisitor;

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of numbers, a digest or a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Values, E> {
        Ok(Values::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<Values, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(elements)).map(Values::Elements)
    }

    fn visit_map<A: MapAccess<'de>>(self, digest: A) -> Result<Values, A::Error> {
        Digest::deserialize(MapAccessDeserializer::new(digest)).map(Values::Digest)
    }
}

// Written by hand, because serde's untagged enums parse into a buffer first.
impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValuesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(values: &[i128]) -> Vec<Number> {
        values.iter().copied().map(Number::Integer).collect()
    }

    #[test]
    fn a_long_vector_keeps_sum_and_extremes_and_where() {
        let values = Values::from_elements(integers(&[3, 0, 9, 0, 9]), 4);
        let Values::Digest(digest) = values else { panic!("not a digest") };
        assert_eq!(digest.count, 5);
        assert_eq!(digest.nonzero, 3);
        assert_eq!(digest.sum, Number::Integer(21));
        assert_eq!((digest.min, digest.min_at), (Number::Integer(0), 1));
        assert_eq!((digest.max, digest.max_at), (Number::Integer(9), 2));
    }

    #[test]
    fn a_vector_up_to_the_limit_is_kept_whole() {
        let elements = integers(&[1, 2, 3, 4]);
        assert_eq!(Values::from_elements(elements.clone(), 4), Values::Elements(elements));
        assert_eq!(Values::from_elements(integers(&[7]), 0), Values::Elements(integers(&[7])));
    }

    #[test]
    fn characters_become_text_up_to_the_first_nul() {
        let values = Values::from_bytes(Datatype::Char, "hiä\0x".as_bytes(), 2);
        assert_eq!(values, Values::Text("hiä".into()));
        let values = Values::from_bytes(Datatype::Char, b"no end", 2);
        assert_eq!(values, Values::Text("no end".into()));
    }

    #[test]
    fn the_three_forms_survive_json() {
        for values in [
            Values::Elements(vec![Number::Double(0.5), Number::Integer(-3)]),
            Values::from_elements(integers(&[1, 2]), 1),
            Values::Text("out.prof".into()),
        ] {
            let text = serde_json::to_string(&values).unwrap();
            assert_eq!(serde_json::from_str::<Values>(&text).unwrap(), values);
        }
    }
}
