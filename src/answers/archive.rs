//! What do the jobs of a site have in common? Where the core hours went, what could be gained, what became slower.

use gyan_results::{
    ArchiveChange, ArchiveChangeKind, ArchiveHours, ArchiveProgram, ArchiveReport, ArchiveWeek,
    Fidelity, SlowHost, SlowerProgram, Unit,
};

use crate::document::data::{Data, columns};
use crate::document::limits::{first_rows, more_rows};
use crate::document::page::pictures::{Bar, Bars, Chart, LegendKey, Picture};
use crate::document::page::{BARS_AT_MOST, Page, PageBlock};
use crate::document::value::{Amount, Bound, InUnit, Value, line, row, share};
use crate::document::{
    Document, Kind, Presentation, Section, View, column, numbers, plural, texts,
};

/// How much of the report is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// Every row.
    pub(crate) all: bool,
    pub(crate) weeks: bool,
}

/// One of the numbers of hours.
type Hours = fn(&ArchiveHours) -> f64;

/// Less of the core hours is not shown, unless it is always.
const NOTHING: f64 = 1e-6;
/// Weeks at the beginning and at the end that are compared with each other.
const WEEKS_COMPARED: usize = 4;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

columns! { of in ArchiveProgram;
    /// the file name of the executable
    required(program: Text) => &of.program,
    /// its jobs
    required(jobs: Integer, Exact) => of.hours.jobs,
    /// hours of the processors that its ranks may use
    required(core_h: Double, Exact) => of.hours.core_h,
    /// hours of those outside MPI
    required(own_core_h: Double, Estimated) => of.hours.own_core_h,
    /// hours in MPI
    required(mpi_core_h: Double, Estimated) => of.hours.mpi_core_h,
    /// hours of those in which ranks waited for others, of the jobs of which that is known
    required(waiting_core_h: Double, Estimated) => of.hours.waiting_core_h,
    /// hours in MPI of the other jobs
    required(waiting_unknown_core_h: Double, Estimated) => of.hours.waiting_unknown_core_h,
    /// hours that could be gained at most
    required(lost_core_h: Double, Estimated) => of.hours.lost_core_h,
    /// the first finding of most of its jobs that have one
    column(finding: Text) => of.finding.as_deref(),
    /// how many jobs that are
    required(finding_jobs: Integer, Exact) => of.finding_jobs,
    /// what to do about it
    column(advice: Text) => of.advice.as_deref(),
}

/// In every format but a page.
pub(crate) fn archive_report(of: &ArchiveReport, extent: Extent) -> Presentation<'_> {
    let mut sections = vec![hours(of), programs(of, extent.all)];
    sections.extend(advice(of, extent.all));
    sections.extend([slower(of, extent.all), slow_hosts(of, extent.all), trend(of)]);
    sections.extend(extent.weeks.then(|| weeks(of)));
    sections.extend((!of.users.is_empty()).then(|| users(of, extent.all)));
    let view = View { title: title(of), subtitle: vec![what_could_be_gained(of)], sections };
    Presentation { view, rows: Data::new(&of.programs), document: Document::new(of) }
}

pub(crate) fn page_of_archive(of: &ArchiveReport) -> Page<'_> {
    let mut whole = PageBlock::new("hours", "Where the core hours went").with(true, [hours(of)]);
    let programs_with_most = of.programs.iter().take(BARS_AT_MOST);
    let bars = programs_with_most.map(|of| bar((&of.program).into(), &of.hours));
    whole.charts.push(chart(
        "Which programs have the most to gain?",
        "Core hours of the programs with the most to gain: own code, MPI and waiting.",
        bars.collect(),
    ));
    let mut gain = PageBlock::new("programs", "What could be gained");
    gain.says.push(what_could_be_gained(of));
    gain.extend(true, [programs(of, true)].into_iter().chain(advice(of, true)));
    let slower = PageBlock::new("slower", "What became slower")
        .with(true, [slower(of, true), slow_hosts(of, true)]);
    let mut time = PageBlock::new("weeks", "Week by week").with(true, [trend(of)]);
    time.charts.push(chart(
        "How did the core hours change?",
        "Core hours of each week: own code, MPI and waiting.",
        of.weeks.iter().map(|week| bar((&week.monday).into(), &week.hours)).collect(),
    ));
    time.push(false, weeks(of));
    let mut blocks = vec![whole, gain, slower, time];
    if !of.users.is_empty() {
        blocks.push(PageBlock::new("users", "Users").with(true, [users(of, true)]));
    }
    Page { title: title(of), headline: Some(what_could_be_gained(of)), blocks }
}

