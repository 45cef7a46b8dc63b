//! The results, at the end or up to now, in the form of the profile.

use std::collections::BTreeMap;

use gyan_results::{Class, Coverage, Datatype, Pvar, SeriesColumn, Skipped, Values};

use super::by_phase::VariablePhases;
use super::readings::{Cell, SampleState};
use super::series::{Key, Series};
use super::{Discovery, Finished, LastReading, Look, Readings, Sampled, Sampler};
use crate::config::selection::Wanted;
use crate::mpi::abi::{Library, inquiry};
use crate::mpi::handles::Kind;
use crate::mpi::libraries::advice;
use crate::mpi::libraries::monitoring;
use crate::mpi::libraries::quirks::Remedy;
use crate::mpi::tool::{Mpit, Unread, Variable, Why};
use crate::observe::objects::{Object, Registry};
use crate::observe::queues::Callbacks;
use crate::sys::clock;
use crate::sys::guard;

/// Variables with their readings, of which those that were 0 throughout are one entry where they are alike: of a
/// thousand counters few count.
#[derive(Clone, Default)]
pub(super) struct Results {
    pub(super) entries: BTreeMap<Key, Finished>,
    /// The entry of those that are alike, and the name that was listed last.
    zeros: BTreeMap<Zero, (Key, String)>,
}

