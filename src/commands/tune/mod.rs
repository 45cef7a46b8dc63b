//! `gyan tune`: runs a program several times with other settings of its MPI library, and says which are worth keeping.
//! `tuning` decides what runs next and what the runs say.

mod asked;
mod files;
mod one_run;
mod progress;
mod state;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gyan_results::{
    Assignment, RankProfile, Summary, TUNE_SCHEMA, Took, Tool, TrialVerdict, TuneEnd, Tuning,
    Variables, read_tuning, write_json,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::answers;
use crate::cli::TuneOptions;
use crate::error::{Error, reason};
use crate::findings;
use crate::input::source::Source;
use crate::launch::executable;
use crate::launch::launcher::{self, Launcher};
use crate::launch::listing::{self, Surroundings, When, Whose};
use crate::say;
use crate::statistics::median;
use crate::tuning::{self, Candidate, Outcome, Race, Reading, Stage, Step, Told};
use crate::{DONE, INCOMPLETE, output, print, render};
use asked::Metric;
use one_run::Ended;
use progress::TuneProgress;
use state::{MadeWith, Record, TuneRequest, TuneState};

/// Where the runs are in the directory of a tune: a directory for each setting, so that `gyan diff` compares two.
const RUNS: &str = "runs";
/// What it found.
const RESULT_FILE: &str = "tune.json";
/// Its settings that are worth keeping: as parameters of Open MPI, and for a shell.
const SETTINGS: [&str; 2] = ["settings.conf", "settings.env"];
pub(crate) const PAGE_FILE: &str = "tune.html";
/// A run may take this many times as long as the longest run with default settings,
const LIMIT: u32 = 3;
/// and this long in any case.
const LIMIT_AT_LEAST: Duration = Duration::from_secs(10);
/// Variables that findings nominate, at most.
const NOMINATED: usize = 6;
/// Lines of a program's stderr that an error quotes.
const LAST_LINES: usize = 5;

pub(crate) fn tune(options: &TuneOptions) -> Result<u8, Error> {
    let (asked, metric) = asked::asked(options)?;
    let format = options.format.clone()?;
    let program = launcher::program("gyan tune", &options.command)?;
    if launcher::rank().is_some() && launcher::launcher(program).is_none() {
        let why = "a rank that a launcher started cannot start the program again";
        return Err(Error::new("gyan tune", why, "put it in front: gyan tune -- mpirun ..."));
    }
    let launcher = launcher::launcher(program);
    let directory = options.output.clone().unwrap_or_else(|| {
        let target = executable::target(launcher, &options.command);
        let name = target.and_then(|(_, program)| launcher::file_name_of(program.path.as_os_str()));
        PathBuf::from(format!("gyan-tune-{}", name.as_deref().unwrap_or("run")))
    });
    let directory = std::path::absolute(&directory)
        .map_err(|error| Error::io(&directory, &error, "name another directory with -o"))?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&is_stopped))
            .map_err(|error| Error::new("gyan tune", error, "start it again"))?;
    }
    let state = TuneState::open(&directory, &asked, options.force)?;
    let made_with = MadeWith::here(program);
    state.must_be_made_with(&made_with)?;
    let budget = asked::budget(options.budget.as_deref())?;
    let tune = Tune {
        asked,
        metric,
        directory: directory.clone(),
        launcher,
        command: options.command.clone(),
        state,
        made_with,
        summaries: Vec::new(),
        candidates: Vec::new(),
        listing: None,
        begun: Instant::now(),
        budget,
        is_stopped,
        notes: Vec::new(),
    };
    let tuning = tune.run_to_its_end()?;
    let (shown, files) = (shown(&directory), files_in(&directory));
    let view = answers::tuning(&tuning, &shown, &files);
    write(&directory.join("tune.md"), |out| render::markdown(out, &view))?;
    write(&directory.join(PAGE_FILE), |out| {
        render::html(out, &answers::tuning_page(&tuning, &shown, &files), "")
    })?;
    print::listing(format, &view, &tuning)?;
    Ok(code(&tuning))
}

pub(crate) fn code(tuning: &Tuning) -> u8 {
    let is_whole = matches!(tuning.end, TuneEnd::Decided | TuneEnd::NothingToTry);
    if is_whole && !tuning.could_try_nothing() { DONE } else { INCOMPLETE }
}

