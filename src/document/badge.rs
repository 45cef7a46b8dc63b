//! The answer in a few words, for a badge.

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Badge {
    pub(crate) label: &'static str,
    pub(crate) message: String,
    pub(crate) mood: Mood,
}

/// Whether it is good news.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mood {
    Good,
    Bad,
    /// Too little is known.
    Unknown,
}
