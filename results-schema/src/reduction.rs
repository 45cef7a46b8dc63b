//! Rank profiles to a summary. Profiles are taken in one at a time, and what two reductions of
//! different profiles hold can be merged, so that any number of them can be reduced in parallel
//! with memory for the variables of one.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    BadEnding, CallSummary, Class, CoverageSummary, CvarSetting, Datatype, Element, Ending, Job,
    LeftOut, Measure, Mpi, Number, OverheadSummary, Pvar, PvarSummary, RankProfile, Ranks,
    SUMMARY_SCHEMA, Skipped, SkippedSummary, Statistics, Summary, Tool, Values, Warning,
};

/// The profiles seen so far, by job.
#[derive(Debug, Default)]
pub struct Reduction {
    jobs: BTreeMap<String, JobReduction>,
    left_out: BTreeSet<LeftOut>,
}

/// What makes two numbers of two ranks the same thing.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Key {
    name: String,
    class: Class,
    object: Option<String>,
    measure: Measure,
    element: Element,
}

#[derive(Debug)]
struct PvarReduction {
    datatype: Datatype,
    behaves_as: Option<Class>,
    notes: BTreeSet<String>,
    statistics: Statistics,
}

/// A function that only some ranks called was called 0 times by the others, of which the lowest
/// has to be known.
#[derive(Debug, Default)]
struct CallReduction {
    statistics: Statistics,
    bytes: Option<Statistics>,
    lowest_absent: Option<u32>,
}

#[derive(Debug)]
struct JobReduction {
    /// The rank that `job`, `mpi` and `cvars` are from.
    lowest_rank: u32,
    job: Job,
    mpi: Mpi,
    cvars: Vec<CvarSetting>,
    latest_start: String,
    size: u32,
    files: BTreeMap<u32, String>,
    hosts: BTreeSet<String>,
    ended_badly: BTreeMap<u32, BadEnding>,
    pvars: BTreeMap<Key, PvarReduction>,
    calls: BTreeMap<String, CallReduction>,
    exported: usize,
    sampled: usize,
    skipped: BTreeMap<Skipped, u64>,
    objects: BTreeSet<String>,
    advice: BTreeSet<String>,
    overhead: [Statistics; 5],
    warnings: BTreeMap<String, u64>,
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

    /// Files that could not be used, so far.
    pub fn left_out(&self) -> impl Iterator<Item = &LeftOut> {
        self.left_out.iter()
    }

    /// The summary of the job that started last; profiles of other jobs are left out. None when
    /// no profile was taken in.
    #[must_use]
    pub fn finish(mut self) -> Option<Summary> {
        let newest =
            self.jobs.iter().max_by(|(_, a), (_, b)| a.latest_start.cmp(&b.latest_start))?;
        let id = newest.0.clone();
        let newest = self.jobs.remove(&id)?;
        for (other, job) in &self.jobs {
            let reason = format!("belongs to job {other}, not to the latest job {id}");
            for file in job.files.values() {
                self.left_out.insert(LeftOut { file: file.clone(), reason: reason.clone() });
            }
        }
        newest.finish(self.left_out)
    }
}

impl JobReduction {
    fn of(file: &str, profile: RankProfile) -> JobReduction {
        let rank = profile.rank;
        let overhead = &profile.overhead;
        let overhead = [
            overhead.mpit_init_s,
            overhead.init_s,
            overhead.sampling_s,
            overhead.finalize_s,
            overhead.share,
        ]
        .map(|value| Statistics::of(Number::Double(value), rank));
        let mut ended_badly = BTreeMap::new();
        if profile.end.how != Ending::Finalize {
            let ending = BadEnding { rank, how: profile.end.how, code: profile.end.code };
            ended_badly.insert(rank, ending);
        }
        let mut pvars = BTreeMap::new();
        for pvar in profile.pvars {
            add_pvar(&mut pvars, &pvar, rank);
        }
        let calls = profile.calls.into_iter().map(|call| {
            let statistics = Statistics::of(Number::Integer(call.count.into()), rank);
            let bytes = call.bytes.map(|bytes| Statistics::of(Number::Integer(bytes.into()), rank));
            (call.name, CallReduction { statistics, bytes, lowest_absent: None })
        });
        JobReduction {
            lowest_rank: rank,
            latest_start: profile.job.started.clone(),
            job: profile.job,
            mpi: profile.mpi,
            cvars: profile.cvars,
            size: profile.size,
            files: BTreeMap::from([(rank, file.to_owned())]),
            hosts: BTreeSet::from([profile.host]),
            ended_badly,
            pvars,
            calls: calls.collect(),
            exported: profile.coverage.exported,
            sampled: profile.coverage.sampled,
            skipped: profile.coverage.skipped.into_iter().map(|skipped| (skipped, 1)).collect(),
            objects: profile.coverage.objects.into_iter().collect(),
            advice: profile.coverage.advice.into_iter().collect(),
            overhead,
            warnings: profile.warnings.into_iter().map(|text| (text, 1)).collect(),
        }
    }

