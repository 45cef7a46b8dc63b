//! How a program did over its commits: the changes of its times first, then charts, efficiencies, findings and runs.

use std::ops::Range;

use gyan_results::Unit;

use crate::comparison::change_points::{ChangePoint, VALUES_AT_LEAST};
use crate::comparison::history::{
    Commit, FindingHistory, Measure, ProgramHistory, Series, libraries,
};
use crate::document::badge::{Badge, Mood};
use crate::document::page::history::{HistoryChart, HistoryCourse, HistoryPlace};
use crate::document::page::pictures::{Chart, Picture};
use crate::document::page::{Card, Page, PageBlock};
use crate::document::value::{Value, line, row, seconds, share};
use crate::document::{Kind, Section, View, column, cut, numbers, plural, texts};
use crate::words::{self, short_library};

/// Letters of the arguments of a program, and of a hash of a commit.
const ARGUMENTS_AT_MOST: usize = 60;
const HASH: usize = 8;
const DATE: usize = 10;

/// Where the other pages of the site are.
pub(crate) struct SiteLinks<'a> {
    /// The page of a run, by its name.
    pub(crate) run: &'a dyn Fn(&str) -> Option<String>,
    /// The page of a change of the time of the run: by the number of the program, and that of the change.
    pub(crate) change: &'a dyn Fn(usize, usize) -> String,
}

pub(crate) fn page_of_histories<'a>(
    programs: &'a [ProgramHistory<'a>],
    links: &SiteLinks,
) -> Page<'a> {
    let mut blocks = Vec::new();
    if programs.len() > 1 {
        blocks.push(PageBlock::new("programs", "Programs").with(true, [overview(programs)]));
    }
    let numbered = programs.iter().enumerate();
    blocks.extend(numbered.map(|(at, of)| block(at, of, links)));
    let mut reading = PageBlock::new("reading", "How to read this page");
    reading.says.push(reading_changes().into());
    blocks.push(reading);
    let title = match programs {
        [one] => line![title(one), " over ", commits_of(one.commits.len())],
        more => line![more.len(), " programs over their commits"],
    };
    Page { title, headline: Some(badge(programs).message.into()), blocks }
}

/// The same as a few lines of text.
pub(crate) fn histories<'a>(programs: &'a [ProgramHistory<'a>]) -> View<'a> {
    let section = |of: &'a ProgramHistory| Section::of_notes(title(of), sentences(of));
    let title = badge(programs).message.into();
    View { title, subtitle: Vec::new(), sections: programs.iter().map(section).collect() }
}

/// The latest change of the time of the run of a program, of all the worst.
pub(crate) fn badge(programs: &[ProgramHistory]) -> Badge {
    let latest = programs.iter().filter_map(|of| {
        let change = series_of(of, Measure::Run)?.changes.last()?;
        Some((change.ratio, of, change))
    });
    let latest: Vec<_> = latest.collect();
    let slower = latest.iter().filter(|(ratio, ..)| *ratio > 1.0).count();
    let worst = latest.iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let judged = programs
        .iter()
        .filter(|of| series_of(of, Measure::Run).is_some_and(|series| series.is_judged));
    let of_programs = format!("{slower} of {} programs", programs.len());
    let (message, mood) = match (worst, judged.count()) {
        (None, 0) => (format!("no answer below {VALUES_AT_LEAST} commits"), Mood::Unknown),
        (None, _) => ("no change found".into(), Mood::Good),
        (Some((ratio, of, change)), _) => {
            let since = short(&of.commits[change.index]);
            let size = words::share((ratio - 1.0).abs());
            let change = match slower {
                0 => format!("{size} faster since {since}"),
                _ => format!("{size} slower since {since}"),
            };
            let mood = if slower > 0 { Mood::Bad } else { Mood::Good };
            let is_one_of_more = slower > 0 && programs.len() > 1;
            (if is_one_of_more { format!("{of_programs} slower") } else { change }, mood)
        }
    };
    Badge { label: "performance", message, mood }
}

fn series_of<'p>(of: &'p ProgramHistory, measure: Measure) -> Option<&'p Series> {
    of.series.iter().find(|series| series.measure == measure)
}

