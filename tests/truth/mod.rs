//! Is every number and every sentence true? Made-up programs run on a clock of their own (`events`). The same
//! events yield what libgyan.so would write of them, by its own code (`observer`), and the truth, by definition
//! (`definition`). What the command says of the profiles is then compared with the truth.
//!
//! These tests are units of gyan-wrappers, because that is where libgyan.so's code can be called; only here do the
//! two ends see each other.
//!
//! `GYAN_TRUTH_RUNS` is how many random runs there are; `GYAN_TRUTH_SEED` is the only one to run, which is then
//! printed (`-- --nocapture`).

mod comparisons;
mod definition;
mod events;
mod ideal;
mod numbers;
mod observer;
mod path;
mod program;
mod sentences;
mod shown;

use std::collections::BTreeMap;
use std::env;
use std::sync::LazyLock;

use fastrand::Rng;
use gyan_command::shown::Shown;
use gyan_results::{RankProfile, Summary};

use self::definition::Truth;
use self::events::Events;
use self::program::Program;
use crate::mpi::functions::{Function, Row, functions};
use crate::sys::clock;

/// How many random runs there are, unless the environment says so.
const RUNS: u64 = 100;
/// One in this many is also shown as a page.
const PAGE_EVERY: u64 = 8;
/// How many faulty runs are told of each property.
const SHOWN_AT_MOST: usize = 5;

/// A run: what happened, what libgyan.so wrote, and the truth.
struct Run {
    seed: u64,
    program: Program,
    truth: Truth,
    profiles: Vec<RankProfile>,
    summary: Summary,
}

impl Run {
    fn of(program: Program, seed: u64) -> Run {
        let events = Events::of(&program);
        let truth = Truth::of(&program, &events);
        let profiles = observer::profiles(&program, &events, seed);
        let summary = observer::summary(&profiles);
        Run { seed, program, truth, profiles, summary }
    }

    /// How many threads of a rank call MPI.
    fn threads(&self, rank: u32) -> usize {
        self.program.ranks[rank as usize].threads.len()
    }

    /// For whoever looks at one run.
    #[allow(clippy::print_stdout)]
    fn print(&self) {
        println!("{:?}\n{:#?}", self.truth.efficiencies, self.truth.ranks);
        for (name, text) in self.shown(false).texts {
            if ["first", "findings", "waiting"].contains(&name) {
                println!("{text}");
            }
        }
    }

    fn shown(&self, is_page: bool) -> Shown {
        gyan_command::shown::shown(&self.summary, &self.profiles, is_page)
    }
}

/// The table's row of a function. Runs ask for each of their calls, and the table is searched from its beginning.
fn row(function: Function) -> &'static Row {
    static ROWS: LazyLock<Vec<&Row>> = LazyLock::new(|| functions().map(|(_, row)| row).collect());
    ROWS[function.0]
}

/// A run as the command shows it, and how often the intervals so far held the truth.
struct Sight<'a> {
    run: &'a Run,
    shown: Shown,
    cover: &'a mut Cover,
}

/// What is wrong with a run, in a line each.
type Property = fn(&mut Sight) -> Vec<String>;

/// What holds of every run of every program.
const PROPERTIES: &[(&str, Property)] = &[
    ("no format shows an impossible number", shown::impossible_numbers),
    ("what is counted is exact", shown::counts),
    ("parts add up to the whole", shown::parts),
    ("a time is right within its error, or less than the truth", numbers::times),
    ("efficiencies are those of the definition", numbers::efficiencies),
    ("serialisation and transfer are those of the definition", numbers::split),
    ("waiting in collectives is right within its error", numbers::waiting),
    ("waiting in messages is right within its error", numbers::message_waiting),
    ("the time in MPI is right within its error, or less than the truth", sentences::whole_time),
    ("no two findings claim the same seconds", sentences::claims),
    ("a finding is about no more than its cause took", sentences::causes),
    ("the first sentence is true", sentences::headline),
    ("the numbers that findings rest on are known as they say", sentences::evidence),
];

