//! What are the files of an archive, and how do rows get into them once?
//!
//! `TABLE/day=YYYY-MM-DD/batch-HASH.parquet` has the rows of a batch of records for a day, and `compact-HASH.parquet` those of
//! several files, which its metadata names. Of a batch, `jobs` is written last: where it is there, the day is complete.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::parser::parse_message_type;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use strum::VariantArray;

use super::store::{Store, StoredFile};
use super::tables::{
    ArchiveRows, FindingRow, FunctionRow, HostRow, JobRow, RecordRow, hexadecimal,
};
use crate::document::data::{Data, Row};
use crate::document::value::integer;
use crate::document::{Column, Value};
use crate::render::{Parquet, Rows, all_rows};

/// More small files than this in a day become one.
const SMALL_FILES_AT_MOST: usize = 16;
const SMALL_BYTES: u64 = 32 << 20;
/// The files that become one have at most so many bytes together, which are in memory.
const TOGETHER_BYTES: u64 = 128 << 20;
/// The key of the metadata that names the files that a file replaces.
const REPLACES: &str = "gyan.replaces";
/// What the name of such a file begins with.
const COMPACT: &str = "compact-";

/// The tables of an archive, in the order in which they are written.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, VariantArray)]
pub(crate) enum ArchiveTable {
    Functions,
    Findings,
    Hosts,
    Records,
    Jobs,
}

impl ArchiveTable {
    /// Its name, and what a row stands for.
    pub(crate) fn about(self) -> [&'static str; 2] {
        match self {
            ArchiveTable::Jobs => ["jobs", "job"],
            ArchiveTable::Functions => ["functions", "function of MPI in a job"],
            ArchiveTable::Findings => ["findings", "finding of a job"],
            ArchiveTable::Hosts => ["hosts", "host of a job"],
            ArchiveTable::Records => ["records", "record of a job"],
        }
    }

    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            ArchiveTable::Jobs => JobRow::COLUMNS,
            ArchiveTable::Functions => FunctionRow::COLUMNS,
            ArchiveTable::Findings => FindingRow::COLUMNS,
            ArchiveTable::Hosts => HostRow::COLUMNS,
            ArchiveTable::Records => RecordRow::COLUMNS,
        }
    }

    pub(crate) fn partition(self, day: &str) -> String {
        format!("{}/day={day}", self.about()[0])
    }

    /// A file with its rows of these jobs; none where they have no rows.
    fn encode(self, jobs: &[&ArchiveRows]) -> io::Result<Option<Vec<u8>>> {
        match self {
            ArchiveTable::Jobs => self.file(jobs.iter().map(|rows| &rows.job)),
            ArchiveTable::Functions => self.file(jobs.iter().flat_map(|rows| &rows.functions)),
            ArchiveTable::Findings => self.file(jobs.iter().flat_map(|rows| &rows.findings)),
            ArchiveTable::Hosts => self.file(jobs.iter().flat_map(|rows| &rows.hosts)),
            ArchiveTable::Records => self.file(jobs.iter().map(|rows| &rows.record)),
        }
    }

    fn file<'a, R: Row + 'a>(
        self,
        rows: impl Iterator<Item = &'a R>,
    ) -> io::Result<Option<Vec<u8>>> {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return Ok(None);
        }
        let mut file = Vec::new();
        all_rows(Data::new(rows), |columns| Parquet::new(&mut file, self.about(), columns))?;
        Ok(Some(file))
    }
}

/// What became of the jobs of a batch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Added {
    pub(crate) jobs: usize,
    /// That were there already.
    pub(crate) known: usize,
}

/// Half of a hash, in hexadecimal digits.
pub(super) fn hash_name(content: impl AsRef<[u8]>) -> String {
    let hash = Sha256::digest(content);
    hexadecimal(&hash[..8])
}

/// Adds the jobs of a batch, each once. A second attempt at the same batch, which follows from `hash`, ends with the same
/// files. Only one ingester may do this at a time.
pub(crate) fn add(store: &dyn Store, hash: &str, batch: Vec<ArchiveRows>) -> io::Result<Added> {
    let mut days: BTreeMap<String, Vec<ArchiveRows>> = BTreeMap::new();
    for rows in batch {
        days.entry(rows.day.clone()).or_default().push(rows);
    }
    let added = days.par_iter().map(|(day, rows)| add_day(store, hash, day, rows));
    added.try_reduce(Added::default, |one, other| {
        Ok(Added { jobs: one.jobs + other.jobs, known: one.known + other.known })
    })
}

fn add_day(store: &dyn Store, hash: &str, day: &str, all: &[ArchiveRows]) -> io::Result<Added> {
    let file = format!("batch-{hash}.parquet");
    let path = |table: ArchiveTable| format!("{}/{file}", table.partition(day));
    let there = store.list(&ArchiveTable::Jobs.partition(day))?;
    if there.iter().any(|of| of.name() == file) {
        return Ok(Added { jobs: all.len(), known: 0 });
    }
    let mut ids = HashSet::new();
    for file in &there {
        ids.extend(ids_in(store.read(&file.path)?)?);
    }
    let new: Vec<&ArchiveRows> =
        all.iter().filter(|rows| ids.insert(rows.job.id.clone())).collect();
    let encoded: Vec<(ArchiveTable, Option<Vec<u8>>)> = ArchiveTable::VARIANTS
        .par_iter()
        .map(|table| Ok((*table, table.encode(&new)?)))
        .collect::<io::Result<_>>()?;
    for (table, content) in encoded {
        match content {
            Some(content) => store.write(&path(table), &content)?,
            // An earlier attempt may have got as far as this.
            None if new.is_empty() => store.remove(&path(table))?,
            None => {}
        }
    }
    Ok(Added { jobs: new.len(), known: all.len() - new.len() })
}

