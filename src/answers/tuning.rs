//! What `gyan tune` shows: which setting is worth keeping, and what each setting did.

use std::path::Path;

use gyan_results::{Fidelity, Gain, Took, Trial, TrialVerdict, TuneEnd, Tuning, Unit, Witnessed};

use crate::document::page::{FoldedTable, Page, PageBlock};
use crate::document::value::{Amount, InUnit, Value, line, row, share};
use crate::document::{Kind, Section, View, column, cut, numbers, texts};
use crate::statistics::median;
use crate::words::short_library;

/// Characters of a command line that are shown.
const COMMAND: usize = 90;

/// `directory`: the directory of the tune. `files`: the files with settings that it wrote there.
pub(crate) fn tuning<'a>(tuning: &'a Tuning, directory: &str, files: &[&str]) -> View<'a> {
    let mut subtitle = vec![
        Value::Fact("command", Box::new(cut(&tuning.command.join(" "), COMMAND).into())),
        Value::Fact("library", Box::new(short_library(&tuning.library).into())),
        Value::Fact("ranks", Box::new(u64::from(tuning.ranks).into())),
        Value::Fact("measure", Box::new(measure(tuning))),
    ];
    if let Some(noise) = tuning.noise {
        let runs = tuning.default.len();
        let value = line![share(noise), " between ", runs, " runs with default settings"];
        subtitle.push(Value::Fact("noise", Box::new(value)));
    }
    let mut sections = Vec::new();
    if !tuning.trials.is_empty() {
        sections.push(trials(tuning));
    }
    sections.push(Section::of_notes("", notes(tuning, directory, files)));
    View { title: title(tuning), subtitle, sections }
}

/// The same as a page.
pub(crate) fn tuning_page<'a>(tuning: &'a Tuning, directory: &str, files: &[&str]) -> Page<'a> {
    let view = self::tuning(tuning, directory, files);
    let tables = view.sections.into_iter().map(|section| FoldedTable { section, is_open: true });
    let (says, tables, details) = (view.subtitle, tables.collect(), "");
    let settings = PageBlock { details, says, tables, ..PageBlock::new("settings", "Settings") };
    Page { title: "gyan tune".into(), headline: Some(view.title), blocks: vec![settings] }
}

fn measure(tuning: &Tuning) -> Value<'_> {
    let which = if tuning.metric.higher_is_better { ", more is better" } else { "" };
    line![&tuning.metric.name, which]
}

fn title(tuning: &Tuning) -> Value<'_> {
    match (tuning.end, tuning.winner.and_then(|winner| tuning.trials.get(winner))) {
        (_, Some(winner)) => {
            let gain: Value = winner.gain.map_or("".into(), |gain| gained(&gain));
            line![settings(winner), " gains ", gain, " of the ", &tuning.metric.name]
        }
        (TuneEnd::Decided, None) if tuning.could_try_nothing() => {
            "None of the settings could be tried".into()
        }
        (TuneEnd::Decided, None) => line!["No setting was shown to be faster", nearest(tuning)],
        (TuneEnd::NothingToTry, None) => {
            "No setting is known that could make this program faster".into()
        }
        (TuneEnd::Interrupted, None) => "Interrupted: nothing is decided yet".into(),
        (TuneEnd::OutOfBudget, None) => "The time is used up: nothing is decided yet".into(),
    }
}

/// What came nearest to it: what new runs compared, or else the best of the race.
fn nearest(tuning: &Tuning) -> Value<'_> {
    let of_trial = |trial: &'_ Trial| {
        let is_out = matches!(trial.verdict, TrialVerdict::Ignored | TrialVerdict::Disqualified);
        trial.gain.filter(|_| !is_out).map(|gain| (!trial.confirmed.is_empty(), gain))
    };
    let all = tuning.trials.iter().filter_map(|trial| Some((trial, of_trial(trial)?)));
    let nearest = all.max_by(|(_, one), (_, other)| {
        one.0.cmp(&other.0).then(one.1.share.total_cmp(&other.1.share))
    });
    match nearest {
        Some((trial, (_, gain))) => line![": ", settings(trial), " gains ", gained(&gain)],
        None => "".into(),
    }
}

fn settings(trial: &Trial) -> String {
    let each = trial.settings.iter().map(|setting| format!("{}={}", setting.name, setting.value));
    each.collect::<Vec<_>>().join(" ")
}

fn trials(tuning: &Tuning) -> Section<'_> {
    let mut columns = vec![column("SETTING", Kind::Text), column("TOOK", Kind::Text)];
    columns.push(column("WITNESS", Kind::Prose));
    columns.extend(numbers(["MEDIAN"]));
    columns.extend(texts(["GAIN", "VERDICT"]));
    let default = Value::from("default settings");
    let middle = amount(tuning, tuning.default_median);
    let mut rows = vec![row![default, "", "", middle, "", line![tuning.default.len(), " runs"]]];
    rows.extend(tuning.trials.iter().map(|trial| {
        let took = match &trial.took {
            Took::NotRun => "",
            Took::OnEveryRank => "yes",
            Took::Unproven(_) => "?",
            Took::Ignored(_) => "NO",
        };
        let witness: Value = trial.witness.as_ref().map_or(Value::Nothing, witness);
        let values = if trial.confirmed.is_empty() { &trial.raced } else { &trial.confirmed };
        let gain: Value = trial.gain.map_or(Value::Nothing, |gain| gained(&gain));
        row![settings(trial), took, witness, amount(tuning, median(values)), gain, verdict(trial)]
    }));
    Section { title: "Settings that were tried".into(), columns, rows, notes: Vec::new() }
}

