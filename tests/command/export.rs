//! `gyan export`: every format contains what the profiles contain, according to readers other than gyan's, and
//! reports use the same names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use gyan_results::rank_file_name;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::common::{gyan, python_with, quiet, root, run, succeed};

const FIXTURES: [&str; 3] = ["gyan.rank-1", "gyan.rank-1-running", "gyan.rank-1-queues"];
/// A whole number that no double can represent.
const ABOVE_DOUBLES: u64 = (1 << 53) + 1;

type Row = Map<String, Value>;

/// The profiles of a fixture as plain JSON, without gyan's types.
fn profiles(directory: &Path) -> Vec<Value> {
    let read = |rank| {
        let text = fs::read_to_string(directory.join(rank_file_name(rank))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let profiles: Vec<Value> = (0..4).map(read).collect();
    assert_eq!(fs::read_dir(directory).unwrap().count(), profiles.len());
    profiles
}

/// The fixtures, and one with data that they lack: a vector that was too long to keep, a text, and a number
/// above 2^53.
fn directories() -> Vec<(PathBuf, Option<TempDir>)> {
    let mut directories: Vec<(PathBuf, Option<TempDir>)> =
        FIXTURES.iter().map(|name| (root().join("tests/fixtures").join(name), None)).collect();
    let made = TempDir::new().unwrap();
    for mut profile in newer_profiles() {
        let pvars = profile["pvars"].as_array_mut().unwrap();
        pvars[0]["start"] = json!([ABOVE_DOUBLES]);
        pvars[1]["end"] = json!({
            "count": 9, "nonzero": 3, "sum": 7, "min": 0, "min_at": 2, "max": 4, "max_at": 0
        });
        pvars[2]["end"] = json!("some text");
        pvars[2]["start"] = json!(null);
        pvars[2].as_object_mut().unwrap().remove("samples");
        profile["resources"] = made_up("Resources");
        profile["resources"]["cgroup"] = made_up("Cgroup");
        profile["resources"]["threads"] = made_up("Threads");
        profile["resources"]["openmp"] = made_up("OpenMpRuntime");
        let rank = u32::try_from(profile["rank"].as_u64().unwrap()).unwrap();
        fs::write(made.path().join(rank_file_name(rank)), profile.to_string()).unwrap();
    }
    directories.push((made.path().to_owned(), Some(made)));
    directories
}

/// The profiles of a fixture with data of later versions.
fn newer_profiles() -> Vec<Value> {
    let mut profiles = profiles(&root().join("tests/fixtures").join(FIXTURES[1]));
    for profile in &mut profiles {
        profile["peers"] = json!({
            "messages": [{"rank": 1, "number": 3, "bytes": 24}, {"rank": null, "number": 1, "bytes": 0}],
            "accesses": [{"rank": 0, "number": 5, "bytes": 40}]
        });
        profile["waiting"] = json!([{
            "function": "MPI_Allreduce", "communicator": "MPI_COMM_WORLD", "members": "00ff00ff00ff00ff",
            "ordinal": 0, "size": 4, "calls": 2, "level": 0, "times_ns": "A9J8"
        }]);
        profile["openmp"] = json!({
            "runtime": "LLVM OMP", "threads": 4, "elapsed_s": 9.75, "serial_s": 2.5, "serial_in_mpi_s": 1.25,
            "regions": [
                {"place": 0, "entries": 40, "timed": 10, "threads": 4, "time_s": 5.5, "time_error_s": 0.25,
                 "work_s": 16.0, "most_work_s": 5.0, "barrier_s": 5.5, "in_mpi_s": 0.5},
                {"place": null, "entries": 1, "timed": 1, "threads": 2, "time_s": 0.5,
                 "work_s": 0.75, "most_work_s": 0.5, "barrier_s": 0.25, "in_mpi_s": 0.0}
            ],
            "addresses": [{"object": 0, "address": 5200}],
            "load_map": [{"path": "/home/user/app", "build_id": "0b1e5c6ad1e1f3a5"}]
        });
        // The second message is not known, nor are the calls of the first one.
        profile["message_times"] = json!({
            "clock": "0123456789abcdef", "sent_in_none": 0, "addresses": [], "load_map": [],
            "calls": [{"function": "MPI_Isend"}, {"function": "MPI_Waitall"}],
            "streams": [{
                "direction": "sent", "peer": 1, "tag": 7, "communicator": "0011223344556677", "messages": 3,
                "level": 0, "times": "RAMAAApBDHBC"
            }]
        });
        profile["sites"] = json!({
            "sites": [
                {"function": "MPI_Send", "call": 0, "calls": 9, "calls_error": 0.5, "timed": 3, "time_s": 0.25,
                 "time_error_s": 0.125, "time_max_s": 0.0625, "bytes": 72, "stacks_taken": 0, "stacks": []},
                {"function": "MPI_Recv", "call": null, "calls": 1, "timed": 1, "time_s": 0.5,
                 "time_max_s": 0.5, "stacks_taken": 0, "stacks": []},
                {"function": "MPI_Recv", "call": 1, "calls": 1, "timed": 1, "time_s": 0.5,
                 "time_max_s": 0.5, "stacks_taken": 0, "stacks": []}
            ],
            "addresses": [{"object": 0, "address": 4096}, {"object": null, "address": 64, "name": "py::f:f.py"}],
            "load_map": [{"path": "/opt/app/solver", "build_id": null}]
        });
        let call = &mut profile["calls"][1];
        call["size_histogram"] = json!([2, 0, 0, 0, 7, 1]);
        call["size_histogram_bytes"] = json!([0, 0, 0, 0, 56, 16]);
    }
    profiles
}

fn expected_variables(profile: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for pvar in list(profile, "pvars") {
        // By element: digests of long vectors, then the scalar or the elements in order.
        let mut elements: BTreeMap<(bool, usize, &str), Row> = BTreeMap::new();
        let mut set = |column: &str, values: &Value| match values {
            Value::Array(list) => {
                for (at, value) in list.iter().enumerate() {
                    let name = if list.len() == 1 { "scalar" } else { "" };
                    let row = elements.entry((false, at, name)).or_default();
                    row.insert(column.into(), value.clone());
                }
            }
            Value::Object(parts) => {
                for (at, part) in ["sum", "min", "max"].into_iter().enumerate() {
                    if let Some(value) = parts.get(part) {
                        let row = elements.entry((true, at, part)).or_default();
                        row.insert(column.into(), value.clone());
                    }
                }
            }
            _ => {}
        };
        for column in ["start", "end", "delta"] {
            set(column, &pvar[column]);
        }
        let samples = &pvar["samples"];
        for column in ["min", "mean", "max"] {
            set(&format!("sampled_{column}"), &samples[column]);
            if !samples["sum"].is_null() {
                set(&format!("sampled_{column}"), &json!({"sum": samples["sum"][column]}));
            }
        }
        if elements.is_empty() {
            elements.insert((false, 0, "scalar"), Row::new());
        }
        for ((_, at, name), numbers) in elements {
            let element = if name.is_empty() { at.to_string() } else { name.to_owned() };
            let mut row = Row::new();
            row.insert("variable".into(), pvar["name"].clone());
            row.insert("class".into(), pvar["class"].clone());
            let corrected = pvar.get("behaves_as").filter(|class| !class.is_null());
            row.insert("behaves_as".into(), corrected.unwrap_or(&pvar["class"]).clone());
            row.insert("object".into(), pvar["object"].clone());
            row.insert("element".into(), element.into());
            row.insert("samples".into(), samples["n"].clone());
            for column in ["start", "end", "delta", "sampled_min", "sampled_mean", "sampled_max"] {
                row.insert(column.into(), numbers.get(column).unwrap_or(&Value::Null).clone());
            }
            rows.push(keyed(profile, row));
        }
    }
    rows
}

/// The numbers and texts of a datum by the schema of profiles: the name, the type, and what one that is missing stands for.
fn scalars(datum: &str) -> impl Iterator<Item = (&'static String, &'static str, &'static Value)> {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let path = root().join("results-schema/schemas/rank.schema.json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    });
    let fields = SCHEMA["$defs"][datum]["properties"].as_object().unwrap();
    fields.iter().filter_map(|(name, field)| {
        let kind = field["type"].as_str().or(field["type"][0].as_str())?;
        ["integer", "number", "string"].contains(&kind).then_some((name, kind, &field["default"]))
    })
}

/// A datum in which no two numbers are the same.
fn made_up(datum: &str) -> Value {
    let fields = scalars(datum).enumerate().map(|(at, (name, kind, _))| {
        let value = match kind {
            "integer" => json!(2 + at),
            "number" => json!(2.25 + at as f64),
            _ => json!(format!("text {at}")),
        };
        (name.clone(), value)
    });
    fields.collect::<Row>().into()
}

/// A datum, and which of its fields have a column of another name, or none.
type Columns = (&'static str, &'static [(&'static str, Option<&'static str>)]);

const CALL: &Columns = &("Call", &[("name", Some("function"))]);
const PHASE: &Columns = &("Phase", &[("name", Some("phase"))]);
/// What the ranks have, by its place in a profile.
const RANK: &[(&str, Columns)] = &[
    (
        "/overhead",
        (
            "Overhead",
            &[
                ("share", Some("overhead_share")),
                ("running_share", Some("overhead_running_share")),
                ("budget", None),
            ],
        ),
    ),
    ("/resources", ("Resources", &[("start_peak_memory_bytes", None), ("counters_absent", None)])),
    ("/resources/cgroup", ("Cgroup", &[("path", None), ("processors", None)])),
    (
        "/resources/threads",
        (
            "Threads",
            &[
                ("number", Some("threads")),
                ("busy", Some("busy_threads")),
                ("processor_wait_s", Some("thread_wait_s")),
            ],
        ),
    ),
    (
        "/resources/openmp",
        (
            "OpenMpRuntime",
            &[
                ("runtime", Some("openmp")),
                ("num_threads", Some("omp_num_threads")),
                ("settings", None),
            ],
        ),
    ),
];
/// The other columns of ranks, and the place of each in a profile.
const OF_RANK: &[(&str, &str)] = &[
    ("size", "/size"),
    ("pid", "/pid"),
    ("end", "/end/how"),
    ("code", "/end/code"),
    ("started", "/job/started"),
    ("elapsed_s", "/job/elapsed_s"),
    ("in_mpi_s", "/in_mpi/time_s"),
    ("in_mpi_error_s", "/in_mpi/time_error_s"),
    ("in_mpi_share", "/in_mpi/share"),
    ("library", "/mpi/library"),
    ("thread_level", "/mpi/thread_level"),
    // These profiles have no counters.
    ("useful_instructions", "/resources/counters"),
    ("useful_cycles", "/resources/counters"),
    ("useful_cache_misses", "/resources/counters"),
    ("frequency_hz", "/resources/counters"),
];

/// A row about `of` in a profile: a column for each of its numbers and texts.
fn row(profile: &Value, of: &Value, (datum, others): &Columns) -> Row {
    let columns = scalars(datum).filter_map(|(field, _, missing)| {
        let other = others.iter().find(|(name, _)| name == field);
        let column = other.map_or(Some(field.as_str()), |(_, column)| *column)?;
        let value = of.get(field).filter(|value| !value.is_null()).unwrap_or(missing);
        Some((column.to_owned(), value.clone()))
    });
    keyed(profile, columns.collect())
}

/// The same of what is at this place of `of`; null where nothing is.
fn row_at(profile: &Value, of: &Value, place: &str, columns: &Columns) -> Row {
    row(profile, of.pointer(place).unwrap_or(&Value::Null), columns)
}

fn expected_rank(profile: &Value) -> Row {
    let of_data = RANK.iter().flat_map(|(place, columns)| row_at(profile, profile, place, columns));
    let others = OF_RANK.iter().map(|(column, place)| {
        ((*column).to_owned(), profile.pointer(place).cloned().unwrap_or_default())
    });
    of_data.chain(others).collect()
}

fn expected_phases(profile: &Value) -> Vec<Row> {
    let row = |phase: &Value| {
        const COUNTERS: &Columns = &("PhaseCounters", &[("time_s", Some("counted_s"))]);
        let mut row = row_at(profile, phase, "/counters", COUNTERS);
        row.extend(row_at(profile, phase, "/counters/counts", &("Counts", &[])));
        row.extend(self::row(profile, phase, PHASE));
        row
    };
    list(profile, "phases").iter().map(row).collect()
}

/// With the keys.
fn keyed(profile: &Value, mut row: Row) -> Row {
    row.insert("job".into(), profile["job"]["id"].clone());
    row.insert("rank".into(), profile["rank"].clone());
    row.insert("host".into(), profile["host"].clone());
    if row.get("phase") == Some(&json!("")) {
        row.insert("phase".into(), "(outside)".into());
    }
    row
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn expected_times(profile: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for call in list(profile, "calls") {
        let bars = list(call, "time_histogram").iter().enumerate();
        for (at, count) in bars.skip_while(|(_, count)| **count == json!(0)) {
            let at = i32::try_from(at).unwrap();
            let edge = |at: i32| if at < 0 { 0.0 } else { 1e-9 * 2_f64.powi(at) };
            let mut row = Row::new();
            row.insert("function".into(), call["name"].clone());
            row.insert("from_s".into(), edge(at - 1).into());
            row.insert("below_s".into(), edge(at).into());
            row.insert("count".into(), count.clone());
            rows.push(keyed(profile, row));
        }
    }
    rows
}

fn expected_sizes(profile: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for call in list(profile, "calls") {
        for (at, count) in list(call, "size_histogram").iter().enumerate() {
            let mut row = Row::new();
            row.insert("function".into(), call["name"].clone());
            row.insert("from_bytes".into(), if at == 0 { 0 } else { 1 << (at - 1) }.into());
            row.insert("below_bytes".into(), (1 << at).into());
            row.insert("count".into(), count.clone());
            row.insert("bytes".into(), call["size_histogram_bytes"][at].clone());
            if *count != json!(0) {
                rows.push(keyed(profile, row));
            }
        }
    }
    rows
}

fn expected_peers(profile: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in ["messages", "accesses"] {
        for peer in list(&profile["peers"], kind) {
            let mut row = row(profile, peer, &("PeerTraffic", &[("rank", Some("peer"))]));
            row.insert("kind".into(), kind.into());
            // The rank of the row, which is not that of the peer.
            rows.push(keyed(profile, row));
        }
    }
    rows
}

fn expected_sites(profile: &Value) -> Vec<Row> {
    const SITE: &Columns = &(
        "Site",
        &[
            ("calls", Some("count")),
            ("calls_error", Some("count_error")),
            ("call", None),
            ("stacks_taken", None),
        ],
    );
    let mut rows = Vec::new();
    for site in list(&profile["sites"], "sites") {
        let mut row = row(profile, site, SITE);
        let code = code(&profile["sites"], &site["call"], &mut row);
        row.insert("name".into(), code["name"].clone());
        rows.push(row);
    }
    rows
}

/// The code at a place among the addresses of `all`, of which the row gets the object and the address.
fn code<'a>(all: &'a Value, place: &Value, row: &mut Row) -> &'a Value {
    let at = |of: &Value| of.as_u64().and_then(|at| usize::try_from(at).ok());
    let code = at(place).map_or(&Value::Null, |at| &all["addresses"][at]);
    let object = at(&code["object"]).map_or(&Value::Null, |at| &all["load_map"][at]);
    row.insert("object".into(), object["path"].clone());
    row.insert("address".into(), code["address"].clone());
    code
}

fn expected_openmp(profile: &Value) -> Vec<Row> {
    const REGION: &Columns = &("OpenMpRegion", &[("place", None)]);
    let regions = list(&profile["openmp"], "regions").iter();
    let row = |region: &Value| {
        let mut row = row(profile, region, REGION);
        code(&profile["openmp"], &region["place"], &mut row);
        row
    };
    regions.map(row).collect()
}

/// For a profile whose every call was timed.
fn expected_waiting(profile: &Value) -> Vec<Row> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut rows = Vec::new();
    for of in list(profile, "waiting") {
        assert_eq!(of["level"], 0);
        let digits = of["times_ns"].as_str().unwrap().chars().map(|one| DIGITS.find(one).unwrap());
        let digits: Vec<u64> = digits.map(|at| at.try_into().unwrap()).collect();
        for (call, pair) in digits.chunks(2).enumerate() {
            let ns = if pair[0] == 0 { pair[1] } else { (64 + pair[1]) << (pair[0] - 1) };
            let mut row = Row::new();
            for key in ["function", "communicator", "members", "ordinal"] {
                row.insert(key.into(), of[key].clone());
            }
            row.insert("call".into(), call.into());
            row.insert("time_ns".into(), ns.into());
            rows.push(keyed(profile, row));
        }
    }
    rows
}

