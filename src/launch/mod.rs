//! Which launcher, which program and which MPI does a command line mean, and how does libgyan.so get into
//! the ranks? Nothing here reads profiles.

pub(crate) mod c_library;
pub(crate) mod executable;
pub(crate) mod keepers;
pub(crate) mod launcher;
pub(crate) mod listing;
pub(crate) mod mpi;
pub(crate) mod preload;
pub(crate) mod processes;
pub(crate) mod ranks;
pub(crate) mod wait;
