//! What is to be done about a finding? What one of the latest jobs that have it was told.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::data_set::ArchiveTable;
use crate::archive::scan::{Wanted, read, table_files};
use crate::archive::store::Store;
use crate::error::Error;

/// The advice for each finding, of the latest days on which one was given.
pub(super) fn of_findings(
    store: &dyn Store,
    days: [i32; 2],
    asked: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut advice = BTreeMap::new();
    for file in table_files(store, ArchiveTable::Findings, days)?.iter().rev() {
        if advice.len() == asked.len() {
            break;
        }
        let columns = read(store, &file.path, &[Wanted::Text("finding"), Wanted::Text("advice")])?;
        let [finding, text] = &columns.texts[..] else { break };
        for row in 0..columns.rows {
            if let (Some(finding), Some(text)) = (finding.text(row), text.text(row))
                && asked.contains(finding)
                && !advice.contains_key(finding)
            {
                advice.insert(finding.to_owned(), text.to_owned());
            }
        }
    }
    Ok(advice)
}
