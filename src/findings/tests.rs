//! Runs whose truth is known because it is what they are made of, reduced as real profiles are.

mod openmp;

use std::collections::BTreeSet;

use gyan_results::{
    Fidelity, Finding, LastRank, MessageWaitingSummary, RankProfile, Reduction, Summary,
    WaitingSummary,
};
use serde_json::{Value, json};

use super::rules::RULES;
use super::{Answers, CallPlaces, find};

const LIBRARY: &str = "Open MPI v4.1.4, package: x";

/// A function that a rank called so many times, for so many seconds.
pub(super) fn call(name: &str, count: u64, time_s: f64) -> Value {
    let longest_s = time_s / count.max(1) as f64;
    json!({
        "name": name, "count": count, "timed": count, "time_s": time_s, "time_error_s": 0.0, "time_max_s": longest_s,
    })
}

/// The same with its field.
pub(super) fn with(mut whole: Value, field: &str, value: Value) -> Value {
    whole[field] = value;
    whole
}

/// Calls that all moved as many bytes.
pub(super) fn sized(call: Value, bytes: u64) -> Value {
    let number = call["count"].as_u64().unwrap();
    let bar = (u64::BITS - bytes.leading_zeros()) as usize;
    let bars = |value: u64| -> Vec<u64> {
        let bar_of = |at| if at == bar { value } else { 0 };
        (0..=bar).map(bar_of).collect()
    };
    let call = with(call, "bytes", json!(number * bytes));
    let call = with(call, "size_histogram", json!(bars(number)));
    with(call, "size_histogram_bytes", json!(bars(number * bytes)))
}

/// A profile of a rank that ran so long and called these functions.
pub(super) fn rank(rank: u32, size: u32, elapsed_s: f64, calls: &[Value]) -> Value {
    let of_calls = |field: &str| calls.iter().map(|call| call[field].as_f64()).sum::<Option<f64>>();
    let in_mpi_s: f64 = calls.iter().filter_map(|call| call["time_s"].as_f64()).sum();
    json!({
        "schema": "gyan.rank/1",
        "tool": {"name": "gyan", "version": "0.1.0"},
        "job": {"id": "1", "command": ["./app"], "started": "2026-01-31T10:00:00Z", "elapsed_s": elapsed_s},
        "rank": rank, "size": size, "host": "n1", "pid": 1000 + rank,
        "mpi": {
            "abi": "openmpi", "standard": "3.1", "library": LIBRARY, "library_path": "/usr/lib/libmpi.so.40",
            "thread_level": "MPI_THREAD_SINGLE",
        },
        "end": {"how": "finalize", "code": 0},
        "pvars": [],
        "calls": calls,
        "in_mpi": {
            "time_s": in_mpi_s, "time_error_s": of_calls("time_error_s"), "share": in_mpi_s / elapsed_s,
        },
        "coverage": {"exported": 0, "sampled": 0, "skipped": [], "advice": []},
        "overhead": {
            "mpit_init_s": 0.0, "init_s": 0.001, "sampling_s": 0.0, "wrappers_s": 0.0001, "events_s": 0.0,
            "finalize_s": 0.0, "share": 0.001, "running_share": 0.0001, "budget": 0.005,
        },
        "warnings": [],
    })
}

fn reduced(ranks: &[Value]) -> Summary {
    let mut reduction = Reduction::default();
    for rank in ranks {
        let profile: RankProfile = serde_json::from_value(rank.clone()).unwrap();
        reduction.add("rank", &profile);
    }
    reduction.finish().unwrap()
}

/// The findings of a run, which never claim more than the run.
#[track_caller]
pub(super) fn found(ranks: &[Value]) -> Vec<Finding> {
    found_in(&reduced(ranks))
}

#[track_caller]
fn found_in(summary: &Summary) -> Vec<Finding> {
    let messages = ["halo.c:31", "halo.c:29"].map(str::to_owned).into();
    let places = CallPlaces { messages, ..CallPlaces::default() };
    let Answers { findings, .. } = find(summary, &summary.queues(), &places);
    let claimed_s: f64 = findings.iter().filter_map(|finding| finding.at_stake_s).sum();
    let run_s = summary.elapsed_s.as_ref().unwrap().sum.as_f64();
    assert!(claimed_s <= run_s * 1.000_001, "{claimed_s} of {run_s}: {findings:#?}");
    findings
}

