//! What a site keeps of a job: schema `gyan.record/1`. A record is a summary that is shortened until it fits into
//! [`RECORD_BYTES`], with whose job it was, compressed.
//!
//! A file is a line with the schema, and JSON as a zlib stream (RFC 1950). What was left out of the summary is named, so
//! that nothing that is missing looks like nothing.

use std::io::{self, Write};

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit};
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};

use crate::data::{Data, Serialize, derive};
use crate::read::{ReadError, parse};
use crate::{CoverageSummary, RECORD_SCHEMA, Summary};

/// How the name of a file with a record ends, after the last dot.
pub const RECORD_SUFFIX: &str = "gyan-record";
/// The most bytes of a record.
pub const RECORD_BYTES: usize = 10_000;
/// The most bytes that a reader makes of a record: far more than any that gyan writes.
const UNPACKED_AT_MOST: usize = 1 << 20;
/// The most hosts of a record that does not have all of them.
pub const RECORD_HOSTS: usize = 64;
/// How hard to compress, from 0 to 10.
const LEVEL: u8 = 6;
/// The significant decimal digits of numbers that are not integers.
const DIGITS: i32 = 5;

/// A job, as a site keeps it.
#[derive(Data!, Serialize)]
pub struct JobRecord {
    /// [`RECORD_SCHEMA`].
    pub schema: String,
    /// The name that the site gives the machine.
    pub cluster: String,
    /// The id of the job in the batch system; the launcher's where there is none.
    pub job: String,
    /// The step of the job, where the batch system has steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The number of the user, as the process knows it. A reader believes the owner of the file.
    pub user: u32,
    /// The file name of the executable, without its directory.
    pub program: String,
    /// What was left out of the summary, in the order in which it was: see [`Shortening`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Shortening>,
    /// The job, as far as it fits.
    pub summary: Summary,
}

/// A way to shorten a summary. Those that are not needed for the size are for privacy.
#[derive(Data!, Serialize, Copy, Eq, Ord, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub enum Shortening {
    /// Without places in the code, control variables, warnings, names of files, performance variables and single pairs of ranks.
    Private,
    /// Without the critical path.
    CriticalPath,
    /// Without what each communicator waited.
    Communicators,
    /// Histograms only of the ten functions with the most time.
    Histograms,
    /// Only the 16 phases with the most time.
    Phases,
    /// Only the 24 functions with the most time.
    Functions24,
    /// Only the 64 hosts of which the share in MPI is farthest from the mean.
    Hosts,
    /// Without traffic.
    Traffic,
    /// Only the 10 functions with the most time, and no phases.
    Functions10,
    /// The first ten of each list of ranks, hosts and machines.
    Lists,
}

impl Shortening {
    /// What is left out only where the record would be too long, in this order.
    const FOR_SIZE: [Shortening; 9] = [
        Shortening::CriticalPath,
        Shortening::Communicators,
        Shortening::Histograms,
        Shortening::Phases,
        Shortening::Functions24,
        Shortening::Hosts,
        Shortening::Traffic,
        Shortening::Functions10,
        Shortening::Lists,
    ];

    fn apply(self, summary: &mut Summary) {
        match self {
            Shortening::Private => private(summary),
            Shortening::CriticalPath => summary.critical_path = None,
            Shortening::Communicators => {
                summary.waiting.iter_mut().for_each(|waiting| waiting.communicators.clear());
            }
            Shortening::Histograms => {
                longest_first(summary);
                for call in summary.calls.iter_mut().skip(10) {
                    call.time_histogram.clear();
                    call.size_histogram.clear();
                    call.size_histogram_bytes.clear();
                }
            }
            Shortening::Phases => {
                let time = |phase: &crate::PhaseSummary| phase.time_s.sum.as_f64();
                summary.phases.sort_by(|one, other| time(other).total_cmp(&time(one)));
                summary.phases.truncate(16);
            }
            Shortening::Functions24 => functions(summary, 24),
            Shortening::Hosts => farthest_hosts(summary, RECORD_HOSTS),
            Shortening::Traffic => summary.peers.clear(),
            Shortening::Functions10 => {
                functions(summary, 10);
                summary.phases.clear();
            }
            Shortening::Lists => lists(summary, 10),
        }
    }
}

