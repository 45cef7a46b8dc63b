//! A library with a thousand variables, of which nearly all are 0: 891 counters, 149 timers, and 11 levels and
//! watermarks, as were seen on an MPI that is not here.

use std::fmt::Write;
use std::fs;

use gyan_results::{Class, Number, Pvar, rank_file_name};

use crate::common::{gyan, pvar, succeed};
use crate::fakempi::Faked;

const COUNTERS: usize = 891;
const TIMERS: usize = 149;
const PEAKS: usize = 9;
const UNEXPECTED: &str = "unexpected_recvq_length";
const PROFILE_BYTES: u64 = 45_000;

/// Names such as MPI libraries have: an operation, an algorithm, and what is counted.
fn names() -> impl Iterator<Item = String> {
    let operations = [
        "allgather",
        "allgatherv",
        "allreduce",
        "alltoall",
        "alltoallv",
        "barrier",
        "bcast",
        "exscan",
        "gather",
        "gatherv",
        "reduce",
        "reduce_scatter",
        "scan",
        "scatter",
        "scatterv",
        "iallreduce",
        "ibcast",
    ];
    let algorithms = [
        "ring",
        "two_level_shm",
        "recursive_doubling",
        "binomial_tree",
        "pairwise_exchange",
        "intra_node",
        "hierarchical_multicast",
        "scatter_ring_allgather",
        "knomial",
        "nonblocking_pipelined",
    ];
    let counted = ["count_send", "count_recv", "bytes_send", "bytes_recv", "calls", "retries"];
    operations.into_iter().flat_map(move |operation| {
        algorithms.into_iter().flat_map(move |algorithm| {
            counted
                .into_iter()
                .map(move |counted| format!("coll_{operation}_{algorithm}_{counted}"))
        })
    })
}

/// The script of the library; `facts`: more of each counter.
fn library(facts: &str) -> String {
    let mut script = String::new();
    for name in names().take(COUNTERS) {
        let facts = format!("continuous readonly {facts}");
        writeln!(script, "pvar {name} COUNTER MPI_UNSIGNED_LONG_LONG {facts}").unwrap();
    }
    for name in names().take(TIMERS) {
        writeln!(script, "pvar {name}_time TIMER MPI_DOUBLE continuous readonly").unwrap();
    }
    for (queue, shows) in [("posted_recvq_length", "posted"), (UNEXPECTED, "unexpected")] {
        let facts = "continuous readonly counted";
        writeln!(script, "pvar {queue} LEVEL MPI_UNSIGNED {facts} shows {shows}").unwrap();
    }
    let facts = format!("continuous readonly copies {PEAKS}");
    writeln!(script, "pvar transport_queue_peak HIGHWATERMARK MPI_UNSIGNED_LONG {facts}").unwrap();
    script
}

#[test]
fn a_queue_is_found_behind_a_thousand_counters_and_the_profile_is_small() {
    let moved = names().nth(7).unwrap();
    let script = format!("{}at MPI_Barrier set {moved} 3\n", library(""));
    let run_of = Faked::run(&script, &["fake_events", "20", "37"], &[]);
    let profile = run_of.profile();
    let samples = pvar(&profile, UNEXPECTED).samples.clone().unwrap();
    assert_eq!(samples.max, [Number::Integer(37)], "{samples:?}");
    // Each variable is there, with its numbers.
    assert_eq!(profile.coverage.sampled, COUNTERS + TIMERS + 2 + PEAKS);
    assert_eq!(profile.pvars.len(), profile.coverage.sampled);
    let is_zero = |pvar: &&Pvar| {
        pvar.elements()
            .values()
            .all(|of| of.delta.is_some_and(Number::is_zero) && of.end.is_some_and(Number::is_zero))
    };
    let of_class = |class| profile.pvars.iter().filter(move |pvar| pvar.class == class);
    assert_eq!(of_class(Class::Counter).filter(is_zero).count(), COUNTERS - 1);
    assert_eq!(of_class(Class::Timer).filter(is_zero).count(), TIMERS);
    assert_eq!(
        pvar(&profile, &moved).elements().values().next().unwrap().delta,
        Some(Number::Integer(3))
    );
    for name in names().take(COUNTERS) {
        assert_eq!(pvar(&profile, &name).class, Class::Counter);
    }
    assert!(
        of_class(Class::Counter).all(|pvar| pvar.samples.is_none()),
        "counters are not sampled"
    );
    let file = run_of.directory().join(rank_file_name(0));
    let bytes = fs::metadata(file).unwrap().len();
    assert!(bytes < PROFILE_BYTES, "{bytes}");
    // The report shows those that are 0 where the user wants all, as it does those that share no entry.
    let report = |more: &[&str]| {
        let shown =
            succeed(gyan().arg("report").arg(run_of.directory()).arg("--variables").args(more));
        shown.stdout
    };
    assert!(report(&[]).contains(&moved) && !report(&[]).contains("coll_scan_ring_retries"));
    let all = report(&["--all"]);
    assert!(names().take(COUNTERS).all(|name| all.contains(&name)));
}

#[test]
fn counters_are_read_at_the_start_and_at_the_end_and_levels_at_calls() {
    // Without records.
    let settings = [("GYAN_KEEPER", "off")];
    let run = Faked::run(&library("counted"), &["fake_events", "20", "37"], &settings);
    run.profile();
    let readings = run.lines("read").into_iter().map(|line| {
        let (name, number) = line.split_once(' ').unwrap();
        (name, number.parse::<usize>().unwrap())
    });
    let (levels, counters): (Vec<_>, Vec<_>) =
        readings.partition(|(name, _)| name.contains("recvq"));
    assert_eq!(counters.len(), COUNTERS);
    assert!(counters.iter().all(|(_, number)| *number == 2), "{counters:?}");
    assert!(levels.iter().all(|(_, number)| *number > 20), "{levels:?}");
}
