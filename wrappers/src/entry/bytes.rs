//! How many bytes does a call hand to MPI? One function for each formula that a row of `functions` can
//! name; sections of MPI 4.1.
//!
//! We count the data that this process contributes according to the arguments: what a send sends, what a rank
//! puts into a collective operation, what an access to a window or a file requests. Receives count nothing:
//! only the sender knows how long a message is. Evaluated after the call succeeded, so that only arguments that
//! the library accepted are read.

use std::marker::PhantomData;

use crate::calls::ledger;
use crate::calls::traffic::{ELSEWHERE, NOBODY, Sent, Way};
use crate::entry::requests::{Prepared, Ready, Started};
use crate::mpi::abi::{Inquiry, datatypes, known_inquiry as inquiry};
use crate::mpi::functions::large_counts::{
    Count, PerDestination, PerRank, PerRankAtRoot, PerSource,
};
use crate::mpi::functions::{
    Aint, Argument, Comm, Datatype, Datatypes, Int, Ints, Pointer, Request, Requests, Win,
};
use crate::mpi::handles::{Language, Passed};
use crate::observe::communicators::{self, Communicator};
use crate::sys::peek::{element, word};

/// The result of a formula: what a call hands to MPI.
pub(crate) trait Moves {
    /// Shows the traffic to each peer. Returns the bytes to all.
    fn show(self, send: &mut impl FnMut(Sent)) -> u64;
}

impl Moves for u64 {
    #[inline]
    fn show(self, _: &mut impl FnMut(Sent)) -> u64 {
        self
    }
}

impl Moves for Sent {
    #[inline]
    fn show(self, send: &mut impl FnMut(Sent)) -> u64 {
        if self.peer() != NOBODY {
            send(self);
        }
        self.bytes
    }
}

/// An argument as a formula sees it.
pub(crate) trait Given: Argument {
    type Value;

    /// Of an argument from C.
    ///
    /// # Safety
    ///
    /// `word` is an argument of this type, of a call that succeeded.
    unsafe fn in_c(word: usize) -> Self::Value;

    /// The same of the argument itself.
    ///
    /// # Safety
    ///
    /// It is one of a call that succeeded.
    unsafe fn given(self) -> Self::Value {
        // SAFETY: the caller's.
        unsafe { Self::in_c(self.word()) }
    }

    /// # Safety
    ///
    /// `address` is that of an argument of this type in Fortran, of a call that succeeded.
    unsafe fn in_fortran(address: usize) -> Self::Value;
}

/// An argument with its type in the row.
pub(crate) struct Typed<T> {
    passed: Passed,
    of: PhantomData<T>,
}

impl<T> Typed<T> {
    #[inline(always)]
    pub(crate) fn new(passed: Passed) -> Typed<T> {
        Typed { passed, of: PhantomData }
    }
}

impl<T: Given> Typed<T> {
    /// # Safety
    ///
    /// An argument of this type, of a call that succeeded.
    #[inline(always)]
    pub(crate) unsafe fn value(&self) -> T::Value {
        match self.passed.language {
            // SAFETY: the caller's.
            Language::C => unsafe { T::in_c(self.passed.word) },
            // SAFETY: the caller's.
            Language::Fortran => unsafe { T::in_fortran(self.passed.word) },
        }
    }
}

/// A buffer, or `MPI_IN_PLACE`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Buffer {
    Elsewhere,
    InPlace,
    /// It is not known which of the two.
    Unknown,
}

/// An array of numbers that the program passed to a successful call, so it has as many as the standard says.
/// Made only from arguments.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    at: usize,
    wide: bool,
}

/// The same for datatypes.
#[derive(Clone, Copy)]
pub(crate) struct Types {
    at: usize,
    fortran: bool,
}

/// For a Fortran program whose handles cannot be converted.
const NONE: usize = communicators::NO_HANDLE;

macro_rules! number {
    ($($type:ident),*) => {
        $(impl Given for $type {
            type Value = i64;

            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
            unsafe fn in_c(word: usize) -> i64 {
                i64::from(word as $type)
            }

            unsafe fn in_fortran(address: usize) -> i64 {
                // SAFETY: the caller's; an INTEGER, or one of the kind for counts.
                i64::from(unsafe { element::<$type>(address, 0) })
            }
        })*
    };
}
number!(Int, Aint);

