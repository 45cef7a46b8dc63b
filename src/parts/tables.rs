//! The tables of `gyan export`: what each rank did, one row each, not rounded. All tables have the same keys,
//! so they can be joined: `job` and `rank` are the first columns, `host` is the last.
//!
//! A table is an element of [`TABLES`]: its name, what a row is, its columns, and the function that makes the rows of a
//! profile. docs/tables.md is made of these.

use std::io;

use gyan_results::{
    Call, CodeAddress, Element, Fidelity, MessagePlace, MessageStream, MessageTime, MessageTimes,
    Number, OpenMp, OpenMpRegion, PeerTraffic, Peers, Phase, Pvar, RankProfile, Readings, Site,
    Sites, Waiting,
};

use super::headings::name_of_phase;
use super::histogram::{HistogramBar, bars};
use super::series::{SeriesInterval, intervals};
use crate::document::data::{Row, classes, columns, element, word};
use crate::document::value::cells;
use crate::document::{Column, Kind, TakeRow, Value, column, required};

pub(crate) struct RankTable {
    pub(crate) name: &'static str,
    /// What there is a row for.
    pub(crate) about: &'static str,
    /// The columns other than the keys.
    columns: &'static [Column],
    /// What its rows are made of, of [`FIELDS`].
    reads: &'static [&'static str],
    /// The rows of a profile, without the keys.
    rows: fn(&RankProfile, &mut TakeRow) -> io::Result<()>,
}

/// The fields that most of a profile is made of.
const FIELDS: [&str; 9] =
    ["calls", "message_times", "openmp", "peers", "phases", "pvars", "series", "sites", "waiting"];

/// The one that is exported when none is named.
pub(crate) const VARIABLES: &str = "variables";
pub(crate) const CALLS: &str = "calls";

const JOB: Column = required("job", Kind::Text).about("id of the job, by the launcher");
const RANK: Column = required("rank", Kind::Integer).about("rank in MPI_COMM_WORLD");
const HOST: Column = required("host", Kind::Text).about("host of the rank");

const FUNCTION: Column = required("function", Kind::Text).about("name in C");
const COUNT: Column =
    required("count", Kind::Integer).known(Fidelity::Exact).about("calls by the program");
const BYTES: Column = column("bytes", Kind::Integer)
    .known(Fidelity::Exact)
    .about("bytes handed to MPI; null where they are not counted, as for receives");
const TIME: Column = column("time_s", Kind::Double)
    .known(Fidelity::Estimated)
    .about("seconds in all calls; exact where time_error_s is 0; null when none was timed");
const TIME_ERROR: Column = column("time_error_s", Kind::Double)
    .known(Fidelity::Estimated)
    .about("standard error of time_s in seconds; null when it is not known, and time_s the least that it can be");
const TIMED: Column =
    required("timed", Kind::Integer).known(Fidelity::Exact).about("calls that were timed");
const TIME_MAX: Column = column("time_max_s", Kind::Double)
    .known(Fidelity::Sampled)
    .about("seconds of the longest call that was timed");
const VARIABLE: Column = required("variable", Kind::Text).about("name of the performance variable");
const CLASS: Column = required("class", Kind::Text).about("class, as the library says");
const BEHAVES_AS: Column = required("behaves_as", Kind::Text)
    .about("class that it behaves as; differs where the library is known to be wrong");
const OBJECT: Column =
    column("object", Kind::Text).about("object that it is bound to; null without one");
const PHASE: Column = required("phase", Kind::Text)
    .about("name of the phase of the program; (outside) for what is in no phase");

/// Makes [`TABLES`] of a row each: `name [fields that it reads]: type of a row, what a row is, the rows of a profile;`.
macro_rules! tables {
    ($(
        $name:tt [$($reads:literal)*]: $row:ty, $what:literal, |$profile:ident| $rows:expr;
    )+) => {
        &[$(RankTable {
            name: $name,
            about: $what,
            columns: <$row>::COLUMNS,
            reads: &[$($reads),*],
            rows: |$profile, take| each($rows, take),
        }),+]
    };
}