    fn merge(&mut self, mut other: JobReduction, left_out: &mut BTreeSet<LeftOut>) {
        // A second profile of a rank that is already in cannot be told from the first.
        if let Some((rank, file)) =
            other.files.iter().find(|(rank, _)| self.files.contains_key(rank))
        {
            let reason = format!("is a second profile of rank {rank}");
            left_out.insert(LeftOut { file: file.clone(), reason });
            return;
        }
        for (name, call) in &mut self.calls {
            if !other.calls.contains_key(name) {
                call.absent_on(other.lowest_rank);
            }
        }
        for (name, mut call) in other.calls {
            if let Some(own) = self.calls.get_mut(&name) {
                own.statistics.merge(&call.statistics);
                match (&mut own.bytes, call.bytes) {
                    (Some(own), Some(bytes)) => own.merge(&bytes),
                    (own @ None, bytes) => *own = bytes,
                    (Some(_), None) => {}
                }
                if let Some(rank) = call.lowest_absent {
                    own.absent_on(rank);
                }
            } else {
                call.absent_on(self.lowest_rank);
                self.calls.insert(name, call);
            }
        }
        if other.lowest_rank < self.lowest_rank {
            self.lowest_rank = other.lowest_rank;
            std::mem::swap(&mut self.job, &mut other.job);
            std::mem::swap(&mut self.mpi, &mut other.mpi);
            std::mem::swap(&mut self.cvars, &mut other.cvars);
        }
        self.job.elapsed_s = self.job.elapsed_s.max(other.job.elapsed_s);
        if other.mpi != self.mpi {
            let text = "the ranks do not all run on the same MPI library".to_owned();
            *self.warnings.entry(text).or_default() += other.files.len() as u64;
        }
        self.latest_start = std::mem::take(&mut self.latest_start).max(other.latest_start);
        self.size = self.size.max(other.size);
        self.files.append(&mut other.files);
        self.hosts.append(&mut other.hosts);
        self.ended_badly.append(&mut other.ended_badly);
        for (key, pvar) in other.pvars {
            match self.pvars.get_mut(&key) {
                Some(own) => {
                    own.statistics.merge(&pvar.statistics);
                    own.notes.extend(pvar.notes);
                }
                None => {
                    self.pvars.insert(key, pvar);
                }
            }
        }
        self.exported = self.exported.max(other.exported);
        self.sampled = self.sampled.max(other.sampled);
        for (skipped, ranks) in other.skipped {
            *self.skipped.entry(skipped).or_default() += ranks;
        }
        self.objects.append(&mut other.objects);
        self.advice.append(&mut other.advice);
        for (own, other) in self.overhead.iter_mut().zip(&other.overhead) {
            own.merge(other);
        }
        for (text, ranks) in other.warnings {
            *self.warnings.entry(text).or_default() += ranks;
        }
    }

