//! The table of docs/findings.md: what changed when a problem was gone.

use std::fmt::Write;
use std::fs;
use std::thread::available_parallelism;
use std::time::SystemTime;

use super::{compare, parts};
use crate::findings::{Proof, proofs};

const DOCUMENT: &str = "docs/findings.md";
const WHAT: &str = "the proofs";

/// The first cells of a row are the same on every machine.
fn row(proof: &Proof) -> String {
    let Proof { rule, before, after, mpi, witness, .. } = proof;
    format!("| `{rule}` | `{before}` | `{after}` | {mpi} | {witness} |")
}

/// When and on what it was measured.
fn measured() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let date = now.split('T').next().unwrap();
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("processors", |(_, model)| model);
    let processors = available_parallelism().unwrap();
    format!("Measured on {date} by `BLESS=1 scripts/test`, with {processors} processors ({model}):")
}

fn table(proofs: &[Proof]) -> String {
    let mut text = format!("\n{}\n\n", measured());
    text.push_str(
        "| rule | before | after | MPI | witness | before | after | run before | run after |\n",
    );
    text.push_str("| :-- | :-- | :-- | :-- | :-- | --: | --: | --: | --: |\n");
    for proof in proofs {
        let values = proof.values.clone().unwrap_or_default();
        let [before, after] = proof.elapsed_s.map(|elapsed| format!("{elapsed:.2} s"));
        writeln!(text, "{} {} | {before} | {after} |", row(proof), values.join(" | ")).unwrap();
    }
    text.push('\n');
    text
}

#[test]
#[ignore = "scripts/test runs it after all others"]
fn findings_shows_what_each_rule_was_proven_with() {
    let proofs = proofs();
    if std::env::var_os("BLESS").is_some() {
        return compare(DOCUMENT, WHAT, &table(&proofs));
    }
    let [_, known, _] = parts(DOCUMENT, WHAT);
    let rows: Vec<&str> = known.lines().filter(|line| line.starts_with("| `")).collect();
    let is_same = |(proof, known): (&Proof, &&str)| known.starts_with(&row(proof));
    assert!(
        rows.len() == proofs.len() && proofs.iter().zip(&rows).all(is_same),
        "{DOCUMENT} is out of date; BLESS=1 scripts/test writes it"
    );
}
