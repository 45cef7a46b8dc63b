//! The critical path is on the ranks on which a program finds it by its own clock (`tests/programs/critical_path.c`).

use gyan_results::{CriticalPath, PathOfRank};
use serde_json::Value;

use super::waiting::summary;
use crate::common::{MPIS, Mpi, Profiled, report};
use crate::timeline::timeline_json;

const RANKS: usize = 4;
const STEPS: usize = 20;
/// Of the path, so much may be on another rank: the two read their clocks one after the other, which may decide otherwise in a step.
const OFF: f64 = 0.06;

/// When a rank began to sleep and sent in a step, and when it began and ended to wait, in seconds.
#[derive(Clone, Copy, Default)]
struct StepTimes {
    sleeps: f64,
    sent: f64,
    waits: f64,
    ended: f64,
}

/// By rank, the part of the critical path on it: back in time from the rank that ended last as far as its latest wait, and on from
/// there along the neighbour that sent last, and to when the first rank began, which `begins` says of its first step.
fn by_definition(printed: &str, begins: impl Fn(&StepTimes) -> f64) -> Vec<f64> {
    let mut times = vec![vec![StepTimes::default(); STEPS]; RANKS];
    let mut lines = 0;
    for line in printed.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [rank, step, seconds @ ..] = &words[..] else { panic!("{line}") };
        let seconds: Vec<f64> = seconds.iter().map(|word| word.parse().unwrap()).collect();
        let [sleeps, sent, waits, ended] = seconds[..] else { panic!("{line}") };
        let (rank, step): (usize, usize) = (rank.parse().unwrap(), step.parse().unwrap());
        times[rank][step] = StepTimes { sleeps, sent, waits, ended };
        lines += 1;
    }
    assert_eq!(lines, RANKS * STEPS, "{printed}");
    let ended = |rank: &usize| times[*rank][STEPS - 1].ended;
    let mut rank = (0..RANKS).max_by(|one, other| ended(one).total_cmp(&ended(other))).unwrap();
    let begun = times.iter().map(|of| begins(&of[0])).fold(f64::INFINITY, f64::min);
    let (mut until, whole) = (ended(&rank), ended(&rank) - begun);
    let mut parts = vec![0.0; RANKS];
    for step in (0..STEPS).rev() {
        let neighbours = [(rank + 1) % RANKS, (rank + RANKS - 1) % RANKS];
        let sent = |rank: &usize| times[*rank][step].sent;
        let last = neighbours.into_iter().max_by(|one, other| sent(one).total_cmp(&sent(other)));
        let last = last.unwrap();
        if sent(&last) > times[rank][step].waits {
            parts[rank] += (until - sent(&last)) / whole;
            (until, rank) = (sent(&last), last);
        }
    }
    parts[rank] += (until - begun) / whole;
    parts
}

/// The parts of the path by definition, which are what gyan finds, and the first screen and that of `--waiting`.
fn checked(mpi: Mpi, slow: &str) -> (Vec<f64>, [String; 2]) {
    let program = mpi.compiled("critical_path", &["-g"]);
    let settings = [("GYAN_TIMELINE", "4MiB")];
    let profiled =
        Profiled::preloaded(mpi, RANKS, &program, &[&STEPS.to_string(), slow], &settings)
            .succeeded();
    let printed = &profiled.outcome.stdout;
    // The first call that gyan compares is the first one in which a rank sends.
    let truth = by_definition(printed, |of| of.sent);
    let found = summary(&profiled.profiles()).critical_path.unwrap();
    in_timeline(&profiled, &by_definition(printed, |of| of.sleeps), &found);
    for (rank, part) in (0..).zip(&truth) {
        let of_rank = found.ranks.iter().find(|of| of.rank == rank);
        let share = of_rank.map_or(0.0, |of| of.share / found.known_share);
        assert!((share - part).abs() < OFF, "{mpi:?} rank {rank}: {share} {truth:?} {found:?}");
    }
    let screen = |options: &[&str]| report(&profiled.directory, options).stdout;
    (truth, [screen(&[]), screen(&["--waiting"])])
}

/// The path that follows from every call is the one of the program's own clock, and within what the sampled path says of itself.
fn in_timeline(profiled: &Profiled, truth: &[f64], sampled: &CriticalPath) {
    let exact = timeline_json(&profiled.directory);
    let path = &exact["critical_path"];
    let seconds = |of: &Value, key: &str| of[key].as_f64().unwrap();
    assert_eq!(path["known_s"], path["window_s"], "{path}");
    let ranks = path["ranks"].as_array().unwrap();
    let in_mpi_s = |of: &Value, is_counted: fn(&Value) -> bool| -> f64 {
        let functions = of["functions"].as_array().unwrap().iter();
        functions.filter(|of| is_counted(of)).map(|of| seconds(of, "time_s")).sum()
    };
    // The program's clock ends before that.
    let gathers_s = |of: &Value| in_mpi_s(of, |of| of["function"] == "MPI_Gather");
    let window_s = seconds(path, "window_s") - ranks.iter().map(gathers_s).sum::<f64>();
    for (rank, part) in (0..).zip(truth) {
        let of_rank = ranks.iter().find(|of| of["rank"] == rank);
        let time_s = of_rank.map_or(0.0, |of| seconds(of, "time_s") - gathers_s(of));
        let share = time_s / window_s;
        assert!((share - part).abs() < OFF, "rank {rank}: {share} {truth:?} {path}");
        if let Some(of_rank) = of_rank {
            let parts_s = seconds(of_rank, "own_code_s") + in_mpi_s(of_rank, |_| true);
            assert!((parts_s - seconds(of_rank, "time_s")).abs() < 1e-6, "rank {rank}: {path}");
        }
        let of_rank = sampled.ranks.iter().find(|of| u64::from(of.rank) == rank);
        let Some(PathOfRank { share: sampled_share, share_error, .. }) = of_rank else { continue };
        // The sampled path begins with the first call that is compared, a step later.
        let off = (sampled_share / sampled.known_share - share).abs();
        let error = 2.0 * share_error / sampled.known_share;
        assert!(off < error + OFF, "rank {rank}: {sampled:?} {path}");
    }
}

#[test]
fn the_critical_path_goes_through_the_rank_that_is_slow() {
    for mpi in MPIS {
        let (truth, screens) = checked(mpi, "2");
        // On a busy machine other ranks may come later than the slow one.
        if truth[2] > 0.75 {
            for screen in screens {
                let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(words.contains("critical path: rank 2 for "), "{mpi:?} {screen}");
                assert!(
                    words.contains("of it leads up to MPI_Isend at critical_path.c:"),
                    "{screen}"
                );
            }
        }
    }
}

#[test]
fn where_ranks_are_slow_in_turn_no_rank_stands_out() {
    for mpi in MPIS {
        let (truth, [first, _]) = checked(mpi, "-1");
        let most = truth.iter().copied().fold(0.0, f64::max);
        if most + OFF < 1.5 / RANKS as f64 {
            assert!(!first.contains("critical path"), "{mpi:?} {first}");
        }
    }
}