/// For a profile whose every message was timed, in units of 64 ns: number, begun, waits, ended.
fn expected_message_times(profile: &Value) -> Vec<Row> {
    const TIMES: [[u64; 4]; 2] = [[0, 16, 16, 28], [2, 56, 59, 66]];
    let mut rows = Vec::new();
    for of in list(&profile["message_times"], "streams") {
        assert_eq!(of["times"], "RAMAAApBDHBC");
        for [message, begun, waits, ended] in TIMES {
            let mut row = Row::new();
            for key in ["direction", "peer", "tag", "communicator", "messages", "level"] {
                row.insert(key.into(), of[key].clone());
            }
            row.insert("message".into(), message.into());
            for (key, units) in [("begun_ns", begun), ("waits_ns", waits), ("ended_ns", ended)] {
                row.insert(key.into(), (64 * units).into());
            }
            for (key, function) in [("begun_in", "MPI_Isend"), ("waits_in", "MPI_Waitall")] {
                let known = if message > 0 { function.into() } else { Value::Null };
                row.insert(key.into(), known);
            }
            rows.push(keyed(profile, row));
        }
    }
    rows
}

fn expected_series(profile: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    let series = &profile["series"];
    for column in list(series, "columns") {
        let same = |pvar: &&Value| {
            ["name", "class", "object"].iter().all(|key| column[*key] == pvar[*key])
        };
        let pvar = list(profile, "pvars").iter().find(same);
        let corrected = pvar.and_then(|pvar| pvar.get("behaves_as")).filter(|of| !of.is_null());
        for (at, end_s) in list(series, "end_s").iter().enumerate() {
            let mut row = Row::new();
            for key in ["min", "mean", "max"] {
                row.insert(key.into(), column[key][at].clone());
            }
            if row.values().any(Value::is_null) {
                continue;
            }
            row.insert("variable".into(), column["name"].clone());
            row.insert("class".into(), column["class"].clone());
            row.insert("behaves_as".into(), corrected.unwrap_or(&column["class"]).clone());
            row.insert("object".into(), column["object"].clone());
            row.insert("end_s".into(), end_s.clone());
            rows.push(keyed(profile, row));
        }
    }
    rows
}

