//! What the ranks ran on: the hosts, how ranks share them, and what the ranks used.

mod counters;
pub(super) mod rows;

use gyan_results::{
    Machine, MachineSummary, Network, PlacementSummary, ResourcesSummary, Summary, Unit,
};

use crate::document::limits::{first_rows, more_rows, some_of};
use crate::document::statistic::{columns, statistic_cells};
use crate::document::value::{InUnit, bytes, line, row};
use crate::document::{Document, Presentation, Section, Value, View, numbers, plural, texts};
use crate::error::Error;
use crate::parts::headings::{library_and_job, title};
use crate::parts::rank::USED;
use crate::parts::{Part, PartOption, ReportInput, SummaryTable};
pub(super) use counters::energy_line;
use rows::{Machines, rows};

/// What the ranks ran on.
pub(super) const MACHINE: Part = Part {
    option: Some(PartOption::new(
        "machine",
        "What the ranks ran on: hosts, processors that ranks may use and share, networks, the \
         time and memory that the ranks used, and the energy that the hosts took",
        show,
    )),
    table: Some(SummaryTable::new::<rows::MachineFact>(
        "summary_machine",
        "host, processor or network",
        |of| Machines::new(of.summary).map(rows),
    )),
    block: None,
};

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let machines = Machines::new(of.summary).ok_or_else(|| {
        of.lacks("nothing is known of what the ranks ran on", "run it again with this gyan")
    })?;
    let view = view(of.summary, of.all);
    Ok(Presentation { view, rows: rows(machines), document: Document::new(machines) })
}

pub(super) fn view(summary: &Summary, all: bool) -> View<'_> {
    let mut sections = Vec::new();
    if !summary.placements.is_empty() {
        sections.push(placements(&summary.placements, all));
    }
    let (machines, cut_off) = first_rows(summary.machines.iter().collect(), all);
    sections.extend(machines.into_iter().map(|of| host(of, all)));
    if let Some(last) = sections.last_mut() {
        last.notes.extend(more_rows(cut_off));
    }
    sections.extend(summary.resources.as_ref().map(used));
    sections.extend(counters::sections(summary, all));
    View { title: title(summary), subtitle: vec![library_and_job(summary)], sections }
}

/// `4 ranks on 2 cores: oversubscribed`, for the host where that is worst.
pub(crate) fn oversubscribed(summary: &Summary) -> Option<Value<'_>> {
    let too_many = summary.placements.iter().filter(|placement| placement.is_oversubscribed);
    let ranks_each =
        |placement: &PlacementSummary| placement.demand() as f64 / placement.capacity();
    let worst = too_many.max_by(|one, other| ranks_each(one).total_cmp(&ranks_each(other)))?;
    let ranks = line![demand(worst), " on ", capacity(worst)];
    let host = worst.hosts.first().filter(|_| summary.hosts.len() > 1);
    let on = host.map_or("".into(), |host| line![host, ": "]);
    Some(line![on, ranks, ": oversubscribed"])
}

/// `4 ranks`, `8 busy threads of 4 ranks`.
fn demand(placement: &PlacementSummary) -> Value<'_> {
    let ranks = line![placement.ranks, " rank", plural(placement.ranks)];
    match placement.threads {
        Some(threads) => line![threads, " busy threads of ", ranks],
        None => ranks,
    }
}

/// `2 cores`, `4 processors (threads of 2 cores)`, `1.5 of 64 cores (limit of the control group)`.
fn capacity(placement: &PlacementSummary) -> Value<'_> {
    let &PlacementSummary { processors, cores, .. } = placement;
    let noun = if cores == Some(processors) { "core" } else { "processor" };
    let limit = placement.processor_limit.filter(|limit| *limit < processors as f64);
    if let Some(limit) = limit {
        let of =
            if processors == 1 { line!["1 ", noun] } else { line![processors, " ", noun, "s"] };
        return line![Unit::Count.double(limit), " of ", of, " (limit of the control group)"];
    }
    let threads = cores.filter(|cores| *cores != processors);
    let threads = threads
        .map_or("".into(), |cores| line![" (threads of ", cores, " core", plural(cores), ")"]);
    line![processors, " ", noun, plural(processors), threads]
}

/// Ranks or threads that share a core while others are free: one sentence for hosts that are alike.
pub(crate) fn crowded(summary: &Summary) -> impl Iterator<Item = Value<'_>> {
    summary.placements.iter().filter_map(|placement| {
        let crowded = placement.crowded.as_ref()?;
        let several = summary.hosts.len() > 1;
        let on = if several { line![" on ", some_of(&placement.hosts, false)] } else { "".into() };
        let (most, who, remedy) = match crowded.threads_per_core {
            Some(threads) => {
                (threads, "busy threads", "; give each rank as many cores as it has busy threads")
            }
            None => (
                crowded.ranks_per_core,
                "ranks",
                "; bind each rank to cores of its own, or bind none",
            ),
        };
        let most = Unit::Count.double(most);
        let free = crowded.free_cores;
        let free = line![free, if free == 1 { " core has" } else { " cores have" }, " none"];
        let processors = line![" (processors ", &crowded.processors, ")"];
        let most = line![": up to ", most, " ", who, " on one, while ", free];
        Some(line![who, " are bound to the same cores", on, processors, most, remedy])
    })
}

