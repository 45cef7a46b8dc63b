//! The datatypes that a variable of `MPI_T` can have (MPI 4.1, 15.3.5), how a value of each is laid out in
//! memory, and how a difference of two values wraps.

use strum::VariantArray;

use crate::Number;
use crate::data::{Data, Serialize, derive};

/// A datatype by its name in the standard.
#[derive(Data!, Serialize, Copy, Eq, Hash, Ord, PartialOrd)]
#[allow(missing_docs)]
#[derive(VariantArray)]
pub enum Datatype {
    #[serde(rename = "MPI_INT")]
    Int,
    #[serde(rename = "MPI_UNSIGNED")]
    Unsigned,
    #[serde(rename = "MPI_LONG")]
    Long,
    #[serde(rename = "MPI_UNSIGNED_LONG")]
    UnsignedLong,
    #[serde(rename = "MPI_LONG_LONG")]
    LongLong,
    #[serde(rename = "MPI_UNSIGNED_LONG_LONG")]
    UnsignedLongLong,
    #[serde(rename = "MPI_COUNT")]
    Count,
    #[serde(rename = "MPI_CHAR")]
    Char,
    #[serde(rename = "MPI_DOUBLE")]
    Double,
    #[serde(rename = "MPI_C_BOOL")]
    CBool,
    #[serde(rename = "MPI_INT32_T")]
    Int32,
    #[serde(rename = "MPI_UINT32_T")]
    Uint32,
    #[serde(rename = "MPI_INT64_T")]
    Int64,
    #[serde(rename = "MPI_UINT64_T")]
    Uint64,
}

/// How the bytes of a value are read. `long` is 8 bytes on every platform that gyan runs on.
#[derive(Clone, Copy)]
enum Layout {
    I8,
    I32,
    U32,
    I64,
    U64,
    F64,
}

impl Datatype {
    /// Every datatype.
    pub const ALL: [Datatype; Datatype::VARIANTS.len()] =
        *Datatype::VARIANTS.first_chunk().unwrap();

    fn layout(self) -> Layout {
        match self {
            Datatype::Char | Datatype::CBool => Layout::I8,
            Datatype::Int | Datatype::Int32 => Layout::I32,
            Datatype::Unsigned | Datatype::Uint32 => Layout::U32,
            Datatype::Long | Datatype::LongLong | Datatype::Count | Datatype::Int64 => Layout::I64,
            Datatype::UnsignedLong | Datatype::UnsignedLongLong | Datatype::Uint64 => Layout::U64,
            Datatype::Double => Layout::F64,
        }
    }

    /// The size of one value in bytes.
    pub fn size(self) -> usize {
        match self.layout() {
            Layout::I8 => 1,
            Layout::I32 | Layout::U32 => 4,
            Layout::I64 | Layout::U64 | Layout::F64 => 8,
        }
    }

    /// The value at the start of `bytes`, in the machine's byte order; `None` when there are fewer
    /// than [`size`](Self::size) of them.
    #[inline]
    pub fn decode(self, bytes: &[u8]) -> Option<Number> {
        fn head<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
            bytes.first_chunk().copied()
        }
        Some(match self.layout() {
            Layout::I8 => Number::Integer(i8::from_ne_bytes(head(bytes)?).into()),
            Layout::I32 => Number::Integer(i32::from_ne_bytes(head(bytes)?).into()),
            Layout::U32 => Number::Integer(u32::from_ne_bytes(head(bytes)?).into()),
            Layout::I64 => Number::Integer(i64::from_ne_bytes(head(bytes)?).into()),
            Layout::U64 => Number::Integer(u64::from_ne_bytes(head(bytes)?).into()),
            Layout::F64 => Number::Double(f64::from_ne_bytes(head(bytes)?)),
        })
    }

    /// Every value in `bytes`; an incomplete one at the end is left out.
    pub fn decode_all(self, bytes: &[u8]) -> Vec<Number> {
        bytes.chunks_exact(self.size()).filter_map(|value| self.decode(value)).collect()
    }

    /// The [`difference`](Self::difference) of each value in `start` and `end`; the shorter of the two
    /// gives the length.
    pub fn differences(self, start: &[u8], end: &[u8]) -> Vec<Number> {
        let pairs = self.decode_all(start).into_iter().zip(self.decode_all(end));
        pairs.map(|(start, end)| self.difference(start, end)).collect()
    }

    /// `end - start`, wrapping in the width of this datatype: a counter that overflowed once in
    /// between still gives the right difference.
    pub fn difference(self, start: Number, end: Number) -> Number {
        let (Number::Integer(start), Number::Integer(end)) = (start, end) else {
            return Number::Double(end.as_f64() - start.as_f64());
        };
        let difference = end.wrapping_sub(start);
        let (bits, signed) = match self.layout() {
            Layout::I8 => (8, true),
            Layout::I32 => (32, true),
            Layout::U32 => (32, false),
            Layout::I64 => (64, true),
            // Two integers never get here with a double.
            Layout::U64 | Layout::F64 => (64, false),
        };
        let modulus = 1_i128 << bits;
        let wrapped = difference.rem_euclid(modulus);
        Number::Integer(if signed && wrapped >= modulus / 2 { wrapped - modulus } else { wrapped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_wraps_in_the_width_of_its_datatype() {
        let integer = |value: i128| Number::Integer(value);
        let cases = [
            (Datatype::Unsigned, i128::from(u32::MAX), 4, 5),
            (Datatype::UnsignedLong, i128::from(u64::MAX), 4, 5),
            (Datatype::Int, i128::from(i32::MAX), i128::from(i32::MIN), 1),
            (Datatype::Int, 5, 3, -2),
            (Datatype::UnsignedLongLong, 0, i128::from(u64::MAX), i128::from(u64::MAX)),
            (Datatype::Count, 7, 7, 0),
        ];
        for (datatype, start, end, expected) in cases {
            assert_eq!(
                datatype.difference(integer(start), integer(end)),
                integer(expected),
                "{datatype:?}"
            );
        }
    }

    #[test]
    fn a_double_never_passes_through_an_integer() {
        let value = Datatype::Double.decode(&2.5_f64.to_ne_bytes()).unwrap();
        assert_eq!(value, Number::Double(2.5));
        assert_eq!(
            Datatype::Double.difference(Number::Double(-1.795e9), Number::Double(-1.794_5e9)),
            Number::Double(-1.794_5e9 + 1.795e9)
        );
    }

    #[test]
    fn every_datatype_decodes_its_own_width() {
        assert_eq!(Datatype::Unsigned.decode(&[0xff; 4]), Some(Number::Integer(u32::MAX.into())));
        assert_eq!(Datatype::Int.decode(&[0xff; 8]), Some(Number::Integer(-1)));
        assert_eq!(Datatype::Uint64.decode(&[0xff; 8]), Some(Number::Integer(u64::MAX.into())));
        assert_eq!(Datatype::Uint64.decode(&[0xff; 7]), None);
    }
}
