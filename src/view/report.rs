//! The report of a run: what happened on the ranks.

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{
    CallSummary, Class, CoverageSummary, Datatype, Element, Measure, Number, PvarSummary,
    Statistic, Summary,
};

use super::numbers::{
    bytes, cut, double_text, grouped, integer_text, percent, plural, ranges, seconds,
};
use super::{Align, Column, Section, View, library_line};

/// Rows of one table that fit on a screen with the rest.
const ROWS_AT_MOST: usize = 10;
/// Names shown of variables that were not read for one reason.
const NAMES_AT_MOST: usize = 3;
/// A command line is cut there.
const COMMAND_AT_MOST: usize = 60;

/// `all`: also what is zero on every rank, and every variable that was not read.
pub(crate) fn report(summary: &Summary, all: bool) -> View {
    let mut sections = Vec::new();
    if !summary.pvars.is_empty() {
        sections.push(pvars(&summary.pvars, all));
    }
    if !summary.calls.is_empty() {
        sections.push(calls(&summary.calls, all));
    }
    if !summary.warnings.is_empty() {
        sections.push(warnings(summary));
    }
    sections.push(coverage(&summary.coverage, all));
    sections.push(cost(summary));
    let mut view = View { title: title(summary), subtitle: subtitle(summary), sections };
    view.make_printable();
    view
}

fn title(summary: &Summary) -> String {
    let command = summary.job.command.join(" ");
    let ranks = summary.ranks.expected;
    format!(
        "{}: {ranks} rank{} on {}, {}",
        cut(&command, COMMAND_AT_MOST),
        plural(ranks.into()),
        match summary.hosts.as_slice() {
            [host] => host.clone(),
            hosts => format!("{} hosts", hosts.len()),
        },
        seconds(summary.job.elapsed_s),
    )
}

fn subtitle(summary: &Summary) -> Vec<String> {
    let mut lines = vec![format!(
        "{}, job {}, {}",
        library_line(&summary.mpi),
        summary.job.id,
        summary.job.started
    )];
    if !summary.cvars.is_empty() {
        lines.push(format!(
            "{} control variables are set; --environment shows them",
            summary.cvars.len()
        ));
    }
    let ranks = &summary.ranks;
    if !ranks.is_complete() {
        lines.push(format!(
            "INCOMPLETE: {} of {} ranks; the numbers below are of these alone",
            ranks.reduced, ranks.expected
        ));
    }
    if !ranks.ended_badly.is_empty() {
        let bad: Vec<u32> = ranks.ended_badly.iter().map(|ending| ending.rank).collect();
        lines.push(format!("ended without MPI_Finalize: rank {}", ranges(&bad)));
    }
    lines
}

const STATISTIC_COLUMNS: [Column; 4] = [
    Column { title: "MIN (RANK)", align: Align::Right },
    Column { title: "AVERAGE", align: Align::Right },
    Column { title: "MAX (RANK)", align: Align::Right },
    Column { title: "STD DEV", align: Align::Right },
];

fn columns(first: impl IntoIterator<Item = &'static str>) -> Vec<Column> {
    let first = first.into_iter().map(|title| Column { title, align: Align::Left });
    first.chain(STATISTIC_COLUMNS).collect()
}

fn statistic_cells(statistic: &Statistic, unit: Unit) -> [String; 4] {
    [
        format!("{} ({})", unit.number(statistic.min), statistic.min_rank),
        unit.mean(statistic.avg),
        format!("{} ({})", unit.number(statistic.max), statistic.max_rank),
        unit.mean(statistic.stddev),
    ]
}