/// Every table, in the order of the manual.
pub(crate) const TABLES: &[RankTable] = tables! {
    "ranks" []: RankProfile, "rank", |profile| [profile];
    CALLS ["calls"]: Call, "rank and function that it called", |profile| &profile.calls;
    "times" ["calls"]: (&Call, HistogramBar),
        "rank, function and bar of the histogram of how long its calls took",
        |profile| profile.calls.iter().flat_map(times);
    "sizes" ["calls"]: SizeBar, "rank, function and bar of the histogram of how many bytes its calls moved",
        |profile| profile.calls.iter().flat_map(sizes);
    "peers" ["peers"]: (&str, &PeerTraffic), "rank, peer and way in which data gets there",
        |profile| profile.peers.iter().flat_map(peers);
    "sites" ["sites"]: (&Site, &Sites), "rank, function and place in the program that called it",
        |profile| profile.sites.iter().flat_map(sites);
    "openmp" ["openmp"]: (&OpenMpRegion, &OpenMp), "rank and parallel region of OpenMP",
        |profile| profile.openmp.iter().flat_map(regions);
    "waiting" ["waiting"]: (&Waiting, u64, u64),
        "rank and call of a collective that was timed on every rank of its communicator",
        |profile| profile.waiting.iter().flat_map(waiting);
    "message_times" ["message_times"]: TimedMessage,
        "rank and message that it timed, sent or received",
        |profile| profile.message_times.iter().flat_map(message_times);
    VARIABLES ["pvars"]: (&Pvar, Element, Readings), "rank, performance variable, object and element",
        |profile| profile.pvars.iter().flat_map(elements);
    "series" ["series" "pvars"]: SeriesInterval,
        "rank, sampled variable and interval in which it was read (GYAN_SERIES)",
        |profile| intervals(profile);
    "phases" ["phases"]: Phase, "rank and phase of the program", |profile| &profile.phases;
    "phase_calls" ["phases"]: (&Phase, &Call), "rank, phase of the program and function that was called in it",
        |profile| profile.phases.iter().flat_map(phase_calls);
};

impl RankTable {
    /// The fields of a profile that none of the tables reads.
    pub(crate) fn left_out<'t>(tables: impl Iterator<Item = &'t RankTable>) -> Vec<&'static str> {
        let read: Vec<&str> = tables.flat_map(|table| table.reads).copied().collect();
        FIELDS.into_iter().filter(|field| !read.contains(field)).collect()
    }

    /// With the keys.
    pub(crate) fn columns(&self) -> Vec<Column> {
        [&[JOB, RANK], self.columns, &[HOST]].concat()
    }

    /// The rows of a profile, with the keys.
    pub(crate) fn rows(&self, profile: &RankProfile, take: &mut TakeRow) -> io::Result<()> {
        (self.rows)(profile, &mut |own| {
            let mut row = Vec::with_capacity(own.len() + 3);
            row.extend(cells![&profile.job.id, Value::Rank(profile.rank)]);
            row.extend_from_slice(own);
            row.push((&profile.host).into());
            take(&row)
        })
    }
}

columns! { call in Call;
    FUNCTION => &call.name,
    COUNT => call.count,
    BYTES => call.bytes,
    TIME => call.time_s,
    TIME_ERROR => call.time_error_s,
    TIMED => call.timed,
    TIME_MAX => call.time_max_s,
}

columns! { (call, bar) in (&Call, HistogramBar);
    FUNCTION => &call.name,
    /// seconds that the calls took at least
    required(from_s: Double) => bar.from,
    /// seconds that none of them took; twice from_s
    required(below_s: Double) => bar.below,
    /// calls
    required(count: Integer, Estimated) => bar.count,
}

columns! { bar in SizeBar<'_>;
    FUNCTION => bar.function,
    /// bytes that the calls moved at least
    required(from_bytes: Integer) => bar.from,
    /// bytes that none of them moved
    required(below_bytes: Integer) => bar.below,
    /// calls that succeeded
    required(count: Integer, Exact) => bar.count,
    /// bytes that they moved
    required(bytes: Integer, Exact) => bar.bytes,
}

columns! { (kind, of) in (&str, &PeerTraffic);
    /// messages, or accesses to memory (one-sided)
    required(kind: Text) => *kind,
    /// its rank in MPI_COMM_WORLD; null for all others
    column(peer: Integer) => of.rank.map(Value::Rank),
    /// messages or accesses
    required(number: Integer, Exact) => of.number,
    /// their bytes
    required(bytes: Integer, Exact) => of.bytes,
}