fn expected_phase_calls(profile: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for phase in list(profile, "phases") {
        for call in list(phase, "calls") {
            let mut row = row(profile, call, CALL);
            row.insert("phase".into(), phase["name"].clone());
            rows.push(keyed(profile, row));
        }
    }
    rows
}

/// The expected rows of a table in an export of these profiles, made only from the JSON.
fn expected(table: &str, profiles: &[Value]) -> Vec<Row> {
    let of = |profile: &Value| match table {
        "ranks" => vec![expected_rank(profile)],
        "calls" => list(profile, "calls").iter().map(|call| row(profile, call, CALL)).collect(),
        "times" => expected_times(profile),
        "sizes" => expected_sizes(profile),
        "peers" => expected_peers(profile),
        "sites" => expected_sites(profile),
        "waiting" => expected_waiting(profile),
        "message_times" => expected_message_times(profile),
        "variables" => expected_variables(profile),
        "series" => expected_series(profile),
        "phases" => expected_phases(profile),
        "phase_calls" => expected_phase_calls(profile),
        "openmp" => expected_openmp(profile),
        _ => panic!("{table}"),
    };
    profiles.iter().flat_map(of).collect()
}

const TABLES: [&str; 13] = [
    "ranks",
    "calls",
    "times",
    "sizes",
    "peers",
    "sites",
    "waiting",
    "message_times",
    "variables",
    "series",
    "phases",
    "phase_calls",
    "openmp",
];