fn chart<'a>(title: &'static str, says: &'static str, bars: Vec<Bar<'a>>) -> Chart<'a> {
    let key = |name: &'static str, is_background| LegendKey { name: name.into(), is_background };
    let keys = vec![
        key("waiting", false),
        key("MPI without waiting", false),
        key("MPI, waiting not known", false),
        key("own code", true),
    ];
    Chart::new(title, says, Picture::Bars(Bars { keys, bars }))
}

fn bar<'a>(name: Value<'a>, of: &ArchiveHours) -> Bar<'a> {
    let parts = [of.waiting_core_h, of.moving_core_h(), of.waiting_unknown_core_h, of.own_core_h];
    Bar { name, parts: parts.map(|hours| Unit::Count.double(hours)).into() }
}

/// Hours with as many digits as anybody reads.
fn core_hours(hours: f64) -> Amount {
    Unit::Count.double(if hours.abs() >= 100.0 { hours.round() } else { hours })
}

fn part(of: f64, whole: f64) -> Amount {
    share(if whole > 0.0 { of / whole } else { 0.0 })
}

/// `4 November 2025`, of `2025-11-04`.
fn in_words(day: &str) -> String {
    let parts: Vec<&str> = day.split('-').collect();
    if let [year, month, day] = parts[..]
        && let Ok(month) = month.parse::<usize>()
        && let Some(month) = MONTHS.get(month.wrapping_sub(1))
    {
        return format!("{} {month} {year}", day.trim_start_matches('0'));
    }
    day.to_owned()
}

fn title(of: &ArchiveReport) -> Value<'_> {
    let hours = &of.totals;
    let (jobs, core_h) = (hours.jobs, core_hours(hours.core_h));
    let when = if of.since == of.until {
        format!(" on {}", in_words(&of.since))
    } else {
        format!(" from {} to {}", in_words(&of.since), in_words(&of.until))
    };
    line![jobs, " job", plural(jobs), " took ", core_h, " core hours", when]
}

/// The share of waiting; at least this where it is not known of all jobs, and nothing where it is known of none.
fn waiting(of: &ArchiveHours) -> Option<Amount> {
    let waiting = part(of.waiting_core_h, of.core_h);
    match (of.waiting_unknown_core_h > 0.0, of.waiting_core_h > 0.0) {
        (false, _) => Some(waiting),
        (true, true) => Some(Amount { bound: Bound::AtLeast, ..waiting }),
        (true, false) => None,
    }
}

fn what_could_be_gained(of: &ArchiveReport) -> Value<'_> {
    let hours = &of.totals;
    let lost = core_hours(hours.lost_core_h);
    let part = part(hours.lost_core_h, hours.core_h);
    line![
        "at most ",
        lost,
        " of them could be gained (",
        part,
        "): what the findings of the jobs are about"
    ]
}

fn hours(of: &ArchiveReport) -> Section<'_> {
    let hours = &of.totals;
    let is_known = hours.waiting_unknown_core_h == 0.0;
    let not_timed = hours.core_h - hours.own_core_h - hours.mpi_core_h;
    // What is known of no job is not 0.
    let parts = [
        ("own code of the programs", hours.own_core_h, true),
        ("MPI, waiting for other ranks", hours.waiting_core_h, is_known),
        ("MPI, moving data and all else", hours.moving_core_h(), is_known),
        ("MPI of jobs of which the waiting is not known", hours.waiting_unknown_core_h, false),
        ("jobs whose calls were not timed", not_timed, false),
    ];
    let shown = parts.into_iter().filter(|(_, of, always)| *always || *of > NOTHING * hours.core_h);
    let rows = shown.map(|(name, of, _)| row![name, core_hours(of), part(of, hours.core_h)]);
    let rows = rows.collect();
    let mut columns = texts([""]);
    columns.extend(numbers(["CORE HOURS", "SHARE"]));
    let note = line![
        "a core hour is an hour of a processor that a job may use; jobs that left no record are unknown, and not in any number here"
    ];
    Section { title: "Where the core hours went".into(), columns, rows, notes: vec![note] }
}