/// What the tune in a directory found; none if there was no tune.
pub(crate) fn found(directory: &Path) -> Result<Option<Tuning>, Error> {
    let file = directory.join(RESULT_FILE);
    if !file.is_file() {
        return Ok(None);
    }
    let damaged = |error| Error::new(file.display(), error, "run the same gyan tune again");
    read_tuning(&file).map(Some).map_err(damaged)
}

pub(crate) fn runs(directory: &Path) -> PathBuf {
    directory.join(RUNS)
}

/// The names of the files with settings in the directory of a tune.
pub(crate) fn files_in(directory: &Path) -> Vec<&'static str> {
    SETTINGS.into_iter().filter(|name| directory.join(name).is_file()).collect()
}

/// Relative to the current directory where possible.
fn shown(directory: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here.and_then(|here| directory.strip_prefix(here).ok().map(Path::to_owned));
    short.as_deref().unwrap_or(directory).display().to_string()
}

/// Replaces a file at once: it is never half-written.
fn write(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Error> {
    let failed = |error: &std::io::Error| Error::io(file, error, "make room");
    let mut temporary = output::readable_beside(file).map_err(|error| failed(&error))?;
    write(&mut temporary).map_err(|error| failed(&error))?;
    output::put(temporary, file, true).map_err(|error| failed(&error))
}

struct Tune {
    asked: TuneRequest,
    metric: Metric,
    directory: PathBuf,
    launcher: Option<Launcher>,
    command: Vec<OsString>,
    state: TuneState,
    made_with: MadeWith,
    /// The summary of each run of `state`, where there is one.
    summaries: Vec<Option<Summary>>,
    candidates: Vec<Candidate>,
    listing: Option<Variables>,
    begun: Instant,
    budget: Option<Duration>,
    is_stopped: Arc<AtomicBool>,
    notes: Vec<String>,
}

impl Tune {
    fn run_to_its_end(mut self) -> Result<Tuning, Error> {
        for record in &self.state.records {
            let run = open(&self.directory.join(&record.directory)).ok();
            self.summaries.push(run.map(|(_, summary)| summary));
        }
        if !self.state.records.is_empty() {
            say::warn(format!("{} runs of before are taken over", self.state.records.len()));
        }
        let (end, outcome) = if self.first_run()? {
            self.choose_candidates()?;
            self.race()?
        } else {
            (TuneEnd::Interrupted, Outcome::Open)
        };
        let tuning = self.tuning(end, outcome);
        write(&self.directory.join(RESULT_FILE), |out| write_json(out, &tuning))?;
        self.write_settings(&tuning)?;
        Ok(tuning)
    }

    /// The first run with default settings, whose findings nominate settings. Returns whether it finished.
    fn first_run(&mut self) -> Result<bool, Error> {
        if self.state.records.is_empty() {
            let progress = TuneProgress::new();
            progress.says(1, None, "default", None);
            let is_run = self.run(&[], Stage::Race(0))?;
            progress.finish();
            if !is_run {
                return Ok(false);
            }
        }
        let Some(first) = self.state.records.first() else { return Ok(false) };
        if let Some(why) = &first.failure {
            let why = format!("the run with default settings is of no use: {why}");
            let said = self.last_words(&first.directory);
            let file = self.directory.join(state::FILE);
            // The next tune does it again.
            let _ = fs::remove_file(file);
            let remedy = if said.is_empty() {
                "see what gyan doctor -- COMMAND says".to_owned()
            } else {
                format!("its last words: {said}")
            };
            return Err(Error::new("gyan tune", why, remedy));
        }
        Ok(true)
    }

    /// The end of what a run wrote to stderr, on one line.
    fn last_words(&self, directory: &Path) -> String {
        let file = one_run::output_of(&self.directory.join(directory), "stderr");
        let text = fs::read(file).map(|text| String::from_utf8_lossy(&text).into_owned());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ")
    }

    fn choose_candidates(&mut self) -> Result<(), Error> {
        let Some(Some(first)) = self.summaries.first() else { return Ok(()) };
        let first = first.clone();
        // Without a listing the names of values and the environment variables for the files are not known.
        let library = Path::new(&first.mpi.library_path);
        let asked =
            listing::ask(Whose::Library(library), When::BeforeInit, Surroundings::AsTheyAre);
        match asked {
            Ok(listing) => self.listing = listing,
            Err(error) if error.is_said() => {
                self.notes.push(
                    "the library could not be listed, so names of values are not known".into(),
                );
            }
            Err(error) => self.notes.push(format!("the library could not be listed: {error}")),
        }
        if self.asked.auto {
            self.nominate(&first);
        }
        let (named, is_environment) = (self.asked.set.clone(), false);
        self.sweep(&named, is_environment)?;
        let named = self.asked.env.clone();
        self.sweep(&named, true)
    }

    fn nominate(&mut self, first: &Summary) {
        let mut names: Vec<String> = Vec::new();
        for nomination in findings::nominate(first, self.listing.as_ref()) {
            // The last setting is the point; the others enable it.
            let Some((name, _)) = nomination.settings.last() else { continue };
            if !names.contains(name) {
                if names.len() == NOMINATED {
                    self.notes.push(format!(
                        "{name} was nominated too, and not tried: at most {NOMINATED} are"
                    ));
                    continue;
                }
                names.push(name.clone());
            }
            let hazard = findings::hazard_of(name);
            let assign =
                |(name, value): (String, String)| Assignment { name, value, is_environment: false };
            self.candidates.push(Candidate {
                settings: nomination.settings.into_iter().map(assign).collect(),
                nominated_by: Some(nomination.finding),
                witness: Some(nomination.witness),
                hazard: hazard.map(str::to_owned),
            });
        }
    }

    fn sweep(&mut self, named: &[String], is_environment: bool) -> Result<(), Error> {
        let option = if is_environment { "--env" } else { "--set" };
        for text in named {
            let cvar = |name: &str| {
                let cvars = &self.listing.as_ref()?.cvars;
                cvars.iter().find(|cvar| cvar.name.as_deref() == Some(name))
            };
            let all_values = |name: &str| {
                let values: Vec<String> =
                    cvar(name)?.items().into_iter().map(|item| item.name).collect();
                Some(values).filter(|values| !values.is_empty())
            };
            let (name, values) = tuning::sweep(text, all_values).map_err(|why| {
                Error::new(format!("{option} {text}"), why, "write NAME=VALUE,VALUE or FROM..TO*2")
            })?;
            if !is_environment && self.listing.is_some() && cvar(&name).is_none() {
                let why = "this MPI library has no such control variable";
                let remedy = "look for it with gyan varlist --match, or try it with --env";
                return Err(Error::new(format!("--set {text}"), why, remedy));
            }
            for value in values {
                let setting = Assignment { name: name.clone(), value, is_environment };
                let candidate = Candidate {
                    settings: vec![setting],
                    nominated_by: None,
                    witness: Some(findings::witness_of(&name)),
                    hazard: findings::hazard_of(&name).map(str::to_owned),
                };
                if self.candidates.iter().all(|other| other.settings != candidate.settings) {
                    self.candidates.push(candidate);
                }
            }
        }
        Ok(())
    }

    fn the_race(&self) -> Race {
        let mut names: Vec<&str> = Vec::new();
        let variables = self.candidates.iter().map(|candidate| {
            let name = candidate.settings.last().map_or("", |setting| setting.name.as_str());
            names.iter().position(|of| *of == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        });
        Race {
            variables: variables.collect(),
            higher_is_better: self.asked.higher,
            combines: self.asked.together,
        }
    }

    /// The candidates; the last one is that of several settings together, once it is known.
    fn all_candidates(&self, race: &Race) -> Vec<Candidate> {
        let mut all = self.candidates.clone();
        let done: Vec<_> = self.told(&all).iter().map(Told::done).collect();
        let several = race.together(&done).into_iter().map(|at| &self.candidates[at]);
        all.extend(tuning::together(several));
        all
    }

    fn race(&mut self) -> Result<(TuneEnd, Outcome), Error> {
        if self.candidates.is_empty() {
            return Ok((TuneEnd::NothingToTry, Outcome::NobodyLeft));
        }
        let race = self.the_race();
        let progress = TuneProgress::new();
        let end = loop {
            let all = self.all_candidates(&race);
            let done: Vec<_> = self.told(&all).iter().map(Told::done).collect();
            let left = race.runs_left(&done);
            let each = self.each();
            let time = self.budget.map(|budget| budget.saturating_sub(self.begun.elapsed()));
            // And half as much: runs differ.
            let confirming = each * 3 * u32::try_from(tuning::CONFIRMING).unwrap_or(1);
            let hurries = time.is_some_and(|time| time < confirming);
            let (candidate, stage) = match race.next(&done, hurries) {
                Step::Decided(left) => {
                    let outcome = left.map_or(Outcome::NobodyLeft, Outcome::Left);
                    break (TuneEnd::Decided, outcome);
                }
                Step::Run { candidate, stage } => (candidate, stage),
            };
            if time.is_some_and(|time| time < each) {
                let needed = each * u32::try_from(left).unwrap_or(u32::MAX);
                let needed = humantime::format_duration(Duration::from_secs(needed.as_secs() + 1));
                self.notes.push(format!("{left} runs are left, which take about {needed}"));
                break (TuneEnd::OutOfBudget, Outcome::Open);
            }
            let settings = candidate.map(|at| all[at].settings.clone()).unwrap_or_default();
            let number = self.state.records.len() + 1;
            progress.says(number, Some(number - 1 + left), &tuning::label(&settings), Some(each));
            if !self.run(&settings, stage)? {
                break (TuneEnd::Interrupted, Outcome::Open);
            }
        };
        progress.finish();
        Ok(end)
    }

    /// How long a run takes with its launcher.
    fn each(&self) -> Duration {
        let walls: Vec<f64> = self.state.records.iter().map(|record| record.wall_s).collect();
        Duration::from_secs_f64(median(&walls).unwrap_or(0.0).max(0.0))
    }

    fn limit(&self) -> Option<Duration> {
        let defaults = self.state.records.iter().filter(|record| record.settings.is_empty());
        let longest = defaults.map(|record| record.wall_s).reduce(f64::max);
        match longest {
            Some(longest) => {
                Some((Duration::from_secs_f64(longest.max(0.0)) * LIMIT).max(LIMIT_AT_LEAST))
            }
            // The first run shows how long a run takes.
            None => self.budget.map(|budget| budget.max(LIMIT_AT_LEAST)),
        }
    }

    /// Runs the program with these settings and records the outcome. Returns false if it was interrupted.
    fn run(&mut self, settings: &[Assignment], stage: Stage) -> Result<bool, Error> {
        let number = self.state.records.len() + 1;
        let group = output::directory_name(&tuning::label(settings));
        let place = Path::new(RUNS).join(group).join(format!("run-{number}"));
        let directory = self.directory.join(&place);
        // It may be left from a run that was interrupted.
        let _ = fs::remove_dir_all(&directory);
        let stopped = Arc::clone(&self.is_stopped);
        let (ended, wall) = one_run::run(
            self.launcher,
            &self.command,
            settings,
            &directory,
            self.limit(),
            &stopped,
        )?;
        // The signal may have reached the launcher, too.
        let is_interrupted = matches!(ended, Ended::Interrupted)
            || stopped.load(Ordering::Relaxed) && !matches!(ended, Ended::Well);
        if is_interrupted {
            let _ = fs::remove_dir_all(&directory);
            return Ok(false);
        }
        let run = open(&directory);
        let took = match &run {
            Ok((source, summary)) => took(source, summary, settings),
            Err(_) => Took::Unproven("the run left no profiles".into()),
        };
        let summary = run.map(|(_, summary)| summary);
        let made_with = match &summary {
            Ok(summary) => self.made_with.of_run(summary),
            Err(_) => self.made_with.clone(),
        };
        if let Err(error) = self.state.must_be_made_with(&made_with) {
            let _ = fs::remove_dir_all(&directory);
            return Err(error);
        }
        let value = match (&ended, &summary) {
            (Ended::Badly(how), _) => Err(how.clone()),
            (_, Err(why)) => Err(why.clone()),
            (_, Ok(summary)) => self.measured(summary, &directory),
        };
        self.state.add(Record {
            settings: settings.to_vec(),
            stage,
            directory: place,
            value: value.as_ref().ok().copied(),
            failure: value.err(),
            took,
            made_with,
            wall_s: wall.as_secs_f64(),
        })?;
        self.summaries.push(summary.ok());
        Ok(true)
    }

    /// The metric of a run that succeeded, or why the run does not count.
    fn measured(&self, summary: &Summary, directory: &Path) -> Result<f64, String> {
        if let Some(bad) = summary.ranks.ended_badly.first() {
            return Err(format!("rank {} did not end by MPI_Finalize", bad.rank));
        }
        if !summary.ranks.missing.is_empty() {
            return Err(format!("{} ranks left no profile", summary.ranks.missing.len()));
        }
        let file = one_run::output_of(directory, "stdout");
        let read = |file: &Path| fs::read(file).map_err(|error| reason(&error));
        if self.asked.same_output
            && let Some(first) = self.state.records.first()
        {
            let first = one_run::output_of(&self.directory.join(&first.directory), "stdout");
            if read(&first)? != read(&file)? {
                return Err("its output is not that of the first run".into());
            }
        }
        if let Some(check) = &self.asked.check {
            let input = fs::File::open(&file).map_err(|error| reason(&error))?;
            let status =
                Command::new("sh").args(["-c", check]).stdin(input).stdout(Stdio::null()).status();
            let status = status.map_err(|error| format!("--check: {}", reason(&error)))?;
            if !status.success() {
                return Err(format!("--check {}", crate::launch::wait::ending(status)));
            }
        }
        match &self.metric {
            Metric::Figure(figure) => figure
                .of(summary)
                .ok_or_else(|| format!("it has no {}, or only a lower bound of it", figure.name())),
            Metric::Output(pattern) => {
                let output = String::from_utf8_lossy(&read(&file)?).into_owned();
                asked::last_number(pattern, &output)
            }
        }
    }

    fn told<'a>(&'a self, candidates: &[Candidate]) -> Vec<Told<'a>> {
        let runs = self.state.records.iter().zip(&self.summaries);
        let of = |(record, summary): (&Record, &'a Option<Summary>)| {
            let is_default = record.settings.is_empty();
            let is_one = |candidate: &Candidate| candidate.settings == record.settings;
            let candidate = candidates.iter().position(is_one);
            (is_default || candidate.is_some()).then(|| Told {
                candidate,
                stage: record.stage,
                value: record.value.ok_or_else(|| record.failure.clone().unwrap_or_default()),
                took: record.took.clone(),
                summary: summary.as_ref(),
            })
        };
        runs.filter_map(of).collect()
    }

    fn tuning(&self, end: TuneEnd, outcome: Outcome) -> Tuning {
        let all = self.all_candidates(&self.the_race());
        let told = self.told(&all);
        let trials = tuning::verdicts(&all, &told, self.asked.higher, outcome);
        let winner = trials.iter().position(|trial| trial.verdict == TrialVerdict::Better);
        let defaults = told.iter().filter(|run| run.candidate.is_none());
        let default: Vec<f64> = defaults.filter_map(|run| run.value.clone().ok()).collect();
        let first = self.summaries.first().and_then(Option::as_ref);
        let mut notes = self.notes.clone();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        if let Some(load) = load.split(' ').next() {
            notes.push(format!("load of this machine at the end: {load}"));
        }
        Tuning {
            schema: TUNE_SCHEMA.into(),
            tool: Tool::gyan(),
            command: self.asked.command.clone(),
            library: first.map(|first| first.mpi.library.clone()).unwrap_or_default(),
            ranks: first.map_or(0, |first| first.ranks.expected),
            metric: self.metric.told(&self.asked),
            default_median: median(&default),
            noise: tuning::noise(&default),
            default,
            trials,
            winner,
            end,
            notes,
        }
    }

    /// Writes the files with the settings that are worth keeping, and removes those of an earlier result.
    fn write_settings(&self, tuning: &Tuning) -> Result<(), Error> {
        let settings = tuning.winner.map(|winner| &tuning.trials[winner].settings);
        let files = settings.and_then(|of| files::files(tuning, of, self.listing.as_ref()));
        let (parameters, environment) =
            files.map_or((None, None), |files| (files.parameters, Some(files.environment)));
        for (name, text) in SETTINGS.into_iter().zip([parameters, environment]) {
            let file = self.directory.join(name);
            let Some(text) = text else {
                let _ = fs::remove_file(file);
                continue;
            };
            write(&file, |out| out.write_all(text.as_bytes()))?;
        }
        Ok(())
    }
}

/// A run and its summary, or why there is none.
fn open(directory: &Path) -> Result<(Source, Summary), String> {
    let source = Source::open(directory).map_err(|error| error.to_string())?;
    let summary = source.summarize().map_err(|error| error.to_string())?;
    Ok((source, summary))
}

fn took(source: &Source, summary: &Summary, settings: &[Assignment]) -> Took {
    let profiles: Vec<RankProfile> = source.one_by_one(&summary.job.id).collect();
    let readings: Vec<Reading> = profiles
        .iter()
        .map(|of| Reading { rank: of.rank, cvars: &of.cvars, warnings: &of.warnings })
        .collect();
    tuning::took(settings, &readings, summary.ranks.expected as usize)
}
