//! The run on one page: what ran, what to do about it, and every part of the report with a chart and its tables. The tables
//! are those of the other forms of the report.

use super::report::{first_lines, headline, what_ran};
use super::{PARTS, ReportInput, findings, headings, time};
use crate::document::page::{Page, PageBlock};
use crate::document::{Section, Value};

/// `left_out`: what the summary inside the page lacks.
pub(crate) fn page_of_run<'r>(of: &'r ReportInput, left_out: &[&'static str]) -> Page<'r> {
    let mut blocks = Vec::new();
    let mut absent = Vec::new();
    for block in PARTS.iter().filter_map(|part| part.block) {
        match block(of) {
            Ok(block) => blocks.push(block),
            // Not worth a word.
            Err(Value::Nothing) => {}
            Err(why) => absent.push(why),
        }
    }
    blocks.push(how_to_read(absent, left_out));
    Page { title: headings::title(of.summary), headline: headline(of.summary, of.called()), blocks }
}

/// The first screen, with the charts of its parts.
pub(crate) fn page_of_first_screen<'r>(of: &'r ReportInput) -> Page<'r> {
    let mut run = PageBlock::new("run", "What ran");
    run.says.extend(what_ran(of));
    let mut lines = PageBlock::new("lines", "The rest in a line each");
    lines.says.extend(first_lines(of));
    let parts = [findings::FINDINGS, time::TIME].into_iter().filter_map(|part| part.block);
    let parts = parts.filter_map(|block| block(of).ok());
    let blocks = std::iter::once(run).chain(parts).chain([lines]).collect();
    Page { title: headings::title(of.summary), headline: headline(of.summary, of.called()), blocks }
}

fn how_to_read<'a>(absent: Vec<Value<'a>>, left_out: &[&'static str]) -> PageBlock<'a> {
    let mut block = PageBlock::new("reading", "How to read this page");
    block.says.extend([
        "A number marked e is estimated from the calls that were timed; ± is its standard error. One marked s comes from \
         samples. One without a mark was counted or read, or follows from the numbers beside it."
            .into(),
        "A number in brackets is the rank that had it. Hover over a number or a mark to see it exactly; select the heading \
         of a column to sort by it."
            .into(),
        "The page holds the summary of the run: gyan report reads it like a run directory.".into(),
    ]);
    if !left_out.is_empty() {
        let what = left_out.join(", and ");
        block.says.push(
            format!("To keep the page small, that summary is without {what}; the run directory has it all.").into(),
        );
    }
    if !absent.is_empty() {
        block.push(true, Section::of_notes("Not on this page", absent));
    }
    block
}
