//! What does a run of an MPI program under libgyan.so leave, and is it as many profiles as expected?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{
    Call, LiveFile, Number, Phase, Pvar, RankProfile, Values, is_live_file_name, rank_file_name,
    rank_of_file_name, read_rank,
};

use tempfile::TempDir;

use super::mpis::Mpi;
use super::patience::comes_true;
use super::processes::{Outcome, command, run};
use super::release::{gyan, libgyan};

/// A run of an MPI program with libgyan.so preloaded, and where it left its profiles.
pub(crate) struct Profiled {
    pub(crate) outcome: Outcome,
    pub(crate) directory: PathBuf,
    words: Vec<String>,
    settings: Vec<(String, String)>,
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
        let libgyan = libgyan().display().to_string();
        let settings = [&[("LD_PRELOAD", libgyan.as_str())], settings].concat();
        Profiled::run_file(mpi, ranks, file, arguments, &settings)
    }

    /// The same with `libraries` preloaded into the ranks only: a tool that is linked with an MPI must not be in other processes.
    pub(crate) fn with_libraries(
        mpi: Mpi,
        ranks: usize,
        libraries: &[&Path],
        program: &[&str],
        settings: &[(&str, &str)],
    ) -> Profiled {
        let libraries: Vec<&str> = libraries.iter().map(|path| path.to_str().unwrap()).collect();
        let preload = format!("LD_PRELOAD={}", libraries.join(" "));
        let words = [&[preload.as_str()], program].concat();
        Profiled::run_file(mpi, ranks, Path::new("env"), &words, settings)
    }

    /// The same for one that has gyan built in or gets it through the settings.
    pub(crate) fn run_file(
        mpi: Mpi,
        ranks: usize,
        file: &Path,
        arguments: &[&str],
        settings: &[(&str, &str)],
    ) -> Profiled {
        Profiled::ran(ranks, mpi.launch_file(ranks, file, arguments), settings)
    }

    /// `gyan run <options> -- <words>`
    pub(crate) fn by_command(
        options: &[&str],
        ranks: usize,
        words: &[String],
        settings: &[(&str, &str)],
    ) -> Profiled {
        let gyan = gyan();
        let gyan = gyan.get_program().to_str().unwrap();
        let options = [&[gyan, "run", "-o", "profile"], options, &["--"]].concat();
        let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        Profiled::ran(ranks, [&options, words].concat(), settings)
    }

    fn ran(ranks: usize, words: Vec<String>, settings: &[(&str, &str)]) -> Profiled {
        let keep = TempDir::new().unwrap();
        let directory = keep.path().join("profile");
        let mut command = command(&words);
        command.current_dir(keep.path()).env("GYAN_OUTPUT", &directory);
        let outcome = run(command.envs(settings.iter().copied()));
        are_written(&directory);
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = settings.iter().map(owned).collect();
        Profiled { outcome, directory, words, settings, ranks, keep }
    }

    /// The same run, which has to have ended with code 0.
    pub(crate) fn succeeded(self) -> Profiled {
        assert_eq!(self.outcome.code, 0);
        self
    }

    /// How the same command ends without gyan.
    pub(crate) fn without(&self) -> Outcome {
        let here = TempDir::new().unwrap();
        let words = self.words.iter().filter(|word| !word.starts_with("LD_PRELOAD="));
        let words: Vec<&String> = words.collect();
        let settings = self.settings.iter().filter(|(name, _)| name != "LD_PRELOAD").cloned();
        run(command(&words).current_dir(&here).envs(settings))
    }

    /// The same run, which has to have ended as it does without gyan, and printed the same.
    pub(crate) fn ends_as_without(self) -> Profiled {
        let bare = self.without();
        assert_eq!(self.outcome.code, bare.code, "without gyan: {bare:?}");
        let is_same = self.outcome.stdout_of_ranks() == bare.stdout_of_ranks();
        assert!(is_same, "without gyan:\n{}", bare.stdout);
        self
    }

    /// Where the program ran.
    pub(crate) fn place(&self) -> &Path {
        self.keep.path()
    }

    /// What the program itself wrote down on `rank`, in words.
    pub(crate) fn truth(&self, rank: u32) -> Vec<Vec<String>> {
        truth(self.keep.path(), rank)
    }

    /// How often the program itself says that it called each function on `rank`.
    pub(crate) fn true_counts(&self, rank: u32) -> BTreeMap<String, u64> {
        true_counts(self.keep.path(), rank)
    }

    /// The profiles of all ranks, by rank.
    pub(crate) fn profiles(&self) -> Vec<RankProfile> {
        profiles(&self.directory, self.ranks)
    }
}

/// A test that fails says which run it was.
impl Drop for Profiled {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Outcome { code, stdout, stderr } = &self.outcome;
            eprintln!("{:?} {:?}: {code}\n{stdout}\n{stderr}", self.settings, self.words);
        }
    }
}

