//! The report by phase: all of them in a table, or the calls and variables of one.

use gyan_results::{CallSummary, PhaseSummary, Statistic, Summary};

use super::super::numbers::{integer_text, plural, seconds, share};
use super::super::statistic::{Unit, extreme_cells};
use super::super::{Align, Column};
use super::calls::{Whole, time};
use super::{Section, View, first_rows, more_rows, numbers, subtitle, title};

/// How a phase is called in a report: what was outside of all has a name too.
pub(crate) fn phase_name(phase: &PhaseSummary) -> &str {
    if phase.name.is_empty() { "(outside)" } else { &phase.name }
}

/// `one_by_one`: the calls and variables of each phase of `summary` instead of a table of them.
pub(crate) fn phases(summary: &Summary, one_by_one: bool, all: bool) -> View {
    let sections = if one_by_one {
        summary.phases.iter().flat_map(|phase| one(phase, summary, all)).collect()
    } else {
        vec![table(summary, all)]
    };
    let mut view = View { title: title(summary), subtitle: subtitle(summary), sections };
    view.make_printable();
    view
}

fn table(summary: &Summary, all: bool) -> Section {
    let right = |title| Column { title, align: Align::Right };
    let (phases, cut_off) = first_rows(summary.phases.iter().collect::<Vec<_>>(), all);
    let mut notes = more_rows(cut_off);
    notes.push(
        "TIME is the average of the ranks; each number is without the phases inside a phase".into(),
    );
    notes.extend(phases.iter().filter_map(|phase| unread(phase)));
    Section {
        title: "Phases of the program".into(),
        columns: vec![
            Column { title: "PHASE", align: Align::Left },
            right("ENTRIES"),
            right("TIME"),
            right("OF RUN"),
            right("MIN (RANK)"),
            right("MAX (RANK)"),
            right("IN MPI"),
            right("CALLS"),
            Column { title: "MOST OF IT IN", align: Align::Left },
        ],
        rows: phases.iter().map(|phase| row(phase, summary)).collect(),
        notes,
    }
}

fn row(phase: &PhaseSummary, summary: &Summary) -> Vec<String> {
    let [min, max] = extreme_cells(&phase.time_s, Unit::Seconds);
    let calls = phase.calls.iter().map(|call| call.count.sum);
    let calls = calls.reduce(gyan_results::Number::plus);
    vec![
        phase_name(phase).to_owned(),
        same_or_range(&phase.entries),
        seconds(phase.time_s.avg),
        of_run(phase, summary),
        min,
        max,
        in_mpi(phase).map_or("-".into(), share),
        calls.map_or("0".into(), |calls| Unit::Count.number(calls)),
        busiest(phase).map_or("-".into(), |call| call.name.clone()),
    ]
}

fn one(phase: &PhaseSummary, summary: &Summary, all: bool) -> Vec<Section> {
    let entries = same_or_range(&phase.entries);
    let time = &phase.time_s;
    let name = phase_name(phase);
    let mut notes = vec![format!(
        "{entries} entr{} on a rank; {} on average ({} on rank {} to {} on rank {}), {} of the run",
        if entries == "1" { "y" } else { "ies" },
        seconds(time.avg),
        seconds(time.min.as_f64()),
        time.min_rank,
        seconds(time.max.as_f64()),
        time.max_rank,
        of_run(phase, summary),
    )];
    notes.extend(in_mpi(phase).map(|part| format!("in MPI: {} of the phase", share(part))));
    notes.extend(unread(phase));
    let heading =
        Section { title: format!("Phase {name}"), columns: Vec::new(), rows: Vec::new(), notes };
    let whole = Whole { column: "OF PHASE", average_s: Some(phase.time_s.avg) };
    let tables = numbers(&phase.pvars, &phase.calls, &phase.samples, &whole, all);
    let tables = tables.into_iter().map(|mut section| {
        section.title = format!("{name}: {}", section.title);
        section
    });
    std::iter::once(heading).chain(tables).collect()
}

fn of_run(phase: &PhaseSummary, summary: &Summary) -> String {
    let elapsed = summary.elapsed_s.as_ref();
    elapsed.map_or("-".into(), |elapsed| share(phase.time_s.avg / elapsed.avg))
}

/// The share of the phase that was spent in MPI functions; none when nothing was timed.
fn in_mpi(phase: &PhaseSummary) -> Option<f64> {
    let in_mpi = phase.calls.iter().filter_map(time).reduce(|a, b| a + b)?;
    let all = phase.time_s.sum.as_f64();
    (all > 0.0).then_some(in_mpi / all)
}

/// The function that took most of the time, or was called most where no time is known.
fn busiest(phase: &PhaseSummary) -> Option<&CallSummary> {
    phase.calls.iter().max_by(|a, b| {
        let time = |call| time(call).unwrap_or(-1.0);
        time(a).total_cmp(&time(b)).then_with(|| a.count.sum.compare(b.count.sum))
    })
}

fn same_or_range(statistic: &Statistic) -> String {
    let text = |number| Unit::Count.number(number);
    if statistic.min == statistic.max {
        text(statistic.max)
    } else {
        format!("{} to {}", text(statistic.min), text(statistic.max))
    }
}

/// What the changes of variables are without.
fn unread(phase: &PhaseSummary) -> Option<String> {
    let unread = phase.stretches - phase.stretches_read.min(phase.stretches);
    (unread > 0).then(|| {
        format!(
            "{}: the budget left {} of {} stretch{} without a reading; changes of variables are \
             without those",
            phase_name(phase),
            integer_text(unread.into()),
            integer_text(phase.stretches.into()),
            if plural(phase.stretches).is_empty() { "" } else { "es" },
        )
    })
}
