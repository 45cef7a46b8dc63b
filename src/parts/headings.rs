//! The headings above the tables of a run or a library: which program, on which ranks, with which MPI.

use gyan_results::{Ending, Job, Mpi, PhaseSummary, Summary};

use super::machine::oversubscribed;
use crate::document::value::{integer, line, seconds};
use crate::document::{Value, cut, plural};
use crate::words::short_library;

/// A longer command line loses the directories of its program, and then characters at its end.
const COMMAND_AT_MOST: usize = 60;

pub(crate) fn title(summary: &Summary) -> Value<'_> {
    let run_s = seconds(summary.job.elapsed_s);
    let so_far = if is_running(summary) { " so far" } else { "" };
    line![what_ran(summary), ", ", run_s, so_far, oversubscription(summary)]
}

/// Whether a rank is there, or was when it was last heard of.
fn is_running(summary: &Summary) -> bool {
    let lives = |how: Ending| matches!(how, Ending::Running | Ending::Unknown);
    let is_partly = summary.job.known_until_s.is_some();
    is_partly && summary.ranks.ended_badly.iter().any(|ending| lives(ending.how))
}

/// The same of several runs, which take different times.
pub(crate) fn without_time(summary: &Summary) -> Value<'_> {
    line![what_ran(summary), oversubscription(summary)]
}

fn what_ran(summary: &Summary) -> Value<'_> {
    let ranks = summary.ranks.expected;
    let hosts: Value = match summary.hosts.as_slice() {
        [host] => host.into(),
        hosts => line![hosts.len(), " hosts"],
    };
    let ranks = line![integer(ranks), " rank", plural(ranks.into()), " on "];
    line![short_command(&summary.job), ": ", ranks, hosts]
}

fn oversubscription(summary: &Summary) -> Value<'_> {
    oversubscribed(summary).map_or("".into(), |of| line!["; ", of])
}

pub(crate) fn library_and_job(summary: &Summary) -> Value<'_> {
    let (job, started) = (&summary.job.id, &summary.job.started);
    line![library(&summary.mpi), ", job ", job, ", ", started]
}

/// The user's labels of a run.
pub(crate) fn labels(summary: &Summary) -> Option<Value<'_>> {
    let labels = summary.job.labels.iter().map(|label| format!("{}={}", label.name, label.value));
    let labels: Vec<String> = labels.collect();
    (!labels.is_empty()).then(|| labels.join(", ").into())
}

/// The command line of a run.
pub(crate) fn command(job: &Job) -> String {
    if job.command.is_empty() { "(not recorded)".into() } else { job.command.join(" ") }
}

/// A short form of a command: its arguments say more than the directory of its program.
fn short_command(job: &Job) -> String {
    let whole = command(job);
    let by_path = job.command.first().and_then(|program| program.rfind('/'));
    let directory = by_path.map_or(0, |slash| slash + 1);
    let is_long = whole.chars().count() > COMMAND_AT_MOST;
    cut(if is_long { &whole[directory..] } else { &whole }, COMMAND_AT_MOST)
}

/// Name, version and thread level of an MPI library.
pub(crate) fn library(mpi: &Mpi) -> String {
    let library = short_library(&mpi.library);
    // Before MPI_Init there is no thread level.
    match mpi.thread_level.as_str() {
        "unknown" => format!("{library} (MPI {})", mpi.standard),
        level => format!("{library} (MPI {}, {level})", mpi.standard),
    }
}

/// The name of a phase in a report: time outside all phases has a name too.
pub(crate) fn phase_name(phase: &PhaseSummary) -> &str {
    name_of_phase(&phase.name)
}

pub(crate) fn name_of_phase(name: &str) -> &str {
    if name.is_empty() { "(outside)" } else { name }
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
