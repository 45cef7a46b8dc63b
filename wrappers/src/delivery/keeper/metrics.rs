//! What the ranks on this host do, as metrics in a file for Prometheus (`GYAN_METRICS`): the textfile collector of
//! `node_exporter` reads it.
//!
//! The text is `OpenMetrics` 1.0, and what readers of the older Prometheus text format take, too: they see no type of the
//! counters, whose name there ends with `_total`, and take `# UNIT` and `# EOF` for comments. So no metric has a type or a
//! timestamp that only one of the formats has.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gyan_results::{InMpi, Overhead};
use serde::{Deserialize, Serialize};

use super::messages::PathAsBytes;
use super::process::NAME;
use crate::sys::kernel_files;

/// Until the first file, so that short programs leave none, and between two.
pub(super) const FIRST: Duration = Duration::from_secs(1);
pub(super) const APART: Duration = Duration::from_secs(15);
/// A file that was not written for this time is that of a keeper that was killed.
const STALE: Duration = Duration::from_secs(60);
/// Other users read it.
const MODE: u32 = 0o644;
/// Of a name.
const LETTERS: usize = 64;
/// Functions that do nothing but wait.
const WAITS: [&str; 7] = [
    "MPI_Barrier",
    "MPI_Mprobe",
    "MPI_Probe",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
];

/// Where the metrics of a rank go.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct MetricsPlace {
    pub(super) directory: PathAsBytes,
    /// The name of its program: a job may have several.
    pub(super) program: String,
}

/// What a record of a rank says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RankFigures {
    /// In seconds since 1970.
    started_s: f64,
    elapsed_s: f64,
    size: u32,
    mpi_s: f64,
    waiting_s: f64,
    calls: u64,
    bytes: u64,
    sent: u64,
    sent_bytes: u64,
    overhead_s: f64,
}

/// The part of a profile that is needed for that: the rest is skipped, which is faster.
#[derive(Deserialize)]
struct RecordPart {
    job: JobPart,
    size: u32,
    calls: Vec<CallPart>,
    #[serde(default)]
    in_mpi: Option<InMpi>,
    #[serde(default)]
    peers: PeersPart,
    overhead: Overhead,
}

#[derive(Deserialize)]
struct JobPart {
    started: String,
    elapsed_s: f64,
}

#[derive(Deserialize)]
struct CallPart {
    name: String,
    count: u64,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    time_s: f64,
}

#[derive(Default, Deserialize)]
struct PeersPart {
    messages: Vec<MessagesPart>,
}

#[derive(Deserialize)]
struct MessagesPart {
    number: u64,
    bytes: u64,
}

impl RankFigures {
    /// Those of the profile that is this text.
    pub(super) fn of_profile(text: &[u8]) -> Option<RankFigures> {
        let record: RecordPart = serde_json::from_slice(text).ok()?;
        let started = humantime::parse_rfc3339(&record.job.started).ok()?;
        let started_s = started.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
        let calls = &record.calls;
        let waits = calls.iter().filter(|call| WAITS.contains(&call.name.as_str()));
        let Overhead {
            mpit_init_s,
            init_s,
            sampling_s,
            wrappers_s,
            events_s,
            timeline_s,
            finalize_s,
            ..
        } = record.overhead;
        let running_s = sampling_s + wrappers_s + events_s + timeline_s;
        Some(RankFigures {
            started_s,
            elapsed_s: record.job.elapsed_s,
            size: record.size,
            mpi_s: record.in_mpi.map_or(0.0, |of| of.time_s),
            waiting_s: waits.map(|call| call.time_s).sum(),
            calls: calls.iter().map(|call| call.count).sum(),
            bytes: calls.iter().map(|call| call.bytes).sum(),
            sent: record.peers.messages.iter().map(|of| of.number).sum(),
            sent_bytes: record.peers.messages.iter().map(|of| of.bytes).sum(),
            overhead_s: mpit_init_s + init_s + running_s + finalize_s,
        })
    }

