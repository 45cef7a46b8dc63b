//! What the ranks' reduction takes of a processor: `scripts/bench merge PROFILE...`. Prints a Markdown table.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use gyan_results::{RankProfile, Reduction, rank_file_name, read_rank};

/// What one step of the reduction inside MPI takes, of profiles that programs left.
#[derive(Parser)]
struct Options {
    /// Profiles, of any rank.
    #[arg(required = true)]
    profiles: Vec<PathBuf>,
    /// How often each step is measured.
    #[arg(long, default_value_t = 2001)]
    rounds: usize,
    /// What cargo says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What a rank takes in, at most: of a million, twenty.
const CHILDREN: u32 = 20;

fn reduction(profile: &RankProfile) -> Reduction {
    let mut reduction = Reduction::default();
    reduction.add(&rank_file_name(profile.rank), profile);
    reduction
}

/// Statistics over ranks in a summary: each has a rank that has the smallest value.
fn records(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Object(fields) => {
            usize::from(fields.contains_key("min_rank"))
                + fields.values().map(records).sum::<usize>()
        }
        serde_json::Value::Array(list) => list.iter().map(records).sum(),
        _ => 0,
    }
}

/// Median and quartiles of what `step` took, in microseconds.
fn measured(rounds: usize, mut step: impl FnMut() -> Duration) -> [f64; 3] {
    let mut times: Vec<f64> = (0..rounds).map(|_| step().as_secs_f64() * 1e6).collect();
    times.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| times[(times.len() - 1) * quarter / 4])
}

fn timed<T>(step: impl FnOnce() -> T) -> Duration {
    let begun = Instant::now();
    std::hint::black_box(step());
    begun.elapsed()
}

fn main() {
    let options = Options::parse();
    println!("| records | bytes of numbers and of shape | step | µs | quartiles | ns a record |");
    println!("|--:|--:|:--|--:|:--|--:|");
    for path in &options.profiles {
        let mut one = read_rank(path).unwrap();
        let mut other = one.clone();
        (one.rank, other.rank) = (0, 1);
        // As the ranks do.
        one.pvars.sort_by(|a, b| (&a.name, a.class, &a.object).cmp(&(&b.name, b.class, &b.object)));
        other.pvars.clone_from(&one.pvars);
        let summary = serde_json::to_value(reduction(&one).finish().unwrap()).unwrap();
        let records = records(&summary);
        let mut sent = reduction(&other);
        let (shape, numbers) = (sent.shape().unwrap(), sent.to_numbers());
        let (bytes, of_shape) = (numbers.len() * 8, shape.len());
        let rounds = options.rounds;
        // One after the other into one, as a rank does with its children.
        let others: Vec<Vec<u64>> = (1..=CHILDREN)
            .map(|rank| {
                other.rank = rank;
                reduction(&other).to_numbers()
            })
            .collect();
        let mut own = reduction(&one);
        let mut next = others.iter();
        let steps = [
            ("a profile becomes a reduction", measured(rounds, || timed(|| reduction(&one)))),
            ("its shape", measured(rounds, || timed(|| sent.shape().unwrap()))),
            ("its numbers", measured(rounds, || timed(|| sent.to_numbers()))),
            (
                "numbers are merged by place",
                measured(rounds, || {
                    let numbers = next.next().cloned().unwrap_or_else(|| {
                        own = reduction(&one);
                        next = others.iter();
                        next.next().unwrap().clone()
                    });
                    timed(|| own.merge_by_place(numbers).unwrap())
                }),
            ),
            (
                "shape and numbers are merged by name",
                measured(rounds, || {
                    let (mut own, numbers) = (reduction(&one), numbers.clone());
                    timed(|| own.merge_by_name(&shape, numbers).unwrap())
                }),
            ),
        ];
        for (step, [low, middle, high]) in steps {
            let each = middle * 1e3 / records as f64;
            println!(
                "| {records} | {bytes}, {of_shape} | {step} | {middle:.1} | {low:.1} to {high:.1} | {each:.1} |"
            );
        }
    }
}
