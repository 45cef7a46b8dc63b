//! `gyan pages`: a small site of the runs of a project over its commits. Its files lead to each other by relative names, so it
//! works from a disk as from a server.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::answers::history::{SiteLinks, badge, histories as view_of, page_of_histories, slug};
use crate::answers::{answer, page_of_comparison};
use crate::cli::PagesOptions;
use crate::commands::report::page;
use crate::comparison::change_points::Unchanged;
use crate::comparison::check::Checked;
use crate::comparison::difference::{ComparedRun, difference};
use crate::comparison::history::{HistoryRules, Measure, ProgramHistory, Series, histories};
use crate::error::{Error, reason};
use crate::input::runs;
use crate::input::source::Source;
use crate::output::{self, directory_name, to_file};
use crate::parts::ReportInput;
use crate::{DONE, INCOMPLETE, render, say};

/// The files of the site.
const INDEX: &str = "index.html";
const BADGE_SVG: &str = "badge.svg";
const BADGE_JSON: &str = "badge.json";
const RUNS: &str = "runs";
const CHANGES: &str = "changes";
/// Runs on each side of a change that are compared.
const COMPARED_AT_MOST: usize = 8;

pub(crate) fn pages(options: &PagesOptions) -> Result<u8, Error> {
    let site = SiteDirectory::new(&options.output)?;
    let order = options.order.as_deref().map_or(Ok(Vec::new()), read_order)?;
    let (all, is_whole) = open(options, &site)?;
    let rules = HistoryRules { label: &options.label, order: &order, last: options.last };
    let programs = histories(&all.runs, &rules, &mut Unchanged::default());
    let run_link = |name: &str| all.pages.get(name).map(|file| format!("{RUNS}/{file}"));
    let change_link = |program: usize, change: usize| {
        let of = programs.get(program);
        of.map(|of| change_file(of, program, change)).unwrap_or_default()
    };
    for (number, program) in programs.iter().enumerate() {
        let series = program.series.iter().find(|series| series.measure == Measure::Run);
        for (at, series) in
            series.iter().flat_map(|of| (0..of.changes.len()).map(move |at| (at, *of)))
        {
            site.change(&change_file(program, number, at), program, series, at)?;
        }
    }
    let links = SiteLinks { run: &run_link, change: &change_link };
    let page = page_of_histories(&programs, &links);
    site.write(INDEX, |out| render::html(out, &page, ""))?;
    let badge = badge(&programs);
    site.write(BADGE_SVG, |out| render::badge_svg(out, &badge))?;
    site.write(BADGE_JSON, |out| render::badge_json(out, &badge))?;
    output::print(|out| render::table(out, &view_of(&programs)))?;
    output::say(site.directory.join(INDEX).display())?;
    Ok(if is_whole { DONE } else { INCOMPLETE })
}

fn change_file(of: &ProgramHistory, program: usize, change: usize) -> String {
    format!("{CHANGES}/{}-{}.html", slug(of, program), change + 1)
}

