//! The tables of calls: by the time in them where that is known, and by their number.

use gyan_results::{CallSummary, Number, Summary};

use super::super::numbers::{bytes, grouped, seconds, share};
use super::super::statistic::{Unit, columns, extreme_cells, statistic_cells};
use super::super::{Align, Column};
use super::{Section, first_rows, more_rows};

/// What the time of calls is a share of.
pub(super) struct Whole {
    pub(super) column: &'static str,
    /// Seconds of a rank, on average; none in profiles of gyan before it timed calls.
    pub(super) average_s: Option<f64>,
}

impl Whole {
    pub(super) fn run(summary: &Summary) -> Whole {
        let average_s = summary.elapsed_s.as_ref().map(|elapsed| elapsed.avg);
        Whole { column: "OF RUN", average_s }
    }
}

pub(super) fn calls(calls: &[CallSummary], whole: &Whole, all: bool) -> Vec<Section> {
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
pub(super) fn time(call: &CallSummary) -> Option<f64> {
    call.time_s.as_ref().map(|time| time.sum.as_f64())
}

fn by_time(calls: &[CallSummary], whole: &Whole, all: bool) -> Section {
    let mut shown: Vec<&CallSummary> = calls.iter().collect();
    // What was not timed last.
    shown.sort_by(|a, b| {
        let time = |call| time(call).unwrap_or(-1.0);
        time(b)
            .total_cmp(&time(a))
            .then_with(|| b.count.sum.compare(a.count.sum))
            .then_with(|| a.name.cmp(&b.name))
    });
    let (shown, cut_off) = first_rows(shown, all);
    let unsure = shown.iter().any(|call| relative_error(call) != Some(0.0) && time(call).is_some());
    let rows = shown.iter().map(|call| time_cells(call, whole, unsure)).collect();
    let right = |title| Column { title, align: Align::Right };
    let mut columns = vec![
        Column { title: "FUNCTION", align: Align::Left },
        right("CALLS"),
        right("TIME"),
        right("±"),
        right(whole.column),
        right("PER CALL"),
        right("LONGEST (RANK)"),
        right("MIN (RANK)"),
        right("MAX (RANK)"),
        right("DATA"),
    ];
    if !unsure {
        columns.retain(|column| column.title != "±");
    }
    let mut notes = more_rows(cut_off);
    notes.push("TIME is that of all ranks together, MIN and MAX are those of one rank".to_owned());
    if unsure {
        notes.push(estimated(calls));
    }
    Section { title: "Calls of MPI functions, by time".into(), columns, rows, notes }
}

/// What the estimates stand on.
fn estimated(calls: &[CallSummary]) -> String {
    let timed: u64 = calls.iter().map(|call| call.timed).sum();
    let count = calls.iter().map(|call| call.count.sum);
    let count = count.fold(Number::Integer(0), Number::plus);
    format!(
        "{} of {} calls were timed; ± is the standard error of the estimate",
        grouped(timed.into()),
        Unit::Count.number(count),
    )
}

/// The standard error as a share of the time; none where it is not known.
fn relative_error(call: &CallSummary) -> Option<f64> {
    let error = call.time_error_s?;
    let time = time(call)?;
    Some(if time > 0.0 { error / time } else { 0.0 })
}

fn time_cells(call: &CallSummary, whole: &Whole, unsure: bool) -> Vec<String> {
    let none = || "-".to_owned();
    let mut cells = vec![call.name.clone(), Unit::Count.number(call.count.sum)];
    match &call.time_s {
        Some(time) => {
            cells.push(seconds(time.sum.as_f64()));
            if unsure {
                cells.push(match relative_error(call) {
                    Some(0.0) => String::new(),
                    Some(error) => share(error),
                    None => "?".into(),
                });
            }
            cells.push(whole.average_s.map_or_else(none, |whole| share(time.avg / whole)));
            // Of averages: not every rank need know a time.
            let per_call = if call.count.avg > 0.0 { time.avg / call.count.avg } else { 0.0 };
            cells.push(seconds(per_call));
            let longest = call.time_max_s.as_ref();
            cells.push(longest.map_or_else(none, |longest| {
                let [_, max] = extreme_cells(longest, Unit::Seconds);
                max
            }));
            cells.extend(extreme_cells(time, Unit::Seconds));
        }
        None => cells.extend((0..if unsure { 7 } else { 6 }).map(|_| none())),
    }
    cells.push(data(call));
    cells
}

fn data(call: &CallSummary) -> String {
    call.bytes.as_ref().map_or("-".into(), |moved| bytes(moved.sum.as_f64()))
}

fn by_count(calls: &[CallSummary], all: bool) -> Section {
    let mut shown: Vec<&CallSummary> = calls.iter().collect();
    shown.sort_by(|a, b| b.count.sum.compare(a.count.sum).then_with(|| a.name.cmp(&b.name)));
    let (shown, cut_off) = first_rows(shown, all);
    let rows = shown.iter().map(|call| {
        let numbers = statistic_cells(&call.count, Unit::Count);
        let totals = [Unit::Count.number(call.count.sum), data(call)];
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
