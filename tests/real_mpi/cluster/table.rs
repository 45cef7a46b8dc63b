//! The long run, `scripts/cluster test`: every MPI of the test bed on four hosts, by every launcher. It writes the table of
//! docs/developers/clusters.md.

use std::fmt::Write;

use super::{Cluster, WAYS, Way, assert_job, batch, fresh, launched, plugin, succeed};
use crate::common::{Mpi, only_run_directory};
use crate::tables::compare;

const FOUR: [&str; 4] = ["node1", "node2", "node3", "node4"];

/// The rows, in the order of the test bed.
const MPIS: [(&str, &str); 7] = [
    ("openmpi4", "Open MPI 4, Debian"),
    ("mpich4", "MPICH 4, Debian"),
    ("openmpi5", "Open MPI 5, PyPI"),
    ("mpich5", "MPICH 5, PyPI"),
    ("intelmpi", "Intel MPI, PyPI"),
    ("mpich-pvars", "MPICH 4 with all variables"),
    ("openmpi-spc", "Open MPI 4 with SPC"),
];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Launcher {
    Mpirun,
    Srun,
    /// mpirun in a batch job of Slurm.
    Sbatch,
}

use Launcher::{Mpirun, Sbatch, Srun};

const LAUNCHERS: [(Launcher, &str); 3] =
    [(Mpirun, "`mpirun`, by ssh"), (Srun, "`srun`"), (Sbatch, "`mpirun` in `sbatch`")];

/// By hand, on four hosts without gyan: 6 of 9 runs of four ranks hung, and all 9 of eight.
const UCX_HANGS: &str = "Over TCP between hosts `MPI_Finalize` mostly hangs, without gyan too (UCX 1.13.1). \
                         Started by ssh, the run directory is one all the same.";

/// By hand, on two hosts without gyan: all of 40 runs failed, on another day none of 30; with libfabric none of 16.
const NOT_BY_UCX: &str = "With `MPIR_CVAR_CH4_NETMOD=ofi`. With UCX `MPI_Init` fails or hangs as the size of its addresses \
                          happens to be, without gyan too.";

/// Cells with a note, and whether they fail even without gyan.
const NOTES: [(&str, Launcher, bool, &str); 4] = [
    ("mpich4", Mpirun, true, UCX_HANGS),
    ("mpich4", Srun, true, UCX_HANGS),
    ("mpich4", Sbatch, true, UCX_HANGS),
    ("mpich5", Srun, false, NOT_BY_UCX),
];

fn note(mpi: Mpi, launcher: Launcher) -> Option<(bool, &'static str)> {
    let of = NOTES.iter().find(|(name, what, ..)| (*name, *what) == (mpi.name, launcher));
    of.map(|&(_, _, fails, text)| (fails, text))
}

/// Checks gyan's view of a job of eight ranks on four hosts.
fn try_out(cluster: &Cluster, mpi: Mpi, launcher: Launcher, way: Way) {
    let here = fresh(cluster, &format!("{}-{launcher:?}-{way:?}", mpi.name));
    let program = mpi.program("receives");
    let command = match launcher {
        Mpirun => launched(way, "mpirun -n 8", &program),
        Srun => launched(
            way,
            &format!("srun -Q --mpi={} -N 4 --ntasks-per-node=2", plugin(mpi)),
            &program,
        ),
        Sbatch => {
            let script = batch(&here, &[launched(way, "mpirun -n 8", &program)]);
            let sbatch = ["sbatch", "-W", "-N", "4", "--ntasks-per-node=2", "-o", "output"];
            let sbatch = sbatch.into_iter().map(str::to_owned);
            sbatch.chain([script.display().to_string()]).collect()
        }
    };
    succeed(cluster.under(mpi.name, &command).current_dir(&here));
    assert_job(&here, &only_run_directory(&here), 8, &FOUR);
}

#[test]
#[ignore = "scripts/cluster test runs it: it takes minutes"]
fn every_mpi_and_launcher_on_four_hosts() {
    let Some(cluster) = Cluster::of(&FOUR) else { return };
    if !cluster.has_slurm() {
        return;
    }
    let mut table = String::from("\n| MPI |");
    for (_, title) in LAUNCHERS {
        write!(table, " {title} |").unwrap();
    }
    table += "\n| :-- | :-: | :-: | :-: |\n";
    let mut notes = Vec::new();
    for (name, title) in MPIS {
        write!(table, "| {title} |").unwrap();
        for (launcher, _) in LAUNCHERS {
            let mpi = Mpi::named(name);
            let note = note(mpi, launcher);
            let fails = note.is_some_and(|(fails, _)| fails);
            if !fails {
                for way in WAYS {
                    eprintln!("{name} {launcher:?} {way:?}");
                    try_out(&cluster, mpi, launcher, way);
                }
                table += " ✓";
            }
            if let Some((_, text)) = note {
                let known = notes.iter().position(|note| *note == text);
                let number = known.unwrap_or_else(|| {
                    notes.push(text);
                    notes.len() - 1
                });
                write!(table, " {}", number + 1).unwrap();
            }
            table += " |";
        }
        table.push('\n');
    }
    table.push('\n');
    for (number, reason) in (1..).zip(notes) {
        writeln!(table, "{number}. {reason}").unwrap();
    }
    print!("{table}");
    compare("docs/developers/clusters.md", "the table of the cluster", &table);
}