/// What a program that ran in `directory` wrote down on `rank`, in words.
pub(crate) fn truth(directory: &Path, rank: u32) -> Vec<Vec<String>> {
    let path = directory.join(format!("truth.{rank}"));
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// How often a program that ran in `directory` says that it called each function on `rank`.
pub(crate) fn true_counts(directory: &Path, rank: u32) -> BTreeMap<String, u64> {
    let lines = truth(directory, rank).into_iter();
    lines.map(|line| (line[0].clone(), line[1].parse().unwrap())).collect()
}

/// The profiles in a run directory, by rank: exactly this many, so that no loop runs over none.
pub(crate) fn profiles(directory: &Path, expected: usize) -> Vec<RankProfile> {
    let ranks = ranks_that_left(directory);
    assert_eq!(ranks.len(), expected, "{}: profiles of {ranks:?}", directory.display());
    let read = |rank: &u32| {
        let path = directory.join(rank_file_name(*rank));
        read_rank(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    ranks.iter().map(read).collect()
}

/// The data in the live files of a run directory, by rank, for exactly this many ranks without a profile.
/// Another process writes them after a rank's process has ended.
pub(crate) fn lives(directory: &Path, expected: usize) -> Vec<RankProfile> {
    let mut known = Vec::new();
    let profiles = ranks_that_left(directory);
    let found = comes_true(|| {
        known = known_live(directory, &profiles);
        known.len() == expected
    });
    let files: Vec<_> = live_files(directory).iter().map(|path| LiveFile::open(path)).collect();
    assert!(found, "{}: {} ranks in live files: {files:?}", directory.display(), known.len());
    known
}

/// What live files know by now about ranks other than those.
pub(crate) fn known_live(directory: &Path, profiles: &[u32]) -> Vec<RankProfile> {
    let read = |path: PathBuf| -> Vec<RankProfile> {
        // It may have been removed since.
        let Ok(live) = LiveFile::open(&path) else { return Vec::new() };
        let ranks = live.ranks().filter(|of| !profiles.contains(&of.rank));
        ranks.filter_map(|of| live.read(of.rank).unwrap_or(None)).map(|(_, read)| read).collect()
    };
    let mut known: Vec<RankProfile> = live_files(directory).into_iter().flat_map(read).collect();
    known.sort_by_key(|profile| profile.rank);
    known
}

/// The live files in a run directory.
pub(crate) fn live_files(directory: &Path) -> Vec<PathBuf> {
    let names = names_in(directory).into_iter().filter(|name| is_live_file_name(name));
    names.map(|name| directory.join(name)).collect()
}

fn names_in(directory: &Path) -> Vec<String> {
    // If ranks have left nothing yet, there may be no directory.
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The ranks that left a profile, for tests where the launcher decides that, or that check it.
pub(crate) fn ranks_that_left(directory: &Path) -> Vec<u32> {
    are_written(directory);
    let names = names_in(directory);
    let mut ranks: Vec<u32> = names.iter().filter_map(|name| rank_of_file_name(name)).collect();
    ranks.sort_unstable();
    ranks
}

/// Waits until nothing more will be written to a directory.
fn are_written(directory: &Path) {
    let have_ended = comes_true(|| keepers_of(directory).is_empty());
    assert!(have_ended, "{}: a keeper stays", directory.display());
}

/// Waits until this many ranks have left something, a profile or data in a live file.
pub(crate) fn known_of_each(directory: &Path, expected: usize) {
    let profiles = ranks_that_left(directory).len();
    lives(directory, expected - profiles);
}

/// The keepers that write profiles to a directory.
pub(crate) fn keepers_of(directory: &Path) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let keepers = processes.filter(|path| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "gyan-keeper")
    });
    let is_its = |path: &PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        let last = line.strip_suffix(b"\0").and_then(|line| line.rsplit(|byte| *byte == 0).next());
        last.is_some_and(|last| last == directory.as_os_str().as_encoded_bytes())
    };
    let number = |path: PathBuf| path.file_name()?.to_str()?.parse().ok();
    keepers.filter(is_its).filter_map(number).collect()
}

/// The run directories in `here`; links to others of them do not count.
pub(crate) fn run_directories(here: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(here).unwrap().map(|entry| entry.unwrap());
    let mut directories: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.path())
        .collect();
    directories.sort();
    directories
}

/// The only one of them.
pub(crate) fn only_run_directory(here: &Path) -> PathBuf {
    let directories = run_directories(here);
    let [directory] = &directories[..] else { panic!("not one run directory: {directories:?}") };
    directory.clone()
}

/// The counts of a profile by function.
pub(crate) fn counts(profile: &RankProfile) -> BTreeMap<String, u64> {
    profile.calls.iter().map(|call| (call.name.clone(), call.count)).collect()
}

/// The data on the calls of one function. The non-empty bars of its sizes: number of the bar, calls, bytes.
pub(crate) fn bars(call: &Call) -> Vec<[u64; 3]> {
    let Call { size_histogram, size_histogram_bytes, .. } = call;
    assert_eq!(size_histogram.len(), size_histogram_bytes.len());
    let bars = (0..).zip(size_histogram).zip(size_histogram_bytes);
    bars.map(|((bar, calls), bytes)| [bar, *calls, *bytes]).filter(|bar| bar[1] > 0).collect()
}

pub(crate) fn call<'a>(profile: &'a RankProfile, name: &str) -> &'a Call {
    let found = profile.calls.iter().find(|call| call.name == name);
    found.unwrap_or_else(|| panic!("rank {} has no call of {name}", profile.rank))
}

/// The same for receives, start and end only.
pub(crate) fn receives(profile: &RankProfile) -> BTreeMap<String, u64> {
    let mut counts = counts(profile);
    counts.retain(|name, _| {
        name.to_lowercase().contains("recv")
            || name.starts_with("MPI_Init")
            || name == "MPI_Finalize"
    });
    counts.remove("MPI_Initialized");
    counts
}

/// The only warning of a profile that has these words.
pub(crate) fn only_warning<'a>(profile: &'a RankProfile, words: &str) -> &'a str {
    let found: Vec<_> = profile.warnings.iter().filter(|text| text.contains(words)).collect();
    let [warning] = found[..] else { panic!("{words}: {:?}", profile.warnings) };
    warning
}

pub(crate) fn phase<'a>(profile: &'a RankProfile, name: &str) -> &'a Phase {
    let found = profile.phases.iter().find(|phase| phase.name == name);
    found.unwrap_or_else(|| panic!("rank {} has no phase {name}", profile.rank))
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
