//! Is the critical path where gyan says, and within its error?

use std::collections::BTreeMap;

use fastrand::Rng;

use super::Run;
use super::events::{Called, Event, Events};
use super::program::{Program, WORLD, What};
use super::{number, runs};
use crate::mpi::functions::collective::{MPI_Allreduce, MPI_Bcast, MPI_Reduce};
use crate::mpi::functions::point_to_point::{MPI_Recv, MPI_Send};

/// By rank, the part of the run in which the critical path is on it: by all that happened.
fn truth(events: &Events) -> BTreeMap<u32, f64> {
    let calls = |event: &Event| match event {
        Event::Called(called) if called.waited > 0.0 => Some(*called),
        _ => None,
    };
    let mut waits: Vec<Vec<Called>> = events
        .ranks
        .iter()
        .map(|rank| rank.threads[0].iter().filter_map(calls).collect())
        .collect();
    let ends = events.ranks.iter().map(|rank| rank.elapsed_s).enumerate();
    let (mut rank, run_s) = ends.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
    let mut now = run_s;
    let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
    loop {
        // What ended later is never looked at again: time goes back only.
        while waits[rank].last().is_some_and(|wait| wait.ended > now + 1e-12) {
            waits[rank].pop();
        }
        let wait = waits[rank].pop();
        let came = wait.map_or(0.0, |wait| wait.begun + wait.waited);
        *shares.entry(u32::try_from(rank).unwrap()).or_default() += (now - came) / run_s;
        now = came;
        let Some(wait) = wait else { return shares };
        rank = wait.waited_for.unwrap() as usize;
    }
}

/// Each rank works in each round, then the ranks exchange something.
struct Rounds {
    ranks: u32,
    number: usize,
    /// Seconds of work, by rank and round.
    work_s: WorkSeconds,
}

type WorkSeconds = Box<dyn FnMut(u32, usize, &mut Rng) -> f64>;
/// What ranks exchange in a round.
type Exchange = fn(&mut Program, usize, &mut Rng);

impl Rounds {
    /// `kind`: who is slow; on average for about a millisecond.
    fn random(random: &mut Rng, rounds: usize) -> Rounds {
        let ranks = random.u32(2..=6);
        let (slow, more) = (random.u32(..ranks), 1.0 + 2.0 * random.f64());
        let (noise, uneven) = (0.3 * random.f64(), 2.0 * random.f64());
        let period = random.usize(1..=3);
        let kind = random.u8(..5);
        let work_s = move |rank: u32, round: usize, random: &mut Rng| {
            let about = match kind {
                // One rank is slow.
                0 if rank == slow => more,
                // Ranks are slow in turn, every other one for longer.
                1 if round / period % ranks as usize == rank as usize => {
                    1.5 + uneven * f64::from(rank % 2)
                }
                // One rank is slow, then another one.
                2 if rank == if 3 * round < rounds { slow } else { (slow + 1) % ranks } => more,
                // Now and then somebody is very slow.
                3 if random.f64() < 0.02 => 10.0,
                // All have as much to do.
                _ => 1.0,
            };
            1e-3 * about * (1.0 + noise * (2.0 * random.f64() - 1.0))
        };
        Rounds { ranks, number: rounds, work_s: Box::new(work_s) }
    }

    fn program(mut self, random: &mut Rng, exchange: Exchange) -> Program {
        let mut program = Program::of_ranks(self.ranks);
        for round in 0..self.number {
            for rank in 0..self.ranks {
                let seconds = (self.work_s)(rank, round, random);
                program.work(rank, seconds);
            }
            exchange(&mut program, round, random);
        }
        program
    }
}

/// A message from rank 0 to all, over a binomial tree.
fn down(program: &mut Program) {
    for rank in 1..program.size() {
        let from = rank & (rank - 1);
        program.call(from, MPI_Send, What::Send { to: rank, bytes: 64, tag: 2 });
        program.call(rank, MPI_Recv, What::Recv { from, tag: 2 });
    }
}

/// A message from all to rank 0, over a binomial tree.
fn up(program: &mut Program) {
    for rank in (1..program.size()).rev() {
        let to = rank & (rank - 1);
        program.call(rank, MPI_Send, What::Send { to, bytes: 64, tag: 3 });
        program.call(to, MPI_Recv, What::Recv { from: rank, tag: 3 });
    }
}