/// A commit by the first letters of its hash, or a run by its start.
pub(crate) fn short<'a>(of: &Commit<'a>) -> &'a str {
    let is_hash = of.name.len() >= 2 * HASH && of.name.chars().all(|c| c.is_ascii_hexdigit());
    if of.has_label && is_hash { &of.name[..HASH] } else { of.name }
}

/// Its name in file names and links.
pub(crate) fn slug(of: &ProgramHistory, number: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let program: String = of.program.chars().map(plain).collect();
    format!("{program}-{}-ranks-{}", of.ranks, number + 1)
}

fn title<'a>(of: &ProgramHistory<'a>) -> Value<'a> {
    let program = if of.program.is_empty() { "(not recorded)" } else { &of.program };
    let command = format!("{program} {}", cut(&of.arguments, ARGUMENTS_AT_MOST));
    let (ranks, s) = (u64::from(of.ranks), plural(of.ranks.into()));
    line![command.trim().to_owned(), ", ", ranks, " rank", s]
}

fn commits_of(number: usize) -> Value<'static> {
    line![number, " commit", plural(number as u64)]
}

fn overview<'a>(programs: &[ProgramHistory<'a>]) -> Section<'a> {
    let row = |(at, of): (usize, &ProgramHistory<'a>)| {
        let run = series_of(of, Measure::Run);
        let level = run.and_then(|run| Some(run.levels().last()?.1));
        let change: Value = run.and_then(|run| run.changes.last()).map_or("".into(), |change| {
            line![
                share(change.ratio - 1.0).as_change(),
                " since ",
                short(&of.commits[change.index])
            ]
        });
        let name = Value::Link(
            format!("{} {}", of.program, cut(&of.arguments, ARGUMENTS_AT_MOST)).into(),
            format!("#{}", slug(of, at)),
        );
        let ranks = u64::from(of.ranks);
        row![name, ranks, of.commits.len(), level.map(seconds), change]
    };
    let mut columns = texts(["PROGRAM"]);
    columns.extend(numbers(["RANKS", "COMMITS", "RUN"]));
    columns.push(column("LATEST CHANGE", Kind::Text));
    let rows = programs.iter().enumerate().map(row).collect();
    Section { title: "".into(), columns, rows, notes: Vec::new() }
}

fn block<'a>(at: usize, of: &'a ProgramHistory<'a>, links: &SiteLinks) -> PageBlock<'a> {
    let ranks = format!("{}, {} rank{}", of.program, of.ranks, plural(of.ranks.into()));
    let command = format!("{} {}", of.program, cut(&of.arguments, ARGUMENTS_AT_MOST));
    let title = format!("{}, {} rank{}", command.trim(), of.ranks, plural(of.ranks.into()));
    let mut block = PageBlock::named(slug(of, at).into(), ranks.into(), title.into());
    if let Some(run) = series_of(of, Measure::Run) {
        if run.changes.is_empty() {
            block.says.extend(sentences(of));
        }
        let numbered = run.changes.iter().enumerate();
        block.cards.extend(numbered.map(|change| {
            let link = (links.change)(at, change.0);
            card(of, run, change, link)
        }));
    }
    block.charts.extend([Measure::Run, Measure::InMpi].into_iter().filter_map(|measure| {
        let is_known = |series: &&Series| series.values.iter().any(Option::is_some);
        let series = series_of(of, measure).filter(is_known)?;
        Some(chart_of_time(of, series, links))
    }));
    block.charts.extend(chart_of_efficiencies(of, links));
    block.extend(true, findings(of));
    block.details = "Commits and runs";
    block.push(false, runs(of, links));
    block
}

/// What is said of the time of the run: its changes, or that there are none.
fn sentences<'a>(of: &ProgramHistory<'a>) -> Vec<Value<'a>> {
    let Some(run) = series_of(of, Measure::Run) else { return Vec::new() };
    let known = run.values.iter().flatten().count();
    if !run.is_judged {
        let here = line!["Not judged: it takes ", VALUES_AT_LEAST, " commits at least, and here "];
        let are = if known == 1 { "is " } else { "are " };
        return vec![line![here, are, known, "; gyan check compares fewer"]];
    }
    if run.changes.is_empty() {
        return vec![line!["No change of the run was found in ", commits_of(known)]];
    }
    run.changes.iter().enumerate().map(|change| headline(of, run, change)).collect()
}

