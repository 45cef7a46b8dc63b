//! What do `gyan reduce` and `gyan report` do with faulty directories? They print one clear line with what to
//! do, reduce what they can, and end with exit code 1.

use std::fs;
use std::path::Path;

use gyan_results::{RankProfile, Summary, read_summary};
use tempfile::TempDir;

use crate::common::{Outcome, gyan, root, run};
use crate::faults::inject;

/// From the table of faults.
const GROUP: &str = "files";
const OTHERS: &str = "a clear line, and the other ranks are reduced";

/// A run directory of four ranks.
fn directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    let text = fs::read_to_string(root().join("results-schema/examples/rank.json")).unwrap();
    let mut profile: RankProfile = serde_json::from_str(&text).unwrap();
    for rank in 0..4 {
        profile.rank = rank;
        profile.calls[1].count = 1000 + u64::from(rank);
        write(directory.path(), &profile);
    }
    directory
}

fn write(directory: &Path, profile: &RankProfile) {
    let path = directory.join(format!("rank-{:06}.json", profile.rank));
    fs::write(path, serde_json::to_string(profile).unwrap()).unwrap();
}

fn change(directory: &Path, rank: u32, change: impl FnOnce(&mut RankProfile)) {
    let path = directory.join(format!("rank-{rank:06}.json"));
    let mut profile: RankProfile =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut profile);
    fs::write(path, serde_json::to_string(&profile).unwrap()).unwrap();
}

fn reduce(directory: &Path) -> (Outcome, Option<Summary>) {
    let outcome = run(gyan().arg("reduce").arg(directory));
    (outcome, read_summary(&directory.join("summary.json")).ok())
}

