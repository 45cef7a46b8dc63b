//! What is read when? Every variable at the start and at the end; variables bound to an object when it is
//! created and just before it is freed; and in between, at calls and when phases begin and end, those whose
//! value matters there.

mod by_phase;
mod objects;
mod readings;
mod results;
mod sampling;
mod series;

use std::collections::{BTreeMap, BTreeSet};

use wildmatch::WildMatch;

use gyan_results::{Class, Coverage, Datatype, Item, Number, PhasePvar, Pvar, collected};

use crate::config::denylist;
use crate::config::denylist::Exclusions;
use crate::config::selection::Wanted;
use crate::config::{EventsFrom, WatchFor};
use crate::mpi::abi::{Bind, Library, inquiry};
use crate::mpi::handles::Kind;
use crate::mpi::libraries::quirks::{self, Quirks, Remedy};
use crate::mpi::tool::{Failure, Mpit, PvarHandle, Session, Unread, Variable, Why, published};
use crate::observe::objects::{Likeness, Object, Registry, set_matters};
use crate::observe::queues::{CallbackResults, Callbacks};
use crate::observe::receives;
use crate::sys::clock;
use crate::sys::guard;

pub(crate) use by_phase::Phase;
use by_phase::{Mark, VariablePhases};
use objects::OfKind;
use readings::SampleState;
use results::Results;
use series::{Key, Series, key};

/// The variables that are being read.
pub(crate) struct Sampler {
    mpit: Mpit,
    session: Session,
    /// Names of the variables before `MPI_Init`: some libraries close components there, and then no longer tell
    /// the names of their variables.
    early_names: Vec<Option<String>>,
    exported: usize,
    objects: Registry,
    kinds: BTreeMap<Kind, OfKind>,
    /// Levels that are sampled, then other variables that are, then the rest.
    sampled: Vec<Sampled>,
    /// Where the first two end.
    ends: [usize; 2],
    /// Variables of objects that are gone.
    finished: Results,
    /// Indices of both, to find one among many.
    known: BTreeSet<Key>,
    /// The objects in `finished`, by lot and order: of all that were read and freed, those with the lowest
    /// lots, so that each had the same chance.
    kept: BTreeMap<(u64, usize), Likeness>,
    unread: BTreeMap<usize, Unread>,
    /// Elements of a variable that are kept one by one.
    elements: usize,
    /// How many objects are followed at a time; as many are kept after they are freed.
    limit: usize,
    phases: VariablePhases,
    series: Option<Series>,
    /// The variable that is compared at receives, by index.
    watched: Option<usize>,
    /// When the run began, on the clock.
    begun: u64,
    callbacks: Option<Callbacks>,
}

struct Sampled {
    variable: Variable,
    /// None for a variable that binds to nothing.
    object: Option<Object>,
    handle: PvarHandle,
    known: Quirks,
    start: Option<Vec<u8>>,
    notes: Vec<String>,
    /// None for a variable that is not sampled.
    watch: Option<SampleState>,
    mark: Mark,
    /// How much it grew while the program had gyan switched off.
    excluded: Option<Vec<Number>>,
}

/// A variable with its last reading, or its latest.
#[derive(Clone)]
struct Finished {
    pvar: Pvar,
    /// Names of the states of a STATE variable.
    states: Vec<Item>,
}

/// The results at an end.
#[derive(Default)]
pub(crate) struct Readings {
    pub(crate) pvars: Vec<Pvar>,
    pub(crate) coverage: Coverage,
    /// What variables did in the phases.
    pub(crate) phases: Vec<(Phase, PhasePvar)>,
    pub(crate) series: Option<gyan_results::Series>,
    /// What callbacks reported.
    pub(crate) told: CallbackResults,
}

/// When a variable is first seen.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Discovery {
    /// At the start, or when the object that it is bound to was created.
    Start,
    /// Later.
    Later,
}

/// Whether the values of such a variable in between are lost unless it is read: those that accumulate tell at the end
/// what was.
fn is_passing(class: Class) -> bool {
    !class.accumulates() && class != Class::Generic
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

/// How much to look up for a snapshot while the run goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Look {
    /// As at the end: also the names of objects, and the data of the phase.
    Whole,
    /// Only the current values of variables.
    Values,
    /// The values at the start, which were read a moment ago.
    Start,
    /// What was read before.
    Nothing,
}

