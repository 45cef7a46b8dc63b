//! Does a program come as far as `MPI_Init` under libgyan.so, and if not, what became of it?
//!
//! The program runs with `GYAN_LIST`, so that it gives way to a listing of its MPI at `MPI_Init`, and
//! with glibc's `LD_DEBUG`, which tells of every process what was loaded into it. libgyan.so itself
//! does nothing before `MPI_Init`, and so cannot tell.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::mem;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use gyan_results::{Check, Variables, Verdict, read_variables};
use tempfile::TempDir;

use crate::error::{Error, reason};
use crate::launch::executable::{Executable, Kind, is_mpi_library};
use crate::launch::launcher::{self, Launcher};
use crate::launch::preload::preload;
use crate::launch::wait::{ending, run_and_wait};

/// What became of the program.
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    /// What its MPI tells; none when the program did not come as far as `MPI_Init`.
    pub(crate) listing: Option<Variables>,
    /// The processes in which the dynamic loader took gyan's orders.
    images: Vec<Image>,
    /// What it wrote, with the lines of the launcher and of gyan.
    output: String,
}

/// A program that a process became.
#[derive(Debug, Default)]
struct Image {
    program: String,
    /// In the order in which they were initialised.
    libraries: Vec<String>,
    /// In the order in which symbols are looked up.
    mapped: Vec<String>,
}

