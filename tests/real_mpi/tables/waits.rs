//! The table of docs/developers/waiting.md: waiting that programs injected, and what was found of it.

use std::fmt::Write;

use super::{compare, parts};
use crate::calls::waits::{InjectedWait, kept};
use crate::common::BED;

const DOCUMENT: &str = "docs/developers/waiting.md";
const WHAT: &str = "injected waiting";

/// The first cells of a row are the same on every machine.
fn row(of: &InjectedWait) -> String {
    format!("| {} | `{}` | {} | {} |", of.pattern, of.place, of.mpi, of.late_rank)
}

#[test]
#[ignore = "scripts/test runs it after all others"]
fn waiting_shows_what_was_injected_and_found() {
    // Of two interfaces of one library the second is here.
    let mut names: Vec<&str> = BED.iter().map(|mpi| mpi.name).collect();
    names.dedup();
    let mut rows = kept("pairs", &names);
    // The call in which a rank waits for one that is late to send can be any of four.
    for row in rows.iter_mut().filter(|row| row.pattern == "late sender") {
        row.place = "MPI_Recv`, `MPI_Waitall`, `MPI_Sendrecv`, `MPI_Wait".into();
    }
    rows.extend(kept("rooted", &names));
    rows.extend(kept("rooted-nonblocking", &names));
    rows.extend(kept("onesided", &names));
    rows.extend(kept("locks", &names));
    rows.extend(kept("fences", &names));
    rows.sort_by(|one, other| (&one.pattern, &one.place).cmp(&(&other.pattern, &other.place)));
    if std::env::var_os("BLESS").is_none() {
        let [_, known, _] = parts(DOCUMENT, WHAT);
        let known: Vec<&str> = known.lines().filter(|line| line.contains('`')).collect();
        let is_same = |(of, known): (&InjectedWait, &&str)| known.starts_with(&row(of));
        let is_whole = rows.len() == known.len() && rows.iter().zip(&known).all(is_same);
        assert!(is_whole, "{DOCUMENT} is out of date; BLESS=1 scripts/test --all writes it");
        return;
    }
    let mut text =
        "\n| pattern | in | MPI | late rank | by the program's clock | by gyan | off |\n"
            .to_owned();
    text.push_str("| :-- | :-- | :-- | --: | --: | --: | --: |\n");
    for of in &rows {
        let off = 100.0 * (of.found_s / of.injected_s - 1.0);
        let seconds = format!("{:.3} s | {:.3} s", of.injected_s, of.found_s);
        writeln!(text, "{} {seconds} | {off:+.2} % |", row(of)).unwrap();
    }
    text.push('\n');
    compare(DOCUMENT, WHAT, &text);
}
