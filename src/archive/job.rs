//! Which record did a job leave?

use gyan_results::JobRecord;

use crate::archive::data_set::ArchiveTable;
use crate::archive::days::LAST_DAY;
use crate::archive::scan::{TableFile, Wanted, read, table_files};
use crate::archive::store::Store;
use crate::error::Error;

#[derive(Debug)]
pub(crate) struct JobName<'a> {
    /// Its id in the archive, or its number in the batch system.
    pub(crate) job: &'a str,
    pub(crate) step: Option<&'a str>,
    pub(crate) cluster: Option<&'a str>,
}

/// The record of the latest job of that name. Batch systems begin again with small numbers now and then.
pub(crate) fn record(store: &dyn Store, name: &JobName) -> Result<JobRecord, Error> {
    let mut found: Option<(TableFile, String, f64)> = None;
    for file in table_files(store, ArchiveTable::Jobs, [0, LAST_DAY])?.into_iter().rev() {
        if found.as_ref().is_some_and(|(before, ..)| file.day < before.day) {
            break;
        }
        if let Some((id, started)) = latest(store, &file, name)?
            && found.as_ref().is_none_or(|(.., other)| *other < started)
        {
            found = Some((file, id, started));
        }
    }
    let Some((file, id, _)) = found else {
        let remedy = "a job that left no record is unknown; jobs/*/*.parquet has those that did";
        return Err(Error::new(format!("job {}", name.job), "is not in the archive", remedy));
    };
    for file in table_files(store, ArchiveTable::Records, [file.day; 2])? {
        let columns = read(store, &file.path, &[Wanted::Text("id"), Wanted::Text("record")])?;
        let [ids, records] = &columns.texts[..] else { continue };
        let row = (0..columns.rows).find(|row| ids.text(*row) == Some(&id));
        if let Some(text) = row.and_then(|row| records.text(row)) {
            let remedy = "read it with a gyan that is as new as the one that wrote it";
            return JobRecord::from_json(text.as_bytes())
                .map_err(|error| Error::new(format!("record {id}"), error, remedy));
        }
    }
    let why = "the archive has its row in jobs, but not its record";
    Err(Error::new(format!("job {}", name.job), why, "ask DuckDB or the like for the row"))
}

/// The id of the latest job of that name in a file, and its start.
fn latest(
    store: &dyn Store,
    file: &TableFile,
    name: &JobName,
) -> Result<Option<(String, f64)>, Error> {
    let texts = ["id", "job", "step", "cluster"].map(Wanted::Text);
    let wanted: Vec<Wanted> = texts.into_iter().chain([Wanted::Number("started")]).collect();
    let columns = read(store, &file.path, &wanted)?;
    let ([ids, jobs, steps, clusters], [started]) = (&columns.texts[..], &columns.numbers[..])
    else {
        return Ok(None);
    };
    let is_meant = |row: &usize| {
        let is_named = ids.text(*row) == Some(name.job) || jobs.text(*row) == Some(name.job);
        is_named
            && name.step.is_none_or(|step| steps.text(*row) == Some(step))
            && name.cluster.is_none_or(|cluster| clusters.text(*row) == Some(cluster))
    };
    let found = (0..columns.rows).filter(is_meant);
    let latest = found.max_by(|one, other| started[*one].total_cmp(&started[*other]));
    Ok(latest.and_then(|row| Some((ids.text(row)?.to_owned(), started[row]))))
}