columns! { (site, all) in (&Site, &Sites);
    FUNCTION => &site.function,
    /// file of the place; null for code in no file and for places that are not known
    column(object: Text) =>
        code(site, all).and_then(|code| all.load_map.get(code.object?)).map(|of| &of.path),
    /// where the call returns to, as in the symbol table of the object; null when that is not known
    column(address: Integer) => code(site, all).map(|code| code.address),
    /// name of code that is in no file, where its maker tells
    column(name: Text) => code(site, all).and_then(|code| code.name.as_ref()),
    /// calls; exact where count_error is 0
    required(count: Integer, Estimated) => site.calls,
    /// standard error of count; null when it is not known
    column(count_error: Double, Estimated) => site.calls_error,
    TIMED => site.timed,
    /// seconds in the calls; exact where time_error_s is 0
    required(time_s: Double, Estimated) => site.time_s,
    TIME_ERROR => site.time_error_s,
    /// seconds of the longest call that was timed
    required(time_max_s: Double, Sampled) => site.time_max_s,
    /// bytes handed to MPI; null where they are not counted
    column(bytes: Integer, Estimated) => site.bytes,
}

columns! { (of, call, ns) in (&Waiting, u64, u64);
    FUNCTION => &of.function,
    /// its name in MPI, or its size in words
    required(communicator: Text) => &of.communicator,
    /// hash of its ranks in MPI_COMM_WORLD: the same on all of them
    required(members: Text) => &of.members,
    /// which of the communicators with these members, from 0
    required(ordinal: Integer) => u64::from(of.ordinal),
    /// number of the call on the communicator, from 0: the same on all of its ranks
    required(call: Integer) => *call,
    /// how long it took in ns, or, of a nonblocking one, the call that completed it; within 0.8 %
    required(time_ns: Integer) => *ns,
}

/// A message with its stream and its number there, and the calls of its rank.
type TimedMessage<'a> = (&'a MessageStream, u64, MessageTime, &'a [MessagePlace]);

columns! { (of, number, time, calls) in TimedMessage<'_>;
    /// sent or received by this rank
    required(direction: Text) => word(of.direction)?,
    /// the other rank, in MPI_COMM_WORLD
    required(peer: Integer) => Value::Rank(of.peer),
    /// tag of the message
    required(tag: Integer) => Number::Integer(of.tag.into()),
    /// number of the communicator: the same on all of its ranks
    required(communicator: Text) => &of.communicator,
    /// messages in this direction with this peer, tag and communicator
    required(messages: Integer, Exact) => of.messages,
    /// one in 2^level of them is timed
    required(level: Integer) => u64::from(of.level),
    /// number of this one among them, from 0: the same on both ranks
    required(message: Integer) => *number,
    /// when the call began that sends it or posts its receive, in ns on the clock of the host; within 64 ns
    required(begun_ns: Integer) => time.begun_ns,
    /// when the call began that completes it, on the same clock
    required(waits_ns: Integer) => time.waits_ns,
    /// when that call ended
    required(ended_ns: Integer) => time.ended_ns,
    /// function that sends it or posts its receive
    column(begun_in: Text) => function_of(calls, time.begun_in),
    /// function that completes it
    column(waits_in: Text) => function_of(calls, time.waits_in),
}

columns! { (pvar, of, readings) in (&Pvar, Element, Readings);
    VARIABLE => &pvar.name,
    CLASS => classes(pvar.class, pvar.behaves_as)[0].clone(),
    BEHAVES_AS => classes(pvar.class, pvar.behaves_as)[1].clone(),
    OBJECT => pvar.object.as_ref(),
    /// scalar, the index in a vector, or sum, min or max of one that was too long to keep
    required(element: Text) => element(*of),
    /// reading after MPI_Init, in the library's unit
    column(start: Number, Exact) => readings.start,
    /// reading before MPI_Finalize
    column(end: Number, Exact) => readings.end,
    /// end - start of what only grows
    column(delta: Number, Exact) => readings.delta,
    /// readings in between
    column(samples: Integer, Exact) => pvar.samples.as_ref().map(|samples| samples.n),
    /// smallest of them
    column(sampled_min: Number, Sampled) => readings.sampled_min,
    /// mean of them
    column(sampled_mean: Double, Sampled) => readings.sampled_mean,
    /// largest of them
    column(sampled_max: Number, Sampled) => readings.sampled_max,
}

