//! How do the set-ups of the runs differ, as far as summaries tell?

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{Machine, OpenMpRuntime, SetupDifference, Summary};

use crate::comparison::{each_once, program};
use crate::words::{ranges, short_library};

/// What a run says about its set-up; empty when it says nothing.
type SetupFact = (&'static str, fn(&Summary) -> String);

/// The facts to compare, in display order. Settings come after these.
const FACTS: &[SetupFact] = &[
    ("program", program),
    ("command", |of| of.job.command.join(" ")),
    ("labels", labels),
    ("MPI library", |of| short_library(&of.mpi.library)),
    ("device of the MPI library", |of| of.mpi.device.clone().unwrap_or_default()),
    ("file of the MPI library", |of| of.mpi.library_path.clone()),
    ("MPI standard", |of| of.mpi.standard.clone()),
    ("thread level", |of| of.mpi.thread_level.clone()),
    ("ranks", |of| of.ranks.expected.to_string()),
    ("threads of OpenMP on a rank", threads),
    ("ranks without a profile", |of| ranges(&of.ranks.missing)),
    ("hosts", |of| of.hosts.join(", ")),
    ("processors", |of| of_machines(of, |machine| machine.processor.clone())),
    ("cores of a host", |of| of_machines(of, |machine| machine.cores.map(|of| of.to_string()))),
    ("networks", |of| of_machines(of, |machine| listed(&machine.networks, |of| &of.device))),
    ("transports", |of| of_machines(of, |machine| listed(&machine.transports, |of| &of.name))),
    ("ranks per host and processors", placements),
    ("gyan", |of| of.tool.version.clone()),
];

/// The values of all hosts, each once.
fn of_machines(summary: &Summary, what: impl Fn(&Machine) -> Option<String>) -> String {
    let mut values: Vec<String> =
        summary.machines.iter().filter_map(|of| what(&of.machine)).collect();
    values.sort();
    values.dedup();
    values.join(" or ")
}

/// The names of a list; none where it is empty.
fn listed<T>(list: &[T], name: fn(&T) -> &String) -> Option<String> {
    let names: Vec<&str> = list.iter().map(|of| name(of).as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Of the largest teams; none where no runtime tells.
fn threads(summary: &Summary) -> String {
    let Some(of) = &summary.openmp else { return String::new() };
    let (least, most) = (of.threads.min.to_string(), of.threads.max.to_string());
    if least == most { most } else { format!("{least} to {most}") }
}

fn placements(summary: &Summary) -> String {
    let text = |of: &gyan_results::PlacementSummary| {
        let crowded = if of.is_oversubscribed { ", oversubscribed" } else { "" };
        let threads =
            of.threads.map_or(String::new(), |threads| format!(" ({threads} busy threads)"));
        format!("{}{threads} on {}{crowded}", of.ranks, of.processors)
    };
    let mut texts: Vec<String> = summary.placements.iter().map(text).collect();
    texts.dedup();
    texts.join("; ")
}

/// The control variables that a run recorded, those that findings rest on, and what the environment told OpenMP.
fn settings(summary: &Summary) -> BTreeMap<String, String> {
    let knobs = summary.knobs.iter().map(|knob| (knob.name.clone(), knob.value.clone()));
    let mut settings: BTreeMap<String, String> = knobs.collect();
    for cvar in &summary.cvars {
        let value = cvar.value.as_deref().unwrap_or("unknown");
        let text = match &cvar.set_by {
            Some(origin) => format!("{value} ({origin})"),
            None => value.to_owned(),
        };
        settings.insert(cvar.name.clone(), text);
    }
    let openmp = summary.resources.as_ref().and_then(|of| of.openmp.as_ref());
    if let Some(OpenMpRuntime { num_threads, settings: others, .. }) = openmp {
        let others = others.iter().filter_map(|setting| setting.split_once('='));
        let threads = num_threads.iter().map(|threads| ("OMP_NUM_THREADS", threads.as_str()));
        settings.extend(threads.chain(others).map(|(name, value)| (name.into(), value.into())));
    }
    settings
}

/// The user's labels of the run.
fn labels(summary: &Summary) -> String {
    let labels = summary.job.labels.iter().map(|label| format!("{}={}", label.name, label.value));
    labels.collect::<Vec<_>>().join(", ")
}

/// The values of the runs on a side, each once, in the order of the runs.
fn values<'r>(runs: &[&'r Summary], of: impl Fn(&'r Summary) -> String) -> Vec<String> {
    let values = each_once(runs.iter().map(|run| of(run)));
    if values.iter().all(String::is_empty) { Vec::new() } else { values }
}

fn difference(what: impl Into<String>, a: Vec<String>, b: Vec<String>) -> Option<SetupDifference> {
    let is_same = a == b && a.len() <= 1;
    (!is_same).then(|| SetupDifference { what: what.into(), a, b })
}

/// Lists, of which only the differing items are shown.
const LISTS: [&str; 4] = ["labels", "hosts", "networks", "transports"];

/// The items of a list that the other side does not have.
fn only(own: &[String], other: &[String]) -> Vec<String> {
    let items = |list: &[String]| -> BTreeSet<String> {
        let items = list.iter().flat_map(|list| list.split(", ")).filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    };
    let only: Vec<String> = items(own).difference(&items(other)).cloned().collect();
    if only.is_empty() { only } else { vec![only.join(", ")] }
}

/// The facts that differ between any runs of both sides.
pub(super) fn setup(a: &[&Summary], b: &[&Summary]) -> Vec<SetupDifference> {
    let facts =
        FACTS.iter().filter_map(|(what, of)| difference(*what, values(a, of), values(b, of)));
    let mut setup: Vec<SetupDifference> = facts.collect();
    for of in setup.iter_mut().filter(|of| LISTS.contains(&of.what.as_str())) {
        let (a, b) = (only(&of.a, &of.b), only(&of.b, &of.a));
        // The runs of a side do not agree on their list.
        if !(a.is_empty() && b.is_empty()) {
            (of.a, of.b) = (a, b);
            of.what.push_str(" of one side only");
        }
    }
    // The first word of a command is its program.
    if setup.iter().any(|of| of.what == "command") {
        setup.retain(|of| of.what != "program");
    }
    let set: Vec<Vec<BTreeMap<String, String>>> =
        [a, b].map(|runs| runs.iter().map(|run| settings(run)).collect()).into();
    let mut names: Vec<&String> = set.iter().flatten().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    for name in names {
        // A setting that is not recorded has the library's default.
        let of_run = |run: &BTreeMap<String, String>| match run.get(name) {
            Some(value) => value.clone(),
            None => "default".to_owned(),
        };
        let of_side = |side: &[BTreeMap<String, String>]| each_once(side.iter().map(of_run));
        let what = format!("setting {name}");
        setup.extend(difference(what, of_side(&set[0]), of_side(&set[1])));
    }
    setup
}