/// The commits of a file, or of standard input.
fn read_order(file: &Path) -> Result<Vec<String>, Error> {
    let failed = |error: io::Error| {
        Error::new(file.display(), reason(&error), "name a file with a commit in each line")
    };
    let mut text = String::new();
    if file == Path::new("-") {
        io::stdin().read_to_string(&mut text).map_err(failed)?;
    } else {
        text = fs::read_to_string(file).map_err(failed)?;
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}

/// The runs of a history, and the file of the page of each.
struct AllRuns {
    runs: Vec<Checked>,
    pages: BTreeMap<String, String>,
}

/// Reads each run and writes its page. One that cannot be read is left out, as is a page of the site itself: it must not keep
/// the site from being made. Returns whether there was none like that.
fn open(options: &PagesOptions, site: &SiteDirectory) -> Result<(AllRuns, bool), Error> {
    let mut all = AllRuns { runs: Vec::new(), pages: BTreeMap::new() };
    let (mut left_out, mut is_whole) = (Vec::new(), true);
    for path in &options.history {
        for run in runs::runs_in(path)? {
            if site.has(&run) {
                continue;
            }
            let opened = runs::open(std::slice::from_ref(&run));
            let of = match opened.map(|mut runs| runs.pop()) {
                Ok(Some(of)) => of,
                Ok(None) => continue,
                Err(error) => {
                    left_out.push(error.to_string());
                    continue;
                }
            };
            is_whole &= of.is_complete;
            let name = run.display().to_string();
            let within = run.strip_prefix(path).unwrap_or(&run);
            let file = all.page_name(within);
            let source = Source::open(&run)?;
            page::to_file(&source, &of.summary, &site.directory.join(RUNS).join(&file), true)?;
            let findings = ReportInput::new(&of.summary, &run).answers().findings.clone();
            all.pages.insert(name.clone(), file);
            all.runs.push(Checked { name, summary: of.summary, findings });
        }
    }
    is_whole &= left_out.is_empty();
    say::warn_of(left_out, |more| format!("{more} more runs are left out"));
    if all.runs.is_empty() {
        return Err(Error::new("gyan pages", "no run can be read", "name directories of runs"));
    }
    Ok((all, is_whole))
}

impl AllRuns {
    /// The file of the page of a run: its path in the history, so that links to it last.
    fn page_name(&self, within: &Path) -> String {
        let name = match within.to_string_lossy() {
            name if name.is_empty() => "run".to_owned(),
            name => directory_name(&name.replace('/', "-")),
        };
        let is_free = |file: &String| self.pages.values().all(|other| other != file);
        let first = format!("{name}.html");
        if is_free(&first) {
            return first;
        }
        let numbered = (2_usize..).map(|number| format!("{name}-{number}.html"));
        numbered.into_iter().find(is_free).unwrap_or(first)
    }
}

struct SiteDirectory {
    directory: PathBuf,
}

impl SiteDirectory {
    /// Makes its directories.
    fn new(directory: &Path) -> Result<SiteDirectory, Error> {
        for inside in ["", RUNS, CHANGES] {
            let path = directory.join(inside);
            let failed = |error| Error::io(&path, &error, "name another directory");
            fs::create_dir_all(&path).map_err(failed)?;
        }
        Ok(SiteDirectory { directory: directory.to_owned() })
    }

    /// Whether a run is a page of the site, which is inside the history.
    fn has(&self, run: &Path) -> bool {
        let [site, run] = [&self.directory, run].map(fs::canonicalize);
        matches!((site, run), (Ok(site), Ok(run)) if run.starts_with(&site))
    }

    fn write(
        &self,
        file: &str,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        to_file(&self.directory.join(file), true, write)
    }

    /// What `gyan diff` says of the runs before and after a change, those next to it.
    fn change(
        &self,
        file: &str,
        of: &ProgramHistory,
        series: &Series,
        at: usize,
    ) -> Result<(), Error> {
        let [before, after] = series.sides(at);
        let runs = |side: std::ops::Range<usize>| {
            of.commits[side].iter().flat_map(|commit| commit.runs.iter().copied())
        };
        let before: Vec<&Checked> = runs(before).collect();
        let before = before.into_iter().rev().take(COMPARED_AT_MOST).rev();
        let [a, b]: [Vec<ComparedRun>; 2] = [
            before.map(compared).collect(),
            runs(after).take(COMPARED_AT_MOST).map(compared).collect(),
        ];
        let mut difference = difference(&a, &b);
        difference.answer = render::text(&answer(&difference));
        self.write(file, |out| render::html(out, &page_of_comparison(&difference), ""))
    }
}

fn compared(run: &Checked) -> ComparedRun<'_> {
    let Checked { name, summary, findings } = run;
    let is_complete = summary.ranks.is_complete();
    ComparedRun { name: name.clone(), summary, findings: findings.clone(), is_complete }
}
