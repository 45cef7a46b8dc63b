//! The receives in a call: which message does each wait for, and on which communicator? Also those that
//! were prepared long before and are started now.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::mpi::abi::inquiry;
use crate::mpi::functions::{Posted, Receives};
use crate::mpi::handles::{Language, integer};
use crate::sys::fixed_map::{Row, Table, mixed};
use crate::sys::peek::{element, word};

/// Persistent receives that are known at a time.
const PREPARED_AT_MOST: usize = 4096;

/// One receive; none for what is not known or is a wildcard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receive {
    pub(super) comm: Option<usize>,
    pub(super) source: Option<i32>,
    pub(super) tag: Option<i32>,
}

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    pub(super) language: Language,
    pub(super) words: &'a [usize],
}

/// What there is to do when the call succeeded.
pub(super) enum Then {
    Nothing,
    /// The status tells what was received.
    Status(usize),
    /// The request at a place stands for a receive.
    Prepared(usize, Receive),
}

/// The bits of a word that are a handle: of one that is an `int` the upper half is undefined.
static COMM_BITS: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The persistent receives, by their requests.
static PREPARED: Mutex<Option<Table<Prepared>>> = Mutex::new(None);

struct Prepared {
    language: Language,
    request: usize,
    receive: Receive,
}

impl Row for Prepared {
    type Key = (Language, usize);

    fn key(&self) -> (Language, usize) {
        (self.language, self.request)
    }

    fn is(&self, key: (Language, usize)) -> bool {
        self.key() == key
    }

    fn hash((language, request): (Language, usize)) -> u64 {
        mixed(request as u64, u64::from(language == Language::Fortran))
    }
}

pub(super) fn prepare() {
    let is_int = inquiry().is_some_and(|mpi| mpi.abi.handle_bytes == size_of::<u32>());
    COMM_BITS.store(if is_int { 0xffff_ffff } else { usize::MAX }, Ordering::Relaxed);
    with_prepared(|prepared| _ = prepared.get_or_insert_with(|| Table::new(PREPARED_AT_MOST)));
}

fn with_prepared<T>(work: impl FnOnce(&mut Option<Table<Prepared>>) -> T) -> T {
    work(&mut PREPARED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Shows each receive in a call of another function than one that posts a receive. What there is to do
/// when it succeeds.
pub(super) fn other(
    receives: Receives,
    arguments: Arguments,
    show: &mut dyn FnMut(Receive),
) -> Option<Then> {
    match receives {
        // Not here.
        Receives::Posts(_) => {}
        Receives::Matched => show(Receive::default()),
        Receives::Prepares { posted, request } => {
            let comm = arguments.comm(posted.comm);
            let (source, tag) = arguments.source_and_tag(posted);
            return Some(Then::Prepared(request, Receive { comm, source, tag }));
        }
        Receives::Starts { request } => arguments.started(request, 1, show),
        Receives::StartsAll { count, requests } => {
            let count = arguments.integer(count).and_then(|count| usize::try_from(count).ok());
            arguments.started(requests, count.unwrap_or(0), show);
        }
        Receives::Frees { request } => {
            if let Some(request) = arguments.request(request, 0) {
                let key = (arguments.language, request);
                with_prepared(|prepared| prepared.as_mut().and_then(|known| known.take(key)));
            }
        }
    }
    None
}

impl Then {
    /// The call succeeded: source and tag of what was received, when that is known now.
    pub(super) fn happened(self, arguments: Arguments) -> Option<(i32, i32)> {
        match self {
            Then::Nothing => None,
            Then::Status(at) => arguments.status(at),
            Then::Prepared(at, receive) => {
                let request = arguments.request(at, 0)?;
                let language = arguments.language;
                with_prepared(|prepared| {
                    // One too many is not watched.
                    prepared.as_mut()?.put(Prepared { language, request, receive });
                    None
                })
            }
        }
    }
}

impl Arguments<'_> {
    #[inline]
    fn word(self, place: usize) -> usize {
        self.words.get(place).copied().unwrap_or(0)
    }

    fn integer(self, place: usize) -> Option<c_int> {
        integer(self.language, self.word(place))
    }

    /// The communicator at a place, as `objects` knows it.
    #[inline]
    pub(super) fn comm(self, place: usize) -> Option<usize> {
        let word = self.word(place);
        match self.language {
            Language::C => Some(word & COMM_BITS.load(Ordering::Relaxed)),
            Language::Fortran => inquiry()?.comm(integer(Language::Fortran, word)?),
        }
    }

    pub(super) fn source_and_tag(self, posted: Posted) -> (Option<i32>, Option<i32>) {
        let Some(mpi) = inquiry() else { return (None, None) };
        let source = self.integer(posted.source).filter(|source| *source != mpi.abi.any_source);
        (source, self.integer(posted.tag).filter(|tag| *tag != mpi.abi.any_tag))
    }

    /// The request at index `at` of an array.
    fn request(self, place: usize, at: usize) -> Option<usize> {
        let address = self.word(place);
        let bytes = match self.language {
            Language::C => inquiry()?.abi.handle_bytes,
            Language::Fortran => size_of::<c_int>(),
        };
        // SAFETY: the program passed an array of requests of so many bytes with this element.
        (address != 0).then(|| unsafe { word(address, bytes, at) })
    }

    fn started(self, place: usize, count: usize, show: &mut dyn FnMut(Receive)) {
        for at in 0..count {
            let Some(request) = self.request(place, at) else { return };
            let key = (self.language, request);
            let receive = with_prepared(|prepared| Some(prepared.as_mut()?.get(key)?.receive));
            if let Some(receive) = receive {
                show(receive);
            }
        }
    }

    /// Source and tag in the status at a place, of a call from C that succeeded.
    fn status(self, place: usize) -> Option<(i32, i32)> {
        let mpi = inquiry()?;
        let status = self.word(place);
        if self.language == Language::Fortran || status == 0 || status == mpi.abi.status_ignore {
            return None;
        }
        let [source, tag] = mpi.abi.status_source_and_tag.map(|offset| {
            // SAFETY: the program passed a status, and the call filled it in.
            unsafe { element::<c_int>(status + offset, 0) }
        });
        Some((source, tag))
    }
}
