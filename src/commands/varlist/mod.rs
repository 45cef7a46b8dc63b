//! `gyan varlist`: what an MPI library tells about itself. The library is asked in a process of its
//! own, because asking can kill.

mod library;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use gyan_results::{Variables, read_variables};
use regex::{Regex, RegexBuilder};
use tempfile::TempDir;

use crate::cli::{ListLibraryOptions, VarlistOptions};
use crate::commands::run;
use crate::error::{Error, reason};
use crate::launch::{launcher, mpi};
use crate::view::{self, Choice};
use crate::{DONE, render};

/// Names in the environment that change what a library is, or tie this process to a launcher: a
/// library's defaults are what it has without them.
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
/// Of those, what the library needs to run at all.
const NEEDED: [&str; 2] = ["I_MPI_ROOT", "OMPI_ALLOW_RUN_AS_ROOT"];
/// Keeps Open MPI from its parameter files.
const NO_PARAMETER_FILES: (&str, &str) = ("OMPI_MCA_mca_base_param_files", "none");
/// The variables that show it.
const PARAMETER_FILES: [&str; 2] = ["mca_base_param_files", "mca_param_files"];

/// Variables that a launcher sets for its own ends, other ones in every run.
const LAUNCHERS_OWN: [&str; 4] = ["orte_", "ess", "pmix", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME"];

pub(crate) fn varlist(options: &VarlistOptions) -> Result<u8, Error> {
    if let [a, b] = &options.diff[..] {
        let view = view::difference(&saved(a)?, &saved(b)?);
        return print(|out| render::table(out, &view));
    }
    let as_asked = When::of(options);
    let Some(whole) = ask(options, as_asked, Surroundings::AsTheyAre)? else { return Ok(DONE) };
    let mut listing = whole.clone();
    if options.changed {
        let changed = match &options.against {
            Some(file) => names(view::changed(&saved(file)?, &whole)),
            None => match changed_from_default(options)? {
                Some(changed) => changed,
                None => return Ok(DONE),
            },
        };
        listing.cvars.retain(|cvar| cvar.name.as_ref().is_some_and(|name| changed.contains(name)));
    }
    let choice = choice(options);
    filter(&mut listing, options, &choice)?;
    if options.json {
        return print(|out| gyan_results::write_json(out, &listing));
    }
    print(|out| render::table(out, &view::variables(&listing, &whole, &choice)))
}

/// When the library is asked.
#[derive(Clone, Copy, Eq, PartialEq)]
enum When {
    BeforeInit,
    AfterInit,
}

impl When {
    fn of(options: &VarlistOptions) -> When {
        if options.before_init { When::BeforeInit } else { When::AfterInit }
    }
}

/// In which environment it is asked.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Surroundings {
    AsTheyAre,
    /// With gyan's setting to try everything.
    Trying,
    /// Without what changes it from the library's defaults.
    Default,
}

/// The control variables whose value is not the library's default. Asked before `MPI_Init`, where
/// every component still tells its variables, and nothing depends on the run yet.
fn changed_from_default(options: &VarlistOptions) -> Result<Option<BTreeSet<String>>, Error> {
    let now = ask(options, When::BeforeInit, Surroundings::AsTheyAre)?;
    let Some(mut now) = now else { return Ok(None) };
    // Of the same library, without the program and its launcher, which may set variables too.
    let library = VarlistOptions {
        mpi: Some(now.mpi.library_path.clone().into()),
        ..VarlistOptions::default()
    };
    let defaults = ask(&library, When::BeforeInit, Surroundings::Default)?;
    let Some(defaults) = defaults else { return Ok(None) };
    // Of a variable that is not there by default no default is known. And what keeps the parameter
    // files away is no change of the user's.
    let known = names(defaults.cvars.iter().filter_map(|cvar| cvar.name.as_deref()));
    now.cvars.retain(|cvar| {
        cvar.name.as_ref().is_some_and(|name| {
            let ours = PARAMETER_FILES.contains(&name.as_str());
            let launchers = LAUNCHERS_OWN.iter().any(|own| name.starts_with(own));
            known.contains(name) && !ours && !launchers
        })
    });
    Ok(Some(names(view::changed(&defaults, &now))))
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// `gyan list-library`: the process that asks.
pub(crate) fn list_library(options: &ListLibraryOptions) -> Result<u8, Error> {
    library::list(&run::library()?, &options.mpi, options.before_init, &options.output)
}

fn choice(options: &VarlistOptions) -> Choice {
    let some =
        options.cvars || options.pvars || options.events || options.categories || options.changed;
    Choice {
        cvars: options.cvars || options.changed || !some,
        pvars: options.pvars || !some,
        events: options.events,
        categories: options.categories,
        verbosity: usize::from(options.verbosity),
        long: options.long,
        enumerations: options.enumerations,
    }
}

fn filter(listing: &mut Variables, options: &VarlistOptions, choice: &Choice) -> Result<(), Error> {
    if !choice.cvars {
        listing.cvars.clear();
    }
    if !choice.pvars {
        listing.pvars.clear();
    }
    let shown = |verbosity: &Option<String>| view::level(verbosity.as_deref()) <= choice.verbosity;
    listing.cvars.retain(|cvar| shown(&cvar.verbosity));
    listing.pvars.retain(|pvar| shown(&pvar.verbosity));
    listing.events.retain(|event| shown(&event.verbosity));
    if let Some(pattern) = &options.pattern {
        let pattern = compiled(pattern)?;
        let matches = |name: &Option<String>, description: &str| {
            name.as_ref().is_some_and(|name| pattern.is_match(name))
                || pattern.is_match(description)
        };
        listing.cvars.retain(|cvar| matches(&cvar.name, &cvar.description));
        listing.pvars.retain(|pvar| matches(&pvar.name, &pvar.description));
        listing.events.retain(|event| matches(&event.name, &event.description));
    }
    Ok(())
}

/// A pattern with `*` and `?` alone is a glob over the whole text, anything else a regular
/// expression that may match anywhere. Capitals do not matter.
fn compiled(pattern: &str) -> Result<Regex, Error> {
    let glob = pattern.chars().all(|c| c.is_alphanumeric() || "_- *?".contains(c));
    let wild = glob && pattern.contains(['*', '?']);
    let expression = if wild {
        format!("^{}$", regex::escape(pattern).replace("\\*", ".*").replace("\\?", "."))
    } else {
        pattern.to_owned()
    };
    let built =
        RegexBuilder::new(&expression).case_insensitive(true).dot_matches_new_line(true).build();
    built.map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Error::new(format!("--match {pattern}"), why, "write a glob or a regular expression")
    })
}

