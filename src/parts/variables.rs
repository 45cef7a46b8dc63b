//! The tables of performance variables: which rows does a reader need, and in which order?

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{
    CallSummary, Class, Element, Fidelity, Measure, PvarSummary, SamplesSummary, Statistic,
    Summary, Unit,
};

use super::functions::ShareOf;
use super::report::tables;
use super::{Part, PartOption, ReportInput, report};
use crate::document::limits::{first_rows, more_rows, some_of};
use crate::document::page::{PageBlock, ROWS_IF_OPEN};
use crate::document::statistic::{columns, statistic_cells};
use crate::document::value::{line, row};
use crate::document::{Presentation, Section, Value, plural};

pub(super) const VARIABLES: Part = Part {
    option: Some(PartOption::new(
        "variables",
        "The performance variables of the MPI library, and what their classes mean",
        |of| Ok(show(of)),
    )),
    table: None,
    block: Some(block),
};

fn show<'r>(of: &'r ReportInput) -> Presentation<'r> {
    let summary = of.summary;
    let variables = (!summary.pvars.is_empty()).then(|| pvars(&summary.pvars, of.all));
    let sections = variables.into_iter().chain(states(&summary.samples, of.all));
    report::shown(of, sections.chain(classes(summary)).collect())
}

pub(crate) fn pvars(pvars: &[PvarSummary], all: bool) -> Section<'_> {
    let shown: Vec<&PvarSummary> =
        pvars.iter().filter(|pvar| all || !pvar.statistic.is_zero()).collect();
    let zero = pvars.len() - shown.len();
    let elements = elements_of(pvars);
    let mut variables = by_variable(shown);
    let mut hidden = 0;
    for rows in &mut variables {
        if !all {
            hidden += keep_largest_elements(rows);
            drop_repetitions(rows);
        }
        rows.sort_by_key(|pvar| (!matches!(pvar.element, Element::Sum), pvar.element, order(pvar)));
    }
    // Times first, then counts, levels last.
    variables.sort_by(|a, b| {
        let largest = |rows: &[&PvarSummary]| {
            rows.iter().map(|row| row.statistic.max).max_by(|a, b| a.compare(*b))
        };
        let (Some(first), Some(other)) = (a.first(), b.first()) else {
            return a.len().cmp(&b.len());
        };
        let by_size = || match (largest(a), largest(b)) {
            (Some(a), Some(b)) => b.compare(a),
            _ => std::cmp::Ordering::Equal,
        };
        kind(first).cmp(&kind(other)).then_with(by_size).then_with(|| first.name.cmp(&other.name))
    });
    let (shown, cut_off) = first_rows(variables.into_iter().flatten().collect(), all);
    let rows = shown.iter().map(|pvar| {
        let of: Value = match (elements.get(&variable(pvar)), pvar.element) {
            (Some(&elements), Element::Index(_)) if !all && elements > 1 => line![" of ", elements],
            _ => "".into(),
        };
        let class: Value = match pvar.behaves_as {
            Some(real) => line![real.name(), " (", pvar.class.name(), ")"],
            None => pvar.class.name().into(),
        };
        let name = line![&pvar.name, pvar.element.to_string(), of];
        let (fidelity, measure) = measure(pvar.measure);
        let numbers = statistic_cells(&pvar.statistic, pvar.unit());
        let mut cells = row![name, class, pvar.object.as_ref(), measure];
        cells.extend(numbers.map(|number| Value::from(number.known(fidelity))));
        cells
    });
    let rows = rows.collect();
    let mut notes = Vec::new();
    if zero > 0 {
        let more = if zero == pvars.len() { "" } else { " more" };
        let numbers = line![zero, more, " number", plural(zero as u64)];
        notes.push(line![numbers, " read 0 on every rank; --all shows them"]);
    }
    if hidden > 0 {
        notes.push(
            "for a vector, the sum or the element with the largest value; --all shows every element"
                .into(),
        );
    }
    notes.extend(more_rows(cut_off));
    notes.extend(remarks(&shown, all));
    Section {
        title: "Performance variables of the MPI library".into(),
        columns: columns(["VARIABLE", "CLASS", "OBJECT", "VALUE"]),
        rows,
        notes,
    }
}

/// The shares of time of variables that have states.
pub(crate) fn states(samples: &[SamplesSummary], all: bool) -> Option<Section<'_>> {
    let rows = samples.iter().flat_map(|samples| {
        samples.states.iter().map(|state| {
            let mut cells = row![&samples.name, samples.object.as_ref(), &state.state];
            let shares = statistic_cells(&state.share, Unit::Share);
            cells.extend(shares.map(|share| Value::from(share.known(Fidelity::Sampled))));
            cells
        })
    });
    let (rows, cut_off) = first_rows(rows.collect::<Vec<_>>(), all);
    (!rows.is_empty()).then(|| Section {
        title: "States of the MPI library, as shares of the time".into(),
        columns: columns(["VARIABLE", "OBJECT", "STATE"]),
        rows,
        notes: more_rows(cut_off),
    })
}

