//! Several hosts: a job has one run directory, whatever started it and whatever the hosts are called.

mod hosts;
mod killed;
mod reduce;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use gyan_results::{RankProfile, Took, TuneEnd, Tuning};

pub(crate) use hosts::Cluster;

use crate::common::{
    Mpi, comes_true, gyan, libgyan, only_run_directory, profiles, receives, run, run_directories,
    succeed, true_counts,
};

const TWO: [&str; 2] = ["node1", "node2"];

/// How gyan gets into the ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Before,
    After,
    Preloaded,
}

const WAYS: [Way; 3] = [Way::Before, Way::After, Way::Preloaded];

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// `launcher` with its program, and gyan in one way or another.
fn launched(way: Way, launcher: &str, program: &Path) -> Vec<String> {
    let (gyan, library) = (gyan(), libgyan());
    let (gyan, program) = (gyan.get_program().to_str().unwrap(), program.to_str().unwrap());
    words(&match way {
        Way::Before => format!("{gyan} run -- {launcher} {program}"),
        Way::After => format!("{launcher} {gyan} run {program}"),
        // Not every launcher passes its own LD_PRELOAD on to other hosts.
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

/// Checks that the profiles in `directory` are of this many ranks of one job on `hosts`, that the report says
/// so, and that they counted what the program counted in `here`.
fn assert_job(here: &Path, directory: &Path, ranks: usize, hosts: &[&str]) -> Vec<RankProfile> {
    let profiles = profiles(directory, ranks);
    for profile in &profiles {
        assert_eq!(profile.job.id, profiles[0].job.id, "{}", directory.display());
        let expected = true_counts(here, profile.rank);
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

/// A job of four ranks in `here`, and its run directory.
fn ran(cluster: &Cluster, here: &Path, mpi: Mpi, command: &[String], hosts: &[&str]) {
    succeed(cluster.under(mpi.name, command).current_dir(here));
    assert_job(here, &only_run_directory(here), 4, hosts);
}

#[test]
fn a_job_on_two_hosts_has_one_run_directory_and_each_run_its_own() {
    let Some(cluster) = Cluster::of(&TWO) else { return };
    for mpi in ["openmpi4", "mpich5"].map(Mpi::named) {
        let command = |way| launched(way, "mpirun -n 4", &mpi.program("receives"));
        for way in [Way::Before, Way::After] {
            let here = fresh(&cluster, &format!("{}-{way:?}", mpi.name));
            ran(&cluster, &here, mpi, &command(way), &TWO);
        }
        let here = fresh(&cluster, mpi.name);
        let start = || {
            let command = command(Way::Preloaded);
            succeed(cluster.under(mpi.name, &command).current_dir(&here))
        };
        start();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(start);
            }
        });
        let directories = run_directories(&here).into_iter();
        let ids: BTreeSet<String> = directories
            .map(|directory| assert_job(&here, &directory, 4, &TWO)[0].job.id.clone())
            .collect();
        assert_eq!(ids.len(), 3, "{mpi:?} {ids:?}");
    }
}

/// The plugin of `srun` for an MPI.
fn plugin(mpi: Mpi) -> &'static str {
    if mpi.name.starts_with("openmpi") { "pmix" } else { "pmi2" }
}

/// A batch script of Slurm that runs `lines` one after the other.
fn batch(here: &Path, lines: &[Vec<String>]) -> PathBuf {
    let lines: Vec<String> = lines.iter().map(|words| words.join(" ")).collect();
    let script = here.join("job.sh");
    fs::write(&script, format!("#!/bin/sh\nset -e\n{}\n", lines.join("\n"))).unwrap();
    script
}

#[test]
fn a_step_and_an_mpirun_of_slurm_on_two_hosts_have_one_run_directory_each() {
    let Some(cluster) = Cluster::of(&TWO) else { return };
    if !cluster.has_slurm() {
        return;
    }
    for mpi in ["openmpi4", "mpich5"].map(Mpi::named) {
        let program = mpi.program("receives");
        let srun = format!("srun -Q --mpi={} -N 2 --ntasks-per-node=2", plugin(mpi));
        for way in [Way::Before, Way::Preloaded] {
            let here = fresh(&cluster, &format!("{}-srun-{way:?}", mpi.name));
            ran(&cluster, &here, mpi, &launched(way, &srun, &program), &TWO);
        }
        let here = fresh(&cluster, &format!("{}-sbatch", mpi.name));
        let steps = ["mpirun -n 4", &srun].map(|launcher| launched(Way::After, launcher, &program));
        let script = batch(&here, &steps).display().to_string();
        let words = ["sbatch", "-W", "-N", "2", "--ntasks-per-node=2", &script];
        succeed(cluster.under(mpi.name, &words).current_dir(&here));
        let directories = run_directories(&here);
        assert_eq!(directories.len(), 2, "{directories:?}");
        for directory in directories {
            assert_job(&here, &directory, 4, &TWO);
        }
    }
}

/// `gyan tune` within the allocation of a batch script. What is measured is the same in each run, so that nothing can beat
/// the default, and the tune is short.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn a_setting_is_tuned_on_two_hosts_in_an_allocation_of_slurm() {
    let Some(cluster) = Cluster::of(&TWO) else { return };
    if !cluster.has_slurm() {
        return;
    }
    let mpi = Mpi::named("openmpi4");
    let here = fresh(&cluster, "tuned");
    let gyan = gyan().get_program().display().to_string();
    let program = here.join("program");
    fs::write(&program, format!("#!/bin/sh\n{}\necho 1\n", mpi.program("receives").display()))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let tune = format!(
        "{gyan} tune -o tuned --set btl_tcp_eager_limit=131072 --metric '([0-9]+)' -- \
         srun -Q --mpi={} -N 2 --ntasks-per-node=2 ./program",
        plugin(mpi)
    );
    let script = batch(&here, &[words(&tune)]).display().to_string();
    let submitted = ["sbatch", "-W", "-N", "2", "--ntasks-per-node=2", &script];
    succeed(cluster.under(mpi.name, &submitted).current_dir(&here));
    let tuning = fs::read_to_string(here.join("tuned/tune.json")).unwrap();
    let tuning: Tuning = serde_json::from_str(&tuning).unwrap();
    assert_eq!((tuning.end, tuning.winner), (TuneEnd::Decided, None), "{tuning:?}");
    assert_eq!(tuning.trials[0].took, Took::OnEveryRank, "{tuning:?}");
    assert_job(&here, &here.join("tuned/runs/default/run-1"), 4, &TWO);
}

