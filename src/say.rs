//! Messages on a terminal: always on one line, whatever the text contains, and no more lines of one kind than
//! anybody reads.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

/// More lines of one kind than this are not printed.
const LINES_AT_MOST: usize = 8;

/// Text from a file or a library, without terminal control sequences.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        text.replace(char::is_control, "?").into()
    } else {
        text.into()
    }
}

/// A line of gyan's on stderr.
pub(crate) fn warn(line: impl Display) {
    tell(format_args!("gyan: {}", printable(&line.to_string())));
}

/// Lines on stderr. A stderr that is closed or full leaves nobody to tell.
pub(crate) fn tell(text: impl Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints the first of many lines to stderr, then what `more` says about the number of others.
pub(crate) fn warn_of<L: Display, M: Display>(
    lines: impl IntoIterator<Item = L, IntoIter: ExactSizeIterator>,
    more: impl FnOnce(usize) -> M,
) {
    let lines = lines.into_iter();
    let others = lines.len().saturating_sub(LINES_AT_MOST);
    lines.take(LINES_AT_MOST).for_each(warn);
    if others > 0 {
        warn(more(others));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_shown_as_ranges() {
        assert_eq!(ranges(&[0, 2, 3, 4, 9]), "0, 2-4, 9");
        let even: Vec<u32> = (0..40).map(|rank| rank * 2).collect();
        assert!(ranges(&even).ends_with("14, ..."));
    }
}
