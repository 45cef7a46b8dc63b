//! PERUSE's numbers in gyan equal those of programs that register their own callbacks.
//!
//! Each program does the same work with its own callbacks and without gyan, then without them under gyan.
//! Timing affects neither what is unexpected nor how long a queue gets, so the numbers are the same. Times
//! differ, but they cannot be longer than the run.

use std::collections::BTreeMap;

use gyan_results::{MessageSource, Messages, PeerQueues, RankProfile, Traffic};

use crate::common::{OPENMPI_SPC, Profiled, each_library};

/// Only this component has callbacks.
const OB1: (&str, &str) = ("OMPI_MCA_pml", "ob1");
const PERUSE: (&str, &str) = ("GYAN_EVENTS", "peruse");

/// What a program counted of a metric: number, largest, mean.
type Counts = BTreeMap<(String, String), (u64, f64, f64)>;

/// The program with its own callbacks, without gyan.
fn own(program: &str, ranks: usize) -> Profiled {
    let file = OPENMPI_SPC.program(program);
    Profiled::run_file(OPENMPI_SPC, ranks, &file, &["own"], &[OB1]).succeeded()
}

/// The program without them, under gyan.
fn watched(program: &str, ranks: usize) -> Profiled {
    Profiled::run(OPENMPI_SPC, ranks, &[program, "plain"], &[OB1, PERUSE]).succeeded()
}

fn number<N: std::str::FromStr>(word: &str) -> N {
    word.parse().unwrap_or_else(|_| panic!("no number: {word}"))
}

fn counts(run: &Profiled, rank: u32) -> Counts {
    let lines = run.truth(rank).into_iter().filter(|line| line[1] != "peer");
    lines
        .map(|line| {
            let counted = (number(&line[2]), number(&line[3]), number(&line[4]));
            ((line[0].clone(), line[1].clone()), counted)
        })
        .collect()
}

fn told(profile: &RankProfile) -> &Messages {
    let [messages] = profile.messages.as_slice() else { panic!("{:?}", profile.messages) };
    assert_eq!(messages.source, MessageSource::Peruse);
    assert_eq!((messages.lost, messages.without_peer), (0, 0));
    messages
}

/// Number, largest and mean of a metric that a program names; zeros if nothing was measured.
fn measured(profile: &RankProfile, traffic: &str, name: &str) -> (u64, f64, f64) {
    let traffic = if traffic == "program" { Traffic::Program } else { Traffic::Collectives };
    let metrics = &told(profile).metrics;
    let found = metrics.iter().find(|row| row.metric.name() == name && row.traffic == traffic);
    let Some(row) = found else { return (0, 0.0, 0.0) };
    assert_eq!(row.histogram.iter().sum::<u64>(), row.n, "{name}");
    assert_ne!(row.histogram.last(), Some(&0), "{name}");
    (row.n, row.max, row.sum / row.n as f64)
}

fn assert_close(one: f64, other: f64, what: &str) {
    assert!((one - other).abs() < 1e-6, "{what}: {one} and {other}");
}

/// Checks that `profile` equals what the program counted on that rank.
fn assert_same(profile: &RankProfile, counts: &Counts, what: &str) {
    for ((traffic, name), (n, max, mean)) in counts {
        let what = format!("{what}, rank {}: {traffic} {name}", profile.rank);
        let (told_n, told_max, told_mean) = measured(profile, traffic, name);
        let of_queue = ["_UNEX_Q", "_POSTED_Q", "TO_MATCH"].iter().any(|part| name.contains(part));
        if traffic == "collectives" && of_queue {
            // Which of the library's own messages are unexpected depends on timing.
            continue;
        }
        assert_eq!(told_n, *n, "{what}");
        if name.starts_with("N_") {
            assert_close(told_max, *max, &what);
            assert_close(told_mean, *mean, &what);
        } else {
            let elapsed = profile.job.elapsed_s;
            assert!(told_max >= 0.0 && told_max < elapsed, "{what}: {told_max} of {elapsed}");
            assert!(told_mean >= 0.0 && told_mean <= told_max, "{what}: {told_mean}, {told_max}");
        }
    }
}

