//! What can be exported from a page or a summary, without the profiles of the ranks: the tables of `gyan report
//! --format csv`, under names that tables of profiles do not use.

use wildmatch::WildMatch;

use super::{Head, chosen, said, to_place};
use crate::cli::ExportOptions;
use crate::commands::report::Concluded;
use crate::document::data::Data;
use crate::error::Error;
use crate::input::source::Source;
use crate::parts::machine::rows::Machines;
use crate::parts::queues::rows::Queues;
use crate::{DONE, INCOMPLETE, parts, say};

/// The one that is exported when none is named.
const SUMMARY: &str = "summary";

pub(super) fn export(source: &Source, options: &ExportOptions) -> Result<u8, Error> {
    let summary = source.summarize()?;
    let concluded = Concluded::of(&summary, source.path(), true);
    let histograms = parts::histograms(&summary, &WildMatch::new("*"));
    let queues = Queues {
        metrics: &concluded.queues,
        messages: &summary.messages,
        events: &summary.events,
        watches: &concluded.watched,
    };
    let machines = Machines::of(&summary);
    let all = [
        (
            SUMMARY,
            "measure over the ranks",
            Some(parts::report::rows::summary(&summary, &concluded.watched)),
        ),
        (
            "summary_findings",
            "finding",
            Some(parts::findings::rows::findings(&concluded.answers.findings)),
        ),
        (
            "summary_histograms",
            "bar of a histogram over the ranks",
            Some(parts::histogram::rows::histograms(&histograms)),
        ),
        (
            "summary_sites",
            "place in the program",
            concluded.called.as_ref().map(parts::sites::rows::sites),
        ),
        (
            "summary_waiting",
            "collective and communicator",
            Some(parts::waiting::rows::waiting(&summary.waiting)),
        ),
        ("summary_peers", "pair of ranks", Some(parts::peers::rows::peers(&summary))),
        ("summary_queues", "measure of a queue", Some(parts::queues::rows::queues(&queues))),
        (
            "summary_machine",
            "host, processor or network",
            machines.as_ref().map(parts::machine::rows::machine),
        ),
        ("summary_environment", "control variable", Some(parts::environment::rows(&summary.cvars))),
    ];
    let all: Vec<(&str, &str, Data)> =
        all.into_iter().filter_map(|(name, about, data)| Some((name, about, data?))).collect();
    let there: Vec<&str> = all.iter().map(|table| table.0).collect();
    let remedy = format!("choose one of {}", there.join(", "));
    let calls = ["calls".to_owned()];
    let names = if options.calls { &calls } else { options.table.as_slice() };
    let tables = chosen(
        all,
        names,
        SUMMARY,
        options,
        |table| table.0,
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
    let head = |(name, about, data): &(&'static str, &'static str, Data)| Head {
        name,
        about,
        columns: data.columns.to_vec(),
    };
    let heads: Vec<Head> = tables.iter().map(head).collect();
    let number = tables.len();
    to_place(options, &heads, |writers| {
        for ((_, _, data), mut writer) in tables.into_iter().zip(writers) {
            (data.rows)(&mut |row| writer.row(row))?;
            writer.finish()?;
        }
        Ok(())
    })?;
    said(options, || format!("{number} tables of the summary"))?;
    Ok(if complete { DONE } else { INCOMPLETE })
}
