//! What is read when: every variable at the start and at the end, what is bound to an object when that
//! comes and before it goes, and in between, at calls and where phases begin and end, those whose
//! value there matters.

#![forbid(unsafe_code)]

mod by_phase;
mod readings;
mod results;
mod sampling;
mod series;

use std::collections::{BTreeMap, BTreeSet};

use wildmatch::WildMatch;

use gyan_results::{Class, Coverage, Datatype, Item, Number, PhasePvar, Pvar};

use crate::calls::budget::objects::Cost;
use crate::config::denylist;
use crate::config::denylist::Exclusions;
use crate::config::selection::Wanted;
use crate::config::{EventsFrom, WatchFor};
use crate::mpi::abi::{Bind, Library, inquiry};
use crate::mpi::handles::Kind;
use crate::mpi::libraries::quirks::{self, Known, Remedy};
use crate::mpi::tool::{Failure, Mpit, PvarHandle, Session, Unread, Variable, Why, published};
use crate::observe::objects::{self, Like, Object, Registry};
use crate::observe::queues::{Callbacks, Told};
use crate::observe::receives;
use crate::sys::alloc;
use crate::sys::clock;
use crate::sys::guard;

pub(crate) use by_phase::Phase;
use by_phase::{Mark, Phases};
use readings::Watch;
use series::{Key, Series, key};

/// The variables that are being read.
pub(crate) struct Sampler {
    mpit: Mpit,
    session: Session,
    /// Names of the variables before `MPI_Init`: some libraries close components in it, and no
    /// longer tell the names of their variables.
    early_names: Vec<Option<String>>,
    exported: usize,
    objects: Registry,
    kinds: BTreeMap<Kind, OfKind>,
    sampled: Vec<Sampled>,
    /// Variables of objects that are gone.
    finished: Vec<Finished>,
    /// Both of them, to be found among many.
    known: BTreeSet<Key>,
    /// The objects in `finished`, by what they drew and their order: of all that were read and have gone,
    /// those with the least lots, so that each had the same chance.
    kept: BTreeMap<(u64, usize), Like>,
    unread: BTreeMap<usize, Unread>,
    /// Elements of a variable that are kept one by one.
    elements: usize,
    /// How many objects are followed at a time, and as many are kept that are gone.
    limit: usize,
    phases: Phases,
    series: Option<Series>,
    /// The variable that is compared at receives, by index.
    watched: Option<usize>,
    /// When the run began, on the clock.
    begun: u64,
    callbacks: Option<Callbacks>,
}

/// What is known of a kind of objects.
struct OfKind {
    /// What stands for no object.
    null: Option<usize>,
    /// The variables that bind to it, by index.
    bound: BTreeSet<usize>,
    /// How many came, to be read or not.
    came: u64,
    cost: Cost,
}

struct Sampled {
    variable: Variable,
    /// None for a variable that binds to nothing.
    object: Option<Object>,
    handle: PvarHandle,
    known: Known,
    start: Option<Vec<u8>>,
    notes: Vec<String>,
    /// None for a variable that is not sampled.
    watch: Option<Watch>,
    mark: Mark,
    /// What it grew by while the program had gyan switched off.
    excluded: Option<Vec<Number>>,
}

/// A variable that was read for the last time, or up to now.
#[derive(Clone)]
struct Finished {
    key: Key,
    pvar: Pvar,
    /// Names of the states of a STATE variable.
    states: Vec<Item>,
}

/// What is known at an end.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) pvars: Vec<Pvar>,
    pub(crate) coverage: Coverage,
    /// What variables did in the phases.
    pub(crate) phases: Vec<(Phase, PhasePvar)>,
    pub(crate) series: Option<gyan_results::Series>,
    /// What callbacks told.
    pub(crate) told: Told,
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
pub(crate) fn early_names(
    mpit: &Mpit,
    library: &Library,
    exclusions: &Exclusions,
) -> Vec<Option<String>> {
    let number = mpit.api.pvar_get_num().unwrap_or(0);
    (0..number)
        .map(|index| {
            let variable = || mpit.variable(library, index).ok();
            if exclusions.has_index(index) { None } else { Some(variable()?.name) }
        })
        .collect()
}

/// How much is looked at for what is known while the run goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Look {
    /// As at the end: also what objects are called, and what belongs to the phase.
    Whole,
    /// What variables are now.
    Values,
    /// What was read before.
    Nothing,
}

/// How many variables the library exports now.
pub(crate) fn exported(mpit: &Mpit) -> usize {
    mpit.api.pvar_get_num().unwrap_or(0)
}

