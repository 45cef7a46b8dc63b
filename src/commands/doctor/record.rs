//! Does a run of an MPI program leave a record, as the site has it? In a spool of the try's own, so that the archive
//! of the site has nothing of it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gyan_results::{Check, JobRecord, RECORD_BYTES, SiteSettings, Verdict};
use tempfile::TempDir;

use super::site::{for_a_try, records};
use super::{check as checked, obstacle, ok};
use crate::error::reason;
use crate::launch::launcher;
use crate::launch::mpi;
use crate::launch::preload::preload;
use crate::launch::wait::{ending, run_and_wait};
use crate::words::integer;

const WHAT: &str = "record";
const SOURCE: &str = include_str!("record.c");
/// The keeper writes the record when the program has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a program, and looks for its record. `words`: the program with its launcher; none for one that is compiled.
pub(super) fn check(settings: &SiteSettings, library: &Path, words: &[OsString]) -> Check {
    match tempfile::tempdir() {
        Ok(here) => of_run(settings, library, words, &here),
        Err(error) => {
            obstacle(WHAT, format!("no temporary directory: {}", reason(&error)), "set TMPDIR")
        }
    }
}

fn of_run(settings: &SiteSettings, library: &Path, words: &[OsString], here: &TempDir) -> Check {
    let compiled = if words.is_empty() { compiled(here.path()) } else { Ok(words.to_vec()) };
    let words = match compiled {
        Ok(words) => words,
        Err(why) => {
            let remedy = "name an MPI program with its launcher after --";
            return checked(WHAT, Verdict::Note, format!("no run was tried: {why}"), Some(remedy));
        }
    };
    let (spool, file) = (here.path().join("spool"), here.path().join("site.toml"));
    let prepared = fs::create_dir(&spool)
        .and_then(|()| fs::write(&file, for_a_try(settings, &spool)))
        .and_then(|()| fs::File::create(here.path().join("output")));
    let output = match prepared {
        Ok(output) => output,
        Err(error) => {
            return obstacle(WHAT, format!("no try: {}", reason(&error)), "make room in TMPDIR");
        }
    };
    let variables = [("LD_PRELOAD", preload(library)), ("GYAN_SITE", file.into())];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let command = launcher::command(launcher::launcher(&words[0]), &words, &variables);
    let status = command.and_then(|mut command| {
        without_settings(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        run_and_wait(&mut command)
    });
    let status = match status {
        Ok(status) => status,
        Err(error) => return super::of_error(WHAT, &error),
    };
    let begun = Instant::now();
    while records(&spool).is_empty() && begun.elapsed() < PATIENCE && status.success() {
        thread::sleep(Duration::from_millis(20));
    }
    match &records(&spool)[..] {
        [path] => arrived(path, begun.elapsed()),
        [] if !status.success() => {
            let said = fs::read_to_string(here.path().join("output")).unwrap_or_default();
            let first = said.lines().find(|line| line.chars().any(char::is_alphanumeric));
            let finding = format!(
                "none: the program {} ({})",
                ending(status),
                first.unwrap_or("it said nothing").trim()
            );
            obstacle(WHAT, finding, "make it run without gyan first")
        }
        [] => obstacle(
            WHAT,
            "none came of a run that ended well".into(),
            "gyan doctor -- and the same program says what is in the way",
        ),
        several => obstacle(
            WHAT,
            format!("{} came of one run", several.len()),
            "use the launcher that belongs to the program's MPI",
        ),
    }
}

/// A gyan setting of this shell would make the run its user's own.
fn without_settings(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let is_set = command.get_envs().any(|(set, _)| set == name);
        if name.as_encoded_bytes().starts_with(b"GYAN") && !is_set {
            command.env_remove(name);
        }
    }
}

fn arrived(path: &Path, after: Duration) -> Check {
    let bytes = fs::read(path).unwrap_or_default();
    match JobRecord::from_bytes(&bytes) {
        Ok(record) if bytes.len() <= RECORD_BYTES => {
            let finding = format!(
                "{} bytes of a run of {}, {} ms after it",
                integer(i128::try_from(bytes.len()).unwrap_or(i128::MAX)),
                record.program,
                after.as_millis()
            );
            ok(WHAT, finding)
        }
        Ok(_) => {
            let finding = format!("it has {} bytes, more than {RECORD_BYTES}", bytes.len());
            obstacle(WHAT, finding, "report it as an error of gyan")
        }
        Err(error) => {
            let finding = format!("it cannot be read: {error}");
            obstacle(WHAT, finding, "use the gyan and the libgyan.so of one version")
        }
    }
}

/// One rank of a program that is compiled here, by the MPI on PATH; or why there is none.
fn compiled(here: &Path) -> Result<Vec<OsString>, String> {
    let compiler = mpi::compiler().ok_or("mpicc is not on PATH")?;
    let launcher = mpi::launcher().ok_or("mpirun is not on PATH")?;
    let (source, program) = (here.join("record.c"), here.join("gyan-doctor"));
    fs::write(&source, SOURCE).map_err(|error| reason(&error))?;
    let arguments: [PathBuf; 3] = ["-o".into(), program.clone(), source];
    let output = Command::new(&compiler.command).args(arguments).output();
    let output = output.map_err(|error| reason(&error))?;
    if !output.status.success() {
        return Err(format!("{} cannot compile", compiler.command.display()));
    }
    Ok(vec![launcher.command.into(), "-n".into(), "1".into(), program.into()])
}