fn ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[track_caller]
pub(super) fn one<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    let one = findings.iter().find(|finding| finding.id == id);
    one.unwrap_or_else(|| panic!("no {id} in {findings:#?}"))
}

#[track_caller]
pub(super) fn close(value: Option<f64>, expected: f64) {
    let value = value.unwrap();
    assert!((value - expected).abs() <= 0.01 * expected, "{value} for {expected}");
}

/// Ranks that may run on so many processors, of which they used so much and for which they waited so long.
fn on_machine(ranks: Vec<Value>, processors: u32, used: &[(f64, f64)]) -> Vec<Value> {
    let list = format!("0-{}", processors - 1);
    let of = |(rank, (running_s, wait_s)): (Value, &(f64, f64))| {
        let machine = json!({
            "processor": "x", "processors": list, "processors_offline": 0, "cores": processors,
            "threads_per_core": 1, "packages": 1, "numa_nodes": 1, "memory_bytes": 1_u64 << 33,
        });
        let resources = json!({
            "processors": list, "user_s": running_s, "system_s": 0.0, "voluntary_switches": 0,
            "involuntary_switches": 10, "processor_wait_s": wait_s, "minor_faults": 0, "major_faults": 0,
            "peak_memory_bytes": 1, "start_peak_memory_bytes": 1,
        });
        with(with(rank, "machine", machine), "resources", resources)
    };
    ranks.into_iter().zip(used).map(of).collect()
}

#[test]
fn what_imbalance_explains_is_not_claimed_by_the_calls_in_which_ranks_wait() {
    // Rank 0 works 9.5 s, the others 3 s; these wait 6.5 s in a barrier.
    let barrier = |rank| call("MPI_Barrier", 100, if rank == 0 { 0.5 } else { 7.0 });
    let ranks: Vec<Value> = (0..4).map(|of| rank(of, 4, 10.0, &[barrier(of)])).collect();
    let findings = found(&ranks);
    let imbalance = one(&findings, "imbalance");
    close(imbalance.at_stake_s, 19.5);
    assert_eq!(ids(&findings), ["imbalance"]);
    assert!(imbalance.also_true.iter().any(|also| also.id == "barrier"), "{imbalance:#?}");
}

#[test]
fn no_call_is_named_for_waiting_that_it_did_not_take() {
    let calls =
        |barrier_s| [call("MPI_Comm_split", 100, barrier_s), call("MPI_Allreduce", 1, 0.001)];
    let ranks = [rank(0, 2, 10.0, &calls(1.0)), rank(1, 2, 10.0, &calls(6.0))];
    let findings = found(&ranks);
    let imbalance = one(&findings, "imbalance");
    assert!(imbalance.functions.is_empty(), "{imbalance:#?}");
    assert!(!imbalance.advice.iter().any(|advice| advice.text.contains("MPI_Allreduce")));
}

#[test]
fn a_lower_bound_is_the_ground_of_no_finding() {
    let vague = with(call("MPI_Barrier", 1_000_000, 8.0), "time_error_s", Value::Null);
    let vague = with(vague, "timed", json!(1));
    let ranks = [0, 1].map(|of| rank(of, 2, 10.0, std::slice::from_ref(&vague)));
    assert_eq!(ids(&found(&ranks)), Vec::<&str>::new());
}

#[test]
fn ranks_that_sleep_lose_nothing_on_too_few_processors() {
    // As funnel and F1: rank 0 works (asleep) 2.0 of 2.2 s, the others poll for it on two processors.
    let of =
        |of: u32| rank(of, 4, 2.2, &[call("MPI_Allreduce", 20, if of == 0 { 0.1 } else { 2.1 })]);
    let ranks =
        on_machine((0..4).map(of).collect(), 2, &[(0.1, 0.02), (1.3, 0.9), (1.3, 0.9), (1.3, 0.9)]);
    let findings = found(&ranks);
    assert_eq!(findings[0].id, "imbalance", "{findings:#?}");
    let crowd = findings.iter().find(|finding| finding.id == "oversubscribed");
    assert!(crowd.is_none_or(|finding| finding.at_stake_share.unwrap() < 0.05), "{findings:#?}");
}