fn ids_in(file: Vec<u8>) -> io::Result<Vec<String>> {
    let only = "message gyan { REQUIRED BYTE_ARRAY id (STRING); }";
    let only = parse_message_type(only).map_err(io_error)?;
    let reader = SerializedFileReader::new(Bytes::from(file)).map_err(io_error)?;
    let mut ids = Vec::new();
    for row in reader.get_row_iter(Some(only)).map_err(io_error)? {
        for (_, field) in row.map_err(io_error)?.into_columns() {
            if let Field::Str(id) = field {
                ids.push(id);
            }
        }
    }
    Ok(ids)
}

/// The paths of the files whose rows are in one of `files`, too: a reader leaves them out.
pub(crate) fn replaced(store: &dyn Store, files: &[StoredFile]) -> io::Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for file in files.iter().filter(|file| file.name().starts_with(COMPACT)) {
        let content = Bytes::from(store.read(&file.path)?);
        let reader = SerializedFileReader::new(content).map_err(io_error)?;
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        let names = metadata.into_iter().flatten().find(|of| of.key == REPLACES);
        let names = names.and_then(|names| names.value.as_deref()).unwrap_or("[]");
        let names: Vec<String> = serde_json::from_str(names)?;
        let directory = file.path.strip_suffix(file.name()).unwrap_or_default();
        all.extend(names.into_iter().map(|name| format!("{directory}{name}")));
    }
    Ok(all)
}

/// Removes the files whose rows are in another one, too.
pub(crate) fn repair(store: &dyn Store, partition: &str) -> io::Result<()> {
    for path in replaced(store, &store.list(partition)?)? {
        store.remove(&path)?;
    }
    Ok(())
}

/// Makes one of the small files of a table and day, if they are many. `begin` is told the partition before anything changes, so
/// that what is begun can be repaired. Returns the number of files that became one.
pub(crate) fn compact(
    store: &dyn Store,
    table: ArchiveTable,
    day: &str,
    begin: impl FnOnce(&str) -> io::Result<()>,
) -> io::Result<usize> {
    let partition = table.partition(day);
    // A batch that is not complete may be written once more, under the same name.
    let complete = store.list(&ArchiveTable::Jobs.partition(day))?;
    let complete: BTreeSet<&str> = complete.iter().map(StoredFile::name).collect();
    let is_complete = |name: &str| name.starts_with(COMPACT) || complete.contains(name);
    let mut small = store.list(&partition)?;
    small.retain(|file| file.bytes < SMALL_BYTES && is_complete(file.name()));
    if small.len() <= SMALL_FILES_AT_MOST {
        return Ok(0);
    }
    let mut bytes = 0;
    small.retain(|file| {
        bytes += file.bytes;
        bytes <= TOGETHER_BYTES
    });
    let names: Vec<&str> = small.iter().map(StoredFile::name).collect();
    let mut content = Vec::new();
    let mut writer = Box::new(Parquet::new(&mut content, table.about(), table.columns())?);
    writer.note(REPLACES, serde_json::to_string(&names)?);
    for file in &small {
        each_row(store.read(&file.path)?, table.columns(), |row| writer.row(row))?;
    }
    writer.finish()?;
    begin(&partition)?;
    store.write(&format!("{partition}/{COMPACT}{}.parquet", hash_name(&content)), &content)?;
    for file in &small {
        store.remove(&file.path)?;
    }
    Ok(small.len())
}

/// Hands on the rows of a file, as cells of these columns; those that an earlier version of gyan did not write are nothing.
pub(crate) fn each_row(
    file: Vec<u8>,
    columns: &[Column],
    mut take: impl FnMut(&[Value]) -> io::Result<()>,
) -> io::Result<()> {
    let reader = SerializedFileReader::new(Bytes::from(file)).map_err(io_error)?;
    let schema = Arc::clone(&reader.metadata().file_metadata().schema_descr_ptr());
    let place = |column: &Column| schema.columns().iter().position(|of| of.name() == column.name);
    let places: Vec<Option<usize>> = columns.iter().map(place).collect();
    for row in reader.get_row_iter(None).map_err(io_error)? {
        let fields = row.map_err(io_error)?.into_columns();
        let cell = |place: &Option<usize>| {
            place
                .and_then(|place| fields.get(place))
                .map_or(Value::Nothing, |(_, field)| cell(field))
        };
        let row: Vec<Value> = places.iter().map(cell).collect();
        take(&row)?;
    }
    Ok(())
}

fn cell(field: &Field) -> Value<'_> {
    match field {
        Field::Str(text) => text.into(),
        Field::Double(double) => (*double).into(),
        Field::Long(number) | Field::TimestampMillis(number) => integer(*number).into(),
        _ => Value::Nothing,
    }
}

fn io_error(error: ParquetError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
