//! Which communicators, windows and files are created and freed? The wrappers of the functions that do it
//! report that here, for the variables that are bound to them.
//!
//! A communicator of `MPI_Comm_idup` exists once its request completes. Completions are only examined while
//! there is such a request.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::containment::contain;
use crate::calls::gate::{self, CompletionsFor, Scope};
use crate::entry::requests;
use crate::mpi::handles::{Kind, Language, Passed};
use crate::observe::communicators::{self, Like};
use crate::observe::objects;
use crate::observe::pvars::LastReading;
use crate::observe::streams::{self, CallTimes};
use crate::run;

/// What a call changes when it succeeds.
#[must_use]
pub(crate) enum ObjectChange {
    Nothing,
    /// An object is created; the call writes its handle.
    Comes {
        kind: Kind,
        at: Passed,
        parent: Option<Parent>,
    },
    /// The call writes the handle of a communicator that exists already.
    Found {
        at: Passed,
    },
    /// A communicator is created when a request completes.
    Begins {
        comm: Passed,
        request: Passed,
        parent: Parent,
    },
    /// Requests may complete: as they were before.
    Completes {
        at: Passed,
        before: Vec<usize>,
    },
}

/// The communicator whose ranks a new one has.
#[derive(Clone, Copy)]
pub(crate) struct Parent {
    comm: Passed,
    /// None if the new one has some of the ranks, in any order.
    like: Option<Like>,
}

/// A communicator that may not be used yet.
struct Pending {
    language: Language,
    /// As the program stores it.
    request: usize,
    comm: usize,
}

static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

/// The communicator that was found last, while it lives: the parent's, or the handle that stands for none.
static FOUND: AtomicUsize = AtomicUsize::new(usize::MAX);

macro_rules! creates {
    ($($name:ident $kind:ident),*) => {
        /// Rows that create an object.
        pub(crate) mod creates {
            use super::{ObjectChange, Kind, Like, Parent, Passed, Scope};
            $(pub(crate) fn $name(scope: &Scope, at: Passed) -> ObjectChange {
                if scope.is_of_program() {
                    ObjectChange::Comes { kind: Kind::$kind, at, parent: None }
                } else {
                    ObjectChange::Nothing
                }
            })*

            /// A communicator with the ranks of its parent.
            pub(crate) fn duplicate(scope: &Scope, at: Passed, parent: Passed) -> ObjectChange {
                like(scope, at, Parent { comm: parent, like: Some(Like::Duplicate) })
            }

            /// A communicator with a topology: without `reorder` each process has the rank that it has in the parent
            /// (MPI 4.1, 8.5).
            pub(crate) fn topology(
                scope: &Scope,
                at: Passed,
                parent: Passed,
                reorder: Passed,
            ) -> ObjectChange {
                let is_in_order = reorder.integer() == Some(0);
                like(scope, at, Parent { comm: parent, like: is_in_order.then_some(Like::InOrder) })
            }

            /// A communicator with some of the ranks of its parent, all of which make it together.
            pub(crate) fn part(scope: &Scope, at: Passed, parent: Passed) -> ObjectChange {
                like(scope, at, Parent { comm: parent, like: None })
            }

            fn like(scope: &Scope, at: Passed, of: Parent) -> ObjectChange {
                match comm(scope, at) {
                    ObjectChange::Comes { kind, at, .. } => ObjectChange::Comes { kind, at, parent: Some(of) },
                    other => other,
                }
            }
        }

        /// Rows that free an object: its variables are read for the last time now, before the call.
        pub(crate) mod frees {
            use super::{Passed, ObjectChange, Kind, Scope, requests, streams};

            pub(crate) fn request(_: &Scope, at: Passed) -> ObjectChange {
                requests::freed(at);
                streams::request_goes(at);
                ObjectChange::Nothing
            }

            $(pub(crate) fn $name(scope: &Scope, at: Passed) -> ObjectChange {
                super::freed(scope, Kind::$kind, at);
                ObjectChange::Nothing
            })*
        }
    };
}
creates!(comm Comm, win Win, file File);

/// Rows that end the program, which ends every object.
pub(crate) mod ends {
    use super::{ObjectChange, Passed, Scope, contain, run};

    /// Also for a call from inside MPI: error handlers are where most programs abort.
    pub(crate) fn with(scope: &Scope, code: Passed) -> ObjectChange {
        let code = code.integer().unwrap_or(0);
        let is_alone = scope.is_of_program() && scope.is_alone();
        contain("writing the profile before MPI_Abort", || run::aborts(code, is_alone));
        ObjectChange::Nothing
    }
}

/// Rows that say which communicator there is.
pub(crate) mod finds {
    use super::{ObjectChange, Passed, Scope};

    pub(crate) fn comm(scope: &Scope, at: Passed) -> ObjectChange {
        if scope.is_of_program() { ObjectChange::Found { at } } else { ObjectChange::Nothing }
    }
}

/// Rows whose object is created later.
pub(crate) mod begins {
    use super::{Like, ObjectChange, Parent, Passed, Scope};