#[test]
fn too_few_processors_for_ranks_that_compute_are_told_with_what_fits() {
    let of = |of: u32| rank(of, 4, 10.0, &[call("MPI_Allreduce", 20, 0.2)]);
    let ranks = on_machine((0..4).map(of).collect(), 2, &[(5.0, 5.0); 4]);
    let findings = found(&ranks);
    assert_eq!(findings[0].id, "oversubscribed");
    // With four processors it takes half as long.
    close(findings[0].at_stake_s, 20.0);
    assert_eq!(findings[0].advice[0].text, "run at most 2 ranks, or on more cores");
}

/// Ranks on so many processors for ten seconds, each with so many busy threads that used so much in all, and waited for
/// so long each. `openmp`: the number of threads that OpenMP was given.
fn with_threads(
    ranks: u32,
    processors: u32,
    (busy, used, wait_s): (u64, f64, f64),
    openmp: Option<&str>,
) -> Vec<Value> {
    let of = |of: u32| rank(of, ranks, 10.0, &[call("MPI_Allreduce", 20, 0.2)]);
    let all = vec![(10.0 * used, wait_s); ranks as usize];
    let mut ranks = on_machine((0..ranks).map(of).collect(), processors, &all);
    for rank in &mut ranks {
        let list = rank["resources"]["processors"].clone();
        let each = busy as f64 / f64::from(processors);
        let resources = &mut rank["resources"];
        resources["processors_used"] = json!(used);
        resources["threads"] = json!({
            "number": busy + 3, "busy": busy, "processor_wait_s": wait_s,
            "loads": [{ "processors": list, "threads": each }],
        });
        if openmp.is_some() {
            resources["openmp"] = json!({ "runtime": "libgomp", "num_threads": openmp });
        }
    }
    ranks
}

#[test]
fn cores_that_ranks_leave_idle_are_told_with_what_openmp_was_given() {
    let findings = found(&with_threads(2, 16, (1, 1.1, 0.0), Some("1")));
    let idle = one(&findings, "idle-processors");
    assert_eq!(idle.title, "a rank could use 8 cores and used 1.1 of them, on average");
    assert_eq!(idle.at_stake_s, None);
    assert_eq!(idle.advice[0].command.as_deref(), Some("OMP_NUM_THREADS=8"));
    let findings = found(&with_threads(2, 16, (8, 3.0, 0.0), Some("8")));
    let advice = &one(&findings, "idle-processors").advice[0].text;
    assert!(advice.contains("8 threads of a rank are busy"), "{advice}");
}

#[test]
fn ranks_that_use_their_cores_or_want_them_leave_none_idle() {
    for (ranks, processors, threads) in [
        // One rank for each core, also one that sleeps.
        (4, 4, (1, 1.0, 0.0)),
        (4, 4, (0, 0.1, 0.0)),
        (2, 8, (4, 3.9, 0.0)),
        // Others have what the threads want.
        (2, 8, (4, 2.0, 5.0)),
    ] {
        let findings = found(&with_threads(ranks, processors, threads, None));
        assert!(!ids(&findings).contains(&"idle-processors"), "{threads:?}: {findings:#?}");
    }
}

#[test]
fn too_few_processors_for_threads_are_told_with_how_many_fit() {
    let findings = found(&with_threads(2, 4, (4, 2.0, 5.0), Some("4")));
    let crowd = one(&findings, "oversubscribed");
    assert!(crowd.title.starts_with("8 busy threads of 2 ranks share 4 processors"), "{crowd:?}");
    assert_eq!(crowd.advice[0].text, "give each rank at most 2 threads");
    assert_eq!(crowd.advice.len(), 1, "{crowd:#?}");
    // A rank is in the run once, however many threads it has.
    close(crowd.at_stake_s, 10.0);
}

