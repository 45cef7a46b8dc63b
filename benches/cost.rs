//! What gyan costs, measured from outside: the same program bare and under gyan in turn, so that
//! whatever else the machine does meets both. Medians with their quartiles; nothing is asserted.
//!
//! `cargo bench --bench cost -- [PAIRS] [PART]`, or `scripts/bench`: with PART only the measurements
//! whose name has it. The table goes to stdout as Markdown.

#[path = "../tests/common/mod.rs"]
#[allow(dead_code)]
mod common;

use std::process::Command;
use std::time::Instant;

use common::{MPIS, Mpi, OPENMPI, OPENMPI_SPC, OPENMPI5, command, gyan, libgyan, profiles, run};
use tempfile::TempDir;

const PAIRS: usize = 15;

/// One figure of all runs, bare and under gyan.
#[derive(Default)]
struct Figure {
    bare: Vec<f64>,
    gyan: Vec<f64>,
}

/// The smallest, median and quartiles.
struct Spread {
    best: f64,
    low: f64,
    median: f64,
    high: f64,
}

fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |quarter: usize| sorted[(sorted.len() - 1) * quarter / 4];
    Spread { best: at(0), low: at(1), median: at(2), high: at(3) }
}

fn show(spread: &Spread) -> String {
    format!("{:.2} ({:.2}-{:.2})", spread.median, spread.low, spread.high)
}

impl Figure {
    /// A row of the table: what, in which unit, both medians, their difference and ratio.
    fn row(&self, mpi: Mpi, what: &str, unit: &str) {
        let (bare, gyan) = (spread(&self.bare), spread(&self.gyan));
        println!(
            "| {} | {what} | {} {unit} | {} {unit} | {:+.2} {unit} | {:.3} | {:.3} |",
            mpi.name,
            show(&bare),
            show(&gyan),
            gyan.median - bare.median,
            gyan.median / bare.median,
            gyan.best / bare.best,
        );
    }
}

/// `program` with each rank on a core of its own where there are enough: where the scheduler puts two
/// that talk to each other makes more of a difference than anything that is measured here.
fn bound(mpi: Mpi, ranks: usize, program: &str) -> Vec<String> {
    let mut words = mpi.mpirun(ranks);
    words.retain(|word| word != "--oversubscribe");
    words.extend(["--bind-to".into(), "core".into()]);
    words.push(mpi.program(program).display().to_string());
    words
}

/// The numbers that rank 0 prints, of `pairs` runs each way, in alternation; and gyan's own account
/// of start and end in milliseconds, the largest of all ranks.
///
/// `bare_argument` goes to the program in the bare runs alone, which makes them another baseline.
fn pairs(
    mpi: Mpi,
    ranks: usize,
    program: &str,
    bare_argument: Option<&str>,
    pairs: usize,
) -> (Vec<Figure>, [Vec<f64>; 2]) {
    let words = bound(mpi, ranks, program);
    let mut figures: Vec<Figure> = Vec::new();
    let mut own = [Vec::new(), Vec::new()];
    for pair in 0..pairs * 2 {
        // Which of a pair comes first changes from pair to pair.
        let with_gyan = (pair % 2 == 0) == (pair / 2 % 2 == 0);
        let here = TempDir::new().unwrap();
        let mut command = command(&words);
        command.current_dir(&here);
        if with_gyan {
            command.env("LD_PRELOAD", libgyan()).env("GYAN_OUTPUT", here.path().join("out"));
        } else {
            command.args(bare_argument);
        }
        let outcome = run(&mut command);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let line = outcome.stdout.lines().next().unwrap();
        for (at, number) in line.split(' ').enumerate() {
            if figures.len() <= at {
                figures.push(Figure::default());
            }
            let values = if with_gyan { &mut figures[at].gyan } else { &mut figures[at].bare };
            values.push(number.parse().unwrap());
        }
        if with_gyan {
            let profiles = profiles(&here.path().join("out"));
            let largest = |pick: fn(&gyan_results::Overhead) -> f64| {
                profiles.iter().map(|profile| pick(&profile.overhead) * 1e3).fold(0.0, f64::max)
            };
            own[0].push(largest(|overhead| overhead.init_s));
            own[1].push(largest(|overhead| overhead.finalize_s));
        }
    }
    (figures, own)
}

