//! The report by phase: a table of all phases, or the calls and variables of one.

use gyan_results::{CallSummary, Number, PhaseSummary, Statistic, Summary};

use crate::document::limits::{first_rows, more_rows};
use crate::document::value::{Amount, Unit, Value, line, row, seconds, share};
use crate::document::{Kind, Section, View, column, numbers, plural, texts};
use crate::parts::functions::{Whole, time};
use crate::parts::headings::{phase_name, title};
use crate::parts::report::{Part, on_rank, subtitle, tables};

/// `one_by_one`: the calls and variables of each phase of `summary`, instead of a table of phases.
pub(crate) fn phases(summary: &Summary, one_by_one: bool, all: bool) -> View<'_> {
    let sections = if one_by_one {
        summary.phases.iter().flat_map(|phase| one(phase, summary, all)).collect()
    } else {
        vec![table(summary, all)]
    };
    View { title: title(summary), subtitle: subtitle(summary, Part::Named, all), sections }
}

fn table(summary: &Summary, all: bool) -> Section<'_> {
    let (phases, cut_off) = first_rows(summary.phases.iter().collect::<Vec<_>>(), all);
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
    Section {
        title: "Phases of the program".into(),
        columns,
        rows: phases.into_iter().map(|phase| cells(phase, summary)).collect(),
        notes,
    }
}

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
    notes.extend(unread(phase));
    let heading = Section::of_notes(line!["Phase ", name], notes);
    let whole = Whole { column: "OF PHASE", average_s: Some(time.avg) };
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
