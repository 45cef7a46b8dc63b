//! Runs whose truth is known because it is what they are made of, reduced as real profiles are.

use std::collections::BTreeMap;

use gyan_results::{Finding, RankProfile, Reduction, Summary};
use serde_json::{Value, json};

use super::{Answers, find};

const LIBRARY: &str = "Open MPI v4.1.4, package: x";

/// A function that a rank called so many times, for so many seconds.
fn call(name: &str, count: u64, time_s: f64) -> Value {
    let longest_s = time_s / count.max(1) as f64;
    json!({
        "name": name, "count": count, "timed": count, "time_s": time_s, "time_error_s": 0.0, "time_max_s": longest_s,
    })
}

/// The same with its field.
fn with(mut whole: Value, field: &str, value: Value) -> Value {
    whole[field] = value;
    whole
}

/// Calls that all moved as many bytes.
#[allow(dead_code)]
fn sized(call: Value, bytes: u64) -> Value {
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
fn rank(rank: u32, size: u32, elapsed_s: f64, calls: &[Value]) -> Value {
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
fn found(ranks: &[Value]) -> Vec<Finding> {
    let summary = reduced(ranks);
    let Answers { findings, .. } = find(&summary, &summary.queues(), &BTreeMap::new());
    let claimed_s: f64 = findings.iter().filter_map(|finding| finding.at_stake_s).sum();
    let run_s = summary.elapsed_s.as_ref().unwrap().sum.as_f64();
    assert!(claimed_s <= run_s * 1.000_001, "{claimed_s} of {run_s}: {findings:#?}");
    findings
}

fn ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[track_caller]
fn one<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    let one = findings.iter().find(|finding| finding.id == id);
    one.unwrap_or_else(|| panic!("no {id} in {findings:#?}"))
}

#[track_caller]
fn close(value: Option<f64>, expected: f64) {
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
