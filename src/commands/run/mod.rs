//! `gyan run`: puts libgyan.so into the ranks of a program. When it starts the launcher, it waits for the end,
//! passes the exit code on and prints the report; when a launcher starts it, it becomes the rank.

mod repeat;
mod stall;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::iter;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::{RunOptions, TIMELINE_SIZE};
use crate::commands::report;
use crate::error::Error;
use crate::hang::STALL_FILE;
use crate::input::directory::{self, Directory};
use crate::input::source::Source;
use crate::launch::launcher::{self, Launcher};
use crate::launch::preload::{library, preload};
use crate::launch::wait::run_and_wait;
use crate::launch::{executable, keepers};
use crate::{DONE, STALLED, output, say};

/// How long to wait for the profiles of ranks that were killed.
const KEEPERS: Duration = Duration::from_secs(20);

/// How long to wait for those of other hosts when a rank is missing.
const OTHER_HOSTS: Duration = Duration::from_secs(2);

type Variables = Vec<(String, OsString)>;

pub(crate) fn run(options: &RunOptions) -> Result<u8, Error> {
    let program = launcher::program("gyan run", &options.command)?;
    let launcher = launcher::launcher(program);
    let is_rank = launcher.is_none() && launcher::rank().is_some();
    if let Some(page) = &options.html {
        if is_rank {
            let why = "a rank that a launcher started has no report";
            let remedy = "afterwards: gyan report --format html -o FILE DIR";
            return Err(Error::new("--html", why, remedy));
        }
        output::may_write(page, options.force)?;
    }
    if is_rank && (options.stall.is_some() || options.stall_kill) {
        let why = "a rank that a launcher started does not see the others";
        let remedy = "put gyan in front of the launcher: gyan run --stall 60s -- mpirun ...";
        return Err(Error::new("--stall", why, remedy));
    }
    if is_rank && options.repeat.is_some() {
        let why = "a rank that a launcher started cannot start the others again";
        let remedy = "put gyan in front of the launcher: gyan run --repeat N -- mpirun ...";
        return Err(Error::new("--repeat", why, remedy));
    }
    let library = library()?;
    let mut variables: Variables = vec![("LD_PRELOAD".into(), preload(&library))];
    variables.extend(for_regions(&options.phases, &library)?);
    let joined = |list: &[String], by| (!list.is_empty()).then(|| list.join(by));
    for (option, given) in
        [("--set", &options.set), ("--label", &options.label), ("--alternate", &options.alternate)]
    {
        if let Some(bad) = given.iter().find(|setting| !setting.contains('=')) {
            return Err(Error::new(format!("{option} {bad}"), "no value", "write NAME=VALUE"));
        }
    }
    for (name, setting) in [
        ("GYAN_LABELS", joined(&options.label, ";")),
        ("GYAN_LABELS_FROM", joined(&options.labels_from, ",")),
        ("GYAN_PVARS", options.pvars.clone()),
        ("GYAN_CVARS", joined(&options.set, ";")),
        ("GYAN_ENABLE", joined(&options.enable, ",")),
        ("GYAN_BUDGET", options.budget.clone()),
        ("GYAN_SAMPLE", joined(&options.sample, ",")),
        ("GYAN_SERIES", options.series.clone()),
        ("GYAN_WATCH", options.watch.clone()),
        ("GYAN_EVENTS", options.events.clone()),
        ("GYAN_PHASES", joined(&options.phases, ",")),
        ("GYAN_TIMELINE", timeline_size(options)),
        ("GYAN_TIMELINE_WINDOW", options.timeline_window.clone()),
        ("GYAN_TIMELINE_PHASE", options.timeline_phase.clone()),
        ("GYAN_TIMELINE_SLOWEST", options.timeline_slowest.map(|number| number.to_string())),
    ] {
        variables.extend(setting.map(|setting| (name.into(), setting.into())));
    }
    if let Some(how) = reduce(options, is_rank) {
        variables.push(("GYAN_REDUCE".into(), how.into()));
    }
    if is_rank {
        if let Some(output) = output_directory(options)? {
            variables.push(("GYAN_OUTPUT".into(), output.into()));
        }
        return Err(become_rank(&options.command, variables));
    }
    let chosen = output_directory(options)?;
    let is_new = chosen.is_none();
    // What a launcher starts is for rank 0 to say; until then the likeliest of the words is its name.
    let name = match launcher {
        None => launcher::file_name_of(program),
        Some(_) => executable::target(launcher, &options.command)
            .and_then(|(_, program)| launcher::file_name_of(program.path.as_os_str())),
    };
    let output = match chosen {
        Some(output) => output,
        None => new_directory(name.as_deref().unwrap_or("run"))?,
    };
    let stall = stall::asked(options)?;
    let run = InFront { options, launcher, variables, stall };
    let is_nameless = is_new && launcher.is_some();
    match options.repeat {
        Some(number) => repeat::repeat(&run, output, number, is_nameless),
        None => once(&run, output, is_new, is_nameless),
    }
}

