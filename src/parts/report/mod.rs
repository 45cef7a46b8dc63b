//! The report of a run: what happened on the ranks.

pub(crate) mod first;
pub(crate) mod rows;

use std::borrow::Cow;
use std::collections::BTreeMap;

use gyan_results::{
    BadEnding, CallSummary, Class, CoverageSummary, CvarSetting, Efficiencies, Ending, Finding,
    InMpiSummary, Number, ObjectsLeftOutSummary, PhaseSummary, PvarSummary, QueueRow, ReducedInMpi,
    SamplesSummary, Summary,
};

use crate::document::limits::some_of;
use crate::document::value::{Amount, Unit, Value, integer, line, seconds, share};
use crate::document::{Section, View, plural};
use crate::parts::cost::cost;
use crate::parts::functions::{Whole, calls};
use crate::parts::headings::{labels, library_and_job, title};
use crate::parts::variables::{pvars, states};
use crate::parts::{findings, hosts, machine, queues, waiting, watch};
use crate::symbols::sites::CallSites;
use crate::symbols::stacks::Watched;

/// Which part of the report is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// What fits on a screen, the answers first.
    First,
    /// The tables of what the user has named, variables and functions.
    Named,
    /// The performance variables.
    Variables,
    /// What was read of what there is, and what gyan cost.
    Coverage,
    /// Everything.
    Whole,
}

/// What is known of a run besides its summary.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) watched: &'a [Watched<'a>],
    pub(crate) remarks: &'a [String],
    pub(crate) called: Option<&'a CallSites<'a>>,
    pub(crate) queues: &'a [QueueRow],
    pub(crate) efficiencies: Option<&'a Efficiencies>,
    pub(crate) findings: &'a [Finding],
    /// The eager limit in bytes and the share of messages above it, if known.
    pub(crate) eager: Option<(f64, f64)>,
    /// The name under which the user knows it.
    pub(crate) directory: &'a str,
}

/// `all`: also what is zero on every rank, every variable that was not read, and the time of
/// `MPI_T_init_thread`.
pub(crate) fn report<'a>(
    summary: &'a Summary,
    known: Known<'a>,
    part: Part,
    all: bool,
) -> View<'a> {
    let Known { watched, remarks, called, queues, findings, eager, directory, .. } = known;
    let whole = Whole::run(summary);
    let all = all || part == Part::Whole;
    let mut subtitle = subtitle(summary, part, all);
    let mut sections = Vec::new();
    // Warnings cast doubt on the numbers, so they come first.
    if !summary.warnings.is_empty() {
        sections.push(warnings(summary, all));
    }
    match part {
        Part::First | Part::Whole => {
            let mut answers: Vec<Value> = first::headline(summary, called).into_iter().collect();
            answers.extend(findings::first(findings, directory));
            if !answers.is_empty() {
                subtitle.push("".into());
            }
            subtitle.extend(answers);
            sections.extend(first::average_rank(summary, called));
            if part == Part::First {
                // Without times, counts are the best there is.
                if summary.in_mpi.is_none() {
                    sections.extend(calls(&summary.calls, &whole, all));
                }
                sections.extend(watch::sites(watched, remarks, all));
                sections.push(first::lines(summary, queues, eager));
                return View { title: title(summary), subtitle, sections };
            }
            sections.extend(hosts::table(summary, all));
            sections.extend(tables(&summary.pvars, &summary.calls, &summary.samples, &whole, all));
            sections.extend(waiting::sentences(summary));
            sections.extend(watch::sites(watched, remarks, all));
            sections.push(coverage(&summary.coverage, all));
            sections.push(cost(summary, all));
        }
        Part::Named => {
            sections.extend(tables(&summary.pvars, &summary.calls, &summary.samples, &whole, all));
        }
        Part::Variables => {
            sections.extend((!summary.pvars.is_empty()).then(|| pvars(&summary.pvars, all)));
            sections.extend(states(&summary.samples, all));
            sections.extend(classes(summary));
        }
        Part::Coverage => {
            sections.push(coverage(&summary.coverage, all));
            sections.push(cost(summary, all));
        }
    }
    View { title: title(summary), subtitle, sections }
}

