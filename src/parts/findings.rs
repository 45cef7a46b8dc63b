//! The findings of a run: the first ones in short, or all with their evidence.

use std::iter;

use gyan_results::{
    Actor, CommunicationSplit, Efficiencies, Evidence, Fidelity, Finding, HybridEfficiencies,
    PhaseEfficiencies, Summary, Unit,
};
use serde::Serialize;

use super::headings::{library_and_job, name_of_phase, title};
use super::{Part, PartOption, ReportInput, SummaryTable, openmp};
use crate::document::data::columns;
use crate::document::data::word;
use crate::document::page::{Card, PageBlock};
use crate::document::value::{Amount, Bound, InUnit, line, row, seconds, share};
use crate::document::{Data, Document, Presentation, Section, Value, View, numbers, texts};
use crate::findings::Answers;

/// What costs time.
pub(super) const FINDINGS: Part = Part {
    option: Some(PartOption::new(
        "findings",
        "What costs time, why, and what to do about it: all findings with the numbers that \
         they rest on",
        |of| Ok(show(of)),
    )),
    table: Some(SummaryTable::new::<&Finding>("summary_findings", "finding", |of| {
        Some(Data::new(&of.answers().findings))
    })),
    block: Some(|of| Ok(block(of))),
};

/// Load balance, communication and parallel efficiency.
pub(super) const EFFICIENCIES: Part = Part {
    option: None,
    table: Some(SummaryTable::new::<EfficienciesOf>(
        "summary_efficiencies",
        "phase, and one for the run",
        |of| {
            let efficiencies = of.answers().efficiencies.as_ref()?;
            let phases = efficiencies.phases.iter().map(EfficienciesOf::Phase);
            Some(Data::new(iter::once(EfficienciesOf::Run(efficiencies)).chain(phases)))
        },
    )),
    block: None,
};

/// What a row of the table of efficiencies is about.
enum EfficienciesOf<'a> {
    Run(&'a Efficiencies),
    Phase(&'a PhaseEfficiencies),
}

fn show<'r>(of: &'r ReportInput) -> Presentation<'r> {
    let Answers { efficiencies, findings, .. } = of.answers();
    let view = view(of.summary, efficiencies.as_ref(), findings, &of.directory);
    let document = Document::new(Findings { efficiencies, findings });
    Presentation { view, rows: Data::new(findings), document }
}

/// The summary also contains both.
#[derive(Serialize)]
struct Findings<'a> {
    efficiencies: &'a Option<Efficiencies>,
    findings: &'a [Finding],
}

/// Of no use unless asked for.
const ONLY_WHEN_ASKED: [&str; 1] = ["no-variables"];

/// Findings on the first screen, and the lines that they have there; two findings are always shown.
const FIRST_AT_MOST: usize = 3;
const LINES_AT_MOST: usize = 11;

/// The title with what is at stake, and below it what to do.
pub(crate) fn in_short<'a>(at: u64, finding: &'a Finding, directory: &str) -> Vec<Value<'a>> {
    let mut lines = vec![line![at, ". ", &finding.title, at_stake(finding)]];
    lines.extend(finding.advice.iter().take(2).map(|of| advice(of, directory)));
    lines
}

/// The first findings in short.
pub(crate) fn first<'a>(findings: &'a [Finding], directory: &str) -> Vec<Value<'a>> {
    let mut lines = Vec::new();
    let is_shown = |finding: &&Finding| !ONLY_WHEN_ASKED.contains(&finding.id.as_str());
    let findings: Vec<&Finding> = findings.iter().filter(is_shown).collect();
    let mut height = 0;
    let fits = |(at, finding): &(usize, &&Finding)| {
        height += height_of(finding, directory);
        *at < 2 || height <= LINES_AT_MOST
    };
    let shown: Vec<&&Finding> = findings
        .iter()
        .take(FIRST_AT_MOST)
        .enumerate()
        .take_while(fits)
        .map(|(_, one)| one)
        .collect();
    for (at, finding) in (1..).zip(&shown) {
        lines.extend(in_short(at, finding, directory));
    }
    let more = findings.len() - shown.len();
    if more > 0 {
        lines.push(line!["   ", more, " more: gyan report --findings ", directory.to_owned()]);
    }
    lines
}

