//! A value of a performance variable: an integer stays an integer, a double stays a double.

use std::cmp::Ordering;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// An exact integer or a double.
///
/// In JSON a number; a double that JSON cannot write is the string `"NaN"`, `"Infinity"` or
/// `"-Infinity"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Any integer datatype of `MPI_T`; wide enough for the sum of 2^63 of them.
    Integer(i128),
    /// `MPI_DOUBLE`.
    Double(f64),
}

impl From<u64> for Number {
    fn from(number: u64) -> Number {
        Number::Integer(number.into())
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Number {
        Number::Double(number)
    }
}

impl Number {
    /// The nearest double.
    #[inline]
    pub fn as_f64(self) -> f64 {
        match self {
            // The processor converts 64 bits.
            Number::Integer(integer) => match i64::try_from(integer) {
                Ok(integer) => integer as f64,
                Err(_) => integer as f64,
            },
            Number::Double(double) => double,
        }
    }

    /// Whether this is neither NaN nor an infinity.
    pub fn is_finite(self) -> bool {
        match self {
            Number::Integer(_) => true,
            Number::Double(double) => double.is_finite(),
        }
    }

    /// Whether this is 0 (either zero of a double).
    pub fn is_zero(self) -> bool {
        match self {
            Number::Integer(integer) => integer == 0,
            Number::Double(double) => double == 0.0,
        }
    }

    /// The sum: exact between integers, otherwise a double.
    #[inline]
    #[must_use]
    pub fn plus(self, other: Number) -> Number {
        if let (Number::Integer(a), Number::Integer(b)) = (self, other)
            && let Some(sum) = a.checked_add(b)
        {
            return Number::Integer(sum);
        }
        Number::Double(self.as_f64() + other.as_f64())
    }

    /// The order of the values, exact between integers and doubles too. NaN is greater than everything.
    #[inline]
    pub fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => a.cmp(&b),
            (Number::Double(a), Number::Double(b)) => {
                a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
            (Number::Integer(a), Number::Double(b)) => compare_exactly(a, b),
            (Number::Double(a), Number::Integer(b)) => compare_exactly(b, a).reverse(),
        }
    }
}

/// An integer may differ from a double that its nearest double equals.
fn compare_exactly(integer: i128, double: f64) -> Ordering {
    if double.is_nan() {
        return Ordering::Less;
    }
    // A value that does not fit becomes the nearest that does.
    #[allow(clippy::cast_possible_truncation)]
    let whole = double.trunc() as i128;
    let fraction = double - double.trunc();
    integer.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&fraction).unwrap_or(Ordering::Equal))
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(integer) => integer.fmt(f),
            Number::Double(double) => double.fmt(f),
        }
    }
}

/// A number in formats other than JSON: its kind, and all of its bits.
#[derive(serde::Deserialize, serde::Serialize)]
#[serde(remote = "Number")]
enum Exact {
    Integer(i128),
    Double(f64),
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return Exact::serialize(self, serializer);
        }
        match *self {
            Number::Integer(integer) => {
                if let Ok(signed) = i64::try_from(integer) {
                    serializer.serialize_i64(signed)
                } else if let Ok(unsigned) = u64::try_from(integer) {
                    serializer.serialize_u64(unsigned)
                } else {
                    serializer.serialize_f64(integer as f64)
                }
            }
            Number::Double(double) if double.is_finite() => serializer.serialize_f64(double),
            Number::Double(double) if double.is_nan() => serializer.serialize_str("NaN"),
            Number::Double(double) if double > 0.0 => serializer.serialize_str("Infinity"),
            Number::Double(_) => serializer.serialize_str("-Infinity"),
        }
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number::Integer(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Number, E> {
        Ok(Number::Integer(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Number, E> {
        Ok(Number::Double(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Number, E> {
        match value {
            "NaN" => Ok(Number::Double(f64::NAN)),
            "Infinity" => Ok(Number::Double(f64::INFINITY)),
            "-Infinity" => Ok(Number::Double(f64::NEG_INFINITY)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(value), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Exact::deserialize(deserializer);
        }
        deserializer.deserialize_any(NumberVisitor)
    }
}

/// A double in the files that JSON may be unable to write, such as a mean of numbers whose sum exceeds the
/// largest double: `#[serde(with = "number::double")]` writes it as a [`Number`].
pub(crate) mod double {
    use super::{Deserialize, Deserializer, Number, Serialize, Serializer};

    // serde passes a reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub(crate) fn serialize<S: Serializer>(double: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Number::Double(*double).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Number::deserialize(deserializer).map(Number::as_f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(number: Number) -> Number {
        serde_json::from_str(&serde_json::to_string(&number).unwrap()).unwrap()
    }

    #[test]
    fn integers_of_64_bits_stay_exact() {
        for value in [i128::from(i64::MIN), -1, 0, (1 << 53) + 1, i128::from(u64::MAX)] {
            assert_eq!(round_trip(Number::Integer(value)), Number::Integer(value));
        }
    }

    #[test]
    fn doubles_stay_doubles() {
        for value in [0.0, 1.0, -1.795e9, 1e-300, f64::MAX, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(round_trip(Number::Double(value)), Number::Double(value));
        }
        assert!(matches!(round_trip(Number::Double(f64::NAN)), Number::Double(d) if d.is_nan()));
    }

    #[test]
    fn integer_sums_beyond_64_bits_are_exact() {
        let max = Number::Integer(u64::MAX.into());
        assert_eq!(max.plus(max), Number::Integer(2 * i128::from(u64::MAX)));
    }

    #[test]
    fn other_strings_are_no_numbers() {
        assert!(serde_json::from_str::<Number>("\"12\"").is_err());
    }
}
