//! `gyan archive job`: the report of a job, of the record that it left.

use std::path::Path;

use gyan_results::{JobRecord, Shortening};

use crate::archive::job::{JobName, record};
use crate::archive::store;
use crate::cli::ArchiveJobOptions;
use crate::document::value::{Value, line};
use crate::document::{Presentation, Section};
use crate::error::Error;
use crate::format::ReportFormat as Format;
use crate::input::page::element;
use crate::output::{may_be_page, write_page};
use crate::parts::{self, ReportInput, page_of_first_screen, page_of_run};
use crate::{DONE, print, render};

pub(super) fn job(options: &ArchiveJobOptions) -> Result<u8, Error> {
    let format = options.page.format.clone()?;
    may_be_page("gyan archive job", &options.page, matches!(format, Format::Html))?;
    let name = JobName {
        job: &options.job,
        step: options.step.as_deref(),
        cluster: options.cluster.as_deref(),
    };
    let store = store::open(&options.archive)?;
    let record = record(store.as_ref(), &name)?;
    let mut input = ReportInput::new(&record.summary, Path::new(""));
    input.all = options.all;
    if matches!(format, Format::Html) {
        page(options, &record, &input)?;
    } else {
        let mut shown: Presentation = parts::report(&input);
        if !options.all {
            shown.view = parts::first_screen(&input);
        }
        shown.view.sections.push(Section::of_notes("About this record", about(&record)));
        print::report(format, shown)?;
    }
    Ok(DONE)
}

fn page(options: &ArchiveJobOptions, record: &JobRecord, input: &ReportInput) -> Result<(), Error> {
    let mut page = match options.page.fragment.as_deref() {
        Some("") => page_of_first_screen(input),
        _ => page_of_run(input, &[]),
    };
    if let Some(block) = page.blocks.last_mut() {
        block.says.extend(about(record));
    }
    match options.page.fragment.as_deref() {
        None => write_page(&options.page, |out| {
            let (element, _) = element(&record.summary)?;
            render::html(out, &page, &element)
        }),
        Some(_) => print::page(&options.page, page),
    }
}

/// Which job it is, and what its record does not have.
fn about(record: &JobRecord) -> Vec<Value<'_>> {
    let step: Value = record.step.as_ref().map_or("".into(), |step| line![", step ", step]);
    let mut notes = vec![line![
        "job ",
        &record.job,
        step,
        " of ",
        &record.program,
        " on ",
        &record.cluster,
        ": this is what its record in the archive has"
    ]];
    let without: Vec<&str> = record.left_out.iter().map(|of| in_words(*of)).collect();
    if !without.is_empty() {
        notes.push(format!("the record is without {}", without.join("; ")).into());
        notes.push("to see these too, run the program once with gyan run".into());
    }
    notes
}

/// What a record lacks.
fn in_words(left_out: Shortening) -> &'static str {
    match left_out {
        Shortening::Private => {
            "places in the code, variables of the MPI library, files and single pairs of ranks, which a site does not keep"
        }
        Shortening::CriticalPath => "the critical path",
        Shortening::Communicators => "what each communicator waited",
        Shortening::Histograms => "histograms but those of ten functions",
        Shortening::Phases => "phases but the 16 longest",
        Shortening::Functions24 => "functions but the 24 with the most time",
        Shortening::Hosts => "hosts but the 64 that differ most from the mean",
        Shortening::Traffic => "traffic",
        Shortening::Functions10 => "functions but the 10 with the most time, and phases",
        Shortening::Lists => "ranks, hosts and machines but ten of each list",
    }
}
