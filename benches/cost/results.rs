//! The results of all measurements, as `--json` writes them:
//!
//! ```text
//! schema        "gyan.bench/1"
//! gyan          version and commit
//! date, command when, and how to repeat it
//! rounds        number of runs in each mode
//! minutes       how long all of it took
//! machine       processor, cores, is_virtual, memory_gib, system, kernel, clock, load_before
//! libraries     the library's own version of each MPI, by its name here
//! rows          one for each figure and MPI:
//!   part, what, unit, better ("lower" or "higher"), mpi, ranks, longer_than_a_second
//!   modes       the first is what the others are compared with:
//!     mode, settings
//!     values    of each round
//!     low_quartile, median, high_quartile
//!     comparison   difference (of the medians, in the unit), ratio (of the medians; above 1 is
//!                  dearer), ratios (low_quartile, median, high_quartile of those of each round)
//!     account   what gyan itself says, medians over the rounds of the largest of all ranks:
//!               elapsed_s, running_share, share; over_budget: number of runs over their budget
//! accuracy      one for each function of a program that takes 1 % of the run or more, and MPI:
//!   part, mpi, function
//!   share_of_run  of all ranks, median over the rounds
//!   modes         mode, and rounds: of each round, of all ranks together, count, timed, time_s,
//!                 error_s (the standard error of that), truth_s (by the program itself)
//! left_out      mpi, part, why
//! ```
//!
//! A key whose value is not known is absent.

use std::collections::BTreeMap;

use serde::Serialize;

use super::accuracy::{self, AccuracyRow};
use super::machine::Machine;
use super::measurements::{Better, Measurement};
use super::runner::{Account, Measured, Measurements};
use super::statistics::{Comparison, Spread, comparison, spread};

/// All of it.
#[derive(Serialize)]
pub(super) struct Results {
    pub(super) schema: &'static str,
    pub(super) gyan: String,
    pub(super) date: String,
    pub(super) command: String,
    pub(super) rounds: usize,
    pub(super) minutes: f64,
    pub(super) machine: Machine,
    pub(super) libraries: BTreeMap<String, String>,
    pub(super) rows: Vec<Row>,
    pub(super) accuracy: Vec<AccuracyRow>,
    pub(super) left_out: Vec<LeftOut>,
}

/// One figure with one MPI.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) part: &'static str,
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: &'static str,
    pub(super) mpi: String,
    pub(super) ranks: usize,
    /// Whether runs with gyan are longer; shorter ones have no budget to keep.
    pub(super) longer_than_a_second: bool,
    pub(super) modes: Vec<ModeRow>,
}

/// The same in one mode.
#[derive(Serialize)]
pub(super) struct ModeRow {
    pub(super) mode: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) settings: BTreeMap<String, String>,
    pub(super) values: Vec<f64>,
    #[serde(flatten)]
    pub(super) spread: Spread,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comparison: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<AccountRow>,
}

/// gyan's own account of all rounds.
#[derive(Serialize)]
pub(super) struct AccountRow {
    pub(super) elapsed_s: f64,
    pub(super) running_share: f64,
    pub(super) share: f64,
    pub(super) over_budget: usize,
}

/// A measurement that failed.
#[derive(Serialize)]
pub(super) struct LeftOut {
    pub(super) mpi: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<&'static str>,
    pub(super) why: String,
}

impl Results {
    /// What was measured.
    pub(super) fn parts(&self) -> impl Iterator<Item = &'static str> {
        let rows = self.rows.iter().map(|row| row.part);
        rows.chain(self.accuracy.iter().map(|row| row.part))
    }

    /// Adds the results of a measurement.
    pub(super) fn add(&mut self, mpi: &str, measurement: &Measurement, measured: &Measurements) {
        let mut accounts = measured.modes.iter().flat_map(|mode| &mode.accounts);
        if let Some(account) = accounts.next() {
            self.libraries.insert(mpi.into(), account.library.clone());
        }
        for (at, figure) in measurement.figures.iter().enumerate() {
            let modes = modes(&measured.modes, at, figure.better);
            let mut accounts = modes.iter().filter_map(|mode| mode.account.as_ref());
            self.rows.push(Row {
                part: measurement.part,
                what: figure.what,
                unit: figure.unit,
                better: if figure.better == Better::Lower { "lower" } else { "higher" },
                mpi: mpi.into(),
                ranks: measurement.ranks,
                longer_than_a_second: accounts.any(|account| account.elapsed_s > 1.0),
                modes,
            });
        }
        if measurement.is_of_accuracy() {
            self.accuracy.extend(accuracy::rows(mpi, measurement, &measured.modes));
        }
        for why in &measured.left_out {
            let why = why.clone();
            self.left_out.push(LeftOut { mpi: mpi.into(), part: Some(measurement.part), why });
        }
    }
}

/// The modes that have the figure.
fn modes(measured: &[Measured], at: usize, better: Better) -> Vec<ModeRow> {
    let mut base: Option<&[f64]> = None;
    let mut rows = Vec::new();
    for one in measured {
        let values = &one.values[at];
        let Some(spread) = spread(values) else { continue };
        rows.push(ModeRow {
            mode: one.mode.name.clone(),
            settings: one.mode.settings.iter().cloned().collect(),
            values: values.clone(),
            spread,
            comparison: base.and_then(|base| comparison(base, values, better)),
            account: account(&one.accounts),
        });
        base = base.or(Some(values));
    }
    rows
}

fn account(accounts: &[Account]) -> Option<AccountRow> {
    let median = |pick: fn(&Account) -> f64| {
        let values: Vec<f64> = accounts.iter().map(pick).collect();
        spread(&values).map(|spread| spread.median)
    };
    Some(AccountRow {
        elapsed_s: median(|account| account.elapsed_s)?,
        running_share: median(|account| account.running_share)?,
        share: median(|account| account.share)?,
        over_budget: accounts.iter().filter(|account| account.over_budget).count(),
    })
}
