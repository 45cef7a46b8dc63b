//! What has an archive of a job? One row of `jobs`, and its rows of `functions`, `findings`, `hosts` and `records`.
//!
//! A record can be written by anybody: a number that no job can have refuses it, and texts are cleaned and cut.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use gyan_results::{Actor, JobRecord, Number, Shortening, Statistic, Summary};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sha2::{Digest, Sha256};
use strum::{EnumString, IntoStaticStr};

use super::days::{day_at, name_of_day};
use crate::document::cut;
use crate::document::data::columns;
use crate::document::value::integer;
use crate::findings::Answers;
use crate::parts::ReportInput;
use crate::statistics::median;
use crate::words::short_library;

/// A job that lasts longer is none: ten years.
const ELAPSED_AT_MOST_S: f64 = 10.0 * 366.0 * 86_400.0;
/// More ranks or processors than any machine has.
const PROCESSORS_AT_MOST: f64 = 1e8;
/// More processors than a host has.
const PROCESSORS_OF_HOST_AT_MOST: f64 = 65_536.0;
/// Larger numbers are none of a job: all that are summed up stay far from infinity.
const NUMBER_AT_MOST: f64 = 9e18;
/// More functions or hosts than a record of 10 kB can hold, unless it was made to.
const ROWS_AT_MOST: usize = 4096;
/// How far the clock of a node may be ahead.
const AHEAD_AT_MOST: Duration = Duration::from_secs(86_400);
/// Characters of a name, and of a sentence.
const NAME_AT_MOST: usize = 128;
const SENTENCE_AT_MOST: usize = 1000;

/// Why a record is not taken.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Refusal {
    /// A directory, a link, a FIFO or the like, or a file with several names.
    NoFile,
    /// Longer than any record.
    TooLong,
    /// The ingester may not read it.
    Unreadable,
    /// No record, or damaged.
    Damaged,
    /// Of a later version of gyan.
    Newer,
    /// Of a job that ends in the future.
    Future,
    /// Has a number that no job has.
    Absurd,
    /// gyan fails with it.
    Fails,
}

impl Refusal {
    /// In one word, for the name of a file.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// In a few words, for people.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Refusal::NoFile => "no regular file, or one with several names",
            Refusal::TooLong => "longer than any record",
            Refusal::Unreadable => "not readable by this user",
            Refusal::Damaged => "no record, or damaged",
            Refusal::Newer => "written by a later gyan; update this one",
            Refusal::Future => "the job ends in the future",
            Refusal::Absurd => "a number that no job has",
            Refusal::Fails => "gyan fails with it, which is a bug of gyan",
        }
    }
}

