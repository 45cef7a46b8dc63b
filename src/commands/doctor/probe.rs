//! Does a program get as far as `MPI_Init` under libgyan.so, and if not, what happened to it?
//!
//! The program runs with `GYAN_LIST`, so that a listing of its MPI takes its place at `MPI_Init`, and with
//! `GYAN_DOCTOR`, so that libgyan.so notes which programs it was loaded into. About a program that did not load
//! it, we know only which programs came before it, and what the dynamic loader says.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use gyan_results::{Check, Variables, read_variables};
use tempfile::TempDir;

use super::processes::{self, LoadedProcess};
use super::surroundings::{self, Container};
use super::{loading, obstacle};
use crate::error::{Error, reason};
use crate::launch::executable::{self, Executable, ProgramKind};
use crate::launch::launcher::{self, Launcher};
use crate::launch::preload::preload;
use crate::launch::wait::{ending, run_and_wait};

/// Programs that start other programs.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "env"];

/// What is tried.
#[derive(Clone, Copy)]
pub(super) struct StartTest<'a> {
    pub(super) words: &'a [OsString],
    pub(super) launcher: Option<Launcher>,
    pub(super) program: &'a Executable,
    pub(super) library: &'a Path,
}

/// What became of the program.
pub(super) struct ProbeOutcome {
    status: ExitStatus,
    /// What its MPI tells; none when the program did not get as far as `MPI_Init`.
    pub(super) listing: Option<Variables>,
    /// The programs into which libgyan.so was loaded.
    processes: Vec<LoadedProcess>,
    /// Everything that was printed, including lines of the launcher, the loader and gyan.
    output: String,
}