#[test]
fn threads_without_a_processor_come_first_where_nobody_knows_what_they_lose() {
    let mut ranks = with_threads(2, 2, (2, 1.0, 5.0), Some("2"));
    ranks[0]["in_mpi"]["time_error_s"] = Value::Null;
    let findings = found(&ranks);
    assert_eq!((findings[0].id.as_str(), findings[0].at_stake_s), ("oversubscribed", None));
}

#[test]
fn whoever_else_uses_the_processors_is_told_of_before_the_threads() {
    // For 8 of 10 seconds all 4 processors were busy, and the ranks used 1.
    let findings = found(&with_threads(2, 4, (4, 0.5, 8.0), Some("4")));
    let crowd = one(&findings, "oversubscribed");
    assert_eq!(
        crowd.advice[0].text,
        "see what else runs there (top): it used at least 2.2 of these processors on average"
    );
    assert_eq!(crowd.advice.len(), 2, "{crowd:#?}");
}

#[test]
fn load_is_told_first_and_hides_nothing() {
    // A quarter of the run without a processor, and all work on rank 0.
    let of = |of: u32| rank(of, 2, 10.0, &[call("MPI_Recv", 20, if of == 0 { 0.1 } else { 6.0 })]);
    let ranks = on_machine((0..2).map(of).collect(), 8, &[(7.4, 2.5), (7.4, 2.5)]);
    let findings = found(&ranks);
    assert_eq!(findings[0].id, "other-load", "{findings:#?}");
    assert!(!findings[0].under_load);
    let imbalance = one(&findings, "imbalance");
    assert!(imbalance.under_load && imbalance.at_stake_s > findings[0].at_stake_s, "{findings:#?}");
}

#[test]
fn a_little_load_stands_behind_a_larger_loss() {
    let of = |of: u32| rank(of, 2, 10.0, &[call("MPI_Recv", 20, if of == 0 { 0.1 } else { 6.0 })]);
    let ranks = on_machine((0..2).map(of).collect(), 8, &[(9.0, 1.0), (9.0, 1.0)]);
    let findings = found(&ranks);
    assert_eq!(ids(&findings)[..2], ["imbalance", "other-load"], "{findings:#?}");
    assert!(findings.iter().all(|finding| !finding.under_load));
}

#[test]
fn the_missing_ranks_come_before_the_short_run() {
    let ranks = [rank(0, 2, 0.1, &[])];
    assert_eq!(ids(&found(&ranks)), ["incomplete", "too-short"]);
}

/// With a setting of the library that rank 0 recorded.
fn with_knobs(rank: Value, knobs: &[(&str, &str)]) -> Value {
    let knobs: Vec<Value> =
        knobs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    with(rank, "knobs", json!(knobs))
}

/// Ranks that send 40 messages of this size to each other, above the eager limit of TCP, and wait in `MPI_Send`.
fn sending(knobs: &[(&str, &str)]) -> Vec<Value> {
    let peers = |to: u32| json!({"messages": [{"to": to, "number": 40, "bytes": 40 * 100_000}]});
    let of = |of: u32| {
        let calls = [sized(call("MPI_Send", 40, 3.0), 100_000), call("MPI_Recv", 40, 0.001)];
        with(rank(of, 2, 10.0, &calls), "peers", peers(1 - of))
    };
    let ranks = [of(0), of(1)].map(|rank| with_knobs(rank, knobs));
    ranks.into()
}

#[test]
fn an_eager_limit_is_advised_only_where_it_is_read() {
    let btl = [("btl_tcp_eager_limit", "65536"), ("btl", "tcp,self")];
    let with = |more: &[(&str, &str)]| ids_of(&found(&sending(&[&btl, more].concat())));
    assert!(with(&[("pml_ob1_priority", "20")]).contains(&"eager-limit".to_owned()));
    assert!(with(&[]).contains(&"eager-limit".to_owned()));
    for other in [("pml_ucx_priority", "51"), ("mtl_ofi_priority", "25"), ("pml", "ucx")] {
        assert!(!with(&[other]).contains(&"eager-limit".to_owned()), "{other:?}");
    }
}

fn ids_of(findings: &[Finding]) -> Vec<String> {
    ids(findings).into_iter().map(str::to_owned).collect()
}

