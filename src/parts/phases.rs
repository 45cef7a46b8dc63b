//! The report by phase: a table of all phases, or the calls and variables of one.

use gyan_results::{CallSummary, Number, PhaseSummary, Statistic, Summary, Unit};
use wildmatch::WildMatch;

use super::functions::{ShareOf, time};
use super::headings::{phase_name, title};
use super::report::{on_rank, tables};
use super::{Part, PartOption, ReportInput, Takes, report};
use crate::document::limits::{first_rows, more_rows};
use crate::document::page::pictures::{Bar, Bars, Chart, LegendKey, Picture};
use crate::document::page::{BARS_AT_MOST, PageBlock};
use crate::document::value::{Amount, InUnit, line, row, seconds, share};
use crate::document::{
    Document, Kind, Presentation, Section, Value, View, column, numbers, plural, texts,
};
use crate::error::Error;

/// Phases of the program.
pub(super) const PHASES: Part = Part {
    option: Some(PartOption {
        takes: Takes::MaybeGlob,
        conflicts_with: None,
        ..PartOption::new(
            "phase",
            "The phases of the program in a table, or the calls and variables of those whose name \
             matches",
            show,
        )
    }),
    table: None,
    block: Some(block),
};

fn show<'r>(of: &'r ReportInput) -> Result<Presentation<'r>, Error> {
    let (phases, one_by_one) = asked(of)?;
    let view = view(of.summary, &phases, one_by_one, of.all);
    Ok(Presentation {
        view,
        rows: report::phase_rows(phases.clone()),
        document: Document::new(phases),
    })
}

/// The phases whose name matches, or all of them; and whether some are named.
fn asked<'r>(of: &'r ReportInput) -> Result<(Vec<&'r PhaseSummary>, bool), Error> {
    let phases = of.summary.phases.iter();
    if phases.len() == 0 {
        return Err(of.lacks(
            "the program has no phases",
            "mark them with gyan_phase_begin(\"name\") and gyan_phase_end() of gyan.h, or with \
             MPI_Pcontrol(3), MPI_Pcontrol(4), ...",
        ));
    }
    let Some(glob) = of.glob.filter(|glob| !glob.is_empty()) else {
        return Ok((phases.collect(), false));
    };
    let pattern = WildMatch::new(glob);
    let names: Vec<&str> = phases.clone().map(phase_name).collect();
    let matching: Vec<_> = phases.filter(|phase| pattern.matches(phase_name(phase))).collect();
    if matching.is_empty() {
        return Err(Error::new(
            format!("--phase {glob}"),
            "no phase matches",
            format!("the run has {}", names.join(", ")),
        ));
    }
    Ok((matching, true))
}

/// `one_by_one`: the calls and variables of each phase, instead of a table of phases.
fn view<'r>(
    summary: &'r Summary,
    phases: &[&'r PhaseSummary],
    one_by_one: bool,
    all: bool,
) -> View<'r> {
    let sections = if one_by_one {
        phases.iter().flat_map(|phase| one(phase, summary, all)).collect()
    } else {
        vec![table(summary, phases, all)]
    };
    View { title: title(summary), subtitle: report::subtitle(summary, phases, true, all), sections }
}

fn table<'r>(summary: &Summary, phases: &[&'r PhaseSummary], all: bool) -> Section<'r> {
    let (phases, cut_off) = first_rows(phases.to_vec(), all);
    let mut notes = more_rows(cut_off);
    notes.push(
        "TIME is the average of the ranks; each number is without the phases inside a phase".into(),
    );
    notes.extend(phases.iter().filter_map(|phase| unread(phase)));
    let mut columns = texts(["PHASE"]);
    columns.extend(numbers([
        "ENTRIES",
        "TIME",
        "OF RUN",
        "MIN (RANK)",
        "MAX (RANK)",
        "IN MPI",
        "CALLS",
    ]));
    columns.push(column("MOST OF IT IN", Kind::Text));
    let counted: Vec<&PhaseCount> = COUNTED
        .iter()
        .filter(|of| phases.iter().any(|phase| (of.value)(phase).is_some()))
        .collect();
    columns.extend(counted.iter().map(|of| column(of.heading, Kind::Number)));
    notes.extend(counted.iter().map(|of| line![of.heading, ": ", of.about]));
    let cells = |phase: &'r PhaseSummary| {
        let mut cells = cells(phase, summary);
        cells.extend(counted.iter().map(|of| (of.value)(phase).into()));
        cells
    };
    Section {
        title: "Phases of the program".into(),
        columns,
        rows: phases.into_iter().map(cells).collect(),
        notes,
    }
}

/// What the processor or the host counted of a phase: shown where a phase has it.
struct PhaseCount {
    heading: &'static str,
    about: &'static str,
    value: fn(&PhaseSummary) -> Option<Amount>,
}

const COUNTED: [PhaseCount; 3] = [
    PhaseCount {
        heading: "IPC",
        about: "instructions per cycle, in MPI too, on the thread that initialised MPI",
        value: |phase| Some(Unit::Count.double(phase.ipc.as_ref()?.avg)),
    },
    PhaseCount {
        heading: "MISSES/1000",
        about: "cache misses of the last level per 1000 instructions",
        value: |phase| Some(Unit::Count.double(phase.misses_per_1000.as_ref()?.avg)),
    },
    PhaseCount {
        heading: "JOULES",
        about: "about what the hosts took meanwhile, for other jobs too; ranks that are in other phases count as well",
        value: |phase| Some(Unit::Count.double(phase.energy_j.as_ref()?.sum.as_f64())),
    },
];