fn amount<'a>(tuning: &Tuning, value: Option<f64>) -> Value<'a> {
    value.map(|value| unit(&tuning.metric.unit).double(value)).into()
}

fn unit(name: &str) -> Unit {
    if name == "s" { Unit::Seconds } else { Unit::Count }
}

/// `12 % (8 % to 15 %, 95.9 % sure)`.
fn gained<'a>(gain: &Gain) -> Value<'a> {
    let part = |value: f64| Value::Amount(share(value).known(Fidelity::Exact));
    if gain.confidence == 0.0 {
        return line![part(gain.share), " (one run)"];
    }
    let sure = line![part(gain.confidence), " sure)"];
    line![part(gain.share), " (", part(gain.low), " to ", part(gain.high), ", ", sure]
}

fn witness(of: &Witnessed) -> Value<'_> {
    let number = |value: f64| -> Amount { unit(&of.unit).double(value) };
    let moved = match of.moved {
        Some(true) => "",
        Some(false) => ", not moved",
        None => ", not proven either way",
    };
    line![&of.name, ": ", number(of.default), " to ", number(of.with), moved]
}

fn verdict(trial: &Trial) -> Value<'_> {
    let text: Value = match trial.verdict {
        TrialVerdict::Better => "better".into(),
        TrialVerdict::Slower => "slower".into(),
        TrialVerdict::NoDifference => {
            let most = trial.no_more_than.map(|most| share(most).known(Fidelity::Exact));
            line!["no difference larger than ", most]
        }
        TrialVerdict::NotProven => "not proven either way".into(),
        TrialVerdict::Outrun => "better in the race, but another was better still".into(),
        TrialVerdict::Ignored => "was ignored".into(),
        TrialVerdict::Disqualified => "out".into(),
        TrialVerdict::Open => "not decided".into(),
    };
    match &trial.why {
        Some(why) => line![text, ": ", why],
        None => text,
    }
}

fn notes<'a>(tuning: &'a Tuning, directory: &str, files: &[&str]) -> Vec<Value<'a>> {
    let mut notes: Vec<Value> = Vec::new();
    if let Some(winner) = tuning.winner.and_then(|winner| tuning.trials.get(winner)) {
        if let Some(gain) = winner.gain {
            notes.push(line![
                "the gain is from ",
                gain.runs,
                " runs with the setting and ",
                gain.default_runs,
                " without, made after the choice"
            ]);
        }
        if winner.witness.as_ref().is_some_and(|witness| witness.moved == Some(false)) {
            notes.push("what the setting should move did not move: doubt the gain".into());
        }
        for file in files {
            let is_environment = Path::new(file).extension().is_some_and(|end| end == "env");
            let what = if is_environment {
                "for a shell, before a run: . "
            } else {
                "for Open MPI, append it to ~/.openmpi/mca-params.conf: "
            };
            notes.push(line![what, format!("{directory}/{file}")]);
        }
        if files.is_empty() {
            notes.push(
                "this library reads it from no environment: set it with gyan run --set".into(),
            );
        }
    }
    let is_of_race = |trial: &Trial| trial.confirmed.is_empty() && trial.gain.is_some();
    if tuning.trials.iter().any(is_of_race) {
        let why = "the race went on with what was fast so far: a gain from its runs alone flatters the best and wrongs the rest";
        notes.push(why.into());
    }
    if tuning.end == TuneEnd::NothingToTry {
        notes.push(line![
            "what costs time: gyan report --findings ",
            format!("{directory}/runs/default/run-1")
        ]);
        notes.push("settings to try all the same are named with --set (see gyan varlist)".into());
    }
    if matches!(tuning.end, TuneEnd::Interrupted | TuneEnd::OutOfBudget) {
        notes.push("the same command goes on here".into());
    }
    // Each hazard once, for all values of a variable.
    let mut said: Vec<&str> = Vec::new();
    for trial in &tuning.trials {
        let Some(hazard) = trial.hazard.as_deref().filter(|hazard| !said.contains(hazard)) else {
            continue;
        };
        said.push(hazard);
        let name = trial.settings.last().map_or("", |setting| setting.name.as_str());
        notes.push(line![name, ": ", hazard]);
    }
    notes.extend(tuning.notes.iter().map(Value::from));
    notes.push(line!["all runs are in ", format!("{directory}/runs")]);
    notes.push(line!["as a page: gyan open ", directory.to_owned()]);
    notes
}
