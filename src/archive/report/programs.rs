//! Which programs take longer from a day on? Jobs of the same user with the same number of ranks are compared with each other, since
//! inputs differ by user.
//!
//! When is found by [`change_points`] of weeks or days, which knows that neighbouring ones are alike. Whether is a rank test of the
//! jobs before and since (van Elteren 1960), whose p is for all days together.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use gyan_results::SlowerProgram;
use rayon::prelude::*;

use crate::archive::days::name_of_day;
use crate::archive::report::changes::within;
use crate::archive::report::jobs::{JobFacts, Jobs};
use crate::archive::report::{FALSE_SHARE, LEAST_CHANGE, score_variance};
use crate::comparison::change_points::{Unchanged, VALUES_AT_LEAST, change_points};
use crate::statistics::{ALPHA, benjamini_hochberg, upper_tail};

/// Jobs of a user with a number of ranks that say something about a program.
const OF_STRATUM_AT_LEAST: usize = 4;
/// Jobs on each side of a change.
const JOBS_AT_LEAST: f64 = 20.0;
/// A bucket with fewer jobs than this is too uncertain.
const OF_BUCKET_AT_LEAST: usize = 3;
/// Up to so many days are looked at one by one, more by the week.
const DAYS_AT_MOST: i32 = 60;
const WEEK: i32 = 7;

/// A job: its day, and the logarithm of its seconds.
type Took = (i32, f64);

/// The jobs of a program on a cluster.
struct OfProgram<'a> {
    jobs: Vec<&'a JobFacts>,
    /// Of each user and number of ranks, in the order of their days.
    strata: Vec<Vec<Took>>,
}

/// How many programs were judged, and those that became slower.
pub(super) fn slower(jobs: &Jobs) -> (usize, Vec<SlowerProgram>) {
    let programs = by_program(jobs);
    let found: Vec<Option<Vec<SlowerProgram>>> =
        programs.par_iter().map(|program| changes_of(jobs, program)).collect();
    let judged = found.iter().flatten().count();
    // A program in which nothing is found counts as one test.
    let mut all: Vec<Option<SlowerProgram>> = Vec::new();
    for of_program in found.into_iter().flatten() {
        let is_empty = of_program.is_empty();
        all.extend(of_program.into_iter().map(Some));
        all.extend(is_empty.then_some(None));
    }
    let p: Vec<f64> = all.iter().map(|of| of.as_ref().map_or(1.0, |of| of.p)).collect();
    let corrected = all.into_iter().zip(benjamini_hochberg(&p));
    let corrected = corrected.filter_map(|(of, p)| Some(SlowerProgram { p, ..of? }));
    let is_worth_it = |of: &SlowerProgram| {
        of.p < FALSE_SHARE && of.ratio - 1.0 >= LEAST_CHANGE.max(3.0 * of.error)
    };
    let mut slower: Vec<SlowerProgram> = corrected.filter(is_worth_it).collect();
    slower.sort_by(|one, other| other.more_core_h.total_cmp(&one.more_core_h));
    (judged, slower)
}

fn by_program(jobs: &Jobs) -> Vec<OfProgram<'_>> {
    let mut programs: BTreeMap<[u32; 2], Vec<&JobFacts>> = BTreeMap::new();
    let is_comparable = |job: &&JobFacts| job.ended_well && job.elapsed_s > 0.0;
    for job in jobs.facts.iter().filter(is_comparable) {
        programs.entry([job.cluster, job.program]).or_default().push(job);
    }
    programs.into_values().map(of_program).collect()
}

fn of_program(jobs: Vec<&JobFacts>) -> OfProgram<'_> {
    let mut strata: HashMap<(u32, u64), Vec<Took>> = HashMap::new();
    for job in &jobs {
        let stratum = strata.entry((job.user, job.ranks.to_bits())).or_default();
        stratum.push((job.day, libm::log(job.elapsed_s)));
    }
    // In the order of their first job, so that sums are the same each time.
    let mut strata: Vec<Vec<Took>> = strata.into_values().collect();
    strata.sort_by(|one, other| one[0].0.cmp(&other[0].0).then(one[0].1.total_cmp(&other[0].1)));
    OfProgram { jobs, strata }
}

/// When a program became slower; none when it has too few jobs to tell.
fn changes_of(jobs: &Jobs, of: &OfProgram) -> Option<Vec<SlowerProgram>> {
    let (first, last) = (of.jobs.first()?.day, of.jobs.last()?.day);
    let whole = first..last + 1;
    let buckets = buckets(of, &whole);
    if buckets.len() < VALUES_AT_LEAST {
        return None;
    }
    let scores = scores(&of.strata, &whole);
    // Most programs do not change: no more is done for these.
    if clearest_split(&scores, &whole).is_none_or(|split| split.p >= ALPHA) {
        return Some(Vec::new());
    }
    let values: Vec<f64> = buckets.iter().map(|(_, value)| *value).collect();
    let points = change_points(&values, ALPHA, &mut Unchanged::default());
    let day = |bucket: usize| buckets.get(bucket).map_or(last + 1, |(days, _)| days.start);
    let mut found = Vec::new();
    for (at, point) in points.iter().enumerate().filter(|(_, point)| point.ratio > 1.0) {
        let begin = at.checked_sub(1).map_or(first, |before| day(points[before].index));
        let end = points.get(at + 1).map_or(last + 1, |next| day(next.index));
        // The change may be within the bucket before the first one that is wholly after it.
        let possible = day(point.within.start().saturating_sub(1))..day(point.within.end() + 1);
        found.extend(change(jobs, of, begin..end, &possible));
    }
    Some(found)
}

