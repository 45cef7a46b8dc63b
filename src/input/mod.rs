//! Where do profiles come from, a run directory or a pack, and how are they reduced? Nothing here decides what
//! is shown.

pub(crate) mod directory;
pub(crate) mod killed;
pub mod packed;
pub(crate) mod page;
pub(crate) mod runs;
pub(crate) mod source;
