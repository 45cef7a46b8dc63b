//! What does a run of an MPI program under libgyan.so leave, and is it as many profiles as expected?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{Call, Number, Pvar, RankProfile, Values, read_profile};
use tempfile::TempDir;

use super::mpis::Mpi;
use super::processes::{Outcome, command, run};
use super::release::libgyan;

/// A run of an MPI program with libgyan.so preloaded, and where it left its profiles.
pub(crate) struct Profiled {
    pub(crate) outcome: Outcome,
    pub(crate) directory: PathBuf,
    ranks: usize,
    keep: TempDir,
}

impl Profiled {
    /// Runs `program` on `ranks` ranks with `settings` in the environment.
    pub(crate) fn run(
        mpi: Mpi,
        ranks: usize,
        program: &[&str],
        settings: &[(&str, &str)],
    ) -> Profiled {
        Profiled::preloaded(mpi, ranks, &mpi.program(program[0]), &program[1..], settings)
    }

    /// The same for a program that is compiled already.
    pub(crate) fn preloaded(
        mpi: Mpi,
        ranks: usize,
        file: &Path,
        arguments: &[&str],
        settings: &[(&str, &str)],
    ) -> Profiled {
        let preload = [("LD_PRELOAD", libgyan().display().to_string())];
        let settings: Vec<(&str, &str)> = preload
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .chain(settings.iter().copied())
            .collect();
        Profiled::run_file(mpi, ranks, file, arguments, &settings)
    }

    /// The same for one that has gyan by itself or by the settings.
    pub(crate) fn run_file(
        mpi: Mpi,
        ranks: usize,
        file: &Path,
        arguments: &[&str],
        settings: &[(&str, &str)],
    ) -> Profiled {
        let keep = TempDir::new().unwrap();
        let directory = keep.path().join("profile");
        let mut words = mpi.mpirun(ranks);
        words.push(file.display().to_string());
        words.extend(arguments.iter().map(|word| (*word).to_owned()));
        let mut command = command(&words);
        command.current_dir(keep.path());
        command.env("GYAN_OUTPUT", &directory);
        command.envs(settings.iter().copied());
        Profiled { outcome: run(&mut command), directory, ranks, keep }
    }

    /// Where the program ran.
    pub(crate) fn place(&self) -> &Path {
        self.keep.path()
    }

    /// What the program itself wrote down on `rank`, in words.
    pub(crate) fn truth(&self, rank: u32) -> Vec<Vec<String>> {
        truth(self.keep.path(), rank)
    }

    /// The profiles of all ranks, by rank.
    pub(crate) fn profiles(&self) -> Vec<RankProfile> {
        profiles(&self.directory, self.ranks)
    }
}

/// What a program that ran in `directory` wrote down on `rank`, in words.
pub(crate) fn truth(directory: &Path, rank: u32) -> Vec<Vec<String>> {
    let path = directory.join(format!("truth.{rank}"));
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// The profiles in a run directory, by rank: exactly so many, so that no loop is over none of them.
pub(crate) fn profiles(directory: &Path, expected: usize) -> Vec<RankProfile> {
    files_of_ranks(directory, "json", expected)
}

/// What the live files in a run directory know, by rank, of exactly so many.
pub(crate) fn lives(directory: &Path, expected: usize) -> Vec<RankProfile> {
    files_of_ranks(directory, "live", expected)
}

fn files_of_ranks(directory: &Path, extension: &str, expected: usize) -> Vec<RankProfile> {
    let ranks = ranks_that_left(directory, extension);
    assert_eq!(ranks.len(), expected, "{}: {extension} of {ranks:?}", directory.display());
    let read = |rank| {
        let path = directory.join(format!("rank-{rank:06}.{extension}"));
        read_profile(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    ranks.into_iter().map(read).collect()
}

/// The ranks that left a profile (`json`) or a live file (`live`), where that is the launcher's choice or
/// what a test is about.
pub(crate) fn ranks_that_left(directory: &Path, extension: &str) -> Vec<u32> {
    let names = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut ranks: Vec<u32> = names
        .filter_map(|name| {
            let rank = name.strip_prefix("rank-")?.strip_suffix(extension)?.strip_suffix('.')?;
            Some(rank.parse().unwrap())
        })
        .collect();
    ranks.sort_unstable();
    ranks
}

/// The run directories in `here`; names that lead to another of them do not count.
pub(crate) fn run_directories(here: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(here).unwrap().map(|entry| entry.unwrap());
    let mut directories: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.path())
        .collect();
    directories.sort();
    directories
}

/// The one of them.
pub(crate) fn only_run_directory(here: &Path) -> PathBuf {
    let directories = run_directories(here);
    let [directory] = &directories[..] else { panic!("not one run directory: {directories:?}") };
    directory.clone()
}

/// The counts of a profile by function.
pub(crate) fn counts(profile: &RankProfile) -> BTreeMap<&str, u64> {
    profile.calls.iter().map(|call| (call.name.as_str(), call.count)).collect()
}

/// What is known of the calls of one function.
pub(crate) fn call<'a>(profile: &'a RankProfile, name: &str) -> &'a Call {
    let found = profile.calls.iter().find(|call| call.name == name);
    found.unwrap_or_else(|| panic!("rank {} has no call of {name}", profile.rank))
}

/// The same for receives, start and end alone.
pub(crate) fn receives(profile: &RankProfile) -> BTreeMap<&str, u64> {
    let mut counts = counts(profile);
    counts.retain(|name, _| {
        name.to_lowercase().contains("recv")
            || name.starts_with("MPI_Init")
            || *name == "MPI_Finalize"
    });
    counts.remove("MPI_Initialized");
    counts
}

pub(crate) fn pvar<'a>(profile: &'a RankProfile, name: &str) -> &'a Pvar {
    let found = profile.pvars.iter().find(|pvar| pvar.name == name);
    found.unwrap_or_else(|| panic!("rank {} has no {name}", profile.rank))
}

pub(crate) fn elements(values: Option<&Values>) -> &[Number] {
    match values {
        Some(Values::Elements(elements)) => elements,
        other => panic!("no elements: {other:?}"),
    }
}
