//! `gyan doctor`: is something in the way of gyan, what does this MPI export, what would show more?

mod loading;
mod ordinary;
mod probe;
mod processes;
mod quirks;
mod record;
mod site;
mod surroundings;

use std::env;
use std::path::{Path, PathBuf};

use gyan_results::{Check, DOCTOR_SCHEMA, Diagnosis, Exports, PvarInfo, Tool, Variables, Verdict};

use crate::cli::DoctorOptions;
use crate::error::{Error, reason};
use crate::format::ListFormat;
use crate::launch::executable::{self, Executable, ProgramKind};
use crate::launch::launcher::{self, Launcher};
use crate::launch::{listing, mpi, preload};
use crate::words::short_library;
use crate::{DONE, INCOMPLETE, answers, print, symbols};

/// The value of `GYAN` that turns gyan off.
const OFF: [&str; 4] = ["off", "0", "no", "false"];

pub(crate) fn doctor(options: &DoctorOptions) -> Result<u8, Error> {
    let format = if options.json { ListFormat::Json } else { options.format.clone()? };
    let library = preload::library();
    let mut checks = vec![match &library {
        Ok(path) => loading::check(path),
        Err(error) => of_error("libgyan.so", error),
    }];
    let library = library.ok().filter(|_| checks[0].verdict == Verdict::Ok);
    checks.extend(settings());
    checks.extend(preloaded());
    let output = output_directory();
    checks.push(writable(&output));
    if let Some(file) = &options.site {
        checks.extend(site::checks(file, library.as_deref(), &options.command));
    }
    let listing = match library {
        Some(_) if options.command.is_empty() => of_path(options, &mut checks),
        Some(library) => of_program(options, &library, &output, &mut checks)?,
        None => None,
    };
    checks.extend(listing.as_ref().and_then(messages));
    if let (Some(path), Some(listing)) = (&options.probe, &listing) {
        checks.push(quirks::write(listing, path)?);
    }
    let diagnosis = diagnosis(options, checks, listing);
    let code = if diagnosis.obstacles().next().is_some() { INCOMPLETE } else { DONE };
    print::listing(format, &answers::doctor(&diagnosis), &diagnosis)?;
    Ok(code)
}

fn diagnosis(options: &DoctorOptions, checks: Vec<Check>, listing: Option<Variables>) -> Diagnosis {
    let words = options.command.iter().map(|word| word.to_string_lossy().into_owned());
    let mut diagnosis = Diagnosis {
        schema: DOCTOR_SCHEMA.into(),
        tool: Tool::gyan(),
        command: words.collect(),
        checks,
        mpi: None,
        exports: None,
        switches: Vec::new(),
        advice: Vec::new(),
    };
    if let Some(listing) = listing {
        let still_there = |pvar: &&PvarInfo| !pvar.before_init;
        diagnosis.exports = Some(Exports {
            cvars: listing.cvars.len(),
            pvars: listing.pvars.len(),
            pvars_after_init: listing.pvars.iter().filter(still_there).count(),
            categories: listing.categories.len(),
            events: listing.has_events.then_some(listing.events.len()),
        });
        diagnosis.mpi = Some(listing.mpi);
        diagnosis.switches = listing.switches;
        diagnosis.advice = listing.advice;
    }
    diagnosis
}

fn check(what: &str, verdict: Verdict, finding: String, remedy: Option<&str>) -> Check {
    Check { what: what.into(), verdict, finding, remedy: remedy.map(str::to_owned) }
}

fn ok(what: &str, finding: String) -> Check {
    check(what, Verdict::Ok, finding, None)
}

fn obstacle(what: &str, finding: String, remedy: &str) -> Check {
    check(what, Verdict::Obstacle, finding, Some(remedy))
}

fn of_error(what: &str, error: &Error) -> Check {
    let (finding, remedy) = error.parts();
    obstacle(what, finding.to_owned(), remedy)
}

/// gyan's own settings, if any.
fn settings() -> Option<Check> {
    let mut settings: Vec<String> = env::vars()
        .filter(|(name, value)| name.starts_with("GYAN") && !value.is_empty())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    settings.sort();
    let gyan = env::var("GYAN").unwrap_or_default().to_ascii_lowercase();
    if OFF.contains(&gyan.as_str()) {
        let finding = format!("GYAN={gyan} turns libgyan.so off");
        return Some(obstacle("settings", finding, "unset GYAN"));
    }
    (!settings.is_empty()).then(|| ok("settings", settings.join(" ")))
}

