//! JSON as gyan writes it: without spaces, strings without escapes. A position in it, and what stands
//! there. Whatever is written in another way is none of this module's business.

use serde::de::DeserializeOwned;
use serde_json::Deserializer;

use crate::Number;

/// What is left of a text.
pub(super) struct Text<'a> {
    rest: &'a [u8],
}

/// The powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// So many digits fit into 64 bits, whichever they are.
const DIGITS_AT_MOST: usize = 19;
/// Integers up to here are doubles too.
const EXACT: u64 = 1 << 53;

impl<'a> Text<'a> {
    /// `text` has to be UTF-8.
    pub(super) fn new(text: &'a str) -> Text<'a> {
        Text { rest: text.as_bytes() }
    }

    /// Steps over `expected`, when that is what stands here.
    #[inline]
    pub(super) fn eat(&mut self, expected: &[u8]) -> bool {
        if let Some(rest) = self.rest.strip_prefix(expected) {
            self.rest = rest;
            return true;
        }
        false
    }

    /// The same for one that has to be there.
    #[inline]
    pub(super) fn expect(&mut self, expected: &[u8]) -> Option<()> {
        self.eat(expected).then_some(())
    }

    /// Whether a list begins here.
    pub(super) fn is_list(&self) -> bool {
        self.rest.starts_with(b"[")
    }

    /// Whether nothing but the end of the line is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.iter().all(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r'))
    }

    /// The string that stands here; none when it has escapes, or characters that JSON forbids.
    #[inline]
    pub(super) fn string(&mut self) -> Option<&'a str> {
        let text = self.rest.strip_prefix(b"\"")?;
        let end = text.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
        let (string, rest) = text.split_at_checked(end)?;
        self.rest = rest.strip_prefix(b"\"")?;
        std::str::from_utf8(string).ok()
    }

    /// Whether `string` stands here, without an escape in it: then it is stepped over.
    #[inline]
    pub(super) fn eat_string(&mut self, string: &str) -> bool {
        let rest = self.rest.strip_prefix(b"\"");
        let rest = rest.and_then(|rest| rest.strip_prefix(string.as_bytes()));
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix(b"\"")) else { return false };
        // What was read from an escape is not what stands in the text.
        // All of them, not until the first: the compiler compares many at a time.
        let is_plain = |byte| byte >= b' ' && byte != b'"' && byte != b'\\';
        if !string.bytes().fold(true, |are_plain, byte| are_plain & is_plain(byte)) {
            return false;
        }
        self.rest = rest;
        true
    }

    /// The number that stands here, as serde_json reads it; none for what is rare: more digits than 64
    /// bits hold, the integer -0, doubles out of range, strings such as "NaN".
    #[inline]
    pub(super) fn number(&mut self) -> Option<Number> {
        let text = self.rest;
        let is_negative = text.first() == Some(&b'-');
        let mut at = usize::from(is_negative);
        let mut digits = 0;
        let begin = at;
        while let Some(digit) = digit(text, at) {
            digits = u64::wrapping_add(u64::wrapping_mul(digits, 10), digit);
            at += 1;
        }
        let integers = at - begin;
        if integers == 0
            || integers > DIGITS_AT_MOST
            || (integers > 1 && text.get(begin) == Some(&b'0'))
        {
            return None;
        }
        if !matches!(text.get(at), Some(b'.' | b'e' | b'E')) {
            self.rest = text.get(at..)?;
            let integer = i128::from(digits);
            if is_negative && integer == 0 {
                return None;
            }
            // serde_json makes a double of what is below the smallest integer of 64 bits.
            if is_negative && integer > 1 << 63 {
                return None;
            }
            return Some(Number::Integer(if is_negative { -integer } else { integer }));
        }
        let mut fraction = 0;
        if text.get(at) == Some(&b'.') {
            at += 1;
            let begin = at;
            while let Some(digit) = digit(text, at) {
                digits = u64::wrapping_add(u64::wrapping_mul(digits, 10), digit);
                at += 1;
            }
            fraction = at - begin;
            if fraction == 0 {
                return None;
            }
        }
        let has_exponent = matches!(text.get(at), Some(b'e' | b'E'));
        // With few digits both numbers are exact, and so their quotient is rounded once.
        if !has_exponent && integers + fraction <= DIGITS_AT_MOST && digits <= EXACT {
            self.rest = text.get(at..)?;
            let double = digits as f64 / POWERS.get(fraction)?;
            return Some(Number::Double(if is_negative { -double } else { double }));
        }
        if has_exponent {
            at += 1;
            at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
            let begin = at;
            while digit(text, at).is_some() {
                at += 1;
            }
            if at == begin {
                return None;
            }
        }
        let (number, rest) = text.split_at_checked(at)?;
        let double: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        self.rest = rest;
        double.is_finite().then_some(Number::Double(double))
    }

    /// Whatever stands here, read by serde.
    pub(super) fn value<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut values = Deserializer::from_slice(self.rest).into_iter();
        let value = values.next()?.ok()?;
        self.rest = self.rest.get(values.byte_offset()..)?;
        Some(value)
    }
}

#[inline]
fn digit(text: &[u8], at: usize) -> Option<u64> {
    text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10).map(u64::from)
}
