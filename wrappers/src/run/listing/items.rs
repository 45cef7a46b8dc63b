//! The items of a listing, one by one: the description and value of each, or what it did to the process that
//! asked.

use std::collections::BTreeMap;
use std::io::{self, Write};

use gyan_results::{Category, Cvar, Event, Item, Moment, PvarInfo, Source, Values, Variables};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::mpi::abi::{Bind, Library};
use crate::mpi::libraries::cvar_env;
use crate::mpi::libraries::quirks;
use crate::mpi::tool::{Enumeration, EventApi, Mpit, Session};
use crate::sys::fork::{Mode, Progress, survive};

macro_rules! items {
    ($($kind:ident($record:ident) = $name:literal in $list:ident;)+) => {
        /// What an item is.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub(crate) enum ItemKind { $($kind,)+ }

        /// The data on an item.
        #[derive(Debug, Deserialize, Serialize)]
        pub(crate) enum ItemRecord { $($kind($record),)+ }

        impl ItemKind {
            /// As in the names of functions.
            fn in_calls(self) -> &'static str {
                match self { $(ItemKind::$kind => $name,)+ }
            }
        }

        impl ItemRecord {
            /// An item about which nothing could be learnt.
            fn unknown(kind: ItemKind, index: usize) -> ItemRecord {
                match kind {
                    $(ItemKind::$kind => ItemRecord::$kind($record { index, ..$record::default() }),)+
                }
            }

            fn key(&self) -> (ItemKind, usize) {
                match self { $(ItemRecord::$kind(record) => (ItemKind::$kind, record.index),)+ }
            }

            fn problem(&mut self) -> &mut Option<String> {
                match self { $(ItemRecord::$kind(record) => &mut record.problem,)+ }
            }

            /// Hands it over to `variables`.
            fn add_to(self, variables: &mut Variables) {
                match self { $(ItemRecord::$kind(record) => variables.$list.push(record),)+ }
            }
        }
    };
}

items! {
    Cvar(Cvar) = "cvar" in cvars;
    Pvar(PvarInfo) = "pvar" in pvars;
    Category(Category) = "category" in categories;
    Event(Event) = "event" in events;
    Source(Source) = "source" in sources;
}

/// The steps that may kill, after that with number 0, which describes the item.
#[derive(Clone, Copy)]
enum Step {
    EnumItem = 1,
    HandleAlloc,
    Start,
    Read,
    Stop,
    HandleFree,
}

impl Step {
    /// What they have in the names of functions, in the order in which [`Progress`] numbers them.
    const NAMES: [&str; 7] =
        ["get_info", "enum_get_item", "handle_alloc", "start", "read", "stop", "handle_free"];

    /// The function of `MPI_T` for the step with this number.
    fn call(number: usize, kind: ItemKind) -> String {
        match Step::NAMES.get(number) {
            Some(what) if number == Step::EnumItem as usize => format!("MPI_T_{what}"),
            what => format!("MPI_T_{}_{}", kind.in_calls(), what.unwrap_or(&Step::NAMES[0])),
        }
    }
}

/// The data on each item.
pub(crate) struct Items(BTreeMap<(ItemKind, usize), ItemRecord>);

impl Items {
    /// Fills in data from before `MPI_Init` that the library no longer tells, because it closes components that
    /// are not in use.
    pub(super) fn complete(&mut self, earlier: Items) {
        for (key, earlier) in earlier.0 {
            match self.0.get_mut(&key) {
                Some(record) => record.complete(earlier),
                None => {
                    self.0.insert(key, earlier);
                }
            }
        }
    }

    /// Hands everything over to `variables`.
    pub(super) fn into_variables(self, variables: &mut Variables) {
        self.0.into_values().for_each(|record| record.add_to(variables));
    }
}

/// Everything that the library tells at this moment. Without `handles`, no handle on a performance variable is
/// allocated, so only descriptions are returned.
pub(super) fn list(
    library: &Library,
    mpit: &Mpit,
    moment: Moment,
    handles: bool,
) -> io::Result<Items> {
    let api = &mpit.api;
    let numbers = [
        (ItemKind::Cvar, api.cvar_get_num().unwrap_or(0)),
        (ItemKind::Pvar, api.pvar_get_num().unwrap_or(0)),
        (ItemKind::Category, api.category_get_num().unwrap_or(0)),
        (ItemKind::Event, api.events().and_then(EventApi::event_get_num).unwrap_or(0)),
        (ItemKind::Source, api.events().and_then(EventApi::source_get_num).unwrap_or(0)),
    ];
    let items: Vec<(ItemKind, usize)> = numbers
        .into_iter()
        .flat_map(|(kind, number)| (0..number).map(move |index| (kind, index)))
        .collect();
    let tries = Config::from_env().list_tries;
    let session = Session::create(api).ok();
    let asker = Asker { library, mpit, moment, handles, tries, session };
    let survived = survive(items.len(), |item, mode, progress, out| match items.get(item) {
        Some((kind, index)) => asker.ask(*kind, *index, mode, progress, out),
        None => Ok(()),
    })?;
    let mut records: BTreeMap<(ItemKind, usize), ItemRecord> = BTreeMap::new();
    for line in survived.lines.lines() {
        if let Ok(record) = serde_json::from_str::<ItemRecord>(line) {
            records.insert(record.key(), record);
        }
    }
    for casualty in survived.casualties {
        if let Some((kind, index)) = items.get(casualty.item) {
            let record = records
                .entry((*kind, *index))
                .or_insert_with(|| ItemRecord::unknown(*kind, *index));
            *record.problem() =
                Some(format!("{} in {}", casualty.how, Step::call(casualty.step, *kind)));
        }
    }
    Ok(Items(records))
}

