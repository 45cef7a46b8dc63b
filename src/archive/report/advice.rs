//! What is to be done about a finding? What one of the latest jobs that have it was told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::archive::scan::{Wanted, files, read};
use crate::error::Error;

/// The advice for each finding, of the latest days on which one was given.
pub(super) fn of_findings(
    archive: &Path,
    days: [i32; 2],
    asked: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut advice = BTreeMap::new();
    for file in files(archive, "findings", days)?.iter().rev() {
        if advice.len() == asked.len() {
            break;
        }
        let columns = read(&file.path, &[Wanted::Text("finding"), Wanted::Text("advice")])?;
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
