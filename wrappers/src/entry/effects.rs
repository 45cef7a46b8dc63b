//! Which communicators, windows and files come and go? What the wrappers of the functions that
//! create and free them say, and what that means for the variables that are bound to them.
//!
//! A communicator of `MPI_Comm_idup` comes when its request completes. Only while there is such a
//! request are completions looked at.

use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::observe::objects::Kind;

use crate::calls::gate::{self, Scope};
use crate::mpi::abi::{Inquiry, inquiry};
use crate::run;
use crate::sys::peek::{element, word};

/// Whose handle lies at an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Language {
    C,
    Fortran,
}

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
static ARE_PENDING: AtomicBool = AtomicBool::new(false);

/// Whether completions are to be looked at.
pub(crate) fn are_pending() -> bool {
    ARE_PENDING.load(Ordering::Relaxed)
}

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
    use super::{Change, Language, Scope, integer};
    use crate::calls::gate;
    use crate::run;

    pub(crate) fn with(scope: &Scope, language: Language, code: usize) -> Change {
        if scope.is_of_program() {
            let code = integer(language, code).unwrap_or(0);
            gate::contain("writing the profile before MPI_Abort", || run::aborts(code));
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
    use super::{Change, Language, Scope, are_pending, number, requests};

    pub(crate) fn one(scope: &Scope, language: Language, request: usize) -> Change {
        watch(scope, language, 1, request)
    }

    pub(crate) fn many(scope: &Scope, language: Language, count: usize, at: usize) -> Change {
        watch(scope, language, number(language, count), at)
    }

    fn watch(scope: &Scope, language: Language, count: usize, at: usize) -> Change {
        if !scope.is_of_program() || !are_pending() {
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
                    ARE_PENDING.store(true, Ordering::Relaxed);
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

/// An `int` that C passes by value and Fortran by address.
pub(crate) fn integer(language: Language, word: usize) -> Option<c_int> {
    match language {
        // The upper half of the word is not part of an int.
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        Language::C => Some(word as c_int),
        Language::Fortran if word == 0 => None,
        // SAFETY: the address of an INTEGER, or of a structure that is nothing but one, that Fortran
        // passed to a function of MPI.
        Language::Fortran => Some(unsafe { element::<c_int>(word, 0) }),
    }
}

/// The same for a number of things.
fn number(language: Language, word: usize) -> usize {
    integer(language, word).and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

/// The communicator of a request that has completed comes now.
fn completed_request(language: Language, request: usize) {
    let Ok(mut pending) = PENDING.lock() else { return };
    let at = pending
        .iter()
        .position(|pending| pending.language == language && pending.request == request);
    let Some(at) = at else { return };
    let Pending { comm, .. } = pending.swap_remove(at);
    ARE_PENDING.store(!pending.is_empty(), Ordering::Relaxed);
    drop(pending);
    comes(Kind::Comm, comm);
}

fn comes(kind: Kind, handle: usize) {
    gate::contain("taking in an object", || {
        run::with_run(|run| run.object_comes(kind, handle));
    });
}

fn goes(kind: Kind, language: Language, at: usize) {
    gate::contain("letting an object go", || {
        if let Some(handle) = inquiry().and_then(|mpi| handle(mpi, kind, language, at)) {
            run::with_run(|run| run.object_goes(kind, handle));
        }
    });
}

/// The handle at an address that a call of MPI has for it.
fn handle(mpi: &Inquiry, kind: Kind, language: Language, at: usize) -> Option<usize> {
    if at == 0 {
        return None;
    }
    if language == Language::Fortran {
        // SAFETY: the address of an INTEGER, or of a structure that is nothing but one.
        let handle = unsafe { element::<c_int>(at, 0) };
        return match kind {
            Kind::Comm => mpi.comm(handle),
            Kind::Win => mpi.win(handle),
            Kind::File => mpi.file(handle),
        };
    }
    let bytes = if kind == Kind::File { mpi.abi.file_bytes } else { mpi.abi.handle_bytes };
    // SAFETY: the address of a handle of this kind, which has as many bytes.
    Some(unsafe { word(at, bytes, 0) })
}

/// The requests at an address, as the program holds them.
fn requests(language: Language, at: usize, count: usize) -> Vec<usize> {
    let bytes = match (language, inquiry()) {
        (Language::Fortran, _) => size_of::<c_int>(),
        (Language::C, Some(mpi)) => mpi.abi.handle_bytes,
        (Language::C, None) => return Vec::new(),
    };
    if at == 0 {
        return Vec::new();
    }
    // SAFETY: the program passed an array of `count` requests, each of as many bytes.
    (0..count).map(|index| unsafe { word(at, bytes, index) }).collect()
}
