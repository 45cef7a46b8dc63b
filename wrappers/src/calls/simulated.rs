//! Simulates whole runs of programs whose calls take a known time, under a budget, with a made-up clock: are
//! gyan's numbers right?

use super::*;
use crate::calls::balance::{Balance, balance};
use crate::calls::budget::Costs;
use crate::calls::estimate::Estimate;
use crate::calls::sites::Sites;
use crate::mpi::functions::point_to_point::{MPI_Irecv, MPI_Isend, MPI_Recv, MPI_Test};
use crate::sys::fork::in_a_copy;

const BUDGET: f64 = 0.005;
/// The cost of counting and of timing a call, and the program's own work between two calls, in seconds.
const COUNTED_S: f64 = 2e-9;
const TIMED_S: f64 = 70e-9;
const BETWEEN_S: f64 = 300e-9;

/// How long the calls of a function take.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Constant,
    Bimodal,
    /// One call in a thousand takes ten thousand times as long as the others.
    HeavyTailed,
    Drifting,
    Bursty,
}

const SHAPES: [Shape; 5] =
    [Shape::Constant, Shape::Bimodal, Shape::HeavyTailed, Shape::Drifting, Shape::Bursty];

impl Shape {
    /// In seconds.
    fn durations(self, calls: u64, seed: u64) -> impl Iterator<Item = f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut burst = 0_u32;
        (0..calls).map(move |call| {
            let rare = random.f64();
            match self {
                Shape::Constant => 400e-9,
                Shape::Bimodal if rare < 0.1 => 5e-6,
                Shape::HeavyTailed if rare < 1e-3 => 1e-3,
                Shape::HeavyTailed => 100e-9,
                Shape::Drifting => 100e-9 + 2e-6 * call as f64 / calls as f64,
                Shape::Bursty => {
                    burst = if rare < 5e-4 { 100 } else { burst.saturating_sub(1) };
                    if burst > 0 { 10e-6 } else { 200e-9 }
                }
                Shape::Bimodal => 200e-9,
            }
        })
    }
}

/// A process under a budget.
struct Process {
    ledger: Box<Ledger>,
    budget: Budget,
    costs: Costs,
    /// In ticks.
    now: f64,
    /// The time of all calls, and of those of each function.
    truth: f64,
    truths: BTreeMap<usize, f64>,
}

impl Process {
    fn new(share: f64, seed: u64) -> Process {
        let (counted, timed) = (clock::ticks(COUNTED_S), clock::ticks(TIMED_S));
        Process::with_costs(share, seed, Costs { counted, timed, ..Costs::default() })
    }

    fn with_costs(share: f64, seed: u64, costs: Costs) -> Process {
        let ledger = Box::new(Ledger::new());
        ledger.random.set(seed);
        let budget = Budget::new();
        let now = clock::ticks(1e-3);
        budget.begin(Some(share), clock::whole(now));
        budget.learn(costs);
        Process { ledger, budget, costs, now, truth: 0.0, truths: BTreeMap::new() }
    }

    /// Works, then calls a function that takes this many seconds.
    fn call(&mut self, function: Function, work_s: f64, seconds: f64) {
        self.call_timed(function, work_s, seconds, false);
    }

    /// `in_any_case`: the call is timed whatever the budget chooses.
    fn call_timed(&mut self, function: Function, work_s: f64, seconds: f64, in_any_case: bool) {
        self.now += clock::ticks(work_s);
        if self.ledger.wants_gap() {
            self.ledger.gap_ended(&self.budget, clock::whole(self.now));
        }
        let is_due = self.ledger.is_due(function);
        self.now += self.costs.counted;
        let (begun, took) = (clock::whole(self.now), clock::whole(clock::ticks(seconds)));
        if is_due {
            self.ledger.timed(&self.budget, function, begun, begun + took, in_any_case);
            self.now += self.costs.timed;
        } else if in_any_case {
            self.ledger.timed_besides(&self.budget, function, begun, begun + took);
        }
        self.ledger.count_slowly(function);
        self.now += took as f64;
        self.truth += took as f64;
        *self.truths.entry(function.0).or_default() += took as f64;
        if self.ledger.wants_gap() {
            self.ledger.gap_begins(clock::whole(self.now));
        }
    }