/// Each table of each fixture: the options for it, and its rows.
fn each_table(mut test: impl FnMut(&Path, &[&str], Vec<Row>)) {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (directory, _keep) in directories() {
        let profiles = profiles(&directory);
        for table in TABLES {
            let expected = expected(table, &profiles);
            *rows.entry(table).or_default() += expected.len();
            test(&directory, &["--table", table], expected);
        }
        // As before tables had names.
        test(&directory, &[], expected("variables", &profiles));
        test(&directory, &["--calls"], expected("calls", &profiles));
    }
    assert!(TABLES.iter().all(|table| rows[table] >= 4), "{rows:?}");
}

fn exported(directory: &Path, format: &str, options: &[&str]) -> String {
    let outcome = run(gyan().arg("export").arg(directory).args(["--format", format]).args(options));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{format} {options:?}");
    outcome.stdout
}

/// The same values in the same rows, in this order; whether a number is written as 1 or 1.0 is up to the
/// format.
fn assert_same(found: &[Row], expected: &[Row], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let keys = |row: &Row| row.keys().cloned().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(keys(found), keys(expected), "{what}");
        for (column, value) in expected {
            let same = match (value.as_f64(), found[column].as_f64()) {
                (Some(one), Some(other)) if value.is_f64() || found[column].is_f64() => {
                    one.to_bits() == other.to_bits()
                }
                _ => *value == found[column],
            };
            assert!(same, "{what}: {column} is {}, not {value} in {expected:?}", found[column]);
        }
    }
}