columns! { of in SeriesInterval<'_>;
    VARIABLE => of.variable,
    CLASS => of.classes[0].clone(),
    BEHAVES_AS => of.classes[1].clone(),
    OBJECT => of.object,
    /// seconds from MPI_Init to the end of the interval
    required(end_s: Double) => of.end_s,
    /// smallest reading, of a vector the sum over its elements
    required(min: Double, Sampled) => of.min,
    /// mean of the readings
    required(mean: Double, Sampled) => of.mean,
    /// largest reading
    required(max: Double, Sampled) => of.max,
}

columns! { phase in Phase;
    PHASE => name_of_phase(&phase.name),
    /// how often it began
    required(entries: Integer, Exact) => phase.entries,
    /// seconds in it, phases inside it excluded
    required(time_s: Double, Exact) => phase.time_s,
    /// stretches of time in it
    required(stretches: Integer, Exact) => phase.stretches,
    /// stretches of which variables were read
    required(stretches_read: Integer, Exact) => phase.stretches_read,
    /// seconds of it at both ends of which counters were read
    column(counted_s: Double, Exact) => phase.counters.map(|of| of.time_s),
    /// instructions of that time, on the thread that initialised MPI
    column(instructions: Integer, Exact) => phase.counters.and_then(|of| of.counts).map(|of| of.instructions),
    /// cycles of that time
    column(cycles: Integer, Exact) => phase.counters.and_then(|of| of.counts).map(|of| of.cycles),
    /// cache misses of the last level of that time
    column(cache_misses: Integer, Exact) => phase.counters.and_then(|of| of.counts?.cache_misses),
    /// joules of the host of that time, of the first rank on it
    column(energy_j: Double, Exact) => phase.counters.and_then(|of| of.energy_j),
}

columns! { (phase, call) in (&Phase, &Call);
    PHASE => name_of_phase(&phase.name),
    FUNCTION => &call.name,
    COUNT => call.count,
    BYTES => call.bytes,
    TIME => call.time_s,
    TIME_ERROR => call.time_error_s,
    TIMED => call.timed,
    TIME_MAX => call.time_max_s,
}

columns! { (region, all) in (&OpenMpRegion, &OpenMp);
    /// file of the code that starts the region; null where that is not known
    column(object: Text) =>
        region_code(region, all).and_then(|code| all.load_map.get(code.object?)).map(|of| &of.path),
    /// its address in the symbol table of the object; null when that is not known
    column(address: Integer) => region_code(region, all).map(|code| code.address),
    /// how often it was entered
    required(entries: Integer, Exact) => region.entries,
    /// entries that were timed
    required(timed: Integer, Exact) => region.timed,
    /// threads of its largest team
    required(threads: Integer, Exact) => region.threads,
    /// wall seconds in it
    required(time_s: Double, Estimated) => region.time_s,
    /// standard error of time_s; null when it is not known, and time_s the least that it can be
    column(time_error_s: Double, Estimated) => region.time_error_s,
    /// seconds of its threads outside of barriers and MPI
    required(work_s: Double, Estimated) => region.work_s,
    /// seconds of the thread with the most work of each entry, summed over the entries
    required(most_work_s: Double, Estimated) => region.most_work_s,
    /// seconds that its threads waited at barriers, that at its end included
    required(barrier_s: Double, Estimated) => region.barrier_s,
    /// seconds of its threads in MPI
    required(in_mpi_s: Double, Estimated) => region.in_mpi_s,
}

/// Where a region is started, if that is known.
fn region_code<'a>(region: &OpenMpRegion, all: &'a OpenMp) -> Option<&'a CodeAddress> {
    all.addresses.get(region.place?)
}

fn each<R: Row>(rows: impl IntoIterator<Item = R>, take: &mut TakeRow) -> io::Result<()> {
    rows.into_iter().try_for_each(|row| row.write(take))
}

