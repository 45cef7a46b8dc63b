//! Rank profiles to a summary. Profiles are taken in one at a time, and what two reductions of
//! different profiles hold can be merged, so that any number of them can be reduced in parallel
//! with memory for the variables of one.

mod absence;
mod calls;
mod cost;
mod messages;
mod phases;
mod pvars;
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
use messages::{Events, Sources};
use phases::PhaseReduction;
use pvars::Pvars;
use watch::Watches;
pub use wire::NoReduction;
use wire::{Numbers, keys};

/// The profiles seen so far, by job.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Reduction {
    jobs: BTreeMap<String, JobReduction>,
    #[serde(skip)]
    left_out: BTreeSet<LeftOut>,
}

#[derive(Debug, Deserialize, Serialize)]
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
#[derive(Debug, Default, Deserialize, Serialize)]
struct General {
    /// The rank that `job`, `mpi` and `cvars` are from; `job.elapsed_s` is the longest of all.
    lowest_rank: u32,
    job: Job,
    mpi: Mpi,
    cvars: Vec<CvarSetting>,
    latest_start: String,
    size: u32,
    files: BTreeMap<u32, String>,
    hosts: BTreeSet<String>,
    ended_badly: BTreeMap<u32, BadEnding>,
    exported: usize,
    sampled: usize,
    clock: Option<Clock>,
}

impl Reduction {
    /// Takes in the profile that `file` held.
    pub fn add(&mut self, file: &str, profile: RankProfile) {
        let id = profile.job.id.clone();
        let one = JobReduction::of(file, profile);
        self.merge_job(id, one);
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
            Some(job) => job.merge(other, &mut self.left_out),
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
            for file in job.general.files.values() {
                self.left_out.insert(LeftOut { file: file.clone(), reason: reason.clone() });
            }
        }
        newest.finish(self.left_out)
    }
}

impl JobReduction {
    fn of(file: &str, profile: RankProfile) -> JobReduction {
        let rank = profile.rank;
        let elapsed_s = profile.job.elapsed_s;
        let is_timed = profile.clock.is_some();
        let mut ended_badly = BTreeMap::new();
        if profile.end.how != Ending::Finalize {
            let End { how, code } = profile.end;
            let ending = BadEnding { rank, how, code, elapsed_s };
            ended_badly.insert(rank, ending);
        }
        let mut pvars = Pvars::default();
        for pvar in &profile.pvars {
            pvars.add(pvar, readings::of_pvar(pvar), pvar.samples.as_ref(), rank);
        }
        let phases = profile.phases.into_iter().enumerate();
        let phases =
            phases.map(|(place, phase)| PhaseReduction::of(place, phase, &profile.pvars, rank));
        let calls = profile.calls.into_iter().map(|call| CallReduction::of(call, rank));
        JobReduction {
            libraries: BTreeMap::from([(profile.mpi.clone(), 1)]),
            general: General {
                lowest_rank: rank,
                latest_start: profile.job.started.clone(),
                job: profile.job,
                mpi: profile.mpi,
                cvars: profile.cvars,
                size: profile.size,
                files: BTreeMap::from([(rank, file.to_owned())]),
                hosts: BTreeSet::from([profile.host]),
                ended_badly,
                exported: profile.coverage.exported,
                sampled: profile.coverage.sampled,
                clock: profile.clock,
            },
            elapsed_s: Statistics::of(Number::Double(elapsed_s), rank),
            in_mpi: profile.in_mpi.as_ref().map(|in_mpi| InMpiReduction::of(in_mpi, rank)),
            phases: Rows::of(rank, phases),
            pvars,
            calls: Rows::of(rank, calls),
            watches: profile.watch.map(|watch| Watches::of(watch, rank)).unwrap_or_default(),
            messages: Sources::of(profile.messages, rank),
            events: Events::of(profile.events, rank),
            skipped: profile.coverage.skipped.into_iter().map(|skipped| (skipped, 1)).collect(),
            objects: profile.coverage.objects.into_iter().collect(),
            missing_events: profile.coverage.events.into_iter().collect(),
            advice: profile.coverage.advice.into_iter().collect(),
            overhead: OverheadReduction::of(&profile.overhead, is_timed, rank),
            warnings: profile.warnings.into_iter().map(|text| (text, 1)).collect(),
        }
    }

