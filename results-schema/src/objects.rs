//! The objects of MPI that the program made: on one rank and over ranks.

use crate::Statistic;
use crate::data::{Data, Serialize, derive};

/// Objects of MPI of one kind that came back from calls of a rank, and those that it freed.
#[derive(Data!, Serialize, Default, Eq)]
pub struct ObjectsMade {
    /// `communicator`, `window` or `file`.
    pub kind: String,
    /// Handles that are not null.
    pub made: u64,
    /// Freed, closed or disconnected.
    pub freed: u64,
}

/// Objects of MPI of one kind over the ranks that made some.
#[derive(Data!, Serialize)]
pub struct ObjectsMadeSummary {
    /// `communicator`, `window` or `file`.
    pub kind: String,
    /// Those that came back from calls.
    pub made: Statistic,
    /// Those that were freed.
    pub freed: Statistic,
    /// Those that a rank made and did not free; below 0 where it freed more.
    pub left: Statistic,
}
