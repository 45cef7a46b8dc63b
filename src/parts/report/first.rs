//! The first screen: where the time of an average rank goes, and the rest of the run in a line each.

use gyan_results::{InMpiSummary, Quantity, QueueRow, Summary, TrafficKind, Unit};

use crate::document::value::{Amount, InUnit, bytes, integer, line, seconds, share};
use crate::document::{Value, plural};
use crate::parts::sites::places;
use crate::parts::time::{by_time, part_of_run, seconds_in};
use crate::parts::{hosts, machine};
use crate::symbols::sites::CallSites;

/// A function with this share of the time in MPI has nearly all of it.
const NEARLY_ALL: f64 = 0.9;
const MOST: f64 = 0.5;
/// To open `MPI_T` takes some libraries hundreds of milliseconds; less is not worth naming.
const OPENING_AT_LEAST_S: f64 = 0.001;

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
    let run = match summary.job.known_until_s {
        Some(known_s) => line![" of the ", seconds(known_s), " that are known"],
        None => " of the run".into(),
    };
    Some(line![part, run, " is in MPI", most, spread])
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

/// A line each: messages, queues, variables, and gyan itself.
pub(crate) fn lines<'a>(
    summary: &'a Summary,
    rows: &[QueueRow],
    eager: Option<(f64, f64)>,
) -> impl Iterator<Item = Value<'a>> {
    let lines = [
        messages(summary, eager),
        queues(rows),
        machine::energy_line(summary),
        coverage(summary),
        Some(gyan(summary)),
    ];
    lines.into_iter().flatten()
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
        (0, most) => line!["at most ", most, " rank", plural(most)],
        (least, most) if least == most => line![most, " rank", plural(most)],
        (least, most) if least + 1 == most => line![least, " or ", most, " ranks"],
        (least, most) => line![least, " to ", most, " ranks"],
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
        " on average, each rank sends to ",
        peers,
        itself,
        eager,
        " (--peers)"
    ])
}

fn queues(rows: &[QueueRow]) -> Option<Value<'static>> {
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
        let most = Unit::Share.amount(overhead.share.max);
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
    let timeline = overhead.timeline_s.as_ref().map_or("".into(), |timeline| {
        line![", ", Unit::Seconds.amount(timeline.max), " to record the timeline"]
    });
    let ends = seconds(overhead.init_s.max.as_f64() + overhead.finalize_s.max.as_f64());
    let while_it_ran = line![Unit::Share.amount(running.max), " while the program ran", budget];
    let opens_s = overhead.mpit_init_s.max.as_f64();
    let at_ends = if opens_s < OPENING_AT_LEAST_S {
        line![", and ", ends, " at its start and end"]
    } else {
        let opens = line![seconds(opens_s), " to open MPI_T in the library"];
        line![", ", ends, " at its start and end, and ", opens]
    };
    line!["cost of gyan on a rank: at most ", while_it_ran, timeline, at_ends, " (--coverage)"]
}