/// The variables by which libraries with regions look for a tool; an earlier Kokkos had another than today's.
const TOOL_VARIABLES: [(&str, &str); 4] = [
    ("kokkos", "KOKKOS_TOOLS_LIBS"),
    ("kokkos", "KOKKOS_PROFILE_LIBRARY"),
    ("nvtx", "NVTX_INJECTION64_PATH"),
    ("itt", "INTEL_LIBITTNOTIFY64"),
];

/// Has the program find libgyan.so for the regions of `libraries`. An error where one of them has another tool already.
fn for_regions(libraries: &[String], library: &Path) -> Result<Variables, Error> {
    let asked = TOOL_VARIABLES.iter().filter(|(of, _)| libraries.iter().any(|asked| asked == of));
    let variables = asked.map(|(of, name)| {
        let other = env::var_os(name).filter(|other| !other.is_empty() && other != library);
        match other {
            Some(other) => Err(Error::new(
                format!("--phases {of}"),
                format!("{name} is {}, another tool", other.display()),
                format!("unset {name}, or leave {of} out"),
            )),
            None => Ok(((*name).to_owned(), library.into())),
        }
    });
    variables.collect()
}

/// The memory of a timeline; what says which part of the run is recorded asks for one, too.
fn timeline_size(options: &RunOptions) -> Option<String> {
    let selects = options.timeline_window.is_some()
        || options.timeline_phase.is_some()
        || options.timeline_slowest.is_some();
    let size = selects.then(|| TIMELINE_SIZE.to_owned());
    options.timeline.clone().or(size)
}

/// Whether the ranks should reduce their profiles themselves. Only when gyan starts the launcher is it certain
/// that gyan is in all of them; otherwise the user has to say so.
fn reduce(options: &RunOptions, is_rank: bool) -> Option<String> {
    let is_set = env::var_os("GYAN_REDUCE").is_some_and(|value| !value.is_empty());
    let default = (!is_rank && !is_set).then(|| "auto".to_owned());
    options.reduce.clone().or(default)
}

/// The command to run, with gyan added to it.
struct InFront<'a> {
    options: &'a RunOptions,
    launcher: Option<Launcher>,
    variables: Variables,
    stall: Option<stall::StallWatch>,
}

impl InFront<'_> {
    /// Runs the command with the profiles in `output`, and waits for both. `more`: further variables, set for
    /// the launcher as well as for the ranks.
    fn run(&self, output: &Path, more: &[(String, String)]) -> Result<u8, Error> {
        make_way(output, self.options.force)?;
        let mut variables = self.variables.clone();
        variables.push(("GYAN_OUTPUT".into(), output.into()));
        variables.push(("GYAN_NOTICES".into(), "warnings".into()));
        variables.extend(more.iter().map(|(name, value)| (name.clone(), value.into())));
        let mut command = launcher::command(self.launcher, &self.options.command, &variables)?;
        let more = more.iter().map(|(name, value)| (name, value));
        let (running, over) = mpsc::channel();
        let (status, was_ended) = thread::scope(|scope| {
            let watch = self.stall.map(|stall| scope.spawn(move || stall.watch(output, &over)));
            let status = run_and_wait(command.envs(more));
            drop(running);
            (status, watch.is_some_and(|watch| watch.join().unwrap_or(false)))
        });
        if !keepers::have_ended(output, KEEPERS) {
            say::warn(format_args!(
                "{}: its file system does not answer: profiles have not been written yet",
                output.display()
            ));
        }
        if status.as_ref().is_ok_and(|status| !status.success()) {
            wait_for_other_hosts(output);
        }
        status.map(|status| if was_ended { STALLED } else { exit_code(status) })
    }
}