/// The command that is advised for an `MPI_Init` of 2 s.
fn advised_for_slow_start(btl: &str, networks: &Value, others: &[(&str, &str)]) -> Option<String> {
    let of = |of: u32| rank(of, 2, 10.0, &[call("MPI_Init", 1, 2.0)]);
    let mut ranks = on_machine(vec![of(0), of(1)], 8, &[(1.0, 0.0); 2]);
    for rank in &mut ranks {
        rank["mpi"]["library"] = json!("Open MPI v5.0.10, package: x");
        rank["machine"]["networks"] = networks.clone();
        rank["machine"]["transports"] = json!([{"name": "fabric", "what": "x"}]);
        *rank = with_knobs(rank.clone(), &[&[("btl", btl)], others].concat());
    }
    let findings = found(&ranks);
    one(&findings, "slow-start").advice[0].command.clone()
}

#[test]
fn a_fabric_is_left_out_only_where_there_is_none_and_what_is_set_is_extended() {
    let (none, ob1) = (json!([]), [("pml_ob1_priority", "20")]);
    let set = |value: &str| Some(format!("gyan run --set btl={value} -- ..."));
    assert_eq!(advised_for_slow_start("", &none, &ob1), set("^ofi"));
    assert_eq!(advised_for_slow_start("^uct,openib", &none, &ob1), set("^uct,openib,ofi"));
    assert_eq!(advised_for_slow_start("self,sm,ofi", &none, &ob1), set("self,sm"));
    for btl in ["^uct,ofi", "self,sm"] {
        assert_eq!(advised_for_slow_start(btl, &none, &ob1), None, "{btl}");
    }
    assert_eq!(advised_for_slow_start("", &none, &[("mtl_ofi_priority", "25")]), None);
    let network =
        json!([{"device": "hfi1_0", "kind": "Omni-Path", "rate": "100 Gb/sec", "state": "ACTIVE"}]);
    assert_eq!(advised_for_slow_start("", &network, &ob1), None);
}

/// A function of which only these calls were compared, over 2 ranks.
fn compared(whole: Value, function: &str, calls: u64, times_ns: &[u64]) -> Value {
    let times = gyan_results::Waiting::written(times_ns.iter().map(|ns| Some(*ns)));
    let waiting = json!([{
        "function": function, "communicator": "MPI_COMM_WORLD", "members": "00", "ordinal": 0, "size": 4,
        "calls": calls, "level": 0, "times_ns": times,
    }]);
    with(whole, "waiting", waiting)
}

/// Four ranks with 100 calls on all of them, in which so many milliseconds are waiting, and 900 on other communicators.
fn with_others(waiting_ms: u64, others: u64, elsewhere_s: f64) -> Vec<Value> {
    let of = |of: u32| {
        let ns = (1 + if of == 0 { 0 } else { waiting_ms }) * 1_000_000;
        let time_s = 100.0 * ns as f64 * 1e-9 + elsewhere_s;
        let knobs = [("coll_tuned_allreduce_algorithm", "ignore")];
        let ranks = rank(of, 4, 10.0, &[call("MPI_Allreduce", 100 + others, time_s)]);
        compared(with_knobs(ranks, &knobs), "MPI_Allreduce", 100, &[ns; 100])
    };
    (0..4).map(of).collect()
}

#[test]
fn waiting_and_algorithm_exclude_each_other() {
    for waiting_ms in [0, 1, 2, 5, 20] {
        for others in [0, 900] {
            for elsewhere_s in [0.0, 4.0] {
                let findings = found(&with_others(waiting_ms, others, elsewhere_s));
                let all: Vec<&str> = findings
                    .iter()
                    .flat_map(|of| {
                        of.also_true.iter().map(|also| also.id.as_str()).chain([of.id.as_str()])
                    })
                    .collect();
                let is = |id: &str| all.contains(&id);
                assert!(!(is("waiting") && is("algorithm")), "{findings:#?}");
                assert!(!(is("algorithm") && others > 0), "too few were compared: {findings:#?}");
            }
        }
    }
}