    /// What is known of these functions, as the profile says it; none if every call was timed.
    fn balance(&self, functions: &[Function]) -> Option<Balance> {
        let known = functions.iter().map(|&function| {
            let calls = Calls {
                count: self.ledger.calls(function),
                bytes: 0,
                times: self.times(function),
                max: self.ledger.known_timing(function).map_or(0.0, Timing::take_max),
            };
            (function.0, calls)
        });
        let limited = self.ledger.limited(&self.budget, clock::whole(self.now));
        balance(&known.collect(), &limited)
    }

    fn times(&self, function: Function) -> Times {
        let unseen = self.now - self.ledger.looked.get() as f64;
        self.ledger.known_timing(function).unwrap().times(self.ledger.calls(function), unseen)
    }

    fn elapsed(&self) -> f64 {
        self.now - clock::ticks(1e-3)
    }

    /// The cost of counting and timing, as a share of the time.
    fn share(&self) -> f64 {
        self.budget.calls() as f64 / self.elapsed()
    }
}

struct SimulatedRun {
    truth: f64,
    times: Times,
    longest: f64,
    known: Estimate,
}

impl SimulatedRun {
    fn new(shape: Shape, calls: u64, budget: f64, seed: u64) -> SimulatedRun {
        SimulatedRun::with(budget, seed, |_| false, shape.durations(calls, seed ^ 0xabcd))
    }

    /// Calls that take these times in seconds; those whose numbers are `in_any_case` are timed whatever the budget chooses.
    fn with(
        budget: f64,
        seed: u64,
        in_any_case: impl Fn(usize) -> bool,
        durations: impl Iterator<Item = f64>,
    ) -> SimulatedRun {
        let mut process = Process::new(budget, seed);
        let mut calls = 0;
        for (number, seconds) in durations.enumerate() {
            process.call_timed(MPI_Isend, BETWEEN_S, seconds, in_any_case(number));
            calls += 1;
        }
        let times = process.times(MPI_Isend);
        let longest = process.ledger.known_timing(MPI_Isend).unwrap().take_max();
        SimulatedRun {
            truth: process.truth,
            times,
            longest,
            known: times.known(calls, longest, 0.0),
        }
    }

    fn is_true(&self) -> bool {
        match self.known.error {
            Some(error) => (self.known.total - self.truth).abs() <= 2.0 * error + 1e-6 * self.truth,
            None => self.known.total <= self.truth * (1.0 + 1e-6),
        }
    }
}

/// One call takes as long as all others together, and is timed by all ranks.
#[test]
fn a_call_that_is_timed_in_any_case_is_in_the_time_of_its_function_and_leaves_that_of_the_others() {
    const RUNS: u64 = 200;
    const CALLS: u64 = 10_000;
    let mut right = 0;
    let (mut sum, mut true_sum) = (0.0, 0.0);
    for seed in 1..=RUNS {
        let shape = Shape::Bimodal;
        let long: f64 = shape.durations(CALLS, seed).sum();
        let durations = shape.durations(CALLS, seed).enumerate();
        let durations =
            durations.map(|(number, seconds)| seconds + if number == 7000 { long } else { 0.0 });
        let is_timed = |number: usize| number < 64 || number.is_multiple_of(250);
        let run = SimulatedRun::with(0.7 * BUDGET, seed, is_timed, durations);
        assert!(run.known.total >= 0.5 * run.truth, "{} of {}", run.known.total, run.truth);
        assert!(run.times.timed < CALLS, "all calls were timed");
        right += u64::from(run.is_true());
        sum += run.times.total();
        true_sum += run.truth;
    }
    assert!(right >= RUNS * 9 / 10, "right in {right} of {RUNS} runs");
    assert!((sum / true_sum - 1.0).abs() < 0.01, "off by {} on average", sum / true_sum - 1.0);
}

