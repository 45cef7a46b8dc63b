//! JSON as gyan writes it: without spaces, strings without escapes. A position in it, and what is there. This
//! module does not handle text that is written in any other way.

use serde::de::DeserializeOwned;
use serde_json::Deserializer;

use crate::Number;

/// What is left of a text.
pub(super) struct Text<'a> {
    rest: &'a str,
}

/// The powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// Any number with this many digits fits into 64 bits.
const DIGITS_AT_MOST: usize = 19;
/// Integers up to here are doubles too.
const EXACT: u64 = 1 << 53;

impl<'a> Text<'a> {
    pub(super) fn new(text: &'a str) -> Text<'a> {
        Text { rest: text }
    }

    /// Steps over `expected` if it is here.
    // At each call site the length of `expected` is known, so it is compared inline.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The same for text that must be there.
    // At each call site the length of `expected` is known, so it is compared inline.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn expect(&mut self, expected: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// Whether a list begins here.
    pub(super) fn is_list(&self) -> bool {
        self.rest.starts_with('[')
    }

    /// Whether only the line end is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.bytes().all(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r'))
    }

    /// The string that is here; none when it has escapes, or characters that JSON forbids.
    #[inline]
    pub(super) fn string(&mut self) -> Option<&'a str> {
        let text = self.rest.strip_prefix('"')?;
        let (string, rest) =
            text.split_at_checked(text.bytes().position(|byte| !is_plain(byte))?)?;
        self.rest = rest.strip_prefix('"')?;
        Some(string)
    }

    /// Steps over `string` if it is here, without escapes. Returns whether it was.
    #[inline]
    pub(super) fn eat_string(&mut self, string: &str) -> bool {
        let rest = self.rest.strip_prefix('"').and_then(|rest| rest.strip_prefix(string));
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix('"')) else { return false };
        // An escape reads as something other than its text. All characters are examined, without stopping at
        // the first special one, so that the compiler can compare many at a time.
        if !string.bytes().fold(true, |are_plain, byte| are_plain & is_plain(byte)) {
            return false;
        }
        self.rest = rest;
        true
    }

    /// The one-digit number that is here; most numbers have one digit.
    #[inline]
    fn digit(&mut self) -> Option<u8> {
        let [digit @ b'0'..=b'9', b',' | b']' | b'}', ..] = self.rest.as_bytes() else {
            return None;
        };
        self.rest = self.rest.get(1..)?;
        Some(digit - b'0')
    }

    /// The unsigned integer that is here; none if it is not one, or has more digits than fit into 64 bits.
    #[inline]
    pub(super) fn integer(&mut self) -> Option<u64> {
        if let Some(digit) = self.digit() {
            return Some(digit.into());
        }
        let (integer, length) = digits(0, self.rest.as_bytes());
        let is_whole = !matches!(self.rest.as_bytes().get(length), Some(b'.' | b'e' | b'E'));
        let is_written_so = is_written_so(self.rest.as_bytes(), length);
        self.rest = self.rest.get(length..).filter(|_| is_whole && is_written_so)?;
        Some(integer)
    }

    /// The number that is here, as `serde_json` reads it; none for what is rare: more digits than 64
    /// bits hold, the integer -0, doubles out of range, strings such as "NaN".
    #[inline]
    pub(super) fn number(&mut self) -> Option<Number> {
        if let Some(digit) = self.digit() {
            return Some(Number::Integer(digit.into()));
        }
        let (is_negative, text) = match self.rest.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, self.rest),
        };
        let (number, integers) = digits(0, text.as_bytes());
        if !is_written_so(text.as_bytes(), integers) {
            return None;
        }
        let rest = text.get(integers..)?;
        if !rest.starts_with(['.', 'e', 'E']) {
            // serde_json makes doubles of these.
            if is_negative && (number == 0 || number > 1 << 63) {
                return None;
            }
            self.rest = rest;
            let integer = i128::from(number);
            return Some(Number::Integer(if is_negative { -integer } else { integer }));
        }
        let after = rest.strip_prefix('.').unwrap_or(rest);
        let (number, fraction) = digits(number, after.as_bytes());
        if fraction == 0 && after.len() < rest.len() {
            return None;
        }
        let end = if after.len() < rest.len() { after.get(fraction..)? } else { rest };
        // With few digits both numbers are exact, so their quotient is rounded only once.
        if !end.starts_with(['e', 'E']) && integers + fraction <= DIGITS_AT_MOST && number <= EXACT
        {
            self.rest = end;
            // Tenths that are 0, as in all doubles that are whole, need no division.
            let double = match after.as_bytes() {
                [b'0', ..] if fraction == 1 => (number / 10) as f64,
                _ => number as f64 / POWERS.get(fraction)?,
            };
            return Some(Number::Double(if is_negative { -double } else { double }));
        }
        self.double(end)
    }

    /// The number up to here, and the exponent that may follow.
    #[cold]
    fn double(&mut self, exponent: &'a str) -> Option<Number> {
        let mut end = exponent;
        if let Some(digits_and_more) = exponent.strip_prefix(['e', 'E']) {
            let unsigned = digits_and_more.strip_prefix(['+', '-']).unwrap_or(digits_and_more);
            end = unsigned.trim_start_matches(|c: char| c.is_ascii_digit());
            if end.len() == unsigned.len() {
                return None;
            }
        }
        let double: f64 = self.rest.get(..self.rest.len() - end.len())?.parse().ok()?;
        if !double.is_finite() {
            return None;
        }
        self.rest = end;
        Some(Number::Double(double))
    }

    /// Whatever is here, read by serde.
    #[cold]
    pub(super) fn value<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut values = Deserializer::from_str(self.rest).into_iter();
        let value = values.next()?.ok()?;
        self.rest = self.rest.get(values.byte_offset()..)?;
        Some(value)
    }
}

