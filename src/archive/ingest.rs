//! How do records get from a spool into an archive, each once?
//!
//! Batch by batch, and one ingester at a time: the records of a batch are read, what is in order is noted as a whole in a directory
//! of the ingester's own, they leave the spool, their rows are written, and the note is removed. Whoever finds a note writes its
//! rows, which gives the same files.

use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::SystemTime;

use gyan_results::{JobRecord, ReadError};
use rayon::prelude::*;
use strum::VariantArray;

use super::data_set::{ArchiveTable, add, compact, hash_name, repair};
use super::spool::{Refused, Spool, WaitingRecord};
use super::store::Store;
use super::tables::{ArchiveRows, Refusal};

/// Records of a batch: with their rows, some hundred megabytes.
const BATCH: usize = 4096;
/// What is noted of a batch, and of files that become one.
const NOTED_BATCH: &str = "batch";
const NOTED_COMPACTION: &str = "compaction";

/// What an ingester did.
#[derive(Debug, Default)]
pub(crate) struct Ingested {
    pub(crate) jobs: usize,
    /// Jobs that were there already.
    pub(crate) known: usize,
    pub(crate) refused: Refused,
    /// Records for which there is another time.
    pub(crate) left: usize,
    /// Small files that became fewer.
    pub(crate) compacted: usize,
}

/// The rows of a record in a file of `owner`.
pub(crate) fn rows_of(owner: u32, bytes: &[u8], now: SystemTime) -> Result<ArchiveRows, Refusal> {
    let record = JobRecord::from_bytes(bytes).map_err(|error| match error {
        ReadError::Newer { .. } => Refusal::Newer,
        _ => Refusal::Damaged,
    })?;
    // Anybody can write a record: one that a rule fails with must not keep those of others out.
    let rows = AssertUnwindSafe(|| ArchiveRows::new(&record, owner, now));
    catch_unwind(rows).unwrap_or(Err(Refusal::Fails))
}

/// Adds what is in the spool to the archive, at most so many records of each user.
///
/// # Errors
/// When the spool or the archive cannot be read or written. What was done until then stays, and the next ingester goes on from
/// there.
pub(crate) fn ingest(
    spool: &Spool,
    store: &dyn Store,
    most_of_user: usize,
) -> io::Result<Ingested> {
    let mut done = Ingested::default();
    let mut days = BTreeSet::new();
    {
        let _locks = (spool.lock()?, store.lock()?);
        finish(spool, store, &mut done, &mut days)?;
    }
    let waiting = spool.waiting(most_of_user)?;
    done.left = waiting.left;
    for records in waiting.records.chunks(BATCH) {
        let _locks = (spool.lock()?, store.lock()?);
        finish(spool, store, &mut done, &mut days)?;
        take(spool, store, records, &mut done, &mut days)?;
    }
    for day in days {
        for table in ArchiveTable::VARIANTS {
            let _locks = (spool.lock()?, store.lock()?);
            finish(spool, store, &mut done, &mut BTreeSet::new())?;
            let begin = |partition: &str| spool.note(NOTED_COMPACTION, partition.as_bytes());
            let files = compact(store, *table, &day, begin)?;
            if files > 0 {
                spool.forget(NOTED_COMPACTION)?;
            }
            done.compacted += files;
        }
    }
    Ok(done)
}

/// Does what is noted.
fn finish(
    spool: &Spool,
    store: &dyn Store,
    done: &mut Ingested,
    days: &mut BTreeSet<String>,
) -> io::Result<()> {
    if let Some(partition) = spool.noted(NOTED_COMPACTION)? {
        repair(store, &String::from_utf8_lossy(&partition))?;
        spool.forget(NOTED_COMPACTION)?;
    }
    let Some(noted) = spool.noted(NOTED_BATCH)? else { return Ok(()) };
    let now = SystemTime::now();
    // All were in order when they were noted.
    let rows: Vec<ArchiveRows> = noted_records(&noted)
        .par_iter()
        .filter_map(|(owner, bytes)| rows_of(*owner, bytes, now).ok())
        .collect();
    write(spool, store, &hash_name(&noted), rows, done, days)
}

fn write(
    spool: &Spool,
    store: &dyn Store,
    hash: &str,
    rows: Vec<ArchiveRows>,
    done: &mut Ingested,
    days: &mut BTreeSet<String>,
) -> io::Result<()> {
    days.extend(rows.iter().map(|rows| rows.day.clone()));
    let added = add(store, hash, rows)?;
    spool.forget(NOTED_BATCH)?;
    done.jobs += added.jobs;
    done.known += added.known;
    Ok(())
}

/// Takes records out of the spool, notes those that are in order, and writes their rows.
fn take(
    spool: &Spool,
    store: &dyn Store,
    records: &[WaitingRecord],
    done: &mut Ingested,
    days: &mut BTreeSet<String>,
) -> io::Result<()> {
    let now = SystemTime::now();
    let read: Vec<_> = records
        .par_iter()
        .map(|record| {
            let (owner, bytes) = match spool.read(record)? {
                Ok(read) => read,
                Err(refused) => return Some(Err(refused)),
            };
            let rows = rows_of(owner, &bytes, now);
            Some(rows.map(|rows| (owner, bytes, rows)).map_err(|refusal| (owner, refusal)))
        })
        .collect();
    let (mut noted, mut all, mut taken, mut refused) =
        <(Vec<u8>, Vec<_>, Vec<_>, Vec<_>)>::default();
    for (record, read) in records.iter().zip(read) {
        match read {
            Some(Ok((owner, bytes, rows))) => {
                note(&mut noted, owner, &bytes);
                all.push(rows);
                taken.push(record);
            }
            Some(Err((owner, refusal))) => refused.push((record, owner, refusal)),
            None => {}
        }
    }
    spool.refuse(&refused)?;
    for (_, owner, refusal) in refused {
        *done.refused.entry((owner, refusal)).or_default() += 1;
    }
    if taken.is_empty() {
        return Ok(());
    }
    spool.note(NOTED_BATCH, &noted)?;
    spool.remove(taken.into_iter())?;
    write(spool, store, &hash_name(&noted), all, done, days)
}

/// A record in a note: its owner and its length, both of four bytes, and its content.
fn note(noted: &mut Vec<u8>, owner: u32, bytes: &[u8]) {
    // At most 10,000.
    let length = u32::try_from(bytes.len()).unwrap_or_default();
    noted.extend(owner.to_le_bytes());
    noted.extend(length.to_le_bytes());
    noted.extend(bytes);
}

fn noted_records(mut noted: &[u8]) -> Vec<(u32, &[u8])> {
    let mut records = Vec::new();
    while let Some((owner, rest)) = noted.split_first_chunk() {
        let Some((length, rest)) = rest.split_first_chunk() else { break };
        let Some((bytes, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)
        else {
            break;
        };
        records.push((u32::from_le_bytes(*owner), bytes));
        noted = rest;
    }
    records
}
