//! What is known about particular MPI libraries? Tables with a reason in each row.
//!
//! Nothing else in gyan names a library in order to treat it differently.

pub(crate) mod advice;
pub(crate) mod crash_handlers;
pub(crate) mod cvar_env;
pub(crate) mod monitoring;
pub(crate) mod quirks;
pub(crate) mod transports;
