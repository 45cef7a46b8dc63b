//! What does an MPI library tell about itself? It is asked in a separate process, because asking can kill.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use gyan_results::{Variables, read_variables};
use tempfile::TempDir;

use super::launcher;
use super::mpi;
use super::preload::{library, preload};
use super::wait::ending;
use crate::error::{Error, reason};

/// Environment variables that configure a library, or tie this process to a launcher: the library's defaults
/// are the values without them.
const NOT_DEFAULT: [&str; 10] = [
    "OMPI_",
    "PMIX_",
    "PRTE_",
    "PMI_",
    "HYDI_",
    "HYDRA_",
    "MPIR_CVAR_",
    "MPICH_",
    "I_MPI_",
    "MPIEXEC_",
];
/// Those of them that the library needs to run at all.
const NEEDED: [&str; 2] = ["I_MPI_ROOT", "OMPI_ALLOW_RUN_AS_ROOT"];
/// Keeps Open MPI from its parameter files.
const NO_PARAMETER_FILES: (&str, &str) = ("OMPI_MCA_mca_base_param_files", "none");

/// Which library is asked.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    OnPath,
    Library(&'a Path),
    /// The one that a program loads, with its launcher.
    Program(&'a [OsString]),
}

/// When the library is asked.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum When {
    BeforeInit,
    AfterInit,
}

/// A listing works in forked copies of the process. The EFA provider of libfabric 1.11 (Debian 11) ends every
/// process that forks, even without such a network, unless one of these is set.
const FORKS: [&str; 2] = ["RDMAV_FORK_SAFE", "FI_EFA_FORK_SAFE"];

/// The environment in which it is asked.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Surroundings {
    AsTheyAre,
    /// With gyan's setting that tries everything.
    Trying,
    /// Without the variables that change the library's defaults.
    Default,
}

/// The listing of the MPI library on PATH, after `MPI_Init`.
/// With `tries` everything that a run does with a variable is tried.
pub(crate) fn on_path(tries: bool) -> Result<Variables, Error> {
    let surroundings = if tries { Surroundings::Trying } else { Surroundings::AsTheyAre };
    ask(Whose::OnPath, When::AfterInit, surroundings)?.ok_or_else(Error::said)
}

/// The listing of a library; none on a rank other than the one that prints.
pub(crate) fn ask(
    whose: Whose,
    when: When,
    surroundings: Surroundings,
) -> Result<Option<Variables>, Error> {
    let directory = TempDir::new()
        .map_err(|error| Error::new("temporary directory", reason(&error), "set TMPDIR"))?;
    let output = directory.path().join("variables.json");
    let (what, mut command) = match whose {
        Whose::OnPath => in_own_process(&mpi::on_path()?, when, &output)?,
        Whose::Library(path) => {
            let library = fs::canonicalize(path)
                .map_err(|error| Error::io(path, &error, "name the libmpi.so of an MPI"))?;
            in_own_process(&library, when, &output)?
        }
        Whose::Program(words) => in_program(words, when, &output)?,
    };
    for name in FORKS.into_iter().filter(|name| env::var_os(name).is_none()) {
        command.env(name, "1");
    }
    if surroundings == Surroundings::Trying {
        command.env("GYAN_LIST_TRIES", "on");
    }
    if surroundings == Surroundings::Default {
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let drop = NOT_DEFAULT.iter().any(|prefix| name.starts_with(prefix));
            if drop && !NEEDED.iter().any(|needed| name.starts_with(needed)) {
                command.env_remove(name);
            }
        }
        command.env(NO_PARAMETER_FILES.0, NO_PARAMETER_FILES.1);
    }
    // stdout is for the listing: output of the program or the library goes to stderr.
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let stderr = stderr.map_err(|error| Error::new("stderr", reason(&error), "open it"))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::from(stderr))
        .status()
        .map_err(|error| Error::new(&what, reason(&error), "check the program"))?;
    if !output.exists() {
        if status.success() && launcher::rank().is_some_and(|rank| rank > 0) {
            return Ok(None);
        }
        return Err(no_listing(whose, &what, status));
    }
    let listing = read_variables(&output)
        .map_err(|error| Error::new(&what, format!("the listing {error}"), "report this"))?;
    // Before MPI_Init every rank lists; one prints.
    Ok(launcher::rank().is_none_or(|rank| rank == 0).then_some(listing))
}

/// Runs this command again, to open the library.
fn in_own_process(mpi: &Path, when: When, output: &Path) -> Result<(String, Command), Error> {
    let own = env::current_exe()
        .map_err(|error| Error::new("gyan", reason(&error), "run it by its full path"))?;
    let mut command = Command::new(own);
    command.arg("list-library").arg("--output").arg(output).arg(mpi);
    if when == When::BeforeInit {
        command.arg("--before-init");
    }
    Ok((mpi.display().to_string(), command))
}

/// Runs a program; the listing takes its place at `MPI_Init`.
fn in_program(words: &[OsString], when: When, output: &Path) -> Result<(String, Command), Error> {
    let program = launcher::program("gyan varlist", words)?;
    let launcher = launcher::launcher(program);
    let mut variables = vec![
        ("LD_PRELOAD".to_owned(), preload(&library()?)),
        ("GYAN_LIST".to_owned(), output.into()),
    ];
    if when == When::BeforeInit {
        variables.push(("GYAN_LIST_BEFORE".to_owned(), "on".into()));
    }
    Ok((program.display().to_string(), launcher::command(launcher, words, &variables)?))
}

/// Why there is no listing. A process that ended with gyan's own code has already said why.
fn no_listing(whose: Whose, what: &str, status: ExitStatus) -> Error {
    let end = ending(status);
    if !matches!(whose, Whose::Program(_)) {
        if status.code() == Some(crate::FAILED.into()) {
            return Error::said();
        }
        return Error::new(
            what,
            format!("the library {end} before it was listed"),
            "its own output is above; try -m",
        );
    }
    Error::new(
        what,
        format!("{end} without calling MPI_Init through a shared MPI library"),
        "name an MPI program, with the arguments that it needs to start",
    )
}
