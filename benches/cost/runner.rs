//! One measurement with one MPI: all of its modes in turn, round by round, so that other activity of the
//! machine affects all of them.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gyan_results::{Overhead, RankProfile};
use tempfile::TempDir;

use super::accuracy::{self, Functions};
use super::common::{Mpi, Outcome, command, gyan, libgyan, profiles, ranks_that_left, run_within};
use super::measurements::{Measurement, Program, Source};
use super::modes::{Mode, Tool, misfit};
use super::mpip;
use super::mpis::launcher;

/// No run takes longer, even hpcc with all of its calls timed on a shared machine.
const LONGEST: Duration = Duration::from_secs(600);

/// The results in one mode.
pub(super) struct Measured {
    pub(super) mode: Mode,
    /// For each figure of the measurement, the numbers of all rounds; none if the mode has no such figure.
    pub(super) values: Vec<Vec<f64>>,
    /// gyan's own account of each round; empty without gyan.
    pub(super) accounts: Vec<Account>,
    /// The numbers of the functions in each round; empty if those are not compared.
    pub(super) functions: Vec<Functions>,
}

/// gyan's own account of its cost in one run.
pub(super) struct Account {
    /// Seconds from `MPI_Init` to the end, on the rank where that took longest.
    pub(super) elapsed_s: f64,
    /// The largest of all ranks, of the time after the start.
    pub(super) running_share: f64,
    /// The same with the start.
    pub(super) share: f64,
    /// Whether a rank went over its budget.
    pub(super) over_budget: bool,
    /// The first line of `MPI_Get_library_version`.
    pub(super) library: String,
}

/// A measurement with one MPI.
pub(super) struct Measurements {
    pub(super) modes: Vec<Measured>,
    /// The modes that failed, and why.
    pub(super) left_out: Vec<String>,
}

/// The modes in the order of a round. Over as many rounds as there are modes, each takes each place once, and
/// then the order is reversed, so that no mode always follows the same other one.
pub(super) fn order(round: usize, modes: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..modes).map(|place| (place + round) % modes).collect();
    if round / modes % 2 == 1 {
        order.reverse();
    }
    order
}

/// Runs all rounds. A mode that fails once is left out: a round without it would compare nothing.
pub(super) fn measure(
    mpi: Mpi,
    measurement: &Measurement,
    peers: &[Mode],
    rounds: usize,
) -> Measurements {
    let program = file(mpi, &measurement.program);
    let mut left_out = Vec::new();
    let mut modes = (measurement.modes)();
    let of_use =
        |peer: &&Mode| measurement.peers && (!measurement.is_of_accuracy() || peer.is_mpip());
    for peer in peers.iter().filter(of_use) {
        let Tool::Other(library) = &peer.tool else { continue };
        match misfit(library, &program) {
            Some(why) => eprintln!("bench: without {}: {why}", peer.name),
            None => modes.push(peer.clone()),
        }
    }
    let count = modes.len();
    let empty = |mode| {
        let values = measurement.figures.iter().map(|_| Vec::new()).collect();
        Some(Measured { mode, values, accounts: Vec::new(), functions: Vec::new() })
    };
    let mut modes: Vec<Option<Measured>> = modes.into_iter().map(empty).collect();
    for round in 0..rounds {
        for place in order(round, count) {
            let Some(measured) = &mut modes[place] else { continue };
            let run = || one(mpi, measurement, &program, measured);
            // A run that does not end panics, which was already printed; the others continue.
            let run = catch_unwind(AssertUnwindSafe(run));
            if let Err(why) = run.unwrap_or_else(|_| Err("it did not end".into())) {
                left_out.push(format!("{}: {why}", measured.mode.name));
                modes[place] = None;
            }
        }
    }
    Measurements { modes: modes.into_iter().flatten().collect(), left_out }
}

/// The file of a program.
fn file(mpi: Mpi, program: &Program) -> PathBuf {
    match program {
        Program::Test(name) => mpi.program(name),
        Program::Installed { name, .. } => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
            places.find(|file| file.is_file()).unwrap_or_else(|| PathBuf::from(name))
        }
    }
}

