//! The communicators, windows and files that are alive, and what they are called.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::mpi::abi::{Inquiry, Library};
use crate::mpi::handles::Kind;

/// An object that is alive.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) handle: usize,
    /// By creation, from 0.
    pub(crate) order: usize,
    is_world: bool,
    pub(crate) is_intercommunicator: bool,
    /// Kind, size and, with others like it before, number: for an object without a name.
    pub(crate) description: String,
}

impl Object {
    pub(crate) fn is_world(&self) -> bool {
        self.is_world
    }
}

const WORLD: &str = "MPI_COMM_WORLD";

/// The objects that are followed.
#[derive(Clone)]
pub(crate) struct Registry {
    limit: usize,
    alive: Vec<Object>,
    created: usize,
    /// How many were not followed because of the limit.
    left_out: BTreeMap<Kind, u64>,
    /// How many objects so far have each name.
    names: BTreeMap<String, usize>,
}

impl Registry {
    /// Follows at most `limit` objects at a time beside `MPI_COMM_WORLD`.
    pub(crate) fn new(limit: usize) -> Registry {
        Registry {
            limit,
            alive: Vec::new(),
            created: 0,
            left_out: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// Takes in `MPI_COMM_WORLD`. Not `MPI_COMM_SELF`, on which next to nothing happens.
    pub(crate) fn world_comes(&mut self, library: &Library) {
        if let Some(handle) = library.handle(library.abi.comm_world) {
            self.insert(Kind::Comm, handle, true, false, WORLD.into());
        }
    }

    /// Takes in an object that was created; none when it is nothing, is known, or is one too many.
    pub(crate) fn comes(
        &mut self,
        library: &Library,
        mpi: &Inquiry,
        kind: Kind,
        handle: usize,
    ) -> Option<Object> {
        if library.handle(kind.null(library)) == Some(handle) || self.find(kind, handle).is_some() {
            return None;
        }
        let followed = self.alive.iter().filter(|object| !object.is_world).count();
        if followed >= self.limit {
            *self.left_out.entry(kind).or_default() += 1;
            return None;
        }
        let inter = kind == Kind::Comm && mpi.is_intercommunicator(handle);
        let description = described(mpi, kind, handle, inter);
        let description = self.numbered(description);
        Some(self.insert(kind, handle, false, inter, description))
    }

    fn insert(
        &mut self,
        kind: Kind,
        handle: usize,
        is_world: bool,
        is_intercommunicator: bool,
        description: String,
    ) -> Object {
        let order = self.created;
        self.created += 1;
        let object = Object { kind, handle, order, is_world, is_intercommunicator, description };
        self.alive.push(object.clone());
        object
    }

    fn find(&self, kind: Kind, handle: usize) -> Option<usize> {
        self.alive.iter().position(|object| object.kind == kind && object.handle == handle)
    }

    /// An object is about to go: it is no longer followed.
    pub(crate) fn goes(&mut self, kind: Kind, handle: usize) -> Option<Object> {
        let at = self.find(kind, handle)?;
        Some(self.alive.remove(at))
    }

    pub(crate) fn alive(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.alive.iter().filter(move |object| object.kind == kind)
    }

    /// What an object is called in the profile: its name in MPI, else its kind and size; with a
    /// number where another before it is called the same. Asked once for each object, at its end,
    /// because a name can be given late.
    pub(crate) fn name(&mut self, mpi: Option<&Inquiry>, object: &Object) -> String {
        if object.is_world {
            return object.description.clone();
        }
        match mpi.and_then(|mpi| name_in_mpi(mpi, object)) {
            Some(name) => self.numbered(name),
            None => object.description.clone(),
        }
    }

    /// The name, with a number where it was given before.
    fn numbered(&mut self, name: String) -> String {
        let number = self.names.entry(name.clone()).or_default();
        *number += 1;
        if *number == 1 { name } else { format!("{name} #{number}") }
    }

    /// Sentences about what was not followed.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().map(|(kind, number)| {
            let noun = kind.noun();
            let plural = if *number == 1 { "" } else { "s" };
            format!(
                "{number} {noun}{plural} not followed: more than {} objects were alive; \
                 GYAN_OBJECTS sets the limit",
                self.limit
            )
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

fn described(mpi: &Inquiry, kind: Kind, handle: usize, is_intercommunicator: bool) -> String {
    let noun = kind.noun();
    let size = match kind {
        Kind::Comm => mpi.size(handle),
        Kind::Win => mpi.win_size(handle),
        Kind::File => mpi.file_size(handle),
    };
    let size = size.map_or_else(|| "?".to_owned(), |size| size.to_string());
    if is_intercommunicator {
        let remote = mpi.remote_size(handle).unwrap_or(0);
        return format!("intercommunicator of {size} and {remote} ranks");
    }
    let plural = if size == "1" { "" } else { "s" };
    format!("{noun} of {size} rank{plural}")
}