    fn merge(&mut self, mut other: JobReduction, left_out: &mut BTreeSet<LeftOut>) {
        // A second profile of a rank that is already in cannot be told from the first.
        if let Some((rank, file)) =
            other.general.files.iter().find(|(rank, _)| self.general.files.contains_key(rank))
        {
            let reason = format!("is a second profile of rank {rank}");
            left_out.insert(LeftOut { file: file.clone(), reason });
            return;
        }
        self.elapsed_s.merge(&other.elapsed_s);
        match (&mut self.in_mpi, other.in_mpi) {
            (Some(own), Some(other)) => own.merge(&other),
            (own @ None, other) => *own = other,
            (Some(_), None) => {}
        }
        self.calls.merge(other.calls);
        self.pvars.merge(other.pvars);
        self.phases.merge(other.phases);
        self.watches.merge(other.watches);
        self.messages.merge(other.messages);
        self.events.merge(other.events);
        self.overhead.merge(other.overhead);
        self.general.merge(other.general);
        for (library, ranks) in other.libraries {
            *self.libraries.entry(library).or_default() += ranks;
        }
        for (skipped, ranks) in other.skipped {
            *self.skipped.entry(skipped).or_default() += ranks;
        }
        self.objects.append(&mut other.objects);
        self.missing_events.append(&mut other.missing_events);
        self.advice.append(&mut other.advice);
        for (text, ranks) in other.warnings {
            *self.warnings.entry(text).or_default() += ranks;
        }
    }

    /// The numbers of the rows, and all else that may be another of every rank.
    fn numbers(&mut self, numbers: &mut Numbers) {
        numbers.json(&mut self.general, General::merge);
        numbers.statistics(&mut self.elapsed_s);
        if let Some(in_mpi) = &mut self.in_mpi {
            in_mpi.numbers(numbers);
        }
        self.pvars.numbers(numbers);
        self.calls.numbers(numbers);
        self.phases.numbers(numbers);
        numbers.json(&mut self.watches, Watches::merge);
        self.messages.numbers(numbers);
        self.events.numbers(numbers);
        self.overhead.numbers(numbers);
        let libraries = self.libraries.values_mut();
        let counts = libraries.chain(self.skipped.values_mut()).chain(self.warnings.values_mut());
        counts.for_each(|count| numbers.count(count));
    }

    fn finish(mut self, left_out: BTreeSet<LeftOut>) -> Option<Summary> {
        let general = self.general;
        let reduced = general.files.len() as u64;
        let others = reduced - self.libraries.remove(&general.mpi).unwrap_or(reduced);
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
            job: general.job,
            mpi: general.mpi,
            cvars: general.cvars,
            hosts: general.hosts.into_iter().collect(),
            ranks: Ranks {
                expected: general.size,
                reduced: u32::try_from(reduced).ok()?,
                missing: (0..general.size)
                    .filter(|rank| !general.files.contains_key(rank))
                    .collect(),
                ended_badly: general.ended_badly.into_values().collect(),
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
                exported: general.exported,
                sampled: general.sampled,
                skipped: skipped.collect(),
                objects: self.objects.into_iter().collect(),
                events: self.missing_events.into_iter().collect(),
                advice: self.advice.into_iter().collect(),
            },
            clock: general.clock,
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
    fn merge(&mut self, mut other: General) {
        self.clock = slower(self.clock.take(), other.clock);
        let longest = self.job.elapsed_s.max(other.job.elapsed_s);
        if other.lowest_rank < self.lowest_rank {
            self.lowest_rank = other.lowest_rank;
            self.job = other.job;
            self.mpi = other.mpi;
            self.cvars = other.cvars;
        }
        self.job.elapsed_s = longest;
        self.latest_start = std::mem::take(&mut self.latest_start).max(other.latest_start);
        self.size = self.size.max(other.size);
        self.files.append(&mut other.files);
        self.hosts.append(&mut other.hosts);
        self.ended_badly.append(&mut other.ended_badly);
        self.exported = self.exported.max(other.exported);
        self.sampled = self.sampled.max(other.sampled);
    }
}

fn merge_option(own: &mut Option<Statistics>, other: Option<Statistics>) {
    match (own, other) {
        (Some(own), Some(other)) => own.merge(&other),
        (own @ None, other) => *own = other,
        (Some(_), None) => {}
    }
}

/// The clock that takes longer to read; of two that are equal the one whose name comes first or that
/// is called slow, so that the order of the ranks does not matter.
fn slower(one: Option<Clock>, other: Option<Clock>) -> Option<Clock> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    let order = other.read_s.total_cmp(&one.read_s).then_with(|| one.source.cmp(&other.source));
    let order = order.then(other.slow.cmp(&one.slow));
    Some(if order.is_gt() { other } else { one }.clone())
}
