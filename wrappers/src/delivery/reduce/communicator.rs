//! How the ranks tell each other what they know: messages on `MPI_COMM_WORLD` after a barrier at the end.
//!
//! No communicator is made. `MPI_Comm_idup` would call the copy callbacks of the program's attributes (MPI 4.1,
//! 7.7.2), and what calls none can only be called blocking: a rank that is cut off meanwhile would keep the others
//! from writing their files. Messages on `MPI_COMM_WORLD` cannot meet those of the program, because each rank has
//! come to its end when the barrier is done. What a program may have left behind by mistake is a receive of any
//! tag. Zero bytes are the first that go to each rank, so such a receive gets no data
//! ([`WorldMessages::greet`]).
//!
//! All calls are nonblocking and by the profiling names (MPI 4.1, 3.7 and 6.12.1). An operation that does
//! not end is abandoned with its memory, which MPI may still write to.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr::{self, NonNull};
use std::time::Duration;

use super::tree::{Merging, NotReduced, Wait};
use crate::mpi::abi::Library;
use crate::sys::foreign::foreign;
use gyan_results::Datatype;

type Transfer = extern "C" fn(*mut c_void, c_int, usize, c_int, c_int, usize, *mut usize) -> c_int;
type Test = extern "C" fn(*mut usize, *mut c_int, *mut c_void) -> c_int;
type OfRequest = extern "C" fn(*mut usize) -> c_int;
type ErrorHandler = extern "C" fn(*mut usize, *mut c_int);

foreign! {
    /// As in MPI 4.1, chapters 3, 6 and 9, with handles as machine words. The error handler takes no arguments beyond
    /// the first two, which C's convention allows where the caller passes more.
    struct MessageFunctions: every [extern "C"] {
        barrier(usize, *mut usize) = c"PMPI_Ibarrier";
        isend(*mut c_void, c_int, usize, c_int, c_int, usize, *mut usize) = c"PMPI_Isend";
        issend(*mut c_void, c_int, usize, c_int, c_int, usize, *mut usize) = c"PMPI_Issend";
        irecv(*mut c_void, c_int, usize, c_int, c_int, usize, *mut usize) = c"PMPI_Irecv";
        test(*mut usize, *mut c_int, *mut c_void) = c"PMPI_Test";
        cancel(*mut usize) = c"PMPI_Cancel";
        free(*mut usize) = c"PMPI_Request_free";
        create_handler(ErrorHandler, *mut usize) = c"PMPI_Comm_create_errhandler";
        get_handler(usize, *mut usize) = c"PMPI_Comm_get_errhandler";
        set_handler(usize, usize) = c"PMPI_Comm_set_errhandler";
        free_handler(*mut usize) = c"PMPI_Errhandler_free";
    }
}

/// The last of the tags that every MPI has (MPI 4.1, 9.1.2), which programs hardly use.
const LAST_TAG: c_int = 32767;
/// A program that left more receives of any rank and tag behind than this gets no summary.
const LEFT_AT_MOST: usize = 1000;

#[derive(Clone, Copy, Debug)]
pub(super) enum Tag {
    /// Nothing yet.
    Greeting,
    /// From child to parent: its number of bytes.
    Length,
    /// From parent to child: ready to receive them.
    Go,
    /// From child to parent: the bytes.
    Bytes,
    /// From parent to child: the outcome.
    End,
}

/// An MPI error, or what is missing.
#[derive(Debug)]
pub(super) struct MessageFailure;

/// Room for a handle that MPI writes to, even after the wait was given up.
fn room() -> NonNull<usize> {
    NonNull::from(Box::leak(Box::new(0)))
}

/// A pending operation: a message, or the barrier.
pub(super) struct Operation {
    request: NonNull<usize>,
    /// The memory that is written or read until it ends.
    buffer: Vec<u8>,
    test: Test,
    ignore: *mut c_void,
    /// What cancels it when the wait is given up; nothing can cancel a collective operation.
    ends: Vec<OfRequest>,
    is_done: bool,
}

/// `MPI_COMM_WORLD`, on which errors are returned to gyan while this lives.
pub(super) struct WorldMessages {
    world: usize,
    rank: u32,
    byte: usize,
    ignore: *mut c_void,
    functions: MessageFunctions,
    /// The program's.
    handler: usize,
}

/// Errors are returned to gyan, whatever error handler the program has set.
extern "C" fn goes_on(_communicator: *mut usize, _code: *mut c_int) {}