#[test]
fn the_interval_of_95_percent_contains_the_truth_in_at_least_90_and_nothing_contradicts_what_was_seen()
 {
    const RUNS: u64 = 400;
    const CALLS: u64 = 10_000;
    let check = |shape| {
        let (mut right, mut at_least) = (0, 0);
        for seed in 1..=RUNS {
            let outcome = SimulatedRun::new(shape, CALLS, 0.7 * BUDGET, seed);
            let SimulatedRun { times, longest, known, .. } = outcome;
            assert!(times.timed < CALLS, "{shape:?}");
            assert!(known.total >= times.sum, "{shape:?} {known:?} {times:?}");
            assert!(known.total <= CALLS as f64 * longest * (1.0 + 1e-9), "{shape:?} {known:?}");
            right += u64::from(outcome.is_true());
            at_least += u64::from(known.error.is_none());
        }
        assert!(right >= RUNS * 9 / 10, "{shape:?}: {right} of {RUNS}");
        // The error is stated when it can be.
        let rare = matches!(shape, Shape::HeavyTailed | Shape::Bursty);
        assert!(rare || at_least < RUNS / 10, "{shape:?}: {at_least}");
    };
    std::thread::scope(|scope| {
        for shape in SHAPES {
            scope.spawn(move || check(shape));
        }
    });
}

#[test]
fn with_little_to_go_by_it_is_a_time_that_the_calls_took_at_least() {
    for shape in SHAPES {
        let outcomes = (1..=50).map(|seed| SimulatedRun::new(shape, 20_000, BUDGET / 20.0, seed));
        let outcomes: Vec<SimulatedRun> = outcomes.collect();
        let right = outcomes.iter().filter(|outcome| outcome.is_true()).count();
        assert!(right >= 45, "{shape:?}: {right}");
        assert!(outcomes.iter().all(|outcome| outcome.known.error.is_none()), "{shape:?}");
    }
}

/// Each call has the probability that its weight implies, with or without a warm-up call.
#[test]
fn the_estimate_is_unbiased_and_its_standard_error_is_right() {
    const RUNS: u64 = 200;
    for (shape, share) in [(Shape::Drifting, BUDGET), (Shape::Drifting, BUDGET / 10.0)] {
        let run = |seed| {
            let SimulatedRun { truth, times, .. } = SimulatedRun::new(shape, 20_000, share, seed);
            (times.total() / truth - 1.0, times.variance() / (truth * truth))
        };
        let found: Vec<(f64, f64)> = (1..=RUNS).map(run).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).sum::<f64>() / RUNS as f64;
        let (bias, spread, claimed) = (mean(|f| f.0), mean(|f| f.0 * f.0), mean(|f| f.1));
        assert!(bias.abs() < 4.0 * (spread / RUNS as f64).sqrt(), "{share}: {bias}");
        assert!((claimed / spread - 1.0).abs() < 0.3, "{share}: {claimed} claimed, {spread} found");
    }
}

#[test]
fn every_call_is_timed_while_that_is_cheap_and_what_is_spent_approaches_the_budget_otherwise() {
    // 5,000 calls a second cost 0.035 %.
    let mut process = Process::new(BUDGET, 1);
    for _ in 0..20_000 {
        process.call(MPI_Isend, 200e-6, 1e-6);
    }
    assert_eq!(process.times(MPI_Isend).timed, 20_000);
    // A million calls a second cost 7 %.
    let mut process = Process::new(BUDGET, 1);
    while process.elapsed() < clock::ticks(3.0) {
        process.call(MPI_Isend, BETWEEN_S, 700e-9);
    }
    let share = process.share();
    assert!((0.8 * BUDGET..1.02 * BUDGET).contains(&share), "{share}");
    // Once the budget allows it again, each is timed.
    process.now += clock::ticks(60.0);
    let before = process.times(MPI_Isend).timed;
    for _ in 0..60_000 {
        process.call(MPI_Isend, BETWEEN_S, 700e-9);
    }
    let timed = process.times(MPI_Isend).timed - before;
    assert!(timed > 50_000, "{timed}");
}

