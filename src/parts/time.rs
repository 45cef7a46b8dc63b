//! Where the time of an average rank goes.

use gyan_results::{CallSummary, Fidelity, InMpiSummary, Summary, Unit};

use super::sites::places;
use super::waiting::{WaitedFor, waited_for};
use super::{Part, ReportInput, hosts};
use crate::document::page::pictures::{Bar, Bars, Chart, LegendKey, Picture};
use crate::document::page::{PageBlock, ROWS_AT_MOST};
use crate::document::value::{Amount, Bound, InUnit, line, row, seconds, share};
use crate::document::{Section, Value, numbers, spare, texts};
use crate::symbols::sites::CallSites;

/// How many functions the table has.
const FUNCTIONS_AT_MOST: usize = 6;
/// A smaller share of the run is not worth a row, unless it is the first.
const SHARE_AT_LEAST: f64 = 0.001;
/// Length limit for a place in the program, in characters.
const PLACE_AT_MOST: usize = 28;

pub(super) const TIME: Part = Part { option: None, table: None, block: Some(block) };

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let summary = of.summary;
    let section = average_rank(summary, of.called()).ok_or(
        "where the time goes: a gyan that did not time calls wrote the profiles, or no function \
         was called",
    )?;
    let mut block = PageBlock::new("time", "Where the time goes");
    block.charts.extend(average_bar(summary, &section));
    match of.ranks().who_differs(summary) {
        Some(chart) => block.charts.push(chart),
        None if summary.ranks.reduced > 1 => block.says.push(
            "A summary has the ranks with least and most, not each of them; the profiles of the ranks do.".into(),
        ),
        None => {}
    }
    let hosts = hosts::table_of_some(summary, ROWS_AT_MOST);
    Ok(block.with(false, std::iter::once(section).chain(hosts)))
}

/// The rows of the table of an average rank as one bar.
fn average_bar<'a>(summary: &Summary, section: &Section<'a>) -> Option<Chart<'a>> {
    let part = |row: &Vec<Value<'a>>| match row.as_slice() {
        [name, Value::Amount(time), ..] => Some((name.clone(), *time)),
        _ => None,
    };
    let parts: Vec<(Value, Amount)> = section.rows.iter().filter_map(part).collect();
    // Over several threads, what is not in MPI is not known.
    let has_own = summary.wall_in_mpi_s().is_some();
    let key = |(at, (name, _)): (usize, &(Value<'a>, Amount))| LegendKey {
        name: name.clone(),
        is_background: has_own && at == 0,
    };
    let keys = parts.iter().enumerate().map(key).collect();
    let own = parts.first()?.1.number.as_f64();
    let whole: f64 = parts.iter().map(|(_, time)| time.number.as_f64()).sum();
    let in_mpi = part_of_run(summary, summary.in_mpi.as_ref()?);
    let says = if has_own {
        line![seconds(own), " of ", seconds(whole), " in its own code, ", in_mpi, " in MPI"]
    } else {
        line![seconds(whole), " in MPI and in gyan's start, added up over its threads"]
    };
    let bar = Bar { name: "".into(), parts: parts.into_iter().map(|(_, time)| time).collect() };
    Some(Chart::new(
        "Where does the time of an average rank go?",
        says,
        Picture::Bars(Bars { keys, bars: vec![bar] }),
    ))
}

/// The part of the time of all ranks, as the rows of the table have it: ranks that end early count less.
pub(super) fn part_of_run(summary: &Summary, in_mpi: &InMpiSummary) -> Amount {
    let all_s = summary.elapsed_s.as_ref().map_or(0.0, |elapsed| elapsed.sum.as_f64());
    let part = match summary.wall_in_mpi_s() {
        Some(wall_s) if all_s > 0.0 => wall_s / all_s,
        _ => in_mpi.share.avg,
    };
    let error = in_mpi.time_error_s.map(|error| part * error / in_mpi.time_s.sum.as_f64());
    share(part).estimated(error)
}