/// Whether the variables of an object that goes are read once more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LastReading {
    Read,
    LeaveOut,
}

/// How many variables the library exports now.
pub(crate) fn exported(mpit: &Mpit) -> usize {
    mpit.api.pvar_get_num().unwrap_or(0)
}

/// The limits of a profile.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) elements: usize,
    pub(crate) objects: usize,
    /// The interval of a series in ticks, and its bytes.
    pub(crate) series: Option<(u64, usize)>,
    /// When the run began, on the clock.
    pub(crate) begun: u64,
    /// The interfaces that should call back.
    pub(crate) events: EventsFrom,
}

impl Sampler {
    /// How many readings of variables there are to take and keep.
    pub(crate) fn readings(&self) -> usize {
        self.sampled.len() + self.finished.entries.len()
    }

    /// Begins, after MPI was initialised: allocates a handle for every wanted variable and reads it. `world`:
    /// `MPI_COMM_WORLD` and `MPI_COMM_SELF` exist. If this fails, everything allocated is freed.
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
            set_matters(kind, false);
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
            ends: [0; 2],
            finished: Results::default(),
            known: BTreeSet::new(),
            kept: BTreeMap::new(),
            unread: BTreeMap::new(),
            elements: limits.elements,
            limit: limits.objects,
            phases: VariablePhases::new(limits.elements),
            begun: limits.begun,
            watched: None,
            series: limits.series.map(|(ticks, bytes)| Series::new(ticks, bytes, clock::now())),
        };
        if let Err(failure) = sampler.discover(library, wanted, 0, Discovery::Start) {
            sampler.end(library, wanted);
            return Err(failure);
        }
        if sampler.callbacks.is_some() {
            set_matters(Kind::Comm, true);
        }
        let comms: Vec<Object> = sampler.objects.alive(Kind::Comm).cloned().collect();
        for object in comms {
            sampler.tell_callbacks(&object);
        }
        Ok(sampler)
    }

    /// Examines the variables from index `from` on. Also called later, because the number grows while the
    /// program runs, and a variable can become valid.
    fn discover(
        &mut self,
        library: &Library,
        wanted: &mut Wanted,
        from: usize,
        moment: Discovery,
    ) -> Result<(), Failure> {
        let number = self.mpit.api.pvar_get_num()?;
        self.exported = self.exported.max(number);
        for index in from..number {
            // One that binds to nothing has no more handles to come.
            if !self.is_read(index) || self.kinds.values().any(|of| of.bound.contains(&index)) {
                self.look_at(library, wanted, index, None, moment);
            }
        }
        Ok(())
    }

    /// The names of the communicators that are alive, by handle.
    pub(crate) fn names_of_comms(&self) -> BTreeMap<usize, String> {
        // The end will ask for them again.
        let mut objects = self.objects.clone();
        let alive: Vec<Object> = self.objects.alive(Kind::Comm).cloned().collect();
        let name = |object: Object| (object.handle, objects.name(inquiry(), &object));
        collected(alive.into_iter().map(name))
    }

    /// Sets the variable to compare at receives: the first that matches what the user named.
    pub(crate) fn watch_receives(&mut self, wanted: &WatchFor) -> Result<(), String> {
        let patterns = receives::candidates(wanted);
        let named = |pattern: &WildMatch| {
            let matching = |sampled: &&Sampled| pattern.matches(&sampled.variable.name);
            self.sampled.iter().filter(matching).min_by_key(|sampled| sampled.key())
        };
        let why = match patterns.iter().find_map(named) {
            Some(found) if published::can_read(found.variable.datatype) => {
                let (index, name) = (found.variable.index, found.variable.name.clone());
                self.watched = Some(index);
                set_matters(Kind::Comm, true);
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
                "this MPI exports no length of the queue of unexpected messages; gyan doctor says \
                 what would give one"
                    .into()
            }
            None => "this MPI exports no such variable; gyan varlist -p shows them".into(),
        }
    }

    /// Sentences about things that the user asked for and the library lacks.
    pub(crate) fn lacking(&self) -> &[String] {
        self.callbacks.as_ref().map(Callbacks::lacking).unwrap_or_default()
    }

    /// Publishes a variable to receives if it is the watched one.
    fn publish(&self, sampled: &Sampled) {
        if self.watched == Some(sampled.variable.index) {
            let object = sampled.object.as_ref().map(|object| object.handle);
            published::publish(&self.mpit.api, &self.session, &sampled.handle, object);
        }
    }

    /// Examines variable `index`: allocates a handle for `object`, or for every object that it can be bound to,
    /// or records why not.
    fn look_at(
        &mut self,
        library: &Library,
        wanted: &mut Wanted,
        index: usize,
        object: Option<&Object>,
        moment: Discovery,
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
        let objects: Vec<Option<Object>> =
            match (variable.bind, Kind::from_bind(variable.bind), object) {
                (Bind::NoObject, ..) => vec![None],
                (_, Some(kind), object) => {
                    self.of_kind(library, kind).bound.insert(index);
                    set_matters(kind, true);
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
        let mut reason = match Kind::from_bind(variable.bind) {
            Some(kind) if self.kinds.get(&kind).is_some_and(|of| of.came > 0) => {
                let noun = kind.noun();
                format!("binds to a {noun}, and no {noun} that it could be read from is kept")
            }
            Some(kind) => format!("binds to a {}, and there was none", kind.noun()),
            None => String::new(),
        };
        for object in objects {
            if self.known.contains(&key(index, object.as_ref())) {
                continue;
            }
            match self.take(&known, wanted, &variable, object.as_ref(), moment) {
                Ok(sampled) => {
                    self.publish(&sampled);
                    self.known.insert(sampled.key());
                    self.push(sampled);
                }
                Err(why) => reason = why,
            }
        }
        self.skip(index, name, reason);
    }

    /// Records why variable `index` is not read, unless it is.
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

    /// Allocates a handle on `variable` for `object`, or says why not.
    fn take(
        &self,
        known: &Quirks,
        wanted: &mut Wanted,
        variable: &Variable,
        object: Option<&Object>,
        moment: Discovery,
    ) -> Result<Sampled, String> {
        if let Some(object) = object {
            if object.is_intercommunicator() && known.says(Remedy::NotOnIntercommunicators) {
                return Err("would be bound to an intercommunicator".into());
            }
            if !object.is_world() && known.says(Remedy::WorldOnly) {
                return Err("binds to MPI_COMM_WORLD, which did not exist".into());
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
        } else if moment == Discovery::Later {
            notes.push("appeared while the program ran: no reading at the start".into());
            None
        } else {
            match handle.read(api, &self.session) {
                Ok(reading) => Some(reading),
                // A variable that cannot be read for one object is still read for others.
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
        let watch = self.watch(wanted, variable, known);
        let mark =
            if start.is_some() && self.phases.stretch.read { Mark::Start } else { Mark::Unknown };
        Ok(Sampled {
            variable: variable.clone(),
            object: object.cloned(),
            handle,
            known: known.clone(),
            start,
            notes,
            watch,
            mark,
            excluded: None,
        })
    }

    /// The sampling state of a variable, if its values in between matter or the user wants them.
    fn watch(
        &self,
        wanted: &mut Wanted,
        variable: &Variable,
        known: &Quirks,
    ) -> Option<SampleState> {
        let class = known.effective(variable.class);
        let wanted = wanted.sampled.selects_or(&variable.name, variable.class, is_passing(class));
        if !wanted || variable.datatype == Datatype::Char || !known.may_be_read_in_between() {
            return None;
        }
        let states = (class == Class::State).then(|| {
            let api = &self.mpit.api;
            let described = api.pvar_description(variable.index).ok();
            let enumeration = described.and_then(|(_, enumeration)| enumeration);
            enumeration.and_then(|of| api.enum_items(of).ok()).unwrap_or_default()
        });
        Some(SampleState::new(states))
    }
}
