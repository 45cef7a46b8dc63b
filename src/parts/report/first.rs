//! The first screen: where the time of an average rank goes, and the rest of the run in a line each.

use gyan_results::{CallSummary, Fidelity, InMpiSummary, Quantity, QueueRow, Summary, TrafficKind};

use crate::document::value::{
    Amount, Bound, Unit, Value, bytes, integer, line, row, seconds, share,
};
use crate::document::{Section, numbers, plural, texts};
use crate::parts::hosts;
use crate::parts::sites::places;
use crate::symbols::sites::CallSites;

/// How many functions the table has.
const FUNCTIONS_AT_MOST: usize = 6;
/// A smaller share of the run is not worth a row, unless it is the first.
const SHARE_AT_LEAST: f64 = 0.001;
/// Length limit for a place in the program, in characters.
const PLACE_AT_MOST: usize = 28;
/// A function with this share of the time in MPI has nearly all of it.
const NEARLY_ALL: f64 = 0.9;
const MOST: f64 = 0.5;

/// `51 % of the run is in MPI, nearly all of it in MPI_Waitall at halo_exchange.c:112`.
pub(crate) fn headline<'a>(summary: &'a Summary, called: Option<&CallSites>) -> Option<Value<'a>> {
    let in_mpi = summary.in_mpi.as_ref()?;
    let whole = in_mpi.time_s.sum.as_f64();
    let part = part_of_run(summary, in_mpi);
    let mut calls = by_time(&summary.calls);
    calls.truncate(1);
    let first = calls.first().filter(|_| whole > 0.0);
    let most = first.and_then(|call| {
        let of_mpi = seconds_in(call)? / whole;
        let how_much = match of_mpi {
            of if of >= NEARLY_ALL => "nearly all of it",
            of if of >= MOST => "most of it",
            _ => return None,
        };
        let at = places(called).remove(&call.name);
        let at = at.map_or("".into(), |at| line![" ", at.in_words()]);
        Some(line![", ", how_much, " in ", &call.name, at])
    });
    let most = most.unwrap_or("".into());
    if summary.wall_in_mpi_s().is_none() {
        let whole = seconds(whole).estimated(in_mpi.time_error_s);
        return Some(line![whole, " in MPI, added up over the threads of all ranks", most]);
    }
    let spread = extremes(summary, in_mpi);
    Some(line![part, " of the run is in MPI", most, spread])
}

/// The part of the time of all ranks, as the rows of the table have it: ranks that end early count less.
fn part_of_run(summary: &Summary, in_mpi: &InMpiSummary) -> Amount {
    let all_s = summary.elapsed_s.as_ref().map_or(0.0, |elapsed| elapsed.sum.as_f64());
    let part = match summary.wall_in_mpi_s() {
        Some(wall_s) if all_s > 0.0 => wall_s / all_s,
        _ => in_mpi.share.avg,
    };
    let error = in_mpi.time_error_s.map(|error| part * error / in_mpi.time_s.sum.as_f64());
    share(part).estimated(error)
}

/// ` (40 % on rank 0 to 60 % on rank 3)`, if ranks differ.
fn extremes<'a>(summary: &'a Summary, in_mpi: &InMpiSummary) -> Value<'a> {
    let [min, max] = Unit::Share.extremes(&in_mpi.share);
    if super::about_the_same(min.number.as_f64(), max.number.as_f64()) {
        return "".into();
    }
    let on = |amount: Amount| {
        let rank = amount.rank.map(|rank| hosts::rank_and_host(summary, rank));
        line![Amount { rank: None, ..amount }, " on ", rank]
    };
    line![" (", on(min), " to ", on(max), ")"]
}

fn seconds_in(call: &CallSummary) -> Option<f64> {
    call.time_s.as_ref().map(|time| time.sum.as_f64())
}

fn by_time(calls: &[CallSummary]) -> Vec<&CallSummary> {
    let mut calls: Vec<&CallSummary> = calls.iter().filter(|call| call.time_s.is_some()).collect();
    calls.sort_by(|one, other| {
        let time = |call: &CallSummary| seconds_in(call).unwrap_or(0.0);
        time(other).total_cmp(&time(one)).then_with(|| one.name.cmp(&other.name))
    });
    calls
}

/// The time of an average rank: rows that add up to the run. None when no calls were timed.
pub(crate) fn average_rank<'a>(
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
    columns.extend(numbers(["TIME", "OF RUN", "CALLS", "PER CALL", "LONGEST (RANK)"]));
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
    let is_bound = |row: &Vec<Value>| {
        let is = |of: &Amount| matches!(of.bound, Bound::AtLeast | Bound::AtMost);
        row.iter().any(|cell| matches!(cell, Value::Amount(of) if is(of)))
    };
    let mut notes = Vec::new();
    if rows.iter().any(is_bound) {
        notes.push("≥ at least, ≤ at most: too few calls were timed to say more".into());
    }
    if is_together {
        let what = "times of functions are thread-seconds: those of all threads of a rank together";
        notes.push(what.into());
    }
    notes.extend(after_the_end(summary, run_s));
    Some(Section { title: "".into(), columns, rows, notes })
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

