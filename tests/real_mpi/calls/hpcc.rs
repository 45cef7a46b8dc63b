//! A real program that nobody here wrote: Debian's hpcc on two ranks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{OPENMPI, command, counts, gyan, libgyan, profiles, root, succeed};

/// Parts of the names of hpcc's measurements.
const MEASUREMENTS: [&str; 11] = [
    "STREAM",
    "DGEMM",
    "flops",
    "GBs",
    "GUPs",
    "time",
    "Time",
    "Latency",
    "Bandwidth",
    "usec",
    "Wtick",
];

/// Runs hpcc in `directory` and returns its own result section.
fn results(directory: &Path, words: &[String], preload: bool) -> BTreeMap<String, String> {
    fs::copy(root().join("tests/fixtures/hpccinf.txt"), directory.join("hpccinf.txt")).unwrap();
    let _ = fs::remove_file(directory.join("hpccoutf.txt"));
    let mut command = command(words);
    command.current_dir(directory);
    if preload {
        command.env("LD_PRELOAD", libgyan()).env("GYAN_OUTPUT", directory.join("profile"));
    }
    succeed(&mut command);
    let text = fs::read_to_string(directory.join("hpccoutf.txt")).unwrap();
    let section = text.split("Begin of Summary section.").nth(1).unwrap();
    let section = section.split("End of Summary section.").next().unwrap();
    let pairs = section.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn the_results_of_hpcc_are_the_same_with_and_without() {
    let directory = TempDir::new().unwrap();
    let mut words = OPENMPI.mpirun(2);
    words.push("hpcc".into());
    let bare = results(directory.path(), &words, false);
    let again = results(directory.path(), &words, false);
    let with = results(directory.path(), &words, true);
    assert_eq!(bare.get("Success").map(String::as_str), Some("1"));
    assert!(bare.keys().eq(with.keys()), "not the same results");
    // Only results, not measurements, which usually differ even between two bare runs.
    let measured = |key: &&String| MEASUREMENTS.iter().any(|part| key.contains(part));
    let results: Vec<&String> =
        bare.keys().filter(|key| !measured(key) && bare[*key] == again[*key]).collect();
    assert!(results.len() > 60, "{results:?}");
    for result in ["HPL_RnormI", "HPL_Xnorm1", "PTRANS_residual", "MPIFFT_maxErr"] {
        assert!(results.iter().any(|key| *key == result), "{result} differs between bare runs");
    }
    for key in results {
        assert_eq!(with[key], bare[key], "{key}");
    }
    let profiles = profiles(&directory.path().join("profile"), 2);
    for profile in &profiles {
        let counts = counts(profile);
        assert!(counts["MPI_Recv"] > 100 && counts["MPI_Irecv"] > 100, "{counts:?}");
        assert_eq!(profile.job.command, ["hpcc"]);
    }
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn the_profile_of_hpcc_reads_sensibly() {
    let directory = TempDir::new().unwrap();
    let mut words = vec!["run".to_owned(), "--".into()];
    words.extend(OPENMPI.mpirun(2));
    words.push("hpcc".into());
    fs::copy(root().join("tests/fixtures/hpccinf.txt"), directory.path().join("hpccinf.txt"))
        .unwrap();
    let outcome = succeed(gyan().args(&words).current_dir(&directory));
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert!(lines.iter().any(|line| line.starts_with("hpcc: 2 ranks on ")), "{}", outcome.stderr);
    // Which functions take most of the time depends on the machine.
    let functions = lines.iter().filter(|line| line.starts_with("MPI_")).count();
    assert!(functions > 4, "{}", outcome.stderr);
    assert!(outcome.stderr.contains(" of the run is in MPI"), "{}", outcome.stderr);
    assert!(lines.len() <= 40, "more than a screen:\n{}", outcome.stderr);
    let is_wide = |line: &&&str| line.chars().count() > 100;
    assert_eq!(lines.iter().find(is_wide), None);
}