#[test]
fn json_lines_hold_what_the_profiles_hold() {
    each_table(|directory, options, expected| {
        let text = exported(directory, "jsonl", options);
        let rows: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_same(&rows, &expected, &format!("{} {options:?}", directory.display()));
    });
}

#[test]
fn csv_holds_what_the_profiles_hold() {
    each_table(|directory, options, expected| {
        let text = exported(directory, "csv", options);
        let rows = csv_rows(&text);
        assert_eq!(rows.len(), expected.len(), "{}", directory.display());
        for (row, expected) in rows.iter().zip(expected) {
            assert_eq!(row.len(), expected.len());
            for (column, value) in expected {
                let found = &row[&column];
                let digits = value.to_string();
                let same = match &value {
                    Value::Null => found.is_empty(),
                    Value::String(text) => found == text,
                    // As text, so that no digit is lost; except that 1.0 becomes 1.
                    number if number.is_u64() || number.is_i64() => *found == digits,
                    number => found.parse() == Ok(number.as_f64().unwrap()),
                };
                assert!(same, "{column} is {found}, not {value}");
            }
        }
    });
}

fn csv_rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

/// A Python with `DuckDB`, pandas and Polars, which the first test that needs it installs; none when they are
/// not available.
fn readers() -> Option<&'static Path> {
    static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let packages = ["duckdb>=1.4", "pandas", "polars", "pyarrow"];
        python_with("test-readers", "duckdb, pandas, polars, pyarrow", &packages)
    });
    PYTHON.as_deref()
}

#[test]
fn parquet_holds_what_the_profiles_hold_as_duckdb_reads_it() {
    const READ: &str = "
import json, sys, duckdb
for path in sys.argv[1:]:
    table = duckdb.sql('select * from read_parquet(?)', params=[path])
    print(json.dumps([dict(zip(table.columns, row)) for row in table.fetchall()]))";
    let Some(python) = readers() else { return };
    let place = TempDir::new().unwrap();
    let (mut files, mut tables) = (Vec::new(), Vec::new());
    each_table(|directory, options, expected| {
        let file = place.path().join(format!("{}.parquet", files.len()));
        let options = [&["-o", file.to_str().unwrap()][..], options].concat();
        exported(directory, "parquet", &options);
        tables.push((format!("{} {options:?}", directory.display()), expected));
        files.push(file);
    });
    let outcome = succeed(Command::new(python).args(["-c", READ]).args(&files));
    assert_eq!(outcome.stdout.lines().count(), tables.len());
    for (line, (what, mut expected)) in outcome.stdout.lines().zip(tables) {
        let rows: Vec<Row> = serde_json::from_str(line).unwrap();
        // Numbers that may or may not be whole appear twice: as a double, and as an integer if they are one.
        for row in expected.iter_mut().filter(|row| row.contains_key("element")) {
            for column in ["start", "end", "delta", "sampled_min", "sampled_max"] {
                let Some(value) = row.get(column).cloned() else { continue };
                row.insert(column.into(), value.as_f64().into());
                let integer = value.as_i64().filter(|_| !value.is_f64());
                row.insert(format!("{column}_integer"), integer.into());
            }
        }
        assert_same(&rows, &expected, &what);
    }
}

