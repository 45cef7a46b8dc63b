//! What is read when: every variable at the start and at the end.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use gyan_results::{Coverage, Pvar, Skipped, Values};

use crate::abi::{Bind, Library};
use crate::advice;
use crate::enable;
use crate::mpit::{Failure, Mpit, Object, PvarHandle, Session, Variable};
use crate::quirks::{self, Known, Remedy};
use crate::selection::Selection;

/// What the reason begins with why a variable of a closed component was not read.
pub(crate) const CLOSED: &str = "its component was closed in MPI_Init";

/// The variables that are being read.
pub(crate) struct Sampler {
    mpit: Mpit,
    session: Session,
    /// `MPI_T` was initialised after MPI.
    late: bool,
    /// Names of the variables before `MPI_Init`: some libraries close components in it, and no
    /// longer tell the names of their variables.
    early_names: Vec<Option<String>>,
    exported: usize,
    sampled: BTreeMap<usize, Sampled>,
    skipped: BTreeMap<usize, Skipped>,
}

struct Sampled {
    variable: Variable,
    object: Object,
    handle: PvarHandle,
    known: Known,
    start: Option<Vec<u8>>,
    notes: Vec<String>,
}

/// When a variable is met.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Moment {
    Start,
    End,
}

/// The names of all variables, before `MPI_Init`.
pub(crate) fn early_names(mpit: &Mpit, library: &Library) -> Vec<Option<String>> {
    let number = mpit.api.pvar_get_num().unwrap_or(0);
    (0..number)
        .map(|index| mpit.variable(library, index).ok().map(|variable| variable.name))
        .collect()
}

impl Sampler {
    /// Begins, after MPI was initialised: takes a handle on every variable that is wanted and
    /// reads it.
    pub(crate) fn begin(
        mpit: Mpit,
        library: &Library,
        selection: &mut Selection,
        early_names: Vec<Option<String>>,
        late: bool,
    ) -> Result<Sampler, Failure> {
        let session = Session::create(&mpit.api)?;
        let mut sampler = Sampler {
            mpit,
            session,
            late,
            early_names,
            exported: 0,
            sampled: BTreeMap::new(),
            skipped: BTreeMap::new(),
        };
        sampler.discover(library, selection, Moment::Start)?;
        Ok(sampler)
    }

    /// Looks at every variable that has no handle yet. Again at the end, because the number grows
    /// while the program runs, and a variable can become valid.
    fn discover(
        &mut self,
        library: &Library,
        selection: &mut Selection,
        moment: Moment,
    ) -> Result<(), Failure> {
        let number = self.mpit.api.pvar_get_num()?;
        self.exported = self.exported.max(number);
        for index in 0..number {
            if self.sampled.contains_key(&index) {
                continue;
            }
            match self.take(library, selection, index, moment) {
                Ok(sampled) => {
                    self.skipped.remove(&index);
                    self.sampled.insert(index, sampled);
                }
                Err(skipped) => {
                    self.skipped.insert(index, skipped);
                }
            }
        }
        Ok(())
    }

    /// Takes a handle on variable `index`, or says why not.
    fn take(
        &self,
        library: &Library,
        selection: &mut Selection,
        index: usize,
        moment: Moment,
    ) -> Result<Sampled, Skipped> {
        let variable = self.mpit.variable(library, index).map_err(|error| {
            let early = self.early_names.get(index).cloned().flatten();
            let reason = match early {
                Some(_) => format!("{CLOSED} ({error})"),
                None => error,
            };
            Skipped { index, name: early, reason }
        })?;
        let skip = |reason: String| Skipped { index, name: Some(variable.name.clone()), reason };
        if !selection.selects(&variable.name, variable.class) {
            return Err(skip("not selected by GYAN_PVARS".into()));
        }
        let known = quirks::known(library, &variable);
        if let Some(reason) = known.reason_to_skip(self.late) {
            return Err(skip(reason.into()));
        }
        let object = object_for(variable.bind, library).map_err(skip)?;
        if object.is_intercommunicator() && known.says(Remedy::NotOnIntercommunicators) {
            return Err(skip("would be bound to an intercommunicator".into()));
        }
        let mut handle = self
            .session
            .handle(&self.mpit.api, &variable, object)
            .map_err(|failure| skip(failure.to_string()))?;
        if let Err(failure) = handle.start(&self.mpit.api, &self.session) {
            handle.free(&self.mpit.api, &self.session);
            return Err(skip(failure.to_string()));
        }
        let mut notes = known.notes();
        let start = if known.says(Remedy::ReadAtEndOnly) {
            None
        } else if moment == Moment::End {
            notes.push("appeared while the program ran: no reading at the start".into());
            None
        } else {
            let reading = handle.read(&self.mpit.api, &self.session);
            reading.map_err(|failure| notes.push(format!("start: {failure}"))).ok()
        };
        Ok(Sampled { variable, object, handle, known, start, notes })
    }

    /// Ends, before MPI does: reads every variable once more and gives everything back.
    pub(crate) fn end(
        mut self,
        library: &Library,
        selection: &mut Selection,
        elements: usize,
    ) -> (Vec<Pvar>, Coverage) {
        if let Err(failure) = self.discover(library, selection, Moment::End) {
            let reason = format!("variables that appeared later: {failure}");
            self.skipped
                .insert(self.exported, Skipped { index: self.exported, name: None, reason });
        }
        let api = &self.mpit.api;
        let mut pvars = Vec::with_capacity(self.sampled.len());
        for (_, mut sampled) in self.sampled {
            if sampled.known.says(Remedy::StopToRead)
                && !sampled.known.says(Remedy::NeverStop)
                && let Err(failure) = sampled.handle.stop(api, &self.session)
            {
                sampled.notes.push(format!("end: {failure}"));
            }
            let end = sampled.handle.read(api, &self.session);
            let end = end.map_err(|failure| sampled.notes.push(format!("end: {failure}"))).ok();
            pvars.push(sampled.into_pvar(end, elements, api, &self.session));
        }
        self.session.free(api);
        if quirks::drops_mpit(library.implementation) {
            self.mpit.finalize();
        }
        let skipped: Vec<Skipped> = self.skipped.into_values().collect();
        let states = enable::states(library.implementation, library.version, &pvars, &skipped);
        let advice = advice::advice(library.implementation, self.exported, &states);
        let coverage = Coverage { exported: self.exported, sampled: pvars.len(), skipped, advice };
        (pvars, coverage)
    }
}

/// The object to bind a variable to.
fn object_for(bind: Bind, library: &Library) -> Result<Object, String> {
    match bind {
        Bind::NoObject => Ok(Object::None),
        Bind::Comm => match library.handle(library.abi.comm_world) {
            Some(world) => Ok(Object::World(world)),
            None => Err("MPI_COMM_WORLD was not found in the library".into()),
        },
        other => {
            let kind = other.name().unwrap_or_default();
            Err(format!(
                "binds to an {kind}; only variables of MPI_COMM_WORLD and of the process are read"
            ))
        }
    }
}

impl Sampled {
    fn into_pvar(
        self,
        end: Option<Vec<u8>>,
        limit: usize,
        api: &crate::mpit::Api,
        session: &Session,
    ) -> Pvar {
        let Sampled { variable, object, handle, known, start, notes } = self;
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
            object: object.name().map(Into::into),
            verbosity: variable.verbosity.into(),
            continuous: variable.continuous,
            readonly: variable.readonly,
            atomic: variable.atomic,
            count,
            start: start.map(values),
            end: end.map(values),
            delta,
            notes,
        }
    }
}