#[test]
fn what_is_said_of_a_function_is_said_of_all_of_it() {
    // Nearly all of what was compared is waiting, but most of the function was not compared.
    let findings = found(&with_others(9, 900, 4.0));
    assert!(!findings.iter().any(|finding| finding.id == "waiting"), "{findings:#?}");
}

#[test]
fn the_late_root_of_what_is_only_started_is_waited_for_in_the_calls_that_complete_it() {
    let of = |of: u32| {
        let waits_s = if of == 1 { 0.01 } else { 4.0 };
        rank(of, 4, 10.0, &[call("MPI_Ibcast", 100, 0.001), call("MPI_Wait", 100, waits_s)])
    };
    let last = LastRank { rank: 1, calls_share: 1.0, waiting_share: 1.0 };
    let waiting = WaitingSummary {
        function: "MPI_Ibcast".into(),
        calls: 400,
        time_s: 12.0,
        waiting_s: 11.4,
        waiting_error_s: Some(0.0),
        last: vec![last],
        ..WaitingSummary::default()
    };
    let summary = Summary { waiting: vec![waiting], ..reduced(&[of(0), of(1), of(2), of(3)]) };
    let findings = found_in(&summary);
    // The root works longer, of which that is a consequence.
    let also_true = &one(&findings, "imbalance").also_true;
    let late = also_true.iter().find(|also| also.id == "late-root").unwrap();
    let title =
        "95 % of the time in MPI_Wait for MPI_Ibcast is waiting for a late root, mostly for rank 1";
    assert_eq!(late.title, title);
    // They are those of MPI_Wait.
    assert!((late.seconds - 11.4).abs() < 1e-9, "{late:?}");
    assert!(findings.iter().all(|finding| finding.id != "late-senders"), "{findings:#?}");
}

#[test]
fn sends_that_wait_are_no_late_senders() {
    // As early.c: rank 0 waits for its own large sends.
    let sends = sized(call("MPI_Isend", 600, 0.01), 4_000_000);
    let sender = rank(0, 2, 10.0, &[sends, call("MPI_Waitall", 600, 5.0)]);
    let receiver = rank(1, 2, 10.0, &[call("MPI_Recv", 600, 1.0), call("MPI_Barrier", 600, 4.0)]);
    let findings = found(&[sender, receiver]);
    assert!(!findings.iter().any(|finding| finding.id == "late-senders"), "{findings:#?}");
    one(&findings, "no-overlap");
}

/// Four ranks of which rank 3 waits 6 s of 10 s in this function, while others send or receive 100 messages of which so many
/// were compared; and what these pairs (rank, late rank, seconds) waited for the late one to have `sent` or `received`.
fn partners(function: &str, late: &str, paired: u64, pairs: &[(u32, u32, f64)]) -> Summary {
    let other = if late == "sent" { "MPI_Send" } else { "MPI_Recv" };
    let of = |of: u32| {
        let call = if of == 3 { call(function, 100, 6.0) } else { call(other, 100, 0.01) };
        rank(of, 4, 10.0, &[call])
    };
    let place = |function: &str, call: u64| json!({"function": function, "call": call});
    let pair = |&(rank, late_rank, waiting_s): &(u32, u32, f64)| {
        json!({
            "rank": rank, "late_rank": late_rank, "late": late, "waiting_s": waiting_s, "waiting_error_s": 0.0,
            "messages": 50, "compared": 50, "waits": place(function, 0), "late_call": place(other, 1), "share_there": 1.0, "wrong_order_s": 0.0,
        })
    };
    let all_s: f64 = pairs.iter().map(|(.., seconds)| seconds).sum();
    let [senders_s, receivers_s] = if late == "sent" { [all_s, 0.0] } else { [0.0, all_s] };
    let waiting = json!({
        "messages": 100, "paired": paired, "compared": paired, "addresses": [], "load_map": [],
        "late_senders_s": senders_s, "late_senders_error_s": 0.0,
        "late_receivers_s": receivers_s, "late_receivers_error_s": 0.0, "wrong_order_s": 0.0,
        "pairs": pairs.iter().map(pair).collect::<Vec<Value>>(),
    });
    let waiting: MessageWaitingSummary = serde_json::from_value(waiting).unwrap();
    Summary { message_waiting: Some(waiting), ..reduced(&[of(0), of(1), of(2), of(3)]) }
}