impl Given for Count {
    type Value = i64;

    #[allow(clippy::cast_possible_wrap)]
    unsafe fn in_c(word: usize) -> i64 {
        word as i64
    }

    unsafe fn in_fortran(address: usize) -> i64 {
        // SAFETY: the caller's; an INTEGER of the kind for counts.
        unsafe { element::<i64>(address, 0) }
    }
}

macro_rules! handle {
    ($($type:ident $kind:ident),*) => {
        $(impl Given for $type {
            type Value = usize;

            unsafe fn in_c(word: usize) -> usize {
                word
            }

            unsafe fn in_fortran(address: usize) -> usize {
                // SAFETY: the caller's; an INTEGER, or a structure that is nothing but one.
                let handle = unsafe { element::<Int>(address, 0) };
                let known = inquiry().and_then(|mpi| mpi.from_fortran.$kind.handle(handle));
                known.unwrap_or(NONE)
            }
        })*
    };
}
handle!(Comm comm, Datatype datatype, Win win);

/// The address of an argument that is read later.
macro_rules! passed {
    ($($type:ident),*) => {
        $(impl Given for $type {
            type Value = Passed;

            unsafe fn in_c(word: usize) -> Passed {
                Passed { language: Language::C, word }
            }

            unsafe fn in_fortran(word: usize) -> Passed {
                Passed { language: Language::Fortran, word }
            }
        })*
    };
}
passed!(Request, Requests);

impl Given for Pointer {
    type Value = Buffer;

    unsafe fn in_c(word: usize) -> Buffer {
        match inquiry() {
            Some(mpi) if mpi.abi.in_place == word => Buffer::InPlace,
            Some(_) => Buffer::Elsewhere,
            None => Buffer::Unknown,
        }
    }

    unsafe fn in_fortran(address: usize) -> Buffer {
        match inquiry().and_then(|mpi| mpi.is_fortran_in_place(address)) {
            Some(true) => Buffer::InPlace,
            Some(false) => Buffer::Elsewhere,
            None => Buffer::Unknown,
        }
    }
}

macro_rules! numbers {
    ($($type:ident $wide:literal),*) => {
        $(impl Given for $type {
            type Value = Numbers;

            unsafe fn in_c(word: usize) -> Numbers {
                Numbers { at: word, wide: $wide }
            }

            unsafe fn in_fortran(address: usize) -> Numbers {
                Numbers { at: address, wide: $wide }
            }
        })*
    };
}
numbers!(Ints false, PerRank true, PerRankAtRoot true, PerSource true, PerDestination true);

impl Given for Datatypes {
    type Value = Types;

    unsafe fn in_c(word: usize) -> Types {
        Types { at: word, fortran: false }
    }

    unsafe fn in_fortran(address: usize) -> Types {
        Types { at: address, fortran: true }
    }
}

impl Numbers {
    /// Element `index`.
    ///
    /// # Safety
    ///
    /// The array has it.
    unsafe fn get(self, index: usize) -> i64 {
        if self.wide {
            // SAFETY: the caller's.
            unsafe { element::<i64>(self.at, index) }
        } else {
            // SAFETY: the caller's.
            i64::from(unsafe { element::<i32>(self.at, index) })
        }
    }

    /// The sum of the first `length` elements.
    ///
    /// # Safety
    ///
    /// The array has them.
    unsafe fn sum(self, length: usize) -> i64 {
        // SAFETY: the caller's.
        (0..length).map(|index| unsafe { self.get(index) }).fold(0, i64::saturating_add)
    }
}

impl Types {
    /// Element `index`.
    ///
    /// # Safety
    ///
    /// The array has it.
    unsafe fn get(self, mpi: &Inquiry, index: usize) -> Option<usize> {
        if self.fortran {
            // SAFETY: the caller's; an array of INTEGER.
            mpi.from_fortran.datatype.handle(unsafe { element::<Int>(self.at, index) })
        } else {
            // SAFETY: the caller's; handles of this library have this size.
            Some(unsafe { word(self.at, mpi.abi.handle_bytes, index) })
        }
    }
}