/// What is right of programs whose calls are not all short and alike: on ranks that see the same outliers, the errors
/// of estimates are not independent, so the error of a sum is too small.
const SUMS: &[(&str, Property)] = &[(
    "a time on all ranks is right within its error, or less than the truth",
    numbers::times_on_all_ranks,
)];

/// Estimates, and how many of them are right, by what they are about.
#[derive(Default)]
struct Cover(BTreeMap<&'static str, [u64; 2]>);

impl Cover {
    /// An estimate is off by this much, and has this standard error: its 95 % interval is twice that on either side.
    fn add(&mut self, what: &'static str, off: f64, error: f64, resolution: f64) {
        let [right, all] = self.0.entry(what).or_default();
        *right += u64::from(off.abs() <= 2.0 * error + resolution);
        *all += 1;
    }

    /// A 95 % interval holds the truth in 90 % at least; of few, as many less as chance makes of that (a standard deviation).
    fn faults(&self) -> Vec<String> {
        let is_wrong = |(_, [right, all]): &(&&str, &[u64; 2])| {
            let all = *all as f64;
            (*right as f64) < 0.9 * all - (0.09 * all).sqrt()
        };
        let wrong = self.0.iter().filter(is_wrong);
        wrong.map(|(what, [right, all])| format!("{what}: {right} of {all} are right")).collect()
    }
}

/// Looks at random programs of a kind, `runs` of them, with all properties and those of the kind.
fn look_at(runs: u64, make: fn(&mut Rng) -> Program, of_kind: &[(&str, Property)]) {
    let only = number("GYAN_TRUTH_SEED");
    let mut cover = Cover::default();
    let mut wrong: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for seed in only.map_or(1..=runs, |seed| seed..=seed) {
        let run = Run::of(make(&mut Rng::with_seed(seed)), seed);
        if only.is_some() {
            run.print();
        }
        let mut sight =
            Sight { run: &run, shown: run.shown(seed % PAGE_EVERY == 0), cover: &mut cover };
        for (name, property) in PROPERTIES.iter().chain(of_kind) {
            let faults = property(&mut sight);
            if !faults.is_empty() {
                let told = format!("  GYAN_TRUTH_SEED={seed}: {}", faults.join("\n      "));
                wrong.entry(name).or_default().push(told);
            }
        }
    }
    let mut faults = cover.faults();
    for (name, told) in wrong {
        faults.push(format!("{name}: {} of {runs} runs", told.len()));
        faults.extend(told.into_iter().take(SHOWN_AT_MOST));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// A part of the runs.
fn runs(part: f64) -> u64 {
    let runs = number("GYAN_TRUTH_RUNS").unwrap_or(RUNS) as f64;
    clock::whole((part * runs).ceil())
}

#[test]
fn of_any_program_every_number_is_possible_and_true() {
    look_at(runs(1.0), Program::random, SUMS);
}

#[test]
fn of_a_loop_of_short_calls_every_number_is_possible_and_true() {
    look_at(runs(0.05), Program::of_short_calls, &[]);
}

#[test]
fn nothing_is_found_in_a_program_without_problems() {
    look_at(
        runs(0.3),
        Program::without_problems,
        &[("nothing costs", sentences::nothing_is_found)],
    );
}

#[test]
fn of_a_program_with_threads_every_number_is_possible_and_true() {
    look_at(runs(0.3), Program::with_threads, SUMS);
}

#[test]
fn of_a_loop_of_short_calls_sums_over_the_ranks_are_right_within_their_error() {
    look_at(runs(0.2), Program::of_short_calls, SUMS);
}

#[test]
fn the_rank_that_has_the_most_to_do_is_found() {
    let is_found: Property =
        |sight| sentences::is_found(sight, &["imbalance", "waiting", "late-senders"]);
    look_at(runs(0.3), Program::with_a_busy_rank, &[SUMS[0], ("it is found", is_found)]);
}

#[test]
fn of_ranks_that_take_turns_every_number_is_possible_and_true() {
    look_at(runs(0.3), Program::in_turn, SUMS);
}

#[test]
fn of_a_program_that_moves_much_data_every_number_is_possible_and_true() {
    look_at(runs(0.3), Program::of_much_transfer, SUMS);
}