/// Whether a byte stands for itself in a string of JSON.
#[inline]
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// The number made of the digits of `before` and those at the beginning of `text`, if all of them fit, and how
/// many of them are in `text`.
#[inline]
fn digits(before: u64, text: &[u8]) -> (u64, usize) {
    let (mut number, mut length) = (before, 0);
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        length += 1;
    }
    (number, length)
}

/// Whether this many digits form a JSON integer that fits into 64 bits.
#[inline]
fn is_written_so(text: &[u8], digits: usize) -> bool {
    digits == 1 || (digits > 1 && digits <= DIGITS_AT_MOST && text.first() != Some(&b'0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn as_serde_reads<T: DeserializeOwned>(text: &str) -> Option<T> {
        Deserializer::from_str(text).into_iter().next()?.ok()
    }

    /// To the last bit: -0 is equal to 0.
    fn bits(number: Number) -> (Option<i128>, u64) {
        match number {
            Number::Integer(integer) => (Some(integer), 0),
            Number::Double(double) => (None, double.to_bits()),
        }
    }

    #[test]
    fn numbers_of_profiles_are_read_here() {
        for number in ["0", "7", "2097152", "0.0", "-3", "12.5", "2.5e-7", "1e300", "-0.0"] {
            let text = format!("{number},");
            let read = Text::new(&text).number().unwrap();
            assert_eq!(bits(read), bits(as_serde_reads(number).unwrap()), "{number}");
        }
        for other in ["-0", "01", "1.", ".5", "1e", "1e999", "-", "", "\"NaN\"", "1e+"] {
            assert!(Text::new(other).number().is_none(), "{other}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_as_a_number_is_what_serde_reads(
            number in "-?[0-9]{1,21}(\\.[0-9]{0,20})?([eE][+-]?[0-9]{0,3})?|-?[0-9]{1,4}\\.[0-9]{1,4}",
        ) {
            let whole = format!("{number},");
            let mut text = Text::new(&whole);
            if let Some(read) = text.number() {
                prop_assert_eq!(text.rest, ",");
                prop_assert_eq!(bits(read), bits(as_serde_reads(&number).unwrap()));
            } else {
                prop_assert_eq!(text.rest, whole.as_str());
            }
            let mut text = Text::new(&whole);
            if let Some(read) = text.integer() {
                prop_assert_eq!(text.rest, ",");
                prop_assert_eq!(Some(read), as_serde_reads(&number));
            }
        }

        #[test]
        fn what_is_read_as_a_double_is_what_was_written(double in any::<f64>()) {
            prop_assume!(double.is_finite());
            let text = serde_json::to_string(&double).unwrap();
            prop_assert_eq!(Text::new(&text).number().map(bits), Some((None, double.to_bits())));
        }

        #[test]
        fn what_is_read_as_a_string_is_what_serde_reads(
            text in "\"[ab\\\\\"nu0\u{e4}\u{1}]{0,6}\"[\",]{0,2}",
            before in "[ab\\\\\"nu0\u{e4}\u{1}\n]{0,6}",
        ) {
            let as_serde = as_serde_reads::<String>(&text);
            let mut whole = Text::new(&text);
            if let Some(string) = whole.string() {
                prop_assert_eq!(Some(string), as_serde.as_deref());
            }
            for before in [&before, as_serde.as_ref().unwrap_or(&before)] {
                if Text::new(&text).eat_string(before) {
                    prop_assert_eq!(Some(before), as_serde.as_ref());
                }
            }
        }
    }
}