/// Days or weeks that have enough jobs, with how long jobs took on them: as a multiple of the mean of their user and size.
fn buckets(of: &OfProgram, days: &Range<i32>) -> Vec<(Range<i32>, f64)> {
    let length = if days.end - days.start > DAYS_AT_MOST { WEEK } else { 1 };
    let mut buckets: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
    for stratum in of.strata.iter().filter(|stratum| stratum.len() >= OF_STRATUM_AT_LEAST) {
        let mean = stratum.iter().map(|(_, log)| log).sum::<f64>() / stratum.len() as f64;
        for (day, log) in stratum {
            buckets.entry((day - days.start) / length).or_default().push(log - mean);
        }
    }
    let enough = buckets.into_iter().filter(|(_, logs)| logs.len() >= OF_BUCKET_AT_LEAST);
    let bucket = |(at, logs): (i32, Vec<f64>)| {
        let begin = days.start + at * length;
        (begin..begin + length, libm::exp(logs.iter().sum::<f64>() / logs.len() as f64))
    };
    enough.map(bucket).collect()
}

/// The sum of the scores of the jobs of a day, and its variance. A score is the place of a job among those of its user and size:
/// from -0.5 for the shortest to 0.5 for the longest.
#[derive(Clone, Copy, Debug, Default)]
struct DayScore {
    score: f64,
    variance: f64,
}

fn scores(strata: &[Vec<Took>], days: &Range<i32>) -> BTreeMap<i32, DayScore> {
    let mut scores: BTreeMap<i32, DayScore> = BTreeMap::new();
    for stratum in strata {
        let mut took: Vec<Took> =
            stratum.iter().filter(|(day, _)| days.contains(day)).copied().collect();
        if took.len() < OF_STRATUM_AT_LEAST {
            continue;
        }
        took.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let number = took.len() as f64;
        let variance = score_variance(number);
        let mut at = 0.0;
        for equal in took.chunk_by(|(_, one), (_, other)| one.total_cmp(other).is_eq()) {
            let middle = at + equal.len() as f64 / 2.0;
            at += equal.len() as f64;
            for (day, _) in equal {
                let of_day = scores.entry(*day).or_default();
                of_day.score += middle / number - 0.5;
                of_day.variance += variance;
            }
        }
    }
    scores
}

/// A day that parts jobs.
#[derive(Clone, Copy, Debug)]
struct DaySplit {
    day: i32,
    /// How many standard deviations the jobs since then are longer than those before.
    z: f64,
    /// The probability of a split as clear as that on any of the days, in either direction, where nothing changed.
    p: f64,
}

/// The day of `possible` that parts the jobs best.
fn clearest_split(scores: &BTreeMap<i32, DayScore>, possible: &Range<i32>) -> Option<DaySplit> {
    let total: DayScore = scores.values().fold(DayScore::default(), |sum, of| DayScore {
        score: sum.score + of.score,
        variance: sum.variance + of.variance,
    });
    let least = JOBS_AT_LEAST / 12.0;
    let (mut before, mut best, mut days): (DayScore, Option<DaySplit>, u32) =
        (DayScore::default(), None, 0);
    for (day, of) in scores {
        let after = total.variance - before.variance;
        if possible.contains(day) && before.variance >= least && after >= least {
            days += 1;
            // The scores of a stratum add up to 0: those since a day are those of a random part of it.
            let deviation = (before.variance * after / total.variance).sqrt();
            let z = (total.score - before.score) / deviation;
            if best.is_none_or(|best| z.abs() > best.z.abs()) {
                best = Some(DaySplit { day: *day, z, p: 1.0 });
            }
        }
        before.score += of.score;
        before.variance += of.variance;
    }
    let p = |z: f64| (2.0 * upper_tail(z.abs()) * f64::from(days)).min(1.0);
    best.map(|best| DaySplit { p: p(best.z), ..best })
}