#[test]
fn long_calls_are_all_timed_whatever_the_others_cost() {
    let mut process = Process::new(BUDGET, 1);
    for _ in 0..10_000 {
        for _ in 0..50 {
            process.call(MPI_Test, 50e-9, 50e-9);
        }
        process.call(MPI_Recv, 0.0, 25e-6);
    }
    assert_eq!(process.times(MPI_Recv).timed, 10_000);
    let polls = process.times(MPI_Test).timed;
    assert!((1000..250_000).contains(&polls), "{polls}");
}

#[test]
fn a_few_long_calls_among_short_ones_are_all_timed_because_their_mean_pays_for_it() {
    const SEEDS: u64 = 8;
    let mut timed = 0;
    for seed in 1..=SEEDS {
        let mut process = Process::new(BUDGET, seed);
        for call in 1..=20_000 {
            for _ in 0..50 {
                process.call(MPI_Test, 50e-9, 50e-9);
            }
            process.call(MPI_Recv, 0.0, if call % 1000 == 0 { 100e-3 } else { 300e-9 });
        }
        timed += process.times(MPI_Recv).timed;
        let share = process.share();
        assert!(share < BUDGET, "{share}");
    }
    // From the first timed long call on, which is not the same one with each seed.
    assert!(timed > SEEDS * 10_000, "{timed}");
}

#[test]
fn what_was_not_timed_took_no_longer_than_the_time_in_which_it_was_called() {
    let mut process = Process::new(BUDGET, 1);
    for _ in 0..10 {
        process.call(MPI_Recv, 0.0, 0.2);
        for _ in 0..20_000 {
            process.call(MPI_Test, 10e-9, 50e-9);
        }
    }
    // A few very long calls, then many short ones, of which hardly any is timed.
    for _ in 0..400_000 {
        process.call(MPI_Recv, 100e-9, 100e-9);
        process.call(MPI_Test, 100e-9, 100e-9);
    }
    let times = process.times(MPI_Recv);
    assert!(times.timed < 200_000, "{}", times.timed);
    let known = times.known(400_010, clock::ticks(0.2), process.elapsed());
    let seconds = known.total / clock::ticks(1.0);
    assert!((1.999..2.1).contains(&seconds) && known.error.is_some(), "{known:?}");
}

#[test]
fn more_calls_are_timed_of_the_function_whose_times_vary_more() {
    let mut process = Process::new(BUDGET, 1);
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..400_000 {
        process.call(MPI_Test, 100e-9, 400e-9);
        process.call(MPI_Recv, 100e-9, 2e-6 * random.f64());
    }
    let (constant, varying) = (process.times(MPI_Test).timed, process.times(MPI_Recv).timed);
    assert!(varying > 2 * constant && constant > 3000, "{constant} {varying}");
}

#[test]
fn a_phase_has_knowledge_of_its_own() {
    // The phase belongs to the process.
    let lines = in_a_copy(|out| {
        let mut process = Process::new(BUDGET, 1);
        let mut before = Times::default();
        // The calls of one phase take ten times as long as those of the other.
        for round in 0..40 {
            let phase = round % 2;
            enter_phase(phase);
            process.ledger.change_phase(NO_FUNCTION);
            let truth = process.truth;
            for _ in 0..10_000 {
                process.call(MPI_Isend, BETWEEN_S, if phase == 0 { 300e-9 } else { 3e-6 });
            }
            let times = process.times(MPI_Isend);
            writeln!(out, "{}", times.minus(before).total() / (process.truth - truth))?;
            before = times;
        }
        Ok(())
    });
    let parts: Vec<f64> = lines.lines().map(|line| line.parse().unwrap()).collect();
    // Each phase is predicted by its own mean, so hardly anything is left to chance.
    assert_eq!(parts.len(), 40);
    assert!(parts.iter().skip(2).all(|part| (0.99..1.01).contains(part)), "{parts:?}");
}

