//! What the jobs of a site have in common: schema `gyan.archive-report/1`, of `gyan archive report`. Hours are core hours:
//! hours of the logical processors that the ranks may use.

use crate::Tool;
use crate::data::{Data, Serialize, apply, datum, derive};

/// What an archive tells of the jobs of some days.
#[derive(Data!, Serialize)]
pub struct ArchiveReport {
    /// [`ARCHIVE_REPORT_SCHEMA`](crate::ARCHIVE_REPORT_SCHEMA).
    pub schema: String,
    /// What wrote it.
    pub tool: Tool,
    /// The first day, UTC: `2026-11-28`. A job counts on the day on which it ended.
    pub since: String,
    /// The last day.
    pub until: String,
    /// All jobs that left a record on these days. Others are unknown.
    pub totals: ArchiveHours,
    /// The same of each program: those with the most hours to gain first.
    pub programs: Vec<ArchiveProgram>,
    /// The same of each week that has jobs.
    pub weeks: Vec<ArchiveWeek>,
    /// When most jobs of a cluster began to use another MPI or another system.
    pub changes: Vec<ArchiveChange>,
    /// How many programs had enough jobs to see whether they became slower.
    pub programs_judged: usize,
    /// Programs that take longer from a day on, with the same number of ranks and by the same user; those that cost most first.
    pub worse: Vec<SlowerProgram>,
    /// How many hosts had enough jobs to see whether they are slow.
    pub hosts_judged: usize,
    /// Hosts that are later than the others of their jobs, more often than by chance: the slowest first.
    pub hosts: Vec<SlowHost>,
    /// The same as `totals` of each user, where it was asked for and the archive allows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<ArchiveUser>,
}

/// The core hours of some jobs. What is neither own nor in MPI is of jobs without times.
#[derive(Data!, Serialize, Copy, Default)]
pub struct ArchiveHours {
    /// Number of jobs.
    pub jobs: u64,
    /// All hours.
    pub core_h: f64,
    /// Hours outside MPI.
    pub own_core_h: f64,
    /// Hours in MPI.
    pub mpi_core_h: f64,
    /// Hours of those in which ranks waited for others, of the jobs of which that is known.
    pub waiting_core_h: f64,
    /// Hours in MPI of the other jobs.
    #[serde(default)]
    pub waiting_unknown_core_h: f64,
    /// Hours that are at stake in the findings: what could be gained at most.
    pub lost_core_h: f64,
}

impl ArchiveHours {
    /// Hours in MPI that were no waiting, of the jobs of which that is known.
    pub fn moving_core_h(&self) -> f64 {
        (self.mpi_core_h - self.waiting_core_h - self.waiting_unknown_core_h).max(0.0)
    }
}

/// The jobs of a program.
#[apply(datum!)]
pub struct ArchiveProgram {
    /// The file name of the executable.
    pub program: String,
    /// Its hours.
    #[serde(flatten)]
    pub hours: ArchiveHours,
    /// What is the first finding of most of its jobs that have one.
    pub finding: Option<String>,
    /// How many jobs that are.
    pub finding_jobs: u64,
    /// What to do about it, of one of these jobs.
    pub advice: Option<String>,
}

/// The jobs of a week.
#[derive(Data!, Serialize)]
pub struct ArchiveWeek {
    /// Its Monday.
    pub monday: String,
    /// Its hours.
    #[serde(flatten)]
    pub hours: ArchiveHours,
}

/// The jobs of a user.
#[derive(Data!, Serialize)]
pub struct ArchiveUser {
    /// The number of the user.
    pub uid: u32,
    /// Their hours.
    #[serde(flatten)]
    pub hours: ArchiveHours,
}

/// What became another.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum ArchiveChangeKind {
    /// The MPI library or its version.
    Mpi,
    /// The release of the system.
    System,
}

/// A change of MPI or of the system.
#[derive(Data!, Serialize, Eq)]
pub struct ArchiveChange {
    /// What it was that changed.
    pub kind: ArchiveChangeKind,
    /// The cluster.
    pub cluster: String,
    /// What most jobs had before.
    pub from: String,
    /// What most jobs have since.
    pub to: String,
    /// The first day of that.
    pub day: String,
}

/// A program that became slower.
#[derive(Data!, Serialize)]
pub struct SlowerProgram {
    /// The file name of the executable.
    pub program: String,
    /// The cluster.
    pub cluster: String,
    /// The first day on which it was slower.
    pub since: String,
    /// The time of a job since then as a multiple of that before, for the same user and number of ranks.
    pub ratio: f64,
    /// Its standard error.
    pub error: f64,
    /// The probability that a program that did not change looks like this, corrected for the number of days and of programs.
    pub p: f64,
    /// How many jobs were compared: before and since.
    pub jobs: [u64; 2],
    /// The core hours that it cost more.
    pub more_core_h: f64,
    /// What changed on that day; none when nothing is known to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<ArchiveChange>,
}

/// A host that is slow.
#[derive(Data!, Serialize)]
pub struct SlowHost {
    /// Its name.
    pub host: String,
    /// Since when; its first day among these days when it was slow from the beginning.
    pub since: String,
    /// Whether it was slow from the beginning.
    pub is_from_the_beginning: bool,
    /// The time outside MPI on it as a multiple of that of the other hosts of the same job: the median over jobs since then.
    pub ratio: f64,
    /// Its standard error.
    pub error: f64,
    /// The probability that a host that is like the others looks like this, corrected for the number of days and of hosts.
    pub p: f64,
    /// How many jobs with at least three hosts it had since then.
    pub jobs: u64,
    /// In how many of these it was among the slower half.
    pub jobs_late: u64,
}