/// What limits a profile.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) elements: usize,
    pub(crate) objects: usize,
    /// The interval of a series in ticks, and its bytes.
    pub(crate) series: Option<(u64, usize)>,
    /// When the run began, on the clock.
    pub(crate) begun: u64,
    /// Who is to call back.
    pub(crate) events: EventsFrom,
}

impl Sampler {
    /// How many readings of variables there are to take and to keep.
    pub(crate) fn readings(&self) -> usize {
        self.sampled.len() + self.finished.len()
    }

    /// Begins, after MPI was initialised: takes a handle on every variable that is wanted and
    /// reads it. `world`: there are `MPI_COMM_WORLD` and `MPI_COMM_SELF`. When this fails, all that
    /// was taken is given back.
    pub(crate) fn begin(
        mpit: Mpit,
        library: &Library,
        wanted: &mut Wanted,
        early_names: Vec<Option<String>>,
        limits: Limits,
        world: bool,
    ) -> Result<Sampler, Failure> {
        let session = match Session::create(&mpit.api) {
            Ok(session) => session,
            Err(failure) => {
                mpit.drop_where_safe(library);
                return Err(failure);
            }
        };
        let mut objects = Registry::new(limits.objects);
        if world {
            objects.world_comes(library);
        }
        for kind in Kind::ALL {
            objects::set_matters(kind, false);
        }
        let callbacks = (limits.events != EventsFrom::default())
            .then(|| Callbacks::begin(limits.events, &mpit, library, limits.begun));
        let mut sampler = Sampler {
            callbacks,
            mpit,
            session,
            early_names,
            exported: 0,
            objects,
            kinds: BTreeMap::new(),
            sampled: Vec::new(),
            finished: Vec::new(),
            known: BTreeSet::new(),
            kept: BTreeMap::new(),
            unread: BTreeMap::new(),
            elements: limits.elements,
            limit: limits.objects,
            phases: Phases::new(limits.elements),
            begun: limits.begun,
            watched: None,
            series: limits.series.map(|(ticks, bytes)| Series::new(ticks, bytes, clock::now())),
        };
        if let Err(failure) = sampler.discover(library, wanted, 0, Moment::Start) {
            sampler.end(library, wanted);
            return Err(failure);
        }
        sampler.tell_budget();
        if sampler.callbacks.is_some() {
            objects::set_matters(Kind::Comm, true);
        }
        let comms: Vec<Object> = sampler.objects.alive(Kind::Comm).cloned().collect();
        for object in comms {
            sampler.tell_callbacks(&object);
        }
        Ok(sampler)
    }

    /// Looks at the variables from index `from` on. Also later, because the number grows while the
    /// program runs, and a variable can become valid.
    fn discover(
        &mut self,
        library: &Library,
        wanted: &mut Wanted,
        from: usize,
        moment: Moment,
    ) -> Result<(), Failure> {
        let number = self.mpit.api.pvar_get_num()?;
        self.exported = self.exported.max(number);
        for index in from..number {
            self.look_at(library, wanted, index, None, moment);
        }
        Ok(())
    }

