//! What can be exported from a page or a summary, without the profiles of the ranks: the tables of `gyan report
//! --format csv`, under names that tables of profiles do not use.

use super::{Head, chosen, directory, said, to_place};
use crate::cli::ExportOptions;
use crate::document::Data;
use crate::error::Error;
use crate::input::source::Source;
use crate::parts::{PARTS, ReportInput, SummaryTable};
use crate::{DONE, INCOMPLETE, say};

/// The one that is exported when none is named.
const SUMMARY: &str = "summary";

pub(super) fn export(source: &Source, options: &ExportOptions) -> Result<u8, Error> {
    let summary = source.summarize()?;
    let input = ReportInput::new(&summary, source.path());
    let tables = PARTS.iter().filter_map(|part| part.table.as_ref());
    let all: Vec<(&SummaryTable, Data)> =
        tables.filter_map(|table| Some((table, (table.rows)(&input)?))).collect();
    let there: Vec<&str> = all.iter().map(|table| table.0.name).collect();
    let remedy = format!("choose one of {}", there.join(", "));
    let calls = ["calls".to_owned()];
    let names = if options.calls { &calls } else { options.table.as_slice() };
    let tables = chosen(
        all,
        names,
        options,
        |table| table.0.name,
        |table| directory(options).is_some() || table.0.name == SUMMARY,
        |name| {
            let what = "is not in a summary, which has no single ranks";
            Error::new(format!("--table {name}"), what, &remedy)
        },
    )?;
    let complete = source.warn_of_gaps(&summary);
    say::warn(format!(
        "{}: a summary has no rows of single ranks; export the run directory for tables of their \
         profiles",
        source.path().display()
    ));
    let head = |(table, data): &(&SummaryTable, Data)| Head {
        name: table.name,
        about: table.about,
        columns: data.columns.to_vec(),
    };
    let heads: Vec<Head> = tables.iter().map(head).collect();
    let number = tables.len();
    to_place(options, &heads, |writers| {
        for ((_, data), mut writer) in tables.into_iter().zip(writers) {
            (data.rows)(&mut |row| writer.row(row))?;
            writer.finish()?;
        }
        Ok(())
    })?;
    said(options, || format!("{number} tables of the summary"))?;
    Ok(if complete { DONE } else { INCOMPLETE })
}
