//! `MPI_T` made safe: one reference to the interface, its performance variables, and handles that
//! are bound to objects.
//!
//! The order of operations avoids what real libraries crash on. The interface is initialised before MPI;
//! handles are allocated after it; only indices below the current number are used; no error is provoked;
//! nothing is reset. Never called from a signal handler or a helper thread.

mod api;
mod describe;
mod event_info;
mod events;
mod handle;
pub(crate) mod published;
mod read_buffer;
mod variable;

pub(crate) use api::{Api, Failure};
pub(crate) use describe::{CvarInfo, Enumeration};
pub(crate) use event_info::{EventApi, SourceInfo};
pub(crate) use events::{Element, EventFunctions, EventType, Instance, Listener, Registration};
pub(crate) use handle::{PvarHandle, Session};
pub(crate) use variable::{Unread, Variable, Why};

use std::ffi::c_int;

use crate::mpi::abi::Library;
use crate::mpi::libraries::quirks;

/// The one reference to the interface that gyan holds from start to end.
pub(crate) struct Mpit {
    pub(crate) api: Api,
}

impl Mpit {
    /// Initialises the interface; none when the library has none. Call before `MPI_Init` if possible.
    ///
    /// `level` is the thread level to ask for: `MPI_THREAD_MULTIPLE` before `MPI_Init`, afterwards
    /// the level that MPI runs at, because Open MPI takes it for the whole process
    /// (and [`quirks::session_keeps_level`]).
    pub(crate) fn init(library: &Library, level: c_int) -> Result<Option<Mpit>, Failure> {
        let Some(api) = Api::find(library) else { return Ok(None) };
        api.init_thread(level)?;
        Ok(Some(Mpit { api }))
    }

    /// Drops the reference if that is safe before `MPI_Finalize`; otherwise returns it.
    pub(crate) fn drop_where_safe(self, library: &Library) -> Option<Mpit> {
        if !quirks::drops_mpit(library.implementation) {
            return Some(self);
        }
        self.finalize();
        None
    }

    /// Drops the reference, once. Whether and when that is safe is a fact about the library, see
    /// [`quirks::drops_mpit`].
    pub(crate) fn finalize(&self) {
        self.api.finalize();
    }

    /// The performance variable `index`, which is below [`Api::pvar_get_num`].
    pub(crate) fn variable(&self, library: &Library, index: usize) -> Result<Variable, String> {
        Variable::get(&self.api, library, index)
    }
}
