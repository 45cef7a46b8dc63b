//! From rank profiles to a summary. Profiles are added one at a time, and two reductions of different profiles
//! can be merged, so any number of profiles can be reduced in parallel with memory for the variables of only
//! one. A reduction is also what ranks send each other (`Serialize`). `in_order` reduces profiles in the order
//! of their ranks and rounds sums of doubles as the tree inside MPI does.

mod absence;
mod files;
mod hosts;
mod ideal;
mod in_order;
mod json;
mod locks;
mod machine;
mod messages;
mod openmp;
mod pairs;
mod path;
mod phases;
mod places;
mod pvars;
mod sites;
mod sorted;
mod starts;
#[cfg(test)]
mod tests;
mod traffic;
mod waiting;
mod watch;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::call::{CallReduction, InMpiReduction};
use crate::cost::OverheadReduction;
use crate::data::derive;
use crate::machine::ResourcesReduction;
use crate::merge::{Absent, Merge, MergeFields, Takes};
use crate::{
    BadEnding, Call, CallSummary, Clock, Coverage, CoverageSummary, CvarSetting, End, Ending,
    InMpi, Job, Knob, LeftOut, Mpi, Number, ObjectsLeftOut, ObjectsLeftOutSummary,
    ObjectsMadeSummary, RankProfile, Ranks, SUMMARY_SCHEMA, Skipped, SkippedSummary, Statistic,
    Statistics, Summary, Tool, Warning, collected,
};
use absence::{Row, Rows};
use files::Files;
use hosts::{HostReduction, Hosts};
use ideal::{RunsOfRanks, WaitsOfRanks};
pub use in_order::ReductionInOrder;
use machine::{Machines, placements};
use messages::{Events, MessagesReduction, Sources};
use openmp::OpenMpRanks;
use pairs::Pairs;
use phases::PhaseRow;
use pvars::Pvars;
use sites::SitesReduction;
use traffic::TrafficReduction;
pub use waiting::ClockOffsets;
use waiting::Waits;
use watch::Watches;

/// The profiles seen so far, by job.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Reduction {
    jobs: BTreeMap<String, JobReduction>,
    left_out: BTreeSet<LeftOut>,
}

#[derive(MergeFields!, Clone, Debug, Default, Deserialize, Serialize)]
struct JobReduction {
    general: General,
    hosts: Hosts,
    /// How many ranks run on each library.
    libraries: BTreeMap<Mpi, u64>,
    elapsed_s: Statistics,
    run_s: Statistics,
    /// Only of ranks whose time in MPI is known as a part of the run.
    useful_s: Option<Statistics>,
    runs: RunsOfRanks,
    in_mpi: Option<InMpiReduction>,
    peers: TrafficReduction,
    pvars: Pvars,
    calls: Rows<CallReduction>,
    phases: Rows<PhaseRow>,
    watches: Watches,
    machines: Machines,
    resources: Option<ResourcesReduction>,
    sites: SitesReduction,
    openmp: OpenMpRanks,
    waiting: Waits,
    pairs: Pairs,
    messages: Sources,
    events: Events,
    skipped: BTreeMap<Skipped, u64>,
    /// By reason and kind.
    objects: BTreeMap<(String, String), Statistics>,
    /// By kind, and whether made, freed or left.
    objects_made: BTreeMap<(String, Lot), Statistics>,
    missing_events: BTreeSet<String>,
    advice: BTreeSet<String>,
    overhead: OverheadReduction,
    warnings: BTreeMap<String, u64>,
}

/// Data that is not in rows and may differ on every rank.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct General {
    /// The rank that `job`, `mpi` and `cvars` come from; `job.elapsed_s` is the longest of all.
    lowest_rank: u32,
    job: Job,
    mpi: Mpi,
    #[serde(with = "json")]
    cvars: Vec<CvarSetting>,
    knobs: Vec<Knob>,
    size: u32,
    files: Files,
    ended_badly: BTreeMap<u32, BadEnding>,
    exported: usize,
    sampled: usize,
    clock: Option<Clock>,
}