/// Runs the program. `here` holds the files of the probe: a directory that the ranks can write to. `tries`: the
/// listing tries everything that a run does with a variable.
pub(super) fn probe(of: StartTest, here: &Path, tries: bool) -> Result<ProbeOutcome, Error> {
    let directory = temporary(here)?;
    let path = |name: &str| directory.path().join(name);
    let cannot = |error: &std::io::Error| Error::io(directory.path(), error, "make room");
    fs::create_dir(path("processes")).map_err(|error| cannot(&error))?;
    let variables = [
        ("LD_PRELOAD", preload(of.library)),
        ("GYAN", "on".into()),
        ("GYAN_LIST", path("listing").into()),
        ("GYAN_LIST_TRIES", if tries { "on" } else { "off" }.into()),
        ("GYAN_DOCTOR", path("processes").into()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let mut command = launcher::command(of.launcher, of.words, &variables)?;
    let output = File::create(path("output")).map_err(|error| cannot(&error))?;
    let errors = output.try_clone().map_err(|error| cannot(&error))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let status = run_and_wait(&mut command)?;
    let output = fs::read(path("output")).unwrap_or_default();
    Ok(ProbeOutcome {
        status,
        listing: read_variables(&path("listing")).ok(),
        processes: processes::read(&path("processes")),
        output: String::from_utf8_lossy(&output).into_owned(),
    })
}

fn temporary(here: &Path) -> Result<TempDir, Error> {
    let mut named = tempfile::Builder::new();
    let named = named.prefix(".gyan-doctor-");
    named
        .tempdir_in(here)
        .or_else(|_| named.tempdir())
        .map_err(|error| Error::new("temporary directory", reason(&error), "set TMPDIR"))
}

pub(super) fn is_gyan(library: &str) -> bool {
    library.rsplit('/').next() == Some("libgyan.so")
}

/// What keeps libgyan.so out of a program, however it is started; none when nothing does.
pub(super) fn closed_to_gyan(program: &Executable) -> Option<(String, &'static str)> {
    let path = program.path.display();
    match &program.kind {
        ProgramKind::Static => Some((
            format!("{path} is statically linked: no library can be loaded into it"),
            "link it with the shared MPI library (without -static), or link libgyan.a into it (see the manual, docs/built-for-one-mpi.md)",
        )),
        ProgramKind::Foreign(processor) => Some((
            format!(
                "{path} is for {processor}, and libgyan.so for {}",
                executable::processor_here().unwrap_or_default()
            ),
            "use the gyan that was built for it",
        )),
        ProgramKind::Dynamic { loader, .. } if loader.contains("musl") => Some((
            format!("{path} uses the C library musl, and libgyan.so needs glibc"),
            "build it on a system with glibc",
        )),
        _ if program.privileged => Some((
            format!(
                "{path} is setuid, setgid or has capabilities: the dynamic loader ignores LD_PRELOAD"
            ),
            "run a copy of it (cp): a copy has none of these",
        )),
        _ => None,
    }
}

/// Why the program did not get as far as a listing of its MPI.
pub(super) fn explain(of: StartTest, outcome: &ProbeOutcome) -> Check {
    let obstacle = |finding: String, remedy: &str| obstacle("start", finding, remedy);
    if let Some((what, remedy)) = outcome.said() {
        return obstacle(what, &remedy);
    }
    let name = of.program.path.file_name().unwrap_or_default().to_string_lossy();
    let container = surroundings::container(of.launcher, of.words);
    let processes: Vec<&LoadedProcess> = match (&of.program.kind, &container) {
        // A script may run anything, but its interpreter is known.
        (ProgramKind::Script, _) => outcome
            .processes
            .iter()
            .filter(|process| !of.starts(process, container.as_ref()))
            .collect(),
        (_, Some(container)) if container.name == name => outcome
            .processes
            .iter()
            .filter(|process| !of.starts(process, Some(container)))
            .collect(),
        _ => outcome.processes.iter().filter(|process| process.runs(&of.program.path)).collect(),
    };
    if processes.is_empty() {
        let (finding, remedy) = not_loaded(of, container.as_ref(), outcome);
        return obstacle(finding, &remedy);
    }
    if processes.iter().any(|process| process.is_off()) {
        let finding =
            format!("{name} ran without MPI_Init under libgyan.so: GYAN=off is set for it");
        return obstacle(
            finding,
            "find what sets it between the launcher and the program, and unset GYAN there",
        );
    }
    if let Some(mpi) = processes.iter().find_map(|process| process.mpi_in_front()) {
        let finding = format!("{mpi} comes before libgyan.so in {name}: gyan gets no call of MPI");
        return obstacle(finding, "put libgyan.so first in LD_PRELOAD, or before MPI when linking");
    }
    let end = ending(outcome.status);
    let Some(mpi) = processes.iter().find_map(|process| process.mpi()) else {
        if of.program.kind == ProgramKind::Script
            || processes.iter().any(|process| SHELLS.contains(&process.name()))
        {
            if let Some(refusal) = loading::refusal(&outcome.output, of.library) {
                let (finding, remedy) = refused(&name, &refusal);
                return obstacle(finding, remedy);
            }
            return obstacle(
                format!(
                    "{name} starts no MPI program under libgyan.so: it got to {} and no further",
                    outcome.names(|_| true)
                ),
                "see that it starts a program with a shared MPI library, and passes LD_PRELOAD and GYAN_* on",
            );
        }
        return obstacle(
            format!(
                "{name} loads no shared MPI library: it is no MPI program, or has MPI linked \
                 statically"
            ),
            "name an MPI program, and link it with the shared MPI library",
        );
    };
    let called: BTreeSet<&str> =
        processes.iter().flat_map(|process| &process.called).map(String::as_str).collect();
    let called = match called.into_iter().collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "no function of MPI".to_owned(),
        called => called,
    };
    obstacle(
        format!(
            "{name} loads {mpi}, calls {called}, and {end} without MPI_Init under libgyan.so{}",
            outcome.words("last", |text| text.lines().rev())
        ),
        "give it the arguments that it needs to start",
    )
}

impl StartTest<'_> {
    /// Whether a process is the one that starts the program: the first word, or the container.
    fn starts(&self, process: &LoadedProcess, container: Option<&Container>) -> bool {
        process.runs(Path::new(&self.words[0])) && self.launcher.is_some()
            || container.is_some_and(|container| process.name() == container.name)
    }
}

