//! The tables of calls: by time if that is known, and by number.

use std::collections::BTreeMap;

use gyan_results::{CallSummary, Fidelity, Number, Summary, Unit};

use super::{Part, ReportInput};
use crate::document::limits::{first_rows, more_rows};
use crate::document::page::PageBlock;
use crate::document::statistic::{columns, statistic_cells};
use crate::document::value::{Amount, Bound, InUnit, Plot, bytes, line, row, seconds, share};
use crate::document::{Kind, Section, Value, column, numbers, texts};

/// Functions of MPI.
pub(super) const FUNCTIONS: Part = Part { option: None, table: None, block: Some(block) };

/// The whole that the time of calls is a share of.
pub(crate) struct ShareOf {
    pub(crate) column: &'static str,
    /// Seconds of a rank, on average; none in profiles of gyan before it timed calls, and where the times of threads that
    /// were in MPI together are no part of it.
    pub(crate) average_s: Option<f64>,
}

impl ShareOf {
    pub(crate) fn run(summary: &Summary) -> ShareOf {
        let elapsed = summary.elapsed_s.as_ref().filter(|_| !summary.has_thread_seconds());
        let average_s = elapsed.map(|elapsed| elapsed.avg);
        ShareOf { column: "OF RUN", average_s }
    }
}

pub(crate) fn calls<'a>(calls: &'a [CallSummary], whole: &ShareOf, all: bool) -> Vec<Section<'a>> {
    let timed = calls.iter().any(|call| call.time_s.is_some());
    let mut sections = Vec::new();
    if timed {
        sections.push(by_time(calls, whole, all));
    }
    if !calls.is_empty() && (all || !timed) {
        sections.push(by_count(calls, all));
    }
    sections
}

/// Seconds on all ranks.
pub(crate) fn time(call: &CallSummary) -> Option<f64> {
    call.time_s.as_ref().map(|time| time.sum.as_f64())
}

fn by_time<'a>(calls: &'a [CallSummary], whole: &ShareOf, all: bool) -> Section<'a> {
    let mut shown: Vec<&CallSummary> = calls.iter().collect();
    // Functions that were not timed come last.
    shown.sort_by(|a, b| {
        let time = |call| time(call).unwrap_or(-1.0);
        time(b)
            .total_cmp(&time(a))
            .then_with(|| b.count.sum.compare(a.count.sum))
            .then_with(|| a.name.cmp(&b.name))
    });
    let (shown, cut_off) = first_rows(shown, all);
    let mut columns = texts(["FUNCTION"]);
    columns.extend(numbers(["CALLS", "TIME", whole.column, "PER CALL", "LONGEST (RANK)"]));
    columns.extend(numbers(["MIN (RANK)", "MAX (RANK)", "DATA"]));
    let mut notes = more_rows(cut_off);
    notes.push("TIME is that of all ranks together, MIN and MAX are those of one rank".into());
    notes.extend(estimated(calls, &shown));
    let rows = shown.into_iter().map(|call| time_cells(call, whole)).collect();
    Section { title: "Calls of MPI functions, by time".into(), columns, rows, notes }
}

/// What the estimates rest on, when any of the `shown` numbers is an estimate.
fn estimated(calls: &[CallSummary], shown: &[&CallSummary]) -> Option<Value<'static>> {
    let known = shown.iter().filter(|call| call.time_s.is_some());
    let totals = || known.clone().filter_map(|call| total_of(call));
    let with_error = totals().any(|total| total.error.is_some());
    let at_least = totals().any(|total| total.bound == Bound::AtLeast);
    let timed: u64 = calls.iter().map(|call| call.timed).sum();
    let count = calls.iter().map(|call| call.count.sum);
    let count = count.fold(Number::Integer(0), Number::plus);
    let error = if with_error { "; ± is the standard error of the estimate" } else { "" };
    let least = if at_least { "; ≥ where too few were to tell how wrong it is" } else { "" };
    (with_error || at_least).then(|| line![timed, " of ", count, " calls were timed", error, least])
}

/// The time on all ranks, with its error if known.
fn total_of(call: &CallSummary) -> Option<Amount> {
    let time = call.time_s.as_ref()?;
    Some(Unit::Seconds.amount(time.sum).estimated(call.time_error_s))
}

