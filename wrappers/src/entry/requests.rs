//! What do persistent and partitioned operations move when they are started? The call that prepared them says
//! so, and that is remembered for the request (MPI 4.1, 3.9, 4.2, 6.13).

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::calls::traffic::{NOBODY, Sent, Way};
use crate::entry::bytes::Moves;
use crate::mpi::abi::inquiry;
use crate::mpi::handles::{Language, Passed};
use crate::sys::alloc;
use crate::sys::cells::Counter;
use crate::sys::lookup::Lookup;

/// What moves when an operation is started.
#[derive(Clone, Copy)]
pub(crate) struct Prepared {
    started: Sent,
    /// What one partition moves when it is ready.
    partition: u64,
}

impl From<u64> for Prepared {
    fn from(bytes: u64) -> Prepared {
        Prepared { started: Sent::to_nobody(bytes), partition: 0 }
    }
}

impl From<Sent> for Prepared {
    fn from(started: Sent) -> Prepared {
        Prepared { started, partition: 0 }
    }
}

impl Prepared {
    /// A message whose partitions move `bytes` each.
    pub(crate) fn partitioned(partition: Sent) -> Prepared {
        let started = Sent::to(partition.peer(), Way::Message, 0);
        Prepared { started, partition: partition.bytes }
    }
}

/// The same, stored permanently.
struct KeptPrepared {
    started: Counter,
    partition: Counter,
    to: Counter,
}

static REQUESTS: Lookup<KeptPrepared> = Lookup::new();
/// The slots of requests that were freed.
static FREE: Mutex<Vec<&'static KeptPrepared>> = Mutex::new(Vec::new());

/// A request as the program stores it. If C requests are pointers, Fortran has separate numbers for them.
fn key(language: Language, request: usize) -> usize {
    const FORTRAN: usize = 1 << (usize::BITS - 2);
    let is_int = inquiry().is_some_and(|mpi| mpi.abi.handle_bytes == size_of::<u32>());
    match language {
        _ if is_int => request & 0xffff_ffff,
        Language::C => request,
        Language::Fortran => request | FORTRAN,
    }
}

/// A call that made a request for an operation has succeeded.
#[cold]
pub(super) fn prepared(at: Passed, prepared: Prepared) {
    let Some(request) = at.request(0) else { return };
    if alloc::is_short() {
        return;
    }
    let key = key(at.language, request);
    // There is one already if it was freed where gyan does not see it.
    let kept = REQUESTS.take(key).or_else(|| free_slots().pop()).unwrap_or_else(|| {
        let [started, partition, to] = [const { Counter::new(0) }; 3];
        Box::leak(Box::new(KeptPrepared { started, partition, to }))
    });
    kept.started.set(prepared.started.bytes);
    kept.partition.set(prepared.partition);
    kept.to.set(prepared.started.peer().into());
    if !REQUESTS.put(key, kept) {
        free_slots().push(kept);
    }
}

fn free_slots() -> MutexGuard<'static, Vec<&'static KeptPrepared>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request is about to be freed.
#[cold]
pub(crate) fn freed(at: Passed) {
    let Some(request) = at.request(0) else { return };
    if let Some(kept) = REQUESTS.take(key(at.language, request)) {
        free_slots().push(kept);
    }
}

fn find(language: Language, request: usize) -> Option<Prepared> {
    let kept = REQUESTS.get(key(language, request))?;
    let to = u32::try_from(kept.to.get()).unwrap_or(NOBODY);
    // Only messages have a single peer.
    let started = Sent::to(to, Way::Message, kept.started.get());
    Some(Prepared { started, partition: kept.partition.get() })
}

/// Requests that are started.
pub(crate) struct Started {
    pub(crate) requests: Passed,
    pub(crate) count: usize,
}

impl Moves for Started {
    fn show(self, send: &mut impl FnMut(Sent)) -> u64 {
        let Started { requests, count } = self;
        let all = (0..count).map_while(|at| requests.request(at));
        let known = all.filter_map(|request| find(requests.language, request));
        known.fold(0, |sum: u64, prepared| sum.saturating_add(prepared.started.show(send)))
    }
}

/// Partitions of a request that are ready.
pub(crate) struct Ready {
    pub(crate) language: Language,
    pub(crate) request: usize,
    pub(crate) partitions: u64,
}

impl Moves for Ready {
    fn show(self, send: &mut impl FnMut(Sent)) -> u64 {
        let Ready { language, request, partitions } = self;
        let Some(Prepared { started, partition }) = find(language, request) else { return 0 };
        let bytes = partition.saturating_mul(partitions);
        // The message was already counted when it was started.
        started.more(bytes).show(send)
    }
}