/// Three places call a function: the first always takes the same time, the second varies, the third is rare.
/// Each estimate is within two standard errors as often as it should be, and they add up.
#[test]
fn sites_have_their_share_of_the_calls_and_of_the_time_within_the_stated_error() {
    const RUNS: u64 = 200;
    const CALLS: u64 = 40_000;
    let mut right = [[0_u64; 2]; 3];
    for seed in 1..=RUNS {
        let mut process = Process::new(BUDGET, seed);
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let sites = Sites::leaked();
        let mut truth = [(0_u64, 0.0); 3];
        for _ in 0..CALLS {
            let (site, seconds) = match random.u32(0..100) {
                0..=64 => (0, 400e-9),
                65..=94 if random.u32(0..10) == 0 => (1, 4e-6),
                65..=94 => (1, 200e-9),
                _ => (2, 1e-6 + 1e-6 * random.f64()),
            };
            process.now += clock::ticks(BETWEEN_S);
            let (begun, took) = (clock::whole(process.now), clock::whole(clock::ticks(seconds)));
            if process.ledger.is_due(MPI_Isend) {
                let timed =
                    process.ledger.timed(&process.budget, MPI_Isend, begun, begun + took, false);
                if timed.number > 0 {
                    sites.take((MPI_Isend, site + 1), timed.ticks, timed.weight);
                }
            }
            process.ledger.count_slowly(MPI_Isend);
            process.now += took as f64;
            truth[site].0 += 1;
            truth[site].1 += took as f64;
        }
        let times = process.times(MPI_Isend);
        assert!(times.timed < CALLS / 2, "{}", times.timed);
        let longest = process.ledger.known_timing(MPI_Isend).unwrap().take_max();
        let known = times.known(CALLS, longest, process.elapsed());
        let call = gyan_results::Call {
            count: CALLS,
            timed: times.timed,
            time_s: Some(clock::seconds(known.total)),
            time_error_s: known.error.map(clock::seconds),
            ..gyan_results::Call::default()
        };
        let found = sites.described(&call);
        assert_eq!(found.iter().map(|site| site.calls).sum::<u64>(), CALLS);
        for ((site, (calls, ticks)), right) in found.iter().zip(truth).zip(&mut right) {
            let is_within = |found: f64, truth: f64, error: Option<f64>| {
                u64::from(error.is_some_and(|error| (found - truth).abs() <= 2.0 * error))
            };
            right[0] += is_within(site.calls as f64, calls as f64, site.calls_error);
            right[1] += is_within(site.time_s, clock::seconds(ticks), site.time_error_s);
        }
    }
    assert!(right.iter().flatten().all(|right| *right >= RUNS * 9 / 10), "{right:?}");
}

/// A program of which not every call can be timed, for half a second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Program {
    /// A loop of nothing but one function.
    Loop,
    /// As much own code as calls, with times like those of a queue.
    Half,
    /// The program polls until something is there.
    Polling,
    /// Other work takes the processor away, whatever the program does.
    Preempted,
    /// The other ranks lose their processors: this one waits in its calls.
    PeersPreempted,
    /// The same, and the cache lacks what one gap in fifty needs.
    JitterAndPeers,
    /// One gap in 2,000 is a long computation.
    RareWork,
    /// The same, of a twentieth of the time.
    LittleWork,
    /// One call in 1,000 is long.
    RareCalls,
    Both,
    ManyFunctions,
    Drifting,
    /// The program does something else in its second half.
    Turning,
    Bursts,
    /// The steps of a molecular dynamics code, with the times of LAMMPS' example `melt` on two ranks: a long computation, then
    /// halos are exchanged, and a rank that loses its processor makes the other wait for 5 ms.
    Steps,
}

static PROGRAMS: [Program; 15] = [
    Program::Loop,
    Program::Half,
    Program::Polling,
    Program::Preempted,
    Program::PeersPreempted,
    Program::JitterAndPeers,
    Program::RareWork,
    Program::LittleWork,
    Program::RareCalls,
    Program::Both,
    Program::ManyFunctions,
    Program::Drifting,
    Program::Turning,
    Program::Bursts,
    Program::Steps,
];