/// What scalars that were 0 have in common: class, the class that they behave as, datatype, verbosity, and whether they
/// are continuous, read-only, atomic, and were read at the end.
type Zero = (Class, Option<Class>, Datatype, &'static str, [bool; 4]);

impl Results {
    /// Adds a variable with its last reading, or its latest. `elements`: the most that are kept one by one.
    fn add(
        &mut self,
        sampled: &Sampled,
        end: Option<&[u8]>,
        object: Option<String>,
        (elements, phases): (usize, &VariablePhases),
    ) {
        let (key, name) = (sampled.key(), &sampled.variable.name);
        let zero = sampled.zero(end).filter(|_| Pvar::can_list(name) && !phases.know(key));
        if let Some(zero) = zero {
            let (first, before) = self.zeros.entry(zero).or_insert_with(|| (key, name.clone()));
            if let Some(first) = self.entries.get_mut(first) {
                return first.pvar.list(before, name);
            }
        }
        self.entries.insert(key, sampled.finished(end, object, elements));
    }
}

impl Sampler {
    /// Reads a variable for the last time, if it may be read, and frees its handle.
    pub(super) fn finish(
        &mut self,
        mut sampled: Sampled,
        object: Option<String>,
        last: LastReading,
    ) {
        let api = &self.mpit.api;
        let end = if last == LastReading::LeaveOut {
            sampled.notes.push("end: freed in a callback, where nothing may be read".into());
            None
        } else {
            if sampled.known.says(Remedy::StopToRead)
                && !sampled.known.says(Remedy::NeverStop)
                && let Err(failure) = sampled.handle.stop(api, &self.session)
            {
                sampled.notes.push(format!("end: {failure}"));
            }
            let end = sampled.handle.read(api, &self.session);
            let end = end.map_err(|failure| sampled.notes.push(format!("end: {failure}"))).ok();
            sampled.settle(&mut self.phases, false, |_| end.clone());
            end
        };
        self.finished.add(&sampled, end.as_deref(), object, (self.elements, &self.phases));
        sampled.handle.free(api, &self.session);
    }

    /// Ends, before MPI does: reads every variable once more and frees everything; returns the reference to
    /// `MPI_T`, unless it had to be dropped.
    pub(crate) fn end(
        mut self,
        library: &Library,
        wanted: &mut Wanted,
    ) -> (Readings, Option<Mpit>) {
        if let Err(failure) = self.discover(library, wanted, 0, Discovery::Later)
            && !guard::is_off()
        {
            let reason = format!("variables that appeared later: {failure}");
            self.unread.insert(self.exported, Unread { name: None, why: Why::Other(reason) });
        }
        self.read_all(clock::now());
        let mut names = BTreeMap::new();
        for sampled in std::mem::take(&mut self.sampled) {
            let name = name_of(&mut self.objects, &sampled, &mut names);
            self.finish(sampled, name, LastReading::Read);
        }
        let finished = std::mem::take(&mut self.finished);
        if let Some(callbacks) = &mut self.callbacks {
            let comms: Vec<Object> = self.objects.alive(Kind::Comm).cloned().collect();
            for object in comms {
                let name = || self.objects.name(inquiry(), &object);
                callbacks
                    .comm_is_called(object.handle, names.entry(object.order).or_insert_with(name));
            }
            callbacks.end(&self.mpit);
        }
        let readings = self.finished_readings(library, finished);
        self.session.free(&self.mpit.api);
        (readings, self.mpit.drop_where_safe(library))
    }

    /// What is known now, while the run goes on.
    pub(crate) fn so_far(
        &mut self,
        look: Look,
        library: &Library,
        wanted: &mut Wanted,
    ) -> Readings {
        if matches!(look, Look::Whole | Look::Values) {
            // When this fails, so does the look at the end, which says so.
            let _ = self.discover(library, wanted, self.exported, Discovery::Later);
        }
        if look == Look::Whole {
            let now = clock::now();
            self.read_all(now);
            let stretch = self.phases.stretch;
            self.change_phase(now, stretch.phase, stretch.counts, true);
        } else {
            let [_, watched] = self.ends;
            for sampled in self.sampled.iter_mut().take(watched) {
                sampled.settle_samples(&mut self.phases);
            }
        }
        let mut all = self.finished.clone();
        // The end will ask for the names again.
        let mut objects = (look == Look::Whole).then(|| self.objects.clone());
        let mut names = BTreeMap::new();
        for sampled in &self.sampled {
            let name = match &mut objects {
                Some(objects) => name_of(objects, sampled, &mut names),
                None => sampled.object.as_ref().map(|object| object.description.clone()),
            };
            let end = match look {
                _ if !sampled.known.may_be_read_in_between() => None,
                Look::Nothing => None,
                Look::Start => sampled.start.clone(),
                Look::Whole | Look::Values => {
                    sampled.handle.read(&self.mpit.api, &self.session).ok()
                }
            };
            all.add(sampled, end.as_deref(), name, (self.elements, &self.phases));
        }
        self.finished_readings(library, all)
    }

    fn finished_readings(&self, library: &Library, Results { entries, .. }: Results) -> Readings {
        // By index: a variable may have been read from several objects.
        let mut indices: Vec<usize> = self.known.iter().map(|key| key.0).collect();
        indices.dedup();
        let phases = self.phases.pvars(&entries);
        let series = self.series.as_ref().map(|series| described(series, &entries, self.begun));
        let pvars: Vec<Pvar> = entries.into_values().map(|finished| finished.pvar).collect();
        let unread: Vec<&Unread> = self.unread.values().collect();
        let states = monitoring::states(library.implementation, library.version, &pvars, &unread);
        let skipped = self.unread.iter().map(|(index, Unread { name, why })| Skipped {
            index: *index,
            name: name.clone(),
            reason: why.to_string(),
        });
        let skipped = skipped.collect();
        let advice = advice::advice(library.implementation, self.exported, &states);
        let objects = self.objects.left_out().collect();
        let (exported, sampled) = (self.exported, indices.len());
        let mut missing = self.lacking().to_vec();
        let mut told = self.callbacks.as_ref().map(Callbacks::told).unwrap_or_default();
        missing.append(&mut told.missing);
        let coverage = Coverage { exported, sampled, skipped, objects, events: missing, advice };
        Readings { pvars, coverage, phases, series, told }
    }
}

/// The name of the object of a variable. Each object is asked once.
fn name_of(
    objects: &mut Registry,
    sampled: &Sampled,
    names: &mut BTreeMap<usize, String>,
) -> Option<String> {
    let object = sampled.object.as_ref()?;
    let name = names.entry(object.order).or_insert_with(|| objects.name(inquiry(), object));
    Some(name.clone())
}

fn described(
    series: &Series,
    finished: &BTreeMap<Key, Finished>,
    begun: u64,
) -> gyan_results::Series {
    let (ends, columns) = series.columns();
    let seconds = |end: &u64| clock::seconds(end.wrapping_sub(begun) as f64);
    let numbers = |cells: &[Cell], pick: fn(&Cell) -> f64| {
        cells.iter().map(|cell| (cell.n > 0).then(|| pick(cell))).collect()
    };
    let columns = columns.filter_map(|(key, cells)| {
        let pvar = &finished.get(&key)?.pvar;
        Some(SeriesColumn {
            name: pvar.name.clone(),
            class: pvar.class,
            object: pvar.object.clone(),
            min: numbers(cells, |cell| cell.min),
            mean: numbers(cells, |cell| cell.sum / f64::from(cell.n)),
            max: numbers(cells, |cell| cell.max),
        })
    });
    gyan_results::Series {
        interval_s: clock::seconds(series.interval as f64),
        end_s: ends.iter().map(seconds).collect(),
        columns: columns.collect(),
    }
}

impl Sampled {
    /// Its results, given the last reading `end`.
    fn finished(&self, end: Option<&[u8]>, object: Option<String>, limit: usize) -> Finished {
        let Sampled { variable, known, .. } = self;
        let class = known.effective(variable.class);
        let delta = match (&self.start, end) {
            (Some(start), Some(end)) if class.accumulates() => Some(self.delta(start, end, limit)),
            _ => None,
        };
        let values = |bytes: &[u8]| Values::from_bytes(variable.datatype, bytes, limit);
        let pvar = Pvar {
            behaves_as: known.behaves_as(variable.class),
            name: variable.name.clone(),
            class: variable.class,
            datatype: variable.datatype,
            bind: variable.bind.name().map(Into::into),
            object,
            verbosity: variable.verbosity.into(),
            continuous: variable.continuous,
            readonly: variable.readonly,
            atomic: variable.atomic,
            count: self.handle.count,
            start: self.start.as_deref().map(values),
            end: end.map(values),
            delta,
            samples: self.watch.as_ref().and_then(SampleState::samples),
            notes: self.notes.clone(),
            also: String::new(),
        };
        let states = self.watch.as_ref().map(|watch| watch.names().to_vec()).unwrap_or_default();
        Finished { pvar, states }
    }

    /// What it has in common with other variables that were 0 at the start and at the end, or not read there, if
    /// there is no more to say of it. None for those that are bound to an object, of which those of the same name are one in the profile.
    fn zero(&self, end: Option<&[u8]>) -> Option<Zero> {
        let Sampled { variable, object, handle, known, start, notes, watch, mark: _, excluded } =
            self;
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        let was_zero = start.as_deref().is_some_and(is_zero) && end.is_none_or(is_zero);
        let is_plain = object.is_none() && notes.is_empty() && watch.is_none();
        let is_number = variable.datatype != Datatype::Char && handle.count == 1;
        let none_excluded = excluded.iter().flatten().all(|number| number.is_zero());
        (was_zero && is_plain && is_number && none_excluded).then(|| {
            let Variable { class, datatype, verbosity, continuous, readonly, atomic, .. } =
                *variable;
            let facts = [continuous, readonly, atomic, end.is_some()];
            (class, known.behaves_as(class), datatype, verbosity, facts)
        })
    }

    /// How much it grew, except while the program had gyan switched off.
    fn delta(&self, start: &[u8], end: &[u8], limit: usize) -> Values {
        let datatype = self.variable.datatype;
        let Some(excluded) = &self.excluded else {
            return Values::difference(datatype, start, end, limit);
        };
        let delta = datatype.differences(start, end);
        let delta =
            delta.iter().zip(excluded).map(|(delta, off)| datatype.difference(*off, *delta));
        Values::from_elements(delta.collect(), limit)
    }
}
