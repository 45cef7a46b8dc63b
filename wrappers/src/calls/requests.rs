//! What do requests stand for? A ring of the operations that were started last, for the keeper, which finds in it what a
//! call waits for. A handle that is used again belongs to the operation that was started last.
//!
//! Only for programs in which one thread calls MPI.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::mpi::functions::Function;

/// How many operations are kept.
const SLOTS: usize = 256;

/// An operation.
#[repr(C)]
pub(crate) struct OperationSlot {
    /// Where its request is.
    pub(crate) request: AtomicUsize,
    /// The low half of the handle that was written there.
    pub(crate) handle: AtomicUsize,
    /// The rank to which or from which a message goes, or the root; and what else its arguments say.
    pub(crate) peer: AtomicUsize,
    pub(crate) tag: AtomicUsize,
    pub(crate) comm: AtomicUsize,
    /// As [`kind`] says.
    pub(crate) kind: AtomicUsize,
    /// The slot that is used after this one.
    pub(crate) next: AtomicPtr<OperationSlot>,
}

pub(crate) static RING: [OperationSlot; SLOTS] = linked((&raw const RING).cast());
/// The slot that is used next.
pub(crate) static NEXT: AtomicPtr<OperationSlot> =
    AtomicPtr::new((&raw const RING).cast_mut().cast());

const fn linked(first: *const OperationSlot) -> [OperationSlot; SLOTS] {
    let mut slots = [const { OperationSlot::with_next(ptr::null()) }; SLOTS];
    let mut at = 0;
    let mut rest: &mut [OperationSlot] = &mut slots;
    while let [slot, others @ ..] = rest {
        at += 1;
        *slot = OperationSlot::with_next(first.wrapping_add(at % SLOTS));
        rest = others;
    }
    slots
}

/// The function of an operation, and whether its arguments are those of Fortran, as a number above 0.
pub(crate) const fn kind(function: Function, in_fortran: bool) -> usize {
    (function.0 + 1) | (in_fortran as usize) << FORTRAN_BIT
}
const FORTRAN_BIT: u32 = 16;

/// The positions of the arguments of a function that starts an operation, or prepares one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StartArguments {
    pub(crate) request: usize,
    pub(crate) peer: Option<usize>,
    pub(crate) tag: Option<usize>,
    pub(crate) comm: Option<usize>,
}

impl StartArguments {
    /// None for a function that starts none.
    pub(crate) const fn new(function: &str, names: &[&str]) -> Option<StartArguments> {
        let is_start = matches!(function.as_bytes(), [b'M', b'P', b'I', b'_', b'I', ..])
            || matches!(
                function.as_bytes(),
                [.., b'_', b'i', b'n', b'i', b't'] | [.., b'_', b'i', b'n', b'i', b't', b'_', b'c']
            );
        let (mut request, mut comm) = (None, None);
        let (mut source, mut dest, mut root) = (None, None, None);
        let (mut tag, mut received) = (None, None);
        let mut rest = names;
        let mut at = 0;
        while let [name, others @ ..] = rest {
            match name.as_bytes() {
                b"request" => request = Some(at),
                b"comm" => comm = Some(at),
                b"source" => source = Some(at),
                b"dest" => dest = Some(at),
                b"root" => root = Some(at),
                b"tag" => tag = Some(at),
                b"recvtag" => received = Some(at),
                _ => {}
            }
            rest = others;
            at += 1;
        }
        let peer = match (source, dest, root) {
            (Some(at), ..) | (None, Some(at), _) | (None, None, Some(at)) => Some(at),
            _ => None,
        };
        let tag = match tag {
            None => received,
            some => some,
        };
        match request {
            Some(request) if is_start => Some(StartArguments { request, peer, tag, comm }),
            _ => None,
        }
    }
}

impl OperationSlot {
    const fn with_next(next: *const OperationSlot) -> OperationSlot {
        OperationSlot {
            request: AtomicUsize::new(0),
            handle: AtomicUsize::new(0),
            peer: AtomicUsize::new(0),
            tag: AtomicUsize::new(0),
            comm: AtomicUsize::new(0),
            kind: AtomicUsize::new(0),
            next: AtomicPtr::new(next.cast_mut()),
        }
    }
}

fn next_slot() -> &'static OperationSlot {
    let distance = NEXT.load(Ordering::Relaxed).addr().wrapping_sub((&raw const RING).addr());
    let [first, ..] = &RING;
    RING.get(distance / size_of::<OperationSlot>()).unwrap_or(first)
}

/// The program starts an operation. `word`: an argument, in Fortran what is at its address; `request`: where its request is.
pub(crate) fn begins(
    kind: usize,
    started: StartArguments,
    word: impl Fn(usize) -> usize,
    request: usize,
) {
    let slot = next_slot();
    let set = |place: &AtomicUsize, at: Option<usize>| {
        place.store(at.map_or(0, &word), Ordering::Relaxed);
    };
    slot.request.store(request, Ordering::Relaxed);
    set(&slot.peer, started.peer);
    set(&slot.tag, started.tag);
    set(&slot.comm, started.comm);
    slot.kind.store(kind, Ordering::Relaxed);
}