#[test]
fn every_table_is_read_and_joins_with_the_ranks_in_duckdb_pandas_and_polars() {
    // For each reader: the number of rows of each table, and, for a join of the calls with the ranks, its rows
    // and the sums of a column from each.
    const READ: &str = "
import json, sys, duckdb, pandas, polars
place, ending, tables = sys.argv[1], sys.argv[2], sys.argv[3:]
keys = ['job', 'rank', 'host']
def path(name):
    return f'{place}/{name}.{ending}'
from_pandas = {'parquet': pandas.read_parquet, 'csv': pandas.read_csv,
               'jsonl': lambda path: pandas.read_json(path, lines=True)}[ending]
from_polars = {'parquet': polars.read_parquet, 'csv': polars.read_csv,
               'jsonl': polars.read_ndjson}[ending]
def say(name, rows, joined, count, elapsed_s):
    print(json.dumps([name, rows, joined, int(count), float(elapsed_s)]))

frames = {table: from_pandas(path(table)) for table in tables}
for frame in frames.values():
    assert len(frame.merge(frames['ranks'][keys], on=keys)) == len(frame)
joined = frames['calls'].merge(frames['ranks'], on=keys)
say('pandas', {table: len(frame) for table, frame in frames.items()}, len(joined),
    joined['count'].sum(), joined['elapsed_s'].sum())

frames = {table: from_polars(path(table)) for table in tables}
for frame in frames.values():
    assert len(frame.join(frames['ranks'].select(keys), on=keys)) == len(frame)
joined = frames['calls'].join(frames['ranks'], on=keys)
say('polars', {table: len(frame) for table, frame in frames.items()}, len(joined),
    joined['count'].sum(), joined['elapsed_s'].sum())

for table in tables:
    duckdb.sql(f\"create view {table} as select * from '{path(table)}'\")
rows = {table: duckdb.sql(f'select count(*) from {table} join ranks using (job, rank, host)').fetchall()[0][0]
        for table in tables}
joined = duckdb.sql('select count(*), sum(count), sum(elapsed_s) from calls join ranks using (job, rank, host)')
say('duckdb', rows, *joined.fetchall()[0])";
    let Some(python) = readers() else { return };
    let profiles = newer_profiles();
    let made = TempDir::new().unwrap();
    let directory = made.path();
    for (rank, profile) in (0..).zip(&profiles) {
        fs::write(directory.join(rank_file_name(rank)), profile.to_string()).unwrap();
    }
    let rows: BTreeMap<String, usize> =
        TABLES.map(|table| (table.to_owned(), expected(table, &profiles).len())).into();
    assert!(rows.values().all(|rows| *rows > 0), "{rows:?}");
    let (mut count, mut elapsed_s) = (0, 0.0);
    for profile in &profiles {
        for call in list(profile, "calls") {
            count += call["count"].as_u64().unwrap();
            elapsed_s += profile["job"]["elapsed_s"].as_f64().unwrap();
        }
    }
    for format in ["parquet", "csv", "jsonl"] {
        let place = TempDir::new().unwrap();
        let said = exported(directory, format, &["-o", place.path().to_str().unwrap()]);
        assert!(said.starts_with("4 profiles exported to "), "{said}");
        let files = fs::read_dir(place.path()).unwrap();
        let mut files: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        let mut expected = TABLES.map(|table| format!("{table}.{format}"));
        expected.sort();
        assert_eq!(files, expected);
        let mut reader = Command::new(python);
        reader.args(["-c", READ]).arg(place.path()).arg(format).args(TABLES);
        let outcome = run(&mut reader);
        assert_eq!(outcome.code, 0, "{format}: {}", outcome.stderr);
        let mut readers = Vec::new();
        for line in outcome.stdout.lines() {
            let found: (String, BTreeMap<String, usize>, usize, u64, f64) =
                serde_json::from_str(line).unwrap();
            let (reader, found_rows, joined, found_count, found_s) = found;
            assert_eq!(found_rows, rows, "{reader} {format}");
            assert_eq!((joined, found_count), (rows["calls"], count), "{reader} {format}");
            assert!((found_s - elapsed_s).abs() < 1e-9 * elapsed_s, "{reader} {format}: {found_s}");
            readers.push(reader);
        }
        assert_eq!(readers, ["pandas", "polars", "duckdb"]);
    }
}

/// Of many runs: more than are read at once, one with more ranks than are kept, and one that is damaged.
#[test]
fn tables_of_many_runs_are_those_of_each_run() {
    let place = TempDir::new().unwrap();
    let (one, summary) = (root().join("tests/fixtures/gyan.rank-1-running"), "summary_findings");
    let profiles = profiles(&one);
    for (run, ranks) in (0..70).zip([4, 80, 2].into_iter().cycle()) {
        let directory = place.path().join(format!("run-{run:02}"));
        fs::create_dir(&directory).unwrap();
        for rank in 0..ranks {
            let mut profile = profiles[rank as usize % 4].clone();
            profile["rank"] = rank.into();
            profile["size"] = ranks.into();
            profile["job"]["id"] = format!("job {run}").into();
            fs::write(directory.join(rank_file_name(rank)), profile.to_string()).unwrap();
        }
    }
    let parsed = |text: &str| -> Vec<Row> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    for table in ["calls", summary] {
        let found = parsed(&exported(place.path(), "jsonl", &["--runs", "--table", table]));
        let runs: Vec<&str> = found.iter().map(|row| row["run"].as_str().unwrap()).collect();
        assert!(runs.is_sorted(), "{table}");
        // Some of each size.
        for run in (0..70).step_by(10) {
            let directory = place.path().join(format!("run-{run:02}"));
            let mut expected = parsed(&exported(&directory, "jsonl", &["--table", table]));
            for row in &mut expected {
                row.insert("run".into(), directory.to_str().unwrap().into());
            }
            let is_of_it = |row: &&Row| Path::new(row["run"].as_str().unwrap()) == directory;
            let of_it: Vec<Row> = found.iter().filter(is_of_it).cloned().collect();
            assert!(!of_it.is_empty(), "{table}");
            assert_same(&of_it, &expected, table);
        }
    }
    fs::write(place.path().join("run-05").join(rank_file_name(1)), "{").unwrap();
    let damaged = run(gyan()
        .arg("export")
        .arg("--runs")
        .arg(place.path())
        .args(["--format", "jsonl", "--table", "ranks"]));
    assert_eq!((damaged.code, damaged.stderr.lines().count()), (1, 1), "{}", damaged.stderr);
    assert!(damaged.stderr.contains("run-05/rank-000001.json: "), "{}", damaged.stderr);
    assert_eq!(damaged.stdout.lines().count(), 24 * 4 + 23 * 80 + 23 * 2 - 1);
}

#[test]
fn the_schema_names_the_columns_of_each_table() {
    let directory = root().join("tests/fixtures/gyan.rank-1-running");
    let schema = quiet(gyan().args(["export", "--schema"]).arg(&directory));
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    let mut units = BTreeMap::new();
    for table in list(&schema, "tables") {
        let name = table["name"].as_str().unwrap();
        let columns = list(table, "columns");
        for column in columns {
            let key = format!("{name}.{}", column["name"].as_str().unwrap());
            units.insert(key, [column["unit"].clone(), column["fidelity"].clone()]);
        }
        if name == "timeline" {
            continue;
        }
        let csv = exported(&directory, "csv", &["--table", name]);
        let names: Vec<&str> =
            columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(csv.lines().next(), Some(names.join(",").as_str()), "{name}");
    }
    assert_eq!(units["calls.time_s"], [json!("s"), json!("estimated")]);
    assert_eq!(units["calls.bytes"], [json!("bytes"), json!("exact")]);
    assert_eq!(units["sizes.from_bytes"][0], json!("bytes"));
    assert_eq!(units["ranks.in_mpi_share"][0], json!("share"));
    assert_eq!(units["timeline.begun_ns"][0], json!("ns"));
    assert_eq!(units["variables.delta"], [json!(null), json!("exact")]);
    assert_eq!(units["calls.function"], [json!(null), json!(null)]);
}

#[test]
fn tables_that_cannot_be_written_like_that_are_refused_in_one_line() {
    let place = TempDir::new().unwrap();
    let directory = root().join("tests/fixtures/gyan.rank-1-running");
    let export = |options: &[&str]| {
        let mut command = gyan();
        command.arg("export").arg(&directory).args(["--format", "csv"]).args(options);
        run(command.current_dir(place.path()))
    };
    for (options, message) in [
        (&["--table", "cows"][..], "--table cows: is not a table; choose one of ranks, calls, "),
        (&["--table", "calls,ranks"], "several tables are several files; name a directory"),
        (&["--table", "calls,ranks", "-o", "file.csv"], "several tables are several files"),
    ] {
        let outcome = export(options);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{options:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    // A directory is created if its name ends with a slash.
    let some = export(&["--table", "calls,ranks,calls", "-o", "tables/"]);
    assert_eq!((some.code, some.stderr.as_str()), (0, ""));
    assert_eq!(fs::read_dir(place.path().join("tables")).unwrap().count(), 2);
    let again = export(&["-o", "tables"]);
    assert_eq!((again.code, again.stderr.lines().count()), (2, 1), "{}", again.stderr);
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    assert_eq!(fs::read_dir(place.path().join("tables")).unwrap().count(), 2);
    assert_eq!(export(&["-o", "tables", "--force"]).code, 0);
    assert_eq!(fs::read_dir(place.path().join("tables")).unwrap().count(), TABLES.len());
}

#[test]
fn reports_and_exports_call_the_same_thing_the_same() {
    let mut corrected = 0;
    for name in FIXTURES {
        let directory = root().join("tests/fixtures").join(name);
        let outcome = succeed(gyan().args(["report", "--format", "csv"]).arg(&directory));
        let exports = csv_rows(&exported(&directory, "csv", &[]));
        let measures = ["start", "end", "delta", "sampled_min", "sampled_mean", "sampled_max"];
        let mut joined = 0;
        for report in csv_rows(&outcome.stdout) {
            let measure = report["measure"].as_str();
            let is_reading = report["kind"] == "pvar" && measures.contains(&measure);
            if !is_reading || !report["phase"].is_empty() {
                continue;
            }
            let same = |row: &&BTreeMap<String, String>| {
                row["variable"] == report["name"]
                    && ["class", "behaves_as", "object", "element"]
                        .iter()
                        .all(|column| row[*column] == report[*column])
            };
            let of_ranks = exports.iter().filter(same).filter(|row| !row[measure].is_empty());
            let numbers: Vec<f64> = of_ranks.map(|row| row[measure].parse().unwrap()).collect();
            assert_eq!(numbers.len().to_string(), report["ranks"], "{name}: {report:?}");
            let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(Ok(largest), report["max"].parse(), "{name}: {report:?}");
            joined += 1;
            corrected += usize::from(report["class"] != report["behaves_as"]);
        }
        assert!(joined > 5, "{name}: {joined} rows of a report were joined");
        if name == "gyan.rank-1-running" {
            let mut report = gyan();
            report.args(["report", "--series", "*", "--format", "csv"]).arg(&directory);
            let series = csv_rows(&run(&mut report).stdout);
            assert!(!series.is_empty());
            for row in series {
                let columns = ["rank", "variable", "class", "behaves_as", "object"];
                let same = |other: &&BTreeMap<String, String>| {
                    columns.iter().all(|column| other[*column] == row[*column])
                };
                assert!(exports.iter().any(|other| same(&other)), "{row:?}");
            }
        }
    }
    assert!(corrected > 0, "no variable of the fixtures has a corrected class");
}

#[test]
fn an_export_of_a_pack_is_that_of_the_directory() {
    let place = TempDir::new().unwrap();
    let directory = root().join("tests/fixtures/gyan.rank-1-running");
    let pack = place.path().join("run.gyan.zst");
    assert_eq!(run(gyan().arg("pack").arg(&directory).arg("-o").arg(&pack)).code, 0);
    for table in TABLES {
        let options = &["--table", table];
        let of = |source: &Path| exported(source, "jsonl", options);
        assert_eq!(of(&pack), of(&directory), "{options:?}");
    }
}

#[test]
fn a_file_is_replaced_only_by_force_and_whole() {
    let place = TempDir::new().unwrap();
    let directory = root().join("tests/fixtures/gyan.rank-1");
    let file = place.path().join("table.csv");
    fs::write(&file, "mine").unwrap();
    let export = |options: &[&str]| {
        let mut command = gyan();
        command.arg("export").arg(&directory).args(["--format", "csv", "-o"]).arg(&file);
        run(command.args(options))
    };
    let refused = export(&[]);
    assert_eq!((refused.code, refused.stderr.lines().count()), (2, 1), "{}", refused.stderr);
    assert!(refused.stderr.contains("already exists; name another file"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let done = export(&["--force"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    assert!(done.stdout.starts_with("4 profiles exported to "), "{}", done.stdout);
    assert_eq!(fs::read_to_string(&file).unwrap(), exported(&directory, "csv", &[]));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "a temporary file is left");
}

#[test]
fn what_is_damaged_is_said_and_the_rest_exported() {
    let place = TempDir::new().unwrap();
    let export = || run(gyan().arg("export").arg(place.path()).args(["--format", "jsonl"]));
    let nothing = export();
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""));
    assert!(nothing.stderr.contains("holds no rank profiles"), "{}", nothing.stderr);
    for rank in 0..2 {
        let from = root().join("tests/fixtures/gyan.rank-1").join(rank_file_name(rank));
        fs::copy(from, place.path().join(rank_file_name(rank))).unwrap();
    }
    let whole = export();
    assert_eq!((whole.code, whole.stderr.as_str()), (0, ""));
    fs::write(place.path().join(rank_file_name(1)), "{").unwrap();
    let damaged = export();
    assert_eq!((damaged.code, damaged.stderr.lines().count()), (1, 1), "{}", damaged.stderr);
    assert!(damaged.stderr.contains("rank-000001.json: is truncated"), "{}", damaged.stderr);
    let of_rank_0 = whole.stdout.lines().filter(|line| line.contains("\"rank\":0,"));
    assert!(of_rank_0.eq(damaged.stdout.lines()), "{}", damaged.stdout);
}

#[test]
fn a_format_that_a_subcommand_lacks_is_refused_with_those_that_it_has() {
    let directory = root().join("tests/fixtures/gyan.rank-1-running");
    let directory = directory.to_str().unwrap();
    for (arguments, lacks, has) in [
        (
            &["report", directory][..],
            &["pdf", "parquet", "jsonl"][..],
            "table, markdown, csv, json or html",
        ),
        (&["report", "--queues", directory], &["jsonl"], "table, markdown, csv, json or html"),
        (&["report", "--series", "*", directory], &["jsonl"], "table, markdown, csv, json or html"),
        (
            &["export", directory],
            &["table", "json", "markdown"],
            "parquet, csv, jsonl, caliper, cube, collapsed, speedscope or extrap",
        ),
        (&["varlist"], &["csv", "jsonl", "parquet"], "table, markdown or json"),
        (&["doctor"], &["csv", "jsonl", "parquet"], "table, markdown or json"),
    ] {
        for format in lacks {
            let outcome = run(gyan().args(arguments).args(["--format", format]));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?} {format}");
            let expected = format!(
                "gyan: --format {format}: gyan {} prints {has}; choose one of these\n",
                arguments[0]
            );
            assert_eq!(outcome.stderr, expected);
        }
    }
    // The others have no format.
    for command in ["run", "reduce", "pack", "unpack"] {
        let outcome = run(gyan().args([command, "--format", "json", directory]));
        assert_eq!(outcome.code, 2, "{command}: {}", outcome.stderr);
    }
}
