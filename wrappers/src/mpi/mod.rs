//! Which MPI is in this process, what is known about it, and how is `MPI_T` called?
//!
//! Does not decide what is read or when, and counts nothing.

pub(crate) mod abi;
pub(crate) mod functions;
pub(crate) mod handles;
pub(crate) mod libraries;
pub(crate) mod tool;