/// Expects one line on stderr that contains each of `parts`, and the same from `gyan report`.
fn one_line(directory: &Path, code: i32, parts: &[&str]) {
    for command in ["reduce", "report"] {
        let outcome = run(gyan().arg(command).arg(directory));
        assert_eq!(outcome.code, code, "{command}: {outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{command}: {}", outcome.stderr);
        assert!(outcome.stderr.starts_with("gyan: "), "{command}: {}", outcome.stderr);
        for part in parts {
            assert!(outcome.stderr.contains(part), "{command}: {part}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_whole_run_is_reduced_without_a_word() {
    let directory = directory();
    let (outcome, summary) = reduce(directory.path());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let summary = summary.unwrap();
    assert_eq!((summary.ranks.reduced, summary.ranks.expected), (4, 4));
    let receives = summary.calls.iter().find(|call| call.name == "MPI_Recv").unwrap();
    assert_eq!((receives.count.min_rank, receives.count.max_rank), (0, 3));
    assert!((receives.count.avg - 1001.5).abs() < 1e-9);
}

#[test]
fn a_missing_directory() {
    let directory = TempDir::new().unwrap();
    one_line(&directory.path().join("nosuch"), 2, &["nosuch", "no such file", "name the run"]);
}

#[test]
fn an_empty_directory() {
    let directory = TempDir::new().unwrap();
    one_line(directory.path(), 2, &["holds no rank profiles", "name the run directory"]);
}

#[test]
fn a_truncated_file() {
    let fault = inject(GROUP, "a profile that is cut in half", OTHERS);
    let directory = directory();
    let path = directory.path().join("rank-000002.json");
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let (outcome, summary) = reduce(directory.path());
    let summary = summary.unwrap();
    assert_eq!(outcome.code, 1);
    assert_eq!(summary.ranks.reduced, 3);
    assert_eq!(summary.ranks.missing, [2]);
    assert_eq!(summary.ranks.left_out[0].file, "rank-000002.json");
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", outcome.stderr);
    assert!(lines[0].contains("rank-000002.json: is truncated"), "{}", lines[0]);
    assert!(lines[0].contains("run the program again"), "{}", lines[0]);
    assert!(lines[1].contains("1 of 4 ranks have no usable profile (2)"), "{}", lines[1]);
    fault.survived();
}

#[test]
fn a_file_damaged_by_hand() {
    for (from, to, expected) in [
        ("\"size\":4", "\"size\":\"four\"", "invalid type"),
        ("\"count\":1001", "\"count\":-1", "invalid value"),
        ("\"rank\":1,", "\"rank\":7,", "rank 7 of 4"),
        ("\"rank\":1,", "\"rank\":2,", "is the profile of rank 2"),
        ("{\"schema\"", "schema", "is damaged"),
    ] {
        let fault = inject(GROUP, &format!("a profile with `{to}` for `{from}`"), OTHERS);
        let directory = directory();
        let path = directory.path().join("rank-000001.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let (outcome, summary) = reduce(directory.path());
        assert_eq!(outcome.code, 1, "{from}");
        let summary = summary.unwrap();
        assert_eq!((summary.ranks.reduced, &summary.ranks.missing[..]), (3, &[1][..]), "{from}");
        let line = outcome.stderr.lines().next().unwrap();
        assert!(line.contains("rank-000001.json") && line.contains(expected), "{line}");
        fault.survived();
    }
}

#[test]
fn a_file_of_a_newer_version() {
    let fault = inject(GROUP, "a profile of a newer version", OTHERS);
    let directory = directory();
    change(directory.path(), 3, |profile| profile.schema = "gyan.rank/2".into());
    let (outcome, summary) = reduce(directory.path());
    assert_eq!(outcome.code, 1);
    assert_eq!(summary.unwrap().ranks.reduced, 3);
    let line = outcome.stderr.lines().next().unwrap();
    assert!(line.contains("rank-000003.json: has schema gyan.rank/2"), "{line}");
    assert!(line.contains("update gyan"), "{line}");
    fault.survived();
}

#[test]
fn two_jobs_in_one_directory() {
    let fault = inject(GROUP, "a profile of another job", OTHERS);
    let directory = directory();
    change(directory.path(), 0, |profile| {
        profile.job.id = "other".into();
        profile.job.started = "2025-01-01T00:00:00Z".into();
    });
    let (outcome, summary) = reduce(directory.path());
    let summary = summary.unwrap();
    assert_eq!(outcome.code, 1);
    assert_eq!((summary.ranks.reduced, &summary.ranks.missing[..]), (3, &[0][..]));
    let line = outcome.stderr.lines().next().unwrap();
    assert!(line.contains("belongs to job other, not to the latest job"), "{line}");
    fault.survived();
}

#[test]
fn missing_ranks() {
    let fault = inject(GROUP, "profiles that are missing", OTHERS);
    let directory = directory();
    fs::remove_file(directory.path().join("rank-000001.json")).unwrap();
    fs::remove_file(directory.path().join("rank-000002.json")).unwrap();
    one_line(directory.path(), 1, &["2 of 4 ranks have no usable profile (1-2)"]);
    let (_, summary) = reduce(directory.path());
    assert_eq!(summary.unwrap().ranks.missing, [1, 2]);
    fault.survived();
}

#[test]
fn nothing_usable_at_all() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("rank-000000.json"), "{}").unwrap();
    one_line(directory.path(), 2, &["rank-000000.json", "no schema"]);
}

#[test]
fn a_summary_that_was_left_of_the_profiles_is_still_reported() {
    let directory = directory();
    let (_, summary) = reduce(directory.path());
    let report = || crate::common::report(directory.path(), &["--format", "json"]);
    let of_files = report().stdout;
    for rank in 0..4 {
        fs::remove_file(directory.path().join(format!("rank-{rank:06}.json"))).unwrap();
    }
    let report = report();
    assert_eq!(report.code, 0, "{}", report.stderr);
    let mut printed: Summary = serde_json::from_str(&report.stdout).unwrap();
    // Both lead to the same conclusions.
    assert_eq!(printed, serde_json::from_str(&of_files).unwrap());
    // The conclusions of the report are not in the file.
    assert!(printed.efficiencies.take().is_some());
    printed.findings.clear();
    assert_eq!(printed, summary.unwrap());
    assert_eq!(run(gyan().arg("reduce").arg(directory.path())).code, 2);
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_of_reduce() {
    let directory = directory();
    let blocked = directory.path().join("summary.json");
    fs::create_dir_all(blocked.join("in the way")).unwrap();
    let outcome = run(gyan().arg("reduce").arg(directory.path()));
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 5, "a temporary file is left");
}

#[test]
fn a_misspelt_name_is_said() {
    let directory = directory();
    let outcome = crate::common::report(directory.path(), &["--vars", "nosuch*"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("--vars nosuch*: no variable"), "{}", outcome.stderr);
}

#[test]
fn a_rank_that_a_launcher_started_does_not_run_again_and_again() {
    let words = ["run", "--repeat", "2", "--", "true"];
    let outcome = run(gyan().args(words).env("OMPI_COMM_WORLD_RANK", "0"));
    let told = "gyan: --repeat: a rank that a launcher started cannot start the others again; put gyan in front of the \
                launcher: gyan run --repeat N -- mpirun ...\n";
    assert_eq!((outcome.code, outcome.stderr.as_str()), (2, told));
}
