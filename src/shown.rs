//! What the command shows of runs, as texts: for the tests that know the truth about them (`tests/truth`).

use std::io;
use std::path::Path;

use gyan_results::{Difference, Efficiencies, Finding, Judgement, RankProfile, Summary, Tool};

use crate::commands::report::Concluded;
use crate::comparison::check::{Checked, Rules, judge};
use crate::comparison::difference::{self, difference};
use crate::findings::rules::RULES;
use crate::input::page::element;
use crate::parts::{self, More, OfRanks, Part, page_of_run};
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
    let concluded = Concluded::of(summary, Path::new(NAME), true);
    let answers = &concluded.answers;
    let findings = &answers.findings;
    let mut texts = Vec::new();
    let mut text = |name, write: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
        let mut out = Vec::new();
        let written = write(&mut out).map(|()| String::from_utf8_lossy(&out).into_owned());
        texts.push((name, written.unwrap_or_else(|error| format!("failed: {error}"))));
    };
    let first = || parts::report(summary, concluded.known(), Part::First, false);
    let whole = || parts::report(summary, concluded.known(), Part::Whole, true);
    text("first", &|out| render::table(out, &first()));
    text("whole", &|out| render::table(out, &whole()));
    text("markdown", &|out| render::markdown(out, &whole()));
    let efficiencies = answers.efficiencies.as_ref();
    text("findings", &|out| {
        render::table(out, &parts::findings(summary, efficiencies, findings, NAME))
    });
    text("waiting", &|out| render::table(out, &parts::waiting(summary, true)));
    text("phases", &|out| render::table(out, &parts::phases(summary, false, true)));
    text("csv", &|out| {
        render::all_rows(parts::report::rows::summary(summary, &concluded.watched), |columns| {
            render::Csv::new(out, columns)
        })
    });
    text("json", &|out| {
        let mut summary = summary.clone();
        summary.efficiencies.clone_from(&answers.efficiencies);
        summary.findings.clone_from(findings);
        gyan_results::write_summary(out, &summary)
    });
    if is_page {
        text("html", &|out| {
            let mut ranks = OfRanks::default();
            for profile in profiles {
                ranks.take(profile, summary.job.elapsed_s);
            }
            let sizes = parts::sizes(summary);
            let (element, left_out) = element(summary)?;
            let more = More { sizes: &sizes, ranks: &ranks, left_out: &left_out };
            render::html(out, &page_of_run(summary, concluded.known(), &more), &element)
        });
    }
    Shown { efficiencies: answers.efficiencies.clone(), findings: findings.clone(), texts }
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
    let run = |summary| difference::Run {
        name: NAME.into(),
        summary,
        findings: found(summary),
        is_complete: true,
    };
    let [before, after]: [Vec<difference::Run>; 2] =
        [before, after].map(|runs| runs.iter().map(run).collect());
    difference(&before, &after)
}

fn found(summary: &Summary) -> Vec<Finding> {
    Concluded::of(summary, Path::new(NAME), true).answers.findings
}