    fn finish(self, left_out: BTreeSet<LeftOut>) -> Option<Summary> {
        let reduced = self.files.len() as u64;
        let pvars = self.pvars.into_iter().filter_map(|(key, pvar)| {
            Some(PvarSummary {
                name: key.name,
                class: key.class,
                behaves_as: pvar.behaves_as,
                object: key.object,
                element: key.element,
                measure: key.measure,
                datatype: pvar.datatype,
                statistic: pvar.statistics.finish()?,
                notes: pvar.notes.into_iter().collect(),
            })
        });
        let calls = self.calls.into_iter().filter_map(|(name, call)| call.finish(name, reduced));
        let skipped = self.skipped.into_iter().map(|(skipped, ranks)| SkippedSummary {
            index: skipped.index,
            name: skipped.name,
            reason: skipped.reason,
            ranks,
        });
        let [mpit_init_s, init_s, sampling_s, finalize_s, share] = &self.overhead;
        Some(Summary {
            schema: SUMMARY_SCHEMA.into(),
            tool: Tool::gyan(),
            job: self.job,
            mpi: self.mpi,
            cvars: self.cvars,
            hosts: self.hosts.into_iter().collect(),
            ranks: Ranks {
                expected: self.size,
                reduced: u32::try_from(reduced).ok()?,
                missing: (0..self.size).filter(|rank| !self.files.contains_key(rank)).collect(),
                ended_badly: self.ended_badly.into_values().collect(),
                left_out: left_out.into_iter().collect(),
            },
            pvars: pvars.collect(),
            calls: calls.collect(),
            coverage: CoverageSummary {
                exported: self.exported,
                sampled: self.sampled,
                skipped: skipped.collect(),
                objects: self.objects.into_iter().collect(),
                advice: self.advice.into_iter().collect(),
            },
            overhead: OverheadSummary {
                mpit_init_s: mpit_init_s.finish()?,
                init_s: init_s.finish()?,
                sampling_s: sampling_s.finish()?,
                finalize_s: finalize_s.finish()?,
                share: share.finish()?,
            },
            warnings: self
                .warnings
                .into_iter()
                .map(|(text, ranks)| Warning { text, ranks })
                .collect(),
        })
    }
}

impl CallReduction {
    fn absent_on(&mut self, rank: u32) {
        self.lowest_absent = Some(self.lowest_absent.map_or(rank, |lowest| lowest.min(rank)));
    }

    fn finish(self, name: String, reduced: u64) -> Option<CallSummary> {
        let lowest = self.lowest_absent;
        let with_absent = |mut statistics: Statistics| {
            if let Some(lowest) = lowest {
                let absent = reduced.saturating_sub(statistics.ranks());
                statistics.merge(&Statistics::of_zeros(absent, lowest));
            }
            statistics.finish()
        };
        let count = with_absent(self.statistics)?;
        Some(CallSummary { name, count, bytes: self.bytes.and_then(with_absent) })
    }
}