fn time_cells<'a>(call: &'a CallSummary, whole: &ShareOf) -> Vec<Value<'a>> {
    let time = call.time_s.as_ref();
    let total = total_of(call);
    let bound = total.map_or(Bound::None, |total| total.bound);
    let fidelity = total.map_or(Fidelity::Exact, |total| total.fidelity);
    let like = |amount: Amount| Amount { fidelity, bound, ..amount };
    let part = time.zip(whole.average_s).map(|(time, whole)| like(share(time.avg / whole)));
    // The error of averages: not every rank need know a time.
    let calls = call.count.avg;
    let per_call = time.map(|time| like(seconds(if calls > 0.0 { time.avg / calls } else { 0.0 })));
    let longest =
        time.and(call.time_max_s.as_ref()).map(|longest| Unit::Seconds.extremes(longest)[1]);
    let [min, max] = match time.map(|time| Unit::Seconds.extremes(time)) {
        Some(extremes) => extremes.map(|of| of.known(fidelity).into()),
        None => [Value::Nothing, Value::Nothing],
    };
    row![&call.name, call.count.sum, total, part, per_call, longest, min, max, data(call)]
}

fn data(call: &CallSummary) -> Value<'static> {
    call.bytes.as_ref().map(|moved| bytes(moved.sum.as_f64())).into()
}

fn by_count(calls: &[CallSummary], all: bool) -> Section<'_> {
    let mut shown: Vec<&CallSummary> = calls.iter().collect();
    shown.sort_by(|a, b| b.count.sum.compare(a.count.sum).then_with(|| a.name.cmp(&b.name)));
    let (shown, cut_off) = first_rows(shown, all);
    let rows = shown.into_iter().map(|call| {
        let [min, average, max, deviation] = statistic_cells(&call.count, Unit::Count);
        row![&call.name, min, average, max, deviation, call.count.sum, data(call)]
    });
    let mut columns = columns(["FUNCTION"]);
    columns.extend(numbers(["ALL RANKS", "DATA"]));
    Section {
        title: "Calls of MPI functions".into(),
        columns,
        rows: rows.collect(),
        notes: more_rows(cut_off),
    }
}

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let summary = of.summary;
    if summary.calls.is_empty() {
        return Err("functions of MPI: no rank called one that is counted".into());
    }
    let mut sections = calls(&summary.calls, &ShareOf::run(summary), true);
    let by_name: BTreeMap<&str, &CallSummary> =
        summary.calls.iter().map(|call| (call.name.as_str(), call)).collect();
    if let Some(by_time) = sections.first_mut().filter(|_| summary.in_mpi.is_some()) {
        add_durations(by_time, &by_name);
    }
    let mut block = PageBlock::new("functions", "Functions of MPI");
    block.details = "The same by rank";
    let mut sections = sections.into_iter();
    block.extend(true, sections.next());
    Ok(block.with(false, sections))
}

/// A column that shows how long the calls took, on one scale for all functions.
fn add_durations<'a>(section: &mut Section<'a>, calls: &BTreeMap<&str, &'a CallSummary>) {
    let histograms = || calls.values().map(|call| &call.time_histogram);
    let first = histograms().filter_map(|of| of.iter().position(|&count| count > 0)).min();
    let last = histograms().filter_map(|of| of.iter().rposition(|&count| count > 0)).max();
    let (Some(first), Some(last)) = (first, last) else { return };
    for row in &mut section.rows {
        let call = match row.first() {
            Some(Value::Text(name)) => calls.get(name.as_ref()),
            _ => None,
        };
        let count = |at: usize| call.and_then(|call| call.time_histogram.get(at)).copied();
        let peaks: Vec<Option<f64>> =
            (first..=last).map(|at| count(at).filter(|&n| n > 0).map(|n| n as f64)).collect();
        let highest = peaks.iter().flatten().fold(0.0_f64, |most, &n| most.max(n));
        row.push(match highest {
            0.0 => Value::Nothing,
            _ => Value::Plot(Plot::Course { peaks: peaks.into(), highest }),
        });
    }
    section.columns.push(column("HOW LONG", Kind::Text));
    let below = |at: usize| seconds(1e-9 * 2_f64.powi(i32::try_from(at).unwrap_or(i32::MAX)));
    let from = if first == 0 { seconds(0.0) } else { below(first - 1) };
    section.notes.push(line![
        "HOW LONG shows how many of the timed calls took how long, from ",
        from,
        " at the left to ",
        below(last),
        " at the right, each bar twice as long as the one before"
    ]);
}