    /// Later ones. A counter never goes back, but an estimate may.
    pub(super) fn then(self, later: &RankFigures) -> RankFigures {
        RankFigures {
            started_s: self.started_s,
            elapsed_s: self.elapsed_s.max(later.elapsed_s),
            size: self.size.max(later.size),
            mpi_s: self.mpi_s.max(later.mpi_s),
            waiting_s: self.waiting_s.max(later.waiting_s),
            calls: self.calls.max(later.calls),
            bytes: self.bytes.max(later.bytes),
            sent: self.sent.max(later.sent),
            sent_bytes: self.sent_bytes.max(later.sent_bytes),
            overhead_s: self.overhead_s.max(later.overhead_s),
        }
    }
}

/// What a rank does, as a metric says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MetricsState {
    Moving,
    /// For so many seconds.
    Still(f64),
    /// It cannot be seen.
    Unseen,
    Ended,
    Gone,
}

pub(super) struct RankMetrics {
    pub(super) place: MetricsPlace,
    pub(super) job: String,
    pub(super) state: MetricsState,
    /// None while there is no record of it.
    pub(super) figures: Option<RankFigures>,
}

impl RankMetrics {
    fn is_running(&self) -> bool {
        !matches!(self.state, MetricsState::Ended | MetricsState::Gone)
    }
}

/// A metric of all ranks of a program on this host.
struct Metric {
    name: &'static str,
    /// As the format has it: `counter` or `gauge`.
    kind: &'static str,
    help: &'static str,
    /// None where it is not known.
    value: fn(&[&RankMetrics], now_s: f64) -> Option<f64>,
}

macro_rules! metrics {
    ($($kind:ident $name:ident = $value:expr, $help:literal;)+) => {
        /// Beside the number of ranks in each state.
        const METRICS: &[Metric] = &[$(Metric {
            name: stringify!($name),
            kind: stringify!($kind),
            help: $help,
            value: $value,
        }),+];
    };
}

metrics! {
    counter gyan_rank_seconds = |ranks, _| sum(ranks, |of| of.elapsed_s),
        "Seconds since MPI_Init, summed over the ranks on this host.";
    counter gyan_mpi_seconds = |ranks, _| sum(ranks, |of| of.mpi_s),
        "Seconds in MPI functions, summed over the ranks and threads on this host; an estimate.";
    counter gyan_mpi_waiting_seconds = |ranks, _| sum(ranks, |of| of.waiting_s),
        "Seconds in MPI functions that only wait: MPI_Wait, its variants, MPI_Probe, MPI_Mprobe and MPI_Barrier; an \
         estimate.";
    counter gyan_mpi_calls = |ranks, _| sum(ranks, |of| of.calls as f64),
        "Calls of MPI functions by the ranks on this host.";
    counter gyan_mpi_bytes = |ranks, _| sum(ranks, |of| of.bytes as f64),
        "Bytes that the ranks on this host handed to MPI: sent, contributed to collective operations, or requested from \
         windows and files.";
    counter gyan_sent_messages = |ranks, _| sum(ranks, |of| of.sent as f64),
        "Point-to-point messages that the ranks on this host sent.";
    counter gyan_sent_bytes = |ranks, _| sum(ranks, |of| of.sent_bytes as f64),
        "Bytes of the point-to-point messages that the ranks on this host sent.";
    counter gyan_overhead_seconds = |ranks, _| sum(ranks, |of| of.overhead_s),
        "Seconds that gyan itself cost the ranks on this host.";
    gauge gyan_longest_still_seconds = |ranks, _| Some(longest_still(ranks)),
        "For how long the rank on this host has not moved that has not moved for longest: 0 if all move.";
    gauge gyan_record_age_seconds = oldest_record,
        "How old the figures are of the running rank on this host whose figures are the oldest.";
    gauge gyan_start_time_seconds = |ranks, _| figures(ranks).map(|of| of.started_s).reduce(f64::min),
        "When the first rank on this host called MPI_Init, in seconds since 1970.";
    gauge gyan_job_ranks = |ranks, _| figures(ranks).map(|of| f64::from(of.size)).reduce(f64::max),
        "Ranks in MPI_COMM_WORLD, on all hosts.";
}