/// How many lines it takes in short, about.
fn height_of(finding: &Finding, directory: &str) -> usize {
    const LETTERS: usize = 95;
    const AT_STAKE: usize = 40;
    let lines = |letters: usize| letters.div_ceil(LETTERS);
    let advice = finding.advice.iter().take(2).map(|of| {
        let command = of.command.as_ref().map_or(0, |command| command.len() + directory.len());
        lines(of.text.len() + command)
    });
    lines(finding.title.len() + AT_STAKE) + advice.sum::<usize>()
}

fn advice<'a>(of: &'a gyan_results::Advice, directory: &str) -> Value<'a> {
    match &of.command {
        Some(command) => line!["   ", &of.text, ": ", with_directory(command, directory)],
        None => line!["   ", &of.text],
    }
}

fn with_directory(command: &str, directory: &str) -> String {
    command.replace(" DIR", &format!(" {directory}"))
}

/// ` [at stake: 47 % of the run]`, if anything is at stake.
fn at_stake(finding: &Finding) -> Value<'_> {
    let load = if finding.under_load { ", measured under load" } else { "" };
    match (finding.at_stake_s, finding.at_stake_share) {
        (Some(_), Some(part)) => line![" [at stake: ", share(part), " of the run", load, "]"],
        _ => "".into(),
    }
}

/// Efficiencies, and each finding with its evidence.
fn view<'a>(
    summary: &'a Summary,
    efficiencies: Option<&'a Efficiencies>,
    findings: &'a [Finding],
    directory: &str,
) -> View<'a> {
    let hybrid = efficiencies.and_then(|of| of.hybrid).map(openmp::of_threads);
    let mut sections: Vec<Section> = efficiencies.map(of_pop).into_iter().chain(hybrid).collect();
    sections.extend(
        (1_u64..).zip(findings).map(|(at, finding)| section(summary, at, finding, directory)),
    );
    let mut subtitle = vec![library_and_job(summary)];
    if findings.is_empty() {
        subtitle.push("nothing stands out".into());
    }
    View { title: title(summary), subtitle, sections }
}

fn of_pop(of: &Efficiencies) -> Section<'_> {
    let Efficiencies {
        load_balance,
        communication,
        split,
        parallel,
        parallel_error,
        busiest_rank,
        phases,
        hybrid: _,
    } = of;
    let part = |value: f64| share(value).known(Fidelity::Estimated);
    let whole = Amount { error: *parallel_error, ..part(*parallel) };
    let mut run = row!["the run", part(*load_balance), part(*communication)];
    let mut columns = texts(["OF"]);
    columns.extend(numbers(["LOAD BALANCE", "COMMUNICATION"]));
    if let Some(split) = split {
        run.extend(parts_of(split).map(Value::from));
        columns.extend(numbers(["SERIALISATION", "TRANSFER"]));
    }
    run.push(whole.into());
    columns.extend(numbers(["PARALLEL"]));
    let mut rows = vec![run];
    rows.extend(phases.iter().map(|of| {
        let name = line!["phase ", name_of_phase(&of.phase)];
        let mut cells = row![name, part(of.load_balance), ""];
        cells.extend(split.iter().flat_map(|_| row!["", ""]));
        cells.push(part(of.parallel).into());
        cells
    }));
    let mut notes: Vec<Value> = split.iter().flat_map(|split| in_words(of, split)).collect();
    notes.push(line!["the rank with the most time outside MPI is ", Value::Rank(*busiest_rank)]);
    notes.push(
        "gyan explain efficiencies says what they are; below 80 % is worth a look (POP)".into(),
    );
    Section { title: "Efficiencies".into(), columns, rows, notes }
}

/// Serialisation and transfer.
fn parts_of(split: &CommunicationSplit) -> [Amount; 2] {
    let CommunicationSplit { serialisation, transfer, transfer_error, is_bound, .. } = *split;
    let of = |value, bound| {
        let bound = if is_bound { bound } else { Bound::None };
        Amount { bound, ..share(value).known(Fidelity::Estimated) }
    };
    let transfer = Amount { error: transfer_error, ..of(transfer, Bound::AtLeast) };
    [of(serialisation, Bound::AtMost), transfer]
}