/// `count` elements of `datatype`.
#[inline(always)]
pub(crate) fn elements(count: i64, datatype: usize) -> u64 {
    if let Some(size) = datatypes::known_size(datatype)
        && let Ok(count) = u64::try_from(count)
        && let Some(bytes) = count.checked_mul(size)
    {
        return bytes;
    }
    elements_asked(count, datatype)
}

/// The same of one that is not predefined or was not met before, or of more than can be.
#[cold]
#[inline(never)]
fn elements_asked(count: i64, datatype: usize) -> u64 {
    // The datatype is not queried when there are no elements: it may be anything.
    let Some(count) = u64::try_from(count).ok().filter(|&count| count > 0) else { return 0 };
    if datatype == NONE {
        return 0;
    }
    let Some(mpi) = inquiry() else { return 0 };
    let Some(size) = datatypes::size(mpi, datatype) else { return 0 };
    count.checked_mul(size).unwrap_or_else(too_many)
}

#[cold]
#[inline(never)]
fn too_many() -> u64 {
    u64::MAX
}

/// A message to `dest` (3.2).
#[inline(always)]
pub(crate) fn message(count: i64, datatype: usize, dest: i64, comm: usize) -> Sent {
    to_peer(Way::Message, elements(count, datatype), dest, comm, communicators::by_word)
}

/// An access to the memory of `target` (12.3).
#[inline(never)]
pub(crate) fn access(count: i64, datatype: usize, target: i64, win: usize) -> Sent {
    to_peer(Way::Access, elements(count, datatype), target, win, communicators::of_window)
}

/// Bytes to a rank of a communicator or window.
#[inline(always)]
fn to_peer(
    way: Way,
    bytes: u64,
    rank: i64,
    handle: usize,
    of: fn(usize) -> Option<&'static Communicator>,
) -> Sent {
    // Only MPI_PROC_NULL is, in a call that succeeded.
    let Ok(rank) = u32::try_from(rank) else { return Sent::to_nobody(0) };
    if !ledger::counts_peers() {
        return Sent::to_nobody(bytes);
    }
    if let Some(object) = of(handle)
        && let Some(to) = object.rank_in_world(rank)
    {
        return Sent::to(to, way, bytes);
    }
    Sent::to(ELSEWHERE, way, bytes)
}

/// One element that goes to `target` and comes back (12.3.4).
#[inline(never)]
pub(crate) fn item(datatype: usize, target: i64, win: usize) -> Sent {
    access(1, datatype, target, win)
}

/// A message in partitions of `count` elements (4.2.1).
pub(crate) fn partitioned(count: i64, datatype: usize, dest: i64, comm: usize) -> Prepared {
    Prepared::partitioned(message(count, datatype, dest, comm))
}

/// A message from `source` (3.9), which this rank does not send.
pub(crate) fn received(_source: i64) -> u64 {
    0
}

/// The operation prepared for a request (3.9).
pub(crate) fn started(request: Passed) -> Started {
    Started { requests: request, count: 1 }
}

/// The same for many.
pub(crate) fn started_all(count: i64, requests: Passed) -> Started {
    Started { requests, count: usize::try_from(count).unwrap_or(0) }
}

/// One partition of a message (4.2.2).
pub(crate) fn ready(request: Passed) -> Ready {
    ready_list(1, request)
}

/// Partitions `low` to `high`, both included.
pub(crate) fn ready_range(low: i64, high: i64, request: Passed) -> Ready {
    ready_list(high.saturating_sub(low).saturating_add(1), request)
}

/// Several of them.
pub(crate) fn ready_list(length: i64, request: Passed) -> Ready {
    let Passed { language, word } = request;
    let request = match language {
        Language::C => word,
        Language::Fortran => request.request(0).unwrap_or(NONE),
    };
    Ready { language, request, partitions: u64::try_from(length).unwrap_or(0) }
}

#[inline(always)]
fn is_proc_null(rank: i64) -> bool {
    rank < 0 && is_proc_null_of_library(rank)
}

/// In every known library it is negative.
#[cold]
#[inline(never)]
fn is_proc_null_of_library(rank: i64) -> bool {
    inquiry().is_none_or(|mpi| i64::from(mpi.abi.proc_null) == rank)
}