/// Leaves out what is nobody's business but the user's, and what a site's record never has room for.
fn private(summary: &mut Summary) {
    summary.sites = None;
    if let Some(openmp) = &mut summary.openmp {
        openmp.addresses.clear();
        openmp.load_map.clear();
        openmp.regions.clear();
    }
    let resources = summary.resources.as_mut();
    if let Some(openmp) = resources.and_then(|resources| resources.openmp.as_mut()) {
        openmp.settings.clear();
    }
    summary.watches.clear();
    summary.cvars.clear();
    summary.warnings.clear();
    summary.coverage = CoverageSummary::default();
    summary.pvars.clear();
    summary.samples.clear();
    summary.events.clear();
    summary.mpi.library_path.clear();
    summary.ranks.left_out.clear();
    if let Some(waiting) = &mut summary.message_waiting {
        waiting.addresses.clear();
        waiting.load_map.clear();
        waiting.pairs.clear();
    }
    if let Some(path) = &mut summary.critical_path {
        path.addresses.clear();
        path.load_map.clear();
    }
    for traffic in &mut summary.peers {
        traffic.matrix.clear();
        traffic.heaviest.clear();
        traffic.ranks.clear();
    }
}

fn longest_first(summary: &mut Summary) {
    let time =
        |call: &crate::CallSummary| call.time_s.as_ref().map_or(0.0, |time| time.sum.as_f64());
    summary.calls.sort_by(|one, other| time(other).total_cmp(&time(one)));
}

fn functions(summary: &mut Summary, most: usize) {
    longest_first(summary);
    summary.calls.truncate(most);
    summary.waiting.truncate(most);
}

fn farthest_hosts(summary: &mut Summary, most: usize) {
    let share = |host: &crate::HostSummary| host.in_mpi.map(|share| share.avg);
    let (number, sum) = summary
        .by_host
        .iter()
        .filter_map(share)
        .fold((0.0, 0.0), |(number, sum), share| (number + 1.0, sum + share));
    let mean = if number > 0.0 { sum / number } else { 0.0 };
    let distance =
        |host: &crate::HostSummary| share(host).map_or(0.0, |share| (share - mean).abs());
    summary.by_host.sort_by(|one, other| distance(other).total_cmp(&distance(one)));
    summary.by_host.truncate(most);
    summary.by_host.sort_by(|one, other| one.host.cmp(&other.host));
}

fn lists(summary: &mut Summary, most: usize) {
    summary.hosts.truncate(most);
    summary.by_host.truncate(most);
    summary.host_differences.truncate(most);
    summary.ranks.missing.truncate(most);
    summary.ranks.ended_badly.truncate(most);
    summary.machines.truncate(most);
    summary.machines.iter_mut().for_each(|machine| machine.hosts.truncate(most));
    summary.host_counters.truncate(most);
    summary.placements.truncate(most);
    summary.placements.iter_mut().for_each(|placement| placement.hosts.truncate(most));
    summary.knobs.clear();
    summary.objects_made.clear();
    summary.waiting.iter_mut().for_each(|waiting| waiting.last.truncate(1));
}

/// Why a record cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It does not become short enough, for its names are longer than any that gyan writes.
    #[error("has {0} bytes, even shortened")]
    TooLong(usize),
    /// It is no JSON.
    #[error(transparent)]
    NoJson(#[from] serde_json::Error),
}

impl JobRecord {
    /// The file's content, at most [`RECORD_BYTES`] long, and what is left of the record in it.
    ///
    /// # Errors
    /// When the record does not become short enough.
    pub fn into_bytes(mut self) -> Result<Vec<u8>, RecordError> {
        self.shorten(Shortening::Private);
        let mut shortenings = Shortening::FOR_SIZE.into_iter();
        loop {
            let bytes = self.packed()?;
            if bytes.len() <= RECORD_BYTES {
                return Ok(bytes);
            }
            let next = shortenings.next().ok_or(RecordError::TooLong(bytes.len()))?;
            self.shorten(next);
        }
    }

    fn shorten(&mut self, by: Shortening) {
        if !self.left_out.contains(&by) {
            by.apply(&mut self.summary);
            self.left_out.push(by);
        }
    }

    fn packed(&self) -> Result<Vec<u8>, RecordError> {
        let mut json = Vec::new();
        self.serialize(&mut Serializer::with_formatter(&mut json, Rounding))?;
        let mut bytes = format!("{RECORD_SCHEMA}\n").into_bytes();
        bytes.append(&mut compress_to_vec_zlib(&json, LEVEL));
        Ok(bytes)
    }

