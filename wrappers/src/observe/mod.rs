//! What do variables, receives, queues and phases tell us?
//!
//! Does not decide when the run begins and ends, and writes no file.

#[allow(unsafe_code)]
pub(crate) mod communicators;
pub(crate) mod iterations;
pub(crate) mod objects;
#[allow(unsafe_code)]
pub(crate) mod openmp;
pub(crate) mod pending;
pub(crate) mod phases;
pub(crate) mod pvars;
pub(crate) mod queues;
pub(crate) mod receives;
pub(crate) mod recording;
pub(crate) mod regions;
pub(crate) mod streams;
#[allow(unsafe_code)]
pub(crate) mod timeline;
pub(crate) mod waiting;
