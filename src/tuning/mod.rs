//! Which settings make a program faster, and how sure is that? Decides from numbers only what runs next and what the runs so
//! far say. Other rooms start the runs and know where settings come from.

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

/// A setting to try, or several that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) settings: Vec<Assignment>,
    /// The finding that nominated it; none when the user named it.
    pub(crate) nominated_by: Option<String>,
    /// The number that moves if the setting does anything.
    pub(crate) witness: Option<Figure>,
    /// What can go wrong with it.
    pub(crate) hazard: Option<String>,
}

/// `NAME=VALUE`, separated by blanks; `default` for no setting.
pub(crate) fn label(settings: &[Assignment]) -> String {
    if settings.is_empty() {
        return "default".into();
    }
    let each = settings.iter().map(|setting| format!("{}={}", setting.name, setting.value));
    each.collect::<Vec<_>>().join(" ")
}
