//! Which operations that are timed have not completed yet? Messages and collective operations that only a request stands for, until
//! a call completes it.
//!
//! Completions are examined while there is one. Does not know what becomes of them: that is of [`streams`] and
//! [`waiting`](super::waiting).

use std::sync::Mutex;

use super::streams::{self, CallTimes, PendingMessage};
use super::waiting::PendingCollective;
use crate::calls::containment::contain;
use crate::calls::gate::{self, CompletionsFor};
use crate::mpi::handles::{Language, Passed};
use crate::sys::fixed_map::FixedMap;
use crate::sys::locks::held;

/// How many operations that are timed may not have ended at a time.
const PENDING_AT_MOST: usize = 4096;
/// How many of them may have the same request.
const ALIKE_AT_MOST: u32 = 256;
/// How many requests that are not timed may complete while one that is timed does not: one that never completes must not
/// have every completion examined.
pub(super) const PATIENCE: u32 = 4096;

static PENDING: Mutex<Option<PendingRequests>> = Mutex::new(None);

struct PendingRequests {
    /// By request. MPICH has one for all sends that have ended already, so there may be several of a request, numbered from 0.
    operations: FixedMap<(Language, usize, u32), PendingOperation>,
    /// How many other requests have completed since one of those did.
    others_completed: u32,
}

/// What a request stands for.
#[derive(Clone, Copy)]
pub(super) enum PendingOperation {
    Message(PendingMessage),
    /// What one call sends and receives.
    Both(PendingMessage, PendingMessage),
    Collective(PendingCollective),
}

/// From now on there may be some, if wanted.
pub(crate) fn begin(on: bool) {
    let requests = on.then(|| PendingRequests {
        operations: FixedMap::new(PENDING_AT_MOST),
        others_completed: 0,
    });
    *held(&PENDING) = requests;
}

/// Does something with those that there are, and has completions examined as long as there are any left.
fn with_pending<T>(work: impl FnOnce(&mut PendingRequests) -> T) -> Option<T> {
    contain("following a request", || {
        let mut requests = held(&PENDING);
        let requests = requests.as_mut()?;
        let result = work(requests);
        gate::watch_completions(CompletionsFor::TimedOperations, !requests.operations.is_empty());
        Some(result)
    })?
}

/// Keeps an operation until its request completes; without room it is not known.
pub(super) fn keep((language, request): (Language, usize), operation: PendingOperation) {
    with_pending(|requests| {
        requests.others_completed = 0;
        let mut free = (0..ALIKE_AT_MOST).map(|number| (language, request, number));
        let free = free.find(|key| requests.operations.get(key).is_none());
        free.is_some_and(|key| requests.operations.put(key, operation))
    });
}

/// The same of a message, which may be the second one of the call that made the request.
pub(super) fn keep_message(request: (Language, usize), message: PendingMessage) {
    let is_second = with_pending(|requests| {
        let Some(key) = requests.latest(request.0, request.1) else { return false };
        match requests.operations.get(&key) {
            Some(operation) => match *operation {
                PendingOperation::Message(first) if first.is_begun_with(&message) => {
                    *operation = PendingOperation::Both(first, message);
                    true
                }
                _ => false,
            },
            None => false,
        }
    });
    if is_second != Some(true) {
        keep(request, PendingOperation::Message(message));
    }
}

/// A request has completed in this call. `is_persistent`: it may be that of a persistent operation, and stays.
pub(crate) fn completed(
    language: Language,
    request: usize,
    is_persistent: bool,
    called: CallTimes,
) {
    let operation = with_pending(|requests| {
        let operation = requests.take(language, request);
        if operation.is_none() && !is_persistent {
            requests.others_completed += 1;
            if requests.others_completed > PATIENCE {
                requests.operations.clear();
            }
        }
        operation
    });
    match operation.flatten() {
        Some(PendingOperation::Message(message)) => streams::completed(message, called),
        Some(PendingOperation::Both(sent, received)) => {
            streams::completed(sent, called);
            streams::completed(received, called);
        }
        Some(PendingOperation::Collective(collective)) => collective.completed(called),
        None => {}
    }
}

/// A request is about to be freed.
pub(crate) fn request_goes(request: Passed) {
    if gate::watches_completions()
        && let Some(handle) = request.request(0)
    {
        with_pending(|requests| requests.take(request.language, handle).is_some());
    }
}

impl PendingRequests {
    /// The operation of a request, which is completed or freed; the latest one of several.
    fn take(&mut self, language: Language, request: usize) -> Option<PendingOperation> {
        let last = self.latest(language, request)?;
        self.others_completed = 0;
        self.operations.take(&last)
    }

    /// The key of the latest one.
    fn latest(&mut self, language: Language, request: usize) -> Option<(Language, usize, u32)> {
        let keys = (0..ALIKE_AT_MOST).map(|number| (language, request, number));
        keys.take_while(|key| self.operations.get(key).is_some()).last()
    }
}
