//! The control variables that a run recorded: what its MPI library was set to.

use gyan_results::{CvarSetting, Summary};

use super::{Align, Column, Section, View, command, library_line};

pub(crate) fn environment(summary: &Summary) -> View {
    let row = |cvar: &CvarSetting| {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        vec![cvar.name.clone(), text(&cvar.value), text(&cvar.requested), text(&cvar.set_by)]
    };
    let titles = ["Variable", "Value", "Requested", "Set by"];
    let mut notes = Vec::new();
    if summary.cvars.is_empty() {
        notes.push(
            "none: nothing is set in the environment, in a parameter file or by GYAN_CVARS"
                .to_owned(),
        );
    }
    let section = Section {
        title: format!("Control variables: {} recorded", summary.cvars.len()),
        columns: titles.map(|title| Column { title, align: Align::Left }).into(),
        rows: summary.cvars.iter().map(row).collect(),
        notes,
    };
    let mut view = View {
        title: command(&summary.job),
        subtitle: vec![format!("{}, job {}", library_line(&summary.mpi), summary.job.id)],
        sections: vec![section],
    };
    view.make_printable();
    view
}