/// It was started; `handle`: what was written where its request is.
#[inline]
pub(crate) fn has_begun(slot: &OperationSlot, handle: u32) {
    slot.handle.store(handle as usize, Ordering::Relaxed);
    NEXT.store(slot.next.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// The ring of another process.
pub(crate) struct RingSeen {
    /// The place of the slot that is used next.
    next: usize,
    slots: Vec<[usize; WORDS]>,
}

/// The words of a slot.
const WORDS: usize = size_of::<OperationSlot>() / size_of::<usize>();

/// An operation in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct OperationSeen {
    pub(crate) function: Function,
    pub(crate) in_fortran: bool,
    request: usize,
    handle: u32,
    pub(crate) peer: usize,
    pub(crate) tag: usize,
    pub(crate) comm: usize,
}

impl RingSeen {
    /// `read` fills in bytes of that process; `distance`: from the statics of this process to those of the other.
    pub(crate) fn read(
        distance: usize,
        read: impl Fn(usize, &mut [u8]) -> Option<()>,
    ) -> Option<RingSeen> {
        let ring = (&raw const RING).addr().wrapping_add(distance);
        let mut bytes = vec![0; size_of_val(&RING)];
        read(ring, &mut bytes)?;
        let mut next = [0; size_of::<usize>()];
        read((&raw const NEXT).addr().wrapping_add(distance), &mut next)?;
        let (words, _) = bytes.as_chunks();
        let words: Vec<usize> = words.iter().map(|word| usize::from_ne_bytes(*word)).collect();
        let (slots, _) = words.as_chunks();
        let next =
            usize::from_ne_bytes(next).wrapping_sub(ring) / size_of::<OperationSlot>() % SLOTS;
        Some(RingSeen { next, slots: slots.to_vec() })
    }

    /// The operations, the latest first.
    #[allow(clippy::cast_possible_truncation)]
    fn latest(&self) -> impl Iterator<Item = OperationSeen> {
        // The slot that is used next may be of a call that has not ended.
        let latest = (1..SLOTS).map(|back| (self.next + SLOTS - back) % SLOTS);
        latest.filter_map(|at| self.slots.get(at)).filter_map(|slot| {
            let [request, handle, peer, tag, comm, kind, _] = *slot;
            let function = Function((kind & ((1 << FORTRAN_BIT) - 1)).checked_sub(1)?);
            let (handle, in_fortran) = (handle as u32, kind >> FORTRAN_BIT != 0);
            Some(OperationSeen { function, in_fortran, request, handle, peer, tag, comm })
        })
    }

    /// The operation that was started last with this handle; none if it is not in the ring any more.
    pub(crate) fn operation(&self, handle: u32) -> Option<OperationSeen> {
        self.latest().find(|operation| operation.handle == handle)
    }

    /// The operations that may not have ended: the last one with each handle, if that is still where the program had it
    /// written; MPI puts `MPI_REQUEST_NULL` there at the end. `read`: as for [`RingSeen::read`].
    pub(crate) fn may_go_on(
        &self,
        read: impl Fn(usize, &mut [u8]) -> Option<()>,
    ) -> Vec<OperationSeen> {
        let mut handles = BTreeSet::new();
        let is_there = |operation: &OperationSeen| {
            let mut handle = [0; size_of::<u32>()];
            let is_read = read(operation.request, &mut handle).is_some();
            is_read && u32::from_ne_bytes(handle) == operation.handle
        };
        let latest = self.latest().filter(|operation| handles.insert(operation.handle));
        latest.filter(is_there).collect()
    }

    /// Whether there may have been more than are here.
    pub(crate) fn is_full(&self) -> bool {
        self.latest().count() == SLOTS - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_by_their_names() {
        let names = ["buf", "count", "datatype", "source", "tag", "comm", "request"];
        let expected = StartArguments { request: 6, peer: Some(3), tag: Some(4), comm: Some(5) };
        assert_eq!(StartArguments::new("MPI_Irecv", &names), Some(expected));
        assert_eq!(StartArguments::new("MPI_Recv_init_c", &names), Some(expected));
        assert_eq!(StartArguments::new("MPI_Recv", &names), None);
        assert_eq!(StartArguments::new("MPI_Wait", &["request", "status"]), None);
        let expected = StartArguments { request: 1, peer: None, tag: None, comm: Some(0) };
        assert_eq!(StartArguments::new("MPI_Ibarrier", &["comm", "request"]), Some(expected));
    }

    #[test]
    fn a_handle_belongs_to_the_operation_that_was_started_last() {
        // The ring is one of the process.
        let lines = crate::sys::fork::in_a_copy(|out| {
            let mut requests = [0_u32; 3];
            let place = (&raw mut requests).addr();
            let started = StartArguments { request: 3, peer: Some(0), tag: Some(1), comm: Some(2) };
            let start = |peer: usize, number: usize, handle: u32| {
                let request = place + number * size_of::<u32>();
                begins(kind(Function(7), true), started, |at| [peer, 5, 6][at], request);
                assert_eq!(next_slot().request.load(Ordering::Relaxed), request);
                has_begun(next_slot(), handle);
            };
            let pid = i32::try_from(std::process::id()).unwrap();
            let read = |at, into: &mut [u8]| crate::sys::memory::read_from(pid, at, into).ok();
            let ring = || RingSeen::read(0, read).unwrap();
            let peer = |handle| ring().operation(handle).map(|operation| operation.peer);
            assert_eq!(peer(1), None);
            start(1, 0, 11);
            start(2, 1, 12);
            start(3, 0, 11);
            assert_eq!([11, 12, 13].map(peer), [Some(3), Some(2), None]);
            requests[0] = 11;
            let goes_on = || ring().may_go_on(read).iter().map(|of| of.peer).collect::<Vec<_>>();
            assert_eq!(goes_on(), [3], "the other one has ended, or never was");
            std::hint::black_box(&mut requests)[1] = 12;
            assert_eq!(goes_on(), [3, 2]);
            assert!(!ring().is_full());
            for handle in 0..u32::try_from(SLOTS).unwrap() {
                start(4, 2, 1000 + handle);
            }
            assert_eq!([11, 1001].map(peer), [None, Some(4)]);
            assert!(ring().is_full());
            writeln!(out, "done")
        });
        assert_eq!(lines, "done\n");
    }
}
