//! The truth about a run, from its events and by definition. Nothing here knows of gyan.

use std::collections::BTreeMap;

use super::events::{Called, Event, Events, OfRank, Requests};
use super::program::Program;
use super::row;
use crate::mpi::functions::by_hand::MPI_Init;

/// The truth about a run.
pub(super) struct Truth {
    pub(super) ranks: Vec<TruthOfRank>,
    /// Load balance and communication efficiency.
    pub(super) efficiencies: [f64; 2],
    /// By function and rank: how long others waited for it.
    pub(super) waited_for: BTreeMap<(String, u32), f64>,
    /// By rank: how long it waited for others in messages.
    pub(super) waited_in_messages: BTreeMap<u32, f64>,
    /// The same of each phase; by its name, which is empty outside of all.
    pub(super) phases: BTreeMap<String, Vec<TruthOfPhase>>,
}

/// The truth about a rank. All in seconds.
#[derive(Debug, Default)]
pub(super) struct TruthOfRank {
    pub(super) elapsed_s: f64,
    /// In which at least one thread was in MPI.
    pub(super) in_mpi_s: f64,
    /// Outside of MPI, without the start of MPI_T.
    pub(super) useful_s: f64,
    /// In MPI, while another rank was not there yet; but for the start.
    pub(super) waited_s: f64,
    pub(super) functions: BTreeMap<&'static str, TruthOfFunction>,
    /// Messages that it sent, and their bytes.
    pub(super) sent: (u64, u64),
    /// In which its first thread wanted a processor and had none.
    pub(super) processor_wait_s: f64,
}

/// The truth about the calls of a function on a rank.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TruthOfFunction {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    /// Of all threads together.
    pub(super) seconds: f64,
    pub(super) longest_s: f64,
    /// In which another rank was not there yet.
    pub(super) waited_s: f64,
    /// The same in collective operations.
    pub(super) waited_together_s: f64,
    /// How many of them waited longer than the transfer took.
    pub(super) late: u64,
}

/// The truth about a phase on a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct TruthOfPhase {
    pub(super) seconds: f64,
    pub(super) in_mpi_s: f64,
    /// In each function.
    pub(super) functions: BTreeMap<&'static str, f64>,
}

impl Truth {
    pub(super) fn of(program: &Program, events: &Events) -> Truth {
        let ranks = events.ranks.iter().map(|rank| TruthOfRank::of(program, rank));
        let ranks: Vec<TruthOfRank> = ranks.collect();
        let longest = ranks.iter().map(|rank| rank.elapsed_s).fold(0.0, f64::max);
        let useful: Vec<f64> = ranks.iter().map(|rank| rank.useful_s).collect();
        let efficiencies = efficiencies(&useful, longest - program.mpit_s);
        let mut waited_for: BTreeMap<(String, u32), f64> = BTreeMap::new();
        for called in events.ranks.iter().flat_map(|rank| &rank.threads).flat_map(|of| calls(of)) {
            let name = row(called.function).name;
            if let Some(peer) = called.waited_for {
                *waited_for.entry((name.into(), peer)).or_default() += called.waited;
            }
        }
        let mut waited_in_messages: BTreeMap<u32, f64> = BTreeMap::new();
        for (rank, of_rank) in program.numbers().zip(&events.ranks) {
            let of_messages = of_rank.threads.iter().flat_map(|of| calls(of)).filter(|called| {
                let is_message = called.to.is_some() || called.from.is_some();
                is_message || called.requests == Requests::CompletesAll
            });
            waited_in_messages.insert(rank, of_messages.map(|called| called.waited).sum());
        }
        let phases = phases(program, events);
        Truth { ranks, efficiencies, waited_for, waited_in_messages, phases }
    }

    /// Of all ranks together.
    pub(super) fn function(&self, name: &str) -> TruthOfFunction {
        let mut all = TruthOfFunction::default();
        for one in self.ranks.iter().filter_map(|rank| rank.functions.get(name)) {
            all.calls += one.calls;
            all.bytes += one.bytes;
            all.seconds += one.seconds;
            all.longest_s = all.longest_s.max(one.longest_s);
            all.waited_s += one.waited_s;
            all.waited_together_s += one.waited_together_s;
            all.late += one.late;
        }
        all
    }
}

/// Load balance and communication efficiency of ranks with this useful time, in a run of `seconds`.
pub(super) fn efficiencies(useful: &[f64], seconds: f64) -> [f64; 2] {
    let mean = useful.iter().sum::<f64>() / useful.len() as f64;
    let most = useful.iter().copied().fold(0.0, f64::max);
    [mean / most, most / seconds]
}

fn calls(events: &[Event]) -> impl Iterator<Item = &Called> {
    events.iter().filter_map(|event| match event {
        Event::Called(called) => Some(called),
        Event::Phase { .. } => None,
    })
}

impl TruthOfRank {
    fn of(program: &Program, rank: &OfRank) -> TruthOfRank {
        let mut truth = TruthOfRank {
            elapsed_s: rank.elapsed_s,
            processor_wait_s: rank.processor_wait_s,
            ..TruthOfRank::default()
        };
        let mut stretches = Vec::new();
        for called in rank.threads.iter().flat_map(|events| calls(events)) {
            let name = row(called.function).name;
            let of = truth.functions.entry(name).or_default();
            of.calls += 1;
            of.bytes += called.bytes;
            of.seconds += called.seconds();
            of.longest_s = of.longest_s.max(called.seconds());
            of.waited_s += called.waited;
            if called.function != MPI_Init {
                truth.waited_s += called.waited;
            }
            of.late += u64::from(called.waited > 0.5 * called.seconds());
            if called.together.is_some() {
                of.waited_together_s += called.waited;
            }
            if called.to.is_some() {
                truth.sent = (truth.sent.0 + 1, truth.sent.1 + called.bytes);
            }
            stretches.push((called.begun, called.ended));
        }
        truth.in_mpi_s = union(stretches);
        truth.useful_s = truth.elapsed_s - truth.in_mpi_s - program.mpit_s;
        truth
    }
}

/// Seconds in at least one of the stretches.
fn union(mut stretches: Vec<(f64, f64)>) -> f64 {
    stretches.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut seconds, mut until) = (0.0, f64::NEG_INFINITY);
    for (from, to) in stretches {
        seconds += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    seconds
}

/// What each rank did in each phase, by its first thread.
fn phases(program: &Program, events: &Events) -> BTreeMap<String, Vec<TruthOfPhase>> {
    let mut phases: BTreeMap<String, Vec<TruthOfPhase>> = BTreeMap::new();
    for (number, rank) in events.ranks.iter().enumerate() {
        let mut names: Vec<&str> = Vec::new();
        let mut since = 0.0;
        let mut add = |names: &[&str], seconds: f64, called: Option<&Called>| {
            let of_ranks = phases.entry(names.join("/")).or_default();
            of_ranks.resize(program.ranks.len(), TruthOfPhase::default());
            let of = &mut of_ranks[number];
            of.seconds += seconds;
            if let Some(called) = called {
                of.in_mpi_s += called.seconds();
                let name = row(called.function).name;
                *of.functions.entry(name).or_default() += called.seconds();
            }
        };
        for event in rank.threads.first().into_iter().flatten() {
            match event {
                Event::Called(called) => add(&names, 0.0, Some(called)),
                Event::Phase { at, name } => {
                    add(&names, at - since, None);
                    since = *at;
                    match name {
                        Some(name) => names.push(name),
                        None => drop(names.pop()),
                    }
                }
            }
        }
        add(&names, rank.elapsed_s - since, None);
    }
    phases
}
