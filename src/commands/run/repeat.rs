//! `gyan run --repeat`: the same program several times, alternating with other settings if asked, into a
//! directory of runs.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gyan_results::Summary;

use super::{InFront, named_by_rank_0, relative};
use crate::answers::{self, Repeats};
use crate::error::Error;
use crate::input::runs;
use crate::launch::wait;
use crate::{DONE, FAILED, output, render, say};

/// The name of the runs without a setting, when other runs have one.
const DEFAULT: &str = "default";
/// Width of the progress bar in characters.
const BAR: usize = 20;

/// Runs that differ in nothing.
struct RepeatGroup {
    name: String,
    directory: PathBuf,
    /// Environment variables.
    settings: Vec<(String, String)>,
}

/// Runs the command `number` times without settings and with each of the alternating settings, in turn.
/// `is_nameless`: only rank 0 can say what to call the directory.
pub(super) fn repeat(
    run: &InFront,
    mut output: PathBuf,
    number: u32,
    is_nameless: bool,
) -> Result<u8, Error> {
    for setting in run.options.alternate.iter().filter(|setting| is_of_open_mpi(setting)) {
        say::warn(format!(
            "--alternate {setting} sets an environment variable of that name; for a control variable of Open \
             MPI: --alternate OMPI_MCA_{setting}"
        ));
    }
    let mut groups = groups(run, &output);
    let mut last = PathBuf::new();
    let width = number.to_string().len();
    let all = number as usize * groups.len();
    let begun = Instant::now();
    let mut code = DONE;
    let mut done = 0;
    wait::begin_series();
    'runs: for round in 1..=number {
        for group in &groups {
            if wait::stopped_by().is_some() {
                break 'runs;
            }
            progress(done, all, begun.elapsed());
            let directory = group.directory.join(format!("run-{round:0width$}"));
            code = run.run(&directory, &group.settings)?;
            done += 1;
            last.clone_from(&directory);
            if wait::stopped_by().is_none() && code != DONE {
                let directory = relative(&directory).display();
                say::warn(format!(
                    "run {done} of {all} ended with code {code}, so no more were started; its profiles \
                     are in {directory}"
                ));
                break 'runs;
            }
        }
    }
    wait::end_series();
    if let Some(signal) = wait::stopped_by() {
        say::warn(format!("signal {signal} came in run {done} of {all}, so no more were started"));
        code = u8::try_from(128 + signal).unwrap_or(FAILED);
    }
    if is_nameless
        && done == all
        && let Some(named) = named_by_rank_0(&output, &last)
    {
        output = named;
        groups = self::groups(run, &output);
    }
    if !run.options.no_report {
        show(&groups, &output)?;
    }
    Ok(code)
}

/// Whether `NAME=VALUE` looks like a control variable of Open MPI: environment variables are in capital letters.
fn is_of_open_mpi(setting: &str) -> bool {
    let name = setting.split('=').next().unwrap_or_default();
    let is_lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.contains('_') && !name.ends_with("_proxy") && name.chars().all(is_lower)
}

fn groups(run: &InFront, output: &Path) -> Vec<RepeatGroup> {
    if run.options.alternate.is_empty() {
        let directory = output.to_owned();
        return vec![RepeatGroup { name: String::new(), directory, settings: Vec::new() }];
    }
    let default =
        RepeatGroup { name: DEFAULT.into(), directory: output.join(DEFAULT), settings: Vec::new() };
    let others = run.options.alternate.iter().map(|setting| {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let mut labels = run.options.label.clone();
        labels.push(setting.clone());
        let settings =
            vec![(name.to_owned(), value.to_owned()), ("GYAN_LABELS".to_owned(), labels.join(";"))];
        let directory = output.join(output::directory_name(setting));
        RepeatGroup { name: setting.clone(), directory, settings }
    });
    [default].into_iter().chain(others).collect()
}

/// A line before each run, for a user who waits at a terminal, where the program writes too.
fn progress(done: usize, all: usize, elapsed: Duration) {
    if !io::stderr().is_terminal() {
        return;
    }
    let filled = BAR * done / all;
    let bar = format!("{}{}", "=".repeat(filled), " ".repeat(BAR - filled));
    let left = match u32::try_from(done) {
        Ok(done @ 1..) => {
            let left = elapsed / done * u32::try_from(all).unwrap_or(done).saturating_sub(done);
            format!(", {} left", humantime::format_duration(Duration::from_secs(left.as_secs())))
        }
        _ => String::new(),
    };
    say::warn(format_args!("[{bar}] run {} of {all}{left}", done + 1));
}

/// How long the runs took, and how to go on.
fn show(groups: &[RepeatGroup], output: &Path) -> Result<(), Error> {
    let mut summaries: Vec<(&str, Vec<Summary>)> = Vec::new();
    for group in groups.iter().filter(|group| group.directory.is_dir()) {
        let runs = runs::open(std::slice::from_ref(&group.directory))?;
        summaries.push((&group.name, runs.into_iter().map(|run| run.summary).collect()));
    }
    let repeats: Vec<Repeats> =
        summaries.iter().map(|(name, summaries)| Repeats { name, summaries }).collect();
    say::tell("");
    let _ = render::table(&mut anstream::stderr().lock(), &answers::repeats(&repeats));
    say::tell(format_args!("\nruns in {}", relative(output).display()));
    if let [default, other, ..] = groups {
        let word =
            |of: &RepeatGroup| output::shell_word(&relative(&of.directory).display().to_string());
        let [default, other] = [default, other].map(word);
        say::tell(format_args!("compare them: gyan diff {default} {other}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_variable_of_open_mpi_is_told_from_an_environment_variable() {
        assert!(is_of_open_mpi("btl_vader_eager_limit=256"));
        for setting in ["OMPI_MCA_btl=tcp", "MPIR_CVAR_BCAST_MIN_PROCS=3", "http_proxy=x", "n=3"] {
            assert!(!is_of_open_mpi(setting), "{setting}");
        }
    }
}