fn programs(of: &ArchiveReport, all: bool) -> Section<'_> {
    let row = |of: &'_ ArchiveProgram| {
        let (hours, finding) = (&of.hours, of.finding.clone());
        let in_mpi = part(hours.mpi_core_h, hours.core_h);
        let waiting = waiting(hours);
        let [core_h, lost] = [hours.core_h, hours.lost_core_h].map(core_hours);
        let finding_jobs = (of.finding_jobs > 0).then_some(of.finding_jobs);
        row![of.program.clone(), hours.jobs, core_h, in_mpi, waiting, lost, finding, finding_jobs]
    };
    let (shown, more) = first_rows(of.programs.iter().collect(), all);
    let mut columns = texts(["PROGRAM"]);
    columns.extend(numbers(["JOBS", "CORE HOURS", "IN MPI", "WAITING", "COULD GAIN"]));
    columns.push(column("MOST OFTEN", Kind::Text));
    columns.extend(numbers(["IN JOBS"]));
    Section {
        title: "Programs by the core hours that could be gained".into(),
        columns,
        rows: shown.into_iter().map(row).collect(),
        notes: more_rows(more),
    }
}

/// What to do about the findings of the programs that are shown, each once.
fn advice(of: &ArchiveReport, all: bool) -> Option<Section<'_>> {
    let (shown, _) = first_rows(of.programs.iter().collect(), all);
    let mut rows: Vec<Vec<Value>> = Vec::new();
    let mut said: Vec<&str> = Vec::new();
    for program in shown {
        if let (Some(finding), Some(advice)) = (&program.finding, &program.advice)
            && !said.contains(&finding.as_str())
        {
            said.push(finding);
            rows.push(row![finding, advice]);
        }
    }
    let mut columns = texts(["FINDING"]);
    columns.push(column("WHAT TO DO", Kind::Prose));
    let notes = vec![
        "gyan explain FINDING says more; gyan run, on one of the jobs, shows which calls it is about"
            .into(),
    ];
    let title = "What to do about these findings".into();
    (!rows.is_empty()).then_some(Section { title, columns, rows, notes })
}

fn estimate(number: f64, error: f64) -> Amount {
    let amount = share(number).known(Fidelity::Estimated);
    Amount { error: Some(error).filter(|error| *error > 0.0), ..amount }
}

fn what_changed(change: &ArchiveChange) -> String {
    let what = match change.kind {
        ArchiveChangeKind::Mpi => "MPI",
        ArchiveChangeKind::System => "the system",
    };
    format!("{what} changed from {} to {}", change.from, change.to)
}

fn slower(of: &ArchiveReport, all: bool) -> Section<'_> {
    let sentence = |of: &'_ SlowerProgram| -> Value<'_> {
        let why = of.cause.as_ref().map_or_else(
            || "; neither MPI nor the system changed then".to_owned(),
            |change| format!(", when {}", what_changed(change)),
        );
        let longer = estimate(of.ratio - 1.0, of.error);
        let since = in_words(&of.since);
        let more = core_hours(of.more_core_h);
        let jobs = of.jobs[1];
        line![
            of.program.clone(),
            " takes ",
            longer,
            " longer since ",
            since,
            why,
            " (",
            jobs,
            " jobs since, ",
            more,
            " core hours more)"
        ]
    };
    let (shown, more) = first_rows(of.worse.iter().collect(), all);
    let mut notes: Vec<Value> = shown.into_iter().map(sentence).collect();
    notes.extend(more_rows(more));
    let judged = of.programs_judged;
    notes.extend(of.worse.is_empty().then(|| none_of(judged, "program")));
    notes.extend(of.changes.iter().map(|change| {
        let same = |of: &&SlowerProgram| {
            of.cause.as_ref().is_some_and(|cause| cause.day == change.day && cause.to == change.to)
        };
        let slower = of.worse.iter().filter(same).count();
        let (when, what) = (in_words(&change.day), what_changed(change));
        line!["on ", when, " ", what, ": ", slower, " of ", judged, " programs are slower since"]
    }));
    notes.push("compared are jobs of the same user with the same number of ranks".into());
    Section::of_notes("Programs that became slower", notes)
}

