//! The receives in a call: which message does each wait for, and on which communicator? Includes persistent
//! ones that are started now.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::mpi::abi::inquiry;
use crate::mpi::functions::{Posted, Receives};
use crate::mpi::handles::{Arguments, Language, Passed};
use crate::sys::fixed_map::FixedMap;
use crate::sys::locks::held;

/// Persistent receives that are known at a time.
const PREPARED_AT_MOST: usize = 4096;

/// One receive; fields are none if not known or a wildcard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receive {
    pub(super) comm: Option<usize>,
    pub(super) source: Option<i32>,
    pub(super) tag: Option<i32>,
}

/// What to do once the call has succeeded.
pub(super) enum Then {
    Nothing,
    /// The status says what was received.
    Status(u8),
    /// The request at an argument position stands for a receive.
    PreparedReceives(u8, Receive),
}

/// The bits of a word that are a handle: of one that is an `int` the upper half is undefined.
static COMM_BITS: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The persistent receives, by their requests.
type PreparedReceives = FixedMap<(Language, usize), Receive>;
static PREPARED: Mutex<Option<PreparedReceives>> = Mutex::new(None);

pub(super) fn prepare() {
    let is_int = inquiry().is_some_and(|mpi| mpi.abi.handle_bytes == size_of::<u32>());
    COMM_BITS.store(if is_int { 0xffff_ffff } else { usize::MAX }, Ordering::Relaxed);
    with_prepared(|prepared| _ = prepared.get_or_insert_with(|| FixedMap::new(PREPARED_AT_MOST)));
}

fn with_prepared<T>(work: impl FnOnce(&mut Option<PreparedReceives>) -> T) -> T {
    work(&mut held(&PREPARED))
}

/// Shows each receive in a call of a function other than one that posts a receive. Returns what to do once it
/// succeeds.
pub(super) fn other(
    receives: Receives,
    arguments: Arguments,
    show: &mut dyn FnMut(Receive),
) -> Option<Then> {
    match receives {
        // Not handled here.
        Receives::Posts(_) => {}
        Receives::Matched => show(Receive::default()),
        Receives::Prepares { posted, request } => {
            let comm = comm(arguments.at(posted.comm));
            let (source, tag) = source_and_tag(arguments, posted);
            return Some(Then::PreparedReceives(request, Receive { comm, source, tag }));
        }
        Receives::Starts { request } => started(arguments.at(request), 1, show),
        Receives::StartsAll { count, requests } => {
            started(arguments.at(requests), arguments.at(count).number(), show);
        }
        Receives::Frees { request } => {
            let at = arguments.at(request);
            if let Some(request) = at.request(0) {
                let key = (at.language, request);
                with_prepared(|prepared| prepared.as_mut().and_then(|known| known.take(&key)));
            }
        }
    }
    None
}

impl Then {
    /// The call succeeded: source and tag of what was received, if known now.
    pub(super) fn happened(self, arguments: Arguments) -> Option<(i32, i32)> {
        match self {
            Then::Nothing => None,
            Then::Status(at) => arguments.at(at).source_and_tag(),
            Then::PreparedReceives(at, receive) => {
                let at = arguments.at(at);
                let (language, request) = (at.language, at.request(0)?);
                with_prepared(|prepared| {
                    // A receive beyond the limit is not watched.
                    prepared.as_mut()?.put((language, request), receive);
                    None
                })
            }
        }
    }
}

/// The communicator, in the form that `objects` uses.
#[inline]
pub(super) fn comm(argument: Passed) -> Option<usize> {
    Some(argument.comm()? & COMM_BITS.load(Ordering::Relaxed))
}

pub(super) fn source_and_tag(arguments: Arguments, posted: Posted) -> (Option<i32>, Option<i32>) {
    let Some(mpi) = inquiry() else { return (None, None) };
    let but = |place, any| arguments.at(place).integer().filter(|number| *number != any);
    (but(posted.source, mpi.abi.any_source), but(posted.tag, mpi.abi.any_tag))
}

fn started(requests: Passed, count: usize, show: &mut dyn FnMut(Receive)) {
    for request in (0..count).map_while(|at| requests.request(at)) {
        let key = (requests.language, request);
        let receive = with_prepared(|prepared| prepared.as_mut()?.get(&key).copied());
        if let Some(receive) = receive {
            show(receive);
        }
    }
}