fn remarks<'a>(shown: &[&'a PvarSummary], all: bool) -> Vec<Value<'a>> {
    let partial = shown.iter().filter(|pvar| pvar.statistic.not_finite > 0);
    let mut notes: Vec<Value> = partial
        .map(|pvar| {
            line![&pvar.name, ": ", pvar.statistic.not_finite, " ranks have no finite value"]
        })
        .collect();
    let mut remarks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pvar in shown {
        for note in &pvar.notes {
            let names = remarks.entry(note).or_default();
            if !names.contains(&pvar.name.as_str()) {
                names.push(&pvar.name);
            }
        }
    }
    let remarks = remarks.into_iter();
    notes.extend(remarks.map(|(note, names)| line![some_of(names, all), ": ", note]));
    notes
}

/// What the numbers of one variable have in common.
type Variable<'a> = (&'a str, Class, Option<&'a str>);

fn variable(pvar: &PvarSummary) -> Variable<'_> {
    (&pvar.name, pvar.class, pvar.object.as_deref())
}

fn by_variable(rows: Vec<&PvarSummary>) -> Vec<Vec<&PvarSummary>> {
    let mut variables: BTreeMap<Variable<'_>, Vec<&PvarSummary>> = BTreeMap::new();
    for row in rows {
        variables.entry(variable(row)).or_default().push(row);
    }
    variables.into_values().collect()
}

/// How many elements each vector has.
fn elements_of(pvars: &[PvarSummary]) -> BTreeMap<Variable<'_>, usize> {
    let mut elements = BTreeMap::new();
    for pvar in pvars {
        if let Element::Index(index) = pvar.element {
            let count = elements.entry(variable(pvar)).or_insert(0);
            *count = (*count).max(index + 1);
        }
    }
    elements
}

/// Of the elements of a vector, keeps the one with the largest value of each measure. Returns how many were
/// dropped.
fn keep_largest_elements(rows: &mut Vec<&PvarSummary>) -> usize {
    let before = rows.len();
    let mut largest: BTreeMap<Measure, &PvarSummary> = BTreeMap::new();
    for row in rows.iter().filter(|row| matches!(row.element, Element::Index(_))) {
        let kept = largest.entry(row.measure).or_insert(row);
        if row.statistic.max.compare(kept.statistic.max).is_gt() {
            *kept = row;
        }
    }
    rows.retain(|row| match largest.get(&row.measure) {
        Some(kept) if matches!(row.element, Element::Index(_)) => row.element == kept.element,
        _ => true,
    });
    before - rows.len()
}

/// Keeps only the rows of a variable that say something new: one row for a level that never changed, for a
/// watermark what it reached, and for an element of a vector nothing that the sum already shows.
fn drop_repetitions(rows: &mut Vec<&PvarSummary>) {
    let statistic = |measure: Measure, element: Element| {
        rows.iter()
            .find(|row| row.measure == measure && row.element == element)
            .map(|row| &row.statistic)
    };
    let same = |element: Element, one: Measure, other: Measure| match (
        statistic(one, element),
        statistic(other, element),
    ) {
        (Some(one), Some(other)) => reads_the_same(one, other),
        _ => false,
    };
    let has_sum = statistic(Measure::SampledMean, Element::Sum).is_some();
    let needed = |row: &PvarSummary| {
        let element = row.element;
        let is_element = matches!(element, Element::Index(_));
        let constant = same(element, Measure::SampledMean, Measure::SampledMax);
        let ends_as = |measure| same(element, measure, Measure::End);
        match (row.measure, row.effective_class()) {
            (Measure::Delta | Measure::Start | Measure::End, _) => true,
            (Measure::SampledMin, Class::LowWatermark)
            | (Measure::SampledMax, Class::HighWatermark) => !ends_as(row.measure),
            (Measure::SampledMin, _)
            | (Measure::SampledMax, Class::LowWatermark)
            | (Measure::SampledMean, Class::HighWatermark | Class::LowWatermark) => false,
            (Measure::SampledMean, _) => !(constant || has_sum && is_element),
            (Measure::SampledMax, _) => {
                !(has_sum && is_element || constant && ends_as(Measure::SampledMax))
            }
        }
    };
    let needed: BTreeSet<(Element, Measure)> =
        rows.iter().filter(|row| needed(row)).map(|row| (row.element, row.measure)).collect();
    rows.retain(|row| needed.contains(&(row.element, row.measure)));
}

