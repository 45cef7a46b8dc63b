//! The communicator on which the ranks merge what they know: a duplicate of `MPI_COMM_WORLD` that nobody
//! else has, so that no message of gyan's meets one of the program's.
//!
//! All calls are nonblocking and by the profiling names (MPI 4.1, 3.7, 7.4.2 and 9.3). What was begun and
//! does not end is let go with its memory, which MPI may still write to.

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

/// What a message is sent and received under.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tag {
    /// From child to parent: how many bytes it has.
    Length,
    /// From parent to child: they can come.
    Go,
    /// From child to parent: the bytes.
    Bytes,
    /// From parent to child: how it ended.
    End,
    /// On which hosts some ranks are.
    Hosts,
    /// To who sends that, and has much of it: it can come.
    HostsGo,
}

/// An error of MPI, or what is not there.
#[derive(Debug)]
pub(super) struct Failure;

/// Room for a handle that MPI writes to, also when nobody waits for that any more.
fn room() -> NonNull<usize> {
    NonNull::from(Box::leak(Box::new(0)))
}

/// What is under way: a message, or the making of a communicator.
pub(super) struct Pending {
    request: NonNull<usize>,
    /// What is written, or read, until it ends.
    buffer: Vec<u8>,
    test: Test,
    ignore: *mut c_void,
    /// What ends it when nobody waits for it any more; nothing ends a collective operation.
    ends: Vec<OfRequest>,
    is_done: bool,
}

pub(super) struct Communicator {
    /// Never given back: its making may end when nobody waits for it any more.
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

/// An error on gyan's own communicator is gyan's to see, whatever the program wants done with its own.
extern "C" fn goes_on(_communicator: *mut usize, _code: *mut c_int) {}

impl Communicator {
    /// Begins to make one. It is there when what is pending is done, on all ranks.
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

    /// Has errors on it come back as codes. To be called once it is there.
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
        // SAFETY: the room is never given back. Only `begin` has MPI write to it, and before that was done
        // nobody sends or receives here.
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

    /// Begins to receive up to so many bytes from a rank.
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

    /// Lets what did not end go; what MPI may still write to stays where it is.
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
