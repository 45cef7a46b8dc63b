//! Which MPI is in this process, what is known about it, and how is `MPI_T` called?
//!
//! Does not decide what is read or when, and counts nothing.

#[allow(unsafe_code)]
pub(crate) mod abi;
pub(crate) mod functions;
#[allow(unsafe_code)]
pub(crate) mod handles;
pub(crate) mod libraries;
#[allow(unsafe_code)]
pub(crate) mod tool;
