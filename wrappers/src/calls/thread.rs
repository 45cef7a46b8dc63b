//! Data on the current thread.

use std::cell::Cell;

use crate::calls::ledger::Ledger;
use crate::sys::tls::thread_cells;

thread_cells! {
    "gyan_thread"
    pub(crate) struct Thread {
        /// None before its first call.
        pub(crate) ledger: Cell<Option<&'static Ledger>>,
        /// The same ledger, if no other thread uses it.
        pub(crate) own: Cell<Option<&'static Ledger>>,
        /// It is inside MPI or gyan.
        pub(crate) inside: Cell<bool>,
        /// The function, plus 1, of the call that it is inside of on a path other than the fast one, which
        /// counts it at the end; 0 when there is none.
        pub(crate) uncounted: Cell<usize>,
        /// It is inside a call from Fortran.
        pub(crate) fortran: Cell<bool>,
        /// For `longjmp`: calls since the last check, and checks that found nothing.
        pub(crate) calls_inside: Cell<u32>,
        pub(crate) looks_in_vain: Cell<u32>,
        /// It holds the lock of the run.
        pub(crate) holds_run: Cell<bool>,
        /// The return address of the last call on a path other than the fast one; 0 when that is not known.
        pub(crate) caller: Cell<usize>,
        /// Where on its stack the return address of its last call on the fast path lies, if it is one of several threads;
        /// 0 where that is not recorded.
        pub(crate) stack: Cell<usize>,
    }
}

impl Here {
    /// Its address, which differs between running threads.
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}
