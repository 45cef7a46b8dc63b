//! docs/reliability.md names tests that there are, and its tables are what the tests before have shown.
//!
//! As `whole_matrix`, it comes after those in the order of names.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use crate::common::root;
use crate::faults::{self, Fault};

/// Set by `scripts/test`, which runs all tests and removes the records of earlier ones.
const WHOLE: &str = "GYAN_TEST_MATRIX";

const BEGIN: &str = "<!-- the tables of faults: BLESS=1 scripts/test writes them -->\n";
const END: &str = "<!-- end of the tables of faults -->\n";

/// The groups in their order, by the names of their files, with titles.
const GROUPS: [(&str, &str); 5] = [
    ("endings", "Endings of programs"),
    ("surroundings", "Disks, directories and clocks"),
    ("limits", "Limits of processes"),
    ("files", "Bad files"),
    ("hostile", "A hostile MPI"),
];

/// A table a group: each fault with how often it was injected and survived.
fn tables() -> String {
    let mut text = String::new();
    for (group, title) in GROUPS {
        let Ok(file) = fs::read(faults::directory().join(format!("{group}.json"))) else {
            continue;
        };
        let all: Vec<Fault> = serde_json::from_slice(&file).unwrap();
        let survived = all.iter().filter(|fault| fault.survived).count();
        let injected = all.len();
        writeln!(text, "\n### {title}: {injected} injected, {survived} survived\n").unwrap();
        writeln!(text, "| fault | injected | survived | what that means |").unwrap();
        writeln!(text, "| :-- | --: | --: | :-- |").unwrap();
        let mut known = BTreeSet::new();
        for fault in &all {
            if !known.insert(&fault.name) {
                continue;
            }
            let same = || all.iter().filter(|other| other.name == fault.name);
            let survived = same().filter(|fault| fault.survived).count();
            let [name, what] = [&fault.name, &fault.what].map(|cell| cell.replace('|', "\\|"));
            writeln!(text, "| {name} | {} | {survived} | {what} |", same().count()).unwrap();
        }
    }
    text.push('\n');
    text
}

#[test]
fn the_tables_of_faults_are_what_the_tests_have_injected() {
    let path = root().join("docs/reliability.md");
    let document = fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("the place of the tables");
    let (current, after) = rest.split_once(END).expect("the end of the tables");
    for row in current.lines().filter(|row| row.starts_with("| ")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        assert_eq!(cells.get(1), cells.get(2).filter(|cell| **cell != "survived").or(cells.get(1)));
    }
    if std::env::var_os(WHOLE).is_none() {
        eprintln!("the tables were not compared: {WHOLE} is not set, as scripts/test does");
        return;
    }
    let tables = tables();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{tables}{END}{after}")).unwrap();
    } else {
        assert_eq!(
            current, tables,
            "docs/reliability.md is out of date; BLESS=1 scripts/test writes it"
        );
    }
}

/// The names of all test functions, with the modules that they are in: `endings::a_rank_...`.
fn tests_there_are() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders =
        ["tests", "wrappers/src", "results-schema/src"].map(|top| root().join(top)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let source = if path.ends_with("mod.rs") { folder.as_path() } else { path.as_path() };
            let module = source.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            for test in text.split("#[test]").skip(1) {
                let Some((_, rest)) = test.split_once("fn ") else { continue };
                let Some((name, _)) = rest.split_once('(') else { continue };
                names.insert(format!("{module}::{name}"));
            }
        }
    }
    names
}

#[test]
fn each_promise_names_tests_that_there_are() {
    let document = fs::read_to_string(root().join("docs/reliability.md")).unwrap();
    let there_are = tests_there_are();
    let named = document.split('`').skip(1).step_by(2).filter(|code| code.contains("::"));
    let missing: Vec<&str> = named.filter(|name| !there_are.contains(*name)).collect();
    assert_eq!(missing, [""; 0], "docs/reliability.md names tests that there are not");
    let (_, promises) = document.split_once("## Promises").unwrap();
    let (promises, _) = promises.split_once("\n## ").unwrap();
    for promise in promises.split("\n- ").skip(1) {
        assert!(promise.contains("::"), "a promise without a test: {promise}");
    }
}
