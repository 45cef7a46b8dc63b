//! Which communicators, windows and files are created and freed? The wrappers of the functions that do it
//! report that here, for the variables that are bound to them.
//!
//! A communicator of `MPI_Comm_idup` exists once its request completes. Completions are only examined while
//! there is such a request.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::containment::contain;
use crate::calls::gate::{self, CompletionsFor, Scope};
use crate::calls::ledger::Ledger;
use crate::entry::requests;
use crate::mpi::abi::inquiry;
use crate::mpi::functions::Function;
use crate::mpi::functions::point_to_point::{MPI_Wait, MPI_Waitall};
use crate::mpi::handles::{Kind, Language, Passed};
use crate::observe::communicators::{self, Like};
use crate::observe::objects;
use crate::observe::pending;
use crate::observe::pvars::LastReading;
use crate::observe::streams::epochs::{self, EpochStep};
use crate::observe::streams::locks::{self as follow, LockStep};
use crate::observe::streams::{self, CallTimes};
use crate::run;
use crate::sys::clock;

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
    /// Requests may complete.
    Completes(Requests),
    /// An epoch of a window begins or ends.
    Synchronises {
        win: Passed,
        epoch: EpochChange,
        ledger: &'static Ledger,
    },
    /// A lock of a window is asked for, may be waited for or is given back.
    Locks {
        win: Passed,
        step: LockStep,
        ledger: &'static Ledger,
    },
}

/// Which epoch, and the group of ranks on the other side (MPI 4.1, 12.5.2).
#[derive(Clone, Copy)]
pub(crate) enum EpochChange {
    Post(Passed),
    Start(Passed),
    Complete,
    Wait,
    /// If the flag says so.
    Test(Passed),
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

            /// A window with the ranks of a communicator.
            pub(crate) fn window(scope: &Scope, at: Passed, comm: Passed) -> ObjectChange {
                of_parent(win(scope, at), Parent { comm, like: Some(Like::Duplicate) })
            }

            /// A communicator with some of the ranks of its parent, all of which make it together.
            pub(crate) fn part(scope: &Scope, at: Passed, parent: Passed) -> ObjectChange {
                like(scope, at, Parent { comm: parent, like: None })
            }

            fn like(scope: &Scope, at: Passed, of: Parent) -> ObjectChange {
                of_parent(comm(scope, at), of)
            }

