//! The report of a run: what happened on the ranks.

mod calls;
mod cost;
mod phases;
mod pvars;

use std::collections::BTreeMap;

use gyan_results::{
    BadEnding, CallSummary, CoverageSummary, Ending, InMpiSummary, Job, PhaseSummary, PvarSummary,
    ReducedInMpi, SamplesSummary, Summary,
};

use super::numbers::{cut, plural, ranges, seconds, share};
use super::{Section, View, command, library_line, queues, watch};
use crate::stacks::Watched;
use calls::{Whole, calls};
use cost::cost;
use pvars::{pvars, states};

pub(crate) use phases::{phase_name, phases};

/// Rows of one table that fit on a screen with the rest.
const ROWS_AT_MOST: usize = 8;
/// Names shown of variables that were not read for one reason.
const NAMES_AT_MOST: usize = 3;
/// A command line of more characters loses the directories of its program, and what is then too much at its end.
const COMMAND_AT_MOST: usize = 60;

/// `all`: also what is zero on every rank, and every variable that was not read.
pub(crate) fn report(
    summary: &Summary,
    (watched, remarks): (&[Watched], &[String]),
    all: bool,
) -> View {
    let whole = Whole::run(summary);
    let mut sections = Vec::new();
    // They make numbers doubtful, so they stand before the numbers.
    if !summary.warnings.is_empty() {
        sections.push(warnings(summary));
    }
    sections.extend(numbers(&summary.pvars, &summary.calls, &summary.samples, &whole, all));
    sections.extend(watch::sites(watched, remarks, all));
    sections.push(coverage(&summary.coverage, all));
    sections.push(cost(summary));
    let mut subtitle = subtitle(summary);
    subtitle.extend(named_phases(&summary.phases));
    subtitle.extend(told(summary));
    let mut view = View { title: title(summary), subtitle, sections };
    view.make_printable();
    view
}

/// The tables of variables and calls, of the whole run or of a part of it.
fn numbers(
    rows: &[PvarSummary],
    functions: &[CallSummary],
    samples: &[SamplesSummary],
    whole: &Whole,
    all: bool,
) -> Vec<Section> {
    let variables = (!rows.is_empty()).then(|| pvars(rows, all));
    let mut sections: Vec<Section> = variables.into_iter().chain(states(samples, all)).collect();
    sections.extend(calls(functions, whole, all));
    sections
}

pub(super) fn title(summary: &Summary) -> String {
    let ranks = summary.ranks.expected;
    format!(
        "{}: {ranks} rank{} on {}, {}",
        short_command(&summary.job),
        plural(ranks.into()),
        match summary.hosts.as_slice() {
            [host] => host.clone(),
            hosts => format!("{} hosts", hosts.len()),
        },
        seconds(summary.job.elapsed_s),
    )
}

/// What a command is known by: its arguments say more than the directory of its program.
fn short_command(job: &Job) -> String {
    let whole = command(job);
    let by_path = job.command.first().and_then(|program| program.rfind('/'));
    let directory = by_path.map_or(0, |slash| slash + 1);
    let is_long = whole.chars().count() > COMMAND_AT_MOST;
    cut(if is_long { &whole[directory..] } else { &whole }, COMMAND_AT_MOST)
}

pub(super) fn library_and_job(summary: &Summary) -> String {
    let (job, started) = (&summary.job.id, &summary.job.started);
    format!("{}, job {job}, {started}", library_line(&summary.mpi))
}

fn subtitle(summary: &Summary) -> Vec<String> {
    let mut lines = vec![library_and_job(summary)];
    if !summary.cvars.is_empty() {
        lines.push(format!(
            "{} control variables are set; --environment shows them",
            summary.cvars.len()
        ));
    }
    let ranks = &summary.ranks;
    if !ranks.is_complete() {
        lines.push(format!(
            "INCOMPLETE: {} of {} ranks; the numbers below are of these alone",
            ranks.reduced, ranks.expected
        ));
    }
    lines.extend(summary.reduced_in_mpi.as_ref().map(reduced_in_mpi));
    lines.extend(endings(&ranks.ended_badly));
    lines.extend(summary.in_mpi.as_ref().map(in_mpi));
    lines
}

fn reduced_in_mpi(reduced: &ReducedInMpi) -> String {
    let (wait, profiles) = (seconds(reduced.wait_s), ranges(&reduced.profiles));
    let time = seconds(reduced.time_s - reduced.wait_s);
    format!(
        "reduced by the ranks themselves, in {time} when all were there, after {wait}; \
         whole profiles: rank {profiles}"
    )
}

/// How the ranks ended that did not by `MPI_Finalize`, those of one kind in one line.
fn endings(ended: &[BadEnding]) -> impl Iterator<Item = String> {
    let mut kinds: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut known_until: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for BadEnding { rank, how, code, elapsed_s } in ended {
        let kind = match how {
            Ending::Finalize => continue,
            Ending::Abort => format!("ended by MPI_Abort with code {code}"),
            Ending::Exit => format!("ended without MPI_Finalize, exit code {code}"),
            Ending::Running => "as it was while it ran, no later profile was written".to_owned(),
            Ending::Killed => "killed, or crashed, without MPI_Finalize".to_owned(),
            Ending::Unknown => "no end is known: killed, or still running".to_owned(),
        };
        if matches!(how, Ending::Running | Ending::Killed | Ending::Unknown) {
            let (first, last) = known_until.entry(kind.clone()).or_insert((*elapsed_s, *elapsed_s));
            (*first, *last) = (first.min(*elapsed_s), last.max(*elapsed_s));
        }
        kinds.entry(kind).or_default().push(*rank);
    }
    kinds.into_iter().map(move |(kind, on)| {
        let until = known_until.get(&kind).map(|(first, last)| until(*first, *last));
        format!("{kind}: rank {}{}", ranges(&on), until.unwrap_or_default())
    })
}