impl Program {
    /// One in which hardly any time is that of outliers, and that does the same all the time.
    fn is_steady(self) -> bool {
        matches!(
            self,
            Program::Loop
                | Program::Half
                | Program::Polling
                | Program::ManyFunctions
                | Program::Drifting
        )
    }

    /// Calls take a hundred times as long as in reality, as do counting and timing: there are fewer to simulate. Those two cost so
    /// many times less than where hardly any call can be timed.
    fn run(self, cheaper: f64, seed: u64) -> Process {
        // The calls of `Steps` take the time that they take.
        let (counted, timed) =
            if self == Program::Steps { (10e-9, 0.5e-6) } else { (40e-9, 0.7e-6) };
        let (counted, timed) = (clock::ticks(counted / cheaper), clock::ticks(timed / cheaper));
        let costs = Costs { counted, timed, ..Costs::default() };
        let mut process = Process::with_costs(BUDGET, seed, costs);
        let mut random = fastrand::Rng::with_seed(seed ^ 0x9a7e);
        let end = clock::ticks(0.5);
        let (mut call, mut burst) = (0_u32, 0_u32);
        while process.elapsed() < end {
            call += 1;
            let part = process.elapsed() / end;
            let rare = random.f64();
            let mut exponential = |mean: f64| -mean * libm::log(1.0 - random.f64());
            match self {
                Program::Loop => process.call(MPI_Isend, 0.4e-6, 8e-6 + exponential(2e-6)),
                Program::Half => {
                    let work = exponential(5e-6);
                    process.call(MPI_Isend, work, 2e-6 + exponential(3e-6));
                }
                Program::Polling => {
                    let work = if call % 20 == 0 { exponential(20e-6) } else { 1e-6 };
                    let function = if call % 20 == 19 { MPI_Recv } else { MPI_Test };
                    process.call(function, work, 5e-6 + exponential(1e-6));
                }
                Program::Preempted => {
                    // A quarter of the time in slices of 4 ms.
                    let (work, time) = (3e-6, 5e-6 + exponential(2e-6));
                    let lost = |part: f64| if rare < 8e-4 * part { 4e-3 } else { 0.0 };
                    let (in_work, in_call) = if call % 10 < 3 { (1.0, 0.0) } else { (0.0, 1.0) };
                    process.call(MPI_Isend, work + lost(in_work), time + lost(in_call));
                }
                Program::PeersPreempted => {
                    let lost = if rare < 1e-3 { exponential(4e-3) } else { 0.0 };
                    process.call(MPI_Isend, 1e-6, 6e-6 + exponential(2e-6) + lost);
                }
                Program::JitterAndPeers => {
                    let lost = if rare < 3e-4 { exponential(8e-3) } else { 0.0 };
                    let work = if call % 50 == 0 { 4e-6 } else { 0.05e-6 };
                    process.call(MPI_Isend, work, 2e-6 + exponential(3e-6) + lost);
                }
                Program::RareWork => {
                    let work = if call % 2000 == 0 { 10e-3 } else { 0.5e-6 };
                    process.call(MPI_Isend, work, 5e-6 + exponential(3e-6));
                }
                Program::LittleWork => {
                    let work = if call % 2000 == 0 { 1e-3 } else { 0.5e-6 };
                    process.call(MPI_Isend, work, 5e-6 + exponential(3e-6));
                }
                Program::RareCalls => {
                    let long = if rare < 1e-3 { 3e-3 } else { 0.0 };
                    process.call(MPI_Isend, 2e-6, 4e-6 + exponential(1e-6) + long);
                }
                Program::Both => {
                    let work = if call % 500 == 0 { 3e-3 } else { 2e-6 };
                    let long = if rare < 5e-4 { 5e-3 } else { 0.0 };
                    process.call(MPI_Isend, work, 4e-6 + exponential(1e-6) + long);
                }
                Program::ManyFunctions => {
                    let function = Function(MPI_Isend.0 + call as usize % 8);
                    let mean = 2e-6 * f64::from(1 + call % 8);
                    process.call(function, exponential(2e-6), 1e-6 + exponential(mean));
                }
                Program::Drifting => {
                    process.call(MPI_Isend, 1e-6 + 8e-6 * (1.0 - part), 1e-6 + 8e-6 * part);
                }
                Program::Turning if part < 0.5 => process.call(MPI_Isend, 8e-6, 2e-6),
                Program::Turning => process.call(MPI_Recv, 2e-6, exponential(10e-6)),
                Program::Steps => {
                    // Eight messages a step.
                    let (function, work, time) = match call % 24 {
                        number if number % 3 == 1 => {
                            let computed =
                                if number == 1 { 500e-6 + exponential(200e-6) } else { 0.0 };
                            (MPI_Irecv, 1e-6 + computed, 0.4e-6)
                        }
                        number if number % 3 == 2 => {
                            let lost = if rare < 2.5e-4 { 4e-3 + exponential(2e-3) } else { 0.0 };
                            (MPI_Isend, 0.5e-6, 10e-6 + exponential(8e-6) + lost)
                        }
                        _ => (MPI_Test, 0.2e-6, 0.1e-6),
                    };
                    process.call(function, work, time);
                }
                Program::Bursts => {
                    burst = if rare < 1e-3 { 100 } else { burst.saturating_sub(1) };
                    process.call(MPI_Isend, 2e-6, if burst > 0 { 50e-6 } else { 5e-6 });
                }
            }
        }
        process
    }
}

