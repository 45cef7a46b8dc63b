//! Calls whose cost comes from how a program makes them.

use gyan_results::CallSummary;

use super::{COLLECTIVES, POLLS, RECEIVES, Rule, RuleMatch, WAITS, percent, rounded};
use crate::findings::account::{Cause, Claim, Stake};
use crate::findings::kinds::{FunctionKind, LOCK_COMPLETING, kind_of};
use crate::findings::knobs::{command, say};
use crate::findings::run::{RunFacts, Time, estimated, exact, taken, time_of};
use crate::words::{bytes, double, seconds};

pub(super) const RULES: &[Rule] = rules! {
    140 "outlier": Program, "the longest call", outlier;
    150 "thread-contention": Program,
        "how long several threads are in MPI at once, and the mean time of a call",
        threads;
    160 "made-again": Program,
        "the number of calls that make objects, and the time in them",
        made_again;
    170 "long-locks": Program, "the time in MPI_Win_lock and MPI_Win_unlock", long_locks;
    180 "tiny-accesses": Program, "the number of accesses, and the time in them", tiny_accesses;
    190 "no-overlap": Program, "the time in waits", no_overlap;
    330 "tiny-collectives": Program,
        "the number of collectives, and the time in them",
        tiny_collectives;
};

const SITES: &str = "gyan report --sites DIR";

/// Bytes of a call that costs nothing beside what each call costs.
const TINY: f64 = 512.0;

