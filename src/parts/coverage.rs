//! What was read of what there is, and what was not.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gyan_results::{CoverageSummary, Number, ObjectsLeftOutSummary, Unit};

use super::cost::cost;
use super::{Part, PartOption, ReportInput, report};
use crate::document::limits::some_of;
use crate::document::page::PageBlock;
use crate::document::value::{InUnit, line};
use crate::document::{Presentation, Section, Value};

/// What was read.
pub(super) const COVERAGE: Part = Part {
    option: Some(PartOption::new(
        "coverage",
        "Which variables were read and which were not, and what gyan cost",
        |of| Ok(show(of)),
    )),
    table: None,
    block: Some(|of| Ok(block(of))),
};

fn show<'r>(of: &'r ReportInput) -> Presentation<'r> {
    let sections = vec![coverage(&of.summary.coverage, of.all), cost(of.summary, of.all)];
    report::shown(of, sections)
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
    let [min, max] = [number.min, number.max].map(|number| Unit::Count.amount(number));
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

fn block<'r>(of: &'r ReportInput) -> PageBlock<'r> {
    let summary = of.summary;
    let Section { title, notes, .. } = coverage(&summary.coverage, true);
    let mut block = PageBlock::new("coverage", "What was read, and what was not");
    block.details = "Why, and how to see more";
    block.says.push(title);
    block.with(false, [Section::of_notes("", notes)])
}