fn times(call: &Call) -> impl Iterator<Item = (&Call, HistogramBar)> {
    bars(&call.time_histogram, 1e-9).into_iter().map(move |bar| (call, bar))
}

struct SizeBar<'a> {
    function: &'a str,
    from: u64,
    below: u64,
    count: u64,
    bytes: u64,
}

fn sizes(call: &Call) -> impl Iterator<Item = SizeBar<'_>> {
    let bars = (0..).zip(&call.size_histogram).zip(&call.size_histogram_bytes);
    bars.filter(|((_, count), _)| **count > 0).map(|((bar, &count), &bytes)| {
        let below = 1_u64 << bar;
        let from = if bar == 0 { 0 } else { below / 2 };
        SizeBar { function: &call.name, from, below, count, bytes }
    })
}

fn peers(of: &Peers) -> impl Iterator<Item = (&'static str, &PeerTraffic)> {
    let messages = of.messages.iter().map(|of| ("messages", of));
    messages.chain(of.accesses.iter().map(|of| ("accesses", of)))
}

fn sites(all: &Sites) -> impl Iterator<Item = (&Site, &Sites)> {
    all.sites.iter().map(move |site| (site, all))
}

fn regions(all: &OpenMp) -> impl Iterator<Item = (&OpenMpRegion, &OpenMp)> {
    all.regions.iter().map(move |region| (region, all))
}

/// The place of a call, if it is known.
fn code<'a>(site: &Site, all: &'a Sites) -> Option<&'a CodeAddress> {
    all.addresses.get(site.call?)
}

fn waiting(of: &Waiting) -> impl Iterator<Item = (&Waiting, u64, u64)> {
    let durations = (0..).zip(of.durations());
    let known = durations.filter_map(|(block, ns)| Some((block, ns?)));
    let known: Vec<(u64, u64)> = known.collect();
    known.into_iter().map(move |(block, ns)| (of, Waiting::timed_call(of.level, block), ns))
}

fn message_times(of: &MessageTimes) -> impl Iterator<Item = TimedMessage<'_>> {
    of.streams.iter().flat_map(move |stream| {
        let times = (0..).zip(stream.messages_timed());
        times.filter_map(move |(block, time)| {
            Some((stream, Waiting::timed_call(stream.level, block), time?, &*of.calls))
        })
    })
}

/// The function of a call by its number, which is above 0.
fn function_of(calls: &[MessagePlace], number: u32) -> Option<&str> {
    Some(&calls.get((number as usize).checked_sub(1)?)?.function)
}

fn phase_calls(phase: &Phase) -> impl Iterator<Item = (&Phase, &Call)> {
    phase.calls.iter().map(move |call| (phase, call))
}