#[test]
fn two_programs_on_two_hosts_are_one_run_and_what_they_spawn_are_others() {
    let Some(cluster) = Cluster::of(&TWO) else { return };
    // Those of Open MPI 4 cannot spawn on other hosts; Open MPI sets an id.
    for mpi in ["mpich-pvars", "mpich5", "intelmpi"].map(Mpi::named) {
        let here = fresh(&cluster, &format!("{}-two", mpi.name));
        let program = mpi.program("receives");
        let other = here.join("other");
        fs::copy(&program, &other).unwrap();
        let mut command = launched(Way::Preloaded, "mpirun -n 2", &program);
        command.extend(launched(Way::Preloaded, ": -n 2", &other));
        ran(&cluster, &here, mpi, &command, &TWO);
        let here = fresh(&cluster, &format!("{}-spawn", mpi.name));
        let mut command = vec!["env".to_owned(), "I_MPI_SPAWN=on".to_owned()];
        let front = format!("mpirun -genv LD_PRELOAD {} -n 2", libgyan().display());
        command.extend(words(&front));
        command.push(mpi.program("spawn").display().to_string());
        succeed(cluster.under(mpi.name, &command).current_dir(&here));
        let directories = run_directories(&here);
        assert_eq!(directories.len(), 3, "{mpi:?} {directories:?}");
        for directory in directories {
            let profiles = profiles(&directory, 2);
            assert_eq!(profiles[0].job.id, profiles[1].job.id, "{mpi:?} {}", directory.display());
        }
    }
}

#[test]
fn hosts_may_have_long_names_and_share_the_first_part() {
    let long = format!("{}.example", "n".repeat(50));
    for names in [["node.rack1.example", "node.rack2.example"], [&long, "short"]] {
        let Some(cluster) = Cluster::of(&names) else { return };
        for mpi in ["openmpi4", "mpich-pvars", "mpich5"].map(Mpi::named) {
            for way in [Way::Before, Way::Preloaded] {
                let here = fresh(&cluster, &format!("{}-{way:?}", mpi.name));
                let command = launched(way, "mpirun -n 4", &mpi.program("receives"));
                ran(&cluster, &here, mpi, &command, &names);
            }
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
    // The search for remains finds existing things.
    let left = cluster.left();
    assert!(left.code == 1 && left.stdout.contains("sleep 1000"), "{}", left.stdout);
    cluster.does(&["kill", "2"]);
    let gone = || run(&mut cluster.on(2, &["true"])).stderr.contains("host 2 is not there");
    assert!(comes_true(|| gone() && !cluster.left().stdout.contains("sleep 1000")));
    succeed(&mut cluster.on(1, &["true"]));
    cluster.kill_holder();
    assert!(comes_true(|| cluster.left().code == 0), "{}", cluster.left().stdout);
    assert_eq!(interfaces(), before);
}
