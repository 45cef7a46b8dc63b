//! Which communicators, windows and files come and go? What the wrappers of the functions that
//! create and free them say, and what that means for the variables that are bound to them.
//!
//! A communicator of `MPI_Comm_idup` comes when its request completes. Completions are only looked at while
//! there is such a request.

use std::sync::Mutex;

use crate::calls::containment::contain;
use crate::calls::gate::{self, Scope};
use crate::mpi::abi::inquiry;
use crate::mpi::handles::{Kind, Language, handle, requests};
use crate::run;

/// What a call changes when it succeeds.
#[must_use]
pub(crate) enum Change {
    Nothing,
    /// An object comes, whose handle the call writes.
    Comes {
        kind: Kind,
        language: Language,
        at: usize,
    },
    /// A communicator comes when a request completes.
    Begins {
        language: Language,
        comm: usize,
        request: usize,
    },
    /// Requests may complete: as they were before.
    Completes {
        language: Language,
        at: usize,
        before: Vec<usize>,
    },
}

/// A communicator that is not yet to be used.
struct Pending {
    language: Language,
    /// As the program holds it.
    request: usize,
    comm: usize,
}

static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

macro_rules! creates {
    ($($name:ident $kind:ident),*) => {
        /// Rows that create an object.
        pub(crate) mod creates {
            use super::{Change, Kind, Language, Scope};
            $(pub(crate) fn $name(scope: &Scope, language: Language, at: usize) -> Change {
                if scope.is_of_program() {
                    Change::Comes { kind: Kind::$kind, language, at }
                } else {
                    Change::Nothing
                }
            })*
        }

        /// Rows that free one: its variables are read for the last time now, before the call.
        pub(crate) mod frees {
            use super::{Change, Kind, Language, Scope};
            $(pub(crate) fn $name(scope: &Scope, language: Language, at: usize) -> Change {
                if scope.is_of_program() {
                    super::goes(Kind::$kind, language, at);
                }
                Change::Nothing
            })*
        }
    };
}
creates!(comm Comm, win Win, file File);

/// Rows that end the program, which ends every object.
pub(crate) mod ends {
    use super::{Change, Language, Scope, contain, run};
    use crate::mpi::handles::integer;

    pub(crate) fn with(scope: &Scope, language: Language, code: usize) -> Change {
        if scope.is_of_program() {
            let code = integer(language, code).unwrap_or(0);
            contain("writing the profile before MPI_Abort", || run::aborts(code));
        }
        Change::Nothing
    }
}

/// Rows whose object comes later.
pub(crate) mod begins {
    use super::{Change, Language, Scope};

    pub(crate) fn comm(scope: &Scope, language: Language, comm: usize, request: usize) -> Change {
        if scope.is_of_program() {
            Change::Begins { language, comm, request }
        } else {
            Change::Nothing
        }
    }
}

/// Rows that complete requests.
pub(crate) mod completes {
    use super::{Change, Language, Scope, gate, requests};
    use crate::mpi::handles::number;

    pub(crate) fn one(scope: &Scope, language: Language, request: usize) -> Change {
        watch(scope, language, 1, request)
    }

    pub(crate) fn many(scope: &Scope, language: Language, count: usize, at: usize) -> Change {
        watch(scope, language, number(language, count), at)
    }

    fn watch(scope: &Scope, language: Language, count: usize, at: usize) -> Change {
        if !scope.is_of_program() || !gate::watches_completions() {
            return Change::Nothing;
        }
        Change::Completes { language, at, before: requests(language, at, count) }
    }
}

impl Change {
    /// The call succeeded.
    pub(crate) fn happened(self) {
        match self {
            Change::Nothing => {}
            Change::Comes { kind, language, at } => {
                if let Some(handle) = inquiry().and_then(|mpi| handle(mpi, kind, language, at)) {
                    comes(kind, handle);
                }
            }
            Change::Begins { language, comm, request } => {
                let comm = inquiry().and_then(|mpi| handle(mpi, Kind::Comm, language, comm));
                if let (Some(comm), [request]) = (comm, requests(language, request, 1).as_slice())
                    && let Ok(mut pending) = PENDING.lock()
                {
                    pending.push(Pending { language, request: *request, comm });
                    gate::watch_completions(true);
                }
            }
            Change::Completes { language, at, before } => {
                let after = requests(language, at, before.len());
                let completed = before.iter().zip(&after).filter(|(before, after)| before != after);
                for (request, _) in completed {
                    completed_request(language, *request);
                }
            }
        }
    }
}

/// The communicator of a request that has completed comes now.
fn completed_request(language: Language, request: usize) {
    let Ok(mut pending) = PENDING.lock() else { return };
    let at = pending
        .iter()
        .position(|pending| pending.language == language && pending.request == request);
    let Some(at) = at else { return };
    let Pending { comm, .. } = pending.swap_remove(at);
    gate::watch_completions(!pending.is_empty());
    drop(pending);
    comes(Kind::Comm, comm);
}

fn comes(kind: Kind, handle: usize) {
    contain("taking in an object", || {
        run::with_run(|run| run.object_comes(kind, handle));
    });
}

fn goes(kind: Kind, language: Language, at: usize) {
    contain("letting an object go", || {
        if let Some(handle) = inquiry().and_then(|mpi| handle(mpi, kind, language, at)) {
            run::with_run(|run| run.object_goes(kind, handle));
        }
    });
}
