//! Messages on a terminal: always on one line, whatever the text contains, and no more lines of one kind than
//! anybody reads.

use std::fmt::Display;
use std::io::Write;

use crate::words::printable;

/// More lines of one kind than this are not printed.
const LINES_AT_MOST: usize = 8;

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
