//! What ran: the program, its library, its ranks and hosts, and how it ended.

use std::collections::BTreeMap;

use gyan_results::{BadEnding, Ending, ReducedInMpi, Summary};

use super::headings::command;
use super::report::about_the_same;
use super::{Part, ReportInput, environment, hosts, machine, report};
use crate::document::page::PageBlock;
use crate::document::value::{integer, line, seconds};
use crate::document::{Section, Value, texts};
use crate::input::killed::signal_name;

/// Up to this many hosts, all are named.
const HOSTS_AT_MOST: usize = 16;

/// What ran.
pub(super) const RUN: Part = Part { option: None, table: None, block: Some(|of| Ok(block(of))) };

fn block<'r>(of: &'r ReportInput) -> PageBlock<'r> {
    let summary = of.summary;
    let mut block = PageBlock::new("run", "What ran");
    let (job, mpi) = (&summary.job, &summary.mpi);
    let fact = |name: &'static str, value: Value<'static>| vec![name.into(), value];
    let device = mpi.device.as_ref().map_or_else(String::new, |device| format!(", {device}"));
    let ranks = integer(summary.ranks.expected);
    let hosts: Value = match summary.hosts.as_slice() {
        [host] => host.clone().into(),
        hosts => line![hosts.len(), " hosts"],
    };
    let rows = vec![
        fact("Command", command(job).into()),
        fact("MPI", format!("{}{device} (MPI {})", mpi.library, mpi.standard).into()),
        fact("Library", mpi.library_path.clone().into()),
        fact("Threads", mpi.thread_level.clone().into()),
        fact("Ranks", line![ranks, " on ", hosts]),
        fact("Started", job.started.clone().into()),
        fact("Time", time(summary)),
        fact("Job", job.id.clone().into()),
        fact("Written by", format!("{} {}", summary.tool.name, summary.tool.version).into()),
    ];
    let facts = Section { title: "".into(), columns: texts(["", ""]), rows, notes: Vec::new() };
    block.details = "What it was set to, and what it ran on";
    let all = summary.hosts.len() <= HOSTS_AT_MOST;
    block.says.extend(placed(summary, all));
    block.says.extend(ended(summary));
    block.says.extend(hosts::differences(summary));
    if !summary.warnings.is_empty() {
        block.says.extend(report::warnings(summary, true).notes);
    }
    let mut block = block.with(true, [facts]);
    if !summary.cvars.is_empty() {
        block = block.of_view(false, environment::view(summary));
    }
    block.of_view(false, machine::view(summary, all))
}

/// Which ranks were on which host.
pub(super) fn placed(summary: &Summary, all: bool) -> impl Iterator<Item = Value<'_>> {
    hosts::hosts(summary, all).into_iter().chain(machine::crowded(summary))
}

/// Which ranks the numbers cover, and how those ended that did not call `MPI_Finalize`.
pub(super) fn ended(summary: &Summary) -> impl Iterator<Item = Value<'_>> {
    let ranks = &summary.ranks;
    let incomplete = (!ranks.is_complete()).then(|| {
        let (reduced, expected) = (integer(ranks.reduced), integer(ranks.expected));
        let ranks = line!["INCOMPLETE: ", reduced, " of ", expected, " ranks"];
        line![ranks, "; the numbers below are only of these"]
    });
    let reduced = summary.reduced_in_mpi.as_ref().map(reduced_in_mpi);
    incomplete.into_iter().chain(reduced).chain(endings(summary))
}

fn reduced_in_mpi(reduced: &ReducedInMpi) -> Value<'_> {
    let (wait, profiles) = (seconds(reduced.wait_s), Value::Ranks((&reduced.profiles).into()));
    let time = seconds(reduced.time_s - reduced.wait_s);
    line![
        "reduced by the ranks themselves, in ",
        time,
        " when all were there, after ",
        wait,
        "; whole profiles: rank ",
        profiles
    ]
}

/// How the ranks ended that did not call `MPI_Finalize`: one line for each kind.
fn endings(summary: &Summary) -> impl Iterator<Item = Value<'_>> {
    let ended = &summary.ranks.ended_badly;
    let mut kinds: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut known_until: BTreeMap<String, (FirstAndLast, FirstAndLast)> = BTreeMap::new();
    for BadEnding { rank, how, code, elapsed_s, ended_s } in ended {
        let kind = match how {
            Ending::Finalize => continue,
            Ending::Abort => format!("ended by MPI_Abort with code {code}"),
            Ending::Exit => format!("ended without MPI_Finalize, exit code {code}"),
            Ending::Running if ended_s.is_some() => RUNNING.to_owned(),
            Ending::Running => "profile from while it ran, no later one was written".to_owned(),
            Ending::Killed if *code != 0 => format!("ended by {}", signal_name(*code)),
            Ending::Killed => "killed, or crashed, without MPI_Finalize".to_owned(),
            Ending::Unknown => UNKNOWN.to_owned(),
        };
        if ended_s.is_some() || matches!(how, Ending::Running | Ending::Killed | Ending::Unknown) {
            let widen = |span: &mut FirstAndLast, s: f64| *span = (span.0.min(s), span.1.max(s));
            let ended_s = ended_s.unwrap_or(*elapsed_s);
            let first = ((*elapsed_s, *elapsed_s), (ended_s, ended_s));
            let (known, ended) = known_until.entry(kind.clone()).or_insert(first);
            widen(known, *elapsed_s);
            widen(ended, ended_s);
        }
        kinds.entry(kind).or_default().push(*rank);
    }
    kinds.into_iter().map(move |(kind, on)| {
        let until = known_until.get(&kind).map_or("".into(), |(known, ended)| match &*kind {
            RUNNING => line!["; numbers known until ", span(*known)],
            UNKNOWN => until(", last seen after ", *known, *ended),
            _ => until(", after ", *known, *ended),
        });
        let hosts = hosts::on_some(summary, &on).unwrap_or("".into());
        line![kind, ": rank ", Value::Ranks(on.into()), hosts, until]
    })
}

/// Seconds of the first and of the last of some ranks.
type FirstAndLast = (f64, f64);

/// How far ranks are known that did not report their end, and when that was.
fn until(after: &'static str, known: FirstAndLast, ended: FirstAndLast) -> Value<'static> {
    if known == ended {
        return line!["; known until ", span(known), " of the run"];
    }
    line![after, span(ended), "; numbers known until ", span(known)]
}

fn span((first, last): FirstAndLast) -> Value<'static> {
    if about_the_same(first, last) {
        line![seconds(last)]
    } else {
        line![seconds(first), " to ", seconds(last)]
    }
}

/// The ranks of a job that goes on.
const RUNNING: &str = "running";
/// Those of another host.
const UNKNOWN: &str = "no end is known: killed, or still running";

/// How long it took, or has taken by now.
fn time(summary: &Summary) -> Value<'static> {
    let whole_s = seconds(summary.job.elapsed_s);
    summary.job.known_until_s.map_or_else(
        || whole_s.into(),
        |known_s| line![whole_s, "; numbers known until ", seconds(known_s)],
    )
}
