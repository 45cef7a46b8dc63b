//! `gyan check` with real runs: what is unchanged passes, what is not fails.

use gyan_results::{CheckRule, Judgement};
use tempfile::TempDir;

use crate::common::{MPIS, Mpi, Outcome, gyan, run};

/// A run into `directory` on two ranks.
fn record(here: &TempDir, mpi: Mpi, directory: &str, program: &[&str]) {
    let mut command = gyan();
    command.current_dir(here).args(["run", "--no-report", "-o", directory, "--"]);
    command.args(mpi.mpirun(2)).arg(mpi.program(program[0])).args(&program[1..]);
    let outcome = run(&mut command);
    assert_eq!(outcome.code, 0, "{mpi:?}: {}", outcome.stderr);
}

fn check(here: &TempDir, new: &[String], baselines: &[String], options: &[&str]) -> Outcome {
    let mut command = gyan();
    command.current_dir(here).arg("check").args(options).args(new).arg("--against").args(baselines);
    run(&mut command)
}

#[test]
fn a_run_with_more_messages_fails_and_names_them() {
    for mpi in MPIS {
        let here = TempDir::new().unwrap();
        for (directory, steps) in [("base", "100"), ("same", "100"), ("more", "150")] {
            record(&here, mpi, directory, &["halo_exchange", "60", steps]);
        }
        let against_base = |new: &str| check(&here, &[new.into()], &["base".into()], &[]);
        let same = against_base("same");
        assert_eq!(same.code, 0, "{mpi:?}: {} {}", same.stdout, same.stderr);
        let more = against_base("more");
        assert_eq!(more.code, 1, "{mpi:?}: {} {}", more.stdout, more.stderr);
        assert!(more.stdout.starts_with("FAILED: "), "{mpi:?}: {}", more.stdout);
        // Of two ranks each sends one of its two rows; the other goes to MPI_PROC_NULL.
        for line in ["messages 200 300 +50.0 % 202", "calls of MPI_Isend 400 600 +50.0 % 404"] {
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(more.stdout.lines().any(|of| words(of) == line), "{line}: {}", more.stdout);
        }
    }
}

/// How many runs are made of each program and MPI, and how many comparisons of them.
const RUNS: usize = 25;
const COMPARISONS: usize = 25;

/// 100 comparisons of new runs with baselines, all of the same program: 4 drawn at random against 4 others, and the last 4
/// of 8 that were made one after the other against the first 4. Prints what failed.
#[test]
#[ignore = "takes minutes, and its times are those of this machine"]
fn comparisons_of_the_same_program_raise_no_false_alarms() {
    let here = TempDir::new().unwrap();
    let (mut counts, mut times) = ([0; 3], [0; 2]);
    for mpi in MPIS {
        for program in [&["halo_exchange", "300", "400"][..], &["solver", "400"]] {
            let runs: Vec<String> =
                (0..RUNS).map(|at| format!("{}-{}-{at}", program[0], mpi.name)).collect();
            runs.iter().for_each(|name| record(&here, mpi, name, program));
            let mut random = fastrand::Rng::with_seed(22);
            for at in 0..COMPARISONS {
                let mut drawn = random.choose_multiple(runs.iter().cloned(), 8);
                random.shuffle(&mut drawn);
                let in_order = runs[at.min(RUNS - 8)..][..8].to_vec();
                let one_of_each = vec![drawn[0].clone(), drawn[1].clone()];
                for (way, of) in [drawn, in_order, one_of_each].iter().enumerate() {
                    let (baselines, new) = of.split_at(of.len() / 2);
                    let outcome = check(&here, new, baselines, &["--format", "json"]);
                    let judgement: Judgement = serde_json::from_str(&outcome.stdout).unwrap();
                    let is_time = |rule| rule == CheckRule::Times;
                    counts[way] += usize::from(judgement.failed().any(|row| !is_time(row.rule)));
                    let slower = judgement.failed().any(|row| is_time(row.rule));
                    if let Some(times) = times.get_mut(way) {
                        *times += usize::from(slower);
                    }
                    for row in judgement.failed() {
                        println!("{mpi:?} {program:?} way {way}: {row:?}");
                    }
                }
            }
        }
    }
    let number = COMPARISONS * 2 * MPIS.len();
    println!("{number} comparisons each: 4 with 4 drawn, 4 with the 4 before, 1 with 1");
    println!("failed by counts and findings: {counts:?}, by times: {times:?}");
    assert_eq!(counts, [0; 3]);
    assert!(times[0] <= number / 20, "{times:?}");
}
