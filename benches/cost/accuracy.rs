//! How right are the times that gyan states? Compares, by function, the runs of one round with a budget,
//! without one and under mpiP, and what the program itself measured, if it does.

use std::collections::BTreeMap;
use std::path::Path;

use gyan_results::RankProfile;
use serde::Serialize;

use super::common::truth;
use super::measurements::Measurement;
use super::modes::Tool;
use super::runner::Measured;
use super::statistics::spread;

/// The numbers for one function in one run, over all ranks together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Told {
    pub(super) count: u64,
    pub(super) timed: u64,
    pub(super) time_s: f64,
    /// The standard error; none if none is stated, and the time is a lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_s: Option<f64>,
    /// By the program itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) truth_s: Option<f64>,
}

/// By the names of the functions.
pub(super) type Functions = BTreeMap<String, Told>;

/// One function of a program with one MPI.
#[derive(Serialize)]
pub(super) struct AccuracyRow {
    pub(super) part: &'static str,
    pub(super) mpi: String,
    pub(super) function: String,
    pub(super) share_of_run: f64,
    pub(super) modes: Vec<AccuracyMode>,
}

/// Its numbers in one mode, in each round.
#[derive(Serialize)]
pub(super) struct AccuracyMode {
    pub(super) mode: String,
    pub(super) rounds: Vec<Told>,
}

/// A function with a smaller share of the run is not shown.
const SHOWN: f64 = 0.01;

impl Told {
    /// Seconds in a call.
    pub(super) fn mean_s(&self) -> f64 {
        self.time_s / self.count as f64
    }
}

/// The numbers from the profiles of all ranks.
pub(super) fn functions(profiles: &[RankProfile]) -> Functions {
    let mut functions = Functions::new();
    for call in profiles.iter().flat_map(|profile| &profile.calls) {
        let exact = Told { error_s: Some(0.0), ..Told::default() };
        let told = functions.entry(call.name.clone()).or_insert(exact);
        told.count += call.count;
        told.timed += call.timed;
        told.time_s += call.time_s.unwrap_or(0.0);
        // The errors of the ranks are independent of each other.
        told.error_s = told.error_s.zip(call.time_error_s).map(|(one, other)| one.hypot(other));
    }
    functions
}

/// Adds what the program itself recorded in `directory`, if it did.
pub(super) fn add_truths(functions: &mut Functions, directory: &Path, ranks: usize) {
    for rank in (0..).take(ranks) {
        if !directory.join(format!("truth.{rank}")).exists() {
            continue;
        }
        for line in truth(directory, rank) {
            let [name, _, seconds] = &line[..] else { continue };
            if let (Some(told), Ok(seconds)) = (functions.get_mut(name), seconds.parse::<f64>()) {
                *told.truth_s.get_or_insert(0.0) += seconds;
            }
        }
    }
}

/// The functions that matter in a program, those with the most time first.
pub(super) fn rows(mpi: &str, measurement: &Measurement, modes: &[Measured]) -> Vec<AccuracyRow> {
    // The last of them times every call.
    let Some(known) = modes.iter().rfind(|mode| mode.mode.tool == Tool::Gyan) else {
        return Vec::new();
    };
    let mut names: Vec<&String> = known.functions.iter().flat_map(|run| run.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let share = |name: &String| {
        let times = known.functions.iter().map(|run| run.get(name).map_or(0.0, |told| told.time_s));
        let runs = known.accounts.iter().map(|run| run.elapsed_s * measurement.ranks as f64);
        let shares: Vec<f64> = times.zip(runs).map(|(time, run)| time / run).collect();
        spread(&shares).map_or(0.0, |spread| spread.median)
    };
    let row = |name: &String| AccuracyRow {
        part: measurement.part,
        mpi: mpi.into(),
        function: name.clone(),
        share_of_run: share(name),
        modes: modes.iter().filter_map(|mode| in_mode(mode, name)).collect(),
    };
    let mut rows: Vec<AccuracyRow> = names.into_iter().map(row).collect();
    rows.retain(|row| row.share_of_run >= SHOWN);
    rows.sort_by(|one, other| other.share_of_run.total_cmp(&one.share_of_run));
    rows
}

/// None if not all of its runs know the function: a report of mpiP does not have `MPI_Init`.
fn in_mode(measured: &Measured, function: &str) -> Option<AccuracyMode> {
    let rounds = measured.functions.iter().map(|run| run.get(function).cloned());
    Some(AccuracyMode { mode: measured.mode.name.clone(), rounds: rounds.collect::<Option<_>>()? })
}
