//! The tables in documents that are made of what the tests before have passed: `scripts/test` runs these
//! ignored tests as its last step.

mod faults;
mod mpis;

use std::fs;

use crate::common::root;

/// Compares a document with what it should hold between two comments; `BLESS=1` writes it.
fn compare(document: &str, what: &str, expected: &str) {
    let path = root().join(document);
    let text = fs::read_to_string(&path).unwrap();
    let begins = |line: &&str| line.starts_with(&format!("<!-- {what}: "));
    let begin = text.split_inclusive('\n').find(begins).expect("the place of the tables");
    let end = format!("<!-- end of {what} -->\n");
    let (before, rest) = text.split_once(begin).unwrap();
    let (current, after) = rest.split_once(&end).expect("the end of the tables");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, format!("{before}{begin}{expected}{end}{after}")).unwrap();
    } else {
        assert_eq!(current, expected, "{document} is out of date; BLESS=1 scripts/test writes it");
    }
}