fn longest_still(ranks: &[&RankMetrics]) -> f64 {
    let still = ranks.iter().map(|rank| match rank.state {
        MetricsState::Still(still_s) => still_s,
        _ => 0.0,
    });
    still.fold(0.0, f64::max)
}

fn oldest_record(ranks: &[&RankMetrics], now_s: f64) -> Option<f64> {
    let running = ranks.iter().filter(|rank| rank.is_running());
    let figures = running.filter_map(|rank| rank.figures.as_ref());
    figures.map(|of| (now_s - of.started_s - of.elapsed_s).max(0.0)).reduce(f64::max)
}

fn figures<'a>(ranks: &'a [&RankMetrics]) -> impl Iterator<Item = &'a RankFigures> {
    ranks.iter().filter_map(|rank| rank.figures.as_ref())
}

/// None if nothing is known of any rank.
fn sum(ranks: &[&RankMetrics], of: fn(&RankFigures) -> f64) -> Option<f64> {
    figures(ranks).map(of).reduce(|one, other| one + other)
}

/// The text of the file.
fn text(host: &str, ranks: &[&RankMetrics], now_s: f64) -> String {
    let mut programs: BTreeMap<(&str, &str), Vec<&RankMetrics>> = BTreeMap::new();
    for &rank in ranks {
        programs.entry((&rank.job, &rank.place.program)).or_default().push(rank);
    }
    let labels = |(job, program): &(&str, &str)| {
        let [job, host, program] = [*job, host, *program].map(escaped);
        format!("job=\"{job}\",host=\"{host}\",program=\"{program}\"")
    };
    let mut text = String::new();
    describe(&mut text, "gyan_ranks", "gauge", "Ranks on this host by what they do.");
    for (of, ranks) in &programs {
        let number =
            |is: fn(MetricsState) -> bool| ranks.iter().filter(|rank| is(rank.state)).count();
        for (state, number) in [
            ("moving", number(|state| state == MetricsState::Moving)),
            ("still", number(|state| matches!(state, MetricsState::Still(_)))),
            ("unseen", number(|state| state == MetricsState::Unseen)),
            ("ended", number(|state| state == MetricsState::Ended)),
            ("gone", number(|state| state == MetricsState::Gone)),
        ] {
            let _ = writeln!(text, "gyan_ranks{{{},state=\"{state}\"}} {number}", labels(of));
        }
    }
    for Metric { name, kind, help, value } in METRICS {
        let ending = if *kind == "counter" { "_total" } else { "" };
        describe(&mut text, name, kind, help);
        for (of, ranks) in &programs {
            if let Some(value) = value(ranks, now_s) {
                let _ = writeln!(text, "{name}{ending}{{{}}} {value}", labels(of));
            }
        }
    }
    text.push_str("# EOF\n");
    text
}