    /// The record that a file holds. Any bytes can be given: not more memory is taken than a megabyte of JSON needs.
    ///
    /// # Errors
    /// When it is no record, is damaged, or is newer than this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<JobRecord, ReadError> {
        if bytes.len() > RECORD_BYTES {
            let what = format!("is longer than {RECORD_BYTES} bytes");
            return Err(ReadError::Damaged(what));
        }
        let line = bytes.iter().position(|&byte| byte == b'\n');
        let (schema, packed) = bytes.split_at(line.unwrap_or(bytes.len()));
        let is_record = schema.starts_with(b"gyan.record/") && schema.len() < 32;
        let packed = packed.get(1..).filter(|_| is_record).ok_or_else(|| ReadError::Other {
            found: "something else".into(),
            known: RECORD_SCHEMA,
        })?;
        let json =
            decompress_to_vec_zlib_with_limit(packed, UNPACKED_AT_MOST).map_err(|error| {
                ReadError::Damaged(match error.status {
                    TINFLStatus::HasMoreOutput => "is too long when unpacked".into(),
                    TINFLStatus::FailedCannotMakeProgress => "ends in the middle".into(),
                    _ => "is not what was compressed".into(),
                })
            })?;
        JobRecord::from_json(&json)
    }

    /// The record that is in JSON, as an archive keeps it.
    ///
    /// # Errors
    /// When it is no record, is damaged, or is newer than this version.
    pub fn from_json(json: &[u8]) -> Result<JobRecord, ReadError> {
        let mut record: JobRecord = parse(json, RECORD_SCHEMA)?;
        // Whoever wrote it may have left in what a reader would look up, such as files of the program.
        private(&mut record.summary);
        Ok(record)
    }
}

/// Rounds what is no integer.
struct Rounding;

impl Formatter for Rounding {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        CompactFormatter.write_f64(writer, rounded(value))
    }
}

/// The nearest number with [`DIGITS`] significant digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.*e}", (DIGITS - 1).unsigned_abs() as usize).parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RankProfile, Reduction, parse_rank};

    const EXAMPLE: &[u8] = include_bytes!("../examples/rank.json");

    /// The summary of `ranks` ranks, which differ in their numbers and are on hosts of four.
    fn summary(ranks: u32) -> Summary {
        let mut reduction = Reduction::default();
        let example = parse_rank(EXAMPLE).unwrap();
        for rank in 0..ranks {
            let mut profile = RankProfile { rank, size: ranks, ..example.clone() };
            profile.host = format!("nid{:05}", 1000 + rank / 4);
            for call in &mut profile.calls {
                call.count += u64::from(rank % 7);
                call.time_s = call.time_s.map(|time| time * f64::from(100 + rank % 13) / 100.0);
            }
            reduction.add(&format!("rank-{rank}"), &profile);
        }
        reduction.finish().unwrap()
    }

    fn record(summary: Summary) -> JobRecord {
        JobRecord {
            schema: RECORD_SCHEMA.into(),
            cluster: "tests".into(),
            job: "4711".into(),
            step: Some("0".into()),
            user: 1000,
            program: "app".into(),
            left_out: Vec::new(),
            summary,
        }
    }

    #[test]
    fn a_record_of_any_job_fits() {
        for ranks in [1, 64, 4096] {
            let bytes = record(summary(ranks)).into_bytes().unwrap();
            assert!(bytes.len() <= RECORD_BYTES, "{ranks} ranks: {} bytes", bytes.len());
            let read = JobRecord::from_bytes(&bytes).unwrap();
            assert_eq!(read.summary.ranks.reduced, ranks);
            println!("{ranks} ranks: {} bytes, without {:?}", bytes.len(), read.left_out);
        }
    }

    #[test]
    fn what_is_left_is_what_was_there() {
        let whole = summary(64);
        let read = JobRecord::from_bytes(&record(whole.clone()).into_bytes().unwrap()).unwrap();
        assert_eq!(read.summary.calls.len(), whole.calls.len());
        for (read, call) in read.summary.calls.iter().zip(&whole.calls) {
            assert_eq!((&read.name, &read.count.sum), (&call.name, &call.count.sum));
        }
    }

    #[test]
    fn no_path_is_in_a_record() {
        let bytes = record(summary(4)).into_bytes().unwrap();
        let json = serde_json::to_string(&JobRecord::from_bytes(&bytes).unwrap()).unwrap();
        let at = json.find("\"/").map(|at| &json[at..(at + 40).min(json.len())]);
        assert_eq!(at, None);
    }

    #[test]
    fn a_damaged_record_is_refused() {
        let bytes = record(summary(4)).into_bytes().unwrap();
        for length in [0, 5, 14, 15, 16, bytes.len() / 2, bytes.len() - 1] {
            assert!(JobRecord::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        for at in (0..bytes.len()).step_by(bytes.len() / 50) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            assert!(JobRecord::from_bytes(&bytes).is_err(), "{at}");
        }
        let mut bomb = format!("{RECORD_SCHEMA}\n").into_bytes();
        bomb.append(&mut compress_to_vec_zlib(&vec![b' '; UNPACKED_AT_MOST + 1], LEVEL));
        let error = JobRecord::from_bytes(&bomb).unwrap_err().to_string();
        assert!(error.contains("too long when unpacked"), "{error}");
        assert!(JobRecord::from_bytes(&vec![0; RECORD_BYTES + 1]).is_err());
    }
}