/// Programs by how their ranks exchange something.
const EXCHANGES: &[(&str, Exchange)] = &[
    ("halo", |program, _, _| program.halo(1024)),
    ("pipeline", |program, _, _| {
        for rank in 1..program.size() {
            program.call(rank - 1, MPI_Send, What::Send { to: rank, bytes: 64, tag: 0 });
            program.call(rank, MPI_Recv, What::Recv { from: rank - 1, tag: 0 });
            program.work(rank, 2e-4);
        }
    }),
    ("sweep", |program, round, _| {
        for rank in 1..program.size() {
            program.call(rank - 1, MPI_Send, What::Send { to: rank, bytes: 64, tag: 0 });
            program.call(rank, MPI_Recv, What::Recv { from: rank - 1, tag: 0 });
            program.work(rank, 2e-4);
        }
        if round % 10 == 9 {
            let what = What::Together { communicator: WORLD, seconds: 5e-6, bytes: 8 };
            program.all_call(WORLD, MPI_Allreduce, what);
        }
    }),
    ("broadcast tree", |program, _, _| down(program)),
    ("trees up and down", |program, _, _| {
        up(program);
        down(program);
    }),
    ("broadcast in turn", |program, round, _| {
        let root = u32::try_from(round).unwrap() % program.size();
        let (communicator, seconds, bytes) = (WORLD, 3e-6, 8);
        program.all_call(WORLD, MPI_Bcast, What::FromRoot { communicator, root, seconds, bytes });
    }),
    ("master", |program, _, _| {
        for rank in 1..program.size() {
            program.call(rank, MPI_Send, What::Send { to: 0, bytes: 64, tag: 0 });
            program.call(0, MPI_Recv, What::Recv { from: rank, tag: 0 });
        }
        for rank in 1..program.size() {
            program.work(0, 5e-5);
            program.call(0, MPI_Send, What::Send { to: rank, bytes: 64, tag: 1 });
            program.call(rank, MPI_Recv, What::Recv { from: 0, tag: 1 });
        }
    }),
    ("allreduce", |program, _, _| {
        let what = What::Together { communicator: WORLD, seconds: 5e-6, bytes: 8 };
        program.all_call(WORLD, MPI_Allreduce, what);
    }),
    ("reduce and broadcast", |program, _, _| {
        let (communicator, root, seconds, bytes) = (WORLD, 0, 3e-6, 8);
        program.all_call(WORLD, MPI_Reduce, What::ToRoot { communicator, root, seconds, bytes });
        program.all_call(WORLD, MPI_Bcast, What::FromRoot { communicator, root, seconds, bytes });
    }),
    ("halo and allreduce", |program, round, _| {
        program.halo(1024);
        if round % 10 == 9 {
            let what = What::Together { communicator: WORLD, seconds: 5e-6, bytes: 8 };
            program.all_call(WORLD, MPI_Allreduce, what);
        }
    }),
];

/// A rank with a share of the path.
#[derive(Clone, Copy)]
struct Off {
    by: f64,
    error: f64,
    /// Whether the truth is between the bounds.
    is_within: bool,
}

impl Off {
    /// Whether the command prints the share, not only what it is at least.
    fn is_printed(&self) -> bool {
        2.0 * self.error <= 0.1
    }
}

/// How far the shares of ranks are off.
#[derive(Default)]
struct Offs {
    /// In how many programs a path is known.
    known: usize,
    programs: usize,
    ranks: Vec<Off>,
}

impl Offs {
    #[allow(clippy::print_stdout)]
    fn look_at(&mut self, about: &str, program: Program, seed: u64) {
        let truth = truth(&Events::of(&program));
        let run = Run::of(program, seed);
        self.programs += 1;
        let Some(path) = &run.summary.critical_path else { return };
        if run.shown(false).efficiencies.and_then(|of| of.split).is_none() {
            return;
        }
        self.known += 1;
        for of in &path.ranks {
            let share = truth.get(&of.rank).copied().unwrap_or(0.0);
            let is_within = (of.lower - 1e-3..=of.upper + 1e-3).contains(&share);
            if !is_within || number("GYAN_TRUTH_SEED").is_some() {
                println!(
                    "{about}: GYAN_TRUTH_SEED={seed}: rank {} {:.3} ± {:.3} ({:.3} to {:.3}), in truth {share:.3}, {}",
                    of.rank, of.share, of.share_error, of.lower, of.upper, of.leads_to.function
                );
            }
            let by = (of.share - share).abs();
            self.ranks.push(Off { by, error: of.share_error, is_within });
        }
    }

    fn add(&mut self, others: &Offs) {
        self.known += others.known;
        self.programs += others.programs;
        self.ranks.extend(&others.ranks);
    }