/// Own code and calls are sampled alike, and the length of the run is known. Of some programs hardly any call is timed, of
/// others nearly all.
#[test]
fn the_balance_of_a_run_is_right_within_its_error_whatever_was_not_seen() {
    const RUNS: u64 = 100;
    const CHEAPER: [f64; 3] = [1.0, 5.0, 10.0];
    let check = |(cheaper, program): (f64, Program)| {
        let (mut right, mut close, mut functions) = (0, 0, [0, 0]);
        for seed in 1..=RUNS {
            let process = program.run(cheaper, seed);
            let called: Vec<Function> =
                process.truths.keys().map(|function| Function(*function)).collect();
            // Else every call was timed.
            let Balance { functions: found, all } = process.balance(&called)?;
            let is_right = |known: Estimate, truth: f64| match known.error {
                Some(error) => (known.total - truth).abs() <= 2.0 * error + 1e-3 * truth,
                None => known.total <= truth * 1.01,
            };
            right += u64::from(is_right(all, process.truth));
            close += u64::from(all.error.is_some_and(|error| error <= 0.05 * all.total));
            for (function, truth) in &process.truths {
                functions[0] += u64::from(is_right(found[function], *truth));
                functions[1] += 1;
            }
            assert!(all.total <= process.elapsed() * (1.0 + 1e-9), "{program:?} {all:?}");
        }
        Some((cheaper, program, right, close, functions))
    };
    let trials: Vec<(f64, Program)> = CHEAPER
        .into_iter()
        .flat_map(|cheaper| PROGRAMS.map(|program| (cheaper, program)))
        .collect();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        // They take longer from trial to trial.
        let half = |odd| trials.iter().skip(odd).step_by(2).filter_map(|trial| check(*trial));
        let one = scope.spawn(move || -> Vec<_> { half(1).collect() });
        let other: Vec<_> = half(0).collect();
        [one.join().unwrap(), other].concat()
    });
    assert!(outcomes.len() > 2 * PROGRAMS.len());
    for (cheaper, program, right, close, [right_functions, functions]) in outcomes {
        let about = format!("{program:?} {cheaper}");
        assert!(right >= RUNS * 9 / 10, "{about}: {right} of {RUNS}");
        assert!(right_functions >= functions * 9 / 10, "{about}: {right_functions}");
        assert!(!program.is_steady() || close >= RUNS * 9 / 10, "{about}: {close}");
        // A computation takes as long as hundreds of calls: where most of these are timed, the time in them is known.
        assert!(
            program != Program::Steps || cheaper < 2.0 || close >= RUNS * 9 / 10,
            "{about}: {close}"
        );
    }
}
