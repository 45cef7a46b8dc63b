//! Which symbols does the program call?
//!
//! The rows of [`crate::mpi::functions`] become entry points that forward and count; this wing says what a call
//! means for objects and for the run, and others do it.

mod c;
mod call;
mod caller;
mod constructor;
mod costs;
// A program that contains its MPI has that library's Fortran entry points.
mod by_hand;
mod bytes;
#[cfg(not(feature = "static"))]
mod dlclose;
pub(crate) mod effects;
// Only where the way on in the C library's function is written down; a program that contains its MPI has no need.
#[cfg(all(target_arch = "x86_64", not(feature = "static")))]
mod dlsym;
mod entrance;
#[cfg(not(feature = "static"))]
mod fortran;
pub(crate) mod lifecycle;
mod missing;
mod openmp;
mod phases;
mod regions;
mod requests;
mod spelling;
mod stopwatch;
mod words;

pub(crate) use missing::lacking;
use missing::next_or_end;
