//! The tables of docs/reliability.md: what was injected, and whether it was survived.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use super::compare;
use crate::faults::{self, Fault};

/// The groups in their order, by the names of their files, with titles.
const GROUPS: [(&str, &str); 5] = [
    ("endings", "Endings of programs"),
    ("surroundings", "Disks, directories and clocks"),
    ("limits", "Limits of processes"),
    ("files", "Bad files"),
    ("hostile", "A hostile MPI"),
];

/// What all test processes injected, in the order of the names: tests run in any order.
fn injected(group: &str) -> Vec<Fault> {
    let files = fs::read_dir(faults::directory()).unwrap().map(|entry| entry.unwrap());
    let of_group = files
        .filter(|file| file.file_name().to_string_lossy().starts_with(&format!("{group}-")))
        .map(|file| fs::read(file.path()).unwrap());
    let mut all: Vec<Fault> =
        of_group.flat_map(|text| serde_json::from_slice::<Vec<Fault>>(&text).unwrap()).collect();
    all.sort_by(|a, b| (&a.name, &a.what).cmp(&(&b.name, &b.what)));
    all
}

/// A table per group: each fault with how often it was injected and survived.
fn tables() -> String {
    let mut text = String::new();
    for (group, title) in GROUPS {
        let all = injected(group);
        let survived = all.iter().filter(|fault| fault.survived).count();
        let injected = all.len();
        assert!(injected > 0, "{group}: the tests did not run");
        assert_eq!(survived, injected, "{group}: {:?}", all.iter().find(|fault| !fault.survived));
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
#[ignore = "scripts/test runs it after all others"]
fn reliability_shows_what_was_injected_and_all_of_it_was_survived() {
    compare("docs/reliability.md", "the tables of faults", &tables());
}
