//! How do numbers, and names from elsewhere, read?

use std::borrow::Cow;

use wildmatch::WildMatch;

/// A place with this share of something stands for all of it.
pub(crate) const NEARLY_ALL: f64 = 0.9;

/// How much of something is in a place that has this share of it, for a sentence.
pub(crate) fn how_much_in(share: f64) -> &'static str {
    match share {
        share if share >= NEARLY_ALL => "in",
        share if share >= 0.5 => "mainly in",
        _ => "partly in",
    }
}

/// A count: all its digits below a thousand million, then in the unit that fits.
pub(crate) fn integer(number: i128) -> String {
    let size = number.unsigned_abs();
    if size >= LARGE_COUNT.into() {
        return scaled(number as f64);
    }
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(&size.to_string()))
}

/// Nobody counts the digits of such a number.
const LARGE_COUNT: u32 = 1_000_000_000;
const LARGE: f64 = LARGE_COUNT as f64;
/// Nor the tenths of this one.
const LARGE_WITH_TENTHS: f64 = 1e6;

/// `1.23 G`: three digits, of a number of a million or more.
fn scaled(number: f64) -> String {
    const UNITS: [&str; 6] = ["M", "G", "T", "P", "E", "Z"];
    let mut scaled = number / 1e6;
    let mut units = UNITS.into_iter();
    let mut unit = units.next();
    // What would be rounded to 1000 is 1 of the next unit.
    while scaled.abs() >= 999.5
        && let Some(next) = units.next()
    {
        (scaled, unit) = (scaled / 1e3, Some(next));
    }
    format!("{scaled:.*} {}", decimals(scaled), unit.unwrap_or_default())
}

/// As many as make three digits.
fn decimals(number: f64) -> usize {
    match number.abs() {
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    }
}

/// Digits in groups of three.
fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// As many digits as are meaningful to a reader.
pub(crate) fn double(double: f64) -> String {
    let size = double.abs();
    // Without decimals: the mean of equal counts is such a number.
    let is_whole = double.fract() == 0.0;
    if size >= LARGE || !is_whole && size >= LARGE_WITH_TENTHS {
        if size < 1e24 { scaled(double) } else { format!("{double:.3e}") }
    } else if !is_whole && size < 0.001 {
        format!("{double:.3e}")
    } else if !is_whole && size < 1.0 {
        format!("{double:.3}")
    } else if !is_whole && size < 100.0 {
        format!("{double:.2}")
    } else {
        let digits = if is_whole { format!("{size:.0}") } else { format!("{size:.1}") };
        let (whole, tenths) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
        let sign = if double < 0.0 { "-" } else { "" };
        format!("{sign}{}{tenths}", grouped(whole))
    }
}

/// A ratio or a number of processors, of which nobody needs more: `0.35`, `2.2`, `16`.
pub(crate) fn rough(number: f64) -> String {
    let unit = if number < 1.0 { 100.0 } else { 10.0 };
    // The shortest text that is this number.
    format!("{}", (number * unit).round() / unit)
}

/// The end of a word for this many things: nothing for one.
pub(crate) fn plural_of(number: f64) -> &'static str {
    if number > 0.99 && number < 1.01 { "" } else { "s" }
}

pub(crate) fn seconds(seconds: f64) -> String {
    let size = seconds.abs();
    let (scaled, unit) = match size {
        0.0 => return "0 s".into(),
        _ if size < 1e-6 => (seconds * 1e9, "ns"),
        _ if size < 1e-3 => (seconds * 1e6, "µs"),
        _ if size < 1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    format!("{scaled:.*} {unit}", decimals(scaled))
}

/// Bytes, in the unit that fits.
pub(crate) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut scaled = bytes;
    let mut unit = "B";
    for next in UNITS {
        if scaled.abs() < 1024.0 {
            break;
        }
        (scaled, unit) = (scaled / 1024.0, next);
    }
    let decimals = if unit == "B" { 0 } else { decimals(scaled) };
    format!("{scaled:.decimals$} {unit}")
}