#[test]
fn a_pair_of_ranks_with_most_of_the_waiting_is_named_with_its_calls() {
    let findings = found_in(&partners("MPI_Recv", "sent", 100, &[(3, 2, 5.0), (3, 1, 1.0)]));
    let late = one(&findings, "late-senders");
    let title = "rank 3 waits 5.00 s for rank 2 to send: 12 % of the run, in MPI_Recv at halo.c:31 for MPI_Send at \
                 halo.c:29";
    assert_eq!(late.title, title);
    assert_eq!((&late.ranks[..], &late.functions[..]), (&[2, 3][..], &["MPI_Recv".to_owned()][..]));
    assert_eq!((late.evidence[0].value, late.evidence[0].known), (6.0, Fidelity::Exact));
    close(late.at_stake_s, 6.0);
    assert!(findings.iter().all(|finding| finding.id != "late-receivers"), "{findings:#?}");
}

#[test]
fn of_several_pairs_that_wait_the_first_is_named_as_one_of_them() {
    let findings = found_in(&partners("MPI_Send", "received", 100, &[(3, 2, 3.0), (3, 0, 2.5)]));
    let late = one(&findings, "late-receivers");
    let title = "ranks wait for late receivers 14 % of the run; longest: rank 3 waits 3.00 s for rank 2, in MPI_Send at \
                 halo.c:31 for MPI_Recv at halo.c:29";
    assert_eq!(late.title, title);
    assert!(findings.iter().all(|finding| finding.id != "late-senders"), "{findings:#?}");
}

#[test]
fn partners_are_the_ground_of_a_finding_if_enough_messages_were_compared_and_the_waiting_is_known()
{
    let is_late =
        |summary: &Summary| found_in(summary).iter().any(|finding| finding.id == "late-senders");
    let pairs = [(3, 2, 5.0)];
    assert!(is_late(&partners("MPI_Recv", "sent", 60, &pairs)));
    let too_few = found_in(&partners("MPI_Recv", "sent", 59, &pairs));
    let title = &one(&too_few, "late-senders").title;
    assert!(
        title.starts_with("receives and waits take 15 % of the run, most in MPI_Recv"),
        "{title}"
    );
    assert!(!is_late(&partners("MPI_Recv", "sent", 100, &[(3, 2, 1.9)])));
    let mut vague = partners("MPI_Recv", "sent", 100, &pairs);
    vague.message_waiting.as_mut().unwrap().late_senders_error_s = None;
    assert!(!is_late(&vague));
}

#[test]
fn polling_knows_every_request() {
    let asks = call("MPI_Test", 4_000_000, 2.0);
    let with =
        |made: Value| found(&[0, 1].map(|of| rank(of, 2, 10.0, &[asks.clone(), made.clone()])));
    assert!(with(call("MPI_Iallgatherv", 40_000, 0.1)).iter().all(|of| of.id != "polling"));
    assert!(with(call("MPI_Rput", 40_000, 0.1)).iter().all(|of| of.id != "polling"));
    // Nothing is known of what it asks for.
    assert!(with(call("MPI_Barrier", 10, 0.1)).iter().all(|of| of.id != "polling"));
    let found = with(call("MPI_Irecv", 10, 0.1));
    assert_eq!(
        one(&found, "polling").advice[0].text,
        "wait with MPI_Wait, or do more work between two calls"
    );
}

#[test]
fn a_leak_is_that_of_the_rank_with_the_most_and_of_handles() {
    let of = |of: u32, made: u64, freed: u64| {
        let made = json!([{"kind": "communicator", "made": made, "freed": freed}]);
        with(rank(of, 1000, 10.0, &[call("MPI_Comm_split", 50_000, 0.001)]), "objects_made", made)
    };
    // As many disconnected as made, and splits that gave most ranks none.
    assert!(found(&[of(0, 500, 500), of(1, 25, 0)]).iter().all(|of| of.id != "leak"));
    // One rank of a thousand.
    let mut ranks: Vec<Value> = (0..999).map(|rank| of(rank, 0, 0)).collect();
    ranks.push(of(999, 50_000, 0));
    let findings = found(&ranks);
    let leak = one(&findings, "leak");
    assert!(
        leak.title.starts_with("rank 999 makes 50,000 communicators more than it frees"),
        "{leak:#?}"
    );
    assert_eq!(leak.ranks, [999]);
}