fn made_again(run: &RunFacts) -> Vec<RuleMatch> {
    const DATATYPES: &[&str] =
        &["MPI_Type_commit", "MPI_Type_free", "MPI_Type_vector", "MPI_Type_indexed"];
    let is_object = |call: &&CallSummary| {
        let name = call.name.as_str();
        let is_datatype = name.starts_with("MPI_Type_create_") || DATATYPES.contains(&name);
        (kind_of(name) == FunctionKind::Objects || is_datatype) && call.count.avg >= 10.0
    };
    let calls: Vec<&CallSummary> = run.summary.calls.iter().filter(is_object).collect();
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let Some(worst) = run.worst(&names) else { return Vec::new() };
    let again = |call: &&CallSummary| time_of(call).times(1.0 - 1.0 / call.count.avg);
    let time = calls.iter().map(again).fold(Time::exact(0.0), Time::plus);
    let title = format!(
        "{} is called {} times a rank: making and freeing such objects takes {} of the run",
        run.with_place(&worst.name),
        double(worst.count.avg.round()),
        percent(run.share(time.seconds)),
    );
    let evidence = vec![
        exact(&format!("calls of {}", worst.name), worst.count.sum.as_f64(), "", "gyan report"),
        taken("time in calls that make and free objects, but the first", time, "gyan report"),
    ];
    let advice = vec![
        say("make the object once, before the loop, and use it again"),
        command("see where they are made", SITES),
    ];
    let functions = vec![worst.name.clone()];
    let at_stake = Some(Stake::calls(names, Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

fn tiny_collectives(run: &RunFacts) -> Vec<RuleMatch> {
    let is_tiny = |call: &&CallSummary| {
        let moved = call.bytes.as_ref().map_or(0.0, |moved| moved.sum.as_f64());
        moved < TINY * call.count.sum.as_f64()
    };
    let calls: Vec<&CallSummary> = run.called(COLLECTIVES).filter(is_tiny).collect();
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let Some(worst) = run.worst(&names) else { return Vec::new() };
    let work = |call: &&CallSummary| {
        let time = time_of(call);
        let waiting = run.waiting().iter().find(|of| of.function == call.name);
        time.at_most(time.seconds - waiting.map_or(0.0, |of| of.waiting_s))
    };
    let time = calls.iter().map(work).fold(Time::exact(0.0), Time::plus);
    let number = run.count(&names);
    let rate = run.each_second(number);
    if rate <= 1000.0 || run.share(time.seconds) < 0.05 {
        return Vec::new();
    }
    let moved: f64 =
        calls.iter().filter_map(|call| call.bytes.as_ref()).map(|moved| moved.sum.as_f64()).sum();
    let title = format!(
        "{} collectives a second from each rank, of {} on average, most with {}",
        rounded(rate),
        bytes(moved / number),
        run.with_place(&worst.name)
    );
    let evidence = vec![
        exact("collectives", number, "", "gyan report"),
        exact("bytes", moved, "bytes", "gyan report --sizes"),
        taken("time in them, without waiting", time, "gyan report --waiting"),
    ];
    let advice = vec![
        say("put several values into one call, as an array, or call it less often"),
        command("see where they are called", SITES),
    ];
    let functions = vec![worst.name.clone()];
    let at_stake = Some(Stake::calls(names, Cause::Work, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

fn tiny_accesses(run: &RunFacts) -> Vec<RuleMatch> {
    let names = || run.summary.calls.iter().map(|call| call.name.as_str());
    let accesses: Vec<&str> =
        names().filter(|name| kind_of(name) == FunctionKind::Accesses).collect();
    let Some(worst) = run.worst(&accesses) else { return Vec::new() };
    let both = [&accesses, LOCK_COMPLETING].concat();
    let (number, time) = (run.count(&accesses), run.time(&both));
    let moved: f64 = run.sizes(&accesses).iter().map(|(.., bytes)| bytes).sum();
    let rate = run.each_second(number);
    if moved >= TINY * number || rate <= 1e4 || run.share(time.seconds) < 0.05 {
        return Vec::new();
    }
    let title = format!(
        "{} accesses a second to the memory of others from each rank, of {} on average, most with {}",
        rounded(rate),
        bytes(moved / number),
        run.with_place(&worst.name)
    );
    let evidence = vec![
        exact("accesses", number, "", "gyan report"),
        exact("bytes", moved, "bytes", "gyan report --sizes"),
        taken("time in accesses and in what completes them", time, "gyan report"),
    ];
    let advice = vec![
        say("collect what goes to one rank into one access, with a datatype if it is scattered"),
        command("see where they are made", SITES),
    ];
    let functions = vec![worst.name.clone()];
    let at_stake = Some(run.stake(&both, Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

fn long_locks(run: &RunFacts) -> Vec<RuleMatch> {
    const LOCKS: &[&str] = &["MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_flush"];
    const SHORT_S: f64 = 100e-6;
    let (number, time) = (run.count(&["MPI_Win_lock"]), run.time(LOCKS));
    let Some(worst) = run.worst(LOCKS).filter(|_| number >= 10.0) else { return Vec::new() };
    let mean_s = time.seconds / number;
    let long = time.at_most(time.seconds - SHORT_S * number);
    if mean_s <= SHORT_S || run.share(long.seconds) < 0.05 {
        return Vec::new();
    }
    let title = format!(
        "a lock of a window takes {} each time, most in {}: another rank holds it, or its owner is not in MPI",
        seconds(mean_s),
        run.with_place(&worst.name)
    );
    let evidence = vec![
        exact("calls of MPI_Win_lock", number, "", "gyan report"),
        taken("time in taking and giving back locks", time, "gyan report"),
    ];
    let advice = vec![
        say(
            "hold an exclusive lock only for the access itself, or use a shared one with MPI_Accumulate or \
             MPI_Fetch_and_op",
        ),
        command("see where locks are taken", SITES),
    ];
    let functions = vec![worst.name.clone()];
    let at_stake = Some(run.stake(LOCKS, Cause::Any, long));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

fn outlier(run: &RunFacts) -> Vec<RuleMatch> {
    let of = |call: &CallSummary| {
        let (longest, time) = (call.time_max_s.as_ref()?, time_of(call));
        let all_s = longest.sum.as_f64();
        let others = call.count.sum.as_f64() - longest.ranks as f64;
        if call.count.avg < 10.0
            || all_s < 0.5 * time.seconds
            || kind_of(&call.name) == FunctionKind::Start
        {
            return None;
        }
        let mean_s = (time.seconds - all_s).max(0.0) / others;
        let more = Time { seconds: all_s - mean_s * longest.ranks as f64, ..time };
        let title = format!(
            "one call of {} takes {} on rank {}: the longest calls have {} of all time in it",
            run.with_place(&call.name),
            seconds(longest.max.as_f64()),
            longest.max_rank,
            percent((all_s / time.seconds).min(1.0))
        );
        let evidence = vec![
            exact("longest call", longest.max.as_f64(), "s", "gyan report"),
            taken(&format!("time in {}", call.name), time, "gyan report"),
            exact(&format!("calls of {}", call.name), call.count.sum.as_f64(), "", "gyan report"),
        ];
        let advice = match waits_for(run, &call.name) {
            Some(rank) => vec![
                say(format!(
                    "it waits for rank {rank}, which comes late: see what that one does before"
                )),
                command("see who waits for whom", "gyan report --waiting DIR"),
            ],
            None => vec![
                say("see whether it is the first one, or waits for a rank that comes late once"),
                command("see how long the calls take", "gyan report --histogram DIR"),
            ],
        };
        let functions = vec![call.name.clone()];
        let at_stake = Some(Stake::calls([call.name.as_str()], Cause::Any, more));
        let ranks = vec![longest.max_rank];
        Some(RuleMatch { title, at_stake, evidence, advice, functions, ranks })
    };
    run.summary.calls.iter().filter_map(of).collect()
}

/// The rank for which others wait nearly all the time of a collective, if it is one.
fn waits_for(run: &RunFacts, function: &str) -> Option<u32> {
    const NEARLY_ALL: f64 = 0.8;
    let of = run.summary.waiting_in(function)?;
    let last = of.last.first().filter(|last| last.waiting_share >= NEARLY_ALL)?;
    (of.waiting_s >= NEARLY_ALL * of.time_s).then_some(last.rank)
}

fn no_overlap(run: &RunFacts) -> Vec<RuleMatch> {
    const SENT: &[&str] = &["MPI_Isend", "MPI_Issend", "MPI_Irsend"];
    const RECEIVED: &[&str] = &["MPI_Irecv", "MPI_Imrecv", "MPI_Recv_init"];
    const LARGE: f64 = 65536.0;
    let sizes = run.sizes(SENT);
    let all: f64 = sizes.iter().map(|(.., bytes)| bytes).sum();
    let large: f64 = sizes.iter().filter(|bar| bar.0 >= LARGE).map(|(.., bytes)| bytes).sum();
    let (time, Some(worst)) = (run.time(WAITS), run.worst(WAITS)) else { return Vec::new() };
    let is_of_sends = run.count(RECEIVED) == 0.0 && run.count(POLLS) < run.count(SENT);
    if !is_of_sends || all <= 0.0 || large < 0.5 * all || run.share(time.seconds) < 0.05 {
        return Vec::new();
    }
    let title = format!(
        "sends wait {} of the run in {}: large messages travel only while both ranks are in MPI",
        percent(run.share(time.seconds)),
        run.with_place(&worst.name)
    );
    let evidence = vec![
        exact(
            "bytes in nonblocking sends of 64 KiB and more",
            large,
            "bytes",
            "gyan report --sizes",
        ),
        taken("time in waits, all for sends", time, "gyan report"),
        estimated("time in receives", run.time(RECEIVES).seconds, "s", "gyan report"),
    ];
    let advice = vec![
        say(
            "post receives before the work (MPI_Irecv) and call MPI_Test during it, or have the sender work before it \
             waits",
        ),
        command("see who talks to whom", "gyan report --peers DIR"),
    ];
    let functions = vec![worst.name.clone()];
    let at_stake = Some(run.stake(WAITS, Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

fn threads(run: &RunFacts) -> Vec<RuleMatch> {
    const STARTS: &[&str] = functions![
        MPI_Isend MPI_Issend MPI_Irsend MPI_Ibsend MPI_Irecv MPI_Imrecv MPI_Start MPI_Startall
    ];
    let names = run.summary.calls.iter().map(|call| call.name.as_str());
    let accesses = names.filter(|name| kind_of(name) == FunctionKind::Accesses);
    let no_waits: Vec<&str> = STARTS.iter().chain(POLLS).copied().chain(accesses).collect();
    let (Some(in_mpi), Some(wall_s)) = (&run.summary.in_mpi, run.summary.wall_in_mpi_s()) else {
        return Vec::new();
    };
    let (all_s, time) = (in_mpi.time_s.sum.as_f64(), run.time(&no_waits));
    let Some(worst) = run.worst(&no_waits).filter(|_| all_s > 0.0 && wall_s > 0.0) else {
        return Vec::new();
    };
    // With n threads inside, n - 1 of n seconds come on top of the wall time.
    let together_s = (all_s - wall_s).clamp(0.0, wall_s);
    let lost = time.times(together_s / all_s);
    let share = run.share(lost.seconds);
    if share < 0.05 {
        return Vec::new();
    }
    let title = format!(
        "several threads of a rank are in MPI at once, up to {} of the run, most in {}: they may wait for each other",
        percent(share),
        run.with_place(&worst.name),
    );
    let evidence = vec![
        estimated("threads in MPI, on average while one is", all_s / wall_s, "", "gyan report"),
        taken("time of all threads in calls that wait for no rank", time, "gyan report"),
        exact("such calls", run.count(&no_waits), "", "gyan report"),
    ];
    let advice = vec![
        say(
            "let one thread communicate while the others compute, or have threads send fewer and larger messages",
        ),
        command("see where they are called", SITES),
    ];
    let functions = run.called(&no_waits).map(|call| call.name.clone()).collect();
    let at_stake = Some(Stake::new(Claim::Threads, lost));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}