/// The numbers of each element; a variable without any number still gets one row.
fn elements(pvar: &Pvar) -> impl Iterator<Item = (&Pvar, Element, Readings)> {
    let mut elements = pvar.elements();
    if elements.is_empty() {
        elements.insert(Element::Scalar, Readings::default());
    }
    elements.into_iter().map(move |(element, readings)| (pvar, element, readings))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;
    use crate::parts::{PARTS, TIMELINE_TABLE};
    use crate::timeline::TimelineCall;

    /// The rows of a table, in words.
    fn rows(table: &RankTable, profile: &RankProfile) -> Vec<String> {
        let mut rows = Vec::new();
        let take = &mut |row: &[Value]| {
            rows.push(format!("{row:?}"));
            Ok(())
        };
        table.rows(profile, take).unwrap();
        rows
    }

    #[test]
    fn a_table_is_the_same_without_what_it_does_not_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut profiles = vec![root.join("results-schema/examples/rank.json")];
        for directory in fs::read_dir(root.join("tests/fixtures")).unwrap() {
            profiles.push(directory.unwrap().path().join("rank-000000.json"));
        }
        profiles.retain(|profile| profile.exists());
        assert!(profiles.len() > 5, "{profiles:?}");
        for path in profiles {
            let whole = gyan_results::read_rank(&path).unwrap();
            for table in TABLES {
                let left_out = RankTable::left_out([table].into_iter());
                let part = gyan_results::read_rank_without(&path, &left_out).unwrap();
                let place = format!("{} of {}", table.name, path.display());
                assert_eq!(rows(table, &part), rows(table, &whole), "{place}");
                assert!(left_out.len() + table.reads.len() == FIELDS.len(), "{place}");
            }
            let part = gyan_results::read_rank_without(&path, &FIELDS).unwrap();
            assert!(part.calls.is_empty() && part.sites.is_none(), "they are left out");
        }
    }

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/results-schema/examples/rank.json");
        let profile = gyan_results::read_rank(path.as_ref()).unwrap();
        for table in TABLES {
            let (columns, mut rows) = (table.columns(), 0);
            let take = &mut |row: &[Value]| {
                rows += 1;
                assert_eq!(row.len(), columns.len(), "{}", table.name);
                for (cell, column) in row.iter().zip(&columns) {
                    let fits = match cell {
                        Value::Nothing => !column.required,
                        Value::Text(_) => column.kind == Kind::Text,
                        Value::Rank(_) => column.kind == Kind::Integer,
                        Value::Amount(amount) => match amount.number {
                            Number::Integer(_) => column.kind != Kind::Text,
                            Number::Double(_) => {
                                matches!(column.kind, Kind::Double | Kind::Number)
                            }
                        },
                        _ => false,
                    };
                    assert!(fits, "{}: {}: {cell:?}", table.name, column.name);
                }
                Ok(())
            };
            table.rows(&profile, take).unwrap();
            assert!(rows > 0, "the example has no {}", table.name);
        }
    }

    #[test]
    fn the_help_names_every_table() {
        let export = crate::cli::Cli::command();
        let export = export.find_subcommand("export").unwrap();
        let option = export.get_arguments().find(|option| option.get_id() == "table").unwrap();
        let help = option.get_help().unwrap().to_string();
        let (names, _) = help.split_once(" [").unwrap();
        let (_, names) = names.split_once(": ").unwrap();
        let (names, _) = names.split_once("; ").unwrap();
        let mut expected: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        expected.push(TIMELINE_TABLE[0]);
        assert_eq!(names.split(", ").collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_are_told_apart_and_every_column_is_described() {
        for (at, table) in TABLES.iter().enumerate() {
            assert!(TABLES[..at].iter().all(|other| other.name != table.name), "{}", table.name);
            let columns = table.columns();
            for (at, Column { name, about, .. }) in columns.iter().enumerate() {
                assert!(!about.is_empty(), "{}: {name}", table.name);
                assert!(columns[..at].iter().all(|other| other.name != *name), "{name}");
            }
        }
    }

    /// What stands before the tables in docs/tables.md is written by hand. `BLESS=1` writes the tables.
    #[test]
    fn the_tables_in_the_docs_are_these() {
        const MARK: &str = "<!-- the tables: BLESS=1 cargo test --lib writes them -->\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tables.md");
        let written = fs::read_to_string(&path).unwrap();
        let (head, _) = written.split_once(MARK).unwrap();
        let mut text = format!("{head}{MARK}");
        let ranks = TABLES.iter().map(|table| (table.name, table.about, table.columns()));
        let [name, about] = TIMELINE_TABLE;
        let timeline = (name, about, TimelineCall::COLUMNS.to_vec());
        let of_run = PARTS.iter().filter_map(|part| part.table.as_ref());
        let is_described = |columns: &[Column]| columns.iter().all(|of| !of.about.is_empty());
        let of_run = of_run
            .filter(|table| is_described(table.columns))
            .map(|table| (table.name, table.about, table.columns.to_vec()));
        for (name, about, columns) in ranks.chain([timeline]).chain(of_run) {
            writeln!(text, "\n## {name}\n\nA row for each {about}.\n").unwrap();
            text.push_str("| column | type | unit | known | what it is |\n");
            text.push_str("| :-- | :-- | :-- | :-- | :-- |\n");
            for column in columns {
                let Column { name, kind, required, fidelity, about } = column;
                let (kind, null) = (kind.name(), if required { "" } else { " or null" });
                let unit = column.unit().unwrap_or_default();
                let known = fidelity.map_or("", Fidelity::words);
                writeln!(text, "| `{name}` | {kind}{null} | {unit} | {known} | {about} |").unwrap();
            }
        }
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written, text, "docs/tables.md is not of these tables; run with BLESS=1");
    }
}
