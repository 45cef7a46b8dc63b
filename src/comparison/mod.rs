//! What do several runs tell that one does not?

#![forbid(unsafe_code)]

mod growth;
pub(crate) mod scaling;