/// The meaning of the classes of the variables shown (MPI 4.1, 15.3.7).
pub(crate) fn classes(summary: &Summary) -> Option<Section<'_>> {
    let mut classes: Vec<Class> = summary.pvars.iter().map(PvarSummary::effective_class).collect();
    classes.sort_by_key(|class| class.name());
    classes.dedup();
    let notes = classes.into_iter().map(|class| line![class.name(), ": ", explained(class)]);
    let notes: Vec<Value> = notes.collect();
    (!notes.is_empty()).then(|| Section::of_notes("What the classes mean", notes))
}

/// What a class of variables is, and what gyan shows of it.
pub(crate) fn explained(class: Class) -> &'static str {
    match class {
        Class::State => {
            "which of several states the library is in; the shares of time in each are shown, from \
             samples"
        }
        Class::Level => {
            "how much of something is in use at a time, such as the length of a queue; it rises and falls, so its value at \
             the end says little and it is sampled while the program runs"
        }
        Class::Size => {
            "how large something is; the standard means what does not change, but libraries use it for lengths of queues, too"
        }
        Class::Percentage => {
            "how much of something is in use, from 0 to 1; it rises and falls, so it is sampled"
        }
        Class::HighWatermark => "the largest value that a level has had since the start",
        Class::LowWatermark => "the smallest value that a level has had since the start",
        Class::Counter => {
            "how often something has happened; what is shown is how much it grew between start and \
             end"
        }
        Class::Aggregate => {
            "a sum, such as of bytes; what is shown is how much it grew between start and end"
        }
        Class::Timer => {
            "time that was spent on something; what is shown is how much it grew between start and \
             end"
        }
        Class::Generic => {
            "none of the other classes; the description of the library says what it is (gyan varlist -l)"
        }
    }
}

/// The tables of variables and calls, of the whole run or of a part of it.
pub(crate) fn tables<'a>(
    rows: &'a [PvarSummary],
    functions: &'a [CallSummary],
    samples: &'a [SamplesSummary],
    whole: &Whole,
    all: bool,
) -> Vec<Section<'a>> {
    let variables = (!rows.is_empty()).then(|| pvars(rows, all));
    let mut sections: Vec<Section> = variables.into_iter().chain(states(samples, all)).collect();
    sections.extend(calls(functions, whole, all));
    sections
}

pub(crate) fn subtitle(summary: &Summary, part: Part, all: bool) -> Vec<Value<'_>> {
    let mut lines = vec![library_and_job(summary)];
    lines.extend(labels(summary));
    lines.extend(placed(summary, all));
    if !summary.cvars.is_empty() {
        lines.push(settings(&summary.cvars));
    }
    lines.extend(ended(summary));
    // The first screen has it in its headline.
    if !matches!(part, Part::First | Part::Whole) {
        lines.extend(summary.in_mpi.as_ref().map(|of| in_mpi(summary, of)));
    }
    lines.extend(hosts::differences(summary));
    lines.extend(named_phases(&summary.phases));
    lines.extend(told(summary));
    lines
}

/// How many settings of the MPI library were made, and by whom.
pub(crate) fn settings(cvars: &[CvarSetting]) -> Value<'_> {
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

/// Which ranks were on which host.
pub(crate) fn placed(summary: &Summary, all: bool) -> impl Iterator<Item = Value<'_>> {
    hosts::hosts(summary, all).into_iter().chain(machine::crowded(summary))
}

/// Which ranks the numbers cover, and how those ended that did not call `MPI_Finalize`.
pub(crate) fn ended(summary: &Summary) -> impl Iterator<Item = Value<'_>> {
    let ranks = &summary.ranks;
    let incomplete = (!ranks.is_complete()).then(|| {
        let (reduced, expected) = (integer(ranks.reduced), integer(ranks.expected));
        let ranks = line!["INCOMPLETE: ", reduced, " of ", expected, " ranks"];
        line![ranks, "; the numbers below are only of these"]
    });
    let reduced = summary.reduced_in_mpi.as_ref().map(reduced_in_mpi);
    incomplete.into_iter().chain(reduced).chain(endings(summary))
}

pub(crate) fn reduced_in_mpi(reduced: &ReducedInMpi) -> Value<'_> {
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
pub(crate) fn endings(summary: &Summary) -> impl Iterator<Item = Value<'_>> {
    let ended = &summary.ranks.ended_badly;
    let mut kinds: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut known_until: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for BadEnding { rank, how, code, elapsed_s } in ended {
        let kind = match how {
            Ending::Finalize => continue,
            Ending::Abort => format!("ended by MPI_Abort with code {code}"),
            Ending::Exit => format!("ended without MPI_Finalize, exit code {code}"),
            Ending::Running => "profile from while it ran, no later one was written".to_owned(),
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
        let until = known_until.get(&kind).map_or("".into(), |(first, last)| until(*first, *last));
        let hosts = hosts::on_some(summary, &on).unwrap_or("".into());
        line![kind, ": rank ", Value::Ranks(on.into()), hosts, until]
    })
}