/// What the shell that started this command preloads into everything. This is no obstacle: `gyan run` and the
/// start below put libgyan.so first.
fn preloaded() -> Vec<Check> {
    const WHAT: &str = "LD_PRELOAD";
    let preload = env::var(WHAT).unwrap_or_default();
    let words: Vec<&str> = preload.split([' ', ':']).filter(|word| !word.is_empty()).collect();
    let mut checks = Vec::new();
    let is_gone =
        |word: &&&str| word.contains('/') && !word.contains('$') && !Path::new(word).exists();
    if let Some(gone) = words.iter().find(is_gone) {
        let finding = format!(
            "of this shell has {gone}, which does not exist: every program says so on stderr"
        );
        checks.push(check(WHAT, Verdict::Note, finding, Some("take it out of LD_PRELOAD")));
    }
    let Some(gyan) = words.iter().position(|word| probe::is_gyan(word)) else { return checks };
    let finding = "of this shell has libgyan.so: all that it starts loads it, shells, launchers and containers too; \
                   without MPI it does nothing there";
    let remedy = "set it for the ranks only: gyan run does; a shell needs none";
    checks.push(check(WHAT, Verdict::Note, finding.into(), Some(remedy)));
    let has_mpi = |word: &&&str| symbols::defines(Path::new(word), |name| name.starts_with("MPI_"));
    if let Some(first) = words[..gyan].iter().find(has_mpi) {
        let finding =
            format!("LD_PRELOAD has {first} before libgyan.so, and it defines functions of MPI");
        let remedy = "put libgyan.so first in LD_PRELOAD; gyan run does so by itself";
        checks.push(check("order", Verdict::Note, finding, Some(remedy)));
    }
    checks
}

/// The directory of the profiles, or the one in which it would be created.
fn output_directory() -> PathBuf {
    let chosen = env::var_os("GYAN_OUTPUT").filter(|value| !value.is_empty());
    let here = PathBuf::from(".");
    let path = chosen.map_or(here, PathBuf::from);
    std::path::absolute(&path).unwrap_or(path)
}

/// Whether files can be created in the directory, or in its first parent that exists.
fn writable(output: &Path) -> Check {
    let exists = output.ancestors().find(|path| path.exists()).unwrap_or(output);
    match tempfile::tempfile_in(exists) {
        Ok(_) => ok("output", format!("{} can be written", output.display())),
        Err(error) => obstacle(
            "output",
            format!("{} cannot be written: {}", output.display(), reason(&error)),
            "name a directory that can with gyan run -o, or set GYAN_OUTPUT",
        ),
    }
}

/// The MPIs that the environment leads to, and a listing of the first.
fn of_path(options: &DoctorOptions, checks: &mut Vec<Check>) -> Option<Variables> {
    let (compiler, launcher) = (mpi::compiler(), mpi::launcher());
    let shown = |what: &str, lead: Option<&mpi::Lead>| match lead {
        Some(mpi::Lead { command, library: Some(library) }) => {
            ok(what, format!("{} -> {}", command.display(), library.display()))
        }
        Some(mpi::Lead { command, library: None }) => check(
            what,
            Verdict::Note,
            format!("{} leads to no MPI library that gyan can find", command.display()),
            Some("name a program after --"),
        ),
        None => check(what, Verdict::Note, "not on PATH".into(), None),
    };
    checks.push(shown("mpicc", compiler.as_ref()));
    checks.push(shown("mpirun", launcher.as_ref()));
    let others = mpi::on_library_path();
    if !others.is_empty() {
        let others: Vec<String> = others.iter().map(|path| path.display().to_string()).collect();
        checks.push(ok("loader path", format!("LD_LIBRARY_PATH has {}", others.join(", "))));
    }
    if let Some((finding, remedy)) = surroundings::slurm_settings() {
        checks.push(check("srun", Verdict::Note, finding, Some(&remedy)));
    }
    let listing = listing::on_path(options.probe.is_some());
    match &listing {
        Ok(listing) => {
            let kind = launcher.and_then(|lead| launcher::launcher(lead.command.as_os_str()));
            checks.extend(mismatch(kind, listing));
        }
        Err(error) if error.is_said() => checks.push(obstacle(
            "MPI library",
            "cannot be asked; the reason is above".into(),
            "name a program after --",
        )),
        Err(error) => checks.push(of_error("MPI library", error)),
    }
    listing.ok()
}

