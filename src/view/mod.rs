//! What is shown: which rows, in which order, and how each number reads. Pure: data in, text out;
//! laying it out is the renderers' part.

mod difference;
mod doctor;
mod environment;
mod histogram;
pub(crate) mod long;
mod numbers;
mod queues;
mod report;
mod series;
mod statistic;
mod variables;
mod watch;

use std::borrow::Cow;

use gyan_results::{Job, Mpi};

pub(crate) use difference::{changed, difference};
pub(crate) use doctor::doctor;
pub(crate) use environment::environment;
pub(crate) use histogram::{Histogram, histogram, histograms};
pub(crate) use numbers::ranges;
pub(crate) use queues::queues;
pub(crate) use report::{phase_name, phases, report};
pub(crate) use series::{Course, series};
pub(crate) use variables::{Choice, level, variables};

pub(crate) use crate::say::printable;

/// Something to read, ready to be laid out.
pub(crate) struct View {
    pub(crate) title: String,
    pub(crate) subtitle: Vec<String>,
    pub(crate) sections: Vec<Section>,
}

/// A table with a heading and remarks below it.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) notes: Vec<String>,
}

pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) align: Align,
}

#[derive(Clone, Copy)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The command line of a run.
fn command(job: &Job) -> String {
    if job.command.is_empty() { "(not recorded)".into() } else { job.command.join(" ") }
}

/// Name, version and thread level of an MPI library.
fn library_line(mpi: &Mpi) -> String {
    let library = mpi.library.split(',').next().unwrap_or_default();
    let library = library.split_whitespace().collect::<Vec<_>>().join(" ");
    // Before MPI_Init there is no thread level.
    match mpi.thread_level.as_str() {
        "unknown" => format!("{library} (MPI {})", mpi.standard),
        level => format!("{library} (MPI {}, {level})", mpi.standard),
    }
}

impl View {
    /// Names come from MPI libraries and files: no control character of theirs reaches a terminal.
    fn make_printable(&mut self) {
        let lines = [&mut self.title].into_iter().chain(&mut self.subtitle);
        let sections = self.sections.iter_mut().flat_map(|section| {
            let cells = section.rows.iter_mut().flatten();
            [&mut section.title].into_iter().chain(cells).chain(&mut section.notes)
        });
        for text in lines.chain(sections) {
            if let Cow::Owned(printable) = printable(text) {
                *text = printable;
            }
        }
    }
}