impl ItemRecord {
    /// Copies what `earlier` knows and this does not.
    fn complete(&mut self, earlier: ItemRecord) {
        match (self, earlier) {
            (ItemRecord::Cvar(cvar), ItemRecord::Cvar(earlier)) if cvar.value.is_none() => {
                let (index, problem) = (cvar.index, cvar.problem.take().or(earlier.problem));
                let before_init = earlier.name.is_some();
                *cvar = Cvar { index, problem, before_init, ..earlier };
            }
            (ItemRecord::Pvar(pvar), ItemRecord::Pvar(earlier)) if pvar.name.is_none() => {
                let (index, problem) = (pvar.index, pvar.problem.take().or(earlier.problem));
                let before_init = earlier.name.is_some();
                *pvar = PvarInfo { index, problem, before_init, ..earlier };
            }
            (ItemRecord::Category(category), ItemRecord::Category(earlier))
                if category.name.is_none() =>
            {
                *category = earlier;
            }
            _ => {}
        }
    }
}

/// Asks the library, in a process that may die of it.
struct Asker<'a> {
    library: &'a Library,
    mpit: &'a Mpit,
    moment: Moment,
    handles: bool,
    /// Variables that do not run by themselves are also started, which can have side effects, and read.
    tries: bool,
    session: Option<Session>,
}