fn cells<'a>(phase: &'a PhaseSummary, summary: &Summary) -> Vec<Value<'a>> {
    let [min, max] = Unit::Seconds.extremes(&phase.time_s);
    let calls = phase.calls.iter().map(|call| call.count.sum);
    row![
        phase_name(phase),
        same_or_range(&phase.entries),
        seconds(phase.time_s.avg),
        of_run(phase, summary),
        min,
        max,
        in_mpi(phase, summary),
        calls.fold(Number::Integer(0), Number::plus),
        busiest(phase).map(|call| &call.name),
    ]
}

fn one<'a>(phase: &'a PhaseSummary, summary: &'a Summary, all: bool) -> Vec<Section<'a>> {
    let time = &phase.time_s;
    let name = phase_name(phase);
    let once = phase.entries.min == phase.entries.max && phase.entries.max == Number::Integer(1);
    let entries = line![
        same_or_range(&phase.entries),
        if once { " entry" } else { " entries" },
        " on a rank; "
    ];
    let [min, max] = Unit::Seconds.extremes(time).map(|amount| on_rank(summary, amount));
    let times = line![seconds(time.avg), " on average (", min, " to ", max, "), "];
    let mut notes = vec![line![entries, times, of_run(phase, summary), " of the run"]];
    notes.extend(in_mpi(phase, summary).map(|part| line!["in MPI: ", part, " of the phase"]));
    let counted = COUNTED
        .iter()
        .filter_map(|of| Some(line![of.heading, ": ", (of.value)(phase)?, " (", of.about, ")"]));
    notes.extend(counted);
    notes.extend(unread(phase));
    let heading = Section::of_notes(line!["Phase ", name], notes);
    let whole = ShareOf { column: "OF PHASE", average_s: Some(time.avg) };
    let tables = tables(&phase.pvars, &phase.calls, &phase.samples, &whole, all);
    let tables = tables.into_iter().map(|mut section| {
        section.title = line![name, ": ", section.title];
        section
    });
    std::iter::once(heading).chain(tables).collect()
}

fn of_run(phase: &PhaseSummary, summary: &Summary) -> Option<Amount> {
    let elapsed = summary.elapsed_s.as_ref()?;
    Some(share(phase.time_s.avg / elapsed.avg))
}

/// The share of the phase that was spent in MPI functions; none when nothing was timed, and where the times of threads
/// that were there together are no part of it.
pub(crate) fn in_mpi(phase: &PhaseSummary, summary: &Summary) -> Option<Amount> {
    if summary.has_thread_seconds() {
        return None;
    }
    let in_mpi = phase.calls.iter().filter_map(time).reduce(|a, b| a + b)?;
    let all = phase.time_s.sum.as_f64();
    // In a short phase the times of threads may be more than it, although hardly anything of the run is.
    (all > 0.0 && in_mpi <= all).then(|| share(in_mpi / all))
}

/// The function that took the most time, or was called most often when no time is known.
fn busiest(phase: &PhaseSummary) -> Option<&CallSummary> {
    phase.calls.iter().max_by(|a, b| {
        let time = |call| time(call).unwrap_or(-1.0);
        time(a).total_cmp(&time(b)).then_with(|| a.count.sum.compare(b.count.sum))
    })
}

fn same_or_range(statistic: &Statistic) -> Value<'static> {
    if statistic.min == statistic.max {
        statistic.max.into()
    } else {
        line![statistic.min, " to ", statistic.max]
    }
}

/// What is missing from the changes of variables.
fn unread(phase: &PhaseSummary) -> Option<Value<'_>> {
    let unread = phase.stretches - phase.stretches_read.min(phase.stretches);
    let plural = if plural(phase.stretches).is_empty() { "" } else { "es" };
    let of = line![unread, " of ", phase.stretches, " stretch", plural, " without a reading"];
    let but = "; changes of variables do not include those";
    (unread > 0).then(|| line![phase_name(phase), ": the budget left ", of, but])
}

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let summary = of.summary;
    if summary.phases.is_empty() {
        return Err(
            "phases: the program marks none (gyan_phase_begin of gyan.h, or MPI_Pcontrol)".into()
        );
    }
    let phases: Vec<&PhaseSummary> = summary.phases.iter().collect();
    let mut block = PageBlock::new("phases", "Phases of the program");
    let bar = |phase: &&'r PhaseSummary| {
        let part = in_mpi(phase, summary)?.number.as_f64().clamp(0.0, 1.0);
        let time_s = phase.time_s.avg;
        let parts = [part, 1.0 - part].map(|part| seconds(time_s * part));
        Some(Bar { name: phase_name(phase).into(), parts: parts.into() })
    };
    let mut bars: Vec<Bar> = phases.iter().filter_map(bar).collect();
    bars.truncate(BARS_AT_MOST);
    if !bars.is_empty() {
        let keys = LegendKey::pair("in MPI", "own code");
        block.charts.push(Chart::new(
            "How long are the phases, and how much of them is MPI?",
            "time of an average rank, without the phases inside a phase",
            Picture::Bars(Bars { keys, bars }),
        ));
    }
    Ok(block.of_view(false, view(summary, &phases, false, true)))
}
