//! `gyan check` with real runs: an unchanged program passes, a changed one fails.

use gyan_results::{CheckRule, JudgedRow, Judgement};
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
        // With two ranks, each sends one of its two rows; the other goes to MPI_PROC_NULL.
        for line in ["messages 200 300 +50.0 % 202", "calls of MPI_Isend 400 600 +50.0 % 404"] {
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(more.stdout.lines().any(|of| words(of) == line), "{line}: {}", more.stdout);
        }
    }
}

/// How many runs are made of each program and MPI, and how many comparisons of them.
const RUNS: usize = 25;
const COMPARISONS: usize = 25;

/// Comparisons of new runs with baselines, all of the same program: 4 runs drawn at random against 4 others, 4 runs against
/// the 4 that were made just before, and one against another. Prints what failed.
#[test]
#[ignore = "takes minutes, and its times are those of this machine"]
fn comparisons_of_the_same_program_raise_no_false_alarms() {
    let here = TempDir::new().unwrap();
    let mut random = fastrand::Rng::with_seed(22);
    // For each way: how many comparisons, how many failed because of counts and findings, and because of times.
    let mut ways = [[0; 3]; 3];
    for mpi in MPIS {
        for program in [&["halo_exchange", "300", "400"][..], &["solver", "400"]] {
            let runs: Vec<String> =
                (0..RUNS).map(|at| format!("{}-{}-{at}", program[0], mpi.name)).collect();
            for name in &runs {
                record(&here, mpi, name, program);
            }
            let mut drawn = |number| {
                let mut drawn = random.choose_multiple(runs.iter().cloned(), number);
                random.shuffle(&mut drawn);
                drawn
            };
            let of_4: Vec<Vec<String>> = (0..COMPARISONS).map(|_| drawn(8)).collect();
            let of_1: Vec<Vec<String>> = (0..COMPARISONS).map(|_| drawn(2)).collect();
            let in_order: Vec<Vec<String>> = runs.windows(8).map(<[String]>::to_vec).collect();
            for (way, sets) in ways.iter_mut().zip([of_4, in_order, of_1]) {
                for set in sets {
                    let (baselines, new) = set.split_at(set.len() / 2);
                    let outcome = check(&here, new, baselines, &["--format", "json"]);
                    let judgement: Judgement = serde_json::from_str(&outcome.stdout).unwrap();
                    let (times, others): (Vec<_>, Vec<_>) =
                        judgement.failed().partition(|row| row.rule == CheckRule::Times);
                    let [counts, slower] = [others, times].map(|of| u32::from(!of.is_empty()));
                    *way = [way[0] + 1, way[1] + counts, way[2] + slower];
                    judgement.failed().for_each(|row| println!("{mpi:?} {program:?}: {row:?}"));
                }
            }
        }
    }
    for (what, [number, counts, times]) in
        ["4 with 4, drawn", "4 with the 4 before", "1 with 1, drawn"].iter().zip(ways)
    {
        println!("{what}: {number} comparisons; failed by counts {counts}, by times {times}");
    }
    let [drawn, in_order, single] = ways;
    assert_eq!([drawn[1], in_order[1], single[1]], [0; 3], "failed by counts");
    // The load of the machine changes while runs are made one after the other: nothing is promised for those.
    assert!(drawn[2] <= drawn[0] / 20 && single[2] == 0, "failed by times");
}

/// Runs for each amount of work, and comparisons for each cell of the table.
const RUNS_OF_WORK: usize = 40;
const COMPARISONS_OF_WORK: usize = 200;

/// How many of 200 checks fail when a real program works 0, 5, 10 or 30 % longer. Runs are drawn for each comparison, none of them
/// twice in one; the same runs are in several comparisons.
#[test]
#[ignore = "takes minutes, and its times are those of this machine"]
fn what_works_longer_fails() {
    let here = TempDir::new().unwrap();
    let mpi = MPIS[0];
    let mut random = fastrand::Rng::with_seed(32);
    let works = ["100", "105", "110", "130"];
    let name = |work: &str, at: usize| format!("work-{work}-{at}");
    // In turn, so that all see the same load.
    for at in 0..RUNS_OF_WORK {
        for work in works {
            record(&here, mpi, &name(work, at), &["work", work]);
        }
    }
    let mut table = format!(
        "\n| baselines and new runs | {} |\n| :-- | --: | --: | --: | --: |\n",
        ["0 %", "5 %", "10 %", "30 %"].join(" | ")
    );
    let mut false_alarms = 0;
    for (before, now) in [(4, 4), (5, 3), (8, 2)] {
        let mut cells = Vec::new();
        for work in works {
            let mut failed = 0;
            for _ in 0..COMPARISONS_OF_WORK {
                let mut order: Vec<usize> = (0..RUNS_OF_WORK).collect();
                random.shuffle(&mut order);
                let named = |of: &[usize], work| of.iter().map(|at| name(work, *at)).collect();
                let (baselines, new): (Vec<String>, Vec<String>) =
                    (named(&order[..before], "100"), named(&order[before..before + now], work));
                let outcome = check(&here, &new, &baselines, &["--format", "json"]);
                let judgement: Judgement = serde_json::from_str(&outcome.stdout).unwrap();
                let is_of_time = |row: &&JudgedRow| row.rule == CheckRule::Times;
                let of_times = judgement.failed().filter(is_of_time).count();
                assert_eq!(judgement.failed().count(), of_times, "{judgement:?}");
                failed += usize::from(of_times > 0);
            }
            false_alarms += if work == "100" { failed } else { 0 };
            cells.push(failed.to_string());
        }
        let row = format!("| {before} and {now} | {} |\n", cells.join(" | "));
        table.push_str(&row);
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let load = load.split(' ').next().unwrap();
    let load = format!("\nThe load of the machine at the end was {load}, with 2 processors.\n\n");
    table.push_str(&load);
    println!("{table}");
    // 5 % of three times 200. Comparisons share runs, so their number differs by more than that of independent ones.
    assert!(false_alarms <= 60, "{false_alarms} of 600");
}
