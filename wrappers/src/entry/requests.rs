//! What do persistent and partitioned operations move when they are started? The call that prepared them says
//! so, and that is remembered for the request (MPI 4.1, 3.9, 4.2, 6.13).

use std::sync::Mutex;

use crate::calls::ledger::Ledger;
use crate::calls::traffic::{NOBODY, Sent, Way};
use crate::entry::bytes::Moves;
use crate::mpi::abi::inquiry;
use crate::mpi::handles::{Arguments, Language, Passed};
use crate::observe::streams::{self, CallTimes, MessageArguments, StreamCount, Untimed};
use crate::sys::alloc;
use crate::sys::cells::Counter;
use crate::sys::locks::held;
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
    /// The number of the stream of its messages.
    stream: Counter,
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
    let kept = REQUESTS.take(key).or_else(|| held(&FREE).pop()).unwrap_or_else(|| {
        let [started, partition, to, stream] = [const { Counter::new(0) }; 4];
        Box::leak(Box::new(KeptPrepared { started, partition, to, stream }))
    });
    kept.started.set(prepared.started.bytes);
    kept.partition.set(prepared.partition);
    kept.to.set(prepared.started.peer().into());
    kept.stream.set(streams::take_prepared());
    if !REQUESTS.put(key, kept) {
        held(&FREE).push(kept);
    }
}

/// A request is about to be freed.
#[cold]
pub(crate) fn freed(at: Passed) {
    let Some(request) = at.request(0) else { return };
    if let Some(kept) = REQUESTS.take(key(at.language, request)) {
        held(&FREE).push(kept);
    }
}

impl KeptPrepared {
    fn find(language: Language, request: usize) -> Option<&'static KeptPrepared> {
        REQUESTS.get(key(language, request))
    }

    fn known(&self) -> Prepared {
        let to = u32::try_from(self.to.get()).unwrap_or(NOBODY);
        // Only messages have a single peer.
        let started = Sent::to(to, Way::Message, self.started.get());
        Prepared { started, partition: self.partition.get() }
    }

    fn stream(&self) -> Option<&'static StreamCount> {
        StreamCount::numbered(self.stream.get())
    }
}

/// Requests that are started.
pub(crate) struct Started {
    pub(crate) requests: Passed,
    pub(crate) count: usize,
}

impl Started {
    /// With the request of each, as the program stores it.
    fn known(&self) -> impl Iterator<Item = (usize, &'static KeptPrepared)> {
        let Started { requests, count } = *self;
        let all = (0..count).map_while(move |at| requests.request(at));
        all.filter_map(move |request| {
            Some((request, KeptPrepared::find(requests.language, request)?))
        })
    }

    /// The messages that are timed, with their requests.
    fn timed(&self) -> impl Iterator<Item = (usize, &'static StreamCount)> {
        let streams = self.known().filter_map(|(request, kept)| Some((request, kept.stream()?)));
        streams.filter(|(_, stream)| stream.is_due())
    }
}

impl Moves for Started {
    fn show(self, send: &mut impl FnMut(Sent)) -> u64 {
        self.known().fold(0, |sum: u64, (_, kept)| {
            if let Some(stream) = kept.stream() {
                stream.count_started();
            }
            sum.saturating_add(kept.known().started.show(send))
        })
    }
}

/// What a call counts before it is forwarded; none if one of its messages is timed.
#[inline]
pub(super) fn untimed(at: MessageArguments, arguments: Arguments) -> Option<Untimed> {
    if !at.is_start() {
        return streams::untimed_among(at, arguments);
    }
    if !streams::has_prepared() {
        return Some(Untimed::NOTHING);
    }
    let (requests, count) = at.started(arguments)?;
    let is_timed = Started { requests, count }.timed().next().is_some();
    (!is_timed).then(Untimed::started)
}

/// A call with messages that are timed has succeeded. `ledger`: of the thread.
pub(super) fn exchanged(
    at: MessageArguments,
    arguments: Arguments,
    called: CallTimes,
    ledger: &'static Ledger,
) {
    let Some((requests, count)) = at.started(arguments) else {
        return streams::exchanged(at, arguments, called, ledger);
    };
    for (request, stream) in (Started { requests, count }).timed() {
        streams::started(stream, (requests.language, request), called, ledger);
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
        let Some(kept) = KeptPrepared::find(language, request) else { return 0 };
        let Prepared { started, partition } = kept.known();
        let bytes = partition.saturating_mul(partitions);
        // The message was already counted when it was started.
        started.more(bytes).show(send)
    }
}