/// How far ranks are known that did not report their end.
pub(crate) fn until(first: f64, last: f64) -> Value<'static> {
    if about_the_same(first, last) {
        line!["; known until ", seconds(last), " of the run"]
    } else {
        line!["; known until ", seconds(first), " to ", seconds(last), " of the run"]
    }
}

/// Whether two numbers differ by less than their shown precision.
pub(crate) fn about_the_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.002 * one.abs().max(other.abs())
}

pub(crate) fn in_mpi<'a>(summary: &'a Summary, in_mpi: &'a InMpiSummary) -> Value<'a> {
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
pub(crate) fn on_rank(summary: &Summary, amount: Amount) -> Value<'_> {
    let rank = amount.rank.map(|rank| hosts::rank_and_host(summary, rank));
    line![Amount { rank: None, ..amount }, " on ", rank]
}

pub(crate) fn named_phases(phases: &[PhaseSummary]) -> Option<Value<'_>> {
    let names: Vec<&str> =
        phases.iter().map(|phase| phase.name.as_str()).filter(|name| !name.is_empty()).collect();
    let number = names.len();
    let list = some_of(names, false);
    (number > 0)
        .then(|| line![number, " phase", plural(number as u64), ": ", list, "; --phase shows them"])
}

/// A pointer to data on messages that this report does not show.
pub(crate) fn told(summary: &Summary) -> Option<Value<'_>> {
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

pub(crate) fn warnings(summary: &Summary, all: bool) -> Section<'_> {
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

/// The communicators, windows and files that are missing: a line per reason, the most numerous first.
pub(crate) fn left_out(
    objects: &[ObjectsLeftOutSummary],
    all: bool,
) -> impl Iterator<Item = Value<'_>> {
    let mut reasons: BTreeMap<&str, Vec<&ObjectsLeftOutSummary>> = BTreeMap::new();
    for of in objects {
        reasons.entry(&of.reason).or_default().push(of);
    }
    reasons.into_iter().map(move |(reason, mut objects)| {
        objects.sort_by(|one, other| other.number.max.compare(one.number.max));
        line![some_of(objects.into_iter().map(number_of), all), " ", reason]
    })
}

/// `3 windows of 2 ranks`, or `3 to 5 windows` when the ranks differ.
pub(crate) fn number_of(objects: &ObjectsLeftOutSummary) -> Value<'_> {
    let ObjectsLeftOutSummary { what, number, .. } = objects;
    let [min, max] = [number.min, number.max].map(|number| Unit::Count.of(number));
    let number = if min == max { line![max] } else { line![min, " to ", max] };
    let (noun, size) = what.split_once(' ').unwrap_or((what, ""));
    let plural = if max.number == Number::Integer(1) { "" } else { "s" };
    line![number, " ", noun, plural, " ", size]
}

pub(crate) fn coverage(coverage: &CoverageSummary, all: bool) -> Section<'_> {
    let mut reasons: BTreeMap<&str, Vec<Cow<str>>> = BTreeMap::new();
    for skipped in &coverage.skipped {
        let name = skipped.name.as_deref();
        let name = name.map_or_else(|| format!("#{}", skipped.index).into(), Cow::Borrowed);
        let names = reasons.entry(&skipped.reason).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut reasons: Vec<(&str, Vec<Cow<str>>)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let notes = reasons.into_iter().map(|(reason, names)| {
        line![names.len(), " not read: ", reason, ": ", some_of(names, all)]
    });
    let mut notes: Vec<Value> = notes.collect();
    notes.extend(left_out(&coverage.objects, all));
    notes.extend(coverage.events.iter().map(Value::from));
    notes.extend(coverage.advice.iter().map(|advice| line!["to see more: ", advice]));
    let (sampled, exported) = (coverage.sampled, coverage.exported);
    Section::of_notes(
        line!["Coverage: ", sampled, " of ", exported, " performance variables read"],
        notes,
    )
}