/// Runs the command and reports. `is_new`: the directory was created for this run; `is_nameless`: only rank 0 can
/// say what to call it.
fn once(run: &InFront, mut output: PathBuf, is_new: bool, is_nameless: bool) -> Result<u8, Error> {
    let status = run.run(&output, &[]);
    if is_new {
        // Removes the directory if nothing was written: one that is not empty stays.
        let _ = fs::remove_dir(&output);
    }
    let code = status?;
    if is_nameless {
        output = named_by_rank_0(&output, &output).unwrap_or(output);
    }
    if !run.options.no_report || run.options.html.is_some() {
        show(&output, run.options, code);
    }
    Ok(code)
}

/// News of ranks that were killed on other hosts arrives a moment later.
fn wait_for_other_hosts(output: &Path) {
    let begun = Instant::now();
    let is_complete = || {
        let directory = Directory::open(output).ok()?;
        let first = directory.read(*directory.files.first()?).ok()?;
        Some(directory.files.len() >= first.size as usize)
    };
    while is_complete() == Some(false) && begun.elapsed() < OTHER_HOSTS {
        thread::sleep(OTHER_HOSTS / 20);
    }
}

/// Becomes the program; returns only if that fails.
fn become_rank(words: &[OsString], variables: Variables) -> Error {
    let Some((program, arguments)) = words.split_first() else {
        return Error::new("gyan run", "no program", "name it");
    };
    let error = Command::new(program).args(arguments).envs(variables).exec();
    Error::io(Path::new(program), &error, "check the program")
}

/// Prints the report of a run that ended with `code` to stderr: stdout belongs to the program. What goes wrong here
/// is said and does not change the exit code, which is the program's.
fn show(output: &Path, options: &RunOptions, code: u8) {
    if !directory::has_profiles(output) {
        let question = if code == 0 {
            "does the program call MPI_Init, is it linked with a shared MPI library, and does \
             libgyan.so come before that?"
                .to_owned()
        } else {
            format!("the command ended with code {code}: does it run without gyan?")
        };
        say::warn(format_args!(
            "{}: no profile was written; {question} gyan doctor -- COMMAND finds out",
            output.display()
        ));
        directory::name_nested(output);
        return;
    }
    let source = Source::open(output);
    match source.and_then(|source| Ok((source.summarize()?, source))) {
        Ok((summary, source)) => {
            source.warn_of_gaps(&summary);
            if let Some(page) = &options.html {
                match report::page::to_file(&source, &summary, page, options.force) {
                    Ok(()) => say::warn(format_args!("{}: the report as a page", page.display())),
                    Err(error) => say::warn(error),
                }
            }
            if options.no_report {
                return;
            }
            say::tell("");
            let directory = relative(output);
            let _ = report::first_screen(&mut anstream::stderr().lock(), &summary, directory);
            let directory = directory.display();
            say::tell(format_args!(
                "\nprofiles in {directory}; a page of them: gyan open {directory}\nmore: gyan report --findings {directory} (also --sites, --variables, --all)"
            ));
            if !crate::timeline::files_in(output).is_empty() {
                say::tell(format_args!(
                    "which calls waited: gyan timeline {directory}; for a viewer: gyan timeline {directory} -o {directory}.pftrace"
                ));
            }
        }
        Err(error) => say::warn(error),
    }
}

/// The user's own output directory as an absolute path: ranks may run elsewhere.
fn output_directory(options: &RunOptions) -> Result<Option<PathBuf>, Error> {
    let from_env = || env::var_os("GYAN_OUTPUT").filter(|value| !value.is_empty());
    let Some(chosen) = options.output.clone().or_else(|| from_env().map(PathBuf::from)) else {
        return Ok(None);
    };
    std::path::absolute(&chosen)
        .map(Some)
        .map_err(|error| Error::io(&chosen, &error, "name another output directory with -o"))
}