/// What the programs count themselves is what they sent: there is only one truth.
#[test]
fn callbacks_of_a_program_count_what_it_sends() {
    let count = |counts: &Counts, name: &str| counts[&("program".to_owned(), name.to_owned())].0;
    let run = own("peruse_callbacks", 2);
    for (rank, waited) in [(0, 66), (1, 3)] {
        assert_eq!(count(&counts(&run, rank), "T_IN_UNEX_Q"), waited, "rank {rank}");
    }
    let run = own("peruse_queues", 2);
    for (rank, came, looked_for) in [(0, 139, 142), (1, 2, 2)] {
        let counts = counts(&run, rank);
        assert_eq!(count(&counts, "T_SEARCH_POSTED_Q"), came, "rank {rank}");
        assert_eq!(count(&counts, "T_SEARCH_UNEX_Q"), looked_for, "rank {rank}");
    }
    let run = own("peruse_profiler", 3);
    for rank in 0..3 {
        let counts = counts(&run, rank);
        // Two others, and to itself twice.
        let unexpected = 2 * 2 * 10 + 1 + 2 * 10;
        assert_eq!(count(&counts, "N_UNEX_Q_LEN"), unexpected, "rank {rank}");
        assert_eq!(count(&counts, "T_REQ_ACTIVATE_TO_MATCH"), unexpected, "rank {rank}");
        // The same, and one that is cancelled.
        assert_eq!(count(&counts, "N_POSTED_Q_LEN"), 2 * 2 * 10 + 2 * 10 + 1, "rank {rank}");
    }
}

#[test]
fn how_long_messages_wait_is_measured_for_each_that_waits() {
    let (own, watched) = (own("peruse_callbacks", 2), watched("peruse_callbacks", 2));
    for profile in watched.profiles() {
        assert_same(&profile, &counts(&own, profile.rank), "peruse_callbacks");
    }
    let (_, longest, _) = measured(&watched.profiles()[0], "program", "T_IN_UNEX_Q");
    assert!(longest > 0.02, "{longest}");
}

#[test]
fn each_search_of_a_queue_is_measured() {
    let (own, watched) = (own("peruse_queues", 2), watched("peruse_queues", 2));
    for profile in watched.profiles() {
        assert_same(&profile, &counts(&own, profile.rank), "peruse_queues");
    }
}

#[test]
fn all_metrics_of_the_specifications_profiler_are_those_that_its_code_finds() {
    for ranks in [3, 4] {
        let (own, watched) = (own("peruse_profiler", ranks), watched("peruse_profiler", ranks));
        for profile in watched.profiles() {
            assert_same(&profile, &counts(&own, profile.rank), &format!("{ranks} ranks"));
        }
    }
}

/// A peer's row in the form that the program writes.
fn row(queues: &PeerQueues) -> Vec<String> {
    let PeerQueues { peer, posted, posted_max, posted_mean, .. } = queues;
    let peer = peer.map_or("any".to_owned(), |peer| peer.to_string());
    let PeerQueues { unexpected, unexpected_max, unexpected_mean, .. } = queues;
    let row = format!(
        "program peer {peer} posted {posted} {posted_max} {posted_mean:.9} \
         unexpected {unexpected} {unexpected_max} {unexpected_mean:.9}"
    );
    row.split(' ').map(str::to_owned).collect()
}

#[test]
fn the_queues_of_each_peer_are_by_rank_in_the_world_whatever_the_communicator() {
    let ranks: usize = 3;
    let (own, watched) = (own("peruse_peers", ranks), watched("peruse_peers", ranks));
    for profile in watched.profiles() {
        let (rank, me) = (profile.rank, profile.rank as usize);
        let truth: Vec<Vec<String>> =
            own.truth(rank).into_iter().filter(|line| line[0] == "program").collect();
        for line in &truth {
            let of = |at: usize| number::<usize>(&line[at]);
            if line[2] == "any" {
                assert_eq!((of(4), of(8)), (4, 0), "rank {rank}");
                continue;
            }
            let (peer, to_itself) = (of(2), of(2) == me);
            assert_eq!(of(4), peer + 2 * me + 1 + usize::from(to_itself), "rank {rank} {line:?}");
            assert_eq!(of(8), peer * 3 + me + 1 + 2 * usize::from(to_itself), "{rank} {line:?}");
        }
        assert_eq!(truth.len(), ranks + 1, "rank {rank}");
        let rows: Vec<Vec<String>> = told(&profile).peers.iter().map(row).collect();
        assert_eq!(rows, truth, "rank {rank}");
        for queues in &told(&profile).peers {
            let (total, longest) = (queues.unexpected_time_s, queues.unexpected_time_max_s);
            assert!(longest <= total && longest < profile.job.elapsed_s, "rank {rank} {queues:?}");
        }
    }
}