/// What monitoring that the library leaves off costs when `GYAN_ENABLE` turns it on: under gyan without
/// and with it in turn, in the columns of `bare` and `with gyan`.
fn enabling(mpi: Mpi, name: &str, pairs: usize) {
    for (program, what, unit) in [
        ("bench_pingpong", "8-byte ping-pong, a round trip", "ns"),
        ("bench_lifecycle", "MPI_Init and MPI_Finalize together", "ms"),
    ] {
        let words = bound(mpi, 2, program);
        let mut figure = Figure::default();
        for pair in 0..2 * pairs {
            let enabled = (pair % 2 == 0) == (pair / 2 % 2 == 0);
            let here = TempDir::new().unwrap();
            let mut command = command(&words);
            command.env("LD_PRELOAD", libgyan()).env("GYAN_OUTPUT", here.path().join("out"));
            if enabled {
                command.env("GYAN_ENABLE", name);
            }
            let outcome = run(command.current_dir(&here));
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            let number = outcome.stdout.split_whitespace().next().unwrap().parse().unwrap();
            if enabled { figure.gyan.push(number) } else { figure.bare.push(number) }
        }
        figure.row(mpi, &format!("{what}, enabling {name}"), unit);
    }
}

/// How long two commands take, in seconds, in alternation.
fn commands(pairs: usize, bare: impl Fn() -> Command, gyan: impl Fn() -> Command) -> Figure {
    let mut figure = Figure::default();
    let time = |mut command: Command| {
        let begun = Instant::now();
        let outcome = run(&mut command);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        begun.elapsed().as_secs_f64()
    };
    for _ in 0..pairs {
        figure.bare.push(time(bare()));
        figure.gyan.push(time(gyan()));
    }
    figure
}

/// A listing against the independent program, which asks in the order of gyan (`init`) or in that of
/// the original VARLIST (`late`) and reads no values.
fn listing(mpi: Mpi, pairs: usize) {
    let program = mpi.program("list");
    for order in ["init", "late"] {
        let bare = || {
            let mut command = Command::new(&program);
            command.arg(order);
            command
        };
        let listing = || {
            let mut command = gyan();
            command.args(["varlist", "--"]).arg(&program);
            command
        };
        let what = format!("gyan varlist, against an independent program ({order})");
        commands(pairs, bare, listing).row(mpi, &what, "s");
    }
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(PAIRS);
    let part = arguments.iter().find(|argument| argument.parse::<usize>().is_err());
    let asked = |what: &str| part.is_none_or(|part| what.contains(part.as_str()));
    println!("Medians of {wanted} alternating pairs, quartiles in brackets.\n");
    println!("| MPI | what | bare | with gyan | difference | ratio | ratio of the best |");
    println!("| :-- | :-- | --: | --: | --: | --: | --: |");
    for mpi in MPIS {
        if asked("receive") {
            let (figures, _) = pairs(mpi, 1, "bench_receive", None, wanted);
            figures[0].row(mpi, "MPI_Recv from MPI_PROC_NULL, a call", "ns");
        }
        if asked("pingpong") {
            let (figures, _) = pairs(mpi, 2, "bench_pingpong", None, wanted);
            figures[0].row(mpi, "8-byte ping-pong, a round trip", "ns");
        }
        if asked("lifecycle") {
            lifecycle(mpi, wanted);
        }
        if asked("varlist") {
            listing(mpi, wanted);
        }
    }
    if asked("enabling") {
        for (mpi, name) in [(OPENMPI, "monitoring"), (OPENMPI5, "monitoring"), (OPENMPI_SPC, "spc")]
        {
            enabling(mpi, name, wanted);
        }
    }
}

/// Start and end: time and memory.
fn lifecycle(mpi: Mpi, wanted: usize) {
    let (figures, [start, end]) = pairs(mpi, 2, "bench_lifecycle", None, wanted);
    figures[0].row(mpi, "MPI_Init and MPI_Finalize together", "ms");
    figures[1].row(mpi, "resident memory behind MPI_Init", "KiB");
    figures[2].row(mpi, "resident memory behind MPI_Finalize", "KiB");
    let (figures, _) = pairs(mpi, 2, "bench_lifecycle", Some("mpit"), wanted);
    figures[0].row(mpi, "the same, bare program using MPI_T", "ms");
    figures[1].row(mpi, "memory behind MPI_Init, bare program using MPI_T", "KiB");
    for (what, own) in [("start", start), ("end", end)] {
        println!(
            "| {} | gyan's own {what}, MPI_T_init_thread excluded | - | {} ms | | | |",
            mpi.name,
            show(&spread(&own))
        );
    }
}
