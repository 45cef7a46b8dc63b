//! What may go wrong around a program or in it: it ends as without gyan, and what was known is not lost.

mod bad_surroundings;
mod checked;
mod endings;
mod frozen;
mod harmless;
mod hostile;
mod limits;
mod live;
pub(crate) mod reduce;
