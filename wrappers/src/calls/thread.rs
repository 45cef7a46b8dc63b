//! What is known of the thread that runs.

use std::cell::Cell;

use crate::calls::ledger::Ledger;
use crate::sys::tls::thread_cells;

thread_cells! {
    "gyan_thread"
    pub(crate) struct Thread {
        /// None before its first call.
        pub(crate) ledger: Cell<Option<&'static Ledger>>,
        /// The ledger again, when no other thread uses it.
        pub(crate) own: Cell<Option<&'static Ledger>>,
        /// It is inside MPI or gyan.
        pub(crate) inside: Cell<bool>,
        /// The function of the call that it is inside of on another path than the fast one, which counts it
        /// at the end, and 1; 0 when there is none.
        pub(crate) uncounted: Cell<usize>,
        /// It is inside a call from Fortran.
        pub(crate) fortran: Cell<bool>,
        /// For `longjmp`: calls since the last look, and looks that found nothing.
        pub(crate) calls_inside: Cell<u32>,
        pub(crate) looks_in_vain: Cell<u32>,
        /// It holds the run.
        pub(crate) holds_run: Cell<bool>,
        /// Where the last call on another path than the fast one returns to; 0 when that is not known.
        pub(crate) caller: Cell<usize>,
    }
}

impl Here {
    /// Its address, which differs between threads that run.
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}
