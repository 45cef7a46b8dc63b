//! What `gyan doctor` finds: schema `gyan.doctor/1`.

use crate::data::{Data, Serialize, derive};
use crate::{Mpi, Switch, Tool};

/// Whether gyan can work here, and what would make it see more.
#[derive(Data!, Serialize)]
pub struct Diagnosis {
    /// [`DOCTOR_SCHEMA`](crate::DOCTOR_SCHEMA).
    pub schema: String,
    /// What wrote this.
    pub tool: Tool,
    /// The program that was tried, with its launcher; empty when there was none.
    pub command: Vec<String>,
    /// What was checked, in order.
    pub checks: Vec<Check>,
    /// The MPI library; none when none could be asked.
    pub mpi: Option<Mpi>,
    /// What it exports.
    pub exports: Option<Exports>,
    /// Monitoring that it leaves off by default.
    pub switches: Vec<Switch>,
    /// What would give more, a sentence each, besides the switches.
    pub advice: Vec<String>,
}

/// One check.
#[derive(Data!, Serialize, Eq)]
pub struct Check {
    /// What was checked.
    pub what: String,
    /// Whether it is as it should be.
    pub verdict: Verdict,
    /// What was found.
    pub finding: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Whether something is as it should be.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Ok,
    /// It is worth knowing.
    Note,
    /// It is in the way.
    Obstacle,
}

/// How much an MPI library exports through `MPI_T`.
#[derive(Data!, Serialize, Copy, Eq)]
pub struct Exports {
    /// Control variables.
    pub cvars: usize,
    /// Performance variables.
    pub pvars: usize,
    /// Of those, the ones that are still there after `MPI_Init`.
    pub pvars_after_init: usize,
    /// Categories.
    pub categories: usize,
    /// Types of events; none when the library has no event interface.
    pub events: Option<usize>,
}

impl Diagnosis {
    /// What is in the way.
    pub fn obstacles(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.verdict == Verdict::Obstacle)
    }
}
