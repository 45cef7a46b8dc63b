//! The communicators, windows and files that are alive, their names, and which are left out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use gyan_results::{ObjectsLeftOut, ObjectsMade};

use crate::mpi::abi::{Inquiry, Library};
use crate::mpi::handles::Kind;
use crate::sys::cells::Counter;

/// State of each kind that needs no lock of the run: whether there is anything to do for objects of the kind,
/// and how many were created. If there is nothing to do, a call takes no longer than without gyan.
static MATTERS: [AtomicBool; Kind::ALL.len()] = [const { AtomicBool::new(false) }; Kind::ALL.len()];
static CAME: [Counter; Kind::ALL.len()] = [const { Counter::new(0) }; Kind::ALL.len()];
static WENT: [Counter; Kind::ALL.len()] = [const { Counter::new(0) }; Kind::ALL.len()];

/// An object of this kind was created. Returns none when there is nothing to do, otherwise whether to look for
/// new variables first. That takes longer than creating some objects does, so it is done ever more rarely.
pub(crate) fn created(kind: Kind) -> Option<bool> {
    let came = CAME.get(kind as usize)?;
    came.add_shared(1);
    let looks = came.get().is_power_of_two();
    (looks || matters(kind)).then_some(looks)
}

/// The handles that stand for no object, so far as the library has any.
static NULLS: [Counter; Kind::ALL.len()] = [const { Counter::new(u64::MAX) }; Kind::ALL.len()];

/// Looks at what stands for no object in this library.
pub(crate) fn begin(library: &Library) {
    for (kind, null) in Kind::ALL.into_iter().zip(&NULLS) {
        null.set(library.handle(kind.null(library)).map_or(u64::MAX, |handle| handle as u64));
    }
}

/// Whether a handle that came back stands for no object.
pub(crate) fn is_null(kind: Kind, handle: usize) -> bool {
    NULLS.get(kind as usize).is_some_and(|null| null.get() == handle as u64)
}

pub(crate) fn went(kind: Kind) {
    if let Some(went) = WENT.get(kind as usize) {
        went.add_shared(1);
    }
}

/// How many objects the program made and freed.
pub(crate) fn made() -> Vec<ObjectsMade> {
    let kinds = Kind::ALL.into_iter().zip(CAME.iter().zip(&WENT));
    let made = kinds.map(|(kind, (came, went))| ObjectsMade {
        kind: kind.noun().to_owned(),
        made: came.get(),
        freed: went.get(),
    });
    made.filter(|of| of.made > 0).collect()
}

/// Whether there is something to do for objects of this kind.
#[inline]
pub(crate) fn matters(kind: Kind) -> bool {
    MATTERS.get(kind as usize).is_some_and(|matters| matters.load(Ordering::Relaxed))
}

/// Sets that, or, when a run begins, that nothing is known yet.
pub(crate) fn set_matters(kind: Kind, matter: bool) {
    if let Some(matters) = MATTERS.get(kind as usize) {
        matters.store(matter, Ordering::Relaxed);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) handle: usize,
    /// Order of creation, from 0.
    pub(crate) order: usize,
    /// Its lot: see [`Registry::created`].
    pub(crate) lot: u64,
    is_world: bool,
    pub(crate) like: Likeness,
    /// Kind, size and, after others like it, a number: for an object without a name.
    pub(crate) description: String,
}

/// What objects with the same description have in common.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Likeness {
    kind: Kind,
    size: Option<usize>,
    /// The size of the remote group of an intercommunicator.
    remote: Option<usize>,
}

/// Why objects are not in the profile.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum LeftOutFor {
    Budget,
    /// The limit of objects followed at a time was reached.
    Alive,
    /// The limit of objects kept was reached.
    Gone,
}

impl Object {
    pub(crate) fn is_world(&self) -> bool {
        self.is_world
    }

    pub(crate) fn is_intercommunicator(&self) -> bool {
        self.like.remote.is_some()
    }
}

const WORLD: &str = "MPI_COMM_WORLD";

/// The objects that are followed.
#[derive(Clone)]
pub(crate) struct Registry {
    limit: usize,
    alive: Vec<Object>,
    created: usize,
    /// How many were created, followed or not.
    came: BTreeMap<Likeness, u64>,
    left_out: BTreeMap<(LeftOutFor, Likeness), u64>,
    /// How many objects so far have each name.
    names: BTreeMap<String, usize>,
}

