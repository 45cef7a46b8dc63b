//! Do comparisons of runs fail what is slower, and nothing else more often than they say?

use fastrand::Rng;
use gyan_command::shown::judged;
use gyan_results::Summary;

use super::definition::Truth;
use super::events::Events;
use super::program::{Program, WORLD, What};
use super::{number, observer, runs};
use crate::mpi::functions::collective::MPI_Allreduce;

/// The chance of an error of `gyan check`.
const ALPHA: f64 = 0.05;
/// How much longer some runs take than others, at most.
const NOISE: f64 = 0.02;

/// A run whose own code takes `work` times as long as usual, and whose collectives `calls` times.
fn summary(random: &mut Rng, work: f64, calls: f64) -> Summary {
    let mut program = Program::of_ranks(2);
    let noise = 1.0 + NOISE * random.f64();
    for _ in 0..20 {
        for rank in program.numbers() {
            program.work(rank, 0.05 * work * noise * (1.0 + 0.1 * random.f64()));
        }
        let seconds = 0.02 * calls * noise * (1.0 + 0.1 * random.f64());
        let what = What::Together { communicator: WORLD, seconds, bytes: 8 };
        program.all_call(WORLD, MPI_Allreduce, what);
    }
    let events = Events::of(&program);
    assert!(Truth::of(&program, &events).ranks[0].elapsed_s > 1.0);
    observer::summary(&observer::profiles(&program, &events, random.u64(..)))
}

/// In how many of `comparisons` the new runs are failed.
fn failed(comparisons: u64, (new, baselines): (usize, usize), (work, calls): (f64, f64)) -> u64 {
    let seeds = number("GYAN_TRUTH_SEED").map_or(1..=comparisons, |seed| seed..=seed);
    let is_failed = |seed: &u64| {
        let mut random = Rng::with_seed(*seed);
        let baselines: Vec<Summary> =
            (0..baselines).map(|_| summary(&mut random, 1.0, 1.0)).collect();
        let new: Vec<Summary> = (0..new).map(|_| summary(&mut random, work, calls)).collect();
        !judged(&new, &baselines).passed
    };
    seeds.filter(is_failed).count() as u64
}

#[test]
fn identical_programs_fail_no_more_often_than_stated() {
    let comparisons = runs(0.2);
    for sides in [(4, 4), (3, 5)] {
        let failed = failed(comparisons, sides, (1.0, 1.0)) as f64;
        let expected = ALPHA * comparisons as f64;
        // Three standard deviations more.
        let at_most = expected + 3.0 * (expected * (1.0 - ALPHA)).sqrt();
        assert!(failed <= at_most, "{sides:?}: {failed} of {comparisons}");
    }
}

#[test]
fn a_program_that_takes_30_percent_longer_fails_wherever_the_time_goes() {
    let comparisons = runs(0.1);
    for sides in [(4, 4), (3, 5), (2, 8)] {
        // The collective is two sevenths of the run.
        for slower in [(1.42, 1.0), (1.0, 2.05)] {
            let failed = failed(comparisons, sides, slower);
            assert_eq!(failed, comparisons, "{sides:?} {slower:?}");
        }
    }
}
