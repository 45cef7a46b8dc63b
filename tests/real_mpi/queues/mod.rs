//! What is known of messages that wait: watched receives, events of MPI_T, callbacks of PERUSE.

mod events;
mod peruse;
mod watcher;