fn pvars(pvars: &[PvarSummary], all: bool) -> Section {
    let mut shown: Vec<&PvarSummary> =
        pvars.iter().filter(|pvar| all || !pvar.statistic.is_zero()).collect();
    let zero = pvars.len() - shown.len();
    // What took time first, then what happened most; levels last.
    shown.sort_by(|a, b| {
        kind(a)
            .cmp(&kind(b))
            .then(b.statistic.max.compare(a.statistic.max))
            .then_with(|| (&a.name, a.element).cmp(&(&b.name, b.element)))
    });
    let elements = elements_of(pvars);
    let hidden = if all { 0 } else { keep_largest_elements(&mut shown) };
    let (shown, cut_off) = first_rows(shown, all);
    let rows = shown.iter().map(|pvar| {
        let of = match elements.get(&vector(pvar)) {
            Some(elements) if !all && *elements > 1 => format!(" of {elements}"),
            _ => String::new(),
        };
        let class = match pvar.behaves_as {
            Some(real) => format!("{} ({})", real.name(), pvar.class.name()),
            None => pvar.class.name().to_owned(),
        };
        let object = pvar.object.clone().unwrap_or_else(|| "-".into());
        let first =
            [format!("{}{}{of}", pvar.name, pvar.element), class, object, measure(pvar.measure)];
        let numbers = statistic_cells(&pvar.statistic, unit(pvar));
        first.into_iter().chain(numbers).collect()
    });
    let mut notes = Vec::new();
    if zero > 0 {
        let more = if zero == pvars.len() { "" } else { "more " };
        let count = grouped(zero as u128);
        let plural = plural(zero as u64);
        notes.push(format!("{count} {more}number{plural} read 0 on every rank; --all shows them"));
    }
    if hidden > 0 {
        notes.push(
            "of each vector the element with the largest value; --all shows every one".into(),
        );
    }
    notes.extend(more_rows(cut_off));
    let partial = shown.iter().filter(|pvar| pvar.statistic.not_finite > 0);
    notes.extend(partial.map(|pvar| {
        format!("{}: {} ranks have no finite value", pvar.name, pvar.statistic.not_finite)
    }));
    let mut remarks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pvar in &shown {
        for note in &pvar.notes {
            let names = remarks.entry(note).or_default();
            if !names.contains(&pvar.name.as_str()) {
                names.push(&pvar.name);
            }
        }
    }
    notes.extend(
        remarks.into_iter().map(|(note, names)| format!("{}: {note}", some_of(&names, all))),
    );
    Section {
        title: "Performance variables of the MPI library".into(),
        columns: columns(["VARIABLE", "CLASS", "OBJECT", "VALUE"]),
        rows: rows.collect(),
        notes,
    }
}

/// What the elements of one vector have in common.
type Vector<'a> = (&'a str, Class, Option<&'a str>, Measure);

fn vector(pvar: &PvarSummary) -> Vector<'_> {
    (&pvar.name, pvar.class, pvar.object.as_deref(), pvar.measure)
}

/// How many elements each vector has.
fn elements_of(pvars: &[PvarSummary]) -> BTreeMap<Vector<'_>, usize> {
    let mut elements = BTreeMap::new();
    for pvar in pvars.iter().filter(|pvar| matches!(pvar.element, Element::Index(_))) {
        *elements.entry(vector(pvar)).or_default() += 1;
    }
    elements
}

/// Keeps of each vector the first row, which is the one with the largest value. How many went.
fn keep_largest_elements(rows: &mut Vec<&PvarSummary>) -> usize {
    let before = rows.len();
    let mut seen = BTreeSet::new();
    rows.retain(|pvar| !matches!(pvar.element, Element::Index(_)) || seen.insert(vector(pvar)));
    before - rows.len()
}

/// The order of the classes in a report.
fn kind(pvar: &PvarSummary) -> u8 {
    match pvar.effective_class() {
        Class::Timer => 0,
        Class::Counter | Class::Aggregate => 1,
        Class::HighWatermark | Class::LowWatermark => 2,
        Class::Level | Class::Size | Class::Percentage | Class::State => 3,
        Class::Generic => 4,
    }
}

fn measure(measure: Measure) -> String {
    match measure {
        Measure::Delta => "change",
        Measure::Start => "at start",
        Measure::End => "at end",
    }
    .to_owned()
}

fn calls(calls: &[CallSummary], all: bool) -> Section {
    let mut shown: Vec<&CallSummary> = calls.iter().collect();
    shown.sort_by(|a, b| b.count.sum.compare(a.count.sum).then_with(|| a.name.cmp(&b.name)));
    let (shown, cut_off) = first_rows(shown, all);
    let rows = shown.iter().map(|call| {
        let numbers = statistic_cells(&call.count, Unit::Count);
        let moved = call.bytes.as_ref().map_or("-".into(), |moved| bytes(moved.sum.as_f64()));
        let totals = [Unit::Count.number(call.count.sum), moved];
        [call.name.clone()].into_iter().chain(numbers).chain(totals)
    });
    let mut columns = columns(["FUNCTION"]);
    columns.push(Column { title: "ALL RANKS", align: Align::Right });
    columns.push(Column { title: "DATA", align: Align::Right });
    Section {
        title: "Calls of MPI functions".into(),
        columns,
        rows: rows.map(Iterator::collect).collect(),
        notes: more_rows(cut_off),
    }
}

