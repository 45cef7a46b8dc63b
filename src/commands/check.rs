//! `gyan check`: whether runs of a program are worse than earlier ones.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use gyan_results::{CheckResult, Judgement, Tool, write_json};

use crate::cli::CheckOptions;
use crate::comparison::check::{Checked, DEFAULT_RULES, Rules, judge, what_is_missing};
use crate::error::{Error, reason};
use crate::findings::rules::RULES;
use crate::format::CheckFormat as Format;
use crate::input::runs::{self, Run};
use crate::parts::ReportInput;
use crate::{DONE, NOT_JUDGED, WORSE, answers, output, render};

pub(crate) fn check(options: &CheckOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
    if options.print_rules {
        return output::print(|out| out.write_all(DEFAULT_RULES.as_bytes())).map(|()| DONE);
    }
    if let Some(file) = &options.output {
        output::may_write(file, options.force)?;
    }
    let findings: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let rules = read_rules(options.rules.as_deref(), &findings)?;
    let baselines = runs::open(&options.against)?;
    if rules.wants_ends() {
        baselines.iter().try_for_each(is_whole)?;
    }
    let new = runs::open(&options.runs)?;
    let [new, baselines] =
        [new, baselines].map(|runs| runs.into_iter().map(found).collect::<Vec<_>>());
    let judgement = judge(&new, &baselines, &rules, &findings, Tool::gyan());
    if let Some(file) = &options.output {
        output::to_file(file, options.force, |out| write(out, format, &judgement))?;
        // Readers of the log want to see the verdict, too.
        output::print(|out| write(out, Format::Table, &judgement))?;
    } else {
        output::print(|out| write(out, format, &judgement))?;
    }
    Ok(match judgement.result {
        CheckResult::Passed => DONE,
        CheckResult::Failed => WORSE,
        CheckResult::NotJudged => NOT_JUDGED,
    })
}

fn write(out: &mut dyn Write, format: Format, judgement: &Judgement) -> io::Result<()> {
    match format {
        Format::Table => render::table(out, &answers::judgement(judgement)),
        Format::Markdown => render::markdown(out, &answers::judgement(judgement)),
        Format::Junit => render::junit(out, &answers::suites(judgement)),
        Format::Json => write_json(out, judgement),
    }
}

fn read_rules(file: Option<&Path>, findings: &[&str]) -> Result<Rules, Error> {
    let remedy = "gyan check --print-rules shows what there is";
    let text = file.map_or(Ok(String::new()), fs::read_to_string);
    let name = file.unwrap_or(Path::new("the default rules")).display();
    let text = text.map_err(|error| Error::new(&name, reason(&error), remedy))?;
    Rules::parse(&text, findings).map_err(|why| Error::new(&name, why, remedy))
}

/// A run that was cut short counts less than a whole one, and would make the new run look worse.
fn is_whole(baseline: &Run) -> Result<(), Error> {
    let remedy = "make a new baseline, or put `ended = false` into the rules";
    match what_is_missing(&baseline.summary) {
        None => Ok(()),
        Some(what) => {
            Err(Error::new(baseline.path.display(), format!("is no baseline, {what}"), remedy))
        }
    }
}

fn found(run: Run) -> Checked {
    let Run { path, summary, .. } = run;
    let findings = ReportInput::new(&summary, &path).answers().findings.clone();
    Checked { name: path.display().to_string(), summary, findings }
}
