//! The report of a run: what happened on the ranks.

mod first;
mod rows;

use gyan_results::{
    CallSummary, CvarSetting, InMpiSummary, PhaseSummary, PvarSummary, SamplesSummary, Summary,
    Unit, write_json,
};

use crate::document::limits::some_of;
use crate::document::value::{Amount, InUnit, integer, line, share};
use crate::document::{Document, Presentation, Section, Value, View, plural};
use crate::findings::Answers;
use crate::parts::cost::cost;
use crate::parts::coverage::coverage;
use crate::parts::functions::{ShareOf, calls};
use crate::parts::headings::{labels, library_and_job, title};
use crate::parts::run::{ended, placed};
use crate::parts::time::average_rank;
use crate::parts::variables::{pvars, states};
use crate::parts::{
    Part, ReportInput, SummaryTable, findings, hosts, now, openmp, queues, waiting, watch,
};

pub(super) use first::headline;
pub(super) use rows::{phase_rows, summary_rows};

/// The report itself, of which every other part is a part.
pub(super) const REPORT: Part = Part {
    option: None,
    table: Some(SummaryTable::new::<rows::SummaryRow>("summary", "measure over the ranks", |of| {
        Some(summary_rows(of))
    })),
    block: None,
};

/// The first screen; everything where all is asked for; or the tables of what the user has named.
pub(crate) fn show<'r>(of: &'r ReportInput) -> Presentation<'r> {
    let Summary { pvars, calls, samples, .. } = of.summary;
    if of.is_selection {
        shown(of, tables(pvars, calls, samples, &ShareOf::run(of.summary), of.all))
    } else {
        in_every_format(of, if of.all { whole(of) } else { first_screen(of) })
    }
}

/// Some tables of the report, below what is said of the run.
pub(super) fn shown<'r>(of: &'r ReportInput, sections: Vec<Section<'r>>) -> Presentation<'r> {
    let summary = of.summary;
    let subtitle = subtitle(summary, &phases(summary), true, of.all);
    let sections = warned(summary, of.all).into_iter().chain(sections).collect();
    in_every_format(of, View { title: title(summary), subtitle, sections })
}

/// What programs get is the whole report.
fn in_every_format<'r>(of: &'r ReportInput, view: View<'r>) -> Presentation<'r> {
    let document = Document::Json(Box::new(|out| write_json(out, &with_answers(of))));
    Presentation { view, rows: summary_rows(of), document }
}

fn with_answers(of: &ReportInput) -> Summary {
    let Answers { efficiencies, findings, .. } = of.answers();
    let (efficiencies, findings) = (efficiencies.clone(), findings.clone());
    let critical_path = waiting::critical_path(of).cloned();
    Summary { efficiencies, findings, critical_path, ..of.summary.clone() }
}

pub(crate) fn first_screen<'r>(of: &'r ReportInput) -> View<'r> {
    let (summary, (watched, remarks)) = (of.summary, of.watched());
    let mut view = answers(of, false);
    // Without times, counts are the best there is.
    if summary.in_mpi.is_none() {
        view.sections.extend(calls(&summary.calls, &ShareOf::run(summary), false));
    }
    view.sections.extend(watch::sites(watched, remarks, false));
    view.sections.push(Section::of_notes("", first_lines(of)));
    view
}

pub(super) fn first_lines<'r>(of: &'r ReportInput) -> Vec<Value<'r>> {
    let lines = first::lines(of.summary, of.queues(), of.eager());
    waiting::first(of).into_iter().chain(lines).collect()
}

/// What ran, how it ended, and what casts doubt on the numbers.
pub(super) fn what_ran<'r>(of: &'r ReportInput) -> Vec<Value<'r>> {
    let mut lines: Vec<Value> = of.now().map(now::lines).unwrap_or_default();
    lines.extend(subtitle(of.summary, &phases(of.summary), false, false));
    lines.extend(warned(of.summary, false).into_iter().flat_map(|section| section.notes));
    lines
}

/// Everything: also what is zero on every rank, every variable that was not read, and the time of
/// `MPI_T_init_thread`.
pub(crate) fn whole<'r>(of: &'r ReportInput) -> View<'r> {
    let (summary, (watched, remarks)) = (of.summary, of.watched());
    let Summary { pvars, calls, samples, .. } = summary;
    let mut view = answers(of, true);
    view.sections.extend(hosts::table(summary, true));
    view.sections.extend(tables(pvars, calls, samples, &ShareOf::run(summary), true));
    view.sections.extend(waiting::sentences(of));
    view.sections.extend(watch::sites(watched, remarks, true));
    view.sections.push(coverage(&summary.coverage, true));
    view.sections.push(cost(summary, true));
    view
}

/// The findings, and where the time of an average rank goes.
fn answers<'r>(of: &'r ReportInput, all: bool) -> View<'r> {
    let summary = of.summary;
    let mut subtitle: Vec<Value> = of.now().map(now::lines).unwrap_or_default();
    subtitle.extend(self::subtitle(summary, &phases(summary), false, all));
    let headline = headline(summary, of.called()).into_iter();
    let mut answers: Vec<Value> =
        headline.chain(openmp::first(of).map(|of| line![of, " (--openmp)"])).collect();
    answers.extend(findings::first(&of.answers().findings, &of.directory));
    if !answers.is_empty() {
        subtitle.push("".into());
    }
    subtitle.extend(answers);
    let warned = warned(summary, all).into_iter();
    let sections = warned.chain(average_rank(summary, of.called())).collect();
    View { title: title(summary), subtitle, sections }
}

