//! The rows of `table` turned into entry points.

mod c;
mod call;
mod caller;
mod costs;
// A program that contains its MPI has the Fortran entry points of that.
#[cfg(not(feature = "static"))]
mod fortran;
mod missing;
mod values;

pub(crate) use costs::costs;
pub(crate) use missing::lacking;
use missing::next_or_end;