fn warnings(summary: &Summary) -> Section {
    let expected = summary.ranks.reduced;
    let notes = summary.warnings.iter().map(|warning| {
        if warning.ranks == u64::from(expected) {
            warning.text.clone()
        } else {
            format!("{} ({} of {expected} ranks)", warning.text, warning.ranks)
        }
    });
    Section {
        title: "Warnings".into(),
        columns: Vec::new(),
        rows: Vec::new(),
        notes: notes.collect(),
    }
}

fn coverage(coverage: &CoverageSummary, all: bool) -> Section {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for skipped in &coverage.skipped {
        let name = skipped.name.clone().unwrap_or_else(|| format!("#{}", skipped.index));
        let names = reasons.entry(&skipped.reason).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut reasons: Vec<(&str, Vec<String>)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let mut notes: Vec<String> = reasons
        .iter()
        .map(|(reason, names)| {
            format!("{} not read: {reason}: {}", names.len(), some_of(names, all))
        })
        .collect();
    notes.extend(coverage.objects.iter().cloned());
    notes.extend(coverage.advice.iter().map(|advice| format!("to see more: {advice}")));
    Section {
        title: format!(
            "Coverage: {} of {} performance variables read",
            coverage.sampled, coverage.exported
        ),
        columns: Vec::new(),
        rows: Vec::new(),
        notes,
    }
}

fn cost(summary: &Summary) -> Section {
    let overhead = &summary.overhead;
    let largest = |statistic: &Statistic| seconds(statistic.max.as_f64());
    Section {
        title: format!(
            "Cost of gyan: at most {} of the run on a rank",
            percent(overhead.share.max.as_f64())
        ),
        columns: Vec::new(),
        rows: Vec::new(),
        notes: vec![
            format!(
                "{} at the start, {} between, {} at the end (largest of all ranks, without \
                 counting)",
                largest(&overhead.init_s),
                largest(&overhead.sampling_s),
                largest(&overhead.finalize_s),
            ),
            format!("MPI_T_init_thread inside the library: {}", largest(&overhead.mpit_init_s)),
        ],
    }
}

fn first_rows<T>(mut rows: Vec<T>, all: bool) -> (Vec<T>, usize) {
    let cut_off = if all { 0 } else { rows.len().saturating_sub(ROWS_AT_MOST) };
    rows.truncate(rows.len() - cut_off);
    (rows, cut_off)
}

fn more_rows(cut_off: usize) -> Vec<String> {
    let more = || format!("{} more row{}; --all shows them", cut_off, plural(cut_off as u64));
    (cut_off > 0).then(more).into_iter().collect()
}

fn some_of(names: &[impl AsRef<str>], all: bool) -> String {
    let limit = if all { names.len() } else { NAMES_AT_MOST };
    let mut text: Vec<&str> = names.iter().take(limit).map(AsRef::as_ref).collect();
    let more = format!("{} more", names.len().saturating_sub(limit));
    if names.len() > limit {
        text.push(&more);
    }
    text.join(", ")
}

/// What the number of a variable is in.
#[derive(Clone, Copy)]
enum Unit {
    /// Seconds: a timer whose type is a double (MPI 4.1, 15.3.7).
    Seconds,
    /// A number of things, or whatever unit the library's description gives.
    Count,
}

fn unit(pvar: &PvarSummary) -> Unit {
    let timer = pvar.effective_class() == Class::Timer && pvar.datatype == Datatype::Double;
    if timer { Unit::Seconds } else { Unit::Count }
}

impl Unit {
    fn number(self, number: Number) -> String {
        match (self, number) {
            (Unit::Seconds, number) => seconds(number.as_f64()),
            (Unit::Count, Number::Integer(integer)) => integer_text(integer),
            (Unit::Count, Number::Double(double)) => double_text(double),
        }
    }

    fn mean(self, mean: f64) -> String {
        match self {
            Unit::Seconds => seconds(mean),
            Unit::Count => double_text(mean),
        }
    }
}