/// How much longer or shorter since which commit.
fn headline<'a>(
    of: &ProgramHistory<'a>,
    series: &Series,
    (at, change): (usize, &ChangePoint),
) -> Value<'a> {
    let commit = &of.commits[change.index];
    let than = if change.ratio < 1.0 { " faster" } else { " slower" };
    let [before, after] = series.sides(at).map(|side| series.level(side).map(seconds));
    let size = share((change.ratio - 1.0).abs());
    let since = line![" since ", short(commit), " (", date(commit), ")"];
    line![size, than, since, ": the run took ", before, ", and now ", after]
}

fn date<'a>(commit: &Commit<'a>) -> &'a str {
    commit.started.get(..DATE).unwrap_or(commit.started)
}

fn card<'a>(
    of: &'a ProgramHistory<'a>,
    series: &Series,
    (at, change): (usize, &ChangePoint),
    link: String,
) -> Card<'a> {
    let commits = &of.commits;
    let [low, high] = [change.low, change.high].map(|end| share(end - 1.0).as_change());
    let mut notes = vec![line![
        "Between ",
        low,
        " and ",
        high,
        " with 95 %. By chance a history has such a change with a probability of ",
        share(change.p)
    ]];
    let (first, last) = (*change.within.start(), *change.within.end());
    notes.push(if first == last {
        line!["It came with ", short(&commits[first]), " (95 %)"]
    } else {
        let between = line![short(&commits[first]), " to ", short(&commits[last])];
        line![
            "It came with one of the ",
            last - first + 1,
            " commits ",
            between,
            " (95 %), most likely with ",
            short(&commits[change.index])
        ]
    });
    let [before, after] = series.sides(at);
    let in_mpi = series_of(of, Measure::InMpi);
    let in_mpi = [&before, &after].map(|side| in_mpi.and_then(|of| of.level(side.clone())));
    if let [Some(was_s), Some(is_s)] = in_mpi {
        let [was, is] = [was_s, is_s].map(seconds);
        notes.push(line!["Of that, an average rank was in MPI for ", was, ", and now ", is]);
    }
    let [was, is] = [&before, &after].map(|side| libraries(&commits[side.clone()]));
    let new = is.difference(&was).map(|library| short_library(library)).collect::<Vec<_>>();
    if !new.is_empty() {
        notes.push(line!["After it the MPI library is another one: ", new.join(", ")]);
    }
    notes.extend(of.findings.iter().filter_map(|finding| came_or_went(finding, &before, &after)));
    notes.push(Value::Link("What gyan diff says of the runs before and after it".into(), link));
    let (columns, rows) = (Vec::new(), Vec::new());
    let title = headline(of, series, (at, change));
    Card { share: None, section: Section { title, columns, rows, notes } }
}

/// A finding that most commits on one side of a change have, and none on the other.
fn came_or_went<'a>(
    of: &FindingHistory<'a>,
    before: &Range<usize>,
    after: &Range<usize>,
) -> Option<Value<'a>> {
    let [was, is] = [before, after].map(|side| {
        let there = of.is_there[side.clone()].iter().filter(|is_there| **is_there).count();
        (there, 2 * there > side.len())
    });
    match (was, is) {
        ((0, _), (_, true)) => Some(line!["A finding came with it: ", &of.finding.title]),
        ((_, true), (0, _)) => Some(line!["A finding went with it: ", &of.finding.title]),
        _ => None,
    }
}

fn places<'a>(of: &ProgramHistory<'a>, links: &SiteLinks) -> Vec<HistoryPlace<'a>> {
    let place = |commit: &Commit<'a>| HistoryPlace {
        name: short(commit).into(),
        link: commit.runs.first().and_then(|run| (links.run)(&run.name)),
    };
    of.commits.iter().map(place).collect()
}

