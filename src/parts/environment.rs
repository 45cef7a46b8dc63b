//! The control variables that a run recorded: what its MPI library was set to.

use gyan_results::{CvarSetting, Summary};

use crate::document::data::{Data, TakeRow};
use crate::document::value::{cells, line, row};
use crate::document::{Column, Kind, Section, View, column, required, texts};
use crate::parts::headings;

pub(crate) fn environment(summary: &Summary) -> View<'_> {
    let rows = summary.cvars.iter().map(|cvar| {
        row![&cvar.name, cvar.value.as_ref(), cvar.requested.as_ref(), cvar.set_by.as_ref()]
    });
    let mut notes = Vec::new();
    if summary.cvars.is_empty() {
        notes.push(
            "none: nothing is set in the environment, in a parameter file or by GYAN_CVARS".into(),
        );
    }
    let section = Section {
        title: line!["Control variables: ", summary.cvars.len(), " recorded"],
        columns: texts(["Variable", "Value", "Requested", "Set by"]),
        rows: rows.collect(),
        notes,
    };
    View {
        title: headings::command(&summary.job).into(),
        subtitle: vec![line![headings::library(&summary.mpi), ", job ", &summary.job.id]],
        sections: vec![section],
    }
}

/// The control variables of a run.
pub(crate) fn rows(cvars: &[CvarSetting]) -> Data<'_> {
    const COLUMNS: [Column; 4] = [
        required("name", Kind::Text),
        column("value", Kind::Text),
        column("requested", Kind::Text),
        column("set_by", Kind::Text),
    ];
    let rows = move |take: &mut TakeRow| {
        cvars.iter().try_for_each(|cvar| {
            let texts = [&cvar.value, &cvar.requested, &cvar.set_by].map(Option::as_ref);
            let [value, requested, set_by] = texts;
            take(&cells![&cvar.name, value, requested, set_by])
        })
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}
