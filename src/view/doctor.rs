//! What `gyan doctor` shows: what was looked at, what the library exports, and what would show more.

use gyan_results::{Check, Diagnosis, Exports, Switch, Verdict};
use textwrap::{Options, WordSplitter};

use super::{Align, Column, Section, View, library_line};

/// Where a finding goes on in the next line.
const FINDING: usize = 76;
/// The same for a column of the table of monitoring.
const CELL: usize = 36;

pub(crate) fn doctor(diagnosis: &Diagnosis) -> View {
    let mut sections = vec![checks(&diagnosis.checks)];
    if let Some(exports) = &diagnosis.exports {
        sections.push(library(diagnosis, exports));
    }
    if !diagnosis.switches.is_empty() {
        sections.push(monitoring(&diagnosis.switches));
    }
    let title = match diagnosis.obstacles().count() {
        0 => "Nothing is in the way of gyan".to_owned(),
        1 => "1 thing is in the way of gyan".to_owned(),
        number => format!("{number} things are in the way of gyan"),
    };
    let mut view = View { title, subtitle: Vec::new(), sections };
    view.make_printable();
    view
}

fn lines(text: &str, width: usize) -> Vec<String> {
    let options = Options::new(width).word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(text, options.break_words(false)).into_iter().map(Into::into).collect()
}

fn columns<const N: usize>(titles: [&'static str; N]) -> Vec<Column> {
    titles.into_iter().map(|title| Column { title, align: Align::Left }).collect()
}

fn checks(checks: &[Check]) -> Section {
    let rows = checks.iter().flat_map(|check| {
        let mark = match check.verdict {
            Verdict::Ok => "ok",
            Verdict::Note => "--",
            Verdict::Obstacle => "NO",
        };
        let mut found = lines(&check.finding, FINDING);
        if let Some(remedy) = &check.remedy {
            found.extend(lines(&format!("do: {remedy}"), FINDING));
        }
        found.into_iter().enumerate().map(move |(at, line)| {
            let first = |text: &str| if at == 0 { text.to_owned() } else { String::new() };
            vec![first(mark), first(&check.what), line]
        })
    });
    Section {
        title: "Looked at".into(),
        columns: columns(["", "WHAT", "FOUND"]),
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

fn library(diagnosis: &Diagnosis, exports: &Exports) -> Section {
    let row = |what: &str, number: String| vec![what.to_owned(), number];
    let pvars = match exports.pvars - exports.pvars_after_init {
        0 => exports.pvars.to_string(),
        gone => format!("{}, of which {gone} are gone after MPI_Init", exports.pvars),
    };
    let events = exports.events.map_or("no interface for them".into(), |n| n.to_string());
    let (title, path) = diagnosis.mpi.as_ref().map_or_else(Default::default, |mpi| {
        (library_line(mpi), format!("{}, {} interface", mpi.library_path, mpi.abi))
    });
    Section {
        title,
        columns: columns(["EXPORTS", "HOW MANY"]),
        rows: vec![
            row("performance variables", pvars),
            row("control variables", exports.cvars.to_string()),
            row("categories", exports.categories.to_string()),
            row("types of events", events),
        ],
        notes: std::iter::once(path)
            .chain(diagnosis.advice.iter().map(|advice| format!("to see more: {advice}")))
            .collect(),
    }
}

fn monitoring(switches: &[Switch]) -> Section {
    let rows = switches.iter().flat_map(|switch| {
        let state = match (switch.available, switch.on) {
            (false, _) => "not built in",
            (true, false) => "off",
            (true, true) => "on",
        };
        let (gives, costs) = (lines(&switch.gives, CELL), lines(&switch.costs, CELL));
        (0..gives.len().max(costs.len())).map(move |at| {
            let first = |text: &str| if at == 0 { text.to_owned() } else { String::new() };
            let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
            vec![first(&switch.name), first(state), line(&gives), line(&costs)]
        })
    });
    let off = switches.iter().filter(|switch| switch.available && !switch.on);
    let missing = switches.iter().filter(|switch| !switch.available);
    let notes = off
        .map(|switch| format!("turn it on: gyan run --enable {}", switch.name))
        .chain(missing.map(|switch| format!("{} needs {}", switch.name, switch.needs)));
    Section {
        title: "Monitoring that this library leaves off by default".into(),
        columns: columns(["NAME", "STATE", "GIVES", "COSTS"]),
        rows: rows.collect(),
        notes: notes.collect(),
    }
}
