//! The tables in documents that are made from the results of earlier tests, or from counts: `scripts/test` runs
//! these ignored tests as its last step.

mod faults;
mod findings;
mod instructions;
mod mpis;
mod waits;

use std::fs;

use crate::common::root;

/// Compares a document with what it should hold between two comments; `BLESS=1` writes it.
pub(crate) fn compare(document: &str, what: &str, expected: &str) {
    let [before, current, after] = parts(document, what);
    if std::env::var_os("BLESS").is_some() {
        fs::write(root().join(document), before + expected + &after).unwrap();
    } else {
        assert_eq!(current, expected, "{document} is out of date; BLESS=1 scripts/test writes it");
    }
}

/// A document split into the text before two comments, between them, and after.
fn parts(document: &str, what: &str) -> [String; 3] {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let begins = |line: &&str| line.starts_with(&format!("<!-- {what}: "));
    let begin = text.split_inclusive('\n').find(begins).expect("the place of the tables");
    let end = format!("<!-- end of {what} -->\n");
    let (before, rest) = text.split_once(begin).unwrap();
    let (current, after) = rest.split_once(&end).expect("the end of the tables");
    [format!("{before}{begin}"), current.to_owned(), format!("{end}{after}")]
}