/// One row for each number that a report shows of `pvar`. Text has no minimum: it stays in the
/// rank profile.
fn add_pvar(rows: &mut BTreeMap<Key, PvarReduction>, pvar: &Pvar, rank: u32) {
    for (measure, values) in pvar.measures() {
        let elements: Vec<(Element, Number)> = match values {
            Values::Elements(elements) if pvar.count == 1 => {
                elements.iter().map(|&number| (Element::Scalar, number)).collect()
            }
            Values::Elements(elements) => elements
                .iter()
                .enumerate()
                .map(|(index, &number)| (Element::Index(index), number))
                .collect(),
            Values::Digest(digest) => vec![
                (Element::Sum, digest.sum),
                (Element::Min, digest.min),
                (Element::Max, digest.max),
            ],
            Values::Text(_) => Vec::new(),
        };
        for (element, number) in elements {
            let key = Key {
                name: pvar.name.clone(),
                class: pvar.class,
                object: pvar.object.clone(),
                measure,
                element,
            };
            let row = rows.entry(key).or_insert_with(|| PvarReduction {
                datatype: pvar.datatype,
                behaves_as: pvar.behaves_as,
                notes: pvar.notes.iter().cloned().collect(),
                statistics: Statistics::default(),
            });
            row.statistics.add(number, rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Coverage, End, Overhead, RANK_SCHEMA};

    fn profile(job: &str, rank: u32, size: u32) -> RankProfile {
        RankProfile {
            schema: RANK_SCHEMA.into(),
            tool: Tool::gyan(),
            job: Job {
                id: job.into(),
                command: vec!["./app".into()],
                started: format!("2026-01-31T10:00:0{}Z", job.len()),
                elapsed_s: 1.0 + f64::from(rank),
            },
            rank,
            size,
            host: "n1".into(),
            pid: 100 + rank,
            mpi: Mpi {
                abi: "openmpi".into(),
                standard: "3.1".into(),
                library: "Open MPI v4.1.4".into(),
                library_path: "/usr/lib/libmpi.so.40".into(),
                thread_level: "MPI_THREAD_SINGLE".into(),
            },
            end: End { how: Ending::Finalize, code: 0 },
            cvars: Vec::new(),
            pvars: vec![Pvar {
                name: "messages".into(),
                class: Class::Counter,
                behaves_as: None,
                datatype: Datatype::UnsignedLong,
                bind: None,
                object: None,
                verbosity: "USER_BASIC".into(),
                continuous: true,
                readonly: true,
                atomic: false,
                count: 1,
                start: Some(Values::Elements(vec![Number::Integer(5)])),
                end: Some(Values::Elements(vec![Number::Integer(5 + i128::from(rank))])),
                delta: Some(Values::Elements(vec![Number::Integer(rank.into())])),
                samples: None,
                notes: Vec::new(),
            }],
            in_mpi: None,
            phases: Vec::new(),
            series: None,
            clock: None,
            calls: vec![Call { name: "MPI_Recv".into(), count: 10, ..Call::default() }],
            coverage: Coverage::default(),
            warnings: Vec::new(),
            overhead: Overhead::default(),
        }
    }

    fn reduce(profiles: Vec<RankProfile>) -> Summary {
        let mut reduction = Reduction::default();
        for profile in profiles {
            reduction.add(&format!("rank-{}", profile.rank), profile);
        }
        reduction.finish().unwrap()
    }

    #[test]
    fn a_counter_is_reduced_by_its_difference() {
        let summary = reduce((0..4).map(|rank| profile("a", rank, 4)).collect());
        assert_eq!(summary.pvars.len(), 1);
        let row = &summary.pvars[0];
        assert_eq!((row.measure, row.element), (Measure::Delta, Element::Scalar));
        assert_eq!(row.statistic.min, Number::Integer(0));
        assert_eq!((row.statistic.max, row.statistic.max_rank), (Number::Integer(3), 3));
        assert_eq!(row.statistic.sum, Number::Integer(6));
        assert!(summary.ranks.is_complete());
        assert!((summary.job.elapsed_s - 4.0).abs() < 1e-12);
    }

    #[test]
    fn a_function_that_a_rank_never_called_counts_as_zero_there() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            let profiles = order.map(|rank| {
                let mut profile = profile("a", rank, 4);
                if rank != 2 {
                    profile.calls.push(Call {
                        name: "MPI_Irecv".into(),
                        count: 4,
                        bytes: Some(32),
                        ..Call::default()
                    });
                }
                if rank == 3 {
                    profile.calls.push(Call {
                        name: "MPI_Mrecv".into(),
                        count: 1,
                        ..Call::default()
                    });
                }
                profile
            });
            let summary = reduce(profiles.into());
            let count = |name: &str| {
                summary.calls.iter().find(|call| call.name == name).unwrap().count.clone()
            };
            let irecv = count("MPI_Irecv");
            assert_eq!((irecv.ranks, irecv.min, irecv.min_rank), (4, Number::Integer(0), 2));
            let mrecv = count("MPI_Mrecv");
            assert_eq!((mrecv.ranks, mrecv.min, mrecv.min_rank), (4, Number::Integer(0), 0));
            assert_eq!((mrecv.max, mrecv.max_rank), (Number::Integer(1), 3));
        }
    }

    #[test]
    fn merged_parts_equal_the_whole() {
        let profiles = || (0..7).map(|rank| profile("a", rank, 8));
        let whole = reduce(profiles().collect());
        for cut in 1..6 {
            let mut parts = [Reduction::default(), Reduction::default()];
            for profile in profiles() {
                let part = usize::from(profile.rank >= cut);
                parts[part].add(&format!("rank-{}", profile.rank), profile);
            }
            let [first, mut second] = parts;
            second.merge(first);
            assert_eq!(second.finish().unwrap(), whole);
        }
        assert_eq!(whole.ranks.missing, [7]);
    }

    #[test]
    fn of_two_jobs_the_latest_is_reduced_and_the_other_left_out() {
        let summary = reduce(vec![profile("newer", 0, 1), profile("old", 1, 2)]);
        assert_eq!(summary.job.id, "newer");
        assert_eq!(summary.ranks.left_out.len(), 1);
        assert_eq!(summary.ranks.left_out[0].file, "rank-1");
        assert!(summary.ranks.left_out[0].reason.contains("job old"));
    }

    #[test]
    fn a_second_profile_of_a_rank_is_left_out() {
        let mut reduction = Reduction::default();
        reduction.add("rank-000000.json", profile("a", 0, 1));
        reduction.add("copy.json", profile("a", 0, 1));
        let summary = reduction.finish().unwrap();
        assert_eq!(summary.ranks.reduced, 1);
        assert_eq!(summary.ranks.left_out[0].file, "copy.json");
    }
}