/// A change for the worse among the jobs of `days`, on a day of `possible`.
fn change(
    jobs: &Jobs,
    of: &OfProgram,
    days: Range<i32>,
    possible: &Range<i32>,
) -> Option<SlowerProgram> {
    let scores = scores(&of.strata, &days);
    let split = clearest_split(&scores, possible)?;
    // The day was looked for in all of them.
    let p = (2.0 * upper_tail(split.z) * scores.len() as f64).min(1.0);
    let cause = within(jobs, &of.jobs).into_iter().find(|(day, _)| possible.contains(day));
    let since = cause.as_ref().map_or(split.day, |(day, _)| *day);
    let [ratio, error] = effect(&of.strata, &days, since)?;
    let is_since = |job: &&&JobFacts| (since..days.end).contains(&job.day);
    let compared = [days.start..since, since..days.end]
        .map(|days| of.jobs.iter().filter(|job| days.contains(&job.day)).count() as u64);
    let core_h: f64 = of.jobs.iter().filter(is_since).map(|job| job.core_h).sum();
    let job = of.jobs.first()?;
    Some(SlowerProgram {
        program: jobs.names.name(job.program).to_owned(),
        cluster: jobs.names.name(job.cluster).to_owned(),
        since: name_of_day(since),
        ratio,
        error,
        p,
        jobs: compared,
        more_core_h: core_h * (1.0 - 1.0 / ratio),
        cause: cause.map(|(_, change)| change),
    })
}

/// How long jobs of `days` take from `since` on as a multiple of before, and its standard error: the mean over users and sizes,
/// weighted by how much each says.
fn effect(strata: &[Vec<Took>], days: &Range<i32>, since: i32) -> Option<[f64; 2]> {
    let (mut weights, mut weighted, mut squares, mut freedom) = (0.0, 0.0, 0.0, 0.0);
    for stratum in strata {
        let of = |days: Range<i32>| -> Vec<f64> {
            stratum.iter().filter(|(day, _)| days.contains(day)).map(|(_, log)| *log).collect()
        };
        let (before, after) = (of(days.start..since), of(since..days.end));
        if before.is_empty() || after.is_empty() {
            continue;
        }
        let numbers = [before.len() as f64, after.len() as f64];
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let means = [mean(&before), mean(&after)];
        let square = |of: &[f64], mean: f64| of.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        squares += square(&before, means[0]) + square(&after, means[1]);
        freedom += numbers[0] + numbers[1] - 2.0;
        let weight = numbers[0] * numbers[1] / (numbers[0] + numbers[1]);
        weights += weight;
        weighted += weight * (means[1] - means[0]);
    }
    if weights <= 0.0 || freedom < 1.0 {
        return None;
    }
    let ratio = libm::exp(weighted / weights);
    Some([ratio, ratio * (squares / freedom / weights).sqrt()])
}

#[cfg(test)]
mod tests {
    use gyan_results::ArchiveChangeKind;

    use super::*;

    /// Three programs over 120 days, whose times differ by user and have a long tail. MPI changes on day 70, when `upgraded` becomes
    /// slower; `alone` does on day 40.
    fn made_up(by: f64) -> Jobs {
        let mut dice = fastrand::Rng::with_seed(3);
        let mut jobs = Jobs::default();
        let programs = ["same", "upgraded", "alone"].map(|name| jobs.names.code(name));
        let libraries = ["Open MPI 4.1.5", "Open MPI 5.0.3"].map(|name| jobs.names.code(name));
        let cluster = jobs.names.code("big");
        for day in 0..120 {
            for (at, program) in programs.into_iter().enumerate() {
                for user in 0..6 {
                    let is_slow = at == 1 && day >= 70 || at == 2 && day >= 40;
                    let scatter = 0.3 * (dice.f64() + dice.f64() + dice.f64() - 1.5);
                    let input = 100.0 * f64::from(1 + user);
                    let elapsed_s = input * libm::exp(scatter) * if is_slow { by } else { 1.0 };
                    jobs.facts.push(JobFacts {
                        id: 0,
                        day,
                        cluster,
                        program,
                        user,
                        mpi: libraries[usize::from(day >= 70)],
                        system: cluster,
                        finding: cluster,
                        ranks: 64.0,
                        ended_well: true,
                        elapsed_s,
                        core_h: 10.0,
                        own_core_h: 5.0,
                        mpi_core_h: 5.0,
                        waiting_core_h: 1.0,
                        lost_core_h: 1.0,
                    });
                }
            }
        }
        jobs
    }

    #[test]
    fn programs_are_slower_since_their_day_and_with_what_changed_then() {
        let (judged, slower) = slower(&made_up(1.1));
        assert_eq!(judged, 3);
        let named: Vec<(&str, Option<ArchiveChangeKind>)> = slower
            .iter()
            .map(|of| (of.program.as_str(), of.cause.as_ref().map(|cause| cause.kind)))
            .collect();
        assert_eq!(named, [("alone", None), ("upgraded", Some(ArchiveChangeKind::Mpi))]);
        for of in &slower {
            assert!((of.ratio - 1.1).abs() < 3.0 * of.error, "{of:?}");
            assert!(of.error < 0.02, "{of:?}");
        }
        assert_eq!(slower[1].since, "1970-03-12");
        assert!(
            ["1970-02-09", "1970-02-10", "1970-02-11"].contains(&slower[0].since.as_str()),
            "{}",
            slower[0].since
        );
    }

    #[test]
    fn nothing_is_said_where_nothing_changed_or_programs_became_faster() {
        assert_eq!(slower(&made_up(1.0)), (3, Vec::new()));
        assert_eq!(slower(&made_up(0.9)), (3, Vec::new()));
    }
}
