//! gyan keeps its own cost within a budget by timing fewer calls; counts stay exact, and the times are
//! right within the errors that the profile states.

use gyan_results::{Call, RankProfile};

use crate::common::{MPIS, Profiled, call, counts, in_some_try};

const NO_LIMIT: (&str, &str) = ("GYAN_BUDGET", "none");

const TRIES: usize = 4;

/// Functions that start or end MPI, or take less time than two readings of the clock: they need not be timed.
fn need_not_be_timed(name: &str) -> bool {
    let names = ["MPI_Finalize", "MPI_Wtime", "MPI_Wtick", "MPI_Pcontrol"];
    name.starts_with("MPI_Init") || name.starts_with("MPI_Aint_") || names.contains(&name)
}

fn timed(profile: &RankProfile) -> impl Iterator<Item = &Call> {
    profile.calls.iter().filter(|call| !need_not_be_timed(&call.name))
}

/// Whatever was timed, the numbers are consistent.
fn assert_consistent(profile: &RankProfile) {
    let mut total = 0.0;
    for call in &profile.calls {
        let what = format!("rank {}: {call:?}", profile.rank);
        assert!(call.timed <= call.count, "{what}");
        if call.timed == 0 {
            assert_eq!((call.time_s, call.time_max_s), (None, None), "{what}");
            continue;
        }
        let (time, max) = (call.time_s.unwrap(), call.time_max_s.unwrap());
        assert!(time.is_finite(), "{what}");
        // Never contradicting the observations: no less than the longest, no mean above it.
        assert!((-1e-6..=time + 1e-6).contains(&max), "{what}");
        assert!(time <= call.count as f64 * max.max(0.0) * (1.0 + 1e-9) + 1e-6, "{what}");
        match call.time_error_s {
            Some(error) => assert!(error.is_finite() && error >= 0.0, "{what}"),
            None => assert!(call.timed < call.count, "{what}"),
        }
        if call.timed == call.count {
            assert_eq!(call.time_error_s, Some(0.0), "{what}");
            assert_eq!(call.time_histogram.iter().sum::<u64>(), call.count, "{what}");
        }
        assert!(call.time_histogram.last().is_none_or(|bar| *bar > 0), "{what}");
        total += time;
    }
    let in_mpi = profile.in_mpi.unwrap();
    let is_sum = (in_mpi.time_s - total).abs() <= 1e-6 + total.abs() * 1e-6;
    assert!(is_sum, "{in_mpi:?} {total}");
    // The functions may share what is not known of them, or leave it to each other.
    let known = profile.calls.iter().filter(|call| call.timed > 0);
    let errors: Option<f64> = known.map(|call| call.time_error_s).sum();
    if let (Some(errors), Some(found)) = (errors, in_mpi.time_error_s) {
        assert!((0.0..=errors * (1.0 + 1e-6) + 1e-9).contains(&found), "{in_mpi:?}");
    }
    let share = in_mpi.wall_s.unwrap_or(in_mpi.time_s) / profile.job.elapsed_s;
    let elapsed_s = profile.job.elapsed_s * (1.0 + 1e-6);
    assert!(in_mpi.wall().is_none_or(|wall| wall <= elapsed_s), "{in_mpi:?} {elapsed_s}");
    assert!((in_mpi.share - share).abs() < 1e-6, "{in_mpi:?} {share}");
    if profile.mpi.thread_level != "MPI_THREAD_MULTIPLE" {
        assert!(in_mpi.share <= 1.0 + 1e-6, "{in_mpi:?}");
    }
    let clock = profile.clock.as_ref().unwrap();
    assert!(["tsc", "clock_gettime"].contains(&clock.source.as_str()), "{clock:?}");
    assert!(clock.read_s > 0.0 && clock.read_s < 1e-3, "{clock:?}");
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn under_the_smallest_budget_counts_are_exact_and_each_function_has_a_time() {
    for mpi in MPIS {
        let settings = [("GYAN_BUDGET", "0.000001%")];
        let run = Profiled::run(mpi, 4, &["calls"], &settings).succeeded();
        for profile in run.profiles() {
            assert_eq!(counts(&profile), run.true_counts(profile.rank));
            assert!(timed(&profile).all(|call| call.timed >= 1), "{:?}", profile.calls);
            assert_consistent(&profile);
            let budget = profile.overhead.budget.unwrap();
            assert!((budget - 1e-8).abs() < 1e-12, "{budget}");
        }
    }
}

#[test]
fn without_a_budget_every_call_is_timed() {
    for mpi in MPIS {
        let run = Profiled::run(mpi, 4, &["calls"], &[NO_LIMIT]).succeeded();
        for profile in run.profiles() {
            assert!(timed(&profile).count() > 100);
            assert!(timed(&profile).all(|call| call.timed == call.count), "{:?}", profile.calls);
            assert_consistent(&profile);
            assert_eq!(profile.overhead.budget, None);
            assert!(!profile.overhead.is_over_budget());
        }
    }
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn the_time_of_a_receive_that_waits_is_the_time_that_it_waits() {
    for mpi in MPIS {
        for settings in [&[][..], &[NO_LIMIT][..]] {
            let run = Profiled::run(mpi, 2, &["waiting"], settings).succeeded();
            let profile = &run.profiles()[0];
            assert_consistent(profile);
            let truth = &run.truth(0)[0];
            let (sum, longest): (f64, f64) = (truth[1].parse().unwrap(), truth[2].parse().unwrap());
            let receive = call(profile, "MPI_Recv");
            assert_eq!(receive.count, 20);
            let (time, max) = (receive.time_s.unwrap(), receive.time_max_s.unwrap());
            // The first calls of a function always are, and long ones too.
            assert_eq!((receive.timed, receive.time_error_s), (20, Some(0.0)));
            assert!(time > 0.9 * sum && time < sum + 1e-3, "{time} for {sum}");
            assert!(max < longest + 1e-4, "{max} for {longest}");
            assert!(max > 0.9 * longest - 1e-3, "{max} for {longest}");
            let in_mpi = profile.in_mpi.unwrap();
            assert!(in_mpi.time_s > 0.9 * sum, "{in_mpi:?}");
        }
    }
}

/// The unit tests of `timing` check whether the estimate is right within its error: here, an interruption of an
/// untimed call would be missing from the estimate.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn the_time_in_calls_is_no_more_than_the_program_measures_around_them() {
    for mpi in MPIS {
        // The usual: not all of the calls are timed.
        for settings in [&[NO_LIMIT][..], &[("GYAN_BUDGET", "0.5%")][..]] {
            let run = Profiled::run(mpi, 1, &["mixture"], settings).succeeded();
            let profile = &run.profiles()[0];
            assert_consistent(profile);
            let truth = &run.truth(0)[0];
            let total: f64 = truth[2].parse().unwrap();
            let reduce = call(profile, "MPI_Reduce_local");
            assert_eq!(reduce.count, 20_000);
            let time = reduce.time_s.unwrap();
            let error = 6.0 * reduce.time_error_s.unwrap_or(0.0);
            // Two clocks, one of which is measured with the other.
            let clocks = 1e-3 * total;
            assert!(time - error < total + clocks, "{time} for {total}: {reduce:?}");
            if settings == [NO_LIMIT] {
                assert_eq!(reduce.timed, reduce.count);
                // Nearly all of it is spent inside the long calls.
                assert!(time > 0.5 * total, "{time} for {total}: {reduce:?}");
            } else {
                assert!(reduce.timed > 0, "{reduce:?}");
            }
        }
    }
}

/// How much of it is told depends on the machine, which the simulated runs of `calls` do not. On a busy one a wait for a processor may
/// be where neither clock looks.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn between_long_computations_calls_take_the_time_that_they_take_by_the_clock_of_the_program() {
    for mpi in MPIS {
        let is_true = in_some_try(TRIES, || {
            let run = Profiled::run(mpi, 2, &["steps"], &[]).succeeded();
            for profile in run.profiles() {
                assert_consistent(&profile);
                // Between the two clocks is what gyan costs, and a reading of the program's.
                let overhead = &profile.overhead;
                let of_gyan = overhead.sampling_s + overhead.wrappers_s;
                for truth in run.truth(profile.rank) {
                    let found = call(&profile, &truth[0]);
                    let (count, took): (u64, f64) =
                        (truth[1].parse().unwrap(), truth[2].parse().unwrap());
                    assert_eq!(found.count, count);
                    let time = found.time_s.unwrap();
                    let clocks = 1e-6 * count as f64 + of_gyan;
                    let error = 4.0 * found.time_error_s.unwrap_or(0.0);
                    assert!(time - error < took, "{found:?} in {took}");
                    let is_told = found.time_error_s.is_some();
                    assert!(!is_told || time + error + clocks > took, "{found:?} in {took}");
                }
            }
        });
        assert!(is_true.is_some(), "{mpi:?}");
    }
}