/// Whether this process is the root of the other group of an intercommunicator, or in the root's group.
fn is_root_group(root: i64) -> bool {
    inquiry().is_none_or(|mpi| i64::from(mpi.abi.root) == root) || is_proc_null(root)
}

/// The message, on every rank (6.4).
#[inline(always)]
pub(crate) fn broadcast(count: i64, datatype: usize, root: i64) -> u64 {
    if is_proc_null(root) { 0 } else { elements(count, datatype) }
}

/// What a rank contributes to a reduction (6.9.1).
#[inline(always)]
pub(crate) fn reduced(count: i64, datatype: usize, root: i64) -> u64 {
    if is_root_group(root) { 0 } else { elements(count, datatype) }
}

/// What a rank contributes, which is already in the receive buffer for `MPI_IN_PLACE` (6.7).
#[inline(always)]
pub(crate) fn contributed(
    buffer: Buffer,
    sendcount: i64,
    sendtype: usize,
    recvcount: i64,
    recvtype: usize,
) -> u64 {
    match buffer {
        Buffer::Elsewhere => elements(sendcount, sendtype),
        Buffer::InPlace => elements(recvcount, recvtype),
        Buffer::Unknown => 0,
    }
}

/// The same with parts of different length in the receive buffer (6.7).
#[inline(never)]
pub(crate) fn contributed_v(
    buffer: Buffer,
    sendcount: i64,
    sendtype: usize,
    recvcounts: Numbers,
    recvtype: usize,
    comm: usize,
) -> u64 {
    match buffer {
        Buffer::Elsewhere => elements(sendcount, sendtype),
        Buffer::InPlace => match inquiry().and_then(|mpi| mpi.rank(comm)) {
            // SAFETY: the call succeeded, so the array has an element for each rank.
            Some(rank) => elements(unsafe { recvcounts.get(rank) }, recvtype),
            None => 0,
        },
        Buffer::Unknown => 0,
    }
}

/// What a rank sends to the root (6.5).
#[inline(never)]
pub(crate) fn gathered(
    buffer: Buffer,
    sendcount: i64,
    sendtype: usize,
    recvcount: i64,
    recvtype: usize,
    root: i64,
) -> u64 {
    if is_root_group(root) {
        return 0;
    }
    contributed(buffer, sendcount, sendtype, recvcount, recvtype)
}

/// The same with parts of different length (6.5): only the root has its own in place.
#[inline(never)]
pub(crate) fn gathered_v(
    buffer: Buffer,
    sendcount: i64,
    sendtype: usize,
    recvcounts: Numbers,
    recvtype: usize,
    root: i64,
) -> u64 {
    match (buffer, usize::try_from(root)) {
        (Buffer::Elsewhere, Ok(_)) => elements(sendcount, sendtype),
        // SAFETY: the call succeeded and this is the root, so the array has an element for it.
        (Buffer::InPlace, Ok(root)) => elements(unsafe { recvcounts.get(root) }, recvtype),
        _ => 0,
    }
}

/// What a rank gets from the root (6.6).
#[inline(never)]
pub(crate) fn scattered(
    buffer: Buffer,
    recvcount: i64,
    recvtype: usize,
    sendcount: i64,
    sendtype: usize,
    root: i64,
) -> u64 {
    gathered(buffer, recvcount, recvtype, sendcount, sendtype, root)
}

/// The same with parts of different length (6.6).
#[inline(never)]
pub(crate) fn scattered_v(
    buffer: Buffer,
    recvcount: i64,
    recvtype: usize,
    sendcounts: Numbers,
    sendtype: usize,
    root: i64,
) -> u64 {
    gathered_v(buffer, recvcount, recvtype, sendcounts, sendtype, root)
}

/// The same to every process (6.8).
#[inline(never)]
pub(crate) fn to_all(
    buffer: Buffer,
    sendcount: i64,
    sendtype: usize,
    recvcount: i64,
    recvtype: usize,
    comm: usize,
) -> u64 {
    let to_each = contributed(buffer, sendcount, sendtype, recvcount, recvtype);
    if to_each == 0 {
        return 0;
    }
    let Some(peers) = inquiry().and_then(|mpi| mpi.peers(comm)) else { return 0 };
    to_each.checked_mul(peers as u64).unwrap_or_else(too_many)
}