            fn of_parent(change: ObjectChange, of: Parent) -> ObjectChange {
                match change {
                    ObjectChange::Comes { kind, at, .. } => ObjectChange::Comes { kind, at, parent: Some(of) },
                    other => other,
                }
            }
        }

        /// Rows that free an object: its variables are read for the last time now, before the call.
        pub(crate) mod frees {
            use super::{Passed, ObjectChange, Kind, Scope, pending, requests};

            pub(crate) fn request(_: &Scope, at: Passed) -> ObjectChange {
                requests::freed(at);
                pending::request_goes(at);
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

/// Rows that begin or end epochs of windows.
pub(crate) mod synchronises {
    use super::{EpochChange, ObjectChange, Passed, Scope, streams};

    pub(crate) fn post(scope: &Scope, group: Passed, win: Passed) -> ObjectChange {
        changes(scope, win, EpochChange::Post(group))
    }

    pub(crate) fn start(scope: &Scope, group: Passed, win: Passed) -> ObjectChange {
        changes(scope, win, EpochChange::Start(group))
    }

    pub(crate) fn complete(scope: &Scope, win: Passed) -> ObjectChange {
        changes(scope, win, EpochChange::Complete)
    }

    pub(crate) fn wait(scope: &Scope, win: Passed) -> ObjectChange {
        changes(scope, win, EpochChange::Wait)
    }

    pub(crate) fn test(scope: &Scope, win: Passed, flag: Passed) -> ObjectChange {
        changes(scope, win, EpochChange::Test(flag))
    }

    fn changes(scope: &Scope, win: Passed, epoch: EpochChange) -> ObjectChange {
        match scope.ledger() {
            Some(ledger) if streams::is_on() => ObjectChange::Synchronises { win, epoch, ledger },
            _ => ObjectChange::Nothing,
        }
    }
}

/// Rows that ask for locks of windows, may wait for them or give them back.
pub(crate) mod locks {
    use super::{LockStep, ObjectChange, Passed, Scope, inquiry, streams};

    pub(crate) fn lock(
        scope: &Scope,
        lock_type: Passed,
        rank: Passed,
        win: Passed,
    ) -> ObjectChange {
        let exclusive = inquiry().map(|mpi| mpi.abi.lock_exclusive);
        let is_exclusive = exclusive.is_some() && exclusive == lock_type.integer();
        at_target(scope, rank, win, |target| LockStep::Lock { target, is_exclusive })
    }

    pub(crate) fn lock_all(scope: &Scope, win: Passed) -> ObjectChange {
        step(scope, win, Some(LockStep::Lock { target: None, is_exclusive: false }))
    }

    pub(crate) fn flush(scope: &Scope, rank: Passed, win: Passed) -> ObjectChange {
        at_target(scope, rank, win, |target| LockStep::Flush { target, is_remote: true })
    }

    pub(crate) fn flush_local(scope: &Scope, rank: Passed, win: Passed) -> ObjectChange {
        at_target(scope, rank, win, |target| LockStep::Flush { target, is_remote: false })
    }

    /// Which of several targets has been accessed is not known.
    pub(crate) fn flush_all(scope: &Scope, win: Passed) -> ObjectChange {
        step(scope, win, Some(LockStep::Flush { target: None, is_remote: false }))
    }

    pub(crate) fn unlock(scope: &Scope, rank: Passed, win: Passed) -> ObjectChange {
        at_target(scope, rank, win, |target| LockStep::Unlock { target })
    }

    pub(crate) fn unlock_all(scope: &Scope, win: Passed) -> ObjectChange {
        step(scope, win, Some(LockStep::Unlock { target: None }))
    }

    /// Nothing for `MPI_PROC_NULL`.
    fn at_target(
        scope: &Scope,
        rank: Passed,
        win: Passed,
        to_step: impl FnOnce(Option<u32>) -> LockStep,
    ) -> ObjectChange {
        let target = rank.integer().and_then(|rank| u32::try_from(rank).ok());
        step(scope, win, target.map(|target| to_step(Some(target))))
    }

    fn step(scope: &Scope, win: Passed, step: Option<LockStep>) -> ObjectChange {
        match scope.ledger().zip(step) {
            Some((ledger, step)) if streams::is_on() => ObjectChange::Locks { win, step, ledger },
            _ => ObjectChange::Nothing,
        }
    }
}

/// Rows that complete requests.
pub(crate) mod completes {
    use super::{Completable, Passed};

    pub(crate) fn one(request: Passed) -> Completable {
        Completable { at: request, count: 1, flag: None }
    }

    pub(crate) fn many(count: Passed, requests: Passed) -> Completable {
        Completable { at: requests, count: count.number(), flag: None }
    }

    pub(crate) fn one_if(request: Passed, flag: Passed) -> Completable {
        Completable { flag: Some(flag), ..one(request) }
    }

    pub(crate) fn many_if(count: Passed, requests: Passed, flag: Passed) -> Completable {
        Completable { flag: Some(flag), ..many(count, requests) }
    }
}

/// How many requests are copied without memory of their own.
const FEW: usize = 16;

/// The requests that a call may complete.
#[derive(Clone, Copy)]
pub(crate) struct Completable {
    at: Passed,
    count: usize,
    /// Says afterwards whether any of them has completed; none if the call waits for that.
    flag: Option<Passed>,
}

/// The requests that a call may complete, and how the program stored them before it.
pub(crate) struct Requests {
    of: Completable,
    few: [usize; FEW],
    /// All of them, if there are more than that.
    many: Vec<usize>,
}

impl Completable {
    /// Before the call.
    pub(crate) fn before(self) -> Requests {
        let mut many = Vec::new();
        if self.count > FEW {
            many.resize(self.count, 0);
            self.at.requests(&mut many);
        }
        Requests { many, ..self.copied() }
    }

    /// The same of a call that does not wait, without memory; none of any other call, and if there are many.
    #[inline]
    pub(crate) fn before_few(self) -> Option<Requests> {
        (self.flag.is_some() && self.count <= FEW).then(|| self.copied())
    }

    #[inline]
    fn copied(self) -> Requests {
        let mut few = [0; FEW];
        if let Some(few) = few.get_mut(..self.count) {
            self.at.requests(few);
        }
        Requests { of: self, few, many: Vec::new() }
    }
}

impl Requests {
    /// After a call that does not wait.
    #[inline]
    pub(crate) fn completed_some(&self, function: Function, caller: usize) {
        if self.of.flag.is_some_and(Passed::is_set) {
            let now = clock::now();
            self.completed(CallTimes { function, caller, begun: now, ended: now });
        }
    }

    /// After the call.
    #[inline(never)]
    fn completed(&self, called: CallTimes) {
        let Completable { at, count, flag } = self.of;
        // What a call that does not wait finds complete was not waited for.
        let called =
            if flag.is_some() { CallTimes { begun: called.ended, ..called } } else { called };
        let ends_all = [MPI_Wait, MPI_Waitall].contains(&called.function);
        let before = self.few.get(..count).unwrap_or(&self.many);
        for (index, &request) in before.iter().enumerate() {
            let Some(after) = at.request(index) else { return };
            let is_same = after == request;
            if !is_same {
                completed_request(at.language, request);
            }
            // The request of a persistent operation stays.
            if !is_same || ends_all {
                pending::completed(at.language, request, is_same, called);
            }
        }
    }
}

impl EpochChange {
    /// The call succeeded.
    fn happened(self) -> Option<EpochStep> {
        let ranks = |group: Passed| {
            let ranks = communicators::ranks_of_group(group.group()?, epochs::RANKS_AT_MOST);
            Some(ranks.unwrap_or_default())
        };
        match self {
            EpochChange::Post(group) => ranks(group).map(EpochStep::Posted),
            EpochChange::Start(group) => ranks(group).map(EpochStep::Started),
            EpochChange::Complete => Some(EpochStep::Completed),
            EpochChange::Wait => Some(EpochStep::Waited),
            EpochChange::Test(flag) => flag.is_set().then_some(EpochStep::Waited),
        }
    }
}

impl ObjectChange {
    /// Whether the call is timed for it.
    pub(crate) fn is_timed(&self) -> bool {
        matches!(self, ObjectChange::Synchronises { .. } | ObjectChange::Locks { .. })
    }

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
            ObjectChange::Synchronises { win, epoch, ledger } => {
                contain("following an epoch", || {
                    if let (Some(win), Some(step)) = (win.win(), epoch.happened()) {
                        epochs::changed(communicators::window(win), step, called, ledger);
                    }
                });
            }
            ObjectChange::Locks { win, step, ledger } => {
                contain("following a lock", || {
                    if let Some(win) = win.win() {
                        follow::changed(communicators::window(win), step, called, ledger);
                    }
                });
            }
            ObjectChange::Completes(requests) => requests.completed(called),
        }
    }
}

/// What the entry of an object is found by among the communicators.
fn handle_of(kind: Kind, handle: usize) -> usize {
    match kind {
        Kind::Win => communicators::window(handle),
        Kind::Comm | Kind::File => communicators::handle(handle),
    }
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
        let (parent, handle) = (communicators::handle(parent), handle_of(kind, handle));
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
    if kind == Kind::File {
        return;
    }
    contain("forgetting an object", || {
        communicators::freed(handle_of(kind, handle));
        streams::communicator_goes(handle_of(kind, handle));
        if kind == Kind::Comm {
            _ = FOUND.compare_exchange(handle, usize::MAX, Ordering::Relaxed, Ordering::Relaxed);
        }
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
