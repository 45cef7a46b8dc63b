//! `gyan export`: every format holds what the profiles hold, by readers that are not gyan's, and reports
//! call the same thing the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gyan_results::rank_file_name;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::common::{gyan, root, run, target};

const FIXTURES: [&str; 3] = ["gyan.rank-1", "gyan.rank-1-running", "gyan.rank-1-queues"];
/// A whole number that no double holds.
const ABOVE_DOUBLES: u64 = (1 << 53) + 1;

type Row = Map<String, Value>;

/// The profiles of a fixture, as JSON says and gyan's types do not.
fn profiles(directory: &Path) -> Vec<Value> {
    let read = |rank| {
        let text = fs::read_to_string(directory.join(rank_file_name(rank))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let profiles: Vec<Value> = (0..4).map(read).collect();
    assert_eq!(fs::read_dir(directory).unwrap().count(), profiles.len());
    profiles
}

/// The fixtures, and one with what they lack: numbers of a vector that was too long to keep, a text, and a
/// number above 2^53.
fn directories() -> Vec<(PathBuf, Option<TempDir>)> {
    let mut directories: Vec<(PathBuf, Option<TempDir>)> =
        FIXTURES.iter().map(|name| (root().join("tests/fixtures").join(name), None)).collect();
    let made = TempDir::new().unwrap();
    for mut profile in profiles(&directories[1].0) {
        let pvars = profile["pvars"].as_array_mut().unwrap();
        pvars[0]["start"] = json!([ABOVE_DOUBLES]);
        pvars[1]["end"] = json!({
            "count": 9, "nonzero": 3, "sum": 7, "min": 0, "min_at": 2, "max": 4, "max_at": 0
        });
        pvars[2]["end"] = json!("some text");
        pvars[2]["start"] = json!(null);
        pvars[2].as_object_mut().unwrap().remove("samples");
        let rank = u32::try_from(profile["rank"].as_u64().unwrap()).unwrap();
        fs::write(made.path().join(rank_file_name(rank)), profile.to_string()).unwrap();
    }
    directories.push((made.path().to_owned(), Some(made)));
    directories
}

/// The rows that an export of these profiles has, made from nothing but the JSON.
fn expected_variables(profiles: &[Value]) -> Vec<Row> {
    let mut rows = Vec::new();
    for profile in profiles {
        for pvar in profile["pvars"].as_array().unwrap() {
            // By the element: what was too long, then the scalar or the elements in their order.
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
                row.insert("job".into(), profile["job"]["id"].clone());
                row.insert("rank".into(), profile["rank"].clone());
                row.insert("variable".into(), pvar["name"].clone());
                row.insert("class".into(), pvar["class"].clone());
                let corrected = pvar.get("behaves_as").filter(|class| !class.is_null());
                row.insert("behaves_as".into(), corrected.unwrap_or(&pvar["class"]).clone());
                row.insert("object".into(), pvar["object"].clone());
                row.insert("element".into(), element.into());
                row.insert("samples".into(), samples["n"].clone());
                for column in
                    ["start", "end", "delta", "sampled_min", "sampled_mean", "sampled_max"]
                {
                    row.insert(column.into(), numbers.get(column).unwrap_or(&Value::Null).clone());
                }
                rows.push(row);
            }
        }
    }
    assert!(rows.len() > profiles.len());
    rows
}

fn expected_calls(profiles: &[Value]) -> Vec<Row> {
    let mut rows = Vec::new();
    for profile in profiles {
        for call in profile["calls"].as_array().unwrap() {
            let mut row = Row::new();
            row.insert("job".into(), profile["job"]["id"].clone());
            row.insert("rank".into(), profile["rank"].clone());
            row.insert("function".into(), call["name"].clone());
            for column in ["count", "bytes", "time_s", "time_error_s"] {
                row.insert(column.into(), call.get(column).unwrap_or(&Value::Null).clone());
            }
            rows.push(row);
        }
    }
    assert!(rows.len() > profiles.len());
    rows
}

/// Each table of each fixture: the option for it, and its rows.
fn each_table(mut test: impl FnMut(&Path, &[&str], Vec<Row>)) {
    for (directory, _keep) in directories() {
        let profiles = profiles(&directory);
        test(&directory, &[], expected_variables(&profiles));
        test(&directory, &["--calls"], expected_calls(&profiles));
    }
}

fn exported(directory: &Path, format: &str, options: &[&str]) -> String {
    let outcome = run(gyan().arg("export").arg(directory).args(["--format", format]).args(options));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{format} {options:?}");
    outcome.stdout
}

/// The same values in the same rows, in this order; whether a number is written as 1 or 1.0 is the
/// format's.
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
                    // As text, so that no digit is lost, but for 1.0, which is 1.
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

/// A Python with `DuckDB`, which the first test that needs it installs; none where that cannot be had.
fn duckdb() -> Option<PathBuf> {
    let place = target().join("test-readers");
    let python = place.join("bin/python");
    let has_it = || {
        let found = Command::new(&python).args(["-c", "import duckdb"]).output();
        found.is_ok_and(|found| found.status.success())
    };
    if !has_it() {
        let script = format!(
            "'{}/scripts/packages' python3 python3-venv && rm -rf '{place}' && python3 -m venv '{place}' && \
             '{place}/bin/pip' install --quiet --disable-pip-version-check 'duckdb>=1.4'",
            root().display(),
            place = place.display()
        );
        let outcome = run(Command::new("sh").args(["-c", &script]));
        if outcome.code != 0 {
            assert!(std::env::var_os("CI").is_none(), "no DuckDB: {}", outcome.stderr);
            eprintln!("skipped: DuckDB cannot be installed from PyPI:\n{}", outcome.stderr);
            return None;
        }
    }
    assert!(has_it());
    Some(python)
}

#[test]
fn parquet_holds_what_the_profiles_hold_as_duckdb_reads_it() {
    const READ: &str = "
import json, sys, duckdb
table = duckdb.sql('select * from read_parquet(?)', params=[sys.argv[1]])
for row in table.fetchall():
    print(json.dumps(dict(zip(table.columns, row))))";
    let Some(python) = duckdb() else { return };
    each_table(|directory, options, mut expected| {
        let place = TempDir::new().unwrap();
        let file = place.path().join("table.parquet");
        let options = [&["-o", file.to_str().unwrap()][..], options].concat();
        exported(directory, "parquet", &options);
        let outcome = run(Command::new(&python).args(["-c", READ]).arg(&file));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let lines = outcome.stdout.lines();
        let rows: Vec<Row> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        // What may be whole or not is there twice: as a double, and as an integer where it is one.
        for row in &mut expected {
            for column in ["start", "end", "delta", "sampled_min", "sampled_max"] {
                let Some(value) = row.get(column).cloned() else { continue };
                row.insert(column.into(), value.as_f64().into());
                let integer = value.as_i64().filter(|_| !value.is_f64());
                row.insert(format!("{column}_integer"), integer.into());
            }
        }
        assert_same(&rows, &expected, &format!("{} {options:?}", directory.display()));
    });
}

#[test]
fn reports_and_exports_call_the_same_thing_the_same() {
    let mut corrected = 0;
    for name in FIXTURES {
        let directory = root().join("tests/fixtures").join(name);
        let outcome = run(gyan().args(["report", "--format", "csv"]).arg(&directory));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
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
    for options in [&[][..], &["--calls"]] {
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
    assert!(refused.stderr.contains("is there already; name another file"), "{}", refused.stderr);
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
            &["html", "parquet", "jsonl"][..],
            "table, markdown, csv or json",
        ),
        (&["report", "--queues", directory], &["jsonl"], "table, markdown, csv or json"),
        (&["report", "--series", "*", directory], &["jsonl"], "table, markdown, csv or json"),
        (&["export", directory], &["table", "json", "markdown"], "parquet, csv or jsonl"),
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