/// One run.
fn one(
    mpi: Mpi,
    measurement: &Measurement,
    program: &Path,
    measured: &mut Measured,
) -> Result<(), String> {
    let mode = &measured.mode;
    let here = TempDir::new().map_err(|error| error.to_string())?;
    if let Program::Installed { input: (name, text), .. } = &measurement.program {
        fs::write(here.path().join(name), text()).map_err(|error| error.to_string())?;
    }
    let mut command = if mode.tool == Tool::Varlist {
        let mut command = gyan();
        command.args(["varlist", "--"]).arg(program);
        command
    } else if measurement.ranks == 0 {
        command(&mpi.alone(program))
    } else {
        let mut words = launcher(mpi, measurement.ranks);
        words.push(program.display().to_string());
        command(&words)
    };
    command.args(measurement.arguments).args(&mode.arguments).current_dir(&here);
    command.envs(measurement.environment.iter().copied());
    command.envs(mode.settings.iter().map(|(name, value)| (name, value)));
    let output = here.path().join("profile");
    match &mode.tool {
        Tool::None | Tool::Varlist => {}
        Tool::Gyan => {
            command.env("LD_PRELOAD", libgyan()).env("GYAN_OUTPUT", &output);
        }
        Tool::Other(library) => {
            command.env("LD_PRELOAD", library);
        }
    }
    let begun = Instant::now();
    let outcome = run_within(&mut command, LONGEST);
    let elapsed_s = begun.elapsed().as_secs_f64();
    if outcome.code != 0 {
        let why = outcome.stderr.lines().find(|line| !line.is_empty()).unwrap_or_default();
        return Err(format!("exit code {}: {why}", outcome.code));
    }
    // libgyan.so writes none if it finds no known MPI.
    let written = if output.is_dir() { ranks_that_left(&output).len() } else { 0 };
    if mode.tool == Tool::Gyan && written != measurement.ranks {
        return Err(format!("{written} profiles of {} ranks", measurement.ranks));
    }
    let profiles = if written > 0 { profiles(&output, written) } else { Vec::new() };
    for (figure, values) in measurement.figures.iter().zip(&mut measured.values) {
        let value = match figure.source {
            Source::Elapsed => Some(elapsed_s),
            Source::Account(pick) => largest(&profiles, pick),
            Source::Printed(_) | Source::Noted => {
                let number = printed(&outcome, &figure.source);
                Some(number.ok_or("the program did not print what is measured")?)
            }
        };
        values.extend(value);
    }
    measured.accounts.extend(account(&profiles));
    if measurement.is_of_accuracy() {
        let is_mpip = mode.is_mpip();
        let of_mpip = is_mpip.then(|| mpip::functions(here.path())).transpose()?;
        let mut functions = of_mpip.unwrap_or_else(|| accuracy::functions(&profiles));
        accuracy::add_truths(&mut functions, here.path(), measurement.ranks);
        measured.functions.push(functions);
    }
    Ok(())
}

/// A number that the program printed: on the first line that contains nothing else. Tools print their own
/// lines.
pub(super) fn printed(outcome: &Outcome, source: &Source) -> Option<f64> {
    let (text, at) = match source {
        Source::Printed(at) => (&outcome.stdout, *at),
        _ => (&outcome.stderr, 0),
    };
    let numbers = |line: &str| -> Option<Vec<f64>> {
        let words = line.split_whitespace();
        let numbers: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        (!numbers.is_empty()).then_some(numbers)
    };
    text.lines().find_map(numbers)?.get(at).copied()
}

fn largest(profiles: &[RankProfile], pick: fn(&Overhead) -> f64) -> Option<f64> {
    profiles.iter().map(|profile| pick(&profile.overhead)).reduce(f64::max)
}

fn account(profiles: &[RankProfile]) -> Option<Account> {
    Some(Account {
        elapsed_s: profiles.iter().map(|profile| profile.job.elapsed_s).reduce(f64::max)?,
        running_share: largest(profiles, |overhead| overhead.running_share)?,
        share: largest(profiles, |overhead| overhead.share)?,
        over_budget: profiles.iter().any(|profile| profile.overhead.is_over_budget()),
        library: profiles.first()?.mpi.library.clone(),
    })
}
