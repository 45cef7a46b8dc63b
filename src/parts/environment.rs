//! The control variables that a run recorded: what its MPI library was set to.

use gyan_results::{CvarSetting, Summary};

use super::{Part, PartOption, ReportInput, SummaryTable, headings};
use crate::document::data::columns;
use crate::document::value::{line, row};
use crate::document::{Data, Document, Presentation, Section, View, texts};

/// Control variables.
pub(super) const ENVIRONMENT: Part = Part {
    option: Some(PartOption {
        conflicts_with: Some("all"),
        ..PartOption::new(
            "environment",
            "The control variables that the run recorded, instead of the report",
            |of| Ok(show(of)),
        )
    }),
    table: Some(SummaryTable::new::<&CvarSetting>(
        "summary_environment",
        "control variable",
        |of| Some(Data::new(&of.summary.cvars)),
    )),
    block: None,
};

fn show<'r>(of: &'r ReportInput) -> Presentation<'r> {
    let cvars = &of.summary.cvars;
    Presentation { view: view(of.summary), rows: Data::new(cvars), document: Document::new(cvars) }
}

pub(super) fn view(summary: &Summary) -> View<'_> {
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

columns! { cvar in CvarSetting;
    required(name: Text) => &cvar.name,
    column(value: Text) => cvar.value.as_ref(),
    column(requested: Text) => cvar.requested.as_ref(),
    column(set_by: Text) => cvar.set_by.as_ref(),
}
