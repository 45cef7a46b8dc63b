//! Rank profiles to a summary. Profiles are taken in one at a time, and what two reductions of
//! different profiles hold can be merged, so that any number of them can be reduced in parallel
//! with memory for the variables of one. `in_order` does so with profiles in a row, in a way that
//! rounds sums of doubles as the same tree over ranks does anywhere else.

mod absence;
mod calls;
mod cost;
mod files;
mod in_order;
mod messages;
mod phases;
mod pvars;
mod ranks;
mod sorted;
#[cfg(test)]
mod tests;
mod watch;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    BadEnding, Clock, CoverageSummary, CvarSetting, End, Ending, Job, LeftOut, Mpi, Number,
    RankProfile, Ranks, SUMMARY_SCHEMA, Skipped, SkippedSummary, Statistics, Summary, Tool,
    Warning, readings,
};
use absence::Rows;
use calls::CallReduction;
use cost::{InMpiReduction, OverheadReduction};
use files::Files;
pub use in_order::ReductionInOrder;
use messages::{Events, Sources};
use phases::PhaseReduction;
use pvars::Pvars;
use watch::Watches;
pub use wire::{NoReduction, bytes_of, words_of};
use wire::{Numbers, keys};

/// The profiles seen so far, by job.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Reduction {
    jobs: BTreeMap<String, JobReduction>,
    #[serde(skip)]
    left_out: BTreeSet<LeftOut>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct JobReduction {
    #[serde(skip)]
    general: General,
    /// How many ranks run on each library.
    #[serde(with = "keys")]
    libraries: BTreeMap<Mpi, u64>,
    #[serde(skip)]
    elapsed_s: Statistics,
    in_mpi: Option<InMpiReduction>,
    pvars: Pvars,
    calls: Rows<CallReduction>,
    phases: Rows<PhaseReduction>,
    #[serde(skip)]
    watches: Watches,
    messages: Sources,
    events: Events,
    #[serde(with = "keys")]
    skipped: BTreeMap<Skipped, u64>,
    objects: BTreeSet<String>,
    missing_events: BTreeSet<String>,
    advice: BTreeSet<String>,
    overhead: OverheadReduction,
    #[serde(with = "keys")]
    warnings: BTreeMap<String, u64>,
}

/// What is not a row, and may be another of every rank.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct General {
    /// The rank that `job`, `mpi` and `cvars` are from; `job.elapsed_s` is the longest of all.
    lowest_rank: u32,
    job: Job,
    mpi: Mpi,
    cvars: Vec<CvarSetting>,
    latest_start: String,
    size: u32,
    files: Files,
    hosts: BTreeSet<String>,
    ended_badly: BTreeMap<u32, BadEnding>,
    exported: usize,
    sampled: usize,
    clock: Option<Clock>,
}

impl Reduction {
    /// Takes in the profile that `file` held.
    pub fn add(&mut self, file: &str, profile: &RankProfile) {
        self.merge_job(profile.job.id.clone(), JobReduction::of(file, profile));
    }

    /// Notes that `file` could not be used.
    pub fn leave_out(&mut self, file: &str, reason: &str) {
        self.left_out.insert(LeftOut { file: file.into(), reason: reason.into() });
    }

    /// Takes in what another reduction saw.
    pub fn merge(&mut self, other: Reduction) {
        self.left_out.extend(other.left_out);
        for (id, job) in other.jobs {
            self.merge_job(id, job);
        }
    }

    fn merge_job(&mut self, id: String, other: JobReduction) {
        match self.jobs.get_mut(&id) {
            Some(job) => job.merge(&other, &mut self.left_out),
            None => {
                self.jobs.insert(id, other);
            }
        }
    }

    /// All numbers, one after the other.
    fn numbers(&mut self, numbers: &mut Numbers) {
        self.jobs.values_mut().for_each(|job| job.numbers(numbers));
        numbers.json(&mut self.left_out, |own, mut other| own.append(&mut other));
    }

    /// Files that could not be used, so far.
    pub fn left_out(&self) -> impl Iterator<Item = &LeftOut> {
        self.left_out.iter()
    }

    /// The summary of the job that started last; profiles of other jobs are left out. None when
    /// no profile was taken in.
    #[must_use]
    pub fn finish(mut self) -> Option<Summary> {
        let newest = self.jobs.iter().max_by_key(|(_, job)| &job.general.latest_start)?;
        let id = newest.0.clone();
        let newest = self.jobs.remove(&id)?;
        for (other, job) in &self.jobs {
            let reason = format!("belongs to job {other}, not to the latest job {id}");
            for file in job.general.files.names() {
                self.left_out.insert(LeftOut { file, reason: reason.clone() });
            }
        }
        newest.finish(self.left_out)
    }
}

impl JobReduction {
    fn of(file: &str, profile: &RankProfile) -> JobReduction {
        let mut reduction = JobReduction::default();
        reduction.set(file, profile);
        reduction
    }