/// An error as a share of its number, which it may exceed; of nothing there is no share.
pub(crate) fn relative_error(error: f64, number: f64) -> String {
    match (error / number).abs() {
        part if part.is_nan() || part.is_infinite() => "-".into(),
        part if part > 1.0 => ">100 %".into(),
        part => share(part),
    }
}

/// A fraction of a whole, as a percentage.
pub(crate) fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".into(),
        _ if percent.abs() < 0.01 => "<0.01 %".into(),
        _ if percent.abs() < 9.995 => format!("{percent:.2} %"),
        _ if percent.abs() < 99.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// Text from a file or a library, without terminal control sequences.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        text.replace(char::is_control, "?").into()
    } else {
        text.into()
    }
}

/// `0, 2-5, 9`: consecutive ranks as a range.
pub(crate) fn ranges(ranks: &[u32]) -> String {
    const RANGES_AT_MOST: usize = 8;
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => ranges.push((rank, rank)),
        }
    }
    let text = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let mut parts: Vec<String> = ranges.iter().take(RANGES_AT_MOST).map(text).collect();
    if ranges.len() > RANGES_AT_MOST {
        parts.push("...".into());
    }
    parts.join(", ")
}

/// Name and version, of what a library says of itself.
pub(crate) fn short_library(text: &str) -> String {
    let first = text.split(',').next().unwrap_or_default();
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a name is one of those between spaces, in which a `*` stands for any letters.
pub(crate) fn is_one_of(name: &str, patterns: &str) -> bool {
    patterns.split_whitespace().any(|pattern| {
        pattern == name || (pattern.contains('*') && WildMatch::new(pattern).matches(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(integer(1_234_567), "1,234,567");
        assert_eq!(integer(-1000), "-1,000");
        assert_eq!(integer(999), "999");
        assert_eq!(double(0.0), "0");
        assert_eq!(double(2.5), "2.50");
        assert_eq!(double(-12000.0), "-12,000");
        assert_eq!(double(-1234.56), "-1,234.6");
        assert_eq!(double(1e-9), "1.000e-9");
        assert_eq!(double(0.25), "0.250");
        assert_eq!(double(f64::NAN), "NaN");
        assert_eq!(double(f64::INFINITY), "inf");
    }

    #[test]
    fn a_rough_number_has_no_more_digits_than_it_needs() {
        let texts = [0.0, 0.5, 0.354, 0.999, 1.25, 2.2, 3.04, 16.0, 20.0, 127.96].map(rough);
        assert_eq!(texts, ["0", "0.5", "0.35", "1", "1.3", "2.2", "3", "16", "20", "128"]);
    }

    #[test]
    fn large_numbers_have_a_unit() {
        assert_eq!(integer(999_999_999), "999,999,999");
        assert_eq!(integer(-1_234_567_890), "-1.23 G");
        assert_eq!(integer(40_000_000_000), "40.0 G");
        assert_eq!(integer(999_999_999_999), "1.00 T");
        assert_eq!(double(2_000_000.0), "2,000,000");
        assert_eq!(double(492_050_318.6), "492 M");
        assert_eq!(double(999_999.96), "1,000,000.0");
        assert_eq!(double(2e15), "2.00 P");
        assert_eq!(double(1e30), "1.000e30");
    }

    #[test]
    fn times_carry_their_unit() {
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(12.5), "12.5 s");
        assert_eq!(seconds(0.002), "2.00 ms");
        assert_eq!(seconds(3.25e-7), "325 ns");
        assert_eq!(seconds(99.96e-6), "100 µs");
        assert_eq!(share(0.0), "0 %");
        assert_eq!(share(0.00001), "<0.01 %");
        assert_eq!(share(0.0512), "5.12 %");
        assert_eq!(share(0.512), "51.2 %");
        assert_eq!(share(1.0), "100 %");
    }

    #[test]
    fn ranks_are_shown_as_ranges() {
        assert_eq!(ranges(&[0, 2, 3, 4, 9]), "0, 2-4, 9");
        let even: Vec<u32> = (0..40).map(|rank| rank * 2).collect();
        assert!(ranges(&even).ends_with("14, ..."));
    }
}
