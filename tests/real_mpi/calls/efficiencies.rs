//! Efficiencies are what their definitions (POP) make of the program's own clock, whatever the pattern of its work.

use gyan_results::{Efficiencies, Summary};

use crate::common::{MPICH, Mpi, OPENMPI, Profiled, in_some_try, reported_summary};

/// How far they may be from the truth.
const CLOSE: f64 = 0.02;
/// On a busy machine a rank may lose its processor between its own clock and that of gyan; an error would be in all.
const TRIES: usize = 4;

/// What a rank says: seconds outside MPI in all and in two phases, and of the run.
type OfRank = [f64; 4];

fn truth(run: &Profiled, ranks: u32) -> Vec<OfRank> {
    let of = |rank| {
        let words = run.truth(rank).remove(0);
        let number = |at: usize| words[at].parse::<f64>().unwrap();
        [0, 1, 2, 3].map(number)
    };
    (0..ranks).map(of).collect()
}

fn reported(run_of: &Profiled) -> (Summary, Efficiencies) {
    let summary = reported_summary(&run_of.directory);
    let efficiencies = summary.efficiencies.clone().expect("efficiencies");
    (summary, efficiencies)
}

fn mean_and_most(of: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let number = of.clone().count() as f64;
    (of.clone().sum::<f64>() / number, of.fold(0.0, f64::max))
}

fn is_close(found: f64, truth: f64) -> bool {
    (found - truth).abs() <= CLOSE
}

fn assert_true(mpi: Mpi, pattern: &str, ranks: usize) {
    let run = Profiled::run(mpi, ranks, &["balance", pattern], &[]);
    let ranks = u32::try_from(ranks).unwrap();
    let truth = truth(&run, ranks);
    let (summary, found) = reported(&run);
    // What gyan's start took is no part of the run; the program cannot know it.
    let starts: Vec<f64> = run.profiles().iter().map(|of| of.overhead.start_s()).collect();
    let (mean, most) = mean_and_most(truth.iter().map(|of| of[0]));
    let (_, run_s) = mean_and_most(truth.iter().zip(&starts).map(|(of, start)| of[3] - start));
    let what = format!("{mpi:?} {pattern} {ranks}: {found:?} {truth:?} {starts:?}");
    assert!(is_close(found.load_balance, mean / most), "balance {}: {what}", mean / most);
    assert!(is_close(found.communication, most / run_s), "communication: {what}");
    assert!(is_close(found.parallel, mean / run_s), "parallel: {what}");
    if pattern == "uneven" {
        assert_eq!(found.busiest_rank, ranks - 1, "{what}");
        let run = summary.run_s.unwrap();
        assert!(run.max.as_f64() - run.avg > 0.3, "ranks that end early wait: {run:?}");
    }
    if pattern == "phases" {
        for (phase, of) in [("level 3", 1), ("level 4", 2)] {
            let (mean, most) = mean_and_most(truth.iter().map(|rank| rank[of]));
            let found = found.phases.iter().find(|found| found.phase == phase).unwrap();
            assert!(is_close(found.load_balance, mean / most), "{phase} {}: {what}", mean / most);
        }
    }
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn they_are_what_the_clock_of_the_program_says() {
    for (mpi, ranks) in [(OPENMPI, 2), (OPENMPI, 4), (MPICH, 4)] {
        for pattern in ["equal", "uneven", "chain", "relay", "phases"] {
            let is_true = in_some_try(TRIES, || assert_true(mpi, pattern, ranks)).is_some();
            assert!(is_true, "{mpi:?} {pattern} {ranks}");
        }
    }
}