    /// `MPI_COMM_WORLD` has come, when sessions were there before.
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
            let _ = self.discover(library, wanted, self.exported, Moment::Later);
        }
    }

    /// An object has come. Takes it in when there is something to read of it and the budget allows that.
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
        // No kind is blind, however small the budget.
        let is_sure = is_asked_for || *came == 1;
        let cost = *cost;
        let may = |lot: u64| is_sure || cost.is_allowed(now, reserved, lot.leading_zeros());
        self.objects.comes(inquiry()?, kind, handle, may)
    }

    /// Reads an object that was taken in.
    pub(crate) fn read_object(&mut self, library: &Library, wanted: &mut Wanted, object: &Object) {
        if alloc::is_enough_for(self.exported) {
            self.bind(library, wanted, object);
        }
    }

    fn of_kind(&mut self, library: &Library, kind: Kind) -> &mut OfKind {
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

    /// What objects of a kind cost; none where the budget does not bound them.
    pub(crate) fn cost_of(&mut self, kind: Kind) -> Option<&mut Cost> {
        if self.is_asked_for(kind) {
            return None;
        }
        self.kinds.get_mut(&kind).map(|of| &mut of.cost)
    }

    /// The names of the communicators that are alive, by handle.
    pub(crate) fn names_of_comms(&self) -> BTreeMap<usize, String> {
        // The end will ask for them anew.
        let mut objects = self.objects.clone();
        let alive: Vec<Object> = self.objects.alive(Kind::Comm).cloned().collect();
        let name = |object: Object| (object.handle, objects.name(inquiry(), &object));
        alive.into_iter().map(name).collect()
    }

    /// Lets a variable be compared at receives, the first that the user means.
    pub(crate) fn watch_receives(&mut self, wanted: &WatchFor) -> Result<(), String> {
        let patterns = receives::candidates(wanted);
        let named = |pattern: &WildMatch| {
            self.sampled.iter().find(|sampled| pattern.matches(&sampled.variable.name))
        };
        let why = match patterns.iter().find_map(named) {
            Some(found) if published::can_read(found.variable.datatype) => {
                let (index, name) = (found.variable.index, found.variable.name.clone());
                self.watched = Some(index);
                objects::set_matters(Kind::Comm, true);
                for sampled in &self.sampled {
                    self.publish(sampled);
                }
                receives::begin(&name, wanted);
                return Ok(());
            }
            Some(_) => "is no number".into(),
            None => self.why_not_read(&patterns, wanted),
        };
        let variable = &wanted.variable;
        Err(format!("GYAN_WATCH: {variable}: {why}; receives are not watched"))
    }

    fn why_not_read(&self, patterns: &[WildMatch], wanted: &WatchFor) -> String {
        let unread = self.unread.values().find(|unread| {
            let name = unread.name.as_deref().unwrap_or_default();
            patterns.iter().any(|pattern| pattern.matches(name))
        });
        match unread {
            Some(Unread { name, why }) => {
                format!("{} was not read: {why}", name.as_deref().unwrap_or_default())
            }
            None if wanted.variable == receives::UNEXPECTED_QUEUE => {
                "this MPI exports no length of the queue of unexpected messages; gyan doctor tells \
                 what would give one"
                    .into()
            }
            None => "this MPI exports no such variable; gyan varlist -p shows them".into(),
        }
    }

    /// What the user asked for and the library lacks, in sentences.
    pub(crate) fn lacking(&self) -> &[String] {
        self.callbacks.as_ref().map(Callbacks::lacking).unwrap_or_default()
    }

    /// Lets receives read a variable, when it is the one that is watched.
    fn publish(&self, sampled: &Sampled) {
        if self.watched == Some(sampled.variable.index) {
            let object = sampled.object.as_ref().map(|object| object.handle);
            published::publish(&self.mpit.api, &self.session, &sampled.handle, object);
        }
    }

    /// Takes a handle on every variable that binds to this kind of object.
    fn bind(&mut self, library: &Library, wanted: &mut Wanted, object: &Object) {
        let bound = self.kinds.get(&object.kind).map(|of| of.bound.iter().copied());
        let indices: Vec<usize> = bound.into_iter().flatten().collect();
        for index in indices {
            self.look_at(library, wanted, index, Some(object), Moment::Start);
        }
        self.tell_callbacks(object);
    }

    fn tell_callbacks(&mut self, object: &Object) {
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

    /// An object is about to go: its variables are read for the last time.
    pub(crate) fn object_goes(&mut self, kind: Kind, handle: usize) {
        let Some(object) = self.objects.goes(kind, handle) else { return };
        let mut name = None;
        let is_mentioned = || receives::is_on() && receives::mentions(handle);
        if kind == Kind::Comm && (self.callbacks.is_some() || is_mentioned()) {
            let called = self.objects.name(inquiry(), &object);
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
        let going: Vec<Sampled> = going;
        if going.is_empty() {
            return;
        }
        if object.is_world() || self.keeps(&object) {
            let name = name.unwrap_or_else(|| self.objects.name(inquiry(), &object));
            for sampled in going {
                self.finish(sampled, Some(name.clone()));
            }
        } else {
            let keys: Vec<Key> = going.iter().map(Sampled::key).collect();
            self.forget(&keys);
            for sampled in going {
                sampled.handle.free(&self.mpit.api, &self.session);
            }
        }
    }

    /// Whether the readings of an object that goes are kept. Where one is too many, it takes the place of the
    /// one that drew the highest lot, or has the highest itself.
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
        let gone: Vec<Finished> =
            self.finished.extract_if(.., |known| known.key.1 == order).collect();
        let keys: Vec<Key> = gone.iter().map(|known| known.key).collect();
        self.forget(&keys);
        true
    }

    /// Nothing is kept of these variables of an object that has gone.
    fn forget(&mut self, keys: &[Key]) {
        for key in keys {
            self.known.remove(key);
        }
        self.phases.forget(keys);
        if let Some(series) = &mut self.series {
            series.forget(keys);
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
        wanted: &mut Wanted,
        index: usize,
        object: Option<&Object>,
        moment: Moment,
    ) {
        if wanted.exclusions.has_index(index) {
            return self.skip(index, None, denylist::REASON.into());
        }
        let variable = match self.mpit.variable(library, index) {
            Ok(variable) => variable,
            Err(error) => {
                let early = self.early_names.get(index).cloned().flatten();
                let why = match early {
                    Some(_) if !guard::is_off() => Why::Closed(error),
                    _ => Why::Other(error),
                };
                return self.leave_unread(index, Unread { name: early, why });
            }
        };
        let name = Some(variable.name.clone());
        if !wanted.pvars.selects(&variable.name, variable.class) {
            return self.skip(index, name, "not selected by GYAN_PVARS".into());
        }
        if wanted.exclusions.has_name(&variable.name) {
            return self.skip(index, name, denylist::REASON.into());
        }
        let known = quirks::known(library, &variable);
        if let Some(reason) = known.reason_to_skip(false) {
            return self.skip(index, name, reason.into());
        }
        let objects: Vec<Option<Object>> = match (variable.bind, Kind::of(variable.bind), object) {
            (Bind::NoObject, ..) => vec![None],
            (_, Some(kind), object) => {
                self.of_kind(library, kind).bound.insert(index);
                objects::set_matters(kind, true);
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
            Some(kind) if self.kinds.get(&kind).is_some_and(|of| of.came > 0) => {
                let noun = kind.noun();
                format!("binds to a {noun}, and no {noun} that it could be read of is kept")
            }
            Some(kind) => format!("binds to a {}, and there was none", kind.noun()),
            None => String::new(),
        };
        for object in objects {
            if self.known.contains(&key(index, object.as_ref())) {
                continue;
            }
            match self.take(library, wanted, &variable, object.as_ref(), moment) {
                Ok(sampled) => {
                    self.publish(&sampled);
                    self.known.insert(sampled.key());
                    self.sampled.push(sampled);
                }
                Err(why) => reason = why,
            }
        }
        self.skip(index, name, reason);
    }

    /// Notes why variable `index` is not read, unless it is.
    fn skip(&mut self, index: usize, name: Option<String>, reason: String) {
        self.leave_unread(index, Unread { name, why: Why::Other(reason) });
    }

    fn leave_unread(&mut self, index: usize, unread: Unread) {
        if self.is_read(index) {
            self.unread.remove(&index);
        } else {
            self.unread.insert(index, unread);
        }
    }

    fn is_read(&self, index: usize) -> bool {
        self.known.range((index, 0)..=(index, usize::MAX)).next().is_some()
    }

    /// Takes a handle on `variable` for `object`, or says why not.
    fn take(
        &self,
        library: &Library,
        wanted: &mut Wanted,
        variable: &Variable,
        object: Option<&Object>,
        moment: Moment,
    ) -> Result<Sampled, String> {
        let known = quirks::known(library, variable);
        if let Some(object) = object {
            if object.is_intercommunicator() && known.says(Remedy::NotOnIntercommunicators) {
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
        let watch = self.watch(wanted, variable, &known);
        let mark =
            if start.is_some() && self.phases.stretch.read { Mark::Start } else { Mark::Unknown };
        Ok(Sampled {
            variable: variable.clone(),
            object: object.cloned(),
            handle,
            known,
            start,
            notes,
            watch,
            mark,
            excluded: None,
        })
    }

    /// What is to be sampled of a variable, when it is one whose value in between matters, or the user
    /// wants it.
    fn watch(&self, wanted: &mut Wanted, variable: &Variable, known: &Known) -> Option<Watch> {
        let class = known.effective(variable.class);
        let matters = !class.accumulates() && class != Class::Generic;
        let wanted = wanted.sampled.selects_or(&variable.name, variable.class, matters);
        if !wanted || variable.datatype == Datatype::Char || !known.may_be_read_in_between() {
            return None;
        }
        let states = (class == Class::State).then(|| {
            let api = &self.mpit.api;
            let described = api.pvar_description(variable.index).ok();
            let enumeration = described.and_then(|(_, enumeration)| enumeration);
            enumeration.and_then(|of| api.enum_items(of).ok()).unwrap_or_default()
        });
        Some(Watch::new(states))
    }
}
