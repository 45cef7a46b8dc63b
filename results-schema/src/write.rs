//! Writing the two files. The caller opens them and gives them their final names.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use crate::{Overhead, RankProfile, Summary};

/// The name of a rank's file inside a run directory.
pub fn rank_file_name(rank: u32) -> String {
    format!("rank-{rank:06}.json")
}

/// The rank in a file name; none when it is not the name of a rank profile.
pub fn rank_of_file_name(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("rank-")?.strip_suffix(".json")?;
    let rank = digits.parse().ok()?;
    (rank_file_name(rank) == name).then_some(rank)
}

/// Writes a rank profile on one line. `measure` fills in the overhead after all else is written, so
/// that it includes the cost of writing.
///
/// # Errors
/// The errors of `out`.
pub fn write_rank(
    out: &mut impl Write,
    profile: &mut RankProfile,
    measure: impl FnOnce(&mut Overhead),
) -> io::Result<()> {
    // `overhead` is the last key of the profile, so its text and the closing brace are the end.
    let text = serde_json::to_vec(profile)?;
    let tail = serde_json::to_vec(&profile.overhead)?.len() + 1;
    let body = text.len().saturating_sub(tail);
    out.write_all(text.get(..body).unwrap_or(&text))?;
    measure(&mut profile.overhead);
    let mut tail = serde_json::to_vec(&profile.overhead)?;
    tail.extend_from_slice(b"}\n");
    out.write_all(&tail)
}

/// Writes a summary, indented for reading.
///
/// # Errors
/// The errors of `out`.
pub fn write_summary(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    write_json(out, summary)
}

/// Writes JSON that may be shown on a terminal, indented for reading.
///
/// # Errors
/// The errors of `out`.
pub fn write_json(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    out.write_all(without_controls(text).as_bytes())?;
    out.write_all(b"\n")
}

/// JSON that may be shown on a terminal, on one line.
///
/// # Errors
/// A value that JSON has no form for.
pub fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(without_controls)
}

/// Escapes the control characters that JSON allows in a string but a terminal obeys: DEL, and U+0080 to U+009F.
/// A string never contains a line break, which is already an escape.
fn without_controls(text: String) -> String {
    let is_raw = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_raw) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_raw(c) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_those_of_six_digits() {
        assert_eq!(rank_file_name(3), "rank-000003.json");
        assert_eq!(rank_file_name(1_234_567), "rank-1234567.json");
        for rank in [0, 3, 999_999, 1_000_000] {
            assert_eq!(rank_of_file_name(&rank_file_name(rank)), Some(rank));
        }
        for name in ["rank-3.json", "rank-000003.json.tmp", "summary.json", "rank-0000003.json"] {
            assert_eq!(rank_of_file_name(name), None, "{name}");
        }
    }

    #[test]
    fn names_keep_their_control_characters_as_escapes() {
        let name = "a\u{1b}[2J\u{7f}\u{9b}\nb";
        let mut pretty = Vec::new();
        write_json(&mut pretty, &[name]).unwrap();
        for text in [String::from_utf8(pretty).unwrap(), json_line(&[name]).unwrap()] {
            assert!(!text.replace('\n', "").contains(char::is_control), "{text:?}");
            assert_eq!(serde_json::from_str::<[String; 1]>(&text).unwrap(), [name]);
        }
    }

    #[test]
    fn the_overhead_is_filled_in_last() {
        let mut profile: RankProfile =
            serde_json::from_str(include_str!("../examples/rank.json")).unwrap();
        let mut out = Vec::new();
        write_rank(&mut out, &mut profile, |overhead| overhead.finalize_s = 0.125).unwrap();
        let read: RankProfile = serde_json::from_slice(&out).unwrap();
        assert!((read.overhead.finalize_s - 0.125).abs() < 1e-12);
        assert_eq!(read, profile);
    }
}
