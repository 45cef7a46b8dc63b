//! The control variables that a run recorded: what its MPI library was set to.

use gyan_results::Summary;

use super::value::{line, row};
use super::{Section, View, headings, texts};

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
