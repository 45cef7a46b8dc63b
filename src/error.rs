//! What stopped the command: one line that says what to do.

use std::fmt::Display;
use std::io;
use std::path::Path;

use crate::words::printable;

/// `<what>: <why>; <what to do>`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// On one line: file names and file contents may hold anything.
    pub(crate) fn new(what: impl Display, why: impl Display, remedy: impl Display) -> Error {
        Error(printable(&format!("{what}: {why}; {remedy}")).into_owned())
    }

    /// A child process of this command has already reported what is wrong.
    pub(crate) fn said() -> Error {
        Error(String::new())
    }

    /// What is wrong, and what to do.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.0.rsplit_once("; ").unwrap_or((&self.0, ""))
    }

    pub(crate) fn is_said(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn io(path: &Path, error: &io::Error, remedy: impl Display) -> Error {
        Error::new(path.display(), reason(error), remedy)
    }
}

/// Why an operation failed, without the number that Rust adds.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}