/// What makes the parallel efficiency.
fn in_words<'a>(of: &Efficiencies, split: &CommunicationSplit) -> Vec<Value<'a>> {
    let [serialisation, transfer] = parts_of(split);
    let mut lines = vec![line![
        "parallel efficiency ",
        share(of.parallel),
        " = load balance ",
        share(of.load_balance),
        " x serialisation ",
        serialisation,
        " x transfer ",
        Amount { error: None, ..transfer }
    ]];
    let why =
        "what serialisation lacks is waiting for other ranks, what transfer lacks is moving data";
    lines.push(why.into());
    if split.is_bound {
        lines.push(line![
            share(split.unknown_share),
            " of the time in MPI is in functions whose waiting is not known: it counts as transfer"
        ]);
    }
    lines
}

fn section<'a>(
    summary: &'a Summary,
    at: u64,
    finding: &'a Finding,
    directory: &str,
) -> Section<'a> {
    let Finding {
        id,
        title,
        at_stake_s,
        at_stake_share,
        acts,
        evidence,
        advice: todo,
        witness,
        also_true,
        under_load,
        ..
    } = finding;
    let number = |of: &'a Evidence| {
        let unit = Unit::from_symbol(&of.unit);
        let amount = Amount { error: of.error, ..unit.double(of.value) };
        row![&of.what, amount, of.known.words(), line![&of.shown_by, " ", directory.to_owned()]]
    };
    let mut columns = texts(["WHAT"]);
    columns.extend(numbers(["VALUE"]));
    columns.extend(texts(["KNOWN", "SHOWN BY"]));
    let mut notes = Vec::new();
    if let (Some(all_s), Some(part)) = (at_stake_s, at_stake_share) {
        let ranks = f64::from(summary.ranks.reduced.max(1));
        let of_rank =
            line![seconds(all_s / ranks), " of an average rank, ", share(*part), " of the run"];
        notes.push(line![
            "at stake: at most ",
            seconds(*all_s),
            " of all ranks together, ",
            of_rank
        ]);
    }
    if *under_load {
        notes.push("measured under load: ranks lacked processors, so its times say little".into());
    }
    notes.extend(also_true.iter().map(|of| {
        let explain = line!["; gyan explain ", &of.id];
        line!["also true, mostly the same time: ", &of.title, explain]
    }));
    notes.extend(todo.iter().map(|of| advice(of, directory)));
    notes.push(line!["what changes when it is mended: ", witness]);
    notes.push(line!["who can do it: ", actor(*acts), "; more: gyan explain ", id]);
    Section {
        title: line![at, ". ", title],
        columns,
        rows: evidence.iter().map(number).collect(),
        notes,
    }
}

/// Who can act on it.
pub(crate) fn actor(acts: Actor) -> &'static str {
    match acts {
        Actor::Program => "whoever writes the program",
        Actor::Run => "whoever starts the run",
        Actor::System => "whoever runs the machine",
        Actor::Measurement => "nobody: it is about the numbers",
    }
}

fn advice_in_a_row(finding: &Finding) -> String {
    let advice = finding.advice.iter().map(|of| match &of.command {
        Some(command) => format!("{}: {command}", of.text),
        None => of.text.clone(),
    });
    advice.collect::<Vec<_>>().join("; ")
}

fn listed(names: &[impl ToString]) -> Option<String> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

impl EfficienciesOf<'_> {
    /// What a phase does not have: only ranks of a whole run begin and end together.
    fn of_run<T>(&self, number: impl Fn(&Efficiencies) -> T) -> Option<T> {
        match self {
            EfficienciesOf::Run(of) => Some(number(of)),
            EfficienciesOf::Phase(_) => None,
        }
    }

    fn hybrid<T>(&self, number: impl Fn(&HybridEfficiencies) -> T) -> Option<T> {
        self.of_run(|of| of.hybrid.as_ref().map(&number)).flatten()
    }

    fn split<T>(&self, number: impl Fn(&CommunicationSplit) -> T) -> Option<T> {
        self.of_run(|of| of.split.as_ref().map(&number)).flatten()
    }
}

