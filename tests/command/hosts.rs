//! A run on several hosts: what the report says about them, profiles in a directory per host, and clocks that
//! differ.

use std::fs;
use std::path::{Path, PathBuf};

use gyan_results::{
    Differing, HostDifference, HostMeasure, InMpi, RankProfile, Summary, rank_file_name, read_rank,
};
use tempfile::TempDir;

use crate::common::{Outcome, gyan, one_line, root, run, succeed};
use crate::golden::is_golden;

const RUNNING: &str = "tests/fixtures/gyan.rank-1-running";
/// Ranks on a host, and hosts.
const RANKS: u32 = 4;
const HOSTS: u32 = 4;

/// A run of 16 ranks on 4 hosts, `change`d on each of them, with the files of host n in `here/<n>`.
fn hosts(here: &Path, change: impl Fn(&mut RankProfile)) -> Vec<PathBuf> {
    let directories: Vec<PathBuf> = (0..HOSTS).map(|host| here.join(host.to_string())).collect();
    for rank in 0..RANKS * HOSTS {
        let (host, local) = (rank / RANKS, rank % RANKS);
        let fixture = root().join(RUNNING).join(rank_file_name(local));
        let mut profile = read_rank(&fixture).unwrap();
        (profile.rank, profile.size) = (rank, RANKS * HOSTS);
        profile.host = format!("n{host}");
        // The ranks of a host differ as much as those of different hosts.
        in_mpi(&mut profile, 0.5 + 0.01 * f64::from(local * 7 % 5) + 0.002 * f64::from(host));
        change(&mut profile);
        let directory = &directories[host as usize];
        fs::create_dir_all(directory).unwrap();
        let text = serde_json::to_string(&profile).unwrap();
        fs::write(directory.join(rank_file_name(rank)), text).unwrap();
    }
    directories
}

fn in_mpi(profile: &mut RankProfile, share: f64) {
    let time_s = share * profile.job.elapsed_s;
    profile.in_mpi =
        Some(InMpi { time_s, time_error_s: Some(0.0), share, threads: 1, wall_s: None });
}

/// The directories of all hosts in one.
fn together(here: &Path, directories: &[PathBuf]) -> PathBuf {
    let one = here.join("together");
    fs::create_dir(&one).unwrap();
    for entry in directories.iter().flat_map(|directory| fs::read_dir(directory).unwrap()) {
        let entry = entry.unwrap();
        fs::copy(entry.path(), one.join(entry.file_name())).unwrap();
    }
    one
}

fn report(directories: &[impl AsRef<Path>], options: &[&str]) -> Outcome {
    let directories = directories.iter().map(AsRef::as_ref);
    run(gyan().arg("report").args(directories).args(options))
}

