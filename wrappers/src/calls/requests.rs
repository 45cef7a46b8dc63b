//! What do requests stand for? The operations that were started last, for the keeper, which finds among them what a call
//! waits for. A handle that is used again belongs to the operation that was started last.
//!
//! Where one thread calls MPI, they are in a ring. Threads have no order in which they could share one: there, each
//! operation has the place of its handle in a table, which the next one with such a handle takes.

use std::collections::BTreeSet;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::mpi::functions::Function;
use crate::sys::lookup::{position, spread};
use crate::sys::memory::ReadProcess;

/// How many operations are kept.
const SLOTS: usize = 256;

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
        let peer = match (position(names, "source"), position(names, "dest")) {
            (Some(at), _) | (None, Some(at)) => Some(at),
            (None, None) => position(names, "root"),
        };
        let tag = match position(names, "tag") {
            None => position(names, "recvtag"),
            some => some,
        };
        let comm = position(names, "comm");
        match position(names, "request") {
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

/// An operation that one of several threads has started. Each word has something of the handle in it, so that words of two
/// operations are never taken for one.
#[repr(C)]
struct SharedSlot {
    request: AtomicUsize,
    comm: AtomicUsize,
    /// As in [`OperationSlot`], above each the handle.
    peer: AtomicUsize,
    tag: AtomicUsize,
    kind: AtomicUsize,
    /// What [`seal`] says.
    seal: AtomicUsize,
}

/// Operations of threads, by handle.
static TABLE: [SharedSlot; PLACES] = [const {
    SharedSlot {
        request: AtomicUsize::new(0),
        comm: AtomicUsize::new(0),
        peer: AtomicUsize::new(0),
        tag: AtomicUsize::new(0),
        kind: AtomicUsize::new(0),
        seal: AtomicUsize::new(0),
    }
}; PLACES];
const PLACES: usize = 1 << PLACES_BITS;
const PLACES_BITS: u32 = 10;
/// Whether an operation took the place of one with another handle.
static IS_SHORT: AtomicBool = AtomicBool::new(false);

const HANDLE_BIT: u32 = 32;
const LOW: usize = (1 << HANDLE_BIT) - 1;

/// A number that belongs to these words together.
#[allow(clippy::cast_possible_truncation)]
fn seal(handle: usize, request: usize, comm: usize) -> usize {
    request.rotate_left(HANDLE_BIT) ^ comm ^ spread(handle) as usize
}

/// The same for one of several threads, once the operation was started.
#[allow(clippy::cast_possible_truncation)]
#[inline]
pub(crate) fn has_begun_in_thread(
    kind: usize,
    started: StartArguments,
    word: impl Fn(usize) -> usize,
    request: usize,
    handle: u32,
) {
    let handle = handle as usize;
    let Some(slot) = TABLE.get((spread(handle) >> (u64::BITS - PLACES_BITS)) as usize) else {
        return;
    };
    let before = slot.peer.load(Ordering::Relaxed) >> HANDLE_BIT;
    if before != 0 && before != handle {
        IS_SHORT.store(true, Ordering::Relaxed);
    }
    let comm = started.comm.map_or(0, &word);
    let of = |at: Option<usize>| at.map_or(0, &word) & LOW | handle << HANDLE_BIT;
    slot.request.store(request, Ordering::Relaxed);
    slot.comm.store(comm, Ordering::Relaxed);
    slot.peer.store(of(started.peer), Ordering::Relaxed);
    slot.tag.store(of(started.tag), Ordering::Relaxed);
    slot.kind.store(kind | handle << HANDLE_BIT, Ordering::Relaxed);
    slot.seal.store(seal(handle, request, comm), Ordering::Relaxed);
}

/// The operations that another process has started.
pub(crate) struct StartedSeen {
    /// The latest first, where that is known.
    latest: Vec<OperationSeen>,
    /// Whether there may have been more than are here.
    pub(crate) is_short: bool,
}

/// The words of a slot.
const WORDS: usize = size_of::<OperationSlot>() / size_of::<usize>();
const SHARED_WORDS: usize = size_of::<SharedSlot>() / size_of::<usize>();

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

impl OperationSeen {
    #[allow(clippy::cast_possible_truncation)]
    fn in_ring(slot: [usize; WORDS]) -> Option<OperationSeen> {
        let [request, handle, peer, tag, comm, kind, _] = slot;
        let function = Function((kind & ((1 << FORTRAN_BIT) - 1)).checked_sub(1)?);
        let (handle, in_fortran) = (handle as u32, kind >> FORTRAN_BIT != 0);
        Some(OperationSeen { function, in_fortran, request, handle, peer, tag, comm })
    }

    /// None for a slot that was never used, or in which two threads wrote at once.
    fn in_table(slot: [usize; SHARED_WORDS]) -> Option<OperationSeen> {
        let [request, comm, peer, tag, kind, sealed] = slot;
        let handle = peer >> HANDLE_BIT;
        let is_whole = [tag, kind].iter().all(|word| word >> HANDLE_BIT == handle)
            && sealed == seal(handle, request, comm);
        let slot = [request, handle, peer & LOW, tag & LOW, comm, kind & LOW, 0];
        Self::in_ring(slot).filter(|_| is_whole)
    }
}

impl StartedSeen {
    /// `distance`: from the statics of this process to those of the other.
    pub(crate) fn read(
        process: ReadProcess,
        distance: usize,
        is_threaded: bool,
    ) -> Option<StartedSeen> {
        if is_threaded {
            return Self::in_table(process, distance);
        }
        let ring = (&raw const RING).addr().wrapping_add(distance);
        let words = process.words(ring, SLOTS * WORDS)?;
        let (slots, _) = words.as_chunks();
        let next: usize = process.read((&raw const NEXT).addr().wrapping_add(distance))?;
        let next = next.wrapping_sub(ring) / size_of::<OperationSlot>() % SLOTS;
        // The slot that is used next may be of a call that has not ended.
        let latest = (1..SLOTS).map(|back| (next + SLOTS - back) % SLOTS);
        let latest = latest.filter_map(|at| OperationSeen::in_ring(*slots.get(at)?));
        let latest: Vec<OperationSeen> = latest.collect();
        let is_short = latest.len() == SLOTS - 1;
        Some(StartedSeen { latest, is_short })
    }

    fn in_table(process: ReadProcess, distance: usize) -> Option<StartedSeen> {
        let table = (&raw const TABLE).addr().wrapping_add(distance);
        let words = process.words(table, PLACES * SHARED_WORDS)?;
        let (slots, _) = words.as_chunks();
        let latest = slots.iter().filter_map(|slot| OperationSeen::in_table(*slot)).collect();
        let is_short: u8 = process.read((&raw const IS_SHORT).addr().wrapping_add(distance))?;
        Some(StartedSeen { latest, is_short: is_short != 0 })
    }

    /// The operation that was started last with this handle; none if it is not here any more.
    pub(crate) fn operation(&self, handle: u32) -> Option<OperationSeen> {
        self.latest.iter().find(|operation| operation.handle == handle).copied()
    }

    /// The operations that may not have ended: the last one with each handle, if that is still where the program had it
    /// written; MPI puts `MPI_REQUEST_NULL` there at the end.
    pub(crate) fn may_go_on(&self, process: ReadProcess) -> Vec<OperationSeen> {
        let mut handles = BTreeSet::new();
        let is_there = |operation: &OperationSeen| {
            process.read::<u32>(operation.request) == Some(operation.handle)
        };
        let latest = self.latest.iter().filter(|operation| handles.insert(operation.handle));
        latest.copied().filter(is_there).collect()
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
            let process = ReadProcess(pid);
            let ring = || StartedSeen::read(process, 0, false).unwrap();
            let peer = |handle| ring().operation(handle).map(|operation| operation.peer);
            assert_eq!(peer(1), None);
            start(1, 0, 11);
            start(2, 1, 12);
            start(3, 0, 11);
            assert_eq!([11, 12, 13].map(peer), [Some(3), Some(2), None]);
            requests[0] = 11;
            let goes_on = || ring().may_go_on(process).iter().map(|of| of.peer).collect::<Vec<_>>();
            assert_eq!(goes_on(), [3], "the other one has ended, or never was");
            std::hint::black_box(&mut requests)[1] = 12;
            assert_eq!(goes_on(), [3, 2]);
            assert!(!ring().is_short);
            for handle in 0..u32::try_from(SLOTS).unwrap() {
                start(4, 2, 1000 + handle);
            }
            assert_eq!([11, 1001].map(peer), [None, Some(4)]);
            assert!(ring().is_short);
            writeln!(out, "done")
        });
        assert_eq!(lines, "done\n");
    }

    #[test]
    fn an_operation_of_a_thread_has_the_place_of_its_handle() {
        // The table is one of the process.
        let lines = crate::sys::fork::in_a_copy(|out| {
            let mut requests = [0_u32; 2];
            let place = (&raw mut requests).addr();
            let started = StartArguments { request: 3, peer: Some(0), tag: Some(1), comm: Some(2) };
            let start = |peer: usize, comm: usize, handle: u32| {
                let word = |at: usize| [peer | 7 << 40, 5, comm][at];
                has_begun_in_thread(kind(Function(7), true), started, word, place, handle);
            };
            let pid = i32::try_from(std::process::id()).unwrap();
            let process = ReadProcess(pid);
            let table = || StartedSeen::read(process, 0, true).unwrap();
            let peer = |handle| table().operation(handle).map(|operation| operation.peer);
            assert!(table().latest.is_empty());
            start(1, 6, 11);
            start(u32::MAX as usize, 1 << 63, 12);
            start(3, usize::MAX, 11);
            assert_eq!([11, 12, 13].map(peer), [Some(3), Some(u32::MAX as usize), None]);
            let found = table().operation(11).unwrap();
            let all = (found.function, found.in_fortran, found.request, found.tag, found.comm);
            assert_eq!(all, (Function(7), true, place, 5, usize::MAX));
            std::hint::black_box(&mut requests)[0] = 12;
            assert_eq!(table().may_go_on(process).len(), 1);
            assert!(!table().is_short);
            // Words of two operations in one slot, whichever they are.
            let slot = TABLE.iter().find(|slot| slot.peer.load(Ordering::Relaxed) >> 32 == 11);
            let slot = slot.unwrap();
            let words = [&slot.request, &slot.comm, &slot.peer, &slot.tag, &slot.kind, &slot.seal];
            let old = words.map(|word| word.load(Ordering::Relaxed));
            start(4, 8, 11);
            for mixed in 1..(1 << words.len()) - 1 {
                let new = words.map(|word| word.load(Ordering::Relaxed));
                let is_old = |at: usize| mixed >> at & 1 == 1;
                let mix = std::array::from_fn(|at| if is_old(at) { old[at] } else { new[at] });
                let seen = OperationSeen::in_table(mix);
                assert!(seen.is_none_or(|seen| seen.comm == new[1] || seen.comm == old[1]));
            }
            for handle in 1..=u32::try_from(PLACES).unwrap() {
                start(4, 2, 1_000_003 * handle);
                assert_eq!(peer(1_000_003 * handle), Some(4));
            }
            assert!(table().is_short);
            writeln!(out, "done")
        });
        assert_eq!(lines, "done\n");
    }
}
