//! docs/tested.md's table of MPIs, languages and launchers: what has passed.

use std::fmt::Write;

use super::compare;
use crate::common::BED;
use crate::matrix::{LANGUAGES, LAUNCHERS, ROWS, has_passed, reason};

/// The two tables, with the reasons below them.
fn tables() -> String {
    let mut reasons: Vec<&str> = Vec::new();
    let mut text = String::from("\n");
    for columns in [&LANGUAGES[..], &LAUNCHERS] {
        let titles: Vec<&str> = columns.iter().map(|(_, title)| *title).collect();
        writeln!(text, "| MPI | interface | {} |", titles.join(" | ")).unwrap();
        writeln!(text, "| :-- | :-- |{}", " :-: |".repeat(columns.len())).unwrap();
        for (mpi, (name, interface)) in BED.into_iter().zip(ROWS) {
            let cells = columns.iter().map(|(column, _)| match reason(mpi, *column) {
                Some(reason) => {
                    let known = reasons.iter().position(|known| *known == reason);
                    let at = known.unwrap_or_else(|| {
                        reasons.push(reason);
                        reasons.len() - 1
                    });
                    (at + 1).to_string()
                }
                None if has_passed(mpi, *column) => "✓".to_owned(),
                None => "not run".to_owned(),
            });
            let cells: Vec<String> = cells.collect();
            writeln!(text, "| {name} | {interface} | {} |", cells.join(" | ")).unwrap();
        }
        text.push('\n');
    }
    for (at, reason) in reasons.iter().enumerate() {
        writeln!(text, "{}. {reason}", at + 1).unwrap();
    }
    text
}

#[test]
#[ignore = "scripts/test runs it after all others"]
fn the_manual_shows_what_was_run_and_nothing_was_left_out() {
    let tables = tables();
    assert!(!tables.contains("not run"), "a test did not run, or failed:\n{tables}");
    compare("docs/tested.md", "the table of tests", &tables);
}