fn phases(summary: &Summary) -> Vec<&PhaseSummary> {
    summary.phases.iter().collect()
}

/// Warnings cast doubt on the numbers, so they come first.
fn warned(summary: &Summary, all: bool) -> Option<Section<'_>> {
    (!summary.warnings.is_empty()).then(|| warnings(summary, all))
}

/// The tables of variables and calls, of the whole run or of a part of it.
pub(super) fn tables<'a>(
    rows: &'a [PvarSummary],
    functions: &'a [CallSummary],
    samples: &'a [SamplesSummary],
    whole: &ShareOf,
    all: bool,
) -> Vec<Section<'a>> {
    let variables = (!rows.is_empty()).then(|| pvars(rows, all));
    let mut sections: Vec<Section> = variables.into_iter().chain(states(samples, all)).collect();
    sections.extend(calls(functions, whole, all));
    sections
}

/// `phases`: those that are shown. `with_mpi`: also the time in MPI, which the first screen has in its headline.
pub(super) fn subtitle<'r>(
    summary: &'r Summary,
    phases: &[&'r PhaseSummary],
    with_mpi: bool,
    all: bool,
) -> Vec<Value<'r>> {
    let mut lines = vec![library_and_job(summary)];
    lines.extend(labels(summary));
    lines.extend(placed(summary, all));
    if !summary.cvars.is_empty() {
        lines.push(settings(&summary.cvars));
    }
    lines.extend(ended(summary));
    if with_mpi {
        lines.extend(summary.in_mpi.as_ref().map(|of| in_mpi(summary, of)));
    }
    lines.extend(hosts::differences(summary));
    lines.extend(named_phases(phases));
    lines.extend(told(summary));
    lines
}

/// How many settings of the MPI library were made, and by whom.
pub(super) fn settings(cvars: &[CvarSetting]) -> Value<'_> {
    let asked = cvars.iter().filter(|cvar| cvar.requested.is_some()).count();
    let others = cvars.len() - asked;
    let was = |number: usize| if number == 1 { " was" } else { " were" };
    let by_others = line![others, was(others), " set by the launcher, the environment or a file"];
    let by_gyan = line![asked, was(asked), " set by gyan --set"];
    let who = match (others, asked) {
        (_, 0) => by_others,
        (0, _) => by_gyan,
        _ => line![by_others, ", ", by_gyan],
    };
    line!["settings of the MPI library: ", who, " (--environment)"]
}

/// Whether two numbers differ by less than their shown precision.
pub(super) fn about_the_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.002 * one.abs().max(other.abs())
}

pub(super) fn in_mpi<'a>(summary: &'a Summary, in_mpi: &'a InMpiSummary) -> Value<'a> {
    let average = in_mpi.share.avg;
    // The error of the mean is the error of the sum, scaled alike.
    let error = in_mpi.time_error_s.map(|error| average * error / in_mpi.time_s.sum.as_f64());
    let average = share(average).estimated(error);
    let [min, max] = Unit::Share.extremes(&in_mpi.share);
    let extremes = if about_the_same(min.number.as_f64(), max.number.as_f64()) {
        "".into()
    } else {
        let on_rank = |amount| on_rank(summary, amount);
        line![" (", on_rank(min), " to ", on_rank(max), ")"]
    };
    line!["in MPI: ", average, " of the run", extremes]
}

/// In a sentence: `2 ms on rank 3`, with the rank's host if there are several.
pub(super) fn on_rank(summary: &Summary, amount: Amount) -> Value<'_> {
    let rank = amount.rank.map(|rank| hosts::rank_and_host(summary, rank));
    line![Amount { rank: None, ..amount }, " on ", rank]
}

pub(super) fn named_phases<'r>(phases: &[&'r PhaseSummary]) -> Option<Value<'r>> {
    let names: Vec<&str> =
        phases.iter().map(|phase| phase.name.as_str()).filter(|name| !name.is_empty()).collect();
    let number = names.len();
    let list = some_of(names, false);
    (number > 0)
        .then(|| line![number, " phase", plural(number as u64), ": ", list, "; --phase shows them"])
}

/// A pointer to data on messages that this report does not show.
pub(super) fn told(summary: &Summary) -> Option<Value<'_>> {
    let sources = summary.messages.iter().map(|messages| queues::source_name(messages.source));
    let mut sources: Vec<&str> = sources.collect();
    if !summary.events.is_empty() && !sources.contains(&queues::EVENTS) {
        sources.push(queues::EVENTS);
    }
    let sources = sources.join(" and ");
    (!sources.is_empty()).then(|| line![sources, " told of messages; --queues shows the queues"])
}

/// Warnings on the first screen.
const WARNINGS_AT_MOST: usize = 3;

pub(super) fn warnings(summary: &Summary, all: bool) -> Section<'_> {
    let expected = summary.ranks.reduced;
    let notes = summary.warnings.iter().map(|warning| {
        if warning.ranks == u64::from(expected) {
            (&warning.text).into()
        } else {
            line![&warning.text, " (", warning.ranks, " of ", integer(expected), " ranks)"]
        }
    });
    let mut notes: Vec<Value> = notes.collect();
    let more = notes.len().saturating_sub(WARNINGS_AT_MOST);
    if more > 0 && !all {
        notes.truncate(WARNINGS_AT_MOST);
        notes.push(line![more, " more; --all shows them"]);
    }
    Section::of_notes("Warnings", notes)
}