impl WorldMessages {
    /// Errors on `MPI_COMM_WORLD` are returned to gyan from now on.
    pub(super) fn take(library: &Library, rank: u32) -> Result<WorldMessages, MessageFailure> {
        let mut communicator = WorldMessages {
            world: library.handle(library.abi.comm_world).ok_or(MessageFailure)?,
            rank,
            byte: library.datatype_handle(Datatype::Char).ok_or(MessageFailure)?,
            ignore: ptr::without_provenance_mut(library.abi.status_ignore),
            functions: MessageFunctions::find(|name| library.function(name))
                .ok_or(MessageFailure)?,
            handler: 0,
        };
        let (world, functions) = (communicator.world, &communicator.functions);
        let mut own: usize = 0;
        if (functions.get_handler)(world, &raw mut communicator.handler) != 0
            || (functions.create_handler)(goes_on, &raw mut own) != 0
        {
            return Err(MessageFailure);
        }
        let is_set = (functions.set_handler)(world, own) == 0;
        (functions.free_handler)(&raw mut own);
        if is_set { Ok(communicator) } else { Err(MessageFailure) }
    }

    /// Begins a barrier. Nothing may be sent to other ranks before it is done: until then the program may still
    /// receive messages there.
    pub(super) fn barrier(&self) -> Result<Operation, MessageFailure> {
        let mut pending = self.pending(Vec::new(), Vec::new());
        let code = (self.functions.barrier)(self.world, pending.request.as_ptr());
        pending.is_done = code != 0;
        if code == 0 { Ok(pending) } else { Err(MessageFailure) }
    }

    /// Has receives of any rank and tag that the program left behind take empty messages of this rank, before
    /// other ranks send any.
    pub(super) fn fill_receives_left(
        &self,
        timeout: Duration,
        merging: &mut impl Merging,
    ) -> Result<(), NotReduced> {
        let patience = Wait::for_no_longer_than(timeout);
        let mut received = self.receive(self.rank, Tag::Greeting, 0)?;
        for _ in 0..LEFT_AT_MOST {
            let sent = self.pending(Vec::new(), vec![self.functions.free]);
            // Done once it is received, here or by the program's receive.
            let mut sent = self.transfer(self.functions.issend, self.rank, Tag::Greeting, sent)?;
            patience.until_done(&mut sent, NotReduced::Late(self.rank), merging)?;
            if received.is_done()? {
                return Ok(());
            }
        }
        Err(NotReduced::Mpi)
    }

    /// Has each of these ranks greet this one twice, with empty messages. Once that is done no receive that the
    /// program left behind takes a message between them: the first greeting would have gone to it, and then the
    /// second does not come.
    pub(super) fn greet(
        &self,
        ranks: &[u32],
        timeout: Duration,
        merging: &mut impl Merging,
    ) -> Result<(), NotReduced> {
        let patience = Wait::for_no_longer_than(timeout);
        for _ in 0..2 {
            let mut all = Vec::new();
            for &rank in ranks {
                all.push((rank, self.receive(rank, Tag::Greeting, 0)?));
                all.push((rank, self.send(rank, Tag::Greeting, Vec::new())?));
            }
            for (rank, pending) in &mut all {
                patience.until_done(pending, NotReduced::Late(*rank), merging)?;
            }
        }
        Ok(())
    }

    fn pending(&self, buffer: Vec<u8>, ends: Vec<OfRequest>) -> Operation {
        let (test, ignore) = (self.functions.test, self.ignore);
        Operation { request: room(), buffer, test, ignore, ends, is_done: false }
    }

    /// Begins to send bytes to a rank.
    pub(super) fn send(
        &self,
        to: u32,
        tag: Tag,
        bytes: Vec<u8>,
    ) -> Result<Operation, MessageFailure> {
        self.transfer(self.functions.isend, to, tag, self.pending(bytes, vec![self.functions.free]))
    }

    /// Begins to receive up to this many bytes from a rank.
    pub(super) fn receive(
        &self,
        from: u32,
        tag: Tag,
        bytes: usize,
    ) -> Result<Operation, MessageFailure> {
        self.transfer(
            self.functions.irecv,
            from,
            tag,
            self.pending(vec![0; bytes], vec![self.functions.cancel, self.functions.free]),
        )
    }

    fn transfer(
        &self,
        transfer: Transfer,
        peer: u32,
        tag: Tag,
        mut pending: Operation,
    ) -> Result<Operation, MessageFailure> {
        let count = c_int::try_from(pending.buffer.len()).map_err(|_| MessageFailure)?;
        let peer = c_int::try_from(peer).map_err(|_| MessageFailure)?;
        let code = transfer(
            pending.buffer.as_mut_ptr().cast(),
            count,
            self.byte,
            peer,
            LAST_TAG - tag as c_int,
            self.world,
            pending.request.as_ptr(),
        );
        pending.is_done = code != 0;
        if code == 0 { Ok(pending) } else { Err(MessageFailure) }
    }
}

impl Drop for WorldMessages {
    fn drop(&mut self) {
        (self.functions.set_handler)(self.world, self.handler);
    }
}

impl Operation {
    pub(super) fn is_done(&mut self) -> Result<bool, MessageFailure> {
        if !self.is_done {
            let mut flag: c_int = 0;
            if (self.test)(self.request.as_ptr(), &raw mut flag, self.ignore) != 0 {
                self.is_done = true;
                return Err(MessageFailure);
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

impl Drop for Operation {
    fn drop(&mut self) {
        self.let_go();
    }
}