fn chart_of_time<'a>(of: &ProgramHistory<'a>, series: &Series, links: &SiteLinks) -> Chart<'a> {
    let (title, name) = match series.measure {
        Measure::Run => ("How long is the run?", "run"),
        _ => ("How long is an average rank in MPI?", "in MPI"),
    };
    let says = "a point for each commit, the median of its runs. The scale need not begin at 0";
    let changes = series_of(of, Measure::Run).map_or(&[][..], |run| &run.changes);
    let picture = Picture::History(HistoryChart {
        unit: Unit::Seconds,
        places: places(of, links),
        courses: vec![HistoryCourse { name: name.into(), points: series.values.clone() }],
        levels: if series.is_judged { series.levels() } else { Vec::new() },
        changes: changes.iter().map(|of| (of.index, of.within.clone())).collect(),
    });
    Chart::new(title, says, picture)
}

fn chart_of_efficiencies<'a>(of: &ProgramHistory<'a>, links: &SiteLinks) -> Option<Chart<'a>> {
    let named = [
        (Measure::Parallel, "parallel efficiency"),
        (Measure::LoadBalance, "load balance"),
        (Measure::Communication, "communication"),
    ];
    let course = |(measure, name): (Measure, &'static str)| {
        let points = series_of(of, measure)?.values.clone();
        let is_known = points.iter().any(Option::is_some);
        is_known.then(|| HistoryCourse { name: name.into(), points })
    };
    let courses: Vec<HistoryCourse> = named.into_iter().filter_map(course).collect();
    if courses.is_empty() {
        return None;
    }
    let says =
        "parallel efficiency is the part of the time outside MPI: load balance times communication";
    let (levels, changes) = (Vec::new(), Vec::new());
    let places = places(of, links);
    let picture = HistoryChart { unit: Unit::Share, places, courses, levels, changes };
    Some(Chart::new("How well is the time used?", says, Picture::History(picture)))
}

/// In which commits each finding was.
fn findings<'a>(of: &'a ProgramHistory<'a>) -> Option<Section<'a>> {
    if of.findings.is_empty() {
        return None;
    }
    let row = |finding: &'a FindingHistory<'a>| {
        let is_there = &finding.is_there;
        let name = |at: Option<usize>| at.map_or("", |at| short(&of.commits[at]));
        let first = name(is_there.iter().position(|is_there| *is_there));
        let last = name(is_there.iter().rposition(|is_there| *is_there));
        let number = is_there.iter().filter(|is_there| **is_there).count();
        row![&finding.finding.title, first, last, number, finding.finding.at_stake_share.map(share)]
    };
    let mut columns = texts(["FINDING", "FIRST IN", "LAST IN"]);
    columns.extend(numbers(["COMMITS", "AT STAKE"]));
    let rows = of.findings.iter().map(row).collect();
    let notes = vec![
        "as the latest commit that has it says it; a commit has what more than half of its runs have"
            .into(),
    ];
    Some(Section { title: "Findings".into(), columns, rows, notes })
}

fn runs<'a>(of: &'a ProgramHistory<'a>, links: &SiteLinks) -> Section<'a> {
    let numbers_of = |measure: Measure, at: usize| -> Option<f64> {
        Some(series_of(of, measure)?.values.get(at).copied().flatten()?[1])
    };
    let row =
        |(at, commit): (usize, &'a Commit<'a>)| {
            let mut runs = Vec::new();
            for (number, run) in (1_u64..).zip(&commit.runs) {
                let gap = if number == 1 { "" } else { " " };
                let link = (links.run)(&run.name);
                let shown = number.to_string();
                runs.push(gap.into());
                runs.push(link.map_or_else(
                    || shown.clone().into(),
                    |to| Value::Link(shown.clone().into(), to),
                ));
            }
            row![
                commit.name,
                commit.started,
                numbers_of(Measure::Run, at).map(seconds),
                numbers_of(Measure::InMpi, at).map(seconds),
                numbers_of(Measure::Parallel, at).map(share),
                Value::Line(runs)
            ]
        };
    let mut columns = texts(["COMMIT", "STARTED"]);
    columns.extend(numbers(["RUN", "IN MPI", "EFFICIENCY"]));
    columns.push(column("RUNS", Kind::Text));
    // The latest first: a page shows only so many.
    let rows = of.commits.iter().enumerate().rev().map(row).collect();
    Section { title: "Commits".into(), columns, rows, notes: Vec::new() }
}

fn reading_changes() -> &'static str {
    "A change is named when noise does not explain it: of 100 programs that never changed, at most 5 get one. Runs of one \
     commit count as one, their median. It is found about ten commits after it happened; gyan check tells at once."
}