/// `peruse_odd` does all that Open MPI tells too little of.
#[test]
fn what_the_library_leaves_out_makes_no_queue_longer() {
    let profile = &watched("peruse_odd", 2).profiles()[0];
    let (_, longest, _) = measured(profile, "program", "N_UNEX_Q_LEN");
    assert_close(longest, 6.0, "the longest unexpected queue");
    let (posted, longest, _) = measured(profile, "program", "N_POSTED_Q_LEN");
    assert_eq!((posted, measured(profile, "program", "T_IN_POSTED_Q").0), (21, 21));
    assert_close(longest, 7.0, "the longest queue of posted receives");
}

#[test]
fn callbacks_of_several_threads_at_once_lose_nothing() {
    let file = OPENMPI_SPC.compiled("unexpected_threads", &["-g"]);
    let run = Profiled::preloaded(OPENMPI_SPC, 2, &file, &[], &[OB1, PERUSE]).succeeded();
    let profile = &run.profiles()[0];
    // All hundred have arrived before the first is received.
    let (came, longest, mean) = measured(profile, "program", "N_UNEX_Q_LEN");
    assert_eq!(came, 100);
    assert_close(longest, 100.0, "the longest queue");
    assert_close(mean, 50.5, "the mean queue");
    for time in ["T_IN_UNEX_Q", "T_REQ_ACTIVATE_TO_MATCH", "T_XFER_BEGIN_TO_END"] {
        assert_eq!(measured(profile, "program", time).0, 100, "{time}");
    }
    assert_eq!(measured(profile, "program", "N_POSTED_Q_LEN").0, 0);
}

/// A second registration replaces the first, so gyan must not register after the program.
#[test]
fn a_program_that_uses_peruse_itself_counts_the_same_under_gyan() {
    let without = own("peruse_profiler", 3);
    let linked = OPENMPI_SPC.compiled("peruse_profiler", &["-DLINKED"]);
    for (file, refers) in [(OPENMPI_SPC.program("peruse_profiler"), false), (linked, true)] {
        let run = Profiled::preloaded(OPENMPI_SPC, 3, &file, &["own"], &[OB1, PERUSE]).succeeded();
        for profile in run.profiles() {
            let rank = profile.rank;
            for (key, (n, max, mean)) in counts(&without, rank) {
                if key.0 == "collectives" {
                    continue;
                }
                let (own_n, own_max, own_mean) = counts(&run, rank)[&key];
                assert_eq!(own_n, n, "rank {rank} {key:?}");
                if key.1.starts_with("N_") {
                    assert_close(own_max, max, &key.1);
                    assert_close(own_mean, mean, &key.1);
                }
            }
            if refers {
                assert!(profile.messages.is_empty(), "rank {rank} {:?}", profile.messages);
                let said = &profile.coverage.events;
                assert!(said.iter().any(|line| line.contains("PERUSE")), "rank {rank} {said:?}");
            }
        }
    }
}

#[test]
fn an_mpi_without_peruse_says_so_and_the_program_goes_on() {
    for mpi in each_library().into_iter().filter(|mpi| *mpi != OPENMPI_SPC) {
        let run = Profiled::run(mpi, 2, &["peruse_queues", "plain"], &[PERUSE]).succeeded();
        for profile in run.profiles() {
            assert!(profile.messages.is_empty(), "{mpi:?}");
            let said = &profile.coverage.events;
            assert_eq!(said.len(), 1, "{mpi:?} {said:?}");
            assert!(said[0].contains("PERUSE"), "{mpi:?} {said:?}");
        }
    }
}