    pub(crate) fn duplicate(
        scope: &Scope,
        comm: Passed,
        request: Passed,
        parent: Passed,
    ) -> ObjectChange {
        if !scope.is_of_program() {
            return ObjectChange::Nothing;
        }
        ObjectChange::Begins {
            comm,
            request,
            parent: Parent { comm: parent, like: Some(Like::Duplicate) },
        }
    }
}

/// Rows that complete requests.
pub(crate) mod completes {
    use super::{ObjectChange, Passed, Scope, gate, requests};

    pub(crate) fn one(scope: &Scope, request: Passed) -> ObjectChange {
        watch(scope, 1, request)
    }

    pub(crate) fn many(scope: &Scope, count: Passed, requests: Passed) -> ObjectChange {
        watch(scope, count.number(), requests)
    }

    fn watch(scope: &Scope, count: usize, at: Passed) -> ObjectChange {
        if !scope.is_of_program() || !gate::watches_completions() {
            return ObjectChange::Nothing;
        }
        ObjectChange::Completes { at, before: requests(at, count) }
    }
}

impl ObjectChange {
    /// The call succeeded.
    pub(crate) fn happened(self, called: CallTimes) {
        match self {
            ObjectChange::Nothing => {}
            ObjectChange::Comes { kind, at, parent } => {
                if let Some(handle) = at.handle(kind) {
                    begins(kind, handle, parent);
                    created(kind, handle);
                }
            }
            ObjectChange::Found { at } => {
                if let Some(handle) = at.handle(Kind::Comm)
                    && FOUND.load(Ordering::Relaxed) != handle
                {
                    begins(Kind::Comm, handle, None);
                    created(Kind::Comm, handle);
                    FOUND.store(handle, Ordering::Relaxed);
                }
            }
            ObjectChange::Begins { comm, request: at, parent } => {
                if let (Some(comm), Some(request)) = (comm.handle(Kind::Comm), at.request(0))
                    && let Ok(mut pending) = PENDING.lock()
                {
                    begins(Kind::Comm, comm, Some(parent));
                    pending.push(Pending { language: at.language, request, comm });
                    gate::watch_completions(CompletionsFor::Communicators, true);
                }
            }
            ObjectChange::Completes { at, before } => {
                let after = requests(at, before.len());
                let completed = before.iter().zip(&after).filter(|(before, after)| before != after);
                for (request, _) in completed {
                    completed_request(at.language, *request);
                    if streams::is_on() {
                        streams::completed(at.language, *request, called);
                    }
                }
            }
        }
    }
}

/// An array of `count` requests.
fn requests(at: Passed, count: usize) -> Vec<usize> {
    (0..count).map_while(|index| at.request(index)).collect()
}

/// The request has completed, so its communicator exists now.
fn completed_request(language: Language, request: usize) {
    let Ok(mut pending) = PENDING.lock() else { return };
    let at = pending
        .iter()
        .position(|pending| pending.language == language && pending.request == request);
    let Some(at) = at else { return };
    let Pending { comm, .. } = pending.swap_remove(at);
    gate::watch_completions(CompletionsFor::Communicators, !pending.is_empty());
    drop(pending);
    created(Kind::Comm, comm);
}

/// An object has a handle now, which may be that of one whose end was not seen.
fn begins(kind: Kind, handle: usize, parent: Option<Parent>) {
    let is_null = objects::is_null(kind, handle);
    if !is_null {
        forget(kind, handle);
    }
    if let Some(Parent { comm, like }) = parent
        && let Some(parent) = comm.comm()
    {
        streams::child_comes(parent, (!is_null).then_some(handle));
        if let Some(like) = like.filter(|_| !is_null) {
            contain("taking in a communicator", || communicators::comes_like(like, parent, handle));
        }
    }
}

/// An object can be used now.
fn created(kind: Kind, handle: usize) {
    if objects::is_null(kind, handle) {
        return;
    }
    let Some(looks) = objects::created(kind) else { return };
    contain("taking in an object", || {
        run::with_run(|run| run.object_comes(kind, handle, looks));
    });
}

/// The handle no longer belongs to the object that had it.
fn forget(kind: Kind, handle: usize) {
    contain("forgetting an object", || match kind {
        Kind::Comm => {
            communicators::freed(handle);
            streams::communicator_goes(handle);
            _ = FOUND.compare_exchange(handle, usize::MAX, Ordering::Relaxed, Ordering::Relaxed);
        }
        Kind::Win => communicators::window_goes(handle),
        Kind::File => {}
    });
}

/// An object is about to be freed, by whoever does it: the program may free one in a callback, from inside MPI
/// (MPI 4.1, 7.7.2), and its variables must not be read any more after that.
fn freed(scope: &Scope, kind: Kind, at: Passed) {
    let Some(handle) = at.handle(kind) else { return };
    if scope.is_of_program() {
        objects::went(kind);
    }
    if gate::is_closed() {
        return;
    }
    forget(kind, handle);
    if !objects::matters(kind) {
        return;
    }
    contain("letting an object go", || {
        if scope.is_of_program() {
            run::with_run(|run| run.object_goes(kind, handle, LastReading::Read));
        } else {
            run::object_goes_inside_mpi(kind, handle);
        }
    });
}
