//! What do the jobs of a site have in common? Sums in one pass over a few columns, programs that became slower, and hosts that
//! are late.
//!
//! Every table of the archive is read once, its files beside each other, and only the columns that are needed: no query engine is.
//! What programs and hosts are judged by are ranks, which make no assumption about how their times are distributed.

mod advice;
mod changes;
mod hosts;
mod jobs;
mod programs;

use std::collections::{BTreeMap, HashMap, HashSet};

use gyan_results::{
    ARCHIVE_REPORT_SCHEMA, ArchiveHours, ArchiveProgram, ArchiveReport, ArchiveUser, ArchiveWeek,
    Tool,
};
use wildmatch::WildMatch;

use crate::archive::days::{LAST_DAY, name_of_day};
use crate::archive::scan::NOTHING;
use crate::archive::store::Store;
use crate::error::Error;
use jobs::{JobFacts, Jobs};

/// Of what is named as slow or slower, a part of at most this is by chance.
const FALSE_SHARE: f64 = 0.001;
/// A smaller change is not worth a sentence.
const LEAST_CHANGE: f64 = 0.005;

/// What the square of a score is on average, where each of `number` places from -0.5 to 0.5 is equally likely.
fn score_variance(number: f64) -> f64 {
    (number * number - 1.0) / (12.0 * number * number)
}

/// Which jobs of an archive are asked about.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// The first and the last day, in days since 1970.
    pub(crate) days: [i32; 2],
    /// A pattern of program names with `*` and `?`.
    pub(crate) program: Option<String>,
    pub(crate) cluster: Option<String>,
    /// Whether the hours of each user are asked for.
    pub(crate) users: bool,
}

impl Selection {
    fn is_all(&self) -> bool {
        self.program.is_none() && self.cluster.is_none()
    }
}

/// What the archive tells of these jobs.
pub(crate) fn report(store: &dyn Store, selection: &Selection) -> Result<ArchiveReport, Error> {
    let jobs = Jobs::read(store, selection)?;
    let Some((first, last)) = jobs.days() else {
        let [since, until] = selection.days.map(name_of_day);
        let until =
            if selection.days[1] == LAST_DAY { String::new() } else { format!(" to {until}") };
        let what = format!("has no job since {since}{until} that was asked for");
        return Err(Error::new("the archive", what, "look at other days with --since"));
    };
    let changes = changes::of_clusters(&jobs);
    let (programs_judged, worse) = programs::slower(&jobs);
    let selected: Option<HashSet<u128>> =
        (!selection.is_all()).then(|| jobs.facts.iter().map(|job| job.id).collect());
    let (hosts_judged, hosts) = hosts::slow(store, selection.days, selected.as_ref())?;
    let mut programs = by_program(&jobs);
    let asked = programs.iter().filter_map(|program| program.finding.clone()).collect();
    let advice = advice::of_findings(store, selection.days, &asked)?;
    for program in &mut programs {
        program.advice = program.finding.as_ref().and_then(|of| advice.get(of)).cloned();
    }
    Ok(ArchiveReport {
        schema: ARCHIVE_REPORT_SCHEMA.into(),
        tool: Tool::gyan(),
        since: name_of_day(first),
        until: name_of_day(last),
        totals: sum(&jobs.facts),
        programs,
        weeks: by_week(&jobs),
        changes,
        programs_judged,
        worse,
        hosts_judged,
        hosts,
        users: if selection.users { by_user(&jobs) } else { Vec::new() },
    })
}

fn add(hours: &mut ArchiveHours, job: &JobFacts) {
    let known = |hours: f64| if hours.is_nan() { 0.0 } else { hours };
    hours.jobs += 1;
    hours.core_h += known(job.core_h);
    hours.own_core_h += known(job.own_core_h);
    hours.mpi_core_h += known(job.mpi_core_h);
    hours.waiting_core_h += known(job.waiting_core_h);
    if job.waiting_core_h.is_nan() {
        hours.waiting_unknown_core_h += known(job.mpi_core_h);
    }
    hours.lost_core_h += known(job.lost_core_h);
}

fn sum(jobs: &[JobFacts]) -> ArchiveHours {
    let mut hours = ArchiveHours::default();
    for job in jobs {
        add(&mut hours, job);
    }
    hours
}

fn by<K: Ord>(jobs: &[JobFacts], key: impl Fn(&JobFacts) -> K) -> BTreeMap<K, ArchiveHours> {
    let mut sums: BTreeMap<K, ArchiveHours> = BTreeMap::new();
    for job in jobs {
        add(sums.entry(key(job)).or_default(), job);
    }
    sums
}

fn by_program(jobs: &Jobs) -> Vec<ArchiveProgram> {
    let mut findings: HashMap<u32, BTreeMap<u32, u64>> = HashMap::new();
    for job in jobs.facts.iter().filter(|job| job.finding != NOTHING) {
        *findings.entry(job.program).or_default().entry(job.finding).or_default() += 1;
    }
    let program = |(program, hours): (u32, ArchiveHours)| {
        let most = findings.get(&program).and_then(|of| of.iter().max_by_key(|(_, jobs)| **jobs));
        ArchiveProgram {
            program: jobs.names.name(program).to_owned(),
            hours,
            finding: most.map(|(finding, _)| jobs.names.name(*finding).to_owned()),
            finding_jobs: most.map_or(0, |(_, jobs)| *jobs),
            advice: None,
        }
    };
    let mut programs: Vec<ArchiveProgram> =
        by(&jobs.facts, |job| job.program).into_iter().map(program).collect();
    programs.sort_by(|one, other| {
        let by_lost = other.hours.lost_core_h.total_cmp(&one.hours.lost_core_h);
        by_lost.then_with(|| one.program.cmp(&other.program))
    });
    programs
}

/// The Monday of a day: 1970 began on a Thursday.
fn monday(day: i32) -> i32 {
    day - (day + 3).rem_euclid(7)
}

fn by_week(jobs: &Jobs) -> Vec<ArchiveWeek> {
    let week = |(monday, hours)| ArchiveWeek { monday: name_of_day(monday), hours };
    by(&jobs.facts, |job| monday(job.day)).into_iter().map(week).collect()
}

fn by_user(jobs: &Jobs) -> Vec<ArchiveUser> {
    let user = |(uid, hours)| ArchiveUser { uid, hours };
    let mut users: Vec<ArchiveUser> =
        by(&jobs.facts, |job| job.user).into_iter().map(user).collect();
    users.sort_by(|one, other| other.hours.core_h.total_cmp(&one.hours.core_h));
    users
}

fn matches(pattern: Option<&WildMatch>, name: Option<&str>) -> bool {
    pattern.is_none_or(|pattern| pattern.matches(name.unwrap_or_default()))
}
