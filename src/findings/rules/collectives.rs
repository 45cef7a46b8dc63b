//! How is work shared out, and what do collectives cost?

use gyan_results::{WaitingSummary, WaitsFor, only_starts};

use super::{COLLECTIVES, RECEIVES, Rule, RuleMatch, SENDS, WAITS, percent};
use crate::findings::account::{Cause, Claim, Stake, uneven_s};
use crate::findings::kinds::kind_of;
use crate::findings::knobs::{command, say};
use crate::findings::run::{
    Family, RunFacts, START_AND_END, Time, estimated, exact, setting, taken, time_of,
};
use crate::words::{bytes, double, plural_of, rough, seconds};

pub(super) const RULES: &[Rule] = rules! {
    80 "imbalance": Program, "the load balance", imbalance;
    290 "waiting": Program,
        "the waiting in that function; a barrier before it would take it over",
        waiting;
    300 "late-root": Program, "the waiting in that function", late_root;
    310 "early-root": Program, "the waiting in that function", early_root;
    320 "barrier": Program, "the number of calls, and the time of the run", barrier;
    340 "algorithm": Run,
        "the time of the function; the number of messages and of bytes that a rank sends for it",
        algorithm;
    360 "communication": Program, "the communication efficiency", communication;
};

/// POP calls an efficiency below this worth a look.
const GOOD: f64 = 0.8;

/// A part that is called most of something.
const MOSTLY: f64 = 0.5;

/// A part that is all of something but for what does not matter.
const NEARLY_ALL: f64 = 0.9;

/// From this part of the waiting on a rank is the one that others wait for.
const TWO_THIRDS: f64 = 2.0 / 3.0;

/// A function is judged by the calls that were compared if they are so many of all.
const COMPARED: f64 = 0.8;

fn imbalance(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(efficiencies) = &run.efficiencies else { return Vec::new() };
    let (Some(in_mpi), Some(useful)) = (&run.summary.in_mpi, &run.summary.useful_s) else {
        return Vec::new();
    };
    if efficiencies.load_balance >= GOOD || efficiencies.parallel <= 0.0 {
        return Vec::new();
    }
    let uneven_s = uneven_s(run.summary);
    let (mean_s, most_s) = (useful.avg, useful.max.as_f64());
    let rank = efficiencies.busiest_rank;
    let title = format!(
        "rank {rank} works {} times as long as the average rank: the others wait for it",
        rough(most_s / mean_s)
    );
    let waits = [SENDS, RECEIVES, WAITS, COLLECTIVES, &["MPI_Barrier"]].concat();
    // A function that took less than is at stake is not where all of it shows.
    let where_it_shows =
        run.worst(&waits).filter(|call| time_of(call).seconds >= MOSTLY * uneven_s);
    let mut advice =
        vec![say("share the work out more evenly, or let ranks that have finished take more")];
    if let Some(call) = where_it_shows {
        advice.push(say(format!(
            "the waiting shows in {}; no setting of MPI makes it shorter",
            run.with_place(&call.name)
        )));
    }
    let error = in_mpi.time_error_s;
    let work = estimated("time outside MPI, average rank", mean_s, "s", "gyan report");
    let evidence = vec![
        estimated("load balance", efficiencies.load_balance, "", "gyan report --findings"),
        estimated(&format!("time outside MPI, rank {rank}"), most_s, "s", "gyan report --all"),
        gyan_results::Evidence { error: error.map(|error| error / run.ranks), ..work },
    ];
    let functions = where_it_shows.map(|call| call.name.clone()).into_iter().collect();
    let at_stake = Some(Stake::new(Claim::Uneven, Time { seconds: uneven_s, error }));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ranks: vec![rank] }]
}

