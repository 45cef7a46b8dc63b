//! What gyan costs, measured from outside: the same programs bare, under gyan in several modes and under other
//! tools, in turn. Reports medians with their quartiles; nothing is asserted.
//!
//! `scripts/bench --help`. The tables go to stdout as Markdown.

#[path = "../../tests/common/mod.rs"]
#[allow(dead_code, unused_imports)]
mod common;

mod accuracy;
mod machine;
mod markdown;
mod measurements;
mod modes;
mod mpip;
mod mpis;
mod results;
mod runner;
mod statistics;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use measurements::{ALL, Measurement};
use modes::Mode;
use results::{LeftOut, Results};

/// What to measure, and where the results go.
#[derive(Parser)]
#[command(bin_name = "scripts/bench", about = "What gyan costs, as a table of alternating runs")]
struct Options {
    /// Number of rounds (default 10), and how the names of measurements begin (default all)
    #[arg(value_name = "ROUNDS or PART")]
    words: Vec<String>,
    /// Only with this MPI; may be repeated
    #[arg(long, value_parser = mpis::NAMES)]
    mpi: Vec<String>,
    /// Also write the results as JSON; a relative name is relative to the project's folder
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also put the tables into benches/results/measurements.md, replacing those of the same parts
    #[arg(long)]
    write: bool,
    /// Show the names of the measurements
    #[arg(long)]
    list: bool,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    fn rounds(&self) -> usize {
        self.words.iter().find_map(|word| word.parse().ok()).unwrap_or(10)
    }

    fn wants(&self, measurement: &Measurement) -> bool {
        let mut parts = self.words.iter().filter(|word| word.parse::<usize>().is_err()).peekable();
        parts.peek().is_none() || parts.any(|part| measurement.part.starts_with(part.as_str()))
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.list {
        for measurement in &ALL {
            println!("{}", measurement.part);
        }
        return ExitCode::SUCCESS;
    }
    let peers = match peers() {
        Ok(peers) => peers,
        Err(why) => {
            eprintln!("bench: GYAN_BENCH_PEER: {why}");
            return ExitCode::from(2);
        }
    };
    let results = results(&options, &peers);
    if results.rows.is_empty() && results.accuracy.is_empty() {
        for left_out in &results.left_out {
            eprintln!("bench: {}: {}", left_out.mpi, left_out.why);
        }
        eprintln!("bench: nothing was measured; scripts/bench --list shows what there is");
        return ExitCode::from(2);
    }
    print!("{}", markdown::tables(&results));
    match write(&options, &results) {
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::from(2)
        }
        Ok(()) if results.left_out.is_empty() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::from(1),
    }
}

/// The libraries of other tools, each measured with the MPI that it is linked to.
fn peers() -> Result<Vec<Mode>, String> {
    let libraries = std::env::var_os("GYAN_BENCH_PEER").unwrap_or_default();
    std::env::split_paths(&libraries)
        .filter(|library| !library.as_os_str().is_empty())
        .map(|library| {
            modes::needed_mpis(&library)?;
            let library = std::path::absolute(library).map_err(|error| error.to_string())?;
            Ok(Mode::peer(&library))
        })
        .collect()
}

/// Measures everything that was asked for.
fn results(options: &Options, peers: &[Mode]) -> Results {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let begun = Instant::now();
    let mut results = Results {
        schema: "gyan.bench/1",
        gyan: machine::version(),
        date: machine::date(),
        command: [&["scripts/bench".to_owned()], &arguments[..]].concat().join(" "),
        rounds: options.rounds(),
        minutes: 0.0,
        machine: machine::machine(),
        libraries: BTreeMap::new(),
        rows: Vec::new(),
        accuracy: Vec::new(),
        left_out: Vec::new(),
    };
    for name in mpis::NAMES {
        let named = options.mpi.iter().any(|mpi| mpi == name);
        let wanted: Vec<&Measurement> = ALL
            .iter()
            .filter(|measurement| (options.mpi.is_empty() || named) && options.wants(measurement))
            .filter(|measurement| measurement.runs_with(name, named))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        match mpis::mpi(name) {
            Err(why) => results.left_out.push(LeftOut { mpi: name.into(), part: None, why }),
            Ok(mpi) => {
                for measurement in wanted {
                    eprintln!("bench: {name}, {}", measurement.part);
                    let measured = runner::measure(mpi, measurement, peers, options.rounds());
                    results.add(name, measurement, &measured);
                }
            }
        }
    }
    results.minutes = begun.elapsed().as_secs_f64() / 60.0;
    results
}

/// Writes the results to the requested places besides stdout.
fn write(options: &Options, results: &Results) -> Result<(), String> {
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(results).map_err(|error| error.to_string())?;
        put(file, &(text + "\n"))?;
    }
    if options.write {
        let file = common::root().join("benches/results/measurements.md");
        let document =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let text = markdown::replaced(&document, results)
            .ok_or_else(|| format!("{}: it has no place for the tables", file.display()))?;
        put(&file, &text)?;
    }
    Ok(())
}

fn put(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
