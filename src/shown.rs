//! What the command shows of runs, as texts: for the tests that know the truth about them (`tests/truth`).

use std::io;
use std::path::Path;
use std::time::SystemTime;

use gyan_results::{Difference, Efficiencies, Finding, Judgement, RankProfile, Summary, Tool};

use crate::archive;
use crate::comparison::check::{Checked, Rules, judge};
use crate::comparison::difference::{self, difference};
use crate::document::{Data, Document};
use crate::findings::Answers;
use crate::findings::rules::RULES;
use crate::input::page::element;
use crate::parts::{self, OfRanks, ReportInput, page_of_run};
use crate::render;

/// The name of every run here.
const NAME: &str = "run";

/// A run in every form.
pub struct Shown {
    /// How well the time was used.
    pub efficiencies: Option<Efficiencies>,
    /// What costs time.
    pub findings: Vec<Finding>,
    /// The name of each form, and the text.
    pub texts: Vec<(&'static str, String)>,
}

/// Shows a run. `summary` is that of `profiles`. `is_page`: also as a page, which takes longer.
pub fn shown(summary: &Summary, profiles: &[RankProfile], is_page: bool) -> Shown {
    let mut ranks = OfRanks::default();
    for profile in profiles {
        ranks.take(profile, summary.job.elapsed_s);
    }
    let mut input = ReportInput::new(summary, Path::new(NAME)).with_ranks(ranks);
    input.all = true;
    let mut texts = Vec::new();
    let mut text = |name, write: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
        let mut out = Vec::new();
        let written = write(&mut out).map(|()| String::from_utf8_lossy(&out).into_owned());
        texts.push((name, written.unwrap_or_else(|error| format!("failed: {error}"))));
    };
    text("first", &|out| render::table(out, &parts::first_screen(&input)));
    text("whole", &|out| render::table(out, &parts::whole(&input)));
    text("markdown", &|out| render::markdown(out, &parts::whole(&input)));
    for option in parts::options() {
        if let Ok(shown) = (option.show)(&input) {
            text(option.name, &|out| render::table(out, &shown.view));
        }
    }
    text("csv", &|out| {
        render::all_rows(parts::report(&input).rows, |columns| render::Csv::new(out, columns))
    });
    text("json", &|out| match parts::report(&input).document {
        Document::Json(write) => write(out),
        Document::Rows => Ok(()),
    });
    if is_page {
        text("html", &|out| {
            let (element, left_out) = element(summary)?;
            render::html(out, &page_of_run(&input, &left_out), &element)
        });
    }
    let Answers { efficiencies, findings, .. } = input.answers();
    Shown { efficiencies: efficiencies.clone(), findings: findings.clone(), texts }
}

/// What `gyan check` says of `new` runs, with its own rules.
pub fn judged(new: &[Summary], baselines: &[Summary]) -> Judgement {
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let rules = Rules::parse("", &ids).unwrap_or_else(|why| unreachable!("{why}"));
    let checked = |summary: &Summary| Checked {
        name: NAME.into(),
        summary: summary.clone(),
        findings: found(summary),
    };
    let [new, baselines]: [Vec<Checked>; 2] =
        [new, baselines].map(|runs| runs.iter().map(checked).collect());
    judge(&new, &baselines, &rules, &ids, Tool::gyan())
}

/// What `gyan diff` finds between runs.
pub fn compared(before: &[Summary], after: &[Summary]) -> Difference {
    let run = |summary| difference::ComparedRun {
        name: NAME.into(),
        summary,
        findings: found(summary),
        is_complete: true,
    };
    let [before, after]: [Vec<difference::ComparedRun>; 2] =
        [before, after].map(|runs| runs.iter().map(run).collect());
    difference(&before, &after)
}

fn found(summary: &Summary) -> Vec<Finding> {
    ReportInput::new(summary, Path::new(NAME)).answers().findings.clone()
}

/// The rows that an archive has of a record in a file of `owner`, as CSV, a text for each table; or why it is refused.
pub fn archived(owner: u32, record: &[u8]) -> Result<Vec<String>, &'static str> {
    let rows = archive::ingest::rows_of(owner, record, SystemTime::now());
    let rows = rows.map_err(archive::tables::Refusal::sentence)?;
    let text = |data| {
        let mut out = Vec::new();
        let written = render::all_rows(data, |columns| render::Csv::new(&mut out, columns));
        written.map_err(|_| "cannot be written")?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    };
    let tables = [
        text(Data::new([&rows.job])),
        text(Data::new(&rows.functions)),
        text(Data::new(&rows.findings)),
        text(Data::new(&rows.hosts)),
    ];
    tables.into_iter().collect()
}