    /// Prints how far they are off, the median and so on.
    #[allow(clippy::print_stdout)]
    fn print(&self, about: &str) {
        let sorted = |of: fn(&Off) -> f64| {
            let mut all: Vec<f64> = self.ranks.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (offs, errors) = (sorted(|of| of.by), sorted(|of| of.error));
        let number = offs.len();
        if number == 0 {
            println!("{about}: {} of {} programs", self.known, self.programs);
            return;
        }
        let parts = |of: &[f64]| {
            [number / 2, 9 * number / 10, number - 1].map(|at| (1e3 * of[at]).round() / 10.0)
        };
        let within = |is_it: fn(&Off) -> bool| {
            let these: Vec<&Off> = self.ranks.iter().filter(|of| is_it(of)).collect();
            format!("{} of {}", these.iter().filter(|of| of.is_within).count(), these.len())
        };
        println!(
            "{about}: {} of {} programs; within bounds {}, of those printed {}; off by (median, 9 in 10, worst) {:?} %, error {:?} %",
            self.known,
            self.programs,
            within(|_| true),
            within(Off::is_printed),
            parts(&offs),
            parts(&errors),
        );
    }

    fn median(&self) -> f64 {
        let mut offs: Vec<f64> = self.ranks.iter().map(|of| of.by).collect();
        offs.sort_by(f64::total_cmp);
        offs[offs.len() / 2]
    }

    /// What is wrong: the truth is within the bounds for 9 in 10 ranks at least, also of those whose share is printed; of few, for as
    /// many less as chance makes of that (two standard deviations).
    fn faults(&self, about: &str) -> Vec<String> {
        let printed = self.ranks.iter().filter(|of| of.is_printed()).copied().collect();
        let of = [("all", self.ranks.clone()), ("those printed", printed)];
        let is_wrong = |ranks: &[Off]| {
            let (all, right) = (ranks.len() as f64, ranks.iter().filter(|of| of.is_within).count());
            (right as f64) < 0.9 * all - 2.0 * (0.09 * all).sqrt()
        };
        let wrong = of.iter().filter(|(_, ranks)| is_wrong(ranks));
        wrong.map(|(which, _)| format!("{about}: {which}")).collect()
    }
}

fn seeds(part: f64) -> std::ops::RangeInclusive<u64> {
    number("GYAN_TRUTH_SEED").map_or(1..=runs(part), |seed| seed..=seed)
}

/// Of programs of so many rounds, of all exchanges together, and what is wrong with those of one exchange.
fn offs(part: f64, rounds: fn(&mut Rng) -> usize) -> (Offs, Vec<String>) {
    let (mut all, mut faults) = (Offs::default(), Vec::new());
    for (about, exchange) in EXCHANGES {
        let mut offs = Offs::default();
        for seed in seeds(part) {
            let random = &mut Rng::with_seed(seed);
            let number = rounds(random);
            let program = Rounds::random(random, number).program(random, *exchange);
            offs.look_at(about, program, seed);
        }
        offs.print(about);
        faults.extend(offs.faults(about));
        all.add(&offs);
    }
    all.print("all");
    (all, faults)
}

#[test]
fn where_every_call_was_timed_the_critical_path_is_that_of_its_definition() {
    let (all, faults) = offs(0.1, |random| random.usize(40..60));
    assert!(faults.is_empty(), "{faults:?}");
    assert!(all.median() < 2e-3);
}

#[test]
fn where_few_calls_were_timed_the_critical_path_is_right_within_its_error() {
    let (all, faults) = offs(0.06, |random| random.usize(1000..4000));
    assert!(faults.is_empty(), "{faults:?}");
    assert!(all.median() < 0.03);
}

#[test]
fn of_any_program_the_critical_path_is_right_within_its_error() {
    let (mut all, mut faults) = (Offs::default(), Vec::new());
    for (about, make) in [
        ("random", Program::random as fn(&mut Rng) -> Program),
        ("with a busy rank", Program::with_a_busy_rank),
        ("in turn", Program::in_turn),
        ("of much transfer", Program::of_much_transfer),
        ("without problems", Program::without_problems),
    ] {
        let mut offs = Offs::default();
        for seed in seeds(0.3) {
            offs.look_at(about, make(&mut Rng::with_seed(seed)), seed);
        }
        offs.print(about);
        faults.extend(offs.faults(about));
        all.add(&offs);
    }
    assert!(faults.is_empty(), "{faults:?}");
    assert!(all.median() < 5e-3);
}
