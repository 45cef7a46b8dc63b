//! What is read when communicators, windows and files are created and freed, and which of the freed ones are
//! kept?

use std::collections::BTreeSet;

use super::series::Key;
use super::{Discovery, LastReading, Sampled, Sampler};
use crate::calls::budget::objects::Cost;
use crate::config::selection::Wanted;
use crate::mpi::abi::{Library, inquiry};
use crate::mpi::handles::Kind;
use crate::observe::objects::Object;
use crate::observe::receives;
use crate::sys::alloc;

/// The data on a kind of objects.
pub(super) struct OfKind {
    /// The handle that stands for no object.
    null: Option<usize>,
    /// The variables that bind to it, by index.
    pub(super) bound: BTreeSet<usize>,
    /// How many were created, read or not.
    pub(super) came: u64,
    cost: Cost,
}

impl Sampler {
    /// `MPI_COMM_WORLD` was created after sessions existed.
    pub(crate) fn world_comes(&mut self, library: &Library, wanted: &mut Wanted) {
        self.objects.world_comes(library);
        let kind = Kind::Comm;
        let alive: Vec<Object> =
            self.objects.alive(kind).filter(|o| o.is_world()).cloned().collect();
        for object in alive {
            self.bind(library, wanted, &object);
        }
    }

    /// Looks for variables that are new. Some libraries register them when the first objects of a kind are
    /// created.
    pub(crate) fn look_again(&mut self, library: &Library, wanted: &mut Wanted) {
        if alloc::is_enough_for(self.exported) {
            // When this fails, so does the look at the end, which says so.
            let _ = self.discover(library, wanted, self.exported, Discovery::Later);
        }
    }

    /// An object was created. Adds it if there is something to read from it and the budget allows that.
    pub(crate) fn object_comes(
        &mut self,
        library: &Library,
        kind: Kind,
        handle: usize,
        now: u64,
    ) -> Option<Object> {
        let is_asked_for = self.is_asked_for(kind);
        let reserved = self.kinds.values().map(|of| of.cost.reserved()).sum();
        let OfKind { null, bound, came, cost } = self.of_kind(library, kind);
        if *null == Some(handle) || (bound.is_empty() && !is_asked_for) {
            return None;
        }
        *came += 1;
        // Some objects of each kind are read, however small the budget.
        let is_sure = is_asked_for || *came == 1;
        let cost = *cost;
        let may = |lot: u64| is_sure || cost.is_allowed(now, reserved, lot.leading_zeros());
        self.objects.created(inquiry()?, kind, handle, may)
    }

    /// Reads an object that was added.
    pub(crate) fn read_object(&mut self, library: &Library, wanted: &mut Wanted, object: &Object) {
        if alloc::is_enough_for(self.exported) {
            self.bind(library, wanted, object);
        }
    }

    pub(super) fn of_kind(&mut self, library: &Library, kind: Kind) -> &mut OfKind {
        self.kinds.entry(kind).or_insert_with(|| OfKind {
            null: library.handle(kind.null(library)),
            bound: BTreeSet::new(),
            came: 0,
            cost: Cost::unknown(),
        })
    }

    /// Whether each object of this kind is followed because the user asked for the messages or receives on
    /// all of them. The budget does not bound that, and the other kinds do not pay for it.
    fn is_asked_for(&self, kind: Kind) -> bool {
        kind == Kind::Comm && (self.watched.is_some() || self.callbacks.is_some())
    }

    /// The cost of objects of a kind; none when the budget does not bound them.
    pub(crate) fn cost_of(&mut self, kind: Kind) -> Option<&mut Cost> {
        if self.is_asked_for(kind) {
            return None;
        }
        self.kinds.get_mut(&kind).map(|of| &mut of.cost)
    }

    /// Allocates a handle on every variable that binds to this kind of object.
    fn bind(&mut self, library: &Library, wanted: &mut Wanted, object: &Object) {
        let bound = self.kinds.get(&object.kind).map(|of| of.bound.iter().copied());
        let indices: Vec<usize> = bound.into_iter().flatten().collect();
        for index in indices {
            self.look_at(library, wanted, index, Some(object), Discovery::Start);
        }
        self.tell_callbacks(object);
    }

    pub(super) fn tell_callbacks(&mut self, object: &Object) {
        if object.kind == Kind::Comm
            && let Some(callbacks) = &mut self.callbacks
        {
            callbacks.comm_comes(&self.mpit, object.handle, &object.description);
        }
    }

    /// Whether an object is followed.
    pub(crate) fn follows(&self, kind: Kind, handle: usize) -> bool {
        self.objects.follows(kind, handle)
    }

    /// An object is about to be freed: its variables are read for the last time, if they may be.
    pub(crate) fn object_goes(&mut self, kind: Kind, handle: usize, last: LastReading) {
        let Some(object) = self.objects.freed(kind, handle) else { return };
        let mpi = inquiry().filter(|_| last == LastReading::Read);
        let mut name = None;
        let is_mentioned = || receives::is_on() && receives::mentions(handle);
        if kind == Kind::Comm && (self.callbacks.is_some() || is_mentioned()) {
            let called = self.objects.name(mpi, &object);
            receives::comm_goes(handle, &called);
            if let Some(callbacks) = &mut self.callbacks {
                callbacks.comm_is_called(handle, &called);
                callbacks.comm_goes(&self.mpit, handle);
            }
            name = Some(called);
        }
        let (going, staying) = std::mem::take(&mut self.sampled)
            .into_iter()
            .partition(|sampled| sampled.object.as_ref().is_some_and(|o| o.order == object.order));
        self.sampled = staying;
        self.count_sampled();
        let going: Vec<Sampled> = going;
        if going.is_empty() {
            return;
        }
        if object.is_world() || self.keeps(&object) {
            let name = name.unwrap_or_else(|| self.objects.name(mpi, &object));
            for sampled in going {
                self.finish(sampled, Some(name.clone()), last);
            }
        } else {
            let keys: Vec<Key> = going.iter().map(Sampled::key).collect();
            self.forget(&keys);
            for sampled in going {
                sampled.handle.free(&self.mpit.api, &self.session);
            }
        }
    }

    /// Whether the readings of an object that is being freed are kept. At the limit, it replaces the kept one
    /// with the highest lot, unless its own is the highest.
    fn keeps(&mut self, object: &Object) -> bool {
        self.kept.insert((object.lot, object.order), object.like);
        if self.kept.len() <= self.limit {
            return true;
        }
        let Some(((_, order), like)) = self.kept.pop_last() else { return false };
        self.objects.forget(like);
        if order == object.order {
            return false;
        }
        let is_gone = |key: &&Key| key.1 == order;
        let keys: Vec<Key> = self.finished.entries.keys().filter(is_gone).copied().collect();
        self.finished.entries.retain(|key, _| key.1 != order);
        self.forget(&keys);
        true
    }

    /// These variables of a freed object are not kept.
    fn forget(&mut self, keys: &[Key]) {
        for key in keys {
            self.known.remove(key);
        }
        self.phases.forget(keys);
        if let Some(series) = &mut self.series {
            series.forget(keys);
        }
    }

    /// `MPI_COMM_WORLD` ends while sessions continue.
    pub(crate) fn world_goes(&mut self) {
        let going: Vec<Object> =
            self.objects.alive(Kind::Comm).filter(|o| o.is_world()).cloned().collect();
        for object in going {
            self.object_goes(object.kind, object.handle, LastReading::Read);
        }
    }
}