/// Of a name that ends with a unit, that is said.
fn describe(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}");
    let last = name.rsplit('_').next();
    if let Some(unit) = last.filter(|last| ["seconds", "bytes"].contains(last)) {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The files that this keeper writes, by directory.
#[derive(Default)]
pub(super) struct MetricsFiles(BTreeMap<PathBuf, MetricsFile>);

struct MetricsFile {
    path: PathBuf,
    /// Whether it is there, as far as this keeper knows.
    is_written: bool,
}

impl MetricsFiles {
    /// Writes what the ranks do. Without a running rank there is no file: what is in one is reported for ever.
    pub(super) fn write(&mut self, host: &str, ranks: &[RankMetrics]) {
        let mut by_directory: BTreeMap<&Path, Vec<&RankMetrics>> = BTreeMap::new();
        for rank in ranks {
            by_directory.entry(&rank.place.directory.0).or_default().push(rank);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for (directory, ranks) in by_directory {
            let job = ranks.first().map_or("", |rank| &rank.job);
            if !ranks.iter().any(|rank| rank.is_running()) {
                self.0.get_mut(directory).map(MetricsFile::remove);
                continue;
            }
            let new = || MetricsFile::in_(directory, host, job);
            let file = self.0.entry(directory.to_owned()).or_insert_with(new);
            // A directory that is full or gone may not be so the next time.
            let _ = file.write(&text(host, &ranks, now.as_secs_f64()));
        }
    }

    pub(super) fn remove(&mut self) {
        self.0.values_mut().for_each(MetricsFile::remove);
    }
}

impl MetricsFile {
    fn in_(directory: &Path, host: &str, job: &str) -> MetricsFile {
        remove_stale(directory, host);
        let name = file_name(host, job, std::process::id());
        MetricsFile { path: directory.join(name), is_written: false }
    }

    /// A reader sees all of it or what was there before.
    fn write(&mut self, text: &str) -> io::Result<()> {
        let new = self.path.with_extension(NEW);
        let _ = fs::remove_file(&new);
        // Not through a link that somebody else put there: it may be a directory for everybody.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&new)?;
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.set_permissions(Permissions::from_mode(MODE)))
            .and_then(|()| fs::rename(&new, &self.path));
        self.is_written |= written.is_ok();
        written.inspect_err(|_| drop(fs::remove_file(&new)))
    }

    fn remove(&mut self) {
        if std::mem::take(&mut self.is_written) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// `node_exporter` reads files of this kind.
const EXTENSION: &str = "prom";
/// And none of this.
const NEW: &str = "prom-new";

/// Jobs of one host differ in the last part, which is the keeper's process.
fn file_name(host: &str, job: &str, pid: u32) -> String {
    let [host, job] = [host, job].map(plain);
    format!("gyan_{host}_{job}_{pid}.{EXTENSION}")
}

/// Without the sign between the parts.
fn plain(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '-' };
    text.chars().map(safe).take(LETTERS).collect()
}

/// Removes what keepers that were killed left of earlier jobs on this host.
fn remove_stale(directory: &Path, host: &str) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| keeper_of(name, host)) else { continue };
        let written = entry.metadata().and_then(|file| file.modified());
        let age = written.ok().and_then(|written| written.elapsed().ok());
        let is_there = kernel_files::text(format!("/proc/{pid}/comm"))
            .is_some_and(|name| name.trim_end() == NAME);
        if age.is_some_and(|age| age > STALE) && !is_there {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The process that wrote a file of this name on this host, if one did.
fn keeper_of(name: &str, host: &str) -> Option<u32> {
    let (name, extension) = name.rsplit_once('.')?;
    let parts: Vec<&str> = name.split('_').collect();
    match parts[..] {
        ["gyan", of, _, pid] if of == plain(host) && [EXTENSION, NEW].contains(&extension) => {
            pid.parse().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(program: &str, state: MetricsState, figures: Option<RankFigures>) -> RankMetrics {
        let place =
            MetricsPlace { directory: PathAsBytes("/none".into()), program: program.into() };
        RankMetrics { place, job: "12.0".into(), state, figures }
    }

    fn example() -> RankFigures {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../results-schema/examples/rank.json");
        RankFigures::of_profile(&fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn figures_are_those_of_the_profile() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../results-schema/examples/rank.json");
        let profile = gyan_results::parse_rank(&fs::read(path).unwrap()).unwrap();
        let of = example();
        assert_eq!(of.calls, profile.calls.iter().map(|call| call.count).sum::<u64>());
        assert!(of.calls > 0);
        assert_eq!(of.bytes, profile.calls.iter().filter_map(|call| call.bytes).sum::<u64>());
        assert_eq!(Some(of.mpi_s), profile.in_mpi.map(|of| of.time_s));
        assert_eq!((of.size, of.elapsed_s), (profile.size, profile.job.elapsed_s));
        assert!(of.waiting_s <= of.mpi_s);
        assert_eq!(RankFigures::of_profile(b"{}"), None);
    }

    #[test]
    fn a_counter_never_goes_back() {
        let before = example();
        let later = RankFigures { mpi_s: 0.0, calls: before.calls + 1, ..before.clone() };
        let then = before.clone().then(&later);
        assert_eq!((Some(then.mpi_s), then.calls), (Some(before.mpi_s), before.calls + 1));
    }

    #[test]
    fn ranks_of_a_program_are_summed_and_each_program_has_its_labels() {
        let figures = RankFigures {
            started_s: 1000.0,
            elapsed_s: 10.0,
            size: 3,
            mpi_s: 2.5,
            calls: 7,
            ..RankFigures::default()
        };
        let later = RankFigures { elapsed_s: 12.0, ..figures.clone() };
        let ranks = [
            rank("a", MetricsState::Moving, Some(figures.clone())),
            rank("a", MetricsState::Still(6.0), Some(later)),
            rank("b\"\\\n", MetricsState::Ended, Some(figures)),
        ];
        let text = text("n1", &ranks.iter().collect::<Vec<_>>(), 1020.0);
        let of = |program: &str| format!("job=\"12.0\",host=\"n1\",program=\"{program}\"");
        for line in [
            format!("gyan_ranks{{{},state=\"moving\"}} 1", of("a")),
            format!("gyan_ranks{{{},state=\"still\"}} 1", of("a")),
            format!("gyan_ranks{{{},state=\"ended\"}} 1", of("b\\\"\\\\\\n")),
            format!("gyan_rank_seconds_total{{{}}} 22", of("a")),
            format!("gyan_mpi_seconds_total{{{}}} 5", of("a")),
            format!("gyan_mpi_calls_total{{{}}} 7", of("b\\\"\\\\\\n")),
            format!("gyan_longest_still_seconds{{{}}} 6", of("a")),
            format!("gyan_record_age_seconds{{{}}} 10", of("a")),
            format!("gyan_job_ranks{{{}}} 3", of("a")),
            "# TYPE gyan_mpi_seconds counter".into(),
            "# UNIT gyan_mpi_seconds seconds".into(),
            "# UNIT gyan_sent_bytes bytes".into(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        assert!(samples.filter(|line| line.contains("program=\"a\"")).count() <= 30);
    }

    #[test]
    fn of_a_rank_without_a_record_only_its_state_is_said() {
        let ranks = [rank("a", MetricsState::Unseen, None)];
        let text = text("n1", &ranks.iter().collect::<Vec<_>>(), 1020.0);
        assert!(text.contains("state=\"unseen\"} 1"), "{text}");
        assert!(!text.contains("gyan_mpi_seconds_total{"), "{text}");
    }

    #[test]
    fn a_file_is_there_while_a_rank_runs_and_those_of_killed_keepers_go() {
        let here = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs::read_dir(here.path()).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        // No process has this id.
        let [stale, fresh, other] = [("n1", 4_194_305), ("n1", 4_194_306), ("n2", 4_194_305)]
            .map(|(host, pid)| file_name(host, "1_1", pid));
        for name in [&stale, &fresh, &other] {
            let file = fs::File::create(here.path().join(name)).unwrap();
            if *name != fresh {
                file.set_modified(SystemTime::now() - 2 * STALE).unwrap();
            }
        }
        let mut place = rank("a", MetricsState::Moving, Some(example()));
        place.place.directory = PathAsBytes(here.path().to_owned());
        let mut files = MetricsFiles::default();
        files.write("n1", std::slice::from_ref(&place));
        let ours = file_name("n1", "12.0", std::process::id());
        let mut expected = vec![fresh, other, ours.clone()];
        expected.sort();
        assert_eq!(names(), expected);
        let mode = fs::metadata(here.path().join(&ours)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        files.write("n1", std::slice::from_ref(&place));
        assert_eq!(names(), expected);
        place.state = MetricsState::Ended;
        files.write("n1", std::slice::from_ref(&place));
        assert!(!names().contains(&ours));
        place.state = MetricsState::Moving;
        files.write("n1", &[place]);
        assert!(names().contains(&ours));
        files.remove();
        assert!(!names().contains(&ours));
    }
}
