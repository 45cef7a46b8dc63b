//! Which MPIs are available for measurements?

use std::process::Command;

use super::common::{BED, MPICH, Mpi, OPENMPI, root, run};

/// The MPIs of the test bed; Debian's two need no test bed.
pub(super) const NAMES: [&str; 7] =
    ["openmpi4", "mpich4", "mpich-pvars", "openmpi-spc", "openmpi5", "mpich5", "intelmpi"];

/// The MPI of that name, or why there is none.
pub(super) fn mpi(name: &str) -> Result<Mpi, String> {
    match name {
        "openmpi4" => return Ok(OPENMPI),
        "mpich4" => return Ok(MPICH),
        _ => {}
    }
    let list = run(Command::new(root().join("scripts/testbed")).arg("list")).stdout;
    let ready = list.lines().any(|line| line.split_whitespace().eq([name, "ready"]));
    let known = BED.into_iter().find(|mpi| mpi.name == name);
    match known {
        Some(mpi) if ready => Ok(mpi),
        _ => Err(format!("not set up; scripts/testbed setup {name}")),
    }
}

/// The launcher's words in front of a program, each rank on a core of its own: the scheduler's placement of two
/// communicating ranks makes more of a difference than anything measured here.
pub(super) fn launcher(mpi: Mpi, ranks: usize) -> Vec<String> {
    let mut words = mpi.mpirun(ranks);
    words.retain(|word| word != "--oversubscribe");
    words.extend(["--bind-to".into(), "core".into()]);
    words
}
