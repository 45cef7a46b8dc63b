//! Places in the code over ranks: two are the same if they are at the same place in the same file, wherever it
//! was loaded.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::json;
use crate::{Address, CodeAddress, LoadedObject, collected};

/// A place in the code, without the load map of a rank.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) struct Place {
    #[serde(with = "json")]
    object: Option<Arc<LoadedObject>>,
    address: u64,
    /// For code that belongs to no file.
    name: Option<String>,
}

/// The load map of a rank, shared by the places in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects(Vec<Arc<LoadedObject>>);

impl Objects {
    pub(super) fn of(load_map: &[LoadedObject]) -> Objects {
        Objects(load_map.iter().cloned().map(Arc::new).collect())
    }

    /// Makes this another load map. Of two ranks it is usually the same, and places of shared objects are compared
    /// faster.
    pub(super) fn set(&mut self, load_map: &[LoadedObject]) {
        if !self.0.iter().map(AsRef::as_ref).eq(load_map) {
            *self = Objects::of(load_map);
        }
    }

    pub(super) fn place(&self, address: &Address) -> Place {
        let object = address.object.and_then(|object| self.0.get(object)).cloned();
        Place { object, address: address.address, name: None }
    }

    /// Code with a name but no file may be at a different address in each process.
    pub(super) fn code(&self, code: &CodeAddress) -> Place {
        let object = code.object.and_then(|object| self.0.get(object)).cloned();
        let is_anywhere = code.object.is_none() && code.name.is_some();
        let address = if is_anywhere { 0 } else { code.address };
        Place { object, address, name: code.name.clone() }
    }
}

/// The objects of these places, sorted.
pub(super) fn load_map<'a>(places: impl Iterator<Item = &'a Place>) -> Vec<LoadedObject> {
    let objects: BTreeSet<&LoadedObject> =
        collected(places.filter_map(|place| place.object.as_deref()));
    objects.into_iter().cloned().collect()
}

impl Place {
    /// `load_map` is sorted.
    pub(super) fn in_map(&self, load_map: &[LoadedObject]) -> Address {
        Address { object: self.object_in(load_map), address: self.address }
    }

    pub(super) fn code_in(&self, load_map: &[LoadedObject]) -> CodeAddress {
        let object = self.object_in(load_map);
        CodeAddress { object, address: self.address, name: self.name.clone() }
    }

    fn object_in(&self, load_map: &[LoadedObject]) -> Option<usize> {
        self.object.as_ref().and_then(|object| load_map.binary_search(object).ok())
    }
}
