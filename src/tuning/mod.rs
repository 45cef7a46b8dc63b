//! Which settings make a program faster, and how sure is that? Decides what is run next, and what the runs so far say: from
//! numbers only. Who runs them, and where settings come from, are the business of other rooms.

#![forbid(unsafe_code)]

mod proofs;
mod race;
mod values;
mod verdicts;

pub(crate) use proofs::{Reading, took};
pub(crate) use race::{CONFIRMING, Race, Stage, Step};
pub(crate) use values::sweep;
pub(crate) use verdicts::{Outcome, Told, noise, together, verdicts};

use gyan_results::{Assignment, Figure};

/// A setting to be tried, or several that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) settings: Vec<Assignment>,
    /// The finding that it is for; none when the user named it.
    pub(crate) nominated_by: Option<String>,
    /// What moves when it does anything.
    pub(crate) witness: Option<Figure>,
    /// What can go wrong with it.
    pub(crate) hazard: Option<String>,
}

/// `NAME=VALUE`, several with a blank between them; `default` for none.
pub(crate) fn label(settings: &[Assignment]) -> String {
    if settings.is_empty() {
        return "default".into();
    }
    let each = settings.iter().map(|setting| format!("{}={}", setting.name, setting.value));
    each.collect::<Vec<_>>().join(" ")
}