/// The launcher of one MPI starts each process of a program for another as a run of its own.
fn mismatch(launcher: Option<Launcher>, listing: &Variables) -> Option<Check> {
    let open_mpi = listing.mpi.library.starts_with("Open MPI");
    let (launcher, differs) = match launcher? {
        Launcher::OpenMpi => ("Open MPI", !open_mpi),
        Launcher::Hydra => ("MPICH or Intel MPI", open_mpi),
        _ => return None,
    };
    let library = short_library(&listing.mpi.library);
    differs.then(|| {
        obstacle(
            "launcher",
            format!(
                "is that of {launcher}, and the MPI library is {library}: each process would be a \
                 run of its own"
            ),
            "use the mpirun that belongs to the library",
        )
    })
}

/// How the library can report every message.
fn messages(listing: &Variables) -> Option<Check> {
    let peruse =
        symbols::defines(Path::new(&listing.mpi.library_path), |name| name == "PERUSE_Init");
    let by = match (peruse, listing.events.is_empty()) {
        (true, true) => "PERUSE",
        (true, false) => "PERUSE and events of MPI_T",
        (false, false) => "events of MPI_T",
        (false, true) => return None,
    };
    Some(ok("messages", format!("the library can tell of each by {by}: gyan run --events")))
}

fn of_program(
    options: &DoctorOptions,
    library: &Path,
    output: &Path,
    checks: &mut Vec<Check>,
) -> Result<Option<Variables>, Error> {
    let first = launcher::program("gyan doctor", &options.command)?;
    let launcher = launcher::launcher(first);
    if let Some(launcher) = launcher {
        let how = match launcher {
            Launcher::OpenMpi => "passes LD_PRELOAD to the ranks with -x",
            Launcher::Hydra => "passes LD_PRELOAD to the ranks with -genv",
            _ => "passes its environment on",
        };
        checks.push(ok("launcher", format!("{} {how}", first.display())));
    }
    let Some((_, program)) = executable::target(launcher, &options.command) else {
        checks.push(obstacle(
            "program",
            "no word of the command names a program".into(),
            "check its name and PATH",
        ));
        return Ok(None);
    };
    let is_container = surroundings::container(launcher, &options.command)
        .is_some_and(|container| program.path.ends_with(container.name));
    if !is_container {
        if let Some((finding, remedy)) = probe::closed_to_gyan(&program) {
            checks.push(obstacle("program", finding, remedy));
            return Ok(None);
        }
        if let Some(check) = loading::check_for(library, &program) {
            checks.push(check);
            return Ok(None);
        }
    }
    checks.push(ok("program", described(&program)));
    let here = output.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
    let trial = probe::StartTest { words: &options.command, launcher, program: &program, library };
    let outcome = probe::probe(trial, here, options.probe.is_some())?;
    let bystanders = outcome.bystanders();
    let Some(listing) = outcome.listing else {
        checks.push(probe::explain(trial, &outcome));
        return Ok(None);
    };
    checks.push(ok("start", "MPI_Init was reached under libgyan.so".into()));
    if !bystanders.is_empty() {
        let finding =
            format!("libgyan.so is also loaded into {bystanders}, and does nothing there");
        checks.push(ok("others", finding));
    }
    checks.extend(mismatch(launcher, &listing));
    checks.extend(listing.in_front.iter().map(|sentence| {
        let (finding, remedy) = sentence.split_once("; ").unwrap_or((sentence, ""));
        obstacle("order", finding.to_owned(), remedy)
    }));
    Ok(Some(listing))
}

fn described(program: &Executable) -> String {
    let path = program.path.display();
    match &program.kind {
        ProgramKind::Dynamic { mpi: Some(mpi), .. } => format!("{path} needs {mpi}"),
        ProgramKind::Dynamic { .. } => format!("{path} names no MPI library itself"),
        ProgramKind::Script => format!("{path} is a script"),
        ProgramKind::Static | ProgramKind::Foreign(_) | ProgramKind::Unknown => path.to_string(),
    }
}