#[test]
fn seconds_of_several_threads_are_no_share_of_the_run() {
    // As mt.c: four threads of rank 0 wait for rank 1.
    let receiver = rank(0, 2, 1.0, &[call("MPI_Recv", 160, 3.0)]);
    let sender = rank(1, 2, 1.0, &[call("MPI_Send", 160, 0.02)]);
    assert!(found(&[receiver, sender]).iter().all(|finding| finding.at_stake_s.is_none()));
}

/// Two ranks that work for 9 of 10 seconds, each with so many instructions, cycles and cache misses.
fn counted(counts: [[u64; 3]; 2]) -> Vec<Value> {
    let of = |of: u32| rank(of, 2, 10.0, &[call("MPI_Recv", 20, 1.0)]);
    let ranks = on_machine((0..2).map(of).collect(), 2, &[(10.0, 0.0); 2]);
    let of = |(mut rank, counts): (Value, [u64; 3])| {
        let counts = |part: u64| {
            let [instructions, cycles, misses] = counts.map(|count| count / 10 * part);
            json!({"instructions": instructions, "cycles": cycles, "cache_misses": misses})
        };
        // A tenth of them in MPI.
        rank["resources"]["counters"] = json!({
            "total": counts(10), "in_mpi": {"counts": counts(1), "read_share": 1.0}, "processor_s": 10.0,
            "counted_share": 1.0,
        });
        rank
    };
    ranks.into_iter().zip(counts).map(of).collect()
}

/// The example on the page of a rule for which no machine at hand has the counters.
#[track_caller]
fn is_example(finding: &Finding) {
    let examples = include_str!("examples.json");
    let examples: Vec<Finding> = serde_json::from_str(examples).unwrap();
    let example = examples.iter().find(|example| example.id == finding.id);
    let written = serde_json::to_string_pretty(finding).unwrap();
    assert_eq!(example, Some(finding), "{written}");
}

#[test]
fn code_with_few_instructions_per_cycle_waits_for_memory_if_it_misses_the_cache() {
    // 0.4 instructions per cycle, and a miss each 80 instructions, which is one each 200 cycles.
    let slow = [10_000_000_000, 25_000_000_000, 125_000_000];
    let findings = found(&counted([slow; 2]));
    let finding = one(&findings, "memory-bound");
    close(Some(finding.evidence[0].value), 0.4);
    close(Some(finding.evidence[1].value), 12.5);
    is_example(finding);
    // As slow without misses; as many misses in code that is fast; as many instructions as cycles.
    for other in [
        [10_000_000_000, 25_000_000_000, 1_250_000],
        [40_000_000_000, 25_000_000_000, 125_000_000],
        [25_000_000_000, 25_000_000_000, 125_000_000],
    ] {
        assert!(!ids(&found(&counted([other; 2]))).contains(&"memory-bound"), "{other:?}");
    }
}

#[test]
fn a_rank_with_fewer_cycles_a_second_is_found() {
    let at = |cycles| [2 * cycles, cycles, 0];
    let findings = found(&counted([at(26_000_000_000), at(20_000_000_000)]));
    let finding = one(&findings, "different-clocks");
    assert_eq!(finding.ranks, [1]);
    is_example(finding);
    let findings = found(&counted([at(26_000_000_000), at(25_000_000_000)]));
    assert!(!ids(&findings).contains(&"different-clocks"), "{findings:#?}");
    // Cycles in the kernel are not counted.
    let mut ranks = counted([at(26_000_000_000), at(20_000_000_000)]);
    ranks[1]["resources"]["system_s"] = json!(3.0);
    assert!(!ids(&found(&ranks)).contains(&"different-clocks"));
}

#[test]
fn each_rule_has_a_place_and_a_name_of_its_own() {
    assert!(RULES.is_sorted_by(|one, next| one.place < next.place));
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(names.len(), RULES.len());
}
