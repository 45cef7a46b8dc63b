//! The table of docs/findings.md: what moved when a problem was gone. The examples of findings on their pages: what was
//! found in the same runs.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::thread::available_parallelism;
use std::time::SystemTime;

use gyan_results::Finding;

use super::{compare, parts};
use crate::common::root;
use crate::findings::{EXAMPLES, Proof, WITHOUT_A_CASE, examples, proofs};

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

/// The first finding of each rule.
fn first_of_each(proofs: Vec<Proof>) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let findings = proofs.into_iter().map(|proof| proof.finding);
    findings.filter(|finding| seen.insert(finding.id.clone())).collect()
}

/// What a title begins with: no numbers, no units, no plurals, and nothing of the end, which can be another on another machine.
fn words(finding: &Finding) -> (&str, Vec<&str>) {
    let words = finding.title.split(|letter: char| !letter.is_alphabetic());
    let words = words.filter(|word| word.len() > 3).map(|word| word.trim_end_matches('s'));
    (&finding.id, words.take(2).collect())
}

#[test]
#[ignore = "scripts/test runs it after all others"]
fn the_examples_of_findings_read_like_those_of_these_runs() {
    let mut found = first_of_each(proofs());
    found.extend(examples().into_iter().filter(|kept| WITHOUT_A_CASE.contains(&kept.id.as_str())));
    if std::env::var_os("BLESS").is_some() {
        fs::write(root().join(EXAMPLES), serde_json::to_string_pretty(&found).unwrap() + "\n")
            .unwrap();
    }
    let kept = examples();
    let kept: Vec<_> = kept.iter().map(words).collect();
    let found: Vec<_> = found.iter().map(words).collect();
    assert_eq!(kept, found, "{EXAMPLES} is out of date; BLESS=1 scripts/test writes it");
}