impl Reduction {
    /// Adds the profile that `file` held.
    #[inline]
    pub fn add(&mut self, file: &str, profile: &RankProfile) {
        self.merge_job(profile.job.id.clone(), JobReduction::of(file, profile));
    }

    /// Records that `file` could not be used.
    pub fn leave_out(&mut self, file: &str, reason: &str) {
        self.left_out.insert(LeftOut { file: file.into(), reason: reason.into() });
    }

    /// Merges another reduction into this one.
    #[inline]
    pub fn merge(&mut self, other: Reduction) {
        self.left_out.extend(other.left_out);
        for (id, job) in other.jobs {
            self.merge_job(id, job);
        }
    }

    #[inline]
    fn merge_job(&mut self, id: String, other: JobReduction) {
        match self.jobs.get_mut(&id) {
            Some(job) => job.merge_others(&other, &mut self.left_out),
            None => {
                self.jobs.insert(id, other);
            }
        }
    }

    /// Files that could not be used, so far.
    pub fn left_out(&self) -> impl Iterator<Item = &LeftOut> {
        self.left_out.iter()
    }

    /// The summary of the job that began last; profiles of other jobs are left out. None when no profile was
    /// added.
    #[inline]
    pub fn finish(mut self) -> Option<Summary> {
        let newest = self.jobs.iter().max_by(|(_, one), (_, other)| one.began(other))?;
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

/// What became of objects.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
enum Lot {
    Made,
    Freed,
    Left,
}

impl JobReduction {
    #[inline]
    fn of(file: &str, profile: &RankProfile) -> JobReduction {
        let mut reduction = JobReduction::default();
        reduction.set(file, profile);
        reduction
    }

    /// Makes this the reduction of one profile, reusing its memory.
    #[inline]
    fn set(&mut self, file: &str, profile: &RankProfile) {
        let RankProfile {
            schema: _,
            tool: _,
            job,
            rank,
            size: _,
            host,
            pid: _,
            mpi,
            end: _,
            cvars: _,
            knobs: _,
            objects_made,
            pvars,
            calls,
            in_mpi,
            peers: _,
            phases,
            series: _,
            watch,
            machine: _,
            host_counters: _,
            resources,
            sites,
            openmp,
            waiting,
            message_times,
            messages,
            events,
            coverage,
            clock,
            warnings,
            overhead,
        } = profile;
        let rank = *rank;
        self.general.set(file, profile);
        self.hosts.retain(|name, _| name == host);
        match self.hosts.get_mut(host) {
            Some(known) => *known = HostReduction::of(profile),
            None => {
                self.hosts.insert(host.clone(), HostReduction::of(profile));
            }
        }
        set_counts(&mut self.libraries, std::slice::from_ref(mpi));
        let known_s = job.known_s();
        self.elapsed_s.set(&known_s, rank);
        let run_s = (known_s - overhead.start_s()).max(0.0);
        self.run_s.set(&run_s, rank);
        let wall_s = in_mpi.as_ref().and_then(InMpi::wall);
        let useful_s = wall_s.map(|wall_s| (run_s - wall_s).max(0.0));
        self.useful_s.set(&useful_s, rank);
        self.runs.set(run_s, useful_s, rank);
        self.in_mpi.set(in_mpi, rank);
        self.peers = TrafficReduction::of(profile);
        self.pvars.clear();
        for pvar in pvars {
            pvar.readings(&mut |reading| {
                if pvar.is_summarized(reading.measure) {
                    self.pvars.add(pvar, reading, rank);
                }
            });
            self.pvars.add_samples(pvar, pvar.samples.as_ref(), rank);
        }
        set_calls(&mut self.calls, calls, rank);
        let has_threads = in_mpi.as_ref().is_some_and(|in_mpi| in_mpi.threads > 1);
        let start_s = (!has_threads).then_some(overhead.start_s());
        PhaseRow::of_rank(&mut self.phases, phases, pvars, start_s, rank);
        self.watches = watch.as_ref().map(|watch| Watches::of(watch, rank)).unwrap_or_default();
        self.machines.set(profile);
        self.resources.set(resources, rank);
        self.sites.set(sites.as_ref(), rank);
        self.openmp.set(openmp.as_ref(), rank);
        self.waiting.set(waiting, rank);
        self.pairs.set(message_times.as_ref(), rank);
        self.messages = MessagesReduction::of_rank(messages, rank);
        self.events = Events::of(events, rank);
        let Coverage { exported: _, sampled: _, skipped, objects, events, advice } = coverage;
        set_counts(&mut self.skipped, skipped);
        let number = |of: &ObjectsLeftOut| Statistics::of(Number::Integer(of.number.into()), rank);
        let key = |of: &ObjectsLeftOut| (of.reason.clone(), of.what.clone());
        self.objects = collected(objects.iter().map(|of| (key(of), number(of))));
        let lots = objects_made.iter().flat_map(|of| {
            let [made, freed] = [of.made, of.freed].map(i128::from);
            let lots = [(Lot::Made, made), (Lot::Freed, freed), (Lot::Left, made - freed)];
            lots.map(|(lot, number)| {
                let number = Statistics::of(Number::Integer(number), rank);
                ((of.kind.clone(), lot), number)
            })
        });
        self.objects_made = collected(lots);
        set_all(&mut self.missing_events, events);
        set_all(&mut self.advice, advice);
        self.overhead.set(overhead, rank);
        if clock.is_none() {
            self.overhead.forget_running();
        }
        set_counts(&mut self.warnings, warnings);
    }

    /// Merges other ranks of the job, unless one of them is already here: a second profile of a rank cannot be
    /// told from the first.
    #[inline]
    fn merge_others(&mut self, other: &JobReduction, left_out: &mut BTreeSet<LeftOut>) {
        if let Some(rank) = self.general.files.ranks().common(other.general.files.ranks()) {
            let reason = format!("is a second profile of rank {rank}");
            left_out.insert(LeftOut { file: other.general.files.name(rank), reason });
            return;
        }
        self.absorb(other);
    }

    /// Which of two jobs began first. The clocks of two hosts may differ by more than the jobs do, so the
    /// starts on a common host count if there is one, otherwise those of the lowest ranks.
    fn began(&self, other: &JobReduction) -> Ordering {
        let on_both =
            self.hosts.iter().find_map(|(name, host)| Some((host, other.hosts.get(name)?)));
        match on_both {
            Some((own, others)) => own.started.said.cmp(&others.started.said),
            None => self.general.job.started.cmp(&other.general.job.started),
        }
    }

    #[inline]
    fn finish(mut self, left_out: BTreeSet<LeftOut>) -> Option<Summary> {
        let files = &self.general.files;
        let (size, reduced) = (self.general.size, files.ranks().len());
        let others = reduced - self.libraries.remove(&self.general.mpi).unwrap_or(reduced);
        warn_of_others(&mut self.warnings, others);
        let ranks = ranks_of(size, files, self.general.ended_badly, left_out)?;
        let (pvars, samples) = self.pvars.finish();
        let calls = calls_finished(self.calls, reduced);
        let machines = self.machines.finish();
        let peers = self.peers.finish(&self.hosts);
        let placements = placements(&self.hosts, &machines);
        let host_counters = hosts::counters(&self.hosts);
        let by_host = hosts::finish(self.hosts);
        let in_mpi = self.in_mpi.and_then(|in_mpi| in_mpi.finish(Absent::default()));
        let mut waited = WaitsOfRanks::default();
        let message_waiting = self.pairs.finish(&self.waiting.clocks(), size, &mut waited);
        let waiting = self.waiting.finish(&calls, &mut waited);
        let (ideal_s, ideal_error_s) = self.runs.finish(&waited, reduced).unzip();
        let run_s = self.run_s.finish();
        let longest_s = run_s.as_ref().map(|run| run.max.as_f64());
        let critical_path = longest_s.and_then(|longest_s| waited.path.finish(longest_s));
        Some(Summary {
            schema: SUMMARY_SCHEMA.into(),
            tool: Tool::gyan(),
            job: self.general.job,
            mpi: self.general.mpi,
            efficiencies: None,
            findings: Vec::new(),
            cvars: self.general.cvars,
            knobs: self.general.knobs,
            objects_made: made(&self.objects_made),
            hosts: by_host.iter().map(|host| host.host.clone()).collect(),
            ranks,
            reduced_in_mpi: None,
            elapsed_s: self.elapsed_s.finish(),
            run_s,
            useful_s: known_by_all(self.useful_s, reduced),
            ideal_s,
            ideal_error_s,
            host_differences: crate::hosts::differences(&by_host, in_mpi.as_ref()),
            by_host: if by_host.len() > 1 { by_host } else { Vec::new() },
            in_mpi,
            peers,
            pvars,
            message_waiting,
            critical_path,
            waiting,
            calls,
            samples,
            phases: PhaseRow::finish(self.phases, reduced),
            watches: self.watches.finish(),
            machines,
            placements,
            host_counters,
            resources: self.resources.and_then(|resources| resources.finish(Absent::default())),
            sites: self.sites.finish(),
            openmp: self.openmp.finish(),
            messages: self.messages.into_iter().map(|(source, one)| one.finish(source)).collect(),
            events: self.events.finish(),
            coverage: CoverageSummary {
                exported: self.general.exported,
                sampled: self.general.sampled,
                skipped: self.skipped.into_iter().map(not_read).collect(),
                objects: self.objects.into_iter().filter_map(not_followed).collect(),
                events: self.missing_events.into_iter().collect(),
                advice: self.advice.into_iter().collect(),
            },
            clock: self.general.clock,
            overhead: self.overhead.finish(Absent::default())?,
            warnings: self
                .warnings
                .into_iter()
                .map(|(text, ranks)| Warning { text, ranks })
                .collect(),
        })
    }
}

/// What each of `ranks` knows; none where one does not.
fn known_by_all(numbers: Option<Statistics>, ranks: u64) -> Option<Statistic> {
    numbers?.finish().filter(|of| of.ranks == ranks)
}

impl Row for CallReduction {}

fn set_calls(rows: &mut Rows<CallReduction>, calls: &[Call], rank: u32) {
    let compare = |name: &String, call: &&Call| name.cmp(&call.name);
    rows.set(rank, calls, compare, |call| call.name.clone(), |row, call| row.set(call, rank));
}

#[inline]
fn calls_finished(rows: Rows<CallReduction>, reduced: u64) -> Vec<CallSummary> {
    rows.finish(reduced).filter_map(|(name, row, absent)| row.finish(name, absent)).collect()
}

fn warn_of_others(warnings: &mut BTreeMap<String, u64>, others: u64) {
    if others > 0 {
        let text = "the ranks do not all run on the same MPI library".to_owned();
        *warnings.entry(text).or_default() += others;
    }
}

fn made(objects: &BTreeMap<(String, Lot), Statistics>) -> Vec<ObjectsMadeSummary> {
    let kinds = objects.keys().filter(|(_, lot)| *lot == Lot::Made).map(|(kind, _)| kind);
    let of = |kind: &String| {
        let number = |lot| objects.get(&(kind.clone(), lot))?.finish();
        let [made, freed, left] = [Lot::Made, Lot::Freed, Lot::Left].map(number);
        Some(ObjectsMadeSummary { kind: kind.clone(), made: made?, freed: freed?, left: left? })
    };
    kinds.filter_map(of).collect()
}

fn ranks_of(
    expected: u32,
    files: &Files,
    ended_badly: BTreeMap<u32, BadEnding>,
    left_out: BTreeSet<LeftOut>,
) -> Option<Ranks> {
    Some(Ranks {
        expected,
        reduced: u32::try_from(files.ranks().len()).ok()?,
        missing: (0..expected).filter(|rank| !files.ranks().contains(*rank)).collect(),
        ended_badly: ended_badly.into_values().collect(),
        left_out: left_out.into_iter().collect(),
    })
}

fn not_read((skipped, ranks): (Skipped, u64)) -> SkippedSummary {
    let Skipped { index, name, reason } = skipped;
    SkippedSummary { index, name, reason, ranks }
}

fn not_followed(
    ((reason, what), number): ((String, String), Statistics),
) -> Option<ObjectsLeftOutSummary> {
    Some(ObjectsLeftOutSummary { what, number: number.finish()?, reason })
}

impl General {
    /// Makes this what one profile says, reusing its memory.
    #[inline]
    fn set(&mut self, file: &str, profile: &RankProfile) {
        self.lowest_rank = profile.rank;
        self.job.clone_from(&profile.job);
        if self.mpi != profile.mpi {
            self.mpi.clone_from(&profile.mpi);
        }
        self.cvars.clone_from(&profile.cvars);
        self.knobs.clone_from(&profile.knobs);
        self.size = profile.size;
        self.files.set(profile.rank, file);
        self.ended_badly.clear();
        if profile.end.how != Ending::Finalize {
            let (rank, &End { how, code }) = (profile.rank, &profile.end);
            let job = &profile.job;
            let ended_s = job.known_until_s.is_some().then_some(job.elapsed_s);
            let ending = BadEnding { rank, how, code, elapsed_s: job.known_s(), ended_s };
            self.ended_badly.insert(rank, ending);
        }
        self.exported = profile.coverage.exported;
        self.sampled = profile.coverage.sampled;
        if self.clock != profile.clock {
            self.clock.clone_from(&profile.clock);
        }
    }
}

impl Merge for General {
    #[inline]
    fn absorb(&mut self, other: &General) {
        keep_slower(&mut self.clock, other.clock.as_ref());
        let mut longest = self.job.clone();
        longest.lasts_as_long_as(&other.job);
        let Job { elapsed_s, known_until_s, .. } = longest;
        if other.lowest_rank < self.lowest_rank {
            self.lowest_rank = other.lowest_rank;
            self.job.clone_from(&other.job);
            self.mpi.clone_from(&other.mpi);
            self.cvars.clone_from(&other.cvars);
            self.knobs.clone_from(&other.knobs);
        }
        (self.job.elapsed_s, self.job.known_until_s) = (elapsed_s, known_until_s);
        self.size = self.size.max(other.size);
        self.files.absorb(&other.files);
        self.ended_badly.extend(other.ended_badly.iter().map(|(rank, end)| (*rank, end.clone())));
        self.exported = self.exported.max(other.exported);
        self.sampled = self.sampled.max(other.sampled);
    }
}

/// Makes `set` hold exactly these; usually it already does.
fn set_all(set: &mut BTreeSet<String>, list: &[String]) {
    if !set.iter().eq(list) {
        *set = collected(list.iter().cloned());
    }
}

/// Makes `counts` those of a single rank that has these.
fn set_counts<K: Clone + Ord>(counts: &mut BTreeMap<K, u64>, list: &[K]) {
    if counts.keys().eq(list) {
        for ranks in counts.values_mut() {
            *ranks = 1;
        }
    } else {
        *counts = collected(list.iter().map(|one| (one.clone(), 1)));
    }
}

/// The clock that takes longer to read; of two equal ones, the one whose name comes first or that is marked as
/// slow, so that the order of the ranks does not matter.
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