    /// Makes this the reduction of one profile, in the room that it has of others.
    fn set(&mut self, file: &str, profile: &RankProfile) {
        let rank = profile.rank;
        let elapsed_s = profile.job.elapsed_s;
        self.general.lowest_rank = rank;
        self.general.job.id.clone_from(&profile.job.id);
        self.general.job.command.clone_from(&profile.job.command);
        self.general.job.started.clone_from(&profile.job.started);
        self.general.job.elapsed_s = elapsed_s;
        if self.general.mpi != profile.mpi {
            self.general.mpi.clone_from(&profile.mpi);
        }
        set_counts(&mut self.libraries, std::slice::from_ref(&profile.mpi));
        self.general.cvars.clone_from(&profile.cvars);
        self.general.latest_start.clone_from(&profile.job.started);
        self.general.size = profile.size;
        self.general.files.set(rank, file);
        set_all(&mut self.general.hosts, std::slice::from_ref(&profile.host));
        self.general.ended_badly.clear();
        if profile.end.how != Ending::Finalize {
            let End { how, code } = profile.end;
            self.general.ended_badly.insert(rank, BadEnding { rank, how, code, elapsed_s });
        }
        self.elapsed_s = Statistics::of(Number::Double(elapsed_s), rank);
        self.in_mpi = profile.in_mpi.as_ref().map(|in_mpi| InMpiReduction::of(in_mpi, rank));
        self.pvars.clear();
        for pvar in &profile.pvars {
            readings::of_pvar(pvar, &mut |reading| self.pvars.add(pvar, reading, rank));
            self.pvars.add_samples(pvar, pvar.samples.as_ref(), rank);
        }
        CallReduction::of_rank(&mut self.calls, &profile.calls, rank);
        PhaseReduction::of_rank(&mut self.phases, &profile.phases, &profile.pvars, rank);
        self.watches =
            profile.watch.as_ref().map(|watch| Watches::of(watch, rank)).unwrap_or_default();
        self.messages = Sources::of(&profile.messages, rank);
        self.events = Events::of(&profile.events, rank);
        self.general.exported = profile.coverage.exported;
        self.general.sampled = profile.coverage.sampled;
        set_counts(&mut self.skipped, &profile.coverage.skipped);
        set_all(&mut self.objects, &profile.coverage.objects);
        set_all(&mut self.missing_events, &profile.coverage.events);
        set_all(&mut self.advice, &profile.coverage.advice);
        if self.general.clock != profile.clock {
            self.general.clock.clone_from(&profile.clock);
        }
        self.overhead = OverheadReduction::of(&profile.overhead, profile.clock.is_some(), rank);
        set_counts(&mut self.warnings, &profile.warnings);
    }

    fn merge(&mut self, other: &JobReduction, left_out: &mut BTreeSet<LeftOut>) {
        // A second profile of a rank that is already in cannot be told from the first.
        if let Some(rank) = self.general.files.ranks().common(other.general.files.ranks()) {
            let reason = format!("is a second profile of rank {rank}");
            left_out.insert(LeftOut { file: other.general.files.name(rank), reason });
            return;
        }
        self.elapsed_s.merge(&other.elapsed_s);
        match (&mut self.in_mpi, &other.in_mpi) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
        self.calls.merge(&other.calls);
        self.pvars.merge(&other.pvars);
        self.phases.merge(&other.phases);
        self.watches.merge(&other.watches);
        self.messages.merge(&other.messages);
        self.events.merge(&other.events);
        self.overhead.merge(&other.overhead);
        self.general.merge(&other.general);
        add_counts(&mut self.libraries, &other.libraries);
        add_counts(&mut self.skipped, &other.skipped);
        insert_all(&mut self.objects, &other.objects);
        insert_all(&mut self.missing_events, &other.missing_events);
        insert_all(&mut self.advice, &other.advice);
        add_counts(&mut self.warnings, &other.warnings);
    }