/// Declares a type of rows of [`columns!`] whose columns are its fields.
macro_rules! rows {
    ($row:ident in $(#[$about:meta])* $Row:ident; $(
        $(#[doc = $doc:literal])* $column:ident($name:ident: $type:ty, $kind:ident $(, $fidelity:ident)?) => $cell:expr
    ),+ $(,)?) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $Row {
            $(pub(crate) $name: $type,)+
        }

        columns! { $row in $Row; $($(#[doc = $doc])* $column($name: $kind $(, $fidelity)?) => $cell),+ }
    };
}

rows! { job in
    /// A job.
    JobRow;
    /// which job it is, in all tables: a hash of its user, cluster, job, step and start
    required(id: String, Text) => &job.id,
    /// the name that the site gives the machine
    required(cluster: String, Text) => &job.cluster,
    /// the id of the job in the batch system
    required(job: String, Text) => &job.job,
    /// the step of the job; null where the batch system has none
    column(step: Option<String>, Text) => job.step.as_deref(),
    /// the number of the user who owns the record
    required(uid: u32, Integer) => integer(job.uid),
    /// the file name of the executable
    required(program: String, Text) => &job.program,
    /// the MPI library
    required(mpi: String, Text) => &job.mpi,
    /// its version; null where it does not say
    column(mpi_version: Option<String>, Text) => job.mpi_version.as_deref(),
    /// the kernel of its first host; null where the record does not say
    column(system: Option<String>, Text) => job.system.as_deref(),
    // In milliseconds since 1970.
    /// when MPI_Init was called, UTC
    required(started: i64, Time, Exact) => integer(job.started),
    /// seconds from MPI_Init to the end
    required(elapsed_s: f64, Double, Exact) => job.elapsed_s,
    /// number of ranks
    required(ranks: u32, Integer, Exact) => integer(job.ranks),
    /// number of hosts
    required(hosts: u64, Integer, Exact) => job.hosts,
    /// logical processors that the ranks may use, on all hosts
    required(processors: u64, Integer, Exact) => job.processors,
    /// processors times elapsed_s, in hours
    required(core_h: f64, Double, Exact) => job.core_h,
    /// the part of core_h outside MPI; null where that is not known
    column(own_core_h: Option<f64>, Double, Estimated) => job.own_core_h,
    /// the part of core_h in MPI; null where that is not known
    column(mpi_core_h: Option<f64>, Double, Estimated) => job.mpi_core_h,
    /// the part of mpi_core_h in which ranks waited for others, as far as that is known
    column(waiting_core_h: Option<f64>, Double, Estimated) => job.waiting_core_h,
    /// the part of core_h that is at stake in its findings
    required(lost_core_h: f64, Double, Estimated) => job.lost_core_h,
    /// how its ranks ended: finalize, or how the first that did not end so
    required(ended: String, Text) => &job.ended,
    /// its first finding
    column(finding: Option<String>, Text) => job.finding.as_deref(),
    /// the part of the time of all ranks outside MPI
    column(parallel_efficiency: Option<f64>, Double, Estimated) => job.parallel_efficiency,
    /// the mean time of ranks outside MPI divided by the longest
    column(load_balance: Option<f64>, Double, Estimated) => job.load_balance,
    /// the longest time of a rank outside MPI divided by the time of the run
    column(communication_efficiency: Option<f64>, Double, Estimated) => job.communication_efficiency,
    /// bytes that calls handed to MPI, those to files excluded
    required(bytes_sent: u64, Integer, Exact) => job.bytes_sent,
    /// the share of the run that gyan took, on an average rank
    required(gyan_share: f64, Double, Estimated) => job.gyan_share,
    /// the version of gyan that wrote the record
    required(gyan_version: String, Text) => &job.gyan_version,
    /// the schema of the record
    required(schema: String, Text) => &job.schema,
}

rows! { of in
    /// A function of MPI in a job.
    FunctionRow;
    /// the job
    required(id: String, Text) => &of.id,
    /// the function of MPI
    required(function: String, Text) => &of.function,
    /// its calls on all ranks
    required(calls: u64, Integer, Exact) => of.calls,
    /// seconds in it, of all ranks together; null where it was not timed
    column(time_s: Option<f64>, Double, Estimated) => of.time_s,
    /// seconds of those in which ranks waited for others; null where that is not known
    column(waiting_s: Option<f64>, Double, Estimated) => of.waiting_s,
    /// bytes that its calls handed to MPI; null where they are not counted
    column(bytes: Option<u64>, Integer, Exact) => of.bytes,
}

rows! { of in
    /// A finding of a job.
    FindingRow;
    /// the job
    required(id: String, Text) => &of.id,
    /// the finding, as gyan explain knows it
    required(finding: String, Text) => &of.finding,
    /// its place among the findings of the job, from 1
    required(rank_in_list: usize, Integer, Exact) => of.rank_in_list,
    /// the most seconds that it is about, of all ranks together; null if it is about the measurement
    column(at_stake_s: Option<f64>, Double, Estimated) => of.at_stake_s,
    /// the same as a part of the time of all ranks
    column(at_stake_share: Option<f64>, Double, Estimated) => of.at_stake_share,
    /// the same as a part of the core_h of the job
    column(core_h: Option<f64>, Double, Estimated) => of.core_h,
    /// the finding in a sentence
    required(title: String, Text) => &of.title,
    /// what to do first
    column(advice: Option<String>, Text) => of.advice.as_deref(),
}

rows! { of in
    /// A host of a job.
    HostRow;
    /// the job
    required(id: String, Text) => &of.id,
    /// the host
    required(host: String, Text) => &of.host,
    /// its ranks of this job
    required(ranks: u64, Integer, Exact) => of.ranks,
    /// the share of the run that its ranks spent outside MPI
    column(own_share: Option<f64>, Double, Estimated) => of.own_share,
    /// own_share divided by the median over the hosts of the job; null for fewer than three
    column(own_relative: Option<f64>, Double, Estimated) => of.own_relative,
}

rows! { of in
    /// The record itself, of which `gyan archive job` makes the page of the run.
    RecordRow;
    /// the job
    required(id: String, Text) => &of.id,
    /// the record as JSON, schema gyan.record/1
    required(record: String, Text) => &of.record,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArchiveRows {
    /// The day on which the job ended, UTC: `2026-11-28`.
    pub(crate) day: String,
    pub(crate) job: JobRow,
    pub(crate) functions: Vec<FunctionRow>,
    pub(crate) findings: Vec<FindingRow>,
    pub(crate) hosts: Vec<HostRow>,
    pub(crate) record: RecordRow,
}

impl ArchiveRows {
    /// The rows of a record in a file of `owner`.
    ///
    /// # Errors
    /// When no job can have such numbers.
    pub(crate) fn new(
        record: &JobRecord,
        owner: u32,
        now: SystemTime,
    ) -> Result<ArchiveRows, Refusal> {
        let summary = &record.summary;
        let json = serde_json::to_string(record).map_err(|_| Refusal::Absurd)?;
        // So that no sum of them overflows, in no rule.
        let integers: Integers = serde_json::from_str(&json).map_err(|_| Refusal::Absurd)?;
        if integers.0 > u128::from(i64::MAX.unsigned_abs()) {
            return Err(Refusal::Absurd);
        }
        let input = ReportInput::new(summary, Path::new(""));
        let (started_ms, day) = when(summary, now)?;
        let id = id(record, owner);
        let job = job(record, owner, &id, started_ms, input.answers())?;
        let functions = functions(summary, &id)?;
        let findings = findings(input.answers(), &id, job.core_h)?;
        let hosts = hosts(record, &id)?;
        let record = RecordRow { id, record: json };
        Ok(ArchiveRows { day, job, functions, findings, hosts, record })
    }
}

/// Text of anybody's: short, on one line, and without characters that no one sees or that turn a line around.
fn cleaned(text: &str, most: usize) -> String {
    let is_hidden = |character: char| {
        character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    cut(&text.replace(is_hidden, "?"), most)
}

fn name(text: &str) -> String {
    cleaned(text, NAME_AT_MOST)
}

/// The sizes of all integers of some JSON together, which is read without keeping anything of it.
struct Integers(u128);

impl<'de> Deserialize<'de> for Integers {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Integers, D::Error> {
        json.deserialize_any(Integers(0))
    }
}

impl<'de> Visitor<'de> for Integers {
    type Value = Integers;

    fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Integers, E> {
        Ok(Integers(0))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Integers, E> {
        Ok(Integers(number.unsigned_abs().into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Integers, E> {
        Ok(Integers(number.into()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Integers, E> {
        Ok(Integers(0))
    }

    fn visit_str<E>(self, _: &str) -> Result<Integers, E> {
        Ok(Integers(0))
    }

    fn visit_unit<E>(self) -> Result<Integers, E> {
        Ok(Integers(0))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<Integers, A::Error> {
        while let Some(Integers(sum)) = values.next_element()? {
            self.0 += sum;
        }
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Integers, A::Error> {
        while let Some((IgnoredAny, Integers(sum))) = fields.next_entry()? {
            self.0 += sum;
        }
        Ok(self)
    }
}

/// A number that is not negative and at most this.
fn number(number: f64, most: f64) -> Result<f64, Refusal> {
    if (0.0..=most).contains(&number) { Ok(number) } else { Err(Refusal::Absurd) }
}

/// A sum over ranks that no job can have is refused.
fn sum(statistic: &Statistic) -> Result<f64, Refusal> {
    number(statistic.sum.as_f64(), NUMBER_AT_MOST)
}

fn count(statistic: &Statistic) -> Result<u64, Refusal> {
    match statistic.sum {
        Number::Integer(sum) => {
            u64::try_from(sum).ok().filter(|sum| i64::try_from(*sum).is_ok()).ok_or(Refusal::Absurd)
        }
        Number::Double(_) => Err(Refusal::Absurd),
    }
}

/// A part of a whole. Estimates may be a little outside.
fn share(share: f64) -> Result<f64, Refusal> {
    if share.is_finite() { Ok(share.clamp(0.0, 1.0)) } else { Err(Refusal::Absurd) }
}

/// When the job began, in milliseconds, and the day on which it ended.
fn when(summary: &Summary, now: SystemTime) -> Result<(i64, String), Refusal> {
    let started = humantime::parse_rfc3339(&summary.job.started).map_err(|_| Refusal::Damaged)?;
    let elapsed_s = number(summary.job.elapsed_s, ELAPSED_AT_MOST_S)?;
    let ended = started.checked_add(Duration::from_secs_f64(elapsed_s)).ok_or(Refusal::Future)?;
    if now.checked_add(AHEAD_AT_MOST).is_some_and(|latest| ended > latest) {
        return Err(Refusal::Future);
    }
    let since = started.duration_since(SystemTime::UNIX_EPOCH).map_err(|_| Refusal::Absurd)?;
    let started_ms = i64::try_from(since.as_millis()).map_err(|_| Refusal::Absurd)?;
    let day = day_at(ended).ok_or(Refusal::Absurd)?;
    Ok((started_ms, name_of_day(day)))
}

/// The key of a job: half of a hash, in hexadecimal digits.
fn id(record: &JobRecord, owner: u32) -> String {
    let mut hash = Sha256::new();
    hash.update(owner.to_le_bytes());
    let step = record.step.as_deref().unwrap_or_default();
    for text in [&record.cluster, &record.job, step, &record.summary.job.started] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hexadecimal(&hash.finalize()[..16])
}

/// Two digits for each byte.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The hosts of a job, and the processors that its ranks may use. A record of many hosts names only some: the others are
/// taken to be like them.
fn places(summary: &Summary) -> Result<(u64, u64), Refusal> {
    let (mut ranks, mut hosts, mut processors) = (0.0, 0.0, 0.0);
    for placement in &summary.placements {
        let of_host = number(placement.processors as f64, PROCESSORS_OF_HOST_AT_MOST)?;
        let number = placement.hosts.len() as f64;
        ranks += placement.ranks as f64 * number;
        hosts += number;
        processors += of_host * number;
    }
    let all = f64::from(summary.ranks.reduced);
    if ranks <= 0.0 {
        // A rank has at least one.
        return Ok((summary.hosts.len().max(1) as u64, u64::from(summary.ranks.reduced)));
    }
    let more = f64::max(all / ranks, 1.0);
    let hosts = number((hosts * more).round(), PROCESSORS_AT_MOST)?;
    let processors = number((processors * more).round(), PROCESSORS_AT_MOST)?;
    // Not negative, and far below 2^53.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok((hosts as u64, processors as u64))
}

/// The parts of the time of all ranks that were in MPI and waiting there, as far as they are known.
fn parts(summary: &Summary) -> Result<(Option<f64>, Option<f64>), Refusal> {
    let total_s = summary.rank_times_s().map_or(0.0, |times| times.sum.as_f64());
    if total_s <= 0.0 {
        return Ok((None, None));
    }
    let in_mpi = summary.wall_in_mpi_s().map(|seconds| share(seconds / total_s)).transpose()?;
    let waiting_s = summary.ideal_s.as_ref().zip(summary.useful_s.as_ref());
    let waiting_s = waiting_s.map(|(ideal, useful)| ideal.sum.as_f64() - useful.sum.as_f64());
    let waiting = waiting_s.map(|seconds| share(seconds / total_s)).transpose()?;
    // Waiting is a part of the time in MPI, but estimated apart from it.
    Ok((in_mpi, waiting.zip(in_mpi).map(|(waiting, in_mpi)| waiting.min(in_mpi))))
}

fn job(
    record: &JobRecord,
    owner: u32,
    id: &str,
    started: i64,
    answers: &Answers,
) -> Result<JobRow, Refusal> {
    let summary = &record.summary;
    let ranks = summary.ranks.reduced;
    let is_possible = ranks > 0 && f64::from(ranks) <= PROCESSORS_AT_MOST;
    let (hosts, processors) = if is_possible { places(summary)? } else { Err(Refusal::Absurd)? };
    let elapsed_s = number(summary.job.elapsed_s, ELAPSED_AT_MOST_S)?;
    let core_h = processors as f64 * elapsed_s / 3600.0;
    let (in_mpi, waiting) = parts(summary)?;
    let about_run = answers.findings.iter().filter(|of| of.acts != Actor::Measurement);
    let lost: f64 = about_run.filter_map(|of| of.at_stake_share).sum();
    let mut bytes_sent: u64 = 0;
    for call in summary.calls.iter().filter(|call| !call.name.starts_with("MPI_File_")) {
        let bytes = call.bytes.as_ref().map(count).transpose()?.unwrap_or(0);
        bytes_sent = bytes_sent.saturating_add(bytes);
    }
    let ended = summary.ranks.ended_badly.first().map(|bad| serde_json::to_value(bad.how));
    let ended = ended.and_then(|how| how.ok()?.as_str().map(str::to_owned));
    let efficiencies = answers.efficiencies.as_ref();
    let efficiency = |of: Option<f64>| of.map(share).transpose();
    let (mpi, mpi_version) = library(&summary.mpi.library);
    Ok(JobRow {
        id: id.to_owned(),
        cluster: name(&record.cluster),
        job: name(&record.job),
        step: record.step.as_deref().map(name),
        uid: owner,
        program: name(&record.program),
        mpi,
        mpi_version,
        system: summary.machines.first().and_then(|of| of.machine.system.as_deref()).map(name),
        started,
        elapsed_s,
        ranks,
        hosts,
        processors,
        core_h,
        own_core_h: in_mpi.map(|in_mpi| core_h * (1.0 - in_mpi)),
        mpi_core_h: in_mpi.map(|in_mpi| core_h * in_mpi),
        waiting_core_h: waiting.map(|waiting| core_h * waiting),
        lost_core_h: core_h * share(lost)?,
        ended: ended.unwrap_or_else(|| "finalize".into()),
        finding: answers.findings.first().map(|finding| finding.id.clone()),
        parallel_efficiency: efficiency(efficiencies.map(|of| of.parallel))?,
        load_balance: efficiency(efficiencies.map(|of| of.load_balance))?,
        communication_efficiency: efficiency(efficiencies.map(|of| of.communication))?,
        bytes_sent: bytes_sent.min(i64::MAX.unsigned_abs()),
        gyan_share: share(summary.overhead.share.avg)?,
        gyan_version: name(&summary.tool.version),
        schema: name(&record.schema),
    })
}

/// The name and the version of a library, of what it says of itself: `Open MPI v4.1.4` or `MPICH Version: 4.0.2`.
fn library(says: &str) -> (String, Option<String>) {
    let says = short_library(says);
    let is_version = |word: &str| {
        word.strip_prefix('v').unwrap_or(word).starts_with(|first: char| first.is_ascii_digit())
    };
    let words = || says.split_whitespace();
    let of_name = words().take_while(|word| !is_version(word));
    let of_name: Vec<&str> =
        of_name.filter(|word| !matches!(*word, "Version" | "Version:" | ":" | "Library")).collect();
    let version = words().find(|word| is_version(word));
    (name(&of_name.join(" ")), version.map(|version| name(version.trim_start_matches('v'))))
}

fn functions(summary: &Summary, id: &str) -> Result<Vec<FunctionRow>, Refusal> {
    if summary.calls.len() > ROWS_AT_MOST {
        return Err(Refusal::Absurd);
    }
    let row = |call: &gyan_results::CallSummary| {
        let waiting_s = summary.waiting_in(&call.name).map(|waiting| waiting.waiting_s);
        Ok(FunctionRow {
            id: id.to_owned(),
            function: name(&call.name),
            calls: count(&call.count)?,
            time_s: call.time_s.as_ref().map(sum).transpose()?,
            waiting_s: waiting_s.map(|seconds| number(seconds, NUMBER_AT_MOST)).transpose()?,
            bytes: call.bytes.as_ref().map(count).transpose()?,
        })
    };
    summary.calls.iter().map(row).collect()
}

fn findings(answers: &Answers, id: &str, core_h: f64) -> Result<Vec<FindingRow>, Refusal> {
    let row = |(at, finding): (usize, &gyan_results::Finding)| {
        let at_stake_share = finding.at_stake_share.map(share).transpose()?;
        let at_stake_s = finding.at_stake_s.map(|seconds| number(seconds, NUMBER_AT_MOST));
        let advice = finding.advice.first();
        Ok(FindingRow {
            id: id.to_owned(),
            finding: finding.id.clone(),
            rank_in_list: at + 1,
            at_stake_s: at_stake_s.transpose()?,
            at_stake_share,
            core_h: at_stake_share.map(|share| share * core_h),
            title: cleaned(&finding.title, SENTENCE_AT_MOST),
            advice: advice.map(|advice| cleaned(&advice.text, SENTENCE_AT_MOST)),
        })
    };
    answers.findings.iter().take(ROWS_AT_MOST).enumerate().map(row).collect()
}

fn hosts(record: &JobRecord, id: &str) -> Result<Vec<HostRow>, Refusal> {
    let summary = &record.summary;
    if summary.by_host.len().max(summary.hosts.len()) > ROWS_AT_MOST {
        return Err(Refusal::Absurd);
    }
    let mean_own =
        summary.in_mpi.as_ref().map(|in_mpi| share(1.0 - in_mpi.share.avg)).transpose()?;
    let mut rows = Vec::new();
    for host in &summary.by_host {
        let own_share = host.in_mpi.map(|in_mpi| share(1.0 - in_mpi.avg)).transpose()?;
        let (id, host_name, ranks) = (id.to_owned(), name(&host.host), host.number());
        let ranks = ranks.min(summary.ranks.reduced.into());
        rows.push(HostRow { id, host: host_name, ranks, own_share, own_relative: None });
    }
    if let (true, [host]) = (rows.is_empty(), &summary.hosts[..]) {
        let (host, ranks) = (name(host), summary.ranks.reduced.into());
        rows.push(HostRow {
            id: id.to_owned(),
            host,
            ranks,
            own_share: mean_own,
            own_relative: None,
        });
    }
    // The hosts that are named are the farthest from the mean where there are more.
    let is_part =
        [Shortening::Hosts, Shortening::Lists].iter().any(|of| record.left_out.contains(of));
    let shares: Vec<f64> = rows.iter().filter_map(|row| row.own_share).collect();
    let typical = if is_part { mean_own } else { median(&shares) };
    if let Some(typical) = typical.filter(|typical| *typical > 0.0 && rows.len() >= 3) {
        for row in &mut rows {
            row.own_relative = row.own_share.map(|own| own / typical);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> JobRecord {
        let text = include_str!("../../results-schema/examples/summary.json");
        JobRecord {
            schema: gyan_results::RECORD_SCHEMA.into(),
            cluster: "tests".into(),
            job: "4711".into(),
            step: Some("0".into()),
            user: 1000,
            program: "app".into(),
            left_out: Vec::new(),
            summary: serde_json::from_str(text).unwrap(),
        }
    }

    fn rows(record: &JobRecord) -> Result<ArchiveRows, Refusal> {
        let now =
            humantime::parse_rfc3339(&record.summary.job.started).unwrap_or(SystemTime::now());
        ArchiveRows::new(record, 4, now)
    }

    #[test]
    fn rows_of_a_record_have_its_numbers() {
        let record = record();
        let rows = rows(&record).unwrap();
        let job = &rows.job;
        assert_eq!((job.uid, job.ranks), (4, record.summary.ranks.reduced));
        assert_eq!(rows.functions.len(), record.summary.calls.len());
        let parts = job.own_core_h.unwrap() + job.mpi_core_h.unwrap();
        assert!((parts - job.core_h).abs() < 1e-9);
        assert_eq!(serde_json::from_str::<JobRecord>(&rows.record.record).unwrap(), record);
    }

    #[test]
    fn what_no_job_has_is_refused() {
        let refused = |change: fn(&mut Summary)| {
            let mut record = record();
            change(&mut record.summary);
            rows(&record).unwrap_err()
        };
        for elapsed_s in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            let mut record = record();
            record.summary.job.elapsed_s = elapsed_s;
            assert_eq!(rows(&record), Err(Refusal::Absurd), "{elapsed_s}");
        }
        assert_eq!(refused(|of| of.ranks.reduced = u32::MAX), Refusal::Absurd);
        assert_eq!(refused(|of| of.ranks.reduced = 0), Refusal::Absurd);
        assert_eq!(refused(|of| of.job.started = "yesterday".into()), Refusal::Damaged);
        assert_eq!(
            refused(|of| of.calls[0].count.sum = Number::Integer(i128::MAX)),
            Refusal::Absurd
        );
        assert_eq!(refused(|of| of.job.elapsed_s = 2.0 * 86_400.0), Refusal::Future);
        let mut late = record();
        late.summary.job.started = "9999-12-31T23:59:59Z".into();
        assert_eq!(ArchiveRows::new(&late, 4, SystemTime::now()), Err(Refusal::Future));
    }

    #[test]
    fn texts_are_short_and_on_one_line() {
        let mut record = record();
        record.program = format!("\u{1b}[2J\n\u{202e}{}", "x".repeat(10_000));
        let program = rows(&record).unwrap().job.program;
        assert!(program.starts_with("?[2J??xxx") && program.len() == NAME_AT_MOST, "{program}");
    }

    #[test]
    fn libraries_have_a_name_and_a_version() {
        let parts = |says| {
            let (name, version) = library(says);
            (name, version.unwrap_or_default())
        };
        let parted = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(parts("Open MPI v4.1.4, package: Debian"), parted("Open MPI", "4.1.4"));
        assert_eq!(parts("MPICH Version:\t4.0.2"), parted("MPICH", "4.0.2"));
        assert_eq!(parts("MVAPICH2 Version      :\t2.3.7"), parted("MVAPICH2", "2.3.7"));
        assert_eq!(
            parts("Intel(R) MPI Library 2021.10 for Linux* OS"),
            parted("Intel(R) MPI", "2021.10")
        );
    }
}
