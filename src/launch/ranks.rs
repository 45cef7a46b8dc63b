//! Which processes on this host are ranks of a job with libgyan.so, also before `MPI_Init`? According to the environment
//! that launchers give them, and to what they have mapped. Nothing here looks at what they do.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{PathBuf, absolute};

use rustix::process::{Pid, geteuid};

use super::launcher;
use super::processes::{self, Process};
use super::{keepers, preload};

/// A job of this user, as far as it is on this host.
pub(crate) struct JobHere {
    /// What tells it from others.
    pub(crate) id: String,
    /// Its run directory, if one was chosen.
    pub(crate) output: Option<PathBuf>,
    /// How many ranks it has, if the launcher says so.
    pub(crate) size: Option<u32>,
    /// All of them are on this host.
    pub(crate) is_whole: bool,
    /// A rank that has left `MPI_Init` is known in the run directory.
    pub(crate) has_keeper: bool,
    /// The process of each rank.
    pub(crate) processes: BTreeMap<u32, u32>,
}

/// The jobs on this host, the one that started last first.
pub(crate) fn jobs() -> Vec<JobHere> {
    let all: HashMap<Pid, LaunchedProcess> = processes::all()
        .into_iter()
        .filter_map(|process| Some((process.id.pid, LaunchedProcess::new(process)?)))
        .collect();
    let mut jobs: BTreeMap<String, Vec<&LaunchedProcess>> = BTreeMap::new();
    for process in all.values() {
        jobs.entry(process.job(&all)).or_default().push(process);
    }
    jobs.retain(|_, of| of.iter().any(|process| process.has_gyan));
    let mut jobs: Vec<(u64, JobHere)> =
        jobs.into_iter().filter_map(|(id, of)| Some((started(&of)?, job_of(id, &of)))).collect();
    jobs.sort_by_key(|(started, _)| std::cmp::Reverse(*started));
    jobs.into_iter().map(|(_, job)| job).collect()
}

fn started(processes: &[&LaunchedProcess]) -> Option<u64> {
    processes.iter().map(|process| process.process.id.started).max()
}

fn job_of(id: String, processes: &[&LaunchedProcess]) -> JobHere {
    let ranks: BTreeSet<u32> = processes.iter().map(|process| process.rank).collect();
    let chosen = ranks.into_iter().filter_map(|rank| {
        let of_rank = processes.iter().filter(|process| process.rank == rank);
        innermost(of_rank.copied().collect())
    });
    let chosen: Vec<&LaunchedProcess> = chosen.collect();
    let all = |holds: fn(&LaunchedProcess) -> bool| chosen.iter().all(|process| holds(process));
    JobHere {
        id,
        output: chosen.iter().find_map(|process| process.output()),
        size: chosen.iter().find_map(|of| launcher::size_in(&|name| of.variable(name))),
        is_whole: all(|of| launcher::is_on_one_host(&|name| of.variable(name))),
        has_keeper: all(LaunchedProcess::has_keeper),
        processes: chosen.iter().map(|process| (process.rank, process.pid())).collect(),
    }
}

/// Which process of a rank is the program, and not a script that starts it, or a command that it runs: the first with an MPI
/// library, or else the last.
fn innermost(mut processes: Vec<&LaunchedProcess>) -> Option<&LaunchedProcess> {
    processes.sort_by_key(|process| (process.process.id.started, process.pid()));
    let first = processes.iter().find(|process| process.has_mpi);
    first.or(processes.last()).copied()
}

/// A process with the environment of a rank.
struct LaunchedProcess {
    process: Process,
    rank: u32,
    has_gyan: bool,
    has_mpi: bool,
    environment: BTreeMap<String, String>,
}

impl LaunchedProcess {
    /// None for processes of others, and for those that start ranks.
    fn new(process: Process) -> Option<LaunchedProcess> {
        if process.name == keepers::NAME || launcher::starts_ranks(&process.name) {
            return None;
        }
        let place = PathBuf::from(format!("/proc/{}", process.id.pid.as_raw_nonzero()));
        if fs::metadata(&place).ok()?.uid() != geteuid().as_raw() {
            return None;
        }
        let environment = fs::read(place.join("environ")).ok()?;
        let environment: BTreeMap<String, String> = String::from_utf8_lossy(&environment)
            .split('\0')
            .filter_map(|variable| variable.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let rank = launcher::rank_in(&|name| environment.get(name).cloned())?;
        let maps = fs::read_to_string(place.join("maps")).unwrap_or_default();
        let has = |name: &str| maps.contains(name);
        let (has_gyan, has_mpi) = (has(&format!("/{}", preload::NAME)), has("/libmpi"));
        Some(LaunchedProcess { process, rank, has_gyan, has_mpi, environment })
    }

    fn pid(&self) -> u32 {
        self.process.id.pid.as_raw_nonzero().get().unsigned_abs()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).filter(|value| !value.is_empty()).cloned()
    }

    /// What started the rank is the same for all ranks of a job on this host, but not for it alone.
    fn job(&self, all: &HashMap<Pid, LaunchedProcess>) -> String {
        let above = |of: &&LaunchedProcess| {
            let parent = all.get(&of.process.parent?)?;
            (parent.rank == self.rank).then_some(parent)
        };
        let outermost = std::iter::successors(Some(self), above).last();
        let launcher = outermost.and_then(|outermost| outermost.process.parent);
        let launcher = launcher.map_or(0, |launcher| launcher.as_raw_nonzero().get());
        self.variable("PMIX_NAMESPACE").unwrap_or_else(|| launcher.to_string())
    }

    /// As libgyan.so understands it.
    fn output(&self) -> Option<PathBuf> {
        let output = self.variable("GYAN_OUTPUT")?;
        let here = fs::read_link(format!("/proc/{}/cwd", self.pid())).ok()?;
        absolute(here.join(output)).ok()
    }

    /// Not if its live files are elsewhere.
    fn has_keeper(&self) -> bool {
        let is_off = |name| {
            let value = self.variable(name).unwrap_or_default().to_ascii_lowercase();
            ["off", "0", "no", "false"].contains(&value.as_str())
        };
        self.has_gyan
            && !is_off("GYAN")
            && !is_off("GYAN_KEEPER")
            && self.variable("GYAN_LIVE").is_none()
    }
}