/// Where nothing is slow.
fn none_of(judged: usize, what: &'static str) -> Value<'static> {
    match judged {
        0 => line!["no ", what, " has enough jobs to tell"],
        judged => line!["none of the ", judged, " ", what, "s that have enough jobs to tell"],
    }
}

fn slow_hosts(of: &ArchiveReport, all: bool) -> Section<'_> {
    let sentence = |of: &'_ SlowHost| -> Value<'_> {
        let since = if of.is_from_the_beginning {
            format!("on all days, from {} on", in_words(&of.since))
        } else {
            format!("since {}", in_words(&of.since))
        };
        let slower = estimate(of.ratio - 1.0, of.error);
        let (jobs, late) = (of.jobs, of.jobs_late);
        line![
            of.host.clone(),
            " is ",
            slower,
            " slower than the other hosts of its jobs ",
            since,
            ": in ",
            late,
            " of ",
            jobs,
            " jobs it was in the slower half"
        ]
    };
    let (shown, more) = first_rows(of.hosts.iter().collect(), all);
    let mut notes: Vec<Value> = shown.into_iter().map(sentence).collect();
    notes.extend(more_rows(more));
    let judged = of.hosts_judged;
    notes.push(if of.hosts.is_empty() {
        none_of(judged, "host")
    } else {
        line!["the other ", judged - of.hosts.len(), " hosts are not later than by chance"]
    });
    Section::of_notes("Hosts that are late", notes)
}

/// The shares of the first and of the last weeks.
fn trend(of: &ArchiveReport) -> Section<'_> {
    let weeks = &of.weeks;
    let compared = WEEKS_COMPARED.min(weeks.len() / 2);
    if compared == 0 {
        return Section::of_notes("Trend", vec!["one week only".into()]);
    }
    let is_known = weeks.iter().all(|week| week.hours.waiting_unknown_core_h == 0.0);
    let parts: [(&str, bool, Hours); 4] = [
        ("in MPI", true, |of| of.mpi_core_h),
        ("waiting for other ranks", true, |of| of.waiting_core_h),
        ("in MPI, waiting not known", !is_known, |of| of.waiting_unknown_core_h),
        ("could be gained at most", true, |of| of.lost_core_h),
    ];
    let shown = parts.into_iter().filter(|(_, is_shown, _)| *is_shown);
    let share = |weeks: &[ArchiveWeek], of: Hours| {
        let sum = |of: Hours| weeks.iter().map(|week| of(&week.hours)).sum::<f64>();
        part(sum(of), sum(|of| of.core_h))
    };
    let (first, last) = (&weeks[..compared], &weeks[weeks.len() - compared..]);
    let rows = shown.map(|(name, _, of)| row![name, share(first, of), share(last, of)]);
    let mut columns = texts(["SHARE OF THE CORE HOURS"]);
    columns.extend(numbers(["FIRST WEEKS", "LAST WEEKS"]));
    let note = line![
        "the first ",
        compared,
        " and the last ",
        compared,
        " of ",
        weeks.len(),
        " weeks; --weeks shows each"
    ];
    Section { title: "Trend".into(), columns, rows: rows.collect(), notes: vec![note] }
}

fn hour_columns(first: &'static str) -> Vec<crate::document::Column> {
    let mut columns = texts([first]);
    columns.extend(numbers(["JOBS", "CORE HOURS", "IN MPI", "WAITING", "COULD GAIN"]));
    columns
}

fn hour_cells<'a>(name: impl Into<Value<'a>>, of: &ArchiveHours) -> Vec<Value<'a>> {
    let [in_mpi, lost] = [of.mpi_core_h, of.lost_core_h].map(|hours| part(hours, of.core_h));
    row![name.into(), of.jobs, core_hours(of.core_h), in_mpi, waiting(of), lost]
}

fn weeks(of: &ArchiveReport) -> Section<'_> {
    Section {
        title: "Weeks".into(),
        columns: hour_columns("MONDAY"),
        rows: of.weeks.iter().map(|week| hour_cells(&week.monday, &week.hours)).collect(),
        notes: Vec::new(),
    }
}

fn users(of: &ArchiveReport, all: bool) -> Section<'_> {
    let (shown, more) = first_rows(of.users.iter().collect(), all);
    Section {
        title: "Users by core hours".into(),
        columns: hour_columns("USER"),
        rows: shown.into_iter().map(|user| hour_cells(user.uid.to_string(), &user.hours)).collect(),
        notes: more_rows(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_out() {
        assert_eq!(in_words("2025-11-04"), "4 November 2025");
        assert_eq!(in_words("some day"), "some day");
    }
}
