//! What is read when: every variable at the start and at the end, and what is bound to an object
//! when that comes and before it goes.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{Coverage, Pvar, Skipped, Values};

use crate::abi::{Bind, Library, inquiry};
use crate::advice;
use crate::enable;
use crate::mpit::{Failure, Mpit, PvarHandle, Session, Variable};
use crate::objects::{Kind, Object, Registry};
use crate::quirks::{self, Known, Remedy};
use crate::selection::Selection;

/// What the reason begins with why a variable of a closed component was not read.
pub(crate) const CLOSED: &str = "its component was closed in MPI_Init";

/// The variables that are being read.
pub(crate) struct Sampler {
    mpit: Mpit,
    session: Session,
    /// Names of the variables before `MPI_Init`: some libraries close components in it, and no
    /// longer tell the names of their variables.
    early_names: Vec<Option<String>>,
    exported: usize,
    objects: Registry,
    /// The variables that bind to each kind of object, by index.
    bound: BTreeMap<Kind, BTreeSet<usize>>,
    sampled: Vec<Sampled>,
    /// Variables of objects that are gone, with the index and the order of the object.
    finished: Vec<(usize, usize, Pvar)>,
    /// How many objects are in `finished`, and how many are not because that were too many.
    finished_objects: usize,
    forgotten_objects: u64,
    skipped: BTreeMap<usize, Skipped>,
    /// Elements of a variable that are kept one by one.
    elements: usize,
    /// How many objects are followed at a time, and as many are kept that are gone.
    limit: usize,
}

struct Sampled {
    variable: Variable,
    /// None for a variable that binds to nothing.
    object: Option<Object>,
    handle: PvarHandle,
    known: Known,
    start: Option<Vec<u8>>,
    notes: Vec<String>,
}

/// When a variable is met.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Moment {
    /// At the start, or when the object that it is bound to came.
    Start,
    /// Later.
    Later,
}

/// The names of all variables, before `MPI_Init`.
pub(crate) fn early_names(mpit: &Mpit, library: &Library) -> Vec<Option<String>> {
    let number = mpit.api.pvar_get_num().unwrap_or(0);
    (0..number)
        .map(|index| mpit.variable(library, index).ok().map(|variable| variable.name))
        .collect()
}

/// What limits a profile.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) elements: usize,
    pub(crate) objects: usize,
}