/// How far below the truth a lower bound is depends on the machine.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn a_loop_of_short_calls_takes_no_longer_than_by_the_clock_of_the_program() {
    for mpi in MPIS {
        let run = Profiled::run(mpi, 2, &["short_loop"], &[]).succeeded();
        for profile in &run.profiles() {
            assert_consistent(profile);
            let truth = &run.truth(profile.rank)[0];
            let took: f64 = truth[2].parse().unwrap();
            let bcast = call(profile, "MPI_Bcast");
            assert_eq!(bcast.count, 300_000);
            let (time, error) = (bcast.time_s.unwrap(), bcast.time_error_s.unwrap_or(0.0));
            // Two clocks, one of which is measured with the other.
            assert!(time - 4.0 * error < 1.001 * took, "{bcast:?} in {took}");
            assert!(bcast.timed == bcast.count || bcast.time_error_s != Some(0.0));
        }
    }
}

/// The clock of the program says what they take without gyan, which is not in the way then.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn calls_as_short_as_a_reading_of_the_clock_take_at_least_no_more_than_without_gyan() {
    for mpi in MPIS {
        for (name, function) in
            [("testany", "MPI_Testany"), ("iprobe", "MPI_Iprobe"), ("comm_rank", "MPI_Comm_rank")]
        {
            let arguments = [name, "1000000"];
            let file = mpi.program("short_loop");
            // Two runs, in which the machine may differ.
            let is_true = in_some_try(TRIES, || {
                let bare = Profiled::run_file(mpi, 1, &file, &arguments, &[]).succeeded();
                let took: f64 = bare.truth(0)[0][2].parse().unwrap();
                let run = Profiled::preloaded(mpi, 1, &file, &arguments, &[]).succeeded();
                let profile = run.profiles().remove(0);
                let found = call(&profile, function);
                assert!(found.count >= 1_000_000 && found.timed < found.count, "{mpi:?} {found:?}");
                let time = found.time_s.unwrap();
                assert!(
                    found.time_error_s.is_some() || time <= took,
                    "{mpi:?} {found:?} in {took}"
                );
            });
            assert!(is_true.is_some(), "{mpi:?} {name}");
        }
    }
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn eight_threads_are_counted_exactly_and_timed_within_the_budget() {
    for mpi in MPIS {
        for settings in [NO_LIMIT, ("GYAN_SERIES", "1ms")] {
            let run = Profiled::run(mpi, 2, &["threads"], &[settings]).succeeded();
            for profile in run.profiles() {
                let receive = call(&profile, "MPI_Recv");
                assert_eq!(receive.count, 188_010);
                assert_consistent(&profile);
                // The first call of each of nine threads, or all.
                let least = if settings == NO_LIMIT { receive.count } else { 9 };
                assert!(receive.timed >= least, "{}", receive.timed);
            }
        }
    }
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn what_gyan_costs_is_in_the_profile() {
    for mpi in MPIS {
        for profile in Profiled::run(mpi, 2, &["halo_exchange", "60", "400"], &[]).profiles() {
            let overhead = &profile.overhead;
            assert!(overhead.wrappers_s > 0.0 && overhead.finalize_s > 0.0, "{overhead:?}");
            let running = overhead.sampling_s + overhead.wrappers_s;
            let elapsed = profile.job.elapsed_s;
            assert!((overhead.running_share - running / elapsed).abs() < 1e-9, "{overhead:?}");
            let share = (running + overhead.init_s + overhead.finalize_s) / elapsed;
            assert!((overhead.share - share).abs() < 1e-9, "{overhead:?}");
        }
    }
}