fn placements<'a>(placements: &'a [PlacementSummary], all: bool) -> Section<'a> {
    let (shown, cut_off) = first_rows(placements.iter().collect(), all);
    let row = |placement: &'a PlacementSummary| {
        let PlacementSummary { hosts, ranks, threads, processors, cores, processor_limit, .. } =
            placement;
        let state = match (placement.is_oversubscribed, &placement.crowded) {
            (true, Some(_)) => "oversubscribed, and bound to the same cores",
            (true, None) => "oversubscribed",
            (false, Some(_)) => "bound to the same cores",
            (false, None) => "",
        };
        row![some_of(hosts, all), *ranks, *threads, *processors, *cores, *processor_limit, state]
    };
    let rows = shown.into_iter().map(row).collect();
    let mut columns = texts(["HOSTS"]);
    columns.extend(numbers(["RANKS EACH", "THREADS", "PROCESSORS", "CORES", "LIMIT"]));
    columns.extend(texts([""]));
    let mut notes = more_rows(cut_off);
    notes.push(
        "THREADS are the busy threads of these ranks, where there are more of them than ranks; PROCESSORS and \
         CORES are those that any rank of the host may run on, LIMIT is the processor time that their control \
         groups allow"
            .into(),
    );
    Section { title: "Where ranks may run".into(), columns, rows, notes }
}

fn host(of: &MachineSummary, all: bool) -> Section<'_> {
    let MachineSummary { hosts, machine } = of;
    let notes = facts(machine).into_iter();
    let notes = notes.filter_map(|(label, value)| Some(Value::Fact(label, Box::new(value?))));
    Section::of_notes(line!["Host ", some_of(hosts, all)], notes.collect())
}

/// The facts about a host, each under its name.
fn facts(machine: &Machine) -> Vec<(&'static str, Option<Value<'_>>)> {
    let Machine {
        system,
        processor,
        processors,
        processors_offline,
        cores,
        threads_per_core,
        core_processors: _,
        core_kinds,
        packages,
        numa_nodes,
        memory_bytes,
        ptrace_scope,
        has_ptrace_capability,
        networks,
        transports,
    } = machine;
    let number = |number: &Option<u64>, noun: &'static str| {
        number.map(|number| line![number, " ", noun, plural(number)])
    };
    let threads = threads_per_core.filter(|threads| *threads > 1);
    let threads = threads.map_or("".into(), |threads| line![" of up to ", threads, " threads"]);
    let offline = (*processors_offline > 0).then(|| line![", ", *processors_offline, " offline"]);
    let kinds = core_kinds.iter().map(|of| line![&of.kind, " ", &of.processors]);
    let kinds = (!core_kinds.is_empty()).then(|| some_of(kinds.collect::<Vec<_>>(), true));
    let cores = number(cores, "core").map(|cores| line![cores, threads]);
    let shape = [number(packages, "package"), number(numa_nodes, "NUMA node"), cores];
    let shape: Vec<Value> = shape.into_iter().flatten().collect();
    let processors =
        (!processors.is_empty()).then(|| line![processors, offline.unwrap_or("".into())]);
    let network = |of: &'_ Network| {
        let facts = [Some(&of.kind), of.rate.as_ref(), of.state.as_ref()].into_iter().flatten();
        let facts: Vec<&str> = facts.map(String::as_str).collect();
        format!("{} ({})", of.device, facts.join(", "))
    };
    let networks_of = some_of(networks.iter().map(network), true);
    let networks_of = if networks.is_empty() { "none".into() } else { networks_of };
    let transports_of = transports.iter().map(|of| line![&of.name, " (", &of.what, ")"]);
    let transports_of = some_of(transports_of.collect::<Vec<_>>(), true);
    let transports_of = if transports.is_empty() {
        "none but those that are built into the library".into()
    } else {
        transports_of
    };
    vec![
        ("processor", processor.as_ref().map(Value::from)),
        ("topology", (!shape.is_empty()).then(|| some_of(shape, true))),
        ("processors", processors),
        ("core kinds", kinds),
        ("system", system.as_ref().map(Value::from)),
        ("memory", memory_bytes.map(|memory| bytes(memory as f64).into())),
        ("ptrace", ptrace_scope.map(|scope| reads(scope, *has_ptrace_capability))),
        ("networks", Some(networks_of)),
        ("transports", Some(transports_of)),
    ]
}

/// Whether a rank can copy from the memory of another, which makes messages within a host faster.
fn reads(scope: u64, has_capability: bool) -> Value<'static> {
    let text = match (scope, has_capability) {
        (0, _) => "ranks may read each other, so messages within the host can be copied once (CMA)",
        (1 | 2, true) => {
            "CAP_SYS_PTRACE lets ranks read each other, so messages within the host can be copied once (CMA)"
        }
        (1, false) => {
            "ranks may read only those that allow it (ptrace_scope is 1): some MPI libraries see to that, with \
             others messages within the host are copied twice"
        }
        _ => {
            "may not be read (ptrace_scope), so messages within the host are copied twice, unless XPMEM is there"
        }
    };
    text.into()
}

fn used(resources: &ResourcesSummary) -> Section<'_> {
    let rows = resources.measures_named(USED).map(|(words, unit, of)| {
        let mut cells = row![words];
        cells.extend(statistic_cells(of, unit).map(Value::from));
        cells
    });
    let rows = rows.collect();
    let about =
        "from MPI_Init to the end, of all threads of a rank; peak memory since the program began";
    let mut notes: Vec<Value> = vec![about.into()];
    let of_counters =
        "instructions, cycles and cache misses: in the program, of the thread that initialised MPI";
    notes.extend(resources.ipc.as_ref().map(|_| of_counters.into()));
    let absent = resources.counters_absent.as_ref();
    notes.extend(absent.map(|why| line!["no instructions and cycles: ", why]));
    Section { title: "What ranks used".into(), columns: columns(["OF A RANK"]), rows, notes }
}