/// A line each: messages, queues, variables, and gyan itself.
pub(crate) fn lines<'a>(
    summary: &'a Summary,
    rows: &[QueueRow],
    eager: Option<(f64, f64)>,
) -> Section<'a> {
    let lines =
        [messages(summary, eager), queues(summary, rows), coverage(summary), Some(gyan(summary))];
    Section::of_notes("", lines.into_iter().flatten().collect())
}

fn messages(summary: &Summary, eager: Option<(f64, f64)>) -> Option<Value<'_>> {
    let messages = summary.peers.iter().find(|of| of.kind == TrafficKind::Messages)?;
    let (number, moved) = (messages.number as f64, messages.bytes as f64);
    if number == 0.0 {
        return None;
    }
    let peers = messages.ranks.iter().map(|of| of.peers);
    let is_all = messages.ranks.len() == summary.ranks.reduced as usize;
    let least = if is_all { peers.clone().min()? } else { 0 };
    let most = peers.max()?;
    let peers = match (least, most) {
        (0, most) => line!["each rank to at most ", most, " rank", plural(most)],
        (least, most) if least == most => line!["each rank to ", most, " rank", plural(most)],
        (least, most) => line!["each rank to ", least, " to ", most, " ranks"],
    };
    let itself = if most >= u64::from(summary.ranks.expected) { ", also to itself" } else { "" };
    let size = bytes(moved / number);
    let all = integer(messages.number);
    let eager = eager.map_or("".into(), |(limit, above)| match above {
        0.0 => line![", all below the eager limit of ", bytes(limit)],
        above => line![", ", share(above), " above the eager limit of ", bytes(limit)],
    });
    Some(line![
        "messages: ",
        all,
        " of ",
        size,
        " on average, ",
        peers,
        itself,
        eager,
        " (--peers)"
    ])
}

fn queues<'a>(summary: &'a Summary, rows: &[QueueRow]) -> Option<Value<'a>> {
    let longest = |quantity: Quantity| {
        let of = rows.iter().filter(|row| row.quantity == quantity).filter_map(|row| row.max);
        of.max_by(|one, other| one.value.total_cmp(&other.value)).filter(|most| most.value > 0.0)
    };
    let mut parts: Vec<Value> = Vec::new();
    for (quantity, noun) in [
        (Quantity::UnexpectedLength, "unexpected message"),
        (Quantity::PostedLength, "posted receive"),
    ] {
        if let Some(most) = longest(quantity) {
            let length = Unit::Count.double(most.value);
            let plural = plural(u64::from(most.value > 1.0) + 1);
            let rank = Value::Rank(most.rank);
            parts.push(line!["up to ", length, " ", noun, plural, " (rank ", rank, ")"]);
        }
    }
    let late = rows.iter().filter(|row| row.quantity == Quantity::LateSenders);
    let late_s: f64 = late.filter_map(|row| row.total).sum();
    if late_s > 0.0 {
        let ranks = f64::from(summary.ranks.reduced.max(1));
        let each = Amount { fidelity: Fidelity::Estimated, ..seconds(late_s / ranks) };
        // Threads that wait at the same time.
        let who = if summary.has_thread_seconds() {
            "the threads of an average rank waited, together, about "
        } else {
            "an average rank waited about "
        };
        parts.push(line![who, each, " for messages"]);
    }
    if parts.is_empty() {
        return None;
    }
    let mut whole: Vec<Value> = vec!["queues: ".into()];
    for (at, part) in parts.into_iter().enumerate() {
        whole.extend([if at > 0 { ", ".into() } else { "".into() }, part]);
    }
    whole.push(" (--queues)".into());
    Some(Value::Line(whole))
}

fn coverage(summary: &Summary) -> Option<Value<'_>> {
    let of = &summary.coverage;
    if of.exported == 0 && of.advice.is_empty() {
        return None;
    }
    let nonzero = summary.pvars.iter().filter(|pvar| !pvar.statistic.is_zero());
    let mut names: Vec<&str> = nonzero.map(|pvar| pvar.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let more = if of.advice.is_empty() { "" } else { "; how to see more: --coverage" };
    let read = line!["inside the MPI library: ", of.sampled, " of its ", of.exported];
    let is = if names.len() == 1 { " is" } else { " are" };
    let told =
        line![" performance variables could be read, ", names.len(), is, " not 0 (--variables)"];
    Some(line![read, told, more])
}

fn gyan(summary: &Summary) -> Value<'_> {
    let overhead = &summary.overhead;
    let Some(running) = &overhead.running_share else {
        let most = Unit::Share.of(overhead.share.max);
        return line!["cost of gyan: at most ", most, " of the run on a rank (--coverage)"];
    };
    let budget = match (overhead.budget, overhead.over_budget.len()) {
        (Some(budget), 0) => line![" (budget: ", share(budget), ")"],
        (Some(budget), over) => {
            let ranks = line![over, " rank", plural(over as u64)];
            line![", BUDGET OF ", share(budget), " EXCEEDED on ", ranks]
        }
        (None, _) => " (no budget)".into(),
    };
    let ends = seconds(overhead.init_s.max.as_f64() + overhead.finalize_s.max.as_f64());
    let while_it_ran = line![Unit::Share.of(running.max), " while the program ran", budget];
    let at_ends = line![", and ", ends, " at its start and end"];
    line!["cost of gyan on a rank: at most ", while_it_ran, at_ends, " (--coverage)"]
}
