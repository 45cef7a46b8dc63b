//! What `gyan doctor` shows: what it checked, what the library exports, and what would show more.

use gyan_results::{Check, Diagnosis, Exports, Switch, Verdict};

use crate::document::value::{Value, line, row};
use crate::document::{Kind, Section, View, column, texts};
use crate::parts::headings;

pub(crate) fn doctor(diagnosis: &Diagnosis) -> View<'_> {
    let mut sections = vec![checks(&diagnosis.checks)];
    if let Some(exports) = &diagnosis.exports {
        sections.push(library(diagnosis, exports));
    }
    if !diagnosis.switches.is_empty() {
        sections.push(monitoring(&diagnosis.switches));
    }
    let title = match diagnosis.obstacles().count() {
        0 => "Nothing is in the way of gyan".into(),
        1 => "1 thing is in the way of gyan".into(),
        number => line![number, " things are in the way of gyan"],
    };
    View { title, subtitle: Vec::new(), sections }
}

fn checks(checks: &[Check]) -> Section<'_> {
    let rows = checks.iter().flat_map(|check| {
        let mark = match check.verdict {
            Verdict::Ok => "ok",
            Verdict::Note => "--",
            Verdict::Obstacle => "NO",
        };
        let found = row![mark, &check.what, &check.finding];
        let remedy = check.remedy.as_ref().map(|remedy| row!["", "", line!["do: ", remedy]]);
        std::iter::once(found).chain(remedy)
    });
    let mut columns = texts(["", "WHAT"]);
    columns.push(column("FOUND", Kind::Prose));
    Section { title: "Looked at".into(), columns, rows: rows.collect(), notes: Vec::new() }
}

fn library<'a>(diagnosis: &'a Diagnosis, exports: &Exports) -> Section<'a> {
    let pvars: Value = match exports.pvars - exports.pvars_after_init {
        0 => exports.pvars.into(),
        gone => line![exports.pvars, ", of which ", gone, " are gone after MPI_Init"],
    };
    let events = exports.events.map_or("no interface for them".into(), Value::from);
    let mut notes = Vec::new();
    let mut title = Value::from("");
    if let Some(mpi) = &diagnosis.mpi {
        title = headings::library(mpi).into();
        notes.push(line![&mpi.library_path, ", ", &mpi.abi, " interface"]);
    }
    notes.extend(diagnosis.advice.iter().map(|advice| line!["to see more: ", advice]));
    Section {
        title,
        columns: texts(["EXPORTS", "HOW MANY"]),
        rows: vec![
            row!["performance variables", pvars],
            row!["control variables", exports.cvars],
            row!["categories", exports.categories],
            row!["types of events", events],
        ],
        notes,
    }
}

fn monitoring(switches: &[Switch]) -> Section<'_> {
    let rows = switches.iter().map(|switch| {
        let state = match (switch.available, switch.on) {
            (false, _) => "not built in",
            (true, false) => "off",
            (true, true) => "on",
        };
        row![&switch.name, state, &switch.gives, &switch.costs]
    });
    let off = switches.iter().filter(|switch| switch.available && !switch.on);
    let missing = switches.iter().filter(|switch| !switch.available);
    let notes = off
        .map(|switch| line!["turn it on: gyan run --enable ", &switch.name])
        .chain(missing.map(|switch| line![&switch.name, " needs ", &switch.needs]));
    let mut columns = texts(["NAME", "STATE"]);
    columns.extend(["GIVES", "COSTS"].map(|name| column(name, Kind::Prose)));
    Section {
        title: "Monitoring that this library leaves off by default".into(),
        columns,
        rows: rows.collect(),
        notes: notes.collect(),
    }
}
