//! Whatever goes wrong around a program or in it: it ends as without gyan, and the data so far is not lost.

mod bad_surroundings;
mod checked;
pub(crate) mod crashes;
mod endings;
pub(crate) mod frozen;
mod harmless;
mod hostile;
mod limits;
pub(crate) mod live;
pub(crate) mod reduce;