columns! { of in EfficienciesOf<'_>;
    /// name of the phase; null for the run, (outside) for what is in no phase
    column(phase: Text) => match of {
        EfficienciesOf::Run(_) => None,
        EfficienciesOf::Phase(of) => Some(name_of_phase(&of.phase)),
    },
    /// 1 when each rank has the same work
    required(load_balance: Double, Estimated) => match of {
        EfficienciesOf::Run(of) => of.load_balance,
        EfficienciesOf::Phase(of) => of.load_balance,
    },
    /// 1 when the rank with the most work spends no time in MPI
    column(communication: Double, Estimated) => of.of_run(|of| of.communication),
    /// 1 when that rank does not have to wait for others; at most this where is_bound
    column(serialisation: Double, Estimated) => of.split(|of| of.serialisation),
    /// 1 when moving data takes no time; at least this where is_bound
    column(transfer: Double, Estimated) => of.split(|of| of.transfer),
    /// standard error of transfer
    column(transfer_error: Double, Estimated) => of.split(|of| of.transfer_error).flatten(),
    /// true when ranks may have waited longer than is known, else false
    column(is_bound: Text) => of.split(|of| of.is_bound.to_string()),
    /// part of the time in MPI that is in functions whose waiting is not known
    column(unknown_share: Double, Estimated) => of.split(|of| of.unknown_share),
    /// part of the time of all ranks that is spent outside MPI
    required(parallel: Double, Estimated) => match of {
        EfficienciesOf::Run(of) => of.parallel,
        EfficienciesOf::Phase(of) => of.parallel,
    },
    /// standard error of parallel
    column(parallel_error: Double, Estimated) => of.of_run(|of| of.parallel_error).flatten(),
    /// rank with the most time outside MPI
    column(busiest_rank: Integer) => of.of_run(|of| Value::Rank(of.busiest_rank)),
    /// useful part of the time of all threads of OpenMP; null without them
    column(hybrid: Double, Estimated) => of.hybrid(|of| of.parallel),
    /// standard error of hybrid
    column(hybrid_error: Double, Estimated) => of.hybrid(|of| of.parallel_error).flatten(),
    /// 1 when threads lose nothing to MPI; times openmp it is hybrid
    column(mpi: Double, Estimated) => of.hybrid(|of| of.mpi),
    /// 1 when threads are never idle outside MPI: openmp_serialisation x openmp_load_balance x openmp_scheduling
    column(openmp: Double, Estimated) => of.hybrid(|of| of.openmp),
    /// 1 when no thread is idle while the first one works outside of all parallel regions
    column(openmp_serialisation: Double, Estimated) => of.hybrid(|of| of.serialisation),
    /// 1 when all threads of a region have the same work
    column(openmp_load_balance: Double, Estimated) => of.hybrid(|of| of.load_balance),
    /// 1 when nothing else is lost in regions
    column(openmp_scheduling: Double, Estimated) => of.hybrid(|of| of.scheduling),
}

columns! { finding in Finding;
    /// name of the rule, which gyan explain knows
    required(id: Text) => &finding.id,
    /// the finding in one line
    required(title: Text) => &finding.title,
    /// most seconds, of all ranks together, that it is about; null when it is about the measurement
    column(at_stake_s: Double, Estimated) => finding.at_stake_s,
    /// the same as a part of the run
    column(at_stake_share: Double, Estimated) => finding.at_stake_share,
    /// who can act on it: program, run, system or measurement
    required(acts: Text) => word(finding.acts)?,
    /// functions that it is about
    column(functions: Text) => listed(&finding.functions),
    /// ranks that it is about
    column(ranks: Text) => listed(&finding.ranks),
    /// what to do about it
    column(advice: Text) => advice_in_a_row(finding),
}

fn block<'r>(of: &'r ReportInput) -> PageBlock<'r> {
    let Answers { efficiencies, findings, .. } = of.answers();
    let mut block = PageBlock::new("findings", "What costs time, and what to do about it");
    if findings.is_empty() {
        block.says.push("Nothing stands out.".into());
    }
    let shown = view(of.summary, None, findings, &of.directory);
    let shares = findings.iter().map(|finding| finding.at_stake_share);
    let cards = shares.zip(shown.sections).map(|(share, section)| Card { share, section });
    block.cards = cards.collect();
    block.details = "Efficiencies";
    let efficiencies = view(of.summary, efficiencies.as_ref(), &[], &of.directory);
    block.of_view(false, efficiencies)
}