/// The listing of the MPI library on PATH, after `MPI_Init`.
/// With `tries` everything that a run does with a variable is tried.
pub(crate) fn listing(tries: bool) -> Result<Variables, Error> {
    let options = VarlistOptions::default();
    let surroundings = if tries { Surroundings::Trying } else { Surroundings::AsTheyAre };
    ask(&options, When::AfterInit, surroundings)?.ok_or_else(Error::said)
}

/// The listing of the library that the options name; none on a rank that is not the one to print.
fn ask(
    options: &VarlistOptions,
    when: When,
    surroundings: Surroundings,
) -> Result<Option<Variables>, Error> {
    let directory = TempDir::new()
        .map_err(|error| Error::new("temporary directory", reason(&error), "set TMPDIR"))?;
    let output = directory.path().join("variables.json");
    let (what, mut command) = if options.command.is_empty() {
        in_own_process(options, when, &output)?
    } else {
        in_program(options, when, &output)?
    };
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
    // stdout is the listing's: what the program or the library prints goes to stderr.
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
        return Err(no_listing(options, &what, status));
    }
    let listing = read_variables(&output)
        .map_err(|error| Error::new(&what, format!("the listing {error}"), "report this"))?;
    // Before MPI_Init every rank lists; one prints.
    Ok(launcher::rank().is_none_or(|rank| rank == 0).then_some(listing))
}

/// This command again, with the MPI of the options or of PATH.
fn in_own_process(
    options: &VarlistOptions,
    when: When,
    output: &Path,
) -> Result<(String, Command), Error> {
    let mpi: PathBuf = match &options.mpi {
        Some(path) => std::fs::canonicalize(path)
            .map_err(|error| Error::io(path, &error, "name the libmpi.so of an MPI"))?,
        None => mpi::on_path()?,
    };
    let own = env::current_exe()
        .map_err(|error| Error::new("gyan", reason(&error), "run it by its full path"))?;
    let mut command = Command::new(own);
    command.arg("list-library").arg("--output").arg(output).arg(&mpi);
    if when == When::BeforeInit {
        command.arg("--before-init");
    }
    Ok((mpi.display().to_string(), command))
}

/// The program of the options, whose place the listing takes at its `MPI_Init`.
fn in_program(
    options: &VarlistOptions,
    when: When,
    output: &Path,
) -> Result<(String, Command), Error> {
    let program = &options.command[0];
    if launcher::find_executable(program).is_none() {
        return Err(Error::new(program.display(), "no such program", "check its name and PATH"));
    }
    let launcher = launcher::launcher(program);
    let mut variables =
        vec![("LD_PRELOAD", run::preload(&run::library()?)), ("GYAN_LIST", OsString::from(output))];
    if when == When::BeforeInit {
        variables.push(("GYAN_LIST_BEFORE", "on".into()));
    }
    let (line, own) = launcher::command_line(launcher, &options.command, &variables);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).envs(own);
    Ok((program.display().to_string(), command))
}

/// Why there is no listing. When the process ended with gyan's own code, it has said so itself.
fn no_listing(options: &VarlistOptions, what: &str, status: ExitStatus) -> Error {
    let end = run::ending(status);
    if options.command.is_empty() {
        if status.code() == Some(crate::FAILED.into()) {
            return Error::said();
        }
        return Error::new(
            what,
            format!("the library {end} before it was listed"),
            "its own words stand above; try -m",
        );
    }
    Error::new(
        what,
        format!("{end} without calling MPI_Init through a shared MPI library"),
        "name an MPI program, with the arguments that it needs to start",
    )
}

fn saved(path: &Path) -> Result<Variables, Error> {
    read_variables(path).map_err(|error| {
        let text = error.to_string();
        let (why, remedy) =
            text.split_once("; ").unwrap_or((&text, "name a file that gyan varlist --json wrote"));
        Error::new(path.display(), why, remedy)
    })
}

pub(crate) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<u8, Error> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        // The reader of a pipe may have seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new("standard output", reason(&error), "make room"))
        }
        _ => Ok(DONE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_is_for_the_whole_text_and_an_expression_for_a_part() {
        let matches = |pattern: &str, text: &str| compiled(pattern).unwrap().is_match(text);
        assert!(matches("btl_*_eager_limit", "btl_vader_eager_limit"));
        assert!(!matches("btl_*", "mca_btl_base"));
        assert!(matches("eager", "btl_vader_EAGER_limit"));
        assert!(matches("^btl_(vader|self)_eager", "btl_self_eager_limit"));
        assert!(!matches("^eager", "btl_vader_eager_limit"));
        assert!(compiled("(").is_err());
    }
}