/// Something different to every process (6.8).
#[inline(never)]
pub(crate) fn to_all_v(
    buffer: Buffer,
    sendcounts: Numbers,
    sendtype: usize,
    recvcounts: Numbers,
    recvtype: usize,
    comm: usize,
) -> u64 {
    let (counts, datatype) = match buffer {
        Buffer::Elsewhere => (sendcounts, sendtype),
        Buffer::InPlace => (recvcounts, recvtype),
        Buffer::Unknown => return 0,
    };
    let peers = inquiry().and_then(|mpi| mpi.peers(comm)).unwrap_or(0);
    // SAFETY: the call succeeded, so the array has an element for each process.
    elements(unsafe { counts.sum(peers) }, datatype)
}

/// Something of a different type to every process (6.8).
#[inline(never)]
pub(crate) fn to_all_w(
    buffer: Buffer,
    sendcounts: Numbers,
    sendtypes: Types,
    recvcounts: Numbers,
    recvtypes: Types,
    comm: usize,
) -> u64 {
    let (counts, datatypes) = match buffer {
        Buffer::Elsewhere => (sendcounts, sendtypes),
        Buffer::InPlace => (recvcounts, recvtypes),
        Buffer::Unknown => return 0,
    };
    let peers = inquiry().and_then(|mpi| mpi.peers(comm)).unwrap_or(0);
    each(counts, datatypes, 0..peers)
}

/// The sum of items of different types, at these places of arrays that are long enough.
fn each(counts: Numbers, datatypes: Types, places: impl Iterator<Item = usize>) -> u64 {
    let Some(mpi) = inquiry() else { return 0 };
    let bytes = |index| {
        // SAFETY: the call succeeded, so both arrays have these elements.
        let count = unsafe { counts.get(index) };
        if count <= 0 {
            return 0;
        }
        // SAFETY: as above.
        let datatype = unsafe { datatypes.get(mpi, index) };
        datatype.map_or(0, |datatype| elements(count, datatype))
    };
    places.map(bytes).fold(0, u64::saturating_add)
}

/// What a rank contributes to a reduction whose parts go to different ranks (6.10).
#[inline(never)]
pub(crate) fn reduced_v(recvcounts: Numbers, datatype: usize, comm: usize) -> u64 {
    let size = inquiry().and_then(|mpi| mpi.size(comm)).unwrap_or(0);
    // SAFETY: the call succeeded, so the array has an element for each process of the group.
    elements(unsafe { recvcounts.sum(size) }, datatype)
}

/// The same with parts of equal length (6.10).
#[inline(never)]
pub(crate) fn reduced_blocks(recvcount: i64, datatype: usize, comm: usize) -> u64 {
    let size = inquiry().and_then(|mpi| mpi.size(comm)).unwrap_or(0) as u64;
    elements(recvcount, datatype).saturating_mul(size)
}

/// The same to every neighbour (8.6).
#[inline(never)]
pub(crate) fn to_neighbors(sendcount: i64, sendtype: usize, comm: usize) -> u64 {
    elements(sendcount, sendtype).saturating_mul(destinations(comm).count() as u64)
}

/// Something different to every neighbour (8.6).
#[inline(never)]
pub(crate) fn to_neighbors_v(sendcounts: Numbers, sendtype: usize, comm: usize) -> u64 {
    // SAFETY: the call succeeded, so the array has an element for each neighbour.
    let bytes = |place| elements(unsafe { sendcounts.get(place) }, sendtype);
    destinations(comm).map(bytes).fold(0, u64::saturating_add)
}

/// Something of a different type to every neighbour (8.6).
#[inline(never)]
pub(crate) fn to_neighbors_w(sendcounts: Numbers, sendtypes: Types, comm: usize) -> u64 {
    each(sendcounts, sendtypes, destinations(comm))
}

/// The places of the neighbours to which this process sends, in the list of all.
fn destinations(comm: usize) -> impl Iterator<Item = usize> {
    let mpi = inquiry();
    let all = mpi.and_then(|mpi| mpi.neighbors(comm)).map_or(0, |(_, destinations)| destinations);
    (0..all).filter(move |place| mpi.is_some_and(|mpi| mpi.has_destination(comm, *place)))
}
