//! Jobs on several hosts that are killed, as a whole or in part: the data of their ranks is kept, and the
//! report names the host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use wait_timeout::ChildExt;

use super::{Cluster, TWO, fresh, launched, plugin, succeed};
use crate::cluster::Way;
use crate::common::{Mpi, comes_true, known_live, known_of_each};
use crate::survival::crashes::now_says;
use crate::survival::live::says_killed;

const RANKS: usize = 4;

/// A job on two hosts, by a launcher.
struct Waiting {
    launcher: Child,
    here: PathBuf,
}

impl Waiting {
    /// Returns once the live files know all ranks.
    fn start(cluster: &Cluster, name: &str, of: &str, launcher: &str) -> Waiting {
        Waiting::start_program(cluster, name, of, launcher, &Mpi::named(of).program("waits"), "")
    }

    /// The same for a program with an argument.
    fn start_program(
        cluster: &Cluster,
        name: &str,
        of: &str,
        launcher: &str,
        program: &Path,
        argument: &str,
    ) -> Waiting {
        let (mpi, here) = (Mpi::named(of), fresh(cluster, name));
        let launcher =
            format!("{launcher} env GYAN_OUTPUT={} GYAN_BUDGET=100%", here.join("out").display());
        let mut words = launched(Way::Preloaded, &launcher, program);
        words.extend((!argument.is_empty()).then(|| argument.to_owned()));
        let mut command: Command = cluster.under(mpi.name, &words);
        command.current_dir(&here).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let waiting = Waiting { launcher: command.spawn().unwrap(), here };
        let is_known = || known_live(&waiting.directory(), &[]).len() == RANKS;
        assert!(comes_true(is_known), "{name}: no live files");
        waiting
    }

    fn directory(&self) -> PathBuf {
        self.here.join("out")
    }

    /// The report, on both outputs, once something is known of all ranks.
    fn report(&self) -> String {
        known_of_each(&self.directory(), RANKS);
        report(&self.directory())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = fs::write(self.here.join("go"), "");
        if !matches!(self.launcher.wait_timeout(std::time::Duration::from_secs(5)), Ok(Some(_))) {
            let _ = self.launcher.kill();
            let _ = self.launcher.wait();
        }
    }
}

fn report(directory: &Path) -> String {
    let outcome = crate::common::report(directory, &[]);
    format!("{}{}", outcome.stdout, outcome.stderr)
}

#[test]
fn a_host_that_is_gone_leaves_what_its_ranks_knew_and_the_report_names_it() {
    for of in ["openmpi4", "mpich5"] {
        let Some(cluster) = Cluster::of(&TWO) else { return };
        let waiting = Waiting::start(&cluster, of, of, "mpirun -n 4");
        cluster.does(&["kill", "2"]);
        let text = waiting.report();
        let no_end =
            text.lines().find(|line| line.starts_with("no end is known")).unwrap_or_default();
        assert!(no_end.contains("rank 1, 3 on node2"), "{of}: {text}");
        assert!(text.contains("host node2 last wrote it"), "{of}: {text}");
        assert!(text.contains("4 ranks on 2 hosts"), "{of}: {text}");
    }
}

#[test]
fn a_job_whose_launcher_is_killed_leaves_what_its_ranks_knew_on_all_hosts() {
    let Some(cluster) = Cluster::of(&TWO) else { return };
    for of in ["openmpi4", "mpich5"] {
        let mut waiting = Waiting::start(&cluster, of, of, "mpirun -n 4");
        // This also ends its daemons and their ranks.
        succeed(&mut cluster.on(1, &["pkill", "-KILL", "mpirun|mpiexec"]));
        waiting.launcher.wait().unwrap();
        let is_over = || !report(&waiting.directory()).contains("running: rank");
        let text = waiting.report();
        assert!(comes_true(is_over) || text.contains("no end is known"), "{of}: {text}");
        assert!(text.contains("4 ranks on 2 hosts"), "{of}: {text}");
        fs::write(waiting.here.join("go"), "").unwrap();
    }
}

/// Ranks 0 and 1, on different hosts, receive from each other.
#[test]
fn why_a_job_on_two_hosts_hangs_is_said() {
    let Some(cluster) = Cluster::of(&TWO) else { return };
    for of in ["openmpi4", "mpich5"] {
        let program = Mpi::named(of).compiled("stuck", &["-g"]);
        let name = format!("stuck-{of}");
        let waiting = Waiting::start_program(&cluster, &name, of, "mpirun -n 4", &program, "cycle");
        let first = "Deadlock: rank 0 waits in MPI_Recv at stuck.c:";
        let second = "; rank 1 waits in MPI_Recv at stuck.c:";
        now_says(&waiting.directory(), &[first, second]);
    }
}

#[test]
fn a_step_that_is_cancelled_leaves_what_its_ranks_knew_on_all_hosts() {
    let Some(cluster) = Cluster::of(&TWO) else { return };
    if !cluster.has_slurm() {
        return;
    }
    for of in ["openmpi4", "mpich5"] {
        let srun = format!("srun -Q --mpi={} -N 2 --ntasks-per-node=2", plugin(Mpi::named(of)));
        let mut waiting = Waiting::start(&cluster, of, of, &srun);
        succeed(&mut cluster.on(1, &["sh", "-c", "scancel $(squeue -h -o %A)"]));
        waiting.launcher.wait().unwrap();
        let text = waiting.report();
        assert!(says_killed(&text) && text.contains("rank 0-3"), "{of}: {text}");
        assert!(text.contains("4 ranks on 2 hosts"), "{of}: {text}");
    }
}
