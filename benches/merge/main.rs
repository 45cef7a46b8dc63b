//! How much processor time does the ranks' reduction take? `scripts/bench merge PROFILE...`. Prints a Markdown
//! table.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use gyan_results::{RankProfile, Reduction, rank_file_name, read_rank};

/// Measures the steps of the reduction inside MPI, with profiles that programs left.
#[derive(Parser)]
struct Options {
    /// Profiles, of any rank.
    #[arg(required = true)]
    profiles: Vec<PathBuf>,
    /// How often each step is measured.
    #[arg(long, default_value_t = 2001)]
    rounds: usize,
    /// The argument that cargo passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The most messages that a rank merges: of a million ranks, twenty.
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

/// The message that a rank sends to another.
fn sent(reduction: &Reduction) -> Vec<u8> {
    postcard::to_allocvec(reduction).unwrap()
}

/// One rank's work at a level of the tree: the received data is merged and sent on.
fn step(own: &mut Reduction, received: &[u8]) -> Vec<u8> {
    own.merge(postcard::from_bytes(received).unwrap());
    sent(own)
}

fn main() {
    let options = Options::parse();
    println!("| records | bytes | step | µs | quartiles | ns a record |");
    println!("|--:|--:|:--|--:|:--|--:|");
    for path in &options.profiles {
        let mut one = read_rank(path).unwrap();
        // As the ranks do it.
        one.pvars.sort_by(|a, b| a.identity().cmp(&b.identity()));
        let summary = serde_json::to_value(reduction(&one).finish().unwrap()).unwrap();
        let records = records(&summary);
        let rounds = options.rounds;
        // One after the other into one, as a rank does with its children.
        let children: Vec<Vec<u8>> = (1..=CHILDREN)
            .map(|rank| sent(&reduction(&RankProfile { rank, ..one.clone() })))
            .collect();
        one.rank = 0;
        let mut stranger = RankProfile { rank: 1, ..one.clone() };
        stranger.pvars.iter_mut().for_each(|pvar| pvar.name.push('_'));
        let stranger = sent(&reduction(&stranger));
        let of_one = reduction(&one);
        let (mut own, mut next) = (reduction(&one), children.iter());
        let steps = [
            ("a profile becomes a reduction", measured(rounds, || timed(|| reduction(&one)))),
            ("it becomes bytes", measured(rounds, || timed(|| sent(&of_one)))),
            (
                "bytes become a reduction",
                measured(rounds, || {
                    timed(|| postcard::from_bytes::<Reduction>(&children[0]).unwrap())
                }),
            ),
            (
                "bytes are merged and sent on",
                measured(rounds, || {
                    let received = next.next().unwrap_or_else(|| {
                        own = reduction(&one);
                        next = children.iter();
                        next.next().unwrap()
                    });
                    timed(|| step(&mut own, received))
                }),
            ),
            (
                "the same where no variable is in both",
                measured(rounds, || {
                    let mut own = reduction(&one);
                    timed(|| step(&mut own, &stranger))
                }),
            ),
        ];
        let bytes = children[0].len();
        for (step, [low, middle, high]) in steps {
            let each = middle * 1e3 / records as f64;
            println!(
                "| {records} | {bytes} | {step} | {middle:.1} | {low:.1} to {high:.1} | {each:.1} |"
            );
        }
    }
}