impl Registry {
    /// Follows at most `limit` objects at a time, besides `MPI_COMM_WORLD`.
    pub(crate) fn new(limit: usize) -> Registry {
        Registry {
            limit,
            alive: Vec::new(),
            created: 0,
            came: BTreeMap::new(),
            left_out: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// Adds `MPI_COMM_WORLD`. Not `MPI_COMM_SELF`, on which hardly anything happens.
    pub(crate) fn world_comes(&mut self, library: &Library) {
        if let Some(handle) = library.handle(library.abi.comm_world) {
            let like = Likeness { kind: Kind::Comm, size: None, remote: None };
            self.insert(like, handle, 0, true, WORLD.into());
        }
    }

    /// Adds an object that was created; none when it is already known, exceeds the limit, or is ruled out by
    /// its lot: a pseudo-random number that is the same on every rank with equally many objects like it.
    pub(crate) fn created(
        &mut self,
        mpi: &Inquiry,
        kind: Kind,
        handle: usize,
        may: impl FnOnce(u64) -> bool,
    ) -> Option<Object> {
        // If it is a different object, the end of the previous one was not seen, and it is followed in its
        // place.
        if self.find(kind, handle).is_some() {
            return None;
        }
        let like = Likeness::ask(mpi, kind, handle);
        let number = self.came.entry(like).or_default();
        *number += 1;
        let number = *number;
        let lot = fastrand::Rng::with_seed(number).u64(..);
        let followed = self.alive.iter().filter(|object| !object.is_world).count();
        if followed >= self.limit {
            self.leave_out(LeftOutFor::Alive, like);
            return None;
        }
        if !may(lot) {
            self.leave_out(LeftOutFor::Budget, like);
            return None;
        }
        // Objects that are not followed count too, so that it has the same name on every rank.
        let description = if number == 1 { like.to_string() } else { format!("{like} #{number}") };
        Some(self.insert(like, handle, lot, false, description))
    }

    fn leave_out(&mut self, why: LeftOutFor, like: Likeness) {
        *self.left_out.entry((why, like)).or_default() += 1;
    }

    /// The readings of a freed object are not kept.
    pub(crate) fn forget(&mut self, like: Likeness) {
        self.leave_out(LeftOutFor::Gone, like);
    }

    fn insert(
        &mut self,
        like: Likeness,
        handle: usize,
        lot: u64,
        is_world: bool,
        description: String,
    ) -> Object {
        let order = self.created;
        self.created += 1;
        let object = Object { kind: like.kind, handle, order, lot, is_world, like, description };
        self.alive.push(object.clone());
        object
    }

    fn find(&self, kind: Kind, handle: usize) -> Option<usize> {
        self.alive.iter().position(|object| object.kind == kind && object.handle == handle)
    }

    pub(crate) fn follows(&self, kind: Kind, handle: usize) -> bool {
        self.find(kind, handle).is_some()
    }

    /// An object is about to be freed: it is no longer followed.
    pub(crate) fn freed(&mut self, kind: Kind, handle: usize) -> Option<Object> {
        let at = self.find(kind, handle)?;
        Some(self.alive.remove(at))
    }

    pub(crate) fn alive(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.alive.iter().filter(move |object| object.kind == kind)
    }

    /// The name of an object in the profile: its name in MPI, otherwise its kind and size; with a number if an
    /// earlier one has the same name. Asked once per object, at its end, because names can be set late.
    pub(crate) fn name(&mut self, mpi: Option<&Inquiry>, object: &Object) -> String {
        if object.is_world {
            return object.description.clone();
        }
        match mpi.and_then(|mpi| name_in_mpi(mpi, object)) {
            Some(name) => self.numbered(name),
            None => object.description.clone(),
        }
    }

    /// The name, with a number if it was used before.
    fn numbered(&mut self, name: String) -> String {
        let number = self.names.entry(name.clone()).or_default();
        *number += 1;
        if *number == 1 { name } else { format!("{name} #{number}") }
    }

    /// What is not in the profile, and why.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = ObjectsLeftOut> {
        let limit = self.limit;
        self.left_out.iter().map(move |((why, like), number)| ObjectsLeftOut {
            what: like.to_string(),
            number: *number,
            reason: match why {
                LeftOutFor::Budget => {
                    "not read: they came faster than the budget allows; GYAN_BUDGET sets it".into()
                }
                LeftOutFor::Alive => format!(
                    "not followed: more than {limit} objects were alive; GYAN_OBJECTS sets the limit"
                ),
                LeftOutFor::Gone => format!(
                    "read and not kept: more than {limit} objects came and went; GYAN_OBJECTS sets the \
                     limit"
                ),
            },
        })
    }
}

fn name_in_mpi(mpi: &Inquiry, object: &Object) -> Option<String> {
    match object.kind {
        Kind::Comm => mpi.comm_name(object.handle),
        Kind::Win => mpi.win_name(object.handle),
        Kind::File => None,
    }
}

impl Likeness {
    fn ask(mpi: &Inquiry, kind: Kind, handle: usize) -> Likeness {
        let size = match kind {
            Kind::Comm => mpi.size(handle),
            Kind::Win => mpi.win_size(handle),
            Kind::File => mpi.file_size(handle),
        };
        let is_inter = kind == Kind::Comm && mpi.is_intercommunicator(handle);
        let remote = is_inter.then(|| mpi.remote_size(handle).unwrap_or(0));
        Likeness { kind, size, remote }
    }
}

impl fmt::Display for Likeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size.map_or_else(|| "?".to_owned(), |size| size.to_string());
        if let Some(remote) = self.remote {
            return write!(f, "intercommunicator of {size} and {remote} ranks");
        }
        let plural = if self.size == Some(1) { "" } else { "s" };
        write!(f, "{} of {size} rank{plural}", self.kind.noun())
    }
}
