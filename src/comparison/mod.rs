//! How do runs differ, how do they grow, and how much of that is noise? Decides from summaries only: where they
//! come from and how the answer is shown are up to other rooms.

#![forbid(unsafe_code)]

pub(crate) mod check;
pub(crate) mod difference;
mod growth;
pub(crate) mod judge;
mod resources;
pub(crate) mod scaling;
mod variables;