/// Runs the program. `here` is for the files of the probe: a directory that the ranks can write to. `tries`:
/// the listing tries everything that a run does with a variable.
pub(crate) fn probe(
    words: &[OsString],
    launcher: Option<Launcher>,
    library: &Path,
    here: &Path,
    tries: bool,
) -> Result<Outcome, Error> {
    let directory = temporary(here)?;
    let path = |name: &str| directory.path().join(name);
    let variables = vec![
        ("LD_PRELOAD", preload(library)),
        ("GYAN", "on".into()),
        ("GYAN_LIST", path("listing").into()),
        ("GYAN_LIST_TRIES", if tries { "on" } else { "off" }.into()),
        ("LD_DEBUG", "files".into()),
        ("LD_DEBUG_OUTPUT", path("loaded").into()),
    ];
    let (line, own) = launcher::command_line(launcher, words, &variables);
    let Some((program, arguments)) = line.split_first() else {
        return Err(Error::new("gyan doctor", "no program", "name it after --"));
    };
    let cannot = |error: &std::io::Error| Error::io(directory.path(), error, "make room");
    let output = File::create(path("output")).map_err(|error| cannot(&error))?;
    let errors = output.try_clone().map_err(|error| cannot(&error))?;
    let mut command = Command::new(program);
    command.args(arguments).envs(own).stdin(Stdio::null()).stdout(output).stderr(errors);
    let status = run_and_wait(&mut command)?;
    let output = fs::read(path("output")).unwrap_or_default();
    Ok(Outcome {
        status,
        listing: read_variables(&path("listing")).ok(),
        images: images(directory.path()),
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

/// What the dynamic loader wrote down in each process.
fn images(directory: &Path) -> Vec<Image> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let logs = files.filter(|file| file.file_name().to_string_lossy().starts_with("loaded."));
    logs.flat_map(|log| {
        images_in(&String::from_utf8_lossy(&fs::read(log.path()).unwrap_or_default()))
    })
    .collect()
}

/// The programs that one process became, one after the other, by the words of `LD_DEBUG=files`.
fn images_in(log: &str) -> Vec<Image> {
    let mut images: Vec<Image> = Vec::new();
    let (mut libraries, mut mapped) = (Vec::new(), Vec::new());
    for line in log.lines() {
        let line = line.split_once(':').map_or(line, |(_, rest)| rest).trim();
        if let Some(file) = line.strip_prefix("file=")
            && line.ends_with("generating link map")
        {
            mapped.push(file.split(" [").next().unwrap_or(file).to_owned());
        } else if let Some(library) = line.strip_prefix("calling init: ") {
            libraries.push(library.to_owned());
        } else if let Some(program) = line.strip_prefix("initialize program: ") {
            let program = program.rsplit('/').next().unwrap_or(program).to_owned();
            let (libraries, mapped) = (mem::take(&mut libraries), mem::take(&mut mapped));
            images.push(Image { program, libraries, mapped });
        }
    }
    // What came after the start of the last one: by dlopen.
    if let Some(last) = images.last_mut() {
        last.libraries.append(&mut libraries);
        last.mapped.append(&mut mapped);
    }
    images
}

impl Image {
    fn has_gyan(&self) -> bool {
        self.libraries.iter().any(|library| is_gyan(library))
    }

    fn mpi(&self) -> Option<&str> {
        self.libraries.iter().find(|library| is_mpi_library(library)).map(String::as_str)
    }

    /// The MPI library that comes before libgyan.so, which then gets no call.
    fn mpi_in_front(&self) -> Option<&str> {
        let gyan = self.mapped.iter().position(|library| is_gyan(library))?;
        let front = self.mapped.get(..gyan)?;
        front.iter().find(|library| is_mpi_library(library)).map(String::as_str)
    }
}

pub(crate) fn is_gyan(library: &str) -> bool {
    library.rsplit('/').next() == Some("libgyan.so")
}

/// What keeps libgyan.so out of a program whatever starts it; none when nothing does.
pub(crate) fn closed_to_gyan(program: &Executable) -> Option<(String, &'static str)> {
    let path = program.path.display();
    match &program.kind {
        Kind::Static => Some((
            format!("{path} is statically linked: no library can be loaded into it"),
            "link it with the shared MPI library (without -static), or link libgyan.a into it (see README)",
        )),
        Kind::Foreign => Some((
            format!("{path} is for another kind of processor than libgyan.so"),
            "use the gyan that was built for it",
        )),
        Kind::Dynamic { loader, .. } if loader.contains("musl") => Some((
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

/// Why the program did not come as far as a listing of its MPI.
pub(crate) fn explain(
    program: &Executable,
    launcher: Option<Launcher>,
    outcome: &Outcome,
) -> Check {
    let obstacle = |finding: String, remedy: &str| Check {
        what: "start".into(),
        verdict: Verdict::Obstacle,
        finding,
        remedy: Some(remedy.into()),
    };
    let name = program.path.file_name().unwrap_or_default().to_string_lossy();
    let end = ending(outcome.status);
    if let Some((what, remedy)) = outcome.said() {
        return obstacle(what, &remedy);
    }
    let own: Vec<&Image> = outcome.images.iter().filter(|image| image.program == name).collect();
    let script = program.kind == Kind::Script;
    if own.is_empty() && !script {
        // With these the images are those of the ranks; with others the launcher is one of them.
        let to_ranks = matches!(launcher, Some(Launcher::OpenMpi | Launcher::Hydra));
        if outcome.status.success() || (to_ranks && !outcome.images.is_empty()) {
            return obstacle(
                format!("{name} was started without LD_PRELOAD{}", outcome.who_drops_it()),
                "let what starts it pass LD_PRELOAD and GYAN_* on, or link the program with \
                 libgyan.so (-lgyan)",
            );
        }
        return obstacle(
            format!(
                "the command {end}, and {name} was not started with LD_PRELOAD{}",
                outcome.words("first", str::lines)
            ),
            "make it run without gyan first; if it does, what starts it drops LD_PRELOAD",
        );
    }
    let images = if script { outcome.images.iter().collect() } else { own };
    if !images.iter().any(|image| image.has_gyan()) {
        return obstacle(
            format!("{name} was started with another LD_PRELOAD than gyan's"),
            "add to LD_PRELOAD instead of setting it anew",
        );
    }
    if let Some(mpi) = images.iter().find_map(|image| image.mpi_in_front()) {
        let finding = format!("{mpi} comes before libgyan.so in {name}: gyan gets no call of MPI");
        return obstacle(finding, "put libgyan.so first in LD_PRELOAD, or before MPI when linking");
    }
    let Some(mpi) = images.iter().find_map(|image| image.mpi()) else {
        return obstacle(
            format!(
                "{name} loads no shared MPI library: it is no MPI program, or has MPI linked \
                 statically"
            ),
            "name an MPI program, and link it with the shared MPI library",
        );
    };
    obstacle(
        format!(
            "{name} loads {mpi} and {end} without MPI_Init under libgyan.so{}",
            outcome.words("last", |text| text.lines().rev())
        ),
        "give it the arguments that it needs to start; see that nothing sets GYAN=off for it",
    )
}

impl Outcome {
    /// What libgyan.so said last, as what is wrong and what to do.
    fn said(&self) -> Option<(String, String)> {
        let line = self.output.lines().rev().find_map(|line| line.strip_prefix("gyan: "))?;
        match line.split_once("; ") {
            Some((what, remedy)) => {
                let remedy = remedy.strip_prefix("gyan is off; ").unwrap_or(remedy);
                Some((what.to_owned(), remedy.to_owned()))
            }
            None => Some((line.to_owned(), "see the README of gyan".to_owned())),
        }
    }

    /// The programs that got gyan's environment in the place of the one that should have.
    fn who_drops_it(&self) -> String {
        let names: BTreeSet<&str> =
            self.images.iter().map(|image| image.program.as_str()).collect();
        if names.is_empty() {
            return ": what starts it drops the environment".into();
        }
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        format!(": it came to {names} and no further")
    }

    /// The first line of what was written, in an order, to be added to a sentence. A launcher says at
    /// first what is wrong, a program that ends at last.
    fn words<'a, L: Iterator<Item = &'a str>>(
        &'a self,
        which: &str,
        in_order: impl FnOnce(&'a str) -> L,
    ) -> String {
        let line = in_order(&self.output).find(|line| line.chars().any(char::is_alphanumeric));
        line.map_or_else(String::new, |line| format!(" (its {which} words: {})", line.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What glibc 2.36 writes when env, with libgyan.so preloaded, becomes a program that loads MPI
    /// by dlopen.
    const LOG: &str = "\
      77:\tfile=/lib/libgyan.so [0];  needed by env [0]
      77:\tfile=/lib/libgyan.so [0];  generating link map
      77:\tcalling init: /lib64/ld-linux-x86-64.so.2
      77:\tcalling init: /lib/libgyan.so
      77:\tinitialize program: env
      77:\ttransferring control: env
      77:\tfile=/lib/libgyan.so [0];  needed by /usr/bin/python3 [0]
      77:\tfile=/lib/libgyan.so [0];  generating link map
      77:\tcalling init: /lib/libgyan.so
      77:\tinitialize program: /usr/bin/python3
      77:\ttransferring control: /usr/bin/python3
      77:\tfile=libmpi.so.40 [0];  dynamically loaded by mpi4py.so [0]
      77:\tfile=libmpi.so.40 [0];  generating link map
      77:\tcalling init: /usr/lib/libmpi.so.40
";

    #[test]
    fn what_was_loaded_is_read_from_the_words_of_the_loader() {
        let images = images_in(LOG);
        let [env, python] = &images[..] else { panic!("{images:?}") };
        assert_eq!((env.program.as_str(), python.program.as_str()), ("env", "python3"));
        assert!(env.has_gyan() && env.mpi().is_none());
        assert!(python.has_gyan());
        assert_eq!(python.mpi(), Some("/usr/lib/libmpi.so.40"));
        assert_eq!(python.mpi_in_front(), None);
    }

    #[test]
    fn an_mpi_that_is_preloaded_before_gyan_is_known_by_the_order_of_their_maps() {
        let log = |first: &str, second: &str| {
            format!(
                "1:\tfile={first} [0];  generating link map\n\
                 1:\tfile={second} [0];  generating link map\n\
                 1:\tinitialize program: ./app\n"
            )
        };
        let (gyan, mpi) = ("/lib/libgyan.so", "/lib/libmpi.so.40");
        assert_eq!(images_in(&log(mpi, gyan))[0].mpi_in_front(), Some(mpi));
        assert_eq!(images_in(&log(gyan, mpi))[0].mpi_in_front(), None);
    }
}
