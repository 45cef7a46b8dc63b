//! How does what we know leave the process?
//!
//! Does not find anything out: it is given a profile.

pub(crate) mod job;
pub(crate) mod live;
pub(crate) mod output;
pub(crate) mod reduce;
