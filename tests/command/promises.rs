//! Each promise of docs/reliability.md names tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::root;

/// Adds the names of all test functions below `folder`, with their files: `endings::a_rank_...`.
fn collect_tests(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_tests(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = if path.ends_with("mod.rs") { folder } else { &path };
            let module = file.file_stem().unwrap().to_string_lossy();
            let text = fs::read_to_string(&path).unwrap();
            for test in text.split("#[test]").skip(1) {
                let (_, rest) = test.split_once("fn ").unwrap();
                let (name, _) = rest.split_once('(').unwrap();
                names.insert(format!("{module}::{name}"));
            }
        }
    }
}

#[test]
fn each_promise_names_tests_that_there_are() {
    let document = fs::read_to_string(root().join("docs/reliability.md")).unwrap();
    let mut there_are = BTreeSet::new();
    for folder in ["tests", "wrappers/src", "results-schema/src"] {
        collect_tests(&root().join(folder), &mut there_are);
    }
    let named = document.split('`').skip(1).step_by(2).filter(|code| code.contains("::"));
    let missing: Vec<&str> = named.filter(|name| !there_are.contains(*name)).collect();
    assert_eq!(missing, [""; 0], "docs/reliability.md names tests that there are not");
    let (_, promises) = document.split_once("## Promises").unwrap();
    let (promises, _) = promises.split_once("\n## ").unwrap();
    let promises: Vec<&str> = promises.split("\n- ").skip(1).collect();
    assert!(promises.len() > 20, "only {} promises found", promises.len());
    for promise in promises {
        assert!(promise.contains("::"), "a promise without a test: {promise}");
    }
}
