//! Several hosts: a job has one run directory, whatever started it and whatever the hosts are called.

mod hosts;
mod reduce;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use gyan_results::RankProfile;

pub(crate) use hosts::Cluster;

use crate::common::{
    BED, Mpi, Outcome, comes_true, gyan, libgyan, only_run_directory, profiles, receives, run,
    run_directories, truth,
};

const TWO: [&str; 2] = ["node1", "node2"];

/// How gyan gets into the ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    InFront,
    Behind,
    Preloaded,
}

const WAYS: [Way; 3] = [Way::InFront, Way::Behind, Way::Preloaded];

/// An MPI of the test bed, with the compiler wrapper for its own binary interface.
fn mpi(name: &str) -> Mpi {
    *BED.iter().find(|mpi| mpi.name == name).unwrap()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// `launcher` with what it starts, and gyan in one way or another.
fn launched(way: Way, launcher: &str, program: &Path) -> Vec<String> {
    let (gyan, library) = (gyan(), libgyan());
    let (gyan, program) = (gyan.get_program().to_str().unwrap(), program.to_str().unwrap());
    words(&match way {
        Way::InFront => format!("{gyan} run -- {launcher} {program}"),
        Way::Behind => format!("{launcher} {gyan} run {program}"),
        // Not every launcher takes what is preloaded into it to other hosts.
        Way::Preloaded => {
            format!("{launcher} env LD_PRELOAD={} {program}", library.display())
        }
    })
}

/// A new directory that all hosts share.
fn fresh(cluster: &Cluster, name: &str) -> PathBuf {
    let path = cluster.shared().join(name);
    fs::create_dir(&path).unwrap();
    path
}

fn succeed(command: &mut std::process::Command) -> Outcome {
    let outcome = run(command);
    assert_eq!(outcome.code, 0, "{command:?}\n{}\n{}", outcome.stdout, outcome.stderr);
    outcome
}

/// The profiles in `directory` are of so many ranks of one job on `hosts`, and the report says so. What they counted
/// is what the program counted in `here`.
fn assert_job(here: &Path, directory: &Path, ranks: usize, hosts: &[&str]) -> Vec<RankProfile> {
    let profiles = profiles(directory, ranks);
    for profile in &profiles {
        assert_eq!(profile.job.id, profiles[0].job.id, "{}", directory.display());
        let truth = truth(here, profile.rank);
        let expected =
            truth.iter().map(|line| (line[0].as_str(), line[1].parse().unwrap())).collect();
        assert_eq!(receives(profile), expected, "rank {}", profile.rank);
    }
    let known: BTreeSet<&str> = profiles.iter().map(|profile| profile.host.as_str()).collect();
    assert_eq!(known, hosts.iter().copied().collect(), "{}", directory.display());
    let report = succeed(gyan().arg("report").arg(directory));
    let title = format!("{ranks} ranks on {} hosts", hosts.len());
    assert!(report.stdout.contains(&title), "{}\n{}", report.stdout, report.stderr);
    let summary = succeed(gyan().args(["report", "--format", "json"]).arg(directory)).stdout;
    for host in hosts {
        assert!(summary.contains(&format!("\"{host}\"")), "{host}: {summary}");
    }
    profiles
}

/// Runs one after the other and at the same time in one directory each have a run directory of their own.
fn assert_runs_are_told_apart(cluster: &Cluster, mpi: Mpi, way: Way) {
    let here = fresh(cluster, &format!("{}-{way:?}", mpi.name));
    let words = launched(way, "mpirun -n 4", &mpi.program("receives"));
    let start = || succeed(cluster.under(mpi.name, &words).current_dir(&here));
    start();
    assert_job(&here, &only_run_directory(&here), 4, &TWO);
    start();
    assert_eq!(run_directories(&here).len(), 2, "{mpi:?} {way:?}");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(start);
        }
    });
    let directories = run_directories(&here);
    assert_eq!(directories.len(), 4, "{mpi:?} {way:?} {directories:?}");
    let ids: BTreeSet<String> = directories
        .iter()
        .map(|directory| assert_job(&here, directory, 4, &TWO)[0].job.id.clone())
        .collect();
    assert_eq!(ids.len(), 4, "{mpi:?} {way:?}");
}

#[test]
fn a_job_on_two_hosts_has_one_run_directory_and_each_run_its_own() {
    let Some(cluster) = Cluster::of(&TWO) else { return };
    for mpi in ["openmpi4", "mpich5"].map(mpi) {
        for way in WAYS {
            assert_runs_are_told_apart(&cluster, mpi, way);
        }
    }
}

#[test]
fn nothing_is_left_of_hosts_even_if_who_made_them_is_killed() {
    let interfaces = || {
        let entries = fs::read_dir("/sys/class/net").unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
    };
    let before = interfaces();
    let Some(mut cluster) = Cluster::of(&TWO) else { return };
    let names = [1, 2].map(|host| succeed(&mut cluster.on(host, &["hostname"])).stdout);
    assert_eq!(names.each_ref().map(|name| name.trim()), TWO);
    let own = succeed(&mut cluster.on(2, &["sh", "-c", "ls /sys/class/net; ls /dev/shm"]));
    assert_eq!(own.stdout, "eth0\nlo\n");
    assert_eq!(interfaces(), before);
    let sleep = "sleep 1000 & echo";
    succeed(&mut cluster.on(2, &["sh", "-c", sleep]));
    // What finds what is left finds what is there.
    let left = cluster.left();
    assert!(left.code == 1 && left.stdout.contains("sleep 1000"), "{}", left.stdout);
    cluster.kill_holder();
    assert!(comes_true(|| cluster.left().code == 0), "{}", cluster.left().stdout);
    assert_eq!(interfaces(), before);
}