/// The time of an average rank: rows that add up to the run. None when no calls were timed.
pub(super) fn average_rank<'a>(
    summary: &'a Summary,
    called: Option<&CallSites>,
) -> Option<Section<'a>> {
    let (elapsed, in_mpi) = (summary.elapsed_s.as_ref()?, summary.in_mpi.as_ref()?);
    let ranks = f64::from(summary.ranks.reduced.max(1));
    let (run_s, mpi_s) = (elapsed.sum.as_f64() / ranks, in_mpi.time_s.sum.as_f64() / ranks);
    let of_run = |part_s: f64| share(if run_s > 0.0 { part_s / run_s } else { 0.0 });
    let mut places = places(called);
    let has_places = !places.is_empty();
    let calls = by_time(&summary.calls);
    let is_shown = |(at, call): &(usize, &&CallSummary)| {
        let part = seconds_in(call).unwrap_or(0.0) / ranks / run_s.max(f64::MIN_POSITIVE);
        *at < FUNCTIONS_AT_MOST && (*at == 0 || part >= SHARE_AT_LEAST)
    };
    let shown: Vec<&CallSummary> =
        calls.iter().enumerate().filter(is_shown).map(|(_, call)| *call).collect();
    let error = in_mpi.time_error_s.map(|error| error / ranks);
    // What gyan causes itself. Below what the table shows, it stays in own code.
    let start_s = summary.overhead.mpit_init_s.avg + summary.overhead.init_s.avg;
    let start_s = if start_s >= SHARE_AT_LEAST * run_s { start_s } else { 0.0 };
    let wall_s = summary.wall_in_mpi_s().map(|wall_s| wall_s / ranks);
    // Threads that are in MPI at the same time: their times do not add up to the run.
    let is_together = summary.has_thread_seconds();
    let like = |whole: Amount, part: Amount| Amount { bound: whole.bound, ..part };
    let mut rows = Vec::new();
    if let Some(wall_s) = wall_s {
        let own_s = (run_s - wall_s - start_s).max(0.0);
        let own = seconds(own_s).estimated_rest(error);
        rows.push(row!["own code", own, like(own, of_run(own_s)), "", "", ""]);
        if is_together {
            let wall = seconds(wall_s).known(Fidelity::Estimated);
            rows.push(row!["in MPI, any thread", wall, of_run(wall_s), "", "", ""]);
        }
    }
    let of_run =
        |part_s: f64| -> Value { if is_together { "".into() } else { of_run(part_s).into() } };
    let like_part = |whole: Amount, part: Value<'static>| match part {
        Value::Amount(part) => like(whole, part).into(),
        other => other,
    };
    let mut rest_s = mpi_s;
    for call in &shown {
        let time_s = seconds_in(call).unwrap_or(0.0) / ranks;
        rest_s -= time_s;
        let error = call.time_error_s.map(|error| error / ranks);
        let count = call.count.sum.as_f64() / ranks;
        let per_call = if count > 0.0 { time_s / count } else { 0.0 };
        let longest = call.time_max_s.as_ref().map(|longest| Unit::Seconds.extremes(longest)[1]);
        let calls = Unit::Count.double(count);
        let time = seconds(time_s).estimated(error);
        let part: Value = like_part(time, of_run(time_s));
        let per_call = like(time, seconds(per_call));
        rows.push(row![&call.name, time, part, calls, per_call, longest]);
    }
    let others = summary.calls.len() - shown.len();
    if others > 0 && calls.len() > shown.len() {
        let name = line!["other MPI (", others, ")"];
        let rest_s = rest_s.max(0.0);
        let is_bound = calls.iter().skip(shown.len()).any(|call| call.time_error_s.is_none());
        let rest = seconds(rest_s).estimated(if is_bound { None } else { Some(0.0) });
        rows.push(row![name, rest, like_part(rest, of_run(rest_s)), "", "", ""]);
    }
    if start_s > 0.0 {
        rows.push(row!["start of gyan", seconds(start_s), share(start_s / run_s), "", "", ""]);
    }
    let mut columns = texts(["AVERAGE RANK"]);
    columns.extend(numbers(["TIME", "OF RUN", "CALLS"]));
    columns.extend(spare(["PER CALL", "LONGEST (RANK)"]));
    let waits: Vec<Option<WaitedFor>> = rows.iter().map(|row| waits_for(summary, row)).collect();
    if has_places {
        columns.extend(texts(["WHERE MOST"]));
        for cells in &mut rows {
            let place = match cells.first() {
                Some(Value::Text(name)) => places.remove(name.as_ref()),
                _ => None,
            };
            cells.push(place.map_or("".into(), |place| place.in_short(PLACE_AT_MOST).into()));
        }
    }
    if waits.iter().any(Option::is_some) {
        columns.extend(texts(["WAITS FOR"]));
        for (cells, whom) in rows.iter_mut().zip(waits) {
            cells.push(whom.map_or("".into(), WaitedFor::in_words));
        }
    }
    let is_bound = |row: &Vec<Value>| {
        let is = |of: &Amount| matches!(of.bound, Bound::AtLeast | Bound::AtMost);
        row.iter().any(|cell| matches!(cell, Value::Amount(of) if is(of)))
    };
    let bounds = "≥ at least, ≤ at most: too few calls were timed to say more";
    let mut notes: Vec<Value> = Vec::new();
    notes.extend(rows.iter().any(is_bound).then(|| bounds.into()));
    if is_together {
        let what = "times of functions are thread-seconds: those of all threads of a rank together";
        notes.push(what.into());
    }
    notes.extend(after_the_end(summary, run_s));
    Some(Section { title: "".into(), columns, rows, notes })
}

/// For whom the ranks wait in the function of a row, if they wait there much.
fn waits_for(summary: &Summary, row: &[Value]) -> Option<WaitedFor> {
    let Some(Value::Text(name)) = row.first() else { return None };
    waited_for(summary, name)
}

/// How long an average rank waits for the last one at the end, if that matters.
fn after_the_end(summary: &Summary, run_s: f64) -> Option<Value<'_>> {
    const AT_LEAST: f64 = 0.01;
    let run = summary.run_s.as_ref().filter(|_| summary.ranks.ended_badly.is_empty())?;
    let wait_s = run.max.as_f64() - run.avg;
    (wait_s >= AT_LEAST * run_s).then(|| {
        let last = hosts::rank_and_host(summary, run.max_rank);
        let wait = seconds(wait_s);
        line!["after that an average rank waits ", wait, " for the end of the last one, ", last]
    })
}

pub(super) fn seconds_in(call: &CallSummary) -> Option<f64> {
    call.time_s.as_ref().map(|time| time.sum.as_f64())
}

pub(super) fn by_time(calls: &[CallSummary]) -> Vec<&CallSummary> {
    let mut calls: Vec<&CallSummary> = calls.iter().filter(|call| call.time_s.is_some()).collect();
    calls.sort_by(|one, other| {
        let time = |call: &CallSummary| seconds_in(call).unwrap_or(0.0);
        time(other).total_cmp(&time(one)).then_with(|| one.name.cmp(&other.name))
    });
    calls
}