/// Until when ranks are known that did not tell their end.
fn until(first: f64, last: f64) -> String {
    let (first, last) = (seconds(first), seconds(last));
    if first == last {
        format!("; known until {last} of the run")
    } else {
        format!("; known until {first} to {last} of the run")
    }
}

fn in_mpi(in_mpi: &InMpiSummary) -> String {
    let average = in_mpi.share.avg;
    // The error of a mean is that of the sum in the same proportion.
    let error = average * in_mpi.time_error_s / in_mpi.time_s.sum.as_f64();
    let error = if error > 0.0 { format!(" ± {}", share(error)) } else { String::new() };
    let [min, max] = [in_mpi.share.min, in_mpi.share.max].map(|part| share(part.as_f64()));
    let extremes = if min == max {
        String::new()
    } else {
        let (min_rank, max_rank) = (in_mpi.share.min_rank, in_mpi.share.max_rank);
        format!(" ({min} on rank {min_rank} to {max} on rank {max_rank})")
    };
    format!("in MPI: {}{error} of the run{extremes}", share(average))
}

fn named_phases(phases: &[PhaseSummary]) -> Option<String> {
    let names: Vec<&str> =
        phases.iter().map(|phase| phase.name.as_str()).filter(|name| !name.is_empty()).collect();
    let number = names.len();
    let list = some_of(&names, false);
    (number > 0)
        .then(|| format!("{number} phase{}: {list}; --phase shows them", plural(number as u64)))
}

/// What there is about messages that is not in this report.
fn told(summary: &Summary) -> Option<String> {
    let sources = summary.messages.iter().map(|messages| queues::source_name(messages.source));
    let mut sources: Vec<&str> = sources.collect();
    if !summary.events.is_empty() && !sources.contains(&queues::EVENTS) {
        sources.push(queues::EVENTS);
    }
    let sources = sources.join(" and ");
    (!sources.is_empty()).then(|| format!("{sources} told of messages; --queues shows the queues"))
}

fn warnings(summary: &Summary) -> Section {
    let expected = summary.ranks.reduced;
    let notes = summary.warnings.iter().map(|warning| {
        if warning.ranks == u64::from(expected) {
            warning.text.clone()
        } else {
            format!("{} ({} of {expected} ranks)", warning.text, warning.ranks)
        }
    });
    Section {
        title: "Warnings".into(),
        columns: Vec::new(),
        rows: Vec::new(),
        notes: notes.collect(),
    }
}

fn coverage(coverage: &CoverageSummary, all: bool) -> Section {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for skipped in &coverage.skipped {
        let name = skipped.name.clone().unwrap_or_else(|| format!("#{}", skipped.index));
        let names = reasons.entry(&skipped.reason).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut reasons: Vec<(&str, Vec<String>)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let mut notes: Vec<String> = reasons
        .iter()
        .map(|(reason, names)| {
            format!("{} not read: {reason}: {}", names.len(), some_of(names, all))
        })
        .collect();
    notes.extend(coverage.objects.iter().cloned());
    notes.extend(coverage.events.iter().cloned());
    notes.extend(coverage.advice.iter().map(|advice| format!("to see more: {advice}")));
    Section {
        title: format!(
            "Coverage: {} of {} performance variables read",
            coverage.sampled, coverage.exported
        ),
        columns: Vec::new(),
        rows: Vec::new(),
        notes,
    }
}

pub(super) fn first_rows<T>(mut rows: Vec<T>, all: bool) -> (Vec<T>, usize) {
    let cut_off = if all { 0 } else { rows.len().saturating_sub(ROWS_AT_MOST) };
    rows.truncate(rows.len() - cut_off);
    (rows, cut_off)
}

pub(super) fn more_rows(cut_off: usize) -> Vec<String> {
    let more = || format!("{} more row{}; --all shows them", cut_off, plural(cut_off as u64));
    (cut_off > 0).then(more).into_iter().collect()
}

pub(super) fn some_of(names: &[impl AsRef<str>], all: bool) -> String {
    let limit = if all { names.len() } else { NAMES_AT_MOST };
    let mut text: Vec<&str> = names.iter().take(limit).map(AsRef::as_ref).collect();
    let more = format!("{} more", names.len().saturating_sub(limit));
    if names.len() > limit {
        text.push(&more);
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_loses_the_directories_of_its_program_first() {
        let short = |words: &[&str]| {
            let command = words.iter().map(|word| (*word).to_owned()).collect();
            short_command(&Job { command, ..Job::default() })
        };
        let deep = format!("/{}/solver", "directory/".repeat(6));
        assert_eq!(short(&["/opt/bin/solver", "a/b"]), "/opt/bin/solver a/b");
        assert_eq!(short(&[&deep, "in/mesh"]), "solver in/mesh");
        assert_eq!(short(&[&deep, &"x".repeat(80)]), format!("solver {}...", "x".repeat(50)));
        assert_eq!(short(&["solver", &deep]), format!("solver {}...", &deep[..50]));
        assert_eq!(short(&[]), "(not recorded)");
    }
}