/// Why libgyan.so is in no process of the program.
fn not_loaded(
    of: StartTest,
    container: Option<&Container>,
    outcome: &ProbeOutcome,
) -> surroundings::Problem {
    let name = of.program.path.file_name().unwrap_or_default().to_string_lossy();
    let refusal = loading::refusal(&outcome.output, of.library);
    match (container, refusal) {
        (Some(container), refusal) => {
            let fails = refusal.is_none() && !outcome.status.success();
            let why = match refusal {
                // When the loader can read the file, its message is a different one.
                Some(refusal) if !refusal.starts_with("cannot open") => {
                    loading::meaning(&refusal).0
                }
                Some(_) => "its path does not exist there (harmless: the loader says so, and goes \
                     on)"
                .into(),
                None if fails => {
                    format!(
                        "the command {}{}",
                        ending(outcome.status),
                        outcome.words("first", str::lines)
                    )
                }
                None => "it has an environment of its own".into(),
            };
            let finding = format!(
                "no program in the container of {} loads libgyan.so: {why}",
                container.name
            );
            let remedy = container.remedy(of.library);
            let first = if fails { "make it run without gyan first; " } else { "" };
            (finding, format!("{first}{remedy}"))
        }
        (None, Some(refusal)) => {
            let (finding, remedy) = refused(&name, &refusal);
            (finding, remedy.to_owned())
        }
        (None, None) => surroundings::slurm(of.launcher, of.words)
            .unwrap_or_else(|| dropped(of, &name, outcome)),
    }
}

/// The loader could not load libgyan.so somewhere on the way to the program.
fn refused(name: &str, refusal: &str) -> (String, &'static str) {
    let (why, remedy) = loading::meaning(refusal);
    (format!("the loader cannot load libgyan.so where {name} is started: {why}"), remedy)
}

/// Something between the launcher and the program changed the environment, or no program was started.
fn dropped(of: StartTest, name: &str, outcome: &ProbeOutcome) -> surroundings::Problem {
    // With these launchers only the ranks load gyan; with others the launcher does, too.
    let to_ranks = matches!(of.launcher, Some(Launcher::OpenMpi | Launcher::Hydra));
    let sets = of.words.iter().any(|word| word.as_encoded_bytes().starts_with(b"LD_PRELOAD="));
    if sets {
        let finding = format!("{name} was started with another LD_PRELOAD than gyan's");
        return (finding, "add to LD_PRELOAD instead of overwriting it".into());
    }
    if outcome.status.success() || (to_ranks && !outcome.processes.is_empty()) {
        return (
            format!("{name} was started without LD_PRELOAD{}", outcome.who_drops_it()),
            "let what starts it pass LD_PRELOAD and GYAN_* on, or link the program with \
             libgyan.so (-lgyan)"
                .into(),
        );
    }
    (
        format!(
            "the command {}, and {name} was not started with LD_PRELOAD{}",
            ending(outcome.status),
            outcome.words("first", str::lines)
        ),
        "make it run without gyan first; if it does, what starts it drops LD_PRELOAD".into(),
    )
}

impl ProbeOutcome {
    /// What libgyan.so said last, as what is wrong and what to do.
    fn said(&self) -> Option<(String, String)> {
        let line = self.output.lines().rev().find_map(|line| line.strip_prefix("gyan: "))?;
        match line.split_once("; ") {
            Some((what, remedy)) => {
                let remedy = remedy.strip_prefix("gyan is off; ").unwrap_or(remedy);
                Some((what.to_owned(), remedy.to_owned()))
            }
            None => Some((line.to_owned(), "see docs/doctor.md in gyan's manual".to_owned())),
        }
    }

    /// The programs that got gyan's environment instead of the one that should have.
    fn who_drops_it(&self) -> String {
        match self.names(|_| true) {
            none if none.is_empty() => ": what starts it drops the environment".into(),
            names => format!(": it got to {names} and no further"),
        }
    }

    /// The programs that have nothing to do with MPI.
    pub(super) fn bystanders(&self) -> String {
        self.names(|process| process.mpi().is_none() && process.called.is_empty())
    }

    /// In the order in which they started.
    fn names(&self, are_meant: impl Fn(&LoadedProcess) -> bool) -> String {
        let mut names: Vec<&str> = Vec::new();
        for process in self.processes.iter().filter(|process| are_meant(process)) {
            if !names.contains(&process.name()) {
                names.push(process.name());
            }
        }
        names.join(", ")
    }

    /// The first or last line of the output, to append to a sentence. A launcher says first what is wrong, a
    /// program that ends says it last.
    fn words<'a, L: Iterator<Item = &'a str>>(
        &'a self,
        which: &str,
        in_order: impl FnOnce(&'a str) -> L,
    ) -> String {
        let line = in_order(&self.output).find(|line| line.chars().any(char::is_alphanumeric));
        line.map_or_else(String::new, |line| format!(" (its {which} words: {})", line.trim()))
    }
}
