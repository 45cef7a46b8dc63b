//! The communicator on which the ranks merge what they know: a private duplicate of `MPI_COMM_WORLD`, so that
//! gyan's messages never match the program's.
//!
//! All calls are nonblocking and by the profiling names (MPI 4.1, 3.7, 7.4.2 and 9.3). An operation that does
//! not end is abandoned with its memory, which MPI may still write to.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr::{self, NonNull};

use crate::mpi::abi::Library;
use crate::sys::symbols::Address;
use gyan_results::Datatype;

type Duplicate = extern "C" fn(usize, *mut usize, *mut usize) -> c_int;
type Transfer = extern "C" fn(*mut c_void, c_int, usize, c_int, c_int, usize, *mut usize) -> c_int;
type Test = extern "C" fn(*mut usize, *mut c_int, *mut c_void) -> c_int;
type OfRequest = extern "C" fn(*mut usize) -> c_int;
type Handler = extern "C" fn(*mut usize, *mut c_int);
type CreateHandler = extern "C" fn(Handler, *mut usize) -> c_int;
type SetHandler = extern "C" fn(usize, usize) -> c_int;

/// The tags of messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tag {
    /// From child to parent: its number of bytes.
    Length,
    /// From parent to child: ready to receive them.
    Go,
    /// From child to parent: the bytes.
    Bytes,
    /// From parent to child: the outcome.
    End,
    /// The hosts of some ranks.
    Hosts,
    /// To a sender of a large amount of that: ready to receive it.
    HostsGo,
}

/// An MPI error, or what is missing.
#[derive(Debug)]
pub(super) struct Failure;

/// Room for a handle that MPI writes to, even after the wait was given up.
fn room() -> NonNull<usize> {
    NonNull::from(Box::leak(Box::new(0)))
}

/// A pending operation: a message, or the creation of a communicator.
pub(super) struct Pending {
    request: NonNull<usize>,
    /// The memory that is written or read until it ends.
    buffer: Vec<u8>,
    test: Test,
    ignore: *mut c_void,
    /// What cancels it when the wait is given up; nothing can cancel a collective operation.
    ends: Vec<OfRequest>,
    is_done: bool,
}

pub(super) struct Communicator {
    /// Never freed: its creation may complete after the wait was given up.
    handle: NonNull<usize>,
    /// The datatype of a byte.
    byte: usize,
    ignore: *mut c_void,
    isend: Transfer,
    irecv: Transfer,
    test: Test,
    cancel: OfRequest,
    free: OfRequest,
}

/// Errors on gyan's own communicator are returned to gyan, whatever error handler the program sets.
extern "C" fn goes_on(_communicator: *mut usize, _code: *mut c_int) {}

impl Communicator {
    /// Begins to create one. It exists once the pending operation is done on all ranks.
    pub(super) fn begin(library: &Library) -> Result<(Communicator, Pending), Failure> {
        macro_rules! function {
            ($name:literal as $type:ty) => {{
                // SAFETY: the prototype that the standard gives this function (MPI 4.1, chapters 3,
                // 7 and 9), with handles as machine words.
                unsafe { mem::transmute::<Address, $type>(library.function($name).ok_or(Failure)?) }
            }};
        }
        let world = library.handle(library.abi.comm_world).ok_or(Failure)?;
        let duplicate = function!(c"PMPI_Comm_idup" as Duplicate);
        let communicator = Communicator {
            handle: room(),
            byte: library.datatype_handle(Datatype::Char).ok_or(Failure)?,
            ignore: ptr::without_provenance_mut(library.abi.status_ignore),
            isend: function!(c"PMPI_Isend" as Transfer),
            irecv: function!(c"PMPI_Irecv" as Transfer),
            test: function!(c"PMPI_Test" as Test),
            cancel: function!(c"PMPI_Cancel" as OfRequest),
            free: function!(c"PMPI_Request_free" as OfRequest),
        };
        let mut pending = communicator.pending(Vec::new(), Vec::new());
        let code = duplicate(world, communicator.handle.as_ptr(), pending.request.as_ptr());
        pending.is_done = code != 0;
        if code == 0 { Ok((communicator, pending)) } else { Err(Failure) }
    }