fn reads_the_same(one: &Statistic, other: &Statistic) -> bool {
    one.min.compare(other.min).is_eq() && one.max.compare(other.max).is_eq() && {
        // Means of equal numbers may differ by their rounding.
        let size = one.avg.abs().max(other.avg.abs());
        (one.avg - other.avg).abs() <= size * 1e-12
    }
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

/// The order of the readings of one element.
fn order(pvar: &PvarSummary) -> u8 {
    match pvar.measure {
        Measure::Delta => 0,
        Measure::SampledMax => 1,
        Measure::SampledMean => 2,
        Measure::SampledMin => 3,
        Measure::Start => 4,
        Measure::End => 5,
    }
}

fn measure(measure: Measure) -> (Fidelity, &'static str) {
    match measure {
        Measure::Delta => (Fidelity::Exact, "change"),
        Measure::Start => (Fidelity::Exact, "at start"),
        Measure::End => (Fidelity::Exact, "at end"),
        Measure::SampledMin => (Fidelity::Sampled, "sampled min"),
        Measure::SampledMean => (Fidelity::Sampled, "sampled mean"),
        Measure::SampledMax => (Fidelity::Sampled, "sampled max"),
    }
}

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let summary = of.summary;
    if summary.pvars.is_empty() {
        return Err("performance variables: the library exports none that was read".into());
    }
    let mut block = PageBlock::new("variables", "What the MPI library counted");
    block.says.push(
        "What a variable is, in the words of the library, is in no profile: gyan varlist --pvars --long lists it."
            .into(),
    );
    let of_functions: &[CallSummary] = &[];
    let sections =
        tables(&summary.pvars, of_functions, &summary.samples, &ShareOf::run(summary), true);
    for section in sections {
        let is_open = section.rows.len() <= ROWS_IF_OPEN;
        block.push(is_open, section);
    }
    Ok(block.with(true, classes(summary)))
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

#[cfg(test)]
mod tests {
    use gyan_results::{Datatype, Number, Statistics};

    use super::*;
    use crate::render::text;

    fn row(class: Class, element: Element, measure: Measure, value: i128) -> PvarSummary {
        PvarSummary {
            name: "length".into(),
            class,
            behaves_as: None,
            object: None,
            element,
            measure,
            datatype: Datatype::Unsigned,
            statistic: Statistics::of(Number::Integer(value), 0).finish().unwrap(),
            notes: Vec::new(),
        }
    }

    fn shown(class: Class, readings: [(Measure, i128); 4]) -> Vec<String> {
        let rows = readings.map(|(measure, value)| row(class, Element::Scalar, measure, value));
        pvars(&rows, false).rows.iter().map(|row| text(&row[3])).collect()
    }

    #[test]
    fn a_level_shows_its_sampled_maximum_and_mean_and_the_end() {
        use Measure::{End, SampledMax, SampledMean, SampledMin};
        let readings = [(SampledMin, 1), (SampledMean, 3), (SampledMax, 7), (End, 2)];
        assert_eq!(shown(Class::Level, readings), ["sampled max", "sampled mean", "at end"]);
    }

    #[test]
    fn a_level_that_never_changed_is_one_row() {
        use Measure::{End, SampledMax, SampledMean, SampledMin};
        let readings = [SampledMin, SampledMean, SampledMax, End].map(|measure| (measure, 5));
        assert_eq!(shown(Class::Level, readings), ["at end"]);
    }

    #[test]
    fn a_watermark_shows_what_it_reached() {
        use Measure::{End, SampledMax, SampledMean, SampledMin};
        let readings = [(SampledMin, 1), (SampledMean, 3), (SampledMax, 7), (End, 7)];
        assert_eq!(shown(Class::HighWatermark, readings), ["at end"]);
        let reset = [(SampledMin, 1), (SampledMean, 3), (SampledMax, 9), (End, 7)];
        assert_eq!(shown(Class::HighWatermark, reset), ["sampled max", "at end"]);
    }

    #[test]
    fn of_a_sampled_vector_the_sum_is_shown_and_with_all_each_element() {
        use Measure::{SampledMax, SampledMean};
        let of = |element, measure, value| row(Class::Size, element, measure, value);
        let rows = [
            of(Element::Index(0), SampledMax, 4),
            of(Element::Index(0), SampledMean, 3),
            of(Element::Index(1), SampledMax, 8),
            of(Element::Index(1), SampledMean, 1),
            of(Element::Sum, SampledMax, 9),
            of(Element::Sum, SampledMean, 4),
        ];
        let names = |all| -> Vec<(String, String)> {
            let rows = pvars(&rows, all).rows;
            rows.iter().map(|row| (text(&row[0]), text(&row[3]))).collect()
        };
        let sum = |measure: &str| ("length[sum]".to_owned(), measure.to_owned());
        assert_eq!(names(false), [sum("sampled max"), sum("sampled mean")]);
        assert_eq!(names(true).len(), 6);
        assert!(names(true).contains(&("length[1]".into(), "sampled max".into())));
    }
}