impl Sampler {
    /// Begins, after MPI was initialised: takes a handle on every variable that is wanted and
    /// reads it. `world`: there are `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub(crate) fn begin(
        mpit: Mpit,
        library: &Library,
        selection: &mut Selection,
        early_names: Vec<Option<String>>,
        limits: Limits,
        world: bool,
    ) -> Result<Sampler, Failure> {
        let session = Session::create(&mpit.api)?;
        let mut objects = Registry::new(limits.objects);
        if world {
            objects.world_comes(library);
        }
        let mut sampler = Sampler {
            mpit,
            session,
            early_names,
            exported: 0,
            objects,
            bound: BTreeMap::new(),
            sampled: Vec::new(),
            finished: Vec::new(),
            finished_objects: 0,
            forgotten_objects: 0,
            skipped: BTreeMap::new(),
            elements: limits.elements,
            limit: limits.objects,
        };
        sampler.discover(library, selection, 0, Moment::Start)?;
        Ok(sampler)
    }

    /// Looks at the variables from index `from` on. Also later, because the number grows while the
    /// program runs, and a variable can become valid.
    fn discover(
        &mut self,
        library: &Library,
        selection: &mut Selection,
        from: usize,
        moment: Moment,
    ) -> Result<(), Failure> {
        let number = self.mpit.api.pvar_get_num()?;
        self.exported = self.exported.max(number);
        for index in from..number {
            self.look_at(library, selection, index, None, moment);
        }
        Ok(())
    }

    /// `MPI_COMM_WORLD` has come, when sessions were there before.
    pub(crate) fn world_comes(&mut self, library: &Library, selection: &mut Selection) {
        self.objects.world_comes(library);
        let kind = Kind::Comm;
        let alive: Vec<Object> =
            self.objects.alive(kind).filter(|o| o.is_world()).cloned().collect();
        for object in alive {
            self.bind(library, selection, &object);
        }
    }

    /// An object has come.
    pub(crate) fn object_comes(
        &mut self,
        library: &Library,
        selection: &mut Selection,
        kind: Kind,
        handle: usize,
    ) {
        // Some libraries register variables when the first object of a kind is created.
        let known = self.exported;
        if self.mpit.api.pvar_get_num().is_ok_and(|number| number > known) {
            // When this fails, so does the look at the end, which says so.
            let _ = self.discover(library, selection, known, Moment::Later);
        }
        if self.bound.get(&kind).is_none_or(BTreeSet::is_empty) {
            return;
        }
        let Some(mpi) = inquiry() else { return };
        if let Some(object) = self.objects.comes(library, mpi, kind, handle) {
            self.bind(library, selection, &object);
        }
    }

    /// Takes a handle on every variable that binds to this kind of object.
    fn bind(&mut self, library: &Library, selection: &mut Selection, object: &Object) {
        let indices: Vec<usize> =
            self.bound.get(&object.kind).into_iter().flatten().copied().collect();
        for index in indices {
            self.look_at(library, selection, index, Some(object), Moment::Start);
        }
    }

    /// An object is about to go: its variables are read for the last time.
    pub(crate) fn object_goes(&mut self, kind: Kind, handle: usize) {
        let Some(object) = self.objects.goes(kind, handle) else { return };
        let (going, staying) = std::mem::take(&mut self.sampled)
            .into_iter()
            .partition(|sampled| sampled.object.as_ref().is_some_and(|o| o.order == object.order));
        self.sampled = staying;
        let going: Vec<Sampled> = going;
        if going.is_empty() {
            return;
        }
        if object.is_world() || self.finished_objects < self.limit {
            self.finished_objects += usize::from(!object.is_world());
            let name = self.objects.name(inquiry(), &object);
            for sampled in going {
                self.finish(sampled, Some(name.clone()));
            }
        } else {
            self.forgotten_objects += 1;
            for sampled in going {
                sampled.handle.free(&self.mpit.api, &self.session);
            }
        }
    }

    /// `MPI_COMM_WORLD` goes, while sessions go on.
    pub(crate) fn world_goes(&mut self) {
        let going: Vec<Object> =
            self.objects.alive(Kind::Comm).filter(|o| o.is_world()).cloned().collect();
        for object in going {
            self.object_goes(object.kind, object.handle);
        }
    }

    /// Looks at variable `index`: takes a handle on it for `object`, or for every object that it can
    /// be bound to, or notes why not.
    fn look_at(
        &mut self,
        library: &Library,
        selection: &mut Selection,
        index: usize,
        object: Option<&Object>,
        moment: Moment,
    ) {
        let variable = match self.mpit.variable(library, index) {
            Ok(variable) => variable,
            Err(error) => {
                let early = self.early_names.get(index).cloned().flatten();
                let reason = match early {
                    Some(_) => format!("{CLOSED} ({error})"),
                    None => error,
                };
                return self.skip(index, early, reason);
            }
        };
        let name = Some(variable.name.clone());
        if !selection.selects(&variable.name, variable.class) {
            return self.skip(index, name, "not selected by GYAN_PVARS".into());
        }
        let known = quirks::known(library, &variable);
        if let Some(reason) = known.reason_to_skip(false) {
            return self.skip(index, name, reason.into());
        }
        let objects: Vec<Option<Object>> = match (variable.bind, Kind::of(variable.bind), object) {
            (Bind::NoObject, ..) => vec![None],
            (_, Some(kind), object) => {
                self.bound.entry(kind).or_default().insert(index);
                match object {
                    Some(object) => vec![Some(object.clone())],
                    None => self.objects.alive(kind).cloned().map(Some).collect(),
                }
            }
            (bind, None, _) => {
                let kind = bind.name().unwrap_or_default();
                let reason = format!(
                    "binds to an {kind}; variables of communicators, windows, files and of the \
                     process are read"
                );
                return self.skip(index, name, reason);
            }
        };
        let mut reason = match Kind::of(variable.bind) {
            Some(kind) => format!("binds to a {}, and there was none", kind.noun()),
            None => String::new(),
        };
        for object in objects {
            if self.has(index, object.as_ref()) {
                continue;
            }
            match self.take(library, &variable, object.as_ref(), moment) {
                Ok(sampled) => self.sampled.push(sampled),
                Err(why) => reason = why,
            }
        }
        self.skip(index, name, reason);
    }

    /// Notes why variable `index` is not read, unless it is.
    fn skip(&mut self, index: usize, name: Option<String>, reason: String) {
        if self.is_read(index) {
            self.skipped.remove(&index);
        } else {
            self.skipped.insert(index, Skipped { index, name, reason });
        }
    }

    fn is_read(&self, index: usize) -> bool {
        self.sampled.iter().any(|sampled| sampled.variable.index == index)
            || self.finished.iter().any(|(finished, ..)| *finished == index)
    }

    fn has(&self, index: usize, object: Option<&Object>) -> bool {
        let order = object.map(|object| object.order);
        self.sampled.iter().any(|sampled| {
            sampled.variable.index == index
                && sampled.object.as_ref().map(|object| object.order) == order
        })
    }

    /// Takes a handle on `variable` for `object`, or says why not.
    fn take(
        &self,
        library: &Library,
        variable: &Variable,
        object: Option<&Object>,
        moment: Moment,
    ) -> Result<Sampled, String> {
        let known = quirks::known(library, variable);
        if let Some(object) = object {
            if object.is_intercommunicator && known.says(Remedy::NotOnIntercommunicators) {
                return Err("would be bound to an intercommunicator".into());
            }
            if !object.is_world() && known.says(Remedy::WorldOnly) {
                return Err("binds to MPI_COMM_WORLD, which there was not".into());
            }
        }
        let api = &self.mpit.api;
        let handle = object.map(|object| object.handle);
        let mut handle =
            self.session.handle(api, variable, handle).map_err(|failure| failure.to_string())?;
        if let Err(failure) = handle.start(api, &self.session) {
            handle.free(api, &self.session);
            return Err(failure.to_string());
        }
        let mut notes = known.notes();
        let start = if known.says(Remedy::ReadAtEndOnly) {
            None
        } else if moment == Moment::Later {
            notes.push("appeared while the program ran: no reading at the start".into());
            None
        } else {
            match handle.read(api, &self.session) {
                Ok(reading) => Some(reading),
                // What cannot be read for one object is read for others.
                Err(failure) if object.is_some_and(|object| !object.is_world()) => {
                    handle.free(api, &self.session);
                    return Err(failure.to_string());
                }
                Err(failure) => {
                    notes.push(format!("start: {failure}"));
                    None
                }
            }
        };
        let object = object.cloned();
        Ok(Sampled { variable: variable.clone(), object, handle, known, start, notes })
    }

    /// Reads a variable for the last time and gives its handle back.
    fn finish(&mut self, mut sampled: Sampled, object: Option<String>) {
        let api = &self.mpit.api;
        if sampled.known.says(Remedy::StopToRead)
            && !sampled.known.says(Remedy::NeverStop)
            && let Err(failure) = sampled.handle.stop(api, &self.session)
        {
            sampled.notes.push(format!("end: {failure}"));
        }
        let end = sampled.handle.read(api, &self.session);
        let end = end.map_err(|failure| sampled.notes.push(format!("end: {failure}"))).ok();
        let index = sampled.variable.index;
        let order = sampled.object.as_ref().map_or(0, |object| object.order);
        let pvar = sampled.into_pvar(end, object, self.elements, api, &self.session);
        self.finished.push((index, order, pvar));
    }

    /// Ends, before MPI does: reads every variable once more and gives everything back; also the
    /// reference to `MPI_T`, unless it had to be dropped.
    pub(crate) fn end(
        mut self,
        library: &Library,
        selection: &mut Selection,
    ) -> (Vec<Pvar>, Coverage, Option<Mpit>) {
        if let Err(failure) = self.discover(library, selection, 0, Moment::Later) {
            let reason = format!("variables that appeared later: {failure}");
            self.skipped
                .insert(self.exported, Skipped { index: self.exported, name: None, reason });
        }
        let mut names: BTreeMap<usize, String> = BTreeMap::new();
        for sampled in std::mem::take(&mut self.sampled) {
            let name = sampled.object.as_ref().map(|object| {
                let name = names
                    .entry(object.order)
                    .or_insert_with(|| self.objects.name(inquiry(), object));
                name.clone()
            });
            self.finish(sampled, name);
        }
        self.session.free(&self.mpit.api);
        let mpit = if quirks::drops_mpit(library.implementation) {
            self.mpit.finalize();
            None
        } else {
            Some(self.mpit)
        };
        self.finished.sort_by_key(|(index, order, _)| (*index, *order));
        let sampled: BTreeSet<usize> = self.finished.iter().map(|(index, ..)| *index).collect();
        let pvars: Vec<Pvar> = self.finished.into_iter().map(|(.., pvar)| pvar).collect();
        let skipped: Vec<Skipped> = self.skipped.into_values().collect();
        let states = enable::states(library.implementation, library.version, &pvars, &skipped);
        let advice = advice::advice(library.implementation, self.exported, &states);
        let mut objects: Vec<String> = self.objects.left_out().collect();
        if self.forgotten_objects > 0 {
            objects.push(format!(
                "readings of {} objects that were freed are not kept: more than {} were; \
                 GYAN_OBJECTS sets the limit",
                self.forgotten_objects, self.limit
            ));
        }
        let exported = self.exported;
        let sampled = sampled.len();
        (pvars, Coverage { exported, sampled, skipped, objects, advice }, mpit)
    }
}

impl Sampled {
    fn into_pvar(
        self,
        end: Option<Vec<u8>>,
        object: Option<String>,
        limit: usize,
        api: &crate::mpit::Api,
        session: &Session,
    ) -> Pvar {
        let Sampled { variable, handle, known, start, notes, .. } = self;
        let count = handle.count;
        handle.free(api, session);
        let class = known.behaves_as(variable.class).unwrap_or(variable.class);
        let delta = match (&start, &end) {
            (Some(start), Some(end)) if class.accumulates() => {
                Some(Values::difference(variable.datatype, start, end, limit))
            }
            _ => None,
        };
        let values = |bytes: Vec<u8>| Values::from_bytes(variable.datatype, &bytes, limit);
        Pvar {
            behaves_as: known.behaves_as(variable.class),
            name: variable.name,
            class: variable.class,
            datatype: variable.datatype,
            bind: variable.bind.name().map(Into::into),
            object,
            verbosity: variable.verbosity.into(),
            continuous: variable.continuous,
            readonly: variable.readonly,
            atomic: variable.atomic,
            count,
            start: start.map(values),
            end: end.map(values),
            delta,
            samples: None,
            notes,
        }
    }
}