    /// Makes errors on it come back as codes. Call once it exists.
    pub(super) fn returns_errors(&self, library: &Library) -> Result<(), Failure> {
        let function = |name| library.function(name).ok_or(Failure);
        let create = function(c"PMPI_Comm_create_errhandler")?;
        // SAFETY: the prototype in MPI 4.1, 9.3.1. The handler takes no arguments beyond the first
        // two, which C's convention allows where the caller passes more.
        let create = unsafe { mem::transmute::<Address, CreateHandler>(create) };
        let set = function(c"PMPI_Comm_set_errhandler")?;
        // SAFETY: the prototype in MPI 4.1, 9.3.1.
        let set = unsafe { mem::transmute::<Address, SetHandler>(set) };
        let free = function(c"PMPI_Errhandler_free")?;
        // SAFETY: the prototype in MPI 4.1, 9.3.4.
        let free = unsafe { mem::transmute::<Address, OfRequest>(free) };
        let mut handler: usize = 0;
        let made = create(goes_on, &raw mut handler) == 0;
        let is_set = made && set(self.handle(), handler) == 0;
        if made {
            free(&raw mut handler);
        }
        if is_set { Ok(()) } else { Err(Failure) }
    }

    fn handle(&self) -> usize {
        // SAFETY: the room is never freed. Only `begin` has MPI write to it, and nothing is sent or received
        // here before that is done.
        unsafe { self.handle.read() }
    }

    fn pending(&self, buffer: Vec<u8>, ends: Vec<OfRequest>) -> Pending {
        let (test, ignore) = (self.test, self.ignore);
        Pending { request: room(), buffer, test, ignore, ends, is_done: false }
    }

    /// Begins to send bytes to a rank.
    pub(super) fn send(&self, to: u32, tag: Tag, bytes: Vec<u8>) -> Result<Pending, Failure> {
        self.transfer(self.isend, to, tag, self.pending(bytes, vec![self.free]))
    }

    /// Begins to receive up to this many bytes from a rank.
    pub(super) fn receive(&self, from: u32, tag: Tag, bytes: usize) -> Result<Pending, Failure> {
        self.transfer(
            self.irecv,
            from,
            tag,
            self.pending(vec![0; bytes], vec![self.cancel, self.free]),
        )
    }

    fn transfer(
        &self,
        transfer: Transfer,
        peer: u32,
        tag: Tag,
        mut pending: Pending,
    ) -> Result<Pending, Failure> {
        let count = c_int::try_from(pending.buffer.len()).map_err(|_| Failure)?;
        let peer = c_int::try_from(peer).map_err(|_| Failure)?;
        let code = transfer(
            pending.buffer.as_mut_ptr().cast(),
            count,
            self.byte,
            peer,
            tag as c_int,
            self.handle(),
            pending.request.as_ptr(),
        );
        pending.is_done = code != 0;
        if code == 0 { Ok(pending) } else { Err(Failure) }
    }
}

impl Pending {
    /// Whether it is done by now.
    pub(super) fn is_done(&mut self) -> Result<bool, Failure> {
        if !self.is_done {
            let mut flag: c_int = 0;
            if (self.test)(self.request.as_ptr(), &raw mut flag, self.ignore) != 0 {
                self.is_done = true;
                return Err(Failure);
            }
            self.is_done = flag != 0;
        }
        Ok(self.is_done)
    }

    /// The bytes, once it is done.
    pub(super) fn bytes(&mut self) -> Vec<u8> {
        if self.is_done { mem::take(&mut self.buffer) } else { Vec::new() }
    }

    /// Abandons an operation that did not end; memory that MPI may still write to is leaked.
    fn let_go(&mut self) {
        if self.is_done {
            // SAFETY: it is from `room`, and MPI is done with it.
            drop(unsafe { Box::from_raw(self.request.as_ptr()) });
            return;
        }
        for end in &self.ends {
            end(self.request.as_ptr());
        }
        mem::forget(mem::take(&mut self.buffer));
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.let_go();
    }
}
