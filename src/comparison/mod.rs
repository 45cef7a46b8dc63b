//! How do runs differ, how do they grow, and what of that is noise? Decides from summaries only: where they come from and
//! how it is shown are the business of other rooms.

#![forbid(unsafe_code)]

pub(crate) mod difference;
pub(crate) mod statistics;
