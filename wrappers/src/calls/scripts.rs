//! Lines of scripts as addresses, so that they can stand on a stack: the lines of Python that were seen.

use std::fmt::Write as _;
use std::sync::Mutex;

use crate::sys::{alloc, python};

const LINES_AT_MOST: usize = 512;
/// Lines have addresses from here on, where no program has any: the kernel is there.
const BASE: usize = 1 << (usize::BITS - 1);

/// As `perf` names functions of Python, with the line: `py::FUNCTION:FILE:LINE`.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The line of a script that this thread is at; none if that is not known, or another thread asks at this moment.
pub(crate) fn address() -> Option<usize> {
    if alloc::is_short() {
        return None;
    }
    let python::Line { function, file, number } = python::line()?;
    let mut name = String::new();
    write!(name, "py::{}:{}:{number}", function.as_str(), file.as_str()).ok()?;
    let mut lines = LINES.try_lock().ok()?;
    let known = lines.iter().position(|line| *line == name);
    let at = known.or_else(|| {
        (lines.len() < LINES_AT_MOST).then(|| {
            lines.push(name);
            lines.len() - 1
        })
    });
    Some(BASE + at?)
}

/// The name of the line with this address.
pub(crate) fn name(address: usize) -> Option<String> {
    let at = address.checked_sub(BASE)?;
    LINES.try_lock().ok()?.get(at).cloned()
}