/// Renames `output` after the program that rank 0 ran, according to its profile in `run`. Only when the profiles of
/// all ranks are there: later ones would still be written to the old place. Returns the new place; none when it keeps
/// the old one.
fn named_by_rank_0(output: &Path, run: &Path) -> Option<PathBuf> {
    let directory = Directory::open(run).ok()?;
    let &first = directory.files.first().filter(|file| file.rank == 0 && !file.is_live())?;
    let first = directory.read(first).ok()?;
    let written = directory.files.iter().filter(|file| !file.is_live()).count();
    if written != first.size as usize && directory.reduced_in_mpi.is_none() {
        return None;
    }
    let name = launcher::file_name_of(OsStr::new(first.job.command.first()?))?;
    // Without its id, which has no such sign.
    let now = output.file_name()?.to_string_lossy();
    if now.rsplit_once('-').is_some_and(|(now, _)| now == format!("gyan-{name}")) {
        return None;
    }
    let named = new_directory(&name).ok()?;
    // It replaces the new directory, which is empty.
    if fs::rename(output, &named).is_err() {
        let _ = fs::remove_dir(&named);
        return None;
    }
    Some(named)
}

/// `gyan-<program>-<id>` in the current directory, with the first free id.
fn new_directory(name: &str) -> Result<PathBuf, Error> {
    let here = env::current_dir()
        .map_err(|error| Error::new("current directory", error, "name one with -o"))?;
    let id = std::process::id();
    // Created right away: another gyan run, perhaps on another node, may be about to choose the same name.
    let mut maker = DirBuilder::new();
    maker.mode(mode());
    let is_taken = |candidate: &PathBuf| {
        let made = maker.create(candidate);
        made.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
    };
    let mut candidates = iter::once(here.join(format!("gyan-{name}-{id}")))
        .chain((1..).map(|n| here.join(format!("gyan-{name}-{id}.{n}"))));
    candidates
        .find(|candidate| !is_taken(candidate))
        .ok_or_else(|| Error::new("gyan run", "no free directory name", "name one with -o"))
}

/// `GYAN_MODE`; the ranks report what is wrong with it.
fn mode() -> u32 {
    let set = env::var("GYAN_MODE").ok().and_then(|text| u32::from_str_radix(&text, 8).ok());
    set.filter(|mode| mode & !0o777 == 0 && mode & 0o700 == 0o700).unwrap_or(0o700)
}

/// Two runs in one directory would be mixed up, so gyan removes the profiles of an earlier run or does not
/// start.
fn make_way(output: &Path, force: bool) -> Result<(), Error> {
    let nested = directory::nested(output);
    let old: Vec<PathBuf> = iter::once(output)
        .chain(nested.iter().map(PathBuf::as_path))
        .flat_map(|place| directory::files_in(place).unwrap_or_default())
        .collect();
    if old.is_empty() {
        return Ok(());
    }
    if !force {
        return Err(Error::new(
            output.display(),
            format!("holds {} profiles of an earlier run", old.len()),
            "choose another directory, or --force to remove them",
        ));
    }
    let summary = |place: &Path| place.join(gyan_results::SUMMARY_FILE);
    let stalls = [output.join(STALL_FILE)];
    let timelines = crate::timeline::files_in(output);
    let summaries = iter::once(summary(output))
        .chain(stalls)
        .chain(timelines)
        .chain(nested.iter().map(|place| summary(place)));
    for path in old.into_iter().chain(summaries) {
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(Error::io(&path, &error, "remove it by hand"));
        }
    }
    for place in nested {
        // Files that are not gyan's stay, and with them the directory.
        let _ = fs::remove_dir(place);
    }
    Ok(())
}

fn relative(path: &Path) -> &Path {
    let here = env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}

/// The program's own code, or 128 plus the signal that ended it, as in shells.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(DONE)
}
