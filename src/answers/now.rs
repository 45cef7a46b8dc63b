//! What `gyan now` shows: the cause first, then what the ranks do.

use std::collections::BTreeSet;
use std::path::Path;

use gyan_results::{JobNow, WithoutStack};

use crate::document::value::{line, row, seconds};
use crate::document::{Kind, Section, Value, View, column};
use crate::hang::Starting;
use crate::parts::{cause, groups};
use crate::stacks::{TreeRow, tree};
use crate::words::ranges;

/// More rows of a tree are no longer read.
const ROWS_AT_MOST: usize = 60;

/// Of a job in this directory.
pub(crate) fn now<'a>(now: &'a JobNow, directory: &Path) -> View<'a> {
    view(now, line!["in ", directory.display().to_string()])
}

/// Of a job of which no keeper knows. `directory`: where its profiles will be, if that is known.
pub(crate) fn starting<'a>(of: &'a Starting, directory: Option<&Path>) -> View<'a> {
    let place = match directory {
        Some(directory) => line!["in ", directory.display().to_string()],
        None => line!["in job ", of.now.job.clone()],
    };
    let why = if of.has_keeper {
        ": none is known to have left MPI_Init"
    } else {
        ": as no keeper tells of all of them, it is not known which have left MPI_Init"
    };
    view(&of.now, line![place, why])
}

fn view<'a>(now: &'a JobNow, place: Value<'a>) -> View<'a> {
    let known = now.ranks.len();
    let doing = if now.is_over { " ranks did last" } else { " ranks are doing" };
    let title = match now.size as usize {
        size if known == size => line!["What the ", known as u64, doing],
        size => line!["What ", known as u64, " of ", size as u64, doing],
    };
    let mut subtitle = vec![place];
    if let Some(cause) = cause(now) {
        subtitle.extend(["".into(), cause]);
    }
    let mut sections = vec![groups(now)];
    sections.extend(stacks(now));
    View { title, subtitle, sections }
}

/// How the ranks got to where they are.
fn stacks(now: &JobNow) -> Option<Section<'_>> {
    let lacks = now
        .without_stack
        .iter()
        .map(|WithoutStack { ranks: of, why }| line!["rank ", ranges(of), " has no stack: ", why]);
    let mut notes: Vec<Value> = lacks.collect();
    let stopped_us = now.stacks.iter().map(|stack| stack.stopped_us).max();
    let has_threads = has_threads(now);
    if let Some(stopped_us) = stopped_us {
        let each = if has_threads { "each thread" } else { "each rank" };
        let stopped = seconds(stopped_us as f64 / 1e6);
        notes.push(line![each, " was stopped for ", stopped, " at most"]);
    }
    let tree = tree(&now.stacks);
    let more = tree.len().saturating_sub(ROWS_AT_MOST);
    if more > 0 {
        notes.insert(0, line![more, " more rows: --format json has every stack"]);
    }
    let rows = tree.into_iter().take(ROWS_AT_MOST);
    let mut columns = vec![column("FUNCTION", Kind::Text), column("RANKS", Kind::Text)];
    columns.extend(has_threads.then(|| column("THREADS", Kind::Integer)));
    let cells = |TreeRow { function, ranks, threads }| {
        let mut cells = row![function, ranks.unwrap_or_default()];
        cells.extend(has_threads.then(|| threads.map_or_else(|| "".into(), Value::from)));
        cells
    };
    (!notes.is_empty()).then(|| Section {
        title: "Call stacks of the ranks on this host".into(),
        columns,
        rows: rows.map(cells).collect(),
        notes,
    })
}

/// Whether a rank has stacks of several threads.
fn has_threads(now: &JobNow) -> bool {
    let ranks: BTreeSet<u32> = now.stacks.iter().flat_map(|stack| &stack.ranks).copied().collect();
    let threads: u64 = now.stacks.iter().map(|stack| stack.threads).sum();
    threads > ranks.len() as u64
}