    /// The numbers of the rows, and all else that may be another of every rank.
    fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.json(&mut self.general, |own, other| own.merge(&other));
        numbers.statistics(&mut self.elapsed_s);
        if let Some(in_mpi) = &mut self.in_mpi {
            in_mpi.numbers(numbers);
        }
        self.pvars.numbers(numbers);
        self.calls.numbers(numbers);
        self.phases.numbers(numbers);
        numbers.json(&mut self.watches, |own, other| own.merge(&other));
        self.messages.numbers(numbers);
        self.events.numbers(numbers);
        self.overhead.numbers(numbers);
        let libraries = self.libraries.values_mut();
        let counts = libraries.chain(self.skipped.values_mut()).chain(self.warnings.values_mut());
        counts.for_each(|count| numbers.count(count));
    }

    fn finish(mut self, left_out: BTreeSet<LeftOut>) -> Option<Summary> {
        let reduced = self.general.files.ranks().len();
        let others = reduced - self.libraries.remove(&self.general.mpi).unwrap_or(reduced);
        if others > 0 {
            let text = "the ranks do not all run on the same MPI library".to_owned();
            *self.warnings.entry(text).or_default() += others;
        }
        let (pvars, samples) = self.pvars.finish();
        let calls = self.calls.finish();
        let skipped = self.skipped.into_iter().map(|(skipped, ranks)| SkippedSummary {
            index: skipped.index,
            name: skipped.name,
            reason: skipped.reason,
            ranks,
        });
        Some(Summary {
            schema: SUMMARY_SCHEMA.into(),
            tool: Tool::gyan(),
            job: self.general.job,
            mpi: self.general.mpi,
            cvars: self.general.cvars,
            hosts: self.general.hosts.into_iter().collect(),
            ranks: Ranks {
                expected: self.general.size,
                reduced: u32::try_from(reduced).ok()?,
                missing: (0..self.general.size)
                    .filter(|rank| !self.general.files.ranks().contains(*rank))
                    .collect(),
                ended_badly: self.general.ended_badly.into_values().collect(),
                left_out: left_out.into_iter().collect(),
            },
            reduced_in_mpi: None,
            elapsed_s: self.elapsed_s.finish(),
            in_mpi: self.in_mpi.and_then(InMpiReduction::finish),
            pvars,
            calls: calls.filter_map(|(name, call)| call.finish(name, reduced)).collect(),
            samples,
            phases: PhaseReduction::finish(self.phases, reduced),
            watches: self.watches.finish(),
            messages: self.messages.finish(),
            events: self.events.finish(),
            coverage: CoverageSummary {
                exported: self.general.exported,
                sampled: self.general.sampled,
                skipped: skipped.collect(),
                objects: self.objects.into_iter().collect(),
                events: self.missing_events.into_iter().collect(),
                advice: self.advice.into_iter().collect(),
            },
            clock: self.general.clock,
            overhead: self.overhead.finish()?,
            warnings: self
                .warnings
                .into_iter()
                .map(|(text, ranks)| Warning { text, ranks })
                .collect(),
        })
    }
}

impl General {
    fn merge(&mut self, other: &General) {
        keep_slower(&mut self.clock, other.clock.as_ref());
        let elapsed_s = self.job.elapsed_s.max(other.job.elapsed_s);
        if other.lowest_rank < self.lowest_rank {
            self.lowest_rank = other.lowest_rank;
            self.job.clone_from(&other.job);
            self.mpi.clone_from(&other.mpi);
            self.cvars.clone_from(&other.cvars);
        }
        self.job.elapsed_s = elapsed_s;
        if other.latest_start > self.latest_start {
            self.latest_start.clone_from(&other.latest_start);
        }
        self.size = self.size.max(other.size);
        self.files.merge(&other.files);
        insert_all(&mut self.hosts, &other.hosts);
        self.ended_badly.extend(other.ended_badly.iter().map(|(rank, end)| (*rank, end.clone())));
        self.exported = self.exported.max(other.exported);
        self.sampled = self.sampled.max(other.sampled);
    }
}

fn merge_option(own: &mut Option<Statistics>, other: Option<&Statistics>) {
    match (own, other) {
        (Some(own), Some(other)) => own.merge(other),
        (own @ None, other) => *own = other.copied(),
        (Some(_), None) => {}
    }
}

/// Makes `set` hold these and no others; they are what it holds, as a rule.
fn set_all(set: &mut BTreeSet<String>, list: &[String]) {
    if !set.iter().eq(list) {
        *set = list.iter().cloned().collect();
    }
}

fn insert_all(set: &mut BTreeSet<String>, other: &BTreeSet<String>) {
    for one in other {
        if !set.contains(one) {
            set.insert(one.clone());
        }
    }
}

/// Makes `counts` those of one rank that has these.
fn set_counts<K: Clone + Ord>(counts: &mut BTreeMap<K, u64>, list: &[K]) {
    if counts.keys().eq(list) {
        for ranks in counts.values_mut() {
            *ranks = 1;
        }
    } else {
        *counts = list.iter().map(|one| (one.clone(), 1)).collect();
    }
}

fn add_counts<K: Clone + Ord>(counts: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>) {
    for (one, ranks) in other {
        match counts.get_mut(one) {
            Some(own) => *own += ranks,
            None => {
                counts.insert(one.clone(), *ranks);
            }
        }
    }
}

/// The clock that takes longer to read; of two that are equal the one whose name comes first or that
/// is called slow, so that the order of the ranks does not matter.
fn keep_slower(own: &mut Option<Clock>, other: Option<&Clock>) {
    let Some(other) = other else { return };
    if let Some(own) = own {
        let order = other.read_s.total_cmp(&own.read_s).then_with(|| own.source.cmp(&other.source));
        if order.then(other.slow.cmp(&own.slow)).is_le() {
            return;
        }
    }
    *own = Some(other.clone());
}