fn summary(directories: &[impl AsRef<Path>]) -> Summary {
    let outcome = report(directories, &["--format", "json"]);
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn a_host_that_the_others_wait_for_is_told_and_the_reports_are_the_golden_ones() {
    let here = TempDir::new().unwrap();
    let slow = |profile: &mut RankProfile| {
        if profile.host == "n2" {
            in_mpi(profile, 0.1 + 0.005 * f64::from(profile.rank % RANKS));
        }
    };
    let directory = together(here.path(), &hosts(here.path(), slow));
    let summary = summary(&[&directory]);
    let expected =
        HostDifference { measure: HostMeasure::InMpi, who: Differing::OneHost("n2".into()) };
    assert_eq!(summary.host_differences, [expected]);
    assert_eq!(summary.by_host[2].ranks, "8-11");
    for (name, options) in [
        ("hosts.txt", &["--vars", "MPI_Waitall"][..]),
        ("hosts-all.txt", &["--vars", "MPI_Waitall", "--all"]),
        ("hosts.md", &["--vars", "MPI_Waitall", "--format", "markdown"]),
        ("hosts.csv", &["--vars", "MPI_Waitall", "--format", "csv"]),
    ] {
        let outcome = report(&[&directory], options);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{name}");
        is_golden(name, &outcome.stdout);
    }
}

#[test]
fn a_rank_that_the_others_wait_for_is_not_taken_for_its_host() {
    let here = TempDir::new().unwrap();
    let slow = |profile: &mut RankProfile| {
        if profile.rank == 9 {
            in_mpi(profile, 0.1);
        }
    };
    let directories = hosts(here.path(), slow);
    let outcome = report(&directories, &[]);
    let text = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "in MPI: 10.0 % on rank 9 on n2, 52.0 % on average on the others: the others wait for one rank, \
                    not for its host";
    assert!(text.contains(expected), "{}", outcome.stdout);
    let found = &summary(&directories).host_differences;
    assert_eq!(
        found[..],
        [HostDifference { measure: HostMeasure::InMpi, who: Differing::OneRank(9) }]
    );
}

#[test]
fn hosts_that_differ_no_more_than_their_ranks_are_only_named() {
    let here = TempDir::new().unwrap();
    let outcome = report(&hosts(here.path(), |_| ()), &[]);
    assert!(
        outcome.stdout.contains("hosts: n0, n1, n2, 1 more (4 ranks each)"),
        "{}",
        outcome.stdout
    );
    assert!(!outcome.stdout.contains("by host"), "{}", outcome.stdout);
}

#[test]
fn the_directories_of_the_hosts_are_one_run() {
    let here = TempDir::new().unwrap();
    let directories = hosts(here.path(), |_| ());
    let all = together(here.path(), &directories);
    // Whatever the order, to the last bit.
    let expected = report(&[&all], &["--format", "json"]);
    let backwards: Vec<&PathBuf> = directories.iter().rev().collect();
    for outcome in
        [report(&directories, &["--format", "json"]), report(&backwards, &["--format", "json"])]
    {
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
        assert_eq!(outcome.stdout, expected.stdout);
    }
    let rows = |directories: &[PathBuf]| {
        run(gyan().arg("export").args(directories).args(["--format", "csv"])).stdout
    };
    assert_eq!(rows(&directories), rows(&[all]));
    succeed(gyan().arg("reduce").args(&directories));
    let [written, mut printed] =
        [fs::read_to_string(directories[0].join("summary.json")).unwrap(), expected.stdout.clone()]
            .map(|text| serde_json::from_str::<Summary>(&text).unwrap());
    (printed.efficiencies, printed.findings) = (None, Vec::new());
    assert_eq!(written, printed);
}

#[test]
fn what_other_hosts_wrote_is_missed_by_rank_with_the_way_to_get_it() {
    let here = TempDir::new().unwrap();
    let directories = hosts(here.path(), |_| ());
    let outcome = report(&directories[1..], &[]);
    one_line(
        &outcome,
        1,
        &[
            "4 of 16 ranks have no usable profile (0-3)",
            "1 more host like n1, n2, n3 (4 ranks each)",
            "gyan report DIR1 DIR2",
        ],
    );
    // No host by itself.
    fs::remove_file(directories[1].join(rank_file_name(5))).unwrap();
    let outcome = report(&directories, &[]);
    one_line(&outcome, 1, &["1 of 16 ranks have no usable profile (5)"]);
    assert!(!outcome.stderr.contains("more host"), "{}", outcome.stderr);
}

#[test]
fn directories_of_different_runs_are_refused() {
    let here = TempDir::new().unwrap();
    let other = |profile: &mut RankProfile| {
        if profile.host == "n1" {
            profile.job.id = "another".into();
        }
    };
    let directories = hosts(here.path(), other);
    one_line(
        &report(&directories, &[]),
        2,
        &["/1: holds profiles of job another, and", "/0 those of job"],
    );
    let empty = TempDir::new().unwrap();
    let with_empty = [directories[0].as_path(), empty.path()];
    one_line(&report(&with_empty, &[]), 2, &["holds no rank profiles"]);
}

#[test]
fn of_a_rank_that_is_in_two_directories_the_first_counts() {
    let here = TempDir::new().unwrap();
    let directories = hosts(here.path(), |_| ());
    let mut other = read_rank(&directories[1].join(rank_file_name(5))).unwrap();
    other.host = "elsewhere".into();
    fs::write(directories[3].join(rank_file_name(5)), serde_json::to_string(&other).unwrap())
        .unwrap();
    let outcome = report(&directories, &["--format", "json"]);
    one_line(&outcome, 0, &["rank 5 is in more than one of the directories"]);
    assert!(!outcome.stdout.contains("elsewhere"), "{}", outcome.stdout);
    let backwards: Vec<&PathBuf> = directories.iter().rev().collect();
    assert!(report(&backwards, &["--format", "json"]).stdout.contains("elsewhere"));
    let twice = report(&[&directories[0], &directories[0]], &[]);
    assert!(twice.stderr.contains("rank 0-3 is in more than one"), "{}", twice.stderr);
}

/// The clocks of hosts are minutes fast or slow: the same report, except for the start, which is rank 0's.
#[test]
fn clocks_that_differ_do_not_matter() {
    let (right, wrong) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let clock = |profile: &mut RankProfile| {
        let time =
            ["10:07:00", "09:41:00", "10:00:00", "23:59:00"][(profile.rank / RANKS) as usize];
        profile.job.started = format!("2026-01-31T{time}.000Z");
    };
    let (right, wrong) = (hosts(right.path(), |_| ()), hosts(wrong.path(), clock));
    for options in [&[][..], &["--all"], &["--series", "*unexpected*"], &["--format", "json"]] {
        let of = |directories: &[PathBuf]| {
            report(directories, options).stdout.replace(directories[0].to_str().unwrap(), "DIR")
        };
        let of_right = of(&right).replace("T10:00:00.000Z", "T10:07:00.000Z");
        assert!(of_right.len() > 100);
        assert_eq!(of(&wrong), of_right, "{options:?}");
    }
}

/// If a directory has two jobs, the one counts that began later by the clock of a host that both ran on.
#[test]
fn the_latest_job_is_told_by_one_clock() {
    let here = TempDir::new().unwrap();
    // The earlier job had all ranks. Host n3 is ten minutes ahead, and n0 is right.
    let job = |profile: &mut RankProfile| {
        let is_later = profile.host == "n0" || profile.host == "n1";
        profile.job.id = if is_later { "later" } else { "earlier" }.into();
        profile.job.started = match profile.host.as_str() {
            "n0" => "2026-01-31T10:05:00.000Z",
            "n1" => "2026-01-31T10:05:01.000Z",
            "n2" => "2026-01-31T10:00:01.000Z",
            _ => "2026-01-31T10:10:00.000Z",
        }
        .into();
        if is_later {
            profile.size = 2 * RANKS;
        } else if profile.rank == 2 * RANKS {
            profile.host = "n0".into();
            profile.job.started = "2026-01-31T10:00:00.000Z".into();
        }
    };
    let directory = together(here.path(), &hosts(here.path(), job));
    let found = summary(&[&directory]);
    assert_eq!((found.job.id.as_str(), found.ranks.reduced), ("later", 2 * RANKS));
    assert_eq!(found.job.started, "2026-01-31T10:05:00.000Z");
}