fn communication(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(efficiencies) = &run.efficiencies else { return Vec::new() };
    if efficiencies.communication >= GOOD {
        return Vec::new();
    }
    let error = run.summary.in_mpi.as_ref().and_then(|in_mpi| in_mpi.time_error_s);
    let lost_s = run.communication_s().unwrap_or(0.0);
    let names = run.summary.calls.iter().map(|call| call.name.as_str());
    let others: Vec<&str> = names.filter(|name| !START_AND_END.contains(name)).collect();
    // What other findings have claimed is explained.
    let all_left_s: f64 = others.iter().map(|name| run.account.free(name, Cause::Any)).sum();
    let left_s = lost_s.min(all_left_s);
    let lost = run.share(left_s);
    let (true, Some((worst, worst_s))) = (lost > 1.0 - GOOD, run.worst_left(&others)) else {
        return Vec::new();
    };
    let time = Time { seconds: left_s, error };
    let most = if worst_s >= MOSTLY * left_s { "most of it" } else { "above all" };
    let is_rest = left_s < NEARLY_ALL * lost_s;
    let of_rest = if is_rest { "apart from what other findings explain, " } else { "" };
    let title = format!(
        "{of_rest}communication takes {} of the run even on the busiest rank, {most} in {}",
        percent(lost),
        run.with_place(worst),
    );
    let call = run.call(worst).map_or(Time::exact(0.0), time_of);
    let shown = "gyan report --findings";
    let mut evidence =
        vec![estimated("communication efficiency", efficiencies.communication, "", shown)];
    // As bounds they are no ground of anything.
    if let Some(split) = efficiencies.split.filter(|split| !split.is_bound) {
        let serialisation = estimated("serialisation efficiency", split.serialisation, "", shown);
        let transfer = estimated("transfer efficiency", split.transfer, "", shown);
        let transfer = gyan_results::Evidence { error: split.transfer_error, ..transfer };
        evidence.extend([serialisation, transfer]);
    }
    evidence.push(taken(&format!("time in {worst}"), call, "gyan report"));
    let (todo, more) = kind_of(worst).advice();
    let advice = vec![say(todo), command("see more", more)];
    let functions = vec![worst.to_owned()];
    let at_stake = Some(run.stake(&others, Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

/// How ranks wait in collectives, with what is said of that.
struct Lateness {
    waits_for: &'static [WaitsFor],
    /// What most of the function's time is.
    what: &'static str,
    /// The name of that as a number.
    evidence: &'static str,
    remedy: &'static str,
    /// The same if the function only starts the operation.
    remedy_of_request: &'static str,
}

const LAST: Lateness = Lateness {
    waits_for: &[WaitsFor::All, WaitsFor::Lower],
    what: "waiting for the last rank",
    evidence: "waiting for the last rank",
    remedy: "make the work before it more even, or do something else meanwhile (the nonblocking collective)",
    remedy_of_request: "make the work before it more even, or do more between starting and completing it",
};

const LATE_ROOT: Lateness = Lateness {
    waits_for: &[WaitsFor::Root],
    what: "waiting for a late root",
    evidence: "waiting for the root",
    remedy: "let the root call it before it works, or the others after they have worked, or use the nonblocking \
             collective",
    remedy_of_request: "let the root start it before it works, or the others do more before they complete it",
};

const EARLY_ROOT: Lateness = Lateness {
    waits_for: &[WaitsFor::AtRoot],
    what: "the root's waiting for the last rank",
    evidence: "the root's waiting for the last rank",
    remedy: "let the root call it after it has worked, or do something else meanwhile (the nonblocking collective)",
    remedy_of_request: "let the root do more before it completes it, or the others start it before they work",
};

fn waiting(run: &RunFacts) -> Vec<RuleMatch> {
    late(run, &LAST)
}

fn late_root(run: &RunFacts) -> Vec<RuleMatch> {
    late(run, &LATE_ROOT)
}

fn early_root(run: &RunFacts) -> Vec<RuleMatch> {
    late(run, &EARLY_ROOT)
}

fn late(run: &RunFacts, lateness: &Lateness) -> Vec<RuleMatch> {
    let Lateness { waits_for, what, evidence, remedy, remedy_of_request } = *lateness;
    // Barriers have a rule of their own.
    let those = run.waiting().iter().filter(|of| {
        of.function != "MPI_Barrier" && waits_for.contains(&WaitsFor::in_function(&of.function))
    });
    those
        .filter_map(|of| Some((of, waits_mostly(run, of)?)))
        .map(|(of, share)| {
            let late = of.last.first();
            let who = late.filter(|last| last.waiting_share >= TWO_THIRDS);
            let who_text = who.map_or_else(
                || "; the ranks come last in turn".to_owned(),
                |last| format!(", mostly for rank {}", last.rank),
            );
            let only_starts = only_starts(&of.function);
            let place = run.with_place(&of.function);
            let place = if only_starts {
                in_calls_that_complete(run, &place)
            } else {
                format!("the time in {place}")
            };
            let title = format!("{} of {place} is {what}{who_text}", percent(share));
            let time = Time { seconds: of.waiting_s, error: of.waiting_error_s };
            let shown = "gyan report --waiting";
            let evidence = vec![
                gyan_results::Evidence {
                    error: of.waiting_error_s,
                    ..estimated(evidence, of.waiting_s, "s", shown)
                },
                exact("calls that were compared", of.calls as f64, "", shown),
            ];
            let own_s = of.time_s - of.waiting_s;
            let advice = vec![
                say(if only_starts { remedy_of_request } else { remedy }),
                say(format!(
                    "do not tune {}: what is no waiting of the calls that were compared is {}",
                    of.function,
                    seconds(own_s)
                )),
            ];
            let functions = vec![of.function.clone()];
            let ranks = who.map(|last| last.rank).into_iter().collect();
            let at_stake = if only_starts {
                run.stake(WAITS, Cause::Waiting, time.at_most(run.time(WAITS).seconds))
            } else {
                Stake::calls([of.function.as_str()], Cause::Waiting, time)
            };
            RuleMatch { title, at_stake: Some(at_stake), evidence, advice, functions, ranks }
        })
        .collect()
}

/// The time in which ranks wait for an operation that a call only starts, in words. `started`: that call.
fn in_calls_that_complete(run: &RunFacts, started: &str) -> String {
    let waits: Vec<&str> = run.called(WAITS).map(|call| call.name.as_str()).collect();
    format!("the time in {} for {started}", waits.join(" and "))
}

/// Which share of all time in a function is waiting, or in calls that complete what it starts, if most of it is.
fn waits_mostly(run: &RunFacts, of: &WaitingSummary) -> Option<f64> {
    let all = time_of(run.call(&of.function)?);
    let all_s = if only_starts(&of.function) { 0.0 } else { all.seconds };
    let share = of.waiting_s / f64::max(all_s, of.time_s);
    (share > 0.6).then_some(share)
}

fn algorithm(run: &RunFacts) -> Vec<RuleMatch> {
    let of = |call: &gyan_results::CallSummary| {
        let (name, value) = run.algorithm(&call.name)?;
        let waiting = run.waiting().iter().find(|of| of.function == call.name)?;
        let compared = waiting.calls as f64 / call.count.sum.as_f64().max(1.0);
        if compared < COMPARED || waits_mostly(run, waiting).is_some() {
            return None;
        }
        let time = time_of(call);
        let waiting_s = waiting.waiting_s.min(waiting.time_s).min(time.seconds);
        let error = time.error.zip(waiting.waiting_error_s).map(|(one, other)| one.hypot(other));
        let own = Time { seconds: waiting.time_s.min(time.seconds) - waiting_s, error };
        if run.share(own.seconds) < 0.1 {
            return None;
        }
        let calls = call.count.sum.as_f64();
        let size = call.bytes.as_ref().map_or(0.0, |moved| moved.sum.as_f64() / calls.max(1.0));
        let is_default = matches!(value, "ignore" | "0" | "auto" | "");
        let (chosen, what) = if is_default {
            ("the library's choice", "try others; each prints its values with gyan varlist -l")
        } else {
            ("forced", "let the library choose, or try others")
        };
        let title = format!(
            "{} of {} takes {} of the run without any waiting; its algorithm is {chosen}",
            run.with_place(&call.name),
            bytes(size),
            percent(run.share(own.seconds)),
        );
        let other = match (run.family, is_default) {
            (Family::OpenMpi, true) => {
                format!("gyan run --set coll_tuned_use_dynamic_rules=1 --set {name}=N -- ...")
            }
            (_, true) => format!("gyan run --set {name}=NAME -- ..."),
            (Family::OpenMpi, false) => format!("gyan run --set {name}=0 -- ..."),
            (_, false) => format!("gyan run --set {name}=auto -- ..."),
        };
        let advice = vec![
            command(what, other),
            command("see the names of the algorithms", format!("gyan varlist -l --match {name}")),
        ];
        let shown = "gyan report --waiting";
        let mut evidence = vec![
            taken(&format!("time in {}", call.name), time, "gyan report"),
            estimated("of that waiting for other ranks", waiting_s, "s", shown),
        ];
        evidence.extend(setting(&name, value, "gyan report --environment"));
        let functions = vec![call.name.clone()];
        let at_stake = Some(Stake::calls([call.name.as_str()], Cause::Work, own));
        Some(RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() })
    };
    // With two ranks all algorithms do the same.
    let is_chosen = run.ranks > 2.0;
    run.called(COLLECTIVES).filter(|_| is_chosen).filter_map(of).collect()
}

fn barrier(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(call) = run.call("MPI_Barrier") else { return Vec::new() };
    let time = time_of(call);
    if run.share(time.seconds) < 0.05 {
        return Vec::new();
    }
    let calls = call.count.avg;
    let title = format!(
        "{} takes {} of the run in {} call{} a rank: is it needed?",
        run.with_place("MPI_Barrier"),
        percent(run.share(time.seconds)),
        double(calls),
        plural_of(calls)
    );
    let mut advice =
        vec![say("leave it out where the next message or collective orders the ranks anyway")];
    let waiting = run.waiting().iter().find(|of| of.function == "MPI_Barrier");
    let mut evidence = vec![
        taken("time in MPI_Barrier", time, "gyan report"),
        exact("calls on all ranks", call.count.sum.as_f64(), "", "gyan report"),
    ];
    if let Some(of) = waiting {
        evidence.push(estimated(
            "of that waiting for the last rank",
            of.waiting_s,
            "s",
            "gyan report --waiting",
        ));
        if of.waiting_s > 0.6 * of.time_s {
            advice.push(say("most of it is waiting for the last rank: if ranks depend on that one, the waiting moves on"));
        }
    }
    let functions = vec!["MPI_Barrier".to_owned()];
    let at_stake = Some(run.stake(&["MPI_Barrier"], Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}
