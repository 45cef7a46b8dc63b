//! The reduction inside MPI over several hosts.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use gyan_results::{SUMMARY_FILE, read_summary};
use wait_timeout::ChildExt;

use super::{Cluster, fresh, succeed, words};
use crate::common::{Mpi, comes_true, libgyan, ranks_that_left};
use crate::survival::reduce::check_against_files;

const HOSTS: [&str; 3] = ["node1", "node2", "node3"];
/// Two on each host.
const RANKS: usize = 6;

/// A job with consecutive ranks on each host, two per host; otherwise they are dealt to the hosts in turn.
fn launched(mpi: Mpi, follow: bool, settings: &str, program: &str) -> Vec<String> {
    let placed = match (follow, mpi.name.starts_with("openmpi")) {
        (false, _) => "",
        (true, true) => "--map-by ppr:2:node:oversubscribe",
        (true, false) => "-ppn 2",
    };
    let (library, program) = (libgyan(), mpi.program(program));
    let (library, program) = (library.display(), program.display());
    let settings = format!("env LD_PRELOAD={library} GYAN_OUTPUT=profile {settings}");
    // Over UCX, nonblocking collective operations of MPICH hang on these hosts, even without gyan.
    let launcher = "env MPIR_CVAR_CH4_NETMOD=ofi mpirun";
    words(&format!("{launcher} -n {RANKS} {placed} {settings} {program}"))
}

fn has_summary(directory: &Path) -> bool {
    directory.join(SUMMARY_FILE).exists()
}

fn all_have_profiles(directory: &Path) -> bool {
    directory.exists() && ranks_that_left(directory).len() == RANKS
}

#[test]
fn the_summary_of_ranks_on_several_hosts_is_the_one_that_the_files_give() {
    let Some(cluster) = Cluster::of(&HOSTS) else { return };
    for mpi in ["openmpi4", "mpich5"].map(Mpi::named) {
        for follow in [true, false] {
            let what = format!("{}-{follow}", mpi.name);
            let here = fresh(&cluster, &what);
            let words = launched(mpi, follow, "GYAN_REDUCE=both", "receives");
            succeed(cluster.under(mpi.name, &words).current_dir(&here));
            let directory = here.join("profile");
            let summary = read_summary(&directory.join(SUMMARY_FILE)).unwrap();
            assert!(summary.reduced_in_mpi.is_some(), "{what}");
            assert_eq!(summary.hosts, HOSTS, "{what}");
            assert!(all_have_profiles(&directory), "{what}");
            check_against_files(&directory);
        }
    }
}

#[test]
fn a_host_that_comes_late_is_waited_for_until_the_timeout() {
    let Some(cluster) = Cluster::of(&HOSTS) else { return };
    for mpi in ["openmpi4", "mpich5"].map(Mpi::named) {
        for (timeout, reduces) in [("60s", true), ("1s", false)] {
            // MPICH 5 crashes or hangs in the late ranks if the others left MPI while that communicator was
            // being created.
            if mpi.name == "mpich5" && !reduces {
                continue;
            }
            let what = format!("{}-{timeout}", mpi.name);
            let here = fresh(&cluster, &what);
            let settings = format!("GYAN_REDUCE=mpi GYAN_REDUCE_TIMEOUT={timeout}");
            let mut words = launched(mpi, true, &settings, "uneven");
            words.extend(["2-3", "sleep", "4000"].map(str::to_owned));
            let outcome = succeed(cluster.under(mpi.name, &words).current_dir(&here));
            assert!(outcome.stdout.contains("sum 15"), "{what}: {outcome:?}");
            let directory = here.join("profile");
            assert_eq!(has_summary(&directory), reduces, "{what}: {outcome:?}");
            assert!(reduces || all_have_profiles(&directory), "{what}: {outcome:?}");
        }
    }
}

/// While the cable of one host is unplugged, the others give up after the timeout and write their files,
/// however far they had come, and once it is plugged in again the program ends normally.
#[test]
#[ignore = "its ranks on four hosts fill the machine: scripts/test runs it alone"]
fn a_host_that_is_cut_off_while_others_reduce_costs_nobody_its_profile() {
    let Some(cluster) = Cluster::of(&HOSTS) else { return };
    // Leaves time to cut the link between messages.
    cluster.does(&["delay", "500ms"]);
    let (mpi, mut given_up) = (Mpi::named("openmpi4"), 0);
    for cut_after in [0, 1500, 3000] {
        let what = format!("cut-{cut_after}");
        let here = fresh(&cluster, &what);
        let settings = "GYAN_REDUCE=mpi GYAN_REDUCE_TIMEOUT=3s";
        let mut words = launched(mpi, true, settings, "uneven");
        words.extend(["9", "sleep", "0"].map(str::to_owned));
        let said = here.join("said");
        let mut command: Command = cluster.under(mpi.name, &words);
        command.current_dir(&here).stdout(File::create(&said).unwrap());
        let mut job = command.spawn().unwrap();
        assert!(comes_true(|| std::fs::read_to_string(&said).unwrap().contains("sum 15")));
        thread::sleep(Duration::from_millis(cut_after));
        cluster.does(&["link", "2", "down"]);
        let directory = here.join("profile");
        let is_there = comes_true(|| has_summary(&directory) || all_have_profiles(&directory));
        cluster.does(&["link", "2", "up"]);
        let ended = job.wait_timeout(Duration::from_secs(100)).unwrap();
        if ended.is_none() {
            job.kill().unwrap();
            job.wait().unwrap();
        }
        assert!(is_there, "{what}");
        assert_eq!(ended.and_then(|status| status.code()), Some(0), "{what}");
        given_up += usize::from(!has_summary(&directory));
    }
    assert!(given_up > 0, "the cable was always too late");
}