impl Asker<'_> {
    fn ask(
        &self,
        kind: ItemKind,
        index: usize,
        mode: Mode,
        progress: &Progress,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let record = match kind {
            ItemKind::Cvar => ItemRecord::Cvar(self.cvar(index, mode, progress)),
            ItemKind::Pvar => ItemRecord::Pvar(self.pvar(index, mode, progress)),
            ItemKind::Category => ItemRecord::Category(self.category(index)),
            ItemKind::Event => ItemRecord::Event(self.event(index)),
            ItemKind::Source => ItemRecord::Source(self.source(index)),
        };
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        out.write_all(&line)
    }

    fn cvar(&self, index: usize, mode: Mode, progress: &Progress) -> Cvar {
        let mut cvar = Cvar { index, ..Cvar::default() };
        let info = match self.mpit.api.cvar_get_info(index) {
            Ok(info) => info,
            Err(failure) => return Cvar { problem: Some(failure.to_string()), ..cvar },
        };
        let (abi, implementation) = (self.library.abi, self.library.implementation);
        progress.step(Step::EnumItem as usize);
        cvar.enumeration = self.enumeration(info.enumeration);
        cvar.verbosity = abi.verbosity(info.verbosity).map(Into::into);
        cvar.datatype = self.library.datatype(info.datatype);
        cvar.scope = abi.scope(info.scope).map(Into::into);
        cvar.description = info.description;
        cvar.environment = cvar_env::environment(implementation, &info.name);
        cvar.launcher_option = cvar_env::launcher_option(implementation, &info.name);
        let bind = abi.bind(info.bind);
        cvar.bind = bind.and_then(Bind::name).map(Into::into);
        cvar.name = Some(info.name);
        let Some(datatype) = cvar.datatype else {
            cvar.problem = Some("has a datatype that MPI_T does not allow".into());
            return cvar;
        };
        if mode == Mode::Careful {
            return cvar;
        }
        let deadly = cvar.name.as_deref().and_then(|name| match self.moment {
            Moment::BeforeInit => None,
            Moment::AfterInit => quirks::deadly_after_init(self.library, name),
        });
        if let Some(reason) = deadly {
            cvar.problem = Some(reason.into());
            return cvar;
        }
        let object = match self.object(bind) {
            Ok(object) => object,
            Err(problem) => return Cvar { problem: Some(problem), ..cvar },
        };
        progress.step(Step::HandleAlloc as usize);
        let handle = match self.mpit.api.cvar_handle(index, object) {
            Ok(handle) => handle,
            Err(failure) => return Cvar { problem: Some(failure.to_string()), ..cvar },
        };
        cvar.count = Some(handle.count);
        progress.step(Step::Read as usize);
        match self.mpit.api.cvar_read(&handle, datatype) {
            Ok(bytes) => cvar.value = Some(Values::from_bytes(datatype, &bytes, usize::MAX)),
            Err(failure) => cvar.problem = Some(failure.to_string()),
        }
        progress.step(Step::HandleFree as usize);
        self.mpit.api.cvar_free(handle);
        cvar
    }

    fn pvar(&self, index: usize, mode: Mode, progress: &Progress) -> PvarInfo {
        let mut pvar = PvarInfo { index, ..PvarInfo::default() };
        let api = &self.mpit.api;
        let info = match api.pvar_get_info(index) {
            Ok(info) => info,
            Err(failure) => return PvarInfo { problem: Some(failure.to_string()), ..pvar },
        };
        let abi = self.library.abi;
        if let Ok((description, enumeration)) = api.pvar_description(index) {
            pvar.description = description;
            progress.step(Step::EnumItem as usize);
            pvar.enumeration = self.enumeration(enumeration);
        }
        pvar.verbosity = abi.verbosity(info.verbosity).map(Into::into);
        pvar.class = abi.class(info.class);
        pvar.datatype = self.library.datatype(info.datatype);
        let bind = abi.bind(info.bind);
        pvar.bind = bind.and_then(Bind::name).map(Into::into);
        pvar.name = Some(info.name);
        pvar.readonly = Some(info.readonly);
        pvar.continuous = Some(info.continuous);
        pvar.atomic = Some(info.atomic);
        if !self.handles || mode == Mode::Careful {
            return pvar;
        }
        let problem = |pvar: PvarInfo, problem: String| PvarInfo { problem: Some(problem), ..pvar };
        let variable = match self.mpit.variable(self.library, index) {
            Ok(variable) => variable,
            Err(why) => return problem(pvar, why),
        };
        // A crash here costs no more than a fork.
        if let Some(reason) = quirks::known(self.library, &variable).reason_to_skip(true) {
            return problem(pvar, format!("not touched: {reason}"));
        }
        let object = match self.object(bind) {
            Ok(object) => object,
            Err(why) => return problem(pvar, why),
        };
        let Some(session) = &self.session else {
            return problem(pvar, "the library creates no session".into());
        };
        progress.step(Step::HandleAlloc as usize);
        let mut handle = match session.handle(api, &variable, object) {
            Ok(handle) => handle,
            Err(failure) => return problem(pvar, failure.to_string()),
        };
        pvar.count = Some(handle.count);
        if self.tries {
            progress.step(Step::Start as usize);
            if let Err(failure) = handle.start(api, session) {
                return problem(pvar, failure.to_string());
            }
        }
        if variable.continuous || self.tries {
            progress.step(Step::Read as usize);
            match handle.read(api, session) {
                Ok(bytes) => {
                    pvar.value = Some(Values::from_bytes(variable.datatype, &bytes, usize::MAX));
                }
                Err(failure) => pvar.problem = Some(failure.to_string()),
            }
        }
        if self.tries {
            progress.step(Step::Stop as usize);
            if let Err(failure) = handle.stop(api, session) {
                pvar.problem = Some(failure.to_string());
            }
        }
        progress.step(Step::HandleFree as usize);
        handle.free(api, session);
        pvar
    }

    fn category(&self, index: usize) -> Category {
        match self.mpit.api.category(index) {
            Ok(category) => Category {
                index,
                name: Some(category.name),
                description: category.description,
                cvars: category.cvars,
                pvars: category.pvars,
                categories: category.categories,
                problem: None,
            },
            Err(failure) => {
                Category { index, problem: Some(failure.to_string()), ..Category::default() }
            }
        }
    }

    fn event(&self, index: usize) -> Event {
        match self.mpit.api.events().and_then(|events| events.event(index)) {
            Ok(event) => Event {
                index,
                name: Some(event.name),
                verbosity: self.library.abi.verbosity(event.verbosity).map(Into::into),
                bind: self.library.abi.bind(event.bind).and_then(Bind::name).map(Into::into),
                elements: event.elements,
                description: event.description,
                problem: None,
            },
            Err(failure) => Event { index, problem: Some(failure.to_string()), ..Event::default() },
        }
    }

    fn source(&self, index: usize) -> Source {
        match self.mpit.api.events().and_then(|events| events.source(index)) {
            Ok(source) => Source {
                index,
                name: Some(source.name),
                ordered: source.ordering == self.library.abi.source_ordered,
                ticks_per_second: source.ticks_per_second,
                description: source.description,
                problem: None,
            },
            Err(failure) => {
                Source { index, problem: Some(failure.to_string()), ..Source::default() }
            }
        }
    }

    fn enumeration(&self, enumeration: Option<Enumeration>) -> Option<Vec<Item>> {
        self.mpit.api.enum_items(enumeration?).ok()
    }

    /// The object that a variable is bound to here; none for a variable that binds to nothing.
    fn object(&self, bind: Option<Bind>) -> Result<Option<usize>, String> {
        match bind {
            Some(Bind::NoObject) => Ok(None),
            Some(Bind::Comm) if self.moment == Moment::BeforeInit => {
                Err("binds to an MPI_COMM, and there is none before MPI_Init".into())
            }
            Some(Bind::Comm) => {
                let world = self.library.handle(self.library.abi.comm_world);
                world.map(Some).ok_or_else(|| "MPI_COMM_WORLD was not found".into())
            }
            Some(other) => Err(format!("binds to an {}", other.name().unwrap_or_default())),
            None => Err("binds to an unknown kind of object".into()),
        }
    }
}
