//! The rows of `table` turned into entry points.

mod c;
mod call;
mod fortran;
mod missing;
mod references;
mod values;

pub(crate) use missing::lacking;
use missing::next_or_end;
